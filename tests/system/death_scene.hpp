// One death: a victim and a survivor exchange checked messages, the victim is killed, and the
// survivor must find out properly (VIPL 4.2, 4.18).
#pragma once

#include "support/child.hpp"
#include "support/pressure.hpp"
#include "support/traffic.hpp"

namespace system_test {

/// How long a survivor may take to know; measured times are reported, this only catches hangs.
constexpr double death_noticed_max_ms = 5000;

struct Scene {
    Operation operation = Operation::send;
    std::size_t length = 64;
    bool victim_initiates = true;
    VIP_RELIABILITY_LEVEL level = VIP_SERVICE_RELIABLE_DELIVERY;
    std::uint64_t messages = 50;  ///< the victim dies once that many are done
    std::uint64_t moments = 0;    ///< and then a little later; any number
    bool stopped_first = false;   ///< SIGSTOP at a random instant, then SIGKILL
    /// In this group it takes memory until the kernel kills it, at whatever instant that is.
    const Pressure* starved_in = nullptr;

    std::string text() const;
};

/// What the survivor saw.
struct Aftermath {
    double noticed_ms = 0;  ///< from the kill to CONN_LOST and the last descriptor
    std::uint64_t delivered = 0;
};

/// Plays the scene on the survivor's NIC. Fails unless all that completed at the victim arrived,
/// every descriptor came back in order, CONN_LOST came once, and the VI can be used again.
Aftermath play(Nic& nic, const Scene& scene, Where where = Where::current());

/// The survivor's part after a death, for connections without traffic: everything posted is flushed
/// in order, CONN_LOST is told once, the VI is in ERROR.
void expect_lost(End& end, Where where = Where::current());

/// The end of it: CONN_LOST was told once and nothing else, the VI is in ERROR and can be used
/// again.
void expect_over(End& end, const std::string& scene, Where where = Where::current());

/// Lets the survivor's side of the traffic find out: returns when all descriptors are back and the
/// error handler knows.
template <class Part>
void run_to_the_end(Part& part, End& end, Where where = Where::current()) {
    until(
        "every descriptor comes back",
        [&] {
            part.step(where);
            return end.state(where) == VIP_STATE_ERROR && part.all_back();
        },
        where);
    end.nic().wait_error(end.vi(), VIP_ERROR_CONN_LOST, where);
}

}  // namespace system_test
