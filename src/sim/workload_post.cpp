// Descriptors: posting sound and faulty ones.
#include <algorithm>
#include <cstring>

#include "sim/workload.hpp"

namespace via::sim {

namespace control = queue::control;
namespace status = queue::status;

namespace {

std::uint32_t operation_bits(WorkKind kind) {
    switch (kind) {
        case WorkKind::receive:
            return status::operation_receive;
        case WorkKind::send:
            return status::operation_send;
        case WorkKind::rdma_write:
            return status::operation_rdma_write;
        case WorkKind::rdma_read:
            return status::operation_rdma_read;
        case WorkKind::compare_swap:
            return status::operation_compare_swap;
        case WorkKind::fetch_add:
            return status::operation_fetch_add;
    }
    return 0;
}

}  // namespace

/// Makes the descriptor wrong in one way; returns the error it must complete with.
std::uint32_t Workload::spoil(Work& work, queue::ControlSegment& segment,
                              std::vector<queue::Segment>& segments) {
    Random& random = work.vi->node->random;
    const bool receive = work.kind == WorkKind::receive;
    const std::size_t first = segments.size() - work.pieces.size();
    for (std::size_t n = 0; n < work.pieces.size(); ++n) {
        if (work.pieces[n].length == 0 || random.chance(50)) continue;
        places_.misplace(work.pieces[n], *work.vi, segments[first + n], receive);
        return status::protection_error;
    }
    if (!receive && random.chance(50)) {
        segment.length += 1 + static_cast<std::uint32_t>(random.below(100));
        return status::length_error;
    }
    segment.control |= static_cast<std::uint16_t>(0x10U << random.below(12));
    return status::format_error;
}

/// What the NIC may write of a descriptor (VIPL 4.9): Next and NextHandle, Status, and of a receive
/// Length and ImmediateData; and where it is to put bytes.
void Workload::open_for(Work& work) {
    Node& node = *work.vi->node;
    const bool receive = work.kind == WorkKind::receive;
    const std::uint64_t at = work.descriptor.offset;
    work.opened.push_back(observer_.open(node, at, 12, false));
    work.opened.push_back(receive ? observer_.open(node, at + 20, 12, false)
                                  : observer_.open(node, at + 28, 4, false));
    if (receive || work.kind == WorkKind::rdma_read || work.is_atomic())
        for (const Piece& piece : work.pieces)
            work.opened.push_back(observer_.open(node, piece.offset, piece.length, false));
}

/// Tells what begins with the post that just succeeded.
void Workload::begin(Work& work, ViState state, std::uint32_t fault, const queue::Segment* remote) {
    const Vi& vi = *work.vi;
    const bool receive = work.kind == WorkKind::receive;
    observer_.tell(Posted{work.number, vi.number, receive, operation_bits(work.kind), fault, state,
                          vi.attributes.reliability});
    open_for(work);
    if (fault != 0 || work.connection == nullptr || receive) return;
    Connection& connection = *work.connection;
    const int side = work.side;
    if (remote != nullptr) {
        const Vi& there = *connection.ends[1 - side];
        // The last addresses are told as they are: their distance from the arena is chance.
        const std::uint64_t base = remote->address >> 63 != 0 ? 0 : there.node->arena.address(0);
        observer_.tell(RdmaAsked{work.number, there.number, there.node->number, remote->handle,
                                 remote->address - base,
                                 work.is_atomic() ? word_length : work.bytes.size(),
                                 work.kind == WorkKind::rdma_write, work.is_atomic()});
    }
    if (work.kind == WorkKind::rdma_read || work.is_atomic()) return;
    if (work.kind == WorkKind::rdma_write && !work.immediate && work.bytes.empty()) return;
    observer_.tell(Sent{work.number, connection.channel_from(side), vi.vi->reliable(), work.bytes,
                        work.fenced,
                        work.kind == WorkKind::rdma_write && !work.consumes_receive()});
    if (work.consumes_receive()) connection.sent[side].push_back(&work);
}

void Workload::write_descriptor(Draft& draft, bool full) {
    Work& work = *draft.work;
    Vi& vi = *work.vi;
    Node& node = *vi.node;
    std::vector<queue::Segment> segments;
    if (draft.remote) segments.push_back(*draft.remote);
    for (const Piece& piece : work.pieces)
        segments.push_back({node.arena.address(piece.offset), piece.region->handle, piece.length});
    draft.control.segment_count = static_cast<std::uint16_t>(segments.size());
    if (draft.fault != 0) draft.fault = spoil(work, draft.control, segments);
    // An RDMA read of an unreliable VI is a fault by itself, found before others but FORMAT.
    if (work.kind == WorkKind::rdma_read && !vi.vi->reliable()) draft.fault = status::format_error;
    if (draft.fault != 0) {
        vi.trouble = true;
        if (vi.connection != nullptr) vi.connection->trouble = true;
    }
    draft.control.status = !full && node.random.chance(50) ? status::done : 0;  // stale, or not
    std::vector<std::byte> bytes(work.descriptor.length);
    std::memcpy(bytes.data(), &draft.control, sizeof draft.control);
    if (!segments.empty())
        std::memcpy(bytes.data() + sizeof draft.control, segments.data(),
                    segments.size() * sizeof(queue::Segment));
    node.arena.write(work.descriptor.offset, bytes);
}

/// `posted`: how many of them were.
Status Workload::post_together(Vi& vi, bool receive, std::span<const Draft> drafts,
                               std::size_t& posted) {
    Node& node = *vi.node;
    std::vector<void*> at;
    std::vector<memory::MemoryHandle> handles;
    for (const Draft& draft : drafts) {
        at.push_back(node.arena.at(draft.work->descriptor.offset));
        handles.push_back(draft.work->descriptor.region->handle);
    }
    if (drafts.size() != 1) {
        std::uint32_t count = 0;
        const Status got = node.nic.post_many(*vi.vi, receive, at, handles.data(), count);
        posted = count;
        return got;
    }
    const Status got = receive ? node.nic.post_receive(*vi.vi, at[0], handles[0])
                               : node.nic.post_send(*vi.vi, at[0], handles[0]);
    posted = got == Status::success ? 1 : 0;
    return got;
}

/// All of one queue, one call.
void Workload::post(std::span<Draft> drafts) {
    Vi& vi = *drafts.front().work->vi;
    Node& node = *vi.node;
    const bool receive = drafts.front().work->kind == WorkKind::receive;
    Queue& queue = receive ? vi.receive : vi.send;
    const std::size_t room = parameters_.limits.descriptors_per_queue_max - queue.works.size();
    for (std::size_t n = 0; n < drafts.size(); ++n) write_descriptor(drafts[n], n >= room);
    const ViState state = vi.state;
    std::size_t posted = 0;
    const Status got = post_together(vi, receive, drafts, posted);
    const bool full = room < drafts.size();
    expect(receive ? "PostRecv" : "PostSend", got, full ? Status::error_resource : Status::success);
    if (drafts.size() > 1)
        expect("the count of posts",
               posted == std::min(room, drafts.size()) ? got : Status::not_done, got);
    for (const Draft& draft : drafts.first(posted)) {
        queue.works.push_back(draft.work);
        if (draft.work->read_from)
            draft.work->read_from->vi->node->asked_here.push_back(draft.work);
        node.by_descriptor[draft.work->descriptor.offset] = draft.work;
        begin(*draft.work, state, draft.fault, draft.remote ? &*draft.remote : nullptr);
    }
    observer_.look(node);
    for (const Draft& draft : drafts.subspan(posted)) places_.withdraw(*draft.work);
}

void Workload::feed(Node& node) {
    taking_.take_all(node);
    for (Vi* vi : node.vis) {
        if (vi->connection == nullptr || !vi->connection->has_credits()) continue;
        const Connection& connection = *vi->connection;
        const auto is_open = [](const Work* work) { return !work->completed && !work->delivered; };
        const auto& coming = connection.sent[1 - vi->side];
        const auto wanted = std::count_if(coming.begin(), coming.end(), is_open);
        for (auto tries = wanted; tries > 0; --tries) {
            std::vector<Draft> drafts;
            if (draft_receive(*vi, drafts)) post(drafts);
        }
        const auto waiting =
            std::count_if(vi->receive.works.begin(), vi->receive.works.end(), is_open);
        // Some are sent and not here yet, and have a receive.
        const auto undelivered = std::count_if(coming.begin(), coming.end(),
                                               [](const Work* work) { return !work->delivered; });
        if (vi->connection != nullptr && waiting < undelivered) disconnect(*vi);
    }
}

/// What no NIC can read is refused by the call (VIPL 4.12).
void Workload::post_nonsense(Vi& vi) {
    Node& node = *vi.node;
    Region* region = places_.any_region(node, memory::no_tag, false, false);
    if (region == nullptr) return;
    std::byte* at = node.arena.at(region->begin);
    Status got{};
    const memory::ProtectionTag tag = vi.attributes.tag;
    switch (node.random.below(6)) {
        case 3:  // before the region
            got = node.nic.post_send(*vi.vi, at - 64, region->handle);
            break;
        case 4:
            got = node.nic.post_receive(*vi.vi, at,
                                        node.gone != 0 ? node.gone : Places::wrong_handle);
            break;
        case 5:
            if (tag == memory::no_tag || tag == region->attributes.tag ||
                region->attributes.tag == memory::no_tag)
                return;
            got = node.nic.post_send(*vi.vi, at, region->handle);
            break;
        case 0:
            got = node.nic.post_send(*vi.vi, at + 8, region->handle);
            break;
        case 1:
            got = node.nic.post_receive(*vi.vi, at, Places::wrong_handle);
            break;
        default:
            got = node.nic.post_send(*vi.vi, at + region->length, region->handle);
    }
    expect("Post", got, Status::invalid_parameter);
    observer_.look(node);
}

}  // namespace via::sim
