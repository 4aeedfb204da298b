// The part of ShmDevice in which peers are found and let in.

#include <algorithm>
#include <cerrno>
#include <utility>

#include "device/shm/message.hpp"
#include "device/shm/shm_device.hpp"
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

// ---------------------------------------------------------------- names

/// A cleaner of temporary files, or the end of a login, may take our names away while we live.
void ShmDevice::look_at_names() {
    names_look_ = now_ + names_interval;
    if (!rendezvous_->is_known()) return make_known();
    if (auto made = rendezvous_->make_links(); !made) report(made.error().text);
}

void ShmDevice::make_known() {
    std::string directory = config_.directory;
    if (config_.directory_again) {
        auto again = config_.directory_again();
        if (!again) return report("shm: our names are gone, and " + again.error());
        directory = std::move(*again);
    }
    accept_peers();  // who came to the old socket
    const bool watched = accept_deadline_.is_never();
    if (watched) unwatch(rendezvous_->listening_socket());
    const auto made = rendezvous_->make_known(directory);
    if (watched &&
        !watch(rendezvous_->listening_socket(), make_key(Watched::listener, 0, 0), EPOLL_CTL_ADD))
        accept_deadline_ = now_ + accept_pause;
    report(made ? "shm: our names were taken away; others find us in " + directory + " again"
                : made.error().text);
}

Status ShmDevice::listen(const Discriminator& discriminator) {
    if (!rendezvous_->is_known()) make_known();
    const auto listening = rendezvous_->listen(discriminator);
    if (listening) return Status::success;
    report(listening.error().text);
    return listening.error().status;
}

void ShmDevice::unlisten(const Discriminator& discriminator) {
    rendezvous_->unlisten(discriminator);
}

void ShmDevice::push_unresolved(std::uint64_t cookie, Status status) {
    push_event({PathEventKind::unresolved, 0, status, cookie});
}

Channel* ShmDevice::find_channel(const HostAddress& address, const std::string& name) const {
    for (const auto& channel : table_) {
        if (channel != nullptr && channel->state != Channel::State::ended && !channel->departing &&
            channel->peer_info.name == name && channel->peer_info.address == address) {
            return channel.get();
        }
    }
    return nullptr;
}

void ShmDevice::resolve(const NetAddress& remote, std::uint64_t cookie) {
    if (!rendezvous_->is_known()) make_known();  // whom we come to looks for our name
    const auto found = rendezvous_->find(remote);
    if (!found) {
        report(found.error().text);
        return push_unresolved(cookie, found.error().status);
    }
    const std::string& target = *found;
    if (target.empty()) return push_unresolved(cookie, Status::no_match);
    if (const Channel* channel = find_channel(remote.host, target)) {
        push_event({PathEventKind::resolved, channel->path, Status::success, cookie});
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
        report(handshake.error().text);
        return push_unresolved(cookie, handshake.error().status);
    }
    handshake->cookies.push_back(cookie);
    const std::uint32_t id = ++serial_;
    handshakes_.emplace(id, std::move(*handshake));
    may_have_deadline_ = true;
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
    // Once more: others that came when it did may have got their paths since.
    if (handshake.accepted() && is_crowded(handshake.pid()))
        return fail_handshake(at, turn_away_one_of_many(handshake));
    if (free_paths_.empty() && table_.size() >= config_.paths_max) {
        if (handshake.accepted()) handshake.refuse(Refusal::resources, "too many paths");
        return fail_handshake(at, no_room("there are too many paths; raise paths_max"));
    }
    const PathId path =
        free_paths_.empty() ? static_cast<PathId>(table_.size()) : free_paths_.back();
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
    auto channel =
        std::make_unique<Channel>(path, std::move(handshake.introduction()), config_.one_copy);
    channel->serial = serial_;
    if (handshake.accepted()) push_event({PathEventKind::up, path});
    for (const std::uint64_t cookie : handshake.cookies) {
        push_event({PathEventKind::resolved, path, Status::success, cookie});
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

void ShmDevice::accept_peers() {
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

void ShmDevice::admit(Descriptor socket) {
    auto newcomer = Handshake::accept(system_, std::move(socket));
    if (!newcomer) return report(newcomer.error().text);
    if (is_crowded(newcomer->pid())) return report(turn_away_one_of_many(*newcomer).text);
    drop_oldest_handshake();
    const std::uint32_t id = ++serial_;
    handshakes_.emplace(id, std::move(*newcomer));
    may_have_deadline_ = true;
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

/// The kernel gives out the lowest number that is free: a high one means that few are left, and
/// those are for the program's own files.
bool ShmDevice::is_programs(int descriptor) const {
    constexpr int programs_share = 16;
    const int all = system_.descriptors_max();
    return descriptor >= all - all / programs_share;
}

void ShmDevice::say_short_of_descriptors() {
    if (std::exchange(short_of_descriptors_, true)) return;
    report(
        "shm: peers are turned away: no more descriptors; raise the limit on open files (ulimit "
        "-n)");
}

/// Returns true when it makes sense to accept the next one at once.
bool ShmDevice::accept_failed(int error) {
    if (error == EAGAIN) return false;
    if (error == EINTR || error == ECONNABORTED) return true;
    if (error == EMFILE || error == ENFILE) {
        say_short_of_descriptors();
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
    if (watch(rendezvous_->listening_socket(), make_key(Watched::listener, 0, 0), EPOLL_CTL_ADD)) {
        accept_deadline_ = Time::never();
    }
}

}  // namespace via::device::shm
