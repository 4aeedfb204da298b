// SPDX-License-Identifier: Apache-2.0
// Endpoints for datagrams: short messages by stores, in one order with all others.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <random>
#include <thread>

#include <gmock/gmock.h>

#include "liar.hpp"
#include "rdm_rma_scene.hpp"

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

constexpr std::uint64_t lines_each = 32;

/// As flags: so many of the other end's were taken.
constexpr std::uint64_t taken(std::uint64_t count) { return count % 64 << 2; }

/// `count`: of the messages that the end has stored; `number`: of all that it has sent.
constexpr std::uint64_t word_of(std::uint64_t count, std::uint64_t number, std::uint64_t length,
                                std::uint64_t flags = 1) {
    return count << 32 | number << 16 | length << 8 | flags;
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
        theirs_ = liar_.lines();
        ASSERT_NE(theirs_, nullptr);
        ours_ = theirs_ + 8 * lines_each;
        to_liar_ = b_.knows(2);
    }
    std::uint64_t received(std::uint64_t tag) {
        std::uint64_t got = 0;
        b_.post(&got, sizeof got, tag, 1);
        b_.completion();
        return got;
    }
    /// With data.
    void inject(std::uint64_t value) { b_.inject(to_liar_, &value, sizeof value, 4, 0); }
    /// What it injects next comes over the VI, as number `number`.
    void expect_over_vi(std::uint64_t value, std::uint64_t number) {
        const std::vector<std::uint64_t> before(theirs_, ours_);
        std::vector<std::uint64_t> heard(16);
        liar_.listen(heard);
        inject(value);
        EXPECT_EQ(before, std::vector<std::uint64_t>(theirs_, ours_));
        liar_.hear();
        EXPECT_EQ(heard[1] >> 48, number);
        EXPECT_EQ(heard[2], value);
    }

    Party b_;
    Liar liar_{b_};
    std::uint64_t* theirs_ = nullptr;  ///< where the endpoint stores
    std::uint64_t* ours_ = nullptr;
    fi_addr_t to_liar_ = FI_ADDR_UNSPEC;
};

/// It stores nothing anywhere, until it knows that its peer has attached.
TEST_F(ByHand, EndsThatTakeTurnsUseOneLineEach) {
    expect_over_vi(5, 0);
    for (std::uint64_t count = 1; count < 20; ++count) {
        store(ours_, word_of(count, count - 1, 8, 1 | taken(count - 1)), 3, 100 + count);
        EXPECT_EQ(received(3), 100 + count);
        inject(count);
        EXPECT_EQ(word_in(theirs_), word_of(count, count, 8, 3 | taken(count))) << "with data";
        EXPECT_EQ(theirs_[1], 4U);
        EXPECT_EQ(theirs_[3], count);
        EXPECT_EQ(word_in(theirs_ + 8), 0U);
    }
}

TEST_F(ByHand, OtherwiseTheLinesAreARing) {
    store(ours_, word_of(1, 0, 8), 3, 1);
    EXPECT_EQ(received(3), 1U);
    for (std::uint64_t count = 1; count < 10; ++count) {
        inject(count);
        EXPECT_EQ(word_in(theirs_ + (count - 1) * 8), word_of(count, count - 1, 8, 3 | taken(1)));
        EXPECT_EQ(theirs_[(count - 1) * 8 + 3], count);
    }
    // And the first one may be the next whenever the end knows that all are free.
    std::uint64_t at = 1;
    for (std::uint64_t count = 2; count < 100; ++count) {
        if (count % 40 == 0) at = 0;
        store(ours_ + at * 8, word_of(count, count - 1, 8), 3, count);
        at = (at + 1) % lines_each;
        EXPECT_EQ(received(3), count);
    }
    inject(10);
    EXPECT_EQ(word_in(theirs_ + 9 * 8), word_of(10, 9, 8, 3 | taken(99)));
}

constexpr std::uint64_t is_long = 255;
constexpr std::size_t long_room = 1024;

/// What does not fit into a line lies in the room that goes with it.
TEST_F(ByHand, LongerOnesLieBehindTheLines) {
    auto* const rooms = reinterpret_cast<std::byte*>(ours_ + 8 * lines_each);
    std::byte* const their_room = rooms + lines_each * long_room;
    std::uint64_t count = 0;
    for (const std::size_t length : {41UL, 64UL, 1023UL, 1024UL}) {
        const auto bytes = pattern(length, static_cast<unsigned>(length));
        std::memcpy(their_room, bytes.data(), length);
        ours_[2] = length << 32;
        ours_[1] = 3;
        ++count;
        std::atomic_ref(ours_[0]).store(word_of(count, count - 1, is_long, 1 | taken(count - 1)),
                                        std::memory_order_release);
        std::vector<std::byte> got(long_room);
        b_.post(got.data(), got.size(), 3, 1);
        EXPECT_EQ(b_.completion().len, length);
        got.resize(length);
        EXPECT_EQ(got, bytes);
        b_.inject(to_liar_, bytes.data(), length, 4, 0);
        EXPECT_EQ(word_in(theirs_), word_of(count, count - 1, is_long, 3 | taken(count)));
        EXPECT_EQ(theirs_[2] >> 32, length);
        EXPECT_EQ(std::memcmp(rooms, bytes.data(), length), 0);
    }
}

/// Both lines and rooms; before its receive it moves to memory of its own.
TEST_F(ByHand, ALongOneBeforeItsReceiveStaysWhole) {
    auto* const their_room =
        reinterpret_cast<std::byte*>(ours_ + 8 * lines_each) + lines_each * long_room;
    const auto bytes = pattern(long_room, 3);
    std::memcpy(their_room, bytes.data(), long_room);
    ours_[2] = long_room << 32;
    ours_[1] = 3;
    std::atomic_ref(ours_[0]).store(word_of(1, 0, is_long), std::memory_order_release);
    b_.expect_nothing();
    std::memset(their_room, 0, long_room);
    std::vector<std::byte> got(long_room);
    b_.post(got.data(), got.size(), 3, 1);
    EXPECT_EQ(b_.completion().len, long_room);
    EXPECT_EQ(got, bytes);
}

class LongLies : public ByHand, public testing::WithParamInterface<std::uint64_t> {};

TEST_P(LongLies, EndTheConnection) {
    ours_[1] = 3;
    ours_[2] = GetParam() << 32;
    std::atomic_ref(ours_[0]).store(word_of(1, 0, is_long), std::memory_order_release);
    liar_.expect_end();
}

INSTANTIATE_TEST_SUITE_P(Lengths, LongLies, testing::Values(0, 40, 1025, 0xFFFFFFFF));

/// What an end says that it took: so many, before its message `number`.
constexpr std::uint64_t told(std::uint64_t taken, std::uint64_t number) {
    return taken << 16 | number;
}

class TakenWordsByHand : public ByHand {
protected:
    static constexpr std::size_t at = 8 * 2 * lines_each + 2 * lines_each * long_room / 8 + 8 * 2;

    /// So that none of its lines is free.
    void fill() {
        store(ours_, word_of(1, 0, 8), 3, 1);
        EXPECT_EQ(received(3), 1U);
        for (; stored_ <= lines_each; ++stored_) {
            if (stored_ == lines_each) expect_over_vi(1, number_++);  // after a row
            inject(stored_);
            ++number_;
        }
    }
    void tell(std::uint64_t word) {
        std::atomic_ref(theirs_[at + 8]).store(word, std::memory_order_release);
    }
    void expect_in_line(std::uint64_t line) {
        inject(7);
        EXPECT_EQ(word_in(theirs_ + 8 * line) >> 16, stored_++ << 16 | number_++);
    }

    std::uint64_t stored_ = 1;
    std::uint64_t number_ = 0;
};

TEST_F(TakenWordsByHand, SayWhatItTookAndBeforeWhichOfItsOwn) {
    EXPECT_EQ(word_in(theirs_ + at), 0U);
    store(ours_, word_of(1, 0, 8), 3, 1);
    EXPECT_EQ(received(3), 1U);
    EXPECT_EQ(word_in(theirs_ + at), told(1, 0));
    store(ours_ + 8, word_of(2, 1, 8), 3, 2);
    EXPECT_EQ(received(3), 2U);
    EXPECT_EQ(word_in(theirs_ + at), told(2, 0));
    inject(1);
    store(ours_ + 16, word_of(3, 2, 8), 3, 3);
    EXPECT_EQ(received(3), 3U);
    EXPECT_EQ(word_in(theirs_ + at), told(3, 1));
}

TEST_F(TakenWordsByHand, FreeLinesWhereNoMessageTells) {
    fill();
    expect_over_vi(8, number_++);
    tell(told(20, 1));
    for (std::uint64_t line = 0; line < 20; ++line) expect_in_line(line);
    expect_over_vi(9, number_++);
    tell(told(52, 1));
    expect_in_line(0);
}

/// What they tell is older than what is known already.
TEST_F(TakenWordsByHand, CountMoreThanMessagesFromBefore) {
    fill();
    tell(told(20, 3));
    expect_in_line(0);
    store(ours_ + 8, word_of(2, 1, 8, 1 | taken(0)), 3, 2);
    EXPECT_EQ(received(3), 2U);
    expect_in_line(1);
    store(ours_ + 16, word_of(3, 2, 8, 1 | taken(2)), 3, 3);
    EXPECT_EQ(received(3), 3U);
    expect_in_line(2);
    store(ours_ + 24, word_of(4, 3, 8, 1 | taken(35)), 3, 4);
    EXPECT_EQ(received(3), 4U);
    expect_in_line(0);
}

/// More than was stored, nothing, and before a message that has told more since.
TEST_F(TakenWordsByHand, FreeNothingWhereTheyCannotBe) {
    fill();
    for (const std::uint64_t word : {told(0, 1), told(33, 1), told(1U << 31, 1), told(20, 0)}) {
        tell(word);
        expect_over_vi(word, number_++);
    }
}

TEST_F(ByHand, TheirsAreFreeWhenItHearsThatTheyWereTaken) {
    store(ours_, word_of(1, 0, 8), 3, 1);
    EXPECT_EQ(received(3), 1U);
    std::uint64_t number = 0;
    for (std::uint64_t count = 1; count <= lines_each; ++count) {
        if (count == 32) expect_over_vi(1, number++);  // after a row
        inject(count);
        EXPECT_EQ(word_in(theirs_ + (count - 1) * 8), word_of(count, number++, 8, 3 | taken(1)));
    }
    expect_over_vi(8, number++);
    store(ours_ + 8, word_of(2, 1, 8, 1 | taken(0)), 3, 2);
    EXPECT_EQ(received(3), 2U);
    expect_over_vi(9, number++);
    store(ours_ + 16, word_of(3, 2, 8, 1 | taken(1)), 3, 3);
    EXPECT_EQ(received(3), 3U);
    inject(10);
    EXPECT_EQ(word_in(theirs_), word_of(33, number++, 8, 3 | taken(3)));
    expect_over_vi(11, number++);
    liar_.say({3, kind(1, 1 | taken(32), 3), 4}, 24);
    EXPECT_EQ(received(3), 4U);
    inject(13);
    EXPECT_EQ(word_in(theirs_ + 8), word_of(34, number++, 8, 3 | taken(3)));
    liar_.say({3, kind(1, 1 | taken(34), 4), 5}, 24);
    EXPECT_EQ(received(3), 5U);
    inject(14);
    EXPECT_EQ(word_in(theirs_), word_of(35, number++, 8, 3 | taken(3))) << "all were taken";
}

/// A peer that could not attach says so in each of its messages.
TEST_F(ByHand, WhoHasNoLinesIsSentNothingThere) {
    liar_.say({3, kind(1, 1 | taken(lines_each), 0), 4}, 24);
    EXPECT_EQ(received(3), 4U);
    expect_over_vi(1, 0);
    expect_over_vi(2, 1);
}

/// So the NIC sees that there is traffic.
TEST_F(ByHand, AfterARowOneGoesOverTheVi) {
    const auto hear = [this](std::uint64_t count) {
        store(ours_, word_of(count, count - 1, 8, 1 | taken(count - 1)), 3, count);
        EXPECT_EQ(received(3), count);
    };
    for (std::uint64_t count = 1; count <= 31; ++count) {
        hear(count);
        inject(5);
        EXPECT_EQ(word_in(theirs_) >> 32, count);
    }
    hear(32);  // more than the provider would
    expect_over_vi(5, 31);
    inject(5);
    EXPECT_EQ(word_in(theirs_), word_of(32, 32, 8, 3 | taken(32)));
}

TEST_F(ByHand, WhatFollowsAMessageOverTheViWaitsForIt) {
    store(ours_, word_of(1, 1, 8), 3, 2);
    store(ours_ + 8, word_of(2, 2, 8), 3, 3);
    b_.expect_nothing();
    std::uint64_t got[3] = {};
    for (std::uint64_t& one : got) b_.post(&one, sizeof one, 3, 1);
    b_.expect_nothing();
    liar_.say({3, kind(1), 1}, 24);
    for (int n = 0; n < 3; ++n) b_.completion();
    EXPECT_THAT(got, testing::ElementsAre(1, 2, 3));
}

TEST_F(ByHand, WhatWasStoredBeforeComesFirst) {
    std::uint64_t got[3] = {};
    for (std::uint64_t& one : got) b_.post(&one, sizeof one, 3, 1);
    store(ours_ + 8, word_of(2, 1, 8), 3, 2);
    store(ours_, word_of(1, 0, 8), 3, 1);
    liar_.say({3, kind(1, 1, 2), 3}, 24);
    for (int n = 0; n < 3; ++n) b_.completion();
    EXPECT_THAT(got, testing::ElementsAre(1, 2, 3));
}

TEST_F(ByHand, WhatWasStoredLastBeforeTheEndIsReceived) {
    std::uint64_t got[3] = {};
    for (std::uint64_t& one : got) b_.post(&one, sizeof one, 3, 1);
    liar_.say({3, kind(1), 1}, 24);
    store(ours_ + 8, word_of(2, 2, 8), 3, 3);
    store(ours_, word_of(1, 1, 8), 3, 2);
    liar_.leave();
    for (int n = 0; n < 3; ++n) b_.completion();
    EXPECT_THAT(got, testing::ElementsAre(1, 2, 3));
}

/// And counts as not taken, but nothing behind it waits.
TEST_F(ByHand, OneBeforeItsReceiveKeepsItsLine) {
    store(ours_, word_of(1, 0, 8), 3, 1);
    store(ours_ + 8, word_of(2, 1, 8), 3, 2);
    store(ours_ + 16, word_of(3, 2, 8), 5, 3);
    liar_.say({3, kind(1, 1, 3), 4}, 24);
    EXPECT_EQ(received(5), 3U);
    inject(1);
    EXPECT_EQ(word_in(theirs_), word_of(1, 0, 8, 3 | taken(1)));
    for (const std::uint64_t value : {1U, 2U, 4U}) EXPECT_EQ(received(3), value);
    inject(2);
    EXPECT_EQ(word_in(theirs_ + 8), word_of(2, 1, 8, 3 | taken(3)));
}

/// Not even for one that breaks the rules: it should have sent one over the VI.
TEST_F(ByHand, OthersDoNotWaitForOneThatStoresAgainAndAgain) {
    Party a;
    const fi_addr_t to_b = a.knows(b_);
    const auto bytes = pattern(100, 1);
    std::vector<std::byte> got(bytes.size());
    const auto send = [&] {
        b_.post(got.data(), got.size(), 5, 7);
        a.inject(to_b, bytes.data(), bytes.size(), 5, 0, &b_);
    };
    send();
    b_.completion(&a);
    send();
    bool has_come = false;
    for (std::uint64_t count = 1; count <= 200; ++count) {
        store(ours_ + (count - 1) % lines_each * 8, word_of(count, count - 1, 8), 3, count);
        std::uint64_t value = 0;
        b_.post(&value, sizeof value, 3, 1);
        while (b_.completion().op_context == word(7)) has_come = true;
        EXPECT_EQ(value, count);
    }
    EXPECT_TRUE(has_come);
}

/// Nor where the program reads several completions at a time, and so learns that there are no more.
TEST_F(ByHand, NorDoOthersWhereSeveralAreRead) {
    Party a;
    const fi_addr_t to_b = a.knows(b_);
    const auto bytes = pattern(100, 1);
    std::vector<std::byte> got(bytes.size());
    b_.post(got.data(), got.size(), 5, 7);
    a.inject(to_b, bytes.data(), bytes.size(), 5, 0, &b_);
    b_.completion(&a);
    b_.post(got.data(), got.size(), 5, 7);
    bool has_come = false;
    std::uint64_t value = 0;
    for (std::uint64_t count = 1; count <= 200 && !has_come; ++count) {
        store(ours_ + (count - 1) % lines_each * 8, word_of(count, count - 1, 8), 3, count);
        b_.post(&value, sizeof value, 3, 1);
        if (count == 2) {
            EXPECT_EQ(fi_tinject(a.endpoint.get(), bytes.data(), bytes.size(), to_b, 5), 0);
        }
        fi_cq_tagged_entry entries[16];
        const ssize_t read = fi_cq_read(b_.queue.get(), entries, 16);
        for (ssize_t n = 0; n < read; ++n) has_come = has_come || entries[n].op_context == word(7);
    }
    EXPECT_TRUE(has_come);
}

/// What is to wait for its receive finds no memory.
struct NoMemory {
    NoMemory() { setenv("FI_VIA_MAX_UNEXPECTED_SIZE", "0", 1); }
    ~NoMemory() { unsetenv("FI_VIA_MAX_UNEXPECTED_SIZE"); }
    NoMemory(const NoMemory&) = delete;
    NoMemory& operator=(const NoMemory&) = delete;
};
class WithoutMemory : NoMemory, public ByHand {};

/// As many as there are lines; and one over the VI, which is behind all of them.
TEST_F(WithoutMemory, ByHandAllWaitForTheirReceives) {
    for (std::uint64_t count = 1; count <= lines_each; ++count)
        store(ours_ + (count - 1) * 8, word_of(count, count - 1, 8), 3, count);
    b_.expect_nothing();
    inject(1);
    EXPECT_EQ(word_in(theirs_), word_of(1, 0, 8, 3)) << "none of ours is free";
    liar_.say({3, kind(1, 1, 32), 33}, 24);
    b_.expect_nothing();
    for (std::uint64_t value = 1; value <= 33; ++value) {
        EXPECT_EQ(received(3), value);
        if (value == 20) inject(2);
    }
    EXPECT_EQ(word_in(theirs_ + 8), word_of(2, 1, 8, 3 | taken(20)));
    inject(3);
    EXPECT_EQ(word_in(theirs_ + 16), word_of(3, 2, 8, 3 | taken(32)));
}

TEST_F(WithoutMemory, ByHandMoreThanThereAreLinesEndTheConnection) {
    for (std::uint64_t count = 1; count <= lines_each; ++count) {
        store(ours_ + (count - 1) * 8, word_of(count, count - 1, 8), 3, count);
        b_.expect_nothing();
    }
    EXPECT_TRUE(liar_.is_connected());
    store(ours_, word_of(lines_each + 1, lines_each, 8), 3, 0);
    b_.expect_nothing();
    liar_.expect_end();
}

TEST_F(ByHand, ACountOrANumberThatIsNotTheNextIsNoMessage) {
    std::uint64_t got = 0;
    b_.post(&got, sizeof got, 3, 1);
    for (const std::uint64_t count : {0UL, 2UL, 0xFFFFFFFFUL}) {
        store(ours_, word_of(count, 0, 8), 3, 1);
        b_.expect_nothing();
    }
    store(ours_, word_of(1, 1, 8), 3, 1);
    b_.expect_nothing();
    store(theirs_, word_of(1, 0, 8), 3, 1);
    store(ours_ + 8, word_of(1, 0, 8), 3, 1);
    b_.expect_nothing();
    store(ours_, word_of(1, 0, 8), 3, 8);
    b_.completion();
    EXPECT_EQ(got, 8U);
}

/// A write by RDMA that takes a receive says how long it was, and lets the receive's old bytes lie
/// there, whose number fits again after 65536 messages.
TEST(LiesByRma, ByHandWritesThatTakeAReceiveAreNoMessages) {
    Party b(rma_hints().get());
    Liar liar(b);
    ASSERT_EQ(liar.connect(Liar::hello(2, true)), VIP_SUCCESS);
    std::uint64_t* const lines = liar.lines();
    ASSERT_NE(lines, nullptr);
    std::uint64_t* const ours = lines + lines_each * 8;
    constexpr std::uint64_t receives = 64;
    std::uint64_t got[2] = {};
    for (std::uint64_t number = 0; number < receives; ++number) {
        b.post(&got, sizeof got, 9, 1);
        liar.say({9, kind(1, 1, number)}, 16);
        b.completion();
    }
    for (std::uint64_t number = receives; number < 65536; ++number) {
        b.post(&got, sizeof got, 9, 1);
        const std::uint64_t count = number - receives + 1;
        store(ours + (count - 1) % lines_each * 8, word_of(count & 0xFFFFFFFF, number, 8), 9, 1);
        b.completion();
    }
    std::vector<std::byte> target(16 << 20), bytes(target.size());
    const auto region = b.memory(target.data(), target.size(), FI_REMOTE_WRITE);
    liar.write(bytes, address_of(target.data()), fi_mr_key(region.get()));
    liar.expect_end();
    b.expect_nothing();
}

class Lies : public ByHand, public testing::WithParamInterface<std::uint64_t> {};

/// Its connection, and nothing else.
TEST_P(Lies, EndTheConnection) {
    store(ours_, GetParam(), 3, 1);
    liar_.expect_end();
    Party a;
    const fi_addr_t to_b = a.knows(b_);
    const std::uint64_t value = 9;
    a.inject(to_b, &value, sizeof value, 5, 0, &b_);
    EXPECT_EQ(received(5), 9U);
}

INSTANTIATE_TEST_SUITE_P(Known, Lies, testing::Values(word_of(1, 0, 41), word_of(1, 0, 255)));

TEST_F(ByHand, AMessageOverTheViThatLeavesOneOutEndsTheConnection) {
    store(ours_, word_of(1, 0, 8), 3, 1);
    EXPECT_EQ(received(3), 1U);
    store(ours_ + 8, word_of(3, 1, 8), 3, 1);  // not the next
    b_.expect_nothing();
    liar_.say({3, kind(1, 1, 2), 2}, 24);
    liar_.expect_end();
}

/// A child may not speak for its parent.
TEST(Stores, AForkedChildStoresNothing) {
    Couple couple;
    const auto inject = [&](std::uint64_t value) {
        return fi_tinject(couple.a.endpoint.get(), &value, sizeof value, couple.to_b, 1);
    };
    std::uint64_t got = 0;
    const auto next = [&] {
        couple.b.post(&got, sizeof got, 1, 2);
        couple.b.completion(&couple.a);
        return got;
    };
    couple.a.inject(couple.to_b, "12345678", 8, 1, 0, &couple.b);
    next();
    couple.b.inject(couple.to_a, "x", 1, 9, 0, &couple.a);
    char room = 0;
    couple.a.post(&room, 1, 9, 3);
    couple.a.completion(&couple.b);
    EXPECT_EQ(inject(1), 0);
    EXPECT_EQ(next(), 1U);
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
        alarm(60);
        _exit(inject(2) == 0 ? 1 : 0);
    }
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    EXPECT_EQ(inject(3), 0);
    EXPECT_EQ(inject(4), 0);
    EXPECT_EQ(next(), 3U);
    EXPECT_EQ(next(), 4U);
}

/// Who waits for a request to an endpoint of its own, and lets it wait for its answer.
struct Asked {
    explicit Asked(VIP_NIC_HANDLE nic, const via::Address& host, std::uint16_t port)
        : thread([this, nic, at = host.with("libfabric:" + std::to_string(port))] {
              alignas(VIP_NET_ADDRESS) std::byte from[64];
              VIP_VI_ATTRIBUTES theirs;
              std::uint32_t said[10] = {};
              VIP_UINT32 length = sizeof said;
              code = ViaConnectWait(nic, at.raw(), 20000, reinterpret_cast<VIP_NET_ADDRESS*>(from),
                                    &theirs, &request, said, &length);
              wants_lines = said[9] == 1;
              done = true;
          }) {}
    VIP_RETURN code = VIP_NOT_DONE;
    VIP_CONN_HANDLE request = nullptr;
    bool wants_lines = false;
    std::atomic<bool> done{false};
    std::thread thread;
};

/// Each has memory and a descriptor; those count that were asked and have not answered.
TEST(NoStores, ForMoreThanThirtyTwoPeers) {
    Party a;
    VIP_NIC_HANDLE nic = nullptr;
    ASSERT_EQ(VipOpenNic("shm", &nic), VIP_SUCCESS);
    const via::Address host = host_of(nic);
    std::deque<Asked> peers;
    std::vector<fi_addr_t> numbers;
    for (std::uint16_t port = 11; port < 11 + 40; ++port) {
        peers.emplace_back(nic, host, port);
        numbers.push_back(a.knows(port));
    }
    // Until each is asked: who does not listen yet refuses.
    while (!std::ranges::all_of(peers, [](const Asked& peer) { return peer.done.load(); }))
        for (const fi_addr_t number : numbers)
            EXPECT_NE(fi_tinject(a.endpoint.get(), "", 1, number, 1), 0);
    for (Asked& peer : peers) {
        peer.thread.join();
        EXPECT_EQ(peer.code, VIP_SUCCESS);
    }
    EXPECT_EQ(std::ranges::count(peers, true, &Asked::wants_lines), 32);
    for (Asked& peer : peers) EXPECT_EQ(VipConnectReject(peer.request), VIP_SUCCESS);
    EXPECT_EQ(VipCloseNic(nic), VIP_SUCCESS);
}

TEST(NoStores, WhereTheProgramSaysSo) {
    setenv("FI_VIA_STORES", "0", 1);
    Party b;
    Liar liar(b);
    ASSERT_EQ(liar.connect(Liar::hello(2, true)), VIP_SUCCESS);
    EXPECT_EQ(liar.lines(), nullptr);
    unsetenv("FI_VIA_STORES");
}

/// Nothing would wake it.
TEST(NoStores, WhereTheProgramMaySleep) {
    Party b(nullptr, 0, FI_WAIT_FD);
    Liar liar(b);
    ASSERT_EQ(liar.connect(Liar::hello(2, true)), VIP_SUCCESS);
    EXPECT_EQ(liar.lines(), nullptr);
}

TEST(NoStores, WhereNobodyAskedForThem) {
    Party b;
    Liar liar(b);
    ASSERT_EQ(liar.connect(Liar::hello(2, false)), VIP_SUCCESS);
    EXPECT_EQ(liar.lines(), nullptr);
}

}  // namespace
}  // namespace rdm_stores_test
