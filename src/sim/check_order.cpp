#include "sim/check_order.hpp"

#include <algorithm>

namespace via::sim {

void CheckOrder::observe(const Event& event) {
    std::visit(Overloaded{
                   [this](const Sent& e) { waiting_[e.channel].push_back({e.work, e.reliable}); },
                   [this](const Delivered& e) { on_delivered(e); },
                   ignore,
               },
               event.what);
}

void CheckOrder::on_delivered(const Delivered& delivered) {
    std::deque<Message>& waiting = waiting_[delivered.channel];
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
