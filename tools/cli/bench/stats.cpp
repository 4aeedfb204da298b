#include "bench/stats.hpp"

#include <algorithm>
#include <cmath>

namespace via::bench {

namespace {

// Ready but not running for longer than this, beyond what the own threads explain, is somebody
// else's doing, and 0.4 % of a sample's time; timer interrupts and their work stay below, and so
// does a thread of the kernel that looks in for a moment.
constexpr std::uint64_t run_delay_allowed_ns = 20'000;
constexpr double same_distance_within = 1.25;

Drop disturbance_of(const Disturbance& side, Wait wait) {
    const bool lost_time_is_told = wait == Wait::poll && side.delays_are_told;
    if (!lost_time_is_told && side.involuntary > side.own_switches) return Drop::involuntary;
    if (side.steal_ticks > 0) return Drop::steal;
    if (side.runnable > side.processors) return Drop::foreign;
    if (wait == Wait::poll && side.run_delay_ns > side.own_others_ns + run_delay_allowed_ns) {
        return Drop::foreign;
    }
    return Drop::none;
}

// Of a program that sleeps, how long processors were busy and how much of it was the program's is
// all that tells; in ticks, so a tick or two prove nothing. One program may have run on both
// processors.
bool sleepers_were_disturbed(const std::array<Disturbance, 2>& sides) {
    constexpr std::int64_t allowed_ns = 30'000'000;
    constexpr std::int64_t allowed_part = 20;  // of the time of both
    return sides[0].strange_ns + sides[1].strange_ns >
           allowed_ns + (sides[0].wall_ns + sides[1].wall_ns) / allowed_part;
}

bool programs_were_disturbed(const std::array<Disturbance, 2>& sides, Wait wait) {
    constexpr std::int64_t allowed_part = 100;
    if (wait == Wait::block) return sleepers_were_disturbed(sides);
    const std::int64_t allowed_ns =
        std::max(sides[0].program_ns, sides[1].program_ns) / allowed_part;
    return std::max(sides[0].program_lost_ns, sides[1].program_lost_ns) > allowed_ns;
}

Drop disturbance_of(const std::array<Disturbance, 2>& sides, Wait wait, const ModeLimits& limits) {
    if (limits.keep_disturbed) return Drop::none;
    if (sides[0].program_ns + sides[1].program_ns > 0) {
        // Our own two processes slept meanwhile: what happened to them is nothing to it.
        if (sides[0].steal_ticks + sides[1].steal_ticks > 0) return Drop::steal;
        return programs_were_disturbed(sides, wait) ? Drop::foreign : Drop::none;
    }
    for (const Disturbance& side : sides) {
        if (Drop drop = disturbance_of(side, wait); drop != Drop::none) return drop;
    }
    return Drop::none;
}

}  // namespace

std::optional<Mode> classify(double probe_ns, const ModeLimits& limits) {
    if (probe_ns <= 0) return std::nullopt;
    if (probe_ns < limits.near_below_ns) return Mode::near;
    return probe_ns > limits.far_above_ns ? Mode::far : Mode::between;
}

std::string_view reason(Drop drop) {
    switch (drop) {
        case Drop::none:
            return "none";
        case Drop::involuntary:
            return "involuntary switches";
        case Drop::steal:
            return "steal";
        case Drop::foreign:
            return "foreign load";
        case Drop::no_probe:
            return "no probe";
        case Drop::mode_changed:
            return "mode changed meanwhile";
        case Drop::count_:
            break;
    }
    return "?";
}

Verdict judge(const std::array<Disturbance, 2>& sides, double probe_before_ns,
              double probe_after_ns, Wait wait, const ModeLimits& limits) {
    if (Drop drop = disturbance_of(sides, wait, limits); drop != Drop::none) return {drop, {}};
    const auto before = classify(probe_before_ns, limits);
    const auto after = classify(probe_after_ns, limits);
    if (!before || !after) return {Drop::no_probe, {}};
    if (*before == *after) return {Drop::none, before};
    // Two readings of one distance may fall on either side of a limit.
    const auto [low, high] = std::minmax(probe_before_ns, probe_after_ns);
    if (high > low * same_distance_within) return {Drop::mode_changed, {}};
    return {Drop::none, classify((low + high) / 2, limits)};
}

Verdict judge_remote(const std::array<Disturbance, 2>& sides, Wait wait, const ModeLimits& limits) {
    if (Drop drop = disturbance_of(sides, wait, limits); drop != Drop::none) return {drop, {}};
    return {Drop::none, Mode::remote};
}

double percentile(std::vector<double> values, double percent) {
    if (values.empty()) return 0;
    std::sort(values.begin(), values.end());
    const double rank = std::ceil(percent / 100 * static_cast<double>(values.size()));
    const auto index = static_cast<std::size_t>(std::max(rank, 1.0)) - 1;
    return values[std::min(index, values.size() - 1)];
}

double median(const std::vector<double>& values) {
    if (values.empty()) return 0;
    std::vector<double> sorted = values;
    std::sort(sorted.begin(), sorted.end());
    const std::size_t middle = sorted.size() / 2;
    if (sorted.size() % 2 == 1) return sorted[middle];
    return (sorted[middle - 1] + sorted[middle]) / 2;
}

double jain_index(const std::vector<double>& shares) {
    double sum = 0;
    double squares = 0;
    for (const double share : shares) {
        sum += share;
        squares += share * share;
    }
    return squares > 0 ? sum * sum / (squares * static_cast<double>(shares.size())) : 0;
}

Summary summarise(const std::vector<double>& values) {
    if (values.empty()) return {};
    const auto [low, high] = std::minmax_element(values.begin(), values.end());
    return {median(values), *low, *high, percentile(values, 1)};
}

}  // namespace via::bench
