#include "device/shm/store_choice.hpp"

#include <gtest/gtest.h>

namespace via::device::shm::store_choice_test {

namespace {

constexpr std::uint32_t lap = 1U << 20;
constexpr std::uint32_t frame = 8192;

/// A machine on which each kind of stores takes its time.
class Machine {
public:
    std::int64_t through_ns = 100, past_ns = 100;  ///< for one frame
    /// Sends `windows` windows; how many of their frames went past the cache.
    std::uint32_t send(std::uint32_t windows) {
        std::uint32_t streamed = 0;
        for (std::uint32_t n = 0; n < windows * 2 * (lap / frame); ++n) {
            const bool stream = choice_.stream(frame, [this] {
                ++asked;
                return now_;
            });
            now_ = now_ + nanoseconds(stream ? past_ns : through_ns);
            streamed += stream;
        }
        return streamed;
    }
    void pause() { now_ = now_ + seconds(1); }
    std::uint32_t asked = 0;

private:
    StoreChoice choice_{lap};
    Time now_{};
};

constexpr std::uint32_t frames_of(std::uint32_t windows) { return windows * 2 * (lap / frame); }

TEST(StoreChoice, TriesBothAndKeepsTheFaster) {
    Machine far;
    far.through_ns = 400;
    const std::uint32_t tried = far.send(StoreChoice::trial_windows);
    EXPECT_NEAR(tried, frames_of(StoreChoice::trial_windows) / 2, 2);
    EXPECT_EQ(far.send(100), frames_of(100));
    Machine near;
    near.past_ns = 150;
    near.send(StoreChoice::trial_windows);
    near.send(1);
    EXPECT_EQ(near.send(100), 0U);
}

TEST(StoreChoice, SmallDifferencesChangeNothing) {
    Machine machine;
    machine.past_ns = 97;
    machine.send(StoreChoice::trial_windows + 1);
    EXPECT_EQ(machine.send(100), 0U);
    Machine clearly;
    clearly.past_ns = 94;
    clearly.send(StoreChoice::trial_windows + 1);
    EXPECT_EQ(clearly.send(100), frames_of(100)) << "a twentieth";
}

TEST(StoreChoice, TriesAgainAsProcessorsChange) {
    Machine machine;
    machine.through_ns = 400;
    machine.send(StoreChoice::trial_windows + 1);
    EXPECT_EQ(machine.send(1), frames_of(1));
    machine.through_ns = 50;
    machine.send(StoreChoice::trial_windows + StoreChoice::kept_windows);
    EXPECT_EQ(machine.send(1), 0U);
    machine.through_ns = 400;
    machine.send(StoreChoice::trial_windows + StoreChoice::kept_windows);
    EXPECT_EQ(machine.send(1), frames_of(1));
}

TEST(StoreChoice, PausesOfTheProgramDecideNothing) {
    Machine machine;
    machine.through_ns = 400;
    for (std::uint32_t n = 0; n < StoreChoice::trial_windows; ++n) {
        if (n != 2 && n != 3) machine.pause();  // one window of each kind without
        machine.send(1);
    }
    machine.send(1);
    EXPECT_EQ(machine.send(1), frames_of(1));
}

TEST(StoreChoice, AsksTheClockOnceInALap) {
    Machine machine;
    machine.send(100);
    EXPECT_EQ(machine.asked, 200U);
}

}  // namespace

}  // namespace via::device::shm::store_choice_test
