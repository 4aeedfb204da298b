// Descriptors: posting sound and faulty ones, and taking them back.
#include <algorithm>
#include <cstring>

#include "base/assert.hpp"
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
    }
    return 0;
}

std::uint16_t control_bits(const Work& work) {
    const std::uint16_t operation = work.kind == WorkKind::rdma_write  ? control::rdma_write
                                    : work.kind == WorkKind::rdma_read ? control::rdma_read
                                                                       : control::send_receive;
    return static_cast<std::uint16_t>(operation | (work.immediate ? control::immediate : 0));
}

/// Bytes that name their message.
std::vector<std::byte> content(const Work& work, std::uint32_t length) {
    Random random(Random(work.number).next());
    std::vector<std::byte> bytes(length);
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(random.next());
    return bytes;
}

std::uint32_t draw_length(Random& random, std::uint32_t length_max) {
    if (random.chance(30)) return static_cast<std::uint32_t>(random.below(17)) % (length_max + 1);
    return static_cast<std::uint32_t>(random.below(length_max + 1ULL));
}

constexpr std::uint32_t wrong_handle = 0x80001234;  ///< bit 31 is never set (VIPL 1.11)

}  // namespace

// Memory of a descriptor --------------------------------------------------------------------------

/// A block of the region that nobody uses, and nobody has written to since somebody did.
std::optional<std::uint64_t> Workload::take_block(Node& node, Region& region,
                                                  std::uint64_t length) {
    const auto block = region.blocks.take(length);
    if (block) observer_.look_at(node, *block, length);
    return block;
}

/// Cuts `length` bytes into pieces of the program's memory. False: there is no room.
bool Workload::give_pieces(Work& work, std::uint32_t length) {
    Node& node = *work.vi->node;
    const auto count = node.random.between(length == 0 ? 0 : 1, parameters_.segments_max);
    std::uint32_t left = length;
    for (std::uint64_t n = 1; n <= count; ++n) {
        const auto part =
            static_cast<std::uint32_t>(n == count ? left : node.random.below(left + 1ULL));
        Region* region = any_region(node, work.vi->attributes.tag, false, false);
        if (region == nullptr) return false;
        const auto skew = static_cast<std::uint32_t>(node.random.below(9));
        const auto block = take_block(node, *region, part + skew);
        if (!block) return false;
        work.pieces.push_back({region, *block, *block + skew, part});
        left -= part;
    }
    return true;
}

bool Workload::give_descriptor(Work& work) {
    Node& node = *work.vi->node;
    Region* region = any_region(node, work.vi->attributes.tag, false, false);
    if (region == nullptr) return false;
    const auto length = static_cast<std::uint32_t>(queue::descriptor_length(
        static_cast<std::uint32_t>(work.pieces.size() + 1)));  // one more for an address segment
    const auto block = take_block(node, *region, length);
    if (!block) return false;
    work.descriptor = {region, *block, *block, length};
    return true;
}

void Workload::give_back(Work& work) {
    for (const Piece& piece : work.pieces) piece.region->blocks.give_back(piece.block);
    work.pieces.clear();
    if (work.descriptor.region != nullptr) {
        // No address may stay behind: whether a later byte differs from it would be chance.
        Node& node = *work.vi->node;
        observer_.look_at(node, work.descriptor.offset, work.descriptor.length);
        node.arena.write(work.descriptor.offset, std::vector<std::byte>(work.descriptor.length));
        work.descriptor.region->blocks.give_back(work.descriptor.block);
    }
    work.descriptor.region = nullptr;
    if (work.read_from) work.read_from->region->blocks.give_back(work.read_from->block);
    work.read_from.reset();
}

/// A place in the peer's memory that the operation may touch, and nobody else does meanwhile.
bool Workload::give_target(Work& work, std::uint32_t length, queue::Segment& remote) {
    Vi& there = *work.connection->ends[1 - work.side];
    Node& node = *there.node;
    const bool write = work.kind == WorkKind::rdma_write;
    if (is_forbidden(work) || !node.alive) return false;
    Region* region = nullptr;
    if (model_.shares && !work.vi->shared.empty() && work.vi->node->random.chance(80))
        region = Sharing::segment_of(*work.vi, write);
    if (region == nullptr) region = any_region(node, there.attributes.tag, write, !write);
    if (region == nullptr) return false;
    const auto skew = static_cast<std::uint32_t>(node.random.below(9));
    const auto block = take_block(node, *region, length + skew);
    if (!block) return false;
    auto target =
        std::make_unique<Target>(Target{&work, &there, region, *block, *block + skew, length, {}});
    remote = {node.arena.address(target->offset), region->handle, 0};
    std::vector<std::byte> bytes = work.bytes;
    if (write)  // so that its arrival is seen: every byte of it makes a difference
        for (std::byte& byte : bytes) byte = ~byte;
    node.arena.write(target->offset, bytes);
    if (write) {
        target->opened = observer_.open(node, target->offset, length, true);
        node.targets.push_back(std::move(target));
    } else {
        work.read_from = std::move(target);
    }
    return true;
}

/// The VI at the other end never allows it.
bool Workload::is_forbidden(const Work& work) {
    if (work.connection == nullptr) return false;
    const Vi& there = *work.connection->ends[1 - work.side];
    return !(work.kind == WorkKind::rdma_write ? there.attributes.rdma_write
                                               : there.attributes.rdma_read);
}

/// Somewhere it may not go: a handle that is none of the node's, bytes that are not the region's,
/// or memory without the right.
bool Workload::give_wrong_target(Work& work, queue::Segment& remote) {
    Vi& there = *work.connection->ends[1 - work.side];
    Node& node = *there.node;
    Random& random = work.vi->node->random;
    const Region* region = any_region(node, memory::no_tag, false, false);
    if (region == nullptr || work.bytes.empty()) return false;
    remote = {node.arena.address(region->begin), region->handle, 0};
    const std::uint64_t length = work.bytes.size();
    if (!work.vi->shared.empty() && !is_forbidden(work) && random.chance(70))
        if (const auto gone = Sharing::gone_segment_of(*work.vi)) {
            remote = *gone;
            return true;
        }
    switch (is_forbidden(work) ? 7 : random.below(8)) {
        case 0:
            remote.handle = wrong_handle;
            return true;
        case 1:
            remote.address +=
                region->length - std::min<std::uint64_t>(length / 2, region->length - 1);
            return true;
        case 2:  // from one byte before it
            remote.address -= 1;
            return true;
        case 3:  // to one byte behind it
            remote.address += region->length >= length ? region->length - length + 1 : 0;
            return true;
        case 4:  // round the end of all addresses
            remote.address = 0 - (length + 1) / 2;
            return true;
        case 5:
            remote.handle = node.gone != 0 ? node.gone : wrong_handle;
            return true;
        case 6: {  // of another NIC, where the same number may name another region
            const Region* own = any_region(*work.vi->node, memory::no_tag, false, false);
            if (own != nullptr) remote.handle = own->handle;
            return own != nullptr && own->handle != region->handle;
        }
        default:
            // What can never become allowed: rights of regions change, these do not.
            return is_forbidden(work) || (there.attributes.tag != memory::no_tag &&
                                          there.attributes.tag != region->attributes.tag);
    }
}

/// It was not posted after all.
void Workload::withdraw(Work& work) {
    if (work.kind == WorkKind::rdma_write && work.connection != nullptr) {
        Node& there = *work.connection->ends[1 - work.side]->node;
        for (std::size_t n = 0; n < there.targets.size(); ++n) {
            if (there.targets[n]->work != &work) continue;
            observer_.close_target(there, n);
            break;
        }
    }
    give_back(work);
}

// Posting -----------------------------------------------------------------------------------------

/// Makes a segment name bytes that are not the VI's to use.
void Workload::misplace(Piece& piece, const Vi& vi, queue::Segment& segment, bool receive) {
    Node& node = *vi.node;
    const Region& region = *piece.region;
    switch (node.random.below(6)) {
        case 0:  // one byte before the region
            segment.address = node.arena.address(region.begin) - 1;
            return;
        case 1:  // one byte behind it: where it ends, or of a receive where it begins
            segment.address =
                node.arena.address(region.begin + region.length - (receive ? 0 : piece.length) + 1);
            return;
        case 2:  // round the end of all addresses
            segment.address = 0 - (std::uint64_t{piece.length} + 1) / 2;
            return;
        case 3: {
            const Region* other = any_region(node, memory::no_tag, false, false);
            const memory::ProtectionTag tag = vi.attributes.tag;
            if (tag != memory::no_tag && other != nullptr && other->attributes.tag != tag &&
                other->attributes.tag != memory::no_tag && other->length >= piece.length) {
                piece.named = false;
                piece.instead = other;
                segment.address = node.arena.address(other->begin);
                segment.handle = other->handle;
                return;
            }
            [[fallthrough]];
        }
        case 4:
            piece.named = false;
            segment.handle = node.gone != 0 ? node.gone : wrong_handle;
            return;
        default:
            piece.named = false;
            segment.handle = wrong_handle;
    }
}

/// Makes the descriptor wrong in one way; returns the error it must complete with.
std::uint32_t Workload::spoil(Work& work, queue::ControlSegment& segment,
                              std::vector<queue::Segment>& segments) {
    Random& random = work.vi->node->random;
    const bool receive = work.kind == WorkKind::receive;
    const std::size_t first = segments.size() - work.pieces.size();
    for (std::size_t n = 0; n < work.pieces.size(); ++n) {
        if (work.pieces[n].length == 0 || random.chance(50)) continue;
        misplace(work.pieces[n], *work.vi, segments[first + n], receive);
        return status::protection_error;
    }
    if (!receive && random.chance(50)) {
        segment.length += 1 + static_cast<std::uint32_t>(random.below(100));
        return status::length_error;
    }
    segment.control |= static_cast<std::uint16_t>(0x10U << random.below(12));
    return status::format_error;
}

/// Tells what begins with the post that just succeeded.
void Workload::begin(Work& work, ViState state, std::uint32_t fault, const queue::Segment* remote) {
    Vi& vi = *work.vi;
    Node& node = *vi.node;
    const bool receive = work.kind == WorkKind::receive;
    observer_.tell(Posted{work.number, vi.number, receive, operation_bits(work.kind), fault, state,
                          vi.attributes.reliability});
    // What the NIC may write of a descriptor (VIPL 4.9): Next and NextHandle, Status, and of a
    // receive Length and ImmediateData.
    const std::uint64_t at = work.descriptor.offset;
    work.opened.push_back(observer_.open(node, at, 12, false));
    work.opened.push_back(receive ? observer_.open(node, at + 20, 12, false)
                                  : observer_.open(node, at + 28, 4, false));
    if (receive || work.kind == WorkKind::rdma_read)
        for (const Piece& piece : work.pieces)
            work.opened.push_back(observer_.open(node, piece.offset, piece.length, false));
    if (fault != 0 || work.connection == nullptr || receive) return;
    Connection& connection = *work.connection;
    const int side = work.side;
    if (remote != nullptr) {
        const Vi& there = *connection.ends[1 - side];
        // The last addresses are told as they are: their distance from the arena is chance.
        const std::uint64_t base = remote->address >> 63 != 0 ? 0 : there.node->arena.address(0);
        observer_.tell(RdmaAsked{work.number, there.number, there.node->number, remote->handle,
                                 remote->address - base, work.bytes.size(),
                                 work.kind == WorkKind::rdma_write});
    }
    if (work.kind == WorkKind::rdma_read) return;
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
        node.by_descriptor[draft.work->descriptor.offset] = draft.work;
        begin(*draft.work, state, draft.fault, draft.remote ? &*draft.remote : nullptr);
    }
    observer_.look(node);
    for (const Draft& draft : drafts.subspan(posted)) withdraw(*draft.work);
}

/// One, or several in one call.
void Workload::post_some(Vi& vi, bool receive) {
    Random& random = vi.node->random;
    const auto several = parameters_.together_max == 1 || random.chance(40)
                             ? 1
                             : random.between(2, parameters_.together_max);
    std::vector<Draft> drafts;
    for (std::uint64_t n = 0; n < several; ++n)
        if (!(receive ? draft_receive(vi, drafts) : draft_send(vi, drafts))) break;
    if (!drafts.empty()) post(drafts);
}

/// False: it posts something else, or nothing.
bool Workload::draft_receive(Vi& vi, std::vector<Draft>& drafts) {
    Random& random = vi.node->random;
    if (drafts.empty() && random.chance(parameters_.fault_percent) && random.chance(30)) {
        post_nonsense(vi);
        return false;
    }
    if (vi.connection == nullptr && vi.receive.works.size() + drafts.size() >= 12 &&
        random.chance(95))
        return false;
    Work& work = model_.add_work(vi, WorkKind::receive);
    // Large enough for anything, but for some.
    const bool small = random.chance(parameters_.fault_percent);
    const std::uint32_t length =
        small ? draw_length(random, vi.attributes.transfer_length_max)
              : vi.attributes.transfer_length_max + static_cast<std::uint32_t>(random.below(64));
    if (small) {
        vi.trouble = true;
        if (vi.connection != nullptr) vi.connection->trouble = true;
    }
    if (!give_pieces(work, length) || !give_descriptor(work)) {
        give_back(work);
        return false;
    }
    for (const Piece& piece : work.pieces) {
        const auto there = vi.node->arena.bytes(piece.offset, piece.length);
        work.bytes.insert(work.bytes.end(), there.begin(), there.end());
    }
    queue::ControlSegment segment{};
    segment.length = static_cast<std::uint32_t>(random.next());  // no limit (VIPL 4.10)
    segment.immediate_data = 0xDEAD;
    if (random.chance(20)) segment.control = control::immediate;  // ignored (VIPL 4.9)
    const bool faulty = random.chance(parameters_.fault_percent / 2);
    drafts.push_back({&work, segment, {}, faulty ? 1U : 0U});
    return true;
}

/// How many more messages find a receive of the peer's.
std::size_t Workload::receives_left(const Vi& vi) const {
    const Connection& connection = *vi.connection;
    const int side = vi.side;
    // What is lost never comes, and what finds no receive is dropped.
    const bool may_vanish = medium_.loses() && !vi.vi->reliable();
    const Vi& there = *connection.ends[1 - side];
    const auto waiting = std::count_if(there.receive.works.begin(), there.receive.works.end(),
                                       [](const Work* work) { return !work->completed; });
    const auto coming = std::count_if(
        connection.sent[side].begin(), connection.sent[side].end(),
        [&](const Work* work) { return !work->delivered && !(may_vanish && work->completed); });
    return waiting > coming ? static_cast<std::size_t>(waiting - coming) : 0;
}

/// The same of a send.
bool Workload::draft_send(Vi& vi, std::vector<Draft>& drafts) {
    Random& random = vi.node->random;
    if (drafts.empty() && random.chance(parameters_.fault_percent) && random.chance(30)) {
        post_nonsense(vi);
        return false;
    }
    if (vi.connection == nullptr && random.chance(95)) return false;
    const auto drawn = vi.connection == nullptr ? 0 : random.below(100);
    const WorkKind kind = drawn < 55   ? WorkKind::send
                          : drawn < 85 ? WorkKind::rdma_write
                          : vi.vi->reliable() || random.chance(parameters_.fault_percent)
                              ? WorkKind::rdma_read
                              : WorkKind::send;
    Work& work = model_.add_work(vi, kind);
    work.connection = vi.connection;
    work.side = vi.side;
    work.immediate = kind != WorkKind::rdma_read && random.chance(40);
    // A message that finds no receive ends a reliable connection: not too often. With credits it
    // waits.
    const auto before = static_cast<std::size_t>(
        std::count_if(drafts.begin(), drafts.end(),
                      [](const Draft& draft) { return draft.work->consumes_receive(); }));
    if (work.consumes_receive() && work.connection != nullptr && receives_left(vi) <= before) {
        if (vi.connection->has_credits()) {
            if (random.chance(70)) return false;
        } else if (random.chance(parameters_.fault_percent)) {
            vi.connection->trouble = true;
        } else {
            return false;
        }
    }
    const std::uint32_t length = draw_length(random, vi.attributes.transfer_length_max);
    if (!give_pieces(work, length) || !give_descriptor(work)) {
        give_back(work);
        return false;
    }
    work.bytes = content(work, length);
    const std::uint32_t fault = random.chance(parameters_.fault_percent) ? 1 : 0;
    queue::Segment remote{};
    if (kind != WorkKind::send && !aim(work, fault != 0, remote)) {
        give_back(work);
        return false;
    }
    if (kind != WorkKind::rdma_read) {
        std::uint64_t at = 0;
        for (const Piece& piece : work.pieces) {
            vi.node->arena.write(piece.offset, std::span(work.bytes).subspan(at, piece.length));
            at += piece.length;
        }
    }
    queue::ControlSegment segment{};
    segment.control = control_bits(work);
    work.fenced = random.chance(10);
    if (work.fenced) segment.control |= control::queue_fence;
    segment.length = length;
    segment.immediate_data = work.immediate ? work.number : 0xBEEF;
    drafts.push_back({&work, segment, {}, fault});
    if (kind != WorkKind::send) drafts.back().remote = remote;
    return true;
}

/// Where an RDMA operation goes. False: nowhere.
bool Workload::aim(Work& work, bool faulty, queue::Segment& remote) {
    Vi& vi = *work.vi;
    // A VI that allows no RDMA at all is tried out more often.
    const bool wrong =
        vi.node->random.chance(parameters_.fault_percent * (is_forbidden(work) ? 5 : 1));
    if (wrong && vi.connection != nullptr) vi.connection->trouble = true;
    // Without room for it, or where it may not go: that is tried on purpose only.
    if (faulty) {
        remote = {0, wrong_handle, 0};
        return true;
    }
    return wrong ? give_wrong_target(work, remote)
                 : give_target(work, static_cast<std::uint32_t>(work.bytes.size()), remote);
}

void Workload::feed(Node& node) {
    take_all(node);
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
        if (vi->connection != nullptr && waiting < wanted) disconnect(*vi);
    }
}

/// What no NIC can read is refused by the call (VIPL 4.12).
void Workload::post_nonsense(Vi& vi) {
    Node& node = *vi.node;
    Region* region = any_region(node, memory::no_tag, false, false);
    if (region == nullptr) return;
    std::byte* at = node.arena.at(region->begin);
    Status got{};
    const memory::ProtectionTag tag = vi.attributes.tag;
    switch (node.random.below(6)) {
        case 3:  // before the region
            got = node.nic.post_send(*vi.vi, at - 64, region->handle);
            break;
        case 4:
            got = node.nic.post_receive(*vi.vi, at, node.gone != 0 ? node.gone : wrong_handle);
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
            got = node.nic.post_receive(*vi.vi, at, wrong_handle);
            break;
        default:
            got = node.nic.post_send(*vi.vi, at + region->length, region->handle);
    }
    expect("Post", got, Status::invalid_parameter);
    observer_.look(node);
}

// Taking ------------------------------------------------------------------------------------------

void Workload::on_taken(Vi& vi, Queue& queue, void* descriptor) {
    Node& node = *vi.node;
    const auto found = node.by_descriptor.find(node.arena.offset_of(descriptor));
    const bool known = found != node.by_descriptor.end() && found->second->vi == &vi;
    expect("Done's descriptor", known ? Status::success : Status::invalid_parameter,
           Status::success);
    if (!known) return;
    Work& work = *found->second;
    observer_.tell(Taken{work.number});
    node.by_descriptor.erase(found);
    std::erase(queue.works, &work);
    give_back(work);
}

void Workload::take_from(Vi& vi, Queue& queue) {
    engine::ViQueue& work = &queue == &vi.send ? vi.vi->send : vi.vi->receive;
    void* descriptor = nullptr;
    const Status got = vi.node->nic.done(work, descriptor);
    observer_.look(*vi.node);
    if (got == Status::descriptor_error && descriptor == nullptr) {
        expect("Done on an empty queue", got,
               queue.works.empty() ? Status::descriptor_error : Status::success);
    } else if (descriptor != nullptr) {
        on_taken(vi, queue, descriptor);
    }
}

/// An entry promises that one Done succeeds (VIPL 4.15).
void Workload::take_by_queue(Node& node, std::uint64_t name) {
    queue::Completion completion;
    const Status got = node.nic.completion_done(*node.nic.completion_queue(name), completion);
    observer_.look(node);
    if (got != Status::success) return;
    const auto found = std::find_if(node.vis.begin(), node.vis.end(), [&](const Vi* vi) {
        return ((std::uint64_t{vi->generation} << 16) | vi->vi->index) == completion.vi;
    });
    expect("CQDone's VI", found == node.vis.end() ? Status::invalid_parameter : Status::success,
           Status::success);
    if (found == node.vis.end()) return;
    Vi& vi = **found;
    Queue& queue = completion.receive ? vi.receive : vi.send;
    expect("CQDone's queue", queue.completions == name ? Status::success : Status::no_match,
           Status::success);
    void* descriptor = nullptr;
    node.nic.done(completion.receive ? vi.vi->receive : vi.vi->send, descriptor);
    observer_.look(node);
    expect("Done after CQDone", descriptor == nullptr ? Status::not_done : Status::success,
           Status::success);
    if (descriptor != nullptr) on_taken(vi, queue, descriptor);
}

void Workload::take(Node& node) {
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

void Workload::take_all(Node& node) {
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
