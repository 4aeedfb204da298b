#include "sim/workload.hpp"

#include <algorithm>

namespace via::sim {

void Workload::furnish(Node& node) {
    // VIs have the first one: memory of the second is another's.
    for (int n = node.random.chance(50) ? 2 : 0; n != 0; --n)
        node.tags.push_back(
            node.nic.with_turn([&] { return node.nic.memory().create_tag().value(); }));
    for (int n = 0; n < 6; ++n) add_region(node);
    const auto queues = node.random.below(3);
    for (std::uint64_t n = 0; n < queues; ++n)
        node.completion_queues.push_back(
            node.nic
                .create_completion_queue(static_cast<std::uint32_t>(
                    node.random.between(1, parameters_.queue_entries_max)))
                .value());
    make_shared(node);
}

bool Workload::step(Node& node) {
    const Weights& w = parameters_.weights;
    const std::uint32_t sum = w.make_vi + w.destroy_vi + w.listen + w.answer + w.connect +
                              w.disconnect + w.post_receive + w.post_send + w.take + w.memory +
                              w.queues + w.close + w.share;
    auto drawn = static_cast<std::uint32_t>(node.random.below(sum));
    const auto is = [&drawn](std::uint32_t weight) {
        if (drawn < weight) return true;
        drawn -= weight;
        return false;
    };
    Vi* vi = any_vi(node);
    // Most of what a program does concerns its connections.
    if (vi != nullptr && vi->connection == nullptr && node.random.chance(80))
        for (Vi* other : node.vis)
            if (other->connection != nullptr && node.random.chance(50)) vi = other;
    if (is(w.make_vi) || vi == nullptr) {
        make_vi(node);
    } else if (is(w.destroy_vi)) {
        destroy_vi(node);
    } else if (is(w.listen)) {
        listen(node);
    } else if (is(w.answer)) {
        answer(node);
    } else if (is(w.connect)) {
        connect(node);
    } else if (is(w.disconnect)) {
        disconnect(*vi);
    } else if (is(w.post_receive)) {
        const bool shared = node.shared != nullptr && node.random.chance(50);
        for (auto n = node.random.between(1, 4); n != 0; --n)
            shared ? post_shared(node) : post_some(*vi, true);
    } else if (is(w.post_send)) {
        for (auto n = node.random.between(1, 4); n != 0; --n) post_some(*vi, false);
    } else if (is(w.take)) {
        taking_.take(node);
    } else if (is(w.memory)) {
        change_memory(node);
    } else if (is(w.queues)) {
        change_queues(node);
    } else if (is(w.share)) {
        sharing_.act(*vi);
    } else {
        return node.random.chance(5);
    }
    return false;
}

void Workload::disconnect_all(Node& node) {
    for (Vi* vi : node.vis) disconnect(*vi);
}

void Workload::dismantle(Node& node) {
    for (std::size_t n = node.vis.size(); n-- != 0;) destroy(*node.vis[n]);
    expect("the last DestroyVi", node.vis.empty() ? Status::success : Status::error_resource,
           Status::success);
    destroy_shared(node);
    while (!node.windows.empty()) end_window(node, node.windows.size() - 1);
    forget_dead_regions(node);
    for (auto& region : node.regions)
        if (region->live) drop_region(node, *region);
    for (const memory::ProtectionTag tag : node.tags) {
        expect("DestroyPtag", node.nic.with_turn([&] {
            return node.nic.memory().destroy_tag(tag, node.nic.engine().vis_with_tag(tag));
        }),
               Status::success);
        observer_.look(node);
    }
    for (const std::uint64_t name : node.completion_queues)
        expect("DestroyCQ", node.nic.destroy_completion_queue(name), Status::success);
    node.tags.clear();
    node.completion_queues.clear();
}

}  // namespace via::sim
