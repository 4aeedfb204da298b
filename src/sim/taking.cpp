#include "sim/taking.hpp"

#include <algorithm>

namespace via::sim {

void Taking::on_taken(Vi& vi, Queue& queue, void* descriptor) {
    Node& node = *vi.node;
    const auto found = node.by_descriptor.find(node.arena.offset_of(descriptor));
    const bool known = found != node.by_descriptor.end() && found->second->vi == &vi;
    observer_.expect("Done's descriptor", known ? Status::success : Status::invalid_parameter,
                     Status::success);
    if (!known) return;
    Work& work = *found->second;
    observer_.tell(Taken{work.number});
    node.by_descriptor.erase(found);
    std::erase(queue.works, &work);
    work.taken = true;
    places_.give_back(work);
}

void Taking::take_from(Vi& vi, Queue& queue) {
    engine::ViQueue& work = &queue == &vi.send ? vi.vi->send : vi.vi->receive;
    void* descriptor = nullptr;
    const Status got = vi.node->nic.done(work, descriptor);
    if (descriptor != nullptr) observer_.take_shared(vi, descriptor);
    observer_.look(*vi.node);
    if (got == Status::descriptor_error && descriptor == nullptr) {
        observer_.expect("Done on an empty queue", got,
                         queue.works.empty() ? Status::descriptor_error : Status::success);
    } else if (descriptor != nullptr) {
        on_taken(vi, queue, descriptor);
    }
}

/// An entry promises that one Done succeeds (VIPL 4.15).
void Taking::take_by_queue(Node& node, std::uint64_t name) {
    queue::Completion completion;
    const Status got = node.nic.completion_done(*node.nic.completion_queue(name), completion);
    observer_.look(node);
    if (got != Status::success) return;
    const auto found = std::find_if(node.vis.begin(), node.vis.end(), [&](const Vi* vi) {
        return ((std::uint64_t{vi->generation} << 16) | vi->vi->index) == completion.vi;
    });
    observer_.expect("CQDone's VI",
                     found == node.vis.end() ? Status::invalid_parameter : Status::success,
                     Status::success);
    if (found == node.vis.end()) return;
    Vi& vi = **found;
    Queue& queue = completion.receive ? vi.receive : vi.send;
    observer_.expect("CQDone's queue",
                     queue.completions == name ? Status::success : Status::no_match,
                     Status::success);
    void* descriptor = nullptr;
    node.nic.done(completion.receive ? vi.vi->receive : vi.vi->send, descriptor);
    observer_.look(node);
    observer_.expect("Done after CQDone",
                     descriptor == nullptr ? Status::not_done : Status::success, Status::success);
    if (descriptor != nullptr) on_taken(vi, queue, descriptor);
}

void Taking::take(Node& node) {
    const auto times = node.random.between(1, 8);
    for (std::uint64_t n = 0; n < times; ++n) {
        if (!node.completion_queues.empty() && node.random.chance(50)) {
            take_by_queue(node,
                          node.completion_queues[node.random.below(node.completion_queues.size())]);
            continue;
        }
        Vi& vi = *any_vi(node);
        Queue& queue = node.random.chance(50) ? vi.send : vi.receive;
        if (queue.completions == 0) take_from(vi, queue);
    }
}

void Taking::take_all(Node& node) {
    const auto left = [&] {
        std::size_t count = 0;
        for (const Vi* vi : node.vis) count += vi->send.works.size() + vi->receive.works.size();
        return count;
    };
    for (std::size_t before = ~std::size_t{0}; left() != 0 && left() != before;) {
        before = left();
        for (const std::uint64_t name : node.completion_queues) take_by_queue(node, name);
        for (Vi* vi : node.vis)
            for (Queue* queue : {&vi->send, &vi->receive})
                if (queue->completions == 0) take_from(*vi, *queue);
    }
}

}  // namespace via::sim
