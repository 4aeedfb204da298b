#include "device/shm/copy_choice.hpp"

#include <gtest/gtest.h>

namespace via::device::shm {

namespace {

constexpr std::uint64_t mib = 1U << 20;

/// A machine on which a MiB takes its time either way; one message of a MiB at a time.
class Machine {
public:
    explicit Machine(OneCopy policy = OneCopy::measured) : choice(policy) {}
    std::int64_t frames_ns = 100'000, fetch_ns = 100'000;
    /// Sends `messages`; how many of them were fetched.
    std::uint32_t send(std::uint32_t messages) {
        std::uint32_t fetched = 0;
        for (std::uint32_t n = 0; n < messages; ++n) {
            const bool fetch = choice.fetch(mib, frames_ns, [this] { return now; });
            now = now + nanoseconds(fetch ? fetch_ns : frames_ns);
            if (!fetch) continue;
            ++fetched;
            choice.ended(true, [this] { return now; });
        }
        return fetched;
    }

    CopyChoice choice;
    Time now{};
};

TEST(CopyChoice, TriesAndKeepsTheFaster) {
    Machine slow;
    slow.fetch_ns = 150'000;
    EXPECT_EQ(slow.send(CopyChoice::trial_messages), CopyChoice::trial_messages);
    EXPECT_EQ(slow.send(500), 0U);
    EXPECT_FALSE(slow.choice.fetches());
    Machine fast;
    fast.fetch_ns = 50'000;
    EXPECT_EQ(fast.send(500), 500U);
    EXPECT_TRUE(fast.choice.fetches());
}

TEST(CopyChoice, SmallDifferencesLeaveFrames) {
    Machine machine;
    machine.fetch_ns = 95'000;
    machine.send(CopyChoice::trial_messages);
    EXPECT_EQ(machine.send(100), 0U);
}

TEST(CopyChoice, TriesAgainAfterAGiB) {
    Machine machine;
    machine.fetch_ns = 150'000;
    machine.send(CopyChoice::trial_messages);
    EXPECT_EQ(machine.send(1023), 0U);
    machine.fetch_ns = 50'000;
    EXPECT_EQ(machine.send(100), 100U);
}

TEST(CopyChoice, NothingIsTriedBeforeFramesAreKnown) {
    CopyChoice choice(OneCopy::measured);
    for (int n = 0; n < 100; ++n) EXPECT_FALSE(choice.fetch(mib, 0, [] { return Time{}; }));
}

TEST(CopyChoice, PausesOfTheProgramDecideNothing) {
    Machine machine;
    machine.fetch_ns = 50'000;
    for (std::uint32_t n = 0; n < CopyChoice::trial_messages; ++n) {
        const bool fetch = machine.choice.fetch(mib, 100'000, [&] { return machine.now; });
        ASSERT_TRUE(fetch);
        machine.now = machine.now + (n == 3 ? nanoseconds(50'000) : seconds(1));
        machine.choice.ended(true, [&] { return machine.now; });
    }
    EXPECT_TRUE(machine.choice.fetches());
}

TEST(CopyChoice, SeveralAtOnceDecideNothing) {
    CopyChoice choice(OneCopy::measured);
    const auto now = [] { return Time{}; };  // everything seems to take no time
    for (std::uint32_t n = 0; n < CopyChoice::trial_messages; n += 2) {
        choice.fetch(mib, 100'000, now);
        choice.fetch(mib, 100'000, now);
        choice.ended(true, now);
        choice.ended(true, [] { return Time{1'000'000'000}; });
    }
    EXPECT_FALSE(choice.fetches());
}

TEST(CopyChoice, RefusedOnceIsRefusedForEver) {
    for (const OneCopy policy : {OneCopy::measured, OneCopy::always}) {
        Machine machine(policy);
        ASSERT_TRUE(machine.choice.fetch(mib, 100'000, [] { return Time{}; }));
        machine.choice.ended(false, [] { return Time{}; });
        EXPECT_TRUE(machine.choice.refused());
        EXPECT_EQ(machine.send(5000), 0U);
    }
}

TEST(CopyChoice, ThePolicyMayDecide) {
    Machine always(OneCopy::always);
    always.fetch_ns = 1'000'000;
    EXPECT_EQ(always.send(2000), 2000U);
    Machine never(OneCopy::never);
    never.fetch_ns = 1;
    EXPECT_EQ(never.send(2000), 0U);
}

}  // namespace

}  // namespace via::device::shm
