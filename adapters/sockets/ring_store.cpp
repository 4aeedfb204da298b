// Storing bytes in the ring of a direction, and getting it a larger one.
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

std::uint64_t lines_and_back(std::uint64_t ring_offset, std::uint32_t lines) {
    return ring_offset << 17 | lines;
}

}  // namespace

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

}  // namespace via::sockets
