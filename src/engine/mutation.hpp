// Ways to break the engine on purpose, for the proof that the checkers notice. In every build but
// one made for that (VIA_MUTATIONS), mutated() is a constant and costs nothing.
#pragma once

#include <cstdint>

namespace via::engine {

enum class Mutation : std::uint8_t {
    none,
    complete_before_acknowledgement,  ///< reliable delivery: done when given to the device
    acknowledge_before_placing,       ///< reliable reception: at a message's first frame
    ignore_receive_capacity,          ///< a message goes on behind its receive's segments
    place_beyond_segment,             ///< a byte more than a segment has
    forget_given_up,                  ///< a skip does not tell of which connection it is
    take_former_connection,           ///< frames of an earlier connection of the VI are taken
    lose_refusal,                     ///< a message that cannot be taken is dropped in silence
    ignore_fence,                     ///< what waits for RDMA reads does not
    enter_completion_twice,           ///< in its completion queue
    skip_tag_check,                   ///< RDMA writes go to regions of any tag
    skip_reply_check,                 ///< a region is read though it went meanwhile
    reach_beyond_window,              ///< all of its region is there by a window
    write_past_window_end,            ///< a message that was begun goes on when its window ended
    repeat_what_is_gone,              ///< lost frames are filled from buffers given back
    take_broken_message,              ///< an unreliable VI does not look for gaps
    lose_silently,                    ///< nobody is told of a connection that is lost
    // Of the fast path, which stays on with these.
    send_small_past_reads,       ///< a message in one call is done before an RDMA read before it
    send_small_without_credit,   ///< it uses none up
    send_small_too_little,       ///< its last byte stays behind
    send_small_unpublished,      ///< notify() does not follow it
    complete_small_unheard,      ///< its completion queue hears nothing
    swap_pieces,                 ///< the second piece of a message goes first
    send_common_without_credit,  ///< as send_small_without_credit
    record_common_without_end,   ///< the frame's delivery completes nothing
    answer_post_unheard,         ///< for all but the fast path
    run_in_one_place,            ///< frames of a run say that they are all at its beginning
    take_common_beyond_receive,  ///< a message goes on behind its receive
    take_common_unacknowledged,  ///< reliable reception: nobody says that it was placed
    take_inner_in_one_place,     ///< the next frame of a message is expected where this one was
    place_run_in_one_place,      ///< the first frame of a run stands for all
    take_singly_in_one_place,    ///< the same where they are taken one by one
    // Of RDMA straight to segments of peers.
    direct_without_grant,      ///< though the peer took the right back
    direct_past_writes,        ///< before what was written by frames is placed
    direct_before_answer,      ///< while it is asked for another segment
    direct_common_too_little,  ///< the last byte stays behind, of the common write
    direct_too_little,         ///< of all others
    // Of messages that are pulled from their senders' memory.
    pull_without_proof,       ///< the sender may be another one by now, or have its bytes back
    pull_in_one_place,        ///< each piece is taken from where the message begins
    pull_past_rights,         ///< the region is not asked for again for each piece
    pull_half,                ///< what could not be pulled counts as there
    overtake_what_is_pulled,  ///< the next message does not wait for it
    // Of atomic operations.
    change_word_twice,     ///< and not once
    compute_answer_again,  ///< where it was lost
    // Of posts.
    post_common_beyond_region,  ///< the common descriptor's segment may lie beside its region
};
constexpr std::uint8_t mutation_max =
    static_cast<std::uint8_t>(Mutation::post_common_beyond_region);
const char* to_string(Mutation mutation);

#if defined(VIA_MUTATIONS)
extern Mutation present_mutation;
inline bool mutated(Mutation mutation) { return present_mutation == mutation; }
/// The general way is broken. The fast path is left out: it does not know the ways to break what
/// it shortens.
inline bool mutating() {
    return present_mutation != Mutation::none && present_mutation < Mutation::send_small_past_reads;
}
#else
constexpr bool mutating() { return false; }
constexpr bool mutated(Mutation /*mutation*/) { return false; }
#endif

}  // namespace via::engine
