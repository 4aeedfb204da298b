#include "agent/directory.hpp"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include <string_view>
#include <vector>

#include "agent/base_directory.hpp"
#include "agent/file.hpp"
#include "agent/process.hpp"

namespace via::agent {

namespace {

constexpr std::size_t boot_digits = 8;
constexpr int folders_below_host = 1;

using Failure = std::unexpected<std::string>;

Failure failure(const std::string& what, int error) {
    std::string text = what + ": " + strerror(error);
    switch (error) {
        case EMFILE:
            text += "; raise the limit on open files (ulimit -n)";
            break;
        case ENOSPC:
        case EDQUOT:
            text += "; free some space there";
            break;
        case EACCES:
        case EPERM:
        case EROFS:
        case ENOENT:
            text += "; set XDG_RUNTIME_DIR to a directory of yours that can be written";
            break;
        default:
            break;
    }
    return Failure(text);
}

/// Why `status` is not a directory of ours alone; empty: it is.
std::string objection(const struct stat& status) {
    if (S_ISLNK(status.st_mode)) return "is a symbolic link; remove it";
    if (!S_ISDIR(status.st_mode)) return "is not a directory; remove it";
    if (status.st_uid != geteuid())
        return "belongs to " + owner_text(status.st_uid) + ", not to user " +
               std::to_string(geteuid()) + "; have it removed, or set XDG_RUNTIME_DIR to a " +
               "directory of your own";
    const unsigned mode = status.st_mode & 0777;
    if ((mode & 077) != 0 || (mode & 0700) != 0700) {
        char octal[8];
        snprintf(octal, sizeof octal, "%04o", mode);
        return std::string("has mode ") + octal +
               ((mode & 077) != 0 ? ", so that others can enter it"
                                  : ", so that we cannot use it") +
               "; make it 0700 (chmod 700)";
    }
    return {};
}

/// Makes and checks a directory; a descriptor of it for names within, not for reading.
/// `path` is its name in messages.
std::expected<File, std::string> open_private(int parent, const char* name,
                                              const std::string& path) {
    if (mkdirat(parent, name, 0700) == 0) {
        // Whatever the umask of the program: all later ones would be refused.
        if (fchmodat(parent, name, 0700, 0) < 0)
            return failure("cannot set the mode of the directory " + path + " (fchmodat)", errno);
    } else if (errno != EEXIST) {
        return failure("cannot make the directory " + path + " (mkdir)", errno);
    }
    File file(openat(parent, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    const int error = errno;
    struct stat status;
    const bool seen = file.valid() ? fstat(file.get(), &status) == 0
                                   : fstatat(parent, name, &status, AT_SYMLINK_NOFOLLOW) == 0;
    if (seen) {
        if (const std::string why = objection(status); !why.empty())
            return Failure("the directory " + path + " " + why);
    }
    if (!file.valid()) return failure("cannot open the directory " + path + " (openat)", error);
    if (!seen) return failure("cannot look at the directory " + path + " (fstat)", errno);
    return file;
}

bool is_hexadecimal(std::string_view text) {
    return text.find_first_not_of("0123456789abcdef") == text.npos;
}

bool is_host_folder(std::string_view name) {
    if (name.size() < boot_digits + 2 || name.size() > boot_digits + 1 + 20) return false;
    return is_hexadecimal(name.substr(0, boot_digits)) && name[boot_digits] == '-' &&
           name.find_first_not_of("0123456789", boot_digits + 1) == name.npos;
}

std::vector<std::string> entries_of(int directory) {
    std::vector<std::string> names;
    const int readable = openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (readable < 0) return names;
    DIR* stream = fdopendir(readable);
    if (stream == nullptr) {
        close(readable);
        return names;
    }
    while (const dirent* entry = readdir(stream)) {
        const std::string_view name = entry->d_name;
        if (name != "." && name != "..") names.emplace_back(name);
    }
    closedir(stream);
    return names;
}

/// Seconds since 1970 at which this machine started.
time_t boot_time() {
    timespec now{};
    timespec running{};
    clock_gettime(CLOCK_REALTIME, &now);
    clock_gettime(CLOCK_BOOTTIME, &running);
    return now.tv_sec - running.tv_sec;
}

/// Our own directory called `name`; invalid if it is anything else. Never follows a link.
File open_own(int parent, const std::string& name, struct stat& status) {
    File file(openat(parent, name.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!file.valid() || fstat(file.get(), &status) < 0 || status.st_uid != geteuid()) return {};
    return file;
}

/// Removes a directory of ours with what we put into such. 0, or errno of what hindered it.
int remove_folder(int parent, const std::string& name, int levels_below) {
    struct stat status;
    {
        const File folder = open_own(parent, name, status);
        if (!folder.valid()) return EPERM;
        for (const std::string& entry : entries_of(folder.get())) {
            if (fstatat(folder.get(), entry.c_str(), &status, AT_SYMLINK_NOFOLLOW) < 0) continue;
            const mode_t mode = status.st_mode;
            if (S_ISDIR(mode) && levels_below > 0) {
                if (const int error = remove_folder(folder.get(), entry, levels_below - 1))
                    return error;
            } else if (S_ISREG(mode) || S_ISSOCK(mode) || S_ISLNK(mode)) {
                if (unlinkat(folder.get(), entry.c_str(), 0) < 0 && errno != ENOENT) return errno;
            }
        }
    }
    return unlinkat(parent, name.c_str(), AT_REMOVEDIR) == 0 || errno == ENOENT ? 0 : errno;
}

std::size_t remove_old_hosts(int directory, const std::string& path, const std::string& current) {
    const time_t boot = boot_time();
    const std::string_view own_boot = std::string_view(current).substr(0, boot_digits + 1);
    std::size_t removed = 0;
    for (const std::string& name : entries_of(directory)) {
        if (!is_host_folder(name) || name.starts_with(own_boot)) continue;
        struct stat status;
        // Another boot that changed it since we started runs now, elsewhere, on a shared disk.
        if (!open_own(directory, name, status).valid() || status.st_mtim.tv_sec >= boot) continue;
        const int error = remove_folder(directory, name, folders_below_host);
        if (error == 0) {
            ++removed;
        } else {
            log(1, "cannot remove %s/%s, left by an earlier boot (unlinkat): %s", path.c_str(),
                name.c_str(), strerror(error));
        }
    }
    return removed;
}

}  // namespace

std::string owner_text(uid_t user) {
    // What the kernel says of owners whom a user namespace has no number for, unless set otherwise.
    constexpr uid_t nobody = 65534;
    std::string text = "user " + std::to_string(user);
    char map[64] = "";
    const File file(open("/proc/self/uid_map", O_RDONLY | O_CLOEXEC));
    const ssize_t length = file.valid() ? read(file.get(), map, sizeof map - 1) : 0;
    unsigned inside = 0;
    unsigned outside = 0;
    unsigned count = 0;
    const bool all_known = length <= 0 || sscanf(map, "%u %u %u", &inside, &outside, &count) != 3 ||
                           (inside == 0 && outside == 0 && count == ~0U);
    if (user == nobody && !all_known)
        text += " (perhaps one that this user namespace does not know: see its uid_map)";
    return text;
}

std::expected<std::string, std::string> private_directory(const std::string& path) {
    const auto opened = open_private(AT_FDCWD, path.c_str(), path);
    if (!opened) return std::unexpected(opened.error());
    return path;
}

std::expected<std::string, std::string> host_folder() {
    const File boot(open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC));
    char digits[boot_digits];
    const ssize_t got = boot.valid() ? read(boot.get(), digits, sizeof digits) : -1;
    if (got < 0)
        return Failure(
            std::string("cannot read the boot id (open /proc/sys/kernel/random/boot_id): ") +
            strerror(errno) + "; mount /proc, and without subset=pid (systemd: ProcSubset=all)");
    if (got != sizeof digits || !is_hexadecimal({digits, sizeof digits}))
        return Failure("no boot id is in /proc/sys/kernel/random/boot_id");
    // Of this thread: a program may enter another namespace with one thread only.
    struct stat network;
    if (stat("/proc/thread-self/ns/net", &network) < 0)
        return Failure(
            std::string("cannot tell the network namespace (stat /proc/thread-self/ns/net): ") +
            strerror(errno));
    return std::string(digits, sizeof digits) + "-" + std::to_string(network.st_ino);
}

std::size_t remove_old_hosts(const std::string& directory) {
    const File file(open(directory.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    const auto current = host_folder();
    return file.valid() && current ? remove_old_hosts(file.get(), directory, *current) : 0;
}

std::expected<std::string, std::string> host_directory() {
    const auto host = host_folder();
    if (!host) return host;
    const auto base = base_directory();
    if (!base) return base;
    const auto opened = open_private(AT_FDCWD, base->c_str(), *base);
    if (!opened) return std::unexpected(opened.error());
    remove_old_hosts(opened->get(), *base, *host);
    std::string path = *base + "/" + *host;
    const auto made = open_private(opened->get(), host->c_str(), path);
    if (!made) return std::unexpected(made.error());
    return path;
}

std::expected<std::string, std::string> sub_directory(const std::string& parent,
                                                      const std::string& name) {
    if (name.empty() || name == "." || name == ".." || name.find('/') != name.npos ||
        name.find('\0') != name.npos || name.size() > NAME_MAX)
        return Failure("\"" + name + "\" cannot be the name of a folder; use letters and digits");
    const auto opened = open_private(AT_FDCWD, parent.c_str(), parent);
    if (!opened) return std::unexpected(opened.error());
    std::string path = parent + "/" + name;
    const auto made = open_private(opened->get(), name.c_str(), path);
    if (!made) return std::unexpected(made.error());
    return path;
}

}  // namespace via::agent
