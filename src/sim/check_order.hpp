// Order: the messages of a connection arrive as they were posted; RDMA writes count among them, so
// that the bytes of a write stand before a later send is received. On a reliable connection none is
// passed over. A fenced message starts after earlier RDMA reads of its VI (VIPL 4.23).
#pragma once

#include <deque>
#include <map>
#include <set>
#include <unordered_map>

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
        bool silent;
    };
    void on_sent(const Sent& sent);
    void on_delivered(const Delivered& delivered);
    bool overtakes(const Delivered& delivered, std::deque<Message>& waiting);

    std::map<ChannelNumber, std::deque<Message>> waiting_;
    std::unordered_map<WorkNumber, ViNumber> vis_;       ///< of sends and RDMA
    std::map<ViNumber, std::set<WorkNumber>> reading_;   ///< RDMA reads under way
    std::map<WorkNumber, std::set<WorkNumber>> fenced_;  ///< by reads that must end before
};

}  // namespace via::sim
