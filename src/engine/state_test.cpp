// VIPL 3: the table of states, row by row, and how requests end (4.19 to 4.21).
#include "engine/pair_test.hpp"

namespace via::engine::test::state_test {
namespace {

/// A listener on b, a request of a's program on its way to it.
struct Request {
    explicit Request(Pair& both, Program& client, Time deadline = Time::never()) : pair(both) {
        listener.discriminator = word("ear");
        pair.b.engine.requests().listen(listener);
        NetAddress local;
        local.discriminator = word("mouth");
        NetAddress remote;
        remote.discriminator = word("ear");
        EXPECT_EQ(pair.a.engine.connecting().begin_connect(client.vi(), local, remote, deadline),
                  Status::success);
        pair.a.engine.connecting().connect_on(client.vi(), the_path);
    }
    ~Request() { pair.b.engine.requests().unlisten(listener); }

    Pair& pair;
    Listener listener;
};

struct State : testing::Test {
    Pair pair;
    Program client{pair.a, attributes(Reliability::delivery)};
    Program server{pair.b, attributes(Reliability::delivery)};
};

TEST_F(State, Vipl_3_created_idle) {
    EXPECT_EQ(client.state(), ViState::idle);
    EXPECT_EQ(client.vi().generation.load() % 2, 1U);
}

TEST_F(State, Vipl_3_receives_wait_through_idle_and_pending) {
    server.fill(0, 30, 1);
    queue::Descriptor& early = client.receive(0, 100);
    Request request(pair, client);
    queue::Descriptor& later = client.receive(200, 100);
    pair.carry();
    EXPECT_EQ(status_of(early), 0U);
    ASSERT_EQ(pair.b.engine.accept(request.listener.connection, server.vi()), Status::success);
    pair.carry();
    server.send(0, 30);
    server.send(0, 30);
    pair.carry();
    EXPECT_EQ(status_of(early), receive_done);
    EXPECT_EQ(status_of(later), receive_done);
    EXPECT_TRUE(client.holds(0, 30, 1) && client.holds(200, 30, 1));
}

TEST_F(State, Vipl_3_sends_of_idle_and_pending_are_flushed_at_once) {
    EXPECT_EQ(status_of(client.send(0, 10)), send_flushed);
    EXPECT_EQ(client.state(), ViState::idle);
    Request request(pair, client);
    EXPECT_EQ(status_of(client.send(0, 10)), send_flushed);
    EXPECT_EQ(client.state(), ViState::connect_pending);
    EXPECT_TRUE(pair.a.events().empty());
}

TEST_F(State, Vipl_3_accepted_request_connects_and_tells_attributes) {
    ViAttributes other = attributes(Reliability::delivery);
    other.rdma_read = false;
    Program reader(pair.b, other);
    Request request(pair, client);
    EXPECT_EQ(client.state(), ViState::connect_pending);
    pair.carry();
    ASSERT_TRUE(request.listener.given.load());
    EXPECT_EQ(request.listener.remote, word("mouth"));
    EXPECT_TRUE(request.listener.attributes.rdma_read);
    EXPECT_EQ(client.state(), ViState::connect_pending);
    ASSERT_EQ(pair.b.engine.accept(request.listener.connection, reader.vi()), Status::success);
    EXPECT_EQ(reader.state(), ViState::connected);
    pair.carry();
    EXPECT_EQ(client.state(), ViState::connected);
    EXPECT_EQ(client.vi().connect_status, Status::success);
    EXPECT_FALSE(client.vi().remote.rdma_read);
    EXPECT_TRUE(client.vi().remote.rdma_write);
    EXPECT_EQ(client.vi().remote.transfer_length_max, 4096U);
    EXPECT_EQ(pair.b.engine.requests().find(request.listener.connection), nullptr);
}

TEST_F(State, Vipl_3_rejected_request_returns_to_idle_with_its_receives) {
    queue::Descriptor& receive = client.receive(0, 100);
    {
        Request request(pair, client);
        pair.carry();
        ASSERT_EQ(pair.b.engine.reject(request.listener.connection), Status::success);
        pair.carry();
    }
    EXPECT_EQ(client.state(), ViState::idle);
    EXPECT_EQ(client.vi().connect_status, Status::reject);
    EXPECT_EQ(status_of(receive), 0U);
    connect(pair, client, server);  // the same VI asks again
    server.send(0, 10);
    pair.carry();
    EXPECT_EQ(status_of(receive), receive_done);
}

TEST_F(State, Vipl_4_20_nobody_listens_is_no_match) {
    Request request(pair, client);
    pair.b.engine.requests().unlisten(request.listener);
    pair.carry();
    EXPECT_EQ(client.state(), ViState::idle);
    EXPECT_EQ(client.vi().connect_status, Status::no_match);
}

TEST_F(State, Vipl_4_20_nobody_answers_is_timeout) {
    Request request(pair, client, Time{1000});
    pair.carry();
    EXPECT_EQ(pair.a.engine.next_deadline(), Time{1000});
    pair.a.engine.on_time(Time{999});
    EXPECT_EQ(client.state(), ViState::connect_pending);
    pair.a.engine.on_time(Time{1000});
    EXPECT_EQ(client.state(), ViState::idle);
    EXPECT_EQ(client.vi().connect_status, Status::timeout);
    EXPECT_TRUE(pair.a.engine.next_deadline().is_never());
    pair.carry();  // the withdrawal
    for (int time = 0; time < 2; ++time)
        EXPECT_EQ(pair.b.engine.accept(request.listener.connection, server.vi()), Status::timeout);
    EXPECT_EQ(server.state(), ViState::idle);
    EXPECT_EQ(pair.b.engine.reject(request.listener.connection), Status::success);
    EXPECT_EQ(pair.b.engine.requests().find(request.listener.connection), nullptr);
    EXPECT_FALSE(pair.b.emit());  // nobody to tell
}

TEST_F(State, Vipl_4_21_requests_known_to_be_given_up_keep_out_no_others) {
    std::uint64_t given_up = 0;
    for (std::uint32_t n = 0; n < pair.b.limits.connections_waiting_max; ++n) {
        Request request(pair, client);
        pair.carry();
        pair.a.engine.disconnect(client.vi());
        pair.carry();
        given_up = request.listener.connection;
    }
    {
        Request early(pair, client);
        pair.carry();
        EXPECT_EQ(client.vi().connect_status, Status::no_match);
    }
    EXPECT_EQ(pair.b.engine.accept(given_up, server.vi()), Status::timeout);
    Request request(pair, client);
    pair.carry();
    ASSERT_TRUE(request.listener.given.load());
    EXPECT_EQ(pair.b.engine.reject(given_up), Status::invalid_parameter);
    EXPECT_EQ(pair.b.engine.accept(request.listener.connection, server.vi()), Status::success);
}

TEST_F(State, Vipl_4_20_earliest_of_several_deadlines_counts) {
    Program second(pair.a, attributes(Reliability::delivery));
    Request late(pair, client, Time{2000});
    Request early(pair, second, Time{1000});
    EXPECT_EQ(pair.a.engine.next_deadline(), Time{1000});
    pair.a.engine.on_time(Time{1500});
    EXPECT_EQ(second.vi().connect_status, Status::timeout);
    EXPECT_EQ(client.state(), ViState::connect_pending);
    EXPECT_EQ(pair.a.engine.next_deadline(), Time{2000});
}

/// A listener is there, but the NIC that it is at does not speak: asked again until the program's
/// time is up.
TEST_F(State, Vipl_4_20_who_stands_still_is_asked_again_until_timeout) {
    Engine& engine = pair.a.engine;
    ASSERT_EQ(engine.connecting().begin_connect(client.vi(), {}, {}, Time{} + seconds(7)),
              Status::success);
    engine.on_time(Time{} + seconds(5));
    engine.connecting().not_found(client.vi(), Status::timeout);
    ASSERT_EQ(client.state(), ViState::connect_pending);
    const Time again = engine.next_deadline();
    EXPECT_LE(again, Time{} + seconds(5) + milliseconds(16));
    EXPECT_EQ(engine.connecting().attempts().next_search(again), &client.vi());
    engine.on_time(Time{} + seconds(7));
    EXPECT_EQ(client.state(), ViState::idle);
    EXPECT_EQ(client.vi().connect_status, Status::timeout);
    // Who then is gone is no match, as ever.
    for (const Status status : {Status::no_match, Status::not_reachable}) {
        ASSERT_EQ(engine.connecting().begin_connect(client.vi(), {}, {}, Time::never()),
                  Status::success);
        engine.connecting().not_found(client.vi(), Status::timeout);
        engine.connecting().not_found(client.vi(), status);
        EXPECT_EQ(client.state(), ViState::idle);
        EXPECT_EQ(client.vi().connect_status, status);
    }
}

TEST_F(State, Vipl_4_20_unreachable_peer) {
    NetAddress remote;
    ASSERT_EQ(pair.a.engine.connecting().begin_connect(client.vi(), {}, remote, Time{5}),
              Status::success);
    pair.a.engine.connecting().connect_failed(client.vi(), Status::not_reachable);
    EXPECT_EQ(client.state(), ViState::idle);
    EXPECT_EQ(client.vi().connect_status, Status::not_reachable);
}

TEST_F(State, Vipl_4_20_a_host_that_says_nothing_is_waited_for_without_end_by_who_says_so) {
    for (const Time deadline : {Time{} + seconds(60), Time::never()}) {
        ASSERT_EQ(pair.a.engine.connecting().begin_connect(client.vi(), {}, {}, deadline),
                  Status::success);
        pair.a.engine.on_time(Time{} + seconds(5));
        pair.a.engine.connecting().not_found(client.vi(), Status::not_done);
        if (!deadline.is_never()) {
            EXPECT_EQ(client.vi().connect_status, Status::not_reachable);
            continue;
        }
        EXPECT_EQ(client.state(), ViState::connect_pending);
        EXPECT_EQ(pair.a.engine.connecting().attempts().next_search(Time{} + seconds(6)),
                  &client.vi())
            << "asks again";
    }
    pair.a.engine.connecting().insist(client.vi());
    pair.a.engine.connecting().not_found(client.vi(), Status::not_done);
    EXPECT_EQ(client.vi().connect_status, Status::not_reachable) << "ViaConnectRequest";
}

TEST_F(State, Vipl_4_19_requests_go_to_one_waiter_each_in_order) {
    Program second(pair.a, attributes(Reliability::delivery));
    Request first_request(pair, client);
    Request second_request(pair, second);
    pair.carry();
    ASSERT_TRUE(first_request.listener.given.load());
    ASSERT_TRUE(second_request.listener.given.load());
    ASSERT_EQ(pair.b.engine.accept(first_request.listener.connection, server.vi()),
              Status::success);
    pair.carry();
    EXPECT_EQ(client.state(), ViState::connected);
    EXPECT_EQ(second.state(), ViState::connect_pending);
}

TEST_F(State, Vipl_4_21_mismatches_are_told_to_the_acceptor_only) {
    Request request(pair, client);
    pair.carry();
    const std::uint64_t connection = request.listener.connection;
    Program other_level(pair.b, attributes(Reliability::reception));
    EXPECT_EQ(pair.b.engine.accept(connection, other_level.vi()),
              Status::invalid_reliability_level);
    ViAttributes small = attributes(Reliability::delivery);
    small.transfer_length_max = 100;
    Program other_length(pair.b, small);
    EXPECT_EQ(pair.b.engine.accept(connection, other_length.vi()), Status::invalid_mtu);
    ViAttributes fast = attributes(Reliability::delivery);
    fast.qos = 1;
    Program other_qos(pair.b, fast);
    EXPECT_EQ(pair.b.engine.accept(connection, other_qos.vi()), Status::invalid_qos);
    EXPECT_EQ(other_level.state(), ViState::idle);
    pair.carry();
    EXPECT_EQ(client.state(), ViState::connect_pending);
    ASSERT_EQ(pair.b.engine.accept(connection, server.vi()), Status::success);
    EXPECT_EQ(pair.b.engine.accept(connection, other_level.vi()), Status::invalid_parameter);
}

TEST_F(State, Vipl_4_21_accept_needs_an_idle_vi) {
    connect(pair, client, server);
    Program second(pair.a, attributes(Reliability::delivery));
    Request request(pair, second);
    pair.carry();
    EXPECT_EQ(pair.b.engine.accept(request.listener.connection, server.vi()),
              Status::invalid_state);
    EXPECT_NE(pair.b.engine.requests().find(request.listener.connection), nullptr);
    EXPECT_EQ(server.state(), ViState::connected);
}

TEST_F(State, Vipl_3_request_needs_an_idle_vi) {
    connect(pair, client, server);
    EXPECT_EQ(pair.a.engine.connecting().begin_connect(client.vi(), {}, {}, Time::never()),
              Status::invalid_state);
}

TEST_F(State, Vipl_3_disconnect_here_flushes_both_queues_and_tells_no_loss) {
    connect(pair, client, server);
    queue::Descriptor& receive = client.receive(0, 100);
    queue::Descriptor& send = client.send(0, 3000);  // more frames than are carried
    client.send(0, 10);
    const auto first = pair.a.emit();
    ASSERT_TRUE(first);
    pair.a.engine.disconnect(client.vi());
    EXPECT_EQ(client.state(), ViState::idle);
    EXPECT_EQ(status_of(receive), receive_flushed);
    EXPECT_EQ(status_of(send), send_flushed);
    EXPECT_TRUE(pair.a.events().empty());
    server.receive(0, 4000);
    pair.b.take(*first);
    pair.carry();
    EXPECT_EQ(server.state(), ViState::error);
}

TEST_F(State, Vipl_3_peers_disconnect_makes_error_and_flushes) {
    connect(pair, client, server);
    queue::Descriptor& receive = server.receive(0, 100);
    pair.a.engine.disconnect(client.vi());
    pair.carry();
    EXPECT_EQ(server.state(), ViState::error);
    EXPECT_EQ(status_of(receive), receive_flushed);
    EXPECT_EQ(pair.b.events(), (std::vector{ErrorCode::connection_lost}));
}

TEST_F(State, Vipl_4_18_what_was_published_before_comes_first) {
    connect(pair, client, server);
    client.fill(0, 200, 5);
    queue::Descriptor& got = server.receive(0, 200);
    queue::Descriptor& left = server.receive(200, 200);
    queue::Descriptor& sent = client.send(0, 200);
    std::vector<Carried> published;
    while (auto frame = pair.a.emit()) published.push_back(*frame);
    EXPECT_EQ(status_of(sent), send_done);
    pair.a.engine.disconnect(client.vi());
    for (const Carried& frame : published) pair.b.take(frame);
    pair.carry();
    EXPECT_EQ(status_of(got), receive_done);
    EXPECT_TRUE(server.holds(0, 200, 5));
    EXPECT_EQ(status_of(left), receive_flushed);
    EXPECT_EQ(server.take(server.vi().receive), &got);
    EXPECT_EQ(server.take(server.vi().receive), &left);
}

TEST_F(State, Vipl_3_lost_path_makes_error) {
    connect(pair, client, server);
    Program pending(pair.a, attributes(Reliability::delivery));
    Request request(pair, pending);
    queue::Descriptor& receive = client.receive(0, 100);
    pair.a.engine.on_path_down(the_path);
    EXPECT_EQ(client.state(), ViState::error);
    EXPECT_EQ(status_of(receive), receive_flushed);
    EXPECT_EQ(pending.state(), ViState::idle);
    EXPECT_EQ(pending.vi().connect_status, Status::not_reachable);
    EXPECT_EQ(pair.a.events(), (std::vector{ErrorCode::connection_lost}));
    EXPECT_FALSE(pair.a.emit());
}

TEST_F(State, Vipl_3_posts_in_error_are_flushed_at_once) {
    connect(pair, client, server);
    pair.b.engine.disconnect(server.vi());
    pair.carry();
    ASSERT_EQ(client.state(), ViState::error);
    EXPECT_EQ(status_of(client.send(0, 10)), send_flushed);
    EXPECT_EQ(status_of(client.receive(0, 10)), receive_flushed);
    EXPECT_EQ(client.state(), ViState::error);
    pair.a.engine.disconnect(client.vi());
    EXPECT_EQ(client.state(), ViState::idle);
}

TEST_F(State, Vipl_3_disconnect_of_a_pending_vi_withdraws_the_request) {
    Request request(pair, client);
    pair.carry();
    queue::Descriptor& receive = client.receive(0, 10);
    pair.a.engine.disconnect(client.vi());
    EXPECT_EQ(client.state(), ViState::idle);
    EXPECT_EQ(client.vi().connect_status, Status::invalid_state);
    EXPECT_EQ(status_of(receive), receive_flushed);
    pair.carry();
    EXPECT_EQ(pair.b.engine.accept(request.listener.connection, server.vi()), Status::timeout);
}

TEST_F(State, Vipl_3_acceptance_that_crosses_a_withdrawal_connects_nobody) {
    Request request(pair, client);
    pair.carry();
    ASSERT_EQ(pair.b.engine.accept(request.listener.connection, server.vi()), Status::success);
    pair.a.engine.disconnect(client.vi());
    pair.carry();
    EXPECT_EQ(client.state(), ViState::idle);
    EXPECT_EQ(server.state(), ViState::error);
    EXPECT_EQ(pair.b.events(), (std::vector{ErrorCode::connection_lost}));
}

TEST_F(State, Vipl_3_disconnect_always_succeeds_and_flushes_receives) {
    queue::Descriptor& receive = client.receive(0, 10);
    pair.a.engine.disconnect(client.vi());
    EXPECT_EQ(client.state(), ViState::idle);
    EXPECT_EQ(status_of(receive), receive_flushed);
    pair.a.engine.disconnect(client.vi());
    EXPECT_EQ(client.state(), ViState::idle);
    EXPECT_FALSE(pair.a.emit());  // nobody to tell
}

TEST_F(State, Vipl_3_destroy_needs_idle_and_empty_queues) {
    client.receive(0, 10);
    EXPECT_EQ(pair.a.engine.destroy_vi(client.vi()), Status::error_resource);
    connect(pair, client, server);
    EXPECT_EQ(pair.a.engine.destroy_vi(client.vi()), Status::invalid_state);
    pair.a.engine.disconnect(client.vi());
    EXPECT_EQ(pair.a.engine.destroy_vi(client.vi()), Status::error_resource);  // not yet taken
    client.take_all();
    const std::uint32_t generation = client.vi().generation.load();
    EXPECT_EQ(pair.a.engine.destroy_vi(client.vi()), Status::success);
    EXPECT_NE(client.vi().generation.load(), generation);
    EXPECT_EQ(pair.a.engine.vi_count(), 0U);
}

TEST_F(State, Vipl_3_a_vi_connects_again_and_hears_nothing_of_its_former_connection) {
    connect(pair, client, server);
    client.fill(0, 100, 1);
    client.send(0, 100);
    std::vector<Carried> old;
    while (auto frame = pair.a.emit()) old.push_back(*frame);
    pair.a.engine.disconnect(client.vi());
    pair.b.engine.disconnect(server.vi());
    pair.carry();
    client.take_all();
    connect(pair, client, server);
    queue::Descriptor& receive = server.receive(0, 200);
    for (const Carried& frame : old) EXPECT_EQ(pair.b.take(frame), FrameVerdict::stale);
    EXPECT_EQ(status_of(receive), 0U);
    EXPECT_EQ(server.state(), ViState::connected);
}

/// What ends is not looked for among all that go on.
TEST(Deadlines, of_many_attempts_each_ends_in_a_few_steps) {
    constexpr std::uint32_t count = 1000;
    Side side;
    std::vector<Vi*> vis;
    for (std::uint32_t n = 0; n < count; ++n) {
        vis.push_back(
            side.engine.create_vi(attributes(Reliability::delivery), nullptr, nullptr).value());
        ASSERT_EQ(side.engine.connecting().begin_connect(*vis[n], {}, {}, Time{1000 + n}),
                  Status::success);
    }
    EXPECT_EQ(side.engine.next_deadline(), Time{1000});
    for (std::uint32_t n = 0; n < count / 2; ++n)
        side.engine.connecting().connect_failed(*vis[n], Status::not_reachable);
    EXPECT_EQ(side.engine.next_deadline(), Time{1000 + count / 2});
    side.engine.on_time(Time{1000 + count / 2 + 9});
    EXPECT_EQ(vis[count / 2 + 9]->connect_status, Status::timeout);
    EXPECT_EQ(vis[count / 2 + 10]->state_now(), ViState::connect_pending);
    side.engine.on_time(Time{1000 + count});
    EXPECT_TRUE(side.engine.next_deadline().is_never());
    EXPECT_LT(side.engine.connecting().attempts().comparisons(),
              50U * count);  // once through all were 1000 each
}

}  // namespace
}  // namespace via::engine::test::state_test
