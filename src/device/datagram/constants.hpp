// Every number of the protocol between hosts that is not a field's bound (docs/design/protocol.md).
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/time.hpp"

namespace via::device::datagram {

// Meeting
constexpr Duration try_first = milliseconds(20);
/// Short, so that a patience of some seconds outlasts several bursts of loss.
constexpr Duration try_longest = milliseconds(250);
/// Queries in a row for which the host says that nobody is at its port, or ours that there is no
/// way, until that is believed.
constexpr int refusals_max = 4;
/// Kernels say so to a host a few times and then once a second. So after the first refusal so long
/// a silence is believed, too, and so many times as long as the refusal took; and for a while after
/// it without one. That is as long as the queries above take.
constexpr Duration refused_least = milliseconds(140);
constexpr std::int64_t refused_delays = 4;
constexpr Duration refused_memory = seconds(5);
constexpr Duration cookie_life = seconds(10);
/// Instances whose last attempt is remembered after their path has ended.
constexpr std::size_t attempts_kept = 1024;
/// Answers a second to packets that belong to nothing here: close and unsupported.
constexpr std::uint32_t stranger_answers_max = 100;
/// Queries a second that are looked up, each by some system calls: of addresses that have no path
/// to us, and of those that have one. So many may come at once: a crowd of clients, and a program
/// that connects thousands of VIs. Who gets no answer asks again.
constexpr std::uint32_t strangers_queries = 2000;
constexpr std::uint32_t strangers_queries_at_once = 2000;
constexpr std::uint32_t peers_queries = 8000;
constexpr std::uint32_t peers_queries_at_once = 8000;
/// Answers a second to hellos that prove no address: each is a datagram that the kernel carries in
/// our time, which takes longer than all else that such a hello costs. Whose address floods us has
/// no more of them than it leaves; who gets none says hello again.
constexpr std::uint32_t strangers_hellos = 10'000;
constexpr std::uint32_t strangers_hellos_at_once = 2000;
/// Newcomers a second for whom, when all paths are in use, one is looked for that gives way: each
/// by a look at all of them.
constexpr std::uint32_t ways_made = 500;
constexpr std::uint32_t ways_made_at_once = 100;

/// How often a peer is asked for its other networks: an older one answers nothing.
constexpr std::uint32_t rail_questions_max = 12;
/// From one hello to the next in a network by which nobody answers.
constexpr Duration rail_try_longest = seconds(1);
/// The same where somebody says no, or no key is known: our user is told each time.
constexpr Duration rail_refused_wait = seconds(60);

/// After a packet of a path of which nothing came no key of it changes for its age: who hears
/// nothing for long would not expect those that follow.
constexpr Duration doubt_memory = seconds(5);

// Acknowledging
constexpr Duration ack_delay_max = milliseconds(1);
constexpr std::uint32_t ack_room_divisor = 8;
/// From what came on, until it is acknowledged without an answer. A program that waits for its own
/// message to be done looks once or twice between an answer and what he says to it.
constexpr std::uint64_t looks_for_an_answer = 3;
/// The same behind the frame of a message that goes on: nobody waits for half a message, and what
/// follows is being filled. Unless it was not there in time when it was last awaited: then its
/// sender may be the one who waits, for room.
constexpr std::uint64_t looks_for_the_rest = 24;
/// After so long one empty poll is enough: who shares his processor looks seldom, and his peers
/// may be waiting meanwhile. Longer than that many looks take of one who does nothing else.
constexpr Duration looks_take_max = microseconds(20);
/// Who did not look for longer was away: what he then finds may have waited for him that long. Far
/// less than what is taken for a queue.
constexpr Duration absence_least = microseconds(50);
/// Packets in which who leaves says what arrived: any may be lost, and nobody says it again.
constexpr int last_acks = 3;

// Loss: RFC 9002, 6.1 and 6.2
constexpr std::uint32_t reordering_least = 3;
constexpr std::uint32_t reordering_greatest = 64;
constexpr Duration loss_delay_least = microseconds(50);  ///< what a busy host is late by anyway
constexpr Duration deviation_least = microseconds(100);
/// Doubled no further: short for the same reason as try_longest. A longer round trip is waited for.
constexpr Duration probe_timeout_max = try_longest;
/// What a peer says of its own delay, or of when a cookie left, counts up to that.
constexpr Duration believed_delay_max = seconds(1);
constexpr std::uint32_t probe_packets = 2;  ///< that may pass the window after a timeout
/// How far behind the largest acknowledged number a lost packet may still turn out to have come.
constexpr std::uint64_t spurious_distance_max = 256;
/// Packets remembered besides those in flight. Honest peers leave some thousands: what they do not
/// acknowledge is lost by what they do.
constexpr std::uint32_t packets_remembered_max = 32768;
/// The same of a path that never carried a connection: anybody has many of these.
constexpr std::uint32_t packets_remembered_least = 256;
/// What one takes, with the number of a frame in it.
constexpr std::size_t packet_cost = 48;

// Frames
/// Under way at once, and so how far ahead of one that was lost another may come: with packets of
/// 1500 bytes 23 MB, which is 3.6 Gbit/s over 50 ms. Costs memory only where it is used.
constexpr std::uint32_t frames_ahead_max = 16384;
/// So far ahead for nothing; each further one for a frame that is held.
constexpr std::uint32_t frames_ahead_least = 1024;
/// Under way in any case, however much the peer's other paths have.
constexpr std::uint32_t frames_under_way_least = 256;
/// What is known of one that is under way takes: here, and by the NIC above the device.
constexpr std::size_t frame_cost = 128;
/// Places for frames that came early, of which nobody's share is asked: 1.5 KB.
constexpr std::uint32_t frames_held_least = 64;

// Window
constexpr std::uint32_t window_packets_first = 10;  ///< RFC 6928
constexpr std::uint32_t window_bytes_first = 14720;
/// Where meeting took less than that, the hosts are of one network, and its switches have room for
/// a burst.
constexpr Duration near_least = milliseconds(1);
constexpr std::uint64_t window_bytes_first_near = 64 * 1024;
constexpr std::uint32_t window_packets_least = 2;
/// What delay alone leaves; with more, eight flows keep a queue for ever.
constexpr std::uint32_t window_packets_delayed = 4;
/// After each so many round trips without a queue the window grows faster.
constexpr std::uint32_t growth_rounds = 8;
constexpr std::uint64_t window_bytes_max = 1U << 30;
/// So long a queue in the socket of a host that just keeps up is none of the way's.
constexpr Duration queue_target_least = microseconds(250);
constexpr std::int64_t queue_target_divisor = 4;  ///< of the least round trip
constexpr Duration round_trip_memory = seconds(10);
/// More than 2 % lost, counted over at least so many packets: fewer say nothing about a rate.
constexpr std::uint32_t loss_percent = 2;
constexpr std::uint32_t loss_packets_counted = 256;
constexpr std::uint32_t timeouts_to_collapse = 3;
/// A small datagram takes this much of the peer's receive room: a socket counts memory, not bytes.
constexpr std::uint32_t room_taken_least = 512;
constexpr std::uint32_t room_of(std::uint32_t length) {
    return length < room_taken_least ? room_taken_least : length;
}

// Filling a packet
/// Bytes of a payload that is worth being sent from where it lies.
constexpr std::uint32_t reference_least = 512;
/// Bytes that leave before the turn ends: as many as one call of the kernel takes.
constexpr std::uint32_t burst_bytes = 65000;
/// So many small messages between two looks, or packets without an answer, are a stream.
constexpr std::uint32_t in_a_row_least = 4;
constexpr std::uint32_t held_bytes_max = 1400;
constexpr std::size_t rest_packets_max = 16;
constexpr Duration quick_succession = microseconds(20);

// Pace
constexpr std::uint64_t burst_bytes_max = 64 * 1024;
/// Where more than that leaves in so short a time, so much may leave at once.
constexpr Duration burst_time = microseconds(20);
constexpr std::uint64_t burst_of_fast_way_max = 256 * 1024;

// Length
constexpr std::uint32_t datagram_length_first = 1472;  ///< Ethernet's 1500 without IPv4's headers
constexpr std::uint32_t length_step_first = 64;
constexpr std::uint32_t length_step_last = 32;
constexpr std::uint32_t length_losses_max = 3;
constexpr std::uint32_t long_timeouts_max = 3;
constexpr Duration length_raise_interval = seconds(600);  ///< RFC 8899, 5.1.1

// Looking
constexpr std::uint32_t empty_polls_max = 1000;
constexpr std::uint32_t polls_left_out_max = 16;

// Silence
constexpr std::int64_t silence_parts = 3;  ///< a ping after one of them
constexpr Duration suspicion_least = milliseconds(3);
/// Timers that ran later than that: nobody ran us, and no peer could be asked.
constexpr Duration stood_still_least = milliseconds(3);
/// How long a path that is over may wait for a look at what was received while nobody looked.
constexpr Duration last_look_max = milliseconds(100);
constexpr std::int64_t suspicion_timeouts = 3;
/// Of one frame, while others arrive: bad luck loses fewer within all our patience.
constexpr std::uint32_t stuck_losses_least = 16;

}  // namespace via::device::datagram
