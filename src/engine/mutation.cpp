#include "engine/mutation.hpp"

namespace via::engine {

#if defined(VIA_MUTATIONS)
Mutation present_mutation = Mutation::none;
#endif

const char* to_string(Mutation mutation) {
    constexpr const char* names[] = {"none",
                                     "complete_before_acknowledgement",
                                     "acknowledge_before_placing",
                                     "ignore_receive_capacity",
                                     "place_beyond_segment",
                                     "forget_given_up",
                                     "take_former_connection",
                                     "lose_refusal",
                                     "ignore_fence",
                                     "enter_completion_twice",
                                     "skip_tag_check",
                                     "skip_reply_check",
                                     "repeat_what_is_gone",
                                     "take_broken_message"};
    static_assert(sizeof names / sizeof *names == mutation_max + 1U);
    return names[static_cast<std::uint8_t>(mutation)];
}

}  // namespace via::engine
