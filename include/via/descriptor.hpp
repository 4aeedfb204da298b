// SPDX-License-Identifier: Apache-2.0
/**
 * @file via/descriptor.hpp
 * @brief Building descriptors and reading completed ones.
 */
#pragma once

#include <via/error.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <type_traits>

namespace via {

/** A piece of this process's registered memory, as a descriptor names it. A value. */
struct Segment {
    std::byte* data = nullptr; /**< its first byte */
    VIP_UINT32 length = 0;     /**< bytes */
    VIP_MEM_HANDLE handle = 0; /**< the region that holds it, see MemoryRegion */
};

/** @cond */
namespace detail {

/// More than a segment can name becomes what no NIC accepts, not something short.
constexpr VIP_UINT32 segment_length(std::size_t length) noexcept {
    return static_cast<VIP_UINT32>(std::min<std::size_t>(length, 0xFFFFFFFF));
}

}  // namespace detail
/** @endcond */

/**
 * A piece of a peer's registered memory: the target of RDMA. A value without padding or pointers
 * that may be sent to the peer as it is; see MemoryRegion::remote().
 */
struct RemoteSegment {
    VIP_UINT64 address = 0;    /**< in the peer's program */
    VIP_UINT64 length = 0;     /**< bytes; for the programs, the peer's NIC knows it itself */
    VIP_MEM_HANDLE handle = 0; /**< the peer's */
    VIP_UINT32 reserved = 0;   /**< 0 */

    /** @return what lies from `offset` bytes on; an offset beyond the end gives an empty piece */
    RemoteSegment from(VIP_UINT64 offset) const noexcept {
        const VIP_UINT64 skipped = std::min(offset, length);
        return {address + skipped, length - skipped, handle, 0};
    }
};

/** @return the bytes of an object that is registered memory or lies in it */
template <class T>
    requires std::is_trivially_copyable_v<T>
std::span<std::byte> bytes_of(T& object) noexcept {
    return std::as_writable_bytes(std::span(&object, 1));
}

/**
 * A descriptor and how to post it: where its 64 bytes (or more) lie, in which region, and room for
 * how many segments. Owns nothing and is copied freely; the bytes are the NIC's from the post until
 * it is done (VIPL 4.9) and must not be rebuilt meanwhile. Built once, it may be posted again and
 * again. All functions are a few stores; no allocation, no exception.
 *
 *     descriptor.send(region.segment(0, 100)).immediate(7);
 *
 * Threads: one at a time.
 */
class Descriptor {
public:
    /**
     * @param at        begins at a multiple of 64, inside the region `handle`; else posting fails
     * @param handle    region that holds the descriptor
     * @param segments  room for so many segments: two lie in the first 64 bytes, each further one
     *                  is 16 bytes behind; at most 252
     */
    Descriptor(VIP_DESCRIPTOR* at, VIP_MEM_HANDLE handle, VIP_UINT16 segments = 2) noexcept
        : at_(at), handle_(handle), room_(segments) {}

    /** A send of the segments given, in their order; none is a message of length 0 (VIPL 4.10). */
    template <class... Segments>
        requires(std::is_convertible_v<Segments, Segment> && ...)
    Descriptor& send(const Segments&... segments) noexcept {
        return begin(VIP_CONTROL_OP_SENDRECV).add_all(segments...);
    }
    /** A receive with room for the sum of the segments given (VIPL 4.10). */
    template <class... Segments>
        requires(std::is_convertible_v<Segments, Segment> && ...)
    Descriptor& receive(const Segments&... segments) noexcept {
        return begin(VIP_CONTROL_OP_SENDRECV).add_all(segments...);
    }
    /** Writes the segments into the peer's memory, one behind the other (VIPL 4.24). */
    template <class... Segments>
        requires(std::is_convertible_v<Segments, Segment> && ...)
    Descriptor& rdma_write(const RemoteSegment& to, const Segments&... from) noexcept {
        return begin(VIP_CONTROL_OP_RDMAWRITE).remote(to).add_all(from...);
    }
    /** A send of a copy of the bytes, made now and kept behind the descriptor's first 64 bytes, in
     *  the room of segments beyond the second: so they may lie anywhere, and be changed at once
     *  (via/via.h, ViaCopyInline). More than inline_room(): posting fails with
     *  VIP_INVALID_PARAMETER. */
    Descriptor& send_inline(std::span<const std::byte> bytes) noexcept {
        return begin(VIP_CONTROL_OP_SENDRECV).copy(bytes);
    }
    /** An RDMA write of such a copy. */
    Descriptor& rdma_write_inline(const RemoteSegment& to,
                                  std::span<const std::byte> bytes) noexcept {
        return begin(VIP_CONTROL_OP_RDMAWRITE).remote(to).copy(bytes);
    }
    /** Fills the segments from the peer's memory; reliable VIs only (VIPL 1.9). */
    template <class... Segments>
        requires(std::is_convertible_v<Segments, Segment> && ...)
    Descriptor& rdma_read(const RemoteSegment& from, const Segments&... to) noexcept {
        return begin(VIP_CONTROL_OP_RDMAREAD).remote(from).add_all(to...);
    }

    /**
     * Of an atomic operation, for Vi::post_fetch_add() and Vi::post_compare_swap(), which say the
     * rest: changes the word at `word`, a multiple of 8 in the peer's memory, and brings what was
     * there before. Its fence() is as others'.
     * @param was  eight bytes
     */
    Descriptor& atomic(const RemoteSegment& word, const Segment& was) noexcept {
        return begin(VIP_CONTROL_OP_SENDRECV).remote(word).add(was);
    }

    /** One segment more. Beyond the room posting fails with VIP_INVALID_PARAMETER. */
    Descriptor& add(const Segment& segment) noexcept {
        VIP_CONTROL_SEGMENT& control = at_->CS;
        if (control.SegCount >= room_) {
            overfull_ = true;
            return *this;
        }
        // Segments beyond the two that vipl.h declares follow without a gap (VIPL 1.2).
        auto* const first = reinterpret_cast<std::byte*>(at_) + offsetof(VIP_DESCRIPTOR, DS);
        auto& next = reinterpret_cast<VIP_DATA_SEGMENT*>(first)[control.SegCount++];
        next.Data.AddressBits = reinterpret_cast<std::uintptr_t>(segment.data);
        next.Handle = segment.handle;
        next.Length = segment.length;
        control.Length = control.Length + segment.length;
        return *this;
    }
    /** Lets 32 bits travel with a send or an RDMA write; the write then consumes a receive of the
     *  peer (VIPL 4.11). */
    Descriptor& immediate(VIP_UINT32 value) noexcept {
        at_->CS.Control |= VIP_CONTROL_IMMEDIATE;
        at_->CS.ImmediateData = value;
        return *this;
    }
    /** Starts only after earlier RDMA reads of its queue completed (VIPL 4.23). */
    Descriptor& fence() noexcept {
        at_->CS.Control |= VIP_CONTROL_QFENCE;
        return *this;
    }

    /** The descriptor itself. */
    VIP_DESCRIPTOR* raw() const noexcept { return at_; }
    /** The region that holds it. */
    VIP_MEM_HANDLE handle() const noexcept { return handle_; }
    /** Bytes that send_inline() has room for: 16 for each segment beyond the second. */
    std::size_t inline_room() const noexcept {
        return room_ > 2 ? (room_ - 2U) * sizeof(VIP_DATA_SEGMENT) : 0;
    }
    /** More segments were added, or bytes copied, than there is room for. */
    bool overfull() const noexcept { return overfull_; }

private:
    Descriptor& begin(VIP_UINT16 operation) noexcept {
        at_->CS.SegCount = 0;
        at_->CS.Control = operation;
        at_->CS.Reserved = 0;
        at_->CS.Length = 0;
        overfull_ = false;
        return *this;
    }
    Descriptor& remote(const RemoteSegment& segment) noexcept {
        VIP_ADDRESS_SEGMENT& first = at_->DS[0].Remote;
        first.Data.AddressBits = segment.address;
        first.Handle = segment.handle;
        first.Reserved = 0;
        at_->CS.SegCount = 1;
        return *this;
    }
    Descriptor& copy(std::span<const std::byte> bytes) noexcept {
        if (bytes.size() > inline_room())
            overfull_ = true;
        else
            ViaCopyInline(at_, handle_, bytes.data(), static_cast<VIP_UINT32>(bytes.size()));
        return *this;
    }
    template <class... Segments>
    Descriptor& add_all(const Segments&... segments) noexcept {
        (add(segments), ...);
        return *this;
    }

    VIP_DESCRIPTOR* at_;
    VIP_MEM_HANDLE handle_;
    VIP_UINT16 room_;
    bool overfull_ = false;
};

/** What a completed descriptor did. */
enum class Operation : VIP_UINT32 {
    send = VIP_STATUS_OP_SEND,
    receive = VIP_STATUS_OP_RECEIVE,
    rdma_write = VIP_STATUS_OP_RDMA_WRITE,
    remote_rdma_write = VIP_STATUS_OP_REMOTE_RDMA_WRITE, /**< the peer's, with immediate data */
    rdma_read = VIP_STATUS_OP_RDMA_READ,
    compare_swap = VIA_STATUS_OP_COMPARE_SWAP,
    fetch_add = VIA_STATUS_OP_FETCH_ADD
};

/**
 * A descriptor that completed without error and was taken off its queue, or nothing yet. A value;
 * what it tells is read from the descriptor, so ask before it is built or posted again.
 */
class Completion {
public:
    /** Nothing is done yet. */
    Completion() noexcept = default;
    /** @param descriptor  done and taken off a queue of `vi` */
    Completion(VIP_DESCRIPTOR* descriptor, VIP_VI_HANDLE vi) noexcept
        : descriptor_(descriptor), vi_(vi) {}

    /** False: nothing is done yet; then the functions below must not be called. */
    explicit operator bool() const noexcept { return descriptor_ != nullptr; }

    /** The descriptor, again the program's. */
    VIP_DESCRIPTOR* descriptor() const noexcept { return descriptor_; }
    /** The VI on which it was posted. */
    VIP_VI_HANDLE vi() const noexcept { return vi_; }
    /** What it did. */
    Operation operation() const noexcept {
        return static_cast<Operation>(descriptor_->CS.Status & VIP_STATUS_OP_MASK);
    }
    /** Whether it comes from the receive queue. */
    bool is_receive() const noexcept {
        return operation() == Operation::receive || operation() == Operation::remote_rdma_write;
    }
    /** Bytes that arrived, were sent, written or read (VIPL 4.11). */
    VIP_UINT32 length() const noexcept { return descriptor_->CS.Length; }
    /** The 32 bits that came with a message, if any did. */
    std::optional<VIP_UINT32> immediate() const noexcept {
        if ((descriptor_->CS.Status & VIP_STATUS_IMMEDIATE) == 0) return std::nullopt;
        return descriptor_->CS.ImmediateData;
    }
    /**
     * The message, as far as it lies in the first segment of a receive; all of it when the receive
     * has one segment. Empty for everything else.
     */
    std::span<std::byte> bytes() const noexcept {
        if (operation() != Operation::receive || descriptor_->CS.SegCount == 0) return {};
        const VIP_DATA_SEGMENT& first = descriptor_->DS[0].Local;
        return {reinterpret_cast<std::byte*>(first.Data.AddressBits),
                std::min<std::size_t>(length(), first.Length)};
    }

private:
    VIP_DESCRIPTOR* descriptor_ = nullptr;
    VIP_VI_HANDLE vi_ = nullptr;
};

/** @cond */
namespace detail {

[[gnu::cold, gnu::noinline]] inline std::unexpected<Error> failed(VIP_RETURN code, const char* call,
                                                                  VIP_DESCRIPTOR* descriptor,
                                                                  VIP_VI_HANDLE vi) noexcept {
    return std::unexpected(Error(code, call, descriptor, vi));
}

/// The answer of a Done or Wait.
inline Expected<Completion> taken(VIP_RETURN code, const char* call, VIP_DESCRIPTOR* descriptor,
                                  VIP_VI_HANDLE vi) noexcept {
    if (code == VIP_SUCCESS) return Completion(descriptor, vi);
    if (code == VIP_NOT_DONE) return Completion();
    return failed(code, call, descriptor, vi);
}

}  // namespace detail
/** @endcond */

}  // namespace via
