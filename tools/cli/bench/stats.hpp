// Pure arithmetic on samples: order statistics, near or far, kept or dropped.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "bench/types.hpp"

namespace via::bench {

// A cache line travelling one way between the two processes takes less than near_below_ns when
// their processors are near each other and more than far_above_ns when they are far. What lies
// between is a mode of its own, neither near nor far. Some machines need other limits.
struct ModeLimits {
    double near_below_ns = 100;
    double far_above_ns = 150;
    bool keep_disturbed = false;  // a third process belongs to what is measured
};

std::optional<Mode> classify(double probe_ns, const ModeLimits& limits = {});

// Why a sample does not count.
enum class Drop : std::uint8_t {
    none,
    involuntary,   // a side was switched out against its will, and nobody knows for how long
    steal,         // the hypervisor took a processor away
    foreign,       // another process wanted a processor
    no_probe,      // the probe was not taken
    mode_changed,  // the probe before and after disagree
    count_
};
inline constexpr std::size_t drop_count = static_cast<std::size_t>(Drop::count_);
std::string_view reason(Drop drop);

// What the kernel says happened to one side between two looks. Times in nanoseconds.
struct Disturbance {
    std::int64_t wall_ns = 0;
    std::uint64_t involuntary = 0;    // involuntary switches of the measuring thread
    std::uint64_t own_switches = 0;   // switches of the same process's other threads
    std::uint64_t run_delay_ns = 0;   // the measuring thread was ready and did not run
    bool delays_are_told = false;     // some kernels do not
    std::uint64_t own_others_ns = 0;  // processor time of the process's other threads
    std::uint64_t steal_ticks = 0;    // of this side's processor
    std::int64_t strange_ns = 0;  // of this side's processor, beyond this process and its programs
    std::int64_t program_ns = 0;  // what such a program timed; 0: none stood for this side
    std::int64_t program_lost_ns = 0;  // how long it was ready and did not run meanwhile
    std::uint32_t runnable = 0;        // tasks that wanted to run at either look, system-wide
    std::uint32_t processors = 0;      // processors online
};

struct Verdict {
    Drop drop = Drop::none;
    std::optional<Mode> mode;  // set when the sample counts
};

// Decides on one sample. Threads of the measured library are part of what is measured: switches
// and delays they can explain do not excuse a sample. Waiting for a processor is judged only
// while polling; a blocked process waits for its idle processor at every wake-up. A program of
// others times too long for nothing to happen at all: it may lose a hundredth of what it timed, so
// that its figure is wrong by no more than that.
Verdict judge(const std::array<Disturbance, 2>& sides, double probe_before_ns,
              double probe_after_ns, Wait wait, const ModeLimits& limits = {});

// The same between machines, where no probe tells a mode.
Verdict judge_remote(const std::array<Disturbance, 2>& sides, Wait wait,
                     const ModeLimits& limits = {});

// Nearest-rank percentile, percent in (0, 100]; 0 for no values.
double percentile(std::vector<double> values, double percent);
double median(const std::vector<double>& values);  // mean of the middle two when even

// Jain's index of what each of several had: 1 when all had the same, 1 / n when one had all.
double jain_index(const std::vector<double>& shares);

struct Summary {
    double median = 0;
    double min = 0;
    double max = 0;
    double p99 = 0;
};

// Over the values of the rounds. p99 is left to the caller for a latency, which has percentiles
// within its rounds; for bandwidth and rate it is what 99 % of the rounds reach.
Summary summarise(const std::vector<double>& values);

}  // namespace via::bench
