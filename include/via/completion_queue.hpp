// SPDX-License-Identifier: Apache-2.0
/**
 * @file via/completion_queue.hpp
 * @brief One place where the completions of many work queues arrive: via::CompletionQueue.
 */
#pragma once

#include <via/descriptor.hpp>
#include <via/nic.hpp>

namespace via {

/**
 * A completion queue (VIPL 4.15, 4.16). Name it in ViOptions. Move-only.
 *
 * It grows without loss and may overrun without loss. The destructor destroys it; while a VI is
 * bound to it, it stays until the NIC closes, so declare it before its VIs.
 *
 * Threads: as Nic; several may wait and take at once.
 */
class CompletionQueue {
public:
    /** @param entries  1 to 65536; VIP_INVALID_PARAMETER beyond */
    [[nodiscard]] static Expected<CompletionQueue> create(const Nic& nic,
                                                          VIP_ULONG entries = 1024) {
        VIP_CQ_HANDLE handle = nullptr;
        const VIP_RETURN code = VipCreateCQ(nic.handle(), entries, &handle);
        if (code != VIP_SUCCESS) return detail::failure(code, "VipCreateCQ");
        return CompletionQueue(handle);
    }

    ~CompletionQueue() {
        if (handle_ != nullptr) VipDestroyCQ(handle_);
    }
    /** Moves; `other` is empty afterwards, and may only be destroyed or assigned to. */
    CompletionQueue(CompletionQueue&& other) noexcept
        : handle_(std::exchange(other.handle_, nullptr)) {}
    /** Exchanges the two: what this was ends with `other`. */
    CompletionQueue& operator=(CompletionQueue&& other) noexcept {
        std::swap(handle_, other.handle_);
        return *this;
    }

    /** Destroys now, and says whether that went well: VIP_ERROR_RESOURCE while a VI has it. */
    Expected<void> destroy() noexcept {
        const VIP_RETURN code = VipDestroyCQ(handle_);
        if (code == VIP_SUCCESS) handle_ = nullptr;
        return detail::outcome(code, "VipDestroyCQ");
    }

    /** Other room, without loss, also under traffic and with a waiter. @param entries as create */
    Expected<void> resize(VIP_ULONG entries) noexcept {
        return detail::outcome(VipResizeCQ(handle_, entries), "VipResizeCQ");
    }

    /**
     * Takes the next completion: entry and descriptor in one. Never blocks; a poll that finds
     * nothing lets the NIC work (VIPL 4.13, 4.15). Entries whose descriptors were taken off
     * otherwise, by Vi::drain() for instance, are passed over.
     * @return the completion, an empty one when there is none, or the error of a descriptor
     */
    Expected<Completion> done() noexcept {
        VIP_VI_HANDLE vi = nullptr;
        VIP_BOOLEAN receive = VIP_FALSE;
        VIP_RETURN code = VIP_SUCCESS;
        while ((code = VipCQDone(handle_, &vi, &receive)) == VIP_SUCCESS) {
            VIP_DESCRIPTOR* descriptor = nullptr;
            code = take(vi, receive, descriptor);
            if (descriptor != nullptr) [[likely]]
                return completed(code, receive, descriptor, vi);
        }
        if (code == VIP_NOT_DONE) return Completion();
        return detail::failure(code, "VipCQDone");
    }

    /**
     * As done(), but sleeps until there is one; never empty.
     * @param timeout  or via::forever; VIP_TIMEOUT when it is over
     */
    Expected<Completion> wait(std::chrono::milliseconds timeout = forever) noexcept {
        const detail::Deadline deadline(timeout);
        VIP_VI_HANDLE vi = nullptr;
        VIP_BOOLEAN receive = VIP_FALSE;
        VIP_RETURN code = VIP_SUCCESS;
        while ((code = VipCQWait(handle_, detail::timeout_ms(deadline.left()), &vi, &receive)) ==
               VIP_SUCCESS) {
            VIP_DESCRIPTOR* descriptor = nullptr;
            code = take(vi, receive, descriptor);
            if (descriptor != nullptr) [[likely]]
                return completed(code, receive, descriptor, vi);
        }
        return detail::failure(code, "VipCQWait");
    }

    /**
     * Takes entries alone, several at once; for each of them take one descriptor off the queue it
     * names, with VipSendDone or VipRecvDone: unless drain() took them off, there is one. Never
     * blocks.
     * @param room  for 1 or more; VIP_INVALID_PARAMETER for none
     * @return the entries taken, the first of `room`; none when there is none
     */
    Expected<std::span<VIA_COMPLETION>> entries(std::span<VIA_COMPLETION> room) noexcept {
        VIP_UINT32 taken = 0;
        const VIP_RETURN code =
            ViaCQDoneMany(handle_, room.data(), static_cast<VIP_UINT32>(room.size()), &taken);
        if (code == VIP_SUCCESS || code == VIP_NOT_DONE) return room.first(taken);
        return detail::failure(code, "ViaCQDoneMany");
    }

    /**
     * A file descriptor that is readable while there are completions, for poll, epoll and io_uring.
     * Take with done() until it is empty. The queue's: never read, write or close it.
     */
    Expected<int> descriptor() noexcept {
        int descriptor = -1;
        const VIP_RETURN code = ViaCQDescriptor(handle_, &descriptor);
        if (code != VIP_SUCCESS) return detail::failure(code, "ViaCQDescriptor");
        return descriptor;
    }

    /** The handle for vipl.h and via/via.h; stays this object's. */
    VIP_CQ_HANDLE handle() const noexcept { return handle_; }

private:
    explicit CompletionQueue(VIP_CQ_HANDLE handle) noexcept : handle_(handle) {}

    /// The descriptor that an entry tells of: done, for an entry is never visible before (VIPL
    /// 4.15). Stays null where the program took it off the queue itself, or its VI has just gone.
    static VIP_RETURN take(VIP_VI_HANDLE vi, VIP_BOOLEAN receive,
                           VIP_DESCRIPTOR*& descriptor) noexcept {
        return receive == VIP_TRUE ? VipRecvDone(vi, &descriptor) : VipSendDone(vi, &descriptor);
    }
    static Expected<Completion> completed(VIP_RETURN code, VIP_BOOLEAN receive,
                                          VIP_DESCRIPTOR* descriptor, VIP_VI_HANDLE vi) noexcept {
        if (code == VIP_SUCCESS) [[likely]]
            return Completion(descriptor, vi);
        return detail::failed(code, receive == VIP_TRUE ? "VipRecvDone" : "VipSendDone", descriptor,
                              vi);
    }

    VIP_CQ_HANDLE handle_;
};

}  // namespace via
