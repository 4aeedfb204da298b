#include "bench_server.hpp"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include <fmt/format.h>

namespace via::viad {

namespace {

/// In the child, which may do only what a signal handler may.
[[noreturn]] void become(const char* program, const char* address, pid_t parent) {
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent) _exit(0);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, nullptr);
    execl(program, program, "bench", "serve", "--address", address, nullptr);
    _exit(127);
}

}  // namespace

std::expected<std::unique_ptr<BenchServer>, std::string> BenchServer::start(
    const std::string& address) {
    std::error_code error;
    const auto own = std::filesystem::read_symlink("/proc/self/exe", error);
    if (error) return std::unexpected("/proc/self/exe: " + error.message());
    const std::string program = own.parent_path() / "via";
    if (access(program.c_str(), X_OK) != 0)
        return std::unexpected(fmt::format("{}: {}", program, std::strerror(errno)));
    const pid_t parent = getpid();
    const pid_t pid = fork();
    if (pid < 0) return std::unexpected(fmt::format("fork: {}", std::strerror(errno)));
    if (pid == 0) become(program.c_str(), address.c_str(), parent);
    return std::unique_ptr<BenchServer>(new BenchServer(pid));
}

BenchServer::~BenchServer() {
    if (pid_ == 0) return;
    kill(pid_, SIGTERM);
    while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
    }
}

std::optional<std::string> BenchServer::ended() {
    int status = 0;
    if (pid_ == 0 || waitpid(pid_, &status, WNOHANG) != pid_) return std::nullopt;
    pid_ = 0;
    return WIFSIGNALED(status) ? fmt::format("by signal {}", WTERMSIG(status))
                               : fmt::format("with exit code {}", WEXITSTATUS(status));
}

}  // namespace via::viad
