// SPDX-License-Identifier: Apache-2.0
/**
 * @file via/buffer_pool.hpp
 * @brief Registered buffers, each with a descriptor of its own: via::BufferPool and via::Buffer.
 */
#pragma once

#include <via/memory.hpp>

#include <cassert>
#include <vector>

namespace via {

class BufferPool;

/** @cond */
namespace detail {

enum class BufferState : std::uint8_t { free, held, posted };

struct PoolStorage {
    MemoryRegion region;
    std::size_t stride;               ///< bytes from one descriptor to the next
    std::size_t bytes_at;             ///< of the buffer, behind its descriptor
    std::size_t size;                 ///< bytes of a buffer
    VIP_UINT16 segments;              ///< room of a descriptor
    std::vector<std::uint32_t> free;  ///< indices; a stack, so that warm buffers come first
    std::vector<BufferState> states;
};

}  // namespace detail
/** @endcond */

/**
 * A buffer of a pool, with its descriptor, or nothing. Move-only; the destructor gives it back. The
 * pool must outlive it. Posting it to a VI hands it to the NIC; BufferPool::reclaim() makes a
 * Buffer of the completion again. Threads: as its pool.
 */
class Buffer {
public:
    /** Nothing. */
    Buffer() noexcept = default;
    ~Buffer() { give_back(); }
    /** Moves; `other` is nothing afterwards. */
    Buffer(Buffer&& other) noexcept
        : pool_(std::exchange(other.pool_, nullptr)), index_(other.index_) {}
    /** Exchanges the two: what this was ends with `other`. */
    Buffer& operator=(Buffer&& other) noexcept {
        std::swap(pool_, other.pool_);
        std::swap(index_, other.index_);
        return *this;
    }

    /** False: nothing, for instance because the pool was empty. Then call nothing below. */
    explicit operator bool() const noexcept { return pool_ != nullptr; }

    /** All its bytes. */
    std::span<std::byte> bytes() const noexcept { return {base() + pool_->bytes_at, pool_->size}; }
    /** The first `length` bytes, as a descriptor names them. More than it has: what no NIC accepts,
     *  since behind it lie other buffers. */
    Segment segment(std::size_t length) const noexcept {
        const std::span<std::byte> all = bytes();
        return {all.data(), detail::segment_length(length <= all.size() ? length : SIZE_MAX),
                pool_->region.handle()};
    }
    /** Its own descriptor. Who posts that himself keeps the Buffer until the descriptor is done. */
    Descriptor descriptor() const noexcept {
        return {reinterpret_cast<VIP_DESCRIPTOR*>(base()), pool_->region.handle(), pool_->segments};
    }

    /** Gives it back now. */
    void give_back() noexcept {
        if (pool_ == nullptr) return;
        pool_->states[index_] = detail::BufferState::free;
        pool_->free.push_back(index_);  // has room for all: allocates nothing
        pool_ = nullptr;
    }
    /** Leaves it to the NIC; Vi::post_send and post_receive do this. */
    void release() noexcept {
        pool_->states[index_] = detail::BufferState::posted;
        pool_ = nullptr;
    }

private:
    friend class BufferPool;
    Buffer(detail::PoolStorage* pool, std::uint32_t index) noexcept : pool_(pool), index_(index) {
        pool->states[index] = detail::BufferState::held;
    }
    std::byte* base() const noexcept {
        return pool_->region.bytes().data() + index_ * pool_->stride;
    }

    detail::PoolStorage* pool_ = nullptr;
    std::uint32_t index_ = 0;
};

/** What a pool is made of. */
struct BufferPoolOptions {
    std::uint32_t buffers = 64; /**< how many, 1 or more */
    std::uint32_t size = 4096;  /**< bytes of each; each begins at a multiple of 64 */
    VIP_UINT16 segments = 2;    /**< room in each descriptor, an RDMA's target included */
    MemoryRights rights{};      /**< of the one region in which all of them lie */
};

/**
 * Buffers of one size in one region, each with a descriptor. Taking and giving back allocate
 * nothing. Move-only; Buffers stay valid when the pool is moved. One that was moved from has none
 * to give.
 *
 * Threads: a pool and its Buffers belong to one thread at a time, as a std::vector does; threads
 * that share nothing have a pool each.
 *
 * Order of destruction: after its Buffers; and after the VIs on which some are posted, or see
 * MemoryRegion.
 */
class BufferPool {
public:
    /** Allocates all buffers and registers them. VIP_ERROR_RESOURCE: there is no memory for so many
     *  or so large ones. */
    [[nodiscard]] static Expected<BufferPool> create(const Nic& nic,
                                                     const BufferPoolOptions& options = {}) {
        const std::uint64_t bytes_at =
            round_up(32 + 16 * std::uint64_t{std::max<VIP_UINT16>(options.segments, 2)});
        const std::uint64_t stride = bytes_at + round_up(options.size);
        std::size_t bytes = 0;
        if (__builtin_mul_overflow(stride, options.buffers, &bytes)) return too_large(options);
        auto region = MemoryRegion::allocate(nic, bytes, options.rights);
        if (!region) return std::unexpected(std::move(region.error()));
        return BufferPool(std::make_unique<detail::PoolStorage>(
            detail::PoolStorage{std::move(*region), static_cast<std::size_t>(stride),
                                static_cast<std::size_t>(bytes_at), options.size, options.segments,
                                all_indices(options.buffers),
                                std::vector(options.buffers, detail::BufferState::free)}));
    }

    /** A buffer, or nothing when all are taken. Its bytes are as the last user left them. */
    [[nodiscard]] Buffer take() noexcept {
        if (storage_ == nullptr) return {};
        std::vector<std::uint32_t>& free = storage_->free;
        if (free.empty()) return {};
        const std::uint32_t index = free.back();
        free.pop_back();
        return {storage_.get(), index};
    }

    /** The buffer whose descriptor this is, back from the NIC. Nothing, if it is not one of this
     *  pool's that was posted. */
    [[nodiscard]] Buffer reclaim(const VIP_DESCRIPTOR* descriptor) noexcept {
        if (storage_ == nullptr) return {};
        const auto* at = reinterpret_cast<const std::byte*>(descriptor);
        const std::span<std::byte> all = storage_->region.bytes();
        if (std::less<>()(at, all.data()) || !std::less<>()(at, all.data() + all.size())) return {};
        const std::size_t index = static_cast<std::size_t>(at - all.data()) / storage_->stride;
        if (storage_->states[index] != detail::BufferState::posted) return {};
        return {storage_.get(), static_cast<std::uint32_t>(index)};
    }
    /** The buffer of a completion, which then may be posted again or given back. */
    [[nodiscard]] Buffer reclaim(const Completion& completion) noexcept {
        return reclaim(completion.descriptor());
    }
    /** The buffer of a descriptor that failed. */
    [[nodiscard]] Buffer reclaim(const Error& error) noexcept {
        return error.descriptor() != nullptr ? reclaim(error.descriptor()) : Buffer();
    }

    /** Buffers that can be taken now. */
    std::size_t available() const noexcept { return storage_ ? storage_->free.size() : 0; }
    /** Bytes of a buffer. */
    std::size_t buffer_size() const noexcept { return storage_ ? storage_->size : 0; }
    /** The region in which all of them lie; not of a pool that was moved from. */
    const MemoryRegion& region() const noexcept { return storage_->region; }

private:
    explicit BufferPool(std::unique_ptr<detail::PoolStorage> storage) noexcept
        : storage_(std::move(storage)) {}
    [[gnu::cold, gnu::noinline]] static std::unexpected<Error> too_large(
        const BufferPoolOptions& options) {
        return std::unexpected(Error(VIP_ERROR_RESOURCE, "BufferPool::create",
                                     "there is no memory for " + std::to_string(options.buffers) +
                                         " buffers of " + std::to_string(options.size) +
                                         " bytes. Make fewer or smaller ones"));
    }
    static constexpr std::uint64_t round_up(std::uint64_t size) noexcept {
        return (size + VIP_DESCRIPTOR_ALIGNMENT - 1) / VIP_DESCRIPTOR_ALIGNMENT *
               VIP_DESCRIPTOR_ALIGNMENT;
    }
    static std::vector<std::uint32_t> all_indices(std::uint32_t count) {
        std::vector<std::uint32_t> indices(count);
        for (std::uint32_t& index : indices) index = --count;
        return indices;
    }

    std::unique_ptr<detail::PoolStorage> storage_;
};

}  // namespace via
