// Calls that wait: what a leader lies down on, who follows it, and the end of the process.
#include <gtest/gtest.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <semaphore>
#include <thread>
#include <vector>

#include "agent/quiet_test_support.hpp"

namespace via::agent::test::waiting_test {
namespace {

/// Somebody's turn makes progress: whoever is ready is woken.
void make_progress(Agent& agent) {
    const auto queue = agent.nic().create_completion_queue(1);
    ASSERT_TRUE(queue);
    EXPECT_EQ(agent.nic().destroy_completion_queue(*queue), Status::success);
}

/// The channel of a peer that died was let go meanwhile.
TEST_F(HostAgentTest, a_sleeper_whose_word_is_gone_makes_its_wait_set_anew) {
    constexpr std::size_t length = 4096;
    void* gone = mmap(nullptr, length, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(gone, MAP_FAILED);
    const Atomic<std::uint32_t> there{7};
    agent->nic().take_turn();
    seen.words = {{gone, 0}, {&there, 7}};
    agent->nic().end_turn();
    std::atomic<bool> end{false};
    std::thread waiting = wait_for(end);
    EXPECT_TRUE(sleeps_for_good(waiting)) << "it leads";
    end = true;
    wake_up();
    make_progress(*agent);
    waiting.join();
    EXPECT_EQ(munmap(gone, length), 0);
}

/// A peer that wakes without changing anything is one of which nobody would count that.
TEST_F(HostAgentTest, the_device_is_told_of_a_word_that_woke_though_it_did_not_change) {
    const Atomic<std::uint32_t> other{7};
    const Atomic<std::uint32_t> there{7};
    agent->nic().take_turn();
    seen.words = {{&other, 7}, {&there, 7}};
    agent->nic().end_turn();
    std::atomic<bool> end{false};
    std::thread waiting = wait_for(end);
    EXPECT_TRUE(sleeps_for_good(waiting)) << "it leads";
    while (seen.woken_by_word != &there) {
        syscall(SYS_futex, &there, FUTEX_WAKE, 1, nullptr, nullptr, 0);
        std::this_thread::yield();
    }
    end = true;
    wake_up();
    make_progress(*agent);
    waiting.join();
}

/// What the one who follows is to do, and what it was seen to.
struct Followed {
    nic::Nic* nic = nullptr;
    std::thread::id follower{};
    std::atomic<bool> for_others{false};  ///< it is ready, they find
    std::atomic<bool> end{false};
    std::binary_semaphore listed{0}, go_on{0};
    mutable bool stopped = false;  ///< the follower's

    static bool ready(const void* of) {
        auto& its = *static_cast<Followed*>(const_cast<void*>(of));
        if (its.end) return true;
        if (std::this_thread::get_id() != its.follower) return its.for_others;
        if ((its.nic->attention().load() & nic::Nic::somebody_listens) != 0 &&
            !std::exchange(its.stopped, true)) {
            its.listed.release();
            its.go_on.acquire();
        }
        return false;
    }
};

/// Its word is set, and whoever wakes it once more does no more than that.
TEST_F(MixedHostAgentTest, who_is_woken_as_it_comes_to_lead_looks_again_before_it_sleeps) {
    nic::Nic& nic = agent->nic();
    std::atomic<bool> leader_ends{false};
    std::thread leading = wait_for(leader_ends);
    ASSERT_TRUE(becomes_true([&] { return network.sleep == device::Sleep::on_words; }));
    Followed followed;
    followed.nic = &nic;
    std::thread following([&] {
        followed.follower = std::this_thread::get_id();
        agent->wait({Followed::ready, &followed, false}, Time::never());
    });
    followed.listed.acquire();
    // Woken as a follower, then the first to lead, between its look at its word and its sleep.
    followed.for_others = true;
    make_progress(*agent);
    followed.for_others = false;
    nic.take_turn();
    std::uint64_t slept_before = 0;
    std::atomic<int> arms{0};
    std::atomic<std::uint64_t> slept{0};
    network.armed = [&](device::Sleep sleep) {
        if (std::this_thread::get_id() != followed.follower || arms == 2) return;
        if (sleep == device::Sleep::on_words) slept_before = nic.counters().get(Counter::wakeups);
        slept = nic.counters().get(Counter::wakeups) - slept_before;
        ++arms;
    };
    nic.end_turn();
    leader_ends = true;
    make_progress(*agent);
    leading.join();
    followed.go_on.release();
    EXPECT_TRUE(becomes_true([&] { return arms == 2; }));
    EXPECT_EQ(slept, 0U);
    nic.take_turn();
    network.armed = nullptr;
    nic.end_turn();
    followed.end = true;
    make_progress(*agent);
    following.join();
}

/// Strangers' packets wake it, and bring no frame: each of them is not to cost many polls.
TEST_F(HostAgentTest, who_is_woken_for_nothing_again_and_again_polls_less) {
    const Atomic<std::uint32_t> there{7};
    agent->nic().take_turn();
    seen.words = {{&there, 7}};
    agent->nic().end_turn();
    std::atomic<bool> end{false};
    std::thread waiting = wait_for(end);
    EXPECT_TRUE(sleeps_for_good(waiting)) << "it leads";
    const Counters& counters = agent->nic().counters();
    // It may be put aside for longer than a flood's pauses, and then it polls as at first.
    EXPECT_TRUE(becomes_true([&] {
        const std::uint64_t polls = counters.get(Counter::polls);
        const std::uint64_t wakeups = counters.get(Counter::wakeups);
        while (counters.get(Counter::wakeups) < wakeups + 20) {
            syscall(SYS_futex, &there, FUTEX_WAKE, 1, nullptr, nullptr, 0);
            std::this_thread::yield();
        }
        return counters.get(Counter::polls) - polls < 20 * 20;
    }));
    end = true;
    wake_up();
    make_progress(*agent);
    waiting.join();
}

/// Its own turns bring requests. Peers that had to wake somebody for each frame would pay for it.
TEST_F(HostAgentTest, who_polls_beside_a_watched_listener_is_left_alone) {
    const auto listener = agent->nic().create_listener({}, 1);
    ASSERT_TRUE(listener);
    int descriptor_of_it = -1;
    ASSERT_EQ(agent->watch_listener(*listener, descriptor_of_it), Status::success);
    EXPECT_TRUE(falls_asleep());
    EXPECT_TRUE(becomes_true([&] {
        agent->nic().poll();
        return is_awake();
    }));
}

/// The NIC has no devices any more, and the program's data may be gone.
TEST_F(HostAgentTest, Vipl_4_2_who_wakes_up_as_the_process_ends_looks_at_nothing) {
    struct Subject {
        std::thread::id waiter{};
        std::atomic<bool> left{false};
        std::atomic<bool> looked{false};
    } subject;
    bool result = true;
    const Time deadline = agent->now() + seconds(2);
    std::thread waiting([&] {
        subject.waiter = std::this_thread::get_id();
        result = agent->wait({[](const void* of) {
                                  auto& its = *static_cast<Subject*>(const_cast<void*>(of));
                                  if (!its.left) return false;
                                  if (std::this_thread::get_id() != its.waiter) return true;
                                  its.looked = true;
                                  return false;
                              },
                              &subject},
                             deadline);
    });
    EXPECT_TRUE(sleeps_for_good(waiting));
    ASSERT_TRUE(agent->leave());
    subject.left = true;
    make_progress(*agent);
    waiting.join();
    EXPECT_FALSE(result);
    EXPECT_FALSE(subject.looked);
    EXPECT_GE(agent->now(), deadline);
    // One that left lasts as long as its process.
    static auto& kept = *new std::vector<std::unique_ptr<Agent>>;
    kept.push_back(std::move(agent));
}

}  // namespace
}  // namespace via::agent::test::waiting_test
