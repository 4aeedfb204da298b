// Who connects, and is gone when the parent wants it.
#pragma once

#include <string>

#include "support/child.hpp"
#include "support/host.hpp"
#include "support/vipl.hpp"

namespace system_test {

/// A message is under way until the peer has it in its memory.
constexpr Wants leavers_wants{.level = VIP_SERVICE_RELIABLE_RECEPTION};

/// Argument 0: the NIC.
inline void be_leaver(Parent& parent) {
    Nic nic(parent.argument(0).c_str());
    End end(nic, leavers_wants);
    end.connect(door_of_this_host());
    parent.say("connected");
    parent.expect("end");
}

}  // namespace system_test
