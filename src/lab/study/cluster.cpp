#include "lab/study/cluster.hpp"

#include <utility>

namespace via::lab::study {

std::expected<std::unique_ptr<Cluster>, std::string> Cluster::make(const Trial& trial,
                                                                   std::uint32_t hosts,
                                                                   std::uint64_t seed) {
    std::unique_ptr<Cluster> cluster(new Cluster(trial.machine.costs));
    for (NodeId node = 0; node < hosts; ++node) {
        auto made = design::make(trial.machine, trial.design, trial.load);
        if (!made) return std::unexpected(made.error());
        cluster->hosts_.push_back(std::make_unique<Host>(
            cluster->schedule_, cluster->ledger_, cluster->costs_, std::move(*made),
            cluster->network_, trial.without, node, seed * 64 + node));
    }
    return cluster;
}

}  // namespace via::lab::study
