#include "device/shm/channels.hpp"

#include <algorithm>

#include "device/shm/message.hpp"
#include "device/shm/wake.hpp"

namespace via::device::shm {

std::string describe(const Channel& channel) {
    const Introduction& peer = channel.peer_info;
    return peer.name.empty() ? "process " + std::to_string(peer.pid) : peer.name;
}

Channels::Channels(const ShmConfig& config, System& system, WaitSet& wait_set, Reports& reports,
                   bool& may_have_events)
    : sleep_word_(sleep_word(Sleep::awake, 0)),
      paths_max_(config.paths_max),
      system_(system),
      wait_set_(wait_set),
      reports_(reports),
      may_have_events_(may_have_events) {
    // So that the polling path never allocates.
    live_.reserve(paths_max_);
    ended_.reserve(paths_max_);
    table_.reserve(paths_max_);
    free_paths_.reserve(paths_max_);
}

Channels::~Channels() {
    for (auto& channel : table_) {
        if (channel != nullptr) destroy(*channel);
    }
}

const Channel* Channels::find(const HostAddress& address, const std::string& name) const {
    for (const auto& channel : table_) {
        if (channel != nullptr && channel->state != Channel::State::ended && !channel->departing &&
            channel->peer_info.name == name && channel->peer_info.address == address) {
            return channel.get();
        }
    }
    return nullptr;
}

void Channels::add(std::unique_ptr<Channel> channel) {
    const PathId path = channel->path;
    if (path == table_.size()) {
        table_.push_back(std::move(channel));
    } else {
        free_paths_.pop_back();
        table_[path] = std::move(channel);
    }
}

void Channels::go_live(Channel& channel) {
    if (channel.state != Channel::State::opening) return;
    channel.state = Channel::State::live;
    channel.live_index = static_cast<std::uint32_t>(live_.size());
    live_.push_back(&channel);
    channel.set_sleep_word(sleep_word_);
}

void Channels::end(Channel& channel) {
    if (channel.state == Channel::State::live) {
        live_.back()->live_index = channel.live_index;
        live_[channel.live_index] = live_.back();
        live_.pop_back();
    }
    channel.state = Channel::State::ended;
    channel.writer.close();
    ended_.push_back(&channel);
    may_have_events_ = true;
}

void Channels::close_for_violation(Channel& channel, const char* reason) {
    if (channel.state == Channel::State::ended) return;
    channel.end_reason = reason;
    end(channel);
    reports_.tell("shm: the connection to " + describe(channel) +
                  " is cut, it broke the protocol: " + reason);
}

void Channels::depart(Channel& channel) {
    if (channel.departing) return;
    channel.departing = true;
    channel.drain_from = channel.frames_taken();
    channel.writer.close();
    wait_set_.unwatch(channel.peer_info.socket.get());
    if (channel.peer_info.process.valid()) wait_set_.unwatch(channel.peer_info.process.get());
}

bool Channels::has_event() const {
    return !events_.empty() ||
           std::ranges::any_of(ended_, [](const Channel* channel) { return !channel->taken; });
}

bool Channels::next_event(PathEvent& event) {
    if (!events_.empty()) {
        event = events_.front();
        events_.pop_front();
        if (event.kind != PathEventKind::unresolved) go_live(at(event.path));
        return true;
    }
    for (std::size_t i = 0; i < ended_.size(); ++i) {
        Channel& channel = *ended_[i];
        if (channel.taken) continue;  // its frames are still being read
        event = {PathEventKind::down, channel.path};
        ended_.erase(ended_.begin() + static_cast<std::ptrdiff_t>(i));
        destroy(channel);
        return true;
    }
    may_have_events_ = !ended_.empty();
    return false;
}

void Channels::destroy(Channel& channel) {
    for (Channel** at = &touched_; *at != nullptr; at = &(*at)->next_touched) {
        if (*at != &channel) continue;
        *at = channel.next_touched;
        break;
    }
    Introduction& peer = channel.peer_info;
    wait_set_.unwatch(peer.socket.get());
    if (peer.process.valid()) wait_set_.unwatch(peer.process.get());
    if (!channel.end_reason.empty()) say_goodbye(system_, peer.socket.get(), channel.end_reason);
    // A forked child may hold the socket too: closing alone would not tell the peer.
    system_.shutdown(peer.socket.get());
    free_paths_.push_back(channel.path);
    table_[channel.path].reset();
}

void Channels::set_sleep_word(std::uint32_t word) {
    sleep_word_ = word;
    for (Channel* channel : live_) channel->set_sleep_word(word);
}

}  // namespace via::device::shm
