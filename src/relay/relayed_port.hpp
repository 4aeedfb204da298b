// A port that reaches hosts over relays: what goes to an address in the table leaves in an envelope
// for the next relay, what comes from a relay loses its envelope. Who is above it sees the
// addresses of the two ends alone, so that all of the protocol, keys too, is between these.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "device/datagram/port_decorator.hpp"
#include "relay/ways.hpp"
#include "wire/envelope.hpp"

namespace via::relay {

class RelayedPort final : public device::datagram::PortDecorator {
public:
    using Outgoing = device::datagram::Outgoing;
    using Incoming = device::datagram::Incoming;
    using NetworkError = device::datagram::NetworkError;

    /// Takes the ways from the port's own address.
    RelayedPort(std::unique_ptr<device::datagram::Port> inner, const Ways& ways);

    std::uint32_t datagram_max() const override {
        return inner().datagram_max() - envelope_length_;
    }
    std::size_t send(std::span<const Outgoing> datagrams) override;
    std::size_t receive(std::span<Incoming> datagrams) override;
    /// After the second one behind another, the next way is taken, where there is one.
    void doubt(const HostAddress& to, Time arrived) override;
    HostAddress next_to(const HostAddress& host) const override;
    bool has_work() override { return !errors_.empty() || inner().has_work(); }
    bool next_network_error(NetworkError& error) override;

    struct Totals {
        std::uint64_t enveloped = 0;  ///< datagrams that left so
        std::uint64_t opened = 0;
        std::uint64_t refused = 0;  ///< that came from a relay, and were none of ours
        std::uint64_t changes = 0;  ///< of the way to a host
    };
    const Totals& totals() const { return totals_; }

private:
    /// A host that stands in the table.
    struct Route {
        std::vector<HostAddress> nexts;  ///< not empty; ports: a relay's, or 0: the host itself
        std::size_t at = 0;              ///< the one that is taken
        HostAddress heard_over;          ///< by which relay it was heard last; empty: by none yet
        unsigned doubts = 0;
        Time doubted{};  ///< last
        bool is_direct() const { return port_of(nexts[at]) == 0; }
    };
    /// To whom a datagram with that connection went over a relay.
    struct Sent {
        std::uint64_t connection = 0;
        HostAddress to;
        HostAddress over;
    };
    static constexpr std::size_t room_bytes = 160 * 1024;
    static constexpr unsigned doubts_max = 2;
    static constexpr std::size_t remembered = 256;
    static constexpr std::size_t errors_max = 64;

    Route* route_to(const HostAddress& to);
    void wrap(const Outgoing& out, const HostAddress& over, std::byte* to);
    bool open(Incoming& in);
    bool is_for_us(const HostAddress& destination, bool to_host_port) const;
    void take_error(const NetworkError& error);
    void hear(NetworkError error, const HostAddress& to);
    bool leave(const HostAddress& over);
    bool change_way(Route& route);
    void follow(Route& route, const HostAddress& from, const HostAddress& over);

    Ways ways_;
    std::map<HostOnly, Route> routes_;
    std::uint32_t envelope_length_;
    HostAddress last_to_;  ///< whose route was looked up last
    Route* last_route_ = nullptr;
    std::vector<std::byte> room_;  ///< of a burst that leaves
    std::vector<Outgoing> burst_;
    std::array<Sent, remembered> sent_{};  ///< by connection
    std::deque<NetworkError> errors_;
    Totals totals_;
};

}  // namespace via::relay
