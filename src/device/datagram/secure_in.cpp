// A SecurePort's way in: nothing is believed before a key has opened it.
#include <algorithm>
#include <cstring>
#include <utility>

#include "device/datagram/cookie.hpp"
#include "device/datagram/secure_port.hpp"
#include "secure/mutation.hpp"
#include "wire/bytes.hpp"
#include "wire/sealed.hpp"

namespace via::device::datagram {
namespace {

namespace sealed = wire::sealed;

using KeyMutation = secure::Mutation;
constexpr std::size_t no_key = ~std::size_t{0};
/// Bursts of nothing but strangers' packets that are thrown away in one look: who finds nothing
/// looks less often, and that is not what they are to decide.
constexpr int looks_max = 8;
/// Hosts without a key that are known as such; all are asked anew when there are more.
constexpr std::size_t open_hosts_max = 4096;

std::uint64_t connection_of(std::span<const std::byte> packet) {
    return wire::get<std::uint64_t>(packet.data() + 8);
}

}  // namespace

std::size_t SecurePort::receive(std::span<Incoming> datagrams) {
    sweep();
    if (!refusals_.empty()) return hand_up_refusals(datagrams);
    for (int looks = 0; looks < looks_max; ++looks) {
        const std::size_t came = inner().receive(datagrams);
        std::size_t kept = 0;
        for (std::size_t n = 0; n < came; ++n)
            if (turn_in(datagrams[n])) datagrams[kept++] = datagrams[n];
        if (kept != 0) return kept;
        if (came == 0) break;
        inner().release();
    }
    if (wants_ephemeral_) [[unlikely]]
        prepare_ephemeral();
    return 0;
}

std::size_t SecurePort::hand_up_refusals(std::span<Incoming> datagrams) {
    refused_here_ = std::exchange(refusals_, {});
    const std::size_t count = std::min(refused_here_.size(), datagrams.size());
    refusals_.assign(refused_here_.begin() + static_cast<std::ptrdiff_t>(count),
                     refused_here_.end());
    for (std::size_t n = 0; n < count; ++n)
        datagrams[n] = {refused_here_[n].from, refused_here_[n].packet.data(),
                        refused_here_[n].length, 0, false};
    return count;
}

bool SecurePort::turn_in(Incoming& in) {
    // Private memory, which nobody reads but us.
    const Room packet(const_cast<std::byte*>(in.bytes), in.length);
    if (packet.size() < wire::packet_length_least) return true;  // the device counts it
    if (wire::get<std::uint8_t>(in.bytes + 4) != sealed::version) return take_bare(in);
    const auto kind = wire::get<wire::PacketKind>(in.bytes + 5);
    if (kind == wire::PacketKind::data || kind == wire::PacketKind::close ||
        kind == wire::PacketKind::rails)
        return open(in, kind, packet);
    const bool whole = wire::has_checksum(packet) && wire::get<std::uint16_t>(in.bytes + 6) == 0;
    if (whole && kind == wire::PacketKind::hello) return take_hello(in, packet);
    if (whole && kind == wire::PacketKind::welcome) return take_welcome(in, packet);
    ++totals_.malformed;
    return false;
}

/// Of version 1 there are questions and answers, what is said to strangers, and hints.
bool SecurePort::take_bare(Incoming& in) {
    wire::PacketPrefix prefix;
    if (wire::parse_prefix({in.bytes, in.length}, prefix) != wire::PacketError::none) return true;
    wire::CloseReason why{};
    const bool may_pass = (may_be_open(in.from) && (by_ours(prefix.connection) == nullptr ||
                                                    mutated(KeyMutation::open_sealed_paths))) ||
                          mutated(KeyMutation::take_bare_packets);
    switch (prefix.kind) {
        case wire::PacketKind::query:
        case wire::PacketKind::answer:
        case wire::PacketKind::retry:
            return true;
        case wire::PacketKind::unsupported:
        case wire::PacketKind::refuse:
            return take_refusal(in, prefix);
        case wire::PacketKind::close:
            if (may_pass ||
                (wire::parse_close({in.bytes, in.length}, why) == wire::PacketError::none &&
                 why == wire::CloseReason::unknown_path))
                return true;
            break;
        case wire::PacketKind::hello: {
            if (may_pass) return true;
            ++totals_.bare;
            std::byte packet[wire::connecting_length_max];
            const std::uint32_t length =
                wire::emit_unsupported(prefix.connection, wire::ConnectingBytes(packet));
            wire::put(packet + 16, sealed::version);
            wire::put(packet + 17, sealed::version);
            wire::seal({packet, length}, {wire::PacketKind::unsupported, prefix.connection});
            answer(in.from, {packet, length}, "asked without a key and was refused");
            return false;
        }
        case wire::PacketKind::welcome:
        case wire::PacketKind::data:
        case wire::PacketKind::rails:
            if (may_pass) return true;
            break;
    }
    ++totals_.bare;
    return false;
}

/// Anybody may have said it. The one who was asked has until the hello is said again to welcome us:
/// then it is believed.
bool SecurePort::take_refusal(Incoming& in, const wire::PacketPrefix& prefix) {
    SecureSession* const session = by_ours(prefix.connection);
    if (session == nullptr || !session->asks || session->peer != in.from) return true;
    if (session->opening || session->is_over) return false;
    if (session->handshake && !session->asked_again && !mutated(KeyMutation::believe_refusal)) {
        session->is_refused = true;
        return false;
    }
    wire::PathRefusal why{};
    if (prefix.kind == wire::PacketKind::unsupported && may_be_open(in.from)) {
        // The device says hello again: in the open.
        tell(in.from, "has no key for the wire: what it and we say is in the open");
        if (open_.size() == open_hosts_max) open_.clear();
        open_.insert(number_of(in.from));
        remove(*session);
        return false;
    }
    if (prefix.kind == wire::PacketKind::unsupported) {
        tell(in.from, "has no key for the wire, or is too old for one");
    } else if (wire::parse_refuse({in.bytes, in.length}, why) == wire::PacketError::none &&
               why == wire::PathRefusal::not_admitted) {
        tell(in.from, "refuses our key");
    }
    return true;
}

// Hello -------------------------------------------------------------------------------------------

bool SecurePort::take_hello(Incoming& in, Room packet) {
    const std::uint64_t connection = connection_of(packet);
    if (packet.size() == sealed::bare_hello_length) {
        wire::put(packet.data() + 4, wire::packet_version);
        wire::put(packet.data(), wire::crc32c(Bytes(packet).subspan(4)));
        wire::Hello hello;
        const bool good = wire::parse_hello(packet, hello) == wire::PacketError::none &&
                          (!hello.cookie.is_given() || mutated(KeyMutation::take_bare_hello));
        totals_.malformed += good ? 0 : 1;
        return good;
    }
    const auto zeros = Bytes(packet).subspan(
        std::min<std::size_t>(packet.size(), sealed::hello_zero),
        packet.size() < sealed::hello_message ? 0 : sealed::hello_message - sealed::hello_zero);
    if (packet.size() != sealed::hello_length || connection == 0 ||
        wire::get<std::uint8_t>(packet.data() + sealed::hello_cipher) > 1 ||
        std::ranges::any_of(zeros, [](std::byte byte) { return byte != std::byte{0}; })) {
        ++totals_.malformed;
        return false;
    }
    const wire::Cookie cookie{wire::get<std::uint64_t>(packet.data() + sealed::hello_moment),
                              wire::get<std::uint64_t>(packet.data() + sealed::hello_proof)};
    wire::Hello hello{.target = wire::get<std::uint64_t>(packet.data() + sealed::hello_target),
                      .attempt = 1,
                      .cookie = cookie,
                      .offer = {1, wire::packet_length_min, 0, wire::packet_length_min, 0}};
    if (hello.target == options_.instance &&
        (mutated(KeyMutation::skip_cookie) ||
         is_proof(options_.cookie_key, cookie, in.from, connection, inner().now())))
        return answer_hello(in, packet, cookie);
    // The device says what is wrong: that the instance is not here, or what the cookie is by now.
    if (hello.target == options_.instance) hello.cookie = {};
    return hand_up_hello(in, packet, hello);
}

/// Is the path that we know by that identifier its, too? Of the host itself, not only of its
/// address.
bool SecurePort::is_of_same_peer(const SecureSession& session, std::uint64_t ours) const {
    const SecureSession* const other = by_ours(ours);
    if (mutated(KeyMutation::join_any_path)) return other != nullptr;
    return other != nullptr && !other->asks && !other->is_over &&
           other->peer_key == session.peer_key;
}

/// With a good cookie, so that whoever sent it receives at its address.
bool SecurePort::answer_hello(Incoming& in, Room packet, const wire::Cookie& cookie) {
    const std::size_t key = admitting_key(packet);
    const char* why = nullptr;
    if (key == no_key) {
        why = "asked with another key and was refused";
    } else if (inner().now() >= options_.keys[key].until && !mutated(KeyMutation::skip_expiry)) {
        why = "asked for a key of ours that has expired and was refused";
    } else if (const bool known = !pinned(in.from).empty();
               known != options_.keys[key].is_own && !mutated(KeyMutation::skip_known_host)) {
        why = known ? "asked without its own key and was refused"
                    : "is not known here and was refused (via keys trust)";
    }
    if (why != nullptr) {
        refuse(in.from, connection_of(packet), why);
        return false;
    }
    const SecureSession* const session = answering(in, packet, key);
    if (session == nullptr) return false;
    wire::Hello hello = session->hello;
    if (hello.joins && !is_of_same_peer(*session, hello.attempt)) {
        ++totals_.forged;
        return false;
    }
    hello.cookie = cookie;
    return hand_up_hello(in, packet, hello);
}

/// The same is said whatever is wrong: which it is only our user learns.
void SecurePort::refuse(const HostAddress& to, std::uint64_t connection, const char* why) {
    ++totals_.strangers;
    std::byte refusal[wire::connecting_length_max];
    const std::uint32_t length = wire::emit_refuse(connection, wire::PathRefusal::not_admitted,
                                                   wire::ConnectingBytes(refusal));
    answer(to, {refusal, length}, why);
}

const char* SecurePort::fault_of(const HostAddress& host, const secure::PublicKey& key) {
    if (mutated(KeyMutation::skip_pinned_key)) return nullptr;
    for (const PinnedKey& known : pinned(host)) {
        if (known.key != key) continue;
        return inner().now() < known.until || mutated(KeyMutation::skip_pinned_expiry)
                   ? nullptr
                   : "asked with a key of its that has expired and was refused";
    }
    return "asked with another key than its own and was refused";
}

bool SecurePort::hand_up_hello(Incoming& in, Room packet, const wire::Hello& hello) {
    std::byte bare[wire::connecting_length_max];
    in.length = wire::emit_hello(connection_of(packet), hello, wire::ConnectingBytes(bare));
    std::memcpy(packet.data(), bare, in.length);
    return true;
}

/// The cluster's key whose owner made the hello: no multiplication.
std::size_t SecurePort::admitting_key(Bytes packet) const {
    for (std::size_t key = 0; key < options_.keys.size(); ++key) {
        if (mutated(KeyMutation::skip_admission) ||
            secure::is_same(admission_of(options_.keys[key].admission, packet),
                            packet.subspan(sealed::hello_admission)))
            return key;
    }
    return no_key;
}

/// What the hello began, now or when it came before. nullptr: it is none, or an old one.
SecureSession* SecurePort::answering(Incoming& in, Bytes packet, std::size_t key) {
    const Bytes message = packet.subspan(sealed::hello_message, sealed::hello_message_length);
    const std::uint64_t connection = connection_of(packet);
    SecureSession* const known = by_hello(in.from, connection);
    if (known != nullptr && !mutated(KeyMutation::answer_old_hello)) {
        if (!known->is_over && std::ranges::equal(known->first, message)) return known;
        ++totals_.replayed;
        return nullptr;
    }
    Allowance& allowance = options_.keys[key].is_own ? hosts_handshakes_ : handshakes_;
    if (!allowance.take(connection, inner().now()) && !mutated(KeyMutation::skip_handshakes_limit))
        return nullptr;  // it is said again
    secure::Identity identity = options_.keys[key].identity;
    identity.cipher = wire::get<secure::CipherKind>(packet.data() + sealed::hello_cipher);
    secure::Handshake handshake = secure::Handshake::answer(
        *crypto_, identity, prologue(connection, options_.instance, identity.cipher));
    std::byte bare[sealed::bare_hello_length];
    wire::Hello hello;
    wire::PacketPrefix prefix;
    ++totals_.handshakes;
    if (handshake.read(message, bare) != secure::Fault::none ||
        wire::parse_prefix(bare, prefix) != wire::PacketError::none ||
        prefix.connection != connection ||
        wire::parse_hello(bare, hello) != wire::PacketError::none ||
        hello.target != options_.instance) {
        ++totals_.forged;
        return nullptr;
    }
    if (const char* const why =
            options_.keys[key].is_own ? fault_of(in.from, handshake.peer()) : nullptr) {
        refuse(in.from, connection, why);
        return nullptr;
    }
    SecureSession& session = add(in.from, false);
    session.theirs = connection;
    session.cipher = identity.cipher;
    session.first.assign(message.begin(), message.end());
    session.hello = hello;
    session.peer_key = handshake.peer();
    session.handshake.emplace(std::move(handshake));
    by_hello_[{in.from, connection}] = &session;
    return &session;
}

// Welcome and what follows ------------------------------------------------------------------------

bool SecurePort::take_welcome(Incoming& in, Room packet) {
    SecureSession* const session = by_ours(connection_of(packet));
    if (packet.size() != sealed::welcome_length || session == nullptr || !session->handshake ||
        !session->asks || session->is_over ||
        (session->peer != in.from && !mutated(KeyMutation::take_welcome_from_any)))
        return false;
    std::byte bare[sealed::bare_welcome_length];
    wire::PacketPrefix prefix;
    wire::Welcome welcome;
    if (session->handshake->read(packet.subspan(sealed::welcome_message), bare) !=
        secure::Fault::none) {
        ++totals_.forged;
        return false;
    }
    // Its maker has the key, but may be older or broken.
    if (wire::parse_prefix(bare, prefix) != wire::PacketError::none ||
        prefix.connection != session->ours ||
        wire::parse_welcome(bare, welcome) != wire::PacketError::none) {
        ++totals_.malformed;
        return false;
    }
    session->theirs = welcome.connection;
    if (!session->take_keys(*crypto_, options_.limits, options_.log_keys)) return false;
    name_theirs(*session);
    std::memcpy(packet.data(), bare, sizeof bare);
    in.length = sizeof bare;
    return true;
}

bool SecurePort::open(Incoming& in, wire::PacketKind kind, Room packet) {
    const std::uint64_t connection = connection_of(packet);
    SecureSession* const session = by_ours(connection);
    if (packet.size() < sealed::text + secure::tag_length + 4 ||
        wire::get<std::uint16_t>(packet.data() + 6) != 0 ||
        wire::get<std::uint32_t>(packet.data()) != 0) {
        ++totals_.malformed;
        return false;
    }
    const std::uint32_t length = in.length - overhead;
    if (session == nullptr || session->is_over) {
        // The device says that it knows no such path.
        if (kind != wire::PacketKind::data) return false;
        wire::seal(packet, {kind, connection});
        return true;
    }
    if (!session->opening) return false;
    const Room text = packet.subspan(sealed::text);
    const secure::Opened opened =
        session->opening->open(wire::get<std::uint64_t>(packet.data() + sealed::number),
                               packet.first(wire::packet_prefix_length), text,
                               text.first(text.size() - secure::tag_length));
    if (opened != secure::Opened::genuine) {
        ++(opened == secure::Opened::replayed ? totals_.replayed : totals_.forged);
        return false;
    }
    // The prefix of version 1 comes right before the text.
    const Room bare = packet.subspan(sealed::text - wire::packet_prefix_length, length);
    wire::put_packet_prefix(bare, {kind, connection});
    in.authentic = true;
    in.bytes = bare.data();
    in.length = length;
    return true;
}

}  // namespace via::device::datagram
