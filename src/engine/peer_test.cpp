// VIPL 4.22: two VIs that ask for each other. And what travels with a request or its answer.
#include "engine/pair_test.hpp"

namespace via::engine::test::peer_test {
namespace {

NetAddress named(const char* name) {
    NetAddress address;
    address.discriminator = word(name);
    return address;
}

std::vector<std::byte> bytes(std::size_t length, int seed = 1) {
    std::vector<std::byte> result(length);
    for (std::size_t n = 0; n < length; ++n)
        result[n] = static_cast<std::byte>(n * 7 + 1 + static_cast<std::size_t>(seed));
    return result;
}

bool holds(const std::unique_ptr<PrivateData>& data, const std::vector<std::byte>& expected) {
    if (!data) return expected.empty();
    return std::equal(expected.begin(), expected.end(), data->bytes.begin(),
                      data->bytes.begin() + data->length);
}

struct Peers : testing::Test {
    Pair pair;
    Program asker{pair.a, attributes(Reliability::delivery)};
    Program waiter{pair.b, attributes(Reliability::delivery)};

    void ask(Time deadline = Time::never(), const std::vector<std::byte>& data = {}) {
        EXPECT_EQ(pair.a.engine.connecting().begin_peer_connect(
                      asker.vi(), named("left"), named("right"), deadline, true, data),
                  Status::success);
    }
    void await(Time deadline = Time::never(), const std::vector<std::byte>& data = {}) {
        EXPECT_EQ(pair.b.engine.connecting().begin_peer_connect(
                      waiter.vi(), named("right"), named("left"), deadline, false, data),
                  Status::success);
    }
    /// The asker's NIC found the other one; what follows is carried.
    void find(Time now = {}) {
        pair.a.engine.on_time(now);
        Vi* vi = pair.a.engine.connecting().attempts().next_search(now);
        ASSERT_EQ(vi, &asker.vi());
        pair.a.engine.connecting().connect_on(*vi, the_path);
        pair.carry();
    }
};

TEST_F(Peers, Vipl_4_22_meet_when_the_waiter_came_first) {
    await();
    ask();
    EXPECT_EQ(asker.state(), ViState::connect_pending);
    find();
    EXPECT_EQ(asker.state(), ViState::connected);
    EXPECT_EQ(waiter.state(), ViState::connected);
    EXPECT_EQ(asker.vi().connect_status, Status::success);
    EXPECT_EQ(waiter.vi().connect_status, Status::success);
    asker.fill(0, 40, 3);
    queue::Descriptor& there = waiter.receive(0, 40);
    asker.send(0, 40);
    pair.carry();
    EXPECT_EQ(status_of(there), receive_done);
    EXPECT_TRUE(waiter.holds(0, 40, 3));
}

TEST_F(Peers, Vipl_4_22_meet_when_the_asker_came_first) {
    ask();
    find();
    EXPECT_EQ(asker.state(), ViState::connect_pending) << "nobody waits there yet";
    EXPECT_EQ(pair.a.engine.connecting().attempts().next_search({}), nullptr)
        << "not at once again";
    EXPECT_EQ(pair.a.engine.next_deadline(), Time{} + milliseconds(1));
    await();
    find(Time{} + milliseconds(1));
    EXPECT_EQ(asker.state(), ViState::connected);
    EXPECT_EQ(waiter.state(), ViState::connected);
}

TEST_F(Peers, Vipl_4_22_looks_less_and_less_often_until_its_deadline) {
    ask(Time{} + milliseconds(100));
    Time now{};
    std::vector<std::int64_t> pauses;
    while (asker.state() == ViState::connect_pending) {
        pair.a.engine.on_time(now);
        if (Vi* vi = pair.a.engine.connecting().attempts().next_search(now)) {
            pair.a.engine.connecting().not_found(*vi, Status::no_match);
            pauses.push_back((pair.a.engine.next_deadline() - now).ns / 1'000'000);
        }
        if (asker.state() == ViState::connect_pending) now = pair.a.engine.next_deadline();
    }
    EXPECT_EQ(now, Time{} + milliseconds(100));
    EXPECT_EQ(asker.vi().connect_status, Status::timeout);
    ASSERT_GE(pauses.size(), 6U);
    EXPECT_EQ((std::vector(pauses.begin(), pauses.begin() + 6)),
              (std::vector<std::int64_t>{1, 2, 4, 8, 16, 16}));
}

TEST_F(Peers, Vipl_4_22_host_that_never_came_is_not_reachable) {
    ask(Time{} + milliseconds(10));
    pair.a.engine.on_time({});
    pair.a.engine.connecting().not_found(*pair.a.engine.connecting().attempts().next_search({}),
                                         Status::not_reachable);
    EXPECT_EQ(asker.state(), ViState::connect_pending) << "it may still come";
    pair.a.engine.on_time(Time{} + milliseconds(10));
    EXPECT_EQ(asker.state(), ViState::idle);
    EXPECT_EQ(asker.vi().connect_status, Status::not_reachable);
}

TEST_F(Peers, Vipl_4_22_both_names_must_match) {
    EXPECT_EQ(pair.b.engine.connecting().begin_peer_connect(waiter.vi(), named("right"),
                                                            named("another"), Time::never(), false),
              Status::success);
    ask();
    find();
    EXPECT_EQ(asker.state(), ViState::connect_pending);
    EXPECT_EQ(waiter.state(), ViState::connect_pending);
    EXPECT_FALSE(pair.b.engine.connecting().is_awaited(named("left"), named("right")));
    EXPECT_TRUE(pair.b.engine.connecting().is_awaited(named("another"), named("right")));
}

TEST_F(Peers, Vipl_4_22_a_server_is_no_peer_and_a_peer_no_server) {
    Listener listener;
    listener.discriminator = word("right");
    pair.b.engine.requests().listen(listener);
    ask();
    find();
    EXPECT_FALSE(listener.given.load());
    EXPECT_EQ(asker.state(), ViState::connect_pending);
    pair.b.engine.requests().unlisten(listener);
    await();
    Program client(pair.a, attributes(Reliability::delivery));
    ASSERT_EQ(pair.a.engine.connecting().begin_connect(client.vi(), named("left"), named("right"),
                                                       Time::never()),
              Status::success);
    pair.a.engine.connecting().connect_on(client.vi(), the_path);
    pair.carry();
    EXPECT_EQ(client.vi().connect_status, Status::no_match);
}

/// A request that insists finds the name, but nobody takes requests there for a while.
TEST_F(Peers, a_request_that_insists_is_made_again_until_a_listener_takes_it) {
    EXPECT_EQ(pair.a.engine.connecting().begin_connect(asker.vi(), named("left"), named("right"),
                                                       Time::never()),
              Status::success);
    pair.a.engine.connecting().insist(asker.vi());
    pair.a.engine.connecting().connect_on(asker.vi(), the_path);
    pair.carry();
    EXPECT_EQ(asker.state(), ViState::connect_pending);
    EXPECT_EQ(pair.a.engine.connecting().attempts().next_search({}), nullptr)
        << "not at once again";
    EXPECT_EQ(pair.a.engine.next_deadline(), Time{} + milliseconds(1));
    find(Time{} + milliseconds(1));
    EXPECT_EQ(pair.a.engine.next_deadline(), Time{} + milliseconds(3)) << "1 ms, then 2";
    Listener listener;
    listener.discriminator = word("right");
    pair.b.engine.requests().listen(listener);
    find(Time{} + milliseconds(3));
    ASSERT_TRUE(listener.given.load());
    ASSERT_EQ(pair.b.engine.accept(listener.connection, waiter.vi()), Status::success);
    pair.carry();
    EXPECT_EQ(asker.state(), ViState::connected);
    EXPECT_EQ(pair.a.engine.next_deadline(), Time::never());
}

TEST_F(Peers,
       a_request_that_insists_ends_when_nobody_has_the_name_when_its_time_is_up_or_when_told) {
    const auto refused = [&](Time deadline) {
        EXPECT_EQ(pair.a.engine.connecting().begin_connect(asker.vi(), named("left"),
                                                           named("right"), deadline),
                  Status::success);
        pair.a.engine.connecting().insist(asker.vi());
        pair.a.engine.connecting().connect_on(asker.vi(), the_path);
        pair.carry();
        EXPECT_EQ(asker.state(), ViState::connect_pending);
    };
    refused(Time::never());
    pair.a.engine.on_time(Time{} + milliseconds(1));
    Vi* vi = pair.a.engine.connecting().attempts().next_search(Time{} + milliseconds(1));
    ASSERT_EQ(vi, &asker.vi());
    pair.a.engine.connecting().not_found(*vi, Status::no_match);
    EXPECT_EQ(asker.state(), ViState::idle);
    EXPECT_EQ(asker.vi().connect_status, Status::no_match);
    refused(Time{} + milliseconds(2));
    pair.a.engine.on_time(Time{} + milliseconds(2));
    EXPECT_EQ(asker.vi().connect_status, Status::timeout);
    refused(Time::never());
    pair.a.engine.disconnect(asker.vi());
    EXPECT_EQ(asker.vi().connect_status, Status::invalid_state);
    EXPECT_EQ(pair.a.engine.next_deadline(), Time::never());
    // The next request of the same VI does not insist by itself.
    EXPECT_EQ(pair.a.engine.connecting().begin_connect(asker.vi(), named("left"), named("right"),
                                                       Time::never()),
              Status::success);
    pair.a.engine.connecting().connect_on(asker.vi(), the_path);
    pair.carry();
    EXPECT_EQ(asker.vi().connect_status, Status::no_match);
}

TEST_F(Peers, Vipl_4_21_attributes_that_differ_are_told_to_both) {
    struct Case {
        ViAttributes theirs;
        Status status;
    };
    ViAttributes other_length = attributes(Reliability::delivery);
    other_length.transfer_length_max = 100;
    ViAttributes other_qos = attributes(Reliability::delivery);
    other_qos.qos = 1;
    for (const Case& one :
         {Case{attributes(Reliability::reception), Status::invalid_reliability_level},
          Case{other_length, Status::invalid_mtu}, Case{other_qos, Status::invalid_qos}}) {
        Program other(pair.b, one.theirs);
        ASSERT_EQ(pair.b.engine.connecting().begin_peer_connect(
                      other.vi(), named("right"), named("left"), Time::never(), false),
                  Status::success);
        ask();
        find();
        EXPECT_EQ(asker.state(), ViState::idle);
        EXPECT_EQ(other.state(), ViState::idle);
        EXPECT_EQ(asker.vi().connect_status, one.status);
        EXPECT_EQ(other.vi().connect_status, one.status);
    }
}

TEST_F(Peers, Vipl_4_22_listening_ends_with_the_attempt) {
    await();
    pair.b.engine.connecting().set_listening(waiter.vi());
    Discriminator gone;
    EXPECT_FALSE(pair.b.engine.connecting().attempts().next_forgotten(gone));
    ask();
    find();
    ASSERT_TRUE(pair.b.engine.connecting().attempts().next_forgotten(gone));
    EXPECT_TRUE(gone == word("right"));
    EXPECT_FALSE(pair.b.engine.connecting().attempts().next_forgotten(gone));
    pair.b.engine.disconnect(waiter.vi());
    await();
    pair.b.engine.connecting().set_listening(waiter.vi());
    pair.b.engine.disconnect(waiter.vi());
    EXPECT_TRUE(pair.b.engine.connecting().attempts().next_forgotten(gone));
}

TEST_F(Peers, Vipl_4_22_who_gave_up_is_not_connected) {
    await();
    ask(Time{} + milliseconds(5));
    pair.a.engine.on_time({});
    pair.a.engine.connecting().connect_on(*pair.a.engine.connecting().attempts().next_search({}),
                                          the_path);
    pair.a.engine.on_time(Time{} + milliseconds(5));
    EXPECT_EQ(asker.vi().connect_status, Status::timeout);
    pair.carry();
    EXPECT_EQ(waiter.state(), ViState::error) << "it was connected, and heard that nobody is there";
    EXPECT_EQ(pair.b.events(), (std::vector{ErrorCode::connection_lost}));
}

TEST_F(Peers, path_that_goes_down_is_looked_for_again) {
    ask();
    pair.a.engine.on_time({});
    pair.a.engine.connecting().connect_on(*pair.a.engine.connecting().attempts().next_search({}),
                                          the_path);
    pair.a.engine.on_path_down(the_path);
    EXPECT_EQ(asker.state(), ViState::connect_pending);
    pair.a.engine.on_path_up(the_path, 64);
    await();
    find(Time{} + milliseconds(1));
    EXPECT_EQ(waiter.state(), ViState::connected);
}

// Private data ------------------------------------------------------------------------------------

TEST_F(Peers, private_data_goes_both_ways) {
    await({Time::never()}, bytes(256, 1));
    ask(Time::never(), bytes(1, 2));
    find();
    EXPECT_TRUE(holds(asker.vi().remote_data, bytes(256, 1)));
    EXPECT_TRUE(holds(waiter.vi().remote_data, bytes(1, 2)));
}

struct PrivateDataOf : Peers {
    Listener listener;

    void request(const std::vector<std::byte>& data) {
        listener.discriminator = word("right");
        pair.b.engine.requests().listen(listener);
        ASSERT_EQ(pair.a.engine.connecting().begin_connect(asker.vi(), named("left"),
                                                           named("right"), Time::never(), data),
                  Status::success);
        pair.a.engine.connecting().connect_on(asker.vi(), the_path);
        pair.carry();
        ASSERT_TRUE(listener.given.load());
    }
};

TEST_F(PrivateDataOf, request_and_acceptance) {
    request(bytes(200));
    EXPECT_EQ(listener.data.length, 200U);
    EXPECT_TRUE(std::equal(listener.data.bytes.begin(), listener.data.bytes.begin() + 200,
                           bytes(200).begin()));
    ASSERT_EQ(pair.b.engine.accept(listener.connection, waiter.vi(), bytes(256, 5)),
              Status::success);
    pair.carry();
    EXPECT_EQ(asker.state(), ViState::connected);
    EXPECT_TRUE(holds(asker.vi().remote_data, bytes(256, 5)));
}

TEST_F(PrivateDataOf, rejection) {
    request({});
    EXPECT_EQ(listener.data.length, 0U);
    ASSERT_EQ(pair.b.engine.reject(listener.connection, bytes(256, 9)), Status::success);
    pair.carry();
    EXPECT_EQ(asker.vi().connect_status, Status::reject);
    EXPECT_TRUE(holds(asker.vi().remote_data, bytes(256, 9)));
    ask();
    EXPECT_FALSE(asker.vi().remote_data) << "of the last attempt only";
}

TEST_F(PrivateDataOf, length_that_lies_is_hostile) {
    request(bytes(3));
    wire::ConnectMessage message{};
    message.reliability = 2;
    message.private_length = 4;
    for (const std::size_t length : {sizeof message, sizeof message + 3, sizeof message + 5}) {
        std::vector<std::byte> payload(length);
        std::memcpy(payload.data(), &message, sizeof message);
        for (const auto kind :
             {wire::FrameKind::request, wire::FrameKind::accept, wire::FrameKind::peer_request}) {
            wire::Header header;
            header.kind = kind;
            EXPECT_EQ(pair.b.take(header, payload), FrameVerdict::hostile);
        }
    }
    wire::Header refusal;
    refusal.kind = wire::FrameKind::refuse;
    EXPECT_EQ(pair.b.take(refusal, std::vector<std::byte>(257)), FrameVerdict::hostile);
}

}  // namespace
}  // namespace via::engine::test::peer_test
