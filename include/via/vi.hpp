// SPDX-License-Identifier: Apache-2.0
/**
 * @file via/vi.hpp
 * @brief An end of a connection: via::Vi.
 */
#pragma once

#include <via/buffer_pool.hpp>
#include <via/completion_queue.hpp>
#include <via/shared_receives.hpp>

#include <thread>

namespace via {

/** What a VI is to be (VIPL 1.8, 4.25). */
struct ViOptions {
    Reliability reliability = Reliability::delivery; /**< both ends must agree */
    VIP_ULONG max_transfer_bytes = 65536;            /**< of one message; both ends must agree */
    bool rdma_write = false;                         /**< the peer may write by RDMA */
    bool rdma_read = false; /**< the peer may read by RDMA; reliable levels only */
    bool credits = false;   /**< a message waits at its sender for a receive; where both want it */
    const ProtectionTag* tag = nullptr;  /**< null: memory of any tag of the NIC (VIPL 4.7) */
    CompletionQueue* sends = nullptr;    /**< where sends complete; null: on the VI itself */
    CompletionQueue* receives = nullptr; /**< where receives complete; may be the same */
    const SharedReceiveQueue* shared = nullptr; /**< where messages find receives, too */
};

/** How to ask for a connection. */
struct ConnectOptions {
    /** Of waiting for a listener and for its answer, in all; 0 or less: VIP_INVALID_PARAMETER. */
    std::chrono::milliseconds timeout{10'000};
    bool wait_for_listener = false;    /**< ask again until somebody listens */
    std::span<const std::byte> data{}; /**< private data, up to VIA_PRIVATE_DATA_MAX bytes */
};

/** What a VI is just now. */
struct ViStatus {
    VIP_VI_STATE state;           /**< VIPL 3 */
    VIP_VI_ATTRIBUTES attributes; /**< as it was made */
    bool sends_empty;             /**< no send is posted or waits to be taken */
    bool receives_empty;          /**< the same of receives */
};

/** Credits of a connection. */
struct Credits {
    bool agreed;     /**< both ends wanted them */
    VIP_UINT32 left; /**< messages that can go now without waiting */
};

/**
 * A Virtual Interface: an end of a connection with its two work queues. Move-only.
 *
 * The destructor disconnects, takes off what is posted (it completes flushed) and destroys; when it
 * returns, nothing touches the buffers any more. Buffers of a pool that were still posted are lost
 * to it: call drain() first to keep them. No other thread may be in a call with this VI then.
 *
 * Threads: as Nic; two threads may post sends and receives at once. Posting and taking never block,
 * allocate or throw.
 */
class Vi {
public:
    /** Makes an idle VI (VIPL 3). Whatever `options` names must outlive it. */
    [[nodiscard]] static Expected<Vi> create(const Nic& nic, const ViOptions& options = {}) {
        if (detail::is_moved_from(options.tag) || detail::is_moved_from(options.sends) ||
            detail::is_moved_from(options.receives) || detail::is_moved_from(options.shared))
            return detail::failure(VIP_INVALID_PARAMETER, "VipCreateVi");
        VIP_VI_ATTRIBUTES attributes{};
        attributes.ReliabilityLevel = static_cast<VIP_RELIABILITY_LEVEL>(options.reliability);
        attributes.MaxTransferSize = options.max_transfer_bytes;
        attributes.Ptag = options.tag != nullptr ? options.tag->handle() : nullptr;
        attributes.EnableRdmaWrite = options.rdma_write ? VIP_TRUE : VIP_FALSE;
        attributes.EnableRdmaRead = options.rdma_read ? VIP_TRUE : VIP_FALSE;
        VIP_VI_HANDLE handle = nullptr;
        VIP_RETURN code = VipCreateVi(nic.handle(), &attributes, handle_of(options.sends),
                                      handle_of(options.receives), &handle);
        if (code != VIP_SUCCESS) return detail::failure(code, "VipCreateVi");
        Vi vi(handle);
        if (options.credits) code = ViaSetCredits(handle, VIP_TRUE);
        if (code != VIP_SUCCESS) return detail::failure(code, "ViaSetCredits");
        if (options.shared != nullptr) code = ViaSetSharedRecv(handle, options.shared->handle());
        if (code != VIP_SUCCESS) return detail::failure(code, "ViaSetSharedRecv");
        return vi;
    }

    ~Vi() { destroy(); }
    /** Moves; `other` is empty afterwards, and may only be destroyed or assigned to. */
    Vi(Vi&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
    /** Moves; what this was ends first. */
    Vi& operator=(Vi&& other) noexcept {
        if (this != &other) {
            destroy();
            handle_ = std::exchange(other.handle_, nullptr);
        }
        return *this;
    }

    /** The handle for vipl.h and via/via.h; stays this object's. */
    VIP_VI_HANDLE handle() const noexcept { return handle_; }
    /** State, attributes, queues (VIPL 3). */
    Expected<ViStatus> status() const noexcept {
        ViStatus status{};
        VIP_BOOLEAN sends_empty = VIP_FALSE;
        VIP_BOOLEAN receives_empty = VIP_FALSE;
        const VIP_RETURN code =
            VipQueryVi(handle_, &status.state, &status.attributes, &sends_empty, &receives_empty);
        if (code != VIP_SUCCESS) return detail::failure(code, "VipQueryVi");
        status.sends_empty = sends_empty == VIP_TRUE;
        status.receives_empty = receives_empty == VIP_TRUE;
        return status;
    }
    /** Whether it is connected just now; the peer may leave the next moment. */
    bool connected() const noexcept {
        const auto now = status();
        return now && now->state == VIP_STATE_CONNECTED;
    }
    /** Whether the connection has credits, and how many are left. */
    Expected<Credits> credits() const noexcept {
        VIP_BOOLEAN agreed = VIP_FALSE;
        VIP_UINT32 left = 0;
        const VIP_RETURN code = ViaQueryCredits(handle_, &agreed, &left);
        if (code != VIP_SUCCESS) return detail::failure(code, "ViaQueryCredits");
        return Credits{agreed == VIP_TRUE, left};
    }

    // ---- Connecting ----

    /**
     * Asks a listener for a connection and sleeps until it is answered (VIPL 4.20). Where the name
     * is held and nobody listens just now it asks again, as ViaConnectRequest does. Receives posted
     * before are there when the first message comes. After a refusal the VI may ask again.
     * @param remote  host and discriminator asked for
     * @param local   shown to the listener; takes no part in the match
     */
    Expected<void> connect(const Address& remote, const ConnectOptions& options = {},
                           const Address& local = {}) {
        const detail::Deadline deadline(options.timeout);
        VIP_VI_ATTRIBUTES theirs{};
        for (std::chrono::milliseconds left = options.timeout;;) {
            const VIP_RETURN code = ViaConnectRequest(
                handle_, local.raw(), remote.raw(), detail::timeout_ms(left), &theirs,
                options.data.data(), static_cast<VIP_UINT32>(options.data.size()));
            if (code == VIP_SUCCESS) return {};
            const bool again = code == VIP_NO_MATCH && options.wait_for_listener;
            if (again) std::this_thread::sleep_for(std::chrono::milliseconds(1));
            left = deadline.left();
            if (!again || left.count() <= 0)
                return std::unexpected(Error(code, "VipConnectRequest"));
        }
    }

    /**
     * Starts to connect with a peer that does the same with the addresses exchanged; returns at
     * once, receive the outcome with peer_done() or peer_wait() (VIPL 4.22).
     */
    Expected<void> connect_peer(const Address& local, const Address& remote,
                                std::chrono::milliseconds timeout,
                                std::span<const std::byte> data = {}) noexcept {
        return detail::outcome(
            ViaConnectPeerRequest(handle_, local.raw(), remote.raw(), detail::timeout_ms(timeout),
                                  data.data(), static_cast<VIP_UINT32>(data.size())),
            "ViaConnectPeerRequest");
    }
    /** @return true: connected; false: not yet; or why it failed. Never blocks. */
    Expected<bool> peer_done() noexcept {
        VIP_VI_ATTRIBUTES theirs{};
        const VIP_RETURN code = VipConnectPeerDone(handle_, &theirs);
        if (code == VIP_SUCCESS || code == VIP_NOT_DONE) return code == VIP_SUCCESS;
        return detail::failure(code, "VipConnectPeerDone");
    }
    /** Sleeps until connected, at most as long as connect_peer() said. */
    Expected<void> peer_wait() noexcept {
        VIP_VI_ATTRIBUTES theirs{};
        return detail::outcome(VipConnectPeerWait(handle_, &theirs), "VipConnectPeerWait");
    }

    /**
     * Private data that came with the answer to the last request, also with a rejection.
     * @param room  256 bytes are always enough; what does not fit is left out
     * @return the part of `room` that was filled
     */
    Expected<std::span<std::byte>> private_data(std::span<std::byte> room) const noexcept {
        auto length = static_cast<VIP_UINT32>(room.size());
        const VIP_RETURN code = ViaQueryPrivateData(handle_, room.data(), &length);
        if (code != VIP_SUCCESS) return detail::failure(code, "ViaQueryPrivateData");
        return room.first(std::min<std::size_t>(length, room.size()));
    }

    /** Ends connection or attempt from any state; what is posted completes flushed, and nothing
     *  touches the buffers any more (VIPL 3). Take the descriptors off, or call drain(). */
    Expected<void> disconnect() noexcept {
        return detail::outcome(VipDisconnect(handle_), "VipDisconnect");
    }
    /** Disconnects and hands every descriptor that was still posted or not yet taken to `each`, as
     *  VIP_DESCRIPTOR*; afterwards both queues are empty. A completion queue's entries of them stay
     *  there: CompletionQueue passes them over. */
    template <class Each>
    void drain(Each&& each) {
        if (VipDisconnect(handle_) != VIP_SUCCESS) return;
        for (const auto done : {&VipSendDone, &VipRecvDone}) {
            VIP_DESCRIPTOR* descriptor = nullptr;
            while (done(handle_, &descriptor) != VIP_NOT_DONE && descriptor != nullptr)
                each(std::exchange(descriptor, nullptr));
        }
    }

    // ---- Posting ----

    /** Posts a send, RDMA write or RDMA read (VIPL 4.9). Bytes and descriptor are the NIC's until
     *  it is done. VIP_ERROR_RESOURCE: 1024 are posted and not yet taken. */
    Expected<void> post_send(const Descriptor& descriptor) noexcept {
        if (descriptor.overfull()) [[unlikely]]
            return too_many_segments("VipPostSend");
        return detail::outcome(VipPostSend(handle_, descriptor.raw(), descriptor.handle()),
                               "VipPostSend");
    }
    /** Posts an atomic operation: adds to the peer's word, modulo 2^64 (via/via.h,
     *  ViaPostFetchAdd). Reliable levels only. */
    Expected<void> post_fetch_add(const Descriptor& descriptor, std::uint64_t addend) noexcept {
        return detail::outcome(
            ViaPostFetchAdd(handle_, descriptor.raw(), descriptor.handle(), addend),
            "ViaPostFetchAdd");
    }
    /** The same: if the word is what was expected it becomes what is desired, and whether it was
     *  the program sees by what it was (via/via.h, ViaPostCompareSwap). */
    Expected<void> post_compare_swap(const Descriptor& descriptor, std::uint64_t expected,
                                     std::uint64_t desired) noexcept {
        return detail::outcome(
            ViaPostCompareSwap(handle_, descriptor.raw(), descriptor.handle(), expected, desired),
            "ViaPostCompareSwap");
    }
    /** Posts a receive, in any state; receives posted before connecting are the first to be used
     *  (VIPL 3, 4.9). */
    Expected<void> post_receive(const Descriptor& descriptor) noexcept {
        if (descriptor.overfull()) [[unlikely]]
            return too_many_segments("VipPostRecv");
        return detail::outcome(VipPostRecv(handle_, descriptor.raw(), descriptor.handle()),
                               "VipPostRecv");
    }
    /** Sends the first `length` bytes of a buffer. On success the buffer is the NIC's until
     *  BufferPool::reclaim(); on failure it stays the caller's. VIP_INVALID_PARAMETER: it is
     *  nothing, for its pool was empty, or has fewer bytes. */
    Expected<void> post_send(Buffer&& buffer, std::size_t length) noexcept {
        if (!buffer) [[unlikely]]
            return no_buffer("VipPostSend");
        if (length > buffer.bytes().size()) [[unlikely]]
            return too_long(length, buffer.bytes().size());
        const auto posted = post_send(buffer.descriptor().send(buffer.segment(length)));
        if (posted) buffer.release();
        return posted;
    }
    /** Receives into a buffer, which on success is the NIC's until BufferPool::reclaim().
     *  VIP_INVALID_PARAMETER: it is nothing, for its pool was empty. */
    Expected<void> post_receive(Buffer&& buffer) noexcept {
        if (!buffer) [[unlikely]]
            return no_buffer("VipPostRecv");
        const auto posted =
            post_receive(buffer.descriptor().receive(buffer.segment(buffer.bytes().size())));
        if (posted) buffer.release();
        return posted;
    }

    /**
     * Posts several in order, cheaper than one by one.
     * @param posted  out, always: how many were posted
     */
    Expected<void> post_sends(std::span<const Descriptor> descriptors,
                              std::size_t& posted) noexcept {
        return post_many(descriptors, posted, &ViaPostSendMany, "ViaPostSendMany");
    }
    /** The same for receives. */
    Expected<void> post_receives(std::span<const Descriptor> descriptors,
                                 std::size_t& posted) noexcept {
        return post_many(descriptors, posted, &ViaPostRecvMany, "ViaPostRecvMany");
    }

    // ---- Completion ----

    /** Takes the oldest send off if it is done; else an empty Completion, and the NIC works.
     *  Error: it failed, or nothing is posted (VIPL 4.13). Never blocks. */
    Expected<Completion> send_done() noexcept {
        VIP_DESCRIPTOR* descriptor = nullptr;
        const VIP_RETURN code = VipSendDone(handle_, &descriptor);
        return detail::taken(code, "VipSendDone", descriptor, handle_);
    }
    /** The same for the oldest receive. */
    Expected<Completion> receive_done() noexcept {
        VIP_DESCRIPTOR* descriptor = nullptr;
        const VIP_RETURN code = VipRecvDone(handle_, &descriptor);
        return detail::taken(code, "VipRecvDone", descriptor, handle_);
    }
    /** As send_done(), but sleeps until it is done; never empty. VIP_TIMEOUT; VIP_ERROR_RESOURCE:
     *  sends complete on a completion queue (VIPL 4.14). */
    Expected<Completion> send_wait(std::chrono::milliseconds timeout = forever) noexcept {
        VIP_DESCRIPTOR* descriptor = nullptr;
        const VIP_RETURN code = VipSendWait(handle_, detail::timeout_ms(timeout), &descriptor);
        return detail::taken(code, "VipSendWait", descriptor, handle_);
    }
    /** The same for the oldest receive. */
    Expected<Completion> receive_wait(std::chrono::milliseconds timeout = forever) noexcept {
        VIP_DESCRIPTOR* descriptor = nullptr;
        const VIP_RETURN code = VipRecvWait(handle_, detail::timeout_ms(timeout), &descriptor);
        return detail::taken(code, "VipRecvWait", descriptor, handle_);
    }

    /** Whether a completion is one of this VI's. */
    bool owns(const Completion& completion) const noexcept { return completion.vi() == handle_; }

private:
    explicit Vi(VIP_VI_HANDLE handle) noexcept : handle_(handle) {}
    static VIP_CQ_HANDLE handle_of(const CompletionQueue* queue) noexcept {
        return queue != nullptr ? queue->handle() : nullptr;
    }
    // Not inline: in a std::optional compilers see it read what it never reads, and warn.
    [[gnu::noinline]] void destroy() noexcept {
        if (handle_ == nullptr) return;
        drain([](VIP_DESCRIPTOR*) {});
        VipDestroyVi(std::exchange(handle_, nullptr));
    }
    [[gnu::cold, gnu::noinline]] static std::unexpected<Error> too_many_segments(const char* call) {
        return std::unexpected(Error(VIP_INVALID_PARAMETER, call,
                                     "more segments, or bytes of an inline send, than the "
                                     "descriptor has room for. Make room for more segments where "
                                     "the descriptor is made"));
    }
    [[gnu::cold, gnu::noinline]] static std::unexpected<Error> no_buffer(const char* call) {
        return std::unexpected(Error(VIP_INVALID_PARAMETER, call,
                                     "there is no buffer: the pool was empty. Reclaim one first, "
                                     "or make the pool larger"));
    }
    [[gnu::cold, gnu::noinline]] static std::unexpected<Error> too_long(std::size_t length,
                                                                        std::size_t room) {
        return std::unexpected(Error(VIP_INVALID_PARAMETER, "VipPostSend",
                                     std::to_string(length) + " bytes of a buffer of " +
                                         std::to_string(room) +
                                         ". Make the pool's buffers larger"));
    }
    template <class Post>
    Expected<void> post_many(std::span<const Descriptor> descriptors, std::size_t& posted,
                             Post post, const char* call) noexcept {
        posted = 0;
        while (posted < descriptors.size()) {
            std::array<VIP_DESCRIPTOR*, 32> raw;
            std::array<VIP_MEM_HANDLE, 32> handles;
            VIP_UINT32 count = 0;
            for (; count < raw.size() && posted + count < descriptors.size(); ++count) {
                const Descriptor& next = descriptors[posted + count];
                if (next.overfull()) break;
                raw[count] = next.raw();
                handles[count] = next.handle();
            }
            if (count == 0) return too_many_segments(call);
            VIP_UINT32 done = 0;
            const VIP_RETURN code = post(handle_, raw.data(), handles.data(), count, &done);
            posted += done;
            if (code != VIP_SUCCESS) return detail::failure(code, call);
        }
        return {};
    }

    VIP_VI_HANDLE handle_;
};

}  // namespace via
