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

/// A request of that VI, to its remote address.
Notice Engine::request_of(const Vi& vi) {
    const Discriminator& local = vi.local_address.discriminator;
    const Discriminator& remote = vi.remote_address.discriminator;
    wire::ConnectMessage message = describe(vi);
    message.local_length = local.length;
    message.remote_length = remote.length;
    std::memcpy(message.local_discriminator, local.bytes.data(), local.length);
    std::memcpy(message.remote_discriminator, remote.bytes.data(), remote.length);
    Notice notice;
    notice.header.kind = vi.peer ? wire::FrameKind::peer_request : wire::FrameKind::request;
    notice.payload = paths_.payloads().take();
    notice.set(message, own_data_of(vi));
    return notice;
}

Notice Engine::acceptance_of(const Vi& vi, std::uint32_t remote_number,
                             std::span<const std::byte> data) {
    Notice notice;
    notice.header.kind = wire::FrameKind::accept;
    notice.header.vi = remote_number;
    notice.payload = paths_.payloads().take();
    notice.set(describe(vi), data);
    return notice;
}

// Answering ---------------------------------------------------------------------------------------

Status Engine::accept(std::uint64_t connection, Vi& vi, std::span<const std::byte> data) {
    Connection* offer = requests_.find(connection);
    if (offer == nullptr) return Status::invalid_parameter;
    if (offer->stage != Connection::Stage::offered) {
        requests_.told(*offer);
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
    paths_.notify(offer->path, acceptance_of(vi, offer->message.vi, data));
    enter_connected(vi, offer->path, offer->message);
    requests_.end(*offer);
    return Status::success;
}

Status Engine::reject(std::uint64_t connection, std::span<const std::byte> data) {
    Connection* offer = requests_.find(connection);
    if (offer == nullptr) return Status::invalid_parameter;
    if (offer->stage == Connection::Stage::offered)
        paths_.refuse(offer->path, offer->message.vi, wire::RefuseCode::rejected, data);
    requests_.end(*offer);
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
    attempts_.begin(vi, deadline);
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
    paths_.notify(path, request_of(vi));
}

void Engine::pending_ended(Vi& vi, Status status) {
    vi.connect_status = status;
    if (vi.listening) news_.chore_came();
    attempts_.end(vi);
}

void Engine::connect_failed(Vi& vi, Status status) {
    if (vi.state_now() != ViState::connect_pending) return;
    leave(vi, ViState::idle);
    pending_ended(vi, status);
}

void Engine::expire(Time now, bool answers_may_wait) {
    for (Vi* vi : attempts_.due(now, answers_may_wait)) {
        VIA_ASSERT(vi->state_now() == ViState::connect_pending);  // nobody else has a deadline
        if (vi->path != no_path)
            paths_.notify(vi->path, wire::FrameKind::withdraw, 0, vi->number());
        connect_failed(*vi, vi->peer && vi->unreachable ? Status::not_reachable : Status::timeout);
    }
}

FrameVerdict Engine::on_accept(Path& path, const wire::Header& header, const std::byte* payload,
                               std::size_t length) {
    wire::ConnectMessage message;
    if (header.flags != 0 || !read_message(payload, length, message))
        return refusals_.hostile("an acceptance that makes no sense");
    Vi* vi = vis_.at(header.vi & 0xFFFF);
    if (vi == nullptr || vi->number() != header.vi || vi->path != path.id ||
        vi->state_now() != ViState::connect_pending) {
        // We gave up meanwhile: the other side must not believe in a connection.
        paths_.notify(path.id, wire::FrameKind::disconnect, message.vi);
        return FrameVerdict::stale;
    }
    if (static_cast<Reliability>(message.reliability) != vi->attributes.reliability ||
        message.transfer_length_max != vi->attributes.transfer_length_max)
        return refusals_.hostile("an acceptance with other attributes than asked for");
    keep_data(payload + sizeof message, message.private_length, vi->remote_data);
    pending_ended(*vi, Status::success);
    enter_connected(*vi, path.id, message);
    return FrameVerdict::taken;
}

FrameVerdict Engine::on_refuse(Path& path, const wire::Header& header, const std::byte* payload,
                               std::size_t length) {
    if (length > wire::private_length_max)
        return refusals_.hostile("a refusal that makes no sense");
    Vi* vi = vis_.at(header.vi & 0xFFFF);
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

void Engine::enter_connected(Vi& vi, PathId path, const wire::ConnectMessage& message) {
    VIA_ASSERT(paths_[path].up && vi.epoch != 0 &&
               (vi.state_now() == ViState::idle || vi.state_now() == ViState::connect_pending));
    VIA_ASSERT(vi.send.work.is_in_order() && vi.receive.work.is_in_order());
    vi.path = path;
    vi.remote_number = message.vi;
    vi.remote = attributes_of(message);
    vi.next_message = vi.placed_message = vi.expected_message = 0;
    vi.given_up = false;
    vi.state.store(ViState::connected);
    vi.short_in = short_ways_ && vi.reliable() ? short_way_of(path, vi.number()) : no_short_way;
    vi.short_out = short_ways_;
    vi.quick_out = short_ways_ && !paths_[path].retransmits &&
                   vi.attributes.reliability != Reliability::reception;
    begin_credits(vi, message);
    counters_.add(Counter::connections_made);
    news_.progressed();
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
        news_.chore_came();
    }
    vi.short_in = no_short_way;
    vi.short_out = vi.quick_out = false;
    vi.state.store(state, std::memory_order_release);
    bool fenced = false;
    vi.send.work.wait_for_posters(fenced);
    vi.receive.work.wait_for_posters(fenced);
    VIA_ASSERT(vi.send.work.is_in_order() && vi.receive.work.is_in_order());
    news_.progressed();
}

void Engine::disconnect(Vi& vi) {
    const ViState state = vi.state_now();
    const PathId path = vi.path;
    if (state == ViState::connected)
        paths_.notify(path, wire::FrameKind::disconnect, vi.remote_number, vi.expected_message);
    if (state == ViState::connect_pending && path != no_path)
        paths_.notify(path, wire::FrameKind::withdraw, 0, vi.number());
    leave(vi, ViState::idle);
    if (state == ViState::connect_pending) pending_ended(vi, Status::invalid_state);
    vi.peer = false;
    flush(vi);
}

void Engine::disconnect_all() {
    for (std::uint32_t index = 0; index < vis_.made(); ++index)
        if (vis_[index].state_now() != ViState::idle) disconnect(vis_[index]);
    requests_.unlisten_all();
}

FrameVerdict Engine::on_disconnect(Path& path, const wire::Header& header) {
    Vi* vi = vis_.connected(path.id, header.vi);
    if (vi == nullptr) return FrameVerdict::stale;
    // Who did not get the refused answer says so; else it had arrived, and nothing was refused.
    if (vi->answer_refused &&
        header.immediate_or_code == static_cast<std::uint32_t>(wire::NakCode::protection))
        news_.report(*vi, ErrorCode::rdma_read_protection);
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
    paths_.begin(id, payload_max, peer, retransmits);
}

void Engine::on_path_changed(PathId id, std::uint32_t payload_max) {
    VIA_ASSERT(paths_.is_up(id) && payload_max != 0);
    paths_[id].payload_max = payload_max;
}

void Engine::on_path_down(PathId id) {
    if (!paths_.is_up(id)) return;
    Path& path = paths_[id];
    path.up = false;
    for (std::uint32_t index = 0; index < vis_.made(); ++index) {
        Vi& vi = vis_[index];
        if (vi.path != id) continue;
        if (vi.state_now() == ViState::connected) lose(vi);
        if (vi.state_now() == ViState::connect_pending) not_found(vi, Status::not_reachable);
    }
    requests_.withdraw_all(id);
    paths_.end(path);
    news_.progressed();
}

}  // namespace via::engine
