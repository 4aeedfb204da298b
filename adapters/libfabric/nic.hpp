// SPDX-License-Identifier: Apache-2.0
// An open NIC, shared by the passive endpoints and domains of a fabric that name the same one.
#pragma once

#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include "address.hpp"
#include "common.hpp"

namespace via::fabric {

class Endpoint;

/// A registration for peers.
struct Region {
    std::uintptr_t begin;
    std::size_t length;
    bool writable;
    bool readable;
    VIP_MEM_HANDLE handle;
};

class Nic {
public:
    /// 0, or an error of libfabric's. Starts the NIC's own threads.
    static int open(const char* name, std::unique_ptr<Nic>& nic);
    ~Nic();
    Nic(const Nic&) = delete;
    Nic& operator=(const Nic&) = delete;

    VIP_NIC_HANDLE handle() const { return handle_; }
    /// For local use of any memory of the process; never of use to a peer.
    VIP_MEM_HANDLE everything() const { return everything_; }
    const VIP_NIC_ATTRIBUTES& attributes() const { return attributes_; }
    sockaddr_in address(std::uint16_t port) const {
        return socket_address(attributes_.LocalNicAddress, port);
    }
    /// Otherwise what goes there is sent over the network.
    bool has_shared_memory_to(const sockaddr_in& peer) const;
    /// From the memory of a peer's process, which may keep who does so waiting.
    bool may_pull() const { return may_pull_; }
    Address listener(const sockaddr_in& address) const;

    // Ports -------------------------------------------------------------------------------------
    /// False: a listener on this NIC has it. Of other NICs' ports VIA itself knows.
    bool take_port(std::uint16_t port);
    void give_back_port(std::uint16_t port);

    // Memory ------------------------------------------------------------------------------------
    /// Registration costs no system call: nothing is locked, and a program that registers the same
    /// buffer again finds the region that it had, which meanwhile gave no rights to anybody.
    VIP_RETURN register_memory(Region& region);
    void release(const Region& region);

    // Connections that end --------------------------------------------------------------------
    /// Tells `endpoint` when the connection of `vi` breaks, until unwatch() returns.
    void watch(VIP_VI_HANDLE vi, Endpoint& endpoint);
    void unwatch(VIP_VI_HANDLE vi);

private:
    Nic() = default;
    static void on_error(VIP_PVOID context, VIP_ERROR_DESCRIPTOR* error);

    VIP_NIC_HANDLE handle_ = nullptr;
    VIP_MEM_HANDLE everything_ = 0;
    VIP_NIC_ATTRIBUTES attributes_{};
    std::mutex port_lock_;
    std::unordered_set<std::uint16_t> ports_;
    std::mutex memory_lock_;
    std::deque<Region> parked_;  ///< without rights, oldest first
    bool only_network_ = false;  ///< its name says so
    bool parks_ = false;         ///< no page is locked, so a region that waits holds nothing
    bool may_pull_ = false;      ///< nothing that was said forbids it
    std::mutex watch_lock_;
    std::unordered_map<VIP_VI_HANDLE, Endpoint*> watched_;
};

}  // namespace via::fabric
