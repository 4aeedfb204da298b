// How devices that keep listeners as files call one: a name of the file system for any bytes.
#pragma once

#include <string>

#include "base/address.hpp"

namespace via {

inline std::string link_name(const Discriminator& discriminator) {
    constexpr const char* digits = "0123456789abcdef";
    std::string name = "d-";
    for (std::size_t n = 0; n < discriminator.length; ++n) {
        name += digits[discriminator.bytes[n] >> 4];
        name += digits[discriminator.bytes[n] & 15];
    }
    return name;
}

}  // namespace via
