// Ways to break the protocol on purpose, for the proof that the checkers notice. In every build but
// one made for that (VIA_MUTATIONS), mutated() is a constant and costs nothing.
#pragma once

#include <cstdint>

namespace via::device::datagram {

enum class Mutation : std::uint8_t {
    none,
    skip_packet_duplicate_check,  ///< a packet number seen before is taken again
    skip_frame_duplicate_check,   ///< a frame handed up before is handed up again
    ack_what_was_dropped,         ///< a packet without room counts as arrived
    forget_checksum,              ///< corrupt packets are taken
    reuse_packet_number,          ///< after a loss, numbers are used again
    ignore_order,                 ///< frames are handed up as they come
    never_report_loss,            ///< lost frames are not emitted again
    ack_without_gaps,             ///< everything up to the largest number is acknowledged
    skip_attempt_check,           ///< an old hello makes a path again
    skip_cookie_check,            ///< a hello needs no proof of its address
    accept_any_connection,        ///< a packet for an unknown path is taken by one of its address
    forget_probe_timeout,         ///< nothing is asked while something is under way
    ignore_window,                ///< neither window nor receive room bounds what is sent
    skip_address_check,           ///< a path's packet is taken from anywhere
    double_report,                ///< an acknowledged frame is reported again
    wait_without_end,             ///< nobody is silent for too long
    give_up_unasked,              ///< who stood still counts that as its peers' silence
    end_at_the_last_part,         ///< with that a frame is whole, whatever parts of it are missing
    end_with_one_rail,            ///< what goes over several networks is over when one is
    stay_mute,                    ///< a rail that was silent once counts as silent for ever
    keep_what_was_left,           ///< what was under way on a rail that is left is not sent again
    join_any_instance,            ///< who has seen a path's identifier may add a rail to it
    // Of the fast path, which stays on with these.
    take_common_out_of_order,  ///< a common packet's frame is handed up whichever it is
    take_run_uncounted,        ///< of the frames behind the first of a run none had its turn
    part_run_in_one_place,     ///< what is left of a run begins at its beginning
    send_lone_unrecorded,      ///< a packet that left alone is not known to be under way
};
constexpr std::uint8_t mutation_max = static_cast<std::uint8_t>(Mutation::send_lone_unrecorded);
const char* to_string(Mutation mutation);

#if defined(VIA_MUTATIONS)
extern Mutation present_mutation;
inline bool mutated(Mutation mutation) { return present_mutation == mutation; }
/// The general way is broken. The fast path is left out: it does not know the ways to break what it
/// shortens.
inline bool mutating() {
    return present_mutation != Mutation::none &&
           present_mutation < Mutation::take_common_out_of_order;
}
#else
constexpr bool mutating() { return false; }
constexpr bool mutated(Mutation /*mutation*/) { return false; }
#endif

}  // namespace via::device::datagram
