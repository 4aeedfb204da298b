// The channel's rings and mailbox over memory in which a hostile peer wrote whatever it liked: the
// readers, and the writer whose room the peer gives back.
#include <memory>
#include <vector>

#include "device/shm/in_order.hpp"
#include "device/shm/ring_reader.hpp"
#include "device/shm/ring_writer.hpp"
#include "input.hpp"

using namespace via;
using namespace via::device;
using namespace via::device::shm;

namespace {

/// Of its exact size on the heap, so that the sanitizer sees every byte beyond.
template <class T>
std::unique_ptr<T[]> exactly(std::size_t count) {
    return std::unique_ptr<T[]>(new T[count]());
}

/// Reads each byte, as memory::place() would.
unsigned sum_of(const std::byte* bytes, std::size_t length) {
    unsigned sum = 0;
    for (std::size_t n = 0; n < length; ++n) sum += static_cast<unsigned>(bytes[n]);
    return sum;
}

void read_anything(fuzz::Input& input) {
    const std::uint32_t slots = 4U << (input.byte() % 4);
    const std::uint32_t arena_bytes = Layout::arena_bytes_min;
    const auto ring = exactly<Slot>(slots);
    const auto arena = exactly<std::byte>(arena_bytes);
    const std::uint32_t first = input.byte() % 2 == 0 ? 0 : input.word();
    Atomic<std::uint32_t> head{first};
    RingReader reader;
    reader.attach(ring.get(), slots, arena.get(), arena_bytes, &head, first);
    const auto line = exactly<Slot>(1);
    const auto room = exactly<std::byte>(payload_max);
    Mailbox mailbox;
    mailbox.attach(line.get(), room.get(), input.byte() % 2 == 0);
    volatile unsigned sink = 0;
    bool frames_out = false;
    while (!input.empty()) {
        const std::uint8_t step = input.byte();
        Slot& slot = ring[reader.position() & (slots - 1)];
        switch (step % 9) {
            case 0: {  // any word anywhere
                const std::uint32_t word = input.byte() % (slots * Slot::words_count);
                ring[word / Slot::words_count].words[word % Slot::words_count].store(input.wide());
                break;
            }
            case 1:  // the next slot, with its proper stamp
                slot.words[0].store(std::uint64_t{input.word()} << 32 | (reader.position() + 1));
                break;
            case 2:
                slot.words[arena_word].store(input.wide());
                break;
            case 3: {
                const bool pending = reader.pending();
                Frame frame;
                const RingReader::Take taken = reader.take(frame);
                fuzz::require(pending == (taken != RingReader::Take::empty),
                              "pending() tells what take() does");
                if (taken != RingReader::Take::frame) break;
                frames_out = true;
                fuzz::require(frame.length <= Frame::inline_max, "a header fits the frame");
                fuzz::require(frame.payload == nullptr || frame.length <= header_max,
                              "a header beside a payload is no longer than agreed");
                if (frame.payload == nullptr) break;
                fuzz::require(frame.payload_length <= payload_max && frame.payload_length != 0,
                              "a payload is no longer than agreed");
                sink = sink + sum_of(frame.payload, frame.payload_length);
                break;
            }
            case 4:
                if (frames_out) reader.release();
                break;
            case 5:  // the mailbox's next number, with anything beside it
                line[0].words[0].store(std::uint64_t{input.word()} << 32 | (mailbox.count() + 1));
                break;
            case 6: {
                const bool pending = is_pending(reader, mailbox);
                const std::uint32_t before = reader.position() + mailbox.count();
                Frame frames[4];
                const auto few = std::span(frames).first(1 + input.byte() % 4);
                const Arrival arrival = take_in_order(reader, mailbox, few, 0);
                fuzz::require(arrival.count <= few.size(), "no more is taken than fits");
                fuzz::require(pending || arrival.count == 0, "nothing comes of nothing");
                fuzz::require(reader.position() + mailbox.count() - before == arrival.count,
                              "what is taken counts");
                for (const Frame& frame : few.first(arrival.count)) {
                    fuzz::require(frame.length <= Frame::inline_max, "a header fits the frame");
                    if (arrival.by_mailbox) sink = sum_of(frame.payload, frame.payload_length);
                }
                frames_out = frames_out || arrival.count != 0;
                break;
            }
            case 7:
                if (mailbox.ours()) mailbox.put(1, 2, nullptr, 0, reader.position());
                break;
            default:
                reader.announce_due();
                if (reader.unannounced()) reader.announce();
                fuzz::require(head.load() - first <= reader.position() - first,
                              "no more is announced than was taken");
        }
    }
}

void write_to_anybody(fuzz::Input& input) {
    const std::uint32_t slots = 4U << (input.byte() % 4);
    const std::uint32_t arena_bytes = Layout::arena_bytes_min;
    const auto ring = exactly<Slot>(slots);
    const auto arena = exactly<std::byte>(arena_bytes);
    const auto shadow = exactly<std::uint64_t>(slots);
    const std::uint32_t first = input.byte() % 2 == 0 ? 0 : input.word();
    Atomic<std::uint32_t> head{first};
    RingWriter writer;
    writer.attach(ring.get(), slots, arena.get(), arena_bytes, shadow.get(), &head, first);
    bool closed = false;
    while (!input.empty()) {
        switch (input.byte() % 8) {
            case 0:
            case 1: {
                const std::uint32_t header = input.byte() % (header_max + 1);
                const std::uint32_t payload = input.half() % (payload_max + 1);
                if (header == 0 && payload == 0) break;
                if (header + payload > slot_room && payload == 0) break;
                FrameSlot slot;
                if (!writer.reserve(header, payload, slot)) break;
                std::memset(slot.header, 1, header);
                std::memset(slot.payload, 2, payload);
                break;
            }
            case 2:
            case 3:
                writer.transmit();
                break;
            case 4:
                head.store(head.load() + input.byte() % 8);
                break;
            case 5:
                head.store(input.word());
                break;
            case 6: {
                const bool came = writer.room_came();
                const RingWriter::Refresh refreshed =
                    closed ? RingWriter::Refresh::same : writer.refresh();
                fuzz::require(closed || came == (refreshed != RingWriter::Refresh::same),
                              "room_came() tells what refresh() does");
                if (refreshed != RingWriter::Refresh::lie) break;
                writer.close();  // as the device does with a liar
                closed = true;
                break;
            }
            default:
                writer.peer_head();
                writer.arena_idle();
        }
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    fuzz::Input input(data, size);
    if (input.byte() % 2 == 0)
        read_anything(input);
    else
        write_to_anybody(input);
    return 0;
}
