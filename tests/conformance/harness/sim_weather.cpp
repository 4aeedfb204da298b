// Simulated nodes on a fabric in fair weather.
#include "harness/sim_network.hpp"

namespace conformance {

const char* const sim_network_name = "sim";
const unsigned sim_network_has = shares;
void begin_sim_network() {}

}  // namespace conformance
