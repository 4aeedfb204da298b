#include "relay/forwarder.hpp"

#include <utility>

#include "relay/mutation.hpp"

namespace via::relay {

/// A host of the table speaks for itself alone, a relay for all of them.
bool Forwarder::may_be_from(const HostAddress& from, const wire::Envelope& envelope) const {
    return ways_.fastest(envelope.source) != nullptr &&
           (from == envelope.source || ways_.is_relay(from) ||
            mutated(Mutation::pass_on_for_anyone));
}

std::optional<Forwarder::Onward> Forwarder::onward_to(const HostAddress& destination) const {
    const Way* const way = ways_.fastest(destination);
    // What is for a relay itself would be passed on by it to itself.
    if (way == nullptr || port_of(destination) == relay_port) return {};
    const bool is_there = HostOnly(way->next) == HostOnly(destination);
    return Onward{way->own, is_there ? destination : with_port(way->next, relay_port)};
}

std::optional<Forwarder::Onward> Forwarder::pass_on(const HostAddress& from,
                                                    std::span<std::byte> datagram) {
    wire::Envelope envelope;
    if (wire::parse_envelope(datagram, envelope) != wire::PacketError::none) {
        ++totals_.malformed;
        return {};
    }
    if (!may_be_from(from, envelope)) {
        ++totals_.strangers;
        return {};
    }
    auto onward = onward_to(envelope.destination);
    if (!onward) {
        ++totals_.unknown;
        return {};
    }
    if (envelope.hops == 0 || envelope.hops > hops_max ||
        (ways_.is_relay(from) && HostOnly(onward->to) == HostOnly(from))) {
        ++totals_.going_round;
        return {};
    }
    wire::set_hops(datagram, static_cast<std::uint8_t>(envelope.hops - 1));
    ++totals_.passed_on;
    totals_.bytes += datagram.size();
    onward->source = envelope.source;
    onward->destination = envelope.destination;
    return onward;
}

std::optional<Forwarder::Notice> Forwarder::tell_unreachable(std::span<const std::byte> quoted) {
    wire::Envelope envelope;
    if (wire::parse_quoted_envelope(quoted, envelope) != wire::PacketError::none ||
        envelope.kind != wire::EnvelopeKind::carried)
        return {};
    const auto onward = onward_to(envelope.source);
    if (!onward) return {};
    std::swap(envelope.source, envelope.destination);
    envelope.kind = wire::EnvelopeKind::unreachable;
    envelope.hops = hops_max;
    Notice notice{*onward, {}, 0};
    notice.length = wire::emit_envelope(envelope, notice.bytes.data());
    ++totals_.notices;
    return notice;
}

}  // namespace via::relay
