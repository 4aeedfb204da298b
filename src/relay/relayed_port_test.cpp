// Two devices that reach each other over relays only, and what may become of these.
#include "relay/relayed_port.hpp"

#include "base/random.hpp"
#include "device/datagram/device_pair_test.hpp"
#include "device/datagram/secure_port.hpp"
#include "relay/forwarder.hpp"
#include "relay/table_test.hpp"
#include "secure/libcrypto/libcrypto.hpp"

namespace via::relay::test::relayed_port_test {
namespace {

using namespace device::datagram::test;  // NOLINT(google-build-using-namespace)
using device::PathEventKind;
using device::datagram::DatagramOptions;
using device::datagram::NetworkErrorKind;
using device::datagram::Port;

/// Hosts 1 and 2 are in no common network. Relays 11 and 13 are of host 1's, and are 12 and 14 in
/// host 2's.
struct Relayed : ::testing::Test, Scene {
    std::map<std::uint8_t, std::string> tables{
        {1, "way 1 2 11 100\nway 1 2 13 200\nrelay 11\nrelay 13\n"},
        {2, "way 2 1 12 100\nway 2 1 14 200\nrelay 12\nrelay 14\n"}};
    /// Of each relay its addresses, and what stands between them.
    struct Relay {
        std::uint8_t left;
        std::uint8_t right;
        Forwarder forwarder;
        bool is_dead = false;
    };
    std::vector<Relay> relays;
    std::function<bool()> is_lost = [] { return false; };
    std::map<std::uint64_t, RelayedPort*> ports;
    bool keys = false;
    std::uint64_t randoms = 1;

    void SetUp() override {
        relays.push_back({11, 12, Forwarder(ways("way 11 1 1 9\nway 12 2 2 9\n"))});
        relays.push_back({13, 14, Forwarder(ways("way 13 1 1 9\nway 14 2 2 9\n"))});
        open();
    }
    void open() {
        network.wrap = [this](std::unique_ptr<Port> port, const DatagramOptions& options) {
            return wrap(std::move(port), options);
        };
        network.weather = [this](const Datagram& datagram) { return carry(datagram); };
        a.open(1001);
        b.open(1002);
    }
    std::unique_ptr<Port> wrap(std::unique_ptr<Port> port, const DatagramOptions& options) {
        auto made = std::make_unique<RelayedPort>(std::move(port),
                                                  ways(tables.at(port->nic_address().bytes[3])));
        ports[options.instance] = made.get();
        if (!keys) return made;
        auto crypto = secure::load_libcrypto();
        EXPECT_TRUE(crypto);
        device::datagram::SecureOptions secure;
        secure.instance = options.instance;
        secure.cookie_key = options.cookie_key;
        secure::Secret key;
        for (std::byte& byte : key.room()) byte = std::byte{7};
        EXPECT_TRUE(device::datagram::make_cluster_key(**crypto, key, secure.keys.emplace_back()));
        secure.random = [this](secure::Secret& fresh) {
            Random random(++randoms);
            for (std::byte& byte : fresh.room()) byte = static_cast<std::byte>(random.next());
            return true;
        };
        return std::make_unique<device::datagram::SecurePort>(std::move(made), std::move(*crypto),
                                                              std::move(secure));
    }
    RelayedPort& port_of_a() { return *ports.at(1001); }
    RelayedPort& port_of_b() { return *ports.at(1002); }

    /// Nothing goes from 1 to 2 but by a relay, which is as far from both.
    Fate carry(const Datagram& datagram) {
        if (is_lost()) return {};
        for (Relay& relay : relays) {
            if (datagram.to.bytes[3] != relay.left && datagram.to.bytes[3] != relay.right) continue;
            if (!relay.is_dead) pass_on(relay, datagram);
            return {};
        }
        return {};
    }
    void pass_on(Relay& relay, Datagram datagram) {
        const auto onward = relay.forwarder.pass_on(datagram.from, datagram.bytes);
        if (!onward || is_lost()) return;
        const HostAddress from = with_port(onward->from, relay_port);
        deliver(relay, {from, onward->to, datagram.bytes}, network.now + network.delay * 2);
    }
    void deliver(Relay& relay, const Datagram& datagram, Time arrival) {
        for (Relay& next : relays) {
            if (datagram.to.bytes[3] != next.left && datagram.to.bytes[3] != next.right) continue;
            if (!next.is_dead) pass_on(next, datagram);
            return;
        }
        const bool is_there = datagram.to.bytes[3] == 1 ? a.device != nullptr : b.device != nullptr;
        if (is_there) return network.deliver(arrival, datagram);
        // Its host says that nobody is at that port.
        const auto notice = relay.forwarder.tell_unreachable(datagram.bytes);
        if (!notice) return;
        network.deliver(arrival, {with_port(notice->onward.from, relay_port),
                                  notice->onward.to,
                                  {notice->bytes.begin(), notice->bytes.begin() + notice->length}});
    }
    /// Each end sends that many, and gets those of the other once and in order.
    void exchange(int count) {
        const std::size_t had_a = a.received.size();
        const std::size_t had_b = b.received.size();
        std::vector<std::string> from_a;
        std::vector<std::string> from_b;
        for (int n = 0; n < count; ++n) {
            from_a.push_back("a" + std::to_string(n));
            from_b.push_back("b" + std::to_string(n));
            a.send(from_a.back());
            b.send(from_b.back());
        }
        const auto is_over = [&] {
            return a.received.size() >= had_a + from_b.size() &&
                   b.received.size() >= had_b + from_a.size() && a.under_way() == 0 &&
                   b.under_way() == 0;
        };
        ASSERT_TRUE(run(seconds(60), is_over));
        a.received.erase(a.received.begin(), a.received.begin() + static_cast<long>(had_a));
        b.received.erase(b.received.begin(), b.received.begin() + static_cast<long>(had_b));
        EXPECT_EQ(a.received, from_b);
        EXPECT_EQ(b.received, from_a);
    }
};

TEST_F(Relayed, ends_know_each_other_by_their_own_addresses) {
    meet();
    talk();
    EXPECT_EQ(a.device->peer_address(a.path), address(2, host_port));
    EXPECT_EQ(b.device->peer_address(b.path), address(1, host_port));
    EXPECT_EQ(port_of_a().next_to(address(2, 1)), address(11, relay_port));
    EXPECT_GT(relays[0].forwarder.totals().passed_on, 0U);
    EXPECT_EQ(relays[1].forwarder.totals().passed_on, 0U);
}

TEST_F(Relayed, paths_are_reported_with_the_relay_that_they_go_over) {
    meet();
    exchange(20);
    const auto way_of_a = [&] {
        std::vector<device::Way> ways;
        EXPECT_EQ(a.device->report_ways(ways, 10), 1U);
        return ways.at(0);
    };
    EXPECT_EQ(way_of_a().over, address(11, relay_port));
    EXPECT_TRUE(same_host(way_of_a().own, address(1, 0)));
    EXPECT_TRUE(same_host(way_of_a().peer, address(2, 0)));
    EXPECT_EQ(way_of_a().state, device::WayState::answers);
    EXPECT_GT(way_of_a().round_trip.ns, 0);
    relays[0].is_dead = true;
    exchange(20);
    EXPECT_EQ(way_of_a().over, address(13, relay_port));
}

TEST_F(Relayed, keys_are_between_the_ends) {
    keys = true;
    open();
    meet();
    talk();
    exchange(20);
}

TEST_F(Relayed, everything_comes_once_whatever_each_hop_loses) {
    Random random(3);
    is_lost = [&] { return random.chance(10); };
    meet();
    exchange(300);
}

TEST_F(Relayed, two_relays_may_be_between_them) {
    tables = {{1, "way 1 2 11 9\nrelay 11\n"}, {2, "way 2 1 14 9\nrelay 14\n"}};
    relays.clear();
    relays.push_back({11, 12, Forwarder(ways("way 11 1 1 9\nway 12 2 13 9\nrelay 13\n"))});
    relays.push_back({13, 14, Forwarder(ways("way 13 1 12 9\nway 14 2 2 9\nrelay 12\n"))});
    open();
    meet();
    exchange(20);
}

TEST_F(Relayed, a_relay_that_ends_ends_what_goes_over_it_alone) {
    tables = {{1, "way 1 2 11 9\nrelay 11\n"}, {2, "way 2 1 12 9\nrelay 12\n"}};
    open();
    meet();
    talk();
    relays[0].is_dead = true;
    a.send("lost");
    ASSERT_TRUE(run(seconds(20), [&] { return !a.is_up && !b.is_up; }));
    EXPECT_EQ(count(a, PathEventKind::down), 1U);
    EXPECT_EQ(count(b, PathEventKind::down), 1U);
}

TEST_F(Relayed, goes_on_over_another_relay_and_nothing_comes_twice) {
    meet();
    exchange(20);
    int sent = 0;
    is_lost = [&] {
        if (++sent == 50) relays[0].is_dead = true;
        return false;
    };
    exchange(300);
    EXPECT_TRUE(relays[0].is_dead) << "in the middle of it";
    EXPECT_EQ(count(a, PathEventKind::down), 0U);
    EXPECT_GT(port_of_a().totals().changes, 0U);
    EXPECT_EQ(port_of_a().next_to(address(2, 1)), address(13, relay_port));
    EXPECT_GT(relays[1].forwarder.totals().passed_on, 10U);
}

TEST_F(Relayed, an_end_that_only_answers_follows_its_peer_over_another_relay) {
    meet();
    talk();
    run(milliseconds(100));
    relays[0].is_dead = true;  // without a word
    a.send("on");
    ASSERT_TRUE(run(seconds(1), [&] { return b.received.back() == "on" && a.under_way() == 0; }));
    EXPECT_EQ(port_of_a().next_to(address(2, 1)), address(13, relay_port));
    EXPECT_EQ(port_of_b().next_to(address(1, 1)), address(14, relay_port));
    EXPECT_EQ(port_of_b().totals().changes, 1U);
}

TEST_F(Relayed, ends_that_prefer_different_relays_take_that_of_the_lower_address) {
    tables[2] = "way 2 1 12 200\nway 2 1 14 100\nrelay 12\nrelay 14\n";
    open();
    meet();
    exchange(20);
    EXPECT_EQ(port_of_a().next_to(address(2, 1)), address(11, relay_port));
    EXPECT_EQ(port_of_b().next_to(address(1, 1)), address(12, relay_port));
    EXPECT_LE(port_of_a().totals().changes, 2U) << "at first, by what came of the other one";
    // Neither has to be told which one died.
    relays[0].is_dead = true;
    b.send("on");
    ASSERT_TRUE(run(seconds(1), [&] { return a.received.back() == "on" && b.under_way() == 0; }));
    exchange(20);
    EXPECT_EQ(count(a, PathEventKind::down), 0U);
}

TEST_F(Relayed, a_process_that_ends_without_a_word_is_told_of_by_the_relay) {
    meet();
    talk();
    network.weather = [](const Datagram&) { return Fate{}; };  // its farewell is lost
    b.device.reset();
    network.weather = [this](const Datagram& datagram) { return carry(datagram); };
    a.send("to nobody");
    const Time since = network.now;
    ASSERT_TRUE(run(seconds(20), [&] { return !a.is_up; }));
    EXPECT_LT(network.now - since, seconds(1)) << "no silence had to be waited for";
}

TEST_F(Relayed, an_error_of_the_relay_is_one_of_whom_it_leads_to) {
    tables = {{1, "way 1 2 11 9\nrelay 11\n"}, {2, "way 2 1 12 9\nrelay 12\n"}};
    open();
    meet();
    talk();
    relays[0].is_dead = true;
    a.send("lost");
    run(milliseconds(1));
    // Its host says that nobody takes datagrams there.
    a.port().hint(NetworkErrorKind::port_unreachable, address(11, relay_port));
    const Time since = network.now;
    ASSERT_TRUE(run(seconds(20), [&] { return !a.is_up; }));
    EXPECT_LT(network.now - since, seconds(1));
}

TEST_F(Relayed, after_an_error_of_the_relay_the_next_one_is_taken_at_once) {
    meet();
    talk();
    relays[0].is_dead = true;
    a.send("on its way");
    run(microseconds(50));
    a.port().network_errors.push_back(
        {NetworkErrorKind::port_unreachable, address(11, relay_port), 0, 12345});
    run(microseconds(50));
    EXPECT_EQ(port_of_a().totals().changes, 0U) << "forged by who saw nothing";
    a.port().hint(NetworkErrorKind::port_unreachable, address(11, relay_port));
    b.port().hint(NetworkErrorKind::port_unreachable, address(12, relay_port));
    const Time since = network.now;
    const auto over = [&] { return b.received.back() == "on its way"; };
    ASSERT_TRUE(run(seconds(20), over));
    EXPECT_LT(network.now - since, seconds(1));
    EXPECT_EQ(port_of_a().totals().changes, 1U);
    EXPECT_TRUE(a.is_up);
}

TEST_F(Relayed, what_is_not_for_us_is_refused) {
    meet();
    const HostAddress relay = address(11, relay_port);
    const auto inject = [&](const HostAddress& from, const HostAddress& source,
                            const HostAddress& destination) {
        std::vector<std::byte> bytes(wire::envelope_length(6) + 40);
        wire::emit_envelope({wire::EnvelopeKind::carried, 1, 0, source, destination}, bytes.data());
        const std::uint64_t before = port_of_a().totals().refused;
        network.deliver(network.now, {from, a.port().data_address(), bytes});
        run(microseconds(1));
        return port_of_a().totals().refused - before;
    };
    const HostAddress ours = a.port().data_address();
    EXPECT_EQ(inject(relay, address(2, 40000), ours), 0U);
    EXPECT_EQ(inject(relay, address(2, 40000), with_port(ours, 1)), 1U) << "for another process";
    EXPECT_EQ(inject(relay, address(2, 40000), address(1, host_port)), 1U) << "for the host's port";
    EXPECT_EQ(inject(relay, address(7, 40000), ours), 1U) << "from who is not in our table";
    const std::uint64_t opened = port_of_a().totals().opened;
    EXPECT_EQ(inject(address(2, 40000), address(2, 40000), ours), 0U);
    EXPECT_EQ(port_of_a().totals().opened, opened) << "nobody but a relay has envelopes for us";
    talk();
}

TEST_F(Relayed, long_frames_leave_room_for_the_envelope) {
    meet();
    // The port of the test refuses what is longer than its interface carries.
    const std::uint32_t longest = a.payload_max.at(a.path);
    a.send(std::string(longest, 'x'));
    ASSERT_TRUE(run(seconds(5), [&] { return !b.received.empty(); }));
    EXPECT_EQ(b.received.back().size(), longest);
    EXPECT_EQ(port_of_a().datagram_max(), a.port().longest - wire::envelope_length(6));
}

}  // namespace
}  // namespace via::relay::test::relayed_port_test
