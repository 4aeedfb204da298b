// A run of bytes in some process's memory.
#pragma once

#include <cstdint>

namespace via {

struct Extent {
    std::uint64_t address;
    std::uint64_t length;  ///< bytes
};

}  // namespace via
