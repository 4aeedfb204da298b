#include "device/shm/copy_choice.hpp"

#include <gtest/gtest.h>

namespace via::device::shm::copy_choice_test {

namespace {

constexpr std::uint64_t mib = 1U << 20;

/// A machine on which a MiB takes its time either way; one message of a MiB at a time.
class Machine {
public:
    explicit Machine(OneCopy policy = OneCopy::measured) : choice(policy) {}
    std::int64_t frames_ns = 100'000, pull_ns = 100'000;
    /// Sends `messages`; how many of them were pulled.
    std::uint32_t send(std::uint32_t messages) {
        std::uint32_t pulled = 0;
        for (std::uint32_t n = 0; n < messages; ++n) {
            const bool pull = choice.pull(mib, true, [this] { return now; });
            now = now + nanoseconds(pull ? pull_ns : frames_ns);
            if (pull) {
                ++pulled;
                choice.ended(true, [this] { return now; });
            } else if (choice.filled(mib)) {
                choice.published([this] { return now; });
            }
            now = now + answer;
        }
        return pulled;
    }
    /// Those of both kinds that it is found out with; how many of them were pulled.
    std::uint32_t send_trial() { return send(2 * CopyChoice::trial_messages); }

    CopyChoice choice;
    Time now{};
    Duration answer{};  ///< until the next one
};

TEST(CopyChoice, TriesAndKeepsTheFaster) {
    Machine slow;
    slow.pull_ns = 150'000;
    EXPECT_EQ(slow.send_trial(), CopyChoice::trial_messages);
    EXPECT_EQ(slow.send(500), 0U);
    EXPECT_FALSE(slow.choice.pulls());
    Machine fast;
    fast.pull_ns = 50'000;
    EXPECT_EQ(fast.send_trial(), CopyChoice::trial_messages);
    EXPECT_EQ(fast.send(500), 500U);
    EXPECT_TRUE(fast.choice.pulls());
}

TEST(CopyChoice, AlikeTheyLeaveFrames) {
    Machine machine;
    machine.send_trial();
    EXPECT_EQ(machine.send(100), 0U);
}

/// Of a ping-pong: the time of the answer is nobody's.
TEST(CopyChoice, WhatPassesBetweenMessagesDecidesNothing) {
    Machine machine;
    machine.pull_ns = 150'000;
    machine.answer = nanoseconds(500'000);
    machine.send_trial();
    EXPECT_EQ(machine.send(100), 0U);
}

TEST(CopyChoice, TriesAgainAfterAGiB) {
    Machine machine;
    machine.pull_ns = 150'000;
    machine.send_trial();
    EXPECT_EQ(machine.send(1023), 0U);
    machine.pull_ns = 50'000;
    EXPECT_EQ(machine.send_trial(), CopyChoice::trial_messages);
    EXPECT_EQ(machine.send(100), 100U);
}

TEST(CopyChoice, NothingIsTriedBeforeFramesHaveSettled) {
    CopyChoice choice(OneCopy::measured);
    for (int n = 0; n < 100; ++n) {
        EXPECT_FALSE(choice.pull(mib, false, [] { return Time{}; }));
        EXPECT_FALSE(choice.filled(mib)) << "nothing is timed";
    }
}

TEST(CopyChoice, AMessageInFramesEndsWithItsLastLargeOne) {
    CopyChoice choice(OneCopy::measured);
    const auto begin = [&] { ASSERT_FALSE(choice.pull(65536 + 20, true, [] { return Time{}; })); };
    begin();
    for (int n = 0; n < 7; ++n) EXPECT_FALSE(choice.filled(8192));
    EXPECT_TRUE(choice.filled(8192)) << "the rest goes in a slot";
    EXPECT_FALSE(choice.filled(8192)) << "of another message";
    begin();
    EXPECT_FALSE(choice.filled(8192));
    begin();  // that one was given up
    for (int n = 0; n < 7; ++n) EXPECT_FALSE(choice.filled(8192));
    EXPECT_TRUE(choice.filled(8192));
}

TEST(CopyChoice, WhatAMessageIsDisturbedByDecidesNothing) {
    Machine machine;
    machine.pull_ns = 50'000;
    ASSERT_FALSE(machine.choice.pull(mib, true, [&] { return machine.now; }));
    machine.choice.disturbed();
    EXPECT_FALSE(machine.choice.filled(mib));
    EXPECT_EQ(machine.send(1), 0U) << "another one in frames";
    EXPECT_EQ(machine.send(1), 1U);
}

TEST(CopyChoice, PausesOfTheProgramDecideNothing) {
    Machine machine;
    for (std::uint32_t n = 0; n < CopyChoice::trial_messages; ++n) {
        ASSERT_EQ(machine.send(1), 0U);
        ASSERT_TRUE(machine.choice.pull(mib, true, [&] { return machine.now; }));
        machine.now = machine.now + (n == 3 ? nanoseconds(50'000) : seconds(1));
        machine.choice.ended(true, [&] { return machine.now; });
    }
    EXPECT_TRUE(machine.choice.pulls());
}

TEST(CopyChoice, SeveralAtOnceDecideNothing) {
    Machine machine;
    const auto now = [] { return Time{}; };  // everything seems to take no time
    for (std::uint32_t n = 0; n < CopyChoice::trial_messages; n += 2) {
        ASSERT_EQ(machine.send(n == 0 ? 1 : 2), 0U);
        machine.choice.pull(mib, true, now);
        machine.choice.pull(mib, true, now);
        machine.choice.ended(true, now);
        machine.choice.ended(true, [] { return Time{1'000'000'000}; });
    }
    EXPECT_FALSE(machine.choice.pulls());
}

/// Of another VI on the path.
TEST(CopyChoice, OneOfferedBeforeATrialLeavesTheOthersTheirTimes) {
    Machine machine;
    machine.pull_ns = 50'000;
    const auto now = [&] { return machine.now; };
    machine.send_trial();
    ASSERT_EQ(machine.send(1022), 1022U);
    ASSERT_TRUE(machine.choice.pull(mib, true, now));
    EXPECT_EQ(machine.send(1), 0U) << "a trial";
    machine.choice.ended(true, now);
    machine.send_trial();
    EXPECT_EQ(machine.send(500), 500U);
}

/// One that never ends, since its VI broke, is beside them all.
TEST(CopyChoice, ATrialInWhichNoneWasAloneChangesNothing) {
    Machine machine;
    machine.pull_ns = 50'000;
    machine.send_trial();
    ASSERT_EQ(machine.send(1023), 1023U);
    EXPECT_EQ(machine.send(1), 0U) << "a trial";
    ASSERT_TRUE(machine.choice.pull(mib, true, [&] { return machine.now; }));
    machine.send_trial();
    EXPECT_EQ(machine.send(500), 500U);
}

TEST(CopyChoice, RefusedOnceIsRefusedForEver) {
    for (const OneCopy policy : {OneCopy::measured, OneCopy::always}) {
        Machine machine(policy);
        if (policy == OneCopy::measured) machine.send(1);
        ASSERT_TRUE(machine.choice.pull(mib, true, [] { return Time{}; }));
        machine.choice.ended(false, [] { return Time{}; });
        EXPECT_TRUE(machine.choice.refused());
        EXPECT_EQ(machine.send(5000), 0U);
    }
}

TEST(CopyChoice, ThePolicyMayDecide) {
    Machine always(OneCopy::always);
    always.pull_ns = 1'000'000;
    EXPECT_EQ(always.send(2000), 2000U);
    Machine never(OneCopy::never);
    never.pull_ns = 1;
    EXPECT_EQ(never.send(2000), 0U);
}

}  // namespace

}  // namespace via::device::shm::copy_choice_test
