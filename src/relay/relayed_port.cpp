#include "relay/relayed_port.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "relay/mutation.hpp"
#include "wire/bytes.hpp"

namespace via::relay {

using device::datagram::NetworkErrorKind;
using device::datagram::quoted_connection;

namespace {

/// Bursts of which nothing was for us, until the caller has a turn again.
constexpr int looks_max = 8;

}  // namespace

RelayedPort::RelayedPort(std::unique_ptr<device::datagram::Port> inner, const Ways& ways)
    : PortDecorator(std::move(inner)),
      ways_(ways),
      envelope_length_(wire::envelope_length(nic_address().length)),
      room_(room_bytes) {
    for (auto& [to, nexts] : ways_.from(nic_address())) {
        Route& route = routes_[to];
        for (const HostAddress& next : nexts)
            route.nexts.push_back(
                with_port(next, HostOnly(next) == to ? std::uint16_t{0} : relay_port));
    }
}

RelayedPort::Route* RelayedPort::route_to(const HostAddress& to) {
    if (to == last_to_) return last_route_;
    last_to_ = to;
    const auto found = routes_.find(HostOnly(to));
    return last_route_ = found == routes_.end() ? nullptr : &found->second;
}

HostAddress RelayedPort::next_to(const HostAddress& host) const {
    const auto found = routes_.find(HostOnly(host));
    return found == routes_.end() || found->second.is_direct()
               ? host
               : found->second.nexts[found->second.at];
}

// Out ---------------------------------------------------------------------------------------------

void RelayedPort::wrap(const Outgoing& out, const HostAddress& over, std::byte* to) {
    const std::uint64_t connection = quoted_connection({out.bytes, out.length});
    wire::emit_envelope({wire::EnvelopeKind::carried, hops_max, connection,
                         out.from_host_port ? nic_address() : data_address(), out.to},
                        to);
    std::memcpy(to + envelope_length_, out.bytes, out.length);
    Sent& sent = sent_[connection % remembered];
    if (sent.connection != connection || !(sent.to == out.to) || !(sent.over == over))
        sent = {connection, out.to, over};
}

std::size_t RelayedPort::send(std::span<const Outgoing> datagrams) {
    std::size_t taken = 0;
    while (taken < datagrams.size()) {
        burst_.clear();
        std::size_t used = 0;
        for (const Outgoing& out : datagrams.subspan(taken)) {
            const Route* const route = route_to(out.to);
            Outgoing onward = out;
            if (route != nullptr && !route->is_direct()) {
                const std::uint32_t length = envelope_length_ + out.length;
                if (room_.size() - used < length) break;
                onward.to = route->nexts[route->at];
                onward.bytes = room_.data() + used;
                onward.length = length;
                wrap(out, onward.to, room_.data() + used);
                used += length;
                ++totals_.enveloped;
            }
            // What it would follow may have been in the burst before.
            onward.follows = out.follows && !burst_.empty();
            burst_.push_back(onward);
        }
        const std::size_t sent = inner().send(burst_);
        taken += sent;
        if (sent < burst_.size()) break;
    }
    return taken;
}

void RelayedPort::doubt(const HostAddress& to, Time arrived) {
    Route* const route = route_to(to);
    if (route == nullptr) return inner().doubt(to, arrived);
    inner().doubt(next_to(to), arrived);
    if (arrived > route->doubted) route->doubts = 0;  // since then something came through
    route->doubted = now();
    if (++route->doubts >= doubts_max) change_way(*route);
}

/// False: there is no other.
bool RelayedPort::change_way(Route& route) {
    if (route.nexts.size() == 1 || mutated(Mutation::stay_on_dead_way)) return false;
    route.at = (route.at + 1) % route.nexts.size();
    route.doubts = 0;
    ++totals_.changes;
    return true;
}

/// An end that only answers would not learn that its way is dead, and one that changes its way gets
/// no answer then. So both take one way: that of the end with the lower address, or the one that
/// its peer has changed to.
void RelayedPort::follow(Route& route, const HostAddress& from, const HostAddress& over) {
    const bool has_changed = std::exchange(route.heard_over, over) != over;
    if (!has_changed && HostOnly(nic_address()) < HostOnly(from)) return;
    const auto next = std::ranges::find(route.nexts, over);
    if (next == route.nexts.end() || *next == route.nexts[route.at] ||
        mutated(Mutation::stay_on_dead_way))
        return;
    route.at = static_cast<std::size_t>(next - route.nexts.begin());
    route.doubts = 0;
    ++totals_.changes;
}

// In ----------------------------------------------------------------------------------------------

std::size_t RelayedPort::receive(std::span<Incoming> datagrams) {
    for (int looks = 0; looks < looks_max; ++looks) {
        const std::size_t came = inner().receive(datagrams);
        std::size_t kept = 0;
        for (std::size_t n = 0; n < came; ++n)
            if (!ways_.is_relay(datagrams[n].from) || open(datagrams[n]))
                datagrams[kept++] = datagrams[n];
        if (came == 0 || kept != 0) return kept;
        inner().release();
    }
    return 0;
}

bool RelayedPort::is_for_us(const HostAddress& destination, bool to_host_port) const {
    return destination == (to_host_port ? nic_address() : data_address());
}

/// False: it is none of ours, or was no datagram.
bool RelayedPort::open(Incoming& in) {
    wire::Envelope envelope;
    const std::span datagram(in.bytes, in.length);
    if (wire::parse_envelope(datagram, envelope) != wire::PacketError::none ||
        !is_for_us(envelope.destination, in.to_host_port) || route_to(envelope.source) == nullptr) {
        ++totals_.refused;
        return false;
    }
    if (envelope.kind == wire::EnvelopeKind::unreachable) {
        hear({NetworkErrorKind::port_unreachable, {}, 0, envelope.connection}, envelope.source);
        return false;
    }
    follow(*route_to(envelope.source), envelope.source, in.from);
    in.from = envelope.source;
    in.bytes += envelope_length_;
    in.length -= envelope_length_;
    ++totals_.opened;
    return true;
}

// What the network says ---------------------------------------------------------------------------

void RelayedPort::hear(NetworkError error, const HostAddress& to) {
    error.to = to;
    if (errors_.size() < errors_max) errors_.push_back(error);  // hints are not hoarded
}

/// From now on nothing goes over that relay where there is another way. False: something did, and
/// there is none.
bool RelayedPort::leave(const HostAddress& over) {
    bool all = true;
    for (auto& [to, route] : routes_)
        if (route.nexts[route.at] == over) all = change_way(route) && all;
    return all;
}

/// It is said of the relay, and meant for who was to be reached over it.
void RelayedPort::take_error(const NetworkError& error) {
    if (!ways_.is_relay(error.to)) return hear(error, error.to);
    const Sent& sent = sent_[error.connection % remembered];
    const bool was_sent = sent.connection == error.connection && sent.over == error.to;
    if (!error.is_ours && !was_sent) return;  // perhaps forged by who sees nothing
    NetworkError meant = error;
    if (error.kind == NetworkErrorKind::too_long)
        meant.length = error.length > envelope_length_ ? error.length - envelope_length_ : 0;
    else if (leave(error.to))
        return;
    if (!error.is_ours) return hear(meant, sent.to);
    std::vector<HostAddress> told;
    for (const Sent& one : sent_)
        if (one.over == error.to && std::ranges::find(told, one.to) == told.end())
            told.push_back(one.to);
    for (const HostAddress& to : told) hear(meant, to);
}

bool RelayedPort::next_network_error(NetworkError& error) {
    while (errors_.empty() && inner().next_network_error(error)) take_error(error);
    if (errors_.empty()) return false;
    error = errors_.front();
    errors_.pop_front();
    return true;
}

}  // namespace via::relay
