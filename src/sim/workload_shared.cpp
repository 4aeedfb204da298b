// Shared receive queues: receives that no VI has, until one takes them.
#include <algorithm>

#include "sim/workload.hpp"

namespace via::sim {

/// Its receives can take any message of any VI.
void Workload::make_shared(Node& node) {
    if (parameters_.shared_percent == 0) return;
    engine::SharedShape shape;
    shape.descriptors_max = static_cast<std::uint32_t>(node.random.between(2, 30));
    shape.quota = static_cast<std::uint32_t>(
        node.random.between(1, std::min(10U, parameters_.limits.descriptors_per_queue_max)));
    const auto name = node.nic.create_shared_receives(shape);
    expect("CreateSharedRecv", name ? Status::success : name.error(), Status::success);
    engine::ViAttributes attributes;
    for (const Profile& profile : parameters_.profiles)
        attributes.transfer_length_max =
            std::max(attributes.transfer_length_max, profile.transfer_length_max);
    node.shared = std::make_unique<SharedQueue>(
        SharedQueue{name.value(), shape, &model_.add_holder(node, attributes), 0, 0, false});
}

/// A VI that was just made takes from it, or does not.
void Workload::attach(Vi& vi) {
    Node& node = *vi.node;
    if (node.shared == nullptr || !node.random.chance(parameters_.shared_percent)) return;
    const Status got = node.nic.with_turn([&] {
        engine::SharedReceives& queues = node.nic.engine().shared_receives();
        return queues.attach(*vi.vi, queues.find(node.shared->name));
    });
    const bool fits = vi.attributes.tag == memory::no_tag;
    expect("SetSharedRecv", got, fits ? Status::success : Status::invalid_ptag);
    vi.takes_shared = fits;
    vi.next_receive = vi.vi->receive.work.oldest();
}

void Workload::post_shared(Node& node) {
    SharedQueue& shared = *node.shared;
    Work& work = model_.add_work(*shared.holder, WorkKind::receive);
    const std::uint32_t length = shared.holder->attributes.transfer_length_max +
                                 static_cast<std::uint32_t>(node.random.below(64));
    if (!places_.give_pieces(work, length) || !places_.give_descriptor(work))
        return places_.give_back(work);
    for (const Piece& piece : work.pieces) {
        const auto there = node.arena.bytes(piece.offset, piece.length);
        work.bytes.insert(work.bytes.end(), there.begin(), there.end());
    }
    queue::ControlSegment segment{};
    segment.immediate_data = 0xDEAD;
    Draft draft{&work, segment, {}, 0};
    const bool full = shared.holder->receive.works.size() == shared.shape.descriptors_max;
    write_descriptor(draft, full);
    const Status got = node.nic.post_shared_receive(
        shared.name, node.arena.at(work.descriptor.offset), work.descriptor.region->handle);
    expect("PostSharedRecv", got, full ? Status::error_resource : Status::success);
    if (got == Status::success) {
        shared.holder->receive.works.push_back(&work);
        node.by_descriptor[work.descriptor.offset] = &work;
        open_for(work);
    }
    observer_.look(node);
    if (got != Status::success) places_.give_back(work);
}

/// Asks for the event of few receives, or whether it was.
void Workload::use_limit(Node& node) {
    SharedQueue& shared = *node.shared;
    if (node.random.chance(50)) {
        shared.limit = static_cast<std::uint32_t>(node.random.below(8));
        shared.reached = false;
        expect("ArmSharedRecv", node.nic.arm_shared_receives(shared.name, shared.limit),
               Status::success);
        return observer_.look(node);
    }
    const Status got = node.nic.take_limit(shared.name);
    observer_.look(node);
    expect("the limit of a shared queue", got,
           std::exchange(shared.reached, false) ? Status::success : Status::not_done);
}

/// The VIs that took from it are gone.
void Workload::destroy_shared(Node& node) {
    if (node.shared == nullptr) return;
    expect("DestroySharedRecv", node.nic.destroy_shared_receives(node.shared->name),
           Status::success);
    observer_.look(node);
    for (Work* work : node.shared->holder->receive.works) {
        observer_.withdraw(*work);
        node.by_descriptor.erase(work->descriptor.offset);
        places_.give_back(*work);
    }
    node.shared.reset();
}

}  // namespace via::sim
