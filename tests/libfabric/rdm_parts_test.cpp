// SPDX-License-Identifier: Apache-2.0
// Parts of endpoints for datagrams that need no NIC: who gets which message, and what a peer may
// ask for.
#include <gtest/gtest.h>

#include <vector>

#include "rdm/arithmetic.hpp"
#include "rdm/matching.hpp"
#include "rdm/peer.hpp"

namespace rdm_parts_test {
namespace {

using namespace via::fabric::rdm;

Receive wants(std::uint64_t tag, std::uint64_t ignore, Peer* from) {
    Receive receive{};
    receive.tag = tag;
    receive.ignore = ignore;
    receive.from = from;
    return receive;
}

TEST(Takes, tag_and_sender_must_fit) {
    Peer one;
    Peer other;
    EXPECT_TRUE(takes(wants(5, 0, nullptr), &one, 5));
    EXPECT_FALSE(takes(wants(5, 0, nullptr), &one, 4));
    EXPECT_TRUE(takes(wants(5, 1, nullptr), &one, 4));
    EXPECT_FALSE(takes(wants(5, 2, nullptr), &one, 4));
    EXPECT_TRUE(takes(wants(5, 0, &one), &one, 5));
    EXPECT_FALSE(takes(wants(5, 0, &one), &other, 5));
}

TEST(Fitting, says_of_messages_what_takes_says_of_receives) {
    Peer one;
    Peer other;
    for (std::uint64_t tag = 0; tag < 8; ++tag)
        for (std::uint64_t ignore = 0; ignore < 8; ++ignore)
            for (Peer* const from : {static_cast<Peer*>(nullptr), &one, &other}) {
                Message message;
                message.peer = &one;
                message.header.tag = 5;
                EXPECT_EQ(fitting(from, tag, ignore)(message),
                          takes(wants(tag, ignore, from), &one, 5));
            }
}

TEST(Line, gives_the_oldest_that_fits_and_keeps_the_order_of_the_others) {
    std::vector<Receive> receives;
    for (const std::uint64_t tag : {1U, 2U, 1U, 3U, 1U}) receives.push_back(wants(tag, 0, nullptr));
    Line<Receive> line;
    for (Receive& receive : receives) line.push(receive);
    const auto with = [](std::uint64_t tag) {
        return [tag](const Receive& receive) { return receive.tag == tag; };
    };
    EXPECT_EQ(line.take(with(3)), &receives[3]);
    EXPECT_EQ(line.take(with(3)), nullptr);
    EXPECT_EQ(line.find(with(2)), &receives[1]);
    EXPECT_EQ(line.take(with(1)), &receives[0]);
    EXPECT_EQ(line.take_first(), &receives[1]);
    // The last one was taken out and another came behind.
    EXPECT_EQ(line.take([&](const Receive& receive) { return &receive == &receives[4]; }),
              &receives[4]);
    line.push(receives[3]);
    EXPECT_EQ(line.take_first(), &receives[2]);
    EXPECT_EQ(line.take_first(), &receives[3]);
    EXPECT_TRUE(line.empty());
}

TEST(Line, what_several_messages_share_stays) {
    Receive many = wants(0, ~std::uint64_t{0}, nullptr);
    many.takes_many = true;
    Line<Receive> line;
    line.push(many);
    for (int times = 0; times < 2; ++times)
        EXPECT_EQ(line.take([](const Receive&) { return true; },
                            [](const Receive& receive) { return receive.takes_many; }),
                  &many);
    EXPECT_FALSE(line.empty());
}

TEST(TwoLines, tagged_messages_and_others_never_meet) {
    Receive tagged = wants(1, 0, nullptr);
    TwoLines<Receive> lines;
    lines.tagged_if(true).push(tagged);
    EXPECT_TRUE(lines.tagged_if(false).empty());
    EXPECT_EQ(lines.tagged_if(true).first(), &tagged);
}

TEST(Pool, gives_each_object_to_one_at_a_time) {
    Pool<Receive> pool;
    std::vector<Receive*> taken;
    for (int count = 0; count < 200; ++count) {
        Receive* const receive = pool.take();
        ASSERT_NE(receive, nullptr);
        receive->context = receive;
        taken.push_back(receive);
    }
    for (Receive* receive : taken) EXPECT_EQ(receive->context, receive);
    pool.give_back(*taken.front());
    EXPECT_EQ(pool.take(), taken.front());
}

// What a peer asks for ----------------------------------------------------------------------------

AtomicCall add_to_two_words() {
    AtomicCall call{};
    call.count = 2;
    call.datatype = FI_UINT64;
    call.operation = FI_SUM;
    call.form = static_cast<std::uint8_t>(Form::fetch);
    return call;
}
constexpr std::size_t two_words = 2 * sizeof(std::uint64_t);

TEST(IsCall, has_its_values_behind_it_and_nothing_else) {
    AtomicCall call = add_to_two_words();
    EXPECT_TRUE(is_call(call, sizeof call + two_words));
    EXPECT_FALSE(is_call(call, sizeof call + two_words - 1));
    EXPECT_FALSE(is_call(call, sizeof call + two_words + 1));
    EXPECT_FALSE(is_call(call, sizeof call));
    EXPECT_FALSE(is_call(call, 0));

    call.form = static_cast<std::uint8_t>(Form::compare);
    call.operation = FI_CSWAP;
    EXPECT_TRUE(is_call(call, sizeof call + 2 * two_words));
    EXPECT_FALSE(is_call(call, sizeof call + two_words));

    call.form = static_cast<std::uint8_t>(Form::fetch);
    call.operation = FI_ATOMIC_READ;
    EXPECT_TRUE(is_call(call, sizeof call));
    EXPECT_FALSE(is_call(call, sizeof call + two_words));
}

TEST(IsCall, any_number_in_any_field_is_borne) {
    const auto wrong = [](auto change) {
        AtomicCall call = add_to_two_words();
        change(call);
        for (std::size_t length = 0; length <= inject_max; length += 8)
            EXPECT_FALSE(is_call(call, length)) << length;
    };
    wrong([](AtomicCall& call) { call.form = 3; });
    wrong([](AtomicCall& call) { call.form = 255; });
    wrong([](AtomicCall& call) { call.zero = 1; });
    wrong([](AtomicCall& call) { call.datatype = 255; });
    wrong([](AtomicCall& call) { call.operation = 255; });
    wrong([](AtomicCall& call) { call.count = 0; });
    wrong([](AtomicCall& call) { call.count = atomic_bytes_max / sizeof(std::uint64_t) + 1; });
    // Its bytes, in 32 bits, would be as many as there are.
    wrong([](AtomicCall& call) { call.count = 0x20000002; });
    wrong([](AtomicCall& call) { call.count = ~0U; });
}

}  // namespace
}  // namespace rdm_parts_test
