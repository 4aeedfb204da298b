// The part of ShmDevice that makes system calls: opening, and looking after peers.

#include <cerrno>
#include <utility>

#include "device/shm/message.hpp"
#include "device/shm/shm_device.hpp"
#include "device/shm/watched.hpp"

namespace via::device::shm {

namespace {

constexpr int events_per_service = 64;
constexpr int messages_per_service = 16;  ///< of one peer
constexpr std::uint32_t reports_per_service = 4;
constexpr Duration wake_pause = milliseconds(1);
constexpr Duration wake_window = seconds(1);

}  // namespace

// ---------------------------------------------------------------- opening and closing

std::expected<std::unique_ptr<ShmDevice>, std::string> ShmDevice::open(const ShmConfig& config) {
    const Layout layout{config.ring_slots, config.arena_bytes};
    if (!layout.valid()) {
        return std::unexpected(
            "shm: ring_slots (4 to 65536) and arena_bytes (32768 to 67108864) must be powers of "
            "two; correct the configuration");
    }
    if (config.address.length > config.address.bytes.size() || config.paths_max == 0 ||
        config.paths_max > 1U << 24) {
        return std::unexpected(
            "shm: address or paths_max is out of bounds; correct the "
            "configuration");
    }
    std::unique_ptr<ShmDevice> device(new ShmDevice(config));
    if (auto started = device->meeting_.open(); !started) {
        return std::unexpected(started.error().text);
    }
    return device;
}

ShmDevice::ShmDevice(const ShmConfig& config)
    : Device({payload_max, header_max, large_length_min, true, true}, config.address),
      config_(config),
      system_(config.system != nullptr ? *config.system : System::real()),
      reports_(config_),
      wait_set_(system_),
      channels_(config_, system_, wait_set_, reports_, may_have_events_),
      segments_(system_, channels_, reports_),
      pulls_(config_, system_, channels_, reports_),
      meeting_(config_, system_, wait_set_, channels_, reports_, may_have_deadline_) {}

// ---------------------------------------------------------------- peers that are there

void ShmDevice::service(Time now) {
    now_ = now;
    may_have_deadline_ = true;
    reports_.renew();
    if (std::exchange(wake_again_, false)) notify();
    meeting_.begin_service(now);
    epoll_event events[events_per_service];
    for (const epoll_event& event : wait_set_.look(events)) dispatch(event);
    meeting_.expire_handshakes();
    idle_deadline_ = Time::never();
    for (const auto& channel : channels_.all()) {
        if (channel != nullptr && channel->state != Channel::State::ended) look_after(*channel);
    }
}

void ShmDevice::dispatch(const epoll_event& event) {
    const Watched kind = key_kind(event.data.u64);
    const std::uint32_t index = key_index(event.data.u64);
    if (kind == Watched::listener) return meeting_.accept_peers();
    if (kind == Watched::handshake) return meeting_.run_handshake(index);
    // A path may have ended, or be another one's, since the event was reported.
    if (!channels_.has(index)) return;
    Channel& channel = channels_.at(index);
    if (make_key(kind, channel.serial, index) != event.data.u64) return;
    if (channel.state == Channel::State::ended) return;
    if (kind == Watched::process) return channels_.depart(channel);
    read_socket(channel);
}

/// Wake-ups mostly; segments; a goodbye, or the end. What answers no question counts as a wake-up.
void ShmDevice::read_socket(Channel& channel) {
    bool woken = false;
    for (int i = 0; i < messages_per_service; ++i) {
        Message message(system_);
        const int error = message.receive(channel.peer_info.socket.get());
        if (error != 0 && !means_gone(error)) break;  // nothing more, or no memory: later
        if (error != 0 || message.bytes().empty()) {
            channels_.depart(channel);
            break;
        }
        if (message.bytes().size() == 1) {
            woken = true;
            continue;
        }
        const std::size_t events = channels_.events().size();
        if (segments_.take(channel, message)) {
            if (channels_.events().size() == events) woken = true;  // not what we had asked for
            continue;
        }
        if (channel.state == Channel::State::ended) return;
        const auto farewell = check_farewell(message.bytes());
        if (!farewell)
            return channels_.close_for_violation(channel, "its socket said something unknown");
        reports_.tell("shm: " + describe(channel) + " leaves us: " + *farewell);
        channels_.depart(channel);
        break;
    }
    if (woken) channel.judge_wake();
}

void ShmDevice::look_after(Channel& channel) {
    if (now_ >= channel.wake_window_end) {
        channel.wake_window_end = now_ + wake_window;
        channel.wakes_useless = 0;
    } else if (channel.wakes_useless > config_.wakeups_per_second_max) {
        return channels_.close_for_violation(channel, "it wakes us all the time for nothing");
    }
    if (channel.writer.arena_used() && !channel.departing) give_back_arena(channel);
}

/// Gives the arena's memory back after a while of silence. Asks to be called again only as long
/// as there is something to give back, and ever more seldom.
void ShmDevice::give_back_arena(Channel& channel) {
    const std::uint32_t mark = channel.writer.published();
    if (mark != channel.idle_mark || channel.idle_deadline.is_never()) {
        channel.idle_mark = mark;
        channel.idle_pause = config_.arena_idle_after;
        channel.idle_deadline = now_ + channel.idle_pause;
    } else if (now_ >= channel.idle_deadline) {
        // Whoever waits for room must find the news itself.
        if (!channel.waiting_for_room && channel.writer.refresh() == RingWriter::Refresh::lie) {
            return channels_.close_for_violation(channel,
                                                 "it gave back frames that were never sent");
        }
        if (channel.writer.arena_idle()) {
            const int error = channel.peer_info.own.give_back_arena();
            if (error == 0) {
                channel.writer.arena_given_back();
                channel.idle_deadline = Time::never();
                return;
            }
            reports_.tell(failure("cannot give back idle memory (madvise)", error).error().text);
        }
        channel.idle_pause = channel.idle_pause * 2;
        channel.idle_deadline = now_ + channel.idle_pause;
    }
    idle_deadline_ = earlier(idle_deadline_, channel.idle_deadline);
}

Time ShmDevice::next_deadline() const {
    Time deadline = earlier(idle_deadline_, meeting_.next_deadline());
    if (wake_again_) deadline = earlier(deadline, now_ + wake_pause);
    for (const Channel* channel : channels_.live()) {
        // An arena that service() has not seen in use: it starts the clock, at once.
        if (channel->writer.arena_used() && channel->idle_deadline.is_never() &&
            !channel->departing) {
            deadline = now_;
        }
        if (channel->wakes_useless > config_.wakeups_per_second_max) deadline = now_;
    }
    return deadline;
}

}  // namespace via::device::shm
