// SPDX-License-Identifier: Apache-2.0
// Atomic operations of an endpoint for datagrams, and those of its peers. A message asks for one,
// and whoever reads completions at the peer carries it out and answers.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rdm/connections.hpp"
#include "rdm/long_messages.hpp"
#include "rdm/requests.hpp"
#include "regions.hpp"

namespace via::fabric::rdm {

/// Owns what is asked and answered: the answers to peers, each in the slot of its question until it
/// is sent, and, for ours, who waits for which answer. Under the domain's guard.
class Atomics {
public:
    /// They outlive it. `takes`: the program lets peers ask.
    Atomics(Regions& regions, Completions& completions, Connections& connections,
            LongMessages& long_messages, bool takes)
        : regions_(regions),
          completions_(completions),
          connections_(connections),
          long_messages_(long_messages),
          takes_(takes) {}

    /// Asks the peer, if a descriptor is free. What VIPL answers.
    VIP_RETURN ask(Connection& connection, const Atomic& atomic);
    void answer_arrived(Slot& slot, const Header& header, std::size_t length);

    /// 0; FI_EACCES: the program does not allow it; FI_EINVAL: such a value cannot lie there.
    int carry_out_here(const AtomicCall& call, const AtomicValues& values);
    void arrived(Slot& slot, const Header& header, std::size_t length);
    /// Those that wait for a descriptor.
    void send_answers(Connection& connection);

private:
    Regions& regions_;
    Completions& completions_;
    Connections& connections_;
    LongMessages& long_messages_;
    const bool takes_;
};

}  // namespace via::fabric::rdm
