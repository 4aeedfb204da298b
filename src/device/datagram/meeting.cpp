// How two instances find each other and make a path: queries, cookies, hellos.
#include <algorithm>
#include <cstring>
#include <iterator>

#include "base/assert.hpp"
#include "device/datagram/cookie.hpp"
#include "device/datagram/datagram_device.hpp"
#include "device/datagram/mutation.hpp"
#include "device/datagram/path.hpp"
#include "device/datagram/search.hpp"
#include "device/datagram/siphash.hpp"

namespace via::device::datagram {

namespace {

HostAddress with_port(HostAddress address, std::uint16_t port) {
    address.bytes[address.length - 2U] = static_cast<std::uint8_t>(port >> 8);
    address.bytes[address.length - 1U] = static_cast<std::uint8_t>(port);
    return address;
}

std::uint16_t port_of(const HostAddress& address) {
    return static_cast<std::uint16_t>(address.bytes[address.length - 2U] << 8 |
                                      address.bytes[address.length - 1U]);
}

bool same_host(const HostAddress& a, const HostAddress& b) {
    return with_port(a, 0) == with_port(b, 0);
}

std::span<const std::byte> bytes_of(const Incoming& in) { return {in.bytes, in.length}; }

}  // namespace

// Proofs and names --------------------------------------------------------------------------------

/// Nobody who sees one can tell the next.
std::uint64_t DatagramDevice::new_identifier() {
    for (;;) {
        const std::uint64_t number = ++identifiers_made_;
        const std::uint64_t identifier =
            siphash(options_.identifier_key, std::as_bytes(std::span(&number, 1)));
        if (identifier != 0 && identifiers_.find(identifier) == IdentifierTable::none)
            return identifier;
    }
}

wire::PathOffer DatagramDevice::our_offer() const {
    const std::uint32_t longest =
        std::clamp(port_->datagram_max(), wire::packet_length_min, wire::packet_length_max);
    return {options_.instance, std::max(port_->receive_room(), wire::packet_length_min),
            static_cast<std::uint32_t>(ack_delay_max.ns / 1000),
            static_cast<std::uint16_t>(longest), port_of(port_->nic_address())};
}

std::uint64_t DatagramDevice::last_attempt(std::uint64_t instance, const HostAddress& peer) const {
    const auto found = attempt_of_.find({peer, instance});
    return found == attempt_of_.end() ? 0 : attempts_[found->second].attempt;
}

void DatagramDevice::note_attempt(std::uint64_t instance, const HostAddress& peer,
                                  std::uint64_t number) {
    const auto found = attempt_of_.find({peer, instance});
    if (found != attempt_of_.end()) {
        attempts_[found->second].attempt = number;
        return;
    }
    std::size_t at = attempts_.size();
    if (at < attempts_kept) {
        attempts_.push_back({instance, peer, number});
    } else {
        at = oldest_attempt_;
        oldest_attempt_ = (oldest_attempt_ + 1) % attempts_kept;
        attempt_of_.erase({attempts_[at].peer, attempts_[at].instance});
        attempts_[at] = {instance, peer, number};
    }
    attempt_of_.emplace(Whom{peer, instance}, at);
}

void DatagramDevice::answer_stranger(const Incoming& in, std::uint64_t connection,
                                     wire::PacketKind kind, Time now) {
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
    if (length <= in.length) stage_connecting(in.from, {packet, length}, in.to_host_port);
}

// Where is the listener? --------------------------------------------------------------------------

void DatagramDevice::resolve(const NetAddress& remote, std::uint64_t cookie) {
    if (remote.host.length != port_->nic_address().length)
        return push_event({PathEventKind::unresolved, 0, Status::not_reachable, cookie});
    const Time now = port_->now();
    Search search;
    search.cookie = cookie;
    search.remote = remote;
    search.question = new_identifier();
    search.give_up = now + options_.silence;
    if (const auto delay = refused_.delay_of(remote.host, now)) expect_silence(search, *delay, now);
    searches_.push_back(search);
    questions_.emplace(search.question, std::prev(searches_.end()));
    ask_where(searches_.back(), now);
    flush(now);
}

/// The host that is asked had nobody at its port just now.
void DatagramDevice::expect_silence(Search& search, Duration delay, Time now) {
    const Duration silence = std::max(refused_least, delay * refused_delays);
    search.refused_until = earlier(search.refused_until, now + silence);
    search_deadline_ = earlier(search_deadline_, search.refused_until);
}

/// The search may be over when this returns.
void DatagramDevice::ask_where(Search& search, Time now) {
    search.refused = false;
    search.asked = now;
    search.next_try = now + search.interval;
    search.interval = std::min(search.interval * 2, try_longest);
    search_deadline_ = earlier(search_deadline_, earlier(search.next_try, search.give_up));
    if (meet_at_home(search, now)) return;
    std::byte packet[wire::connecting_length_max];
    const std::uint32_t length = wire::emit_query(search.question, {search.remote.discriminator},
                                                  wire::ConnectingBytes(packet));
    stage_connecting(search.remote.host, {packet, length});
}

/// Who listens at our own address is found without the one that answers for it, who may stand still
/// or just have ended.
bool DatagramDevice::meet_at_home(Search& search, Time now) {
    std::uint16_t data_port = 0;
    std::uint64_t instance = 0;
    if (search.remote.host != port_->nic_address() ||
        !port_->find_listener(search.remote.discriminator, data_port, instance))
        return false;
    meet(search, with_port(search.remote.host, data_port), instance, now);
    return true;
}

DatagramDevice::Search* DatagramDevice::search_of(std::uint64_t question) {
    const auto found = questions_.find(question);
    return found == questions_.end() ? nullptr : &*found->second;
}

void DatagramDevice::end_search(std::uint64_t question, PathEvent event) {
    const auto found = questions_.find(question);
    event.cookie = found->second->cookie;
    push_event(event);
    searches_.erase(found->second);
    questions_.erase(found);
}

void DatagramDevice::run_searches(Time now) {
    end_searches(
        [&](const Search& search) {
            return search.path == Search::no_path && now >= search.refused_until;
        },
        {PathEventKind::unresolved, 0, Status::no_match});
    end_searches(
        [&](const Search& search) {
            return search.path == Search::no_path && now >= search.give_up;
        },
        {PathEventKind::unresolved, 0, Status::not_done});
    for (auto next = searches_.begin(); next != searches_.end();) {
        Search& search = *next++;
        if (search.path == Search::no_path && now >= search.next_try) ask_where(search, now);
    }
    search_deadline_ = Time::never();
    for (const Search& search : searches_)
        if (search.path == Search::no_path)
            search_deadline_ = earlier(earlier(search_deadline_, search.refused_until),
                                       earlier(search.next_try, search.give_up));
}

/// To look in the directory costs far more than a query does, and anybody may send one. Our own
/// host's processes ask whether we are still there, and take our place if they hear nothing.
bool DatagramDevice::may_look_up(const HostAddress& asker, Time now) {
    const bool known = shares_.paths_of(asker) != 0 || same_host(asker, port_->data_address());
    Allowance& allowance = known ? peers_queries_ : strangers_queries_;
    return allowance.take(hash_of(asker), now);
}

/// The same of all addresses that are one peer, and nobody else can tell it.
std::uint64_t DatagramDevice::hash_of(const HostAddress& asker) const {
    const PeerKey key = peer_key(asker);
    return siphash(options_.cookie_key, std::as_bytes(std::span(key)));
}

void DatagramDevice::on_query(const Incoming& in, std::uint64_t connection, Time now) {
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
    if (port_->find_listener(query.discriminator, answer.port, answer.instance))
        answer.code = wire::AnswerCode::found;
    std::byte packet[wire::connecting_length_max];
    const std::uint32_t length =
        wire::emit_answer(connection, answer, wire::ConnectingBytes(packet));
    stage_connecting(in.from, {packet, length}, true);
}

void DatagramDevice::on_answer(const Incoming& in, std::uint64_t connection, Time now) {
    wire::Answer answer;
    if (wire::parse_answer(bytes_of(in), answer) != wire::PacketError::none) {
        ++totals_.contents;
        return;
    }
    Search* const found = search_of(connection);
    if (found == nullptr || found->path != Search::no_path) return;
    if (found->remote.host != in.from) {
        ++totals_.wrong_address;
        return;
    }
    refused_.forget(in.from);
    found->refused_until = Time::never();
    if (answer.code == wire::AnswerCode::no_match) {
        end_search(connection, {PathEventKind::unresolved, 0, Status::no_match});
    } else {
        meet(*found, with_port(in.from, answer.port), answer.instance, now);
    }
}

// A path ------------------------------------------------------------------------------------------

/// A path to that instance is there, or is asked for.
void DatagramDevice::meet(Search& search, const HostAddress& data, std::uint64_t instance,
                          Time now) {
    Path* path = find_path(instance, data, true);
    const bool is_new = path == nullptr;
    if (is_new) path = make_path(instance, data, true);
    if (path == nullptr && make_way(data)) return;  // it is asked again, and finds room then
    if (path == nullptr)
        return end_search(search.question, {PathEventKind::unresolved, 0, Status::error_resource});
    search.path = path->id;
    if (is_new) {
        path->attempt = ++attempts_made_;
        path->give_up = search.give_up;
        say_hello(*path, now);
    } else if (path->stage == Path::Stage::up) {
        tell_searches(
            *path,
            {PathEventKind::resolved, path->id, Status::success, 0, {}, path->payload_max()});
    }
}

/// What all were waiting for who asked for the path.
void DatagramDevice::tell_searches(const Path& path, const PathEvent& event) {
    end_searches([&](const Search& search) { return search.path == path.id; }, event);
}

void DatagramDevice::say_hello(Path& path, Time now) {
    std::byte packet[wire::connecting_length_max];
    const wire::Hello hello{path.instance, path.attempt, path.cookie, our_offer()};
    const std::uint32_t length = wire::emit_hello(path.ours, hello, wire::ConnectingBytes(packet));
    stage_connecting(path.peer, {packet, length});
    ++path.hellos;
    path.hello_sent = now;
    path.next_try = now + path.interval;
    path.interval = std::min(path.interval * 2, try_longest);
    reschedule(path, now);
}

void DatagramDevice::welcome(const Path& path) {
    std::byte packet[wire::connecting_length_max];
    const std::uint32_t length = wire::emit_welcome(
        path.theirs, {path.ours, path.attempt, our_offer()}, wire::ConnectingBytes(packet));
    stage_connecting(path.peer, {packet, length});
}

void DatagramDevice::come_up(Path& path, const wire::PathOffer& offer, std::uint64_t theirs,
                             Time now) {
    path.made = ++totals_.paths_made;
    path.stage = Path::Stage::up;
    path.offer = offer;
    path.theirs = theirs;
    path.last_heard = now;
    by_theirs_.insert_or_assign(Whom{path.peer, theirs}, path.id);
    const std::uint32_t limit =
        std::min<std::uint32_t>(our_offer().datagram_max, offer.datagram_max);
    path.length.begin(same_host(path.peer, port_->data_address())
                          ? limit
                          : std::min(limit, datagram_length_first),
                      limit);
    path.length_raised = now;
    path.window.begin(path.datagram_max(), path.round_trip.latest());
    const std::size_t events = events_.size();
    PathEvent event{PathEventKind::resolved, path.id, Status::success, 0, {}, path.payload_max()};
    tell_searches(path, event);
    event.kind = PathEventKind::up;
    if (events == events_.size()) push_event(event);  // it came to us
    reschedule(path, now);
}

/// The path that we ask for did not come about.
void DatagramDevice::give_up(Path& path, Status status) {
    tell_searches(path, {PathEventKind::unresolved, 0, status});
    go_down(path);
}

/// The listener is not there any more; another one may be.
void DatagramDevice::search_again(Path& path, Time now) {
    for (Search& search : searches_) {
        if (search.path != path.id) continue;
        search.path = Search::no_path;
        search.next_try = now + search.interval;
        search_deadline_ = earlier(search_deadline_, earlier(search.next_try, search.give_up));
    }
    go_down(path);
}

void DatagramDevice::on_hello(const Incoming& in, std::uint64_t connection, Time now) {
    wire::Hello hello;
    if (wire::parse_hello(bytes_of(in), hello) != wire::PacketError::none || connection == 0 ||
        hello.offer.instance == 0) {
        ++totals_.contents;
        return;
    }
    std::byte packet[wire::connecting_length_max];
    const wire::ConnectingBytes bytes(packet);
    if (hello.target != options_.instance) {
        ++totals_.refusals;
        const std::uint32_t length =
            wire::emit_refuse(connection, wire::PathRefusal::unknown_instance, bytes);
        return stage_connecting(in.from, {packet, length});
    }
    if (is_proof(options_.cookie_key, hello.cookie, in.from, connection, now))
        return on_good_hello(in, connection, hello, now);
    if (hello.cookie.moment != 0 || hello.cookie.proof != 0) ++totals_.bad_cookie;
    ++totals_.retries;
    const std::uint32_t length = wire::emit_retry(
        connection, make_cookie(options_.cookie_key, in.from, connection, now), bytes);
    stage_connecting(in.from, {packet, length});
}

void DatagramDevice::on_good_hello(const Incoming& in, std::uint64_t connection,
                                   const wire::Hello& hello, Time now) {
    const std::uint64_t instance = hello.offer.instance;
    Path* path = find_path(instance, in.from, false);
    if (!mutated(Mutation::skip_attempt_check)) {
        // Though so many have asked since that its attempt is not kept any more.
        if (path != nullptr && path->stage == Path::Stage::up && !path->asked_by_us &&
            path->attempt == hello.attempt && path->theirs == connection)
            return welcome(*path);
        if (hello.attempt <= last_attempt(instance, in.from)) {
            ++totals_.old_hello;
            return;
        }
    }
    if (path != nullptr && path->stage == Path::Stage::asking) {
        // Both ask: the one with the lower instance does.
        if (options_.instance < instance) return;
    } else if (path != nullptr && mutated(Mutation::skip_attempt_check)) {
        go_down(*path);
        path = nullptr;
    } else if (path != nullptr) {
        // It has lost the path that we have and says so when asked, or this hello is late.
        path->replaced = true;
        stage_ping(*path, 0, now);
        return;
    }
    if (path == nullptr) path = make_path(instance, in.from, false);
    if (path == nullptr) {
        // It says hello again.
        if (!ways_made_.take(hash_of(in.from), now) || make_way(in.from)) return;
        ++totals_.refusals;
        std::byte packet[wire::connecting_length_max];
        const std::uint32_t length = wire::emit_refuse(connection, wire::PathRefusal::no_resource,
                                                       wire::ConnectingBytes(packet));
        return stage_connecting(in.from, {packet, length});
    }
    note_attempt(instance, in.from, hello.attempt);
    path->asked_by_us = false;
    path->attempt = hello.attempt;
    // It had the cookie for a round trip, or longer if packets were lost.
    const Duration since = now - Time{static_cast<std::int64_t>(hello.cookie.moment)};
    path->round_trip.suppose(std::clamp(since, Duration{1}, believed_delay_max));
    come_up(*path, hello.offer, connection, now);
    welcome(*path);
}

/// The path that we ask for by that identifier, if the packet comes from where it should.
Path* DatagramDevice::asking_path(const Incoming& in, std::uint64_t connection) const {
    Path* path = path_at(identifiers_.find(connection));
    return path != nullptr && path->stage == Path::Stage::asking && path->peer == in.from ? path
                                                                                          : nullptr;
}

void DatagramDevice::on_retry(const Incoming& in, std::uint64_t connection, Time now) {
    wire::Cookie cookie;
    if (wire::parse_retry(bytes_of(in), cookie) != wire::PacketError::none) {
        ++totals_.contents;
        return;
    }
    Path* path = asking_path(in, connection);
    if (path == nullptr || cookie.proof == path->cookie.proof) return;  // doubled
    path->cookie = cookie;
    path->hellos = 0;
    path->interval = try_first;
    say_hello(*path, now);
}

void DatagramDevice::on_welcome(const Incoming& in, std::uint64_t connection, Time now) {
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

void DatagramDevice::on_refuse(const Incoming& in, std::uint64_t connection, Time now) {
    wire::PathRefusal why;
    if (wire::parse_refuse(bytes_of(in), why) != wire::PacketError::none) {
        ++totals_.contents;
        return;
    }
    Path* path = asking_path(in, connection);
    if (path == nullptr) return;
    if (why == wire::PathRefusal::unknown_instance) return search_again(*path, now);
    give_up(*path, why == wire::PathRefusal::not_admitted ? Status::not_reachable
                                                          : Status::error_resource);
}

void DatagramDevice::on_unsupported(const Incoming& in, std::uint64_t connection) {
    wire::Versions versions;
    if (wire::parse_unsupported(bytes_of(in), versions) != wire::PacketError::none) {
        ++totals_.contents;
        return;
    }
    if (Path* path = asking_path(in, connection)) return give_up(*path, Status::not_reachable);
    const Search* const search = search_of(connection);
    if (search != nullptr && search->remote.host == in.from)
        end_search(connection, {PathEventKind::unresolved, 0, Status::not_reachable});
}

void DatagramDevice::on_close(const Incoming& in, std::uint64_t connection, Time now) {
    wire::CloseReason why;
    if (wire::parse_close(bytes_of(in), why) != wire::PacketError::none) {
        ++totals_.contents;
        return;
    }
    if (why != wire::CloseReason::unknown_path) {
        Path* path = path_at(identifiers_.find(connection));
        if (path != nullptr && path->stage == Path::Stage::up && path->peer == in.from)
            go_down(*path);
        return;
    }
    // It says so with the identifier that it was addressed by.
    if (Path* const path = find_by_theirs(connection, in.from))
        return path->replaced ? go_down(*path) : doubt(*path, now);
}

}  // namespace via::device::datagram
