// Scenarios of meeting: what is sent, and what comes of it when packets are lost, duplicated, late,
// crossing, old or forged.
#include "base/random.hpp"
#include "device/datagram/device_pair_test.hpp"

namespace via::device::datagram::test::meeting_test {
namespace {

struct Meeting : ::testing::Test, Scene {};

TEST_F(Meeting, as_written) {
    b.device->listen(named("b"));
    ask_b();
    run(milliseconds(1));
    EXPECT_EQ(transcript(), R"(
0 1>2 query
10 2>1 answer
20 1>2 hello
30 2>1 retry
40 1>2 hello with a cookie
50 2>1 welcome
)");
    ASSERT_EQ(a.events.size(), 1U);
    EXPECT_EQ(a.events[0].kind, PathEventKind::resolved);
    ASSERT_EQ(b.events.size(), 1U);
    EXPECT_EQ(b.events[0].kind, PathEventKind::up);
    EXPECT_EQ(a.device->statistics(a.path).round_trip, microseconds(20)) << "of hello and welcome";
    // A second question finds the path.
    ask_b();
    run(milliseconds(1));
    EXPECT_EQ(transcript(), R"(
1000 1>2 query
1010 2>1 answer
)");
    ASSERT_EQ(a.events.size(), 2U);
    EXPECT_EQ(a.events[1].path, a.events[0].path);
}

TEST_F(Meeting, nobody_listens) {
    ask_b();
    run(milliseconds(1));
    ASSERT_EQ(a.events.size(), 1U);
    EXPECT_EQ(a.events[0].kind, PathEventKind::unresolved);
    EXPECT_EQ(a.events[0].status, Status::no_match);
    EXPECT_EQ(a.events[0].cookie, 7U);
}

TEST_F(Meeting, nobody_answers) {
    network.weather = [](const Datagram&) { return Fate{}; };
    ask_b();
    run(seconds(6));
    ASSERT_EQ(a.events.size(), 1U);
    EXPECT_EQ(a.events[0].status, Status::not_done) << "the engine knows how long it may take";
    std::string queries = R"(
0 1>2 query
20000 1>2 query
60000 1>2 query
140000 1>2 query
300000 1>2 query
)";
    for (int at = 550'000; at < 5'000'000; at += 250'000)
        queries += std::to_string(at) + " 1>2 query\n";
    EXPECT_EQ(transcript(), queries);
}

TEST_F(Meeting, a_listener_that_stands_still_is_there) {
    b.device->listen(named("b"));
    network.weather = [this](const Datagram& datagram) {
        return datagram.kind() == wire::PacketKind::hello ? Fate{} : Fate{network.delay};
    };
    ask_b();
    run(seconds(6));
    ASSERT_EQ(a.events.size(), 1U);
    EXPECT_EQ(a.events[0].status, Status::timeout);
}

/// Another process has the host's port, and stands still.
TEST_F(Meeting, at_home_nobody_need_answer_for_the_host) {
    End c{network, 1, 1003, 40001};
    ends.push_back(&c);
    a.port().takes_host_port = c.port().takes_host_port = false;
    a.device->resolve({address(1, host_port), named("c")}, 7);
    run(milliseconds(30));
    EXPECT_TRUE(a.events.empty()) << "who listens there may be known to others";
    c.device->listen(named("c"));
    run(milliseconds(100));
    EXPECT_TRUE(a.is_up && c.is_up);
    EXPECT_EQ(count(a, PathEventKind::resolved), 1U);
    // A second question finds the path.
    a.device->resolve({address(1, host_port), named("c")}, 8);
    run(milliseconds(1));
    EXPECT_EQ(count(a, PathEventKind::resolved), 2U);
    ends.pop_back();
}

TEST_F(Meeting, who_stood_still_asks_again) {
    b.device->listen(named("b"));
    network.weather = [](const Datagram&) { return Fate{}; };
    ask_b();
    run(milliseconds(30));
    network.weather = nullptr;
    network.now = network.now + seconds(10);
    EXPECT_TRUE(run(seconds(1), [&] { return a.is_up && b.is_up; })) << "while looking for it";
    EXPECT_EQ(count(a, PathEventKind::unresolved), 0U);
}

TEST_F(Meeting, who_stood_still_says_hello_again) {
    b.device->listen(named("b"));
    network.weather = [this](const Datagram& datagram) {
        return datagram.kind() == wire::PacketKind::hello ? Fate{} : Fate{network.delay};
    };
    ask_b();
    run(milliseconds(30));
    network.weather = nullptr;
    network.now = network.now + seconds(10);
    EXPECT_TRUE(run(seconds(1), [&] { return a.is_up && b.is_up; }));
    EXPECT_EQ(count(a, PathEventKind::unresolved), 0U);
}

class Refused : public Meeting, public testing::WithParamInterface<NetworkErrorKind> {};
INSTANTIATE_TEST_SUITE_P(By, Refused,
                         testing::Values(NetworkErrorKind::port_unreachable,
                                         NetworkErrorKind::no_way));

TEST_P(Refused, a_few_queries_in_a_row_end_a_question) {
    network.weather = [](const Datagram&) { return Fate{}; };
    ask_b();
    a.port().hint(GetParam(), address(3, host_port), 0);
    a.turn();
    EXPECT_TRUE(a.events.empty()) << "we did not ask there";
    for (int query = 0; query < refusals_max; ++query) {
        EXPECT_TRUE(a.events.empty()) << "another may take the port over";
        if (query != 0) run(Duration{try_first.ns << (query - 1)});
        for (int twice = 0; twice < 2; ++twice) a.port().hint(GetParam(), address(2, host_port), 0);
        a.turn();
    }
    ASSERT_EQ(a.events.size(), 1U);
    EXPECT_EQ(a.events[0].status, GetParam() == NetworkErrorKind::port_unreachable
                                      ? Status::no_match
                                      : Status::not_reachable)
        << "the host is there: its NIC may yet be opened";
}

/// Hosts say that nobody is at their port a few times, and then once a second. Who asks again and
/// again until somebody is there, as old programs do, hears so at once all the same.
TEST_F(Meeting, a_host_that_says_no_more_that_nobody_is_there_is_believed) {
    network.weather = [](const Datagram&) { return Fate{}; };
    ask_b();
    a.port().hint(NetworkErrorKind::port_unreachable, address(2, host_port), 0);
    run(milliseconds(200));
    ASSERT_EQ(a.events.size(), 1U) << "after one refusal it was silent";
    EXPECT_EQ(a.events[0].status, Status::no_match);
    ask_b();
    run(milliseconds(200));
    ASSERT_EQ(a.events.size(), 2U) << "it said so just now";
    EXPECT_EQ(a.events[1].status, Status::no_match);
    network.weather = nullptr;
    b.device->listen(named("b"));
    ask_b();
    EXPECT_TRUE(run(milliseconds(100), [&] { return a.is_up && b.is_up; })) << "now it is there";
    network.weather = [](const Datagram&) { return Fate{}; };
    a.device->resolve({address(3, host_port), named("c")}, 7);
    run(milliseconds(200));
    EXPECT_EQ(a.events.size(), 3U) << "of another host nothing is known";
}

TEST_F(Meeting, a_host_that_refused_long_ago_is_asked_as_any_other) {
    network.weather = [](const Datagram&) { return Fate{}; };
    ask_b();
    a.port().hint(NetworkErrorKind::port_unreachable, address(2, host_port), 0);
    run(seconds(6));
    ASSERT_EQ(a.events.size(), 1U);
    ask_b();
    run(seconds(4));
    EXPECT_EQ(a.events.size(), 1U);
    run(seconds(2));
    ASSERT_EQ(a.events.size(), 2U);
    EXPECT_EQ(a.events[1].status, Status::not_done) << "it may be switched off by now";
}

/// A round trip of 300 ms: what the new NIC there says comes later than the least silence.
TEST_F(Meeting, a_far_host_that_refused_is_waited_for_longer) {
    b.device->listen(named("b"));
    network.weather = [](const Datagram&) { return Fate{}; };
    ask_b();
    run(milliseconds(290));
    a.port().hint(NetworkErrorKind::port_unreachable, address(2, host_port), 0);
    run(milliseconds(700));
    ASSERT_EQ(a.events.size(), 1U);
    network.weather = [](const Datagram&) { return Fate{milliseconds(150)}; };
    ask_b();
    EXPECT_TRUE(run(seconds(3), [&] { return a.is_up && b.is_up; }));
}

TEST_F(Meeting, a_hint_that_quotes_nothing_of_ours_ends_no_question) {
    network.weather = [](const Datagram&) { return Fate{}; };
    ask_b();
    for (int query = 0; query < 2 * refusals_max; ++query) {
        a.port().network_errors.push_back(
            {NetworkErrorKind::port_unreachable, address(2, host_port), 0, 4711});
        run(try_longest);
    }
    EXPECT_TRUE(a.events.empty());
}

TEST_F(Meeting, what_a_router_says_ends_no_question) {
    network.weather = [](const Datagram&) { return Fate{}; };
    ask_b();
    for (int query = 0; query < 2 * refusals_max; ++query) {
        a.port().hint(NetworkErrorKind::host_unreachable, address(2, host_port), 0);
        run(try_longest);
    }
    EXPECT_TRUE(a.events.empty());
}

/// Each of the six packets lost, duplicated, or so late that it was sent again before.
TEST_F(Meeting, any_packet_may_go_astray) {
    for (int victim = 0; victim < 6; ++victim)
        for (const Fate& fate :
             {Fate{}, Fate{microseconds(10), microseconds(10)},
              Fate{microseconds(10), milliseconds(30)}, Fate{milliseconds(45)}}) {
            SCOPED_TRACE(std::to_string(victim) + " copies " + std::to_string(fate.size()));
            Scene scene;
            int seen = 0;
            scene.network.weather = [&](const Datagram&) {
                return seen++ == victim ? fate : Fate{microseconds(10)};
            };
            scene.meet();
            scene.run(seconds(1));
            EXPECT_EQ(count(scene.a, PathEventKind::resolved), 1U);
            EXPECT_EQ(count(scene.b, PathEventKind::up), 1U);
            EXPECT_EQ(scene.a.events.size() + scene.b.events.size(), 2U);
            scene.talk();
        }
}

/// Two bursts of loss, of ten packets each, at the worst places.
TEST_F(Meeting, many_in_a_row_may_go_astray) {
    for (const wire::PacketKind first : {wire::PacketKind::query, wire::PacketKind::answer})
        for (const wire::PacketKind second : {wire::PacketKind::hello, wire::PacketKind::welcome}) {
            Scene scene;
            int lost_first = 0, lost_second = 0;
            scene.network.weather = [&](const Datagram& datagram) {
                const bool lost = (datagram.kind() == first && lost_first++ < 10) ||
                                  (datagram.kind() == second && lost_second++ < 10);
                return lost ? Fate{} : Fate{microseconds(10)};
            };
            scene.b.device->listen(named("b"));
            scene.ask_b();
            EXPECT_TRUE(scene.run(seconds(5), [&] { return scene.a.is_up && scene.b.is_up; }));
        }
}

TEST_F(Meeting, crossing) {
    a.device->listen(named("a"));
    b.device->listen(named("b"));
    ask_b();
    b.device->resolve({address(1, host_port), named("a")}, 8);
    run(milliseconds(100));
    ASSERT_EQ(a.events.size(), 1U);
    ASSERT_EQ(b.events.size(), 1U);
    EXPECT_EQ(a.events[0].kind, PathEventKind::resolved);
    EXPECT_EQ(b.events[0].kind, PathEventKind::resolved) << "it asked, too: its own answer";
    EXPECT_EQ(b.events[0].cookie, 8U);
    EXPECT_EQ(a.device->totals().paths_made, 1U);
    EXPECT_EQ(b.device->totals().paths_made, 1U);
    talk();
}

/// Whatever the network does: in the end there is one path, and it works.
TEST_F(Meeting, crossing_in_any_weather) {
    for (std::uint64_t seed = 1; seed <= 300; ++seed) {
        SCOPED_TRACE(seed);
        Random random(seed);
        Scene scene;
        scene.b.open(seed % 2 == 0 ? 1002 : 1000);
        bool calm = false;
        scene.network.weather = [&](const Datagram&) {
            if (calm) return Fate{microseconds(10)};
            Fate fate;
            for (std::uint64_t copies = random.below(4); copies != 0; --copies)
                fate.push_back(microseconds(static_cast<std::int64_t>(random.below(60'000))));
            return fate;
        };
        scene.a.device->listen(named("a"));
        scene.b.device->listen(named("b"));
        scene.ask_b();
        scene.run(microseconds(static_cast<std::int64_t>(random.below(40'000))));
        scene.b.device->resolve({address(1, host_port), named("a")}, 8);
        scene.run(milliseconds(300));
        calm = true;
        scene.run(seconds(4));
        ASSERT_TRUE(scene.a.is_up && scene.b.is_up);
        scene.talk();
        EXPECT_EQ(count(scene.a, PathEventKind::down), 0U);
        EXPECT_EQ(count(scene.b, PathEventKind::down), 0U);
        EXPECT_EQ(count(scene.a, PathEventKind::resolved), 1U);
        EXPECT_EQ(count(scene.b, PathEventKind::resolved), 1U);
        if (HasFailure()) return;
    }
}

TEST_F(Meeting, a_restarted_peer_gets_a_new_path) {
    meet();
    // Packets of its former life are still under way when the new one begins.
    network.weather = [&](const Datagram& datagram) {
        return Fate{microseconds(10),
                    datagram.from.bytes[3] == 2 ? milliseconds(40) : milliseconds(41)};
    };
    for (int n = 0; n < 20; ++n) b.send("old " + std::to_string(n));
    run(microseconds(100));
    EXPECT_EQ(a.received.size(), 20U);
    network.weather = nullptr;
    const PathId former = a.path;
    b.open(1003);  // its close reaches us
    b.device->listen(named("b"));
    run(microseconds(100));
    EXPECT_EQ(count(a, PathEventKind::down), 1U);
    ask_b();
    run(seconds(1));
    ASSERT_TRUE(a.is_up && b.is_up);
    EXPECT_EQ(count(a, PathEventKind::resolved), 2U);
    talk();
    EXPECT_EQ(a.received.size(), 21U) << "nothing of the former life";
    EXPECT_EQ(a.path, former) << "its number was free again";
    EXPECT_GT(a.device->totals().unknown_connection, 0U);
}

TEST_F(Meeting, a_peer_that_vanished_and_came_back) {
    meet();
    network.weather = [&](const Datagram& datagram) {
        return datagram.kind() == wire::PacketKind::close ? Fate{} : Fate{microseconds(10)};
    };
    b.open(1003);  // dies without a word
    b.device->listen(named("b"));
    network.weather = nullptr;
    const Time died = network.now;
    a.send("to nobody");
    ASSERT_TRUE(run(seconds(1), [&] { return count(a, PathEventKind::down) == 1; }));
    EXPECT_LT((network.now - died).ns, milliseconds(20).ns)
        << "it says that it knows no such path, and nobody answers the ping";
    ask_b();
    run(seconds(1));
    talk();
}

TEST_F(Meeting, an_old_hello_makes_no_path) {
    std::vector<Datagram> hellos;
    network.weather = [&](const Datagram& datagram) {
        if (datagram.kind() == wire::PacketKind::hello) hellos.push_back(datagram);
        return Fate{microseconds(10)};
    };
    meet();
    // Doubled while the path is up: the same welcome.
    network.log.clear();
    network.deliver(network.now, hellos.back());
    run(milliseconds(1));
    EXPECT_EQ(network.log.size(), 1U);
    EXPECT_EQ(count(b, PathEventKind::up), 1U);
    // After the path is gone: nothing.
    a.device->close_for_violation(a.path, "a test");
    run(milliseconds(1));
    EXPECT_EQ(count(b, PathEventKind::down), 1U);
    network.deliver(network.now, hellos.back());
    run(milliseconds(1));
    EXPECT_EQ(count(b, PathEventKind::up), 1U);
    EXPECT_EQ(b.device->totals().old_hello, 1U);
    // A new one is welcome.
    ask_b();
    run(milliseconds(1));
    EXPECT_EQ(count(b, PathEventKind::up), 2U);
    talk();
}

/// Its welcome may have been lost, however many peers have come since.
TEST_F(Meeting, a_repeated_hello_is_welcome_though_its_attempt_is_not_kept) {
    std::vector<Datagram> hellos;
    network.weather = [&](const Datagram& datagram) {
        if (datagram.kind() == wire::PacketKind::hello && datagram.from.bytes[3] == 1)
            hellos.push_back(datagram);
        return Fate{microseconds(10)};
    };
    meet();
    End c{network, 3, 3000};
    ends.push_back(&c);
    for (std::uint64_t n = 1; n <= attempts_kept; ++n) {
        c.open(3000 + n);
        c.device->resolve({address(2, host_port), named("b")}, 9);
        ASSERT_TRUE(run(seconds(1), [&] { return c.is_up; }));
    }
    network.log.clear();
    network.deliver(network.now, hellos.back());
    run(milliseconds(1));
    ASSERT_EQ(network.log.size(), 1U) << transcript();
    EXPECT_TRUE(network.log.front().ends_with(" 2>1 welcome")) << transcript();
    ends.pop_back();
}

TEST_F(Meeting, a_cookie_spoils) {
    std::vector<Datagram> hellos;
    network.weather = [&](const Datagram& datagram) {
        if (datagram.kind() != wire::PacketKind::hello) return Fate{microseconds(10)};
        hellos.push_back(datagram);
        return hellos.size() == 2 ? Fate{} : Fate{microseconds(10)};
    };
    b.device->listen(named("b"));
    ask_b();
    run(microseconds(100));
    a.open(1005);
    run(seconds(11));
    network.deliver(network.now, hellos.at(1));
    run(milliseconds(1));
    EXPECT_EQ(count(b, PathEventKind::up), 0U);
    EXPECT_EQ(b.device->totals().bad_cookie, 1U);
}

TEST_F(Meeting, strangers_leave_nothing_behind_and_get_little) {
    b.device->listen(named("b"));
    std::byte packet[wire::connecting_length_max];
    std::size_t sent = 0;
    std::size_t answered = 0;
    network.weather = [&](const Datagram& datagram) {
        answered += datagram.bytes.size();
        return Fate{};
    };
    Random random(1);
    for (int n = 0; n < 10000; ++n) {
        wire::Hello hello;
        hello.target = 1002;
        hello.attempt = 1 + random.below(5);
        hello.cookie = {random.below(3), random.next()};
        hello.offer = {random.next(), 100'000, 1000, 1472, 9741};
        const std::uint32_t length =
            wire::emit_hello(random.next() | 1, hello, wire::ConnectingBytes(packet));
        sent += length;
        network.deliver(network.now,
                        {address(9, 1234), address(2, 40000), {packet, packet + length}});
        while (b.device->has_work()) b.turn();
    }
    const Totals& totals = b.device->totals();
    EXPECT_EQ(totals.paths_made, 0U);
    EXPECT_EQ(totals.retries + totals.hellos_dropped, 10000U);
    EXPECT_EQ(totals.retries, strangers_hellos_at_once / 2) << "of one address";
    EXPECT_LE(answered, 3 * sent);
    EXPECT_TRUE(b.events.empty());
    EXPECT_EQ(b.device->next_deadline(), Time::never()) << "no state, no timer";
}

TEST_F(Meeting, data_for_nobody_is_answered_sparingly) {
    std::vector<std::byte> packet(wire::data_header_length + 8);
    std::size_t answers = 0;
    network.weather = [&](const Datagram& datagram) {
        EXPECT_LE(datagram.bytes.size(), packet.size());
        ++answers;
        return Fate{};
    };
    for (std::uint64_t n = 1; n <= 1000; ++n) {
        wire::emit_padding_chunk(8, packet.data() + wire::data_header_length);
        wire::seal_data(packet, n, 0);
        network.deliver(network.now, {address(9, 1234), address(2, 40000), packet});
        while (b.device->has_work()) b.turn();
    }
    EXPECT_EQ(b.device->totals().unknown_connection, 1000U);
    EXPECT_EQ(answers, 100U) << "a second";
}

Datagram query_from(const HostAddress& asker, std::uint64_t question, const std::string& name) {
    std::byte packet[wire::connecting_length_max];
    const std::uint32_t length =
        wire::emit_query(question, {named(name)}, wire::ConnectingBytes(packet));
    return {asker, address(2, host_port), {packet, packet + length}};
}

/// The n-th address of a network that is none of this scene's.
HostAddress elsewhere(int n) {
    HostAddress asker = address(0, 1234);
    asker.bytes[0] = 11;
    asker.bytes[1] = static_cast<std::uint8_t>(n >> 16);
    asker.bytes[2] = static_cast<std::uint8_t>(n >> 8);
    asker.bytes[3] = static_cast<std::uint8_t>(n);
    return asker;
}

/// For `target`, without a cookie.
Datagram hello_from(const HostAddress& asker, std::uint64_t connection, std::uint64_t target) {
    wire::Hello hello;
    hello.target = target;
    hello.attempt = 1;
    hello.offer = {connection, 100'000, 1000, 1472, 9741};
    std::byte packet[wire::connecting_length_max];
    const std::uint32_t length = wire::emit_hello(connection, hello, wire::ConnectingBytes(packet));
    return {asker, address(2, 40000), {packet, packet + length}};
}

struct FloodOfHellos {
    int addresses;
    std::uint64_t target;
};
class HelloFlood : public Meeting, public testing::WithParamInterface<FloodOfHellos> {};
INSTANTIATE_TEST_SUITE_P(Of, HelloFlood,
                         testing::Values(FloodOfHellos{1, 1002}, FloodOfHellos{1, 1},
                                         FloodOfHellos{100'000, 1002}, FloodOfHellos{100'000, 1}));

TEST_P(HelloFlood, has_so_many_answers_a_second) {
    std::size_t answers = 0;
    network.weather = [&](const Datagram&) {
        ++answers;
        return Fate{};
    };
    for (int n = 0; n < 100'000; ++n)
        network.deliver(network.now + microseconds(10 * n),
                        hello_from(elsewhere(n % GetParam().addresses),
                                   static_cast<std::uint64_t>(n) + 1, GetParam().target));
    run(seconds(1));
    const Totals& totals = b.device->totals();
    EXPECT_EQ(answers, totals.retries + totals.refusals);
    EXPECT_EQ(answers + totals.hellos_dropped, 100'000U);
    EXPECT_LE(answers, strangers_hellos_at_once + strangers_hellos);
    EXPECT_GE(answers, strangers_hellos / 2) << "and not fewer than there may be";
    EXPECT_EQ(totals.paths_made, 0U);
}

TEST_F(Meeting, a_path_is_made_at_once_while_one_address_says_hello_without_end) {
    b.device->listen(named("b"));
    for (int n = 0; n < 200'000; ++n)
        network.deliver(network.now + microseconds(10 * n),
                        hello_from(elsewhere(1), static_cast<std::uint64_t>(n) + 1, 1002));
    run(seconds(1));
    const Time begin = network.now;
    ask_b();
    ASSERT_TRUE(run(milliseconds(900), [&] { return a.is_up; }));
    EXPECT_LT(network.now - begin, try_first) << "no hello of ours was dropped";
    EXPECT_GT(b.device->totals().hellos_dropped, 80'000U) << "and of theirs most";
}

/// Each from another address, all within a moment: none has to say it again.
TEST_F(Meeting, a_crowd_of_newcomers_is_answered) {
    for (int n = 0; n < 1000; ++n)
        network.deliver(network.now + microseconds(n),
                        hello_from(elsewhere(n), static_cast<std::uint64_t>(n) + 1, 1002));
    run(milliseconds(2));
    EXPECT_EQ(b.device->totals().retries, 1000U);
    EXPECT_EQ(b.device->totals().hellos_dropped, 0U);
}

class QueryFlood : public Meeting, public testing::WithParamInterface<int> {};
INSTANTIATE_TEST_SUITE_P(Addresses, QueryFlood, testing::Values(1, 100'000));

TEST_P(QueryFlood, of_strangers_costs_so_many_lookups_a_second) {
    for (int n = 0; n < 60'000; ++n)
        network.deliver(network.now + microseconds(50 * n),
                        query_from(elsewhere(n % GetParam()), static_cast<std::uint64_t>(n) + 1,
                                   "name " + std::to_string(n)));
    run(seconds(3));
    EXPECT_LE(b.port().lookups, strangers_queries_at_once + 3 * strangers_queries);
    EXPECT_GE(b.device->totals().queries_dropped, 60'000U - b.port().lookups);
}

TEST_F(Meeting, a_query_is_answered_while_one_address_asks_without_end) {
    for (int n = 0; n < 60'000; ++n)
        network.deliver(network.now + microseconds(50 * n),
                        query_from(elsewhere(1), static_cast<std::uint64_t>(n) + 1, "b"));
    run(seconds(1));
    b.device->listen(named("b"));
    const Time begin = network.now;
    ask_b();
    ASSERT_TRUE(run(seconds(1), [&] { return a.is_up; }));
    EXPECT_LT(network.now - begin, try_first) << "at once";
}

/// Each from another address, all within a moment: none has to ask again.
TEST_F(Meeting, a_crowd_of_clients_is_answered) {
    b.device->listen(named("b"));
    std::size_t answers = 0;
    network.weather = [&](const Datagram& datagram) {
        if (datagram.kind() == wire::PacketKind::answer) ++answers;
        return Fate{};
    };
    for (int n = 0; n < 1000; ++n)
        network.deliver(network.now + microseconds(n),
                        query_from(elsewhere(n), static_cast<std::uint64_t>(n) + 1, "b"));
    run(milliseconds(2));
    EXPECT_EQ(answers, 1000U);
    EXPECT_EQ(b.device->totals().queries_dropped, 0U);
}

/// A program that connects very many VIs asks for each of them.
TEST_F(Meeting, a_peer_may_ask_more_than_a_stranger) {
    meet();
    const std::size_t before = b.port().lookups;
    for (std::uint64_t n = 0; n < peers_queries_at_once / 2; ++n)
        network.deliver(network.now, query_from(address(1, 1234), n + 1, "b"));
    run(milliseconds(2));
    EXPECT_EQ(b.port().lookups - before, peers_queries_at_once / 2);
    EXPECT_EQ(b.device->totals().queries_dropped, 0U);
}

TEST_F(Meeting, another_version_is_refused) {
    std::vector<Datagram> sent;
    network.weather = [&](const Datagram& datagram) {
        sent.push_back(datagram);
        return Fate{};
    };
    ask_b();
    Datagram query = sent.at(0);
    query.bytes[4] = std::byte{2};
    const std::uint32_t sum = wire::crc32c(std::span(query.bytes).subspan(4));
    std::memcpy(query.bytes.data(), &sum, 4);
    network.deliver(network.now, query);
    run(milliseconds(1));
    ASSERT_EQ(sent.size(), 2U);
    EXPECT_EQ(sent[1].kind(), wire::PacketKind::unsupported);
    EXPECT_LE(sent[1].bytes.size(), query.bytes.size());
    EXPECT_EQ(b.device->totals().version, 1U);
    network.deliver(network.now, sent[1]);
    run(milliseconds(1));
    ASSERT_EQ(a.events.size(), 1U) << "its identifier is that of our question";
    EXPECT_EQ(a.events[0].status, Status::not_reachable);
}

TEST_F(Meeting, too_many_paths) {
    b.open(1002, 1);
    End third(network, 3, 3001);
    ends.push_back(&third);
    meet();
    third.device->resolve({address(2, host_port), named("b")}, 9);
    run(milliseconds(10));
    ASSERT_EQ(third.events.size(), 1U);
    EXPECT_EQ(third.events[0].status, Status::error_resource);
}

/// Host 3 has half of all paths, hosts 4 to 6 the rest, and nobody says anything.
struct Crowded : Meeting {
    std::deque<End> crowd;
    void come(std::uint8_t host, std::uint16_t process) {
        End& end = crowd.emplace_back(network, host, host * 1000U + process,
                                      static_cast<std::uint16_t>(40000 + process));
        ends.push_back(&end);
        end.device->resolve({address(2, host_port), named("b")}, 9);
        ASSERT_TRUE(run(seconds(1), [&] { return end.is_up; }));
    }
    void crowd_b(bool over_all) {
        b.open(1002, 8);
        b.device->listen(named("b"));
        for (const int host : {3, 3, 3, 3, 4, 4, 5, 6}) {
            come(static_cast<std::uint8_t>(host), static_cast<std::uint16_t>(crowd.size()));
            const bool speaks = over_all || crowd.size() == 1;
            if (speaks) b.send("of a connection");
            run(milliseconds(1));
        }
        ends.push_back(&late);
    }
    void TearDown() override { ends.clear(); }
    End late{network, 7, 7000};
};

TEST_F(Crowded, a_path_that_never_had_a_connection_gives_way_to_a_newcomer) {
    crowd_b(false);
    late.device->resolve({address(2, host_port), named("b")}, 9);
    ASSERT_TRUE(run(seconds(1), [&] { return late.is_up; }));
    run(milliseconds(1));
    for (std::size_t n = 0; n < crowd.size(); ++n)
        EXPECT_EQ(count(crowd[n], PathEventKind::down), n == 1 ? 1U : 0U)
            << n << ": of the host that has most, the oldest but for the one with a connection";
}

TEST_F(Crowded, nobody_gives_way_to_who_has_as_many) {
    crowd_b(false);
    End another{network, 3, 3100, 41000};
    ends.push_back(&another);
    another.device->resolve({address(2, host_port), named("b")}, 9);
    run(seconds(1));
    EXPECT_FALSE(another.is_up);
    EXPECT_EQ(count(another, PathEventKind::unresolved), 1U);
    EXPECT_EQ(count(b, PathEventKind::down), 0U);
    ends.pop_back();
}

TEST_F(Crowded, who_comes_again_and_again_has_all_paths_looked_at_only_so_often) {
    crowd_b(false);
    End another{network, 3, 3100, 41000};
    ends.push_back(&another);
    for (int n = 0; n < 2000; ++n) {
        another.device->resolve({address(2, host_port), named("b")}, 9);
        run(microseconds(500));
    }
    EXPECT_FALSE(another.is_up);
    EXPECT_GT(b.device->totals().paths_looked_at, 0U);
    EXPECT_LE(b.device->totals().paths_looked_at, 8U * (ways_made + ways_made_at_once));
    ends.pop_back();
}

TEST_F(Crowded, a_path_gives_way_to_one_that_we_ask_for) {
    crowd_b(false);
    late.device->listen(named("late"));
    b.device->resolve({address(7, host_port), named("late")}, 11);
    ASSERT_TRUE(run(seconds(1), [&] { return late.is_up; }));
    EXPECT_EQ(count(b, PathEventKind::unresolved), 0U);
    EXPECT_EQ(count(b, PathEventKind::down), 1U);
}

TEST_F(Crowded, paths_with_connections_stay) {
    crowd_b(true);
    late.device->resolve({address(2, host_port), named("b")}, 9);
    run(seconds(1));
    ASSERT_EQ(late.events.size(), 1U);
    EXPECT_EQ(late.events[0].status, Status::error_resource);
    EXPECT_EQ(count(b, PathEventKind::down), 0U);
}

TEST_F(Meeting, ourselves) {
    a.device->listen(named("a"));
    a.device->resolve({address(1, host_port), named("a")}, 5);
    run(milliseconds(10));
    ASSERT_EQ(a.events.size(), 2U);
    EXPECT_NE(a.events[0].path, a.events[1].path) << "a path has two ends";
    const bool first = a.events[0].kind == PathEventKind::resolved;
    EXPECT_EQ(a.events[first ? 0 : 1].kind, PathEventKind::resolved);
    EXPECT_EQ(a.events[first ? 1 : 0].kind, PathEventKind::up);
    a.send("to myself");
    run(milliseconds(10));
    EXPECT_EQ(a.received, std::vector<std::string>{"to myself"});
    // Asked again, the same path is found.
    a.device->resolve({address(1, host_port), named("a")}, 6);
    run(milliseconds(10));
    ASSERT_EQ(a.events.size(), 3U);
    EXPECT_EQ(a.events[2].path, a.events[first ? 0 : 1].path);
}

}  // namespace
}  // namespace via::device::datagram::test::meeting_test
