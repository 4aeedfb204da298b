// What stands in the devices' place when the process ends: it takes nothing, and nothing comes.
// Tests make theirs of it.
#pragma once

#include "device/device.hpp"

namespace via::nic {

class AbsentDevice : public device::Device {
public:
    const device::Capabilities& capabilities() const override { return capabilities_; }
    const HostAddress& address() const override { return address_; }
    void resolve(const NetAddress&, std::uint64_t) override {}
    Status listen(const Discriminator&) override { return Status::success; }
    void unlisten(const Discriminator&) override {}
    HostAddress peer_address(device::PathId) const override { return address_; }
    bool reserve(device::PathId, std::uint32_t, std::uint32_t, device::FrameSlot&) override {
        return false;
    }
    void transmit(device::PathId) override {}
    void abandon(device::PathId) override {}
    std::uint32_t notify() override { return 0; }
    std::size_t receive(std::span<device::Frame>) override { return 0; }
    bool release() override { return false; }
    void condemn(device::PathId, const char*) override {}
    bool next_event(device::PathEvent&) override { return false; }
    void service(Time) override {}
    void arm(device::Sleep) override {}
    void set_waiting_for_room(device::PathId) override {}
    bool has_work() override { return false; }
    std::size_t wake_words(std::span<device::WakeWord>) override { return 0; }

private:
    device::Capabilities capabilities_{};
    HostAddress address_{};
};

}  // namespace via::nic
