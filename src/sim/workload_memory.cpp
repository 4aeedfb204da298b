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
    return std::any_of(node.vis.begin(), node.vis.end(), [&](const Vi* vi) {
        return std::any_of(vi->send.works.begin(), vi->send.works.end(), uses) ||
               std::any_of(vi->receive.works.begin(), vi->receive.works.end(), uses);
    });
}

}  // namespace

/// RDMA that is under way to the region may be refused from now on.
void Workload::trouble(const Region& region) {
    for (auto& node : model_.nodes) {
        for (auto& target : node->targets)
            if (target->region == &region) target->work->connection->trouble = true;
        for (Vi* vi : node->vis)
            for (Work* work : vi->send.works)
                if ((work->read_from && work->read_from->region == &region) ||
                    (work->word != nullptr && work->word->region == &region))
                    work->connection->trouble = true;
    }
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
    trouble(region);
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
    trouble(region);
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
    if (node.regions.empty() || node.random.chance(40)) return add_region(node);
    Region& region = *node.regions[node.random.below(node.regions.size())];
    if (!region.live) return;
    if (node.random.chance(40)) return change_region(node, region);
    drop_region(node, region);
}

void Workload::change_queues(Node& node) {
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
