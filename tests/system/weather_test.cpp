// Two hosts and a wire with bad weather between them: of what a reliable VI sends all arrives, once,
// in order and whole; of what an unreliable one sends, what arrives is whole and in order.
#include <gtest/gtest.h>

#include <cstring>
#include <memory>

#include "support/host.hpp"
#include "support/networks.hpp"
#include "support/traffic.hpp"

namespace system_test {

namespace {

constexpr const char* nic_name = "udp:via0";
/// Of a message: some need a packet, some many.
constexpr std::size_t lengths[] = {64, 1400, 12'000};

Wants wants(const Parent& parent) {
    Wants wants;
    wants.level = static_cast<VIP_RELIABILITY_LEVEL>(std::stoi(parent.argument(1)));
    wants.length = std::stoul(parent.argument(2));
    wants.receives = wants.sends = 16;
    return wants;
}

/// Takes what arrives of an unreliable stream, in which each message carries its number.
void take_some(End& end, TrafficPage& page) {
    std::uint64_t next = 0;
    while (page.leave.load() == 0) {
        const auto outcome = end.received();
        if (!outcome) continue;
        require(outcome->ok(), "nothing fails");
        require(outcome->descriptor->CS.Length == end.wants().length, "the length is right");
        const std::uint64_t number = outcome->descriptor->CS.ImmediateData;
        require(number >= next, "messages come once and in order");
        require(holds(end.receive_buffer(outcome->slot), end.wants().length, number),
                "message " + std::to_string(number) + " arrived whole");
        next = number + 1;
        end.post_receive(outcome->slot);
        ++page.taken;
    }
}
