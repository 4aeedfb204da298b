// What stands in the devices' place when the process ends, and where a device lacks small sends: it
// takes nothing, and nothing comes.
// Tests make theirs of it.
#pragma once

#include "device/device.hpp"

namespace via::nic {

class AbsentDevice : public device::Device, public device::SmallSends {
public:
    AbsentDevice() : Device({}, {}) {}

    void resolve(const NetAddress&, std::uint64_t) override {}
    Status listen(const Discriminator&) override { return Status::success; }
    void unlisten(const Discriminator&) override {}
    HostAddress peer_address(device::PathId) const override { return address_; }
    bool reserve(device::PathId, std::uint32_t, std::uint32_t, device::FrameSlot&) override {
        return false;
    }
    void transmit(device::PathId) override {}
    std::uint32_t notify() override { return 0; }
    std::size_t receive(std::span<device::Frame>) override { return 0; }
    bool release() override { return false; }
    void close_for_violation(device::PathId, const char*) override {}
    bool next_event(device::PathEvent&) override { return false; }
    void set_waiting_for_room(device::PathId) override {}
    bool has_work() override { return false; }
    std::uint32_t send_small(device::PathId, std::uint64_t, std::uint64_t, const std::byte*,
                             std::uint32_t, bool) override {
        return not_sent;
    }
    std::uint32_t send_pieces(device::PathId, std::uint64_t, std::uint64_t,
                              const Pieces&) override {
        return not_sent;
    }
};

}  // namespace via::nic
