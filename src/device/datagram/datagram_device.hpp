// A device made of a port: it turns datagrams, which may be dropped, duplicated, corrupted or
// reordered, into frames that arrive once and in order, and says what came of each
// (docs/design/protocol.md).
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "device/datagram/meeting.hpp"
#include "device/datagram/options.hpp"
#include "device/datagram/outbox.hpp"
#include "device/datagram/packing.hpp"
#include "device/datagram/parts_out.hpp"
#include "device/datagram/paths.hpp"
#include "device/datagram/polls.hpp"
#include "device/datagram/port.hpp"
#include "device/datagram/receiving.hpp"
#include "device/datagram/recovery.hpp"
#include "device/datagram/searches.hpp"
#include "device/datagram/sending.hpp"
#include "device/datagram/statistics.hpp"
#include "device/device.hpp"
#include "wire/packet.hpp"

namespace via::device::datagram {

/// Owns the port, the parts of the protocol, and the turn: in which order each of them does its
/// work.
class DatagramDevice final : public Device,
                             public Retransmission,
                             public WayReports,
                             public Sleeping {
public:
    using Totals = datagram::Totals;

    DatagramDevice(std::unique_ptr<Port> port, const DatagramOptions& options);
    ~DatagramDevice() override;

    void resolve(const NetAddress& remote, std::uint64_t cookie) override;
    Status listen(const Discriminator& discriminator) override;
    void unlisten(const Discriminator& discriminator) override;
    HostAddress peer_address(PathId path) const override;

    bool reserve(PathId path, std::uint32_t header_length, std::uint32_t payload_length,
                 FrameSlot& slot) override;
    void transmit(PathId path) override;
    /// Hands what was transmitted to the port, in one burst.
    std::uint32_t notify() override;

    std::size_t receive(std::span<Frame> frames) override;
    bool release() override;
    void close_for_violation(PathId path, const char* reason) override;

    bool next_event(PathEvent& event) override;
    Time next_deadline() const override;
    void set_waiting_for_room(PathId path) override;
    bool has_work() override;

    Retransmission* retransmission() override { return this; }
    std::size_t reap(std::span<Reaped> reaped) override;

    WayReports* way_reports() override { return this; }
    std::size_t report_ways(std::vector<Way>& to, std::size_t max) const override;

    Sleeping* sleeping() override { return this; }
    void service(Time now) override;
    void arm(Sleep sleep) override;
    int wait_handle() const override { return port_->wait_handle(); }
    std::size_t wake_words(std::span<WakeWord> words) override;
    std::size_t wake_descriptors(std::span<WakeDescriptor> descriptors) const override {
        return port_->wake_descriptors(descriptors);
    }

    Port& port() { return *port_; }
    const Totals& totals() const { return totals_; }
    PathStatistics statistics(PathId path) const;

private:
    static constexpr std::size_t burst_max = Receiving::burst_max;

    Path* path_up(PathId id) const {
        Path* const path = paths_.at(id);
        return path != nullptr && path->stage == Path::Stage::up ? path : nullptr;
    }
    void begin_turn();
    Way way_of(const Path& path) const;

    // Time
    void run_timers(Time now) {
        const Time before = std::exchange(timers_ran_, now);
        if (now >= paths_.next_deadline() || now >= meeting_.searches().deadline())
            run_due_timers(before, now);
    }
    /// `before`: when they ran the last time.
    void run_due_timers(Time before, Time now);
    void extend_deadlines(Duration stood_still, Time now);
    void on_deadline(Path& path, Time now);
    Time next_timer() const {
        return earlier(paths_.next_deadline(), meeting_.searches().deadline());
    }
    void look_at_interface(Time now);

    // What comes
    void poll();
    void on_datagram(const Incoming& in, Time now);
    void on_data(const Incoming& in, std::uint64_t connection, Time now);
    void hear_network_errors(Time now);
    void on_network_error(Path& path, const NetworkError& error, Time now);

    std::unique_ptr<Port> port_;
    DatagramOptions options_;
    Totals totals_;
    PathEvents events_;
    Time timers_ran_{};
    bool looked_ = false;              ///< in this turn
    bool burst_taken_ = false;         ///< the port has bytes of ours until its release()
    std::uint32_t interface_max_ = 0;  ///< datagram that our interface carried when we last looked
    std::array<Incoming, burst_max> incoming_;
    NetworkError network_error_;  ///< being heard; here, since few turns have one
    // Each knows those before it only.
    Polls polls_;
    Paths paths_;
    Outbox outbox_;
    PartsOut parts_;
    Recovery recovery_;
    Sending sending_;
    Packing packing_;
    Receiving receiving_;
    Meeting meeting_;
};

}  // namespace via::device::datagram
