// How VIs meet and part (VIPL 3, 4.18 to 4.21). Frames of connecting go out before VIs' frames.
#include <algorithm>
#include <cstring>
#include <utility>

#include "base/assert.hpp"
#include "engine/connect_message.hpp"
#include "engine/engine.hpp"

namespace via::engine {

Discriminator discriminator_of(const std::uint8_t* bytes, std::uint16_t length) {
    Discriminator discriminator;
    discriminator.length = length;
    std::memcpy(discriminator.bytes.data(), bytes, length);
    return discriminator;
}

RemoteAttributes attributes_of(const wire::ConnectMessage& message) {
    RemoteAttributes attributes;
    attributes.reliability = static_cast<Reliability>(message.reliability);
    attributes.transfer_length_max = message.transfer_length_max;
    attributes.qos = message.qos;
    attributes.rdma_write = message.rdma_write_enabled != 0;
    attributes.rdma_read = message.rdma_read_enabled != 0;
    return attributes;
}

/// Only what describe() could have made. The private data is what follows.
bool read_message(const std::byte* payload, std::size_t length, wire::ConnectMessage& message) {
    if (length < sizeof message) return false;
    std::memcpy(&message, payload, sizeof message);
    const std::uint16_t level = message.reliability;
    return (level == 1 || level == 2 || level == 4) && message.rdma_write_enabled <= 1 &&
           message.rdma_read_enabled <= 1 && message.local_length <= 64 &&
           message.remote_length <= 64 && (message.features & ~wire::connect_feature::all) == 0 &&
           message.private_length <= wire::private_length_max &&
           length == sizeof message + message.private_length;
}

void read_data(const std::byte* from, std::size_t length, PrivateData& data) {
    data.length = static_cast<std::uint32_t>(length);
    std::copy_n(from, length, data.bytes.begin());
}

void keep_data(const std::byte* from, std::size_t length, std::unique_ptr<PrivateData>& data) {
    data.reset();
    if (length == 0) return;
    data = std::make_unique<PrivateData>();
    read_data(from, length, *data);
}

wire::ConnectMessage Engine::describe(const Vi& vi) const {
    wire::ConnectMessage message{};
    message.vi = vi.number();
    message.transfer_length_max = vi.attributes.transfer_length_max;
    message.reliability = static_cast<std::uint16_t>(vi.attributes.reliability);
    message.rdma_write_enabled = vi.attributes.rdma_write;
    message.rdma_read_enabled = vi.attributes.rdma_read;
    message.qos = vi.attributes.qos;
    if (vi.wants_credits && vi.reliable()) message.features |= wire::connect_feature::credits;
    return message;
}

std::span<const std::byte> own_data_of(const Vi& vi) {
    if (!vi.own_data) return {};
    return {vi.own_data->bytes.data(), vi.own_data->length};
}

void Engine::Notice::set(wire::ConnectMessage message, std::span<const std::byte> data) {
    message.private_length = static_cast<std::uint32_t>(data.size());
    payload.resize(sizeof message + data.size());
    std::memcpy(payload.data(), &message, sizeof message);
    if (!data.empty()) std::memcpy(payload.data() + sizeof message, data.data(), data.size());
}

/// A request of that VI, to its remote address.
Engine::Notice Engine::request_of(const Vi& vi) {
    const Discriminator& local = vi.local_address.discriminator;
    const Discriminator& remote = vi.remote_address.discriminator;
    wire::ConnectMessage message = describe(vi);
    message.local_length = local.length;
    message.remote_length = remote.length;
    std::memcpy(message.local_discriminator, local.bytes.data(), local.length);
    std::memcpy(message.remote_discriminator, remote.bytes.data(), remote.length);
    Notice notice;
    notice.header.kind = vi.peer ? wire::FrameKind::peer_request : wire::FrameKind::request;
    notice.header.immediate_or_code = wire::understood::all;
    notice.payload = payloads_.take();
    notice.set(message, own_data_of(vi));
    return notice;
}

Engine::Notice Engine::acceptance_of(const Vi& vi, std::uint32_t remote_number,
                                     std::span<const std::byte> data) {
    Notice notice;
    notice.header.kind = wire::FrameKind::accept;
    notice.header.vi = remote_number;
    notice.header.immediate_or_code = wire::understood::all;
    notice.payload = payloads_.take();
    notice.set(describe(vi), data);
    return notice;
}

void Engine::refuse(PathId path, std::uint32_t number, wire::RefuseCode code,
                    std::span<const std::byte> data) {
    Notice notice;
    notice.header.kind = wire::FrameKind::refuse;
    notice.header.vi = number;
    notice.header.immediate_or_code = static_cast<std::uint32_t>(code);
    if (!data.empty()) notice.payload = payloads_.take();
    notice.payload.assign(data.begin(), data.end());
    counters_.add(Counter::requests_refused);
    notify_peer(path, std::move(notice));
}

void Engine::notify_peer(PathId id, Notice&& notice) {
    Path& path = path_at(id);
    if (!path.up) return;
    path.notices.add() = std::move(notice);
    wants_to_send(path);
}

void Engine::notify_peer(PathId path, wire::FrameKind kind, std::uint32_t vi, std::uint32_t message,
                         std::uint32_t code) {
    Notice notice;
    notice.header.kind = kind;
    notice.header.vi = vi;
    notice.header.message = message;
    notice.header.immediate_or_code = code;
    notify_peer(path, std::move(notice));
}

// Answering ---------------------------------------------------------------------------------------

Connection* Engine::connection_of(std::uint64_t connection) {
    const auto index = static_cast<std::uint32_t>(connection & ((1U << connection_index_bits) - 1));
    if (index >= connections_.size()) return nullptr;
    Connection& slot = connections_[index];
    return slot.stage != Connection::Stage::free &&
                   slot.generation == connection >> connection_index_bits
               ? &slot
               : nullptr;
}

bool Engine::is_connection(std::uint64_t connection) const {
    return const_cast<Engine*>(this)->connection_of(connection) != nullptr;
}

Status Engine::accept(std::uint64_t connection, Vi& vi, std::span<const std::byte> data) {
    Connection* offer = connection_of(connection);
    if (offer == nullptr) return Status::invalid_parameter;
    if (offer->stage != Connection::Stage::offered) {
        offer->stage = Connection::Stage::told;
        uncount(*offer);  // whoever needs its place has it
        return Status::timeout;
    }
    if (vi.state_now() != ViState::idle) return Status::invalid_state;
    const RemoteAttributes theirs = attributes_of(offer->message);
    if (theirs.reliability != vi.attributes.reliability) return Status::invalid_reliability_level;
    if (theirs.transfer_length_max != vi.attributes.transfer_length_max) return Status::invalid_mtu;
    if (theirs.qos != vi.attributes.qos) return Status::invalid_qos;
    vi.begin_epoch();
    vi.peer = false;
    vi.remote_data.reset();
    notify_peer(offer->path, acceptance_of(vi, offer->message.vi, data));
    enter_connected(vi, offer->path, offer->message, offer->understood);
    free_connection(*offer);
    return Status::success;
}

Status Engine::reject(std::uint64_t connection, std::span<const std::byte> data) {
    Connection* offer = connection_of(connection);
    if (offer == nullptr) return Status::invalid_parameter;
    if (offer->stage == Connection::Stage::offered)
        refuse(offer->path, offer->message.vi, wire::RefuseCode::rejected, data);
    free_connection(*offer);
    return Status::success;
}

// Requesting --------------------------------------------------------------------------------------

void Engine::start_pending(Vi& vi, const NetAddress& local, const NetAddress& remote, Time deadline,
                           std::span<const std::byte> data) {
    vi.local_address = local;
    vi.remote_address = remote;
    keep_data(data.data(), data.size(), vi.own_data);
    vi.remote_data.reset();
    vi.connect_status = Status::not_done;
    vi.begin_epoch();
    vi.path = no_path;
    vi.insists = false;
    vi.looks_left = 0;
    vi.search_pause = {};
    deadlines_.set(vi, deadline);
    searches_.set(vi, Time::never());
    find_deadline();
    // First: who waits for the outcome of a former request must not take this one for it.
    vi.requests.store(vi.requests.load(std::memory_order_relaxed) + 1);
    vi.state.store(ViState::connect_pending);
}

Status Engine::begin_connect(Vi& vi, const NetAddress& local, const NetAddress& remote,
                             Time deadline, std::span<const std::byte> data) {
    if (vi.state_now() != ViState::idle) return Status::invalid_state;
    vi.peer = false;
    start_pending(vi, local, remote, deadline, data);
    return Status::success;
}

void Engine::connect_on(Vi& vi, PathId path) {
    if (vi.state_now() != ViState::connect_pending || vi.path != no_path) return;
    vi.path = path;
    notify_peer(path, request_of(vi));
}

void Engine::pending_ended(Vi& vi, Status status) {
    vi.connect_status = status;
    deadlines_.remove(vi);
    searches_.remove(vi);
    if (vi.listening) {
        forgotten_.push_back(vi.local_address.discriminator);
        rare_ = true;
    }
    vi.listening = false;
    find_deadline();
}

void Engine::set_search(Vi& vi, Time due) {
    searches_.set(vi, due);
    find_deadline();
}

void Engine::connect_failed(Vi& vi, Status status) {
    if (vi.state_now() != ViState::connect_pending) return;
    leave(vi, ViState::idle);
    pending_ended(vi, status);
}

void Engine::expire(Time now, bool answers_may_wait) {
    expired_.clear();
    deadlines_.each_due(now, [&](Vi& vi) {
        if (!answers_may_wait || vi.path == no_path) expired_.push_back(&vi);
    });
    std::ranges::sort(expired_, {}, &Vi::index);
    for (Vi* vi : expired_) {
        VIA_ASSERT(vi->state_now() == ViState::connect_pending);  // nobody else has a deadline
        if (vi->path != no_path) notify_peer(vi->path, wire::FrameKind::withdraw, 0, vi->number());
        connect_failed(*vi, vi->peer && vi->unreachable ? Status::not_reachable : Status::timeout);
    }
}

FrameVerdict Engine::on_accept(Path& path, const wire::Header& header, const std::byte* payload,
                               std::size_t length) {
    wire::ConnectMessage message;
    if (header.flags != 0 || !read_message(payload, length, message))
        return hostile("an acceptance that makes no sense");
    Vi* vi = vi_at(header.vi & 0xFFFF);
    if (vi == nullptr || vi->number() != header.vi || vi->path != path.id ||
        vi->state_now() != ViState::connect_pending) {
        // We gave up meanwhile: the other side must not believe in a connection.
        notify_peer(path.id, wire::FrameKind::disconnect, message.vi);
        return FrameVerdict::stale;
    }
    if (static_cast<Reliability>(message.reliability) != vi->attributes.reliability ||
        message.transfer_length_max != vi->attributes.transfer_length_max)
        return hostile("an acceptance with other attributes than asked for");
    keep_data(payload + sizeof message, message.private_length, vi->remote_data);
    pending_ended(*vi, Status::success);
    enter_connected(*vi, path.id, message, header.immediate_or_code);
    return FrameVerdict::taken;
}

FrameVerdict Engine::on_refuse(Path& path, const wire::Header& header, const std::byte* payload,
                               std::size_t length) {
    if (length > wire::private_length_max) return hostile("a refusal that makes no sense");
    Vi* vi = vi_at(header.vi & 0xFFFF);
    if (vi == nullptr || vi->number() != header.vi || vi->path != path.id ||
        vi->state_now() != ViState::connect_pending)
        return FrameVerdict::stale;
    switch (static_cast<wire::RefuseCode>(header.immediate_or_code)) {
        case wire::RefuseCode::no_match:
            if (vi->insists)
                search_later(*vi);
            else
                not_found(*vi, Status::no_match);
            break;
        case wire::RefuseCode::reliability:
            connect_failed(*vi, Status::invalid_reliability_level);
            break;
        case wire::RefuseCode::transfer_length:
            connect_failed(*vi, Status::invalid_mtu);
            break;
        case wire::RefuseCode::qos:
            connect_failed(*vi, Status::invalid_qos);
            break;
        default:
            keep_data(payload, length, vi->remote_data);
            connect_failed(*vi, Status::reject);
    }
    return FrameVerdict::taken;
}

void Engine::enter_connected(Vi& vi, PathId path, const wire::ConnectMessage& message,
                             std::uint32_t understood) {
    VIA_ASSERT(path_at(path).up && vi.epoch != 0 &&
               (vi.state_now() == ViState::idle || vi.state_now() == ViState::connect_pending));
    VIA_ASSERT(vi.send.work.is_in_order() && vi.receive.work.is_in_order());
    vi.path = path;
    vi.remote_number = message.vi;
    vi.remote = attributes_of(message);
    vi.next_message = vi.placed_message = vi.expected_message = 0;
    vi.given_up = false;
    vi.peer_knows_atomics.store((understood & wire::understood::atomics) != 0,
                                std::memory_order_relaxed);  // before posters see the state
    vi.state.store(ViState::connected);
    vi.short_in = short_ways_ && vi.reliable() ? short_way_of(path, vi.number()) : no_short_way;
    vi.short_out = short_ways_;
    vi.quick_out = short_ways_ && !path_at(path).retransmits &&
                   vi.attributes.reliability != Reliability::reception;
    begin_credits(vi, message);
    counters_.add(Counter::connections_made);
    progressed();
}

// Parting -----------------------------------------------------------------------------------------

/// Forgets the connection; the queues are flushed by whoever calls. A post that this flush does
/// not see comes after wait_for_posters() and sees the state.
void Engine::leave(Vi& vi, ViState state) {
    List<Vi, ActiveLink>::remove_if_linked(vi);
    vi.path = no_path;
    vi.cut = 0;
    vi.ack_due = vi.placing = vi.discarding = vi.reply_next = false;
    vi.reads_in_flight = vi.reads_count = vi.reads_first = vi.read_placed = vi.placed = 0;
    vi.credits_agreed.store(false, std::memory_order_relaxed);
    vi.credit_due = false;
    vi.answer_refused = false;
    vi.begun = vi.pulling = false;
    vi.pull_proof.store(0, std::memory_order_release);  // before the program has its bytes again
    List<Vi, FetchLink>::remove_if_linked(vi);
    attach_ended(vi, Status::invalid_state);
    vi.imports.clear();
    vi.write_by_frames.reset();
    if (std::exchange(vi.has_grants, false)) {
        parted_.push_back(vi.number());
        rare_ = true;
    }
    vi.short_in = no_short_way;
    vi.short_out = vi.quick_out = false;
    vi.state.store(state, std::memory_order_release);
    bool fenced = false;
    vi.send.work.wait_for_posters(fenced);
    vi.receive.work.wait_for_posters(fenced);
    VIA_ASSERT(vi.send.work.is_in_order() && vi.receive.work.is_in_order());
    progressed();
}

void Engine::disconnect(Vi& vi) {
    const ViState state = vi.state_now();
    const PathId path = vi.path;
    if (state == ViState::connected)
        notify_peer(path, wire::FrameKind::disconnect, vi.remote_number, vi.expected_message);
    if (state == ViState::connect_pending && path != no_path)
        notify_peer(path, wire::FrameKind::withdraw, 0, vi.number());
    leave(vi, ViState::idle);
    if (state == ViState::connect_pending) pending_ended(vi, Status::invalid_state);
    vi.peer = false;
    flush(vi);
}

void Engine::disconnect_all() {
    for (std::uint32_t index = 0; index < vi_slots_made_; ++index)
        if (vi_slot(index).state_now() != ViState::idle) disconnect(vi_slot(index));
    while (Backlog* backlog = backlogs_.front()) unlisten(*backlog);
}

FrameVerdict Engine::on_disconnect(Path& path, const wire::Header& header) {
    Vi* vi = connected_vi(path.id, header.vi);
    if (vi == nullptr) return FrameVerdict::stale;
    // Who did not get the refused answer says so; else it had arrived, and nothing was refused.
    if (vi->answer_refused &&
        header.immediate_or_code == static_cast<std::uint32_t>(wire::NakCode::protection))
        report(*vi, ErrorCode::rdma_read_protection);
    // What the peer had is done, though its acknowledgement was lost or overtaken (VIPL 4.18).
    if (vi->reliable() && static_cast<std::int32_t>(header.message - vi->next_message) <= 0) {
        mark_acknowledged(*vi, header.message);
        drain_sends(*vi);
    }
    lose(*vi);
    return FrameVerdict::taken;
}

// Paths -------------------------------------------------------------------------------------------

void Engine::on_path_up(PathId id, std::uint32_t payload_max, const HostAddress& peer,
                        bool retransmits) {
    while (paths_.size() <= id) paths_.push_back(std::make_unique<Path>());
    Path& path = path_at(id);
    VIA_ASSERT(!path.up && path.notices.empty() && path.active.front() == nullptr);
    path.up = true;
    path.id = id;
    path.payload_max = payload_max;
    path.peer = peer;
    path.retransmits = retransmits;
    path.share = peers_.try_emplace(peer_key(peer)).first;
    ++path.share->second.paths;
    path.under_way = {};
    path.lost.clear();
    if (retransmits) path.lost.make_room();
    counters_.add(Counter::paths_open);
}

void Engine::on_path_changed(PathId id, std::uint32_t payload_max) {
    VIA_ASSERT(id < paths_.size() && path_at(id).up && payload_max != 0);
    path_at(id).payload_max = payload_max;
}

void Engine::on_path_down(PathId id) {
    if (id >= paths_.size() || !path_at(id).up) return;
    Path& path = path_at(id);
    path.up = false;
    for (std::uint32_t index = 0; index < vi_slots_made_; ++index) {
        Vi& vi = vi_slot(index);
        if (vi.path != id) continue;
        if (vi.state_now() == ViState::connected) lose(vi);
        if (vi.state_now() == ViState::connect_pending) not_found(vi, Status::not_reachable);
    }
    for (Connection& connection : connections_)
        if (connection.stage == Connection::Stage::offered && connection.path == id)
            withdraw(connection);
    VIA_ASSERT(path.active.front() == nullptr);  // each of its VIs has left it
    for (; !path.notices.empty(); path.notices.pop_front())
        payloads_.give_back(std::move(path.notices.front().payload));
    path.notices.give_memory_back(0);
    path.share->second.answers -= path.answers;
    --path.share->second.paths;
    forget_if_nothing(path.share);
    answers_ -= std::exchange(path.answers, 0);
    for (; !path.under_way.empty(); path.under_way.pop())
        payloads_.give_back(std::move(path.under_way.front().copy));
    path.under_way = {};
    path.lost.clear();
    path.lost.give_memory_back(0);
    List<Path>::remove_if_linked(path);
    counters_.subtract(Counter::paths_open);
    progressed();
}

}  // namespace via::engine
