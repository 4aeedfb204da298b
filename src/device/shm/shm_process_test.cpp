// Devices in several processes: death, stopping, and what is left afterwards.
#include <gtest/gtest.h>
#include <algorithm>

#include "device/shm/test_support.hpp"

namespace via::device::shm::test::shm_process_test {
namespace {

/// For a forked child, whose node would get the key of a node of ours.
std::uint64_t own_key() { return 1000000 + static_cast<std::uint64_t>(::getpid()); }

/// A child that echoes frames until told otherwise.
bool echo(const Directory& directory, Child& self, const std::string& name) {
    Node node(directory, [](ShmConfig& config) { config.key = own_key(); });
    if (!node.device || node->listen(discriminator(name)) != Status::success) return false;
    self.tell('r');
    while (!node.has(PathEventKind::down)) {
        node.turn();
        Frame frames[16];
        const std::size_t count = node->receive(frames);
        for (std::size_t i = 0; i < count; ++i) {
            const Frame& frame = frames[i];
            FrameSlot slot;
            const bool separate = frame.payload != nullptr;
            const std::uint32_t header = separate ? frame.length : std::min(frame.length, 24U);
            const std::uint32_t payload = separate ? frame.payload_length : frame.length - header;
            if (!node->reserve(frame.path, header, payload, slot)) return false;
            std::memcpy(slot.header, frame.bytes, header);
            std::memcpy(slot.payload, separate ? frame.payload : frame.bytes + header, payload);
            node->transmit(frame.path);
        }
        node->release();
        node->notify();
        if (count != 0 || node.has(PathEventKind::down)) continue;
        node->arm(Sleep::on_handle);
        atomic_fence(memory_order_seq_cst);
        if (!node->has_work() && !node.wait()) return false;
        node->arm(Sleep::awake);
    }
    return true;
}

TEST(ShmProcesses, FramesCrossAndBothSleepInBetween) {
    Directory directory;
    Child child([&](Child& self) { return echo(directory, self, "echo"); });
    ASSERT_EQ(child.hear(), 'r');
    {
        Node a(directory);
        a->resolve(address_of("echo"), 1);
        ASSERT_TRUE(turn_until({&a}, [&] { return a.has(PathEventKind::resolved); }));
        const PathId path = a.events[0].path;
        Frame frames[4];
        for (unsigned i = 0; i < 2000; ++i) {
            const std::uint32_t payload = i * 37 % (payload_max + 1);
            ASSERT_TRUE(send(*a, path, 24, payload, i));
            a->notify();
            while (a->receive(frames) == 0) {
                a->arm(Sleep::on_handle);
                atomic_fence(memory_order_seq_cst);
                if (!a->has_work()) {
                    ASSERT_TRUE(a.wait()) << i;
                }
                a->arm(Sleep::awake);
                a->service(a.now);
            }
            ASSERT_TRUE(holds(frames[0], 24, payload, i)) << i;
            a->release();
        }
    }
    EXPECT_TRUE(child.join());
    EXPECT_TRUE(directory.names().empty());
}

TEST(ShmProcesses, AKilledPeersFramesArriveAndThenItIsDown) {
    Directory directory;
    for (int round = 0; round < 20; ++round) {
        Node a(directory);
        ASSERT_EQ(a->listen(discriminator("x")), Status::success);
        Child child([&](Child& self) {
            Node b(directory, [](ShmConfig& config) { config.key = own_key(); });
            b->resolve(address_of("x"), 1);
            if (!turn_until({&b}, [&] { return b.has(PathEventKind::resolved); })) return false;
            for (unsigned i = 0; i < 30; ++i) {
                if (!send(*b, b.events[0].path, 24, i * 100, i)) return false;
            }
            self.tell('s');
            for (;;) ::pause();
        });
        ASSERT_TRUE(turn_until({&a}, [&] { return a.has(PathEventKind::up); }));
        ASSERT_EQ(child.hear(), 's');
        child.signal(SIGKILL);
        ASSERT_TRUE(a.wait());
        child.join();
        unsigned taken = 0;
        ASSERT_TRUE(turn_until({&a}, [&] {
            Frame frames[8];
            const std::size_t count = a->receive(frames);
            for (std::size_t i = 0; i < count; ++i, ++taken) {
                EXPECT_TRUE(holds(frames[i], 24, taken * 100, taken));
            }
            a->release();
            return a.has(PathEventKind::down);
        }));
        EXPECT_EQ(taken, 30U);
        EXPECT_EQ(count_mappings(), 0U);
    }
    Node last(directory);
    EXPECT_EQ(directory.names().size(), 1U) << "the dead left nothing";
}

TEST(ShmProcesses, AStoppedPeerIsBackPressureAndLosesNothing) {
    Directory directory;
    Child child([&](Child& self) { return echo(directory, self, "echo"); });
    ASSERT_EQ(child.hear(), 'r');
    {
        Node a(directory);
        a->resolve(address_of("echo"), 1);
        ASSERT_TRUE(turn_until({&a}, [&] { return a.has(PathEventKind::resolved); }));
        const PathId path = a.events[0].path;
        child.signal(SIGSTOP);
        int status = 0;
        ASSERT_EQ(::waitpid(child.pid, &status, WUNTRACED), child.pid);
        ASSERT_TRUE(WIFSTOPPED(status));
        unsigned sent = 0;
        while (send(*a, path, 24, 8, sent)) ++sent;
        EXPECT_GE(sent, 1024U);
        a->notify();
        // A stopped peer stays a peer, however late it is by our clock.
        for (int i = 0; i < 100; ++i) {
            a.now = a.now + seconds(100);
            a.turn();
            a->notify();
        }
        EXPECT_FALSE(a.has(PathEventKind::down));
        child.signal(SIGCONT);
        unsigned taken = 0;
        Frame frames[16];
        ASSERT_TRUE(turn_until({&a}, [&] {
            const std::size_t count = a->receive(frames);
            for (std::size_t i = 0; i < count; ++i) {
                EXPECT_TRUE(holds(frames[i], 24, 8, taken++));
            }
            a->release();
            a->notify();
            return taken == sent;
        }));
    }
    EXPECT_TRUE(child.join());
}

TEST(ShmProcesses, Vipl_4_20_AStoppedListenerMakesResolveTimeOut) {
    Directory directory;
    Child child([&](Child& self) { return echo(directory, self, "echo"); });
    ASSERT_EQ(child.hear(), 'r');
    child.signal(SIGSTOP);
    int status = 0;
    ASSERT_EQ(::waitpid(child.pid, &status, WUNTRACED), child.pid);
    Node a(directory);
    a->resolve(address_of("echo"), 7);
    a.turn();
    EXPECT_EQ(a->next_deadline(), a.now + seconds(5));
    a.now = a->next_deadline();
    a.turn();
    ASSERT_TRUE(a.has(PathEventKind::unresolved));
    EXPECT_EQ(a.events[0].status, Status::timeout);
    EXPECT_EQ(a.events[0].cookie, 7U);
    EXPECT_TRUE(a->next_deadline().is_never());
    EXPECT_TRUE(a.reported("stopped"));
}

TEST(ShmProcesses, ADeadListenerIsNoMatch) {
    Directory directory;
    Child child([&](Child& self) { return echo(directory, self, "echo"); });
    ASSERT_EQ(child.hear(), 'r');
    Node a(directory);
    child.signal(SIGKILL);
    child.join();
    a->resolve(address_of("echo"), 7);
    a.turn();
    ASSERT_TRUE(a.has(PathEventKind::unresolved));
    EXPECT_EQ(a.events[0].status, Status::no_match);
    EXPECT_EQ(a->listen(discriminator("echo")), Status::success);
}

TEST(ShmProcesses, AKilledPeerWhoseForkedChildLivesOnIsDown) {
    Directory directory;
    Node a(directory);
    ASSERT_EQ(a->listen(discriminator("x")), Status::success);
    Child child([&](Child& self) {
        Node b(directory, [](ShmConfig& config) { config.key = own_key(); });
        b->resolve(address_of("x"), 1);
        if (!turn_until({&b}, [&] { return b.has(PathEventKind::resolved); })) return false;
        if (::fork() == 0) {
            self.hear();  // keeps the inherited socket open until the test is over
            ::_exit(0);
        }
        self.tell('s');
        for (;;) ::pause();
    });
    ASSERT_TRUE(turn_until({&a}, [&] { return a.has(PathEventKind::up); }));
    ASSERT_EQ(child.hear(), 's');
    child.signal(SIGKILL);
    ASSERT_TRUE(a.wait());
    Frame frames[1];
    EXPECT_TRUE(turn_until({&a}, [&] {
        a->receive(frames);
        return a.has(PathEventKind::down);
    }));
    child.join();
}

TEST(ShmProcesses, ThousandRoundsOfOpenConnectCloseLeakNothing) {
    Directory directory;
    Node a(directory);
    ASSERT_EQ(a->listen(discriminator("x")), Status::success);
    const std::size_t descriptors = count_descriptors();
    for (int round = 0; round < 1000; ++round) {
        {
            Node b(directory);
            ASSERT_TRUE(b.device) << b.error;
            b->resolve(address_of("x"), 1);
            ASSERT_TRUE(turn_until({&a, &b}, [&] {
                return b.has(PathEventKind::resolved) && a.has(PathEventKind::up);
            }));
            ASSERT_TRUE(send(*b, b.events[0].path, 24, 5000, 1));
        }
        Frame frames[2];
        ASSERT_TRUE(turn_until({&a}, [&] {
            a->receive(frames);
            a->release();
            return a.has(PathEventKind::down);
        }));
        a.events.clear();
    }
    EXPECT_EQ(count_descriptors(), descriptors);
    EXPECT_EQ(count_mappings(), 0U);
    EXPECT_EQ(directory.names().size(), 2U);
}

/// Without what who listens to "x" has to look after.
bool rests(ShmDevice& device) {
    device.unlisten(discriminator("x"));
    const bool nothing = device.next_deadline().is_never();
    return device.listen(discriminator("x")) == Status::success && nothing;
}

TEST(ShmProcesses, HundredsOfKilledPeersLeakNothing) {
    Directory directory;
    Node a(directory);
    ASSERT_EQ(a->listen(discriminator("x")), Status::success);
    const std::size_t descriptors = count_descriptors();
    for (int round = 0; round < 350; ++round) {
        Child child([&](Child&) {
            Node b(directory, [](ShmConfig& config) { config.key = own_key(); });
            b->resolve(address_of("x"), 1);
            // Killed by its own hand at another step each round.
            for (int step = 0; step < round % 7; ++step) b.turn();
            ::raise(SIGKILL);
            return false;
        });
        child.join();
        Frame frames[2];
        ASSERT_TRUE(turn_until({&a}, [&] {
            a->receive(frames);
            return a.count(PathEventKind::down) == a.count(PathEventKind::up) && rests(*a);
        }));
        a.events.clear();
    }
    EXPECT_EQ(count_descriptors(), descriptors);
    EXPECT_EQ(count_mappings(), 0U);
    Node last(directory);
    EXPECT_EQ(directory.names().size(), 3U) << "a, its link, and the last one";
}

}  // namespace
}  // namespace via::device::shm::test::shm_process_test
