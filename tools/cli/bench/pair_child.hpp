// What the parent of a pair and its two processes say to each other, and the child's half.
#pragma once

#include <array>

#include "bench/channel.hpp"
#include "bench/pair.hpp"
#include "bench/stats.hpp"

namespace via::bench {

// Both cross a socket between a process and its own child, as bytes.
struct Order {
    bool quit = false;
    Question question;
    Effort effort;
};

struct Answer {
    bool good = false;
    Reading reading;
    Disturbance disturbance;
    double probe_before_ns = 0;
    double probe_after_ns = 0;
    ClockGap clocks;                  // between machines, in place of the probes
    std::array<char, 512> failure{};  // ends with NUL; empty when good
};

// Kept as far as it fits.
void note_failure(Answer& answer, const std::string& what);

// Pins itself, opens its end of the channel, says so, and answers orders until told to quit or the
// control socket ends.
[[noreturn]] void run_child(Channel& channel, Shared& shared, Side side, const PairSetup& setup,
                            int control);

}  // namespace via::bench
