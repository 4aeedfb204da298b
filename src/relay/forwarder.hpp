// What a relay does with a datagram: passes it on, or drops it. It keeps nothing of those that it
// passed on, so nobody can fill it; and sends no byte more than it got, and only to addresses that
// stand in its table, so nobody can turn it against others.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "base/address.hpp"
#include "relay/ways.hpp"
#include "wire/envelope.hpp"

namespace via::relay {

struct Totals {
    std::uint64_t passed_on = 0;  ///< datagrams
    std::uint64_t bytes = 0;      ///< of them, envelopes included
    std::uint64_t notices = 0;    ///< that nobody takes datagrams somewhere
    // Dropped
    std::uint64_t malformed = 0;
    std::uint64_t strangers =
        0;                      ///< neither a host of the table that speaks for itself nor a relay
    std::uint64_t unknown = 0;  ///< for an address that is not in the table
    std::uint64_t going_round = 0;  ///< passed on too often, or back to where it came from
};

class Forwarder {
public:
    explicit Forwarder(Ways ways) : ways_(std::move(ways)) {}

    struct Onward {
        HostAddress from;           ///< host: the address of ours that it leaves from
        HostAddress to;             ///< host and port
        HostAddress source{};       ///< who made it, host and port
        HostAddress destination{};  ///< for whom
    };
    /// `datagram` came from `from`, host and port. Nothing: it was dropped. Otherwise its envelope
    /// says by now that one relay less may pass it on.
    std::optional<Onward> pass_on(const HostAddress& from, std::span<std::byte> datagram);

    struct Notice {
        Onward onward;
        std::array<std::byte, wire::envelope_length_max> bytes;
        std::uint32_t length = 0;
    };
    /// The network says that nobody takes datagrams where one went that began so: who made it
    /// shall hear of it. Nothing: it is none that we passed on, or not quoted so far.
    std::optional<Notice> tell_unreachable(std::span<const std::byte> quoted);

    const Ways& ways() const { return ways_; }
    const Totals& totals() const { return totals_; }

private:
    bool may_be_from(const HostAddress& from, const wire::Envelope& envelope) const;
    std::optional<Onward> onward_to(const HostAddress& destination) const;

    Ways ways_;
    Totals totals_;
};

}  // namespace via::relay
