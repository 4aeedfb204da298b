// A path: what this end knows of one peer instance, and how both stand with each other.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>

#include "base/address.hpp"
#include "base/list.hpp"
#include "device/datagram/ack_policy.hpp"
#include "device/datagram/constants.hpp"
#include "device/datagram/frame_order.hpp"
#include "device/datagram/frames_under_way.hpp"
#include "device/datagram/length_search.hpp"
#include "device/datagram/mutation.hpp"
#include "device/datagram/pacer.hpp"
#include "device/datagram/parts.hpp"
#include "device/datagram/received_numbers.hpp"
#include "device/datagram/round_trip.hpp"
#include "device/datagram/sent_packets.hpp"
#include "device/datagram/statistics.hpp"
#include "device/datagram/window.hpp"
#include "device/device.hpp"
#include "wire/packet.hpp"

namespace via::device::datagram {

struct AckLink : ListLink {};    ///< paths that owe an acknowledgement
struct WaitLink : ListLink {};   ///< paths on which somebody waits for room
struct PartsLink : ListLink {};  ///< paths that send a frame in parts

/// Of a packet with one frame.
constexpr std::uint32_t packet_length_of(std::uint32_t frame_length) {
    return wire::data_header_length + wire::frame_chunk_overhead + frame_length;
}
constexpr std::uint32_t frame_length_of(std::uint32_t packet_length) {
    return packet_length - packet_length_of(0);
}

/// With peers that say nothing.
struct Patience {
    explicit Patience(Duration with_silence)
        : silence(mutated(Mutation::wait_without_end) ? seconds(3600) : with_silence),
          question{with_silence.ns / silence_parts} {}
    Duration silence;   ///< that ends a path
    Duration question;  ///< after which its peer is asked
};

struct Path;

/// The rails of a path (docs/design/rails.md): one for each network that it goes over, the first
/// itself. Most have no other.
class Rails {
public:
    explicit Rails(Path& first) : rails_{&first} {}
    std::uint32_t count() const { return count_; }
    bool several() const { return count_ != 1; }
    bool full() const { return count_ == rails_.size(); }
    void add(Path& rail) { rails_[count_++] = &rail; }
    Path* const* begin() const { return rails_.data(); }
    Path* const* end() const { return rails_.data() + count_; }

private:
    std::array<Path*, wire::rails_max> rails_;
    std::uint32_t count_ = 1;
};

struct Path : AckLink, WaitLink, PartsLink {
    enum class Stage : std::uint8_t {
        asking,  ///< we said hello
        up,      ///
        ending,  ///< over; its down event was not taken yet
    };

    PathId id = 0;
    Stage stage = Stage::asking;
    bool announced = false;  ///< the NIC above was told that it is there
    bool asked_by_us = false;
    /// We asked for a connection over it, or accepted one: nobody else's wish ends it.
    bool carried = false;
    std::uint64_t made = 0;  ///< its place in the order of coming up

    // Who it leads to
    HostAddress peer;
    Share* share = nullptr;  ///< what it has of what all peers share; the device's
    std::size_t tables = 0;  ///< of that for `frames` and `sent`, as long as it is there
    std::uint64_t instance = 0;
    std::uint64_t ours = 0;    ///< identifier in packets to us
    std::uint64_t theirs = 0;  ///< in packets to the peer
    std::uint64_t attempt = 0;
    wire::PathOffer offer;  ///< of the peer

    // A rail has packets, acknowledgements and pace of its own. Frames are the first one's.
    Path* first = this;
    Rails rails{*this};           ///< of the first one
    std::uint64_t rail_bits = 0;  ///< what its packets' numbers begin with where frames know them
    bool is_mute = false;         ///< it would be down, if it were alone
    bool asks_for_rails = false;  ///< where else the peer is

    // While we ask
    wire::Cookie cookie;
    Time hello_sent{};
    Time next_try{};
    Time give_up{};
    Duration interval = try_first;
    std::uint32_t hellos = 0;  ///< since the cookie changed

    // Sending
    FramesUnderWay frames;
    SentPackets sent;
    RoundTrip round_trip;
    Window window;
    Pacer pacer;
    LengthSearch length;
    bool length_probe_waits = false;   ///< for transmit()
    std::uint32_t length_hint = 0;     ///< of the network; 0: none. Tried when long ones are lost
    std::uint32_t staged_packets = 0;  ///< filled, not recorded
    std::uint32_t sealed_packets = 0;  ///< of these, sealed
    std::uint64_t staged_bytes = 0;
    std::uint64_t staged_room = 0;   ///< of the peer's, that they take so far
    std::uint32_t run_end = ~0U;     ///< frame behind the last run: with it a long message goes on
    bool divided = false;            ///< the run just made is not all of its message
    std::uint32_t probe_credit = 0;  ///< packets that may pass the window
    std::uint32_t timeouts = 0;      ///< probe timeouts in a row
    std::uint32_t long_timeouts = 0;
    Time length_raised{};                  ///< when longer ones were looked for from the beginning
    std::uint64_t long_mark = 0;           ///< losses of long packets before it are counted
    std::unique_ptr<PartsUnderWay> parts;  ///< of the oldest frame, while it leaves so
    FrameOrder::Held parts_copy;           ///< that they are made of
    std::uint32_t reordering = reordering_least;
    Time reordering_since{};
    Time newest_arrived{};            ///< when the newest of those that came was sent
    Time probe_base{};                ///< the last packet that wants an answer, or the last timeout
    std::uint32_t sent_in_a_row = 0;  ///< packets that want one, but for runs, since one of these
                                      ///< left or one came that does
    Time loss_time = Time::never();
    bool held_back = false;  ///< by window or room, since the last acknowledgement
    struct Wanted {
        std::uint32_t length = 0;
        bool is_new = false;
        bool is_again = false;
        std::uint32_t number = 0;  ///< of the frame, if it is sent again
    } wanted;                      ///< what reserve() had no room for

    // Receiving
    ReceivedNumbers received;
    FrameOrder order;
    Time last_heard{};  ///< later by what we stood still since
    Time largest_came{};
    AckPolicy acks;
    std::uint32_t ready = 0;  ///< frames to be handed up

    // Doubts
    /// What all the rest waits for: the oldest frame, or the parts of it that are missing.
    struct Stuck {
        std::uint64_t what = 0;
        std::uint32_t losses = 0;  ///< of it, in a row
        Time since{};
    } stuck;
    Time waits_from{};  ///< for answers, at the earliest: later by what we stood still
    Time suspected_until = Time::never();
    Time over_since = Time::never();  ///< it would be down, but for what waits to be received
    bool replaced = false;            ///< its peer has said hello again

    PathStatistics counts;

    /// A packet that wants an acknowledgement is there, with so many bytes.
    void begin_packet(std::uint32_t bytes, std::uint32_t count = 1) {
        staged_packets += count;
        staged_bytes += std::uint64_t{count} * bytes;
        staged_room += std::uint64_t{count} * room_of(bytes);
    }
    /// It has grown to `bytes` by `more`.
    void grow_packet(std::uint32_t bytes, std::uint32_t more) {
        staged_bytes += more;
        if (bytes > room_taken_least) staged_room += std::min(more, bytes - room_taken_least);
    }

    bool owes_ack() const { return AckLink::linked(); }
    bool waited_for() const { return WaitLink::linked(); }
    std::uint32_t datagram_max() const { return length.good(); }
    std::uint32_t payload_max() const {
        return datagram_max() - wire::data_header_length - wire::frame_chunk_overhead -
               frame_header_max;
    }
    static constexpr std::uint32_t frame_header_max = 40;
    /// Its peer talks.
    void heard(Time now) {
        last_heard = now;
        suspected_until = over_since = Time::never();
        is_mute = is_mute && mutated(Mutation::stay_mute);
    }

    bool is_rail_of_another() const { return first != this; }
    bool has_other_rails() const { return first->rails.several(); }
    /// Was what left last acknowledged, or may it still be?
    bool answers() const { return stage == Stage::up && timeouts == 0 && !is_mute; }
    /// Nothing is heard by it, for all our patience or since there are doubts.
    bool is_silent(Time now, const Patience& patience) const {
        return !is_mute && (now >= suspected_until || now >= last_heard + patience.silence);
    }
    bool has_rail_that_answers() const;
    /// Of a rail: does another one answer?
    bool another_answers() const;
    /// A packet's number as frames know it.
    std::uint64_t key_of(std::uint64_t packet) const { return rail_bits | packet; }
    /// Of the longest frame that each rail in use carries.
    std::uint32_t payload_max_of_rails() const;

    /// Do window and receive room allow one more packet?
    bool window_allows(std::uint32_t packet_length) const;
    /// How many packets of that length window, receive room and pace allow besides those staged.
    std::uint64_t packets_allowed(std::uint32_t packet_length) const;
    Duration probe_timeout() const;
    Duration loss_delay() const;
    /// How long a sign of life may take once there are doubts.
    Duration doubt_timeout() const {
        return std::max(probe_timeout() * suspicion_timeouts, suspicion_least);
    }
    /// When to ask for a sign of life: some time after the last one, and the last question. The
    /// probe timeout of a peer that was late once may be longer than all patience.
    Time next_question(const Patience& patience) const;
    /// Something of the oldest frame was lost.
    void note_stuck(Time now);
    /// For so long, until now, we stood still.
    void extend_deadlines(Duration stood_still, Time now);
    /// The oldest packet was not acknowledged for all our patience, or the frame that all others
    /// wait for does not go through.
    bool has_waited_too_long(Time now, const Patience& patience);
    /// When it wants to be looked at next.
    Time deadline(Time now, const Patience& patience) const;
    PathStatistics statistics() const;

private:
    std::uint64_t oldest_waiting() const;
};

}  // namespace via::device::datagram
