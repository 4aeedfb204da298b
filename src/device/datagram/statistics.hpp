// What is counted: of each path, and of all together.
#pragma once

#include <cstdint>

#include "base/time.hpp"

namespace via::device::datagram {

/// What a path has done and how it stands.
struct PathStatistics {
    std::uint64_t packets_sent = 0;
    std::uint64_t bytes_sent = 0;  ///< of those that want an acknowledgement
    std::uint64_t packets_received = 0;
    std::uint64_t packets_lost = 0;
    std::uint64_t packets_spurious = 0;  ///< held for lost, acknowledged after all
    std::uint64_t acks_alone = 0;        ///< packets sent for an acknowledgement only
    std::uint64_t frames_sent = 0;
    std::uint64_t frames_again = 0;     ///< of these, sent another time
    std::uint64_t frames_in_parts = 0;  ///< of these, cut when packets were longer
    std::uint64_t probe_timeouts = 0;
    Duration round_trip{};        ///< smoothed; 0: not known
    Duration round_trip_least{};  ///< of the last 10 s
    Duration round_trip_deviation{};
    std::uint64_t window = 0;     ///< congestion window, bytes
    std::uint64_t in_flight = 0;  ///< bytes
    std::uint32_t datagram_max = 0;
    std::uint32_t packets_remembered = 0;  ///< of those sent
    std::uint32_t frames_under_way = 0;    ///< that must arrive, not acknowledged
    std::uint32_t frames_held = 0;         ///< arrived before one that is missing
    std::uint32_t reordering = 0;          ///< packets by which a later one may overtake
};

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
    std::uint64_t queries_dropped = 0;  ///< more than are looked up in a second
    std::uint64_t hellos_dropped = 0;   ///< without a good cookie, more than are answered in one
    std::uint64_t paths_made = 0;
    std::uint64_t paths_looked_at = 0;  ///< of many, for what a stranger sent
};

}  // namespace via::device::datagram
