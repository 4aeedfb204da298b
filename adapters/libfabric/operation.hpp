// SPDX-License-Identifier: Apache-2.0
// A descriptor and what its completion must tell; the ring of them that a queue of a VI has.
#pragma once

#include <memory>

#include "common.hpp"
#include "info.hpp"

namespace via::fabric {

class Endpoint;

/// Which ends of an operation the program reads of.
enum class Told : std::uint8_t {
    all,
    errors,
    nothing,  ///< it was injected: there is no context to tell an error with
};

/// What a program reads from a completion queue.
struct Completion {
    void* context;
    std::uint64_t flags;
    std::size_t length;
    void* buffer;
    std::uint64_t data;
    int error;  ///< FI_E..., positive; 0: none
    VIP_UINT32 status;
};

struct alignas(VIP_DESCRIPTOR_ALIGNMENT) Operation {
    VIP_DESCRIPTOR descriptor;
    /// Go on where the descriptor's two end: one address and segments_max pieces.
    VIP_DESCRIPTOR_SEGMENT more[segments_max - 1];
    Endpoint* endpoint;
    void* context;
    std::uint64_t flags;  ///< of the completion
    void* buffer;
    std::size_t length;  ///< of the whole operation
    Told told;
    bool last;  ///< of the descriptors that it takes: its pieces, and the question behind them

    VIP_DESCRIPTOR_SEGMENT* segments() { return descriptor.DS; }
};

/// Operations complete in the order in which they were posted, so a ring has them all.
class OperationRing {
public:
    void create(std::uint32_t size) {
        operations_ = std::make_unique<Operation[]>(size);
        size_ = size;
    }
    std::uint32_t size() const { return size_; }
    /// Held while one is taken, filled and posted, if several threads may do so.
    SpinLock& lock() { return lock_; }
    bool has_room(std::uint32_t count) const {
        return size_ - (head_ - tail_.load(std::memory_order_acquire)) >= count;
    }
    /// The next one, and its place; there must be room. take_back() if it could not be posted.
    Operation& take(std::uint32_t& place) {
        place = head_++ % size_;
        return operations_[place];
    }
    void take_back() { --head_; }
    /// The oldest has completed; under the lock of its completion queue.
    void give_back() {
        tail_.store(tail_.load(std::memory_order_relaxed) + 1, std::memory_order_release);
    }

private:
    std::unique_ptr<Operation[]> operations_;
    std::uint32_t size_ = 0;
    std::uint32_t head_ = 0;
    SpinLock lock_;
    alignas(64) std::atomic<std::uint32_t> tail_{0};
};

}  // namespace via::fabric
