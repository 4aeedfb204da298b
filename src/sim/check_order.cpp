#include "sim/check_order.hpp"

#include <algorithm>

namespace via::sim {

void CheckOrder::observe(const Event& event) {
    std::visit(Overloaded{
                   [this](const Posted& e) {
                       if (!e.receive) vis_[e.work] = e.vi;
                   },
                   [this](const RdmaAsked& e) {
                       if (!e.write) reading_[vis_[e.work]].insert(e.work);
                   },
                   [this](const Completed& e) {
                       if (const auto vi = vis_.find(e.work); vi != vis_.end())
                           reading_[vi->second].erase(e.work);
                   },
                   [this](const ReadLanded& e) {
                       if (const auto vi = vis_.find(e.work); vi != vis_.end())
                           reading_[vi->second].erase(e.work);
                   },
                   [this](const Sent& e) { on_sent(e); },
                   [this](const Delivered& e) { on_delivered(e); },
                   ignore,
               },
               event.what);
}

void CheckOrder::on_sent(const Sent& sent) {
    waiting_[sent.channel].push_back({sent.work, sent.reliable, sent.silent});
    if (sent.fenced) fenced_[sent.work] = reading_[vis_[sent.work]];
}

/// It may come before what was sent first, but not before what was written first.
bool CheckOrder::overtakes(const Delivered& delivered, std::deque<Message>& waiting) {
    for (auto at = waiting.begin(); at != waiting.end(); ++at) {
        if (at->work == delivered.work) {
            waiting.erase(at);
            return true;
        }
        if (at->silent && at->reliable) return false;
    }
    return false;
}

void CheckOrder::on_delivered(const Delivered& delivered) {
    if (const auto fence = fenced_.find(delivered.work); fence != fenced_.end()) {
        for (const WorkNumber read : fence->second)
            if (reading_[vis_[delivered.work]].contains(read))
                return violate(
                    "message %u was sent behind a fence, but RDMA read %u was still "
                    "under way",
                    delivered.work, read);
        fenced_.erase(fence);
    }
    std::deque<Message>& waiting = waiting_[delivered.channel];
    if (delivered.early && overtakes(delivered, waiting)) return;
    const auto found = std::find_if(waiting.begin(), waiting.end(), [&](const Message& message) {
        return message.work == delivered.work;
    });
    if (found == waiting.end())
        return violate("channel %u: message %u arrived after a later one, or again",
                       delivered.channel, delivered.work);
    if (found != waiting.begin() && found->reliable)
        return violate("channel %u: message %u arrived before message %u", delivered.channel,
                       delivered.work, waiting.front().work);
    waiting.erase(waiting.begin(), found + 1);
}

}  // namespace via::sim
