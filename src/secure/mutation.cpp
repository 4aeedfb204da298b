#include "secure/mutation.hpp"

namespace via::secure {

#if defined(VIA_MUTATIONS)
Mutation present_mutation = Mutation::none;
#endif

const char* to_string(Mutation mutation) {
    // As the enum has them. Those of others have the same shape and nothing else in common.
    constexpr const char* names[] = {"none",
                                     "forget_replay_window",
                                     "skip_tag_check",
                                     "skip_header_check",
                                     "reuse_number",
                                     "keep_key",
                                     "change_key_early",
                                     "advance_unproved",
                                     "expect_any_key",
                                     "forgive_forgeries",
                                     "begin_numbers_anew",
                                     "keep_old_key",
                                     "age_unheard",
                                     "skip_prologue",
                                     "forget_transcript",
                                     "skip_shared_key",
                                     "skip_own_agreement",
                                     "accept_any_point",
                                     "keep_after_fault",
                                     "keep_ephemeral",
                                     "keep_handshake_keys",
                                     "take_prepared_for_any",
                                     "reuse_ephemeral",
                                     "skip_cookie",
                                     "skip_admission",
                                     "skip_handshakes_limit",
                                     "skip_pinned_key",
                                     "skip_known_host",
                                     "skip_expiry",
                                     "skip_pinned_expiry",
                                     "ask_with_expired_key",
                                     "answer_old_hello",
                                     "join_any_path",
                                     "keep_pending",
                                     "take_bare_packets",
                                     "open_sealed_paths",
                                     "open_to_known_host",
                                     "take_bare_hello",
                                     "skip_answers_limit",
                                     "believe_refusal",
                                     "take_welcome_from_any"};
    static_assert(sizeof names / sizeof *names == mutation_max + 1U);
    return names[static_cast<std::uint8_t>(mutation)];
}

}  // namespace via::secure
