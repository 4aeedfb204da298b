// A SecurePort's way out.
#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "device/datagram/constants.hpp"
#include "device/datagram/secure_port.hpp"
#include "secure/mutation.hpp"
#include "wire/bytes.hpp"
#include "wire/sealed.hpp"

namespace via::device::datagram {
namespace {

namespace sealed = wire::sealed;

/// The most that a packet grows by: a hello.
constexpr std::uint32_t growth_max =
    std::max<std::uint32_t>(SecurePort::overhead, sealed::hello_length - sealed::bare_hello_length);

void set_version(std::span<std::byte> packet) {
    wire::put(packet.data() + 4, sealed::version);
    wire::put(packet.data(), wire::crc32c(packet.subspan(4)));
}

/// Without a checksum.
void put_prefix(wire::PacketKind kind, std::uint64_t connection, std::span<std::byte> to) {
    wire::put(to.data(), std::uint32_t{0});
    wire::put(to.data() + 4, wire::packet_word(kind));
    wire::put(to.data() + 4, sealed::version);
    wire::put(to.data() + 8, connection);
}

}  // namespace

std::size_t SecurePort::send(std::span<const Outgoing> datagrams) {
    std::size_t room = 0;
    for (const Outgoing& out : datagrams) room += out.length + growth_max;
    if (room_.size() < room) room_.resize(room);
    burst_.clear();
    which_.clear();
    burst_began_ = inner().now();
    std::size_t at = 0;
    for (std::size_t n = 0; n < datagrams.size(); ++n) {
        const Outgoing& out = datagrams[n];
        const std::uint32_t length = turn_out(out, std::span(room_).subspan(at));
        if (length == 0) continue;
        Outgoing& turned = burst_.emplace_back(out);
        turned.bytes = room_.data() + at;
        turned.length = length;
        turned.body = {};
        turned.follows = out.follows && !which_.empty() && which_.back() + 1 == n;
        which_.push_back(n);
        at += length;
    }
    const std::size_t taken = burst_.empty() ? 0 : inner().send(burst_);
    // What was not taken is sealed anew next time: a number that was not used does no harm.
    return taken == burst_.size() ? datagrams.size() : which_[taken];
}

std::uint32_t SecurePort::turn_out(const Outgoing& out, Room to) {
    const Bytes packet(out.bytes, out.length);
    const auto kind = wire::get<wire::PacketKind>(out.bytes + 5);
    switch (kind) {
        case wire::PacketKind::hello:
            return say_hello(out, to);
        case wire::PacketKind::welcome:
            return say_welcome(out, to);
        case wire::PacketKind::data:
        case wire::PacketKind::rails:
            return seal(out, kind, to);
        case wire::PacketKind::close: {
            wire::CloseReason why{};
            static_cast<void>(wire::parse_close(packet, why));
            if (why != wire::CloseReason::unknown_path) return seal(out, kind, to);
            break;
        }
        default:
            break;
    }
    std::ranges::copy(packet, to.begin());
    return out.length;
}

/// As it is; of data the device left the checksum to us.
std::uint32_t SecurePort::say_in_the_open(const Outgoing& out, wire::PacketKind kind, Room to) {
    ++totals_.in_the_open;
    std::ranges::copy(Bytes(out.bytes, out.length), to.begin());
    if (kind == wire::PacketKind::data)
        wire::seal(to.first(out.length), {kind, wire::get<std::uint64_t>(out.bytes + 8)}, out.body);
    return out.length;
}

/// A host whose key is known is asked for that one and no other.
SecurePort::Asking SecurePort::asking(const HostAddress& host) {
    const Time now = inner().now();
    const std::span<const PinnedKey> known = pinned(host);
    const auto is_good = [now](const auto& key) {
        return now < key.until || mutated(secure::Mutation::ask_with_expired_key);
    };
    Asking found;
    for (const Credential& key : options_.keys) {
        if (key.is_own == known.empty() || !is_good(key)) continue;
        found.ours = &key;
        found.theirs = *key.identity.own_public;
        break;
    }
    const bool has_kind = std::ranges::any_of(
        options_.keys, [&](const Credential& key) { return key.is_own != known.empty(); });
    if (found.ours == nullptr) {
        found.unknown = known.empty() && !has_kind;
        found.fault = has_kind ? "is not asked: our key for it has expired"
                      : known.empty()
                          ? "is not asked: its key is not known here (via keys trust)"
                          : "is not asked: there is no key of our own (via keys new --host)";
    }
    if (known.empty() || found.fault != nullptr) return found;
    const auto theirs = std::ranges::find_if(known, is_good);
    if (theirs == known.end()) {
        found.fault = "is not asked: its key has expired here";
    } else {
        found.theirs = theirs->key;
    }
    return found;
}

std::uint32_t SecurePort::say_hello(const Outgoing& out, Room to) {
    const Bytes packet(out.bytes, out.length);
    const auto connection = wire::get<std::uint64_t>(out.bytes + 8);
    wire::Hello hello;
    if (wire::parse_hello(packet, hello) != wire::PacketError::none) return 0;
    SecureSession* session = by_ours(connection);
    if (session == nullptr) {
        const Asking asked = asking(out.to);
        if (may_be_open(out.to) && (asked.unknown || open_.contains(number_of(out.to)))) {
            if (asked.unknown)
                tell(out.to, "has no key that is known here: what it and we say is in the open");
            return say_in_the_open(out, wire::PacketKind::hello, to);
        }
        if (asked.fault != nullptr) {
            tell(out.to, asked.fault);
            Refusal& refusal = refusals_.emplace_back();
            refusal.from = out.to;
            refusal.length =
                wire::emit_refuse(connection, wire::PathRefusal::not_admitted, refusal.packet);
            return 0;
        }
        session = &add(out.to, true);
        session->ours = connection;
        by_ours_[connection] = session;
    }
    if (hello.cookie.moment == 0 && hello.cookie.proof == 0) {
        std::ranges::copy(packet, to.begin());
        set_version(to.first(out.length));
        return out.length;
    }
    const wire::Cookie cookie = std::exchange(hello.cookie, {});
    if (session->first.empty()) {
        std::byte bare[wire::connecting_length_max];
        const std::uint32_t length =
            wire::emit_hello(connection, hello, wire::ConnectingBytes(bare));
        session->hello = hello;
        if (!begin_asking(*session, connection, {bare, length})) return 0;
    }
    session->asked_again = session->is_refused;
    std::memset(to.data(), 0, sealed::hello_message);
    wire::put(to.data() + sealed::hello_target, hello.target);
    wire::put(to.data() + sealed::hello_moment, cookie.moment);
    wire::put(to.data() + sealed::hello_proof, cookie.proof);
    wire::put(to.data() + sealed::hello_cipher, session->cipher);
    std::ranges::copy(session->first, to.begin() + sealed::hello_message);
    put_prefix(wire::PacketKind::hello, connection, to);
    std::ranges::copy(admission_of(session->admission, to), to.begin() + sealed::hello_admission);
    set_version(to.first(sealed::hello_length));
    return sealed::hello_length;
}

/// Whatever a process's memory was before, no two handshakes have it.
bool SecurePort::draw(secure::Secret& key) {
    return mutated(secure::Mutation::keep_ephemeral) || options_.random(key);
}

/// For a peer with the cluster's key: who has one of its own is known when it asks, or is asked.
void SecurePort::prepare_ephemeral() {
    wants_ephemeral_ = false;
    secure::Secret key;
    if (!draw(key)) return;
    const auto cluster = std::ranges::find_if(options_.keys, [&](const Credential& of) {
        return !of.is_own && inner().now() < of.until;
    });
    ephemeral_ = secure::Ephemeral(key);
    if (!secure::prepare(*crypto_,
                         cluster == options_.keys.end() ? nullptr : &*cluster->identity.own_public,
                         *ephemeral_))
        ephemeral_.reset();
}

/// Used once. nullopt: there are no random bytes.
std::optional<secure::Ephemeral> SecurePort::take_ephemeral() {
    std::optional<secure::Ephemeral> taken = ephemeral_;
    if (!mutated(secure::Mutation::reuse_ephemeral)) {
        ephemeral_.reset();
        wants_ephemeral_ = true;
    }
    secure::Secret key;
    if (!taken && draw(key)) taken = secure::Ephemeral(key);
    return taken;
}

/// The handshake's first message. It is the same whatever cookie goes with it: so who answers takes
/// the second hello of a path for the second one, and not for another path's first.
bool SecurePort::begin_asking(SecureSession& session, std::uint64_t connection, Bytes hello) {
    const Asking asked = asking(session.peer);
    if (asked.fault != nullptr) return false;
    session.admission = asked.ours->admission;
    if (asked.ours->is_own && !make_admission(*crypto_, asked.theirs, session.admission))
        return false;
    secure::Identity identity = asked.ours->identity;
    identity.cipher = session.cipher = options_.cipher;
    const std::optional<secure::Ephemeral> ephemeral = take_ephemeral();
    if (!ephemeral) return false;
    session.handshake.emplace(
        secure::Handshake::ask(*crypto_, identity, asked.theirs,
                               prologue(connection, session.hello.target, session.cipher)));
    std::vector<std::byte> message(sealed::hello_message_length);
    ++totals_.handshakes;
    if (session.handshake->write(*ephemeral, hello, message) != secure::Fault::none) return false;
    session.first = std::move(message);
    return true;
}

std::uint32_t SecurePort::say_welcome(const Outgoing& out, Room to) {
    const Bytes packet(out.bytes, out.length);
    const auto connection = wire::get<std::uint64_t>(out.bytes + 8);
    SecureSession* const session = by_hello(out.to, connection);
    if (session == nullptr && may_be_open(out.to))
        return say_in_the_open(out, wire::PacketKind::welcome, to);
    wire::Welcome welcome;
    if (session == nullptr || wire::parse_welcome(packet, welcome) != wire::PacketError::none)
        return 0;
    if (session->second.empty()) {
        if (!session->handshake) return 0;
        const std::optional<secure::Ephemeral> ephemeral = take_ephemeral();
        std::vector<std::byte> message(sealed::welcome_length - sealed::welcome_message);
        if (!ephemeral ||
            session->handshake->write(*ephemeral, packet, message) != secure::Fault::none)
            return 0;
        replace(*session, welcome.connection);
        if (!session->take_keys(*crypto_, options_.limits, options_.log_keys)) return 0;
        session->second = std::move(message);
        name_theirs(*session);
        std::erase(pending_, session);
    }
    std::memcpy(to.data(), out.bytes, wire::packet_prefix_length);
    std::ranges::copy(session->second, to.begin() + sealed::welcome_message);
    set_version(to.first(sealed::welcome_length));
    return sealed::welcome_length;
}

std::uint32_t SecurePort::seal(const Outgoing& out, wire::PacketKind kind, Room to) {
    const auto connection = wire::get<std::uint64_t>(out.bytes + 8);
    SecureSession* const session = by_theirs(out.to, connection);
    if (session == nullptr && may_be_open(out.to)) return say_in_the_open(out, kind, to);
    if (session == nullptr || !session->sealing) return 0;
    put_prefix(kind, connection, to);
    const Bytes packet(out.bytes, out.length);
    const wire::Body body = out.body.bytes == nullptr ? wire::Body{.at = out.length} : out.body;
    const std::array<Bytes, 3> plain = {
        packet.subspan(wire::packet_prefix_length, body.at - wire::packet_prefix_length),
        Bytes(body.bytes, body.length), packet.subspan(body.at + body.length)};
    std::uint64_t number = 0;
    const bool is_heard = !session->doubted || burst_began_ - *session->doubted >= doubt_memory;
    if (is_heard || mutated(secure::Mutation::age_unheard)) session->sealing->note(burst_began_);
    if (!session->sealing->seal(to.first(wire::packet_prefix_length), plain,
                                to.subspan(sealed::text, out.length + overhead - sealed::text),
                                number))
        return 0;
    wire::put(to.data() + sealed::number, number);
    return out.length + overhead;
}

}  // namespace via::device::datagram
