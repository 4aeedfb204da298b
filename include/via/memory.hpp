// SPDX-License-Identifier: Apache-2.0
/**
 * @file via/memory.hpp
 * @brief Registered memory: via::MemoryRegion.
 */
#pragma once

#include <via/descriptor.hpp>
#include <via/nic.hpp>

#include <cstring>
#include <memory>
#include <new>

namespace via {

/** Who may use a region besides this process's own descriptors (VIPL 4.6, 4.7). */
struct MemoryRights {
    const ProtectionTag* tag = nullptr; /**< null: the default tag; read while registering only */
    bool rdma_write = false;            /**< peers may write by RDMA */
    bool rdma_read = false;             /**< peers may read by RDMA */
};

/** @cond */
namespace detail {
inline VIP_MEM_ATTRIBUTES attributes_of(const MemoryRights& rights) noexcept {
    VIP_MEM_ATTRIBUTES attributes{};
    attributes.Ptag = rights.tag != nullptr ? rights.tag->handle() : nullptr;
    attributes.EnableRdmaWrite = rights.rdma_write ? VIP_TRUE : VIP_FALSE;
    attributes.EnableRdmaRead = rights.rdma_read ? VIP_TRUE : VIP_FALSE;
    return attributes;
}
}  // namespace detail
/** @endcond */

/** What a memory window grants to peers, and to whom. */
struct WindowRights {
    const ProtectionTag* tag = nullptr; /**< of our VIs by which it is reached; null: the default
                                             tag, so by VIs without one only */
    bool rdma_write = false;            /**< peers may write by RDMA */
    bool rdma_read = false;             /**< peers may read by RDMA */
    bool atomics = false;               /**< peers may change words by atomic operations */
};

/**
 * Rights of peers to part of a region, to the byte, until it is revoked (via/via.h, ViaBindWindow):
 * made by MemoryRegion::window(). Move-only. The destructor revokes it, and after that no byte that
 * a peer sends by it lands any more; so does the end of its region.
 *
 * Threads: as Nic.
 */
class MemoryWindow {
public:
    /** Of memory that is registered by `region`, the handle of one that need not be an object. */
    [[nodiscard]] static Expected<MemoryWindow> bind(VIP_NIC_HANDLE nic, VIP_MEM_HANDLE region,
                                                     std::span<std::byte> bytes,
                                                     const WindowRights& rights) {
        if (detail::is_moved_from(rights.tag))
            return detail::failure(VIP_INVALID_PARAMETER, "ViaBindWindow");
        VIA_WINDOW_ATTRIBUTES attributes{};
        attributes.Ptag = rights.tag != nullptr ? rights.tag->handle() : nullptr;
        attributes.EnableRdmaWrite = rights.rdma_write ? VIP_TRUE : VIP_FALSE;
        attributes.EnableRdmaRead = rights.rdma_read ? VIP_TRUE : VIP_FALSE;
        attributes.EnableAtomics = rights.atomics ? VIP_TRUE : VIP_FALSE;
        VIP_MEM_HANDLE handle = 0;
        const VIP_RETURN code =
            ViaBindWindow(nic, bytes.data(), bytes.size(), region, &attributes, &handle);
        if (code != VIP_SUCCESS) return detail::failure(code, "ViaBindWindow");
        return MemoryWindow(nic, bytes, handle);
    }

    ~MemoryWindow() {
        if (handle_ != 0) ViaRevokeWindow(nic_, handle_);
    }
    /** Moves; `other` is empty afterwards, and may only be destroyed or assigned to. */
    MemoryWindow(MemoryWindow&& other) noexcept
        : nic_(other.nic_),
          bytes_(std::exchange(other.bytes_, {})),
          handle_(std::exchange(other.handle_, 0)) {}
    /** Exchanges the two: what this was ends with `other`. */
    MemoryWindow& operator=(MemoryWindow&& other) noexcept {
        std::swap(nic_, other.nic_);
        std::swap(bytes_, other.bytes_);
        std::swap(handle_, other.handle_);
        return *this;
    }

    /** Takes the rights back now. When it returns nothing lands any more. */
    Expected<void> revoke() noexcept {
        return detail::outcome(ViaRevokeWindow(nic_, std::exchange(handle_, 0)), "ViaRevokeWindow");
    }

    /** The memory that it shows; valid as long as that is. */
    std::span<std::byte> bytes() const noexcept { return bytes_; }
    /** The handle for via/via.h; stays this object's, never 0 while it is bound. */
    VIP_MEM_HANDLE handle() const noexcept { return handle_; }
    /** The window as a peer's descriptors name it: tell it to the peer. */
    RemoteSegment remote() const noexcept {
        return {reinterpret_cast<std::uintptr_t>(bytes_.data()), bytes_.size(), handle_, 0};
    }

private:
    MemoryWindow(VIP_NIC_HANDLE nic, std::span<std::byte> bytes, VIP_MEM_HANDLE handle) noexcept
        : nic_(nic), bytes_(bytes), handle_(handle) {}

    VIP_NIC_HANDLE nic_;
    std::span<std::byte> bytes_;
    VIP_MEM_HANDLE handle_;
};

/**
 * A registration of memory: what descriptors, their data and peers' RDMA lie in. Move-only; moving
 * moves no bytes.
 *
 * The destructor ends the registration, after which nothing reads or writes the bytes any more. But
 * while a posted descriptor uses the region the NIC refuses that (VIPL 4.8): then the registration
 * stays until the NIC closes, memory that the region allocated itself is never freed, and memory of
 * the program must stay. So let regions outlive the VIs that use them: declare them first.
 *
 * Threads: as Nic.
 */
class MemoryRegion {
public:
    /**
     * Registers memory of the program, exact to the byte (VIPL 4.6). The memory stays the program's
     * and must stay mapped. Its pages become present and are locked where the system lets us; the
     * NIC's option `pin` decides that (docs/guide/memory.md), and with pin=require or pin=dma it
     * may fail with VIP_ERROR_RESOURCE.
     */
    [[nodiscard]] static Expected<MemoryRegion> of(const Nic& nic, std::span<std::byte> bytes,
                                                   const MemoryRights& rights = {}) {
        if (detail::is_moved_from(rights.tag))
            return detail::failure(VIP_INVALID_PARAMETER, "VipRegisterMem");
        VIP_MEM_ATTRIBUTES attributes = detail::attributes_of(rights);
        VIP_MEM_HANDLE handle = 0;
        const VIP_RETURN code =
            VipRegisterMem(nic.handle(), bytes.data(), bytes.size(), &attributes, &handle);
        if (code != VIP_SUCCESS) return detail::failure(code, "VipRegisterMem");
        return MemoryRegion(nic.handle(), bytes, handle);
    }

    /**
     * Allocates memory, zeroed, beginning at a page, and registers it. The region owns it.
     * @param size  bytes, not 0
     */
    [[nodiscard]] static Expected<MemoryRegion> allocate(const Nic& nic, std::size_t size,
                                                         const MemoryRights& rights = {}) {
        Owned owned(static_cast<std::byte*>(
            ::operator new(size, std::align_val_t(page_size), std::nothrow)));
        if (owned == nullptr)
            return std::unexpected(
                Error(VIP_ERROR_RESOURCE, "MemoryRegion::allocate",
                      "there is no memory for " + std::to_string(size) + " bytes. Allocate less"));
        std::memset(owned.get(), 0, size);
        Expected<MemoryRegion> region = of(nic, {owned.get(), size}, rights);
        if (region) region->owned_ = std::move(owned);
        return region;
    }

    /**
     * One registration of all memory of this process, now and later, for descriptors and their data
     * but never for a peer's RDMA: bytes() is empty, segment(span) takes any memory. Whatever the
     * NIC's option `pin` says, nothing is locked. What is not
     * mapped when the NIC touches it faults in the program (via/via.h, ViaRegisterAll).
     */
    [[nodiscard]] static Expected<MemoryRegion> all(const Nic& nic) {
        VIP_MEM_HANDLE handle = 0;
        const VIP_RETURN code = ViaRegisterAll(nic.handle(), &handle);
        if (code != VIP_SUCCESS) return detail::failure(code, "ViaRegisterAll");
        return MemoryRegion(nic.handle(), {}, handle);
    }

    ~MemoryRegion() {
        // Bytes that the NIC may still write must not become somebody else's.
        if (handle_ != 0 && !deregister() && last_ == VIP_ERROR_RESOURCE)
            static_cast<void>(owned_.release());
    }
    /** Moves; `other` is empty afterwards, and may only be destroyed or assigned to. */
    MemoryRegion(MemoryRegion&& other) noexcept
        : nic_(other.nic_),
          bytes_(std::exchange(other.bytes_, {})),
          handle_(std::exchange(other.handle_, 0)),
          owned_(std::move(other.owned_)) {}
    /** Exchanges the two: what this was ends with `other`. */
    MemoryRegion& operator=(MemoryRegion&& other) noexcept {
        std::swap(nic_, other.nic_);
        std::swap(bytes_, other.bytes_);
        std::swap(handle_, other.handle_);
        std::swap(owned_, other.owned_);
        return *this;
    }

    /** Ends the registration now; VIP_ERROR_RESOURCE while a posted descriptor uses the region,
     *  which then stays as it was (VIPL 4.8). Memory of its own is freed by the destructor. */
    Expected<void> deregister() noexcept {
        last_ = VipDeregisterMem(nic_, bytes_.data(), handle_);
        if (last_ == VIP_SUCCESS) handle_ = 0;
        return detail::outcome(last_, "VipDeregisterMem");
    }

    /** Gives peers the right to atomic operations on it, or takes it away: a right apart from those
     *  that it was registered with (via/via.h, ViaSetMemAtomics). */
    Expected<void> allow_atomics(bool allowed = true) noexcept {
        return detail::outcome(
            ViaSetMemAtomics(nic_, bytes_.data(), handle_, allowed ? VIP_TRUE : VIP_FALSE),
            "ViaSetMemAtomics");
    }

    /**
     * Rights of peers to `length` bytes from `offset` on, whatever rights the region has. What lies
     * beyond the region: VIP_INVALID_PARAMETER. VIP_ERROR_RESOURCE: 1048576 windows of the NIC are
     * bound.
     */
    [[nodiscard]] Expected<MemoryWindow> window(std::size_t offset, std::size_t length,
                                                const WindowRights& rights) const {
        return MemoryWindow::bind(nic_, handle_, {bytes_.data() + offset, length}, rights);
    }

    /** The memory; valid as long as it is, not as long as this object. */
    std::span<std::byte> bytes() const noexcept { return bytes_; }
    /** The handle for vipl.h; stays this object's, never 0 while registered. */
    VIP_MEM_HANDLE handle() const noexcept { return handle_; }

    /** `length` bytes from `offset` on. Not checked here: the NIC checks when it is posted. */
    Segment segment(std::size_t offset, std::size_t length) const noexcept {
        return {bytes_.data() + offset, detail::segment_length(length), handle_};
    }
    /** Bytes that lie in this region; not checked here either. */
    Segment segment(std::span<std::byte> bytes) const noexcept {
        return {bytes.data(), detail::segment_length(bytes.size()), handle_};
    }
    /** The region as a peer's descriptors name it: tell it to the peer. */
    RemoteSegment remote() const noexcept {
        return {reinterpret_cast<std::uintptr_t>(bytes_.data()), bytes_.size(), handle_, 0};
    }
    /**
     * A descriptor that lies in this region.
     * @param offset    bytes, so that the descriptor begins at a multiple of 64
     * @param segments  it takes 64 bytes, and from the third segment on 16 bytes for each
     */
    Descriptor descriptor(std::size_t offset, VIP_UINT16 segments = 2) const noexcept {
        return {reinterpret_cast<VIP_DESCRIPTOR*>(bytes_.data() + offset), handle_, segments};
    }
    /** A descriptor of the program that lies in this region, with room for two segments. */
    Descriptor descriptor(VIP_DESCRIPTOR& at) const noexcept { return {&at, handle_, 2}; }

private:
    static constexpr std::size_t page_size = 4096;
    struct Free {
        void operator()(std::byte* bytes) const noexcept {
            ::operator delete(bytes, std::align_val_t(page_size));
        }
    };
    using Owned = std::unique_ptr<std::byte, Free>;

    MemoryRegion(VIP_NIC_HANDLE nic, std::span<std::byte> bytes, VIP_MEM_HANDLE handle) noexcept
        : nic_(nic), bytes_(bytes), handle_(handle) {}

    VIP_NIC_HANDLE nic_;
    std::span<std::byte> bytes_;
    VIP_MEM_HANDLE handle_;
    VIP_RETURN last_ = VIP_SUCCESS;
    Owned owned_;
};

}  // namespace via
