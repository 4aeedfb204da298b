// When what came is acknowledged: with the next packet that goes there anyhow, or alone after some
// looks that brought nothing more, or at once.
#pragma once

#include <cstdint>

#include "base/time.hpp"
#include "device/datagram/constants.hpp"

namespace via::device::datagram {

/// Owns when a path's acknowledgement leaves alone, and whether the last one that did arrived.
class AckPolicy {
public:
    /// A packet that wants an acknowledgement.
    struct Arrival {
        Time now{};
        std::uint64_t look = 0;   ///< number of the one that found it
        std::uint32_t bytes = 0;  ///< of our receive room, that it took
        bool first = false;       ///< nothing was owed before it
        bool more = false;        ///< its message goes on
        bool gap = false;         ///< it shows that others are missing
    };
    void arrived(const Arrival& in) {
        if (in.first) since_ = in.now;
        newest_ = in.now;
        if (rest_awaited_ && arrival_look_ != in.look)
            rest_is_near_ = in.look - arrival_look_ <= looks_for_the_rest;
        rest_awaited_ = in.more;
        arrival_look_ = in.look;
        due_look_ = in.look + (in.more && rest_is_near_ ? looks_for_the_rest : looks_for_an_answer);
        bytes_ += in.bytes;
        due_ = due_ || in.gap;
    }
    /// Others of the same run, with so many bytes together.
    void more_arrived(std::uint32_t bytes) { bytes_ += bytes; }
    /// What arrived takes so much of the receive room that the sender may be waiting for it.
    void on_room(std::uint32_t receive_room) {
        if (bytes_ >= receive_room / ack_room_divisor) due_ = true;
    }
    /// A look that brought nothing for the path. True: nobody answered in time, it is due.
    bool on_look(std::uint64_t look, Time now) {
        const bool late = look >= due_look_ || now - newest_ >= looks_take_max;
        due_ = due_ || late;
        return late;
    }
    /// At latest() it is due, whatever looks bring.
    void on_time(Time now) {
        if (now >= latest()) due_ = true;
    }
    Time latest() const { return since_ + ack_delay_max; }
    bool is_due() const { return due_; }

    /// It was put into a packet.
    void acknowledged() {
        due_ = false;
        bytes_ = 0;
    }
    /// And left alone, naming numbers below that: it may be lost, and nobody would send it again.
    void left_alone(std::uint64_t named_below) { unsure_ = named_below; }
    /// The peer has got an acknowledgement that named numbers below that.
    void was_heard(std::uint64_t named_below) {
        if (named_below >= unsure_) unsure_ = 0;
    }
    /// Is the last one that left alone not known to have come?
    bool is_unsure() const { return unsure_ != 0; }

private:
    std::uint64_t due_look_ = 0;  ///< from which on it is due without an answer
    std::uint64_t arrival_look_ = 0;
    std::uint64_t unsure_ = 0;
    Time newest_{};  ///< when the last that is owed for came
    Time since_{};   ///< and the first
    std::uint32_t bytes_ = 0;
    bool due_ = false;
    bool rest_awaited_ = false;  ///< the last one was of a message that goes on
    bool rest_is_near_ = true;   ///< the last rest that was awaited came in time
};

}  // namespace via::device::datagram
