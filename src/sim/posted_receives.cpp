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
    return work.posted_count() - work.completed_count();
}

Extent PostedReceives::posted(std::uint32_t vi, std::uint32_t nth) const {
    queue::Cursor at = nic_.engine().vi_at(vi)->receive.work.oldest();
    for (std::uint32_t n = 0; n < nth; ++n) at.pass();
    const queue::WorkEntry& entry = at.cell();
    return {entry.segment_count == 0 ? 0 : entry.segments[0].address, entry.length};
}

}  // namespace via::sim
