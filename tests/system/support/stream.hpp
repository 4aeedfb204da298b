// A stream of checked messages between processes of two hosts (Networks): everything that is asked
// of it stands in StreamWants.
#pragma once

#include <functional>

#include "support/networks.hpp"
#include "support/traffic.hpp"

namespace system_test {

struct StreamWants {
    std::string nic = "udp:via0";
    std::string host = Networks::address(1);  ///< the target's, as the name service knows it
    int from = 0;
    int to = 1;
    VIP_RELIABILITY_LEVEL level = VIP_SERVICE_RELIABLE_DELIVERY;
    Operation operation = Operation::send;
    std::size_t length = 20'000;
    unsigned depth = 8;                         ///< descriptors posted at most
    std::function<void()> when_listening = {};  ///< the target listens, nobody has asked yet
};

/// Flows from the moment it is made. On reliable levels all arrives, once and in order; on an
/// unreliable one, what arrives is whole and in order.
class Stream {
public:
    explicit Stream(const Networks& networks, const StreamWants& wants = {});

    TrafficPage& page() const { return target.shared<TrafficPage>(); }
    /// Waits until that many more messages have arrived.
    void flows(std::uint64_t messages = 200) const;
    /// Both ends come to theirs, still connected.
    void leave();
    /// Both ends hear that their connection is lost, and come to theirs.
    void breaks();

    Child target;
    Child initiator;

private:
    static Child::Options options(const Networks& networks, const StreamWants& wants, int host);
    std::uint64_t arrived() const;
    void end();

    Operation operation_;
};

}  // namespace system_test
