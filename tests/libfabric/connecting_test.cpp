// SPDX-License-Identifier: Apache-2.0
#include <malloc.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <set>
#include <thread>

#include "scene.hpp"

using namespace scene;

namespace connecting_test {
namespace {

std::vector<std::uint8_t> bytes(std::size_t count, std::uint8_t first) {
    std::vector<std::uint8_t> data(count);
    for (std::size_t index = 0; index < count; ++index)
        data[index] = static_cast<std::uint8_t>(first + index);
    return data;
}

TEST(Connecting, PrivateDataGoesBothWays) {
    Side a;
    Side b;
    sockaddr_in address;
    const auto listener = b.listen(address);
    std::size_t room = 0;
    std::size_t length = sizeof room;
    ASSERT_EQ(fi_getopt(&listener->fid, FI_OPT_ENDPOINT, FI_OPT_CM_DATA_SIZE, &room, &length), 0);
    EXPECT_GE(room, 24U);
    const auto left = a.endpoint();
    const auto question = bytes(24, 1);
    ASSERT_EQ(fi_connect(left.get(), &address, question.data(), question.size()), 0);
    Info request(nullptr, fi_freeinfo);
    EXPECT_EQ(b.expect(FI_CONNREQ, &listener->fid, &request), question);
    const auto right = b.endpoint(request.get());
    const auto answer = bytes(16, 101);
    ASSERT_EQ(fi_accept(right.get(), answer.data(), answer.size()), 0);
    b.expect(FI_CONNECTED, &right->fid);
    EXPECT_EQ(a.expect(FI_CONNECTED, &left->fid), answer);
    sockaddr_in peer{};
    std::size_t peer_length = sizeof peer;
    ASSERT_EQ(fi_getpeer(left.get(), &peer, &peer_length), 0);
    EXPECT_EQ(peer.sin_port, address.sin_port);
}

TEST(Connecting, RejectionBringsItsData) {
    Side a;
    Side b;
    sockaddr_in address;
    const auto listener = b.listen(address);
    const auto left = a.endpoint();
    Info request(nullptr, fi_freeinfo);
    ASSERT_NO_FATAL_FAILURE(ask(left.get(), b, listener, address, request));
    const auto why = bytes(20, 7);
    ASSERT_EQ(fi_reject(listener.get(), request->handle, why.data(), why.size()), 0);
    std::vector<std::uint8_t> data;
    const fi_eq_err_entry error = a.expect_error(data);
    EXPECT_EQ(error.err, FI_ECONNREFUSED);
    EXPECT_EQ(error.fid, &left->fid);
    EXPECT_EQ(data, why);
}

TEST(Connecting, ARequestIsAnsweredOnce) {
    Side a;
    Side b;
    sockaddr_in address;
    const auto listener = b.listen(address);
    const auto left = a.endpoint();
    Info request(nullptr, fi_freeinfo);
    ASSERT_NO_FATAL_FAILURE(ask(left.get(), b, listener, address, request));
    ASSERT_EQ(fi_reject(listener.get(), request->handle, nullptr, 0), 0);
    EXPECT_EQ(fi_reject(listener.get(), request->handle, nullptr, 0), -FI_EINVAL);
    fid_ep* late = nullptr;
    EXPECT_EQ(fi_endpoint(b.domain.get(), request.get(), &late, nullptr), -FI_EINVAL);
    std::vector<std::uint8_t> data;
    EXPECT_EQ(a.expect_error(data).err, FI_ECONNREFUSED);
}

/// An endpoint that was to accept and is closed has rejected: libfabric's ofi_rxm rejects then too.
TEST(Connecting, AnEndpointThatNeverAcceptedRejects) {
    Side a;
    Side b;
    sockaddr_in address;
    const auto listener = b.listen(address);
    const auto left = a.endpoint();
    Info request(nullptr, fi_freeinfo);
    ASSERT_NO_FATAL_FAILURE(ask(left.get(), b, listener, address, request));
    b.endpoint(request.get()).reset();
    EXPECT_EQ(fi_reject(listener.get(), request->handle, nullptr, 0), -FI_EINVAL);
    std::vector<std::uint8_t> data;
    EXPECT_EQ(a.expect_error(data).err, FI_ECONNREFUSED);
}

TEST(Connecting, ARequestThatNobodyAnsweredEndsWithTheFabric) {
    Side a;
    auto b = std::make_unique<Side>();
    sockaddr_in address;
    auto listener = b->listen(address);
    const auto left = a.endpoint();
    Info request(nullptr, fi_freeinfo);
    ASSERT_NO_FATAL_FAILURE(ask(left.get(), *b, listener, address, request));
    listener.reset();
    b.reset();
    std::vector<std::uint8_t> data;
    EXPECT_EQ(a.expect_error(data).err, FI_ECONNREFUSED);
}

TEST(Connecting, NobodyThereIsRefusedAndMayBeAskedAgain) {
    Side a;
    Side b;
    sockaddr_in address;
    auto listener = b.listen(address);
    listener.reset();
    const auto left = a.endpoint();
    using Clock = std::chrono::steady_clock;
    auto quickest = Clock::duration::max();
    for (int time = 0; time < 3; ++time) {
        const auto begin = Clock::now();
        ASSERT_EQ(fi_connect(left.get(), &address, nullptr, 0), 0);
        std::vector<std::uint8_t> data;
        EXPECT_EQ(a.expect_error(data).err, FI_ECONNREFUSED);
        quickest = std::min(quickest, Clock::now() - begin);
    }
    EXPECT_LT(quickest, std::chrono::milliseconds(500)) << "it waits for what will not come";
    listener = b.listen(address);
    Info request(nullptr, fi_freeinfo);
    ASSERT_NO_FATAL_FAILURE(ask(left.get(), b, listener, address, request));
    EXPECT_EQ(fi_reject(listener.get(), request->handle, nullptr, 0), 0);
}

/// One that is to listen at `address`, but does not yet.
void make_passive(Side& side, sockaddr_in address, Owned<fid_pep>& passive) {
    fid_pep* made = nullptr;
    ASSERT_EQ(fi_passive_ep(side.fabric.get(), side.info.get(), &made, nullptr), 0);
    passive.reset(made);
    ASSERT_EQ(fi_setname(&made->fid, &address, sizeof address), 0);
    ASSERT_EQ(fi_pep_bind(made, &side.events->fid, 0), 0);
}

TEST(Connecting, APortIsOnesAlone) {
    Side a;
    Side b;
    sockaddr_in address;
    const auto listener = a.listen(address);
    Owned<fid_pep> second;
    ASSERT_NO_FATAL_FAILURE(make_passive(b, address, second));
    EXPECT_EQ(fi_listen(second.get()), -FI_EADDRINUSE);
}

/// As VIA sees it the two requests that hold the port would be one NIC's own business.
TEST(Connecting, APortIsOnesAloneOnOneNicToo) {
    Side side;
    sockaddr_in address;
    auto listener = side.listen(address);
    Owned<fid_pep> second;
    ASSERT_NO_FATAL_FAILURE(make_passive(side, address, second));
    EXPECT_EQ(fi_listen(second.get()), -FI_EADDRINUSE);
    listener.reset();
    EXPECT_EQ(fi_listen(second.get()), 0);
}

TEST(Connecting, PortsThatTheSystemChoosesAreDifferent) {
    Side side;
    std::vector<Owned<fid_pep>> listeners;
    std::set<std::uint16_t> ports;
    for (int count = 0; count < 800; ++count) {
        sockaddr_in address;
        listeners.push_back(side.listen(address));
        EXPECT_TRUE(ports.insert(address.sin_port).second) << ntohs(address.sin_port);
    }
}

TEST(Connecting, BothSidesSeeTheEnd) {
    Pair pair;
    ASSERT_EQ(fi_shutdown(pair.left.get(), 0), 0);
    pair.a.expect(FI_SHUTDOWN, &pair.left->fid);
    EXPECT_EQ(fi_shutdown(pair.left.get(), 0), -FI_ENOTCONN);
    pair.b.expect(FI_SHUTDOWN, &pair.right->fid);
    // What is sent later is told as what was under way.
    EXPECT_EQ(fi_send(pair.right.get(), nullptr, 0, nullptr, 0, word(1)), 0);
    const fi_cq_err_entry error = failure(pair.b);
    EXPECT_EQ(error.err, FI_ECANCELED);
    EXPECT_EQ(error.op_context, word(1));
}

TEST(Connecting, ClosingIsSeenToo) {
    Pair pair;
    pair.right.reset();
    pair.a.expect(FI_SHUTDOWN, &pair.left->fid);
}

/// A program that wants a port of its own opens a passive endpoint there, and hands it on.
TEST(Connecting, AnEndpointTakesOverAPassiveEndpointsAddress) {
    Side a;
    Side b;
    sockaddr_in address;
    const auto listener = b.listen(address);
    fid_pep* opened = nullptr;
    ASSERT_EQ(fi_passive_ep(a.fabric.get(), a.info.get(), &opened, nullptr), 0);
    Owned<fid_pep> holder(opened);
    sockaddr_in wanted = *static_cast<const sockaddr_in*>(a.info->src_addr);
    wanted.sin_port = htons(4711);
    ASSERT_EQ(fi_setname(&opened->fid, &wanted, sizeof wanted), 0);

    const Info asked = hints();
    asked->handle = &opened->fid;
    const Info found = find(asked.get());
    ASSERT_TRUE(found);
    EXPECT_EQ(found->handle, &opened->fid);
    EXPECT_EQ(static_cast<const sockaddr_in*>(found->src_addr)->sin_port, wanted.sin_port);
    const auto left = a.endpoint(found.get());
    holder.reset();
    sockaddr_in own{};
    std::size_t length = sizeof own;
    ASSERT_EQ(fi_getname(&left->fid, &own, &length), 0);
    EXPECT_EQ(own.sin_port, wanted.sin_port);
    EXPECT_EQ(own.sin_addr.s_addr, wanted.sin_addr.s_addr);
    Info request(nullptr, fi_freeinfo);
    ask(left.get(), b, listener, address, request);
    const auto right = b.endpoint(request.get());
    ASSERT_EQ(fi_accept(right.get(), nullptr, 0), 0);
    a.expect(FI_CONNECTED, &left->fid);
    // Who accepts has the name of the listener, as a socket has.
    ASSERT_EQ(fi_getname(&right->fid, &own, &length), 0);
    EXPECT_EQ(own.sin_port, address.sin_port);
    // One that was closed is nobody's.
    EXPECT_EQ(find(asked.get())->handle, nullptr);
    fid_ep* none = nullptr;
    EXPECT_EQ(fi_endpoint(a.domain.get(), found.get(), &none, nullptr), -FI_EINVAL);
}

TEST(Connecting, AnEndpointClosesWhileItAsks) {
    Side a;
    Side b;
    sockaddr_in address;
    const auto listener = b.listen(address);
    for (int round = 0; round < 20; ++round) {
        auto left = a.endpoint();
        ASSERT_EQ(fi_connect(left.get(), &address, nullptr, 0), 0);
        // Half of them are found already, the others perhaps not.
        Info request(nullptr, fi_freeinfo);
        if (round % 2 == 0) b.expect(FI_CONNREQ, &listener->fid, &request);
        left.reset();
        if (!request) continue;
        const auto right = b.endpoint(request.get());
        const int answer = fi_accept(right.get(), nullptr, 0);
        if (answer == 0) {  // the withdrawal was still on its way
            b.expect(FI_CONNECTED, &right->fid);
            b.expect(FI_SHUTDOWN, &right->fid);
        } else {
            EXPECT_EQ(answer, -FI_ETIMEDOUT);
        }
    }
}

TEST(Connecting, AListenerClosesWithRequestsUnread) {
    Side a;
    Side b;
    sockaddr_in address;
    auto listener = b.listen(address);
    std::vector<Owned<fid_ep>> asking;
    for (int count = 0; count < 4; ++count) {
        asking.push_back(a.endpoint());
        ASSERT_EQ(fi_connect(asking.back().get(), &address, nullptr, 0), 0);
    }
    Info request(nullptr, fi_freeinfo);
    b.expect(FI_CONNREQ, &listener->fid, &request);
    ASSERT_EQ(fi_reject(listener.get(), request->handle, nullptr, 0), 0);
    listener.reset();
    std::vector<std::uint8_t> data;
    for (int count = 0; count < 4; ++count) EXPECT_EQ(a.expect_error(data).err, FI_ECONNREFUSED);
}

/// Both sides ask the other for many connections at once, and answer as they come.
TEST(Connecting, StormsInBothDirections) {
    constexpr std::size_t count = 100;
    Side sides[2];
    sockaddr_in addresses[2];
    Owned<fid_pep> listeners[2];
    for (int side = 0; side < 2; ++side) listeners[side] = sides[side].listen(addresses[side]);
    std::vector<Owned<fid_ep>> endpoints[2];
    for (std::size_t number = 0; number < count; ++number)
        for (int side = 0; side < 2; ++side) {
            endpoints[side].push_back(sides[side].endpoint());
            ASSERT_EQ(fi_connect(endpoints[side].back().get(), &addresses[1 - side], &number,
                                 sizeof number),
                      0);
        }
    std::size_t connected[2] = {};
    std::set<std::size_t> heard[2];
    const auto serve = [&](int side) {
        while (connected[side] < 2 * count) {
            alignas(8) std::uint8_t room[sizeof(fi_eq_cm_entry) + 64];
            std::uint32_t kind = ~0U;
            const ssize_t size =
                fi_eq_sread(sides[side].events.get(), &kind, room, sizeof room, patience_ms, 0);
            ASSERT_GE(size, 0) << fi_strerror(-static_cast<int>(size)) << ", side " << side
                               << " has " << connected[side];
            if (kind == FI_CONNECTED) {
                ++connected[side];
                continue;
            }
            ASSERT_EQ(kind, std::uint32_t{FI_CONNREQ});
            const Info request(reinterpret_cast<fi_eq_cm_entry*>(room)->info, fi_freeinfo);
            std::size_t number = 0;
            std::memcpy(&number, room + sizeof(fi_eq_cm_entry), sizeof number);
            EXPECT_TRUE(heard[side].insert(number).second);
            endpoints[side].push_back(sides[side].endpoint(request.get()));
            ASSERT_EQ(fi_accept(endpoints[side].back().get(), nullptr, 0), 0);
        }
    };
    std::thread other(serve, 1);
    serve(0);
    other.join();
    EXPECT_EQ(heard[0].size(), count);
    EXPECT_EQ(heard[1].size(), count);
}

struct Held {
    std::size_t heap;
    std::vector<std::string> files;
};

Held held() {
    const struct mallinfo2 info = mallinfo2();
    Held now{info.uordblks + info.hblkhd, {}};
    for (const auto& file : std::filesystem::directory_iterator("/proc/self/fd")) {
        std::error_code gone;  // the directory's own
        now.files.push_back(file.path().filename().string() + ": " +
                            std::filesystem::read_symlink(file.path(), gone).string());
    }
    return now;
}

/// A message on each, answered or left, and closed at either end first.
TEST(Connecting, ThousandsComeAndGoAndLeaveNothing) {
    Pair pair;
    std::uint64_t room = 0;
    Held before{};
    for (int round = 0; round < 3000; ++round) {
        if (round == 1000) before = held();
        Owned<fid_ep> left;
        Owned<fid_ep> right;
        pair.connect(left, right);
        ASSERT_EQ(fi_recv(right.get(), &room, 8, nullptr, 0, nullptr), 0);
        ASSERT_EQ(fi_inject(left.get(), &room, 8, 0), 0);
        if (round % 2 == 0) completion(pair.b, &pair.a);
        (round % 3 == 0 ? left : right).reset();
        left.reset();
        right.reset();
        fi_cq_data_entry entry;
        fi_cq_err_entry error{};
        for (Side* side : {&pair.a, &pair.b})
            while (fi_cq_read(side->queue.get(), &entry, 1) != -FI_EAGAIN)
                fi_cq_readerr(side->queue.get(), &error, 0);
    }
    const Held after = held();
    EXPECT_LT(after.heap, before.heap + (64 << 10)) << "2000 connections later";
    // Over a network each NIC may have made a socket for its busy peer, or closed it, and a
    // descriptor to answer for the host or to watch who does: other tests' NICs come and go.
    EXPECT_LE(after.files.size(), before.files.size() + 4)
        << ::testing::PrintToString(before.files) << '\n'
        << ::testing::PrintToString(after.files);
}

/// It has neither the threads that listen and connect, nor the NIC.
TEST(Connecting, AForkedChildClosesNothingAndDoesNotHang) {
    Pair pair;
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
        alarm(60);
        bool refused = true;
        for (fid* object :
             {&pair.listener->fid, &pair.left->fid, &pair.right->fid, &pair.a.queue->fid,
              &pair.a.events->fid, &pair.a.domain->fid, &pair.a.fabric->fid})
            refused = refused && fi_close(object) == -FI_EOPBADSTATE;
        _exit(refused ? 0 : 1);
    }
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    // The parent's own are as they were.
    ASSERT_EQ(fi_send(pair.left.get(), nullptr, 0, nullptr, 0, word(1)), 0);
    ASSERT_EQ(fi_recv(pair.right.get(), nullptr, 0, nullptr, 0, word(2)), 0);
    EXPECT_EQ(completion(pair.a).op_context, word(1));
    EXPECT_EQ(completion(pair.b).op_context, word(2));
}

class EventQueues : public testing::TestWithParam<fi_wait_obj> {};

TEST_P(EventQueues, TellByTheirDescriptorWhatThereIs) {
    Options options;
    options.event_wait = GetParam();
    Side side(options);
    int descriptor = -1;
    ASSERT_EQ(fi_control(&side.events->fid, FI_GETWAIT, &descriptor), 0);
    pollfd waited{descriptor, POLLIN, 0};
    EXPECT_EQ(poll(&waited, 1, 0), 0);
    fi_eq_entry entry{nullptr, word(5), 77};
    EXPECT_EQ(fi_eq_write(side.events.get(), FI_NOTIFY, &entry, sizeof entry, 0),
              static_cast<ssize_t>(sizeof entry));
    EXPECT_EQ(poll(&waited, 1, 0), 1);
    fi_eq_entry read{};
    std::uint32_t kind = ~0U;
    EXPECT_EQ(fi_eq_read(side.events.get(), &kind, &read, 4, 0), -FI_ETOOSMALL);
    for (const std::uint64_t flags : {std::uint64_t{FI_PEEK}, std::uint64_t{0}}) {
        EXPECT_EQ(fi_eq_read(side.events.get(), &kind, &read, sizeof read, flags),
                  static_cast<ssize_t>(sizeof read));
        EXPECT_EQ(kind, std::uint32_t{FI_NOTIFY});
        EXPECT_EQ(read.data, 77U);
    }
    EXPECT_EQ(poll(&waited, 1, 0), 0);
    EXPECT_EQ(fi_eq_read(side.events.get(), &kind, &read, sizeof read, 0), -FI_EAGAIN);
    EXPECT_EQ(fi_eq_sread(side.events.get(), &kind, &read, sizeof read, 1, 0), -FI_EAGAIN);
}

INSTANTIATE_TEST_SUITE_P(Connecting, EventQueues, testing::Values(FI_WAIT_FD, FI_WAIT_UNSPEC),
                         [](const auto& wanted) {
                             return wanted.param == FI_WAIT_FD ? "Fd" : "Unspec";
                         });

TEST(Connecting, AnEventQueueThatNobodyWaitsOnHasNoDescriptor) {
    Side side;
    int descriptor = -1;
    EXPECT_EQ(fi_control(&side.events->fid, FI_GETWAIT, &descriptor), -FI_ENOSYS);
}

/// All are woken by an event that one of them takes.
TEST(Connecting, WhoSleepsOnAnEventQueueSleepsUntilThereIsOneForIt) {
    constexpr int readers = 4;
    constexpr int rounds = 2000;
    Side side;
    std::atomic<int> taken{0};
    std::vector<std::thread> threads;
    for (int n = 0; n < readers; ++n)
        threads.emplace_back([&] {
            for (;;) {
                std::uint32_t kind = ~0U;
                int last = 0;
                const ssize_t size =
                    fi_eq_sread(side.events.get(), &kind, &last, sizeof last, patience_ms, 0);
                ASSERT_EQ(size, static_cast<ssize_t>(sizeof last));
                ++taken;
                if (last != 0) return;
            }
        });
    const auto say = [&](int last) {
        ASSERT_EQ(fi_eq_write(side.events.get(), FI_NOTIFY, &last, sizeof last, 0),
                  static_cast<ssize_t>(sizeof last));
    };
    for (int round = 1; round <= rounds; ++round) {
        say(0);
        while (taken != round && !testing::Test::HasFailure()) std::this_thread::yield();
    }
    for (int n = 0; n < readers; ++n) say(1);
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(taken, rounds + readers);
}

}  // namespace
}  // namespace connecting_test
