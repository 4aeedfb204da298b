// A world: several NICs on a simulated network, programs that use them at random, checkers that
// watch. One seed decides everything; virtual time goes from event to event. The same seed gives
// the same trace, byte for byte.
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <string>

#include "sim/agenda.hpp"
#include "sim/checkers.hpp"
#include "sim/observer.hpp"
#include "sim/parameters.hpp"
#include "sim/trace.hpp"
#include "sim/workload.hpp"

namespace via::sim {

/// What a run found.
struct Report {
    std::string violation;  ///< the first one; empty: none
    Time time{};            ///< at the end
    std::uint64_t trace_hash = 0;
    std::uint64_t trace_lines = 0;
    Tally tally;

    bool good() const { return violation.empty(); }
};

class World {
public:
    /// `frames`: the trace shows every frame too. `carrier`: carries them in place of the weather,
    /// in a lossless world. `crypto`: wanted by a world with keys.
    explicit World(const Parameters& parameters, bool frames = false,
                   const device::sim::CarrierMaker& carrier = {}, const CryptoMaker& crypto = {});
    ~World();

    Trace& trace() { return trace_; }
    /// Once. Ends at the first violation.
    Report run();

private:
    Node& make_node(std::uint32_t host, std::uint16_t data_port = 0);
    bool is_of_this_world(const HostAddress& address) const;
    bool advance(bool working);
    bool advance_and_feed();
    void feed_all();
    void advance_until(Time end);
    void ask_again(const Node& node);
    void ask(Node& node);
    void ask_all();
    void take_turn(Node& node);
    void take_step(Node& node);
    void close(Node& node);
    void work();
    void rest();
    void leave();
    Duration patience() const;
    bool at_rest();
    bool sends_under_way() const;
    void settle(Time end);
    void look_at_idleness();

    Parameters parameters_;
    bool frames_;
    Random random_;
    device::sim::VirtualClock clock_;
    std::unique_ptr<Medium> medium_;
    Trace trace_;
    Checkers checkers_;
    Model model_;
    Observer observer_;
    Workload workload_;
    Agenda turns_due_;
    Agenda steps_due_;
    std::set<NodeNumber> unasked_;  ///< whose next turn is not known
    bool all_unasked_;  ///< of a medium that does not tell to whom something comes: ever
    std::uint64_t turns_ = 0;
    std::uint32_t steps_ = 0;
};

}  // namespace via::sim
