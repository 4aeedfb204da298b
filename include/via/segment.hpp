// SPDX-License-Identifier: Apache-2.0
/**
 * @file via/segment.hpp
 * @brief Memory that processes of one host share: via::SharedSegment, via::ImportedSegment.
 */
#pragma once

#include <via/memory.hpp>
#include <via/vi.hpp>

namespace via {

/**
 * Memory that peers can attach to, registered: a MemoryRegion that the library made. Move-only; the
 * bytes begin at a page and are zero first. Takes one file descriptor.
 *
 * The destructor ends the registration and this process's mapping; while a posted descriptor uses
 * the segment the NIC refuses that (VIPL 4.8), and the segment stays until the NIC closes. So let
 * segments outlive the VIs that use them. Peers' mappings stay until they let go.
 *
 * Threads: as Nic.
 */
class SharedSegment {
public:
    /**
     * @param size    bytes, not 0
     * @param rights  a peer may attach for reading where rdma_read is set, for writing where both
     *                are, in region and VI alike (via/via.h, ViaCreateSegment)
     */
    [[nodiscard]] static Expected<SharedSegment> create(const Nic& nic, std::size_t size,
                                                        const MemoryRights& rights) {
        if (detail::is_moved_from(rights.tag))
            return detail::failure(VIP_INVALID_PARAMETER, "ViaCreateSegment");
        VIP_MEM_ATTRIBUTES attributes = detail::attributes_of(rights);
        VIP_PVOID address = nullptr;
        VIP_MEM_HANDLE handle = 0;
        const VIP_RETURN code =
            ViaCreateSegment(nic.handle(), size, &attributes, &address, &handle);
        if (code != VIP_SUCCESS) return detail::failure(code, "ViaCreateSegment");
        return SharedSegment(nic.handle(), {static_cast<std::byte*>(address), size}, handle);
    }

    ~SharedSegment() {
        if (!bytes_.empty()) ViaDestroySegment(nic_, bytes_.data());
    }
    /** Moves; `other` is empty afterwards, and may only be destroyed or assigned to. */
    SharedSegment(SharedSegment&& other) noexcept
        : nic_(other.nic_), bytes_(std::exchange(other.bytes_, {})), handle_(other.handle_) {}
    /** Exchanges the two: what this was ends with `other`. */
    SharedSegment& operator=(SharedSegment&& other) noexcept {
        std::swap(nic_, other.nic_);
        std::swap(bytes_, other.bytes_);
        std::swap(handle_, other.handle_);
        return *this;
    }

    /** Ends the registration, and with it every peer's right, at once; the memory stays. What a
     *  peer can still do is told with ViaCreateSegment. VIP_ERROR_RESOURCE: in use (VIPL 4.8). */
    Expected<void> revoke() noexcept {
        return detail::outcome(VipDeregisterMem(nic_, bytes_.data(), handle_), "VipDeregisterMem");
    }

    /** Gives peers the right to atomic operations on it, or takes it away, as
     *  MemoryRegion::allow_atomics(); atomic also with who has it mapped. */
    Expected<void> allow_atomics(bool allowed = true) noexcept {
        return detail::outcome(
            ViaSetMemAtomics(nic_, bytes_.data(), handle_, allowed ? VIP_TRUE : VIP_FALSE),
            "ViaSetMemAtomics");
    }

    /** The memory; others may change it at any time. */
    std::span<std::byte> bytes() const noexcept { return bytes_; }
    /** The handle for vipl.h; stays this object's. */
    VIP_MEM_HANDLE handle() const noexcept { return handle_; }
    /** `length` bytes from `offset` on, for descriptors. */
    Segment segment(std::size_t offset, std::size_t length) const noexcept {
        return {bytes_.data() + offset, detail::segment_length(length), handle_};
    }
    /** As peers name it: tell it to them. */
    RemoteSegment remote() const noexcept {
        return {reinterpret_cast<std::uintptr_t>(bytes_.data()), bytes_.size(), handle_, 0};
    }

private:
    SharedSegment(VIP_NIC_HANDLE nic, std::span<std::byte> bytes, VIP_MEM_HANDLE handle) noexcept
        : nic_(nic), bytes_(bytes), handle_(handle) {}

    VIP_NIC_HANDLE nic_;
    std::span<std::byte> bytes_;
    VIP_MEM_HANDLE handle_;
};

/** How an imported segment may be used by plain loads and stores, and by RDMA without the peer. */
enum class Attached { read_only, writable };

/**
 * A peer's segment, mapped here. While the connection lasts and the peer leaves the right, RDMA of
 * the VI to it is one copy by this side. Move-only; the destructor unmaps.
 *
 * Plain stores are ordered as between threads: end them with a release store to what the peer
 * polls. The peer may change the bytes at any time, so read what matters once.
 *
 * Threads: as Nic. The NIC must outlive it, the VI need not.
 */
class ImportedSegment {
public:
    /**
     * Asks the peer of `vi` for its segment.
     * @param remote   as the peer told it, SharedSegment::remote()
     * @param timeout  of the peer's answer
     * @return errors as ViaImportSegment: VIP_REJECT, no right; VIP_ERROR_NOT_SUPPORTED, not over
     *         this network, where RDMA by descriptors works all the same
     */
    [[nodiscard]] static Expected<ImportedSegment> attach(
        const Nic& nic, const Vi& vi, const RemoteSegment& remote, Attached how,
        std::chrono::milliseconds timeout = std::chrono::seconds(10)) {
        VIP_PVOID address = nullptr;
        VIP_ULONG length = 0;
        const VIP_RETURN code = ViaImportSegment(vi.handle(), remote.address, remote.handle,
                                                 how == Attached::writable ? VIP_TRUE : VIP_FALSE,
                                                 detail::timeout_ms(timeout), &address, &length);
        if (code != VIP_SUCCESS) return detail::failure(code, "ViaImportSegment");
        return ImportedSegment(nic.handle(), {static_cast<std::byte*>(address), length});
    }

    ~ImportedSegment() {
        if (!bytes_.empty()) ViaReleaseSegment(nic_, bytes_.data());
    }
    /** Moves; `other` is empty afterwards, and may only be destroyed or assigned to. */
    ImportedSegment(ImportedSegment&& other) noexcept
        : nic_(other.nic_), bytes_(std::exchange(other.bytes_, {})) {}
    /** Exchanges the two: what this was ends with `other`. */
    ImportedSegment& operator=(ImportedSegment&& other) noexcept {
        std::swap(nic_, other.nic_);
        std::swap(bytes_, other.bytes_);
        return *this;
    }

    /** The peer's memory. Attached read-only, a store to it ends the program. */
    std::span<std::byte> bytes() const noexcept { return bytes_; }

private:
    ImportedSegment(VIP_NIC_HANDLE nic, std::span<std::byte> bytes) noexcept
        : nic_(nic), bytes_(bytes) {}

    VIP_NIC_HANDLE nic_;
    std::span<std::byte> bytes_;
};

}  // namespace via
