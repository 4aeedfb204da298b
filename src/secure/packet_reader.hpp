// Packets of one direction of a connection, for who reads a capture: in any order, and each as
// often as it comes. What receives packets from the network is OpeningKeys.
#pragma once

#include <cstdint>
#include <memory>

#include "secure/crypto.hpp"

namespace via::secure {

class PacketReader {
public:
    /// Keys behind the newest one seen that a packet may be under: a capture may begin at any time,
    /// and lack some of what was sent.
    static constexpr std::uint64_t first_max = 65536;
    static constexpr std::uint64_t ahead_max = 64;

    /// `first`: of number 0 on. Each key is for `packets_per_key`, which is not 0. `crypto`
    /// outlives it.
    PacketReader(Crypto& crypto, CipherKind kind, const Secret& first,
                 std::uint64_t packets_per_key);

    /// As Opener::open().
    [[nodiscard]] bool open(std::uint64_t number, Bytes associated, Bytes sealed, Room plain);

private:
    bool reach(std::uint64_t generation);

    Crypto* crypto_;
    CipherKind kind_;
    std::uint64_t per_key_;
    Secret first_;
    Secret key_;  ///< of generation_
    std::uint64_t generation_ = 0;
    std::uint64_t reach_max_ = first_max;  ///< the last generation that is looked for
    bool seen_ = false;                    ///< a genuine packet
    std::unique_ptr<Opener> opener_;
};

}  // namespace via::secure
