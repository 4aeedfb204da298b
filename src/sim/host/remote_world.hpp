// A world that another process owns, `via lab exec`: this one's NICs are devices over there, and
// virtual time goes on there while nobody here can.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "device/sim/carrier.hpp"
#include "sim/host/remote_wire.hpp"

namespace via::sim::remote {

class RemoteDevice;

class RemoteWorld final : public device::sim::Carrier {
public:
    /// nullptr and errno: nobody is there.
    static std::unique_ptr<RemoteWorld> connect(const std::string& path,
                                                device::sim::VirtualClock& clock);

    /// nullptr: the owner takes no more.
    std::unique_ptr<RemoteDevice> open();

    void join(device::sim::NodeId, const HostAddress&) override {}
    void leave(device::sim::NodeId node) override;
    void attend(device::sim::NodeId node, const device::sim::Receives& receives) override;
    void poll(device::sim::NodeId node) override;
    void wake(device::sim::NodeId node, Duration waited) override;
    bool busy(device::sim::NodeId node) const override { return (busy_ >> node & 1) != 0; }
    /// Frames go by the devices.
    void carry(device::sim::NodeId, device::sim::NodeId,
               std::unique_ptr<device::sim::Parcel>) override;
    Time next() const override { return clock_.now(); }  // the owner knows
    void run(Time end) override;
    Duration one_way_max() const override { return {}; }

    // The devices'
    void tell(Packet packet, std::span<const std::byte> payload = {});
    Packet ask(const Packet& packet);
    void tell_of_receives(std::uint32_t nic);
    /// Its host has something to do, as far as is known here.
    void note_work(std::uint32_t nic) { busy_ |= 1U << nic; }

private:
    void look(device::sim::NodeId node, Kind kind, Duration waited);
    RemoteWorld(int descriptor, device::sim::VirtualClock& clock)
        : line_(descriptor), clock_(clock) {}
    [[noreturn]] static void owner_is_gone();

    Line line_;
    device::sim::VirtualClock& clock_;
    std::map<std::uint32_t, RemoteDevice*> devices_;
    std::map<std::uint32_t, const device::sim::Receives*> receives_;
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<Extent>> told_;
    std::uint32_t busy_ = 0;
};

class RemoteDevice final : public device::Device {
public:
    RemoteDevice(RemoteWorld& world, std::uint32_t nic, const HostAddress& address,
                 std::uint32_t payload_max);
    ~RemoteDevice() override;
    std::uint32_t nic() const { return nic_; }
    void take(const Packet& packet, std::vector<std::byte> payload);
    /// The owner has let time pass: there may be room that was wanted.
    void stir() { stirred_ = waits_for_room_; }

    void resolve(const NetAddress& remote, std::uint64_t cookie) override;
    Status listen(const Discriminator& discriminator) override;
    void unlisten(const Discriminator& discriminator) override;
    HostAddress peer_address(device::PathId) const override { return address_; }
    bool reserve(device::PathId path, std::uint32_t header_length, std::uint32_t payload_length,
                 device::FrameSlot& slot) override;
    void transmit(device::PathId path) override;
    std::uint32_t notify() override { return 0; }
    std::size_t receive(std::span<device::Frame> frames) override;
    bool release() override;
    void close_for_violation(device::PathId path, const char* reason) override;
    bool next_event(device::PathEvent& event) override;
    Time next_deadline() const override;
    void set_waiting_for_room(device::PathId path) override;
    bool has_work() override { return !arrivals_.empty() || stirred_; }

private:
    struct Arrival {
        Packet packet;
        std::vector<std::byte> payload;
    };
    struct Staged {
        Packet packet;
        std::vector<std::byte> payload;
        const std::byte* source = nullptr;
    };
    Packet about(Kind kind, device::PathId path = 0) const;

    RemoteWorld& world_;
    std::uint32_t nic_;
    std::deque<Arrival> arrivals_;
    std::vector<Arrival> lent_;
    std::map<device::PathId, std::deque<Staged>> staged_;
    bool waits_for_room_ = false;
    bool stirred_ = false;
};

}  // namespace via::sim::remote
