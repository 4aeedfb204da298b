#include "device/datagram/searches.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace via::device::datagram::searches_test {
namespace {

HostAddress host(std::uint8_t number) {
    HostAddress address;
    address.length = 6;
    address.bytes[3] = number;
    return address;
}

/// Questions are numbered as the searches' cookies.
struct SearchesTest : testing::Test {
    PathEvents events;
    Searches searches{events};
    Time now{1'000'000'000};
    std::vector<std::uint64_t> asked;

    Search& add(std::uint64_t cookie, std::uint8_t at = 1) {
        NetAddress remote;
        remote.host = host(at);
        Search& search = searches.add(remote, cookie, cookie, now, seconds(1));
        searches.asked(search, now);
        return search;
    }
    void run_until(Time end) {
        while (searches.deadline() <= end) {
            now = searches.deadline();
            searches.run(now, [this](Search& search) {
                asked.push_back(search.cookie);
                searches.asked(search, now);
            });
        }
        now = end;
    }
    void refuse(std::uint8_t at, NetworkErrorKind kind = NetworkErrorKind::port_unreachable) {
        searches.on_network_error({kind, host(at), 0, 0, true}, now);
    }
    /// The status of the only event, which is the answer to `cookie`.
    Status answer_of(std::uint64_t cookie) {
        EXPECT_EQ(events.size(), 1U);
        if (events.empty()) return Status::success;
        EXPECT_EQ(events[0].kind, PathEventKind::unresolved);
        EXPECT_EQ(events[0].cookie, cookie);
        return events[0].status;
    }
};

TEST_F(SearchesTest, one_is_asked_again_and_given_up_in_time) {
    add(7);
    run_until(now + milliseconds(999));
    EXPECT_EQ(asked.size(), 6U) << "after 20, 60, 140, 300, 550 and 800 ms";
    EXPECT_TRUE(events.empty());
    run_until(now + milliseconds(1));
    EXPECT_EQ(answer_of(7), Status::not_done);
    EXPECT_TRUE(searches.deadline().is_never());
    EXPECT_EQ(searches.find(7), nullptr);
}

TEST_F(SearchesTest, who_waits_for_a_path_is_not_asked) {
    add(7).path = 3;
    run_until(now + seconds(2));
    EXPECT_TRUE(asked.empty());
    EXPECT_TRUE(events.empty());
    searches.ask_again_all_of(3, now);
    EXPECT_FALSE(searches.deadline().is_never());
}

TEST_F(SearchesTest, all_that_wait_for_a_path_hear_of_it_with_their_own_cookies) {
    add(7).path = 3;
    add(8).path = 4;
    add(9).path = 3;
    EXPECT_TRUE(searches.end_all_of(3, {PathEventKind::resolved, 3}));
    ASSERT_EQ(events.size(), 2U);
    EXPECT_EQ(events[0].cookie, 7U);
    EXPECT_EQ(events[1].cookie, 9U);
    EXPECT_NE(searches.find(8), nullptr);
    EXPECT_FALSE(searches.end_all_of(3, {PathEventKind::resolved, 3}));
}

TEST_F(SearchesTest, a_refusal_for_each_of_several_questions_is_believed) {
    for (const auto& [kind, status] :
         {std::pair{NetworkErrorKind::port_unreachable, Status::no_match},
          {NetworkErrorKind::no_way, Status::not_reachable}}) {
        events.clear();
        Search& search = add(7);
        for (int n = 1; n < refusals_max; ++n) {
            refuse(1, kind);
            refuse(1, kind);  // of the same question
            EXPECT_TRUE(events.empty()) << n;
            searches.asked(search, now);
        }
        refuse(2, kind);
        EXPECT_TRUE(events.empty()) << "another host's";
        refuse(1, kind);
        EXPECT_EQ(answer_of(7), status);
    }
}

TEST_F(SearchesTest, silence_behind_one_refusal_is_believed_unless_an_answer_comes) {
    Search& search = add(7);
    refuse(1);
    searches.answered(search);
    run_until(now + refused_least);
    EXPECT_TRUE(events.empty());
    search.refused = false;
    refuse(1);
    run_until(now + seconds(1));
    EXPECT_EQ(answer_of(7), Status::no_match);
    events.clear();
    add(8);
    const Time begin = now;
    run_until(begin + Duration{refused_least.ns - 1});
    EXPECT_TRUE(events.empty());
    run_until(begin + seconds(1));
    EXPECT_EQ(answer_of(8), Status::no_match) << "the host said so lately";
}

TEST_F(SearchesTest, what_a_stranger_may_have_caused_is_of_the_question_it_quotes) {
    add(7);
    add(8);
    for (int n = 0; n < refusals_max; ++n) {
        searches.on_network_error({NetworkErrorKind::no_way, host(1), 0, 8, false}, now);
        if (Search* search = searches.find(8)) searches.asked(*search, now);
    }
    EXPECT_EQ(answer_of(8), Status::not_reachable);
    EXPECT_NE(searches.find(7), nullptr);
}

TEST_F(SearchesTest, time_in_which_nobody_ran_us_does_not_count) {
    add(7);
    now = now + seconds(5);
    searches.extend_deadlines(seconds(5));
    run_until(now + milliseconds(900));
    EXPECT_TRUE(events.empty());
}

}  // namespace
}  // namespace via::device::datagram::searches_test
