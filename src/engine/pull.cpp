// Large messages in one copy: the sender tells where the bytes lie, the receiver's NIC has them
// pulled by the device, and says so. The sender's message is not over before that, so its bytes
// stay; nothing else of the VI is sent meanwhile, so that it can be sent in frames after all.
//
// A proof tells the receiver that it read the message and nothing else: a word of the sender's,
// pulled behind the bytes, which the sender changes before the program gets its bytes back. A
// process that took the sender's place has no such word.
#include <algorithm>
#include <cstring>

#include "engine/inbound.hpp"
#include "engine/outbound.hpp"
#include "memory/copy.hpp"

namespace via::engine {

// Sending -----------------------------------------------------------------------------------------

void Outbound::let_pull(PathId id, FrameShape& shape) {
    Vi& vi = *paths_[id].active.front();
    std::uint32_t places = 0;
    queue::ByteWalk walk = vi.gather;
    walk.take(shape.pullable, [&](const std::byte*, std::size_t) { ++places; });
    next_ = Piece::pull;
    shape.header_length = operation_of(vi.send.work.current().cell()) == queue::control::rdma_write
                              ? wire::header_length_remote
                              : wire::header_length_extent;
    shape.payload_length =
        static_cast<std::uint32_t>(sizeof(wire::PullHead) + places * sizeof(wire::PullPlace));
}

void Outbound::emit_pull(Vi& vi, const FrameRoom& room) {
    const queue::WorkEntry& entry = vi.send.work.current().cell();
    const bool write = operation_of(entry) == queue::control::rdma_write;
    wire::Header header;
    header.kind = write ? wire::FrameKind::rdma_write : wire::FrameKind::send;
    header.flags = wire::flag::first | wire::flag::extent | wire::flag::pull;
    header.vi = vi.remote_number;
    header.message = vi.next_message;
    header.message_length = entry.length;
    if ((entry.control & queue::control::immediate) != 0) {
        header.flags |= wire::flag::immediate;
        header.immediate_or_code = entry.immediate_data;
    }
    if (write) {
        header.flags |= wire::flag::remote;
        header.remote_address = entry.segments[0].address;
        header.remote_handle = entry.segments[0].handle;
    }
    wire::emit(header, room.header);
    const wire::PullHead head{reinterpret_cast<std::uint64_t>(&vi.pull_proof), ++proof_};
    std::byte* to = room.payload;
    std::memcpy(to, &head, sizeof head);
    to += sizeof head;
    queue::ByteWalk walk = vi.gather;
    walk.take(entry.length, [&](const std::byte* from, std::size_t length) {
        const wire::PullPlace place{reinterpret_cast<std::uint64_t>(from), length};
        std::memcpy(to, &place, sizeof place);
        to += sizeof place;
    });
    vi.begun = vi.pulling = true;
    vi.pull_proof.store(proof_, std::memory_order_release);
}

/// The peer has the message, or wants it in frames.
FrameVerdict Outbound::on_pulled(Vi& vi, const wire::Header& header) {
    if (!vi.pulling || header.message != vi.next_message)
        return connections_.break_rule(vi, header, "word of a message that it was not to pull");
    const bool pulled = header.immediate_or_code == 0;
    vi.pulling = false;
    vi.pull_proof.store(0, std::memory_order_release);
    if (pulled) {
        queue::WorkEntry& entry = vi.send.work.current().cell();
        counters_.add(Counter::bytes_sent, entry.length);
        vi.begun = false;
        vi.credits.used += consumes_receive(entry) ? 1 : 0;
        entry.message = vi.next_message++;
        entry.status = queue::status::done;  // placed: done on every level
        vi.send.work.start_next();
        completions_.drain_sends(vi);
    }
    if (vi.state_now() == ViState::connected) paths_.activate(vi);
    return pulled ? FrameVerdict::pulled : FrameVerdict::not_pulled;
}

// Pulls ----------------------------------------------------------------------------------------

/// Reads the list once from memory that may change.
bool Inbound::read_pull(const wire::Header& header, const std::byte* payload, std::size_t length,
                        Pull& pull) {
    if (length < sizeof pull.head + sizeof pull.places[0] ||
        length > sizeof pull.head + sizeof pull.places ||
        (length - sizeof pull.head) % sizeof pull.places[0] != 0)
        return false;
    std::memcpy(&pull.head, payload, sizeof pull.head);
    std::memcpy(pull.places, payload + sizeof pull.head, length - sizeof pull.head);
    pull.count = static_cast<std::uint32_t>((length - sizeof pull.head) / sizeof pull.places[0]);
    std::uint64_t left = header.message_length;
    for (std::uint32_t n = 0; n < pull.count; ++n) {
        if (pull.places[n].length == 0 || pull.places[n].length > left) return false;
        left -= pull.places[n].length;
    }
    pull.header = header;
    pull.place = 0;
    pull.offset = 0;
    return left == 0 && pull.head.proof != 0;
}

Vi* Inbound::next_pull() {
    Vi* vi = pulls_.front();
    if (vi == nullptr) return nullptr;
    pulls_.pop_front();
    pulls_.push_back(*vi);
    return vi;
}

bool Inbound::next_piece(Vi& vi, std::uint64_t bytes_max, PullPiece& piece) {
    Pull& pull = *vi.pull;
    const bool write = pull.header.kind == wire::FrameKind::rdma_write;
    std::uint64_t left = std::min<std::uint64_t>(bytes_max, vi.placing.length - vi.placing.placed);
    piece.remote_count = piece.local_count = 0;
    piece.bytes = 0;
    piece.tail_length = 0;
    // From the sender's places, as far as the list reaches.
    for (; left != 0 && piece.remote_count < wire::pull_places_max; ++piece.remote_count) {
        wire::PullPlace& place = pull.places[pull.place];
        const std::uint64_t here = std::min(left, place.length - pull.offset);
        piece.remote[piece.remote_count] = {
            place.address + (mutated(Mutation::pull_in_one_place) ? 0 : pull.offset), here};
        piece.bytes += here;
        left -= here;
        pull.offset += here;
        if (pull.offset == place.length) {
            ++pull.place;
            pull.offset = 0;
        }
    }
    if (write) {
        if (!mutated(Mutation::pull_past_rights) && !check_target(vi, pull.header, piece.bytes)) {
            counters_.add(Counter::rdma_refused);
            refuse_message(vi, pull.header, wire::NakCode::protection,
                           ErrorCode::rdma_write_protection);
            return false;
        }
        // A program may poll the last word: it comes when everything else is there (VIPL 4.24).
        const bool last = vi.placing.placed + piece.bytes == vi.placing.length;
        piece.tail_length =
            last ? static_cast<std::uint32_t>(std::min<std::uint64_t>(8, piece.bytes)) : 0;
        if (piece.bytes != piece.tail_length)
            piece.local[piece.local_count++] = {vi.placing.target_address + vi.placing.placed,
                                                piece.bytes - piece.tail_length};
        if (piece.tail_length != 0)
            piece.local[piece.local_count++] = {reinterpret_cast<std::uint64_t>(&piece.tail),
                                                piece.tail_length};
    } else {
        if (!translations_.reach(pull.scatter, piece.bytes)) {
            refuse_receive(vi, pull.header);
            return false;
        }
        for (std::uint64_t bytes = piece.bytes; bytes != 0;) {
            if (piece.local_count == wire::pull_places_max) {
                give_back(pull, bytes, piece);
                break;
            }
            const queue::ByteWalk::Piece here = pull.scatter.next(bytes);
            piece.local[piece.local_count++] = {reinterpret_cast<std::uint64_t>(here.data),
                                                here.length};
            bytes -= here.length;
        }
    }
    piece.proof = 0;
    piece.remote[piece.remote_count++] = {pull.head.proof_address, sizeof piece.proof};
    piece.local[piece.local_count++] = {reinterpret_cast<std::uint64_t>(&piece.proof),
                                        sizeof piece.proof};
    return true;
}

/// The last bytes of the piece find no room in the list of local places: the next one has them.
void Inbound::give_back(Pull& pull, std::uint64_t bytes, PullPiece& piece) {
    piece.bytes -= bytes;
    while (bytes != 0) {
        Extent& last = piece.remote[piece.remote_count - 1];
        const std::uint64_t here = std::min(bytes, last.length);
        last.length -= here;
        bytes -= here;
        if (pull.offset == 0) pull.offset = pull.places[--pull.place].length;
        pull.offset -= here;
        if (last.length == 0) --piece.remote_count;
    }
}

void Inbound::piece_ended(Vi& vi, const PullPiece& piece, Status status) {
    const bool proven = piece.proof == vi.pull->head.proof || mutated(Mutation::pull_without_proof);
    if (status != Status::success && mutated(Mutation::pull_half)) return end_pull(vi, true);
    if (status != Status::success || !proven) return end_pull(vi, false);
    if (piece.tail_length != 0) {
        const std::uint64_t at =
            vi.placing.target_address + vi.placing.placed + piece.bytes - piece.tail_length;
        atomic_fence(std::memory_order_release);
        memory::place(reinterpret_cast<std::byte*>(at),
                      reinterpret_cast<const std::byte*>(&piece.tail), piece.tail_length);
    }
    counters_.add(Counter::bytes_received, piece.bytes);
    vi.placing.placed += static_cast<std::uint32_t>(piece.bytes);
    if (vi.placing.placed == vi.placing.length) end_pull(vi, true);
}

/// What could not be pulled comes in frames, from its beginning, as if its first one had been
/// empty.
void Inbound::end_pull(Vi& vi, bool pulled) {
    List<Vi, PullLink>::remove(vi);
    const std::uint32_t message = vi.pull->header.message;
    if (!pulled) {
        vi.placing.placed = 0;
    } else {
        counters_.add(Counter::messages_pulled);
        finish_message(vi, vi.pull->header);
        if (vi.state_now() != ViState::connected) return;  // and the peer knows
    }
    paths_.notify(vi.path, wire::FrameKind::pulled, vi.remote_number, message, pulled ? 0 : 1);
    connections_.complete_faults_behind(vi);
}

}  // namespace via::engine
