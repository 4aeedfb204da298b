// Large messages in one copy: the receiver pulls them from the sender's memory.
#pragma once

#include <cstdint>
#include <span>

#include "device/facets.hpp"
#include "device/shm/channels.hpp"
#include "device/shm/reports.hpp"
#include "device/shm/shm_config.hpp"
#include "device/shm/system.hpp"

namespace via::device::shm {

/// Owns nothing: asks each channel's CopyChoice, and copies.
class Pulls final : public Pulling {
public:
    Pulls(const ShmConfig& config, System& system, Channels& channels, Reports& reports)
        : config_(config), system_(system), channels_(channels), reports_(reports) {}

    bool prefers_pull(PathId path, std::uint64_t length) override;
    void pulled(PathId path, bool done) override;
    Status pull(PathId path, std::span<const Extent> remote,
                std::span<const Extent> local) override;

private:
    const ShmConfig& config_;
    System& system_;
    Channels& channels_;
    Reports& reports_;
};

}  // namespace via::device::shm
