// Ports in several networks as one: what goes to a host of one of them leaves by that one's port.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "device/datagram/port.hpp"

namespace via::device::datagram {

/// Owns the ports. The first one is that of the NIC address: it alone answers for the host, and is
/// asked where somebody listens.
class RailsPort : public Port {
public:
    static constexpr std::uint32_t rails_max = wire::rails_max;

    /// At least one, at most rails_max.
    explicit RailsPort(std::vector<std::unique_ptr<Port>> ports);

    const HostAddress& nic_address() const override { return first().nic_address(); }
    const HostAddress& data_address() const override { return first().data_address(); }
    /// The shortest one's: each rail searches for its own from there on.
    std::uint32_t datagram_max() const override;
    std::uint32_t receive_room() const override;
    Time now() override { return first().now(); }

    std::uint32_t rails() const override { return static_cast<std::uint32_t>(ports_.size()); }
    const HostAddress& rail_address(std::uint32_t rail) const override {
        return ports_[rail]->data_address();
    }
    /// The first one in whose network that host is; where none is, by the first one's routers.
    std::uint32_t rail_to(const HostAddress& host) const override;

    std::size_t send(std::span<const Outgoing> datagrams) override;
    void doubt(const HostAddress& to, Time arrived) override {
        ports_[rail_to(to)]->doubt(to, arrived);
    }
    bool has_room() override;
    /// A look at each, another one first every time.
    std::size_t receive(std::span<Incoming> datagrams) override;
    Time came() const override { return came_; }
    void release() override;
    bool keep(std::uint32_t buffer) override;
    void let_go(std::uint32_t buffer) override;
    std::uint32_t keeps_left() const override;
    bool has_work() override;
    bool next_network_error(NetworkError& error) override;

    Status listen(const Discriminator& discriminator) override {
        return first().listen(discriminator);
    }
    void unlisten(const Discriminator& discriminator) override { first().unlisten(discriminator); }
    bool find_listener(const Discriminator& discriminator, std::uint16_t& data_port,
                       std::uint64_t& instance) override {
        return first().find_listener(discriminator, data_port, instance);
    }

    void service(Time now) override;
    void arm(Sleep sleep) override;
    /// The first one's: a class derived from this one knows of a handle for all.
    int wait_handle() const override { return first().wait_handle(); }
    std::size_t wake_descriptors(std::span<WakeDescriptor> descriptors) const override;
    Time next_deadline() const override;

protected:
    Port& port(std::uint32_t rail) const { return *ports_[rail]; }

private:
    Port& first() const { return *ports_.front(); }

    std::vector<std::unique_ptr<Port>> ports_;
    std::size_t look_first_ = 0;
    Time came_ = Time::never();
};

}  // namespace via::device::datagram
