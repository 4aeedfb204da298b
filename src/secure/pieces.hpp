// One text that does not lie in one place goes through a cipher, piece after piece.
#pragma once

#include "base/assert.hpp"
#include "secure/crypto.hpp"

namespace via::secure {

/// Calls `seal(room, piece)` for each piece that has bytes, with its part of `to`, which is as long
/// as all of them. False: a call was, and the rest is not sealed.
template <class Seal>
bool seal_pieces(Pieces plain, Room to, Seal seal) {
    for (const Bytes& piece : plain) {
        VIA_ASSERT(piece.size() <= to.size());
        if (!piece.empty() && !seal(to.first(piece.size()), piece)) return false;
        to = to.subspan(piece.size());
    }
    VIA_ASSERT(to.empty());
    return true;
}

}  // namespace via::secure
