#include "device/shm/rendezvous.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/un.h>
#include <cstring>

#include "device/shm/hello.hpp"

namespace via::device::shm {

namespace {

constexpr int backlog = 1024;
constexpr int attempts_max = 8;

std::unexpected<Failure> refuse(Status status, std::string text) {
    return std::unexpected(Failure{status, std::move(text)});
}

bool fill_address(const std::string& path, sockaddr_un& address) {
    address = {};
    address.sun_family = AF_UNIX;
    if (path.size() >= sizeof address.sun_path) return false;
    std::memcpy(address.sun_path, path.data(), path.size());
    return true;
}

const sockaddr* generic(const sockaddr_un& address) {
    return reinterpret_cast<const sockaddr*>(&address);
}

}  // namespace

std::string link_name(const Discriminator& discriminator) {
    constexpr const char* digits = "0123456789abcdef";
    std::string name = "d-";
    for (std::size_t i = 0; i < discriminator.length; ++i) {
        name += digits[discriminator.bytes[i] >> 4];
        name += digits[discriminator.bytes[i] & 15];
    }
    return name;
}

Outcome<std::unique_ptr<Rendezvous>> Rendezvous::open(System& system, const std::string& directory,
                                                      std::uint64_t key) {
    std::unique_ptr<Rendezvous> self(new Rendezvous(system, directory));
    if (auto opened = self->open_directory(); !opened) return std::unexpected(opened.error());
    self->remove_leftovers();
    if (auto opened = self->open_socket(key); !opened) return std::unexpected(opened.error());
    return self;
}

Rendezvous::~Rendezvous() {
    // While the socket listens nobody takes us for dead, so links that lead to us stay ours.
    for (const auto& [link, count] : listening_) {
        if (read_link(link) == name_) remove(link);
    }
    if (!name_.empty()) remove(name_);
}

/// One more try for what an interruption or a lack of memory prevented; what stays nevertheless is
/// removed by a later opener.
bool Rendezvous::remove(const std::string& entry) const {
    if (system_.unlinkat(directory_.get(), entry.c_str()) == 0) return true;
    return errno != ENOENT && system_.unlinkat(directory_.get(), entry.c_str()) == 0;
}

Outcome<void> Rendezvous::open_directory() {
    directory_ = Descriptor(
        system_, system_.open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!directory_.valid()) return failure("cannot open the directory " + path_, errno);
    struct stat status;
    if (system_.fstat(directory_.get(), &status) < 0) {
        return failure("cannot look at the directory " + path_, errno);
    }
    if (status.st_uid != system_.geteuid() || (status.st_mode & 077) != 0) {
        return refuse(Status::error_resource,
                      "shm: the directory " + path_ +
                          " belongs to another user or lets others in; remove it, or chown it to "
                          "yourself and chmod it to 0700");
    }
    return {};
}

std::string Rendezvous::socket_path(const std::string& name) const {
    std::string path = path_ + "/" + name;
    if (path.size() < sizeof(sockaddr_un::sun_path)) return path;
    return "/proc/self/fd/" + std::to_string(directory_.get()) + "/" + name;
}

int Rendezvous::bind_and_listen(const std::string& temporary) {
    sockaddr_un address;
    if (!fill_address(socket_path(temporary), address)) return ENAMETOOLONG;
    if (system_.bind(socket_.get(), generic(address), sizeof address) < 0) return errno;
    if (system_.listen(socket_.get(), backlog) == 0) return 0;
    const int error = errno;
    remove(temporary);
    return error;
}

Outcome<void> Rendezvous::open_socket(std::uint64_t key) {
    const std::string name = make_nic_name(system_.getpid(), key);
    // A bound socket that does not listen yet looks dead, so it gets its real name afterwards.
    const std::string temporary = "new" + name.substr(3);
    socket_ = Descriptor(system_, system_.socket());
    if (!socket_.valid()) return failure("cannot make a socket", errno);
    if (const int error = bind_and_listen(temporary)) {
        return failure("cannot listen in the directory " + path_, error);
    }
    if (system_.rename_new(directory_.get(), temporary.c_str(), name.c_str()) < 0) {
        const int error = errno;
        remove(temporary);
        return failure("cannot name our socket " + name + " in the directory " + path_, error);
    }
    name_ = name;
    return {};
}

std::string Rendezvous::read_link(const std::string& link, bool* exists) const {
    char target[nic_name_max + 1];
    const ssize_t length =
        system_.readlinkat(directory_.get(), link.c_str(), target, sizeof target);
    if (exists != nullptr) *exists = length >= 0;
    int pid;
    if (length <= 0 || !parse_nic_name({target, static_cast<std::size_t>(length)}, pid)) return {};
    return {target, static_cast<std::size_t>(length)};
}

std::string Rendezvous::find(const Discriminator& discriminator) const {
    return read_link(link_name(discriminator));
}

Rendezvous::Reach Rendezvous::connect(int socket, const std::string& name) const {
    sockaddr_un address;
    if (!fill_address(socket_path(name), address)) {
        errno = ENAMETOOLONG;
        return Reach::failed;
    }
    while (system_.connect(socket, generic(address), sizeof address) < 0) {
        switch (errno) {
            case EINTR:
                continue;
            case EISCONN:
                return Reach::connected;
            case EAGAIN:
                return Reach::busy;
            case ECONNREFUSED:
            case ENOENT:
                return Reach::gone;
            default:
                return Reach::failed;
        }
    }
    return Reach::connected;
}

bool Rendezvous::process_ended(pid_t pid) const {
    Descriptor process(system_, system_.pidfd_open(pid));
    if (!process.valid()) return errno == ESRCH;
    return system_.poll_input(process.get()) > 0;
}

bool Rendezvous::is_dead(const std::string& name) const {
    Descriptor socket(system_, system_.socket());
    if (!socket.valid()) return false;
    const Reach reach = connect(socket.get(), name);
    if (reach != Reach::connected) return reach == Reach::gone;
    // A forked child may still hold the socket of an owner that has ended.
    ucred owner{};
    socklen_t length = sizeof owner;
    if (system_.getsockopt(socket.get(), SOL_SOCKET, SO_PEERCRED, &owner, &length) < 0)
        return false;
    return owner.pid > 0 && process_ended(owner.pid);
}

bool Rendezvous::lock_directory() const {
    // Held for a few calls only; but its holder may be stopped, so we do not wait for it.
    for (int attempt = 0; attempt < 64; ++attempt) {
        if (system_.flock(directory_.get(), LOCK_EX | LOCK_NB) == 0) return true;
        if (errno != EWOULDBLOCK && errno != EINTR) return false;
        system_.yield();
    }
    return false;
}

/// Removes `link` if it still leads to `target` and `target` is dead (or empty: malformed).
bool Rendezvous::remove_dead_link(const std::string& link, const std::string& target) {
    if (!lock_directory()) return false;
    bool removed = false;
    bool exists = false;
    if (read_link(link, &exists) == target && exists && (target.empty() || is_dead(target))) {
        removed = remove(link);
    }
    system_.flock(directory_.get(), LOCK_UN);
    return removed;
}

Outcome<void> Rendezvous::take_name(const std::string& link) {
    for (int attempt = 0; attempt < attempts_max; ++attempt) {
        if (system_.symlinkat(name_.c_str(), directory_.get(), link.c_str()) == 0) return {};
        if (errno != EEXIST) return failure("cannot announce a listener in " + path_, errno);
        const std::string owner = read_link(link);
        if (owner == name_) return {};
        if (!owner.empty() && !is_dead(owner)) {
            return refuse(Status::error_resource,
                          "shm: " + owner +
                              " listens to this discriminator already; choose "
                              "another one or end that process");
        }
        remove_dead_link(link, owner);
    }
    return refuse(Status::error_resource,
                  "shm: cannot take over the dead listener " + link + " in " + path_ +
                      ": the directory stays locked or changes all the time; look for a stopped "
                      "process that holds it, or remove the link");
}

Outcome<void> Rendezvous::listen(const Discriminator& discriminator) {
    const std::string link = link_name(discriminator);
    if (const auto found = listening_.find(link); found != listening_.end()) {
        ++found->second;
        return {};
    }
    if (auto taken = take_name(link); !taken) return taken;
    listening_.emplace(link, 1);
    return {};
}

void Rendezvous::unlisten(const Discriminator& discriminator) {
    const auto found = listening_.find(link_name(discriminator));
    if (found == listening_.end() || --found->second > 0) return;
    if (read_link(found->first) == name_) remove(found->first);
    listening_.erase(found);
}

void Rendezvous::remove_leftovers() {
    // A descriptor of its own: reading moves its position.
    Descriptor listing(system_, system_.open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!listing.valid()) return;  // cleaning up is a courtesy; the next opener does it
    std::map<std::string, bool, std::less<>> dead;
    alignas(8) char buffer[4096];
    for (;;) {
        const ssize_t length = system_.getdents(listing.get(), buffer, sizeof buffer);
        if (length <= 0) return;
        for (ssize_t at = 0; at < length;) {
            const auto* entry = reinterpret_cast<const dirent64*>(buffer + at);
            consider_leftover(entry->d_name, dead);
            at += entry->d_reclen;
        }
    }
}

void Rendezvous::consider_leftover(std::string_view entry,
                                   std::map<std::string, bool, std::less<>>& dead) {
    const auto check = [&](const std::string& name) {
        const auto [at, fresh] = dead.try_emplace(name, false);
        int pid = 0;
        // Most owners live: ask the process table first and do not bother their sockets.
        if (fresh && parse_nic_name(name, pid)) {
            const bool doubtful =
                (system_.kill(pid, 0) < 0 && errno == ESRCH) ||
                (system_.faccessat(directory_.get(), name.c_str()) < 0 && errno == ENOENT);
            at->second = doubtful && is_dead(name);
        }
        return at->second;
    };
    const std::string name(entry);
    int pid = 0;
    if (entry.starts_with("d-")) {
        const std::string target = read_link(name);
        if (!target.empty() && check(target)) remove_dead_link(name, target);
    } else if (entry.starts_with("new-")) {
        if (parse_nic_name("nic" + name.substr(3), pid) && system_.kill(pid, 0) < 0 &&
            errno == ESRCH) {
            remove(name);
        }
    } else if (parse_nic_name(name, pid) && check(name)) {
        remove(name);
    }
}

}  // namespace via::device::shm
