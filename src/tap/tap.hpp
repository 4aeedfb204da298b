// The base of all decorators: a device that passes every call on to the one below
// (tools/tidy/taps.py sees to it). A tap overrides what it is about.
#pragma once

#include <functional>
#include <memory>
#include <utility>

#include "device/device.hpp"

namespace via::tap {

class Tap : public device::Device {
public:
    explicit Tap(std::unique_ptr<device::Device> below) : below_(std::move(below)) {}

    const device::Capabilities& capabilities() const override { return below_->capabilities(); }
    const HostAddress& address() const override { return below_->address(); }
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
    void abandon(device::PathId path) override { below_->abandon(path); }
    std::uint32_t notify() override { return below_->notify(); }
    std::uint32_t send_small(device::PathId path, std::uint64_t low, std::uint64_t high,
                             const std::byte* payload, std::uint32_t length, bool alone) override {
        return below_->send_small(path, low, high, payload, length, alone);
    }
    std::uint32_t send_pieces(device::PathId path, std::uint64_t low, std::uint64_t high,
                              const Pieces& payload) override {
        return below_->send_pieces(path, low, high, payload);
    }
    std::size_t reap(std::span<device::Reaped> reaped) override { return below_->reap(reaped); }
    std::size_t receive(std::span<device::Frame> frames) override {
        return below_->receive(frames);
    }
    bool release() override { return below_->release(); }
    Status offer(device::PathId path, const SharedMemory& memory, bool writable,
                 std::uint64_t cookie, device::GrantId& grant) override {
        return below_->offer(path, memory, writable, cookie, grant);
    }
    void expect_offers(const Expects& expects) override { below_->expect_offers(expects); }
    void revoke(device::PathId path, device::GrantId grant) override {
        below_->revoke(path, grant);
    }
    bool prefers_transfer(device::PathId path, std::uint64_t length) override {
        return below_->prefers_transfer(path, length);
    }
    void transferred(device::PathId path, bool fetched) override {
        below_->transferred(path, fetched);
    }
    Status transfer(device::PathId path, std::span<const Extent> remote,
                    std::span<const Extent> local) override {
        return below_->transfer(path, remote, local);
    }
    void condemn(device::PathId path, const char* reason) override {
        below_->condemn(path, reason);
    }
    bool next_event(device::PathEvent& event) override { return below_->next_event(event); }
    Time next_deadline() const override { return below_->next_deadline(); }
    void service(Time now) override { below_->service(now); }
    std::uint64_t take_own_frames() override { return below_->take_own_frames(); }
    void arm(device::Sleep sleep) override { below_->arm(sleep); }
    void set_waiting_for_room(device::PathId path) override { below_->set_waiting_for_room(path); }
    bool has_work() override { return below_->has_work(); }
    int wait_handle() const override { return below_->wait_handle(); }
    std::size_t wake_words(std::span<device::WakeWord> words) override {
        return below_->wake_words(words);
    }
    void woken_by(const device::WakeWord& word) override { below_->woken_by(word); }
    std::size_t wake_descriptors(std::span<device::WakeDescriptor> descriptors) const override {
        return below_->wake_descriptors(descriptors);
    }

protected:
    device::Device& below() { return *below_; }

private:
    std::unique_ptr<device::Device> below_;
};

}  // namespace via::tap
