// SPDX-License-Identifier: Apache-2.0
// What an endpoint for datagrams sends, moves and changes at itself, without a connection.
#pragma once

#include "rdm/atomics.hpp"
#include "rdm/requests.hpp"
#include "rdm/unexpected.hpp"

namespace via::fabric::rdm {

/// Owns the way to oneself: what goes it is done at once, or waits here for its receive. Under the
/// domain's guard.
class ToSelf {
public:
    /// They outlive it. `copied_max`: bytes of the longest message that is done without its
    /// receive.
    ToSelf(Completions& completions, Peers& peers, Receives& receives, Unexpected& unexpected,
           LongMessages& long_messages, Atomics& atomics, Regions& regions, std::size_t copied_max)
        : completions_(completions),
          peers_(peers),
          receives_(receives),
          unexpected_(unexpected),
          long_messages_(long_messages),
          atomics_(atomics),
          regions_(regions),
          copied_max_(copied_max) {}

    // 0, or -FI_EAGAIN. `self`: who we are among our peers.
    ssize_t send(Peer& self, const Sending& sending);
    ssize_t move(Peer& self, const Moving& moving);
    ssize_t atomic(const Atomic& atomic);

    /// Must the NIC be looked at? Each read of completions finds what was done at once, and does
    /// not look: who waits in that way for what a peer does would wait for ever.
    bool is_look_due() {
        if (done_at_once_ < each_look) return false;
        done_at_once_ = 0;
        return true;
    }

private:
    static constexpr std::uint32_t each_look = 16;
    bool wait_for_receive(Peer& self, const Sending& sending, bool copies);

    Completions& completions_;
    Peers& peers_;
    Receives& receives_;
    Unexpected& unexpected_;
    LongMessages& long_messages_;
    Atomics& atomics_;
    Regions& regions_;
    const std::size_t copied_max_;
    std::uint32_t done_at_once_ = 0;  ///< since the NIC was looked at
};

}  // namespace via::fabric::rdm
