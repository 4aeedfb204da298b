#include "support/pressure.hpp"

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/swap.h>
#include <sys/sysinfo.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <vector>

#include "support/host.hpp"
#include "support/must.hpp"

namespace system_test {

namespace {

namespace fs = std::filesystem;

constexpr std::size_t page = 4096;

std::string error_text(const std::string& what) { return what + ": " + strerror(errno); }

bool write_file(const std::string& path, const std::string& text) {
    const int file = open(path.c_str(), O_WRONLY | O_CLOEXEC);
    if (file < 0) return false;
    const bool written = write(file, text.data(), text.size()) == static_cast<ssize_t>(text.size());
    const int error = errno;
    close(file);
    errno = error;
    return written;
}

/// Where a memory group might be made, the top of each hierarchy first: below our own group we
/// would have to change that.
struct Hierarchy {
    std::string directory;
    bool is_first_version;
};
std::vector<Hierarchy> hierarchies() {
    std::vector<Hierarchy> found;
    std::istringstream mounts(read_file("/proc/self/mounts"));
    for (std::string line; std::getline(mounts, line);) {
        std::istringstream words(line);
        std::string device;
        std::string directory;
        std::string type;
        std::string options;
        words >> device >> directory >> type >> options;
        const bool first = type == "cgroup" && ("," + options + ",").find(",memory,") != line.npos;
        if (!first && type != "cgroup2") continue;
        found.push_back({directory, first});
        // A container may see the top and have no right to it, but to its own.
        std::istringstream own(read_file("/proc/self/cgroup"));
        for (std::string entry; std::getline(own, entry);) {
            const bool mine =
                first ? entry.find(":memory:") != entry.npos : entry.starts_with("0::");
            const std::string path = entry.substr(entry.rfind(':') + 1);
            if (mine && path != "/") found.push_back({directory + path, first});
        }
    }
    return found;
}

/// A header as mkswap writes it, at the end of which all pages are free.
void write_header(std::byte* at, std::size_t bytes) {
    const std::uint32_t version_and_last_page[] = {1, static_cast<std::uint32_t>(bytes / page - 1)};
    std::memcpy(at + 1024, version_and_last_page, sizeof version_and_last_page);
    std::memcpy(at + page - 10, "SWAPSPACE2", 10);
}

/// No holes: the kernel wants none.
bool write_swap_file(int file, std::size_t bytes) {
    std::vector<std::byte> block(1U << 20);
    write_header(block.data(), bytes);
    for (std::size_t done = 0; done < bytes; done += block.size()) {
        if (write(file, block.data(), block.size()) != static_cast<ssize_t>(block.size()))
            return false;
        if (done == 0) std::fill(block.begin(), block.end(), std::byte{0});
    }
    return fsync(file) == 0;
}

// Documentation/admin-guide/mm/pagemap.rst
constexpr std::uint64_t present = 1ULL << 63;
constexpr std::uint64_t swapped = 1ULL << 62;
constexpr std::uint64_t frame_mask = (1ULL << 55) - 1;

std::vector<std::uint64_t> page_table(pid_t pid, std::uint64_t address, std::size_t bytes) {
    std::vector<std::uint64_t> entries(bytes / page);
    const std::string path = "/proc/" + std::to_string(pid) + "/pagemap";
    const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    require_call(file >= 0, "opening " + path);
    const std::size_t length = entries.size() * sizeof(std::uint64_t);
    const ssize_t got = pread(file, entries.data(), length,
                              static_cast<off_t>(address / page * sizeof(std::uint64_t)));
    close(file);
    require_call(got == static_cast<ssize_t>(length), "reading " + path);
    return entries;
}

}  // namespace

Pressure::Pressure(std::size_t memory, std::size_t swap) {
    const std::string number = std::to_string(getpid());
    for (const Hierarchy& hierarchy : hierarchies())
        groups_.push_back(
            {hierarchy.directory + "/via-pressure-" + number, hierarchy.is_first_version});
    for (const std::string& directory : {std::string("/var/tmp"), fs::current_path().string()})
        swap_files_.push_back(directory + "/via-swap-" + number);
    start_guardian();
    why_not_ = make_group(memory, swap != 0);
    if (why_not_.empty()) why_not_ = make_swap(swap);
}

Pressure::~Pressure() {
    shutdown(guardian_, SHUT_WR);
    char end = 0;
    if (read(guardian_, &end, 1) < 0) perror("the guardian of swap and control group");
    close(guardian_);
}

/// Before there is anything to guard. It is nobody's child, so that nobody kills it with the test.
void Pressure::start_guardian() {
    int ends[2];
    require_call(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0, "socketpair");
    const pid_t child = fork();
    require_call(child >= 0, "fork");
    if (child == 0) {
        close(ends[0]);
        if (fork() == 0) guard(ends[1]);
        _exit(0);
    }
    close(ends[1]);
    guardian_ = ends[0];
    waitpid(child, nullptr, 0);
}

/// Waits for the test's end, and takes away what there is.
void Pressure::guard(int socket) const {
    setsid();
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, nullptr);
    char end = 0;
    while (read(socket, &end, 1) < 0 && errno == EINTR) continue;
    // First the group's processes must end: what they have swapped out goes back to the group, and
    // there is no room.
    for (const Group& group : groups_)
        for (int tries = 0; rmdir(group.path.c_str()) < 0 && errno == EBUSY && tries < 1000;
             ++tries)
            usleep(10'000);
    for (const std::string& file : swap_files_) {
        // EINVAL: it was not swapped to.
        if (swapoff(file.c_str()) < 0 && errno != ENOENT && errno != EINVAL && errno != EPERM)
            perror(file.c_str());
        unlink(file.c_str());
    }
    _exit(0);
}

std::string Pressure::make_group(std::size_t memory, bool swaps) {
    std::string why = "there is no hierarchy of control groups with memory";
    for (const Group& group : groups_) {
        if (mkdir(group.path.c_str(), 0755) < 0) {
            why = error_text("cannot make " + group.path);
            continue;
        }
        const bool first = group.is_first_version;
        const std::string limit = group.path + (first ? "/memory.limit_in_bytes" : "/memory.max");
        if (write_file(limit, std::to_string(memory))) {
            // Anonymous memory as readily as files; where that cannot be said, so be it.
            if (first) write_file(group.path + "/memory.swappiness", swaps ? "100" : "0");
            if (!first && !swaps) write_file(group.path + "/memory.swap.max", "0");
            group_ = group.path;
            return {};
        }
        why = error_text("cannot write " + limit);
        rmdir(group.path.c_str());
    }
    return why;
}

std::string Pressure::make_swap(std::size_t bytes) {
    struct sysinfo system{};
    if (sysinfo(&system) == 0 && system.freeswap * system.mem_unit >= bytes) return {};
    std::string why;
    for (const std::string& path : swap_files_) {
        const int file = open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        const bool written = file >= 0 && write_swap_file(file, bytes);
        if (written && swapon(path.c_str(), 0) == 0) {
            close(file);
            return {};
        }
        why = error_text("cannot swap to " + path);
        if (file >= 0) close(file);
        unlink(path.c_str());
    }
    return why;
}

void Pressure::enclose(pid_t pid) const {
    require_call(write_file(group_ + "/cgroup.procs", std::to_string(pid)),
                 "moving a process to " + group_);
}

PageCensus census(pid_t pid, std::uint64_t address, std::size_t bytes) {
    PageCensus census;
    for (const std::uint64_t entry : page_table(pid, address, bytes)) {
        census.present += (entry & present) != 0;
        census.swapped += (entry & swapped) != 0;
    }
    return census;
}

std::vector<std::uint64_t> frames(std::uint64_t address, std::size_t bytes) {
    std::vector<std::uint64_t> numbers = page_table(getpid(), address, bytes);
    for (std::uint64_t& entry : numbers) {
        require((entry & present) != 0, "the page is there");
        entry &= frame_mask;
        if (entry == 0) return {};
    }
    return numbers;
}

}  // namespace system_test
