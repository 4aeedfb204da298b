// SPDX-License-Identifier: Apache-2.0
// Receives that several messages share: FI_MULTI_RECV.
#include <algorithm>

#include "rdm_scene.hpp"

using namespace scene;

namespace rdm_many_test {
namespace {

Info many_hints() {
    Info info = datagram_hints();
    info->caps |= FI_MULTI_RECV;
    return info;
}

class Many : public testing::Test {
protected:
    Many() { set_min_room(64); }
    void set_min_room(std::size_t bytes) {
        EXPECT_EQ(fi_setopt(&couple.b.endpoint->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &bytes,
                            sizeof bytes),
                  0);
    }
    void post(std::uintptr_t context, fi_addr_t from = FI_ADDR_UNSPEC) {
        const iovec piece{room.data(), room.size()};
        fi_msg message{};
        message.msg_iov = &piece;
        message.iov_count = 1;
        message.addr = from;
        message.context = word(context);
        ASSERT_EQ(fi_recvmsg(couple.b.endpoint.get(), &message, FI_MULTI_RECV | FI_COMPLETION), 0);
    }
    void send(const std::vector<std::byte>& bytes) {
        until_taken(couple.a, &couple.b, [&] {
            return fi_send(couple.a.endpoint.get(), bytes.data(), bytes.size(), nullptr,
                           couple.to_b, word(7));
        });
    }
    /// The next message lies at that place. True: it was the last one.
    bool expect(std::size_t at, const std::vector<std::byte>& bytes, std::uintptr_t context) {
        fi_addr_t from = FI_ADDR_UNSPEC;
        const fi_cq_tagged_entry entry = couple.b.completion(&couple.a, &from);
        EXPECT_EQ(entry.op_context, word(context));
        EXPECT_EQ(entry.flags & ~std::uint64_t{FI_MULTI_RECV}, FI_MSG | FI_RECV);
        EXPECT_EQ(entry.buf, room.data() + at);
        EXPECT_EQ(entry.len, bytes.size());
        EXPECT_EQ(from, couple.to_a);
        EXPECT_TRUE(std::ranges::equal(std::span(room).subspan(at, bytes.size()), bytes));
        return (entry.flags & FI_MULTI_RECV) != 0;
    }

    std::vector<std::byte> room{1000};
    Couple couple{many_hints().get()};
};

TEST_F(Many, MessagesLieOneBehindTheOther) {
    post(1);
    send(pattern(8, 1));
    EXPECT_FALSE(expect(0, pattern(8, 1), 1));
    send(pattern(100, 2));
    EXPECT_FALSE(expect(8, pattern(100, 2), 1));
    send(pattern(0, 3));
    EXPECT_FALSE(expect(108, {}, 1));
    send(pattern(828, 4));
    EXPECT_FALSE(expect(108, pattern(828, 4), 1));  // 64 bytes are left
    send(pattern(1, 5));
    EXPECT_TRUE(expect(936, pattern(1, 5), 1));
    couple.b.expect_nothing();
    // What comes next waits for its receive.
    send(pattern(9, 6));
    post(2);
    EXPECT_FALSE(expect(0, pattern(9, 6), 2));
}

TEST_F(Many, OneOfThatSizeIsAlsoTheLast) {
    post(1);
    send(pattern(1000, 1));
    EXPECT_TRUE(expect(0, pattern(1000, 1), 1));
}

TEST_F(Many, WhatCameBeforeIsThereAtOnce) {
    for (unsigned seed = 0; seed < 5; ++seed) send(pattern(300, seed));
    post(1);
    for (unsigned seed = 0; seed < 3; ++seed)
        EXPECT_FALSE(expect(300 * seed, pattern(300, seed), 1));
    // 100 bytes are left, and the fourth has 300.
    EXPECT_EQ(couple.b.failure(&couple.a).err, FI_ETRUNC);
    post(2);
    EXPECT_FALSE(expect(0, pattern(300, 4), 2));
}

/// The memory is given back with whatever is done last: long ones are pulled while others come.
TEST_F(Many, LongAndShortOnesTogether) {
    room.resize(std::size_t{4} << 20);
    const std::size_t lengths[] = {3, 500000, 40, 1 << 20, 20000, 1 << 20, 64, 1 << 20};
    for (int round = 0; round < 4; ++round) {
        if (round % 2 == 0) post(1);
        std::vector<std::vector<std::byte>> sent;
        for (const std::size_t length : lengths)
            sent.push_back(pattern(length, static_cast<unsigned>(round)));
        for (const auto& one : sent) send(one);
        set_min_room(room.size() - 3665000);
        if (round % 2 != 0) post(1);
        std::vector<bool> came(sent.size());
        for (std::size_t left = sent.size(); left != 0; --left) {
            const fi_cq_tagged_entry entry = couple.b.completion(&couple.a);
            const auto at =
                static_cast<std::size_t>(static_cast<std::byte*>(entry.buf) - room.data());
            std::size_t begin = 0;
            std::size_t which = 0;
            while (which < sent.size() && begin != at) begin += sent[which++].size();
            ASSERT_LT(which, sent.size()) << at;
            EXPECT_FALSE(came[which]);
            came[which] = true;
            EXPECT_EQ(entry.len, sent[which].size());
            EXPECT_TRUE(std::ranges::equal(std::span(room).subspan(at, entry.len), sent[which]));
            EXPECT_EQ((entry.flags & FI_MULTI_RECV) != 0, left == 1) << left;
        }
        for (std::size_t left = sent.size(); left != 0; --left) couple.a.completion(&couple.b);
    }
}

TEST_F(Many, TakenBackItGivesItsMemoryBack) {
    post(1);
    send(pattern(10, 1));
    EXPECT_FALSE(expect(0, pattern(10, 1), 1));
    ASSERT_EQ(fi_cancel(&couple.b.endpoint->fid, word(1)), 0);
    const fi_cq_err_entry error = couple.b.failure();
    EXPECT_EQ(error.err, FI_ECANCELED);
    EXPECT_NE(error.flags & FI_MULTI_RECV, 0U);
    EXPECT_EQ(fi_cancel(&couple.b.endpoint->fid, word(1)), -FI_ENOENT);
}

TEST_F(Many, OnlyTheLastOneIsToldToWhoAsksForNoMore) {
    const Info wanted = many_hints();
    wanted->rx_attr->op_flags = FI_MULTI_RECV;  // fi_recv() is one, then
    Party a(wanted.get());
    Party b(wanted.get(), FI_SELECTIVE_COMPLETION);
    const fi_addr_t to_b = a.knows(b);
    b.knows(a);
    std::size_t least = 4;
    ASSERT_EQ(
        fi_setopt(&b.endpoint->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &least, sizeof least),
        0);
    std::size_t length = sizeof least;
    least = 0;
    EXPECT_EQ(fi_getopt(&b.endpoint->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &least, &length),
              0);
    EXPECT_EQ(least, 4U);
    std::uint32_t got[3] = {};
    ASSERT_EQ(fi_recv(b.endpoint.get(), got, sizeof got, nullptr, FI_ADDR_UNSPEC, word(1)), 0);
    for (std::uint32_t number = 1; number <= 3; ++number)
        until_taken(a, &b, [&] { return fi_inject(a.endpoint.get(), &number, 4, to_b); });
    const fi_cq_tagged_entry entry = b.completion(&a);
    EXPECT_EQ(entry.buf, &got[2]);
    EXPECT_NE(entry.flags & FI_MULTI_RECV, 0U);
    EXPECT_EQ(got[0], 1U);
    EXPECT_EQ(got[2], 3U);
    b.expect_nothing();
}

TEST_F(Many, ToOneself) {
    post(1);
    const fi_addr_t self = couple.b.knows(couple.b);
    for (unsigned seed = 1; seed < 3; ++seed) {
        const auto sent = pattern(400, seed);
        ASSERT_EQ(fi_inject(couple.b.endpoint.get(), sent.data(), sent.size(), self), 0);
        const fi_cq_tagged_entry entry = couple.b.completion();
        EXPECT_EQ(entry.buf, room.data() + (seed - 1) * 400);
        EXPECT_TRUE(std::ranges::equal(std::span(room).subspan((seed - 1) * 400, 400), sent));
    }
}

TEST_F(Many, LosingThePeerGivesTheMemoryBack) {
    send(pattern(1, 1));
    post(1, couple.to_a);
    EXPECT_FALSE(expect(0, pattern(1, 1), 1));
    couple.a.endpoint.reset();
    const fi_cq_err_entry error = couple.b.failure();
    EXPECT_EQ(error.err, FI_ECONNRESET);
    EXPECT_NE(error.flags & FI_MULTI_RECV, 0U);
}

TEST_F(Many, WithTagsThereAreNone) {
    fi_msg_tagged message{};
    EXPECT_EQ(fi_trecvmsg(couple.b.endpoint.get(), &message, FI_MULTI_RECV), -FI_EOPNOTSUPP);
}

}  // namespace
}  // namespace rdm_many_test
