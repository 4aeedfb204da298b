// SPDX-License-Identifier: Apache-2.0
// A descriptor and what its completion must tell; the ring of them that a queue of a VI has.
#pragma once

#include <sys/uio.h>

#include <algorithm>
#include <memory>

#include "common.hpp"
#include "info.hpp"

namespace via::fabric {

class Endpoint;
class SharedContext;

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

inline std::size_t length_of(const iovec* pieces, std::size_t count) {
    std::size_t length = 0;
    for (std::size_t index = 0; index < count; ++index) length += pieces[index].iov_len;
    return length;
}

struct alignas(VIP_DESCRIPTOR_ALIGNMENT) Operation {
    VIP_DESCRIPTOR descriptor;
    /// Go on where the descriptor's two end: one address and segments_max pieces.
    VIP_DESCRIPTOR_SEGMENT more[segments_max - 1];
    Endpoint* endpoint;     ///< nullptr: of whichever VI it completes on
    SharedContext* shared;  ///< whose it is; nullptr: the endpoint's
    void* context;
    std::uint64_t flags;  ///< of the completion
    void* buffer;
    std::size_t length;  ///< of the whole operation
    Told told;
    bool last;  ///< of the descriptors that it takes: its pieces, and the question behind them

    VIP_DESCRIPTOR_SEGMENT* segments() { return descriptor.DS; }

    /// From segment `segment` on: `most` bytes of the pieces, from byte `from` of them. All are
    /// of the region `handle`.
    void fill_pieces(std::size_t segment, const iovec* pieces, std::size_t count, std::size_t from,
                     std::size_t most, VIP_MEM_HANDLE handle) {
        std::size_t left = most;
        for (std::size_t index = 0; index < count && left != 0; ++index) {
            const iovec& piece = pieces[index];
            if (from >= piece.iov_len) {
                from -= piece.iov_len;
                continue;
            }
            const std::size_t size = std::min(piece.iov_len - from, left);
            VIP_DATA_SEGMENT& local = segments()[segment++].Local;
            local.Data.Address = static_cast<std::byte*>(piece.iov_base) + from;
            local.Handle = handle;
            local.Length = static_cast<VIP_UINT32>(size);
            left -= size;
            from = 0;
        }
        descriptor.CS.SegCount = static_cast<VIP_UINT16>(segment);
        descriptor.CS.Length = static_cast<VIP_UINT32>(most);
    }
    /// A receive into all `length` bytes of the pieces. Whose it is the caller sets.
    void fill_receive(const iovec* pieces, std::size_t count, std::size_t all, void* its_context,
                      Told its_told, VIP_MEM_HANDLE handle) {
        context = its_context;
        flags = FI_MSG | FI_RECV;
        buffer = count != 0 ? pieces[0].iov_base : nullptr;
        length = all;
        told = its_told;
        last = true;
        descriptor.CS.Control = VIP_CONTROL_OP_SENDRECV;
        descriptor.CS.Reserved = 0;
        fill_pieces(0, pieces, count, 0, all, handle);
    }
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
