#include "device/udp/presence.hpp"

#include <utility>

namespace via::device::udp {

namespace {

constexpr Duration names_interval = seconds(5);

}  // namespace

std::expected<void, std::string> Presence::open(std::uint16_t data_port) {
    data_port_ = data_port;
    next_look_ = system_.now() + names_interval;
    auto listeners =
        Listeners::open(system_, config_.directory, config_.shared, data_port_, config_.instance);
    if (!listeners) return std::unexpected(std::move(listeners.error()));
    listeners_ = std::make_unique<Listeners>(std::move(*listeners));
    return {};
}

Status Presence::listen(const Discriminator& discriminator, bool is_holder) {
    if (!listeners_->is_known()) look(system_.now(), is_holder);
    const auto listening = listeners_->listen(discriminator);
    if (listening) return Status::success;
    if (config_.report) config_.report(listening.error());
    return Status::error_resource;
}

/// A host may be given another address while we live: then no peer is reached.
void Presence::look_at_address() {
    const HostAddress& address = config_.place.address;
    const bool here = is_here(system_, address).value_or(address_is_here_);
    if (std::exchange(address_is_here_, here) == here || !config_.report) return;
    config_.report("udp: " + config_.place.interface + ": the address " + host_text(address) +
                   (here ? " is there again"
                         : " is on no interface any more that is up, so no other host is reached; "
                           "give it back, or close this NIC and open one at another"));
}

void Presence::look(Time now, bool is_holder) {
    next_look_ = now + names_interval;
    look_at_address();
    if (!listeners_->is_known()) make_known(is_holder);
}

void Presence::make_known(bool is_holder) {
    UdpConfig::Meeting at{config_.directory, config_.shared};
    std::string why;
    if (config_.directory_again) {
        if (auto again = config_.directory_again()) {
            at = std::move(*again);
        } else {
            why = again.error();
        }
    }
    if (why.empty()) {
        const auto made =
            listeners_->make_known(at.directory, at.shared, data_port_, config_.instance);
        if (!made) why = made.error();
        if (is_holder) listeners_->note_holder();
    }
    if (!config_.report) return;
    config_.report("udp: our names were taken away; " +
                   (why.empty() ? "others find us in " + at.directory + " again" : why));
}

}  // namespace via::device::udp
