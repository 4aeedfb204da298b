// What a SecurePort knows of paths, and whom it answers by itself.
#include "device/datagram/secure_port.hpp"

#include <algorithm>
#include <numeric>
#include <tuple>
#include <utility>

#include "base/assert.hpp"

namespace via::device::datagram {
namespace {

/// Hellos that were taken and not welcomed: a device may have reasons not to.
constexpr std::size_t pending_max = 256;
/// A path that is over may have something left to say, its end.
constexpr Duration memory_of_the_over = seconds(1);
constexpr std::uint32_t secure_answers = 100;
/// Each costs some multiplications of 40 us; who may have one was sent a cookie, and has the key.
constexpr std::uint32_t handshakes_a_second = 5000;
constexpr std::uint32_t handshakes_at_once = 2000;
/// Whoever knows a host's public key and can receive at the address of one that it trusts.
constexpr std::uint32_t hosts_handshakes_a_second = 1000;

/// By hosts, those of one in the order that they are in.
void sort(std::vector<PinnedKey>& keys) {
    std::vector<std::size_t> order(keys.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::sort(order, [&](std::size_t one, std::size_t other) {
        return std::tie(keys[one].host, one) < std::tie(keys[other].host, other);
    });
    std::vector<PinnedKey> sorted;
    sorted.reserve(keys.size());
    for (const std::size_t n : order) sorted.push_back(keys[n]);
    keys = std::move(sorted);
}

}  // namespace

SecurePort::SecurePort(std::unique_ptr<Port> inner, std::unique_ptr<secure::Crypto> crypto,
                       SecureOptions options)
    : PortDecorator(std::move(inner)),
      crypto_(std::move(crypto)),
      options_(std::move(options)),
      answers_(secure_answers, secure_answers),
      handshakes_(handshakes_a_second, handshakes_at_once),
      hosts_handshakes_(hosts_handshakes_a_second, hosts_handshakes_a_second) {
    VIA_ASSERT(!options_.keys.empty());
    sort(options_.hosts);
    prepare_ephemeral();
}

SecurePort::~SecurePort() = default;

SecureSession* SecurePort::by_ours(std::uint64_t ours) const {
    const auto found = by_ours_.find(ours);
    return found == by_ours_.end() ? nullptr : found->second;
}

SecureSession* SecurePort::by_theirs(const HostAddress& peer, std::uint64_t theirs) {
    if (sealed_last_ != nullptr && sealed_last_->theirs == theirs && sealed_last_->peer == peer)
        return sealed_last_;
    const auto found = by_theirs_.find({peer, theirs});
    sealed_last_ = found == by_theirs_.end() ? nullptr : found->second;
    return sealed_last_;
}

/// Packets to the peer by that identifier are of this session from now on.
void SecurePort::name_theirs(SecureSession& session) {
    by_theirs_[{session.peer, session.theirs}] = &session;
    sealed_last_ = nullptr;
}

SecureSession* SecurePort::by_hello(const HostAddress& peer, std::uint64_t connection) const {
    const auto found = by_hello_.find({peer, connection});
    return found == by_hello_.end() ? nullptr : found->second;
}

/// The session is that of our path of that name from now on. Where both ends asked, the one that
/// was asked for by it is over.
void SecurePort::replace(SecureSession& session, std::uint64_t ours) {
    if (SecureSession* const other = by_ours(ours)) remove(*other);
    session.ours = ours;
    by_ours_[ours] = &session;
}

SecureSession& SecurePort::add(const HostAddress& peer, bool asks) {
    SecureSession& session = sessions_.emplace_back();
    session.peer = peer;
    session.asks = asks;
    if (asks) return session;
    pending_.push_back(&session);
    if (pending_.size() > pending_max && !mutated(secure::Mutation::keep_pending))
        remove(*pending_.front());
    return session;
}

void SecurePort::remove(SecureSession& session) {
    if (by_ours(session.ours) == &session) by_ours_.erase(session.ours);
    if (by_theirs(session.peer, session.theirs) == &session)
        by_theirs_.erase({session.peer, session.theirs});
    if (by_hello(session.peer, session.theirs) == &session)
        by_hello_.erase({session.peer, session.theirs});
    if (sealed_last_ == &session) sealed_last_ = nullptr;
    std::erase(pending_, &session);
    std::erase(over_, &session);
    sessions_.remove_if([&](const SecureSession& one) { return &one == &session; });
}

/// The device has no such path any more. What it still has to say about it leaves soon.
void SecurePort::forget(std::uint64_t ours) {
    SecureSession* const session = by_ours(ours);
    if (session == nullptr || session->is_over) return;
    session->is_over = true;
    session->over_at = inner().now();
    over_.push_back(session);
}

void SecurePort::doubt(const HostAddress& to, Time arrived) {
    for (auto next = by_theirs_.lower_bound({to, 0});
         next != by_theirs_.end() && next->first.peer == to; ++next)
        next->second->doubted = inner().now();
    inner().doubt(to, arrived);
}

void SecurePort::sweep() {
    if (over_.empty()) return;
    const Time now = inner().now();
    while (!over_.empty() && now - over_.front()->over_at >= memory_of_the_over)
        remove(*over_.front());
}

std::span<const PinnedKey> SecurePort::pinned(const HostAddress& host) const {
    const auto [first, last] =
        std::ranges::equal_range(options_.hosts, number_of(host), {}, &PinnedKey::host);
    return {first, last};
}

/// The network's limits are those of sealed packets.
bool SecurePort::next_network_error(NetworkError& error) {
    if (!inner().next_network_error(error)) return false;
    if (error.kind == NetworkErrorKind::too_long)
        error.length = error.length > overhead ? error.length - overhead : 0;
    return true;
}

/// Says to a stranger what is wrong, a hundred times a second at most, and to our user for whom.
void SecurePort::answer(const HostAddress& to, Bytes packet, const char* why) {
    const Time now = inner().now();
    std::uint64_t who = 0;
    for (std::size_t n = 0; n < to.length; ++n) who = who * 31 + to.bytes[n];
    if (!answers_.take(who, now) && !mutated(secure::Mutation::skip_answers_limit)) return;
    const Outgoing out{to, packet.data(), static_cast<std::uint32_t>(packet.size())};
    inner().send({&out, 1});
    tell(to, why);
}

void SecurePort::tell(const HostAddress& whom, const char* what) {
    const Time now = inner().now();
    if (now < next_report_) return;
    next_report_ = now + seconds(1);
    options_.report(whom, what);
}

}  // namespace via::device::datagram
