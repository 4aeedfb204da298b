#include "bench/pair.hpp"

#include <poll.h>
#include <sched.h>
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
#include "bench/noise.hpp"

namespace via::bench {

namespace {

struct Order {
    bool quit = false;
    Question question;
    Effort effort;
};

constexpr int polite_ms = 5'000;
constexpr int end_patience_ms = 1'000;
// Long enough for the parent to fall asleep after it gave the order, so that it does not share a
// processor with what is measured.
constexpr long settle_ns = 300'000;

// Our ends of the control sockets of all living pairs. A child must not keep those of the others
// open, or the death of a process would go unnoticed.
std::vector<int>& parent_ends() {
    static std::vector<int> ends;
    return ends;
}

Status pin_to(int cpu) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(static_cast<unsigned>(cpu), &set);
    if (::sched_setaffinity(0, sizeof set, &set) < 0) {
        return fail_errno(fmt::format("cannot run on processor {}", cpu));
    }
    return {};
}

// R, S, T and so on, as the kernel tells; a blank when it does not.
char state_of(pid_t pid) {
    std::ifstream file(fmt::format("/proc/{}/stat", pid));
    std::string line;
    std::getline(file, line);
    const std::size_t name_end = line.rfind(')');
    return name_end != std::string::npos && name_end + 2 < line.size() ? line[name_end + 2] : ' ';
}

Result<Arena> make_arena(std::size_t bytes) {
    void* at = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) return fail_errno(fmt::format("mmap of {} bytes", bytes));
    std::memset(at, 0x5a, bytes);
    return Arena{static_cast<std::byte*>(at), bytes};
}

}  // namespace

struct Pair::Answer {
    bool good = false;
    Reading reading;
    Disturbance disturbance;
    double probe_before_ns = 0;
    double probe_after_ns = 0;
    std::array<char, 512> trouble{};
};

namespace {

// The child's half of one question.
template <class Answer>
Status answer_one(Link& link, Endpoint& endpoint, const Order& order, const PairSetup& setup,
                  Answer& answer) {
    const timespec settle{0, settle_ns};
    ::nanosleep(&settle, nullptr);
    const int cpu = setup.cpus[link.own()];

    link.set_step(Step::probing);
    if (!link.meet()) return fail("called off");
    const Look before = look_around(cpu);
    if (!link.meet()) return fail("called off");
    answer.probe_before_ns = link.probe();
    if (link.is_first()) {
        const auto mode = classify(answer.probe_before_ns, setup.limits);
        link.shared().mode.value.store(mode ? 1 + static_cast<std::uint64_t>(*mode) : 0,
                                       std::memory_order_release);
    }
    if (!link.meet()) return fail("called off");

    link.set_step(Step::measuring);
    auto reading = endpoint.measure(order.question, order.effort);
    if (!reading) return std::unexpected(reading.error());
    answer.reading = *reading;

    link.set_step(Step::probing);
    if (!link.meet()) return fail("called off");
    answer.probe_after_ns = link.probe();
    if (!link.meet()) return fail("called off");
    answer.disturbance = between_looks(before, look_around(cpu), setup.processors);
    // Nobody answers before both have looked: the parent, once awake, would be foreign load.
    if (!link.meet()) return fail("called off");
    link.set_step(Step::idle);
    return {};
}

template <class Answer>
void note(Answer& answer, const Status& status) {
    answer.good = status.has_value();
    if (answer.good) return;
    const std::string& what = status.error().what;
    std::memcpy(answer.trouble.data(), what.data(),
                std::min(what.size(), answer.trouble.size() - 1));
}

}  // namespace

void Pair::run_child(Side side, const PairSetup& setup, int control) {
    Link link(*reinterpret_cast<Shared*>(shared_.base()), side);
    const auto open = [&]() -> Result<std::unique_ptr<Endpoint>> {
        if (auto pinned = pin_to(setup.cpus[link.own()]); !pinned) {
            return std::unexpected(pinned.error());
        }
        auto arena = make_arena(setup.arena_bytes);
        if (!arena) return std::unexpected(arena.error());
        link.arena = *arena;
        link.mine().pid = ::getpid();
        link.mine().arena = reinterpret_cast<std::uint64_t>(arena->base);
        if (!link.meet()) return fail("called off");
        auto endpoint = channel_->endpoint(link);
        if (auto opened = endpoint->open(); !opened) return std::unexpected(opened.error());
        return endpoint;
    };
    auto endpoint = open();
    link.set_step(Step::idle);
    Answer hello;
    note(hello, endpoint ? Status{} : std::unexpected(endpoint.error()));
    (void)::send(control, &hello, sizeof hello, MSG_NOSIGNAL);

    Order order;
    while (endpoint && ::recv(control, &order, sizeof order, 0) == sizeof order && !order.quit) {
        Answer answer;
        note(answer, answer_one(link, **endpoint, order, setup, answer));
        if (::send(control, &answer, sizeof answer, MSG_NOSIGNAL) < 0) break;
    }
    link.set_step(Step::closing);
    if (endpoint) endpoint->reset();
    ::_exit(0);  // not exit(): the buffers of stdio and the exit handlers are the parent's
}

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
        run_child(side, setup, theirs.get());
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
Result<std::array<Pair::Answer, 2>> Pair::collect(int timeout_ms) {
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
        const int ready = ::poll(polled.data(), 2, static_cast<int>(std::max<std::int64_t>(left_ms, 0)));
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
    const auto* shared = reinterpret_cast<Shared*>(shared_.base());
    const std::uint64_t step = shared->step[side].value.load(std::memory_order_relaxed);
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
        const pid_t ended = sides_[side].reaped ? -1 : ::waitpid(sides_[side].pid, &status, WNOHANG);
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
        reinterpret_cast<Shared*>(shared_.base())->abort.value.store(1, std::memory_order_relaxed);
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
