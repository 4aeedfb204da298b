// Two and more devices that mean well.
#include <gtest/gtest.h>
#include <algorithm>
#include <filesystem>
#include <map>

#include "device/shm/test_support.hpp"

namespace via::device::shm::test::shm_device_test {
namespace {

TEST(ShmDevice, TwoInOneProcessExchangeFramesOfAllSizes) {
    Directory directory;
    Node a(directory), b(directory);
    ASSERT_TRUE(a.device && b.device) << a.error << b.error;
    const Paths paths = connect(a, b);
    EXPECT_EQ(b->peer_address(paths.to), test_address());
    unsigned seed = 0;
    for (const std::uint32_t header : {0U, 1U, 8U, 24U, 40U}) {
        for (std::uint32_t payload = 0; payload <= payload_max;
             payload += payload < 200 ? 1 : 321) {
            expect_passes(a, paths.from, b, paths.to, header, payload, ++seed);
            expect_passes(b, paths.to, a, paths.from, header, payload, ++seed);
        }
        expect_passes(a, paths.from, b, paths.to, header, payload_max, ++seed);
    }
    EXPECT_TRUE(a.reports.empty() && b.reports.empty());
}

TEST(ShmDevice, SaysWhatItCanDo) {
    Directory directory;
    Node a(directory);
    const Capabilities& can = a->capabilities();
    EXPECT_EQ(can.payload_max, 8192U + 64) << "8 KiB behind a header of a library above";
    EXPECT_EQ(can.header_max, 40U);
    EXPECT_EQ(can.large_length_min, 2048U);
    EXPECT_TRUE(can.lossless && can.ordered);
    EXPECT_EQ(a->address(), test_address());
    EXPECT_GE(a->wait_handle(), 0);
}

/// As after a cleaner of temporary files, or when the login ended whose directory it was.
TEST(ShmDevice, WhoseNamesAreTakenAwayIsFoundAgain) {
    Directory before, after;
    Node server(before,
                [&](ShmConfig& config) { config.directory_again = [&] { return after.path; }; });
    ASSERT_EQ(server->listen(address_of("old").discriminator), Status::success);
    EXPECT_FALSE(server->next_deadline().is_never()) << "it looks whether it is known";
    server->service(Time{});
    std::filesystem::remove_all(before.path);
    server->service(Time{} + seconds(10));
    Node client(after);
    connect(client, server, "new");
    PathEvent event;
    client->resolve(address_of("old"), 7);
    ASSERT_TRUE(client->next_event(event)) << "the path is there";
    EXPECT_EQ(event.kind, PathEventKind::resolved) << "what it listened to before";
    ASSERT_EQ(server.reports.size(), 1U);
    EXPECT_NE(server.reports.front().find("others find us in " + after.path), std::string::npos);
    std::filesystem::create_directory(before.path);
}

TEST(ShmDevice, ALinkThatIsTakenAwayIsMadeAgain) {
    Directory directory;
    Node server(directory), client(directory);
    ASSERT_EQ(server->listen(address_of("x").discriminator), Status::success);
    server->service(Time{});
    std::filesystem::remove(directory.path + "/" + link_name(address_of("x").discriminator));
    server->service(Time{} + seconds(10));
    connect(client, server, "y");
    client->resolve(address_of("x"), 7);
    PathEvent event;
    ASSERT_TRUE(client->next_event(event));
    EXPECT_EQ(event.kind, PathEventKind::resolved);
}

/// Whoever it comes to looks for its name.
TEST(ShmDevice, WhoOnlyConnectsIsKnownAgainToo) {
    Directory directory;
    Node client(directory), server(directory);
    std::filesystem::remove(directory.path + "/" + client->name());
    connect(client, server);
}

TEST(ShmDevice, ADeviceReachesItself) {
    Directory directory;
    Node a(directory);
    const Paths paths = connect(a, a);
    EXPECT_NE(paths.from, paths.to);
    expect_passes(a, paths.from, a, paths.to, 24, 8, 1);
    expect_passes(a, paths.to, a, paths.from, 24, 8192, 2);
    // One thread at both ends: room must come back without anybody else's help.
    for (unsigned i = 0; i < 5000; ++i) {
        for (;;) {
            if (send(*a, paths.from, 24, 3000, i)) break;
            Frame frames[64];
            a->receive(frames);
            a->release();
        }
    }
}

TEST(ShmDevice, ResolveAnswersAtOnceWhenItCan) {
    Directory directory;
    Node a(directory), b(directory);
    a->resolve(address_of("nobody"), 1);
    NetAddress elsewhere = address_of("x");
    elsewhere.host.bytes[0] = 10;
    a->resolve(elsewhere, 2);
    EXPECT_TRUE(a->has_work());
    PathEvent event;
    ASSERT_TRUE(a->next_event(event));
    EXPECT_EQ(event.kind, PathEventKind::unresolved);
    EXPECT_EQ(event.status, Status::no_match);
    EXPECT_EQ(event.cookie, 1U);
    ASSERT_TRUE(a->next_event(event));
    EXPECT_EQ(event.status, Status::not_reachable);
    EXPECT_EQ(event.cookie, 2U);
    EXPECT_FALSE(a->next_event(event));

    const Paths paths = connect(a, b);
    a->resolve(address_of("x"), 3);
    ASSERT_TRUE(a->next_event(event));
    EXPECT_EQ(event.kind, PathEventKind::resolved);
    EXPECT_EQ(event.path, paths.from);
    EXPECT_EQ(event.cookie, 3U);
    // The other way round the same channel serves, for the kernel confirms whose it is.
    ASSERT_EQ(a->listen(discriminator("back")), Status::success);
    b->resolve(address_of("back"), 4);
    ASSERT_TRUE(b->next_event(event));
    EXPECT_EQ(event.path, paths.to);
}

TEST(ShmDevice, ManyResolvesShareOneHandshake) {
    Directory directory;
    Node a(directory), b(directory);
    ASSERT_EQ(b->listen(discriminator("x")), Status::success);
    for (std::uint64_t cookie = 0; cookie < 100; ++cookie) a->resolve(address_of("x"), cookie);
    ASSERT_TRUE(turn_until({&a, &b}, [&] { return a.count(PathEventKind::resolved) == 100; }));
    std::vector<bool> seen(100);
    for (const PathEvent& event : a.events) {
        EXPECT_EQ(event.path, a.events[0].path);
        seen[event.cookie] = true;
    }
    EXPECT_EQ(std::count(seen.begin(), seen.end(), true), 100);
    EXPECT_EQ(b.count(PathEventKind::up), 1U);
}

TEST(ShmDevice, BothMayConnectAtOnce) {
    Directory directory;
    Node a(directory), b(directory);
    ASSERT_EQ(a->listen(discriminator("a")), Status::success);
    ASSERT_EQ(b->listen(discriminator("b")), Status::success);
    a->resolve(address_of("b"), 1);
    b->resolve(address_of("a"), 2);
    ASSERT_TRUE(turn_until({&a, &b}, [&] {
        return a.has(PathEventKind::resolved) && b.has(PathEventKind::resolved) &&
               a.has(PathEventKind::up) && b.has(PathEventKind::up);
    }));
    expect_passes(a, a.find(PathEventKind::resolved)->path, b, b.find(PathEventKind::up)->path, 24,
                  8, 1);
    expect_passes(b, b.find(PathEventKind::resolved)->path, a, a.find(PathEventKind::up)->path, 24,
                  8, 2);
}

TEST(ShmDevice, ListeningIsExclusive) {
    Directory directory;
    Node a(directory), b(directory);
    EXPECT_EQ(a->listen(discriminator("x")), Status::success);
    EXPECT_EQ(b->listen(discriminator("x")), Status::error_resource);
    EXPECT_TRUE(b.reported(a->name()));
    a->unlisten(discriminator("x"));
    EXPECT_EQ(b->listen(discriminator("x")), Status::success);
}

TEST(ShmDevice, FramesWaitForTheUpEvent) {
    Directory directory;
    Node a(directory), b(directory);
    ASSERT_EQ(b->listen(discriminator("x")), Status::success);
    a->resolve(address_of("x"), 1);
    b->service(b.now);  // accepts and answers; its up event is not taken yet
    a.turn();
    ASSERT_TRUE(a.has(PathEventKind::resolved));
    ASSERT_TRUE(send(*a, a.events[0].path, 24, 8, 1));
    Frame frames[4];
    EXPECT_EQ(b->receive(frames), 0U);
    EXPECT_TRUE(b->has_work());
    b.turn();
    EXPECT_EQ(b->receive(frames), 1U);
}

TEST(ShmDevice, AClosedPeerIsDownAfterItsLastFrame) {
    Directory directory;
    Node a(directory);
    Frame frames[8];
    PathId path = 0;
    {
        Node b(directory);
        const Paths paths = connect(a, b);
        path = paths.from;
        for (unsigned i = 0; i < 20; ++i) ASSERT_TRUE(send(*b, paths.to, 24, i * 300, i));
    }
    a.turn();
    a.turn();
    EXPECT_FALSE(a.has(PathEventKind::down));
    EXPECT_FALSE(send(*a, path, 24, 8, 1)) << "nobody would take it";
    unsigned taken = 0;
    while (taken < 20) {
        const std::size_t count = a->receive(frames);
        ASSERT_GT(count, 0U);
        a.turn();
        EXPECT_FALSE(a.has(PathEventKind::down));
        for (std::size_t i = 0; i < count; ++i, ++taken) {
            EXPECT_TRUE(holds(frames[i], 24, taken * 300, taken)) << taken;
        }
        a->release();
    }
    EXPECT_TRUE(a->has_work());
    EXPECT_EQ(a->receive(frames), 0U);
    EXPECT_TRUE(a->has_work());
    a.turn();
    ASSERT_TRUE(a.has(PathEventKind::down));
    EXPECT_EQ(a.find(PathEventKind::down)->path, path);
    EXPECT_FALSE(a->has_work());
    EXPECT_EQ(count_mappings(), 0U);
}

TEST(ShmDevice, DownWaitsForUnreleasedFrames) {
    Directory directory;
    Node a(directory), c(directory);
    const Paths other = connect(c, a, "c");
    Frame frames[8];
    {
        Node b(directory);
        const Paths paths = connect(a, b);
        ASSERT_TRUE(send(*b, paths.to, 24, 5000, 7));
    }
    a.turn();
    ASSERT_EQ(a->receive(frames), 1U);
    a->close_for_violation(frames[0].path, "for the test");
    a.turn();
    EXPECT_FALSE(a.has(PathEventKind::down));
    EXPECT_TRUE(holds(frames[0], 24, 5000, 7)) << "still mapped";
    a->release();
    a.turn();
    EXPECT_TRUE(a.has(PathEventKind::down));
    expect_passes(c, other.from, a, other.to, 24, 8, 1);
}

TEST(ShmDevice, APathIsReusedOnlyAfterItsDownEventWasTaken) {
    Directory directory;
    Node a(directory);
    ASSERT_EQ(a->listen(discriminator("x")), Status::success);
    PathId first = 0;
    {
        Node b(directory);
        b->resolve(address_of("x"), 1);
        ASSERT_TRUE(turn_until({&a, &b}, [&] { return b.has(PathEventKind::resolved); }));
        first = a.find(PathEventKind::up)->path;
    }
    Frame frames[1];
    a->service(a.now);
    a->receive(frames);  // finds the end; down is not taken
    Node c(directory);
    c->resolve(address_of("x"), 1);
    a->service(a.now);
    c.turn();
    PathEvent event;
    ASSERT_TRUE(a->next_event(event));
    EXPECT_EQ(event.kind, PathEventKind::up);
    EXPECT_NE(event.path, first);
    ASSERT_TRUE(a->next_event(event));
    EXPECT_EQ(event.kind, PathEventKind::down);
    EXPECT_EQ(event.path, first);
    Node d(directory);
    d->resolve(address_of("x"), 1);
    ASSERT_TRUE(turn_until({&a, &d}, [&] { return d.has(PathEventKind::resolved); }));
    EXPECT_EQ(a.events.back().path, first);
}

TEST(ShmDevice, ManyPeersAreServedFairly) {
    Directory directory;
    Node hub(directory);
    ASSERT_EQ(hub->listen(discriminator("x")), Status::success);
    std::vector<std::unique_ptr<Node>> nodes;
    for (int i = 0; i < 10; ++i) {
        nodes.push_back(std::make_unique<Node>(directory));
        Node& node = *nodes.back();
        node->resolve(address_of("x"), 1);
        ASSERT_TRUE(turn_until({&hub, &node}, [&] { return node.has(PathEventKind::resolved); }));
    }
    for (auto& node : nodes) {
        for (unsigned i = 0; i < 500; ++i)
            ASSERT_TRUE(send(**node, node->events[0].path, 24, 8, i));
    }
    std::map<PathId, unsigned> got;
    Frame frames[64];
    for (int burst = 0; burst < 20; ++burst) {
        const std::size_t count = hub->receive(frames);
        EXPECT_EQ(count, 64U);
        for (std::size_t i = 0; i < count; ++i) {
            EXPECT_TRUE(holds(frames[i], 24, 8, got[frames[i].path]++));
        }
        hub->release();
    }
    EXPECT_EQ(got.size(), 10U);
    for (const auto& [path, count] : got) EXPECT_NEAR(count, 128, 16) << path;
}

TEST(ShmDevice, ReceiveBehindAReleaseThatWasForgotten) {
    Directory directory;
    Node a(directory), b(directory);
    const Paths paths = connect(a, b);
    Frame frames[4];
    for (unsigned i = 0; i < 4000; ++i) {
        ASSERT_TRUE(send(*a, paths.from, 24, 100, i)) << i;
        ASSERT_EQ(b->receive(frames), 1U);
        ASSERT_EQ(b->receive(frames), 0U);
    }
}

// ---------------------------------------------------------------- room

TEST(ShmDevice, AFullRingIsBackPressureAndRoomComesWhenThePeerPolls) {
    Directory directory;
    Node a(directory), b(directory);
    const Paths paths = connect(a, b);
    for (const std::uint32_t payload : {8U, 8192U}) {
        unsigned sent = 0;
        while (send(*a, paths.from, 24, payload, sent)) ++sent;
        EXPECT_EQ(sent, payload == 8 ? 1024U : (4U << 20) / payload);
        a->set_waiting_for_room(paths.from);
        EXPECT_FALSE(a->has_work());
        Frame frames[64];
        unsigned taken = 0;
        for (std::size_t count = 1; count != 0;) {
            count = b->receive(frames);
            for (std::size_t i = 0; i < count; ++i) {
                EXPECT_TRUE(holds(frames[i], 24, payload, taken++));
            }
            b->release();
        }
        EXPECT_EQ(taken, sent);
        EXPECT_TRUE(a->has_work());
        EXPECT_FALSE(a->has_work()) << "told once";
        EXPECT_TRUE(send(*a, paths.from, 24, payload, 5));
        EXPECT_EQ(b->receive(frames), 1U);
        EXPECT_EQ(b->receive(frames), 0U);
    }
}

TEST(ShmDevice, SeveralReservedFramesGoOutTogetherInOrder) {
    Directory directory;
    Node a(directory), b(directory);
    const Paths paths = connect(a, b);
    FrameSlot slots[8];
    for (unsigned i = 0; i < 8; ++i) {
        ASSERT_TRUE(a->reserve(paths.from, 24, i * 1000, slots[i]));
    }
    for (unsigned i = 8; i-- > 0;) {
        fill(slots[i].header, 24, i);
        fill(slots[i].payload, i * 1000, i + 1);
    }
    Frame frames[16];
    EXPECT_EQ(b->receive(frames), 0U);
    a->transmit(paths.from);
    ASSERT_EQ(b->receive(frames), 8U);
    for (unsigned i = 0; i < 8; ++i) EXPECT_TRUE(holds(frames[i], 24, i * 1000, i));
}

// ---------------------------------------------------------------- memory

TEST(ShmDevice, SmallFramesAmongOthersGoOutInOrderWithNotify) {
    Directory directory;
    Node a(directory), b(directory);
    const Paths paths = connect(a, b);
    Frame frames[16];
    std::uint64_t number = 0;
    const auto send_number = [&](bool alone) {
        const std::uint64_t payload = ++number;
        return a->send_small(paths.from, number, ~number,
                             reinterpret_cast<const std::byte*>(&payload), sizeof payload, alone);
    };
    std::uint64_t expected = 0;
    const auto receive_all = [&] {
        const std::size_t count = b->receive(frames);
        for (std::size_t n = 0; n < count; ++n) {
            std::uint64_t words[3];
            ASSERT_EQ(frames[n].length, sizeof words);
            std::memcpy(words, frames[n].bytes, sizeof words);
            ++expected;
            EXPECT_TRUE(words[0] == expected && words[1] == ~expected && words[2] == expected);
        }
        b->release();
        EXPECT_EQ(expected, number);
    };
    for (int round = 0; round < 64; ++round) {
        EXPECT_EQ(send_number(true), 0U);
        receive_all();
        for (int n = 0; n < round % 16; ++n) EXPECT_EQ(send_number(false), 0U);
        EXPECT_EQ(a->notify(), 0U);
        receive_all();
        EXPECT_EQ(send_number(false), 0U);
        EXPECT_EQ(send_number(true), 0U);
        receive_all();
        // Another frame in between.
        if (!send(*a, paths.from, 24, 100, 1)) FAIL();
        EXPECT_EQ(b->receive(frames), 1U);
        b->release();
    }
}

TEST(ShmDevice, AFrameOfPiecesGoesWhereWeAreNext) {
    Directory directory;
    Node a(directory), b(directory);
    const Paths paths = connect(a, b);
    std::byte header[16]{};
    std::byte bytes[8192];
    fill(bytes, sizeof bytes, 1);
    const auto send_by = [&](Node& node, PathId path) {
        return node->send_pieces(path, 7, 8, {header, sizeof header, bytes, sizeof bytes});
    };
    const auto take_at = [&](Node& node) {
        Frame frames[16];
        ASSERT_EQ(node->receive(frames), 1U);
        ASSERT_EQ(frames[0].payload_length, sizeof header + sizeof bytes);
        EXPECT_EQ(std::memcmp(frames[0].payload, header, sizeof header), 0);
        EXPECT_EQ(std::memcmp(frames[0].payload + sizeof header, bytes, sizeof bytes), 0);
        node->release();
    };
    for (int round = 0; round < 3; ++round) {
        const bool first = send_by(a, paths.from) != SmallSends::not_sent;
        Node& begins = first ? a : b;
        Node& answers = first ? b : a;
        ASSERT_TRUE(first || send_by(b, paths.to) == 0U);
        take_at(answers);
        EXPECT_EQ(send_by(begins, first ? paths.from : paths.to), SmallSends::not_sent);
        ASSERT_EQ(send_by(answers, first ? paths.to : paths.from), 0U);
        take_at(begins);
    }
    // Behind what is not published yet it does not go.
    FrameSlot slot;
    ASSERT_TRUE(a->reserve(paths.from, 24, 100, slot));
    EXPECT_EQ(send_by(a, paths.from), SmallSends::not_sent);
    a->transmit(paths.from);
    b->arm(Sleep::on_handle);
    const bool sent = send_by(a, paths.from) != SmallSends::not_sent;
    EXPECT_TRUE(!sent || b->has_work());
}

TEST(ShmDevice, SmallFramesThatWaitForNotifyWakeWhoSleeps) {
    Directory directory;
    Node a(directory), b(directory);
    const Paths paths = connect(a, b);
    const std::byte bytes[8]{};
    b->arm(Sleep::on_handle);
    EXPECT_FALSE(b->has_work());
    EXPECT_EQ(a->send_small(paths.from, 1, 2, bytes, 8, false), 0U);
    EXPECT_EQ(a->notify(), 1U);
    EXPECT_TRUE(b->has_work());
}

TEST(ShmDevice, AnIdleArenaIsGivenBackOnce) {
    Directory directory;
    Node a(directory), b(directory);
    const Paths paths = connect(a, b);
    const auto shared_kb = [] {
        std::ifstream status("/proc/self/status");
        for (std::string word; status >> word;) {
            if (word == "RssShmem:") {
                long kb = 0;
                status >> kb;
                return kb;
            }
        }
        return -1L;
    };
    const long before = shared_kb();
    for (unsigned i = 0; i < 200; ++i) expect_passes(a, paths.from, b, paths.to, 24, 8192, i);
    EXPECT_GE(shared_kb(), before + 1024);
    Frame frames[1];
    EXPECT_EQ(b->receive(frames), 0U);
    a.turn();
    const Time deadline = a->next_deadline();
    EXPECT_EQ(deadline, a.now + seconds(5));
    a.now = a.now + milliseconds(4999);
    a.turn();
    EXPECT_GE(shared_kb(), before + 1024) << "not yet";
    a.now = deadline;
    a.turn();
    EXPECT_LT(shared_kb(), before + 256);
    EXPECT_TRUE(a->next_deadline().is_never());
    for (unsigned i = 0; i < 300; ++i) expect_passes(a, paths.from, b, paths.to, 24, 8000, i);
    EXPECT_LE(a->next_deadline(), a.now) << "used anew: service() has to start the clock";
    a.turn();
    EXPECT_EQ(a->next_deadline(), a.now + seconds(5));
}

TEST(ShmDevice, AnArenaInUseIsNotGivenBackAndAskedForEverMoreSeldom) {
    Directory directory;
    Node a(directory), b(directory);
    const Paths paths = connect(a, b);
    ASSERT_TRUE(send(*a, paths.from, 24, 8192, 3));
    a.turn();
    Duration last{};
    for (int i = 0; i < 6; ++i) {
        const Time deadline = a->next_deadline();
        ASSERT_FALSE(deadline.is_never());
        const Duration pause = deadline - a.now;
        EXPECT_GT(pause, last);
        last = pause;
        a.now = deadline;
        a.turn();
    }
    Frame frames[2];
    ASSERT_EQ(b->receive(frames), 1U);
    EXPECT_TRUE(holds(frames[0], 24, 8192, 3)) << "still there";
    b->release();
    b->receive(frames);
    a.now = a->next_deadline();
    a.turn();
    EXPECT_TRUE(a->next_deadline().is_never());
}

}  // namespace
}  // namespace via::device::shm::test::shm_device_test
