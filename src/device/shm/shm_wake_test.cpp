// Who sleeps is woken, and nobody else.
#include <gtest/gtest.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <thread>

#include "device/shm/test_support.hpp"

namespace via::device::shm::test::shm_wake_test {
namespace {

TEST(ShmDevice, NobodyIsWokenWhoIsAwake) {
    Directory directory;
    Node a(directory), b(directory);
    const Paths paths = connect(a, b);
    a.turn();
    b.turn();
    ASSERT_TRUE(send(*a, paths.from, 24, 8, 1));
    EXPECT_EQ(a->notify(), 0U);
    pollfd entry{b->wait_handle(), POLLIN, 0};
    EXPECT_EQ(::poll(&entry, 1, 0), 0);
}

TEST(ShmDevice, ASleeperOnTheHandleIsWokenOncePerSleep) {
    Directory directory;
    Node a(directory), b(directory);
    const Paths paths = connect(a, b);
    Frame frames[4];
    for (int round = 0; round < 3; ++round) {
        b->arm(Sleep::on_handle);
        atomic_fence(memory_order_seq_cst);
        EXPECT_FALSE(b->has_work());
        ASSERT_TRUE(send(*a, paths.from, 24, 8, 1));
        EXPECT_EQ(a->notify(), 1U);
        ASSERT_TRUE(send(*a, paths.from, 24, 8, 2));
        EXPECT_EQ(a->notify(), 0U) << "the same sleep";
        EXPECT_EQ(a->notify(), 0U);
        EXPECT_TRUE(b.wait());
        EXPECT_TRUE(b->has_work());
        b.turn();
        pollfd entry{b->wait_handle(), POLLIN, 0};
        EXPECT_EQ(::poll(&entry, 1, 0), 0) << "service() took the wake-up";
        EXPECT_EQ(b->receive(frames), 2U);
        b->release();
    }
    b->arm(Sleep::awake);
    ASSERT_TRUE(send(*a, paths.from, 24, 8, 1));
    EXPECT_EQ(a->notify(), 0U);
}

TEST(ShmDevice, ASleeperOnWordsIsWoken) {
    Directory directory;
    Node a(directory), b(directory);
    const Paths paths = connect(a, b);
    Frame frames[4];
    for (int round = 0; round < 50; ++round) {
        std::thread sender;
        b->arm(Sleep::on_words);
        WakeWord words[4];
        ASSERT_EQ(b->wake_words(words), 1U);
        atomic_fence(memory_order_seq_cst);
        ASSERT_FALSE(b->has_work());
        sender = std::thread([&] {
            EXPECT_TRUE(send(*a, paths.from, 24, 8, 1));
            EXPECT_EQ(a->notify(), 1U);
        });
        // Sleeps until the word differs: no wake-up can be lost between the look and the sleep.
        const timespec watchdog{watchdog_ms / 1000, 0};
        const auto* word = static_cast<const std::uint32_t*>(words[0].address);
        while (__atomic_load_n(word, __ATOMIC_ACQUIRE) == words[0].expected) {
            const long result =
                ::syscall(SYS_futex, word, FUTEX_WAIT, words[0].expected, &watchdog, nullptr, 0);
            ASSERT_TRUE(result == 0 || errno != ETIMEDOUT);
        }
        sender.join();
        b->arm(Sleep::awake);
        ASSERT_EQ(b->receive(frames), 1U);
        b->release();
    }
}

/// Says how many sleepers each wake-up was for.
struct WatchedWakes : System {
    int futex_wake(const void* word, int count) override {
        for_so_many.push_back(count);
        return System::futex_wake(word, count);
    }
    std::vector<int> for_so_many;
};

/// One thread of the peer sleeps for all; how many more it lets wait is not the sender's time.
TEST(ShmDevice, OneOfThePeersThreadsIsWokenHoweverManyWait) {
    Directory directory;
    WatchedWakes system;
    Node a(directory, [&](ShmConfig& config) { config.system = &system; });
    Node b(directory);
    const Paths paths = connect(a, b);
    b->arm(Sleep::on_words);
    atomic_fence(memory_order_seq_cst);
    ASSERT_TRUE(send(*a, paths.from, 24, 8, 1));
    EXPECT_EQ(a->notify(), 1U);
    EXPECT_EQ(system.for_so_many, std::vector<int>{1});
}

TEST(ShmDevice, WakeWordsOfManyPeersAreCounted) {
    Directory directory;
    Node hub(directory);
    ASSERT_EQ(hub->listen(discriminator("x")), Status::success);
    std::vector<std::unique_ptr<Node>> nodes;
    for (int i = 0; i < 5; ++i) {
        nodes.push_back(std::make_unique<Node>(directory));
        nodes.back().get()->device->resolve(address_of("x"), 1);
        ASSERT_TRUE(turn_until({&hub, nodes.back().get()},
                               [&] { return nodes.back()->has(PathEventKind::resolved); }));
    }
    WakeWord words[3];
    EXPECT_EQ(hub->wake_words(words), 5U);
    EXPECT_NE(words[0].address, words[2].address);
    EXPECT_EQ(hub->wake_words({}), 5U);
}

TEST(ShmDevice, ASleeperThatWaitsForRoomIsWoken) {
    Directory directory;
    for (int how = 0; how < 3; ++how) {
        Node a(directory), b(directory);
        const Paths paths = connect(a, b);
        // A few frames less than would make the receiver tell, or all that fit.
        const unsigned wanted = how == 1 ? 100 : 1024;
        for (unsigned i = 0; i < wanted; ++i) ASSERT_TRUE(send(*a, paths.from, 24, 8, 1));
        a->set_waiting_for_room(paths.from);
        a->arm(Sleep::on_handle);
        atomic_fence(memory_order_seq_cst);
        ASSERT_FALSE(a->has_work());
        Frame frames[64];
        if (how == 0) {  // the receiver goes on for a quarter of the ring and notifies
            std::uint32_t calls = 0;
            for (int burst = 0; burst < 4; ++burst) {
                EXPECT_EQ(b->receive(frames), 64U);
                b->release();
                calls += b->notify();
            }
            EXPECT_EQ(calls, 1U);
        } else if (how == 1) {  // or polls until nothing comes
            while (b->receive(frames) != 0) {
                b->release();
                EXPECT_EQ(b->notify(), 0U);
            }
        } else {  // or goes to sleep itself after a few frames
            EXPECT_EQ(b->receive(frames), 64U);
            b->release();
            b->arm(Sleep::on_handle);
        }
        EXPECT_TRUE(a.wait()) << how;
        EXPECT_TRUE(a->has_work()) << how;
        a.turn();
        a->arm(Sleep::awake);
        EXPECT_TRUE(send(*a, paths.from, 24, 8, 1)) << how;
    }
}

TEST(ShmDevice, ASleeperThatDoesNotWaitForRoomIsLeftAlone) {
    Directory directory;
    Node a(directory), b(directory);
    const Paths paths = connect(a, b);
    a.turn();
    for (unsigned i = 0; i < 600; ++i) ASSERT_TRUE(send(*a, paths.from, 24, 8, i));
    a->arm(Sleep::on_handle);
    Frame frames[64];
    while (b->receive(frames) != 0) {
        b->release();
        EXPECT_EQ(b->notify(), 0U);
    }
    pollfd entry{a->wait_handle(), POLLIN, 0};
    EXPECT_EQ(::poll(&entry, 1, 0), 0);
}

TEST(ShmDevice, AnIdleDeviceHasNoDeadlineAndNothingReadable) {
    Directory directory;
    Node a(directory), b(directory);
    connect(a, b);
    for (int i = 0; i < 3; ++i) {
        a.turn();
        b.turn();
    }
    EXPECT_TRUE(a->next_deadline().is_never());
    EXPECT_GE(b->next_deadline(), Time{} + seconds(5)) << "is its name still there?";
    b->unlisten(address_of("x").discriminator);
    EXPECT_TRUE(b->next_deadline().is_never());
    pollfd entries[2]{{a->wait_handle(), POLLIN, 0}, {b->wait_handle(), POLLIN, 0}};
    EXPECT_EQ(::poll(entries, 2, 0), 0);
}

}  // namespace
}  // namespace via::device::shm::test::shm_wake_test
