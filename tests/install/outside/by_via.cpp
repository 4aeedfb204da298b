// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <via/via.hpp>

int main() {
    const auto nic = via::Nic::open("loopback");
    if (!nic) {
        std::fprintf(stderr, "%s\n", nic.error().message().c_str());
        return 1;
    }
    std::puts(ViaReturnText(VIP_SUCCESS));
    return 0;
}
