#include "device/shm/meeting.hpp"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "device/shm/message.hpp"
#include "device/shm/watched.hpp"

namespace via::device::shm {

namespace {

constexpr int accepts_per_service = 16;
constexpr Duration connect_pause = milliseconds(2);
constexpr Duration accept_pause = milliseconds(100);
constexpr Duration names_interval = seconds(5);

Breakdown no_room(const std::string& what) {
    return {Status::error_resource, "shm: a peer is refused: " + what};
}

/// For a peer whose process has as many paths as one may have; tells it so.
Breakdown turn_away_one_of_many(Handshake& handshake) {
    handshake.refuse(Refusal::resources, "too many connections from one process");
    return {Status::error_resource,
            "shm: process " + std::to_string(handshake.pid()) +
                " opens too many connections; raise paths_per_process_max if it is right"};
}

}  // namespace

Meeting::Meeting(const ShmConfig& config, System& system, WaitSet& wait_set, Channels& channels,
                 Reports& reports, bool& may_have_deadline)
    : config_(config),
      system_(system),
      wait_set_(wait_set),
      channels_(channels),
      reports_(reports),
      may_have_deadline_(may_have_deadline),
      layout_{config.ring_slots, config.arena_bytes} {}

Outcome<void> Meeting::open() {
    auto rendezvous =
        Rendezvous::open(system_, config_.directory, config_.key, {config_.address, config_.host});
    if (!rendezvous) return std::unexpected(rendezvous.error());
    rendezvous_ = std::move(*rendezvous);
    if (auto opened = wait_set_.open(); !opened) return opened;
    if (!watch_listener()) return failure("cannot watch our own socket (epoll_ctl)", errno);
    reserve_ = Descriptor(system_, rendezvous_->duplicate_descriptor());
    if (!reserve_.valid())
        return failure("cannot keep a descriptor in reserve (F_DUPFD_CLOEXEC)", errno);
    return {};
}

Meeting::~Meeting() {
    rendezvous_.reset();
    for (auto& [id, handshake] : handshakes_) system_.shutdown(handshake.socket());
}

void Meeting::begin_service(Time now) {
    now_ = now;
    if (now_ >= accept_deadline_) resume_accepting();
    if (now_ >= names_look_) look_at_names();
}

Time Meeting::next_deadline() const {
    Time deadline = accept_deadline_;
    if (rendezvous_->is_listened_to()) deadline = earlier(deadline, names_look_);
    for (const auto& [id, handshake] : handshakes_) {
        // One that service() has not seen yet gets its deadline there: at once.
        const Time due = handshake.deadline.is_never() ? now_ : handshake.deadline;
        deadline = earlier(deadline, earlier(due, handshake.retry));
    }
    return deadline;
}

// ---------------------------------------------------------------- names

/// A cleaner of temporary files, or the end of a login, may take our names away while we live.
void Meeting::look_at_names() {
    names_look_ = now_ + names_interval;
    if (!rendezvous_->is_known()) return make_known();
    if (auto made = rendezvous_->make_links(); !made) reports_.tell(made.error().text);
}

void Meeting::make_known() {
    std::string directory = config_.directory;
    if (config_.directory_again) {
        auto again = config_.directory_again();
        if (!again) return reports_.tell("shm: our names are gone, and " + again.error());
        directory = std::move(*again);
    }
    accept_peers();  // who came to the old socket
    const bool watched = accept_deadline_.is_never();
    if (watched) wait_set_.unwatch(rendezvous_->listening_socket());
    const auto made = rendezvous_->make_known(directory);
    if (watched && !watch_listener()) accept_deadline_ = now_ + accept_pause;
    reports_.tell(made ? "shm: our names were taken away; others find us in " + directory + " again"
                       : made.error().text);
}

Status Meeting::listen(const Discriminator& discriminator) {
    if (!rendezvous_->is_known()) make_known();
    const auto listening = rendezvous_->listen(discriminator);
    if (listening) return Status::success;
    reports_.tell(listening.error().text);
    return listening.error().status;
}

void Meeting::resolve(const NetAddress& remote, std::uint64_t cookie) {
    if (!rendezvous_->is_known()) make_known();  // whom we come to looks for our name
    const auto found = rendezvous_->find(remote);
    if (!found) {
        reports_.tell(found.error().text);
        return push_unresolved(cookie, found.error().status);
    }
    const std::string& target = *found;
    if (target.empty()) return push_unresolved(cookie, Status::no_match);
    if (const Channel* channel = channels_.find(remote.host, target)) {
        channels_.push({PathEventKind::resolved, channel->path, Status::success, cookie});
        return;
    }
    for (auto& [id, handshake] : handshakes_) {
        if (handshake.accepted() || handshake.target() != target ||
            !(handshake.address() == remote.host))
            continue;
        handshake.cookies.push_back(cookie);
        return;
    }
    auto handshake = Handshake::begin(system_, remote.host, target);
    if (!handshake) {
        reports_.tell(handshake.error().text);
        return push_unresolved(cookie, handshake.error().status);
    }
    handshake->cookies.push_back(cookie);
    begin_handshake(std::move(*handshake));
}

// ---------------------------------------------------------------- handshakes

void Meeting::begin_handshake(Handshake handshake) {
    const std::uint32_t id = ++serial_;
    handshakes_.emplace(id, std::move(handshake));
    may_have_deadline_ = true;
    run_handshake(id);
}

void Meeting::run_handshake(std::uint32_t id) {
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
    if (!wait_set_.watch(handshake.socket(), make_key(Watched::handshake, 0, id))) {
        return fail_handshake(at, no_room("cannot watch its socket (epoll_ctl); raise "
                                          "fs.epoll.max_user_watches or free memory"));
    }
    handshake.watched = true;
}

void Meeting::fail_handshake(Handshakes::iterator at, const Breakdown& why) {
    reports_.tell(why.text);
    for (const std::uint64_t cookie : at->second.cookies) push_unresolved(cookie, why.status);
    if (at->second.watched) wait_set_.unwatch(at->second.socket());
    system_.shutdown(at->second.socket());
    handshakes_.erase(at);
}

/// The peer is introduced: gives it a path.
void Meeting::finish_handshake(Handshakes::iterator at) {
    Handshake& handshake = at->second;
    // Once more: others that came when it did may have got their paths since.
    if (handshake.accepted() && is_crowded(handshake.pid()))
        return fail_handshake(at, turn_away_one_of_many(handshake));
    if (channels_.is_full()) {
        if (handshake.accepted()) handshake.refuse(Refusal::resources, "too many paths");
        return fail_handshake(at, no_room("there are too many paths; raise paths_max"));
    }
    const PathId path = channels_.next_path();
    if (!watch(handshake, path, ++serial_)) {
        if (handshake.accepted()) handshake.refuse(Refusal::resources, "cannot watch it");
        return fail_handshake(at, no_room("cannot watch it (epoll_ctl); raise "
                                          "fs.epoll.max_user_watches or free memory"));
    }
    if (handshake.accepted()) {
        if (auto sent = handshake.reply(config_.address, name()); !sent) {
            const Descriptor& process = handshake.introduction().process;
            if (process.valid()) wait_set_.unwatch(process.get());
            return fail_handshake(at, sent.error());
        }
    }
    auto channel =
        std::make_unique<Channel>(path, std::move(handshake.introduction()), config_.one_copy);
    channel->serial = serial_;
    if (handshake.accepted()) channels_.push({PathEventKind::up, path});
    for (const std::uint64_t cookie : handshake.cookies) {
        channels_.push({PathEventKind::resolved, path, Status::success, cookie});
    }
    handshakes_.erase(at);
    channels_.add(std::move(channel));
}

/// From now on events of the socket and the process are the path's.
bool Meeting::watch(Handshake& handshake, PathId path, std::uint32_t serial) {
    const Descriptor& process = handshake.introduction().process;
    if (process.valid() &&
        !wait_set_.watch(process.get(), make_key(Watched::process, serial, path))) {
        return false;
    }
    const std::uint64_t key = make_key(Watched::socket, serial, path);
    const bool done = handshake.watched ? wait_set_.change(handshake.socket(), key)
                                        : wait_set_.watch(handshake.socket(), key);
    if (!done) {
        if (process.valid()) wait_set_.unwatch(process.get());
        return false;
    }
    handshake.watched = true;
    return true;
}

void Meeting::expire_handshakes() {
    for (auto at = handshakes_.begin(); at != handshakes_.end();) {
        const auto here = at++;
        Handshake& handshake = here->second;
        if (handshake.deadline.is_never()) handshake.deadline = now_ + config_.handshake_timeout;
        if (now_ >= handshake.deadline) {
            fail_handshake(here,
                           {Status::timeout,
                            "shm: " +
                                (handshake.accepted() ? "process " + std::to_string(handshake.pid())
                                                      : handshake.target()) +
                                " did not answer the greeting in time; see whether it is "
                                "stopped"});
        } else if (now_ >= handshake.retry) {
            run_handshake(here->first);
        }
    }
}

// ---------------------------------------------------------------- peers that come

void Meeting::accept_peers() {
    for (int i = 0; i < accepts_per_service; ++i) {
        Descriptor socket(system_, system_.accept(rendezvous_->listening_socket()));
        if (socket.valid() && is_programs(socket.get())) {
            say_short_of_descriptors();
            const Farewell refusal =
                make_refusal(Refusal::resources, "it keeps its last descriptors for itself");
            send_message(system_, socket.get(), std::as_bytes(std::span(&refusal, 1)));
        } else if (socket.valid()) {
            short_of_descriptors_ = false;
            admit(std::move(socket));
        } else if (!accept_failed(errno)) {
            return;
        }
    }
}

void Meeting::admit(Descriptor socket) {
    auto newcomer = Handshake::accept(system_, std::move(socket));
    if (!newcomer) return reports_.tell(newcomer.error().text);
    if (is_crowded(newcomer->pid())) return reports_.tell(turn_away_one_of_many(*newcomer).text);
    drop_oldest_handshake();
    begin_handshake(std::move(*newcomer));
}

/// True when process `pid` has as many paths to us as one may have.
bool Meeting::is_crowded(std::int32_t pid) const {
    if (pid <= 0) return false;  // of another pid namespace: cannot be told apart
    const auto counts = [pid](const auto& channel) {
        return channel != nullptr && channel->peer_info.accepted && channel->peer_info.pid == pid;
    };
    return std::ranges::count_if(channels_.all(), counts) >= config_.paths_per_process_max;
}

/// Who greets at once, as our kind does, is never among the waiting; so a flood of silent
/// connections displaces but itself.
void Meeting::drop_oldest_handshake() {
    std::size_t count = 0;
    auto oldest = handshakes_.end();
    for (auto at = handshakes_.begin(); at != handshakes_.end(); ++at) {
        if (!at->second.accepted()) continue;
        if (count++ == 0) oldest = at;  // identifiers ascend
    }
    if (count < config_.handshakes_max) return;
    fail_handshake(oldest, no_room("too many connect and do not greet"));
}

/// The kernel gives out the lowest number that is free: a high one means that few are left, and
/// those are for the program's own files.
bool Meeting::is_programs(int descriptor) const {
    constexpr int programs_share = 16;
    const int all = system_.descriptors_max();
    return descriptor >= all - all / programs_share;
}

void Meeting::say_short_of_descriptors() {
    if (std::exchange(short_of_descriptors_, true)) return;
    reports_.tell(
        "shm: peers are turned away: no more descriptors; raise the limit on open files (ulimit "
        "-n)");
}

/// Returns true when it makes sense to accept the next one at once.
bool Meeting::accept_failed(int error) {
    if (error == EAGAIN) return false;
    if (error == EINTR || error == ECONNABORTED) return true;
    if (error == EMFILE || error == ENFILE) {
        say_short_of_descriptors();
        error = turn_one_away();
        if (error == 0) return true;
        if (error == EAGAIN) return false;
    } else {
        reports_.tell(failure("cannot accept a peer for now (accept4)", error).error().text);
    }
    pause_accepting();
    return false;
}

/// Uses the descriptor in reserve to tell one peer that there is none for it. errno, or 0.
int Meeting::turn_one_away() {
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

bool Meeting::watch_listener() {
    return wait_set_.watch(rendezvous_->listening_socket(), make_key(Watched::listener, 0, 0));
}

/// Otherwise the peer that waits would keep our wait handle readable, to no avail.
void Meeting::pause_accepting() {
    wait_set_.unwatch(rendezvous_->listening_socket());
    accept_deadline_ = now_ + accept_pause;
}

void Meeting::resume_accepting() {
    if (!reserve_.valid()) reserve_ = Descriptor(system_, rendezvous_->duplicate_descriptor());
    accept_deadline_ = now_ + accept_pause;
    if (!reserve_.valid()) return;
    if (watch_listener()) accept_deadline_ = Time::never();
}

}  // namespace via::device::shm
