#pragma once
// Exhaustive checking of small concurrent programs: every interleaving of two to four threads,
// under a memory model. README.md shows how to write a model test. Compile with VIA_MODEL.

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/atomic.hpp"

#ifndef VIA_MODEL
#error "model tests are compiled with VIA_MODEL, with all the code that they check"
#endif

namespace via::model {

/// How memory behaves. Each allows all that the one before it allows.
enum class Memory : std::uint8_t {
    sc,    ///< sequential consistency: only interleaving
    tso,   ///< x86: stores delayed in a buffer per thread
    weak,  ///< C++ (arm64): old values read, stores reordered, as far as the orders permit
};

struct Options {
    Memory memory = Memory::weak;
    /// Leave out interleavings that cannot differ from one already seen (dynamic partial order
    /// reduction with sleep sets); nothing is lost. Off only to check the checker.
    bool reduction = true;
    /// The program calls heavy_fence(). Else that is left out of account, which is faster.
    bool heavy_fences = false;
    /// The process of each thread, for FenceReach::process.
    std::array<unsigned, 4> processes{};
    /// At least 0: only executions with at most so many preemptions, without reduction. Then a
    /// pass says nothing about executions with more; Result::exhaustive stays false.
    int preemption_bound = -1;
    /// How often per execution a wait may end for no reason (timeout, signal) and a weak
    /// compare-exchange fail for none, all together. Every place where it may is tried.
    unsigned surprises = 0;
    /// A loop that calls relax() gets so many turns for nothing before it is put to sleep until
    /// something it read has changed. A bounded spin of up to this length is explored fully.
    unsigned free_spins = 1;
    /// More steps than this in one execution is a failure (a loop without relax()?).
    unsigned max_steps = 5000;
    /// Give up after so many executions; Result::exhaustive is then false.
    std::uint64_t max_executions = 5'000'000;
    /// Not empty: run only this schedule (Result::schedule of a failure) and keep its trace.
    std::string replay = {};
    /// Print one line of statistics, and a failure's report, to stdout.
    bool print = true;
};

struct Result {
    std::string name;
    Memory memory = Memory::weak;
    std::uint64_t executions = 0;  ///< that ran to their end
    std::uint64_t cut = 0;         ///< left early, as equal to one of those
    std::uint64_t steps = 0;
    bool exhaustive = false;  ///< everything was explored
    std::string failure;      ///< empty: none found
    std::string trace;        ///< of the failing (or replayed) execution, a line per step
    std::string schedule;     ///< for Options::replay or the environment (README.md)

    bool passed() const { return exhaustive && failure.empty(); }
    /// Statistics; after a failure also its trace and how to replay it.
    std::string report() const;
};

/// A program over a State that is made anew (default-constructed) for every execution. Threads must
/// be deterministic but for what State, choose() and the waits below give them, and end in every
/// fair execution. They should own nothing across an atomic operation: an execution that is left
/// early destroys State, not the threads' stacks.
template <typename State>
struct Program {
    std::string name;
    std::vector<std::function<void(State&)>> threads;
    /// After every complete execution: all threads have ended, all stores have arrived.
    std::function<void(State&)> finally = {};
};

struct ErasedProgram {
    std::string name;
    std::function<void()> setup;
    std::vector<std::function<void()>> threads;
    std::function<void()> finally;
    std::function<void()> teardown;
};
Result explore_erased(const ErasedProgram& program, const Options& options);

/// Runs every execution of the program, or those up to the first failure. One at a time per
/// process.
template <typename State>
Result explore(const Program<State>& program, const Options& options = {}) {
    std::optional<State> state;  // so that it lies at the same address each time
    ErasedProgram erased;
    erased.name = program.name;
    erased.setup = [&] { state.emplace(); };
    for (const auto& thread : program.threads)
        erased.threads.emplace_back([&state, &thread] { thread(*state); });
    if (program.finally) erased.finally = [&] { program.finally(*state); };
    erased.teardown = [&] { state.reset(); };
    return explore_erased(erased, options);
}

/// explore() under tso, then weak; the first result that has not passed, or else the last.
/// (weak includes tso, and tso sc: the first run only tells whether x86 is affected.)
template <typename State>
Result explore_all(const Program<State>& program, Options options = {}) {
    options.memory = Memory::tso;
    Result result = explore(program, options);
    if (!result.passed()) return result;
    options.memory = Memory::weak;
    return explore(program, options);
}

// --- called by the threads of a program ---

/// Ends the exploration with this failure. Does not return when called by a model thread.
void fail(std::string_view message);
#define VIA_MODEL_TEXT(line) #line
#define VIA_MODEL_CHECK_AT(condition, text, line) \
    ((condition) ? (void)0 : ::via::model::fail(__FILE__ ":" VIA_MODEL_TEXT(line) ": " text))
#define VIA_MODEL_CHECK(condition) VIA_MODEL_CHECK_AT(condition, #condition, __LINE__)

/// A value in [0, count): the checker tries each.
unsigned choose(unsigned count);
/// What traces call the object at this address. Call it in State's constructor.
void name(const void* object, const std::string& text);
/// A line in the trace.
void note(const std::string& text);
/// True while a model thread runs (false in State's constructor, finally and outside explore).
bool running();

enum class Wake : std::uint8_t {
    woken,        ///< by futex_wake
    changed,      ///< the word did not hold the expected value (EAGAIN)
    interrupted,  ///< a surprise: timeout or signal
};
/// What this_thread() is in that thread of a program.
std::uintptr_t thread_mark(unsigned thread);

/// FUTEX_WAIT and FUTEX_WAKE. Both contain a full fence, and who is woken sees what its waker saw,
/// as the kernel has it; that makes no happens-before, which C++ has only between atomics.
/// Waiters wake first come, first served. futex_wake returns how many it woke.
Wake futex_wait(const Atomic<std::uint32_t>& word, std::uint32_t expected);
unsigned futex_wake(const Atomic<std::uint32_t>& word, unsigned count = 1);

/// An eventfd. A write releases, a successful read or poll acquires; none is a full fence.
/// Part of a State.
class EventFd {
public:
    /// Adds to the counter and wakes all waiters. Never blocks.
    void write(std::uint64_t by = 1);
    /// Waits until the counter is not 0, takes it all. 0 only as a surprise (EINTR).
    std::uint64_t read();
    /// As read, but 0 at once if there is nothing (EAGAIN).
    std::uint64_t try_read();
    /// Waits until the counter is not 0 and leaves it. False only as a surprise.
    bool poll();

private:
    friend class World;
    std::uint64_t count_ = 0;
};

/// Ordinary data shared by threads: every access is checked for data races. No step of its own.
template <typename T>
class Plain {
public:
    Plain() = default;
    explicit(false) Plain(T value) : value_(value) {}
    T get() const {
        VIA_MODEL_READ(&value_, sizeof(T));
        return value_;
    }
    void set(T value) {
        VIA_MODEL_WRITE(&value_, sizeof(T));
        value_ = value;
    }

private:
    T value_{};
};

}  // namespace via::model
