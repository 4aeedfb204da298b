// One run: all channels side by side, asked in interleaved rounds.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "bench/channel.hpp"
#include "bench/pair.hpp"
#include "bench/remote_pair.hpp"
#include "bench/stats.hpp"

namespace via::bench {

// Which modes a run must have seen to be conclusive.
enum class Wanted : std::uint8_t { any, near, far, both };

struct Sample {
    Verdict verdict;
    double value = 0;   // in the bench's unit
    double p50_us = 0;  // within the round; latency only
    double p99_us = 0;
    double p999_us = 0;
    std::array<double, 2> cpu_us{};  // processor time of each process per message
    std::array<double, 2> each{};    // both ways: the first side's stream and the second's
    double fairness = 0;             // many senders: Jain's index
    double probe_ns = 0;             // mean of the probe before and after
};

// All samples of one channel for one question, dropped ones included.
struct Series {
    std::size_t question = 0;  // index in Outcome::questions
    std::size_t channel = 0;   // index in Outcome::channels; 0 is ours
    Question asked;            // as the channel answers it
    std::vector<Sample> samples;
};

// A comparison that failed while the others were measured.
struct LeftOut {
    std::string channel;
    std::string why;
};

struct Outcome {
    std::vector<Question> questions;
    std::vector<std::string> channels;
    std::vector<std::string> versions;  // of each channel that is a program of others, else empty
    std::vector<Series> series;
    std::vector<std::string> notes;  // versions, and who cannot answer what
    std::vector<LeftOut> left_out;   // whose samples are not in series
    bool out_of_time = false;
    bool remote = false;  // between machines
};

struct Plan {
    std::vector<std::unique_ptr<Channel>> channels;  // the first is ours
    std::vector<Question> questions;
    std::uint32_t rounds = 10;
    Wanted wanted = Wanted::any;
    std::array<int, 2> cpus{0, 1};
    ModeLimits limits;
    Places places;
    std::shared_ptr<Peer> peer;          // the second processes are there; none: here
    Open like;                           // how channels are opened there
    std::int64_t sample_ns = 5'000'000;  // what one sample should take; blocking ones twice
    int max_seconds = 300;               // of all rounds together
    std::function<void(const std::string&)> progress;  // told what happens now; may be empty
};

// Rounds tried at most, per round wanted: a noisy machine must not hold the run for ever.
inline constexpr std::uint32_t tries_per_round = 4;

// Forks (the caller must have one thread only), measures, ends all it started. Fails when our
// channel fails or a comparison cannot start, with what and where. A comparison that fails later is
// left out with all its samples, and Outcome::left_out says why. A mode that never came is no
// failure here.
Result<Outcome> run_session(Plan plan);

// Pure, for run_session and its tests.
inline constexpr int tuning_turns = 6;
// What a message takes, ns, when as many pass as fill `wanted_ns`. `took` has so many pass and
// tells how long it took. The first ones find no page and no line in its place, so they do not
// decide.
Result<double> tuned_message_ns(std::int64_t wanted_ns, std::uint64_t first,
                                const std::function<Result<double>(std::uint64_t)>& took);
std::size_t kept_in(const Series& series, Mode mode);
bool is_complete(const std::vector<const Series*>& of_one_question, std::uint32_t rounds,
                 Wanted wanted);
Sample to_sample(const Question& question, const RawSample& raw, const ModeLimits& limits = {});

}  // namespace via::bench
