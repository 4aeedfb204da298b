// Live counters of one NIC. The storage is the agent's (a shared mapping that `via stat` reads);
// the holder of the turn writes, anybody reads. Plain relaxed stores: no locked instruction.
#pragma once

#include <cstdint>

#include "base/atomic.hpp"

namespace via {

// name, what it counts
#define VIA_COUNTERS(X)                                                             \
    X(polls, "turns taken by the program's own calls")                              \
    X(agent_turns, "turns taken by the progress thread")                            \
    X(frames_sent, "frames handed to a device")                                     \
    X(frames_resent, "lost frames emitted again")                                   \
    X(frames_received, "frames taken from a device")                                \
    X(bytes_sent, "payload bytes handed to a device")                               \
    X(bytes_received, "payload bytes placed")                                       \
    X(sends, "sends completed without error")                                       \
    X(receives, "receives completed without error")                                 \
    X(rdma_writes, "RDMA writes completed without error")                           \
    X(rdma_reads, "RDMA reads completed without error")                             \
    X(atomics, "atomic operations on peers' memory completed without error")        \
    X(direct_transfers, "RDMA to or from a peer's segment, carried out here")       \
    X(messages_pulled, "messages of peers, pulled from their memory in one copy")   \
    X(descriptors_flushed, "descriptors flushed")                                   \
    X(descriptors_failed, "descriptors completed with an error of their own")       \
    X(connections_made, "connections made")                                         \
    X(connections_lost, "connections lost: the peer left, died or broke the rules") \
    X(requests_refused, "connection requests answered with no match or reject")     \
    X(receive_queue_empty, "messages that found no receive posted")                 \
    X(rdma_refused, "RDMA requests of peers refused by the protection table")       \
    X(translation_hits, "lines of pages found in the NIC's own table")              \
    X(translation_misses, "lines that the agent had to load")                       \
    X(translation_evictions, "lines that gave way to others")                       \
    X(frames_refused, "frames of peers that failed a check")                        \
    X(back_pressure, "times a device had no room")                                  \
    X(completion_queue_overruns, "times a completion queue became full")            \
    X(own_frames, "datagrams sent as raw Ethernet frames")                          \
    X(relayed_datagrams, "datagrams of others, passed on as a relay")               \
    X(relayed_bytes, "bytes of these, envelopes included")                          \
    X(relayed_notices, "notices to others that nobody takes their datagrams")       \
    X(relay_refused, "datagrams not passed on: malformed, of or for strangers")     \
    X(relay_no_room, "datagrams not passed on for want of room")                    \
    X(peers_woken, "wake-up calls made to sleeping peers")                          \
    X(wakeups, "times the progress thread or a waiting call woke up")               \
    X(vis_open, "VIs that exist now")                                               \
    X(regions_open, "memory regions registered now")                                \
    X(windows_open, "memory windows bound now")                                     \
    X(paths_open, "paths to other NICs now")

enum class Counter : std::uint32_t {
#define X(name, text) name,
    VIA_COUNTERS(X)
#undef X
        count_
};

constexpr std::uint32_t counter_count = static_cast<std::uint32_t>(Counter::count_);

struct Counters {
    Atomic<std::uint64_t> values[counter_count];

    [[gnu::always_inline]] void add(Counter counter, std::uint64_t n = 1) {
        auto& value = values[static_cast<std::uint32_t>(counter)];
        value.store(value.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
    }
    void subtract(Counter counter, std::uint64_t n = 1) { add(counter, 0 - n); }
    std::uint64_t get(Counter counter) const {
        return values[static_cast<std::uint32_t>(counter)].load(std::memory_order_relaxed);
    }
};

constexpr const char* counter_name(std::uint32_t index) {
    constexpr const char* names[] = {
#define X(name, text) #name,
        VIA_COUNTERS(X)
#undef X
    };
    return names[index];
}

constexpr const char* counter_text(std::uint32_t index) {
    constexpr const char* texts[] = {
#define X(name, text) text,
        VIA_COUNTERS(X)
#undef X
    };
    return texts[index];
}

}  // namespace via
