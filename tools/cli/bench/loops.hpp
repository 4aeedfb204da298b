// The timed loops, one for all channels. Templates over the channel's end, so that no virtual call
// sits between two messages.
//
// An End has: bool begin(const Question&, std::uint64_t messages), bool send(i), bool receive(i),
// bool finish(), const std::string& failure(). False means: see failure().
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bench/channel.hpp"
#include "bench/clock.hpp"
#include "bench/link.hpp"
#include "bench/stats.hpp"

namespace via::bench {

// Times single exchanges in ticks and turns them into nanoseconds per leg.
class TickLog {
public:
    explicit TickLog(std::uint64_t expected) { ticks_.reserve(expected); }

    void start() {
        start_ticks_ = ticks();
        start_ns_ = now_ns();
    }
    void add(std::uint64_t took) { ticks_.push_back(static_cast<double>(took)); }
    void stop_into(Reading& reading) const {
        const auto passed = static_cast<double>(ticks() - start_ticks_);
        const auto took_ns = static_cast<double>(now_ns() - start_ns_);
        if (ticks_.empty() || passed <= 0) return;
        const double ns = took_ns / passed / reading.legs;
        reading.p50_ns = percentile(ticks_, 50) * ns;
        reading.p99_ns = percentile(ticks_, 99) * ns;
        reading.p999_ns = percentile(ticks_, 99.9) * ns;
    }

private:
    std::vector<double> ticks_;
    std::uint64_t start_ticks_ = 0;
    std::int64_t start_ns_ = 0;
};

// Runs effort.warmup, then effort.messages timed as a whole, then effort.timed one by one, of
// `exchange(i)`. The figures are kept on the first side.
template <class Exchange>
bool timed_exchanges(Link& link, const Effort& effort, Reading& reading, Exchange&& exchange) {
    TickLog log(effort.timed);
    std::uint64_t i = 0;
    for (const std::uint64_t end = i + effort.warmup; i < end; ++i) {
        if (!exchange(i)) return false;
    }
    const std::int64_t cpu_start_ns = cpu_ns();
    const std::int64_t start_ns = now_ns();
    for (const std::uint64_t end = i + effort.messages; i < end; ++i) {
        if (!exchange(i)) return false;
    }
    const std::int64_t end_ns = now_ns();
    reading.cpu_ns = cpu_ns() - cpu_start_ns;
    reading.messages = effort.messages;
    log.start();
    for (const std::uint64_t end = i + effort.timed; i < end; ++i) {
        const std::uint64_t before = ticks();
        if (!exchange(i)) return false;
        log.add(ticks() - before);
    }
    if (link.is_first()) {
        reading.first_ns = start_ns;
        reading.last_ns = end_ns;
        log.stop_into(reading);
    }
    return true;
}

// Both sides in turn: half a round trip is the latency.
template <class End>
bool ping_pong(End& end, Link& link, const Effort& effort, Reading& reading) {
    reading.legs = 2;
    if (link.is_first()) {
        return timed_exchanges(link, effort, reading,
                               [&](std::uint64_t i) { return end.send(i) && end.receive(i); });
    }
    return timed_exchanges(link, effort, reading,
                           [&](std::uint64_t i) { return end.receive(i) && end.send(i); });
}

// The first side sends all it can, the second takes it. From first post to last receive.
template <class End>
bool stream(End& end, Link& link, std::uint64_t messages, Reading& reading) {
    const std::int64_t cpu_start_ns = cpu_ns();
    if (link.is_first()) {
        reading.first_ns = now_ns();
        for (std::uint64_t i = 0; i < messages; ++i) {
            if (!end.send(i)) return false;
        }
    } else {
        for (std::uint64_t i = 0; i < messages; ++i) {
            if (!end.receive(i)) return false;
        }
        reading.last_ns = now_ns();
    }
    reading.messages = messages;
    reading.cpu_ns = cpu_ns() - cpu_start_ns;
    return true;
}

// Ends that can stream in both directions at once can tell what they can do without waiting:
// bool can_send(i), bool has_arrived(i); and look for more to do: bool look().
template <class End>
concept TwoWay = requires(End& end) {
    end.can_send(0);
    end.has_arrived(0);
    end.look();
};

// Both sides send all they can and take what comes. Each from its own first post to its own last
// receive.
template <TwoWay End>
bool stream_both_ways(End& end, std::uint64_t messages, Reading& reading) {
    const std::int64_t cpu_start_ns = cpu_ns();
    reading.first_ns = now_ns();
    std::uint64_t sent = 0;
    std::uint64_t received = 0;
    while (sent < messages || received < messages) {
        const bool sending = sent < messages && end.can_send(sent);
        const bool receiving = received < messages && end.has_arrived(received);
        if (sending && !end.send(sent++)) return false;
        if (receiving) {
            if (!end.receive(received++)) return false;
            if (received == messages) reading.last_ns = now_ns();
        }
        if (!sending && !receiving && !end.look()) return false;
    }
    reading.messages = messages;
    reading.cpu_ns = cpu_ns() - cpu_start_ns;
    return true;
}

template <class End>
bool any_stream(End& end, Link& link, const Question& question, std::uint64_t messages,
                Reading& reading) {
    if constexpr (TwoWay<End>) {
        if (question.both_ways) return stream_both_ways(end, messages, reading);
    }
    return stream(end, link, messages, reading);
}

// A whole sample of a message channel, any kind.
template <class End>
Result<Reading> run_messages(End& end, Link& link, const Question& question, const Effort& effort) {
    const auto phase = [&](std::uint64_t messages, auto&& body) {
        return link.meet() && end.begin(question, messages) && link.meet() && body() &&
               end.finish() && link.meet();
    };
    Reading reading;
    bool good = true;
    if (!is_stream(question)) {
        good = phase(effort.total(), [&] { return ping_pong(end, link, effort, reading); });
    } else {
        Reading unused;
        const auto streamed = [&](std::uint64_t messages, Reading& into) {
            return phase(messages, [&] { return any_stream(end, link, question, messages, into); });
        };
        good = streamed(effort.warmup, unused) && streamed(effort.messages, reading);
    }
    if (good) return reading;
    if (!end.failure().empty()) return fail("{}", end.failure());
    return fail("{}", called_off);
}

template <class End>
class MessageEndpoint final : public Endpoint {
public:
    template <class... Args>
    explicit MessageEndpoint(Link& link, Args&&... args)
        : link_(link), end_(link, std::forward<Args>(args)...) {}

    Result<Reading> measure(const Question& question, const Effort& effort) override {
        return run_messages(end_, link_, question, effort);
    }

private:
    Link& link_;
    End end_;
};

}  // namespace via::bench
