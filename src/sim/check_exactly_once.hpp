// Exactly once: a message is delivered on the connection it was sent on and never twice; on a
// reliable connection that did not break, none is missing.
#pragma once

#include <unordered_map>

#include "sim/checker.hpp"

namespace via::sim {

class CheckExactlyOnce final : public Checker {
public:
    const char* name() const override { return "exactly_once"; }
    void observe(const Event& event) override;

private:
    struct Message {
        ChannelNumber channel;
        bool reliable;
        bool delivered;
    };
    void on_delivered(const Delivered& delivered);
    void on_quiet(const Quiet& quiet);

    std::unordered_map<WorkNumber, Message> messages_;
};

}  // namespace via::sim
