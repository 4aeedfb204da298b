// The same bytes by stores into imported memory and by the DMA engine: when they are there, and
// what the sending processor spends on them.
#pragma once

#include <cstdint>
#include <expected>
#include <string>

#include "lab/study/cluster.hpp"

namespace via::lab::study {

struct Moved {
    std::int64_t one_way_ns = 0;    ///< until the other program, which polls, has seen it
    std::int64_t processor_ns = 0;  ///< of the sender: busy, or waiting for its own buffers
};
std::expected<Moved, std::string> by_stores(const Trial& trial, std::int64_t size);
/// An RDMA write, and a poll that finds it done.
std::expected<Moved, std::string> by_dma(const Trial& trial, std::int64_t size);

/// Stores of that size, one behind the other.
std::expected<double, std::string> store_bytes_per_second(const Trial& trial, std::int64_t size);
/// A word out of imported memory.
std::expected<std::int64_t, std::string> load_ns(const Trial& trial);

/// What a program has left of the time that the DMA engine takes for these bytes: beside it, but
/// slowed down (window.dma_slows), or after stores, which are over earlier.
struct Left {
    double by_dma_ns = 0;
    double by_stores_ns = 0;
};
/// As 003 reckons, "A new generic and reconfigurable PCI-SCI bridge" II.A: starting the engine
/// takes no time, and stores take the processor as long as they take the bus.
std::expected<Left, std::string> left_as_reckoned(const Trial& trial, std::int64_t size);
/// The post and the poll are time of the processor, and its buffers drain by themselves.
std::expected<Left, std::string> left(const Trial& trial, std::int64_t size);

/// The first size, in steps of a packet, from which on DMA leaves more; 0: none up to 64 KB.
template <class Reckon>
std::int64_t dma_leaves_more_from(const Trial& trial, Reckon reckon) {
    for (std::int64_t size = trial.machine.costs.stream; size <= 65536;
         size += trial.machine.costs.stream) {
        const auto found = reckon(trial, size);
        if (found && found->by_dma_ns > found->by_stores_ns) return size;
    }
    return 0;
}

}  // namespace via::lab::study
