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
    Request() noexcept = default;

    VIP_CONN_HANDLE handle_ = nullptr;
    Address remote_;
    VIP_VI_ATTRIBUTES attributes_{};
    std::array<std::byte, VIA_PRIVATE_DATA_MAX> data_;
    VIP_UINT32 length_ = 0;
};

/**
 * Somebody who listens to a discriminator (VIPL 4.19). A value without a resource of its own: one
 * listens while a thread is in wait(); at other times requests are answered VIP_NO_MATCH, so serve
 * quickly, wait with several threads, or let requesters wait (ConnectOptions).
 *
 * Threads: any number may wait at once, also on the same discriminator; the NIC must be open.
 */
class Listener {
public:
    /** @param discriminator  up to 64 bytes; longer: VIP_INVALID_PARAMETER from wait() */
    Listener(const Nic& nic, std::string_view discriminator) noexcept
        : nic_(nic.handle()), local_(std::span<const std::byte>(), discriminator) {}

    /**
     * Sleeps until somebody asks.
     * @param timeout  or via::forever; VIP_TIMEOUT when it is over
     */
    [[nodiscard]] Expected<Request> wait(std::chrono::milliseconds timeout = forever) const {
        Request request;
        VIP_UINT32 length = VIA_PRIVATE_DATA_MAX;
        const VIP_RETURN code =
            ViaConnectWait(nic_, local_.raw(), detail::timeout_ms(timeout), request.remote_.raw(),
                           &request.attributes_, &request.handle_, request.data_.data(), &length);
        if (code != VIP_SUCCESS) return detail::failure(code, "VipConnectWait");
        request.length_ = std::min<VIP_UINT32>(length, VIA_PRIVATE_DATA_MAX);
        return request;
    }

    /** Waits for a request and accepts it with `vi`; what cannot be accepted is rejected. */
    Expected<void> accept(Vi& vi, std::chrono::milliseconds timeout = forever) const {
        auto request = wait(timeout);
        if (!request) return std::unexpected(std::move(request.error()));
        return request->accept(vi);
    }

private:
    VIP_NIC_HANDLE nic_;
    Address local_;
};

}  // namespace via
