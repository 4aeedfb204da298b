// The part of ShmDevice that makes system calls: opening, peers that come and go, sleepers.

#include <algorithm>
#include <cerrno>
#include <utility>

#include "device/shm/message.hpp"
#include "device/shm/shm_device.hpp"

namespace via::device::shm {

namespace {

constexpr int events_per_service = 64;
constexpr int accepts_per_service = 16;
constexpr int messages_per_service = 16;  ///< of one peer
constexpr std::uint32_t reports_per_service = 4;
constexpr Duration connect_pause = milliseconds(2);
constexpr Duration wake_pause = milliseconds(1);
constexpr Duration accept_pause = milliseconds(100);
constexpr Duration wake_window = seconds(1);

// What an epoll event is about: kind, then 30 bits serial, then path or handshake.
enum class Watched : std::uint64_t { listener, handshake, socket, process };

constexpr std::uint64_t make_key(Watched kind, std::uint32_t serial, std::uint32_t index) {
    return static_cast<std::uint64_t>(kind) << 62 | std::uint64_t{serial & 0x3FFFFFFF} << 32 |
           index;
}

Breakdown no_room(const std::string& what) {
    return {Status::error_resource, "shm: a peer is refused: " + what};
}

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
        return std::unexpected("shm: address or paths_max is out of bounds; correct the "
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
      capabilities_{payload_max, header_max, stream_length_min, true, true},
      layout_{config.ring_slots, config.arena_bytes} {
    // So that the polling path never allocates.
    live_.reserve(config.paths_max);
    ended_.reserve(config.paths_max);
    table_.reserve(config.paths_max);
    free_paths_.reserve(config.paths_max);
}

Outcome<void> ShmDevice::start() {
    auto rendezvous = Rendezvous::open(system_, config_.directory, config_.key);
    if (!rendezvous) return std::unexpected(rendezvous.error());
    rendezvous_ = std::move(*rendezvous);
    epoll_ = Descriptor(system_, system_.epoll_create());
    if (!epoll_.valid()) return failure("cannot make the wait handle (epoll_create1)", errno);
    if (!watch(rendezvous_->listening_socket(), make_key(Watched::listener, 0, 0),
               EPOLL_CTL_ADD)) {
        return failure("cannot watch our own socket (epoll_ctl)", errno);
    }
    reserve_ = Descriptor(system_, rendezvous_->duplicate_descriptor());
    if (!reserve_.valid()) return failure("cannot keep a descriptor in reserve", errno);
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

// ---------------------------------------------------------------- names

Status ShmDevice::listen(const Discriminator& discriminator) {
    const auto listening = rendezvous_->listen(discriminator);
    if (listening) return Status::success;
    report(listening.error().text);
    return listening.error().status;
}

void ShmDevice::unlisten(const Discriminator& discriminator) {
    rendezvous_->unlisten(discriminator);
}

void ShmDevice::push_unresolved(std::uint64_t cookie, Status status) {
    events_.push_back({PathEventKind::unresolved, 0, status, cookie});
}

Channel* ShmDevice::find_channel(const std::string& name) const {
    for (const auto& channel : table_) {
        if (channel != nullptr && channel->state != Channel::State::ended &&
            !channel->departing && channel->peer_info.name == name) {
            return channel.get();
        }
    }
    return nullptr;
}

void ShmDevice::resolve(const NetAddress& remote, std::uint64_t cookie) {
    if (!(remote.host == config_.address)) {
        return push_unresolved(cookie, Status::not_reachable);
    }
    const std::string target = rendezvous_->find(remote.discriminator);
    if (target.empty()) return push_unresolved(cookie, Status::no_match);
    if (const Channel* channel = find_channel(target)) {
        events_.push_back({PathEventKind::resolved, channel->path, Status::success, cookie});
        return;
    }
    for (auto& [id, handshake] : handshakes_) {
        if (handshake.accepted() || handshake.target() != target) continue;
        handshake.cookies.push_back(cookie);
        return;
    }
    auto handshake = Handshake::begin(system_, target);
    if (!handshake) {
        report(handshake.error().text);
        return push_unresolved(cookie, handshake.error().status);
    }
    handshake->cookies.push_back(cookie);
    const std::uint32_t id = ++serial_;
    handshakes_.emplace(id, std::move(*handshake));
    run_handshake(id);
}

// ---------------------------------------------------------------- handshakes

void ShmDevice::run_handshake(std::uint32_t id) {
    const auto at = handshakes_.find(id);
    if (at == handshakes_.end()) return;
    Handshake& handshake = at->second;
    const auto step = handshake.advance(*rendezvous_, layout_, config_.address);
    if (!step) return fail_handshake(at, step.error());
    if (*step == Handshake::Progress::introduced) return finish_handshake(at);
    if (*step == Handshake::Progress::again) {
        handshake.retry = now_ + connect_pause;
        return;
    }
    handshake.retry = Time::never();
    if (handshake.watched) return;
    if (!watch(handshake.socket(), make_key(Watched::handshake, 0, id), EPOLL_CTL_ADD)) {
        return fail_handshake(at, no_room("cannot watch its socket (epoll_ctl); raise "
                                          "fs.epoll.max_user_watches or free memory"));
    }
    handshake.watched = true;
}

void ShmDevice::fail_handshake(Handshakes::iterator at, const Breakdown& why) {
    report(why.text);
    for (const std::uint64_t cookie : at->second.cookies) push_unresolved(cookie, why.status);
    if (at->second.watched) unwatch(at->second.socket());
    system_.shutdown(at->second.socket());
    handshakes_.erase(at);
}

/// The peer is introduced: gives it a path.
void ShmDevice::finish_handshake(Handshakes::iterator at) {
    Handshake& handshake = at->second;
    if (free_paths_.empty() && table_.size() >= config_.paths_max) {
        if (handshake.accepted()) handshake.refuse(Refusal::resources, "too many paths");
        return fail_handshake(at, no_room("there are too many paths; raise paths_max"));
    }
    const PathId path = free_paths_.empty() ? static_cast<PathId>(table_.size())
                                            : free_paths_.back();
    if (!watch(handshake, path, ++serial_)) {
        if (handshake.accepted()) handshake.refuse(Refusal::resources, "cannot watch it");
        return fail_handshake(at, no_room("cannot watch it (epoll_ctl); raise "
                                          "fs.epoll.max_user_watches or free memory"));
    }
    if (handshake.accepted()) {
        if (auto sent = handshake.reply(config_.address, name()); !sent) {
            const Descriptor& process = handshake.introduction().process;
            if (process.valid()) unwatch(process.get());
            return fail_handshake(at, sent.error());
        }
    }
    auto channel = std::make_unique<Channel>(path, std::move(handshake.introduction()));
    channel->serial = serial_;
    if (handshake.accepted()) events_.push_back({PathEventKind::up, path});
    for (const std::uint64_t cookie : handshake.cookies) {
        events_.push_back({PathEventKind::resolved, path, Status::success, cookie});
    }
    handshakes_.erase(at);
    if (path == table_.size()) {
        table_.push_back(std::move(channel));
    } else {
        free_paths_.pop_back();
        table_[path] = std::move(channel);
    }
}

/// From now on events of the socket and the process are the path's.
bool ShmDevice::watch(Handshake& handshake, PathId path, std::uint32_t serial) {
    const Descriptor& process = handshake.introduction().process;
    if (process.valid() &&
        !watch(process.get(), make_key(Watched::process, serial, path), EPOLL_CTL_ADD)) {
        return false;
    }
    const int operation = handshake.watched ? EPOLL_CTL_MOD : EPOLL_CTL_ADD;
    if (!watch(handshake.socket(), make_key(Watched::socket, serial, path), operation)) {
        if (process.valid()) unwatch(process.get());
        return false;
    }
    handshake.watched = true;
    return true;
}

void ShmDevice::expire_handshakes() {
    for (auto at = handshakes_.begin(); at != handshakes_.end();) {
        const auto here = at++;
        Handshake& handshake = here->second;
        if (handshake.deadline.is_never()) handshake.deadline = now_ + config_.handshake_timeout;
        if (now_ >= handshake.deadline) {
            fail_handshake(here, {Status::not_reachable,
                                  "shm: " +
                                      (handshake.accepted()
                                           ? "process " + std::to_string(handshake.pid())
                                           : handshake.target()) +
                                      " did not answer the greeting in time; see whether it is "
                                      "stopped"});
        } else if (now_ >= handshake.retry) {
            run_handshake(here->first);
        }
    }
}

// ---------------------------------------------------------------- peers that come

void ShmDevice::accept_peers() {
    for (int i = 0; i < accepts_per_service; ++i) {
        Descriptor socket(system_, system_.accept(rendezvous_->listening_socket()));
        if (socket.valid()) {
            short_of_descriptors_ = false;
            admit(std::move(socket));
        } else if (!accept_failed(errno)) {
            return;
        }
    }
}

void ShmDevice::admit(Descriptor socket) {
    auto newcomer = Handshake::accept(system_, std::move(socket));
    if (!newcomer) return report(newcomer.error().text);
    if (is_crowded(newcomer->pid())) {
        newcomer->refuse(Refusal::resources, "too many connections from one process");
        return report("shm: process " + std::to_string(newcomer->pid()) +
                      " opens too many connections; raise paths_per_process_max if it is right");
    }
    drop_oldest_handshake();
    const std::uint32_t id = ++serial_;
    handshakes_.emplace(id, std::move(*newcomer));
    run_handshake(id);
}

/// True when process `pid` has as many paths to us as one may have.
bool ShmDevice::is_crowded(std::int32_t pid) const {
    if (pid <= 0) return false;  // of another pid namespace: cannot be told apart
    const auto counts = [pid](const auto& channel) {
        return channel != nullptr && channel->peer_info.accepted && channel->peer_info.pid == pid;
    };
    return std::count_if(table_.begin(), table_.end(), counts) >= config_.paths_per_process_max;
}

/// Who greets at once, as our kind does, is never among the waiting; so a flood of silent
/// connections displaces but itself.
void ShmDevice::drop_oldest_handshake() {
    std::size_t count = 0;
    auto oldest = handshakes_.end();
    for (auto at = handshakes_.begin(); at != handshakes_.end(); ++at) {
        if (!at->second.accepted()) continue;
        if (count++ == 0) oldest = at;  // identifiers ascend
    }
    if (count < config_.handshakes_max) return;
    fail_handshake(oldest, no_room("too many connect and do not greet"));
}

/// Returns true when it makes sense to accept the next one at once.
bool ShmDevice::accept_failed(int error) {
    if (error == EAGAIN) return false;
    if (error == EINTR || error == ECONNABORTED) return true;
    if (error == EMFILE || error == ENFILE) {
        if (!std::exchange(short_of_descriptors_, true)) {
            report("shm: peers are turned away: no more descriptors; raise the limit on open "
                   "files (ulimit -n)");
        }
        error = turn_one_away();
        if (error == 0) return true;
        if (error == EAGAIN) return false;
    } else {
        report(failure("cannot accept a peer for now (accept4)", error).error().text);
    }
    pause_accepting();
    return false;
}

/// Uses the descriptor in reserve to tell one peer that there is none for it. errno, or 0.
int ShmDevice::turn_one_away() {
    if (!reserve_.valid()) return EMFILE;
    reserve_.reset();
    int error = 0;
    {
        Descriptor socket(system_, system_.accept(rendezvous_->listening_socket()));
        error = socket.valid() ? 0 : errno;
        if (socket.valid()) {
            const Farewell refusal = make_refusal(Refusal::resources, "it is out of descriptors");
            send_message(system_, socket.get(), std::as_bytes(std::span(&refusal, 1)));
        }
    }
    reserve_ = Descriptor(system_, rendezvous_->duplicate_descriptor());
    return reserve_.valid() ? error : EMFILE;
}

/// Otherwise the peer that waits would keep our wait handle readable, to no avail.
void ShmDevice::pause_accepting() {
    unwatch(rendezvous_->listening_socket());
    accept_deadline_ = now_ + accept_pause;
}

void ShmDevice::resume_accepting() {
    if (!reserve_.valid()) reserve_ = Descriptor(system_, rendezvous_->duplicate_descriptor());
    accept_deadline_ = now_ + accept_pause;
    if (!reserve_.valid()) return;
    if (watch(rendezvous_->listening_socket(), make_key(Watched::listener, 0, 0),
              EPOLL_CTL_ADD)) {
        accept_deadline_ = Time::never();
    }
}

// ---------------------------------------------------------------- peers that are there

void ShmDevice::service(Time now) {
    now_ = now;
    reports_left_ = reports_per_service;
    if (std::exchange(wake_again_, false)) {
        atomic_fence(memory_order_seq_cst);
        notify();
    }
    if (now_ >= accept_deadline_) resume_accepting();
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
    const auto kind = static_cast<Watched>(event.data.u64 >> 62);
    const auto index = static_cast<std::uint32_t>(event.data.u64);
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

/// Wake-ups mostly; a goodbye, or the end.
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
        const auto goodbye = check_goodbye(message.bytes());
        if (!goodbye) return condemn(channel, "its socket said something unknown");
        report("shm: " + describe(channel) + " leaves us: " + *goodbye);
    }
    if (woken) channel.judge_wake();
}

/// The peer is gone. What it published before is still delivered; receive() finds the end of it.
void ShmDevice::depart(Channel& channel) {
    if (channel.departing) return;
    channel.departing = true;
    channel.drain_from = channel.reader.position();
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
        if (!channel.waiting_for_room &&
            channel.writer.refresh() == RingWriter::Refresh::lie) {
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
    if (wake_again_) deadline = earlier(deadline, now_ + wake_pause);
    for (const auto& [id, handshake] : handshakes_) {
        // One that service() has not seen yet gets its deadline there: at once.
        const Time due = handshake.deadline.is_never() ? now_ : handshake.deadline;
        deadline = earlier(deadline, earlier(due, handshake.retry));
    }
    return deadline;
}

}  // namespace via::device::shm
