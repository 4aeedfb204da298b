// Order: the messages of a connection arrive as they were posted; RDMA writes count among them, so
// that the bytes of a write stand before a later send is received (VIPL 4.23). On a reliable
// connection none is passed over.
#pragma once

#include <deque>
#include <map>

#include "sim/checker.hpp"

namespace via::sim {

class CheckOrder final : public Checker {
public:
    const char* name() const override { return "order"; }
    void observe(const Event& event) override;

private:
    struct Message {
        WorkNumber work;
        bool reliable;
    };
    void on_delivered(const Delivered& delivered);

    std::map<ChannelNumber, std::deque<Message>> waiting_;
};

}  // namespace via::sim
