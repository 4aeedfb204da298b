#include "bench/child_process.hpp"

#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <fstream>
#include <vector>

#include "bench/clock.hpp"
#include "bench/pair_child.hpp"

namespace via::bench {

namespace {

std::vector<int>& parent_files() {
    static std::vector<int> files;
    return files;
}

}  // namespace

ParentFile::ParentFile(FileHandle file) : file_(std::move(file)) {
    if (file_) parent_files().push_back(file_.get());
}

ParentFile& ParentFile::operator=(ParentFile&& other) noexcept {
    if (this != &other) {
        reset();
        file_ = std::move(other.file_);
    }
    return *this;
}

void ParentFile::reset() {
    std::erase(parent_files(), file_.get());
    file_.reset();
}

Status ChildProcess::start(Channel& channel, Shared& shared, Side side, const PairSetup& setup) {
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0) {
        return fail_errno("socketpair");
    }
    FileHandle ours(ends[0]);
    FileHandle theirs(ends[1]);
    std::fflush(nullptr);
    const pid_t parent = ::getpid();
    const pid_t pid = ::fork();
    if (pid < 0) return fail_errno("fork");
    if (pid == 0) {
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (::getppid() != parent) ::_exit(0);
        ::signal(SIGPIPE, SIG_IGN);
        for (const int file : parent_files()) ::close(file);
        ours.reset();
        run_child(channel, shared, side, setup, theirs.get());
    }
    pid_ = pid;
    control_ = ParentFile(std::move(ours));
    return {};
}

bool ChildProcess::send(const Order& order) {
    return ::send(control(), &order, sizeof order, MSG_NOSIGNAL) >= 0;
}

bool ChildProcess::receive(Answer& answer) {
    return ::recv(control(), &answer, sizeof answer, 0) == sizeof answer;
}

void ChildProcess::say_quit() {
    if (control_) (void)send(Order{true, {}, {}});
}

// R, S, T and so on, as the kernel tells.
bool ChildProcess::is_stopped() const {
    std::ifstream file(fmt::format("/proc/{}/stat", pid_));
    std::string line;
    std::getline(file, line);
    const std::size_t name_end = line.rfind(')');
    return name_end != std::string::npos && name_end + 2 < line.size() && line[name_end + 2] == 'T';
}

std::string ChildProcess::how_it_ended(int patience_ms) {
    const std::int64_t deadline_ns = now_ns() + std::int64_t{patience_ms} * 1'000'000;
    do {
        int status = 0;
        const pid_t ended = reaped_ ? -1 : ::waitpid(pid_, &status, WNOHANG);
        if (ended < 0) break;
        if (ended > 0) {
            reaped_ = true;
            if (WIFSIGNALED(status)) {
                return fmt::format("ended by signal {} ({})", WTERMSIG(status),
                                   ::strsignal(WTERMSIG(status)));
            }
            return fmt::format("ended with exit code {}", WEXITSTATUS(status));
        }
        const timespec pause{0, 1'000'000};
        ::nanosleep(&pause, nullptr);
    } while (now_ns() < deadline_ns);
    return "closed its control socket";
}

bool ChildProcess::end(std::int64_t deadline_ns) {
    bool by_itself = !is_running();
    // The end of the process is the end of the other end of its control socket.
    while (is_running() && !by_itself && now_ns() < deadline_ns) {
        pollfd polled{control(), POLLIN, 0};
        const std::int64_t left_ms = (deadline_ns - now_ns()) / 1'000'000 + 1;
        if (::poll(&polled, 1, static_cast<int>(left_ms)) <= 0) continue;
        std::byte ignored[sizeof(Answer)];
        by_itself = ::recv(control(), ignored, sizeof ignored, 0) <= 0;
    }
    if (is_running()) {
        if (!by_itself) ::kill(pid_, SIGKILL);
        while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
        }
        reaped_ = true;
    }
    control_.reset();
    return by_itself;
}

}  // namespace via::bench
