// SPDX-License-Identifier: Apache-2.0
// Endpoints for datagrams: many peers, requests that cross, peers that end, peers that lie.
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <deque>
#include <thread>
#include <utility>

#include "liar.hpp"

using namespace scene;

namespace rdm_peers_test {
namespace {

TEST(Peers, RequestsThatCrossMakeOneConnection) {
    for (int round = 0; round < 30; ++round) {
        Couple couple;
        int got[2] = {};
        couple.a.post(&got[0], sizeof(int), 1, 1);
        couple.b.post(&got[1], sizeof(int), 1, 1);
        const auto play = [](Party& own, fi_addr_t to, int value) {
            own.inject(to, &value, sizeof value, 1, 0);
            own.completion();
        };
        std::thread left([&] { play(couple.a, couple.to_b, 5); });
        play(couple.b, couple.to_a, 6);
        left.join();
        EXPECT_EQ(got[0], 6);
        EXPECT_EQ(got[1], 5);
    }
}

TEST(Peers, AllTalkToAll) {
    constexpr int many = 8;
    std::deque<Party> parties(many);
    std::vector<std::thread> threads;
    threads.reserve(many);
    fi_addr_t numbers[many][many];
    for (int own = 0; own < many; ++own)
        for (int other = 0; other < many; ++other)
            numbers[own][other] = parties[static_cast<std::size_t>(own)].knows(
                parties[static_cast<std::size_t>(other)]);
    for (int own = 0; own < many; ++own)
        threads.emplace_back([&, own] {
            Party& party = parties[static_cast<std::size_t>(own)];
            int got[many] = {};
            for (int other = 0; other < many; ++other)
                party.post(&got[other], sizeof(int), 1, 1, numbers[own][other]);
            for (int other = 0; other < many; ++other)
                party.inject(numbers[own][other], &own, sizeof own, 1, 0);
            for (int other = 0; other < many; ++other) party.completion();
            for (int other = 0; other < many; ++other) EXPECT_EQ(got[other], other);
        });
    for (std::thread& thread : threads) thread.join();
}

TEST(Peers, MoreThanAreLookedAtOneByOne) {
    constexpr std::uintptr_t many = 20;
    Party hub;
    std::deque<Party> others(many);
    std::vector<fi_addr_t> to_other;
    std::vector<fi_addr_t> to_hub;
    for (Party& other : others) {
        to_other.push_back(hub.knows(other));
        to_hub.push_back(other.knows(hub));
    }
    std::vector<std::uintptr_t> got(many);
    const auto talk = [&](std::uintptr_t from) {
        for (std::uintptr_t n = from; n < many; ++n) {
            hub.post(&got[n], sizeof got[n], n, n);
            others[n].inject(to_hub[n], &n, sizeof n, n, 0, &hub);
        }
        for (std::uintptr_t n = from; n < many; ++n) hub.completion();
        for (std::uintptr_t n = from; n < many; ++n) {
            EXPECT_EQ(std::exchange(got[n], many), n);
            others[n].post(&got[n], sizeof got[n], n, n);
            hub.inject(to_other[n], &n, sizeof n, n, 0, &others[n]);
            others[n].completion();
            EXPECT_EQ(got[n], n);
        }
    };
    // More than each has receives posted.
    for (int round = 0; round < 100; ++round) talk(0);
    // Of those that are left some are looked at in another way than others.
    constexpr std::uintptr_t ended = many / 2;
    for (std::uintptr_t n = 0; n < ended; ++n) others[n].endpoint.reset();
    talk(ended);
    Party late;
    const fi_addr_t to_late = hub.knows(late);
    late.knows(hub);
    int value = 0;
    late.post(&value, sizeof value, 1, 1);
    const int sent = 5;
    hub.inject(to_late, &sent, sizeof sent, 1, 0, &late);
    late.completion(&hub);
    EXPECT_EQ(value, sent);
}

TEST(Peers, NobodyThereIsAnError) {
    Party a;
    auto gone = std::make_unique<Party>();
    const fi_addr_t to_gone = a.knows(*gone);
    gone.reset();
    int value = 0;
    a.post(&value, sizeof value, 1, 1, to_gone);
    ssize_t answer = -FI_EAGAIN;
    while (answer == -FI_EAGAIN) {
        answer = fi_tinject(a.endpoint.get(), &value, sizeof value, to_gone, 1);
        a.read();
    }
    EXPECT_EQ(answer, -FI_ECONNREFUSED);
    EXPECT_EQ(a.failure().err, FI_ECONNREFUSED);
    EXPECT_EQ(fi_tinject(a.endpoint.get(), &value, sizeof value, 99, 1), -FI_EINVAL);
}

/// The last answer of `send`, called until it answers what is `wanted`; nothing is read meanwhile.
template <class Send, class Wanted>
ssize_t send_until(Send send, Wanted wanted) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(patience_ms);
    ssize_t answer = send();
    while (!wanted(answer) && std::chrono::steady_clock::now() < end) answer = send();
    return answer;
}

TEST(Peers, WhoOnlySendsIsConnectedAndHearsOfTheEnd) {
    for (const std::size_t length : {8UL, 2000UL, 100000UL}) {
        Party a;
        auto b = std::make_unique<Party>();
        const fi_addr_t to_b = a.knows(*b);
        const auto bytes = pattern(length, 1);
        const auto send = [&] {
            return fi_tsend(a.endpoint.get(), bytes.data(), length, nullptr, to_b, 1, word(1));
        };
        std::atomic<bool> done{false};
        std::thread reader([&] {
            while (!done) b->read();
        });
        EXPECT_EQ(send_until(send, [](ssize_t answer) { return answer != -FI_EAGAIN; }), 0);
        done = true;
        reader.join();
        b.reset();
        const auto failed = [](ssize_t answer) { return answer != 0 && answer != -FI_EAGAIN; };
        EXPECT_EQ(send_until(send, failed), -FI_ECONNRESET) << length;
    }
}

/// Whoever waits for a connection gives the processor to those that make it. Counted in calls, of
/// which a slice of the processor's time has thousands.
TEST(Peers, WhoWaitsForAConnectionLetsOthersRun) {
    const OneProcessor here;
    std::vector<int> calls;
    for (int round = 0; round < 21; ++round) {
        Couple couple;
        std::atomic<bool> done{false};
        std::thread reader([&] {
            while (!done) {
                couple.b.read();
                std::this_thread::yield();
            }
        });
        int count = 0;
        const auto inject = [&] {
            ++count;
            return fi_tinject(couple.a.endpoint.get(), &count, sizeof count, couple.to_b, 1);
        };
        EXPECT_EQ(send_until(inject, [](ssize_t answer) { return answer != -FI_EAGAIN; }), 0);
        done = true;
        reader.join();
        calls.push_back(count);
    }
    std::ranges::sort(calls);
    EXPECT_LT(calls[calls.size() / 2], 500);
}

/// As much as is under way at a time many times over.
TEST(Peers, WhoWaitsForRoomLetsOthersRun) {
    const OneProcessor here;
    Couple couple;
    couple.a.inject(couple.to_b, "x", 1, 2, 0, &couple.b);
    constexpr std::uint64_t many = 2000;
    std::vector<std::uint64_t> got(many);
    for (std::uint64_t& place : got) couple.b.post(&place, sizeof place, 1, 1);
    std::atomic<bool> done{false};
    std::thread reader([&] {
        for (std::uint64_t left = many; left != 0; --left) couple.b.completion();
        done = true;
    });
    int refusals = 0;
    for (std::uint64_t number = 0; number < many; ++number)
        while (fi_tinject(couple.a.endpoint.get(), &number, sizeof number, couple.to_b, 1) ==
                   -FI_EAGAIN &&
               !HasFailure())
            ++refusals;
    while (!done) {
        couple.a.read();
        std::this_thread::yield();
    }
    reader.join();
    EXPECT_EQ(got.back(), many - 1);
    EXPECT_LT(refusals, static_cast<int>(many));
}

TEST(Peers, TwoThatOnlySendDoNotStopEachOther) {
    Couple couple;
    constexpr std::uint64_t many = 3000;  // more than a connection has receives and sends
    std::atomic<int> playing{2};
    const auto play = [&](Party& own, fi_addr_t to) {
        const auto taken = [](ssize_t answer) { return answer != -FI_EAGAIN; };
        for (std::uint64_t number = 0; number < many; ++number) {
            const auto send = [&] {
                return fi_tinject(own.endpoint.get(), &number, sizeof number, to, number);
            };
            const ssize_t answer = send_until(send, taken);
            EXPECT_EQ(answer, 0) << number;
            if (answer != 0) break;
        }
        --playing;
        while (playing != 0) own.read();
    };
    std::thread left([&] { play(couple.a, couple.to_b); });
    play(couple.b, couple.to_a);
    left.join();
    std::uint64_t last = 0;
    couple.b.post(&last, sizeof last, many - 1, 1);
    couple.b.completion(&couple.a);
    EXPECT_EQ(last, many - 1);
}

TEST(Peers, AForkedChildClosesNothingAndDoesNotHang) {
    Couple couple;
    couple.a.inject(couple.to_b, "x", 1, 1, 0, &couple.b);
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
        alarm(60);
        const Party& a = couple.a;
        bool refused = true;
        for (fid* object :
             {&a.endpoint->fid, &a.addresses->fid, &a.queue->fid, &a.domain->fid, &a.fabric->fid})
            refused = refused && fi_close(object) == -FI_EOPBADSTATE;
        _exit(refused ? 0 : 1);
    }
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    char room = 0;
    couple.b.post(&room, 1, 1, 2);
    EXPECT_EQ(couple.b.completion(&couple.a).op_context, word(2));
}

TEST(Peers, AddressesThatCannotBeAreTold) {
    Party party;
    sockaddr_in addresses[] = {party.name, party.name};
    addresses[1].sin_family = AF_INET6;
    fi_addr_t numbers[] = {0, 0};
    int errors[] = {-1, -1};
    EXPECT_EQ(fi_av_insert(party.addresses.get(), addresses, 2, numbers, FI_SYNC_ERR, errors), 1);
    EXPECT_EQ(errors[0], 0);
    EXPECT_EQ(errors[1], FI_EINVAL);
    EXPECT_EQ(numbers[1], std::uint64_t{FI_ADDR_NOTAVAIL});
}

TEST(Peers, WhatWasUnderWayFailsWhenOneEnds) {
    Party a;
    auto b = std::make_unique<Party>();
    const fi_addr_t to_b = a.knows(*b);
    const fi_addr_t to_a = b->knows(a);
    int values[3] = {};
    const auto much = pattern(300000, 1);
    // Something came before the end, and an offer that nobody can fetch any more.
    const int sent = 4;
    b->inject(to_a, &sent, sizeof sent, 9, 0, &a);
    b->send(to_a, much.data(), much.size(), 8, 1, &a);
    a.read();
    a.post(&values[0], sizeof(int), 1, 10, to_b);
    a.post(&values[1], sizeof(int), 1, 11);
    a.send(to_b, much.data(), much.size(), 5, 12, b.get());
    b.reset();
    std::uintptr_t contexts = 0;
    for (int time = 0; time < 2; ++time) {
        const fi_cq_err_entry error = a.failure();
        EXPECT_EQ(error.err, FI_ECONNRESET);
        contexts += reinterpret_cast<std::uintptr_t>(error.op_context);
    }
    EXPECT_EQ(contexts, 22U);  // not the receive from anybody
    a.post(&values[2], sizeof(int), 9, 13, to_b);
    EXPECT_EQ(a.completion().op_context, word(13));
    EXPECT_EQ(values[2], 4);
    std::vector<std::byte> room(much.size());
    a.post(room.data(), room.size(), 8, 14, to_b);
    EXPECT_EQ(a.failure().op_context, word(14));
    EXPECT_EQ(fi_tinject(a.endpoint.get(), &sent, sizeof sent, to_b, 1), -FI_ECONNRESET);
    EXPECT_EQ(fi_trecv(a.endpoint.get(), &values[0], 4, nullptr, to_b, 1, 0, nullptr),
              -FI_ECONNRESET);
}

/// For an endpoint at that address, as systems use ports again after some time.
Info hints_for(const sockaddr_in& address) {
    Info wanted = datagram_hints();
    if (address.sin_port == 0) return wanted;
    wanted->src_addr = std::malloc(sizeof address);
    wanted->src_addrlen = sizeof address;
    std::memcpy(wanted->src_addr, &address, sizeof address);
    return wanted;
}

/// No message of theirs was lost.
TEST(Peers, WhoWasNotThereIsAskedAgain) {
    Party a;
    auto b = std::make_unique<Party>();
    const sockaddr_in same = b->name;
    const fi_addr_t to_b = a.knows(*b);
    b.reset();
    const int sent = 7;
    const auto inject = [&] {
        a.read();
        return fi_tinject(a.endpoint.get(), &sent, sizeof sent, to_b, 1);
    };
    for (int time = 0; time < 2; ++time)
        EXPECT_EQ(send_until(inject, [](ssize_t answer) { return answer != -FI_EAGAIN; }),
                  -FI_ECONNREFUSED);
    int got[2] = {};
    a.post(&got[1], sizeof(int), 2, 2, to_b);
    b = std::make_unique<Party>(hints_for(same).get());
    const fi_addr_t to_a = b->knows(a);
    b->post(&got[0], sizeof(int), 1, 1);
    a.inject(to_b, &sent, sizeof sent, 1, 0, b.get());
    b->completion(&a);
    EXPECT_EQ(got[0], sent);
    b->inject(to_a, &sent, sizeof sent, 2, 0, &a);
    EXPECT_EQ(a.completion(b.get()).op_context, word(2));
    EXPECT_EQ(got[1], sent);
}

TEST(Peers, ManyComeAndGoAtOneAddress) {
    Party a;
    sockaddr_in same{};
    for (int round = 0; round < 100; ++round) {
        Party b(hints_for(same).get());
        if (round != 0) {
            ASSERT_EQ(b.name.sin_port, same.sin_port);
        }
        same = b.name;
        const fi_addr_t to_b = a.knows(b);
        b.knows(a);
        int got = 0;
        b.post(&got, sizeof got, 1, 1);
        a.inject(to_b, &round, sizeof round, 1, 0, &b);
        b.completion(&a);
        EXPECT_EQ(got, round);
        // The end is seen before the next one is there, and before it is forgotten or after.
        a.post(&got, sizeof got, 2, 3, to_b);
        b.endpoint.reset();
        const auto forget = [&] {
            fi_addr_t number = to_b;
            EXPECT_EQ(fi_av_remove(a.addresses.get(), &number, 1, 0), 0);
            EXPECT_EQ(fi_tinject(a.endpoint.get(), &got, sizeof got, to_b, 1), -FI_EINVAL);
        };
        if (round % 2 == 0) forget();
        EXPECT_EQ(a.failure().err, FI_ECONNRESET);
        if (round % 2 != 0) forget();
    }
}

/// Who was there before is not forgotten: Open MPI never does so.
class ALaterNumber : public testing::Test {
protected:
    /// The one at that address, anew.
    void start() {
        b = std::make_unique<Party>(hints_for(same).get());
        same = b->name;
        number = a.knows(*b);
        to_a = b->knows(a);
    }
    /// `a` reads until it knows.
    void end() {
        int none = 0;
        a.post(&none, sizeof none, 99, 1, number);
        b.reset();
        EXPECT_EQ(a.failure().err, FI_ECONNRESET);
    }
    void send_to_b(int value) {
        int got = 0;
        b->post(&got, sizeof got, 1, 1);
        a.inject(number, &value, sizeof value, 1, 0, b.get());
        b->completion(&a);
        EXPECT_EQ(got, value);
    }
    void send_to_a(int value, std::uint64_t tag) {
        b->inject(to_a, &value, sizeof value, tag, 0, &a);
    }
    /// From `from` alone.
    void expect(int value, std::uint64_t tag, fi_addr_t from) {
        int got = 0;
        a.post(&got, sizeof got, tag, 1, from);
        fi_addr_t source = FI_ADDR_UNSPEC;
        a.completion(b.get(), &source);
        EXPECT_EQ(got, value);
        EXPECT_EQ(source, from);
    }

    Party a;
    sockaddr_in same{};
    std::unique_ptr<Party> b;
    fi_addr_t number = FI_ADDR_UNSPEC;
    fi_addr_t to_a = FI_ADDR_UNSPEC;
};

TEST_F(ALaterNumber, IsAnotherOneWhenTheSurvivorSendsFirst) {
    for (int round = 0; round < 10 && !HasFailure(); ++round) {
        start();
        send_to_b(round);
        send_to_a(round, 2);
        expect(round, 2, number);
        end();
    }
}

TEST_F(ALaterNumber, IsAnotherOneWhenTheEndWasNotSeen) {
    for (int round = 0; round < 10 && !HasFailure(); ++round) {
        start();
        send_to_b(round);
        b.reset();
    }
}

TEST_F(ALaterNumber, IsAnotherOneWhenTheSurvivorReceivesFirst) {
    for (int round = 0; round < 10 && !HasFailure(); ++round) {
        start();
        int got = -1;
        a.post(&got, sizeof got, 2, 1, number);
        send_to_a(round, 2);
        fi_addr_t source = FI_ADDR_UNSPEC;
        a.completion(b.get(), &source);
        EXPECT_EQ(got, round);
        EXPECT_EQ(source, number);
        send_to_b(round);
        end();
    }
}

TEST_F(ALaterNumber, IsAnotherOneWhenThatOneAsksFirst) {
    for (int round = 0; round < 10 && !HasFailure(); ++round) {
        start();
        send_to_a(round, 2);
        expect(round, 2, number);
        end();
    }
}

TEST_F(ALaterNumber, LeavesTheFormerOneItsMessagesAndItsEnd) {
    start();
    send_to_b(1);
    send_to_a(5, 2);
    const fi_addr_t former = number;
    end();
    start();
    send_to_a(6, 2);
    expect(6, 2, number);
    expect(5, 2, former);
    const int value = 0;
    EXPECT_EQ(fi_tinject(a.endpoint.get(), &value, sizeof value, former, 1), -FI_ECONNRESET);
    send_to_b(7);
}

TEST_F(ALaterNumber, IsTheSameOneWhileItIsThere) {
    start();
    send_to_b(1);
    const fi_addr_t former = std::exchange(number, a.knows(*b));
    EXPECT_NE(number, former);
    send_to_b(2);
    number = former;
    send_to_b(3);
    end();
}

// Peers that lie --------------------------------------------------------------------------------

TEST(Liars, EndTheirOwnConnectionAlone) {
    Couple couple;
    const Lie lies[] = {
        {"nothing", {0}, 0},
        {"half a header", {0}, 8},
        {"no kind", {0, kind(0)}, 16},
        {"a kind that there is not", {0, kind(9)}, 16},
        {"a write to who shows no memory", {0, kind(4)}, 16},
        {"a number that is not the next", {0, kind(1, 1, 1)}, 16},
        {"half an offer", {0, kind(2), 1, 1}, 32},
        {"an offer of nothing", {0, kind(2), 0, 1, 1, 1}, 48},
        {"an offer of too much", {0, kind(2), ~std::uint64_t{0}, 1, 1, 1}, 48},
        {"an end of what it was not sent", {0, kind(3)}, 16},
        {"an end of what nobody was sent", {~std::uint64_t{0}, kind(3)}, 16},
        {"an end with something behind it", {0, kind(3), 5}, 24},
    };
    ASSERT_NO_FATAL_FAILURE(expect_each_ends(couple.b, lies));
    int got = 0;
    const int value = 9;
    couple.b.post(&got, sizeof got, 1, 1);
    couple.a.inject(couple.to_b, &value, sizeof value, 1, 0, &couple.b);
    couple.b.completion(&couple.a);
    EXPECT_EQ(got, 9);
}

/// Accepts, but answers with a greeting that is none, and sends at once: what came lies in the
/// connection that ends.
TEST(Liars, GreetWronglyWhenTheyHaveSent) {
    Party b(nullptr, 0, FI_WAIT_FD);
    VIP_NIC_HANDLE nic = nullptr;
    VIP_MEM_HANDLE memory = 0;
    ASSERT_EQ(VipOpenNic("shm", &nic), VIP_SUCCESS);
    ASSERT_EQ(ViaRegisterAll(nic, &memory), VIP_SUCCESS);
    const via::Address host = host_of(nic);
    for (std::uint16_t port = 21; port < 41; ++port) {
        std::atomic<bool> has_sent{false};
        VIP_VI_HANDLE vi = nullptr;
        std::uint64_t said[3] = {3, kind(1), 77};
        alignas(VIP_DESCRIPTOR_ALIGNMENT) VIP_DESCRIPTOR sent{};
        std::thread liar([&] {
            const auto at = host.with("libfabric:" + std::to_string(port));
            alignas(VIP_NET_ADDRESS) std::byte from[64];
            VIP_VI_ATTRIBUTES theirs;
            VIP_CONN_HANDLE request = nullptr;
            EXPECT_EQ(VipConnectWait(nic, at.raw(), 20000, reinterpret_cast<VIP_NET_ADDRESS*>(from),
                                     &theirs, &request),
                      VIP_SUCCESS);
            theirs.Ptag = nullptr;
            EXPECT_EQ(VipCreateVi(nic, &theirs, nullptr, nullptr, &vi), VIP_SUCCESS);
            EXPECT_EQ(ViaSetCredits(vi, VIP_TRUE), VIP_SUCCESS);
            EXPECT_EQ(ViaConnectAccept(request, vi, said, 4), VIP_SUCCESS);
            sent.CS.SegCount = 1;
            sent.CS.Length = sizeof said;
            sent.DS[0].Local = {{.Address = said}, memory, sizeof said};
            EXPECT_EQ(VipPostSend(vi, &sent, memory), VIP_SUCCESS);
            has_sent = true;
        });
        const fi_addr_t to = b.knows(port);
        // Who does not listen yet refuses, too.
        ssize_t answer = 0;
        while (!has_sent || answer == -FI_EAGAIN)
            answer = fi_tinject(b.endpoint.get(), "", 1, to, 1);
        EXPECT_EQ(answer, -FI_ECONNREFUSED);
        liar.join();
        std::uint64_t got = 0;
        b.post(&got, sizeof got, 3, 1);
        if (fi_cancel(&b.endpoint->fid, word(1)) == 0) {
            b.failure();
        } else {
            b.completion();
            EXPECT_EQ(got, 77U);
        }
        VipDisconnect(vi);
        VIP_DESCRIPTOR* done = nullptr;
        VipSendDone(vi, &done);
        EXPECT_EQ(VipDestroyVi(vi), VIP_SUCCESS);
    }
    EXPECT_EQ(VipCloseNic(nic), VIP_SUCCESS);
}

/// While another thread reads its queue, and connections of it are asked for.
TEST(Peers, AnEndpointIsClosedBesideAThreadThatReads) {
    Party others[3];
    for (int round = 0; round < 30; ++round) {
        Party b;
        std::atomic<bool> is_over{false};
        std::thread reader([&] {
            while (!is_over) b.read();
        });
        for (Party& other : others) {
            fi_tinject(b.endpoint.get(), "x", 1, b.knows(other), 1);
            fi_tinject(other.endpoint.get(), "x", 1, other.knows(b), 1);
        }
        b.endpoint.reset();
        is_over = true;
        reader.join();
        for (Party& other : others) other.read();
    }
}

TEST(Liars, CannotEndAnothersMessage) {
    Couple couple;
    const auto sent = pattern(300000, 1);
    couple.a.send(couple.to_b, sent.data(), sent.size(), 1, 1, &couple.b);
    Liar liar(couple.a);
    ASSERT_EQ(liar.connect(Liar::hello(2)), VIP_SUCCESS);
    liar.say({0, kind(3)}, 16);  // the first cookie that there is
    liar.expect_end();
    couple.a.expect_nothing();
    std::vector<std::byte> got(sent.size());
    couple.b.post(got.data(), got.size(), 1, 2);
    couple.b.completion(&couple.a);
    EXPECT_EQ(got, sent);
    couple.a.completion(&couple.b);
}

TEST(Liars, OfferWhatIsNotTheirs) {
    Party b;
    Liar liar(b);
    ASSERT_EQ(liar.connect(Liar::hello(2)), VIP_SUCCESS);
    std::uint64_t got = 1;
    b.post(&got, sizeof got, 6, 1);
    liar.say({6, kind(2), 100, 4096, 1, 12345}, 48);
    EXPECT_EQ(b.failure().err, FI_ECONNRESET);
    EXPECT_EQ(got, 1U);
    liar.expect_end();
}

TEST(Liars, AreNotLetInAgainUnderALaterNumber) {
    Party b;
    std::uint64_t got = 0;
    const auto insert = [&] { b.post(&got, sizeof got, 1, 1, b.knows(2)); };
    insert();
    auto said = Liar::hello(2);
    {
        Liar liar(b);
        ASSERT_EQ(liar.connect(said), VIP_SUCCESS);
        liar.say({0, kind(0)}, 16);
        EXPECT_EQ(b.failure().err, FI_ECONNRESET);
        liar.expect_end();
    }
    insert();
    Liar same(b);
    EXPECT_EQ(same.connect(said), VIP_REJECT);
    said[4] = 8;  // the incarnation
    Liar another(b);
    EXPECT_EQ(another.connect(said), VIP_SUCCESS);
}

/// A program of the same host may say any port, and any incarnation.
TEST(Liars, CannotTakeTheNameOfOneThatLives) {
    Couple couple;
    const auto talk = [&](std::uint64_t tag) {
        const int value = 5;
        int got[2] = {};
        couple.a.post(&got[0], sizeof(int), tag, 1, couple.to_b);
        couple.b.post(&got[1], sizeof(int), tag, 2, couple.to_a);
        couple.a.inject(couple.to_b, &value, sizeof value, tag, 0, &couple.b);
        couple.b.inject(couple.to_a, &value, sizeof value, tag, 0, &couple.a);
        couple.a.completion(&couple.b);
        couple.b.completion(&couple.a);
        EXPECT_EQ(got[0], value);
        EXPECT_EQ(got[1], value);
    };
    talk(1);
    for (int time = 0; time < 3; ++time) {
        Liar liar(couple.a);
        EXPECT_EQ(liar.connect(Liar::hello(ntohs(couple.b.name.sin_port))), VIP_REJECT);
        talk(2);
    }
}

TEST(Liars, AreNotLetInWithAWrongGreeting) {
    Party b;
    const auto good = Liar::hello(3);
    for (std::size_t word_at = 0; word_at < good.size(); ++word_at) {
        if (word_at == 3 || word_at >= 5) continue;  // of no meaning, or any will do
        auto bad = good;
        bad[word_at] = word_at == 1 ? 1 | 3 << 16 : 0;
        Liar liar(b);
        EXPECT_EQ(liar.connect(bad), VIP_REJECT) << word_at;
    }
    Liar liar(b);
    EXPECT_EQ(liar.connect({}), VIP_REJECT);
}

}  // namespace
}  // namespace rdm_peers_test
