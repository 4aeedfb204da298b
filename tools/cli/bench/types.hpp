// The words of the benchmark: what is asked, of whom, and what came back.
#pragma once

#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

namespace via::bench {

enum class Bench : std::uint8_t { latency, bandwidth, rate, verify };
enum class Op : std::uint8_t { send, write, read, atomic };
// Asked for by the first side and answered by the second one's NIC alone.
constexpr bool is_answered(Op op) { return op == Op::read || op == Op::atomic; }
enum class Wait : std::uint8_t { poll, block };
enum class Reliability : std::uint8_t { unreliable, delivery, reception };

// How close the two processors are to each other while a sample runs. It changes within seconds
// on a virtual machine, and shared-memory figures of different modes must never be compared.
// remote: they are in two machines, which share no cache line that could tell.
enum class Mode : std::uint8_t { near, between, far, remote };

// The two processes of a pair. Side 0 sends first, keeps the time and is the one that streams.
enum class Side : std::uint8_t { first = 0, second = 1 };

// Of the name of a NIC, what stands before its place or its options: "udp" of "udp:eth0,silence=9".
inline std::string medium_of(const std::string& device) {
    return device.substr(0, device.find_first_of(":,"));
}

struct Failure {
    std::string what;
};

template <class T>
using Result = std::expected<T, Failure>;
using Status = Result<void>;

template <class... Args>
std::unexpected<Failure> fail(fmt::format_string<Args...> text, Args&&... args) {
    return std::unexpected(Failure{fmt::format(text, std::forward<Args>(args)...)});
}

// The same with the reason errno gives: "what: No such file or directory".
std::unexpected<Failure> fail_errno(std::string_view what);

inline constexpr std::uint32_t most_posted = 64;  // by one call

// One cell of the table. Trivially copyable: it crosses the control socket as bytes.
struct Question {
    Bench bench = Bench::latency;
    Op op = Op::send;
    Wait wait = Wait::poll;
    Reliability reliability = Reliability::delivery;
    bool cq = false;               // completions through one completion queue
    bool immediate = false;        // with immediate data, which is checked
    bool both_ways = false;        // a stream in each direction at once
    std::uint32_t depth = 1;       // descriptors in flight at the sender
    std::uint32_t vis = 0;         // connected VIs besides the first
    std::uint32_t active_vis = 1;  // messages go over so many of them all in turn
    std::uint32_t segments = 1;    // data segments of a descriptor
    std::uint32_t post_many = 1;   // descriptors that a stream posts, and takes, in one call
    std::uint32_t senders = 1;     // processes that stream to one
    std::uint32_t spinners = 0;    // others who want a processor: the second side's, then both
    std::optional<std::uint32_t> reuse;  // percentage of messages in a buffer that was just used
    std::uint64_t size = 0;              // bytes of payload

    bool operator==(const Question&) const = default;
};

// What is left of a question for a channel that only sends and receives, and knows no VIs.
inline Question without_vis(Question question) {
    question.op = Op::send;
    question.reliability = Reliability::delivery;
    question.cq = question.immediate = false;
    question.vis = 0;
    question.active_vis = question.segments = question.post_many = 1;
    return question;
}

// How many messages a sample sends.
struct Effort {
    std::uint64_t warmup = 0;
    std::uint64_t messages = 0;  // timed as a whole
    std::uint64_t timed = 0;     // timed one by one, for the percentiles; latency only

    std::uint64_t total() const { return warmup + messages + timed; }
};

// What one side of a pair read off its clocks in one sample.
struct Reading {
    std::int64_t first_ns = 0;  // first post, CLOCK_MONOTONIC; 0 when the other side has it
    std::int64_t last_ns = 0;   // last receive, likewise
    std::uint64_t messages = 0;
    std::uint32_t legs = 1;  // one-way trips in one timed exchange: 2 in a ping-pong
    bool retry = false;      // the channel used this turn to tune itself: ask again
    double p50_ns = 0;       // per leg, of the messages timed one by one
    double p99_ns = 0;
    double p999_ns = 0;
    std::int64_t cpu_ns = 0;           // processor time of this process from first to last
    double fairness = 0;               // of many senders: Jain's index, 1 is fair
    std::int64_t program_ns = 0;       // of a program that stood for this side: what it timed,
    std::int64_t program_lost_ns = 0;  // and how long it was ready and did not run meanwhile
};

std::string_view name_of(Bench bench);
std::string_view name_of(Op op);
std::string_view name_of(Wait wait);
std::string_view name_of(Mode mode);
std::string_view name_of(Reliability reliability);
std::string_view unit_of(Bench bench);

// How many user buffers each side rotates over: two for a ping-pong, about 16 MB for a stream, so
// that no channel lives off a buffer that never leaves the cache. A power of two: a division for
// each message would be paid by all channels, and most by the fastest.
std::uint32_t buffers_for(const Question& question);

// Further ones for messages that reuse a buffer, a power of two: one for a ping-pong; a stream has
// more than one under way. 0: all buffers in turn.
std::uint32_t buffers_to_reuse(const Question& question);

// Distance between two of those buffers in bytes, a multiple of a cache line.
std::uint64_t stride_for(const Question& question);

// Whether one side only sends and the other only receives.
inline bool is_stream(const Question& question) {
    return question.bench == Bench::bandwidth || question.bench == Bench::rate;
}

// "64", "4K", "1M" to bytes. Decimal digits and an optional K or M (powers of 1024).
std::optional<std::uint64_t> parse_size(std::string_view text);
std::string size_text(std::uint64_t bytes);

}  // namespace via::bench
