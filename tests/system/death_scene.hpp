// One death: a victim and a survivor exchange checked messages, the victim is killed, and the
// survivor must find out properly (VIPL 4.2, 4.18).
#pragma once

#include "support/child.hpp"
#include "support/traffic.hpp"

namespace system_test {

/// How long a survivor may take to know; measured times are reported, this only catches hangs.
constexpr double death_noticed_max_ms = 5000;

struct Scene {
    Operation operation = Operation::send;
    std::size_t length = 64;
    bool victim_initiates = true;
    VIP_RELIABILITY_LEVEL level = VIP_SERVICE_RELIABLE_DELIVERY;
    std::uint64_t messages = 50;     ///< the victim dies once that many are done
    std::uint64_t moments = 0;       ///< and then a little later; any number
    bool stopped_first = false;      ///< SIGSTOP at a random instant, then SIGKILL

    std::string text() const;
};

/// What the survivor saw.
struct Aftermath {
    double noticed_ms = 0;           ///< from the kill to CONN_LOST and the last descriptor
    std::uint64_t delivered = 0;
};

/// Plays the scene on the survivor's NIC. Fails unless all that completed at the victim arrived,
/// every descriptor came back in order, CONN_LOST came once, and the VI can be used again.
Aftermath play(Nic& nic, const Scene& scene, Where where = Where::current());

/// The survivor's part after the death, also for scenes without traffic: everything posted is
/// flushed, CONN_LOST is told once, the VI is in ERROR.
void expect_lost(End& end, Where where = Where::current());

}  // namespace system_test
