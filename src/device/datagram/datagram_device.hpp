// A device made of a port: it turns datagrams, which may be lost, doubled, damaged or reordered,
// into frames that arrive once and in order, and says what came of each (docs/design/protocol.md).
#pragma once

#include <array>
#include <cstdint>
#include <memory>

#include "device/datagram/port.hpp"
#include "device/device.hpp"

namespace via::device::datagram {

struct DatagramOptions {
    std::uint64_t instance = 0;  ///< random, of this opening; not 0
    /// Secret and random; proofs for askers and connection identifiers are made of them.
    std::array<std::uint64_t, 2> cookie_key{};
    std::array<std::uint64_t, 2> identifier_key{};
    Duration silence = seconds(5);  ///< patience with a peer that says nothing
    std::uint32_t paths_max = 4096;
};

/// What a path has done and how it stands.
struct PathStatistics {
    std::uint64_t packets_sent = 0;
    std::uint64_t packets_received = 0;
    std::uint64_t packets_lost = 0;
    std::uint64_t packets_spurious = 0;  ///< held for lost, acknowledged after all
    std::uint64_t acks_alone = 0;        ///< packets sent for an acknowledgement only
    std::uint64_t frames_sent = 0;
    std::uint64_t frames_again = 0;  ///< of these, sent another time
    std::uint64_t probe_timeouts = 0;
    Duration round_trip{};        ///< smoothed; 0: not known
    Duration round_trip_least{};  ///< of the last 10 s
    Duration round_trip_deviation{};
    std::uint64_t window = 0;     ///< congestion window, bytes
    std::uint64_t in_flight = 0;  ///< bytes
    std::uint32_t datagram_max = 0;
    std::uint32_t frames_under_way = 0;  ///< that must arrive, not acknowledged
    std::uint32_t frames_held = 0;       ///< arrived before one that is missing
    std::uint32_t reordering = 0;        ///< packets by which a later one may overtake
};

class DatagramDevice final : public Device {
public:
    /// Datagrams that were dropped, by reason, and what else concerns no single path.
    struct Totals {
        std::uint64_t datagrams = 0;
        std::uint64_t truncated = 0;
        std::uint64_t checksum = 0;
        std::uint64_t version = 0;
        std::uint64_t kind = 0;
        std::uint64_t contents = 0;
        std::uint64_t unknown_connection = 0;
        std::uint64_t wrong_address = 0;  ///< a path's packet from somewhere else
        std::uint64_t old_hello = 0;
        std::uint64_t bad_cookie = 0;
        std::uint64_t duplicate_packets = 0;
        std::uint64_t duplicate_frames = 0;
        std::uint64_t no_room = 0;  ///< frames ahead of a missing one that could not be kept
        std::uint64_t retries = 0;  ///< cookies given
        std::uint64_t refusals = 0;
        std::uint64_t paths_made = 0;
    };

    DatagramDevice(std::unique_ptr<Port> port, const DatagramOptions& options);
    ~DatagramDevice() override;

    const Capabilities& capabilities() const override { return capabilities_; }
    const HostAddress& address() const override { return port_->nic_address(); }

    void resolve(const NetAddress& remote, std::uint64_t cookie) override;
    Status listen(const Discriminator& discriminator) override;
    void unlisten(const Discriminator& discriminator) override;
    HostAddress peer_address(PathId path) const override;

    bool reserve(PathId path, std::uint32_t header_length, std::uint32_t payload_length,
                 FrameSlot& slot) override;
    void transmit(PathId path) override;
    void abandon(PathId path) override;
    /// Hands what was transmitted to the port, in one burst.
    std::uint32_t notify() override;

    std::size_t reap(std::span<Reaped> reaped) override;
    std::size_t receive(std::span<Frame> frames) override;
    bool release() override;
    void condemn(PathId path, const char* reason) override;

    bool next_event(PathEvent& event) override;
    Time next_deadline() const override;
    void service(Time now) override;
    void arm(Sleep sleep) override { port_->arm(sleep); }
    void set_waiting_for_room(PathId path) override;
    bool has_work() override;
    int wait_handle() const override { return port_->wait_handle(); }
    std::size_t wake_words(std::span<WakeWord> words) override;
    std::size_t wake_descriptors(std::span<WakeDescriptor> descriptors) const override {
        return port_->wake_descriptors(descriptors);
    }

    Port& port() { return *port_; }
    const Totals& totals() const { return totals_; }
    PathStatistics statistics(PathId path) const;

private:
    std::unique_ptr<Port> port_;
    DatagramOptions options_;
    Capabilities capabilities_;
    Totals totals_;
};

}  // namespace via::device::datagram
