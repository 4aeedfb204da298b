// Hosts with one design of NIC, and the switch between them.
#pragma once

#include <cstdint>
#include <expected>
#include <memory>
#include <string>
#include <vector>

#include "lab/design/list.hpp"
#include "lab/host.hpp"
#include "lab/network.hpp"

namespace via::lab::study {

struct Trial {
    Machine machine;
    design::Options design;  ///< whole: the machine's own, and what is wanted else
    Load load;
    Without without;
};

class Cluster {
public:
    /// The error says why that design cannot be. The trial outlives the cluster.
    static std::expected<std::unique_ptr<Cluster>, std::string> make(const Trial& trial,
                                                                     std::uint32_t hosts,
                                                                     std::uint64_t seed);

    Schedule& schedule() { return schedule_; }
    Ledger& ledger() { return ledger_; }
    Network& network() { return network_; }
    Host& host(NodeId node) { return *hosts_[node]; }
    std::size_t size() const { return hosts_.size(); }

private:
    explicit Cluster(const Costs& costs) : costs_(costs), network_(schedule_, ledger_, costs_) {}

    const Costs& costs_;
    Schedule schedule_;
    Ledger ledger_;
    Network network_;
    std::vector<std::unique_ptr<Host>> hosts_;
};

}  // namespace via::lab::study
