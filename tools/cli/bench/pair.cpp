#include "bench/pair.hpp"

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
#include <new>
#include <vector>

#include "bench/clock.hpp"
#include "bench/pair_child.hpp"

namespace via::bench {

namespace {

constexpr int polite_ms = 5'000;
constexpr int end_patience_ms = 1'000;

// Our ends of the control sockets of all living pairs. A child must not keep those of the others
// open, or the death of a process would go unnoticed.
std::vector<int>& parent_ends() {
    static std::vector<int> ends;
    return ends;
}

// R, S, T and so on, as the kernel tells; a blank when it does not.
char state_of(pid_t pid) {
    std::ifstream file(fmt::format("/proc/{}/stat", pid));
    std::string line;
    std::getline(file, line);
    const std::size_t name_end = line.rfind(')');
    return name_end != std::string::npos && name_end + 2 < line.size() ? line[name_end + 2] : ' ';
}

}  // namespace

Shared& Pair::shared_view() const { return *reinterpret_cast<Shared*>(shared_.base()); }

Status Pair::fork_side(Side side, const PairSetup& setup) {
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
        for (const int end : parent_ends()) ::close(end);
        ours.reset();
        run_child(*channel_, shared_view(), side, setup, theirs.get());
    }
    Child& child = sides_[static_cast<std::size_t>(side)];
    child.pid = pid;
    parent_ends().push_back(ours.get());
    child.control = std::move(ours);
    return {};
}

Result<std::unique_ptr<Pair>> Pair::start(std::unique_ptr<Channel> channel,
                                          const PairSetup& setup) {
    std::unique_ptr<Pair> pair(new Pair(std::move(channel)));
    const std::string& name = pair->channel_->name();
    const auto prepared = [&]() -> Status {
        if (auto mapped = pair->shared_.create(sizeof(Shared)); !mapped) return mapped;
        new (pair->shared_.base()) Shared;
        if (auto made = pair->channel_->prepare(setup.max_size); !made) return made;
        if (auto first = pair->fork_side(Side::first, setup); !first) return first;
        auto second = pair->fork_side(Side::second, setup);
        // What the two inherited is theirs alone, or neither would see the other's end.
        pair->channel_->drop_files();
        return second;
    }();
    if (!prepared) pair->end_children(false);
    if (!prepared) return fail("{}: {}", name, prepared.error().what);
    if (auto opened = pair->collect(setup.open_timeout_ms); !opened) {
        return std::unexpected(opened.error());
    }
    return pair;
}

Pair::~Pair() { end_children(!broken_); }

Result<RawSample> Pair::ask(const Question& question, const Effort& effort, int timeout_ms) {
    if (broken_) return fail("{}: this channel failed before", channel_->name());
    const Order order{false, question, effort};
    // The second side first: the first side starts the clock and should not wait for it.
    for (std::size_t side : {1u, 0u}) {
        if (::send(sides_[side].control.get(), &order, sizeof order, MSG_NOSIGNAL) < 0) {
            const std::string what = trouble_of(side, how_it_ended(side, end_patience_ms));
            end_children(false);
            return fail("{}", what);
        }
    }
    auto answers = collect(timeout_ms);
    if (!answers) return std::unexpected(answers.error());
    RawSample sample;
    for (std::size_t side = 0; side < 2; ++side) {
        sample.readings[side] = (*answers)[side].reading;
        sample.disturbances[side] = (*answers)[side].disturbance;
    }
    sample.probe_before_ns = (*answers)[0].probe_before_ns;
    sample.probe_after_ns = (*answers)[0].probe_after_ns;
    return sample;
}

// Waits for one answer of each side. Any trouble ends both processes.
Result<std::array<Answer, 2>> Pair::collect(int timeout_ms) {
    std::array<Answer, 2> answers;
    std::array<bool, 2> got{};
    const std::int64_t deadline_ns = now_ns() + std::int64_t{timeout_ms} * 1'000'000;
    std::string trouble;
    while (trouble.empty() && !(got[0] && got[1])) {
        std::array<pollfd, 2> polled{};
        for (std::size_t side = 0; side < 2; ++side) {
            polled[side] = {got[side] ? -1 : sides_[side].control.get(), POLLIN, 0};
        }
        const std::int64_t left_ms = (deadline_ns - now_ns()) / 1'000'000;
        const int ready =
            ::poll(polled.data(), 2, static_cast<int>(std::max<std::int64_t>(left_ms, 0)));
        if (ready < 0 && errno == EINTR) continue;
        if (ready < 0) {
            trouble = fmt::format("{}: poll: {}", channel_->name(), std::strerror(errno));
            break;
        }
        if (ready == 0) {
            // A process that somebody stopped keeps its partner waiting: name that one.
            const bool second = got[0] || (!got[1] && state_of(sides_[1].pid) == 'T');
            const std::size_t late = second ? 1 : 0;
            const bool stopped = state_of(sides_[late].pid) == 'T';
            trouble = trouble_of(late, fmt::format("no answer within {} s{}", timeout_ms / 1000,
                                                   stopped ? ", it is stopped" : ""));
            break;
        }
        for (std::size_t side = 0; side < 2 && trouble.empty(); ++side) {
            if (polled[side].revents == 0) continue;
            const ssize_t bytes = ::recv(polled[side].fd, &answers[side], sizeof(Answer), 0);
            if (bytes != sizeof(Answer)) {
                trouble = trouble_of(side, how_it_ended(side, end_patience_ms));
            } else if (!answers[side].good) {
                trouble = complaint_of(side, answers[side].trouble.data());
            }
            got[side] = true;
        }
    }
    if (trouble.empty()) return answers;
    end_children(false);
    return fail("{}", trouble);
}

std::string Pair::trouble_of(std::size_t side, const std::string& what) {
    const Shared& shared = shared_view();
    const std::uint64_t step = shared.step[side].value.load(std::memory_order_relaxed);
    return fmt::format("{}: process {} of the pair (pid {}), while {}: {}", channel_->name(),
                       side + 1, sides_[side].pid, name_of(static_cast<Step>(step)), what);
}

// A side complains. When the other one was killed, that is the cause and the complaint its effect.
std::string Pair::complaint_of(std::size_t side, const std::string& what) {
    const std::size_t other = 1 - side;
    const std::string end = how_it_ended(other, 20);
    if (end.find("signal") != std::string::npos) return trouble_of(other, end);
    return fmt::format("{}: {}", channel_->name(), what);
}

// Waits up to patience_ms for a process that is ending, and says how it did.
std::string Pair::how_it_ended(std::size_t side, int patience_ms) {
    const std::int64_t deadline_ns = now_ns() + std::int64_t{patience_ms} * 1'000'000;
    do {
        int status = 0;
        const pid_t ended =
            sides_[side].reaped ? -1 : ::waitpid(sides_[side].pid, &status, WNOHANG);
        if (ended < 0) break;
        if (ended > 0) {
            sides_[side].reaped = true;
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

void Pair::end_children(bool politely) {
    broken_ = true;
    if (shared_.base() != nullptr && !politely) {
        shared_view().abort.value.store(1, std::memory_order_relaxed);
    }
    for (Child& child : sides_) {
        const Order quit{true, {}, {}};
        if (child.control && politely) {
            (void)::send(child.control.get(), &quit, sizeof quit, MSG_NOSIGNAL);
        }
    }
    const std::int64_t deadline_ns = now_ns() + std::int64_t{polite_ms} * 1'000'000;
    for (Child& child : sides_) {
        // The end of the process is the end of the other end of its control socket.
        while (politely && child.is_running() && now_ns() < deadline_ns) {
            pollfd polled{child.control.get(), POLLIN, 0};
            const std::int64_t left_ms = (deadline_ns - now_ns()) / 1'000'000 + 1;
            if (::poll(&polled, 1, static_cast<int>(left_ms)) <= 0) continue;
            std::byte ignored[sizeof(Answer)];
            if (::recv(child.control.get(), ignored, sizeof ignored, 0) <= 0) break;
        }
        if (child.is_running()) {
            if (politely && now_ns() >= deadline_ns) {
                fmt::print(stderr, "via: {}: pid {} did not close within {} s and was ended\n",
                           channel_->name(), child.pid, polite_ms / 1000);
            }
            if (!politely || now_ns() >= deadline_ns) ::kill(child.pid, SIGKILL);
            while (::waitpid(child.pid, nullptr, 0) < 0 && errno == EINTR) {
            }
            child.reaped = true;
        }
        auto& ends = parent_ends();
        ends.erase(std::remove(ends.begin(), ends.end(), child.control.get()), ends.end());
        child.control.reset();
    }
}

}  // namespace via::bench
