#include "device/shm/rendezvous.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/un.h>

#include <algorithm>
#include <cstring>

#include "device/shm/hello.hpp"

namespace via::device::shm {

namespace {

constexpr int backlog = 1024;
constexpr int attempts_max = 8;

std::unexpected<Failure> refuse(Status status, std::string text) {
    return std::unexpected(Failure{status, std::move(text)});
}

}  // namespace

Outcome<Folder> Rendezvous::enter(System& system, const std::string& directory, const Host& host) {
    auto folder = Folder::open(system, directory);
    if (!folder || host.name.empty()) return folder;
    if (auto claimed = folder->claim(host.name); !claimed) return std::unexpected(claimed.error());
    return folder;
}

Outcome<std::unique_ptr<Rendezvous>> Rendezvous::open(System& system, const std::string& directory,
                                                      std::uint64_t key, const Host& host) {
    auto folder = enter(system, directory, host);
    if (!folder) return std::unexpected(folder.error());
    std::unique_ptr<Rendezvous> self(new Rendezvous(std::move(*folder), host, key));
    self->remove_leftovers();
    if (auto opened = self->open_socket(); !opened) return std::unexpected(opened.error());
    return self;
}

bool Rendezvous::is_known() const {
    // By the path: a folder that is gone, or covered by another file system, is nobody's way to us.
    if (system_.faccessat(AT_FDCWD, place_.c_str()) == 0) return true;
    return errno != ENOENT && errno != ENOTDIR;
}

Outcome<void> Rendezvous::make_known(const std::string& directory) {
    auto folder = enter(system_, directory, host_);
    if (!folder) return std::unexpected(folder.error());
    folder_ = std::move(*folder);
    if (auto opened = open_socket(); !opened) return opened;
    return make_links();
}

Outcome<void> Rendezvous::make_links() {
    Outcome<void> all;
    for (const auto& [link, count] : listening_) {
        bool exists = false;
        folder_.read_nic(link, &exists);
        if (exists) continue;
        if (auto taken = take_name(link); !taken) all = std::move(taken);
    }
    return all;
}

Rendezvous::~Rendezvous() {
    // While the socket listens nobody takes us for dead, so links that lead to us stay ours.
    for (const auto& [link, count] : listening_) {
        if (folder_.read_nic(link) == name_) folder_.remove(link);
    }
    if (!name_.empty()) folder_.remove(name_);
}

int Rendezvous::bind_and_listen(const std::string& temporary) {
    const std::string path = folder_.socket_path(temporary);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (path.size() >= sizeof address.sun_path) return ENAMETOOLONG;
    std::memcpy(address.sun_path, path.data(), path.size());
    const auto* generic = reinterpret_cast<const sockaddr*>(&address);
    if (system_.bind(socket_.get(), generic, sizeof address) < 0) return errno;
    // Whatever the umask of the program: a socket that may not be written to lets nobody connect.
    if (system_.fchmodat(folder_.descriptor(), temporary.c_str(), 0600) == 0 &&
        system_.listen(socket_.get(), backlog) == 0)
        return 0;
    const int error = errno;
    folder_.remove(temporary);
    return error;
}

Outcome<void> Rendezvous::open_socket() {
    const std::string name = make_nic_name(system_.getpid(), key_);
    // A bound socket that does not listen yet looks dead, so it gets its real name afterwards.
    const std::string temporary = "new" + name.substr(3);
    socket_ = Descriptor(system_, system_.socket());
    if (!socket_.valid()) return failure("cannot make a socket (socket)", errno);
    if (const int error = bind_and_listen(temporary)) {
        return failure(
            "cannot listen in the directory " + folder_.path() + " (bind, fchmodat, listen)",
            error);
    }
    if (system_.rename_new(folder_.descriptor(), temporary.c_str(), name.c_str()) < 0) {
        const int error = errno;
        folder_.remove(temporary);
        return failure("cannot name our socket " + name + " in the directory " + folder_.path() +
                           " (renameat2)",
                       error);
    }
    name_ = name;
    place_ = folder_.path() + "/" + name_;
    return {};
}

/// Our port of another loopback address, as `shm:NAME` has one.
bool Rendezvous::is_here(const HostAddress& address) const {
    const HostAddress& ours = host_.address;
    return address.length == 6 && ours.length == 6 && address.bytes[0] == 127 &&
           std::equal(address.bytes.begin() + 4, address.bytes.begin() + 6, ours.bytes.begin() + 4);
}

std::string Rendezvous::find(const Discriminator& discriminator) const {
    return folder_.read_nic(link_name(discriminator));
}

Outcome<std::string> Rendezvous::find(const NetAddress& remote) const {
    if (remote.host == host_.address) return find(remote.discriminator);
    const auto folder = folder_.beside(remote.host);
    // Of a host of this machine nobody is there yet, but may come.
    if (!folder && folder.error().status == Status::not_reachable && is_here(remote.host))
        return std::string();
    if (!folder) return std::unexpected(folder.error());
    return folder->read_nic(link_name(remote.discriminator));
}

Outcome<bool> Rendezvous::knows(const HostAddress& address, const std::string& name) const {
    int found = 0;
    if (address == host_.address) {
        found = folder_.has(name);
    } else {
        const auto folder = folder_.beside(address);
        if (!folder && folder.error().status == Status::not_reachable) return false;
        if (!folder) return std::unexpected(folder.error());
        found = folder->has(name);
    }
    if (found < 0)
        return failure("cannot look for " + name + " in its directory (faccessat)", errno);
    return found == 1;
}

Outcome<Folder::Reach> Rendezvous::connect(int socket, const HostAddress& address,
                                           const std::string& name) const {
    if (address == host_.address) return folder_.connect(socket, name);
    const auto folder = folder_.beside(address);
    if (!folder) return std::unexpected(folder.error());
    return folder->connect(socket, name);
}

bool Rendezvous::lock_directory() const {
    // Held for a few calls only; but its holder may be stopped, so we do not wait for it.
    for (int attempt = 0; attempt < 64; ++attempt) {
        if (system_.flock(folder_.descriptor(), LOCK_EX | LOCK_NB) == 0) return true;
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
    if (folder_.read_nic(link, &exists) == target && exists &&
        (target.empty() || folder_.is_dead(target))) {
        removed = folder_.remove(link);
    }
    system_.flock(folder_.descriptor(), LOCK_UN);
    return removed;
}

Outcome<void> Rendezvous::take_name(const std::string& link) {
    for (int attempt = 0; attempt < attempts_max; ++attempt) {
        if (system_.symlinkat(name_.c_str(), folder_.descriptor(), link.c_str()) == 0) return {};
        if (errno != EEXIST)
            return failure("cannot announce a listener in " + folder_.path() + " (symlinkat)",
                           errno);
        const std::string owner = folder_.read_nic(link);
        if (owner == name_) return {};
        if (!owner.empty() && !folder_.is_dead(owner)) {
            return refuse(Status::error_resource,
                          "shm: " + owner +
                              " listens to this discriminator already; choose "
                              "another one or end that process");
        }
        remove_dead_link(link, owner);
    }
    return refuse(Status::error_resource,
                  "shm: cannot take over the dead listener " + link + " in " + folder_.path() +
                      ": the directory stays locked or changes all the time; look for a stopped "
                      "process that holds it, or remove the link");
}

Outcome<void> Rendezvous::listen(const Discriminator& discriminator) {
    const std::string link = link_name(discriminator);
    const auto entry = listening_.try_emplace(link, 0U).first;  // first what needs memory
    if (entry->second == 0) {
        if (auto taken = take_name(link); !taken) {
            listening_.erase(entry);
            return taken;
        }
    }
    ++entry->second;
    return {};
}

void Rendezvous::unlisten(const Discriminator& discriminator) {
    const auto found = listening_.find(link_name(discriminator));
    if (found == listening_.end() || --found->second > 0) return;
    if (folder_.read_nic(found->first) == name_) folder_.remove(found->first);
    listening_.erase(found);
}

void Rendezvous::remove_leftovers() {
    // Cleaning up is a courtesy: what cannot be seen or removed now is left to the next opener.
    std::map<std::string, bool, std::less<>> dead;
    folder_.list([&](std::string_view entry) {
        consider_leftover(entry, dead);
        return true;
    });
}

void Rendezvous::consider_leftover(std::string_view entry,
                                   std::map<std::string, bool, std::less<>>& dead) {
    const auto check = [&](const std::string& name) {
        const auto [at, fresh] = dead.try_emplace(name, false);
        if (fresh) at->second = folder_.looks_dead(name);
        return at->second;
    };
    const std::string name(entry);
    int pid = 0;
    if (entry.starts_with("d-")) {
        const std::string target = folder_.read_nic(name);
        if (!target.empty() && check(target)) remove_dead_link(name, target);
    } else if (entry.starts_with("new-")) {
        // One that is being bound does not listen yet, and its process may have no number here
        // (another pid namespace).
        if (parse_nic_name("nic" + name.substr(3), pid) && system_.kill(pid, 0) < 0 &&
            errno == ESRCH && folder_.is_old(name)) {
            folder_.remove(name);
        }
    } else if (parse_nic_name(name, pid) && check(name)) {
        folder_.remove(name);
    }
}

}  // namespace via::device::shm
