#include "sim/sharing.hpp"

#include <algorithm>

namespace via::sim {

namespace {

/// What the other end's NIC asks before it gives a segment away.
bool may_have(const Vi& there, const Region& region, bool writable) {
    const engine::ViAttributes& vi = there.attributes;
    const memory::MemoryAttributes& memory = region.attributes;
    return region.live && region.shared && vi.rdma_read && memory.rdma_read &&
           (!writable || (vi.rdma_write && memory.rdma_write)) &&
           (vi.tag == memory::no_tag || vi.tag == memory.tag);
}

Region* region_of(const Node& node, memory::MemoryHandle handle) {
    const auto found = std::find_if(node.regions.begin(), node.regions.end(),
                                    [&](const auto& region) { return region->handle == handle; });
    return found == node.regions.end() ? nullptr : found->get();
}

}  // namespace

Result<memory::MemoryHandle> Sharing::add(Node& node, std::uint64_t begin, std::uint64_t length,
                                          const memory::MemoryAttributes& attributes) {
    SharedMemory memory;
    memory.base = node.arena.at(begin);
    memory.length = length;
    return node.nic.add_segment(memory, attributes);
}

Status Sharing::remove(Node& node, const Region& region) {
    if (node.nic.devices().empty())  // it was closed, and its segments are nobody's any more
        return node.nic.deregister(region.handle, node.arena.address(region.begin));
    const auto removed = node.nic.remove_segment(node.arena.at(region.begin));
    return removed ? Status::success : removed.error();
}

void Sharing::act(Vi& vi) {
    Node& node = *vi.node;
    if (!node.imports.empty() && node.random.chance(5)) return let_go(node);
    if (vi.question) return take_answer(vi);
    if (vi.connection != nullptr && vi.state == ViState::connected) ask(vi);
}

Region* Sharing::segment_of(const Vi& vi, bool write) {
    const Vi& there = *vi.connection->ends[1 - vi.side];
    for (const auto& [handle, address] : vi.shared) {
        Region* const region = region_of(*there.node, handle);
        if (region != nullptr && may_have(there, *region, write)) return region;
    }
    return nullptr;
}

std::optional<queue::Segment> Sharing::gone_segment_of(const Vi& vi) {
    const Node& there = *vi.connection->ends[1 - vi.side]->node;
    for (const auto& [handle, address] : vi.shared) {
        const Region* const region = region_of(there, handle);
        if (region == nullptr || !region->live) return queue::Segment{address, handle, 0};
    }
    return {};
}

/// Sometimes for what is no segment, or has not the right, and is refused.
void Sharing::ask(Vi& vi) {
    Node& node = *vi.node;
    const Vi& there = *vi.connection->ends[1 - vi.side];
    const bool writable = node.random.chance(80);
    const bool wrong = node.random.chance(10);
    std::vector<const Region*> regions;
    for (const auto& region : there.node->regions)
        if (region->live && may_have(there, *region, writable) != wrong)
            regions.push_back(region.get());
    if (regions.empty() || !there.node->alive) return;
    const Region& region = *regions[node.random.below(regions.size())];
    const bool allowed = !wrong;
    vi.question = {0, vi.connection, region.handle, region.changes, writable, allowed};
    const std::uint64_t address = there.node->arena.address(region.begin);
    if (writable) vi.shared[region.handle] = address;
    const auto number = node.nic.begin_import(*vi.vi, region.handle, address, writable);
    observer_.expect("the question for a segment", number ? Status::success : number.error(),
                     Status::success);
    if (number) {
        vi.question->number = *number;
    } else {
        vi.question.reset();
    }
    observer_.look(node);
}

void Sharing::take_answer(Vi& vi) {
    Node& node = *vi.node;
    const SegmentQuestion question = *vi.question;
    const bool decided = vi.vi->attaches_decided.load() == question.number;
    if (!decided && node.random.chance(95)) return;  // it waits on, mostly
    vi.question.reset();
    Attachment memory;
    const Status got = node.nic.finish_import(*vi.vi, question.number, memory);
    observer_.look(node);
    if (!decided) return observer_.expect("a question given up", got, Status::timeout);
    if (got == Status::success) node.imports.push_back(memory.base);
    if (vi.connection != question.connection) return;  // it may have ended before or behind
    const Node& there = *vi.connection->ends[1 - vi.side]->node;
    const Region* const region = region_of(there, question.handle);
    if (region == nullptr || region->changes != question.changes) return;
    const bool full = question.allowed && got == Status::error_resource;
    observer_.expect("the answer to a question for a segment", got,
                     full               ? got
                     : question.allowed ? Status::success
                                        : Status::reject);
}

void Sharing::let_go(Node& node) {
    const auto place = static_cast<std::ptrdiff_t>(node.random.below(node.imports.size()));
    std::byte* const base = node.imports[static_cast<std::size_t>(place)];
    node.imports.erase(node.imports.begin() + place);
    observer_.expect("to let go of a segment", node.nic.release_import(base), Status::success);
    observer_.look(node);
}

void Sharing::end(Node& node) {
    while (!node.imports.empty()) let_go(node);
}

}  // namespace via::sim
