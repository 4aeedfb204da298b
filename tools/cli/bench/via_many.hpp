// Many to one: sender processes, each with a NIC and a VI of its own, stream to one receiver, who
// takes everything from one completion queue.
#pragma once

#include <sched.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "bench/channel.hpp"
#include "bench/shared_map.hpp"

namespace via::bench {

inline constexpr std::uint32_t most_senders = 64;

// Shared by all senders. The first one, side 0 of the pair, tells the others what to do.
struct SendersBoard {
    struct alignas(128) Sender {
        std::atomic<std::uint32_t> done{0};  // the last order that it has carried out
        std::int64_t cpu_ns = 0;             // of that order
        std::array<char, 256> failure{};     // ends with NUL; not empty: it has given up
    };
    alignas(128) std::atomic<std::uint32_t> order{0};  // a futex: the number of the last order
    std::uint64_t messages = 0;                        // of that order; 0: leave
    Question question;
    std::array<Sender, most_senders> senders;
    cpu_set_t allowed{};   // where this program may run,
    int receiver_cpu = 0;  // and where the receiver does
};

// One side of it; senders share the processors that the receiver does not have. `board` is mapped
// shared, made before the fork of the pair.
std::unique_ptr<Endpoint> make_many_to_one(Link& link, const DeviceOptions& options,
                                           const std::string& discriminator, SendersBoard& board);

}  // namespace via::bench
