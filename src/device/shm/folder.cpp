#include "device/shm/folder.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/un.h>
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <span>

#include "device/shm/hello.hpp"

namespace via::device::shm {

namespace {

constexpr const char* host_link = "name";
constexpr std::size_t host_name_max = 64;
constexpr int open_flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;

bool fill_address(const std::string& path, sockaddr_un& address) {
    address = {};
    address.sun_family = AF_UNIX;
    if (path.size() >= sizeof address.sun_path) return false;
    std::memcpy(address.sun_path, path.data(), path.size());
    return true;
}

Failure gone() { return {Status::not_reachable, {}}; }

}  // namespace

Outcome<Folder> Folder::open(System& system, std::string path) {
    Folder folder(system, std::move(path), -1);
    folder.descriptor_ =
        Descriptor(system, system.openat(AT_FDCWD, folder.path_.c_str(), open_flags));
    if (!folder.descriptor_.valid()) {
        return failure("cannot open the directory " + folder.path_ + " (openat)", errno);
    }
    if (auto checked = folder.check(); !checked) return std::unexpected(checked.error());
    return folder;
}

Outcome<Folder> Folder::beside(const HostAddress& address) const {
    const std::string name = folder_name(address);
    if (name.empty()) return std::unexpected(gone());
    Folder folder(*system_, path_.substr(0, path_.rfind('/') + 1) + name,
                  system_->openat(descriptor(), ("../" + name).c_str(), open_flags));
    if (!folder.descriptor_.valid()) {
        if (errno == ENOENT) return std::unexpected(gone());
        return failure("cannot open the directory " + folder.path_ + " (openat)", errno);
    }
    if (auto checked = folder.check(); !checked) return std::unexpected(checked.error());
    return folder;
}

Outcome<void> Folder::check() const {
    struct stat status;
    if (system_->fstat(descriptor(), &status) < 0) {
        return failure("cannot look at the directory " + path_ + " (fstat)", errno);
    }
    if (status.st_uid == system_->geteuid() && (status.st_mode & 077) == 0) return {};
    return std::unexpected(
        Failure{Status::error_resource,
                "shm: the directory " + path_ +
                    " belongs to another user or lets others in; remove it, or chown it to "
                    "yourself and chmod it to 0700"});
}

int Folder::has(const std::string& entry) const {
    if (system_->faccessat(descriptor(), entry.c_str()) == 0) return 1;
    return errno == ENOENT ? 0 : -1;
}

bool Folder::is_old(const std::string& entry) const {
    constexpr time_t making_max_s = 60;
    struct stat status{};
    return system_->lstatat(descriptor(), entry.c_str(), &status) == 0 &&
           ::time(nullptr) - status.st_mtim.tv_sec > making_max_s;
}

bool Folder::remove(const std::string& entry) const {
    if (system_->unlinkat(descriptor(), entry.c_str()) == 0) return true;
    return errno != ENOENT && system_->unlinkat(descriptor(), entry.c_str()) == 0;
}

std::string Folder::read_nic(const std::string& link, bool* exists) const {
    char target[nic_name_max + 1];
    const ssize_t length = system_->readlinkat(descriptor(), link.c_str(), target, sizeof target);
    if (exists != nullptr) *exists = length >= 0;
    int pid;
    if (length <= 0 || !parse_nic_name({target, static_cast<std::size_t>(length)}, pid)) return {};
    return {target, static_cast<std::size_t>(length)};
}

std::string Folder::host() const {
    char name[host_name_max];
    const ssize_t length = system_->readlinkat(descriptor(), host_link, name, sizeof name);
    if (length <= 0 || static_cast<std::size_t>(length) == sizeof name) return {};
    // It is shown to people, and another process's word.
    for (char& letter : std::span(name, static_cast<std::size_t>(length)))
        if (letter <= ' ' || letter > '~') letter = '?';
    return {name, static_cast<std::size_t>(length)};
}

Outcome<void> Folder::claim(const std::string& name) const {
    if (system_->symlinkat(name.c_str(), descriptor(), host_link) == 0) return {};
    if (errno != EEXIST)
        return failure("cannot note the host's name in " + path_ + " (symlinkat)", errno);
    const std::string other = host();
    if (other == name) return {};
    return std::unexpected(
        Failure{Status::error_resource, "shm: the host names \"" + name + "\" and \"" + other +
                                            "\" lead to the same NIC address (" + path_ +
                                            "); choose another one, or remove that directory if "
                                            "nobody uses the other name any more"});
}

void Folder::list(const std::function<bool(std::string_view)>& take) const {
    // A descriptor of its own: reading moves its position.
    Descriptor listing(*system_, system_->openat(descriptor(), ".", open_flags));
    if (!listing.valid()) return;
    alignas(8) char buffer[4096];
    for (;;) {
        const ssize_t length = system_->getdents(listing.get(), buffer, sizeof buffer);
        if (length <= 0) return;
        for (ssize_t at = 0; at < length;) {
            const auto* entry = reinterpret_cast<const dirent64*>(buffer + at);
            if (!take(entry->d_name)) return;
            at += entry->d_reclen;
        }
    }
}

// Reaching a NIC ----------------------------------------------------------------------------------

std::string Folder::socket_path(const std::string& name) const {
    std::string path = path_ + "/" + name;
    if (path.size() < sizeof(sockaddr_un::sun_path)) return path;
    return "/proc/self/fd/" + std::to_string(descriptor()) + "/" + name;
}

Folder::Reach Folder::connect(int socket, const std::string& name) const {
    sockaddr_un address;
    if (!fill_address(socket_path(name), address)) {
        errno = ENAMETOOLONG;
        return Reach::failed;
    }
    const auto* generic = reinterpret_cast<const sockaddr*>(&address);
    while (system_->connect(socket, generic, sizeof address) < 0) {
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

bool Folder::looks_dead(const std::string& name) const {
    int pid = 0;
    if (!parse_nic_name(name, pid)) return false;
    const bool doubtful = (system_->kill(pid, 0) < 0 && errno == ESRCH) || has(name) == 0;
    return doubtful && is_dead(name);
}

bool Folder::is_dead(const std::string& name) const {
    Descriptor socket(*system_, system_->socket());
    if (!socket.valid()) return false;
    const Reach reach = connect(socket.get(), name);
    if (reach != Reach::connected) return reach == Reach::gone;
    // A forked child may still hold the socket of an owner that has ended.
    ucred owner{};
    socklen_t length = sizeof owner;
    if (system_->getsockopt(socket.get(), SOL_SOCKET, SO_PEERCRED, &owner, &length) < 0)
        return false;
    return owner.pid > 0 && process_ended(owner.pid);
}

bool Folder::process_ended(pid_t pid) const {
    Descriptor process(*system_, system_->pidfd_open(pid));
    if (!process.valid()) return errno == ESRCH;
    return system_->poll_input(process.get()) > 0;
}

// Names of folders --------------------------------------------------------------------------------

std::string folder_name(const HostAddress& address) {
    if (address.length != 6) return {};
    const auto& b = address.bytes;
    char name[40];
    std::snprintf(name, sizeof name, "shm-%u.%u.%u.%u-%u", b[0], b[1], b[2], b[3],
                  b[4] * 256U + b[5]);
    return name;
}

bool parse_folder_name(const std::string& name, HostAddress& address) {
    unsigned b[4];
    unsigned port = 0;
    if (std::sscanf(name.c_str(), "shm-%3u.%3u.%3u.%3u-%5u", &b[0], &b[1], &b[2], &b[3], &port) !=
        5)
        return false;
    address = {};
    address.length = 6;
    for (std::size_t n = 0; n < 4; ++n) address.bytes[n] = static_cast<std::uint8_t>(b[n]);
    address.bytes[4] = static_cast<std::uint8_t>(port >> 8);
    address.bytes[5] = static_cast<std::uint8_t>(port);
    return folder_name(address) == name;  // nothing but our own spelling
}

std::vector<Host> present_hosts(System& system, const std::string& directory) {
    std::vector<Host> hosts;
    const auto parent = Folder::open(system, directory);
    if (!parent) return hosts;
    parent->list([&](std::string_view entry) {
        HostAddress address;
        if (!parse_folder_name(std::string(entry), address)) return true;
        const auto folder = Folder::open(system, directory + "/" + std::string(entry));
        if (!folder) return true;
        bool lives = false;
        folder->list([&](std::string_view name) {
            int pid = 0;
            lives = parse_nic_name(name, pid) && !folder->looks_dead(std::string(name));
            return !lives;
        });
        if (lives) hosts.push_back({address, folder->host()});
        return true;
    });
    std::sort(hosts.begin(), hosts.end(),
              [](const Host& a, const Host& b) { return a.address.bytes < b.address.bytes; });
    return hosts;
}

std::optional<Host> find_host(System& system, const std::string& directory,
                              const HostAddress& address) {
    const std::string name = folder_name(address);
    if (name.empty()) return {};
    const auto folder = Folder::open(system, directory + "/" + name);
    if (!folder) return {};
    return Host{address, folder->host()};
}

}  // namespace via::device::shm
