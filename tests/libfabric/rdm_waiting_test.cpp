// SPDX-License-Identifier: Apache-2.0
// Endpoints for datagrams: programs that sleep on completion queues, and counters.
#include <poll.h>

#include <algorithm>
#include <atomic>
#include <deque>
#include <memory>
#include <thread>
#include <vector>

#include "rdm_scene.hpp"

using namespace scene;

namespace rdm_waiting_test {
namespace {

/// One that sleeps, and one that polls.
struct Sleeping {
    explicit Sleeping(fi_wait_obj object) : a(nullptr, 0, object) {
        to_b = a.knows(b);
        to_a = b.knows(a);
    }
    /// What a's queue says next, slept for.
    ssize_t sleep(fi_cq_tagged_entry& entry, int timeout_ms = patience_ms) {
        return fi_cq_sread(a.queue.get(), &entry, 1, nullptr, timeout_ms);
    }
    Party a;
    Party b;
    fi_addr_t to_a = FI_ADDR_UNSPEC;
    fi_addr_t to_b = FI_ADDR_UNSPEC;
};

/// Reads the queue of one who polls until it is told to stop.
class Reader {
public:
    explicit Reader(Party& party)
        : thread_([this, &party] {
              while (!stop_) {
                  party.read();
                  std::this_thread::yield();
              }
          }) {}
    ~Reader() {
        stop_ = true;
        thread_.join();
    }
    Reader(const Reader&) = delete;
    Reader& operator=(const Reader&) = delete;

private:
    std::atomic<bool> stop_{false};
    std::thread thread_;
};

/// The peer's request for a connection wakes it, too.
TEST(Waiting, SleepersWakeUp) {
    for (const fi_wait_obj object : {FI_WAIT_UNSPEC, FI_WAIT_FD}) {
        Sleeping pair(object);
        std::uint64_t room = 0;
        pair.a.post(&room, sizeof room, 1, 7);
        fi_cq_tagged_entry entry{};
        EXPECT_EQ(pair.sleep(entry, 1), -FI_EAGAIN);
        std::thread sender([&] {
            const std::uint64_t value = 12345;
            pair.b.inject(pair.to_a, &value, sizeof value, 1, 0);
        });
        EXPECT_EQ(pair.sleep(entry), 1);
        sender.join();
        EXPECT_EQ(entry.op_context, word(7));
        EXPECT_EQ(room, 12345U);
        std::thread signaller([&] { EXPECT_EQ(fi_cq_signal(pair.a.queue.get()), 0); });
        EXPECT_EQ(pair.sleep(entry), -FI_EAGAIN);
        signaller.join();
    }
}

TEST(Waiting, WhoDoesNotAskForItCannotSleep) {
    const Party party;
    fi_cq_tagged_entry entry{};
    EXPECT_EQ(fi_cq_sread(party.queue.get(), &entry, 1, nullptr, 1), -FI_ENOSYS);
    int descriptor = -1;
    EXPECT_EQ(fi_control(&party.queue->fid, FI_GETWAIT, &descriptor), -FI_ENOSYS);
}

/// Copied, lent and offered: each way both ends may sleep.
TEST(Waiting, MessagesOfAllLengthsWakeBothEnds) {
    Party a(nullptr, 0, FI_WAIT_FD);
    Party b(nullptr, 0, FI_WAIT_FD);
    const fi_addr_t to_b = a.knows(b);
    constexpr std::size_t lengths[] = {0, 8, 2000, 16000, 70000, 1 << 20};
    std::thread receiver([&] {
        for (const std::size_t length : lengths) {
            std::vector<std::uint8_t> room(length + 1);
            b.post(room.data(), length, length, 2);
            fi_cq_tagged_entry entry{};
            EXPECT_EQ(fi_cq_sread(b.queue.get(), &entry, 1, nullptr, patience_ms), 1);
            EXPECT_EQ(entry.len, length);
            EXPECT_EQ(std::count(room.begin(), room.end(), 0xA5),
                      static_cast<std::ptrdiff_t>(length));
        }
    });
    for (const std::size_t length : lengths) {
        const std::vector<std::uint8_t> bytes(length + 1, 0xA5);
        a.send(to_b, bytes.data(), length, length, 1);
        fi_cq_tagged_entry entry{};
        EXPECT_EQ(fi_cq_sread(a.queue.get(), &entry, 1, nullptr, patience_ms), 1);
        EXPECT_EQ(entry.op_context, word(1));
    }
    // The end of the last message may still have to be told to its sender.
    const Reader reader(a);
    receiver.join();
}

TEST(Waiting, ADescriptorToPoll) {
    Sleeping pair(FI_WAIT_FD);
    int descriptor = -1;
    ASSERT_EQ(fi_control(&pair.a.queue->fid, FI_GETWAIT, &descriptor), 0);
    fi_wait_obj kind = FI_WAIT_NONE;
    ASSERT_EQ(fi_control(&pair.a.queue->fid, FI_GETWAITOBJ, &kind), 0);
    EXPECT_EQ(kind, FI_WAIT_FD);
    for (std::uint64_t round = 1; round <= 200; ++round) {
        std::uint64_t room = 0;
        pair.a.post(&room, sizeof room, round, round);
        std::thread sender([&] { pair.b.inject(pair.to_a, &round, sizeof round, round, 0); });
        fi_cq_tagged_entry entry{};
        const ssize_t got =
            read_by_descriptor(pair.a.fabric.get(), pair.a.queue.get(), descriptor, &entry);
        sender.join();
        EXPECT_EQ(got, 1);
        EXPECT_EQ(room, round);
    }
    // Nothing is left, so it sleeps.
    fi_cq_tagged_entry entry{};
    while (fi_cq_read(pair.a.queue.get(), &entry, 1) != -FI_EAGAIN) {
    }
    pollfd one{descriptor, POLLIN, 0};
    for (int looks = 0; poll(&one, 1, 1) != 0; ++looks) {
        ASSERT_LT(looks, 1000);
        fi_cq_read(pair.a.queue.get(), &entry, 1);
    }
}

/// What another thread found out while this one sleeps.
TEST(Waiting, ACompletionThatIsToldAtOnceIsShown) {
    Sleeping pair(FI_WAIT_FD);
    std::uint64_t room = 0;
    pair.b.post(&room, sizeof room, 1, 1);
    std::thread sleeper([&] {
        fi_cq_tagged_entry entry{};
        EXPECT_EQ(pair.sleep(entry), 1);
        EXPECT_EQ(entry.op_context, word(3));
    });
    const std::uint64_t value = 5;
    pair.a.send(pair.to_b, &value, sizeof value, 1, 3, &pair.b);
    sleeper.join();
    pair.b.completion();
    EXPECT_EQ(room, value);
}

/// More of them than it has descriptors, and it reads only when there is no room.
TEST(Waiting, ManyCopiesAreTakenOffByWhoSends) {
    Sleeping pair(FI_WAIT_FD);
    constexpr std::uint64_t many = 3000;
    std::thread receiver([&] {
        for (std::uint64_t number = 0; number < many; ++number) {
            std::uint64_t room = ~number;
            pair.b.post(&room, sizeof room, 1, 1);
            pair.b.completion();
            ASSERT_EQ(room, number);
        }
    });
    for (std::uint64_t number = 0; number < many; ++number)
        pair.a.inject(pair.to_b, &number, sizeof number, 1, 0);
    receiver.join();
}

TEST(Waiting, MorePeersThanAreLookedAtOneByOne) {
    Party hub(nullptr, 0, FI_WAIT_FD);
    constexpr std::uint64_t many = 12;
    std::deque<Party> others(many);
    std::uint64_t rooms[many] = {};
    for (std::uint64_t number = 0; number < many; ++number)
        hub.post(&rooms[number], sizeof rooms[number], number, number);
    std::vector<std::thread> threads;
    threads.reserve(many);
    for (std::uint64_t number = 0; number < many; ++number)
        threads.emplace_back([&hub, &party = others[number], number] {
            const std::uint64_t value = number + 100;
            party.inject(party.knows(hub), &value, sizeof value, number, 0);
        });
    for (std::uint64_t number = 0; number < many; ++number) {
        fi_cq_tagged_entry entry{};
        EXPECT_EQ(fi_cq_sread(hub.queue.get(), &entry, 1, nullptr, patience_ms), 1);
    }
    for (std::thread& thread : threads) thread.join();
    for (std::uint64_t number = 0; number < many; ++number) EXPECT_EQ(rooms[number], number + 100);
}

TEST(Waiting, LosingThePeerWakesASleeper) {
    auto peer = std::make_unique<Party>();
    Party own(nullptr, 0, FI_WAIT_FD);
    const fi_addr_t to_peer = own.knows(*peer);
    std::uint64_t room = 0;
    own.post(&room, sizeof room, 1, 9, to_peer);
    const std::uint64_t value = 1;
    own.inject(to_peer, &value, sizeof value, 2, 0, peer.get());
    std::thread ending([&] { peer.reset(); });
    fi_cq_tagged_entry entry{};
    EXPECT_EQ(fi_cq_sread(own.queue.get(), &entry, 1, nullptr, patience_ms), -FI_EAVAIL);
    ending.join();
    EXPECT_EQ(own.failure().err, FI_ECONNRESET);
}

// Counters --------------------------------------------------------------------------------------

TEST(Counting, AllMessagesThatAreDone) {
    Party a(nullptr, 0, FI_WAIT_NONE, FI_SEND);
    Party b(nullptr, 0, FI_WAIT_NONE, FI_RECV);
    fid_cntr* const sends = a.counter.get();
    fid_cntr* const receives = b.counter.get();
    const fi_addr_t to_b = a.knows(b);
    std::vector<std::uint8_t> room(70000);
    const std::vector<std::uint8_t> bytes(room.size());
    const std::size_t lengths[] = {8, 8000, 70000};
    for (const std::size_t length : lengths) b.post(room.data(), length, length, 1);
    a.inject(to_b, bytes.data(), 8, 8, 0, &b);
    a.send(to_b, bytes.data(), 8000, 8000, 1, &b);
    a.send(to_b, bytes.data(), 70000, 70000, 1, &b);
    {
        const Reader reader(a);
        EXPECT_EQ(fi_cntr_wait(receives, 3, patience_ms), 0);
    }
    {
        const Reader reader(b);
        EXPECT_EQ(fi_cntr_wait(sends, 3, patience_ms), 0);
    }
    EXPECT_EQ(fi_cntr_read(sends), 3U);
    EXPECT_EQ(fi_cntr_read(receives), 3U);
    EXPECT_EQ(fi_cntr_wait(sends, 4, 1), -FI_ETIMEDOUT);
    // What is cancelled, or has no room for its message, is an error.
    b.post(room.data(), 8, 5, 11);
    EXPECT_EQ(fi_cancel(&b.endpoint->fid, word(11)), 0);
    EXPECT_EQ(fi_cntr_readerr(receives), 1U);
    b.post(room.data(), 4, 6, 12);
    a.inject(to_b, bytes.data(), 8, 6, 0, &b);
    EXPECT_EQ(fi_cntr_wait(receives, 4, patience_ms), -FI_EAVAIL);
    EXPECT_EQ(fi_cntr_readerr(receives), 2U);
    EXPECT_EQ(fi_cntr_readerr(sends), 0U);
}

TEST(PollSets, TellOfQueuesAndCounters) {
    Party a;
    Party b(nullptr, 0, FI_WAIT_NONE, FI_RECV);
    const fi_addr_t to_b = a.knows(b);
    b.knows(a);
    fid_poll* made = nullptr;
    ASSERT_EQ(fi_poll_open(b.domain.get(), nullptr, &made), 0);
    const Owned<fid_poll> set(made);
    b.queue->fid.context = word(5);
    b.counter->fid.context = word(6);
    ASSERT_EQ(fi_poll_add(made, &b.queue->fid, 0), 0);
    ASSERT_EQ(fi_poll_add(made, &b.counter->fid, 0), 0);
    void* contexts[4] = {};
    EXPECT_EQ(fi_poll(made, contexts, 4), 0);
    int got = 0;
    b.post(&got, sizeof got, 1, 1);
    const int value = 3;
    a.inject(to_b, &value, sizeof value, 1, 0, &b);
    int found = 0;
    const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(patience_ms);
    while (found == 0 && std::chrono::steady_clock::now() < end) {
        found = fi_poll(made, contexts, 4);
        a.read();
    }
    EXPECT_EQ(fi_poll(made, contexts, 4), 2);
    EXPECT_EQ(contexts[0], word(5));
    EXPECT_EQ(contexts[1], word(6));
    EXPECT_EQ(fi_cntr_read(b.counter.get()), 1U);
    EXPECT_EQ(fi_poll(made, contexts, 4), 1);
    b.completion();
    EXPECT_EQ(fi_poll(made, contexts, 4), 0);
    EXPECT_EQ(fi_poll_del(made, &b.queue->fid, 0), 0);
    EXPECT_EQ(fi_poll_del(made, &b.counter->fid, 0), 0);
}

TEST(Counting, AMessageToOneselfCountsAtBothEnds) {
    Party own(nullptr, 0, FI_WAIT_NONE, FI_SEND | FI_RECV);
    const fi_addr_t number = own.knows(own);
    std::uint64_t room = 0;
    const std::uint64_t value = 3;
    own.inject(number, &value, sizeof value, 1, 0);
    own.post(&room, sizeof room, 1, 1);
    own.post(&room, sizeof room, 1, 1);
    own.send(number, &value, sizeof value, 1, 2);
    EXPECT_EQ(fi_cntr_wait(own.counter.get(), 4, patience_ms), 0);
    EXPECT_EQ(fi_cntr_read(own.counter.get()), 4U);
    EXPECT_EQ(room, value);
}

TEST(Counting, AnEndpointThatWasNeverEnabledIsNotLookedAt) {
    const Party there;
    const Info info(fi_dupinfo(there.info.get()), fi_freeinfo);
    ASSERT_EQ(info->src_addrlen, sizeof there.name);
    std::memcpy(info->src_addr, &there.name, sizeof there.name);
    fid_cntr* opened = nullptr;
    ASSERT_EQ(fi_cntr_open(there.domain.get(), nullptr, &opened, nullptr), 0);
    const Owned<fid_cntr> counter(opened);
    fid_ep* endpoint = nullptr;
    ASSERT_EQ(fi_endpoint(there.domain.get(), info.get(), &endpoint, nullptr), 0);
    ASSERT_EQ(fi_ep_bind(endpoint, &there.addresses->fid, 0), 0);
    ASSERT_EQ(fi_ep_bind(endpoint, &there.queue->fid, FI_TRANSMIT | FI_RECV), 0);
    ASSERT_EQ(fi_ep_bind(endpoint, &opened->fid, FI_SEND), 0);
    for (int tries = 0; tries < 3; ++tries) EXPECT_EQ(fi_enable(endpoint), -FI_EADDRINUSE);
    ASSERT_EQ(fi_close(&endpoint->fid), 0);
    // Its memory is somebody else's.
    std::vector<std::vector<std::byte>> others;
    for (std::size_t size = 256; size < 4096; size += 16)
        for (int each = 0; each < 8; ++each) others.emplace_back(size, std::byte{0xFF});
    EXPECT_EQ(fi_cntr_read(opened), 0U);
}

}  // namespace
}  // namespace rdm_waiting_test
