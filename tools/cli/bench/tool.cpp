#include "bench/tool.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "bench/clock.hpp"

namespace via::bench {

namespace {

constexpr std::size_t shown_bytes = 200;

// A file of no name that holds `text`, to be read from its beginning.
Result<FileHandle> file_of(std::string_view text) {
    FileHandle file(::memfd_create("input", MFD_CLOEXEC));
    if (!file) return fail_errno("memfd_create");
    while (!text.empty()) {
        const ssize_t put = ::write(file.get(), text.data(), text.size());
        if (put < 0) return fail_errno("write");
        text.remove_prefix(static_cast<std::size_t>(put));
    }
    if (::lseek(file.get(), 0, SEEK_SET) < 0) return fail_errno("lseek");
    return file;
}

}  // namespace

std::string shown(std::string_view text) {
    std::string line;
    for (const char c : text) {
        const bool blank = c <= ' ' || c > '~';
        if (blank && (line.empty() || line.back() == ' ')) continue;
        line += blank ? ' ' : c;
        if (line.size() == shown_bytes) break;
    }
    return line;
}

Result<std::string> find_program(const std::string& name, std::string_view package,
                                 std::string_view setup) {
    const char* path = std::getenv("PATH");
    std::string_view folders = path == nullptr ? "/usr/bin" : path;
    while (!folders.empty()) {
        const std::size_t length = std::min(folders.find(':'), folders.size());
        const std::string file = fmt::format("{}/{}", folders.substr(0, length), name);
        if (::access(file.c_str(), X_OK) == 0) return file;
        folders.remove_prefix(std::min(length + 1, folders.size()));
    }
    return fail("there is no program {}: install Debian's package {} ('{}' does)", name, package,
                setup);
}

Tool::~Tool() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    (void)wait();
}

Status Tool::start(std::vector<std::string> arguments, const std::vector<std::string>& settings,
                   std::string_view input) {
    auto given = file_of(input);
    if (!given) return std::unexpected(given.error());
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) < 0) return fail_errno("pipe2");
    output_ = FileHandle(ends[0]);
    const FileHandle theirs(ends[1]);
    const pid_t parent = ::getpid();
    pid_ = ::fork();
    if (pid_ < 0) return fail_errno("fork");
    if (pid_ == 0) become(arguments, settings, given->get(), theirs.get(), parent);
    return {};
}

void Tool::become(std::vector<std::string>& arguments, const std::vector<std::string>& settings,
                  int input, int output, pid_t parent) {
    std::vector<char*> pointers;
    for (std::string& argument : arguments) pointers.push_back(argument.data());
    pointers.push_back(nullptr);
    for (const std::string& setting : settings) {
        const std::size_t at = setting.find('=');
        if (at == std::string::npos)
            ::unsetenv(setting.c_str());
        else
            ::setenv(setting.substr(0, at).c_str(), setting.substr(at + 1).c_str(), 1);
    }
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(127);
    ::dup2(input, STDIN_FILENO);
    ::dup2(output, STDOUT_FILENO);
    ::dup2(output, STDERR_FILENO);
    ::execv(pointers[0], pointers.data());
    ::_exit(127);
}

bool Tool::has_ended() const {
    pollfd polled{output_.get(), 0, 0};
    return ::poll(&polled, 1, 0) > 0;
}

Result<std::string> Tool::finish(std::int64_t patience_ns, std::size_t most_bytes) {
    std::string text;
    const std::int64_t deadline_ns = now_ns() + patience_ns;
    for (;;) {
        const std::int64_t left_ms = (deadline_ns - now_ns()) / 1'000'000;
        pollfd polled{output_.get(), POLLIN, 0};
        if (left_ms <= 0 || text.size() > most_bytes) {
            return fail("{} did not come to an end: {}", name_, shown(text));
        }
        if (::poll(&polled, 1, static_cast<int>(left_ms)) <= 0) continue;
        std::array<char, 4096> part{};
        const ssize_t got = ::read(output_.get(), part.data(), part.size());
        if (got <= 0) break;
        text.append(part.data(), static_cast<std::size_t>(got));
    }
    const int status = wait();
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return text;
    return fail("{} failed: {}", name_, shown(text));
}

// The kernel tells of a thread: nanoseconds on a processor, and waiting for one.
Tool::Load Tool::load() const {
    const auto read = [](const std::filesystem::path& folder) {
        std::ifstream file(folder / "schedstat");
        std::array<std::int64_t, 2> told{};
        file >> told[0] >> told[1];
        return told;
    };
    const std::filesystem::path folder = fmt::format("/proc/{}", pid_);
    const auto [first_ns, delay_ns] = read(folder);
    Load load{delay_ns, first_ns, -first_ns};
    std::error_code error;
    for (const auto& thread : std::filesystem::directory_iterator(folder / "task", error)) {
        load.others_ns += read(thread.path())[0];
    }
    return load;
}

void Tool::watch() { from_ = load(); }

int Tool::wait() {
    const auto again = [](auto&& call) {
        while (call() < 0 && errno == EINTR) {
        }
    };
    // Ended, it is still there to be looked at until somebody has waited for it.
    siginfo_t ended{};
    again([&] { return ::waitid(P_PID, static_cast<id_t>(pid_), &ended, WEXITED | WNOWAIT); });
    const Load until = load();
    int status = 0;
    rusage used{};
    again([&] { return ::wait4(pid_, &status, 0, &used); });
    pid_ = -1;
    const auto all_ns = nanoseconds(used.ru_utime) + nanoseconds(used.ru_stime);
    const auto others_ns = all_ns - until.first_ns - from_.others_ns;
    lost_ns_ = std::max<std::int64_t>(
        until.delay_ns - from_.delay_ns - std::max<std::int64_t>(others_ns, 0), 0);
    return status;
}

}  // namespace via::bench
