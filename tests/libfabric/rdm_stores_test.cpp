// SPDX-License-Identifier: Apache-2.0
// Endpoints for datagrams: short messages by stores, in turns, in one order with all others.
#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <random>
#include <thread>

#include "liar.hpp"

using namespace scene;

namespace rdm_stores_test {
namespace {

/// One side of a talk: sends its numbers in messages of any length, and receives the other one's.
struct Talker {
    Party& own;
    fi_addr_t to;
    std::mt19937 random;
    std::uint64_t sent = 0;
    std::uint64_t received = 0;
    std::vector<std::vector<std::byte>> lent;  ///< until the end: the peer may fetch them

    static constexpr std::size_t longest = 40000;
    std::vector<std::byte> place = std::vector<std::byte>(longest);

    std::size_t any_length() {
        constexpr std::size_t lengths[] = {8, 8, 8, 8, 24, 40, 41, 1024, 1025, 16385, longest};
        return lengths[random() % std::size(lengths)];
    }
    bool send_one() {
        const std::size_t length = any_length();
        std::vector<std::byte> bytes(length, static_cast<std::byte>(sent));
        std::memcpy(bytes.data(), &sent, sizeof sent);
        const bool copied = length <= 1024;
        const ssize_t answer =
            copied ? fi_tinject(own.endpoint.get(), bytes.data(), length, to, 1)
                   : fi_tsend(own.endpoint.get(), bytes.data(), length, nullptr, to, 1, word(1));
        if (answer != 0) {
            EXPECT_EQ(answer, -FI_EAGAIN);
            return false;
        }
        if (!copied) lent.push_back(std::move(bytes));
        ++sent;
        return true;
    }
    void post() { own.post(place.data(), place.size(), 1, 2); }
    /// Takes what is done; receives one by one, so each message is the next one.
    void take() {
        fi_cq_tagged_entry entry{};
        if (fi_cq_read(own.queue.get(), &entry, 1) != 1 || entry.op_context != word(2)) return;
        std::uint64_t number = 0;
        std::memcpy(&number, place.data(), sizeof number);
        ASSERT_EQ(number, received);
        if (entry.len > sizeof number) {
            EXPECT_EQ(place[entry.len - 1], static_cast<std::byte>(number));
        }
        ++received;
        post();
    }
};

/// Some at once, some in turns, with receives and before them.
TEST(Stores, KeepOneOrderWithAllOthers) {
    constexpr std::uint64_t all = 6000;
    for (const unsigned seed : {1U, 2U, 3U}) {
        Couple couple;
        Talker talkers[] = {{couple.a, couple.to_b, std::mt19937(seed), 0, 0, {}},
                            {couple.b, couple.to_a, std::mt19937(seed + 9), 0, 0, {}}};
        for (Talker& one : talkers) one.post();
        const auto is_done = [&](const Talker& one) {
            return one.sent == all && one.received == all;
        };
        std::mt19937 random(seed);
        const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(100);
        while (!(is_done(talkers[0]) && is_done(talkers[1])) && !testing::Test::HasFailure()) {
            ASSERT_LT(std::chrono::steady_clock::now(), end) << talkers[0].received;
            Talker& one = talkers[random() % 2];
            const auto burst = random() % 4 == 0 ? random() % 100 : 1;
            for (std::uint64_t n = 0; n < burst && one.sent < all && one.send_one(); ++n) {
            }
            const auto looks = random() % 8;
            for (std::uint64_t n = 0; n < looks; ++n) talkers[random() % 2].take();
        }
    }
}

/// Each from a thread of its own.
TEST(Stores, KeepOneOrderInThreads) {
    constexpr std::uint64_t all = 20000;
    Couple couple;
    std::atomic<int> talking{2};
    const auto talk = [&](Party& own, fi_addr_t to, unsigned seed) {
        Talker me{own, to, std::mt19937(seed), 0, 0, {}};
        me.post();
        const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(100);
        bool is_done = false;
        while (talking != 0 && !testing::Test::HasFailure()) {
            if (std::chrono::steady_clock::now() > end) {
                ADD_FAILURE() << me.sent << " sent, " << me.received << " received";
                break;
            }
            // A while in turns, a while as they come.
            const bool in_turns = me.sent / 1000 % 2 == 0;
            if (me.sent < all && (!in_turns || me.sent <= me.received)) me.send_one();
            me.take();
            if (!is_done && me.sent == all && me.received == all) {
                is_done = true;
                --talking;
            }
        }
    };
    std::thread left([&] { talk(couple.a, couple.to_b, 5); });
    talk(couple.b, couple.to_a, 6);
    left.join();
}

/// What was sent last before its end is received.
TEST(Stores, TheLastOneOfAnEndpointArrives) {
    for (int more = 0; more < 3; ++more) {
        Party b;
        std::uint64_t got[3] = {};
        {
            Party a;
            const fi_addr_t to = a.knows(b);
            b.post(&got[0], 8, 1, 1);
            const std::uint64_t first = 7;
            a.inject(to, &first, sizeof first, 1, 0, &b);
            b.completion(&a);
            for (std::uint64_t n = 1; n <= static_cast<std::uint64_t>(more); ++n)
                EXPECT_EQ(fi_tinject(a.endpoint.get(), &n, sizeof n, to, 1), 0);
        }
        for (int n = 0; n < more; ++n) {
            b.post(&got[1 + n], 8, 1, 1);
            b.completion();
            EXPECT_EQ(got[1 + n], static_cast<std::uint64_t>(n + 1));
        }
    }
}

// Seen from outside ------------------------------------------------------------------------------

constexpr std::uint64_t word_of(std::uint64_t number, std::uint64_t over_vi, std::uint64_t length,
                                std::uint64_t flags = 1) {
    return number << 32 | over_vi << 16 | length << 8 | flags;
}

/// Stores a message of 8 bytes as the provider does: the word last.
void store(std::uint64_t* line, std::uint64_t word, std::uint64_t tag, std::uint64_t bytes) {
    line[1] = tag;
    line[2] = 0;
    line[3] = bytes;
    std::atomic_ref(line[0]).store(word, std::memory_order_release);
}

std::uint64_t word_in(std::uint64_t* line) {
    return std::atomic_ref(line[0]).load(std::memory_order_acquire);
}

/// An endpoint, and a peer of it that stores by hand.
class ByHand : public testing::Test {
protected:
    void SetUp() override {
        ASSERT_EQ(liar_.connect(Liar::hello(2, true)), VIP_SUCCESS);
        line_ = liar_.line();
        ASSERT_NE(line_, nullptr);
        sockaddr_in address = b_.name;
        address.sin_port = htons(2);
        ASSERT_EQ(fi_av_insert(b_.addresses.get(), &address, 1, &to_liar_, 0, nullptr), 1);
    }
    std::uint64_t received(std::uint64_t tag) {
        std::uint64_t got = 0;
        b_.post(&got, sizeof got, tag, 1);
        b_.completion();
        return got;
    }

    Party b_;
    Liar liar_{b_};
    std::uint64_t* line_ = nullptr;
    fi_addr_t to_liar_ = FI_ADDR_UNSPEC;
};

TEST_F(ByHand, EndsTakeTurns) {
    const std::uint64_t value = 5;
    std::vector<std::uint64_t> heard(16);
    liar_.listen(heard);
    b_.inject(to_liar_, &value, sizeof value, 3, 0);  // not its turn
    EXPECT_EQ(word_in(line_), 0U);
    liar_.hear();
    EXPECT_EQ(heard[2], 5U);
    for (std::uint64_t number = 1; number < 20; number += 2) {
        store(line_, word_of(number, 0, 8), 3, 100 + number);
        EXPECT_EQ(received(3), 100 + number);
        b_.inject(to_liar_, &number, sizeof number, 4, 0);
        EXPECT_EQ(word_in(line_), word_of(number + 1, 1, 8, 3)) << "with data";
        EXPECT_EQ(line_[1], 4U);
        EXPECT_EQ(line_[3], number);
    }
}

/// So who is gone is missed, and the NIC sees that there is traffic.
TEST_F(ByHand, AfterARowOneGoesOverTheVi) {
    const std::uint64_t value = 5;
    for (std::uint64_t number = 1; number <= 61; number += 2) {
        store(line_, word_of(number, 0, 8), 3, number);
        EXPECT_EQ(received(3), number);
        b_.inject(to_liar_, &value, sizeof value, 4, 0);
        EXPECT_EQ(word_in(line_) >> 32, number + 1);
    }
    store(line_, word_of(63, 0, 8), 3, 63);  // more than the provider would
    EXPECT_EQ(received(3), 63U);
    std::vector<std::uint64_t> heard(16);
    liar_.listen(heard);
    b_.inject(to_liar_, &value, sizeof value, 4, 0);
    EXPECT_EQ(word_in(line_) >> 32, 63U);
    liar_.hear();
    EXPECT_EQ(heard[1] >> 48, 31U) << "it follows so many";
    b_.inject(to_liar_, &value, sizeof value, 4, 0);
    EXPECT_EQ(word_in(line_), word_of(64, 1, 8, 3));
}

TEST_F(ByHand, WhatFollowsAMessageOverTheViWaitsForIt) {
    store(line_, word_of(1, 1, 8), 3, 2);
    b_.expect_nothing();
    std::uint64_t got[2] = {};
    b_.post(&got[0], sizeof got[0], 3, 1);
    b_.post(&got[1], sizeof got[1], 3, 1);
    b_.expect_nothing();
    liar_.say({3, kind(1), 1}, 24);
    b_.completion();
    b_.completion();
    EXPECT_EQ(got[0], 1U);
    EXPECT_EQ(got[1], 2U);
}

/// The end is found in the same look as the message that the stored one follows.
TEST_F(ByHand, WhatWasStoredLastBeforeTheEndIsReceived) {
    std::uint64_t got[2] = {};
    b_.post(&got[0], sizeof got[0], 3, 1);
    b_.post(&got[1], sizeof got[1], 3, 1);
    liar_.say({3, kind(1), 1}, 24);
    store(line_, word_of(1, 1, 8), 3, 2);
    liar_.leave();
    b_.completion();
    b_.completion();
    EXPECT_EQ(got[0], 1U);
    EXPECT_EQ(got[1], 2U);
}

/// Until then the line is of no use; what comes over the VI is kept behind it.
TEST_F(ByHand, OneBeforeItsReceiveGivesTheTurnWhenItIsReceived) {
    const std::uint64_t value = 5;
    store(line_, word_of(1, 0, 8), 3, 1);
    b_.expect_nothing();
    std::vector<std::uint64_t> heard(16);
    liar_.listen(heard);
    b_.inject(to_liar_, &value, sizeof value, 4, 0);
    EXPECT_EQ(word_in(line_) >> 32, 1U);
    liar_.hear();
    EXPECT_EQ(heard[1] >> 48, 0U);
    liar_.say({3, kind(1) | std::uint64_t{1} << 48, 2}, 24);
    b_.expect_nothing();
    EXPECT_EQ(received(3), 1U);
    EXPECT_EQ(received(3), 2U);
    b_.inject(to_liar_, &value, sizeof value, 4, 0);
    EXPECT_EQ(word_in(line_), word_of(2, 1, 8, 3));
}

TEST_F(ByHand, WhatWasStoredBeforeComesFirst) {
    std::uint64_t got[2] = {};
    b_.post(&got[0], sizeof got[0], 3, 1);
    b_.post(&got[1], sizeof got[1], 3, 1);
    store(line_, word_of(1, 0, 8), 3, 1);
    liar_.say({3, kind(1) | std::uint64_t{1} << 48, 2}, 24);
    b_.completion();
    b_.completion();
    EXPECT_EQ(got[0], 1U);
    EXPECT_EQ(got[1], 2U);
}

TEST_F(ByHand, ANumberThatIsNotTheNextOneIsNoMessage) {
    std::uint64_t got = 0;
    b_.post(&got, sizeof got, 3, 1);
    for (const std::uint64_t number : {std::uint64_t{0}, std::uint64_t{2}, ~std::uint64_t{0}}) {
        store(line_, word_of(number, 0, 8), 3, 1);
        b_.expect_nothing();
    }
    store(line_, word_of(1, 0, 8), 3, 8);
    b_.completion();
    EXPECT_EQ(got, 8U);
}

class Lies : public ByHand, public testing::WithParamInterface<std::uint64_t> {};

/// Its connection, and nothing else.
TEST_P(Lies, EndTheConnection) {
    store(line_, GetParam(), 3, 1);
    liar_.expect_end();
    Party a;
    const fi_addr_t to_b = a.knows(b_);
    const std::uint64_t value = 9;
    a.inject(to_b, &value, sizeof value, 5, 0, &b_);
    EXPECT_EQ(received(5), 9U);
}

INSTANTIATE_TEST_SUITE_P(Known, Lies,
                         testing::Values(word_of(1, 0, 41), word_of(1, 0, 255), word_of(1, 0, 8, 4),
                                         word_of(1, 0, 8, 0x81)));

TEST_F(ByHand, TheSecondLieIsFoundToo) {
    store(line_, word_of(1, 0, 8), 3, 1);
    EXPECT_EQ(received(3), 1U);
    store(line_, word_of(3, 0, 8), 3, 1);  // not its turn
    b_.expect_nothing();
    liar_.say({3, kind(1) | std::uint64_t{2} << 48, 2}, 24);
    liar_.expect_end();
}

TEST(NoStores, WhereTheProgramSaysSo) {
    setenv("FI_VIA_STORES", "0", 1);
    Party b;
    Liar liar(b);
    ASSERT_EQ(liar.connect(Liar::hello(2, true)), VIP_SUCCESS);
    EXPECT_EQ(liar.line(), nullptr);
    unsetenv("FI_VIA_STORES");
}

/// Nothing would wake it.
TEST(NoStores, WhereTheProgramMaySleep) {
    Party b(nullptr, 0, FI_WAIT_FD);
    Liar liar(b);
    ASSERT_EQ(liar.connect(Liar::hello(2, true)), VIP_SUCCESS);
    EXPECT_EQ(liar.line(), nullptr);
}

TEST(NoStores, WhereNobodyAskedForThem) {
    Party b;
    Liar liar(b);
    ASSERT_EQ(liar.connect(Liar::hello(2, false)), VIP_SUCCESS);
    EXPECT_EQ(liar.line(), nullptr);
}

}  // namespace
}  // namespace rdm_stores_test
