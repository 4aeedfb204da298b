// Hosts of one machine and design, and what lies between them.
#pragma once

#include <cstdint>
#include <expected>
#include <memory>
#include <string>
#include <vector>

#include "lab/design/list.hpp"
#include "lab/host.hpp"
#include "lab/kernel/computer.hpp"
#include "lab/kernel/over_adapter.hpp"
#include "lab/network.hpp"
#include "lab/software.hpp"
#include "lab/window.hpp"

namespace via::lab::study {

struct Trial {
    Machine machine;
    design::Options design;  ///< whole: the machine's own, and what is wanted else
    Load load;
    Without without;
};

/// Of a design's words, those of its adapter.
design::Options adapter_words(const Trial& trial);

class Cluster {
public:
    /// The error says why that design cannot be. The trial outlives the cluster.
    static std::expected<std::unique_ptr<Cluster>, std::string> make(const Trial& trial,
                                                                     std::uint32_t hosts,
                                                                     std::uint64_t seed);

    Schedule& schedule() { return schedule_; }
    Ledger& ledger() { return ledger_; }
    /// What programs run on.
    Station& station(NodeId node) { return *stations_[node]; }
    /// The same host, for messages that say themselves where they go.
    Bearer& bearer(NodeId node) { return *bearers_[node]; }
    /// VIs of the first two hosts, with each other.
    void connect(std::int64_t vis);
    std::size_t size() const { return stations_.size(); }
    bool has_hosts() const { return !hosts_.empty(); }
    std::uint64_t packets() const { return network_.packets() + wire_.frames() + memory_.frames(); }

    // Of machines with an adapter -----------------------------------------------------------
    Network& network() { return network_; }
    Host& host(NodeId node) { return *hosts_[node]; }
    /// Of machines with a window.
    Window& window(NodeId node) { return *windows_[node]; }
    // Of machines without ---------------------------------------------------------------------
    kernel::Computer& computer(NodeId node) { return *computers_[node]; }

private:
    explicit Cluster(const Trial& trial)
        : trial_(trial),
          network_(schedule_, ledger_, trial.machine.costs),
          wire_(schedule_, ledger_, trial.machine.costs, setting_) {}
    std::expected<void, std::string> add_adapter(std::uint64_t seed);
    void add_computer();
    void add_software();

    const Trial& trial_;
    Schedule schedule_;
    Ledger ledger_;
    kernel::Setting setting_;
    Network network_;
    kernel::Wire wire_;
    SharedMemory memory_;
    std::vector<std::unique_ptr<Host>> hosts_;
    Window::Cards cards_;
    std::vector<std::unique_ptr<Window>> windows_;
    std::vector<std::unique_ptr<kernel::Computer>> computers_;
    std::vector<std::unique_ptr<SoftwareNic>> software_;
    std::vector<std::unique_ptr<Station>> own_stations_;  ///< over hosts
    std::vector<Station*> stations_;
    std::vector<Bearer*> bearers_;
};

}  // namespace via::lab::study
