// The measurements that papers make: latency of one message, bandwidth of a stream. A program of
// the laboratory's own drives the hosts.
#pragma once

#include <array>
#include <cstdint>
#include <expected>
#include <map>
#include <string>

#include "lab/study/cluster.hpp"

namespace via::lab::study {

struct Question {
    std::int64_t size = 4;
    std::int64_t queues = 1;    ///< work queues that the program polls
    std::uint32_t warm = 0;     ///< messages before those that are measured
    std::uint32_t rounds = 64;  ///< messages; of a stream as many as `stream_bytes` need
    std::int64_t offset = 0;    ///< of the buffers from a page's beginning
    std::int64_t buffers = 1;   ///< that messages use in turn
    std::int64_t spread = 0;    ///< else each begins a page drawn from so many bytes of memory
    bool rdma = false;          ///< latency: written to where the sender says, without a receive
    std::int64_t stream_bytes = 4 << 20;
    std::uint32_t window = 16;  ///< messages of a stream under way
    std::uint64_t seed = 1;
    std::uint64_t events_max = 50'000'000;  ///< after which a run is given up
};

struct Latency {
    double mean_ns = 0;
    std::int64_t least_ns = 0;
    std::int64_t most_ns = 0;
    std::array<double, share_count> parts_ns{};  ///< means; their sum is mean_ns
    std::map<std::string, double> waits_ns;      ///< means of the share waiting, by what came then
    std::string busiest;                         ///< resource
    AdapterCounts sender;
    AdapterCounts receiver;
    Duration translation{};  ///< all DMA of translations that the NICs missed
    std::uint64_t packets = 0;
    std::uint64_t events = 0;
};
/// One way, from the call of the post until the receiving program has seen it. Each message finds
/// both NICs idle, at a moment of their loops that the seed draws.
std::expected<Latency, std::string> latency(const Trial& trial, const Question& question);

/// The same of a message and its answer, halved, on one VI after the other. Each VI's descriptors
/// and its buffer share a page.
std::expected<double, std::string> half_round_trip_ns(const Trial& trial, const Question& question);

/// Of a resource, for each message of a stream: what it was busy with.
using Spent = std::array<double, share_count>;

struct Bandwidth {
    double bytes_per_second = 0;
    std::int64_t bytes = 0;
    std::uint64_t messages = 0;
    std::uint64_t packets = 0;
    std::string busiest;
    std::map<std::string, Spent> spent_ns;  ///< means, by resource
    AdapterCounts sender;
    AdapterCounts receiver;
    std::uint64_t events = 0;
};
/// From the first post until the last message was seen by the receiving program, which posts a
/// receive anew after each.
std::expected<Bandwidth, std::string> bandwidth(const Trial& trial, const Question& question);

}  // namespace via::lab::study
