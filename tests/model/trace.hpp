#pragma once
// Words for traces.

#include <atomic>
#include <cstdint>
#include <string>

#include "base/atomic.hpp"

namespace via::model {

const char* order_name(std::memory_order order);
const char* rmw_name(Rmw rmw);
std::string number(std::uint64_t value);

}  // namespace via::model
