// SPDX-License-Identifier: Apache-2.0
#include "nic.hpp"

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "endpoint.hpp"

namespace via::fabric {
namespace {

constexpr std::size_t parked_max = 256;

VIP_MEM_ATTRIBUTES rights(bool writable, bool readable) {
    return {nullptr, writable ? VIP_TRUE : VIP_FALSE, readable ? VIP_TRUE : VIP_FALSE};
}

/// All transfers are made by processors at the program's own addresses: pages need not be locked.
bool says_how_to_lock(const std::string& name) { return name.find(",pin=") != std::string::npos; }

/// Not what a peer's process may hold back.
bool pulls_nothing(std::string_view options) {
    return options.find("one_copy=never") != std::string_view::npos;
}

}  // namespace

int Nic::open(const char* name, std::unique_ptr<Nic>& nic) {
    remember_process();
    std::unique_ptr<Nic> fresh(new Nic);
    fresh->only_network_ = std::string_view(name).starts_with("udp");
    char why[256];
    VIP_RETURN code = VIP_INVALID_PARAMETER;
    if (!says_how_to_lock(name)) {
        const std::string unlocked = std::string(name) + ",pin=never";
        code = ViaOpenNic(unlocked.c_str(), &fresh->handle_, why, sizeof why);
        fresh->parks_ = code == VIP_SUCCESS;
    }
    const char* const defaults = std::getenv("OPENVIA_OPTIONS");
    fresh->may_pull_ = (fresh->parks_ || says_how_to_lock(name)) && !pulls_nothing(name) &&
                       !pulls_nothing(defaults != nullptr ? defaults : "");
    // A name of nics.conf takes no options, and does not show its own.
    if (code != VIP_SUCCESS) code = ViaOpenNic(name, &fresh->handle_, why, sizeof why);
    if (code != VIP_SUCCESS) {
        FI_WARN(&provider, FI_LOG_FABRIC, "%s: %s\n", name, why);
        return -error_of(code);
    }
    if (VipQueryNic(fresh->handle_, &fresh->attributes_) != VIP_SUCCESS ||
        fresh->attributes_.NicAddressLen != 6)
        return -FI_ENODEV;
    if (ViaRegisterAll(fresh->handle_, &fresh->everything_) != VIP_SUCCESS) return -FI_ENOMEM;
    if (VipErrorCallback(fresh->handle_, fresh.get(), on_error) != VIP_SUCCESS) return -FI_EOTHER;
    nic = std::move(fresh);
    return 0;
}

Nic::~Nic() {
    if (handle_ != nullptr) VipCloseNic(handle_);
}

bool Nic::has_shared_memory_to(const sockaddr_in& peer) const {
    return !only_network_ && peer.sin_addr.s_addr == address(0).sin_addr.s_addr;
}

Address Nic::listener(const sockaddr_in& address) const {
    const VIP_UINT8* own = attributes_.LocalNicAddress;
    return via_address(address, static_cast<std::uint16_t>(own[4] << 8 | own[5]));
}

bool Nic::take_port(std::uint16_t port) {
    const std::lock_guard guard(port_lock_);
    return ports_.insert(port).second;
}

void Nic::give_back_port(std::uint16_t port) {
    const std::lock_guard guard(port_lock_);
    ports_.erase(port);
}

VIP_RETURN Nic::register_memory(Region& region) {
    VIP_MEM_ATTRIBUTES attributes = rights(region.writable, region.readable);
    VIP_PVOID begin = reinterpret_cast<VIP_PVOID>(region.begin);
    const std::lock_guard guard(memory_lock_);
    // The newest first: who comes again comes soon.
    const auto known = std::find_if(parked_.rbegin(), parked_.rend(), [&](const Region& other) {
        return other.begin == region.begin && other.length == region.length;
    });
    if (known != parked_.rend()) {
        region.handle = known->handle;
        parked_.erase(std::next(known).base());
        if (VipSetMemAttributes(handle_, begin, region.handle, &attributes) == VIP_SUCCESS)
            return VIP_SUCCESS;
        VipDeregisterMem(handle_, begin, region.handle);
    }
    return VipRegisterMem(handle_, begin, region.length, &attributes, &region.handle);
}

void Nic::release(const Region& region) {
    VIP_MEM_ATTRIBUTES none = rights(false, false);
    VIP_PVOID begin = reinterpret_cast<VIP_PVOID>(region.begin);
    const std::lock_guard guard(memory_lock_);
    if (!parks_ || VipSetMemAttributes(handle_, begin, region.handle, &none) != VIP_SUCCESS) {
        VipDeregisterMem(handle_, begin, region.handle);
        return;
    }
    parked_.push_back(region);
    if (parked_.size() <= parked_max) return;
    const Region& oldest = parked_.front();
    VipDeregisterMem(handle_, reinterpret_cast<VIP_PVOID>(oldest.begin), oldest.handle);
    parked_.pop_front();
}

void Nic::watch(VIP_VI_HANDLE vi, Endpoint& endpoint) {
    const std::lock_guard guard(watch_lock_);
    watched_.emplace(vi, &endpoint);
}

void Nic::unwatch(VIP_VI_HANDLE vi) {
    const std::lock_guard guard(watch_lock_);
    watched_.erase(vi);
}

/// On the library's thread. Whatever went wrong has ended the connection (VIPL 4.25).
void Nic::on_error(VIP_PVOID context, VIP_ERROR_DESCRIPTOR* error) {
    Nic& nic = *static_cast<Nic*>(context);
    if (error->ResourceCode != VIP_RESOURCE_VI && error->ViHandle == nullptr) {
        FI_WARN(&provider, FI_LOG_EP_CTRL, "the NIC reports error %d\n", error->ErrorCode);
        return;
    }
    const std::lock_guard guard(nic.watch_lock_);
    const auto found = nic.watched_.find(error->ViHandle);
    if (found != nic.watched_.end()) found->second->on_connection_lost(error->ErrorCode);
}

}  // namespace via::fabric
