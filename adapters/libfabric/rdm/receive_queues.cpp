// SPDX-License-Identifier: Apache-2.0
#include "rdm/receive_queues.hpp"

#include <algorithm>

namespace via::fabric::rdm {

namespace {

/// Connections that are looked at one by one. With more of them a look takes longer than one at a
/// queue does.
constexpr std::size_t direct_max = 4;

}  // namespace

void ReceiveQueues::end() {
    for (const Part& part : parts_) VipDestroyCQ(part.queue);
    parts_.clear();
}

bool ReceiveQueues::add_part(std::uint32_t used) {
    parts_.reserve(parts_.size() + 1);
    const std::uint32_t room = 16 * entries_each();
    VIP_CQ_HANDLE queue = nullptr;
    if (VipCreateCQ(nic_.handle(), room, &queue) != VIP_SUCCESS) return false;
    int readable = -1;
    const auto add = [&](WaitObject* waiting) { return waiting->add(readable); };
    if (waits() &&
        (ViaCQDescriptor(queue, &readable) != VIP_SUCCESS || !std::ranges::all_of(waiting_, add))) {
        VipDestroyCQ(queue);
        return false;
    }
    parts_.push_back({queue, room, used});
    return true;
}

bool ReceiveQueues::reserve(std::size_t direct, VIP_CQ_HANDLE& queue) {
    queue = nullptr;
    // Some look needs a queue, even if nothing completes there.
    if (parts_.empty() && !add_part(0)) return false;
    if (!waits() && direct < direct_max) return true;
    const auto limit = static_cast<std::uint32_t>(nic_.attributes().MaxCQEntries);
    const std::uint32_t entries = entries_each();
    for (Part& part : parts_) {
        if (part.used + entries > limit) continue;
        if (part.used + entries > part.room) {
            const std::uint32_t room = std::min(limit, 2 * part.room);
            if (VipResizeCQ(part.queue, room) != VIP_SUCCESS) return false;
            part.room = room;
        }
        part.used += entries;
        queue = part.queue;
        ++users_;
        return true;
    }
    if (!add_part(entries)) return false;
    queue = parts_.back().queue;
    ++users_;
    return true;
}

void ReceiveQueues::give_back(VIP_CQ_HANDLE queue) {
    if (queue == nullptr) return;
    --users_;
    for (Part& part : parts_)
        if (part.queue == queue) part.used -= entries_each();
}

}  // namespace via::fabric::rdm
