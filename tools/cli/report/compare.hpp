// What changed between two results, and whether it is more than noise.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "report/results.hpp"

namespace via::report {

// Of a side: five against five never get under a chance of 1 %.
constexpr std::size_t least_rounds = 6;

enum class Verdict : std::uint8_t {
    noise,
    faster,
    slower,
    too_few,  // rounds: even if all of them had changed they would prove nothing
};

// One figure that both have: the same run, question, size, mode and channel.
struct Change {
    std::string run;
    const Figure* before = nullptr;
    const Figure* after = nullptr;
    double ratio = 0;        // after to before
    double probability = 1;  // of such a difference, or a larger one, by chance
    Verdict verdict = Verdict::noise;
};

struct Comparison {
    std::vector<Change> changes;
    std::size_t only_before = 0;  // figures that the other one does not have
    std::size_t only_after = 0;
    double tolerance = 0;

    std::size_t count(bool ours, Verdict verdict) const;
    bool can_tell() const;  // of one of ours at least, or there is none
};

// A change is more than noise if the rounds of both differ by more than chance (Mann and Whitney's
// rank test, both sides, 1 %) and the medians by more than `tolerance` (0.05: 5 %): two runs of one
// program may lie in memory and on the machine a little differently, and all their rounds with it.
// Runs go together by name, or where both have one only, whatever their names. The figures must
// outlive the comparison.
Comparison compare(const std::vector<Run>& before, const std::vector<Run>& after, double tolerance);

// A line each, and what it comes to.
std::string text_of(const Comparison& comparison);

// Of two samples of one distribution, to differ in rank as these or more; normal approximation
// with corrections for ties and continuity. 1 where either is empty.
double chance_of(const std::vector<double>& a, const std::vector<double>& b);

}  // namespace via::report
