// Regions, tags and completion queues that come, change and go under traffic.
#include <algorithm>

#include "sim/workload.hpp"

namespace via::sim {

namespace {

/// Does a posted, not completed descriptor use the region (VIPL 4.8)?
bool in_use(const Node& node, const Region& region) {
    const auto uses = [&](const Work* work) {
        if (work->completed) return false;
        return work->descriptor.region == &region ||
               std::any_of(work->pieces.begin(), work->pieces.end(), [&](const Piece& piece) {
                   return piece.length != 0 &&
                          (piece.named ? piece.region : piece.instead) == &region;
               });
    };
    const auto& shared = node.shared;
    if (shared != nullptr && std::any_of(shared->holder->receive.works.begin(),
                                         shared->holder->receive.works.end(), uses))
        return true;
    return std::any_of(node.vis.begin(), node.vis.end(), [&](const Vi* vi) {
        return std::any_of(vi->send.works.begin(), vi->send.works.end(), uses) ||
               std::any_of(vi->receive.works.begin(), vi->receive.works.end(), uses);
    });
}

}  // namespace

/// RDMA that is under way to the node's region may be refused from now on.
void Workload::trouble(Node& node, const Region& region) {
    for (auto& target : node.targets)
        if (target->region == &region) target->work->connection->trouble = true;
    std::erase_if(node.asked_here, [](const Work* work) { return work->taken; });
    for (Work* work : node.asked_here)
        if ((work->read_from && work->read_from->region == &region) ||
            (work->word != nullptr && work->word->region == &region))
            work->connection->trouble = true;
}

void Workload::trouble(Node& node, const Window& window) {
    for (auto& target : node.targets)
        if (target->window == &window) target->work->connection->trouble = true;
    for (Work* work : node.asked_here)
        if (!work->taken && work->read_from && work->read_from->window == &window) {
            work->connection->trouble = true;
            work->read_from->window = nullptr;
        }
}

void Workload::end_window(Node& node, std::size_t index) {
    const Window& window = *node.windows[index];
    trouble(node, window);
    expect("RevokeWindow", node.nic.end_window(window.handle), Status::success);
    // From now on nothing comes there by it any more.
    for (std::size_t n = 0; n < node.targets.size();) {
        if (node.targets[n]->window == &window) {
            observer_.close_target(node, n);
        } else {
            ++n;
        }
    }
    if (window.region != nullptr) observer_.tell(Revoked{node.number, window.handle});
    node.window_gone = window.handle;
    node.windows.erase(node.windows.begin() + static_cast<std::ptrdiff_t>(index));
    observer_.look(node);
}

void Workload::add_region(Node& node) {
    const std::uint64_t length = node.random.between(1, parameters_.region_kib_max) * 1024;
    const auto block = node.arena.blocks().take(length);
    if (!block) return;
    memory::MemoryAttributes attributes;
    attributes.rdma_write = node.random.chance(60);
    attributes.rdma_read = node.random.chance(60);
    if (!node.tags.empty() && node.random.chance(40))
        attributes.tag = node.tags[node.regions.size() % 2];
    const bool shared =
        parameters_.share_percent != 0 && node.random.chance(parameters_.share_percent);
    const auto handle =
        shared ? sharing_.add(node, *block, length, attributes)
               : node.nic.register_memory(node.arena.address(*block), length, attributes);
    expect("RegisterMem", handle ? Status::success : handle.error(), Status::success);
    if (!handle) return node.arena.blocks().give_back(*block);
    node.regions.push_back(std::make_unique<Region>(
        Region{*handle, *block, length, attributes, Blocks(*block, length), true, shared}));
    observer_.tell(Granted{node.number, *handle, *block, length, attributes});
    observer_.look(node);
}

void Workload::change_region(Node& node, Region& region) {
    trouble(node, region);
    if (region.attributes.atomics && node.random.chance(50)) {
        expect("SetMemAtomics",
               node.nic.allow_atomics(region.handle, node.arena.address(region.begin), false),
               Status::success);
        region.attributes.atomics = false;
        observer_.tell(
            Granted{node.number, region.handle, region.begin, region.length, region.attributes});
    }
    // Only rights change: a tag that no longer fits would make faults of sound posts.
    memory::MemoryAttributes wanted = region.attributes;
    wanted.rdma_write = node.random.chance(60);
    wanted.rdma_read = node.random.chance(60);
    if (region.shared) {
        const bool used = in_use(node, region);
        expect("SetMemAttributes of a segment",
               node.nic.change_region(region.handle, node.arena.address(region.begin), wanted),
               used ? Status::error_resource : Status::success);
        if (used) return observer_.look(node);
    } else {
        expect("SetMemAttributes",
               node.nic.with_turn([&] { return node.nic.memory().change(region.handle, wanted); }),
               Status::success);
    }
    region.attributes = wanted;
    ++region.changes;
    observer_.tell(
        Granted{node.number, region.handle, region.begin, region.length, region.attributes});
    observer_.look(node);
}

void Workload::drop_region(Node& node, Region& region) {
    trouble(node, region);
    const Status got = region.shared
                           ? sharing_.remove(node, region)
                           : node.nic.deregister(region.handle, node.arena.address(region.begin));
    expect("DeregisterMem", got, in_use(node, region) ? Status::error_resource : Status::success);
    if (got == Status::success) {
        region.live = false;
        ++region.changes;
        node.gone = region.handle;
        // From now on nothing comes there any more.
        for (std::size_t n = 0; n < node.targets.size();) {
            if (node.targets[n]->region == &region) {
                observer_.close_target(node, n);
            } else {
                ++n;
            }
        }
        observer_.end_words(node, region);
        observer_.tell(Revoked{node.number, region.handle});
        for (const auto& window : node.windows) {
            if (window->region != &region) continue;
            window->region = nullptr;
            observer_.tell(Revoked{node.number, window->handle});
        }
    }
    observer_.look(node);
}

/// The memory of a region that is gone is free when no descriptor holds a part of it any more.
void Workload::forget_dead_regions(Node& node) {
    for (auto& region : node.regions) {
        if (region->live || !region->blocks.empty()) continue;
        node.arena.blocks().give_back(region->begin);
        region.reset();
    }
    std::erase(node.regions, nullptr);
}

void Workload::change_memory(Node& node) {
    forget_dead_regions(node);
    if (!node.windows.empty() && node.random.chance(60)) {
        // The last ones are in use as a rule.
        const std::uint64_t last = node.windows.size() - 1;
        return end_window(node, node.random.chance(60)
                                    ? last - node.random.below(std::min<std::uint64_t>(last, 2) + 1)
                                    : node.random.below(last + 1));
    }
    if (node.regions.empty() || node.random.chance(40)) return add_region(node);
    Region& region = *node.regions[node.random.below(node.regions.size())];
    if (!region.live) return;
    if (node.random.chance(40)) return change_region(node, region);
    drop_region(node, region);
}

void Workload::change_queues(Node& node) {
    if (node.shared != nullptr && node.random.chance(50)) return use_limit(node);
    if (node.completion_queues.empty()) return;
    const std::uint64_t name =
        node.completion_queues[node.random.below(node.completion_queues.size())];
    if (node.random.chance(20)) {
        const bool bound = std::any_of(node.vis.begin(), node.vis.end(), [&](const Vi* vi) {
            return vi->send.completions == name || vi->receive.completions == name;
        });
        expect("DestroyCQ", node.nic.destroy_completion_queue(name),
               bound ? Status::error_resource : Status::success);
        if (!bound) std::erase(node.completion_queues, name);
    } else {
        expect(
            "ResizeCQ",
            node.nic.resize_completion_queue(name, static_cast<std::uint32_t>(node.random.between(
                                                       1, parameters_.queue_entries_max))),
            Status::success);
    }
    observer_.look(node);
}

}  // namespace via::sim
