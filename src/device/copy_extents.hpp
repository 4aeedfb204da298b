// One copy from pieces of memory to others, in one process: what devices of one process have in
// place of the kernel's copy between two.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "device/device.hpp"

namespace via::device {

/// Piece after piece, as far as both lists reach, and `bytes_max` bytes at most.
inline void copy_extents(std::span<const Extent> from, std::span<const Extent> to,
                         std::uint64_t bytes_max = UINT64_MAX) {
    std::size_t source = 0;
    std::uint64_t offset = 0;
    for (const Extent& target : to)
        for (std::uint64_t done = 0; done < target.length;) {
            while (source < from.size() && offset == from[source].length) {
                ++source;
                offset = 0;
            }
            if (source == from.size() || bytes_max == 0) return;
            const std::uint64_t here =
                std::min({target.length - done, from[source].length - offset, bytes_max});
            std::memcpy(reinterpret_cast<std::byte*>(target.address) + done,
                        reinterpret_cast<const std::byte*>(from[source].address) + offset, here);
            done += here;
            offset += here;
            bytes_max -= here;
        }
}

}  // namespace via::device
