// A port that stands before another one, and says and hears what that does, but for what a class
// derived from this one does otherwise.
#pragma once

#include <memory>
#include <utility>

#include "device/datagram/port.hpp"

namespace via::device::datagram {

class PortDecorator : public Port {
public:
    explicit PortDecorator(std::unique_ptr<Port> inner) : inner_(std::move(inner)) {}

    const HostAddress& nic_address() const override { return inner_->nic_address(); }
    const HostAddress& data_address() const override { return inner_->data_address(); }
    std::uint32_t rails() const override { return inner_->rails(); }
    const HostAddress& rail_address(std::uint32_t rail) const override {
        return inner_->rail_address(rail);
    }
    std::uint32_t rail_to(const HostAddress& host) const override { return inner_->rail_to(host); }
    HostAddress next_to(const HostAddress& host) const override { return inner_->next_to(host); }
    bool is_near(const HostAddress& host) const override { return inner_->is_near(host); }
    std::uint32_t datagram_max() const override { return inner_->datagram_max(); }
    std::uint32_t receive_room() const override { return inner_->receive_room(); }
    Time now() override { return inner_->now(); }
    Time moment() override { return inner_->moment(); }
    bool authenticates() const override { return inner_->authenticates(); }
    std::size_t send(std::span<const Outgoing> datagrams) override {
        return inner_->send(datagrams);
    }
    void doubt(const HostAddress& to, Time arrived) override { inner_->doubt(to, arrived); }
    bool has_room() override { return inner_->has_room(); }
    void forget(std::uint64_t ours) override { inner_->forget(ours); }
    std::size_t receive(std::span<Incoming> datagrams) override {
        return inner_->receive(datagrams);
    }
    Time came() const override { return inner_->came(); }
    void release() override { inner_->release(); }
    bool keep(std::uint32_t buffer) override { return inner_->keep(buffer); }
    void let_go(std::uint32_t buffer) override { inner_->let_go(buffer); }
    std::uint32_t keeps_left() const override { return inner_->keeps_left(); }
    bool has_work() override { return inner_->has_work(); }
    bool next_network_error(NetworkError& error) override {
        return inner_->next_network_error(error);
    }
    Status listen(const Discriminator& discriminator) override {
        return inner_->listen(discriminator);
    }
    void unlisten(const Discriminator& discriminator) override { inner_->unlisten(discriminator); }
    bool find_listener(const Discriminator& discriminator, std::uint16_t& data_port,
                       std::uint64_t& instance) override {
        return inner_->find_listener(discriminator, data_port, instance);
    }
    void service(Time now) override { inner_->service(now); }
    void arm(Sleep sleep) override { inner_->arm(sleep); }
    int wait_handle() const override { return inner_->wait_handle(); }
    std::size_t wake_descriptors(std::span<WakeDescriptor> descriptors) const override {
        return inner_->wake_descriptors(descriptors);
    }
    Time next_deadline() const override { return inner_->next_deadline(); }

protected:
    Port& inner() const { return *inner_; }

private:
    std::unique_ptr<Port> inner_;
};

}  // namespace via::device::datagram
