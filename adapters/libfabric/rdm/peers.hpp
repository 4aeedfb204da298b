// SPDX-License-Identifier: Apache-2.0
// Whom an endpoint for datagrams knows, by number and by name.
#pragma once

#include <memory>
#include <unordered_map>
#include <vector>

#include "rdm/address_vector.hpp"
#include "rdm/peer.hpp"

namespace via::fabric::rdm {

/// Owns the peers. Under the domain's guard, once the endpoint is enabled.
class Peers {
public:
    /// Outlives it; bound once.
    void bind(AddressVector& addresses) { addresses_ = &addresses; }
    AddressVector* addresses() const { return addresses_; }

    /// nullptr: that number was not used yet.
    Peer* at(fi_addr_t number) const {
        return number < by_number_.size() ? by_number_[number] : nullptr;
    }
    void put(fi_addr_t number, Peer& peer) { place_of(number) = &peer; }
    /// Why the address vector knows nobody: -FI_EINVAL; or it is not sure yet who that is:
    /// -FI_EAGAIN.
    ssize_t why_none(fi_addr_t number) const {
        return addresses_->find(number) == nullptr ? -FI_EINVAL : -FI_EAGAIN;
    }
    bool knows(Name name) const { return by_name_.contains(name); }
    /// Who has that name now; made if there is none. `own`: our name.
    Peer& named(const sockaddr_in& address, Name own);
    /// For completions: whose message it is.
    [[gnu::always_inline]] fi_addr_t number_of(Peer& peer) {
        return peer.number != FI_ADDR_NOTAVAIL ? peer.number : find_number(peer);
    }
    /// That number means nobody any more.
    void forget(fi_addr_t number);

private:
    Peer*& place_of(fi_addr_t number);
    bool has_successor(const Peer& peer) const;
    [[gnu::noinline]] fi_addr_t find_number(Peer& peer) const;

    AddressVector* addresses_ = nullptr;
    std::vector<Peer*> by_number_;
    std::unordered_map<Name, std::unique_ptr<Peer>> by_name_;
    std::vector<std::unique_ptr<Peer>> former_;  ///< whose names others have now
};

}  // namespace via::fabric::rdm
