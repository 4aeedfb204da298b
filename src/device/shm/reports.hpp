// What people are told.
#pragma once

#include <cstdint>
#include <string>

#include "device/shm/shm_config.hpp"

namespace via::device::shm {

/// Owns how much may still be told: limited, so that a hostile peer cannot flood the log.
class Reports {
public:
    explicit Reports(const ShmConfig& config) : config_(config) {}

    /// One sentence, unless there were enough since renew(). Empty: nothing worth telling.
    void tell(const std::string& text) {
        if (!config_.report || text.empty() || left_ == 0) return;
        --left_;
        config_.report(text);
    }
    /// With each service().
    void renew() { left_ = per_service; }

private:
    static constexpr std::uint32_t per_service = 4;

    const ShmConfig& config_;
    std::uint32_t left_ = per_service;
};

}  // namespace via::device::shm
