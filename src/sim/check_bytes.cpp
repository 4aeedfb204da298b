#include "sim/check_bytes.hpp"

#include <algorithm>

namespace via::sim {

void CheckBytes::observe(const Event& event) {
    std::visit(Overloaded{
                   [this](const Sent& e) { sent_[e.work].assign(e.bytes.begin(), e.bytes.end()); },
                   [this](const Delivered& e) { on_delivered(e); },
                   [this](const Opened& e) { open_.add(e); },
                   [this](const Closed& e) { open_.remove(e.id); },
                   [this](const Changed& e) { on_changed(e); },
                   ignore,
               },
               event.what);
}

void CheckBytes::on_delivered(const Delivered& delivered) {
    const auto sent = sent_.find(delivered.work);
    if (sent == sent_.end()) return;  // exactly_once says so
    const std::vector<std::byte>& bytes = sent->second;
    if (bytes.size() != delivered.bytes.size())
        return violate("message %u has %zu bytes, %zu arrived", delivered.work, bytes.size(),
                       delivered.bytes.size());
    const auto differ = std::mismatch(bytes.begin(), bytes.end(), delivered.bytes.begin()).first;
    if (differ != bytes.end())
        violate("message %u of %zu bytes differs at byte %td", delivered.work, bytes.size(),
                differ - bytes.begin());
}

void CheckBytes::on_changed(const Changed& changed) {
    const std::uint64_t end = changed.begin + changed.length;
    for (std::uint64_t at = changed.begin; at < end;) {
        std::uint64_t next = at;
        for (const OpenRanges::Range& range : open_.of(changed.node))
            if (range.begin <= at && range.end > next) next = range.end;
        if (next == at)
            return violate("node %u: byte %llu was changed, nothing that is under way goes there",
                           changed.node, static_cast<unsigned long long>(at));
        at = next;
    }
}

}  // namespace via::sim
