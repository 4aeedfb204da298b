#include "sim/check_protection.hpp"

#include <algorithm>

namespace via::sim {

namespace status = queue::status;

void CheckProtection::observe(const Event& event) {
    std::visit(Overloaded{
                   [this](const Granted& e) {
                       regions_.insert_or_assign({e.node, e.handle}, e);
                       regions_changed(e.node);
                   },
                   [this](const Revoked& e) {
                       regions_.erase({e.node, e.handle});
                       regions_changed(e.node);
                   },
                   [this](const ViMade& e) { vis_[e.vi] = e.attributes; },
                   [this](const Opened& e) { open_.add(e); },
                   [this](const Closed& e) { open_.remove(e.id); },
                   [this](const RdmaAsked& e) { on_asked(e); },
                   [this](const Completed& e) { on_completed(e); },
                   [this](const Delivered& e) {
                       const auto found = operations_.find(e.work);
                       if (found != operations_.end() && !found->second.ever)
                           violate("RDMA write %u was carried out, though never allowed", e.work);
                   },
                   [this](const Changed& e) { on_changed(e); },
                   ignore,
               },
               event.what);
}

bool CheckProtection::allowed(const RdmaAsked& asked) const {
    const auto vi = vis_.find(asked.vi);
    if (vi == vis_.end()) return false;
    const engine::ViAttributes& attributes = vi->second;
    if (asked.atomic ? !attributes.rdma_write || !attributes.rdma_read || asked.begin % 8 != 0
                     : !(asked.write ? attributes.rdma_write : attributes.rdma_read))
        return false;
    if (asked.length == 0) return true;  // touches nothing
    const auto region = regions_.find({asked.node, asked.handle});
    if (region == regions_.end()) return false;
    const Granted& granted = region->second;
    const memory::MemoryAttributes& rights = granted.attributes;
    return (asked.atomic  ? rights.atomics
            : asked.write ? rights.rdma_write
                          : rights.rdma_read) &&
           (attributes.tag == memory::no_tag || attributes.tag == rights.tag) &&
           asked.begin >= granted.begin && asked.length <= granted.length &&
           asked.begin - granted.begin <= granted.length - asked.length;
}

void CheckProtection::on_asked(const RdmaAsked& asked) {
    const bool now = allowed(asked);
    operations_[asked.work] = {asked, now, now};
    to_node_[asked.node].push_back(asked.work);
}

/// Of the operations that go to its memory; those that are over are forgotten.
void CheckProtection::regions_changed(NodeNumber node) {
    std::erase_if(to_node_[node], [this](WorkNumber work) {
        const auto found = operations_.find(work);
        if (found == operations_.end()) return true;
        Operation& operation = found->second;
        const bool now = allowed(operation.asked);
        operation.ever |= now;
        operation.always &= now;
        return false;
    });
}

void CheckProtection::on_completed(const Completed& completed) {
    const auto found = operations_.find(completed.work);
    if (found == operations_.end()) return;
    const Operation& operation = found->second;
    const std::uint32_t errors = completed.status & status::error_mask;
    if (errors == status::rdma_protection_error && operation.always)
        violate("RDMA operation %u was refused, though allowed all the time", completed.work);
    if (errors == 0 && !operation.ever && (!operation.asked.write || completed.placed))
        violate("RDMA operation %u succeeded, though never allowed", completed.work);
    if (!operation.asked.write) operations_.erase(found);  // a write may still be on its way
}

std::uint64_t CheckProtection::may_change_to(NodeNumber node, std::uint64_t at) const {
    std::uint64_t best = at;
    for (const OpenRanges::Range& range : open_.of(node)) {
        if (at < range.begin || at >= range.end) continue;
        for (auto each = regions_.lower_bound({node, 0});
             each != regions_.end() && each->first.first == node; ++each) {
            const Granted& region = each->second;
            if (at < region.begin || at >= region.begin + region.length) continue;
            if (range.remote &&
                !(range.atomic ? region.attributes.atomics : region.attributes.rdma_write))
                continue;
            best = std::max(best, std::min(range.end, region.begin + region.length));
        }
    }
    return best;
}

void CheckProtection::on_changed(const Changed& changed) {
    const std::uint64_t end = changed.begin + changed.length;
    for (std::uint64_t at = changed.begin; at < end;) {
        const std::uint64_t next = may_change_to(changed.node, at);
        if (next == at)
            return violate("node %u: byte %llu was changed, but no region allows it", changed.node,
                           static_cast<unsigned long long>(at));
        at = next;
    }
}

}  // namespace via::sim
