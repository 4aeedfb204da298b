// Designs at random, for worlds.
#pragma once

#include "base/random.hpp"
#include "lab/design/list.hpp"

namespace via::lab::carrier {

/// One that the machine can have: any alternative of each part, small and large numbers.
design::Options draw_design(const Machine& machine, const Load& load, Random& random);
std::string to_text(const design::Options& options);

}  // namespace via::lab::carrier
