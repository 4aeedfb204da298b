#include "sim/places.hpp"

#include <algorithm>

#include "sim/sharing.hpp"

namespace via::sim {

/// A block of the region that nobody uses, and nobody has written to since somebody did.
std::optional<std::uint64_t> Places::take_block(Node& node, Region& region, std::uint64_t length) {
    const auto block = region.blocks.take(length);
    if (block) observer_.look_at(node, *block, length);
    return block;
}

/// Cuts `length` bytes into pieces of the program's memory. False: there is no room.
bool Places::give_pieces(Work& work, std::uint32_t length) {
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

bool Places::give_descriptor(Work& work) {
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

void Places::give_back(Work& work) {
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
bool Places::give_target(Work& work, std::uint32_t length, queue::Segment& remote) {
    Vi& there = *work.connection->ends[1 - work.side];
    Node& node = *there.node;
    const bool write = work.kind == WorkKind::rdma_write;
    if (is_forbidden(work) || !node.alive) return false;
    Region* region = nullptr;
    if (model_.shares && !work.vi->shared.empty() && work.vi->node->random.chance(80))
        region = Sharing::segment_of(*work.vi, write);
    const bool by_window = parameters_.window_percent != 0 && length != 0 && region == nullptr &&
                           work.vi->node->random.chance(parameters_.window_percent);
    if (by_window) region = any_region(node, memory::no_tag, false, false);
    if (region == nullptr) region = any_region(node, there.attributes.tag, write, !write);
    if (region == nullptr) return false;
    const auto skew = static_cast<std::uint32_t>(node.random.below(9));
    const auto block = take_block(node, *region, length + skew);
    if (!block) return false;
    auto target =
        std::make_unique<Target>(Target{&work, &there, region, *block, *block + skew, length, {}});
    remote = {node.arena.address(target->offset), region->handle, 0};
    if (by_window) {
        target->window = give_window(there, *target, write);
        if (target->window == nullptr) {
            region->blocks.give_back(target->block);
            return false;
        }
        remote.handle = target->window->handle;
    }
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

/// One of exactly the target's bytes, or of some more of its region. nullptr: there are as many as
/// can be.
const Window* Places::give_window(const Vi& there, const Target& target, bool write) {
    Node& node = *there.node;
    Random& random = node.random;
    const Region& region = *target.region;
    memory::MemoryAttributes attributes;
    attributes.tag = there.attributes.tag;
    attributes.rdma_write = write || random.chance(30);
    attributes.rdma_read = !write || random.chance(30);
    const std::uint64_t before = target.offset - region.begin;
    const std::uint64_t behind = region.length - before - target.length;
    const std::uint64_t more_before = random.chance(70) ? 0 : random.below(before + 1);
    const std::uint64_t more_behind = random.chance(70) ? 0 : random.below(behind + 1);
    const std::uint64_t begin = target.offset - more_before;
    const std::uint64_t length = more_before + target.length + more_behind;
    const auto got =
        node.nic.bind_window(region.handle, node.arena.address(begin), length, attributes);
    const bool full = node.windows.size() == parameters_.limits.windows_max;
    observer_.expect("BindWindow", got ? Status::success : got.error(),
                     full ? Status::error_resource : Status::success);
    if (!got) return nullptr;
    node.windows.push_back(std::make_unique<Window>(Window{*got, &region, begin, length}));
    observer_.tell(Granted{node.number, *got, begin, length, attributes});
    return node.windows.back().get();
}

/// Beyond a window, though in its region, or by one that was ended. False: there is none.
bool Places::give_wrong_window(Node& node, std::uint64_t length, queue::Segment& remote) {
    if (node.windows.empty() || node.random.chance(30)) {
        remote.handle = node.window_gone;
        return node.window_gone != 0;
    }
    const Window& window = *node.windows[node.random.below(node.windows.size())];
    remote = {node.arena.address(window.begin), window.handle, 0};
    if (node.random.chance(50) || window.length < length) {
        remote.address -= 1;
    } else {
        remote.address += window.length - length + 1;
    }
    return true;
}

/// The VI at the other end never allows it.
bool Places::is_forbidden(const Work& work) {
    if (work.connection == nullptr) return false;
    const Vi& there = *work.connection->ends[1 - work.side];
    return !(work.kind == WorkKind::rdma_write ? there.attributes.rdma_write
                                               : there.attributes.rdma_read);
}

/// Somewhere it may not go: a handle that is none of the node's, bytes that are not the region's,
/// or memory without the right.
bool Places::give_wrong_target(Work& work, queue::Segment& remote) {
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
    if (parameters_.window_percent != 0 && random.chance(50) &&
        give_wrong_window(node, length, remote))
        return true;
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
void Places::withdraw(Work& work) {
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

/// Makes a segment name bytes that are not the VI's to use.
void Places::misplace(Piece& piece, const Vi& vi, queue::Segment& segment, bool receive) {
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

Region* Places::any_region(Node& node, memory::ProtectionTag vi_tag, bool write, bool read) {
    std::vector<Region*> found;
    for (auto& region : node.regions)
        if (region->live && (!write || region->attributes.rdma_write) &&
            (!read || region->attributes.rdma_read) &&
            (vi_tag == memory::no_tag || vi_tag == region->attributes.tag))
            found.push_back(region.get());
    return found.empty() ? nullptr : found[node.random.below(found.size())];
}

}  // namespace via::sim
