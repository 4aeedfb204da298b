#include "agent/base_directory.hpp"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>

#include <algorithm>

#include "agent/process.hpp"

namespace via::agent {

namespace {

constexpr const char* folder_name = "/openvia";

File open_own(const std::string& base) {
    constexpr int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
    File file(open(base.c_str(), flags));
    struct stat status;
    if (file.valid() && (fstat(file.get(), &status) < 0 || status.st_uid != geteuid())) return {};
    return file;
}

bool somebody_holds(const std::string& base) {
    const File file = open_own(base);
    return file.valid() && flock(file.get(), LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK;
}

/// Made by the system at login, and removed by it after the last logout.
bool is_login_directory(const std::string& path) {
    struct stat status;
    return lstat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode) &&
           status.st_uid == geteuid() && (status.st_mode & 0777) == 0700;
}

/// In which NICs may be: at least one.
std::vector<std::string> standard_bases(const StandardPlaces& places) {
    const std::string user = std::to_string(geteuid());
    std::vector<std::string> bases;
    if (is_login_directory(places.runtime + user))
        bases.push_back(places.runtime + user + folder_name);
    bases.push_back(places.fallback + user);
    return bases;
}

/// What XDG_RUNTIME_DIR says, if it counts; empty: it does not. What may be different the next time
/// is an error: all of a user's processes must come to the same answer.
std::expected<std::string, std::string> wanted_base() {
    const char* runtime = secure_getenv("XDG_RUNTIME_DIR");
    if (runtime == nullptr || *runtime == '\0') return std::string();
    const char* why = nullptr;
    struct stat status;
    if (*runtime != '/') {
        why = "it is not absolute";
    } else if (stat(runtime, &status) < 0) {
        if (errno != ENOENT && errno != ENOTDIR && errno != EACCES)
            return std::unexpected("cannot look at XDG_RUNTIME_DIR, " + std::string(runtime) +
                                   " (stat): " + strerror(errno));
        why = strerror(errno);
    } else if (!S_ISDIR(status.st_mode)) {
        why = "it is not a directory";
    } else if (status.st_uid != geteuid()) {
        why = "it belongs to another user";
    } else if ((status.st_mode & 022) != 0) {
        why = "others can write to it";
    }
    if (why == nullptr) return std::string(runtime) + folder_name;
    log(2, "XDG_RUNTIME_DIR (%s) is not used: %s", runtime, why);
    return std::string();
}

}  // namespace

std::expected<std::string, std::string> base_directory(const StandardPlaces& places) {
    const auto wanted = wanted_base();
    if (!wanted) return wanted;
    const std::vector<std::string> bases = standard_bases(places);
    if (!wanted->empty() && *wanted != bases.front()) return wanted;
    if (!somebody_holds(bases.front()))
        for (const std::string& base : bases)
            if (base != bases.front() && somebody_holds(base)) return base;
    return bases.front();
}

File hold_directory(const std::string& base) {
    constexpr timespec pause{0, 1'000'000};
    constexpr int tries_max = 50;  // who looks whether it is held has it for a moment
    File file = open_own(base);
    for (int tries = 0; file.valid() && tries < tries_max; ++tries) {
        if (flock(file.get(), LOCK_SH | LOCK_NB) == 0) return file;
        clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, nullptr);
    }
    log(2, "cannot hold %s (flock): %s; a cleaner of temporary files may remove what is in it",
        base.c_str(), strerror(errno));
    return {};
}

std::vector<std::string> other_bases(const std::string& base, const StandardPlaces& places) {
    std::vector<std::string> others = standard_bases(places);
    std::erase_if(
        others, [&](const std::string& other) { return other == base || !somebody_holds(other); });
    return others;
}

}  // namespace via::agent
