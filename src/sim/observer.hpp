// Looks at a node after anything may have happened there, finds out what did, and tells the
// checkers. It sees what a program could see: memory, descriptors, states, errors. It never asks
// the engine what it thinks.
#pragma once

#include <vector>

#include "sim/checkers.hpp"
#include "sim/medium.hpp"
#include "sim/model.hpp"

namespace via::sim {

/// What a run did, for its report.
struct Tally {
    std::uint64_t connections = 0;
    std::uint64_t messages = 0;
    std::uint64_t message_bytes = 0;
    std::uint64_t reads = 0;
    std::uint64_t flushed = 0;
    std::uint64_t errors = 0;
    std::uint64_t lost = 0;
    std::uint64_t turns = 0;
    std::uint64_t direct = 0;          ///< RDMA without frames
    std::uint64_t pulled = 0;          ///< messages in one copy
    std::uint64_t sealed = 0;          ///< packets that a key vouched for
    std::uint64_t passed_on = 0;       ///< datagrams, by relays
    std::uint64_t by_other_rails = 0;  ///< packets, by others than the first interface
};

class Observer {
public:
    Observer(Model& model, Checkers& checkers, const device::sim::VirtualClock& clock,
             const Medium& medium)
        : model_(model), checkers_(checkers), clock_(clock), medium_(medium) {}

    void tell(const Happening& what) { checkers_.observe(clock_.now(), what); }
    /// A call answered; what it must answer.
    void expect(const char* what, Status got, Status expected) {
        tell(Called{what, got, expected});
    }
    /// Looks at the node. `cause` is what concerned `vi`; nullptr: every VI of the node.
    void look(Node& node, Cause cause, const Vi* vi);
    void look(Node& node) { look(node, Cause::turn, nullptr); }
    /// Looks at memory that the program is about to use for something else.
    void look_at(Node& node, std::uint64_t begin, std::uint64_t length);

    /// A receive of the node's shared queue has become the VI's, if it is one; before looking.
    void take_shared(Vi& vi, const void* descriptor);
    /// The NIC writes to the descriptor and its pieces no more, and nothing came of it.
    void withdraw(Work& work);

    /// The NIC may write to the node's memory there.
    Opened open(Node& node, std::uint64_t begin, std::uint64_t length, bool remote,
                bool atomic = false);
    /// Nobody may change the node's words in that region any more.
    void end_words(Node& node, const Region& region);
    /// Nothing comes to that target any more; its memory is free again.
    void close_target(Node& node, std::size_t index);

    const Tally& tally() const { return tally_; }
    /// Was a request found accepted since the last call?
    bool take_joined() { return std::exchange(joined_, false); }

private:
    void close(const Opened& opened);
    void join(Vi& vi);
    void look_at_shared_receives(Node& node);
    void look_at_shared(const Node& node);
    void look_at_memory(Node& node);
    void look_at_targets(Node& node);
    void deliver_landed(const Connection* connection, int side, WorkNumber before);
    void look_at_reads(const Queue& queue);
    void look_at_queue(Queue& queue);
    void complete(Work& work, std::uint32_t status);
    void receive(const Work& receive, std::uint32_t status);
    void look_at_rest(const Work& receive, std::uint32_t status);
    Work* find_message(const Connection& connection, int side, const std::vector<std::byte>& bytes,
                       const Work& receive, std::uint32_t status);
    void deliver(Work& message, std::span<const std::byte> bytes, bool early = false);
    void look_at_state(Vi& vi, Cause cause);
    void look_at_errors(Node& node);
    void drop_targets(Node& node);
    bool may_lose(const Vi& vi) const;
    std::vector<std::byte> gather(const Work& work, std::uint64_t length) const;

    Model& model_;
    Checkers& checkers_;
    const device::sim::VirtualClock& clock_;
    const Medium& medium_;
    std::vector<const Vi*> lost_;  ///< by this look: their programs must be told
    /// RDMA writes whose bytes are there, found by this look and not told yet; by number.
    std::vector<Target*> landed_;
    Tally tally_;
    bool joined_ = false;
};

}  // namespace via::sim
