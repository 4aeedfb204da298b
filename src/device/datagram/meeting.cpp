#include "device/datagram/meeting.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "base/assert.hpp"
#include "device/datagram/cookie.hpp"
#include "device/datagram/mutation.hpp"
#include "device/datagram/packing.hpp"
#include "device/datagram/siphash.hpp"

namespace via::device::datagram {

namespace {

std::span<const std::byte> bytes_of(const Incoming& in) { return {in.bytes, in.length}; }

PathEvent resolved(const Path& path) {
    return {PathEventKind::resolved, path.id, Status::success, 0, {}, path.payload_max()};
}

}  // namespace

wire::PathOffer Meeting::our_offer() const {
    return {options_.instance, std::max(port_.receive_room(), wire::packet_length_min),
            static_cast<std::uint32_t>(ack_delay_max.ns / 1000),
            static_cast<std::uint16_t>(longest_packet(port_)), port_of(port_.nic_address())};
}

void Meeting::take(const Incoming& in, const wire::PacketPrefix& prefix, Time now) {
    const std::uint64_t connection = prefix.connection;
    switch (prefix.kind) {
        case wire::PacketKind::query:
            return on_query(in, connection, now);
        case wire::PacketKind::answer:
            return on_answer(in, connection, now);
        case wire::PacketKind::hello:
            return on_hello(in, connection, now);
        case wire::PacketKind::retry:
            return on_retry(in, connection, now);
        case wire::PacketKind::welcome:
            return on_welcome(in, connection, now);
        case wire::PacketKind::refuse:
            return on_refuse(in, connection, now);
        case wire::PacketKind::unsupported:
            return on_unsupported(in, connection);
        case wire::PacketKind::close:
            return on_close(in, connection, now);
        case wire::PacketKind::rails:
            return on_rails(in, connection, now);
        case wire::PacketKind::data:
            return;
    }
}

void Meeting::answer_stranger(const Incoming& in, std::uint64_t connection, wire::PacketKind kind,
                              Time now) {
    if (now - strangers_since_ >= seconds(1)) {
        strangers_since_ = now;
        strangers_answered_ = 0;
    }
    if (strangers_answered_ == stranger_answers_max) return;
    ++strangers_answered_;
    std::byte packet[wire::connecting_length_max];
    const wire::ConnectingBytes bytes(packet);
    const std::uint32_t length =
        kind == wire::PacketKind::unsupported
            ? wire::emit_unsupported(connection, bytes)
            : wire::emit_close(connection, wire::CloseReason::unknown_path, bytes);
    if (length <= in.length) outbox_.connect(in.from, {packet, length}, in.to_host_port);
}

// Where is the listener? --------------------------------------------------------------------------

void Meeting::resolve(const NetAddress& remote, std::uint64_t cookie, Time now) {
    if (remote.host.length != port_.nic_address().length)
        return events_.push_back({PathEventKind::unresolved, 0, Status::not_reachable, cookie});
    ask_where(searches_.add(remote, cookie, paths_.new_identifier(), now, options_.silence), now);
}

/// The search may be over when this returns.
void Meeting::ask_where(Search& search, Time now) {
    searches_.asked(search, now);
    if (meet_at_home(search, now)) return;
    std::byte packet[wire::connecting_length_max];
    const std::uint32_t length = wire::emit_query(search.question, {search.remote.discriminator},
                                                  wire::ConnectingBytes(packet));
    outbox_.connect(search.remote.host, {packet, length});
}

/// Who listens at our own address is found without the one that answers for it, who may stand still
/// or just have ended.
bool Meeting::meet_at_home(Search& search, Time now) {
    std::uint16_t data_port = 0;
    std::uint64_t instance = 0;
    if (search.remote.host != port_.nic_address() ||
        !port_.find_listener(search.remote.discriminator, data_port, instance))
        return false;
    meet(search, with_port(search.remote.host, data_port), instance, now);
    return true;
}

/// To look in the directory costs far more than a query does, and anybody may send one. Our own
/// host's processes ask whether we are still there, and take our place if they hear nothing.
bool Meeting::may_look_up(const HostAddress& asker, Time now) {
    const bool known =
        paths_.shares().paths_of(asker) != 0 || same_host(asker, port_.data_address());
    Allowance& allowance = known ? peers_queries_ : strangers_queries_;
    return allowance.take(hash_of(asker), now);
}

/// The same of all addresses that are one peer, and nobody else can tell it.
std::uint64_t Meeting::hash_of(const HostAddress& asker) const {
    const PeerKey key = peer_key(asker);
    return siphash(options_.cookie_key, std::as_bytes(std::span(key)));
}

void Meeting::on_query(const Incoming& in, std::uint64_t connection, Time now) {
    wire::Query query;
    if (wire::parse_query(bytes_of(in), query) != wire::PacketError::none) {
        ++totals_.contents;
        return;
    }
    if (!in.to_host_port) return;  // another process's to answer
    if (!may_look_up(in.from, now)) {
        ++totals_.queries_dropped;
        return;  // it asks again
    }
    wire::Answer answer{wire::AnswerCode::no_match, 0, 0};
    if (port_.find_listener(query.discriminator, answer.port, answer.instance))
        answer.code = wire::AnswerCode::found;
    std::byte packet[wire::connecting_length_max];
    const std::uint32_t length =
        wire::emit_answer(connection, answer, wire::ConnectingBytes(packet));
    outbox_.connect(in.from, {packet, length}, true);
}

void Meeting::on_answer(const Incoming& in, std::uint64_t connection, Time now) {
    wire::Answer answer;
    if (wire::parse_answer(bytes_of(in), answer) != wire::PacketError::none) {
        ++totals_.contents;
        return;
    }
    Search* const found = searches_.find(connection);
    if (found == nullptr || !found->is_asking()) return;
    if (found->remote.host != in.from) {
        ++totals_.wrong_address;
        return;
    }
    searches_.answered(*found);
    if (answer.code == wire::AnswerCode::no_match) {
        searches_.end(*found, {PathEventKind::unresolved, 0, Status::no_match});
    } else {
        meet(*found, with_port(in.from, answer.port), answer.instance, now);
    }
}

// A path ------------------------------------------------------------------------------------------

/// A path to that instance is there, or is asked for.
void Meeting::meet(Search& search, const HostAddress& data, std::uint64_t instance, Time now) {
    Path* path = paths_.find(instance, data, true);
    const bool is_new = path == nullptr;
    if (!is_new) path = path->first;
    if (is_new) path = paths_.make(instance, data, true);
    if (path == nullptr && make_way(data)) return;  // it is asked again, and finds room then
    if (path == nullptr)
        return searches_.end(search, {PathEventKind::unresolved, 0, Status::error_resource});
    search.path = path->id;
    if (is_new) {
        path->attempt = ++attempts_made_;
        path->give_up = search.give_up;
        say_hello(*path, now);
    } else if (path->stage == Path::Stage::up) {
        searches_.end_all_of(path->id, resolved(*path));
    }
}

/// True: there will be room for it when the down event of the path that gives way was taken.
bool Meeting::make_way(const HostAddress& newcomer) {
    Path* const path = paths_.least_needed(newcomer);
    if (path == nullptr) return false;
    leave(*path, wire::CloseReason::left);
    return true;
}

void Meeting::say_hello(Path& path, Time now) {
    std::byte packet[wire::connecting_length_max];
    const wire::Hello hello{path.instance, path.attempt, path.cookie, our_offer(),
                            path.is_rail_of_another()};
    const std::uint32_t length = wire::emit_hello(path.ours, hello, wire::ConnectingBytes(packet));
    outbox_.connect(path.peer, {packet, length});
    ++path.hellos;
    path.hello_sent = now;
    path.next_try = now + path.interval;
    path.interval =
        std::min(path.interval * 2, path.is_rail_of_another() ? rail_try_longest : try_longest);
    paths_.reschedule(path, now);
}

void Meeting::welcome(const Path& path) {
    std::byte packet[wire::connecting_length_max];
    const std::uint32_t length = wire::emit_welcome(
        path.theirs, {path.ours, path.attempt, our_offer()}, wire::ConnectingBytes(packet));
    outbox_.connect(path.peer, {packet, length});
}

void Meeting::come_up(Path& path, const wire::PathOffer& offer, std::uint64_t theirs, Time now) {
    path.stage = Path::Stage::up;
    path.offer = offer;
    path.theirs = theirs;
    path.last_heard = now;
    paths_.come_up(path);
    const std::uint32_t limit = std::min<std::uint32_t>(longest_packet(port_), offer.datagram_max);
    path.length.begin(
        same_host(path.peer, port_.data_address()) ? limit : std::min(limit, datagram_length_first),
        limit);
    path.length_raised = now;
    path.window.begin(path.datagram_max(), path.round_trip.latest());
    if (path.is_rail_of_another()) {
        recovery_.tell_length(path);
        return paths_.reschedule(path, now);
    }
    expect_rails(path, now);
    PathEvent event = resolved(path);
    if (!searches_.end_all_of(path.id, event)) {  // it came to us
        event.kind = PathEventKind::up;
        events_.push_back(event);
    }
    paths_.reschedule(path, now);
}

void Meeting::on_deadline(Path& path, Time now) {
    if (now >= path.give_up) return give_up(path, Status::timeout);  // it listens, we were told
    if (now >= path.next_try) say_hello(path, now);
}

/// The path that we ask for did not come about.
void Meeting::give_up(Path& path, Status status) {
    searches_.end_all_of(path.id, {PathEventKind::unresolved, 0, status});
    go_down(path);
}

void Meeting::search_again(Path& path, Time now) {
    searches_.ask_again_all_of(path.id, now);
    go_down(path);
}

void Meeting::on_hello(const Incoming& in, std::uint64_t connection, Time now) {
    wire::Hello hello;
    if (wire::parse_hello(bytes_of(in), hello) != wire::PacketError::none || connection == 0 ||
        hello.offer.instance == 0) {
        ++totals_.contents;
        return;
    }
    const bool is_for_us = hello.target == options_.instance;
    if (is_for_us && is_proof(options_.cookie_key, hello.cookie, in.from, connection, now))
        return hello.joins ? on_joining_hello(in, connection, hello, now)
                           : on_good_hello(in, connection, hello, now);
    if (is_for_us && hello.cookie.is_given()) ++totals_.bad_cookie;
    if (!strangers_hellos_.take(hash_of(in.from), now)) {
        ++totals_.hellos_dropped;
        return;  // it is said again
    }
    if (!is_for_us) return refuse(in, connection, wire::PathRefusal::unknown_instance);
    ++totals_.retries;
    std::byte packet[wire::connecting_length_max];
    const std::uint32_t length =
        wire::emit_retry(connection, make_cookie(options_.cookie_key, in.from, connection, now),
                         wire::ConnectingBytes(packet));
    outbox_.connect(in.from, {packet, length});
}

void Meeting::refuse(const Incoming& in, std::uint64_t connection, wire::PathRefusal why) {
    ++totals_.refusals;
    std::byte packet[wire::connecting_length_max];
    const std::uint32_t length = wire::emit_refuse(connection, why, wire::ConnectingBytes(packet));
    outbox_.connect(in.from, {packet, length});
}

void Meeting::on_good_hello(const Incoming& in, std::uint64_t connection, const wire::Hello& hello,
                            Time now) {
    const std::uint64_t instance = hello.offer.instance;
    Path* path = paths_.find(instance, in.from, false);
    if (!mutated(Mutation::skip_attempt_check)) {
        // Though so many have asked since that its attempt is not kept any more.
        if (path != nullptr && path->stage == Path::Stage::up && !path->asked_by_us &&
            path->attempt == hello.attempt && path->theirs == connection)
            return welcome(*path);
        if (hello.attempt <= attempts_.last(instance, in.from)) {
            ++totals_.old_hello;
            return;
        }
    }
    if (path != nullptr && path->stage == Path::Stage::asking) {
        // A path leads there, and the one who asks learns that by our own hello.
        if (path->is_rail_of_another()) return say_hello(*path, now);
        // Both ask: the one with the lower instance does.
        if (options_.instance < instance) return;
    } else if (path != nullptr && mutated(Mutation::skip_attempt_check)) {
        go_down(*path);
        path = nullptr;
    } else if (path != nullptr) {
        // It has lost the path that we have and says so when asked, or this hello is late.
        path->replaced = true;
        outbox_.ping(*path);
        return;
    }
    if (path == nullptr) path = paths_.make(instance, in.from, false);
    if (path == nullptr) {
        // It says hello again.
        if (!ways_made_.take(hash_of(in.from), now) || make_way(in.from)) return;
        return refuse(in, connection, wire::PathRefusal::no_resource);
    }
    attempts_.note(instance, in.from, hello.attempt);
    path->asked_by_us = false;
    path->attempt = hello.attempt;
    // It had the cookie for a round trip, or longer if packets were lost.
    const Duration since = now - Time{static_cast<std::int64_t>(hello.cookie.moment)};
    path->round_trip.suppose(std::clamp(since, Duration{1}, believed_delay_max));
    come_up(*path, hello.offer, connection, now);
    welcome(*path);
}

/// The path that we ask for by that identifier, if the packet comes from where it should.
Path* Meeting::asking_path(const Incoming& in, std::uint64_t connection) const {
    Path* path = paths_.by_ours(connection);
    return path != nullptr && path->stage == Path::Stage::asking && path->peer == in.from ? path
                                                                                          : nullptr;
}

void Meeting::on_retry(const Incoming& in, std::uint64_t connection, Time now) {
    wire::Cookie cookie;
    if (wire::parse_retry(bytes_of(in), cookie) != wire::PacketError::none) {
        ++totals_.contents;
        return;
    }
    Path* path = asking_path(in, connection);
    if (path == nullptr || cookie.proof == path->cookie.proof) return;  // a duplicate
    path->cookie = cookie;
    path->hellos = 0;
    path->interval = try_first;
    say_hello(*path, now);
}

void Meeting::on_welcome(const Incoming& in, std::uint64_t connection, Time now) {
    wire::Welcome welcome;
    if (wire::parse_welcome(bytes_of(in), welcome) != wire::PacketError::none) {
        ++totals_.contents;
        return;
    }
    Path* path = asking_path(in, connection);
    if (path == nullptr || welcome.attempt != path->attempt ||
        welcome.offer.instance != path->instance)
        return;
    const Duration since = now - path->hello_sent;
    if (path->hellos == 1) {
        path->round_trip.add(since, {}, {}, now);
    } else {
        path->round_trip.suppose(std::max(since, try_first));
    }
    come_up(*path, welcome.offer, welcome.connection, now);
}

void Meeting::on_refuse(const Incoming& in, std::uint64_t connection, Time now) {
    wire::PathRefusal why;
    if (wire::parse_refuse(bytes_of(in), why) != wire::PacketError::none) {
        ++totals_.contents;
        return;
    }
    Path* path = asking_path(in, connection);
    if (path == nullptr) return;
    if (path->is_rail_of_another()) return wait_after_refusal(*path, now);
    if (why == wire::PathRefusal::unknown_instance) return search_again(*path, now);
    give_up(*path, why == wire::PathRefusal::not_admitted ? Status::not_reachable
                                                          : Status::error_resource);
}

void Meeting::on_unsupported(const Incoming& in, std::uint64_t connection) {
    wire::Versions versions;
    if (wire::parse_unsupported(bytes_of(in), versions) != wire::PacketError::none) {
        ++totals_.contents;
        return;
    }
    if (Path* path = asking_path(in, connection)) {
        if (path->is_rail_of_another()) return wait_after_refusal(*path, port_.now());
        return give_up(*path, Status::not_reachable);
    }
    Search* const search = searches_.find(connection);
    if (search != nullptr && search->remote.host == in.from)
        searches_.end(*search, {PathEventKind::unresolved, 0, Status::not_reachable});
}

void Meeting::on_close(const Incoming& in, std::uint64_t connection, Time now) {
    wire::CloseReason why;
    if (wire::parse_close(bytes_of(in), why) != wire::PacketError::none) {
        ++totals_.contents;
        return;
    }
    if (why != wire::CloseReason::unknown_path) {
        Path* path = paths_.by_ours(connection);
        if (path != nullptr && path->stage == Path::Stage::up && path->peer == in.from)
            go_down(*path);
        return;
    }
    // It says so with the identifier that it was addressed by.
    if (Path* const path = paths_.by_theirs(connection, in.from))
        return path->replaced ? go_down(*path) : doubt(*path, now);
}

// Rails -------------------------------------------------------------------------------------------

bool Meeting::is_ours(const HostAddress& address) const {
    for (std::uint32_t rail = 0; rail < port_.rails(); ++rail)
        if (same_host(address, port_.rail_address(rail))) return true;
    return false;
}

/// Of one that asks: the path goes on without it, and it asks again some time.
void Meeting::wait_after_refusal(Path& rail, Time now) { rail.next_try = now + rail_refused_wait; }

/// Of a path that came up: who asked for it asks for its rails, if there can be some.
void Meeting::expect_rails(Path& path, Time now) {
    if (!path.asked_by_us || port_.rails() == 1 || is_ours(path.peer)) return;
    path.asks_for_rails = true;
    path.hellos = 0;
    path.interval = try_first;
    path.next_try = now;
    ask_for_rails(path, now);
}

/// An older peer answers nothing.
void Meeting::ask_for_rails(Path& path, Time now) {
    if (!path.asks_for_rails || now < path.next_try) return;
    if (path.hellos++ == rail_questions_max) {
        path.asks_for_rails = false;
        return;
    }
    path.next_try = now + path.interval;
    path.interval = std::min(path.interval * 2, try_longest);
    say_rails(path, true);
}

void Meeting::say_rails(const Path& path, bool asks) {
    wire::Rails rails;
    rails.asks = asks;
    const auto count = static_cast<std::uint8_t>(port_.rails());
    for (; rails.count < count; ++rails.count)
        rails.addresses[rails.count] = port_.rail_address(rails.count);
    std::byte packet[wire::connecting_length_max];
    const std::uint32_t length =
        wire::emit_rails(path.theirs, rails, wire::ConnectingBytes(packet));
    outbox_.connect(path.peer, {packet, length});
}

void Meeting::on_rails(const Incoming& in, std::uint64_t connection, Time now) {
    wire::Rails rails;
    if (wire::parse_rails(bytes_of(in), rails) != wire::PacketError::none) {
        ++totals_.contents;
        return;
    }
    Path* const path = paths_.by_ours(connection);
    if (path == nullptr || path->stage != Path::Stage::up) return;
    if (path->peer != in.from) {
        ++totals_.wrong_address;
        return;
    }
    if (rails.asks) return say_rails(*path, false);
    if (std::exchange(path->asks_for_rails, false)) join(*path, rails, now);
}

/// Says hello in each network that both are in, once. The peer may have named anybody: who is not
/// who was asked for does not answer, and nothing else is sent there.
void Meeting::join(Path& path, const wire::Rails& rails, Time now) {
    std::array<bool, wire::rails_max> used{};
    used[port_.rail_to(path.peer)] = true;
    for (std::uint32_t n = 0; n < rails.count; ++n) {
        const HostAddress& there = rails.addresses[n];
        const std::uint32_t rail = port_.rail_to(there);
        if (used[rail] || there.length != path.peer.length || is_ours(there) ||
            paths_.find(path.instance, there, true) != nullptr)
            continue;
        Path* const made = paths_.make_rail(path, there);
        if (made == nullptr) continue;
        used[rail] = true;
        made->give_up = Time::never();
        say_hello(*made, now);
    }
}

/// Whoever knows both the identifier of a path and the instance that asked for it is its peer, and
/// by the cookie he receives at that address.
void Meeting::on_joining_hello(const Incoming& in, std::uint64_t connection,
                               const wire::Hello& hello, Time now) {
    Path* const first = paths_.by_ours(hello.attempt);
    if (first == nullptr || first->stage != Path::Stage::up || first->is_rail_of_another() ||
        first->asked_by_us ||
        (first->instance != hello.offer.instance && !mutated(Mutation::join_any_instance))) {
        ++totals_.old_hello;
        return;
    }
    Path* rail = paths_.find(hello.offer.instance, in.from, false);
    if (rail != nullptr && rail->stage == Path::Stage::asking && !rail->is_rail_of_another()) {
        // We ask there for a path, and have one.
        searches_.end_all_of(rail->id, resolved(*first));
        go_down(*rail);
        rail = nullptr;
    }
    if (rail != nullptr) {  // its welcome was lost; or a path of its own is there
        if (rail->first == first && rail->theirs == connection) welcome(*rail);
        return;
    }
    rail = paths_.make_rail(*first, in.from);
    if (rail == nullptr) return;
    rail->attempt = hello.attempt;
    const Duration since = now - Time{static_cast<std::int64_t>(hello.cookie.moment)};
    rail->round_trip.suppose(std::clamp(since, Duration{1}, believed_delay_max));
    come_up(*rail, hello.offer, connection, now);
    welcome(*rail);
}

bool Meeting::goes_on_without(Path& rail, Time now) {
    const Duration silence = paths_.patience().silence;
    const bool another = std::ranges::any_of(rail.first->rails, [&](const Path* other) {
        return other != &rail && other->stage == Path::Stage::up && !other->is_mute &&
               now < other->last_heard + silence && now < other->suspected_until;
    });
    if (another) rail.is_mute = true;
    return another && !mutated(Mutation::end_with_one_rail);
}

// Ends --------------------------------------------------------------------------------------------

void Meeting::doubt(Path& path, Time now) {
    if (!path.suspected_until.is_never()) return;
    path.timeouts = 0;
    path.suspected_until = now + path.doubt_timeout();
    outbox_.ping(path);
    paths_.reschedule(path, now);
}

void Meeting::leave(Path& path, wire::CloseReason why) {
    const auto say_so = [&](const Path& rail) {
        if (rail.stage != Path::Stage::up) return;
        std::byte packet[wire::connecting_length_max];
        const std::uint32_t length =
            wire::emit_close(rail.theirs, why, wire::ConnectingBytes(packet));
        outbox_.connect(rail.peer, {packet, length});
    };
    Path& first = *path.first;
    for (const Path* rail : first.rails) say_so(*rail);
    go_down(first);
}

/// The path is over; frames that it brought, and what it had of ours, are handed up before that is
/// told.
void Meeting::go_down(Path& path) {
    Path& first = *path.first;
    VIA_ASSERT(first.stage != Path::Stage::ending);
    const bool was_up = first.stage == Path::Stage::up;
    parts_.end(first);
    for (Path* rail : first.rails) end(*rail);
    Shares& shares = paths_.shares();
    shares.narrow(*first.share, first.order.bytes_charged());
    first.order.clear([&](const FrameOrder::Held& frame) { shares.let_go(frame); });
    if (!was_up) return paths_.free(first);
    events_.push_back({PathEventKind::down, first.id});
}

/// One of its rails, or all of it.
void Meeting::end(Path& path) {
    path.stage = Path::Stage::ending;
    recovery_.forget(path);
    paths_.end(path);
    Packing::forget(path);
    outbox_.drop(path);
}

}  // namespace via::device::datagram
