#include "support/host.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "support/must.hpp"

namespace system_test {

namespace {

namespace fs = std::filesystem;

/// Without pipes that an exec would inherit: VIA opens and receives nothing of the kind, but the
/// sanitizers open one for a moment to see whether an object can be read.
std::size_t count_descriptors(const std::string& process) {
    constexpr unsigned long closes_on_exec = O_CLOEXEC;
    std::size_t count = 0;
    std::error_code gone;
    for (const auto& descriptor : fs::directory_iterator(process + "/fd", gone)) {
        const std::string name = descriptor.path().filename();
        const fs::path what = fs::read_symlink(descriptor.path(), gone);
        if (gone) continue;
        if (what.string().starts_with("pipe:")) {
            std::istringstream fields(read_file(process + "/fdinfo/" + name));
            std::string skipped;
            unsigned long flags = 0;
            fields >> skipped >> skipped >> skipped >> std::oct >> flags;  // "pos: N flags: N"
            if ((flags & closes_on_exec) == 0) continue;
        }
        ++count;
    }
    return count;
}

/// One that ended may be listed for a moment after somebody has joined it: the kernel's flag says
/// so before that.
std::size_t count_threads(const std::string& process) {
    constexpr unsigned long is_exiting = 0x4;  // PF_EXITING
    std::size_t count = 0;
    std::error_code gone;
    for (const auto& thread : fs::directory_iterator(process + "/task", gone)) {
        const std::string line = read_file(thread.path() / "stat");
        const std::size_t name_end = line.rfind(')');
        if (name_end == line.npos) continue;
        std::istringstream fields(line.substr(name_end + 1));
        std::string skipped;  // state, parent, group, session, terminal, its group
        for (int n = 0; n < 6; ++n) fields >> skipped;
        unsigned long flags = 0;
        if (fields >> flags && (flags & is_exiting) == 0) ++count;
    }
    return count;
}

}  // namespace

Host::Host() {
    path_ = (fs::temp_directory_path() / "via-system-XXXXXX").string();
    require_call(mkdtemp(path_.data()) != nullptr, "mkdtemp");
    if (const char* before = getenv("XDG_RUNTIME_DIR")) {
        before_ = before;
        was_set_ = true;
    }
    setenv("XDG_RUNTIME_DIR", path_.c_str(), 1);
}

Host::~Host() {
    if (was_set_) setenv("XDG_RUNTIME_DIR", before_.c_str(), 1);
    if (!was_set_) unsetenv("XDG_RUNTIME_DIR");
    std::error_code ignored;
    fs::remove_all(path_, ignored);
}

std::string door_of_this_host(const std::string& door) {
    const char* directory = getenv("XDG_RUNTIME_DIR");
    return door + " of " + (directory == nullptr ? "all" : fs::path(directory).filename().string());
}

std::uint32_t loopback_host(pid_t test, std::uint32_t which) {
    constexpr pid_t processes_max = 1 << 22;
    require(test < processes_max && which < 4, "numbers of processes have 22 bits");
    return (127U << 24) + static_cast<std::uint32_t>(test) * 4 + which;
}

std::string text_of_host(std::uint32_t host) {
    const in_addr address{htonl(host)};
    char text[INET_ADDRSTRLEN];
    return inet_ntop(AF_INET, &address, text, sizeof text);
}

std::string own_loopback_address() { return text_of_host(loopback_host(getpid(), 0)); }

std::vector<std::string> Host::entries() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::recursive_directory_iterator(path_)) {
        if (fs::is_directory(entry.symlink_status())) continue;
        const fs::path name =
            fs::relative(entry.path().parent_path(), path_) / entry.path().filename();
        if (!entry.path().filename().string().starts_with("udp-")) {
            names.push_back(name);
            continue;
        }
        // Leads to what other users may see, in /dev/shm; to nowhere since the last NIC was closed.
        std::error_code gone;
        for (const auto& shared : fs::directory_iterator(entry.path(), gone))
            names.push_back(name / shared.path().filename());
    }
    std::sort(names.begin(), names.end());
    return names;
}

std::string Host::meeting_place() const {
    for (const auto& entry : fs::recursive_directory_iterator(path_))
        if (entry.path().filename() == "shm-127.0.0.1-9741" &&
            fs::is_directory(entry.symlink_status()))
            return entry.path().string();
    fail("no NIC was ever open below " + path_);
}

std::string Host::met() const {
    std::string text;
    for (const auto& entry : fs::directory_iterator(meeting_place()))
        text += (text.empty() ? "" : " ") + entry.path().filename().string();
    return text;
}

void Host::reclaim() const {
    for (const auto& entry : fs::recursive_directory_iterator(path_)) {
        if (!entry.path().filename().string().starts_with("new-")) continue;
        const timespec long_ago[] = {{.tv_sec = 0, .tv_nsec = 0}, {.tv_sec = 0, .tv_nsec = 0}};
        require_call(utimensat(AT_FDCWD, entry.path().c_str(), long_ago, AT_SYMLINK_NOFOLLOW) == 0,
                     "utimensat");
    }
    VIP_NIC_HANDLE nic = nullptr;
    OK(VipOpenNic("shm", &nic));
    OK(VipCloseNic(nic));
}

Holdings Holdings::of(pid_t pid) {
    const std::string process = "/proc/" + std::to_string(pid);
    Holdings holdings;
    holdings.descriptors = count_descriptors(process);
    holdings.threads = count_threads(process);
    std::istringstream maps(read_file(process + "/maps"));
    for (std::string line; std::getline(maps, line);)
        if (line.find("via-channel") != line.npos) ++holdings.mappings;
    holdings.rss_kib = static_cast<std::size_t>(read_number(process + "/status", "VmRSS"));
    return holdings;
}

Holdings Holdings::now() {
    Holdings holdings = of(getpid());
    --holdings.descriptors;  // the listing's own
    return holdings;
}

std::string Holdings::text() const {
    return std::to_string(descriptors) + " descriptors, " + std::to_string(threads) + " threads, " +
           std::to_string(mappings) + " channel mappings, " + std::to_string(rss_kib) + " KiB";
}

std::string read_file(const std::string& path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
}

long read_number(const std::string& path, const std::string& field) {
    std::istringstream lines(read_file(path));
    for (std::string line; std::getline(lines, line);)
        if (line.starts_with(field + ":")) return std::stol(line.substr(field.size() + 1));
    fail("no line " + field + " in " + path);
}

double processor_seconds() {
    timespec used{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    return static_cast<double>(used.tv_sec) + static_cast<double>(used.tv_nsec) / 1e9;
}

}  // namespace system_test
