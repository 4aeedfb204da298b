// The progress thread beside a program: who sleeps is known to the devices, and only while it
// does. Watchdogs are generous; what they wait for comes within periods of the agent.
#include <gtest/gtest.h>
#include <sys/eventfd.h>

#include <atomic>
#include <filesystem>
#include <semaphore>
#include <thread>

#include "agent/quiet_test_support.hpp"

namespace via::agent::test::host_agent_test {
namespace {

TEST(HostAgent, a_device_that_says_it_reorders_is_refused_when_it_is_opened) {
    struct Unordered final : QuietDevice {
        explicit Unordered(Seen& seen) : QuietDevice(seen) { capabilities_.ordered = false; }
    };
    const TemporaryFolder folder;
    QuietDevice::Seen seen;
    std::vector<std::unique_ptr<device::Device>> devices;
    devices.push_back(std::make_unique<Unordered>(seen));
    HostAgentOptions options;
    options.name = "quiet";
    const auto opened = HostAgent::open(std::move(options), std::move(devices),
                                        std::move(*Statistics::open(folder.path(), "quiet")));
    ASSERT_FALSE(opened);
    EXPECT_EQ(opened.error().status, Status::error_resource);
    EXPECT_NE(opened.error().text.find("order"), std::string::npos) << opened.error().text;
}

TEST_F(HostAgentTest, an_access_that_whole_pages_would_allow_names_the_option) {
    nic::Nic& nic = agent->nic();
    alignas(4096) static std::byte page[4096];
    const auto at = reinterpret_cast<std::uint64_t>(page);
    const memory::MemoryHandle region = nic.register_memory(at + 64, 100, {}).value();
    engine::Vi& vi =
        *nic.with_turn([&] { return nic.engine().create_vi({}, nullptr, nullptr).value(); });
    testing::internal::CaptureStderr();
    EXPECT_EQ(nic.post_send(vi, page + 128, region), Status::invalid_parameter);
    EXPECT_EQ(nic.post_send(vi, page + 256, region), Status::invalid_parameter);
    const std::string log = testing::internal::GetCapturedStderr();
    EXPECT_NE(log.find("granularity=page"), std::string::npos) << log;
    EXPECT_EQ(log.find("granularity=page", log.find("said once")), std::string::npos) << log;
}

TEST_F(HostAgentTest, who_polls_on_is_awake_after_a_few_polls) {
    for (int n = 0; n < 20; ++n) {
        ASSERT_TRUE(falls_asleep());
        // Polls as long as the progress thread has the turn in which it falls asleep.
        EXPECT_TRUE(becomes_true([&] {
            agent->nic().poll();
            return is_awake();
        }));
    }
}

/// Its peers make no system call for a message then, and nothing runs beside them for longer than a
/// turn.
TEST_F(HostAgentTest, who_waits_for_a_processor_is_not_slept_for) {
    has_no_processor = true;
    nic::Nic& nic = agent->nic();
    int longest = 0;  // short only where this thread itself waited for one
    for (int round = 0; round < 20 && longest < 10; ++round) {
        const int before = agents_looks;
        ASSERT_TRUE(becomes_true([&] {
            nic.poll();
            return agents_looks >= before + 3 && is_awake();
        }));
        const int since = agents_looks;
        EXPECT_TRUE(becomes_true([&] { return agents_looks >= since + 10 || !is_awake(); }));
        if (is_awake()) longest = agents_looks - since;
    }
    EXPECT_GE(longest, 10);
    EXPECT_TRUE(falls_asleep());  // not for ever
}

/// It polls once in each time slice of somebody else then, and does not look as if it polled.
TEST_F(HostAgentTest, who_yields_its_processor_to_nobody_does_so_for_a_moment_only) {
    has_no_processor = true;
    nic::Nic& nic = agent->nic();
    const auto yields = [&] { return (nic.attention().load() & nic::Nic::polls_yield) != 0; };
    ASSERT_TRUE(becomes_true([&] {
        nic.poll();
        return yields();
    }));
    EXPECT_TRUE(becomes_true([&] { return !yields(); }));
}

/// What comes before its next poll, credits for another thread for instance, would wait for that.
TEST_F(HostAgentTest, a_poll_now_and_then_leaves_the_agent_in_charge) {
    nic::Nic& nic = agent->nic();
    const auto sleeps = [&] {
        nic.take_turn();  // a poll before it has let the turn go keeps it awake
        const bool does = (nic.attention().load() & nic::Nic::agent_sleeps) != 0;
        nic.end_turn();
        return does;
    };
    for (int n = 0; n < 20; ++n) {
        ASSERT_TRUE(becomes_true(sleeps));
        nic.poll();
        EXPECT_TRUE(sleeps());
        EXPECT_FALSE(is_awake());
        EXPECT_TRUE(becomes_true([&] {  // who polls on wakes it as ever
            nic.poll();
            return is_awake();
        }));
    }
}

/// As a post that arms a timer: it is no poll, and the progress thread may not get a processor
/// while the program posts on.
TEST_F(HostAgentTest, a_turn_that_leaves_work_tells_the_devices_that_somebody_is_awake) {
    nic::Nic& nic = agent->nic();
    std::int64_t deadline = agent->now().ns + 3'600'000'000'000;
    bool told = false;  // not where the progress thread takes the turn just then
    for (int n = 0; n < 20 && !told; ++n) {
        ASSERT_TRUE(falls_asleep());
        nic.take_turn();
        seen.woken_by = std::thread::id{};
        seen.deadline = --deadline;
        nic.end_turn();
        told = seen.woken_by.load() == std::this_thread::get_id();
    }
    EXPECT_TRUE(told);
}

TEST_F(HostAgentTest, a_call_that_waits_wakes_up_for_a_deadline_that_comes_meanwhile) {
    std::atomic<int> looks{0};
    std::atomic<bool> end{false};
    struct Subject {
        std::atomic<int>& looks;
        std::atomic<bool>& end;
    } subject{looks, end};
    std::thread waiting([&] {
        agent->wait({[](const void* of) {
                         const auto& its = *static_cast<const Subject*>(of);
                         its.looks.fetch_add(1);
                         return its.end.load();
                     },
                     &subject},
                    Time::never());
    });
    EXPECT_TRUE(sleeps_for_good(waiting));
    const int before = looks;
    nic::Nic& nic = agent->nic();
    nic.take_turn();
    seen.deadline = agent->now().ns + 1'000'000;
    nic.end_turn();
    EXPECT_TRUE(becomes_true([&] { return looks > before; }));
    end = true;
    wake_up();
    waiting.join();
}

/// A thread of the program heard of the agent's sleep before another one began to wait, and tells
/// the devices only then: they would wake nobody any more.
TEST_F(HostAgentTest, who_rouses_the_agent_leaves_the_wait_set_of_a_call_that_waits) {
    std::atomic<bool> end{false};
    std::thread waiting = wait_for(end);
    EXPECT_TRUE(sleeps_for_good(waiting));
    nic::Nic& nic = agent->nic();
    nic.attention().fetch_or(nic::Nic::agent_sleeps);
    EXPECT_TRUE(becomes_true([&] {
        nic.poll();
        return (nic.attention().load() & nic::Nic::agent_sleeps) == 0;
    }));
    EXPECT_EQ(seen.sleep, device::Sleep::on_words);
    end = true;
    wake_up();
    waiting.join();
}

/// Who takes an entry makes room for another, which a turn lets in: were its own polls all empty,
/// since others had the turn for calls that are no work of the NIC, nobody else would take one.
TEST_F(HostAgentTest, who_is_always_beaten_to_the_turn_does_not_sleep_without_one) {
    nic::Nic& nic = agent->nic();
    queue::CompletionQueue* queue = nic.completion_queue(nic.create_completion_queue(1).value());
    for (int n = 0; n < 3; ++n) {
        ASSERT_TRUE(falls_asleep());
        nic.take_turn();
        EXPECT_FALSE(queue->push({1, true}, 1));
        EXPECT_TRUE(queue->push({1, true}, 2)) << "waits for room";
        nic.engine().watch(*queue);
        nic.end_turn();
        std::atomic<bool> end{false};
        std::atomic<int> takes{0};
        // Long enough for all polls of the other; then who sleeps without a turn sleeps on. For
        // ever would keep it from the lock, where processors are few, until its time is up.
        std::thread beating([&] {
            for (int beats = 0; beats < 20 && !end; ++beats) {
                nic.take_turn();
                ++takes;
                const Time then = agent->now() + milliseconds(5);
                while (agent->now() < then && !end) relax();
                nic.end_turn();
            }
        });
        EXPECT_TRUE(becomes_true([&] { return takes != 0; }));
        queue::Completion completion;
        bool made_room = false;
        EXPECT_TRUE(queue->pop(completion, made_room));
        EXPECT_TRUE(
            agent->wait({[](const void* of) {
                             return static_cast<const queue::CompletionQueue*>(of)->has_entry();
                         },
                         queue},
                        agent->now() + seconds(100)));
        EXPECT_TRUE(queue->pop(completion, made_room));
        end = true;
        beating.join();
    }
}

/// As a cleaner of temporary files takes it away.
TEST_F(HostAgentTest, the_counters_socket_is_made_anew) {
    ASSERT_EQ(find_statistics(folder_.path()).size(), 1U);
    for (const auto& entry : std::filesystem::directory_iterator(folder_.path()))
        std::filesystem::remove(entry.path());
    EXPECT_TRUE(becomes_true([&] {
        agent->nic().poll();  // something goes on
        return !std::filesystem::is_empty(folder_.path()) &&
               find_statistics(folder_.path()).size() == 1;
    }));
}

TEST_F(HostAgentTest, a_process_that_ends_in_its_own_turn_waits_for_nothing) {
    agent->nic().take_turn();
    EXPECT_FALSE(agent->leave());
    agent->nic().end_turn();
}

TEST_F(HostAgentTest, a_process_that_ends_beside_a_turn_without_end_waits_for_a_while_only) {
    std::binary_semaphore taken{0}, over{0};
    std::thread holder([&] {
        agent->nic().take_turn();
        taken.release();
        over.acquire();
        agent->nic().end_turn();
    });
    taken.acquire();
    EXPECT_FALSE(agent->leave());
    over.release();
    holder.join();
}

TEST_F(HostAgentTest, who_awaits_no_completion_is_not_looked_after_for_each) {
    Atomic<std::uint32_t>& attention = agent->nic().attention();
    const auto awaits = [&](std::uint32_t what) {
        return (attention.load() & nic::Nic::anybody_waits) == what;
    };
    const auto finish = [&](std::thread& waiting, std::atomic<bool>& end) {
        end = true;
        // Progress: whoever is ready is woken.
        const auto queue = agent->nic().create_completion_queue(1);
        EXPECT_EQ(agent->nic().destroy_completion_queue(*queue), Status::success);
        waiting.join();
    };
    std::atomic<bool> listened{false};
    std::atomic<bool> received{false};
    std::thread listening = wait_for(listened, false);
    EXPECT_TRUE(becomes_true([&] { return awaits(nic::Nic::somebody_listens); }));
    std::thread receiving = wait_for(received, true);
    EXPECT_TRUE(becomes_true([&] { return awaits(nic::Nic::anybody_waits); }));
    finish(receiving, received);
    EXPECT_TRUE(awaits(nic::Nic::somebody_listens));
    finish(listening, listened);
    EXPECT_TRUE(awaits(0));
}

/// Another thread destroyed it since the caller looked.
TEST_F(HostAgentTest, a_queue_that_is_gone_is_not_watched) {
    nic::Nic& nic = agent->nic();
    const std::uint64_t name = nic.create_completion_queue(1).value();
    const queue::CompletionQueue& queue = *nic.completion_queue(name);
    ASSERT_EQ(nic.destroy_completion_queue(name), Status::success);
    int watched = -1;
    EXPECT_EQ(agent->watch_queue(name, watched), Status::invalid_parameter);
    EXPECT_EQ(watched, -1);
    EXPECT_FALSE(queue.watched());
}

TEST_F(HostAgentTest, nobody_is_notified_of_what_is_gone) {
    struct OfNothing final : Notification {
        OfNothing() : Notification(1) {}
        bool has_object() const override { return false; }
        bool ready() const override { return false; }
        bool run() override { return true; }
    };
    EXPECT_EQ(agent->notify(std::make_unique<OfNothing>()), Status::invalid_parameter);
    EXPECT_EQ(agent->nic().attention().load() & nic::Nic::anybody_waits, 0U)
        << "turns look after it";
}

/// The agent leaves them to the leader, who does not sleep on them while the program polls.
TEST_F(MixedHostAgentTest, who_leads_beside_a_program_that_polls_looks_after_the_devices) {
    std::atomic<bool> end{false};
    std::thread waiting = wait_for(end);
    const std::thread::id leader = waiting.get_id();
    const auto sleeps = [&] { return seen.sleep == device::Sleep::on_handle; };
    // Where others kept us off the processor, the leader saw no polls and sleeps for good.
    const auto wake_by_descriptor = [&] {
        EXPECT_EQ(::eventfd_write(descriptor, 1), 0);
        EXPECT_TRUE(becomes_true([&] {
            agent->nic().poll();
            return !sleeps();
        }));
        eventfd_t taken = 0;
        EXPECT_EQ(::eventfd_read(descriptor, &taken), 0);
    };
    for (int n = 0; n < 5; ++n) {
        seen.served_by = std::thread::id{};
        EXPECT_TRUE(becomes_true([&] {
            agent->nic().poll();
            if (sleeps()) wake_by_descriptor();
            return seen.served_by.load() == leader;
        })) << n;
        if (HasFailure()) break;
    }
    end = true;
    wake_up();  // it may sleep for good by now
    waiting.join();
}

}  // namespace
}  // namespace via::agent::test::host_agent_test
