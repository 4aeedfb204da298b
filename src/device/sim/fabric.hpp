// The network between simulated devices: one per world. Whatever leaves a node is a parcel; the
// weather decides its fate, and it waits in the mailbox of its target until its moment has come.
// Parcels of one link arrive in the order of sending; arrivals at one moment are taken in the
// order of sending too, so a run repeats exactly.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "device/device.hpp"
#include "device/sim/carrier.hpp"
#include "device/sim/virtual_clock.hpp"
#include "device/sim/weather.hpp"

namespace via::device::sim {

enum class ParcelKind : std::uint8_t {
    frame,     ///< header and payload of a NIC
    query,     ///< does anybody listen to this discriminator?
    answer,    ///< to a query: success, no_match or not_reachable
    credit,    ///< frames were given back: there is room for `count` more
    farewell,  ///< the sender has closed its path to the receiver
    segment,   ///< memory of the sender that the receiver may attach to
};

struct Parcel {
    ParcelKind kind{};
    NodeId from = no_node;
    Time arrival{};
    // frame
    std::uint32_t header_length = 0;
    std::byte header[Frame::inline_max];
    std::vector<std::byte> payload;
    const std::byte* source = nullptr;  ///< to be copied from when it is published
    std::uint64_t address = 0;          ///< where the payload lay, if it lay together; to name it
    std::shared_ptr<void> held;         ///< let go when the frame was given back
    // query, answer, credit, segment
    std::uint64_t cookie = 0;
    Discriminator discriminator;
    Status status = Status::success;
    std::uint32_t count = 0;
    Attachment attachment;
};

struct FabricOptions {
    std::uint32_t payload_max = 4096;    ///< bytes of payload in one frame
    std::uint32_t frames_max = 64;       ///< frames of a link that were not given back yet
    std::uint32_t small_max = 256;       ///< payload bytes of a frame that is sent in one call
    bool pulls = false;                  ///< long messages are pulled from their senders' memory
    std::uint32_t pull_fails_every = 0;  ///< of a node's pulls, half done; 0: none
};

/// What the fabric asks of a node.
class Station {
public:
    virtual ~Station() = default;
    virtual bool listens(const Discriminator& discriminator) const = 0;
};

/// Clock and weather outlive the fabric; the fabric outlives its devices.
class Fabric {
public:
    Fabric(VirtualClock& clock, Weather& weather, const FabricOptions& options)
        : clock_(clock), weather_(weather), options_(options) {}

    /// In place of the weather. Before any node joins; outlives the nodes.
    void carry_by(Carrier& carrier) { carrier_ = &carrier; }
    Carrier* carrier() { return carrier_; }
    /// Hears of each node to which the carrier has brought something.
    void watch(std::function<void(NodeId)> reached) { reached_ = std::move(reached); }

    VirtualClock& clock() { return clock_; }
    const FabricOptions& options() const { return options_; }

    // Nodes ---------------------------------------------------------------------------------------
    /// Several nodes may have one address, as processes of one host do.
    NodeId join(Station& station, const HostAddress& address);
    /// Everybody hears of it after what the node sent before.
    void leave(NodeId node);
    bool present(NodeId node) const { return node < nodes_.size() && nodes_[node].station; }
    const HostAddress& address_of(NodeId node) const { return nodes_[node].address; }
    /// Another node of the same address listens to it.
    bool taken_by_neighbour(NodeId node, const Discriminator& discriminator) const;

    // Parcels -------------------------------------------------------------------------------------
    void send(NodeId from, NodeId to, std::unique_ptr<Parcel> parcel);
    /// What the carrier carried is there, now. Who sent it may have left.
    void arrive(NodeId to, std::unique_ptr<Parcel> parcel);
    /// Asks the node of that address which listens, else any of that address.
    void ask(NodeId from, const NetAddress& remote, std::uint64_t cookie);
    /// The next parcel that has arrived by now, or nothing.
    std::unique_ptr<Parcel> take(NodeId node);
    /// When the next parcel arrives; never() if none is on its way.
    Time next_arrival(NodeId node) const;

    // Room ----------------------------------------------------------------------------------------
    bool has_room(NodeId from, NodeId to) const;
    void occupy(NodeId from, NodeId to) { ++link_of(from, to).occupied; }
    void vacate(NodeId from, NodeId to, std::uint32_t frames);

private:
    struct Node {
        Station* station = nullptr;  ///< nullptr: has left
        HostAddress address;
        std::map<std::pair<Time, std::uint64_t>, std::unique_ptr<Parcel>> mailbox;
        std::set<NodeId> sent_to;  ///< with a carrier
    };
    struct Link {
        Time last_arrival{};
        std::uint32_t occupied = 0;  ///< frames reserved, travelling, or not given back
    };

    Link& link_of(NodeId from, NodeId to) { return links_[{from, to}]; }
    void ask_others(NodeId left, const Parcel& query);
    void bounce(NodeId from, std::uint64_t cookie);

    VirtualClock& clock_;
    Weather& weather_;
    Carrier* carrier_ = nullptr;
    std::function<void(NodeId)> reached_;
    FabricOptions options_;
    std::vector<Node> nodes_;
    std::map<std::pair<NodeId, NodeId>, Link> links_;
    std::uint64_t sent_ = 0;
};

}  // namespace via::device::sim
