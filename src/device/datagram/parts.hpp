// A frame that was cut when packets were longer leaves in parts (wire/packet.hpp), each in a packet
// that every way carries: what became of them, at the sender and at the receiver.
#pragma once

#include <bitset>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "wire/packet.hpp"

namespace via::device::datagram {

/// At the sender, who has the only copy that the parts are made of.
class PartsUnderWay {
public:
    /// `bytes`: place for all of the frame, the owner's.
    PartsUnderWay(std::uint32_t frame, std::span<std::byte> bytes)
        : frame_(frame),
          bytes_(bytes),
          parts_(wire::parts_of(static_cast<std::uint32_t>(bytes.size()))) {}

    std::uint32_t frame() const { return frame_; }
    std::byte* bytes() { return bytes_.data(); }  ///< to be filled, until transmit()
    void transmit() { transmitted_ = true; }
    bool transmitted() const { return transmitted_; }
    std::uint32_t count() const { return static_cast<std::uint32_t>(parts_.size()); }

    /// The first part that waits to be sent; count(): none does.
    std::uint32_t next() const;
    /// Of its packet.
    std::uint32_t packet_length(std::uint32_t n) const;
    /// Writes its chunk; it waits no more. Returns the chunk's length.
    std::uint32_t emit(std::uint32_t n, std::byte* to);
    void sent(std::uint32_t n, std::uint64_t packet);
    /// What became of a packet, which may have held none of the parts.
    void arrived(std::uint64_t packet);
    /// True if it held one.
    bool lost(std::uint64_t packet);
    std::uint32_t arrived_count() const { return arrived_; }
    bool all_arrived() const { return arrived_ == count(); }

private:
    enum class State : std::uint8_t { waits, staged, in_flight, arrived };
    struct Part {
        std::uint64_t packet = 0;  ///< that carried it last
        State state = State::waits;
    };
    Part* find(std::uint64_t packet);

    std::uint32_t frame_;
    std::uint32_t arrived_ = 0;
    bool transmitted_ = false;
    std::span<std::byte> bytes_;
    std::vector<Part> parts_;
};

/// At the receiver, of the frame whose turn it is.
class PartsHere {
public:
    /// `bytes`: place for all of the frame, the owner's.
    PartsHere(std::byte* bytes, std::uint32_t length)
        : bytes_(bytes), missing_(wire::parts_of(length)) {}
    /// False: it was there.
    bool put(std::uint32_t at, std::span<const std::byte> part);
    bool all() const { return missing_ == 0; }

private:
    std::byte* bytes_;
    std::uint32_t missing_;
    std::bitset<wire::parts_max> there_;
};

}  // namespace via::device::datagram
