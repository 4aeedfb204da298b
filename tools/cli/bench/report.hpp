// From samples to rows, a table and JSON lines.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "bench/session.hpp"

namespace via::bench {

// One channel, one question, one mode.
struct Row {
    std::string device;
    std::string version;  // of a program of others
    bool ours = false;
    Question question;
    Mode mode = Mode::near;
    Summary summary;             // over rounds; a latency's p99 is the median of the rounds' own
    std::vector<double> values;  // of the rounds, in their order
    double p999_us = 0;          // latency only
    double cpu_us = 0;           // processor time per message, both processes together,
    std::array<double, 2> cpu_us_each{};  // and each, the first one first
    std::array<double, 2> each{};         // both ways: medians of the two directions
    double fairness = 0;                  // many senders: median of Jain's index
    std::uint32_t rounds = 0;
    std::uint32_t dropped = 0;    // of this channel and question, in whatever mode
    double probe_ns = 0;          // median
    std::optional<double> ratio;  // ours / this channel's median, same mode; ours has none
};

// Fewer rounds than this in a mode make no row of it; fewer still when fewer were asked for.
inline constexpr std::uint32_t least_rounds = 3;
std::uint32_t rounds_needed(std::uint32_t asked);

// By question, then mode, then channel, ours first.
std::vector<Row> make_rows(const Outcome& outcome, std::uint32_t rounds_asked);

// One line for each question that has no answer in the wanted mode; empty: conclusive.
std::vector<std::string> inconclusive(const Outcome& outcome, std::uint32_t rounds_asked,
                                      Wanted wanted);

// What the probe read over all samples: "the probe read 21 to 157 ns, median 145".
std::string probe_text(const Outcome& outcome);

// How often samples were dropped and why: "12 of 80 samples dropped: 9 steal, 3 foreign load";
// empty when none was.
std::string drop_text(const Outcome& outcome);

// Who failed and how, a line each: for people, and as JSON.
std::string left_out_text(const Outcome& outcome);
std::string left_out_json(const Outcome& outcome);

// Aligned columns with a heading, for people.
std::string table(const std::vector<Row>& rows);

// One object a line, with exactly the fields the README lists. Ours appears once for each channel
// it is compared with, each time with that ratio, or once without.
std::string json_lines(const std::vector<Row>& rows);

}  // namespace via::bench
