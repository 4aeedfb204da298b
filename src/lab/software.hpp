// A NIC that is a library: the processors of two processes of a host copy messages into memory that
// both have, and out of it. There is no bus and no firmware; what travels are lines, from the cache
// of one processor to that of another.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "lab/bearer.hpp"
#include "lab/fifo.hpp"
#include "lab/machine.hpp"
#include "lab/parts.hpp"
#include "lab/processor_cache.hpp"
#include "lab/resource.hpp"
#include "lab/station.hpp"

namespace via::lab {

/// Such a machine has nothing to choose; why these words are refused. Nothing of other machines.
std::optional<std::string> refusal_of_words(
    const Machine& machine, const std::map<std::string, std::string, std::less<>>& words);

class SoftwareNic;

/// What lies between the processes of a host.
class SharedMemory {
public:
    NodeId join(SoftwareNic& nic) {
        nics_.push_back(&nic);
        return static_cast<NodeId>(nics_.size() - 1);
    }
    SoftwareNic& at(NodeId node) { return *nics_[node]; }
    /// Does some processor's cache hold that block?
    bool is_cached(const Block& block) const;
    void note_frame() { ++frames_; }
    std::uint64_t frames() const { return frames_; }

private:
    std::vector<SoftwareNic*> nics_;
    std::uint64_t frames_ = 0;
};

/// A process, and the library in it. Its processor does all the work: what it posts, and what
/// comes, which it finds by polling.
class SoftwareNic final : public Station, public Bearer {
public:
    /// Everything given outlives it.
    SoftwareNic(Schedule& schedule, Ledger& ledger, const Costs& costs, const Without& without,
                SharedMemory& memory);

    void connect(ViId vi, NodeId peer) override { peers_[vi] = peer; }
    Task<> post_send(ViId vi, Buffer buffer, MessageId message) override;
    Task<> post_receive(ViId vi, Buffer buffer) override;
    Task<MessageId> receive(ViId vi, std::int64_t queues) override;
    bool holds(ViId vi) const override;
    Task<MessageId> sent(ViId vi, std::int64_t queues) override;
    ResourceId processor() const override { return processor_.id(); }
    // As a Bearer's, where nobody calls receive() ---------------------------------------------
    void tell(Listener listener) override { listener_ = std::move(listener); }
    NodeId node() const override { return node_; }
    Task<> send(PhysicalDescriptor descriptor, bool by_driver) override;
    void send_own(const PhysicalDescriptor& descriptor) override;
    std::int64_t receives_waiting(ViId vi) override {
        return static_cast<std::int64_t>(inboxes_[vi].posted.size());
    }
    void take_back(ViId vi, std::int64_t receives) override;
    Task<> poll() override { return poll(1, no_message); }
    Task<> wake(Duration waited) override;
    std::int64_t bytes_received() const { return bytes_received_; }
    const ProcessorCache& cache() const { return cache_; }

private:
    struct Frame {
        NodeId from = 0;
        ViId vi = 0;
        MessageId message = no_message;
        Landing landing;
        std::int64_t offset = 0;  ///< within the message
        std::int64_t length = 0;
        bool last = false;
        Place place;  ///< in shared memory
    };
    struct Inbox {
        std::deque<MessageId> whole;
        std::deque<Buffer> posted;
        Buffer taken;              ///< of the message that is being placed
        std::deque<Frame> early;   ///< before a receive was posted
        std::set<MessageId> lost;  ///< no receive was posted, nor will be
    };

    /// For what one sender has under way. Frames lie in it one behind the other; one that is alone
    /// lies beside it, at the same place each time.
    struct Room {
        Room(Schedule& schedule, std::int64_t size) : fifo(schedule, size) {}
        Fifo fifo;
        std::int64_t next = 0;
    };

    Task<> transmit(PhysicalDescriptor descriptor);
    Task<> answer(PhysicalDescriptor descriptor);
    Task<> arrivals();
    Task<> take_early(ViId vi);
    Task<> place(Frame frame);
    Task<> copy(SoftwareNic& by, Place from, Place to, Work work);
    Task<> move_lines(Resource& processor, Duration time, Work work);
    std::int64_t bytes_brought(const Place& place);
    Task<> poll(std::int64_t queues, MessageId message);
    Room& room_of(NodeId sender);
    Place place_in(NodeId sender, std::int64_t length, bool alone);
    Place own(std::int64_t address, std::int64_t length) const {
        return {node_, std::nullopt, address, length};
    }

    Schedule& schedule_;
    const Costs& costs_;
    const Without& without_;
    SharedMemory& memory_;
    NodeId node_;
    Resource processor_;
    Resource lines_;  ///< between this processor's cache and all others
    ProcessorCache cache_;
    Signal changed_;
    Signal came_changed_;
    std::optional<Listener> listener_;
    std::map<ViId, NodeId> peers_;
    std::map<ViId, Inbox> inboxes_;
    std::map<ViId, std::deque<MessageId>> sent_;
    std::deque<Frame> came_;
    std::map<NodeId, std::unique_ptr<Room>> rooms_;  ///< by sender
    std::int64_t bytes_received_ = 0;
};

}  // namespace via::lab
