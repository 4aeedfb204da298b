// Two VIs that ask for each other (VIPL 4.22). Which of them asks is decided above, by an order of
// their addresses that both know; the other one waits to be found. So no two requests cross.
#include <algorithm>

#include "engine/connect_message.hpp"
#include "engine/connecting.hpp"

namespace via::engine {

namespace {

constexpr Duration search_pause_min = milliseconds(1);
constexpr Duration search_pause_max = milliseconds(16);

Duration next_pause(const Vi& vi) {
    return std::clamp(vi.search_pause + vi.search_pause, search_pause_min, search_pause_max);
}

}  // namespace

Status Connecting::begin_peer_connect(Vi& vi, const NetAddress& local, const NetAddress& remote,
                                      Time deadline, bool asks, std::span<const std::byte> data) {
    if (vi.state_now() != ViState::idle) return Status::invalid_state;
    vi.peer = true;
    vi.asks = asks;
    vi.unreachable = false;
    start_pending(vi, local, remote, deadline, data);
    if (asks) attempts_.look_at(vi, {});  // at once
    return Status::success;
}

void Connecting::not_found(Vi& vi, Status status) {
    if (vi.state_now() != ViState::connect_pending) return;
    // Nobody there answers: whoever waits without end waits for that, too. Not who has no other way
    // to hear of it than the end of an endless request (ViaConnectRequest).
    if (status == Status::not_done && vi.connect_deadline.is_never() && !vi.insists)
        return search_later(vi);
    if (status == Status::not_done) status = Status::not_reachable;
    if (status == Status::no_match && looks_once_more(vi)) return;
    // Somebody is there and stands still: how long to wait is for the program to say (VIPL 4.20).
    if (status != Status::timeout &&
        (!vi.peer || (status != Status::no_match && status != Status::not_reachable)))
        return connect_failed(vi, status);
    vi.unreachable = status == Status::not_reachable;
    search_later(vi);
}

/// Not where its time would be up before: that nobody is there is known now.
bool Connecting::looks_once_more(Vi& vi) {
    if (vi.looks_left == 0 || attempts_.now() >= vi.looks_until ||
        attempts_.now() + next_pause(vi) >= vi.connect_deadline)
        return false;
    --vi.looks_left;
    search_later(vi);
    return true;
}

void Connecting::search_later(Vi& vi) {
    vi.path = no_path;
    vi.search_pause = next_pause(vi);
    attempts_.look_at(vi, attempts_.now() + vi.search_pause);
}

FrameVerdict Connecting::on_peer_request(const Path& path, const wire::Header& header,
                                         const std::byte* payload, std::size_t length) {
    wire::ConnectMessage message;
    if (!read_message(payload, length, message))
        return refusals_.hostile("a connection request that makes no sense");
    const NetAddress asker{path.peer,
                           discriminator_of(message.local_discriminator, message.local_length)};
    Vi* vi = attempts_.awaiting(
        asker, discriminator_of(message.remote_discriminator, message.remote_length));
    const auto end = [&](wire::RefuseCode code, Status status) {
        paths_.refuse(path.id, message.vi, code);
        if (vi != nullptr) connect_failed(*vi, status);
        return FrameVerdict::taken;
    };
    if (vi == nullptr) return end(wire::RefuseCode::no_match, Status::no_match);
    const RemoteAttributes theirs = attributes_of(message);
    if (theirs.reliability != vi->attributes.reliability)
        return end(wire::RefuseCode::reliability, Status::invalid_reliability_level);
    if (theirs.transfer_length_max != vi->attributes.transfer_length_max)
        return end(wire::RefuseCode::transfer_length, Status::invalid_mtu);
    if (theirs.qos != vi->attributes.qos) return end(wire::RefuseCode::qos, Status::invalid_qos);
    keep_data(payload + sizeof message, message.private_length, vi->remote_data);
    paths_.notify(path.id, acceptance_of(*vi, message.vi, own_data_of(*vi)));
    pending_ended(*vi, Status::success);
    connections_.enter(*vi, path.id, message, header.immediate_or_code);
    return FrameVerdict::taken;
}

}  // namespace via::engine
