// A program does not poll: does it something else, or has it no processor?
#pragma once

#include <cstdint>
#include <functional>
#include <utility>

#include "base/time.hpp"

namespace via::agent {

/// What the threads of the process, but for the one that asks, have done so far.
struct Ran {
    Duration time{};  ///< on processors
    /// How often one of them gave its processor up to wait for something.
    std::uint64_t sleeps = 0;
};
/// Tells that. Exactly of the thread that calls this one, which opens the NIC; the system may tell
/// of the time of others some milliseconds late.
std::function<Ran()> ran_beside_caller();

/// Where more programs poll than there are processors, one that gets none for some milliseconds
/// polls as soon as it has one. Who takes it to stand still, and sleeps in its place, has its peers
/// make a system call for each message, and runs beside them, so that all get even less. A program
/// that computes instead uses a processor, and one that waits for something else goes to sleep.
class ProcessorWatch {
public:
    /// So many looks in a row that found it without a processor are believed.
    static constexpr unsigned looks_max = 100;

    /// `period`: of the agent; less than `seldom` polls in so much of its own time are none.
    ProcessorWatch(Duration period, std::uint64_t seldom)
        : time_enough_{period.ns / 2}, time_each_{period.ns / static_cast<std::int64_t>(seldom)} {}

    /// `polls`: since the last look; `steady`: so many that nothing else matters. False: the
    /// program does something else, until it polls again. True: it polls, or would.
    bool look(Ran ran, std::uint64_t polls, bool steady) {
        const Ran before = std::exchange(last_, ran);
        const bool in_time =
            ran.time.ns - before.time.ns <= time_each_.ns * static_cast<std::int64_t>(polls);
        if (steady || (polls != 0 && ran.sleeps == before.sleeps && in_time)) {
            // It may have gone to sleep after its last poll, so before this look.
            then_ = {ran.time, before.sleeps};
            left_ = looks_max;
            return true;
        }
        if (left_ != 0) --left_;
        if (ran.sleeps != then_.sleeps || ran.time.ns - then_.time.ns >= time_enough_.ns) left_ = 0;
        return left_ != 0;
    }

private:
    const Duration time_enough_;
    const Duration time_each_;
    Ran last_;  ///< at the last look
    Ran then_;  ///< time at the last look that saw polls, sleeps at the one before it
    unsigned left_ = 0;
};

}  // namespace via::agent
