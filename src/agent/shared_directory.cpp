#include "agent/shared_directory.hpp"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <filesystem>

#include "agent/directory.hpp"
#include "agent/file.hpp"
#include "agent/process.hpp"
#include "posix/not_cancelled.hpp"

namespace via::agent {

namespace {

constexpr mode_t shared_mode = 0711;
constexpr const char* random_end = "-XXXXXX";

/// Everybody may make names there, and nobody but their owner and the system take them away.
bool is_common(const std::string& place) {
    struct stat status;
    return lstat(place.c_str(), &status) == 0 && S_ISDIR(status.st_mode) &&
           (status.st_uid == 0 || status.st_uid == geteuid()) && (status.st_mode & 01000) != 0 &&
           access(place.c_str(), W_OK | X_OK | R_OK) == 0;
}

std::string why_not_common(const std::string& place) {
    struct stat status;
    if (lstat(place.c_str(), &status) < 0) return std::string("lstat: ") + strerror(errno);
    if (!S_ISDIR(status.st_mode)) return "it is not a directory";
    if (status.st_uid != 0 && status.st_uid != geteuid())
        return "it belongs to " + owner_text(status.st_uid);
    if ((status.st_mode & 01000) == 0) return "everybody may remove names there (no sticky bit)";
    return access(place.c_str(), W_OK | X_OK | R_OK) < 0 ? std::string("access: ") + strerror(errno)
                                                         : std::string("it changed just now");
}

bool is_shared_by_us(const std::string& path) {
    struct stat status;
    return lstat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode) &&
           status.st_uid == geteuid() && (status.st_mode & 07777) == shared_mode;
}

/// Where the link leads, if we made it: what is there may be gone, or somebody else's by now.
std::string link_target(const std::string& link, const std::string& begin) {
    char target[PATH_MAX];
    const ssize_t length = readlink(link.c_str(), target, sizeof target);
    std::string path(target, length < 0 ? 0 : static_cast<std::size_t>(length));
    return path.starts_with(begin) ? path : std::string();
}

/// Of processes that were killed, or of hosts (network namespaces) that are gone: nothing in it is
/// locked any more. One that was made just now may be about to be used.
bool is_left_over(const std::string& path) {
    constexpr time_t young_seconds = 60;
    struct stat status;
    if (!is_shared_by_us(path) || lstat(path.c_str(), &status) < 0 ||
        status.st_mtime > time(nullptr) - young_seconds)
        return false;
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator(path, error)) {
        if (!entry.is_regular_file(error) || entry.is_symlink(error)) continue;
        constexpr int flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
        const File file(open(entry.path().c_str(), flags));
        struct flock lock{};
        lock.l_type = F_RDLCK;
        if (fcntl(file.get(), F_OFD_GETLK, &lock) < 0 || lock.l_type != F_UNLCK) return false;
    }
    return !error;
}

/// A courtesy; everybody may make names there, so only some are looked at.
void remove_left_over(const std::string& place) {
    constexpr int names_max = 16'384;
    int names = 0;
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator(place, error)) {
        if (++names > names_max) return;
        const std::string path = entry.path();
        if (path.starts_with(place + "/openvia-") && is_left_over(path))
            std::filesystem::remove_all(path, error);
    }
}

/// So that two processes of ours make one. Held for a few calls; who has it may be stopped, or hold
/// it for ever. False: it cannot be had.
bool lock_for_a_moment(int directory) {
    constexpr timespec pause{0, 1'000'000};
    constexpr int tries_max = 500;
    for (int tries = 0; tries < tries_max; ++tries) {
        if (flock(directory, LOCK_EX | LOCK_NB) == 0) return true;
        if (errno != EWOULDBLOCK && errno != EINTR) return false;
        clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, nullptr);
    }
    errno = EWOULDBLOCK;
    return false;
}

/// Where it is; empty and errno, and the call that was refused in `call`: it cannot be made.
std::string make_linked_directory(const std::string& link, const std::string& begin,
                                  const char*& call) {
    remove_left_over(begin.substr(0, begin.rfind('/')));
    std::string path = begin + random_end;
    call = "mkdtemp";
    if (mkdtemp(path.data()) == nullptr) return {};
    call = "chmod";
    if (chmod(path.c_str(), shared_mode) == 0) {
        // Leads to one that is gone; or is a folder from when there was no place, which stays if
        // somebody is in it.
        if (unlink(link.c_str()) < 0 && errno == EISDIR) rmdir(link.c_str());
        call = "symlink";
        if (symlink(path.c_str(), link.c_str()) == 0) return path;
    }
    const int error = errno;
    rmdir(path.c_str());
    errno = error;
    return {};
}

}  // namespace

std::expected<SharedDirectory, std::string> shared_directory(const std::string& parent,
                                                             const std::string& name,
                                                             const std::string& place) {
    const auto host = host_folder();
    if (!host) return std::unexpected(host.error());
    const std::string begin = place + "/openvia-" + *host + "-" + name;
    const std::string link = parent + "/" + name;
    std::string target = link_target(link, begin);
    if (is_common(place) && is_shared_by_us(target)) return SharedDirectory{target, true};
    const posix::NotCancelled whole;
    File lock(open(parent.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (lock.valid() && !lock_for_a_moment(lock.get()))
        return std::unexpected("cannot lock " + parent + " (flock): " + strerror(errno) +
                               "; end the process of yours that keeps it locked, or let it go on");
    target = link_target(link, begin);
    if (is_common(place)) {
        const char* call = nullptr;
        std::string path =
            is_shared_by_us(target) ? target : make_linked_directory(link, begin, call);
        if (!path.empty()) return SharedDirectory{path, true};
        if (errno != EEXIST)
            return std::unexpected("cannot make a directory in " + place + " for " + link + " (" +
                                   call + "): " + strerror(errno));
    } else if (!target.empty()) {
        // From when there was a place. Two halves of a user's NICs would not find each other.
        if (is_shared_by_us(target) && !is_left_over(target))
            return std::unexpected("other NICs of yours use " + target + ", but " + place +
                                   " cannot be used from here: " + why_not_common(place) +
                                   "; change that, or close them");
        if (unlink(link.c_str()) < 0 && errno != ENOENT)
            return std::unexpected("cannot remove our own link " + link +
                                   " (unlink): " + strerror(errno));
    }
    lock.reset();
    log(2, "other users' NICs are not found: no common place %s", place.c_str());
    const auto own = sub_directory(parent, name);
    if (!own) return std::unexpected(own.error());
    return SharedDirectory{*own, false};
}

}  // namespace via::agent
