#include "lab/ledger.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

#include "base/assert.hpp"

namespace via::lab {

const char* name_of(Share share) {
    static constexpr std::array<const char*, share_count> names = {
        "user",   "system call", "kernel",     "interrupt", "lock", "copy",
        "PIO",    "firmware",    "DMA start",  "bus",       "FIFO", "link",
        "switch", "translation", "completion", "waiting"};
    return names[static_cast<std::size_t>(share)];
}

ResourceId Ledger::add_resource(std::string name) {
    resources_.push_back({std::move(name), {}, {}});
    return static_cast<ResourceId>(resources_.size() - 1);
}

ResourceId Ledger::busiest() const {
    VIA_ASSERT(!resources_.empty());
    const auto found =
        std::max_element(resources_.begin(), resources_.end(),
                         [](const Resource& a, const Resource& b) { return a.busy < b.busy; });
    return static_cast<ResourceId>(found - resources_.begin());
}

void Ledger::add(ResourceId resource, const Work& work, Time start, Time end) {
    VIA_ASSERT(end >= start);
    const auto share = static_cast<std::size_t>(work.share);
    if (!work.idle) {
        Resource& used = resources_[resource];
        used.busy = used.busy + (end - start);
        used.by_share[share] = used.by_share[share] + (end - start);
    }
    totals_[share] = totals_[share] + (end - start);
    if (recording_) entries_.push_back({resource, work, start, end});
}

std::vector<Entry> Ledger::path(MessageId message, Time begin, Time end) const {
    std::vector<const Entry*> of_message;
    for (const Entry& entry : entries_) {
        const bool inside = entry.start >= begin && entry.end <= end && entry.end > entry.start;
        if (inside && entry.work.message == message) of_message.push_back(&entry);
    }
    std::sort(of_message.begin(), of_message.end(), [](const Entry* a, const Entry* b) {
        return std::tie(a->end, a->start, a) < std::tie(b->end, b->start, b);
    });
    std::vector<Entry> backwards;
    Time until = end;
    for (auto at = of_message.rbegin(); at != of_message.rend(); ++at) {
        const Entry* const entry = *at;
        if (entry->end > until) continue;  // beside the path
        if (entry->end < until) {
            const bool last = backwards.empty();
            const Entry& next = last ? *entry : backwards.back();
            backwards.push_back(
                {next.resource, {Share::waiting, "waiting", message}, entry->end, until});
        }
        backwards.push_back(*entry);
        until = entry->start;
    }
    if (until > begin) {
        const ResourceId next = backwards.empty() ? 0 : backwards.back().resource;
        backwards.push_back({next, {Share::waiting, "waiting", message}, begin, until});
    }
    std::reverse(backwards.begin(), backwards.end());
    return backwards;
}

std::array<Duration, share_count> Ledger::breakdown(MessageId message, Time begin, Time end) const {
    std::array<Duration, share_count> sums{};
    for (const Entry& entry : path(message, begin, end)) {
        Duration& sum = sums[static_cast<std::size_t>(entry.work.share)];
        sum = sum + (entry.end - entry.start);
    }
    return sums;
}

}  // namespace via::lab
