// What a DatagramDevice is opened with.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/time.hpp"

namespace via::device::datagram {

struct DatagramOptions {
    std::uint64_t instance = 0;  ///< random, of this opening; not 0
    /// Secret and random; proofs for askers and connection identifiers are made of them.
    std::array<std::uint64_t, 2> cookie_key{};
    std::array<std::uint64_t, 2> identifier_key{};
    Duration silence = seconds(5);  ///< patience with a peer that says nothing
    std::uint32_t paths_max = 4096;
    /// Bytes of frames that came early and were copied, since the port kept no more buffers.
    std::size_t early_copies_max = 16 << 20;
    /// Bytes of all paths' tables of packets and frames, beyond what each has in any case.
    std::size_t tables_max = 64 << 20;
};

}  // namespace via::device::datagram
