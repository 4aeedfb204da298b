#include "engine/paths.hpp"

#include <cstring>

#include "base/assert.hpp"

namespace via::engine {

void Notice::set(wire::ConnectMessage message, std::span<const std::byte> data) {
    message.private_length = static_cast<std::uint32_t>(data.size());
    payload.resize(sizeof message + data.size());
    std::memcpy(payload.data(), &message, sizeof message);
    if (!data.empty()) std::memcpy(payload.data() + sizeof message, data.data(), data.size());
}

Paths::~Paths() {
    while (sending_.pop_front() != nullptr) {
    }
    for (auto& path : paths_)
        while (path->active.pop_front() != nullptr) {
        }
}

void Paths::begin(PathId id, std::uint32_t payload_max, const HostAddress& peer, bool retransmits) {
    while (paths_.size() <= id) paths_.push_back(std::make_unique<Path>());
    Path& path = *paths_[id];
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

void Paths::end(Path& path) {
    VIA_ASSERT(!path.up && path.active.front() == nullptr);  // each of its VIs has left it
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
}

void Paths::notify(PathId id, Notice&& notice) {
    Path& path = *paths_[id];
    if (!path.up) return;
    path.notices.add() = std::move(notice);
    wants_to_send(path);
}

void Paths::notify(PathId path, wire::FrameKind kind, std::uint32_t vi, std::uint32_t message,
                   std::uint32_t code) {
    Notice notice;
    notice.header.kind = kind;
    notice.header.vi = vi;
    notice.header.message = message;
    notice.header.immediate_or_code = code;
    notify(path, std::move(notice));
}

void Paths::refuse(PathId path, std::uint32_t number, wire::RefuseCode code,
                   std::span<const std::byte> data) {
    Notice notice;
    notice.header.kind = wire::FrameKind::refuse;
    notice.header.vi = number;
    notice.header.immediate_or_code = static_cast<std::uint32_t>(code);
    if (!data.empty()) notice.payload = payloads_.take();
    notice.payload.assign(data.begin(), data.end());
    counters_.add(Counter::requests_refused);
    notify(path, std::move(notice));
}

void Paths::notice_emitted(Path& path, std::uint32_t number) {
    Notice& notice = path.notices.front();
    if (path.retransmits) {
        path.under_way.find(number)->copy = std::move(notice.payload);
    } else {
        payloads_.give_back(std::move(notice.payload));
        if (notice.answer) answer_taken(path);
    }
    path.notices.pop_front();
    path.notices.give_memory_back(notices_kept);
}

void Paths::activate(Vi& vi) {
    VIA_ASSERT(vi.path != no_path);
    Path& path = *paths_[vi.path];
    if (!static_cast<ActiveLink&>(vi).linked()) path.active.push_back(vi);
    wants_to_send(path);
}

PathId Paths::first_sending() {
    Path* path = sending_.front();
    return path == nullptr ? no_path : path->id;
}

PathId Paths::next_sending(PathId id) {
    Path& path = *paths_[id];
    Path* next = path.linked() ? sending_.next(path) : nullptr;
    return next == nullptr ? no_path : next->id;
}

}  // namespace via::engine
