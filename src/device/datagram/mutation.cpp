#include "device/datagram/mutation.hpp"

namespace via::device::datagram {

#if defined(VIA_MUTATIONS)
Mutation present_mutation = Mutation::none;
#endif

const char* to_string(Mutation mutation) {
    // As the enum has them. That of engine has the same shape and nothing else in common.
    constexpr const char* names[] = {"none",
                                     "skip_packet_duplicate_check",
                                     "skip_frame_duplicate_check",
                                     "ack_what_was_dropped",
                                     "forget_checksum",
                                     "reuse_packet_number",
                                     "ignore_order",
                                     "never_report_loss",
                                     "ack_without_gaps",
                                     "skip_attempt_check",
                                     "skip_cookie_check",
                                     "accept_any_connection",
                                     "forget_probe_timeout",
                                     "ignore_window",
                                     "skip_address_check",
                                     "double_report",
                                     "wait_without_end",
                                     "give_up_unasked",
                                     "end_at_the_last_part",
                                     "end_with_one_rail",
                                     "stay_mute",
                                     "keep_what_was_left",
                                     "join_any_instance",
                                     "take_common_out_of_order",
                                     "take_run_uncounted",
                                     "part_run_in_one_place",
                                     "send_lone_unrecorded"};
    static_assert(sizeof names / sizeof *names == mutation_max + 1U);
    return names[static_cast<std::uint8_t>(mutation)];
}

}  // namespace via::device::datagram
