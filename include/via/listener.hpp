// SPDX-License-Identifier: Apache-2.0
/**
 * @file via/listener.hpp
 * @brief The side that is asked: via::Listener and via::Request.
 */
#pragma once

#include <via/vi.hpp>

namespace via {

/**
 * A request for a connection that waits for its answer. Move-only; the destructor rejects it if it
 * was not answered. Threads: one at a time.
 */
class Request {
public:
    /** Empty: nobody asks. */
    Request() noexcept = default;
    ~Request() {
        if (handle_ != nullptr) VipConnectReject(handle_);
    }
    /** Moves; `other` is empty afterwards, and may only be destroyed or assigned to. */
    Request(Request&& other) noexcept
        : handle_(std::exchange(other.handle_, nullptr)),
          remote_(other.remote_),
          attributes_(other.attributes_),
          data_(other.data_),
          length_(other.length_) {}
    /** Exchanges the two: what this was ends with `other`. */
    Request& operator=(Request&& other) noexcept {
        std::swap(handle_, other.handle_);
        std::swap(remote_, other.remote_);
        std::swap(attributes_, other.attributes_);
        std::swap(data_, other.data_);
        std::swap(length_, other.length_);
        return *this;
    }

    /** Is there a request that was not answered? */
    explicit operator bool() const noexcept { return handle_ != nullptr; }
    /** Who asks: its host and the local discriminator that it showed. */
    const Address& remote() const noexcept { return remote_; }
    /** Of the VI that asks; Accept wants reliability and MaxTransferSize to be equal. */
    const VIP_VI_ATTRIBUTES& attributes() const noexcept { return attributes_; }
    /** Private data that came along, 0 to VIA_PRIVATE_DATA_MAX bytes; valid as long as this. */
    std::span<const std::byte> private_data() const noexcept {
        return std::span(data_).first(length_);
    }

    /**
     * Accepts: `vi`, which must be idle, becomes connected. On failure both stay as they were,
     * another VI may be tried and the requester is told nothing (VIPL 4.21).
     * @param data  private data for the requester, up to VIA_PRIVATE_DATA_MAX bytes
     */
    Expected<void> accept(Vi& vi, std::span<const std::byte> data = {}) noexcept {
        const VIP_RETURN code = ViaConnectAccept(handle_, vi.handle(), data.data(),
                                                 static_cast<VIP_UINT32>(data.size()));
        if (code == VIP_SUCCESS) handle_ = nullptr;
        return detail::outcome(code, "VipConnectAccept");
    }
    /** Rejects: the requester gets VIP_REJECT and the data. */
    Expected<void> reject(std::span<const std::byte> data = {}) noexcept {
        const VIP_RETURN code =
            ViaConnectReject(handle_, data.data(), static_cast<VIP_UINT32>(data.size()));
        if (code == VIP_SUCCESS) handle_ = nullptr;
        return detail::outcome(code, "VipConnectReject");
    }

    /** The handle for vipl.h; null when answered. */
    VIP_CONN_HANDLE handle() const noexcept { return handle_; }

private:
    friend class Listener;

    VIP_CONN_HANDLE handle_ = nullptr;
    Address remote_;
    VIP_VI_ATTRIBUTES attributes_{};
    std::array<std::byte, VIA_PRIVATE_DATA_MAX> data_;
    VIP_UINT32 length_ = 0;
};

/**
 * Somebody who listens to a discriminator (VIPL 4.19), from the constructor to the destructor:
 * requests wait in order, up to the backlog, until they are taken. Those beyond it are answered
 * VIP_NO_MATCH, on which requesters may wait (ConnectOptions); those that wait when the listener or
 * its NIC ends, too. Move-only.
 *
 * Threads: any number may wait and take at once.
 */
class Listener {
public:
    /** Requests that wait, if nothing else is asked for. */
    static constexpr VIP_ULONG usual_backlog = 128;

    /**
     * Begins to listen. Whether it does is told by listening() and by every other call:
     * VIP_ERROR_RESOURCE where another process has the discriminator.
     * @param discriminator  up to 64 bytes
     * @param backlog        1 to VIA_BACKLOG_MAX
     */
    Listener(const Nic& nic, std::string_view discriminator,
             VIP_ULONG backlog = usual_backlog) noexcept {
        const Address local(std::span<const std::byte>(), discriminator);
        begun_ = ViaCreateListener(nic.handle(), local.raw(), backlog, &handle_);
    }
    ~Listener() {
        if (handle_ != nullptr) ViaDestroyListener(handle_);
    }
    /** Moves; `other` is empty afterwards, and may only be destroyed or assigned to. */
    Listener(Listener&& other) noexcept
        : handle_(std::exchange(other.handle_, nullptr)),
          begun_(std::exchange(other.begun_, VIP_INVALID_PARAMETER)) {}
    /** Exchanges the two: what this was ends with `other`. */
    Listener& operator=(Listener&& other) noexcept {
        std::swap(handle_, other.handle_);
        std::swap(begun_, other.begun_);
        return *this;
    }

    /** Did it begin to listen? If not, why. */
    Expected<void> listening() const noexcept {
        return detail::outcome(begun_, "ViaCreateListener");
    }

    /** @return the oldest request, or an empty one when none waits. Never blocks. */
    Expected<Request> done() const {
        auto request = take(0);
        if (!request && request.error().code() == VIP_TIMEOUT) return Request();
        return request;
    }

    /**
     * Sleeps until somebody asks; never empty.
     * @param timeout  or via::forever; VIP_TIMEOUT when it is over
     */
    [[nodiscard]] Expected<Request> wait(std::chrono::milliseconds timeout = forever) const {
        return take(detail::timeout_ms(timeout));
    }

    /** Waits for a request and accepts it with `vi`; what cannot be accepted is rejected. */
    Expected<void> accept(Vi& vi, std::chrono::milliseconds timeout = forever) const {
        auto request = wait(timeout);
        if (!request) return std::unexpected(std::move(request.error()));
        return request->accept(vi);
    }

    /**
     * A file descriptor that is readable while requests wait, for poll, epoll and io_uring. Take
     * them with done() until it gives none. The listener's: never read, write or close it.
     */
    Expected<int> descriptor() const noexcept {
        if (begun_ != VIP_SUCCESS) return detail::failure(begun_, "ViaCreateListener");
        int descriptor = -1;
        const VIP_RETURN code = ViaListenerDescriptor(handle_, &descriptor);
        if (code != VIP_SUCCESS) return detail::failure(code, "ViaListenerDescriptor");
        return descriptor;
    }

    /** The handle for via/via.h; stays this object's. */
    VIA_LISTENER_HANDLE handle() const noexcept { return handle_; }

private:
    Expected<Request> take(VIP_ULONG timeout) const {
        if (begun_ != VIP_SUCCESS) return detail::failure(begun_, "ViaCreateListener");
        Request request;
        VIP_UINT32 length = VIA_PRIVATE_DATA_MAX;
        const VIP_RETURN code =
            ViaListenerWait(handle_, timeout, request.remote_.raw(), &request.attributes_,
                            &request.handle_, request.data_.data(), &length);
        if (code != VIP_SUCCESS) return detail::failure(code, "ViaListenerWait");
        request.length_ = std::min<VIP_UINT32>(length, VIA_PRIVATE_DATA_MAX);
        return request;
    }

    VIA_LISTENER_HANDLE handle_ = nullptr;
    VIP_RETURN begun_;
};

}  // namespace via
