// The part of `via info` that tells which way a NIC would take to a peer, and why.
#pragma once

#include <vipl.h>

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/address.hpp"

namespace via::cli {

/// A NIC's own; of no length: it has none.
HostAddress address_of(const VIP_NIC_ATTRIBUTES& attributes);

/// The interface of this machine that has the address, if one has it.
std::optional<std::string> interface_of(const HostAddress& address);

struct WayToPeer {
    std::string nic;          ///< its own name
    std::string nic_address;  ///< ours
    std::string peer_address;
    std::string way;  ///< "shm", "udp"; empty: none
    std::string why;
    std::string key;  ///< what protects a way over the network, and why; empty: it is none
    std::vector<std::string> over;   ///< the next host on each way over relays, the first one first
    std::vector<std::string> rails;  ///< further networks of ours, which the peer may be in, too
};

/// Opens `nic` and looks, without connecting a VI; may take as long as the NIC's patience with
/// silent peers. `media`: what a NIC's own name begins with. False: `error` says why it cannot be
/// told.
bool find_way(const std::string& nic, const std::string& peer,
              std::span<const std::string_view> media, WayToPeer& way, std::string& error);
void print_way(const std::string& peer, const WayToPeer& way);
void print_way_json(const std::string& peer, const WayToPeer& way, const char* schema);

}  // namespace via::cli
