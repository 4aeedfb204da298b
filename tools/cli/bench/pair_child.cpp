#include "bench/pair_child.hpp"

#include <sched.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <ctime>

#include "bench/noise.hpp"
#include "bench/spinner.hpp"

namespace via::bench {

namespace {

// Long enough for the parent to fall asleep after it gave the order, and for the threads of the
// library measured before, some of which look once more a millisecond after the last call: they
// would share a processor with what is measured.
constexpr long settle_ns = 3'000'000;

Status pin_to(int cpu) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(static_cast<unsigned>(cpu), &set);
    if (::sched_setaffinity(0, sizeof set, &set) < 0) {
        return fail_errno(fmt::format("cannot run on processor {} (sched_setaffinity)", cpu));
    }
    return {};
}

Result<Arena> make_arena(std::size_t bytes) {
    void* at = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) return fail_errno(fmt::format("mmap of {} bytes", bytes));
    std::memset(at, 0x5a, bytes);
    return Arena{static_cast<std::byte*>(at), bytes};
}

bool probe(Link& link, double& probe_ns, ClockGap& clocks) {
    if (link.is_remote()) return link.compare_clocks(clocks);
    const auto told = link.probe();
    probe_ns = told.value_or(0);
    return told.has_value();
}

// The child's half of one question.
Status answer_one(Link& link, Endpoint& endpoint, const Order& order, const PairSetup& setup,
                  Answer& answer) {
    const timespec settle{0, settle_ns};
    ::nanosleep(&settle, nullptr);
    const int cpu = setup.cpus[link.own()];

    link.set_step(Step::probing);
    if (!link.meet()) return fail("{}", called_off);
    const Look before = look_around(cpu);
    if (!link.meet()) return fail("{}", called_off);
    if (!probe(link, answer.probe_before_ns, answer.clocks)) return fail("{}", called_off);
    if (link.is_first()) {
        const auto mode = classify(answer.probe_before_ns, setup.limits);
        link.shared().mode.value.store(mode ? 1 + static_cast<std::uint64_t>(*mode) : 0,
                                       std::memory_order_release);
    }
    if (!link.meet()) return fail("{}", called_off);

    link.set_step(Step::measuring);
    const bool crowded = order.question.spinners >= (link.is_first() ? 2u : 1u);
    const auto measured = [&] {
        std::optional<Spinner> spinner;
        if (crowded) spinner.emplace();
        return endpoint.measure(order.question, order.effort);
    }();
    if (!measured) return std::unexpected(measured.error());
    answer.reading = *measured;

    link.set_step(Step::probing);
    ClockGap after;
    if (!link.meet()) return fail("{}", called_off);
    if (!probe(link, answer.probe_after_ns, after)) return fail("{}", called_off);
    if (after.within_ns < answer.clocks.within_ns) answer.clocks = after;
    if (!link.meet()) return fail("{}", called_off);
    answer.disturbance = between_looks(before, look_around(cpu), setup.processors);
    answer.disturbance.program_ns = answer.reading.program_ns;
    // Beside spinners, nobody can tell what a program lost to whom.
    const bool alone = order.question.spinners == 0;
    answer.disturbance.program_lost_ns = alone ? answer.reading.program_lost_ns : 0;
    // Nobody answers before both have looked: the parent, once awake, would be foreign load.
    if (!link.meet()) return fail("{}", called_off);
    link.set_step(Step::idle);
    return {};
}

void note(Answer& answer, const Status& status) {
    answer.good = status.has_value();
    if (!answer.good) note_failure(answer, status.error().what);
}

}  // namespace

void note_failure(Answer& answer, const std::string& what) {
    answer.failure = {};
    std::memcpy(answer.failure.data(), what.data(),
                std::min(what.size(), answer.failure.size() - 1));
}

void run_child(Channel& channel, Shared& shared, Side side, const PairSetup& setup, int control) {
    Link link(shared, side, setup.wire);
    link.word = setup.word;
    const auto open = [&]() -> Result<std::unique_ptr<Endpoint>> {
        if (auto pinned = pin_to(setup.cpus[link.own()]); !pinned) {
            return std::unexpected(pinned.error());
        }
        if (auto entered = setup.places.enter(link.own()); !entered) {
            return std::unexpected(entered.error());
        }
        auto arena = make_arena(setup.arena_bytes);
        if (!arena) return std::unexpected(arena.error());
        link.arena = *arena;
        link.mine().pid = ::getpid();
        link.mine().arena = reinterpret_cast<std::uint64_t>(arena->base);
        if (!link.meet()) return fail("{}", called_off);
        auto endpoint = channel.endpoint(link);
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
    if (endpoint && order.quit && link.is_remote()) {
        // Both know that both close before either does: then no error is news.
        link.shared().closing.value.store(1);
        (void)link.meet();
    }
    if (endpoint) endpoint->reset();
    ::_exit(0);  // not exit(): the buffers of stdio and the exit handlers are the parent's
}

}  // namespace via::bench
