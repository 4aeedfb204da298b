// The base of all decorators: a device that passes every call on to the one below, and whose facets
// are that one's (tools/tidy/taps.py sees to it). A tap overrides what it is about.
#pragma once

#include <functional>
#include <memory>
#include <utility>

#include "device/device.hpp"

namespace via::tap {

class Tap : public device::Device {
public:
    explicit Tap(std::unique_ptr<device::Device> below)
        : Device(below->capabilities(), below->address()), below_(std::move(below)) {}

    void resolve(const NetAddress& remote, std::uint64_t cookie) override {
        below_->resolve(remote, cookie);
    }
    Status listen(const Discriminator& discriminator) override {
        return below_->listen(discriminator);
    }
    void unlisten(const Discriminator& discriminator) override { below_->unlisten(discriminator); }
    HostAddress peer_address(device::PathId path) const override {
        return below_->peer_address(path);
    }
    bool reserve(device::PathId path, std::uint32_t header_length, std::uint32_t payload_length,
                 device::FrameSlot& slot) override {
        return below_->reserve(path, header_length, payload_length, slot);
    }
    void transmit(device::PathId path) override { below_->transmit(path); }
    std::uint32_t notify() override { return below_->notify(); }
    std::size_t receive(std::span<device::Frame> frames) override {
        return below_->receive(frames);
    }
    bool release() override { return below_->release(); }
    void close_for_violation(device::PathId path, const char* reason) override {
        below_->close_for_violation(path, reason);
    }
    bool next_event(device::PathEvent& event) override { return below_->next_event(event); }
    Time next_deadline() const override { return below_->next_deadline(); }
    void set_waiting_for_room(device::PathId path) override { below_->set_waiting_for_room(path); }
    bool has_work() override { return below_->has_work(); }

    device::SmallSends* small_sends() override { return below_->small_sends(); }
    device::Retransmission* retransmission() override { return below_->retransmission(); }
    device::SegmentSharing* sharing() override { return below_->sharing(); }
    device::Pulling* pulling() override { return below_->pulling(); }
    device::WayReports* way_reports() override { return below_->way_reports(); }
    device::Sleeping* sleeping() override { return below_->sleeping(); }

protected:
    device::Device& below() { return *below_; }

private:
    std::unique_ptr<device::Device> below_;
};

}  // namespace via::tap
