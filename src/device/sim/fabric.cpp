#include "device/sim/fabric.hpp"

#include <algorithm>

#include "base/assert.hpp"

namespace via::device::sim {

// Nodes -------------------------------------------------------------------------------------------

NodeId Fabric::join(Station& station, const HostAddress& address) {
    const auto node = static_cast<NodeId>(nodes_.size());
    nodes_.push_back({&station, address, {}, {}});
    if (carrier_ != nullptr) carrier_->join(node, address);
    return node;
}

void Fabric::leave(NodeId id) {
    VIA_ASSERT(present(id));
    Node& leaving = nodes_[id];
    leaving.station = nullptr;
    // Whoever asked and was not answered yet must not wait for ever.
    for (const auto& [when, parcel] : leaving.mailbox) ask_others(id, *parcel);
    leaving.mailbox.clear();
    for (NodeId other = 0; other < nodes_.size(); ++other) {
        if (!present(other)) continue;
        // Who never was sent anything has no path to it. (Weather would draw other fates then.)
        if (carrier_ != nullptr && !leaving.sent_to.contains(other)) continue;
        auto farewell = std::make_unique<Parcel>();
        farewell->kind = ParcelKind::farewell;
        send(id, other, std::move(farewell));
    }
    if (carrier_ != nullptr) carrier_->leave(id);
}

bool Fabric::taken_by_neighbour(NodeId id, const Discriminator& discriminator) const {
    for (NodeId other = 0; other < nodes_.size(); ++other)
        if (other != id && present(other) && nodes_[other].address == nodes_[id].address &&
            nodes_[other].station->listens(discriminator))
            return true;
    return false;
}

// Parcels -----------------------------------------------------------------------------------------

void Fabric::send(NodeId from, NodeId to, std::unique_ptr<Parcel> parcel) {
    if (!present(to)) return;
    if (carrier_ != nullptr) {
        if (from != no_node) nodes_[from].sent_to.insert(to);
        parcel->from = from;
        return carrier_->carry(from, to, std::move(parcel));
    }
    const auto length = parcel->header_length + static_cast<std::uint32_t>(parcel->payload.size());
    const Fate fate = weather_.fate({from, to, clock_.now(), length});
    Link& link = link_of(from, to);
    // Even the shortest way takes time: nothing arrives in the turn that sent it.
    link.last_arrival =
        std::max(clock_.now() + std::max(fate.delay, nanoseconds(1)), link.last_arrival);
    parcel->from = from;
    parcel->arrival = link.last_arrival;
    nodes_[to].mailbox.emplace(std::pair{parcel->arrival, sent_++}, std::move(parcel));
}

void Fabric::arrive(NodeId to, std::unique_ptr<Parcel> parcel) {
    if (!present(to)) {
        ask_others(to, *parcel);
        return;
    }
    parcel->arrival = clock_.now();
    if (reached_) reached_(to);
    nodes_[to].mailbox.emplace(std::pair{parcel->arrival, sent_++}, std::move(parcel));
}

void Fabric::ask(NodeId from, const NetAddress& remote, std::uint64_t cookie) {
    NodeId target = no_node;
    for (NodeId node = 0; node < nodes_.size(); ++node) {
        if (!present(node) || !(nodes_[node].address == remote.host)) continue;
        if (target == no_node) target = node;
        if (!nodes_[node].station->listens(remote.discriminator)) continue;
        target = node;
        break;
    }
    if (target == no_node) return bounce(from, cookie);
    auto query = std::make_unique<Parcel>();
    query->kind = ParcelKind::query;
    query->cookie = cookie;
    query->discriminator = remote.discriminator;
    send(from, target, std::move(query));
}

/// What was asked of a node that has left; perhaps it was not the only one of its address.
void Fabric::ask_others(NodeId left, const Parcel& query) {
    if (query.kind == ParcelKind::query && present(query.from))
        ask(query.from, {nodes_[left].address, query.discriminator}, query.cookie);
}

/// The network itself answers that there is nobody.
void Fabric::bounce(NodeId from, std::uint64_t cookie) {
    auto answer = std::make_unique<Parcel>();
    answer->kind = ParcelKind::answer;
    answer->cookie = cookie;
    answer->status = Status::not_reachable;
    send(no_node, from, std::move(answer));
}

std::unique_ptr<Parcel> Fabric::take(NodeId id) {
    auto& mailbox = nodes_[id].mailbox;
    if (mailbox.empty() || mailbox.begin()->first.first > clock_.now()) return nullptr;
    return std::move(mailbox.extract(mailbox.begin()).mapped());
}

Time Fabric::next_arrival(NodeId id) const {
    const auto& mailbox = nodes_[id].mailbox;
    return mailbox.empty() ? Time::never() : mailbox.begin()->first.first;
}

// Room --------------------------------------------------------------------------------------------

bool Fabric::has_room(NodeId from, NodeId to) const {
    const auto link = links_.find({from, to});
    return link == links_.end() || link->second.occupied < options_.frames_max;
}

void Fabric::vacate(NodeId from, NodeId to, std::uint32_t frames) {
    Link& link = link_of(from, to);
    VIA_ASSERT(link.occupied >= frames);
    link.occupied -= frames;
}

}  // namespace via::device::sim
