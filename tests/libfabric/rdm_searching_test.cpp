// SPDX-License-Identifier: Apache-2.0
// Endpoints for datagrams: looking for messages, claiming and dropping them, and taking back.
#include "rdm_scene.hpp"

using namespace scene;

namespace rdm_searching_test {
namespace {

/// Until the message is there; without FI_CLAIM and FI_DISCARD it may be asked for again.
fi_cq_tagged_entry found(Couple& couple, std::uint64_t tag, std::uint64_t flags) {
    for (int look = 0; look < 1000000; ++look) {
        couple.b.search(tag, 30, flags, couple.to_a);
        fi_cq_tagged_entry entry{};
        const ssize_t got = fi_cq_read(couple.b.queue.get(), &entry, 1);
        if (got == 1) return entry;
        EXPECT_EQ(got, -FI_EAVAIL);
        fi_cq_err_entry error{};
        EXPECT_EQ(fi_cq_readerr(couple.b.queue.get(), &error, 0), 1);
        EXPECT_EQ(error.err, FI_ENOMSG);
        couple.a.read();
    }
    ADD_FAILURE() << "no message came";
    return {};
}

TEST(Searching, FindsLeavesAndClaims) {
    Couple couple;
    for (const std::size_t length : {8UL, 5000UL, 300000UL}) {
        const auto sent = pattern(length, 8);
        couple.a.send(couple.to_b, sent.data(), length, 4, 2, &couple.b);
        fi_cq_tagged_entry entry = found(couple, 4, FI_PEEK);
        EXPECT_EQ(entry.len, length);
        EXPECT_EQ(entry.tag, 4U);
        EXPECT_EQ(entry.op_context, word(30));
        entry = found(couple, 4, FI_PEEK | FI_CLAIM);
        EXPECT_EQ(entry.len, length);
        // It is nobody else's any more.
        couple.b.search(4, 31, FI_PEEK);
        EXPECT_EQ(couple.b.failure().err, FI_ENOMSG);
        std::vector<std::byte> got(length);
        iovec piece{got.data(), length};
        fi_msg_tagged message{};
        message.msg_iov = &piece;
        message.iov_count = 1;
        message.context = word(30);
        EXPECT_EQ(fi_trecvmsg(couple.b.endpoint.get(), &message, FI_CLAIM | FI_COMPLETION), 0);
        EXPECT_EQ(couple.b.completion(&couple.a).len, length);
        EXPECT_EQ(got, sent);
        EXPECT_EQ(couple.a.completion(&couple.b).op_context, word(2));
        EXPECT_EQ(fi_trecvmsg(couple.b.endpoint.get(), &message, FI_CLAIM | FI_COMPLETION),
                  -FI_EINVAL);
    }
}

TEST(Searching, DropsMessages) {
    Couple couple;
    for (const std::size_t length : {8UL, 300000UL})
        for (const bool claims : {false, true}) {
            const auto sent = pattern(length, 8);
            couple.a.send(couple.to_b, sent.data(), length, 4, 2, &couple.b);
            if (claims) {
                found(couple, 4, FI_PEEK | FI_CLAIM);
                couple.b.search(4, 30, FI_CLAIM | FI_DISCARD);
                EXPECT_EQ(couple.b.completion(&couple.a).op_context, word(30));
            } else {
                found(couple, 4, FI_PEEK | FI_DISCARD);
            }
            EXPECT_EQ(couple.a.completion(&couple.b).op_context, word(2));
            couple.b.search(4, 31, FI_PEEK);
            EXPECT_EQ(couple.b.failure().err, FI_ENOMSG);
        }
}

TEST(Searching, ClaimedOnesMayBeLeftBehind) {
    Couple couple;
    const auto sent = pattern(300000, 8);
    couple.a.send(couple.to_b, sent.data(), sent.size(), 4, 2, &couple.b);
    found(couple, 4, FI_PEEK | FI_CLAIM);
    const int value = 5;
    couple.a.inject(couple.to_b, &value, sizeof value, 5, 0, &couple.b);
    found(couple, 5, FI_PEEK | FI_CLAIM);
}

TEST(Cancelling, TakesBackWhatWasNotMet) {
    Couple couple;
    int got[2] = {};
    couple.b.post(&got[0], sizeof(int), 1, 10);
    couple.b.post(&got[1], sizeof(int), 1, 11);
    EXPECT_EQ(fi_cancel(&couple.b.endpoint->fid, word(10)), 0);
    const fi_cq_err_entry error = couple.b.failure();
    EXPECT_EQ(error.err, FI_ECANCELED);
    EXPECT_EQ(error.op_context, word(10));
    EXPECT_EQ(fi_cancel(&couple.b.endpoint->fid, word(10)), -FI_ENOENT);
    const int value = 3;
    couple.a.inject(couple.to_b, &value, sizeof value, 1, 0, &couple.b);
    EXPECT_EQ(couple.b.completion(&couple.a).op_context, word(11));
    EXPECT_EQ(got[0], 0);
    EXPECT_EQ(got[1], 3);
}

TEST(SelectiveCompletion, TellsWhatIsAskedFor) {
    Party a(nullptr, FI_SELECTIVE_COMPLETION);
    Party b;
    const fi_addr_t to_b = a.knows(b);
    b.knows(a);
    for (const std::size_t length : {8UL, 5000UL, 300000UL}) {
        const auto sent = pattern(length, 2);
        std::vector<std::byte> got(length);
        iovec piece{const_cast<std::byte*>(sent.data()), length};
        fi_msg_tagged message{};
        message.msg_iov = &piece;
        message.iov_count = 1;
        message.addr = to_b;
        for (const std::uint64_t flags : {std::uint64_t{0}, std::uint64_t{FI_COMPLETION}}) {
            b.post(got.data(), length, 0, 1);
            until_taken(a, &b, [&] { return fi_tsendmsg(a.endpoint.get(), &message, flags); });
            b.completion(&a);
            EXPECT_EQ(got, sent);
            if (flags != 0) a.completion(&b);
            a.expect_nothing();
        }
    }
}

}  // namespace
}  // namespace rdm_searching_test
