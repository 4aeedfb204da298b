// Breaks the protocol between hosts, its keys and the engine on purpose, in one way after the
// other, and runs worlds until a checker notices, or the unit test that is about it. A checker that
// catches nothing is no checker.
//   via_mutations                    all of the table; exit code 1 if one is not caught in time
//   via_mutations NAME N [WORLDS [FIRST]]    that mutation on N seeds from FIRST, or 1, on: what is
//                                            found
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <memory>
#include <string>

#include "device/datagram/mutation.hpp"
#include "engine/mutation.hpp"
#include "relay/mutation.hpp"
#include "secure/libcrypto/libcrypto.hpp"
#include "secure/mutation.hpp"
#include "sim/world.hpp"

namespace {

namespace datagram = via::device::datagram;
namespace engine = via::engine;
namespace relay = via::relay;
namespace secure = via::secure;

using Worlds = via::sim::WorldKind;

/// One way to break something, or none.
struct Way {
    constexpr Way() = default;
    constexpr Way(datagram::Mutation mutation) : of_datagram(mutation) {}  // NOLINT(*-explicit-*)
    constexpr Way(engine::Mutation mutation) : of_engine(mutation) {}      // NOLINT(*-explicit-*)
    constexpr Way(secure::Mutation mutation) : of_secure(mutation) {}      // NOLINT(*-explicit-*)
    constexpr Way(relay::Mutation mutation) : of_relay(mutation) {}        // NOLINT(*-explicit-*)

    void begin() const {
        datagram::present_mutation = of_datagram;
        engine::present_mutation = of_engine;
        secure::present_mutation = of_secure;
        relay::present_mutation = of_relay;
    }
    const char* name() const {
        if (of_engine != engine::Mutation::none) return to_string(of_engine);
        if (of_secure != secure::Mutation::none) return to_string(of_secure);
        if (of_relay != relay::Mutation::none) return to_string(of_relay);
        return to_string(of_datagram);
    }
    std::string full_name() const {
        return std::string(of_engine != engine::Mutation::none   ? "engine: "
                           : of_secure != secure::Mutation::none ? "secure: "
                           : of_relay != relay::Mutation::none   ? "relay: "
                                                                 : "datagram: ") +
               name();
    }

    datagram::Mutation of_datagram = datagram::Mutation::none;
    engine::Mutation of_engine = engine::Mutation::none;
    secure::Mutation of_secure = secure::Mutation::none;
    relay::Mutation of_relay = relay::Mutation::none;
};

struct Broken {
    Way way;
    std::uint32_t seeds;  ///< of worlds: within so many
    const char* checker;  ///< that one notices
    Worlds worlds = Worlds::datagram;
    std::uint64_t first = 1;  ///< seed
};

// Not here, because something else stands behind them that does the same, so that no world can
// tell: skip_packet_duplicate_check (frames have numbers, those of unreliable VIs their messages;
// carrying_test.cpp), double_report (the engine counts each frame once; sent_packets_test.cpp). Nor
// because they take a sender that leaves, or a region that goes, between two pieces of a message
// that is pulled, or a window that ends between two frames, which worlds seldom have:
// pull_without_proof, pull_past_rights (pull_test.cpp), write_past_window_end (window_test.cpp).
constexpr Broken table[] = {
    {datagram::Mutation::skip_frame_duplicate_check, 20, "state"},
    {datagram::Mutation::ack_what_was_dropped, 80, "liveness"},
    {datagram::Mutation::forget_checksum, 300, "state"},
    {datagram::Mutation::reuse_packet_number, 30, "liveness"},
    {datagram::Mutation::ignore_order, 20, "state"},
    {datagram::Mutation::never_report_loss, 20, "liveness"},
    {datagram::Mutation::ack_without_gaps, 30, "liveness"},
    {datagram::Mutation::skip_attempt_check, 120, "state"},
    {datagram::Mutation::skip_cookie_check, 10, "state"},
    {datagram::Mutation::forget_probe_timeout, 120, "liveness"},
    // One world in 25 finds it, by one checker or another.
    {datagram::Mutation::end_at_the_last_part, 60, "bytes", Worlds::narrow, 1140},
    // Both ends have to stand still, or the other one gives up first: seldom.
    {datagram::Mutation::give_up_unasked, 60, "state", Worlds::datagram, 260},
    {datagram::Mutation::skip_address_check, 20, "state", Worlds::hostile},
    {datagram::Mutation::accept_any_connection, 20, "state", Worlds::hostile},
    {datagram::Mutation::ignore_window, 400, "state", Worlds::calm},
    {engine::Mutation::complete_before_acknowledgement, 60, "exactly_once", Worlds::datagram},
    {engine::Mutation::acknowledge_before_placing, 20, "completion"},
    {engine::Mutation::ignore_receive_capacity, 20, "assertion"},
    {engine::Mutation::place_beyond_segment, 20, "bytes"},
    {engine::Mutation::forget_given_up, 60, "state"},
    {engine::Mutation::take_former_connection, 60, "exactly_once", Worlds::lossless, 20'000'050},
    {engine::Mutation::lose_refusal, 60, "order"},
    {engine::Mutation::ignore_fence, 20, "order"},
    {engine::Mutation::enter_completion_twice, 10, "state"},
    // One world in 400.
    {engine::Mutation::skip_tag_check, 80, "protection", Worlds::lossless, 60},
    {engine::Mutation::skip_reply_check, 60, "bytes", Worlds::lossless},
    {engine::Mutation::repeat_what_is_gone, 400, "bytes"},
    {engine::Mutation::reach_beyond_window, 20, "bytes", Worlds::lossless, 70'000'120},
    {engine::Mutation::take_broken_message, 40, "state"},
    {engine::Mutation::lose_silently, 40, "state"},
    // The fast paths, in worlds that take them.
    {engine::Mutation::send_small_past_reads, 40, "completion", Worlds::lossless, 20'000'306},
    {engine::Mutation::send_small_without_credit, 40, "state", Worlds::lossless, 20'000'306},
    {engine::Mutation::send_small_too_little, 40, "bytes", Worlds::lossless, 20'000'000},
    {engine::Mutation::send_small_unpublished, 20, "assertion", Worlds::lossless, 20'000'000},
    {engine::Mutation::complete_small_unheard, 40, "state", Worlds::lossless, 20'000'000},
    {engine::Mutation::swap_pieces, 60, "bytes", Worlds::lossless, 20'000'000},
    {engine::Mutation::send_common_without_credit, 60, "state", Worlds::lossless, 20'000'193},
    {engine::Mutation::record_common_without_end, 40, "liveness", Worlds::datagram, 20'000'018},
    {engine::Mutation::answer_post_unheard, 20, "liveness", Worlds::lossless, 20'000'089},
    {engine::Mutation::run_in_one_place, 40, "state", Worlds::datagram, 20'000'198},
    {engine::Mutation::take_common_beyond_receive, 60, "bytes", Worlds::lossless, 20'000'617},
    {engine::Mutation::take_common_unacknowledged, 60, "liveness", Worlds::lossless, 20'000'276},
    {engine::Mutation::take_inner_in_one_place, 20, "state", Worlds::lossless, 20'000'089},
    {engine::Mutation::place_run_in_one_place, 40, "bytes", Worlds::datagram, 20'000'162},
    {engine::Mutation::take_singly_in_one_place, 60, "state", Worlds::datagram, 20'000'189},
    {engine::Mutation::direct_without_grant, 40, "bytes", Worlds::lossless, 30'000'000},
    {engine::Mutation::direct_past_writes, 40, "order", Worlds::lossless, 30'000'000},
    {engine::Mutation::direct_before_answer, 60, "order", Worlds::lossless, 30'000'020},
    {engine::Mutation::direct_common_too_little, 40, "exactly_once", Worlds::lossless, 30'000'000},
    {engine::Mutation::direct_too_little, 40, "bytes", Worlds::lossless, 30'000'000},
    {engine::Mutation::pull_in_one_place, 40, "bytes", Worlds::lossless, 40'000'000},
    {engine::Mutation::pull_half, 60, "completion", Worlds::lossless, 40'000'000},
    {engine::Mutation::overtake_what_is_pulled, 20, "state", Worlds::lossless, 40'000'000},
    {engine::Mutation::post_common_beyond_region, 40, "completion", Worlds::lossless, 40'000'000},
    {engine::Mutation::change_word_twice, 20, "atomics", Worlds::lossless, 50'000'000},
    {engine::Mutation::compute_answer_again, 40, "atomics", Worlds::datagram, 50'000'000},
    {datagram::Mutation::take_common_out_of_order, 40, "state", Worlds::datagram, 20'000'018},
    {datagram::Mutation::take_run_uncounted, 40, "state", Worlds::datagram, 20'000'080},
    {datagram::Mutation::part_run_in_one_place, 40, "state", Worlds::datagram, 20'000'206},
    {datagram::Mutation::send_lone_unrecorded, 40, "state", Worlds::datagram, 20'000'024},
    // Relays, among strangers who forge envelopes; and where one relay always lives.
    {relay::Mutation::pass_on_for_anyone, 40, "state", Worlds::relays, 40},
    {relay::Mutation::stay_on_dead_way, 40, "state", Worlds::relays},
    {datagram::Mutation::wait_without_end, 40, "liveness", Worlds::relays},
    // Several networks, of which one always works or none.
    {datagram::Mutation::end_with_one_rail, 40, "state", Worlds::rails},
    {datagram::Mutation::stay_mute, 40, "state", Worlds::rails, 180},
    {datagram::Mutation::keep_what_was_left, 40, "liveness", Worlds::rails},
    // Keys, in worlds of strangers who try everything.
    {secure::Mutation::forget_replay_window, 10, "state", Worlds::sealed},
    {secure::Mutation::skip_tag_check, 10, "state", Worlds::sealed},
    {secure::Mutation::skip_header_check, 10, "state", Worlds::sealed},
    {secure::Mutation::reuse_number, 10, "state", Worlds::sealed},
    {secure::Mutation::keep_ephemeral, 10, "state", Worlds::sealed},
    {secure::Mutation::take_bare_packets, 10, "state", Worlds::sealed},
};

/// What no world can tell, since both ends do the same, or a stranger who gets that far finds
/// another check behind it: the unit test that is about it fails.
struct BrokenTest {
    Way way;
    const char* test;
};
constexpr BrokenTest tests[] = {
    {datagram::Mutation::join_any_instance, "Joining.TakesBothNamesOfThePath"},
    {secure::Mutation::keep_key, "PacketKeys.each_key_is_another_one"},
    {secure::Mutation::change_key_early, "PacketKeys.each_key_is_another_one"},
    {secure::Mutation::advance_unproved, "PacketKeys.what_is_forged_changes_nothing"},
    {secure::Mutation::expect_any_key, "PacketKeys.what_is_forged_changes_nothing"},
    {secure::Mutation::forgive_forgeries, "PacketKeys.too_many_forged_ones_wear_a_key_out"},
    {secure::Mutation::begin_numbers_anew, "PacketKeys.numbers_end_and_do_not_begin_anew"},
    {secure::Mutation::keep_old_key, "PacketKeys.a_key_that_is_old_is_followed_by_another_one"},
    {secure::Mutation::age_unheard,
     "SealedRails.ACableThatIsMendedAfterManyLivesOfAKeyIsUsedAgain"},
    {secure::Mutation::skip_prologue, "Handshake.ends_that_differ_do_not_meet"},
    {secure::Mutation::forget_transcript, "cacophony/Vectors.*"},
    {secure::Mutation::skip_shared_key, "Handshake.ends_that_differ_do_not_meet"},
    {secure::Mutation::skip_own_agreement, "cacophony/Vectors.*"},
    {secure::Mutation::accept_any_point, "Handshake.a_public_key_that_nobody_has_is_refused"},
    {secure::Mutation::keep_after_fault, "Handshake.any_bit_changed_is_a_fault_and_harms_nothing"},
    {secure::Mutation::keep_handshake_keys, "Handshake.what_made_the_keys_is_overwritten"},
    {secure::Mutation::take_prepared_for_any,
     "Handshake.a_key_prepared_beforehand_changes_no_byte"},
    {secure::Mutation::reuse_ephemeral, "Secure.each_handshake_has_keys_of_its_own"},
    {secure::Mutation::skip_cookie, "Secure.a_flood_of_hellos_costs_no_handshake_and_no_memory"},
    {secure::Mutation::skip_admission, "Secure.a_flood_of_hellos_costs_no_handshake_and_no_memory"},
    {secure::Mutation::skip_handshakes_limit, "SecureHosts.handshakes_of_a_second_are_limited"},
    {secure::Mutation::skip_pinned_key,
     "SecureHosts.a_host_with_another_key_than_its_own_is_refused"},
    {secure::Mutation::skip_known_host,
     "SecureHosts.a_host_that_is_not_known_is_refused_without_a_multiplication"},
    {secure::Mutation::skip_expiry, "SecureHosts.keys_that_have_expired_are_not_good"},
    {secure::Mutation::skip_pinned_expiry, "SecureHosts.keys_that_have_expired_are_not_good"},
    {secure::Mutation::ask_with_expired_key, "SecureHosts.keys_that_have_expired_are_not_good"},
    {secure::Mutation::answer_old_hello, "Secure.what_is_repeated_counts_once"},
    {secure::Mutation::join_any_path, "SealedRails.AnotherHostThatIsTrustedJoinsNobodysPath"},
    {secure::Mutation::keep_pending, "Secure.handshakes_that_lead_to_no_path_are_forgotten"},
    {secure::Mutation::open_sealed_paths,
     "SecureIfPossible.bare_packets_do_nothing_to_a_sealed_path"},
    {secure::Mutation::open_to_known_host,
     "SecureIfPossible.a_host_whose_key_is_known_is_not_spoken_to_in_the_open"},
    {secure::Mutation::take_bare_hello, "Secure.a_bare_hello_with_a_good_cookie_makes_no_path"},
    {secure::Mutation::skip_answers_limit,
     "Secure.a_flood_of_hellos_costs_no_handshake_and_no_memory"},
    {secure::Mutation::believe_refusal,
     "Secure.forged_refusals_and_welcomes_keep_no_path_from_being_made"},
    {secure::Mutation::take_welcome_from_any,
     "Secure.forged_refusals_and_welcomes_keep_no_path_from_being_made"},
};

std::unique_ptr<secure::Crypto> make_crypto() { return secure::load_libcrypto().value(); }

/// What the world's checkers say; empty: nothing.
std::string verdict(std::uint64_t seed, Worlds worlds) {
    const auto parameters = via::sim::draw_parameters(seed, worlds);
    return via::sim::World(parameters, false, {}, make_crypto).run().violation;
}

/// The same in a process of its own, which a broken protocol may abort.
std::string verdict_apart(std::uint64_t seed, Worlds worlds) {
    std::array<int, 2> ends{};
    if (pipe(ends.data()) != 0) std::abort();
    const pid_t child = fork();
    if (child == 0) {
        std::fclose(stderr);
        const std::string found = verdict(seed, worlds);
        const ssize_t written = write(ends[1], found.data(), found.size());
        _exit(written == static_cast<ssize_t>(found.size()) ? 0 : 1);
    }
    close(ends[1]);
    std::array<char, 1000> text{};
    std::string found;
    for (ssize_t count = 0; (count = read(ends[0], text.data(), text.size())) > 0;)
        found.append(text.data(), static_cast<std::size_t>(count));
    close(ends[0]);
    int status = 0;
    waitpid(child, &status, 0);
    if (WIFSIGNALED(status))
        return WTERMSIG(status) == SIGABRT ? "assertion: the engine noticed" : "crash: by a signal";
    return found;
}

bool is_caught(const Broken& broken) {
    broken.way.begin();
    const std::string name = std::string(broken.checker) + ':';
    for (std::uint32_t n = 0; n < broken.seeds; ++n) {
        const std::string found = verdict_apart(broken.first + n, broken.worlds);
        if (!found.starts_with(name)) continue;
        std::printf("%-40s caught by world %3u of %3u: %s\n", broken.way.full_name().c_str(), n + 1,
                    broken.seeds, found.c_str());
        return true;
    }
    std::printf("%-40s NOT CAUGHT by %s within %u worlds\n", broken.way.full_name().c_str(),
                broken.checker, broken.seeds);
    return false;
}

/// Does the test pass? What it says goes nowhere.
bool passes(const char* program, Way way, const char* test) {
    std::fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
        const std::string filter = std::string("--gtest_filter=") + test;
        setenv("VIA_MUTATION", way.name(), 1);
        if (std::freopen("/dev/null", "w", stdout) != nullptr)
            execl(program, program, filter.c_str(), nullptr);
        _exit(2);
    }
    int status = 0;
    waitpid(child, &status, 0);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 2) {
        std::printf("%s cannot be run\n", program);
        std::exit(2);
    }
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/// The test fails with the mutation, and passes without.
bool is_caught(const char* program, const BrokenTest& broken) {
    const bool is_good = passes(program, {}, broken.test);
    const bool is_found = !passes(program, broken.way, broken.test);
    const char* const verdict = !is_good ? "FAILS ANYHOW" : is_found ? "caught" : "NOT CAUGHT";
    std::printf("%-40s %s by test %s\n", broken.way.full_name().c_str(), verdict, broken.test);
    return is_good && is_found;
}

/// Without a mutation the same worlds are good.
bool is_good(Worlds worlds, std::uint64_t first) {
    Way().begin();
    for (std::uint64_t seed = first; seed < first + 40; ++seed) {
        const std::string found = verdict_apart(seed, worlds);
        if (found.empty()) continue;
        std::printf("none: %s world %llu: %s\n",
                    via::sim::world_kind_names[static_cast<std::uint8_t>(worlds)],
                    static_cast<unsigned long long>(seed), found.c_str());
        return false;
    }
    return true;
}

/// The mutation of that name, of any module; "none": none.
Way way_of(const std::string& name) {
    for (std::uint8_t n = 0; n <= datagram::mutation_max; ++n)
        if (const auto mutation = static_cast<datagram::Mutation>(n); name == to_string(mutation))
            return mutation;
    for (std::uint8_t n = 0; n <= engine::mutation_max; ++n)
        if (const auto mutation = static_cast<engine::Mutation>(n); name == to_string(mutation))
            return mutation;
    for (std::uint8_t n = 0; n <= secure::mutation_max; ++n)
        if (const auto mutation = static_cast<secure::Mutation>(n); name == to_string(mutation))
            return mutation;
    for (std::uint8_t n = 0; n <= relay::mutation_max; ++n)
        if (const auto mutation = static_cast<relay::Mutation>(n); name == to_string(mutation))
            return mutation;
    std::printf("no mutation %s\n", name.c_str());
    std::exit(2);
}

Worlds worlds_of(const std::string& name) {
    if (const auto worlds = via::sim::world_kind_of(name)) return *worlds;
    std::printf("no worlds %s\n", name.c_str());
    std::exit(2);
}

}  // namespace

int main(int argc, char** argv) {
    if (argc >= 3) {
        way_of(argv[1]).begin();
        const std::uint64_t seeds = std::strtoull(argv[2], nullptr, 10);
        const Worlds worlds = argc > 3 ? worlds_of(argv[3]) : Worlds::datagram;
        const std::uint64_t first = argc > 4 ? std::strtoull(argv[4], nullptr, 10) : 1;
        for (std::uint64_t seed = first; seed < first + seeds; ++seed)
            if (const std::string found = verdict_apart(seed, worlds); !found.empty())
                std::printf("%llu %s\n", static_cast<unsigned long long>(seed), found.c_str());
        return 0;
    }
    bool good = true;
    for (const char* name : via::sim::world_kind_names) good = is_good(worlds_of(name), 1) && good;
    good = is_good(Worlds::lossless, 20'000'000) && good;
    good = is_good(Worlds::lossless, 30'000'000) && good;
    good = is_good(Worlds::lossless, 40'000'000) && good;
    good = is_good(Worlds::lossless, 50'000'000) && good;
    good = is_good(Worlds::datagram, 50'000'000) && good;
    for (const Broken& broken : table) good = is_caught(broken) && good;
    const std::string program = std::string(argv[0]) + "_tests";
    for (const BrokenTest& broken : tests) good = is_caught(program.c_str(), broken) && good;
    return good ? 0 : 1;
}
