// SPDX-License-Identifier: Apache-2.0
/**
 * @file via/shared_receives.hpp
 * @brief Receives that many VIs share: via::SharedReceiveQueue.
 */
#pragma once

#include <via/buffer_pool.hpp>

namespace via {

/** What a shared receive queue is to be. */
struct SharedReceiveOptions {
    VIP_UINT32 receives_max = 4096;     /**< posted, and taken by no VI; 1 to 65536 */
    VIP_UINT32 quota = 0;               /**< of one VI; 0: what a receive queue has room for */
    const ProtectionTag* tag = nullptr; /**< that of all its VIs; null: they have none */
};

/**
 * Receives that many VIs of a NIC share (via/via.h, ViaCreateSharedRecv): each VI that was made
 * with ViOptions::shared takes the oldest one when a message comes for it, and it completes on that
 * VI. Move-only.
 *
 * The destructor destroys it; what is posted never completes then, and buffers of a pool are lost
 * to it. While a VI takes from it, it stays until the NIC closes, so declare it before its VIs.
 *
 * Threads: as Nic; any number may post at once.
 */
class SharedReceiveQueue {
public:
    /** @return the queue; VIP_ERROR_RESOURCE: the NIC has 256 of them */
    [[nodiscard]] static Expected<SharedReceiveQueue> create(
        const Nic& nic, const SharedReceiveOptions& options = {}) {
        if (detail::is_moved_from(options.tag))
            return detail::failure(VIP_INVALID_PARAMETER, "ViaCreateSharedRecv");
        const VIA_SHARED_RECV_ATTRIBUTES attributes{
            options.tag != nullptr ? options.tag->handle() : nullptr, options.receives_max,
            options.quota};
        VIA_SHARED_RECV_HANDLE handle = nullptr;
        const VIP_RETURN code = ViaCreateSharedRecv(nic.handle(), &attributes, &handle);
        if (code != VIP_SUCCESS) return detail::failure(code, "ViaCreateSharedRecv");
        return SharedReceiveQueue(handle);
    }

    ~SharedReceiveQueue() {
        if (handle_ != nullptr) ViaDestroySharedRecv(handle_);
    }
    /** Moves; `other` is empty afterwards, and may only be destroyed or assigned to. */
    SharedReceiveQueue(SharedReceiveQueue&& other) noexcept
        : handle_(std::exchange(other.handle_, nullptr)) {}
    /** Exchanges the two: what this was ends with `other`. */
    SharedReceiveQueue& operator=(SharedReceiveQueue&& other) noexcept {
        std::swap(handle_, other.handle_);
        return *this;
    }

    /** Destroys now, and says whether that went well: VIP_ERROR_RESOURCE while a VI takes from it.
     *  What was posted is the program's again. */
    Expected<void> destroy() noexcept {
        const VIP_RETURN code = ViaDestroySharedRecv(handle_);
        if (code == VIP_SUCCESS) handle_ = nullptr;
        return detail::outcome(code, "ViaDestroySharedRecv");
    }

    /** Posts a receive. VIP_DESCRIPTOR_ERROR: it has a fault and is not posted; its status says
     *  which. */
    Expected<void> post(const Descriptor& descriptor) noexcept {
        return detail::outcome(ViaPostSharedRecv(handle_, descriptor.raw(), descriptor.handle()),
                               "ViaPostSharedRecv");
    }
    /** Receives into a buffer, which on success is the NIC's until BufferPool::reclaim().
     *  VIP_INVALID_PARAMETER: it is nothing, for its pool was empty. */
    Expected<void> post(Buffer&& buffer) noexcept {
        if (!buffer) [[unlikely]]
            return detail::failure(VIP_INVALID_PARAMETER, "ViaPostSharedRecv");
        const auto posted =
            post(buffer.descriptor().receive(buffer.segment(buffer.bytes().size())));
        if (posted) buffer.release();
        return posted;
    }

    /** How many receives no VI has taken, how many VIs there are, the limit that is armed. */
    Expected<VIA_SHARED_RECV_STATE> state() const noexcept {
        VIA_SHARED_RECV_STATE state{};
        const VIP_RETURN code = ViaQuerySharedRecv(handle_, &state);
        if (code != VIP_SUCCESS) return detail::failure(code, "ViaQuerySharedRecv");
        return state;
    }
    /** From now on it is an event, once, that fewer receives than `limit` are left; 0: none. */
    Expected<void> arm(VIP_UINT32 limit) noexcept {
        return detail::outcome(ViaArmSharedRecv(handle_, limit), "ViaArmSharedRecv");
    }
    /** Sleeps until that event. VIP_TIMEOUT; VIP_INVALID_STATE: the queue was destroyed. */
    Expected<void> wait(std::chrono::milliseconds timeout = forever) noexcept {
        return detail::outcome(ViaSharedRecvWait(handle_, detail::timeout_ms(timeout)),
                               "ViaSharedRecvWait");
    }

    /** The handle for via/via.h; stays this object's. */
    VIA_SHARED_RECV_HANDLE handle() const noexcept { return handle_; }

private:
    explicit SharedReceiveQueue(VIA_SHARED_RECV_HANDLE handle) noexcept : handle_(handle) {}

    VIA_SHARED_RECV_HANDLE handle_;
};

}  // namespace via
