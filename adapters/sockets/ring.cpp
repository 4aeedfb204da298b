// Making the rings of a pipe, and taking bytes out of them.
#include "ring.hpp"

#include <cstring>

namespace via::sockets {

using detail::StoreRing;
using detail::Way;

namespace {

/// More than ever lies in the rings of a direction.
constexpr std::size_t most_bytes = 16 << 20;

}  // namespace

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

std::uint64_t PipeEnd::Message::lines() const {
    return block ? 1 + (length + line_bytes - 1) / line_bytes : StoreRing::lines_of(length);
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
