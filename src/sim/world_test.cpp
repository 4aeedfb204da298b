#include "sim/world.hpp"

#include <gtest/gtest.h>

#include "secure/libcrypto/libcrypto.hpp"

#include <memory>
#include <string>
#include <vector>

namespace via::sim::world_test {
namespace {

Report run(std::uint64_t seed, bool frames, std::string* text = nullptr) {
    World world(draw_parameters(seed), frames);
    if (text != nullptr)
        world.trace().set_sink([text](std::string_view line) { text->append(line); });
    return world.run();
}

TEST(World, the_same_seed_gives_the_same_trace_byte_for_byte) {
    for (const std::uint64_t seed : {1ULL, 2ULL, 77ULL, 20'000'003ULL, 40'000'009ULL, ~0ULL}) {
        std::string first;
        std::string second;
        const Report one = run(seed, true, &first);
        // Other memory is at other places: addresses must not show.
        std::vector<std::unique_ptr<std::byte[]>> elsewhere;
        for (std::size_t n = 1; n < 300; ++n)
            elsewhere.push_back(std::make_unique<std::byte[]>(n * 37));
        const Report two = run(seed, true, &second);
        EXPECT_GT(first.size(), 10'000U);
        EXPECT_TRUE(first == second) << "seed " << seed;
        EXPECT_EQ(one.trace_hash, two.trace_hash);
        EXPECT_EQ(one.trace_lines, two.trace_lines);
    }
}

TEST(World, another_seed_gives_another_trace) {
    EXPECT_NE(run(1, false).trace_hash, run(2, false).trace_hash);
}

TEST(World, the_trace_hash_covers_every_line) {
    Trace one;
    Trace two;
    for (int n = 0; n < 10; ++n) {
        one.line(Time{n}, "event %d", n);
        two.line(Time{n}, "event %d", n == 5 ? 6 : n);
    }
    EXPECT_NE(one.hash(), two.hash());
    EXPECT_EQ(one.lines(), 10U);
}

TEST(World, worlds_of_many_kinds_are_good) {
    Tally sum;
    for (std::uint64_t seed = 1000; seed < 1025; ++seed) {
        const Report report = run(seed, false);
        EXPECT_TRUE(report.good()) << report.violation << "\nagain: ./dev sim --seed " << seed;
        sum.connections += report.tally.connections;
        sum.messages += report.tally.messages;
        sum.reads += report.tally.reads;
        sum.errors += report.tally.errors;
        sum.lost += report.tally.lost;
    }
    // They did something.
    EXPECT_GT(sum.connections, 100U);
    EXPECT_GT(sum.messages, 1000U);
    EXPECT_GT(sum.reads, 100U);
    EXPECT_GT(sum.errors, 50U);
    EXPECT_GT(sum.lost, 50U);
}

TEST(World, what_was_kept_stays_what_it_was) {
    // No fast paths below their first seed.
    EXPECT_FALSE(draw_parameters(19'999'999).fast_paths);
    EXPECT_EQ(draw_parameters(19'999'999).fabric.small_max, 0U);
    EXPECT_TRUE(draw_parameters(20'000'000).fast_paths);
}

TEST(World, worlds_of_fast_paths_are_good) {
    std::uint64_t messages = 0;
    std::uint32_t together = 0;
    std::uint32_t credits = 0;
    std::uint32_t small = 0;
    for (std::uint64_t seed = 20'001'000; seed < 20'001'025; ++seed) {
        const Parameters parameters = draw_parameters(seed);
        together += parameters.together_max > 1 ? 1 : 0;
        credits += parameters.credit_percent != 0 ? 1 : 0;
        small += parameters.fabric.small_max != 0 ? 1 : 0;
        const Report report = run(seed, false);
        EXPECT_TRUE(report.good()) << report.violation << "\nagain: ./dev sim --seed " << seed;
        messages += report.tally.messages;
    }
    EXPECT_GT(messages, 500U);
    // Both ways run.
    for (const std::uint32_t worlds : {together, credits, small}) {
        EXPECT_GT(worlds, 5U);
        EXPECT_LT(worlds, 25U);
    }
}

TEST(World, worlds_that_share_memory_are_good) {
    EXPECT_EQ(draw_parameters(29'999'999).share_percent, 0U) << "what was kept stays";
    std::uint64_t direct = 0;
    std::uint64_t messages = 0;
    for (std::uint64_t seed = 30'001'000; seed < 30'001'025; ++seed) {
        const Report report = run(seed, false);
        EXPECT_TRUE(report.good()) << report.violation << "\nagain: ./dev sim --seed " << seed;
        direct += report.tally.direct;
        messages += report.tally.messages;
    }
    EXPECT_GT(messages, 500U);
    EXPECT_GT(direct, 100U) << "writes and reads that went without a frame";
}

TEST(World, worlds_that_pull_messages_are_good) {
    EXPECT_FALSE(draw_parameters(39'999'999).fabric.pulls) << "what was kept stays";
    std::uint64_t pulled = 0;
    std::uint64_t messages = 0;
    for (std::uint64_t seed = 40'001'000; seed < 40'001'015; ++seed) {
        const Report report = run(seed, false);
        EXPECT_TRUE(report.good()) << report.violation << "\nagain: ./dev sim --seed " << seed;
        pulled += report.tally.pulled;
        messages += report.tally.messages;
    }
    EXPECT_GT(pulled, 20U) << "from the memory of who sent them";
    EXPECT_GT(messages, 2 * pulled) << "and others in frames";
}

std::unique_ptr<secure::Crypto> crypto() {
    auto loaded = secure::load_libcrypto();
    EXPECT_TRUE(loaded) << loaded.error();
    return std::move(*loaded);
}

Report run_sealed(std::uint64_t seed) {
    return World(draw_parameters(seed, WorldKind::sealed), false, {}, crypto).run();
}

TEST(World, worlds_with_keys_are_good_and_say_the_same_again) {
    std::uint64_t sealed = 0;
    std::uint32_t of_hosts = 0;
    for (std::uint64_t seed = 1000; seed < 1015; ++seed) {
        of_hosts += draw_parameters(seed, WorldKind::sealed).datagram.keys == KeysOf::hosts ? 1 : 0;
        const Report report = run_sealed(seed);
        EXPECT_TRUE(report.good())
            << report.violation << "\nagain: ./dev sim --medium sealed --seed " << seed;
        sealed += report.tally.sealed;
    }
    EXPECT_EQ(run_sealed(1000).trace_hash, run_sealed(1000).trace_hash);
    EXPECT_GT(sealed, 5'000U) << "packets that a key vouched for";
    EXPECT_GT(of_hosts, 2U);
    EXPECT_LT(of_hosts, 13U);
}

TEST(World, worlds_with_relays_are_good_and_say_the_same_again) {
    const auto run_relays = [](std::uint64_t seed) {
        return World(draw_parameters(seed, WorldKind::relays), false, {}, crypto).run();
    };
    Tally sum;
    std::uint32_t in_a_row = 0;
    std::uint32_t steady = 0;
    std::uint32_t with_keys = 0;
    std::size_t deaths = 0;
    for (std::uint64_t seed = 1000; seed < 1040; ++seed) {
        const DatagramWorld world = draw_parameters(seed, WorldKind::relays).datagram;
        in_a_row += world.relays.in_a_row ? 1 : 0;
        steady += world.relays.steady ? 1 : 0;
        with_keys += world.keys != KeysOf::nobody ? 1 : 0;
        deaths += world.relays.deaths.size();
        const Report report = run_relays(seed);
        EXPECT_TRUE(report.good())
            << report.violation << "\nagain: ./dev sim --medium relays --seed " << seed;
        sum.messages += report.tally.messages;
        sum.passed_on += report.tally.passed_on;
        sum.lost += report.tally.lost;
    }
    EXPECT_EQ(run_relays(1000).trace_hash, run_relays(1000).trace_hash);
    EXPECT_GT(sum.messages, 1'000U);
    EXPECT_GT(sum.passed_on, 10'000U);
    EXPECT_GT(sum.lost, 50U) << "relays that die end connections";
    EXPECT_GT(deaths, 40U);
    for (const std::uint32_t worlds : {in_a_row, steady, with_keys}) {
        EXPECT_GT(worlds, 3U);
        EXPECT_LT(worlds, 20U);
    }
}

TEST(World, worlds_with_rails_are_good_and_say_the_same_again) {
    const auto run_rails = [](std::uint64_t seed) {
        return World(draw_parameters(seed, WorldKind::rails), false, {}, crypto).run();
    };
    Tally sum;
    std::uint32_t routed = 0;
    std::uint32_t steady = 0;
    std::uint32_t with_keys = 0;
    std::size_t cuts = 0;
    for (std::uint64_t seed = 1000; seed < 1030; ++seed) {
        const DatagramWorld world = draw_parameters(seed, WorldKind::rails).datagram;
        routed += world.rails.routed ? 1 : 0;
        steady += world.rails.steady ? 1 : 0;
        with_keys += world.keys != KeysOf::nobody ? 1 : 0;
        cuts += world.weather.cuts.size();
        for (const OtherNetwork& other : world.rails.others) cuts += other.weather.cuts.size();
        const Report report = run_rails(seed);
        EXPECT_TRUE(report.good())
            << report.violation << "\nagain: ./dev sim --medium rails --seed " << seed;
        sum.messages += report.tally.messages;
        sum.by_other_rails += report.tally.by_other_rails;
        sum.lost += report.tally.lost;
    }
    EXPECT_EQ(run_rails(1000).trace_hash, run_rails(1000).trace_hash);
    EXPECT_GT(sum.messages, 1'000U);
    EXPECT_GT(sum.by_other_rails, 10'000U);
    EXPECT_GT(sum.lost, 50U) << "where all cables are cut";
    EXPECT_GT(cuts, 100U);
    for (const std::uint32_t worlds : {routed, steady, with_keys}) {
        EXPECT_GT(worlds, 2U);
        EXPECT_LT(worlds, 20U);
    }
}

}  // namespace
}  // namespace via::sim::world_test
