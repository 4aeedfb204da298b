// What the NICs of a world are on: it opens devices, does to them what a medium may do, and knows
// whether a connection could break by it.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "base/random.hpp"
#include "device/sim/datagram_network.hpp"
#include "device/sim/fabric.hpp"
#include "sim/giving_up.hpp"
#include "sim/model.hpp"
#include "sim/networks.hpp"
#include "sim/parameters.hpp"
#include "sim/relays.hpp"
#include "sim/sealing.hpp"
#include "wire/envelope.hpp"

namespace via::sim {

class Medium {
public:
    virtual ~Medium() = default;

    virtual std::unique_ptr<device::Device> open(Node& node) = 0;
    /// Between two steps of its program something may happen to the node; for how long it takes no
    /// turn then.
    virtual Duration disturb(Node& /*node*/) { return {}; }
    /// The node's program ends, without a word if so drawn, and where its successor shall be.
    virtual void close(Node& /*node*/) {}
    /// From now on the weather is good.
    virtual void heal() {}
    /// Messages of unreliable VIs, or parts of them, may never arrive.
    virtual bool loses() const { return false; }
    /// Has the NIC at `here` reason to give up the one at `there` now?
    virtual bool may_give_up(const Node& /*here*/, const Node& /*there*/) const { return false; }
    /// Is there no way between the two any more, and will there be none?
    virtual bool are_cut_off(const Node& /*here*/, const Node& /*there*/) const { return false; }
    /// May a path between the two have gone down since then, other than by one of them ending?
    virtual bool may_have_broken(const Node& /*here*/, const Node& /*there*/,
                                 Time /*since*/) const {
        return false;
    }
    /// The longest that a frame may be under way in good weather.
    virtual Duration one_way_max() const = 0;
    /// What the shortest frame carries at least, when there is more to carry.
    virtual std::uint32_t payload_min() const = 0;
    virtual std::uint32_t payload_max() const = 0;
    /// Until everybody knows that somebody is gone. Media that never rest tell the living by it.
    virtual Duration silence() const { return {}; }
    /// A line for every datagram, to `show`.
    virtual void show_datagrams(const std::function<void(const char* line)>& /*show*/) {}
    /// More was under way than a peer said that it takes, though nothing was ever lost.
    virtual bool was_flooded() const { return false; }
    /// Once. It calls `tell` for each node to which something comes, when that is known. False: it
    /// does not, and any node may have work or another deadline at any time.
    virtual bool tell_of_arrivals(std::function<void(const Node&)>&& /*tell*/) { return false; }
    /// What a stranger got through though there are keys; nullptr: nothing.
    virtual const char* broken_seal() const { return nullptr; }
    /// Packets that a key vouched for.
    virtual std::uint64_t sealed_packets() const { return 0; }
    /// When something happens on it that no NIC has asked for; never() if nothing will.
    virtual Time next() const { return Time::never(); }
    /// Lets such things happen by `end` at the latest, and moves the clock along.
    virtual void run(Time /*end*/) {}
    /// Datagrams sent so far, by all.
    virtual std::uint64_t datagrams() const { return 0; }
    /// Of these and of answers to them, by relays.
    virtual std::uint64_t passed_on() const { return 0; }
    /// Packets of paths that left by others than the first interface of their NIC.
    virtual std::uint64_t by_other_rails() const { return 0; }
    /// That each end of a path may ask for signs of life.
    virtual std::uint32_t rails_max() const { return 1; }
};

/// The lossless fabric of SimDevice, in fair weather or by a carrier.
class LosslessMedium final : public Medium {
public:
    LosslessMedium(const Parameters& parameters, device::sim::VirtualClock& clock,
                   std::uint64_t seed, const device::sim::CarrierMaker& maker);

    std::unique_ptr<device::Device> open(Node& node) override;
    Duration one_way_max() const override;
    std::uint32_t payload_min() const override { return parameters_.fabric.payload_max; }
    std::uint32_t payload_max() const override { return parameters_.fabric.payload_max; }
    bool tell_of_arrivals(std::function<void(const Node&)>&& tell) override;
    Time next() const override { return carrier_ ? carrier_->next() : Time::never(); }
    void run(Time end) override {
        if (carrier_) carrier_->run(end);
    }

private:
    const Parameters& parameters_;
    device::sim::FairWeather weather_;
    device::sim::Fabric fabric_;
    std::unique_ptr<device::sim::Carrier> carrier_;  ///< nullptr: none
    std::vector<Node*> nodes_;                       ///< by the fabric's numbers
};

/// Datagrams in stormy weather.
class DatagramMedium final : public Medium {
public:
    DatagramMedium(const Parameters& parameters, device::sim::VirtualClock& clock,
                   const CryptoMaker& crypto);

    std::unique_ptr<device::Device> open(Node& node) override;
    Duration disturb(Node& node) override;
    void close(Node& node) override;
    void heal() override;
    bool loses() const override { return true; }
    bool may_give_up(const Node& here, const Node& there) const override {
        return giving_up_.is_allowed(here, there, one_way_max());
    }
    bool are_cut_off(const Node& here, const Node& there) const override {
        return relays_ && relays_->are_cut_off(here.host, there.host);
    }
    bool may_have_broken(const Node& here, const Node& there, Time since) const override {
        return giving_up_.was_allowed(here, there, since, one_way_max()) ||
               giving_up_.was_allowed(there, here, since, one_way_max());
    }
    Duration one_way_max() const override;
    std::uint32_t payload_min() const override;
    std::uint32_t payload_max() const override;
    Duration silence() const override { return datagram_.silence; }
    void show_datagrams(const std::function<void(const char* line)>& show) override {
        show_ = show;
    }
    std::uint64_t datagrams() const override { return network_.sent(); }
    std::uint64_t passed_on() const override { return relays_ ? relays_->passed_on() : 0; }
    std::uint64_t by_other_rails() const override { return by_other_rails_; }
    std::uint32_t rails_max() const override { return networks_.are_several() ? networks_max : 1; }
    Time next() const override { return relays_ ? relays_->next() : Time::never(); }
    void run(Time /*end*/) override { relays_->run(); }
    bool was_flooded() const override;
    const char* broken_seal() const override {
        return sealing_ ? sealing_->record().complaint() : nullptr;
    }
    std::uint64_t sealed_packets() const override {
        return sealing_ ? sealing_->record().heard() : 0;
    }

private:
    std::unique_ptr<device::datagram::Port> open_ports(Node& node);
    void watch(device::sim::SocketId from, const device::datagram::Outgoing& outgoing,
               const device::sim::Fate& fate);
    void disturb_by_strangers(const Node& node);
    void forge(std::uint64_t pick);
    void forge_for_others(const device::sim::DatagramNetwork::Remembered& seen,
                          const wire::Envelope& envelope);
    const HostAddress& any_address_of(const Node& node);
    void show(device::sim::SocketId from, const device::datagram::Outgoing& outgoing,
              const device::sim::Fate& fate, const std::vector<std::byte>& bytes) const;

    const DatagramWorld& datagram_;
    device::sim::VirtualClock& clock_;
    Random random_;
    Networks networks_;
    device::sim::DatagramNetwork network_;
    std::optional<Relays> relays_;    ///< where there are two networks
    std::optional<Sealing> sealing_;  ///< where there are keys
    GivingUp giving_up_;
    /// Of each that is another interface's: the first one's.
    std::map<device::sim::SocketId, device::sim::SocketId> first_sockets_;
    std::uint64_t by_other_rails_ = 0;
    std::function<void(const char* line)> show_;
};

}  // namespace via::sim
