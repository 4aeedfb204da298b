// SPDX-License-Identifier: Apache-2.0
// VIA's completion queues behind an endpoint for datagrams.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "nic.hpp"
#include "rdm/connection.hpp"
#include "wait_object.hpp"

namespace via::fabric::rdm {

/// Owns the queues in which receives of connections complete, and their sends, too, where a program
/// may sleep. Each connection has as many entries.
class ReceiveQueues {
public:
    struct Part {
        VIP_CQ_HANDLE queue;
        std::uint32_t room;
        std::uint32_t used;
    };

    explicit ReceiveQueues(Nic& nic) : nic_(nic) {}
    ReceiveQueues(const ReceiveQueues&) = delete;
    /// No connection is left. Before the NIC may go.
    void end();

    /// What programs sleep on; before any is reserved.
    void set_waiting(std::vector<WaitObject*> waiting) { waiting_ = std::move(waiting); }
    /// A program may sleep, so that all completes in queues of VIA's, and is taken from there.
    bool waits() const { return !waiting_.empty(); }

    /// `queue`: where they complete; nullptr: nowhere, which makes each message cheaper, and each
    /// look more expensive with every such connection, of which there are `direct`.
    bool reserve(std::size_t direct, VIP_CQ_HANDLE& queue);
    void give_back(VIP_CQ_HANDLE queue);

    bool are_used() const { return users_ != 0; }
    std::span<const Part> parts() const { return parts_; }

private:
    std::uint32_t entries_each() const { return waits() ? receives_max + sends_max : receives_max; }
    bool add_part(std::uint32_t used);

    Nic& nic_;
    std::vector<WaitObject*> waiting_;
    std::vector<Part> parts_;
    std::size_t users_ = 0;  ///< connections that complete in one
};

}  // namespace via::fabric::rdm
