#include "sim/check_exactly_once.hpp"

#include <algorithm>
#include <limits>

namespace via::sim {

void CheckExactlyOnce::observe(const Event& event) {
    std::visit(Overloaded{
                   [this](const Sent& e) { messages_[e.work] = {e.channel, e.reliable, false}; },
                   [this](const Delivered& e) { on_delivered(e); },
                   [this](const Quiet& e) { on_quiet(e); },
                   ignore,
               },
               event.what);
}

void CheckExactlyOnce::on_delivered(const Delivered& delivered) {
    const auto found = messages_.find(delivered.work);
    if (found == messages_.end())
        return violate("message %u was delivered, but never sent", delivered.work);
    Message& message = found->second;
    if (message.channel != delivered.channel)
        return violate("message %u of channel %u was delivered on channel %u", delivered.work,
                       message.channel, delivered.channel);
    if (message.delivered) return violate("message %u was delivered twice", delivered.work);
    message.delivered = true;
}

void CheckExactlyOnce::on_quiet(const Quiet& quiet) {
    // The smallest number, so that the words do not depend on the order within the table.
    WorkNumber missing = std::numeric_limits<WorkNumber>::max();
    for (const auto& [work, message] : messages_)
        if (message.channel == quiet.channel && message.reliable && !message.delivered)
            missing = std::min(missing, work);
    if (missing != std::numeric_limits<WorkNumber>::max())
        violate("message %u of channel %u was never delivered", missing, quiet.channel);
}

}  // namespace via::sim
