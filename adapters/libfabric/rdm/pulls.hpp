// SPDX-License-Identifier: Apache-2.0
// Long messages, which their receiver copies from the sender's memory.
#pragma once

#include <algorithm>
#include <cstddef>

#include "rdm/connections.hpp"
#include "rdm/receives.hpp"

namespace via::fabric::rdm {

/// Owns the receives whose messages are pulled, from the offer until the peer was told that it has
/// its memory back; each stands in its connection's `waiting`, or a read is under way for it. Under
/// the domain's guard.
class Pulls {
public:
    /// The others outlive it.
    Pulls(Nic& nic, Completions& completions, Connections& connections, Receives& receives);

    /// The message that the peer offers goes to that receive.
    void begin(Receive& receive, Connection& connection, const Header& header, const Offer& offer);
    /// The message is not wanted: the peer is told that it was received.
    void decline(Connection& connection, const Offer& offer);
    /// A piece of `length` bytes is there.
    void came(Connection& connection, Receive& receive, std::size_t length, bool failed);
    /// Reads the next pieces, and tells peers which messages are here.
    void go_on(Connection& connection);
    /// It has ended.
    void fail_all(Connection& connection, int error);

    /// Longer messages are offered to that peer: those are copied by a call of ours, and by a peer
    /// on this host likely, too.
    std::size_t eager_size_to(const Connection& connection) const {
        return pulls_at_once() && connection.lines.may_pull()
                   ? std::min(connection.eager_size(), eager_size_at_once_)
                   : connection.eager_size();
    }

private:
    bool pulls_at_once() const {
        return connections_.is_crowded() ? at_once_if_crowded_ : at_once_;
    }
    bool pull_at_once(const Receive& receive, Connection& connection) const;
    VIP_RETURN post_next(Connection& connection, Send& send, Receive& receive) const;

    Completions& completions_;
    Connections& connections_;
    Receives& receives_;
    const bool at_once_;  ///< by a call of ours, from the sender's process
    const bool at_once_if_crowded_;
    const std::size_t eager_size_at_once_;
};

}  // namespace via::fabric::rdm
