// Times single calls, one by one, for the cost of operations.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "bench/clock.hpp"
#include "bench/operations.hpp"
#include "bench/stats.hpp"

namespace via::bench {

// Times single calls by the processor's counter. What reading it costs is taken off.
class Stopwatch {
public:
    // What is timed as all[i] is noted in board[i].
    Stopwatch(std::span<CallTimes> board, const std::vector<Timed>& all)
        : board_(board), all_(all) {}

    void start() {
        for (CallTimes& times : board_) times = {};
        std::vector<double> empty, empty_cpu;
        for (int i = 0; i < empty_calls; ++i) {
            const std::uint64_t before = ticks();
            empty.push_back(static_cast<double>(ticks() - before));
            const std::int64_t cpu_before = cpu_ns();
            empty_cpu.push_back(static_cast<double>(cpu_ns() - cpu_before));
        }
        empty_ticks_ = median(empty);
        empty_cpu_ns_ = median(empty_cpu);
        start_ticks_ = ticks();
        start_ns_ = now_ns();
    }

    // For what may sleep or have other threads work for it: processor time, too.
    template <class Call>
    auto slow(Timed timed, Call&& call) {
        CallTimes& times = of(timed);
        const std::int64_t cpu_before = cpu_ns();
        const auto outcome = fast(times, call);
        last_cpu_ns_ = std::max(static_cast<double>(cpu_ns() - cpu_before) - empty_cpu_ns_, 0.0);
        times.cpu_ns += last_cpu_ns_;
        return outcome;
    }
    template <class Call>
    auto fast(Timed timed, Call&& call) {
        return fast(of(timed), call);
    }
    // Forgets the last call: it was not the one that was meant.
    void take_back(Timed timed) { --of(timed).calls; }
    void take_back_slow(Timed timed) {
        take_back(timed);
        of(timed).cpu_ns -= last_cpu_ns_;
    }
    void add(Timed timed, std::uint64_t took) { add(of(timed), took); }

    // Ticks become nanoseconds.
    void stop() {
        const double ns =
            static_cast<double>(now_ns() - start_ns_) / static_cast<double>(ticks() - start_ticks_);
        for (CallTimes& times : board_) {
            for (std::uint32_t i = 0; i < times.calls; ++i) {
                const double net = std::max(times.ns[i] - empty_ticks_, 0.0);
                times.ns[i] = static_cast<float>(net * ns);
            }
        }
    }

private:
    template <class Call>
    auto fast(CallTimes& times, Call& call) {
        const std::uint64_t before = ticks();
        const auto outcome = call();
        add(times, ticks() - before);
        return outcome;
    }
    static void add(CallTimes& times, std::uint64_t took) {
        if (times.calls < CallTimes::most_calls) {
            times.ns[times.calls++] = static_cast<float>(took);
        }
    }
    CallTimes& of(Timed timed) {
        const auto at = std::find(all_.begin(), all_.end(), timed);
        return board_[static_cast<std::size_t>(at - all_.begin())];
    }

    static constexpr int empty_calls = 64;

    std::span<CallTimes> board_;
    const std::vector<Timed>& all_;
    double empty_ticks_ = 0;
    double empty_cpu_ns_ = 0;
    double last_cpu_ns_ = 0;
    std::uint64_t start_ticks_ = 0;
    std::int64_t start_ns_ = 0;
};

}  // namespace via::bench
