// SPDX-License-Identifier: Apache-2.0
// Endpoints for datagrams: messages of all lengths find their receives.
#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <string_view>
#include <thread>
#include <utility>

#include "rdm_scene.hpp"

using namespace scene;

namespace rdm_messages_test {
namespace {

TEST(DatagramInfo, IsOfferedAsMpiAsks) {
    const Info info = find(datagram_hints().get());
    ASSERT_NE(info, nullptr);
    EXPECT_STREQ(info->fabric_attr->prov_name, "via");
    EXPECT_EQ(info->ep_attr->type, FI_EP_RDM);
    EXPECT_EQ(info->mode, 0U);
    EXPECT_EQ(info->domain_attr->mr_mode, 0);
    EXPECT_GE(info->domain_attr->cq_data_size, sizeof(int));
    EXPECT_NE(info->caps & FI_DIRECTED_RECV, 0U);
    EXPECT_EQ(info->domain_attr->data_progress, FI_PROGRESS_MANUAL);
    EXPECT_EQ(info->next, nullptr);
}

/// Types of endpoints in the provider's answers, in their order.
std::vector<fi_ep_type> types(const fi_info* hints) {
    std::vector<fi_ep_type> types;
    const Info all = find(hints);
    for (const fi_info* at = all.get(); at != nullptr; at = at->next)
        if (at->fabric_attr->prov_name == std::string("via")) types.push_back(at->ep_attr->type);
    return types;
}

TEST(DatagramInfo, IsOfferedToWhoNamesNoType) {
    using Types = std::vector<fi_ep_type>;
    EXPECT_EQ(types(nullptr), (Types{FI_EP_MSG, FI_EP_RDM}));
    Info wanted = datagram_hints();
    wanted->ep_attr->type = FI_EP_UNSPEC;
    EXPECT_EQ(types(wanted.get()), Types{FI_EP_RDM});  // only these match tags
    wanted = hints(FI_MSG);
    wanted->ep_attr->type = FI_EP_UNSPEC;
    EXPECT_EQ(types(wanted.get()), (Types{FI_EP_MSG, FI_EP_RDM}));
    wanted->caps = FI_RMA;
    EXPECT_EQ(types(wanted.get()), (Types{FI_EP_MSG, FI_EP_RDM}));
}

TEST(DatagramInfo, WhatIsNotThereIsNotOffered) {
    for (const std::uint64_t caps : {FI_RMA_EVENT, FI_VARIABLE_MSG, FI_NAMED_RX_CTX}) {
        Info wanted = datagram_hints();
        wanted->caps |= caps;
        int error = 0;
        find(wanted.get(), &error);
        EXPECT_EQ(error, -FI_ENODATA) << std::hex << caps;
    }
}

/// As programs do that want a second endpoint like the first.
TEST(DatagramInfo, AnAnswerIsAQuestionThatFits) {
    const Info first = find(datagram_hints().get());
    ASSERT_TRUE(first);
    const Info second = find(first.get());
    ASSERT_TRUE(second);
    EXPECT_EQ(second->ep_attr->protocol, first->ep_attr->protocol);
    first->ep_attr->protocol ^= 1;
    int error = 0;
    find(first.get(), &error);
    EXPECT_EQ(error, -FI_ENODATA);
}

TEST(Datagrams, OfEveryLengthBothWays) {
    Couple couple;
    for (const std::size_t length : {0UL, 1UL, 8UL, 1023UL, 1024UL, 1025UL, 16384UL, 16385UL,
                                     65536UL, 65537UL, 100000UL, 1UL << 20, 5UL << 20}) {
        const auto sent = pattern(length, 3);
        for (const bool expected : {true, false}) {
            std::vector<std::byte> got(length + 1);
            if (expected) couple.b.post(got.data(), length, 7, 1, couple.to_a);
            couple.a.send(couple.to_b, sent.data(), length, 7, 2, &couple.b);
            if (!expected) {
                couple.b.read();
                couple.b.post(got.data(), length, 7, 1, couple.to_a);
            }
            fi_addr_t from = FI_ADDR_UNSPEC;
            const fi_cq_tagged_entry entry = couple.b.completion(&couple.a, &from);
            EXPECT_EQ(entry.op_context, word(1));
            EXPECT_EQ(entry.len, length);
            EXPECT_EQ(entry.tag, 7U);
            EXPECT_EQ(entry.flags, FI_RECV | FI_TAGGED);
            EXPECT_EQ(from, couple.to_a);
            EXPECT_TRUE(std::equal(sent.begin(), sent.end(), got.begin()));
            EXPECT_EQ(couple.a.completion(&couple.b).op_context, word(2));
        }
        std::swap(couple.a, couple.b);
        std::swap(couple.to_a, couple.to_b);
    }
}

/// Without a receive, one that is copied at its receiver is done when it got there.
TEST(Datagrams, LongerOnesAreCopiedOverTheNetworkThanInMemory) {
    const char* const device = std::getenv("FI_VIA_DEVICE");
    const std::size_t longest = std::string_view(device).starts_with("udp") ? 65536 : 16384;
    Couple couple;
    const auto bytes = pattern(longest + 1, 1);
    std::vector<std::byte> got(longest + 1);
    couple.a.send(couple.to_b, bytes.data(), longest, 1, 1, &couple.b);
    EXPECT_EQ(couple.a.completion(&couple.b).op_context, word(1));
    couple.a.send(couple.to_b, bytes.data(), longest + 1, 2, 2, &couple.b);
    for (int look = 0; look < 200; ++look) couple.b.read();
    couple.a.expect_nothing();
    for (const std::uintptr_t tag : {1U, 2U}) {
        couple.b.post(got.data(), got.size(), tag, tag);
        EXPECT_EQ(couple.b.completion(&couple.a).op_context, word(tag));
    }
    EXPECT_EQ(couple.a.completion(&couple.b).op_context, word(2));
    EXPECT_EQ(got, bytes);
}

TEST(Datagrams, TheProgramMaySayHowLongOnesAreCopied) {
    setenv("FI_VIA_EAGER_SIZE", "2000", 1);
    Couple couple;
    const auto bytes = pattern(2001, 1);
    for (const std::size_t length : {2000UL, 2001UL})
        couple.a.send(couple.to_b, bytes.data(), length, 1, length, &couple.b);
    EXPECT_EQ(couple.a.completion(&couple.b).op_context, word(2000));
    couple.a.expect_nothing();
    std::vector<std::byte> got(bytes.size());
    for (int message = 0; message < 2; ++message) {
        couple.b.post(got.data(), got.size(), 1, 1);
        couple.b.completion(&couple.a);
    }
    EXPECT_EQ(couple.a.completion(&couple.b).op_context, word(2001));
    EXPECT_EQ(got, bytes);
    unsetenv("FI_VIA_EAGER_SIZE");
}

TEST(Datagrams, DataGoesAlongAndInjectedOnesTellNothing) {
    Couple couple;
    std::uint32_t got = 0;
    couple.b.post(&got, sizeof got, 9, 1);
    const std::uint32_t sent = 77;
    couple.a.inject(couple.to_b, &sent, sizeof sent, 9, 0xfeedbeef, &couple.b);
    const fi_cq_tagged_entry entry = couple.b.completion(&couple.a);
    EXPECT_EQ(entry.flags, FI_RECV | FI_TAGGED | FI_REMOTE_CQ_DATA);
    EXPECT_EQ(entry.data, 0xfeedbeefU);
    EXPECT_EQ(got, sent);
    couple.a.expect_nothing();
    const auto much = pattern(2000, 1);
    EXPECT_EQ(fi_tinject(couple.a.endpoint.get(), much.data(), much.size(), couple.to_b, 1),
              -FI_EMSGSIZE);
}

TEST(Datagrams, WhatNobodyTellsUsIsNotPromised) {
    Couple couple;
    fi_msg_tagged message{};
    message.addr = couple.to_b;
    for (const std::uint64_t flag : {FI_MATCH_COMPLETE, FI_COMMIT_COMPLETE})
        EXPECT_EQ(fi_tsendmsg(couple.a.endpoint.get(), &message, flag), -FI_EOPNOTSUPP) << flag;
}

/// Delivery complete, for each operation or all of them.
class Confirmed : public testing::TestWithParam<std::uint64_t> {
protected:
    static Info wanted() {
        Info info = datagram_hints();
        info->tx_attr->op_flags |= GetParam();
        return info;
    }
    void send(const std::vector<std::byte>& bytes, std::uint64_t tag, std::uint64_t flags) {
        const iovec piece{const_cast<std::byte*>(bytes.data()), bytes.size()};
        fi_msg_tagged message{};
        message.msg_iov = &piece;
        message.iov_count = 1;
        message.addr = couple.to_b;
        message.tag = tag;
        message.context = word(tag);
        until_taken(couple.a, &couple.b, [&] {
            return fi_tsendmsg(couple.a.endpoint.get(), &message,
                               flags | FI_DELIVERY_COMPLETE | FI_COMPLETION);
        });
    }
    Couple couple{wanted().get()};
};

TEST_P(Confirmed, MessagesAreAtThePeerWhenTheyAreTold) {
    const std::size_t lengths[] = {0, 8, 40, 1024, 5000, 16384, 100000};
    for (int round = 0; round < 50; ++round)
        for (const std::size_t length : lengths) {
            const auto sent = pattern(length, static_cast<unsigned>(round));
            send(sent, length, 0);
            // What is offered is pulled by the peer's program.
            std::vector<std::byte> got(length);
            if (length > 65536) couple.b.post(got.data(), length, length, 1);
            EXPECT_EQ(couple.a.completion(length > 65536 ? &couple.b : nullptr).op_context,
                      word(length));
            if (length <= 65536) couple.b.post(got.data(), length, length, 1);
            EXPECT_EQ(couple.b.completion(&couple.a).op_context, word(1));
            EXPECT_EQ(got, sent);
        }
}

TEST_P(Confirmed, InjectedOnesNeedTheirMemoryNoMore) {
    auto sent = pattern(1024, 1);
    const auto before = sent;
    send(sent, 3, FI_INJECT);
    std::ranges::fill(sent, std::byte{0});
    EXPECT_EQ(couple.a.completion(&couple.b).op_context, word(3));
    std::vector<std::byte> got(sent.size());
    couple.b.post(got.data(), got.size(), 3, 1);
    couple.b.completion(&couple.a);
    EXPECT_EQ(got, before);
}

TEST_P(Confirmed, MoreThanAreUnderWayAtATime) {
    constexpr int many = 500;
    int got[many] = {};
    for (int number = 0; number < many; ++number) couple.b.post(&got[number], 4, 1, 1);
    std::vector<std::byte> sent(4);
    for (int number = 0; number < many; ++number) send(sent, 1, FI_INJECT);
    for (int number = 0; number < many; ++number) couple.a.completion(&couple.b);
    for (int number = 0; number < many; ++number) couple.b.completion(&couple.a);
}

INSTANTIATE_TEST_SUITE_P(Datagrams, Confirmed,
                         testing::Values(std::uint64_t{0}, std::uint64_t{FI_DELIVERY_COMPLETE}),
                         [](const auto& of) { return of.param == 0 ? "Each" : "All"; });

TEST(Datagrams, TagsAreMatchedAsTheirBitsSay) {
    Couple couple;
    int got[4] = {};
    couple.b.post(&got[0], sizeof(int), 0x10, 1);
    couple.b.post(&got[1], sizeof(int), 0x20, 2, FI_ADDR_UNSPEC, 0xf);
    couple.b.post(&got[2], sizeof(int), 0, 3, FI_ADDR_UNSPEC, ~0ULL);
    for (const int tag : {0x2a, 0x99, 0x10})
        couple.a.inject(couple.to_b, &tag, sizeof tag, static_cast<std::uint64_t>(tag), 0,
                        &couple.b);
    for (const std::uintptr_t context : {2U, 3U, 1U})
        EXPECT_EQ(couple.b.completion(&couple.a).op_context, word(context));
    EXPECT_EQ(got[0], 0x10);
    EXPECT_EQ(got[1], 0x2a);
    EXPECT_EQ(got[2], 0x99);
}

TEST(Datagrams, UnexpectedOnesAreTakenInTheirOrder) {
    Couple couple;
    constexpr int many = 3000;  // more than a connection has receives
    std::thread sender([&] {
        for (int number = 0; number < many; ++number)
            couple.a.inject(couple.to_b, &number, sizeof number, 5, 0);
    });
    int last = -1;
    // Something that comes behind all of them, so that all are there.
    couple.b.post(&last, sizeof last, 6, 1);
    std::thread more([&] {
        sender.join();
        couple.a.inject(couple.to_b, &many, sizeof many, 6, 0);
    });
    EXPECT_EQ(couple.b.completion().op_context, word(1));
    more.join();
    EXPECT_EQ(last, many);
    for (int number = 0; number < many; ++number) {
        int got = -1;
        couple.b.post(&got, sizeof got, 5, 2, couple.to_a);
        couple.b.completion();
        ASSERT_EQ(got, number);
    }
}

TEST(Datagrams, WhatComesBehindAFloodIsNotKeptByIt) {
    Couple couple;
    constexpr std::uintptr_t many = 5000;  // 80 MB
    const auto bytes = pattern(16000, 1);
    for (std::uintptr_t message = 0; message < many; ++message) {
        couple.a.send(couple.to_b, bytes.data(), bytes.size(), 1, message, &couple.b);
        couple.a.completion(&couple.b);
        ASSERT_FALSE(HasFailure()) << message;
    }
    int got = 0;
    couple.b.post(&got, sizeof got, 2, 1);
    const int sent = 5;
    couple.a.inject(couple.to_b, &sent, sizeof sent, 2, 0, &couple.b);
    couple.b.completion(&couple.a);
    EXPECT_EQ(got, sent);
    // Nor is the word that a long message was pulled.
    const auto much = pattern(2 << 20, 2);
    std::vector<std::byte> room(much.size());
    couple.a.post(room.data(), room.size(), 3, 1);
    couple.b.send(couple.to_a, much.data(), much.size(), 3, 2, &couple.a);
    couple.a.completion(&couple.b);
    EXPECT_EQ(couple.b.completion(&couple.a).op_context, word(2));
    EXPECT_EQ(room, much);
    for (std::uintptr_t message = 0; message < many; ++message) {
        room.assign(bytes.size(), {});
        couple.b.post(room.data(), room.size(), 1, message);
        couple.b.completion(&couple.a);
        ASSERT_EQ(room, bytes);
    }
}

/// Reads until as many, or more than `at_least` and for half a second no more, were sent. What
/// stands still sooner is the machine.
void read_until_still(Party& party, const std::atomic<std::uint64_t>& sent, std::uint64_t at_least,
                      std::uint64_t many) {
    using Clock = std::chrono::steady_clock;
    const auto given_up = Clock::now() + std::chrono::minutes(1);
    std::uint64_t before = 0;
    auto since = Clock::now();
    while (sent != many) {
        party.read();
        const bool goes_on = std::exchange(before, sent.load()) != sent || sent <= at_least;
        if (goes_on && Clock::now() < given_up)
            since = Clock::now();
        else if (Clock::now() - since > std::chrono::milliseconds(500))
            return;
    }
}

TEST(Datagrams, AFloodWaitsAtItsSenderIfTheProgramSaysSo) {
    setenv("FI_VIA_MAX_UNEXPECTED_SIZE", "67108864", 1);
    Couple couple;
    unsetenv("FI_VIA_MAX_UNEXPECTED_SIZE");
    constexpr std::uint64_t many = 6000;  // 96 MB, of which 64 MiB are kept
    const auto bytes = pattern(16000, 1);
    std::atomic<std::uint64_t> sent{0};
    std::thread sender([&] {
        for (; sent < many; ++sent) {
            couple.a.send(couple.to_b, bytes.data(), bytes.size(), sent, 1);
            couple.a.completion();
        }
    });
    constexpr std::uint64_t at_least = 4000;
    read_until_still(couple.b, sent, at_least, many);
    EXPECT_LT(sent, many);
    EXPECT_GT(sent, at_least);
    for (std::uint64_t tag = 0; tag < many; ++tag) {
        std::vector<std::byte> got(bytes.size());
        couple.b.post(got.data(), got.size(), tag, 2);
        couple.b.completion();
        ASSERT_EQ(got, bytes);
    }
    sender.join();
}

/// They take memory as well.
TEST(Datagrams, AFloodOfEmptyOnesWaitsToo) {
    setenv("FI_VIA_MAX_UNEXPECTED_SIZE", "1048576", 1);
    Couple couple;
    unsetenv("FI_VIA_MAX_UNEXPECTED_SIZE");
    constexpr std::uint64_t many = 30000;  // of a bound that holds less than ten thousand
    std::atomic<std::uint64_t> sent{0};
    std::thread sender([&] {
        for (; sent < many; ++sent) couple.a.inject(couple.to_b, nullptr, 0, sent, 0);
    });
    read_until_still(couple.b, sent, 1000, many);
    EXPECT_LT(sent, many);
    for (std::uint64_t tag = 0; tag < many; ++tag) {
        couple.b.post(nullptr, 0, tag, 2);
        ASSERT_EQ(couple.b.completion().tag, tag);
    }
    sender.join();
}

TEST(Datagrams, DirectedReceivesTakeThatPeersAlone) {
    Party middle;
    Party left;
    Party right;
    const fi_addr_t from_left = middle.knows(left);
    const fi_addr_t from_right = middle.knows(right);
    const fi_addr_t to_middle[] = {left.knows(middle), right.knows(middle)};
    int got[3] = {};
    middle.post(&got[0], sizeof(int), 1, 1, from_left);
    middle.post(&got[1], sizeof(int), 1, 2, from_right);
    middle.post(&got[2], sizeof(int), 1, 3);
    for (const int value : {21, 22})
        right.inject(to_middle[1], &value, sizeof value, 1, 0, &middle);
    EXPECT_EQ(middle.completion(&right).op_context, word(2));
    EXPECT_EQ(middle.completion(&right).op_context, word(3));
    const int value = 11;
    left.inject(to_middle[0], &value, sizeof value, 1, 0, &middle);
    EXPECT_EQ(middle.completion(&left).op_context, word(1));
    EXPECT_EQ(got[0], 11);
    EXPECT_EQ(got[1], 21);
    EXPECT_EQ(got[2], 22);
}

TEST(Datagrams, TooLittleRoomIsTold) {
    Couple couple;
    for (const std::size_t length : {100UL, 5000UL, 200000UL}) {
        const auto sent = pattern(length, 4);
        std::vector<std::byte> got(length, std::byte{0x5a});
        couple.b.post(got.data(), 50, 3, 1);
        couple.a.send(couple.to_b, sent.data(), length, 3, 2, &couple.b);
        const fi_cq_err_entry error = couple.b.failure(&couple.a);
        EXPECT_EQ(error.err, FI_ETRUNC);
        EXPECT_EQ(error.len, 50U);
        EXPECT_EQ(error.olen, length - 50);
        EXPECT_TRUE(std::equal(sent.begin(), sent.begin() + 50, got.begin()));
        EXPECT_EQ(got[50], std::byte{0x5a});
        EXPECT_EQ(couple.a.completion(&couple.b).op_context, word(2));
    }
}

TEST(Datagrams, MessagesWithoutTagsAreApart) {
    Couple couple;
    int tagged = 0;
    int plain = 0;
    couple.b.post(&tagged, sizeof tagged, 0, 1, FI_ADDR_UNSPEC, ~0ULL);
    EXPECT_EQ(
        fi_recv(couple.b.endpoint.get(), &plain, sizeof plain, nullptr, FI_ADDR_UNSPEC, word(2)),
        0);
    const int values[] = {5, 6};
    until_taken(couple.a, &couple.b, [&] {
        return fi_inject(couple.a.endpoint.get(), &values[0], sizeof(int), couple.to_b);
    });
    const fi_cq_tagged_entry entry = couple.b.completion(&couple.a);
    EXPECT_EQ(entry.op_context, word(2));
    EXPECT_EQ(entry.flags, FI_RECV | FI_MSG);
    couple.a.inject(couple.to_b, &values[1], sizeof(int), 4, 0, &couple.b);
    EXPECT_EQ(couple.b.completion(&couple.a).op_context, word(1));
    EXPECT_EQ(plain, 5);
    EXPECT_EQ(tagged, 6);
}

TEST(Datagrams, ToOneselfOfEveryLength) {
    Party party;
    const fi_addr_t self = party.knows(party);
    for (const std::size_t length : {0UL, 8UL, 5000UL, 300000UL}) {
        const auto sent = pattern(length, 6);
        for (const bool expected : {true, false}) {
            std::vector<std::byte> got(length);
            if (expected) party.post(got.data(), length, 2, 1, self);
            party.send(self, sent.data(), length, 2, 2);
            // What another endpoint would have by now is done, for who waits before it receives.
            const bool is_copied = !expected && length <= 5000;
            if (is_copied) {
                EXPECT_EQ(party.completion().op_context, word(2));
            }
            if (!expected) party.post(got.data(), length, 2, 1, self);
            EXPECT_EQ(party.completion().op_context, word(1));
            if (!is_copied) {
                EXPECT_EQ(party.completion().op_context, word(2));
            }
            EXPECT_EQ(got, sent);
        }
    }
    int value = 8;
    party.inject(self, &value, sizeof value, 3, 1);
    value = 0;
    party.post(&value, sizeof value, 3, 4);
    EXPECT_EQ(party.completion().data, 1U);
    EXPECT_EQ(value, 8);
}

TEST(Datagrams, ThreadsShareAnEndpoint) {
    Couple couple;
    constexpr std::uint64_t each = 2000;
    std::uint64_t places[2] = {};
    const auto play = [&](Party& own, fi_addr_t to, std::uint64_t& place) {
        for (std::uint64_t number = 0; number < each; ++number) {
            own.post(&place, sizeof place, 1, 1);
            own.inject(to, &number, sizeof number, 1, 0);
            own.completion();  // of anybody's receive
        }
    };
    std::vector<std::thread> threads;
    for (int pair = 0; pair < 2; ++pair) {
        threads.emplace_back([&] { play(couple.a, couple.to_b, places[0]); });
        threads.emplace_back([&] { play(couple.b, couple.to_a, places[1]); });
    }
    for (std::thread& thread : threads) thread.join();
    couple.a.expect_nothing();
    couple.b.expect_nothing();
}

}  // namespace
}  // namespace rdm_messages_test
