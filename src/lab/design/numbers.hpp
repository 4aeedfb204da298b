// Numbers of a design that its parts are made with.
#pragma once

#include <cstdint>

namespace via::lab::design {

struct Numbers {
    std::int64_t pio = 0;            ///< bytes of payload at most within a descriptor
    std::int64_t packet = 0;         ///< bytes of payload in a packet
    std::int64_t rqc = 0;            ///< descriptors in a VI's receive cache
    std::int64_t csqc = 0;           ///< descriptors in the central send cache
    std::int64_t watermark = 0;      ///< below which the NIC asks for more
    std::int64_t cache = 0;          ///< entries of a translation cache
    std::int64_t ways = 0;           ///< of it
    std::int64_t line = 0;           ///< entries of a line of the cache of dynamic look-up
    std::int64_t buffers = 0;        ///< that a table on the NIC has room for
    std::int64_t buffer_cache = 0;   ///< entries
    std::int64_t processes = 0;      ///< that a table on the NIC has room for
    std::int64_t process_cache = 0;  ///< entries
    std::int64_t high_water = 0;     ///< pages that stay pinned
    std::int64_t slots = 0;          ///< of a VI's own doorbell
    std::int64_t pairs = 0;          ///< of doorbells that share a page of the NIC
    std::int64_t staged = 0;         ///< 1: packets are whole on the NIC before they go to the host
};

}  // namespace via::lab::design
