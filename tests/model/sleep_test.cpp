// Sleep and wake between two processes with asymmetric fences (device/shm): the sender makes a
// light fence between its frame and its look at who sleeps, the sleeper a heavy one before its last
// look.

#include <gtest/gtest.h>

#include <string>

#include "base/asymmetric_fence.hpp"
#include "checker.hpp"

namespace via::sleep_test {
namespace {

using model::explore;
using model::Memory;
using model::Program;
using model::Result;

enum class Fence : std::uint8_t { none, light, full, heavy_of_process, heavy };

void make(Fence fence) {
    if (fence == Fence::light) light_fence();
    if (fence == Fence::full) atomic_fence(memory_order_seq_cst);
    if (fence == Fence::heavy_of_process) heavy_fence(FenceReach::process);
    if (fence == Fence::heavy) heavy_fence(FenceReach::host);
}

/// As Channel, RingWriter and ShmDevice::arm() have it, for one frame or one slot given back.
struct Sleeping {
    Atomic<int> published{0};  // or given back
    Atomic<std::uint32_t> asleep{0};
    Atomic<std::uint32_t> waits_for_room{0};
    Atomic<std::uint32_t> wakes{0};

    void send(Fence fence) {
        published.store(1, memory_order_release);
        make(fence);
        if (asleep.load(memory_order_acquire) != 0) wake();
        goes_on();
    }
    /// Its frame is not known to be there only because its thread has ended.
    void goes_on() { static_cast<void>(wakes.load(memory_order_relaxed)); }
    void wake() {
        wakes.store(1, memory_order_release);
        model::futex_wake(wakes);
    }
    void sleep(Fence fence, bool fence_first = false) {
        if (fence_first) make(fence);
        asleep.store(1, memory_order_release);
        if (!fence_first) make(fence);
        if (published.load(memory_order_acquire) == 0) {
            model::futex_wait(wakes, 0);
            VIA_MODEL_CHECK(wakes.load(memory_order_acquire) == 1);
        }
        VIA_MODEL_CHECK(published.load(memory_order_acquire) == 1);
    }
    /// The reader gives a slot back, for which the writer waits in its sleep.
    void give_back(Fence fence) {
        published.store(1, memory_order_release);
        make(fence);
        if (asleep.load(memory_order_acquire) != 0 &&
            waits_for_room.load(memory_order_acquire) != 0)
            wake();
    }
    void wait_for_room(Fence fence) {
        waits_for_room.store(1, memory_order_release);
        sleep(fence);
    }
};

/// Sender and sleeper are processes of their own.
Result explore_models(const Program<Sleeping>& program) {
    Result result;
    for (const Memory memory : {Memory::sc, Memory::tso, Memory::weak}) {
        result =
            explore(program, {.memory = memory, .heavy_fences = true, .processes = {0, 1, 2, 3}});
        if (!result.passed()) return result;
    }
    return result;
}

Result slept(Fence sender, Fence sleeper, bool fence_first = false) {
    return explore_models({"sleep against a frame",
                           {[=](Sleeping& s) { s.send(sender); },
                            [=](Sleeping& s) { s.sleep(sleeper, fence_first); }}});
}

TEST(Sleep, a_light_fence_of_the_sender_is_enough_for_a_heavy_one_of_the_sleeper) {
    const Result result = slept(Fence::light, Fence::heavy);
    EXPECT_TRUE(result.passed()) << result.report();
    // A peer that cannot make heavy ones.
    const Result without = slept(Fence::full, Fence::full);
    EXPECT_TRUE(without.passed()) << without.report();
    // A sender whom heavy fences do not reach.
    const Result unreached = slept(Fence::full, Fence::heavy);
    EXPECT_TRUE(unreached.passed()) << unreached.report();
}

TEST(Sleep, a_fence_left_out_or_of_the_wrong_kind_loses_a_wake_up) {
    EXPECT_FALSE(slept(Fence::none, Fence::heavy).failure.empty());
    EXPECT_FALSE(slept(Fence::light, Fence::none).failure.empty());
    EXPECT_FALSE(slept(Fence::light, Fence::light).failure.empty());
    EXPECT_FALSE(slept(Fence::light, Fence::full).failure.empty());
    EXPECT_FALSE(slept(Fence::light, Fence::heavy_of_process).failure.empty());
    EXPECT_FALSE(slept(Fence::light, Fence::heavy, true).failure.empty());
    EXPECT_FALSE(slept(Fence::full, Fence::light).failure.empty());
}

TEST(Sleep, room_reaches_who_sleeps_for_it) {
    const auto program = [](Fence reader, Fence sleeper) {
        return Program<Sleeping>{"sleep against room",
                                 {[=](Sleeping& s) { s.give_back(reader); },
                                  [=](Sleeping& s) { s.wait_for_room(sleeper); }}};
    };
    const Result result = explore_models(program(Fence::light, Fence::heavy));
    EXPECT_TRUE(result.passed()) << result.report();
    EXPECT_FALSE(explore_models(program(Fence::light, Fence::full)).failure.empty());
}

// Its fence reaches all of them at once.
TEST(Sleep, one_heavy_fence_is_enough_for_several_senders) {
    const Program<Sleeping> program{
        "sleep against two senders",
        {[](Sleeping& s) { s.send(Fence::light); }, [](Sleeping& s) { s.send(Fence::light); },
         [](Sleeping& s) { s.sleep(Fence::heavy); }}};
    const Result result = explore_models(program);
    EXPECT_TRUE(result.passed()) << result.report();
}

}  // namespace
}  // namespace via::sleep_test
