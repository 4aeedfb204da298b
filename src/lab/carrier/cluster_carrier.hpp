// Frames of the product's NICs ride on a cluster of the laboratory: every frame is a descriptor or
// an answer, goes through host, bus, firmware, engines, link and switch, and is there when the
// receiving NIC has told its host.
#pragma once

#include <deque>
#include <expected>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "device/sim/carrier.hpp"
#include "device/sim/fabric.hpp"
#include "lab/carrier/frame_kind.hpp"
#include "lab/design/list.hpp"
#include "lab/host.hpp"
#include "lab/kernel/computer.hpp"
#include "lab/kernel/over_adapter.hpp"
#include "lab/software.hpp"

namespace via::lab::carrier {

/// NICs of one design, as many as there are hosts.
struct Plan {
    Machine machine;
    design::Options design;
    Load load;                   ///< VIs: those that a doorbell is for; more VIs share them
    bool host_for_each = false;  ///< NIC, though several have one address
};

class ClusterCarrier final : public device::sim::Carrier {
public:
    using Node = device::sim::NodeId;

    /// The error says why that design cannot be. Clock and fabric outlive the carrier.
    static std::expected<std::unique_ptr<ClusterCarrier>, std::string> make(
        Plan plan, device::sim::VirtualClock& clock, device::sim::Fabric& fabric,
        std::uint64_t seed);

    void join(Node node, const HostAddress& address) override;
    void leave(Node node) override { nodes_[node].receives = nullptr; }
    void attend(Node node, const device::sim::Receives& receives) override;
    void poll(Node node) override;
    void wake(Node node, Duration waited) override;
    bool busy(Node node) const override { return nodes_[node].began > machine_of(node).done; }
    void carry(Node from, Node to, std::unique_ptr<device::sim::Parcel> parcel) override;
    Time next() const override { return schedule_.next(); }
    void run(Time end) override;
    bool shares_memory() const override {
        return plan_.machine.has(Has::window) && !plan_.host_for_each;
    }
    Duration one_way_max() const override;

    Schedule& schedule() { return schedule_; }
    const Ledger& ledger() const { return ledger_; }
    std::uint64_t events() const { return schedule_.events(); }
    std::uint64_t packets() const { return network_.packets() + wire_.frames() + memory_.frames(); }
    std::size_t hosts() const { return machines_.size(); }
    /// No more of them may join: a cable joins two.
    bool is_full() const {
        const bool cable = plan_.machine.has(Has::ethernet) && !setting_.switched;
        return cable && machines_.size() == 2;
    }
    /// Of machines with an adapter.
    const Host& host(std::size_t number) const { return *machines_[number]->host; }
    std::uint64_t messages() const { return messages_; }

private:
    using Job = std::function<Task<>()>;
    /// A host, and what its processor has to do, one after the other.
    struct HostMachine {
        HostAddress address;
        // With an adapter, perhaps below a kernel; or without
        std::unique_ptr<Host> host;
        std::unique_ptr<kernel::OverAdapter> over_adapter;
        std::unique_ptr<kernel::Computer> computer;
        std::unique_ptr<SoftwareNic> software;
        Bearer* bearer = nullptr;  ///< one of them
        std::vector<Node> nodes;   ///< its NICs
        std::deque<Job> jobs;
        std::uint64_t done = 0;  ///< jobs, of all that ever came
        std::unique_ptr<Signal> jobs_came;
    };
    struct NodePlace {
        HostMachine* machine = nullptr;
        const device::sim::Receives* receives = nullptr;
        std::int64_t first_page = -1;
        /// Of its host's jobs its program's last one; what comes behind keeps no program waiting.
        std::uint64_t began = 0;
    };
    /// A VI as a receiver: what its NIC has of its receives.
    struct Receiver {
        Node node = 0;
        std::uint32_t vi = 0;
        std::int64_t being_posted = 0;
        /// Messages that took a descriptor and that the product has not taken yet.
        std::shared_ptr<std::int64_t> taken = std::make_shared<std::int64_t>(0);
    };
    struct UnderWay {
        Node from = 0;
        Node to = 0;
        ViId receiver = 0;
        std::uint64_t number = 0;  ///< on its link
        std::unique_ptr<device::sim::Parcel> parcel;
    };
    struct Link {
        std::uint64_t sent = 0;
        std::uint64_t arrived = 0;
        std::map<std::uint64_t, std::unique_ptr<device::sim::Parcel>> early;
    };

    ClusterCarrier(Plan plan, const kernel::Setting& setting, device::sim::VirtualClock& clock,
                   device::sim::Fabric& fabric, std::uint64_t seed)
        : plan_(std::move(plan)),
          setting_(setting),
          clock_(clock),
          fabric_(fabric),
          seed_(seed),
          network_(schedule_, ledger_, plan_.machine.costs),
          wire_(schedule_, ledger_, plan_.machine.costs, setting_) {}

    const HostMachine& machine_of(Node node) const { return *nodes_[node].machine; }
    void catch_up() { schedule_.run_to(clock_.now()); }
    HostMachine& machine_at(const HostAddress& address);
    void add_adapter(HostMachine& machine, NodeId number);
    static void add_job(HostMachine& machine, Job job);
    void begin_job(Node node, Job job);
    Task<> work(HostMachine& machine);
    Task<> arrive_after(Duration span, Node to, std::unique_ptr<device::sim::Parcel> parcel);
    void took_receive(MessageId message);
    void arrived(MessageId message);
    std::int64_t address_of(Node node, std::uint64_t address, std::int64_t length);
    ViId receiver_of(Node node, std::uint32_t vi);
    bool top_up(ViId id);
    void post(ViId id, const Extent& place);
    void send(PhysicalDescriptor descriptor, Maker maker, Node from);

    Plan plan_;
    kernel::Setting setting_;
    Without without_;  ///< nothing
    device::sim::VirtualClock& clock_;
    device::sim::Fabric& fabric_;
    std::uint64_t seed_;
    Schedule schedule_;
    Ledger ledger_;
    Network network_;
    kernel::Wire wire_;
    SharedMemory memory_;
    std::vector<std::unique_ptr<HostMachine>> machines_;
    std::vector<NodePlace> nodes_;
    std::map<std::pair<Node, std::uint32_t>, ViId> receiver_ids_;
    std::map<ViId, Receiver> receivers_;
    std::map<std::pair<Node, Node>, Link> links_;
    std::map<MessageId, UnderWay> under_way_;
    MessageId last_message_ = no_message;
    std::uint64_t messages_ = 0;  ///< of programs
    bool happened_ = false;       ///< something that others wait for
};

}  // namespace via::lab::carrier
