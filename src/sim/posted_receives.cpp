#include "sim/posted_receives.hpp"

namespace via::sim {

/// The table only grows.
std::uint32_t PostedReceives::vis_end() const {
    while (nic_.engine().vi_at(vis_end_) != nullptr) ++vis_end_;
    return vis_end_;
}

std::uint32_t PostedReceives::outstanding(std::uint32_t vi) const {
    const engine::Vi* const found = nic_.engine().vi_at(vi);
    if (found == nullptr) return 0;
    const queue::WorkQueue& work = found->receive.work;
    const std::uint32_t own = work.posted_count() - work.completed_count();
    return own + (found->shared != nullptr ? found->shared->left() : 0);
}

Extent PostedReceives::posted(std::uint32_t vi, std::uint32_t nth) const {
    engine::Vi& found = *nic_.engine().vi_at(vi);
    const queue::WorkQueue& work = found.receive.work;
    const std::uint32_t own = work.posted_count() - work.completed_count();
    const bool is_shared = nth >= own && found.shared != nullptr;
    queue::Cursor at = is_shared ? found.shared->work.oldest() : found.receive.work.oldest();
    if (is_shared) nth -= own;
    for (std::uint32_t n = 0; n < nth; ++n) at.pass();
    const queue::WorkEntry& entry = at.cell();
    return {entry.segment_count == 0 ? 0 : entry.segments[0].address, entry.length};
}

}  // namespace via::sim
