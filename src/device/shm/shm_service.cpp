// The part of ShmDevice that makes system calls: opening and closing, and looking after peers.

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
    if (auto started = device->start(); !started) {
        return std::unexpected(started.error().text);
    }
    return device;
}

ShmDevice::ShmDevice(const ShmConfig& config)
    : config_(config),
      system_(config.system != nullptr ? *config.system : System::real()),
      capabilities_{payload_max, header_max, large_length_min, true, true},
      layout_{config.ring_slots, config.arena_bytes} {
    // So that the polling path never allocates.
    live_.reserve(config.paths_max);
    ended_.reserve(config.paths_max);
    table_.reserve(config.paths_max);
    free_paths_.reserve(config.paths_max);
}

Outcome<void> ShmDevice::start() {
    auto rendezvous =
        Rendezvous::open(system_, config_.directory, config_.key, {config_.address, config_.host});
    if (!rendezvous) return std::unexpected(rendezvous.error());
    rendezvous_ = std::move(*rendezvous);
    epoll_ = Descriptor(system_, system_.epoll_create());
    if (!epoll_.valid()) return failure("cannot make the wait handle (epoll_create1)", errno);
    if (!watch(rendezvous_->listening_socket(), make_key(Watched::listener, 0, 0), EPOLL_CTL_ADD)) {
        return failure("cannot watch our own socket (epoll_ctl)", errno);
    }
    reserve_ = Descriptor(system_, rendezvous_->duplicate_descriptor());
    if (!reserve_.valid())
        return failure("cannot keep a descriptor in reserve (F_DUPFD_CLOEXEC)", errno);
    return {};
}

ShmDevice::~ShmDevice() {
    rendezvous_.reset();  // first the names, so that nobody comes any more
    for (auto& [id, handshake] : handshakes_) system_.shutdown(handshake.socket());
    for (auto& channel : table_) {
        if (channel != nullptr) destroy(*channel);
    }
}

/// Limited, so that a hostile peer cannot flood the log.
void ShmDevice::report(const std::string& text) {
    if (!config_.report || text.empty() || reports_left_ == 0) return;
    --reports_left_;
    config_.report(text);
}

std::string ShmDevice::describe(const Channel& channel) {
    const Introduction& peer = channel.peer_info;
    return peer.name.empty() ? "process " + std::to_string(peer.pid) : peer.name;
}

bool ShmDevice::watch(int fd, std::uint64_t key, int operation) {
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.u64 = key;
    return system_.epoll_ctl(epoll_.get(), operation, fd, &event) == 0;
}

/// Before closing: a forked child may hold the descriptor too, and epoll would go on reporting it.
void ShmDevice::unwatch(int fd) {
    epoll_event event{};
    system_.epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, &event);
}

// ---------------------------------------------------------------- peers that are there

void ShmDevice::service(Time now) {
    now_ = now;
    may_have_deadline_ = true;
    reports_left_ = reports_per_service;
    if (std::exchange(wake_again_, false)) notify();
    if (now_ >= accept_deadline_) resume_accepting();
    if (now_ >= names_look_) look_at_names();
    epoll_event events[events_per_service];
    int count;
    do {
        count = system_.epoll_wait(epoll_.get(), events, events_per_service);
    } while (count < 0 && errno == EINTR);
    for (int i = 0; i < count; ++i) dispatch(events[i]);
    expire_handshakes();
    idle_deadline_ = Time::never();
    for (const auto& channel : table_) {
        if (channel != nullptr && channel->state != Channel::State::ended) look_after(*channel);
    }
}

void ShmDevice::dispatch(const epoll_event& event) {
    const Watched kind = key_kind(event.data.u64);
    const std::uint32_t index = key_index(event.data.u64);
    if (kind == Watched::listener) return accept_peers();
    if (kind == Watched::handshake) return run_handshake(index);
    // A path may have ended, or be another one's, since the event was reported.
    if (index >= table_.size() || table_[index] == nullptr) return;
    Channel& channel = *table_[index];
    if (make_key(kind, channel.serial, index) != event.data.u64) return;
    if (channel.state == Channel::State::ended) return;
    if (kind == Watched::process) return depart(channel);
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
            depart(channel);
            break;
        }
        if (message.bytes().size() == 1) {
            woken = true;
            continue;
        }
        const std::size_t events = events_.size();
        if (take_segment(channel, message)) {
            if (events_.size() == events) woken = true;  // not what we had asked for
            continue;
        }
        if (channel.state == Channel::State::ended) return;
        const auto farewell = check_farewell(message.bytes());
        if (!farewell) return condemn(channel, "its socket said something unknown");
        report("shm: " + describe(channel) + " leaves us: " + *farewell);
        depart(channel);
        break;
    }
    if (woken) channel.judge_wake();
}

/// The peer is gone. What it published before is still delivered; receive() finds the end of it.
void ShmDevice::depart(Channel& channel) {
    if (channel.departing) return;
    channel.departing = true;
    channel.drain_from = channel.frames_taken();
    channel.writer.close();
    unwatch(channel.peer_info.socket.get());
    if (channel.peer_info.process.valid()) unwatch(channel.peer_info.process.get());
}

void ShmDevice::look_after(Channel& channel) {
    if (now_ >= channel.wake_window_end) {
        channel.wake_window_end = now_ + wake_window;
        channel.wakes_useless = 0;
    } else if (channel.wakes_useless > config_.wakeups_per_second_max) {
        return condemn(channel, "it wakes us all the time for nothing");
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
            return condemn(channel, "it gave back frames that were never sent");
        }
        if (channel.writer.arena_idle()) {
            const int error = channel.peer_info.own.give_back_arena();
            if (error == 0) {
                channel.writer.arena_given_back();
                channel.idle_deadline = Time::never();
                return;
            }
            report(failure("cannot give back idle memory (madvise)", error).error().text);
        }
        channel.idle_pause = channel.idle_pause * 2;
        channel.idle_deadline = now_ + channel.idle_pause;
    }
    idle_deadline_ = earlier(idle_deadline_, channel.idle_deadline);
}

Time ShmDevice::next_deadline() const {
    Time deadline = earlier(idle_deadline_, accept_deadline_);
    if (rendezvous_->is_listened_to()) deadline = earlier(deadline, names_look_);
    if (wake_again_) deadline = earlier(deadline, now_ + wake_pause);
    for (const Channel* channel : live_) {
        // An arena that service() has not seen in use: it starts the clock, at once.
        if (channel->writer.arena_used() && channel->idle_deadline.is_never() &&
            !channel->departing) {
            deadline = now_;
        }
        if (channel->wakes_useless > config_.wakeups_per_second_max) deadline = now_;
    }
    for (const auto& [id, handshake] : handshakes_) {
        // One that service() has not seen yet gets its deadline there: at once.
        const Time due = handshake.deadline.is_never() ? now_ : handshake.deadline;
        deadline = earlier(deadline, earlier(due, handshake.retry));
    }
    return deadline;
}

}  // namespace via::device::shm
