// SPDX-License-Identifier: Apache-2.0
// Sends and RDMA of an endpoint for datagrams that are not done when they are posted.
#pragma once

#include <cstddef>

#include "rdm/connections.hpp"
#include "rdm/long_messages.hpp"
#include "rdm/pulls.hpp"
#include "rdm/requests.hpp"

namespace via::fabric::rdm {

/// Descriptors that a move by RDMA takes: pieces of the VI's transfer size, the word to the peer's
/// program, and a question, if the program wants these.
std::size_t descriptors_of(const Connection& connection, const Moving& moving);

/// Owns what is under way: knows how each kind of operation is posted, and what becomes of each
/// descriptor that is done. The room for the completion was reserved before. post_...() answer what
/// VIPL does, VIP_ERROR_RESOURCE without a free descriptor or memory; or the operation is under
/// way. Under the domain's guard.
class Sends {
public:
    /// They outlive it.
    Sends(Nic& nic, Completions& completions, Connections& connections, LongMessages& long_messages,
          Pulls& pulls)
        : nic_(nic),
          completions_(completions),
          connections_(connections),
          long_messages_(long_messages),
          pulls_(pulls) {}

    /// Done when the NIC has the bytes, which stay where they are.
    VIP_RETURN post_lent(Connection& connection, const Sending& sending);
    /// Done when it has arrived.
    VIP_RETURN post_confirmed(Connection& connection, const Sending& sending);
    /// Done when the peer has pulled it.
    VIP_RETURN post_offer(Connection& connection, const Sending& sending);
    /// There are descriptors_of() it.
    VIP_RETURN post_move(Connection& connection, const Moving& moving);

    /// Takes what is done, of one connection.
    void reap(Connection& connection);
    /// One that is done; only where a program may sleep.
    void take_done(VIP_VI_HANDLE vi);

private:
    void complete(Connection& connection, const Send& send, bool failed);
    [[gnu::noinline]] void moved(Connection& connection, const Send& send, bool failed);
    VIP_RETURN under_way(Connection& connection, VIP_RETURN code);

    Nic& nic_;
    Completions& completions_;
    Connections& connections_;
    LongMessages& long_messages_;
    Pulls& pulls_;
};

}  // namespace via::fabric::rdm
