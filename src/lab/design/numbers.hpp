// Numbers of a design that its parts are made with.
#pragma once

#include <cstdint>

namespace via::lab::design {

struct Numbers {
    std::int64_t pio = 0;        ///< bytes of payload at most within a descriptor
    std::int64_t packet = 0;     ///< bytes of payload in a packet
    std::int64_t rqc = 0;        ///< descriptors in a VI's receive cache
    std::int64_t csqc = 0;       ///< descriptors in the central send cache
    std::int64_t watermark = 0;  ///< below which the NIC asks for more
    std::int64_t cache = 0;      ///< entries of a translation cache
    std::int64_t ways = 0;       ///< of it
    std::int64_t slots = 0;      ///< of a VI's own doorbell
};

}  // namespace via::lab::design
