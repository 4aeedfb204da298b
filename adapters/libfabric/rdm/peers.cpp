// SPDX-License-Identifier: Apache-2.0
#include "rdm/peers.hpp"

#include <utility>

namespace via::fabric::rdm {

Peer*& Peers::place_of(fi_addr_t number) {
    if (by_number_.size() <= number) by_number_.resize(number + 1);
    return by_number_[number];
}

Peer& Peers::named(const sockaddr_in& address, Name own) {
    std::unique_ptr<Peer>& known = by_name_[name_of(address)];
    if (known == nullptr || has_successor(*known)) {
        auto fresh = std::make_unique<Peer>();
        fresh->name = name_of(address);
        fresh->address = address;
        fresh->is_self = fresh->name == own;
        if (known != nullptr) {
            fresh->incarnation = known->incarnation;  // it may not be that one itself
            if (known->number != FI_ADDR_NOTAVAIL) place_of(known->number) = known.get();
            former_.push_back(std::move(known));
        }
        known = std::move(fresh);
    }
    return *known;
}

/// The program knows the name of one that ended by a number that was not used yet, so that is
/// another one: ports are used again. The former keeps its number, its end and its messages.
bool Peers::has_successor(const Peer& peer) const {
    if (peer.state != Peer::State::ended) return false;
    const fi_addr_t latest = addresses_->number_of(peer.name);
    return latest != FI_ADDR_NOTAVAIL && latest != peer.number && at(latest) == nullptr;
}

fi_addr_t Peers::find_number(Peer& peer) const {
    return peer.number = addresses_->number_of(peer.name);
}

void Peers::forget(fi_addr_t number) {
    if (at(number) == nullptr) return;
    Peer& peer = *by_number_[number];
    by_number_[number] = nullptr;
    if (peer.number != number) return;
    peer.number = FI_ADDR_NOTAVAIL;
    // Who is inserted again by that address may be another one.
    if (peer.state == Peer::State::ended) peer.state = Peer::State::unknown;
}

}  // namespace via::fabric::rdm
