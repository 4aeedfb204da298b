// Packets that are being filled or wait to be handed to the port, in the order of sending.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/address.hpp"
#include "device/device.hpp"
#include "wire/packet.hpp"

namespace via::device::datagram {

/// One packet, or a run of them: of equal lengths, each with one frame that must arrive, numbered
/// one behind the other, whose payloads lie so, too.
struct StagedPacket {
    static constexpr PathId no_path = ~PathId{0};
    static constexpr std::uint8_t no_part = 0xFF;
    static_assert(wire::parts_max <= no_part);

    /// Not an aggregate: that would be cleared whole first, which takes longer than all else.
    StagedPacket(PathId of, std::uint32_t at, std::uint32_t room_there, std::uint32_t first_frame)
        : path(of), offset(at), room(room_there), frames_begin(first_frame) {}

    HostAddress to;
    PathId path;  ///< of a data packet; else no_path
    std::uint32_t offset;
    std::uint32_t length = 0;       ///< bytes, those of frames not transmitted included
    std::uint32_t transmitted = 0;  ///< bytes
    std::uint32_t room;             ///< bytes that it may grow to
    std::uint32_t frames_begin;
    std::uint32_t frames = 0;       ///< that must arrive
    std::uint64_t named_below = 0;  ///< numbers that its acknowledgement tells of; 0: it has none
    bool sealed = false;
    bool wants_ack = false;
    bool alone = false;  ///< nothing more may go into it
    bool length_probe = false;
    bool asks_only = false;  ///< nothing in it but a ping wants an acknowledgement
    bool from_host_port = false;
    bool dropped = false;
    std::uint8_t part = no_part;  ///< of the frame that leaves in parts
    bool waited = false;          ///< for packets behind it, though it is not full
    std::uint32_t count = 1;      ///< of the run
    std::uint32_t gone = 0;       ///< of these, taken by the port
    std::uint32_t stride = 0;     ///< bytes from one to the next
    std::uint32_t wanted = 1;     ///< the run, and what of its message is for the next one
    wire::Body body;              ///< a payload that still lies where the program has it, until the
                                  ///< packet is sealed: the first's

    /// Of the n-th.
    wire::Body body_of(std::uint32_t n) const {
        if (body.bytes == nullptr) return {};
        return {body.bytes + std::size_t{n} * body.length, body.at, body.length,
                std::size_t{wanted - n - 1} * body.length};
    }
    bool takes_more() const { return !sealed && !alone && !dropped; }
};

class Staging {
public:
    /// The first `touched` of the bytes are memory at once, not when the first packets need them.
    explicit Staging(std::uint32_t bytes, std::uint32_t touched = 0)
        : bytes_(std::make_unique_for_overwrite<std::byte[]>(bytes)), size_(bytes) {
        std::fill_n(bytes_.get(), touched, std::byte{});
    }

    std::size_t begin() const { return begin_; }  ///< the first that was not sent
    std::size_t end() const { return end_; }
    bool empty() const { return begin_ == end_; }
    StagedPacket& operator[](std::size_t n) { return packets_[n]; }
    StagedPacket& last() { return packets_.back(); }
    std::byte* bytes(const StagedPacket& packet, std::uint32_t n = 0) {
        return bytes_.get() + packet.offset + std::size_t{n} * packet.stride;
    }
    std::size_t datagrams() const { return datagrams_; }  ///< that were not sent
    /// The last one, if it is open for more; else nullptr.
    StagedPacket* open();
    bool has_room(std::uint32_t room) const;
    /// The last packet is open, transmitted as far as it goes, and shorter than that.
    bool is_filling(std::uint32_t length) const;
    /// To how many bytes the packet may grow, with what stands behind it.
    std::uint32_t limit(const StagedPacket& packet) const;
    /// A new packet that may grow to `room` bytes; nullptr: there is no room. Invalidates pointers
    /// to others.
    StagedPacket* add(PathId path, std::uint32_t room);

    /// How many packets of that length the last one could become a run of.
    std::uint32_t run_max(std::uint32_t length) const;
    void make_run(StagedPacket& last, std::uint32_t count, std::uint32_t wanted);

    void add_frame(StagedPacket& packet, std::uint32_t number) {
        frames_.push_back(number);
        ++packet.frames;
    }
    std::uint32_t frame(const StagedPacket& packet, std::uint32_t n) const {
        return frames_[packet.frames_begin + n];
    }
    /// All frames reserved for `path` are transmitted now.
    void transmit(PathId path);
    /// No payload lies elsewhere any more.
    void take_in();
    /// What they are parts of is under way no more.
    void forget_parts(PathId path);
    /// The path is over.
    void drop(PathId path);
    /// The first `count` datagrams were taken by the port.
    void sent(std::size_t count);
    /// Those before `n` are none any more.
    void dropped_before(std::size_t n);

private:
    std::uint32_t whole_end() const;
    void drop(StagedPacket& packet);

    std::unique_ptr<std::byte[]> bytes_;
    std::uint32_t size_;
    std::vector<StagedPacket> packets_;
    std::vector<std::uint32_t> frames_;
    std::size_t begin_ = 0;
    std::size_t end_ = 0;        ///< packets_.size(), which takes a multiplication
    std::size_t datagrams_ = 0;  ///< of those from begin_ on, that were not sent
};

}  // namespace via::device::datagram
