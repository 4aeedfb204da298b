#include "engine/mutation.hpp"

namespace via::engine {

#if defined(VIA_MUTATIONS)
Mutation present_mutation = Mutation::none;
#endif

const char* to_string(Mutation mutation) {
    // As the enum has them. That of datagram has the same shape and nothing else in common.
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
                                     "reach_beyond_window",
                                     "write_past_window_end",
                                     "repeat_what_is_gone",
                                     "take_broken_message",
                                     "lose_silently",
                                     "send_small_past_reads",
                                     "send_small_without_credit",
                                     "send_small_too_little",
                                     "send_small_unpublished",
                                     "complete_small_unheard",
                                     "swap_pieces",
                                     "send_common_without_credit",
                                     "record_common_without_end",
                                     "answer_post_unheard",
                                     "run_in_one_place",
                                     "take_common_beyond_receive",
                                     "take_common_unacknowledged",
                                     "take_inner_in_one_place",
                                     "place_run_in_one_place",
                                     "take_singly_in_one_place",
                                     "direct_without_grant",
                                     "direct_past_writes",
                                     "direct_before_answer",
                                     "direct_common_too_little",
                                     "direct_too_little",
                                     "pull_without_proof",
                                     "pull_in_one_place",
                                     "pull_past_rights",
                                     "pull_half",
                                     "overtake_what_is_pulled",
                                     "change_word_twice",
                                     "compute_answer_again",
                                     "post_common_beyond_region"};
    static_assert(sizeof names / sizeof *names == mutation_max + 1U);
    return names[static_cast<std::uint8_t>(mutation)];
}

}  // namespace via::engine
