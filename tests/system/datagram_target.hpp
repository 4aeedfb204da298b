// Who takes a checked stream while strangers do their worst.
#pragma once

#include <string>

#include "support/child.hpp"
#include "support/traffic.hpp"

namespace system_test {

inline Wants target_wants() {
    Wants wants;
    wants.length = 3000;
    wants.receives = wants.sends = 16;
    return wants;
}

/// Takes what comes and checks it until the parent has had enough.
inline void take_checked(Parent& parent, const std::string& device, const char* door) {
    auto& page = parent.shared<TrafficPage>();
    Nic nic(device.c_str());
    End end(nic, target_wants());
    Target target(end, Operation::send, page);
    parent.say("ready");
    end.accept(door);
    while (page.leave == 0) target.step();
    require(!target.over(), "the connection stands");
    parent.say("intact");
    parent.expect("end");
}

}  // namespace system_test
