// Atomic operations: several VIs change the same few words, each of which only grows.
#include <algorithm>
#include <cstring>

#include "sim/workload.hpp"

namespace via::sim {

namespace {

constexpr std::size_t words_max = 3;  ///< of a node at once

bool may_be_changed(const Word& word, const Vi& there) {
    const memory::MemoryAttributes& region = word.region->attributes;
    return there.attributes.rdma_write && there.attributes.rdma_read && region.atomics &&
           (there.attributes.tag == memory::no_tag || there.attributes.tag == region.tag);
}

}  // namespace

/// A word of the VI's node, or a new one, in a region that has the right from then on. nullptr:
/// there is no room.
Word* Workload::word_for(const Vi& there) {
    Node& node = *there.node;
    std::vector<Word*> live;
    for (Word& word : node.words)
        if (word.live) live.push_back(&word);
    if (live.size() >= words_max || (!live.empty() && node.random.chance(95)))
        return live[node.random.below(live.size())];
    Region* const region = places_.any_region(node, there.attributes.tag, false, false);
    if (region == nullptr) return nullptr;
    const auto block = region->blocks.take(2 * word_length);
    if (!block) return nullptr;
    observer_.look_at(node, *block, 2 * word_length);
    const std::uint64_t offset = (*block + word_length - 1) / word_length * word_length;
    const std::uint64_t value = node.random.below(1ULL << 40);
    node.arena.write(offset, std::as_bytes(std::span(&value, 1)));
    if (!region->attributes.atomics) {
        expect("SetMemAtomics",
               node.nic.allow_atomics(region->handle, node.arena.address(region->begin), true),
               Status::success);
        region->attributes.atomics = true;
        observer_.tell(Granted{node.number, region->handle, region->begin, region->length,
                               region->attributes});
    }
    Word& word =
        node.words.emplace_back(Word{model_.next_word(), region, *block, offset, value, {}});
    word.opened = observer_.open(node, offset, word_length, true, true);
    observer_.tell(WordMade{word.number, value});
    return &word;
}

void Workload::post_atomic(Vi& vi) {
    Node& node = *vi.node;
    Random& random = node.random;
    if (vi.connection == nullptr || !vi.vi->reliable() ||
        vi.send.works.size() >= parameters_.limits.descriptors_per_queue_max)
        return;
    Connection& connection = *vi.connection;
    const Vi& there = *connection.ends[1 - vi.side];
    if (!there.node->alive) return;
    Word* const word = word_for(there);
    if (word == nullptr) return;
    const bool astray = random.chance(parameters_.fault_percent) && random.chance(20);
    if (astray || !may_be_changed(*word, there)) {
        if (!random.chance(parameters_.fault_percent)) return;
        connection.trouble = true;
    }
    Work& work =
        model_.add_work(vi, random.chance(50) ? WorkKind::compare_swap : WorkKind::fetch_add);
    work.connection = &connection;
    work.side = vi.side;
    work.word = word;
    Region* const region = places_.any_region(node, vi.attributes.tag, false, false);
    const auto block = region == nullptr ? std::nullopt : region->blocks.take(2 * word_length);
    if (!block) return;
    observer_.look_at(node, *block, 2 * word_length);
    work.pieces.push_back({region, *block, *block, word_length});
    if (!places_.give_descriptor(work)) return places_.give_back(work);
    node.arena.write(*block, std::as_bytes(std::span(&no_word, 1)));

    const queue::Segment remote{
        there.node->arena.address(word->offset) + (astray ? word_length / 2 : 0),
        word->region->handle, 0};
    queue::ControlSegment control{};
    work.fenced = random.chance(10);
    control.control = work.fenced ? queue::control::queue_fence : std::uint16_t{0};
    control.segment_count = 2;
    control.length = word_length;
    const queue::Segment segments[2] = {remote,
                                        {node.arena.address(*block), region->handle, word_length}};
    std::vector<std::byte> bytes(work.descriptor.length);
    std::memcpy(bytes.data(), &control, sizeof control);
    std::memcpy(bytes.data() + sizeof control, segments, sizeof segments);
    node.arena.write(work.descriptor.offset, bytes);

    const std::uint64_t step = random.between(1, 1'000);
    const bool swaps = work.kind == WorkKind::compare_swap;
    const memory::WordChange change =
        swaps ? memory::WordChange{false, word->guess, word->guess + step}
              : memory::WordChange{true, step};
    const ViState state = vi.state;
    const Status got = node.nic.post_atomic(*vi.vi, node.arena.at(work.descriptor.offset),
                                            work.descriptor.region->handle, change);
    expect("PostAtomic", got, Status::success);
    vi.send.works.push_back(&work);
    there.node->asked_here.push_back(&work);
    node.by_descriptor[work.descriptor.offset] = &work;
    observer_.tell(WordAsked{work.number, word->number, connection.channel_from(vi.side), step,
                             swaps ? std::optional(change.operand) : std::nullopt});
    begin(work, state, 0, &remote);
    observer_.look(node);
}

}  // namespace via::sim
