// SPDX-License-Identifier: Apache-2.0
// Messages that came to an endpoint for datagrams before their receives.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include <rdma/fi_tagged.h>

#include "rdm/connections.hpp"
#include "rdm/long_messages.hpp"
#include "rdm/pulls.hpp"
#include "rdm/receives.hpp"

namespace via::fabric::rdm {

/// Owns the messages that came before their receives, until a receive takes them or the program
/// drops them. Under the domain's guard.
class Unexpected {
public:
    /// They outlive it. `copied_max`: bytes of one peer's messages in memory of their own.
    Unexpected(Completions& completions, Peers& peers, Connections& connections,
               LongMessages& long_messages, Receives& receives, Pulls& pulls,
               std::size_t copied_max)
        : completions_(completions),
          peers_(peers),
          connections_(connections),
          long_messages_(long_messages),
          receives_(receives),
          pulls_(pulls),
          copied_max_(copied_max) {}

    // What comes --------------------------------------------------------------------------------
    /// A message that no receive takes for itself: it waits, or gets a part of one.
    void arrived(Slot& slot, const Header& header, std::size_t length);
    /// The receive may be there already.
    void arrived_offer(Slot& slot, const Header& header);
    /// From ourselves.
    void add(Message& message) { line_of(message.header).push(message); }

    // What the program asks for -----------------------------------------------------------------
    /// Posts it, or gives it what has come. `peer`: nullptr: anybody. 0, or an error of
    /// libfabric's.
    ssize_t receive(void* buffer, std::size_t room, Peer* peer, std::uint64_t tag,
                    std::uint64_t ignore, void* context, bool with_tag, bool told);
    ssize_t receive_many(void* buffer, std::size_t room, Peer* peer, void* context, bool told);
    /// FI_PEEK, and with it FI_CLAIM or FI_DISCARD, as `flags` say.
    ssize_t search(const fi_msg_tagged& wanted, Peer* peer, std::uint64_t flags);
    /// The message that was claimed with this context before; FI_DISCARD: it is dropped.
    ssize_t receive_claimed(const fi_msg_tagged& wanted, std::uint64_t flags);

    /// Without a word, for the endpoint is closed.
    void discard_all();

private:
    Line<Message>& line_of(const Header& header) {
        return waiting_.tagged_if((header.flags & flag::tagged) != 0);
    }
    Message& keep(Slot& slot, const Header& header, std::size_t length);
    void give(Message& message, Receive& receive);
    void give_to(Receive& many);
    void discard(Message& message);
    void release(Message& message);
    void tell_found(const Message& message, void* context, bool with_bytes);

    Completions& completions_;
    Peers& peers_;
    Connections& connections_;
    LongMessages& long_messages_;
    Receives& receives_;
    Pulls& pulls_;
    const std::size_t copied_max_;
    TwoLines<Message> waiting_;
    std::vector<std::pair<const void*, Message*>> claimed_;
};

}  // namespace via::fabric::rdm
