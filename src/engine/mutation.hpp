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
    repeat_what_is_gone,              ///< lost frames are filled from buffers given back
    take_broken_message,              ///< an unreliable VI does not look for gaps
};
constexpr std::uint8_t mutation_max = static_cast<std::uint8_t>(Mutation::take_broken_message);
const char* to_string(Mutation mutation);

#if defined(VIA_MUTATIONS)
extern Mutation present_mutation;
inline bool mutated(Mutation mutation) { return present_mutation == mutation; }
/// Short cuts are left out: they do not know the ways to break what they shorten.
inline bool mutating() { return present_mutation != Mutation::none; }
#else
constexpr bool mutating() { return false; }
constexpr bool mutated(Mutation /*mutation*/) { return false; }
#endif

}  // namespace via::engine
