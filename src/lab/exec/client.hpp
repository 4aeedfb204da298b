// A process of the simulated cluster, as the owner of the world sees it: its NICs are devices here.
#pragma once

#include <chrono>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "device/sim/sim_device.hpp"
#include "lab/carrier/cluster_carrier.hpp"
#include "sim/host/remote_wire.hpp"

namespace via::lab::exec {

class Client {
public:
    /// Fabric and carrier outlive it. Who says nothing for `patience` is told of by run().
    Client(int descriptor, device::sim::Fabric& fabric, carrier::ClusterCarrier& carrier,
           std::chrono::milliseconds patience);

    enum class Turn : std::uint8_t {
        waits,   ///< in VIPL
        gone,    ///< or it spoke nonsense
        silent,  ///< it has called nothing of VIPL; it has its turn still
    };
    /// Lets the process run until it waits.
    Turn run();
    /// Which process it is, and what it waits for or does.
    std::string description() const;
    /// Something is there that it waits for.
    bool is_due();
    /// When it goes on by itself.
    Time until() const { return until_; }
    /// Tells it what came, and what time it is; then it runs. False: it has gone.
    bool wake();

private:
    static constexpr std::uint32_t nics_max = 32;  // bits of an answer

    /// What the process said that its VIs have posted.
    struct Told final : device::sim::Receives {
        std::vector<std::vector<Extent>> vis;
        std::uint32_t vis_end() const override { return static_cast<std::uint32_t>(vis.size()); }
        std::uint32_t outstanding(std::uint32_t vi) const override {
            return vi < vis.size() ? static_cast<std::uint32_t>(vis[vi].size()) : 0;
        }
        Extent posted(std::uint32_t vi, std::uint32_t nth) const override { return vis[vi][nth]; }
    };
    struct Reserved {
        std::vector<device::FrameSlot> slots;
        std::vector<sim::remote::Packet> asked;
        std::size_t filled = 0;
    };
    struct Nic {
        std::unique_ptr<Told> told = std::make_unique<Told>();
        std::map<device::PathId, Reserved> reserved;
        std::set<device::PathId> paths;  ///< that it was told of, and of no end
        bool lent = false;               ///< frames that the process has not released
        std::unique_ptr<device::sim::SimDevice> device;
    };

    bool is_silent() const;
    bool take(const sim::remote::Packet& packet, const std::vector<std::byte>& payload);
    bool take_of(Nic& nic, const sim::remote::Packet& packet,
                 const std::vector<std::byte>& payload);
    bool take_of_path(Nic& nic, const sim::remote::Packet& packet,
                      const std::vector<std::byte>& payload);
    bool open(const sim::remote::Packet& packet);
    bool reserve(Nic& nic, const sim::remote::Packet& packet, bool known);
    bool fill(Nic& nic, const sim::remote::Packet& packet, const std::vector<std::byte>& payload);
    bool hear_posted(Nic& nic, const sim::remote::Packet& packet,
                     const std::vector<std::byte>& payload);
    bool send_arrivals(std::uint32_t number, Nic& nic);
    std::uint32_t busy() const;

    sim::remote::Line line_;
    device::sim::Fabric& fabric_;
    carrier::ClusterCarrier& carrier_;
    std::map<std::uint32_t, Nic> nics_;
    std::uint32_t opened_ = 0;
    Time until_{};
    std::chrono::milliseconds patience_;
    int pid_ = -1;
    bool waits_ = false;           ///< in VIPL, until then
    std::uint32_t waits_for_ = 0;  ///< NICs whose host is busy
};

}  // namespace via::lab::exec
