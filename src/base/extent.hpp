// A run of bytes in this process's address space; owns nothing.
#pragma once

#include <cstddef>
#include <cstdint>

namespace via {

struct Extent {
    std::byte* data = nullptr;
    std::size_t length = 0;
};

struct ConstExtent {
    const std::byte* data = nullptr;
    std::size_t length = 0;
};

}  // namespace via
