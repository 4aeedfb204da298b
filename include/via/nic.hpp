// SPDX-License-Identifier: Apache-2.0
/**
 * @file via/nic.hpp
 * @brief via::Nic and via::ProtectionTag.
 */
#pragma once

#include <via/address.hpp>
#include <via/error.hpp>

#include <array>
#include <forward_list>
#include <functional>
#include <span>
#include <utility>

namespace via {

/** How much a VI promises (VIPL 4.25). Both ends of a connection must agree. */
enum class Reliability : VIP_RELIABILITY_LEVEL {
    /** Messages may be lost; never twice, never corrupt, never out of order. */
    unreliable = VIP_SERVICE_UNRELIABLE,
    /** Exactly once in order, or the connection breaks. A send is done when it surely arrives. */
    delivery = VIP_SERVICE_RELIABLE_DELIVERY,
    /** The same. A send is done when it is placed in the remote memory. */
    reception = VIP_SERVICE_RELIABLE_RECEPTION
};

/** Something that went wrong and that no call could return (VIPL 4.4). */
class AsyncError {
public:
    /** @param raw  valid while the handler runs */
    explicit AsyncError(const VIP_ERROR_DESCRIPTOR& raw) noexcept : raw_(raw) {}

    /** Which error. */
    VIP_ERROR_CODE code() const noexcept { return raw_.ErrorCode; }
    /** What it is about. */
    VIP_RESOURCE_CODE resource() const noexcept { return raw_.ResourceCode; }
    /** The VI concerned, or null. */
    VIP_VI_HANDLE vi() const noexcept { return raw_.ViHandle; }
    /** The completion queue concerned, or null. */
    VIP_CQ_HANDLE queue() const noexcept { return raw_.CQHandle; }
    /** The descriptor concerned, or null. */
    VIP_DESCRIPTOR* descriptor() const noexcept { return raw_.DescriptorPtr; }
    /** A few words for people; lives for ever. */
    const char* message() const noexcept { return text_of(code()); }

private:
    const VIP_ERROR_DESCRIPTOR& raw_;
};

/**
 * An open NIC. Move-only; the destructor closes it.
 *
 * Threads: any thread may use a NIC and all that was made with it at any time (VIPL 4.26); only
 * moving and destroying need that nobody else uses that object.
 *
 * Order of destruction: forgiving. The natural one (NIC declared first, then memory, completion
 * queues, VIs) releases everything in good order. A NIC that goes first takes all with it: what is
 * left answers every call with VIP_INVALID_PARAMETER and is destroyed without effect.
 */
class Nic {
public:
    /** Called on a thread of the library with no lock held; may call everything here, but must not
     *  destroy its NIC (VIPL 4.4). An exception that leaves it ends the program. */
    using ErrorHandler = std::function<void(const AsyncError&)>;

    /**
     * Opens a NIC by name (VIPL 4.1).
     * @param name  for instance "shm"; `via info` lists what there is
     * @return the NIC, or why not and what to do
     */
    [[nodiscard]] static Expected<Nic> open(const std::string& name) {
        std::array<char, 512> why{};
        VIP_NIC_HANDLE handle = nullptr;
        const VIP_RETURN code = ViaOpenNic(name.c_str(), &handle, why.data(), why.size());
        if (code == VIP_SUCCESS) return Nic(handle);
        return std::unexpected(Error(code, "VipOpenNic", std::string(why.data())));
    }

    /** Closes; peers see their connections lost. Waits for a handler that is running (VIPL 4.2). */
    ~Nic() { close(); }
    /** Moves; `other` is empty afterwards, and may only be destroyed or assigned to. */
    Nic(Nic&& other) noexcept
        : handle_(std::exchange(other.handle_, nullptr)), handlers_(std::move(other.handlers_)) {}
    /** Moves; what this was ends first. */
    Nic& operator=(Nic&& other) noexcept {
        if (this != &other) {
            close();
            handle_ = std::exchange(other.handle_, nullptr);
            handlers_ = std::move(other.handlers_);
        }
        return *this;
    }

    /** Closes now; a second time does nothing. As the destructor. */
    void close() noexcept {
        if (handle_ != nullptr) VipCloseNic(std::exchange(handle_, nullptr));
        handlers_.clear();
    }

    /** The handle for vipl.h and via/via.h; stays this object's. */
    VIP_NIC_HANDLE handle() const noexcept { return handle_; }

    /** What the NIC is and can do (VIPL 1.9). LocalNicAddress is valid until the NIC closes. */
    Expected<VIP_NIC_ATTRIBUTES> attributes() const {
        VIP_NIC_ATTRIBUTES attributes{};
        const VIP_RETURN code = VipQueryNic(handle_, &attributes);
        if (code != VIP_SUCCESS) return detail::failure(code, "VipQueryNic");
        return attributes;
    }

    /** What it can do of atomic operations (via/via.h). */
    Expected<VIA_ATOMIC_ATTRIBUTES> atomics() const {
        VIA_ATOMIC_ATTRIBUTES attributes{};
        const VIP_RETURN code = ViaQueryAtomics(handle_, &attributes);
        if (code != VIP_SUCCESS) return detail::failure(code, "ViaQueryAtomics");
        return attributes;
    }

    /** This NIC's own address with a discriminator, as peers on this host may use it. */
    Expected<Address> address(std::string_view discriminator = {}) const {
        const auto nic = attributes();
        if (!nic) return std::unexpected(nic.error());
        return Address(std::as_bytes(std::span(nic->LocalNicAddress, nic->NicAddressLen)),
                       discriminator);
    }

    /**
     * Looks a host up (VIPL 4.5). May take as long as the system's resolver does.
     * @param index  from 0, for hosts with several addresses
     */
    Expected<Address> find_host(const std::string& name, VIP_ULONG index = 0) const {
        Address address;
        const VIP_RETURN code =
            VipNSGetHostByName(handle_, const_cast<char*>(name.c_str()), address.raw(), index);
        if (code == VIP_SUCCESS) return address;
        if (code != VIP_ERROR_NAMESERVICE) return detail::failure(code, "VipNSGetHostByName");
        std::string why = '"' + name + '"';
        if (index == 0)
            ((why += ": ") += ViaReturnText(code)) += ". Check the spelling and the hosts file";
        else
            why += " has no address number " + std::to_string(index) + ", counted from 0";
        return std::unexpected(Error(code, "VipNSGetHostByName", std::move(why)));
    }

    /**
     * Sets what is called about asynchronous errors, instead of the former handler; an empty one
     * restores the default, which logs (VIPL 4.4). The handler lives until the NIC closes. It runs
     * on a thread of the library, where nobody could catch: an exception that leaves it ends the
     * program (std::terminate).
     */
    Expected<void> on_error(ErrorHandler handler) {
        if (!handler)
            return detail::outcome(VipErrorCallback(handle_, nullptr, nullptr), "VipErrorCallback");
        // The former one may be running still: it is kept, too.
        handlers_.push_front(std::move(handler));
        const VIP_RETURN code = VipErrorCallback(handle_, &handlers_.front(), &run_handler);
        if (code != VIP_SUCCESS) handlers_.pop_front();
        return detail::outcome(code, "VipErrorCallback");
    }

    /**
     * A counter of this NIC since it was opened, perhaps a moment old.
     * @param name  see ViaCounterName
     */
    Expected<VIP_UINT64> counter(const char* name) const {
        VIP_UINT64 value = 0;
        const VIP_RETURN code = ViaReadCounter(handle_, name, &value);
        if (code != VIP_SUCCESS) return detail::failure(code, "ViaReadCounter");
        return value;
    }

private:
    explicit Nic(VIP_NIC_HANDLE handle) noexcept : handle_(handle) {}
    static void run_handler(VIP_PVOID context, VIP_ERROR_DESCRIPTOR* error) noexcept {
        (*static_cast<ErrorHandler*>(context))(AsyncError(*error));
    }

    VIP_NIC_HANDLE handle_;
    std::forward_list<ErrorHandler> handlers_;
};

/**
 * A protection tag: a VI may use the memory of its own tag only (VIPL 4.7). Move-only.
 *
 * The destructor destroys it; while a VI or region still has it, the tag stays until the NIC
 * closes (VIPL 4.8). Threads: as Nic.
 */
class ProtectionTag {
public:
    /** @return the tag; VIP_ERROR_RESOURCE: MaxPtags reached */
    [[nodiscard]] static Expected<ProtectionTag> create(const Nic& nic) {
        VIP_PROTECTION_HANDLE handle = nullptr;
        const VIP_RETURN code = VipCreatePtag(nic.handle(), &handle);
        if (code != VIP_SUCCESS) return detail::failure(code, "VipCreatePtag");
        return ProtectionTag(nic.handle(), handle);
    }

    ~ProtectionTag() {
        if (handle_ != nullptr) VipDestroyPtag(nic_, handle_);
    }
    /** Moves; `other` is empty afterwards, and may only be destroyed or assigned to. */
    ProtectionTag(ProtectionTag&& other) noexcept
        : nic_(other.nic_), handle_(std::exchange(other.handle_, nullptr)) {}
    /** Exchanges the two: what this was ends with `other`. */
    ProtectionTag& operator=(ProtectionTag&& other) noexcept {
        std::swap(nic_, other.nic_);
        std::swap(handle_, other.handle_);
        return *this;
    }

    /** Destroys now, and says whether that went well: VIP_ERROR_RESOURCE while it is in use. */
    Expected<void> destroy() noexcept {
        const VIP_RETURN code = VipDestroyPtag(nic_, handle_);
        if (code == VIP_SUCCESS) handle_ = nullptr;
        return detail::outcome(code, "VipDestroyPtag");
    }

    /** The handle for vipl.h; stays this object's. */
    VIP_PROTECTION_HANDLE handle() const noexcept { return handle_; }

private:
    ProtectionTag(VIP_NIC_HANDLE nic, VIP_PROTECTION_HANDLE handle) noexcept
        : nic_(nic), handle_(handle) {}

    VIP_NIC_HANDLE nic_;
    VIP_PROTECTION_HANDLE handle_;
};

}  // namespace via
