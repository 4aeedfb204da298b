// SPDX-License-Identifier: Apache-2.0
/**
 * @file via/channel_parts.hpp
 * @brief How a via::MessageChannel is set and what it counts; behind that, what it is made of.
 */
#pragma once

#include <via/registration_cache.hpp>
#include <via/store_ring.hpp>

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace via {

/** How an end of a MessageChannel is to be. The two ends may differ: the smaller limit holds. */
struct MessageChannelOptions {
    /** Up to so many bytes go by stores; 0: none do, and there is no shared segment. At most 16383,
     *  and half of the ring. The default, 146 lines, is well below where one message of the VI
     *  became as fast (16 KB, docs/diary), and leaves room for several in the ring. */
    std::size_t stores_max = 8176;
    /** Above, up to so many bytes go as one message of the VI; 0: only empty ones do. With
     *  `registrations` RDMA was faster from between 32 and 64 KB on; where each message registers
     *  its memory, only from several hundred KB on: then raise this. */
    std::size_t message_max = 32768;
    std::size_t ring_bytes = 65536; /**< for the peer's stores; a power of two, 1 KiB to 64 MiB */
    std::uint32_t receives = 32;    /**< messages of the VI that wait here; 4 to 1000 */
    /** While send() waits it takes in messages that come, up to so many bytes. */
    std::size_t held_max = std::size_t{256} << 20;
    std::uint32_t polls = 2000;                        /**< before it sleeps */
    std::chrono::milliseconds connect_timeout{10'000}; /**< of create(): until the peer's */
    /** How long the rest of a message that has begun may take; then the peer has stopped. */
    std::chrono::milliseconds transfer_timeout{60'000};
    /** Where the program's memory for large messages is registered; it outlives the channel, and
     *  the peer may write to what it keeps (RegistrationCache). Null: each message registers its
     *  own, and the peer's right ends with it. */
    RegistrationCache* registrations = nullptr;
};

/** How many messages went which way. */
struct MessageCounts {
    std::uint64_t stored = 0;  /**< small ones, by stores */
    std::uint64_t posted = 0;  /**< middle ones, as one message of the VI */
    std::uint64_t written = 0; /**< large ones, by RDMA write */
};

/** What an end of a MessageChannel has done so far. */
struct ChannelCounts {
    MessageCounts sent;       /**< by this end */
    MessageCounts received;   /**< by this end */
    std::uint64_t held = 0;   /**< of those received: taken in while send() waited */
    std::uint64_t sleeps = 0; /**< how often it slept */
    std::uint64_t wakes = 0;  /**< how often it woke the peer */
};

/** @cond */
namespace detail {

enum class FrameKind : std::uint32_t { hello = 1, ready, message, large, answer, taken };

/// What a message of the VI begins with. One of length 0 is a wake-up and says nothing else.
struct alignas(8) ChannelFrame {
    FrameKind kind{};
    std::uint32_t handle = 0;      ///< hello: of the segment; answer: of the memory
    std::uint64_t address = 0;     ///< the same
    std::uint64_t length = 0;      ///< message, large: bytes; hello: message_max
    std::uint64_t number = 0;      ///< answer: which; taken: messages; ready: 1, if attached
    std::uint32_t version = 0;     ///< hello
    std::uint32_t lines = 0;       ///< hello: of the ring, 0: no segment
    std::uint32_t receives = 0;    ///< hello
    std::uint32_t stores_max = 0;  ///< hello
    std::uint32_t fences = 0;      ///< hello: ChannelFences::offer()
    std::uint32_t zero = 0;
    std::uint64_t reserved = 0;
};
static_assert(sizeof(ChannelFrame) == 64);

/// Between a store and a look at whether the peer sleeps there is a fence, and one between saying
/// that one sleeps and a last look at what was stored. Where the sleeper's is a heavy one, which
/// the kernel makes in every process that enlisted (membarrier), the other need only keep the
/// compiler from changing the order, and costs nothing. Else both are full ones.
class ChannelFences {
public:
    /// Enlists this process. 1: its sleepers make heavy fences; 0: the kernel or a filter of system
    /// calls forbids it.
    std::uint32_t offer() noexcept {
        enlisted_ = membarrier(MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED);
        heavy_ = enlisted_ && membarrier(MEMBARRIER_CMD_GLOBAL_EXPEDITED);
        return heavy_ ? 1 : 0;
    }
    /// @param offered  by the peer. If it does not keep to that, it misses its own wake-ups.
    void heard(std::uint32_t offered) noexcept { light_ = enlisted_ && offered == 1; }

    void after_store() const noexcept {
        if (light_) [[likely]]
            std::atomic_signal_fence(std::memory_order_seq_cst);
        else
            std::atomic_thread_fence(std::memory_order_seq_cst);
    }
    /// @return whether the peer's wake-up is sure to come. It is not where what was offered has
    /// been forbidden since.
    bool before_sleep() const noexcept {
        if (heavy_) return membarrier(MEMBARRIER_CMD_GLOBAL_EXPEDITED);
        std::atomic_thread_fence(std::memory_order_seq_cst);
        return true;
    }

private:
    static bool membarrier(int command) noexcept {
        return syscall(SYS_membarrier, command, 0, 0) == 0;
    }
    bool enlisted_ = false;
    bool heavy_ = false;  ///< is what before_sleep() makes
    bool light_ = false;  ///< is what after_store() makes
};

/// Memory that the peer may write by RDMA, while this lives.
class Exposed {
public:
    Exposed() noexcept = default;
    ~Exposed() { end(); }
    Exposed(const Exposed&) = delete;
    Exposed& operator=(const Exposed&) = delete;

    /// @param cache  may keep the registration; null: nobody does
    Expected<void> begin(VIP_NIC_HANDLE nic, std::span<std::byte> bytes, RegistrationCache* cache) {
        if (cache != nullptr) {
            auto lease = cache->lease(bytes, {.rdma_write = true});
            if (lease) {
                lease_ = std::move(*lease);
                return {};
            }
            // One that has no room for it may not stop a message: as without a cache.
            if (lease.error().code() != VIP_ERROR_RESOURCE)
                return std::unexpected(std::move(lease.error()));
        }
        VIP_MEM_ATTRIBUTES rights = attributes_of({.rdma_write = true});
        nic_ = nic;
        at_ = bytes.data();
        return outcome(VipRegisterMem(nic, at_, bytes.size(), &rights, &handle_), "VipRegisterMem");
    }
    void end() noexcept {
        lease_.end();
        if (handle_ != 0) VipDeregisterMem(nic_, at_, std::exchange(handle_, 0));
    }
    VIP_MEM_HANDLE handle() const noexcept { return lease_ ? lease_.handle() : handle_; }

private:
    VIP_NIC_HANDLE nic_ = nullptr;
    std::byte* at_ = nullptr;
    VIP_MEM_HANDLE handle_ = 0;
    RegistrationLease lease_;
};

/// A message taken in while send() waited.
struct Held {
    std::unique_ptr<Held> next;
    std::size_t length;
    std::unique_ptr<std::byte[]> bytes;
    std::span<std::byte> span() const noexcept { return {bytes.get(), length}; }
};

/// First in, first out; its end is no recursion however long it is.
class HeldList {
public:
    HeldList() noexcept = default;
    ~HeldList() {
        while (first_) pop();
    }
    HeldList(const HeldList&) = delete;
    HeldList& operator=(const HeldList&) = delete;

    const Held* first() const noexcept { return first_.get(); }
    std::size_t bytes() const noexcept { return bytes_; }
    void push(std::unique_ptr<Held> held) noexcept {
        bytes_ += cost(held->length);
        Held* const added = held.get();
        (last_ != nullptr ? last_->next : first_) = std::move(held);
        last_ = added;
    }
    void pop() noexcept {
        bytes_ -= cost(first_->length);
        first_ = std::move(first_->next);
        if (!first_) last_ = nullptr;
    }
    static constexpr std::size_t cost(std::size_t length) noexcept { return length + sizeof(Held); }

private:
    std::unique_ptr<Held> first_;
    Held* last_ = nullptr;
    std::size_t bytes_ = 0;
};

}  // namespace detail
/** @endcond */

}  // namespace via
