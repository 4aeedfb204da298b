// Simulated nodes on a fabric in fair weather.
#include "harness/sim_network.hpp"

namespace conformance {

const char* const sim_network_name = "sim";
unsigned sim_network_has() { return shares; }
void begin_sim_network() {}

}  // namespace conformance
