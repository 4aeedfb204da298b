#include "engine/connecting.hpp"

#include <cstring>
#include <utility>

#include "base/assert.hpp"
#include "engine/connect_message.hpp"

namespace via::engine {

/// A request of that VI, to its remote address.
Notice Connecting::request_of(const Vi& vi) {
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
    notice.payload = paths_.payloads().take();
    notice.set(message, own_data_of(vi));
    return notice;
}

Notice Connecting::acceptance_of(const Vi& vi, std::uint32_t remote_number,
                                 std::span<const std::byte> data) {
    Notice notice;
    notice.header.kind = wire::FrameKind::accept;
    notice.header.vi = remote_number;
    notice.header.immediate_or_code = wire::understood::all;
    notice.payload = paths_.payloads().take();
    notice.set(describe(vi), data);
    return notice;
}

// Answering ---------------------------------------------------------------------------------------

Status Connecting::accept(std::uint64_t connection, Vi& vi, std::span<const std::byte> data) {
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
    connections_.enter(vi, offer->path, offer->message, offer->understood);
    requests_.end(*offer);
    return Status::success;
}

Status Connecting::reject(std::uint64_t connection, std::span<const std::byte> data) {
    Connection* offer = requests_.find(connection);
    if (offer == nullptr) return Status::invalid_parameter;
    if (offer->stage == Connection::Stage::offered)
        paths_.refuse(offer->path, offer->message.vi, wire::RefuseCode::rejected, data);
    requests_.end(*offer);
    return Status::success;
}

// Requesting --------------------------------------------------------------------------------------

void Connecting::start_pending(Vi& vi, const NetAddress& local, const NetAddress& remote,
                               Time deadline, std::span<const std::byte> data) {
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

Status Connecting::begin_connect(Vi& vi, const NetAddress& local, const NetAddress& remote,
                                 Time deadline, std::span<const std::byte> data) {
    if (vi.state_now() != ViState::idle) return Status::invalid_state;
    vi.peer = false;
    start_pending(vi, local, remote, deadline, data);
    return Status::success;
}

void Connecting::connect_on(Vi& vi, PathId path) {
    if (vi.state_now() != ViState::connect_pending || vi.path != no_path) return;
    vi.path = path;
    paths_.notify(path, request_of(vi));
}

void Connecting::pending_ended(Vi& vi, Status status) {
    vi.connect_status = status;
    if (vi.listening) completions_.news().chore_came();
    attempts_.end(vi);
}

void Connecting::connect_failed(Vi& vi, Status status) {
    if (vi.state_now() != ViState::connect_pending) return;
    connections_.leave(vi, ViState::idle);
    pending_ended(vi, status);
}

void Connecting::expire(Time now, bool answers_may_wait) {
    for (Vi* vi : attempts_.due(now, answers_may_wait)) {
        VIA_ASSERT(vi->state_now() == ViState::connect_pending);  // nobody else has a deadline
        if (vi->path != no_path)
            paths_.notify(vi->path, wire::FrameKind::withdraw, 0, vi->number());
        connect_failed(*vi, vi->peer && vi->unreachable ? Status::not_reachable : Status::timeout);
    }
}

FrameVerdict Connecting::on_accept(const Path& path, const wire::Header& header,
                                   const std::byte* payload, std::size_t length) {
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
    connections_.enter(*vi, path.id, message, header.immediate_or_code);
    return FrameVerdict::taken;
}

FrameVerdict Connecting::on_refuse(const Path& path, const wire::Header& header,
                                   const std::byte* payload, std::size_t length) {
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

// Parting -----------------------------------------------------------------------------------------

void Connecting::disconnect(Vi& vi) {
    const ViState state = vi.state_now();
    const PathId path = vi.path;
    if (state == ViState::connected)
        paths_.notify(path, wire::FrameKind::disconnect, vi.remote_number, vi.expected_message);
    if (state == ViState::connect_pending && path != no_path)
        paths_.notify(path, wire::FrameKind::withdraw, 0, vi.number());
    connections_.leave(vi, ViState::idle);
    if (state == ViState::connect_pending) pending_ended(vi, Status::invalid_state);
    vi.peer = false;
    completions_.flush(vi);
}

}  // namespace via::engine
