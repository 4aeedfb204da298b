#include "ring.hpp"

#include <cstring>

namespace via::sockets {

using detail::StoreRing;
using detail::Way;

namespace {

/// So that the receiver begins while the rest is being stored.
constexpr std::size_t longest_piece = 128 * StoreRing::line_payload;

/// From here on two copies, to gather a program's parts, cost more than two messages.
constexpr std::size_t no_gathering = 2048;
constexpr std::size_t most_block_bytes = 16384;
constexpr std::size_t line_bytes = sizeof(detail::StoreLine);
/// More than ever lies in the rings of a direction.
constexpr std::size_t most_bytes = 16 << 20;

std::uint64_t lines_and_back(std::uint64_t ring_offset, std::uint32_t lines) {
    return ring_offset << 17 | lines;
}

}  // namespace

std::size_t Buffers::left() const {
    std::size_t sum = 0;
    for (const iovec* one = next_; one != last_; ++one) sum += one->iov_len;
    return sum - used_;
}

void Buffers::use(std::size_t bytes) {
    used_ += bytes;
    skip_empty();
}

int Buffers::rest(iovec* to, int most) const {
    int count = 0;
    for (const iovec* one = next_; one != last_ && count < most; ++one) to[count++] = *one;
    if (count > 0) {
        to[0].iov_base = static_cast<std::byte*>(to[0].iov_base) + used_;
        to[0].iov_len -= used_;
    }
    return count;
}

std::uint64_t PipeEnd::make(Arena& arena, const Ends& ends) {
    const std::uint64_t offset = arena.allocate(sizeof(Pipe));
    if (offset == 0) return 0;
    Pipe& pipe = *arena.at<Pipe>(offset);
    pipe.ends = ends;
    for (int side = 0; side < 2; ++side) {
        const std::uint64_t ring = PipeEnd(arena, pipe, side).make_ring(first_lines, 0);
        if (ring == 0) {
            destroy(arena, pipe);
            return 0;
        }
        pipe.send[side].ring = pipe.read[side].ring = ring;
        pipe.send[side].lines = pipe.read[side].lines = first_lines;
        // Whoever sleeps when bytes begin to come through memory sleeps in the kernel.
        pipe.side[side].asleep.store(for_data);
    }
    pipe.magic = Pipe::right_magic;
    return offset;
}

void PipeEnd::destroy(Arena& arena, Pipe& pipe) {
    for (int side = 0; side < 2; ++side) {
        if (pipe.again[side].offset != 0)
            arena.release(pipe.again[side].offset, pipe.again[side].room);
        SendEnd& sender = pipe.send[side];
        ReadEnd& reader = pipe.read[side];
        if (reader.ring != 0)
            arena.release(reader.ring, StoreRing::segment_size(lines_in(reader.lines)));
        if (sender.ring != 0 && sender.ring != reader.ring)
            arena.release(sender.ring, StoreRing::segment_size(lines_in(sender.lines)));
    }
    pipe.magic = 0;
    arena.release(arena.offset_of(&pipe), sizeof(Pipe));
}

std::uint64_t PipeEnd::make_ring(std::uint32_t lines, std::uint64_t place) const {
    const std::uint64_t ring = arena_->allocate(StoreRing::segment_size(lines));
    if (ring != 0) ring_at(ring, lines).words().lines_taken = place;
    return ring;
}

std::uint64_t PipeEnd::free_lines() const {
    const SendEnd& end = sending();
    const std::uint32_t lines = lines_in(end.lines);
    const StoreRing ring = ring_at(end.ring, lines);
    const std::uint64_t taken = detail::load(ring.words().lines_taken);
    const std::uint64_t used = end.place.load(std::memory_order_relaxed) - taken;
    // One is kept for the message that says where the next ring is.
    return used >= lines - 1 ? 0 : lines - used - 1;
}

bool PipeEnd::has_room() const {
    const SendEnd& end = sending();
    return free_lines() > lines_in(end.lines) / 4;
}

std::size_t PipeEnd::store(Buffers& from) const {
    SendEnd& end = sending();
    const std::uint32_t lines = lines_in(end.lines);
    const StoreRing ring = ring_at(end.ring, lines);
    std::size_t sum = 0;
    while (!from.done()) {
        const std::size_t room = free_lines() * StoreRing::line_payload;
        if (room == 0) break;
        const std::span<std::byte> block = from.piece(longest_block());
        if (block.size() > StoreRing::line_payload &&
            (block.size() >= no_gathering || block.size() == from.left())) {
            store_block(block);
            from.use(block.size());
            sum += block.size();
            continue;
        }
        const std::size_t longest =
            std::min({room, longest_piece, std::size_t{StoreRing::longest_in(lines)}});
        std::span<std::byte> message = from.piece(longest);
        std::array<std::byte, longest_piece> gathered;
        std::size_t length = message.size();
        if (length < longest && from.left() > length) {
            length = 0;
            while (length < longest && !from.done()) {
                const std::span<std::byte> part = from.piece(longest - length);
                std::memcpy(gathered.data() + length, part.data(), part.size());
                length += part.size();
                from.use(part.size());
            }
            message = std::span(gathered).first(length);
        } else {
            from.use(length);
        }
        sum += length;
        if (length > StoreRing::line_payload && length <= longest_block()) {
            store_block(message);
            continue;
        }
        const std::uint64_t place = end.place.load(std::memory_order_relaxed);
        make_next_empty(place + StoreRing::lines_of(length));
        ring.write(place, message);
        end.place.store(place + StoreRing::lines_of(length), std::memory_order_release);
    }
    end.bytes.store(end.bytes.load(std::memory_order_relaxed) + sum, std::memory_order_relaxed);
    return sum;
}

std::uint32_t PipeEnd::next_size() const {
    const std::uint32_t lines = lines_in(sending().lines);
    return lines < usual_lines ? usual_lines : std::min(lines * 4, most_lines);
}

std::size_t PipeEnd::bytes_when_grown() const { return next_size() * StoreRing::line_payload; }

std::uint64_t PipeEnd::Message::lines() const {
    return block ? 1 + (length + line_bytes - 1) / line_bytes : StoreRing::lines_of(length);
}

/// As long as the lines behind the next one are free and lie in a row.
std::size_t PipeEnd::longest_block() const {
    const SendEnd& end = sending();
    const std::uint64_t free = free_lines();
    const std::uint32_t lines = lines_in(end.lines);
    const std::uint64_t first = (end.place.load(std::memory_order_relaxed) + 1) & (lines - 1);
    const std::uint64_t row = std::min(free == 0 ? 0 : free - 1, lines - first);
    return std::min({row * line_bytes, most_block_bytes, lines * line_bytes / 4});
}

/// A line that says how long it is, and behind it the bytes in a row, over words of lines, too.
void PipeEnd::store_block(std::span<const std::byte> bytes) const {
    SendEnd& end = sending();
    const std::uint64_t place = end.place.load(std::memory_order_relaxed);
    const std::uint64_t behind = place + Message{bytes.size(), true}.lines();
    end.had_blocks = 1;
    std::memcpy(line_at(end.ring, lines_in(end.lines), place + 1), bytes.data(), bytes.size());
    make_next_empty(behind);
    ring_at(end.ring, lines_in(end.lines)).announce(place, Way::written, bytes.size());
    end.place.store(behind, std::memory_order_release);
}

/// Before the receiver can look at a line where the bytes of a block may lie, of whatever lap: they
/// are no word. The line is free, since one is always kept.
void PipeEnd::make_next_empty(std::uint64_t place) const {
    const SendEnd& end = sending();
    if (end.had_blocks == 0) return;
    auto* const line =
        reinterpret_cast<detail::StoreLine*>(line_at(end.ring, lines_in(end.lines), place));
    detail::store(line->word, 0);
}

bool PipeEnd::grow() const {
    SendEnd& end = sending();
    if (lines_in(end.lines) >= most_lines) return false;
    const std::uint32_t lines = next_size();
    const std::uint64_t place = end.place.load(std::memory_order_relaxed);
    const std::uint64_t ring = make_ring(lines, place + 1);
    if (ring == 0) return false;
    ring_at(end.ring, lines_in(end.lines))
        .announce(place, Way::posted, lines_and_back(ring, lines));
    end.ring = ring;
    end.lines = lines;
    end.had_blocks = 0;
    end.place.store(place + 1, std::memory_order_release);
    return true;
}

PipeEnd::Message PipeEnd::next_message(Cursor& at) const {
    // As many rings as there are sizes; a peer could make a circle of them.
    for (int rings = 0; rings < 8; ++rings) {
        const auto slot = ring_at(at.ring, at.lines).look(at.place);
        if (!slot) return {};
        if (slot->way != Way::posted) {
            const auto length =
                static_cast<std::size_t>(std::min<std::uint64_t>(slot->length, most_block_bytes));
            if (at.offset >= length) at.offset = 0;
            return {length, slot->way == Way::written};
        }
        at.ring = slot->length >> 17;
        at.lines = lines_in(static_cast<std::uint32_t>(slot->length & 0x1FFFF));
        ++at.place;
    }
    return {};
}

bool PipeEnd::has_bytes() const {
    Cursor at = cursor();
    return next_message(at).length != 0 || again().left() != 0;
}

std::size_t PipeEnd::bytes_waiting() const {
    Cursor at = cursor();
    std::size_t sum = again().left();
    while (sum < most_bytes) {
        const Message message = next_message(at);
        if (message.length == 0) break;
        sum += message.length - at.offset;
        at.offset = 0;
        at.place += message.lines();
    }
    return sum;
}

void PipeEnd::copy(const Cursor& at, const Message& message, std::span<std::byte> to) const {
    if (message.block) {
        std::memcpy(to.data(), line_at(at.ring, at.lines, at.place + 1) + at.offset, to.size());
        return;
    }
    const StoreRing ring = ring_at(at.ring, at.lines);
    std::uint64_t line = at.place + at.offset / StoreRing::line_payload;
    const std::size_t skipped = at.offset % StoreRing::line_payload;
    if (skipped != 0) {
        std::array<std::byte, StoreRing::line_payload> whole;
        ring.read(line++, whole);
        const std::size_t length = std::min(to.size(), whole.size() - skipped);
        std::memcpy(to.data(), whole.data() + skipped, length);
        to = to.subspan(length);
    }
    ring.read(line, to);
}

std::size_t PipeEnd::take(Buffers& to, Taking how, bool& room) const {
    Cursor at = cursor();
    std::size_t sum = 0;
    while (!to.done()) {
        const Message message = next_message(at);
        if (message.length == 0) break;
        const std::span<std::byte> piece = to.piece(message.length - at.offset);
        if (!how.discard) copy(at, message, piece);
        to.use(piece.size());
        sum += piece.size();
        at.offset += static_cast<std::uint32_t>(piece.size());
        if (at.offset == message.length) {
            at.offset = 0;
            at.place += message.lines();
        }
        if (!how.look_only) commit(at, room);
    }
    return sum;
}

void PipeEnd::commit(const Cursor& at, bool& room) const {
    ReadEnd& end = reading();
    if (at.ring != end.ring) {  // nothing will ever be stored in the old one again
        arena_->release(end.ring, StoreRing::segment_size(lines_in(end.lines)));
        end.ring = at.ring;
        end.lines = at.lines;
        // What was stored in front of the new ring is no line of it.
        end.given_back = detail::load(ring_at(at.ring, at.lines).words().lines_taken);
        room = true;
    }
    end.place = at.place;
    end.offset = at.offset;
    if (at.place - end.given_back < at.lines / 4) return;
    end.given_back = at.place;
    detail::store(ring_at(at.ring, at.lines).words().lines_taken, at.place);
    room = true;
}

}  // namespace via::sockets
