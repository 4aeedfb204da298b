// That others find this NIC: its names in the directory of its address, and the address itself.
#pragma once

#include <cstdint>
#include <expected>
#include <memory>
#include <string>

#include "base/address.hpp"
#include "base/status.hpp"
#include "base/time.hpp"
#include "device/udp/listeners.hpp"
#include "device/udp/system.hpp"
#include "device/udp/udp_config.hpp"

namespace via::device::udp {

/// Owns the registry of listeners, and when to look whether our names are still in it.
class Presence {
public:
    Presence(System& system, const UdpConfig& config) : system_(system), config_(config) {}
    Presence(const Presence&) = delete;
    Presence& operator=(const Presence&) = delete;

    /// `data_port`: where this NIC takes datagrams.
    std::expected<void, std::string> open(std::uint16_t data_port);
    Listeners& listeners() { return *listeners_; }
    bool is_listened_to() const { return listeners_->is_listened_to(); }
    /// We answer for the host if `is_holder`, also below.
    Status listen(const Discriminator& discriminator, bool is_holder);
    /// A cleaner of temporary files may take our names away while we live.
    void look(Time now, bool is_holder);
    bool is_due(Time now) const { return now >= next_look_; }
    Time next_look() const { return next_look_; }

private:
    void look_at_address();
    void make_known(bool is_holder);

    System& system_;
    const UdpConfig& config_;
    std::uint16_t data_port_ = 0;
    std::unique_ptr<Listeners> listeners_;
    Time next_look_{};
    bool address_is_here_ = true;
};

}  // namespace via::device::udp
