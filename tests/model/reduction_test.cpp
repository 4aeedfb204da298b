// Random small programs that spin, sleep and wake: with and without reduction the checker finds the
// same outcomes and the same kinds of failure.

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "checker.hpp"

namespace via::model::reduction_test {
namespace {

enum class What : std::uint8_t {
    load,
    store,
    add,
    swap_if_zero,
    fence,
    spin,
    spin_a_little,
    wait,
    wake,
    event_write,
    event_read,
    event_try,
    kinds
};

struct Instruction {
    What what;
    unsigned variable;
    unsigned value;
    memory_order load;
    memory_order store;
};
using Thread = std::vector<Instruction>;

const char* name_of(memory_order order) {
    if (order == memory_order_seq_cst) return "sc";
    return order == memory_order_relaxed ? "rlx" : "strong";
}

std::string text_of(const std::vector<Thread>& threads) {
    static constexpr const char* names[] = {"load",  "store",       "add",           "swap_if_zero",
                                            "fence", "spin",        "spin_a_little", "wait",
                                            "wake",  "event_write", "event_read",    "event_try"};
    std::string text;
    for (const Thread& thread : threads) {
        for (const Instruction& i : thread)
            text += std::string(names[static_cast<unsigned>(i.what)]) + " " +
                    (i.variable == 0 ? "x" : "y") + "," + std::to_string(i.value) + " " +
                    name_of(i.load) + "/" + name_of(i.store) + "; ";
        text += "|| ";
    }
    return text;
}

std::vector<Thread> random_threads(std::mt19937& random, unsigned threads, unsigned instructions) {
    const auto pick = [&](unsigned count) { return static_cast<unsigned>(random() % count); };
    static constexpr std::array loads{memory_order_relaxed, memory_order_acquire,
                                      memory_order_seq_cst};
    static constexpr std::array stores{memory_order_relaxed, memory_order_release,
                                       memory_order_seq_cst};
    std::vector<Thread> made(threads);
    for (unsigned i = 0; i < instructions; ++i) {
        // Plain stores and loads more often than the rest.
        const unsigned kind = pick(static_cast<unsigned>(What::kinds) + 4);
        const What what =
            kind < 12 ? static_cast<What>(kind) : (kind % 2 == 0 ? What::load : What::store);
        made[i < threads ? i : pick(threads)].push_back(
            {what, pick(2), pick(2) + 1, loads[pick(3)], stores[pick(3)]});
    }
    return made;
}

struct Box {
    std::array<Atomic<std::uint32_t>, 2> variable{};
    EventFd event;
    std::array<std::string, 3> log;
};

void run(Box& box, const Instruction& i, std::string& log) {
    Atomic<std::uint32_t>& variable = box.variable[i.variable];
    const auto put = [&](std::uint64_t value) { log += std::to_string(value) + " "; };
    switch (i.what) {
        case What::load:
            put(variable.load(i.load));
            break;
        case What::store:
            variable.store(i.value, i.store);
            break;
        case What::add:
            put(variable.fetch_add(i.value, i.store));
            break;
        case What::swap_if_zero: {
            std::uint32_t expected = 0;
            variable.compare_exchange_weak(expected, i.value, i.store, i.load);
            put(expected);
            break;
        }
        case What::fence:
            atomic_fence(memory_order_seq_cst);
            break;
        case What::spin: {
            std::uint32_t value = 0;
            while ((value = variable.load(i.load)) == 0) relax();
            put(value);
            break;
        }
        case What::spin_a_little:
            if (variable.load(i.load) == 0) relax();
            put(variable.load(i.load));
            break;
        case What::wait:
            put(static_cast<std::uint64_t>(futex_wait(variable, i.value - 1)));
            break;
        case What::wake:
            put(futex_wake(variable, i.value));
            break;
        case What::event_write:
            box.event.write(i.value);
            break;
        case What::event_read:
            put(box.event.read());
            break;
        case What::event_try:
            put(box.event.try_read());
            break;
        case What::kinds:
            break;
    }
}

struct Findings {
    std::set<std::string> outcomes;
    std::string failure;  // its first word
    std::uint64_t executions = 0;
};

Findings explore_random(const std::vector<Thread>& threads, const Options& options) {
    Findings findings;
    Program<Box> program;
    program.name = "random";
    for (unsigned t = 0; t < threads.size(); ++t)
        program.threads.emplace_back([&threads, t](Box& box) {
            for (const Instruction& i : threads[t]) run(box, i, box.log[t]);
        });
    program.finally = [&](Box& box) {
        std::string text;
        for (const std::string& log : box.log) text += log + "|";
        for (const auto& variable : box.variable) text += std::to_string(variable.load()) + " ";
        findings.outcomes.insert(text + std::to_string(box.event.try_read()));
    };
    const Result result = explore(program, options);
    EXPECT_TRUE(result.exhaustive || !result.failure.empty()) << text_of(threads);
    // A deadlock may be found as one in which others still spin.
    if (!result.failure.empty()) findings.failure = "deadlock or livelock";
    EXPECT_TRUE(result.failure.empty() || result.failure.starts_with("deadlock") ||
                result.failure.starts_with("livelock"))
        << result.report() << text_of(threads);
    findings.executions = result.executions + result.cut;
    return findings;
}

struct Totals {
    unsigned passed = 0;
    unsigned failed = 0;
    std::uint64_t reduced = 0;
    std::uint64_t full = 0;
};

void compare(const std::vector<Thread>& threads, Options options, Totals& totals) {
    options.print = false;
    options.max_executions = 20'000'000;
    const Findings reduced = explore_random(threads, options);
    options.reduction = false;
    const Findings full = explore_random(threads, options);
    ASSERT_EQ(reduced.failure, full.failure) << text_of(threads);
    ++(full.failure.empty() ? totals.passed : totals.failed);
    if (!full.failure.empty()) return;
    ASSERT_EQ(reduced.outcomes, full.outcomes) << text_of(threads);
    totals.reduced += reduced.executions;
    totals.full += full.executions;
}

void compare_many(unsigned seed, unsigned count, unsigned threads, unsigned instructions,
                  unsigned surprises) {
    std::mt19937 random(seed);
    Totals totals;
    for (unsigned i = 0; i < count && !testing::Test::HasFatalFailure(); ++i) {
        const auto made = random_threads(random, threads, instructions);
        for (const Memory memory : {Memory::sc, Memory::tso, Memory::weak})
            compare(made, {.memory = memory, .surprises = surprises}, totals);
    }
    // So that the comparison means something.
    EXPECT_GT(totals.passed, count / 2);
    EXPECT_GT(totals.failed, count / 10);
    std::printf("%u passed, %u failed; executions with reduction %llu, without %llu\n",
                totals.passed, totals.failed, static_cast<unsigned long long>(totals.reduced),
                static_cast<unsigned long long>(totals.full));
}

// A rare one: what a spinning thread watches decides when it goes on.
TEST(Reduction, kept_program) {
    constexpr auto relaxed = memory_order_relaxed;
    const auto make = [](What what, unsigned variable, unsigned value) {
        return Instruction{what, variable, value, memory_order_acquire, relaxed};
    };
    const std::vector<Thread> threads{
        {make(What::store, 1, 1), make(What::store, 0, 2)},
        {make(What::spin_a_little, 0, 0), make(What::spin_a_little, 0, 0), make(What::store, 0, 2),
         make(What::load, 1, 0)}};
    Totals totals;
    for (const Memory memory : {Memory::sc, Memory::tso, Memory::weak})
        compare(threads, {.memory = memory}, totals);
    EXPECT_EQ(totals.passed, 3u);
}

TEST(Reduction, two_threads) { compare_many(1, 400, 2, 6, 0); }
TEST(Reduction, two_threads_with_surprises) { compare_many(2, 300, 2, 5, 1); }
TEST(Reduction, three_threads) { compare_many(3, 100, 3, 6, 0); }

}  // namespace
}  // namespace via::model::reduction_test
