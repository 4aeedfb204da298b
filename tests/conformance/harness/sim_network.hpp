// What simulated nodes are on; a test program links one definition.
#pragma once

#include "harness/test.hpp"

namespace conformance {

extern const char* const sim_network_name;
unsigned sim_network_has();  ///< Needs that it meets; asked before main()
void begin_sim_network();

}  // namespace conformance
