#include "lab/study/cluster.hpp"

#include <utility>

namespace via::lab::study {
namespace {

/// A host with an adapter and no kernel in its way.
class Bare final : public Station {
public:
    explicit Bare(Host& host) : host_(host) {}
    void connect(ViId vi, NodeId peer) override { host_.connect(vi, peer); }
    Task<> post_send(ViId vi, Buffer buffer, MessageId message) override {
        return host_.post_send(vi, buffer, message);
    }
    Task<> post_receive(ViId vi, Buffer buffer) override { return host_.post_receive(vi, buffer); }
    Task<MessageId> receive(ViId vi, std::int64_t queues) override {
        return host_.receive(vi, queues);
    }
    bool holds(ViId vi) const override { return host_.holds(vi); }
    Task<MessageId> sent(ViId vi, std::int64_t queues) override { return host_.sent(vi, queues); }
    ResourceId processor() const override { return host_.processor_id(); }
    AdapterCounts counts() const override { return host_.adapter().counts(); }

private:
    Host& host_;
};

}  // namespace

design::Options adapter_words(const Trial& trial) {
    return kernel::adapter_words(trial.machine, trial.design);
}

std::expected<std::unique_ptr<Cluster>, std::string> Cluster::make(const Trial& trial,
                                                                   std::uint32_t hosts,
                                                                   std::uint64_t seed) {
    std::unique_ptr<Cluster> cluster(new Cluster(trial));
    if (trial.machine.has(Has::kernel)) {
        const auto setting = kernel::setting_of(trial.machine, trial.design);
        if (!setting) return std::unexpected(setting.error());
        cluster->setting_ = *setting;
    }
    if (const auto refused = refusal_of_words(trial.machine, trial.design))
        return std::unexpected(*refused);
    for (NodeId node = 0; node < hosts; ++node) {
        if (trial.machine.has(Has::software)) {
            cluster->add_software();
        } else if (trial.machine.has(Has::ethernet)) {
            cluster->add_computer();
        } else if (auto added = cluster->add_adapter(seed); !added) {
            return std::unexpected(added.error());
        }
    }
    return cluster;
}

std::expected<void, std::string> Cluster::add_adapter(std::uint64_t seed) {
    auto made = design::make(trial_.machine, adapter_words(trial_), trial_.load);
    if (!made) return std::unexpected(made.error());
    const auto node = static_cast<NodeId>(hosts_.size());
    const Costs& costs = trial_.machine.costs;
    hosts_.push_back(std::make_unique<Host>(schedule_, ledger_, costs, std::move(*made), network_,
                                            trial_.without, node, seed * 64 + node));
    Host& host = *hosts_.back();
    if (trial_.machine.has(Has::kernel)) {
        auto over = std::make_unique<kernel::OverAdapter>(host, schedule_, ledger_, costs, setting_,
                                                          trial_.without);
        bearers_.push_back(over.get());
        own_stations_.push_back(std::move(over));
    } else {
        bearers_.push_back(&host);
        own_stations_.push_back(std::make_unique<Bare>(host));
    }
    stations_.push_back(own_stations_.back().get());
    if (trial_.machine.has(Has::window)) {
        windows_.push_back(std::make_unique<Window>(schedule_, ledger_, costs, trial_.without,
                                                    host.processor(), host.bus(), network_,
                                                    host.node(), cards_));
    }
    return {};
}

void Cluster::add_computer() {
    computers_.push_back(std::make_unique<kernel::Computer>(
        schedule_, ledger_, trial_.machine.costs, setting_, trial_.without, wire_,
        static_cast<NodeId>(computers_.size())));
    stations_.push_back(computers_.back().get());
    bearers_.push_back(computers_.back().get());
}

void Cluster::add_software() {
    software_.push_back(std::make_unique<SoftwareNic>(schedule_, ledger_, trial_.machine.costs,
                                                      trial_.without, memory_));
    stations_.push_back(software_.back().get());
    bearers_.push_back(software_.back().get());
}

void Cluster::connect(std::int64_t vis) {
    for (ViId vi = 0; vi < static_cast<ViId>(vis); ++vi)
        for (NodeId node = 0; node < 2; ++node) stations_[node]->connect(vi, 1 - node);
}

}  // namespace via::lab::study
