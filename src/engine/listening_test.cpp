// Listeners that stand: which requests wait there, and when they leave.
#include "engine/pair_test.hpp"

namespace via::engine::test::listening_test {
namespace {

struct Listening : testing::Test {
    Listening() {
        backlog.discriminator = word("ear");
        backlog.room = 2;
        backlog.watched = true;
        EXPECT_TRUE(pair.b.engine.requests().make_room(backlog.room));
        pair.b.engine.requests().listen(backlog);
    }
    void ask(Program& client) {
        NetAddress remote;
        remote.discriminator = word("ear");
        EXPECT_EQ(pair.a.engine.connecting().begin_connect(client.vi(), {}, remote, Time::never()),
                  Status::success);
        pair.a.engine.connecting().connect_on(client.vi(), the_path);
        pair.carry();
    }
    /// So many wait, and who watches heard of a change or did not.
    void expect_waiting(std::uint32_t waiting, bool changed) {
        EXPECT_EQ(backlog.waiting.load(), waiting);
        EXPECT_EQ(pair.b.engine.news().next_changed(), changed ? &backlog : nullptr);
        EXPECT_EQ(pair.b.engine.news().next_changed(), nullptr) << "once";
    }

    Pair pair;
    Backlog backlog;
    Offer offer;
    Program first{pair.a, attributes(Reliability::delivery)};
    Program second{pair.a, attributes(Reliability::delivery)};
    Program third{pair.a, attributes(Reliability::delivery)};
    Program server{pair.b, attributes(Reliability::delivery)};
};

TEST_F(Listening, the_oldest_request_is_taken_first) {
    expect_waiting(0, false);
    ask(first);
    expect_waiting(1, true);
    ask(second);
    expect_waiting(2, true);
    ASSERT_TRUE(pair.b.engine.requests().take(backlog, offer));
    expect_waiting(1, true);
    ASSERT_EQ(pair.b.engine.accept(offer.connection, server.vi()), Status::success);
    pair.carry();
    EXPECT_EQ(first.state(), ViState::connected);
    EXPECT_EQ(second.state(), ViState::connect_pending);
    ASSERT_TRUE(pair.b.engine.requests().take(backlog, offer));
    ASSERT_EQ(pair.b.engine.reject(offer.connection), Status::success);
    pair.carry();
    EXPECT_EQ(second.vi().connect_status, Status::reject);
    EXPECT_FALSE(pair.b.engine.requests().take(backlog, offer));
}

TEST_F(Listening, a_request_beyond_the_backlog_is_refused) {
    ask(first);
    ask(second);
    ask(third);
    EXPECT_EQ(third.vi().connect_status, Status::no_match);
    ASSERT_TRUE(pair.b.engine.requests().take(backlog, offer));
    ask(third);
    EXPECT_EQ(third.state(), ViState::connect_pending) << "there is room again";
    expect_waiting(2, true);
}

TEST_F(Listening, a_call_that_waits_comes_first) {
    Listener listener;
    listener.discriminator = word("ear");
    pair.b.engine.requests().listen(listener);
    ask(first);
    EXPECT_TRUE(listener.given.load());
    expect_waiting(0, false);
    ask(second);
    expect_waiting(1, true);
}

TEST_F(Listening, whoever_gives_up_leaves_the_backlog) {
    ask(first);
    ask(second);
    expect_waiting(2, true);
    pair.a.engine.disconnect(first.vi());
    pair.carry();
    expect_waiting(1, true);
    ASSERT_TRUE(pair.b.engine.requests().take(backlog, offer));
    EXPECT_EQ(pair.b.engine.accept(offer.connection, server.vi()), Status::success);
    pair.carry();
    EXPECT_EQ(second.state(), ViState::connected);
}

TEST_F(Listening, whoever_is_gone_leaves_the_backlog) {
    ask(first);
    ask(second);
    ASSERT_TRUE(pair.b.engine.requests().take(backlog, offer));
    pair.b.engine.on_path_down(the_path);
    expect_waiting(0, true);
    EXPECT_EQ(pair.b.engine.accept(offer.connection, server.vi()), Status::timeout);
}

TEST_F(Listening, who_ends_refuses_those_who_wait) {
    ask(first);
    pair.b.engine.requests().unlisten(backlog);
    pair.carry();
    EXPECT_EQ(first.vi().connect_status, Status::no_match);
    EXPECT_EQ(pair.b.engine.news().next_changed(), nullptr) << "nobody watches it any more";
    ask(first);
    EXPECT_EQ(first.vi().connect_status, Status::no_match);
}

/// However many wait elsewhere: each listener's room is its own.
TEST_F(Listening, what_waits_takes_no_room_from_calls_that_wait) {
    ask(first);
    ask(second);
    for (std::uint32_t n = 0; n < pair.b.limits.connections_waiting_max; ++n) {
        Listener listener;
        listener.discriminator = word("ear");
        pair.b.engine.requests().listen(listener);
        ask(third);
        ASSERT_TRUE(listener.given.load()) << n;
        pair.a.engine.disconnect(third.vi());
        pair.carry();
    }
}

}  // namespace
}  // namespace via::engine::test::listening_test
