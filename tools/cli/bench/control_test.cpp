#include "bench/control.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "bench/bytes.hpp"

namespace via::bench::control_test {
namespace {

using Bytes = std::vector<std::byte>;

std::span<const std::byte> body_of(const Bytes& bytes) {
    return std::span(bytes).subspan(control_header_bytes);
}

Question some_question() {
    Question question;
    question.bench = Bench::rate;
    question.op = Op::write;
    question.wait = Wait::block;
    question.reliability = Reliability::reception;
    question.cq = question.immediate = true;
    question.depth = 16;
    question.vis = 7;
    question.active_vis = 3;
    question.segments = 2;
    question.reuse = 40;
    question.size = 4096;
    return question;
}

Open some_open() { return {2, "tcp-socket", some_question(), 1 << 24, 1 << 20}; }

RemoteOrder some_order() {
    RemoteOrder order;
    order.channel = 3;
    order.question = some_question();
    order.effort = {10, 200, 30};
    return order;
}

RemoteAnswer some_answer() {
    RemoteAnswer answer;
    answer.channel = 1;
    answer.answer.good = true;
    answer.answer.reading.last_ns = -5;
    answer.answer.reading.cpu_ns = 77;
    answer.answer.disturbance.steal_ticks = 4;
    answer.answer.disturbance.processors = 8;
    note_failure(answer.answer, "no ruler");
    return answer;
}

TEST(Control, WhatIsSaidIsUnderstood) {
    const auto open = parse_open(body_of(to_bytes(some_open())));
    ASSERT_TRUE(open.has_value());
    EXPECT_EQ(open->name, "tcp-socket");
    EXPECT_EQ(open->like, some_question());
    EXPECT_EQ(open->max_size, 1u << 20);

    const auto order = parse_order(body_of(to_bytes(some_order())));
    ASSERT_TRUE(order.has_value());
    EXPECT_EQ(order->question, some_order().question);
    EXPECT_EQ(order->effort.total(), 240u);

    const auto answer = parse_answer(body_of(to_bytes(some_answer())));
    ASSERT_TRUE(answer.has_value());
    EXPECT_EQ(answer->answer.reading.last_ns, -5);
    EXPECT_EQ(answer->answer.disturbance.processors, 8u);
    EXPECT_STREQ(answer->answer.failure.data(), "no ruler");

    const auto opening = parse_opening(body_of(to_bytes(Opening{80, 1ull << 63})));
    ASSERT_TRUE(opening.has_value());
    EXPECT_EQ(opening->word, 1ull << 63);
    EXPECT_EQ(parse_hello(body_of(to_bytes(Hello{300})))->seconds, 300u);
    EXPECT_EQ(parse_close(body_of(to_bytes(Close{9})))->channel, 9u);
    EXPECT_EQ(parse_refusal(body_of(refusal("busy\x1b[2J"))), "busy?[2J");
}

TEST(Control, HowManyArePostedAtOnceIsSaid) {
    RemoteOrder order = some_order();
    order.question.active_vis = 1;
    order.question.post_many = 3;
    const auto understood = parse_order(body_of(to_bytes(order)));
    ASSERT_TRUE(understood.has_value());
    EXPECT_EQ(understood->question, order.question);
}

TEST(Control, TheHeaderIsTheSameInEveryVersion) {
    const Bytes bytes = to_bytes(Hello{1});
    ASSERT_EQ(bytes.size(), 16u);
    const unsigned char wanted[] = {'v', 'i', 'a', 'b', control_version, 0, 0, 0, 4, 0, 0, 0};
    EXPECT_TRUE(std::equal(std::begin(wanted), std::end(wanted), bytes.begin(),
                           [](unsigned char a, std::byte b) { return std::byte{a} == b; }));
    EXPECT_EQ(refusal("no")[6], std::byte{2});
}

TEST(Control, StrangersAreNotOfThisProtocol) {
    Bytes bytes = to_bytes(Hello{1});
    bytes.resize(control_header_bytes);
    EXPECT_TRUE(parse_header(bytes).has_value());
    Bytes other = bytes;
    other[0] = std::byte{'G'};
    EXPECT_FALSE(parse_header(other).has_value());
    Bytes huge = bytes;
    huge[10] = std::byte{1};
    EXPECT_FALSE(parse_header(huge).has_value());
    EXPECT_FALSE(parse_header(std::span(bytes).first(11)).has_value());
}

// One byte more or less is never a message.
TEST(Control, LengthsAreExact) {
    const auto refused = [](const Bytes& whole, auto parse) {
        Bytes bytes(whole.begin() + control_header_bytes, whole.end());
        bytes.push_back(std::byte{0});
        bool any = parse(bytes).has_value();
        bytes.pop_back();
        EXPECT_TRUE(parse(bytes).has_value());
        bytes.pop_back();
        return !any && !parse(bytes).has_value();
    };
    EXPECT_TRUE(refused(to_bytes(some_open()), parse_open));
    EXPECT_TRUE(refused(to_bytes(some_order()), parse_order));
    EXPECT_TRUE(refused(to_bytes(some_answer()), parse_answer));
    EXPECT_TRUE(refused(to_bytes(Opening{}), parse_opening));
    EXPECT_TRUE(refused(to_bytes(Hello{}), parse_hello));
    EXPECT_TRUE(refused(to_bytes(Close{}), parse_close));
}

// Whatever comes, what is understood has values of its types, and figures that can be added.
TEST(Control, NoiseIsRefusedOrHarmless) {
    std::mt19937_64 random(1);
    std::size_t understood = 0;
    for (int round = 0; round < 20'000; ++round) {
        Bytes order = to_bytes(some_order());
        Bytes answer = to_bytes(some_answer());
        for (Bytes* bytes : {&order, &answer}) {
            for (int changes = 0; changes < 3; ++changes) {
                const std::size_t at =
                    control_header_bytes + random() % (bytes->size() - control_header_bytes);
                (*bytes)[at] = static_cast<std::byte>(random());
            }
        }
        if (const auto parsed = parse_order(body_of(order))) {
            ++understood;
            EXPECT_LE(parsed->question.bench, Bench::verify);
            EXPECT_LE(parsed->question.op, Op::atomic);
            EXPECT_LE(parsed->question.wait, Wait::block);
            EXPECT_LE(parsed->question.reliability, Reliability::reception);
        }
        if (const auto parsed = parse_answer(body_of(answer))) {
            ++understood;
            EXPECT_GE(parsed->answer.reading.cpu_ns, 0);
            EXPECT_EQ(parsed->answer.failure.back(), '\0');
            for (const char c : std::string(parsed->answer.failure.data())) EXPECT_GE(c, ' ');
        }
    }
    EXPECT_GT(understood, 10'000u);
}

TEST(Control, AServerHasLimits) {
    Open open = some_open();
    EXPECT_EQ(objection_to(open, 0), "");
    EXPECT_NE(objection_to(open, most_memory_bytes), "");
    EXPECT_NE(objection_to(open, ~0ull), "");
    open.arena_bytes = ~0ull;
    EXPECT_NE(objection_to(open, 1), "");
    open = some_open();
    open.like.vis = most_vis + 1;
    EXPECT_NE(objection_to(open, 0), "");
    open = some_open();
    open.max_size = most_message_bytes + 1;
    EXPECT_NE(objection_to(open, 0), "");
}

TEST(Control, AnOrderKeepsToWhatWasOpened) {
    Open open = some_open();
    open.max_size = 4096;
    open.arena_bytes = arena_bytes_for(some_order().question);
    const Question question = some_order().question;
    const Effort effort = some_order().effort;
    EXPECT_EQ(objection_to(question, effort, open), "");
    for (const auto& change : std::vector<void (*)(Question&)>{
             [](Question& q) { q.size = 4097; }, [](Question& q) { q.size = ~0ull; },
             [](Question& q) { q.depth = 0; }, [](Question& q) { q.depth = most_depth + 1; },
             [](Question& q) { q.vis = 8; }, [](Question& q) { q.active_vis = 9; },
             [](Question& q) { q.active_vis = 0; }, [](Question& q) { q.segments = 0; },
             [](Question& q) { q.segments = ~0u; }, [](Question& q) { q.reuse = 101; },
             [](Question& q) { q.segments = 252; }, [](Question& q) { q.post_many = 65; }}) {
        Question other = question;
        change(other);
        EXPECT_NE(objection_to(other, effort, open), "");
    }
    open.arena_bytes -= 1;
    EXPECT_NE(objection_to(question, effort, open), "");
    open.arena_bytes += 1;
    EXPECT_NE(objection_to(question, {0, ~0ull, 0}, open), "");
    EXPECT_NE(objection_to(question, {most_messages + 1, 1, 0}, open), "");
    EXPECT_NE(objection_to(question, {0, 1, most_messages + 1}, open), "");
}

}  // namespace
}  // namespace via::bench::control_test
