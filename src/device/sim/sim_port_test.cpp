#include "device/sim/sim_port.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <vector>

#include "device/sim/stormy_weather.hpp"

namespace via::device::sim::sim_port_test {
namespace {

using datagram::Incoming;
using datagram::NetworkError;
using datagram::NetworkErrorKind;
using datagram::Outgoing;

HostAddress host(std::uint8_t last) {
    HostAddress address;
    address.length = 6;
    address.bytes = {10, 0, 0, last, 0x26, 0x0D};
    return address;
}

Discriminator word(const char* text) {
    Discriminator discriminator;
    discriminator.length = static_cast<std::uint16_t>(std::strlen(text));
    std::memcpy(discriminator.bytes.data(), text, discriminator.length);
    return discriminator;
}

struct Net {
    explicit Net(const StormyOptions& options = {})
        : weather(1, options), network(clock, weather) {}

    std::unique_ptr<SimPort> open(std::uint8_t at, const SimPortOptions& options = {}) {
        return std::make_unique<SimPort>(network, host(at), ++instances, options);
    }
    void pass(Duration time) { clock.advance_to(clock.now() + time); }

    VirtualClock clock;
    StormyWeather weather;
    DatagramNetwork network;
    std::uint64_t instances = 0;
};

std::size_t send(SimPort& from, const HostAddress& to, const std::string& text,
                 bool from_host_port = false) {
    const Outgoing outgoing{to, reinterpret_cast<const std::byte*>(text.data()),
                            static_cast<std::uint32_t>(text.size()), from_host_port};
    return from.send({&outgoing, 1});
}

/// All that is there, in the order of arriving.
std::vector<std::string> texts(SimPort& port) {
    std::vector<std::string> result;
    std::array<Incoming, 3> incoming;
    while (const std::size_t count = port.receive(incoming)) {
        for (std::size_t n = 0; n < count; ++n)
            result.emplace_back(reinterpret_cast<const char*>(incoming[n].bytes),
                                incoming[n].length);
        port.release();
    }
    return result;
}

using Texts = std::vector<std::string>;

TEST(SimPort, a_datagram_arrives_after_its_delay_and_says_where_it_came_from) {
    Net net;
    const auto a = net.open(1);
    const auto b = net.open(2);
    EXPECT_EQ(send(*a, b->data_address(), "hello"), 1U);
    EXPECT_FALSE(b->has_work());
    EXPECT_EQ(b->next_deadline(), Time{10'000});
    net.pass(microseconds(10));
    EXPECT_TRUE(b->has_work());
    std::array<Incoming, 4> incoming;
    ASSERT_EQ(b->receive(incoming), 1U);
    EXPECT_EQ(incoming[0].from, a->data_address());
    EXPECT_EQ(incoming[0].length, 5U);
    EXPECT_FALSE(incoming[0].to_host_port);
    b->release();
    EXPECT_FALSE(b->has_work());
    EXPECT_TRUE(b->next_deadline().is_never());
}

TEST(SimPort, the_first_of_a_host_answers_for_it_and_then_the_next) {
    Net net;
    const auto asker = net.open(1);
    auto first = net.open(2);
    const auto second = net.open(2);
    EXPECT_NE(first->data_address(), second->data_address());
    send(*asker, host(2), "who?");
    net.pass(microseconds(5));
    send(*asker, host(2), "and now?");
    net.pass(microseconds(5));
    std::array<Incoming, 4> incoming;
    ASSERT_EQ(first->receive(incoming), 1U);
    EXPECT_TRUE(incoming[0].to_host_port);
    EXPECT_FALSE(second->has_work());
    send(*first, asker->data_address(), "I", true);
    first.reset();
    net.pass(microseconds(10));
    EXPECT_EQ(texts(*second), Texts{"and now?"});
    ASSERT_EQ(asker->receive(incoming), 1U);
    EXPECT_EQ(incoming[0].from, host(2));
    asker->release();
}

TEST(SimPort, who_listens_is_known_to_all_of_a_host_and_to_no_other) {
    Net net;
    auto a = net.open(1);
    const auto b = net.open(1);
    const auto c = net.open(2);
    EXPECT_EQ(a->listen(word("ear")), Status::success);
    EXPECT_EQ(a->listen(word("ear")), Status::success);
    EXPECT_EQ(b->listen(word("ear")), Status::error_resource);
    EXPECT_EQ(c->listen(word("ear")), Status::success);
    std::uint16_t port = 0;
    std::uint64_t instance = 0;
    ASSERT_TRUE(b->find_listener(word("ear"), port, instance));
    EXPECT_EQ(instance, 1U);
    const HostAddress data = a->data_address();
    EXPECT_EQ(port, data.bytes[4] * 256 + data.bytes[5]);
    a->unlisten(word("ear"));
    EXPECT_TRUE(a->find_listener(word("ear"), port, instance));
    a->unlisten(word("ear"));
    EXPECT_FALSE(b->find_listener(word("ear"), port, instance));
    EXPECT_EQ(a->listen(word("ear")), Status::success);
    a.reset();
    EXPECT_FALSE(b->find_listener(word("ear"), port, instance));
}

TEST(SimPort, what_nobody_takes_in_time_is_dropped) {
    Net net;
    const auto a = net.open(1);
    SimPortOptions small;
    small.receive_room = 10;
    const auto b = net.open(2, small);
    EXPECT_EQ(b->receive_room(), 10U);
    for (const char* text : {"1234", "5678", "9abc", "de"}) send(*a, b->data_address(), text);
    net.pass(microseconds(10));
    EXPECT_EQ(texts(*b), (Texts{"1234", "5678", "de"}));
    EXPECT_EQ(b->dropped(), 1U);
    send(*a, b->data_address(), "f");
    net.pass(microseconds(10));
    EXPECT_EQ(texts(*b), Texts{"f"});
}

TEST(SimPort, buffers_that_are_kept_stay_as_they_are) {
    Net net;
    const auto a = net.open(1);
    SimPortOptions few;
    few.kept_max = 2;
    const auto b = net.open(2, few);
    for (const char* text : {"1", "2", "3"}) send(*a, b->data_address(), text);
    net.pass(microseconds(10));
    std::array<Incoming, 4> incoming;
    ASSERT_EQ(b->receive(incoming), 3U);
    EXPECT_TRUE(b->keep(incoming[0].buffer));
    EXPECT_TRUE(b->keep(incoming[0].buffer));
    EXPECT_TRUE(b->keep(incoming[1].buffer));
    EXPECT_FALSE(b->keep(incoming[2].buffer));
    b->release();
    for (int n = 0; n < 100; ++n) send(*a, b->data_address(), "x");
    net.pass(microseconds(10));
    EXPECT_EQ(texts(*b).size(), 100U);
    EXPECT_EQ(static_cast<char>(*incoming[0].bytes), '1');
    EXPECT_EQ(static_cast<char>(*incoming[1].bytes), '2');
    b->let_go(incoming[0].buffer);
    EXPECT_EQ(static_cast<char>(*incoming[0].bytes), '1');
    b->let_go(incoming[0].buffer);
    send(*a, b->data_address(), "y");
    net.pass(microseconds(10));
    std::array<Incoming, 1> next;
    ASSERT_EQ(b->receive(next), 1U);
    EXPECT_TRUE(b->keep(next[0].buffer));
    b->release();
}

TEST(SimPort, lengths_beyond_the_interface_do_not_go_out) {
    Net net;
    const auto a = net.open(1);
    const auto b = net.open(2);
    EXPECT_EQ(a->datagram_max(), 1'472U);
    a->set_datagram_max(600);
    EXPECT_EQ(a->datagram_max(), 600U);
    send(*a, b->data_address(), std::string(601, 'x'));
    NetworkError error;
    ASSERT_TRUE(a->next_network_error(error));
    EXPECT_EQ(error.kind, NetworkErrorKind::too_long);
    EXPECT_EQ(error.length, 600U);
    EXPECT_EQ(error.to, b->data_address());
    send(*a, b->data_address(), std::string(600, 'z'));
    net.pass(microseconds(10));
    EXPECT_EQ(texts(*b), Texts{std::string(600, 'z')});
}

TEST(SimPort, lengths_beyond_the_way_are_lost_and_the_network_says_so) {
    StormyOptions options;
    options.link.fits_min = options.link.fits_max = 700;
    Net net(options);
    const auto a = net.open(1);
    const auto b = net.open(2);
    send(*a, b->data_address(), std::string(701, 'x'));
    NetworkError error;
    EXPECT_FALSE(a->next_network_error(error));  // it takes its time
    net.pass(microseconds(10));
    EXPECT_TRUE(a->has_work());
    ASSERT_TRUE(a->next_network_error(error));
    EXPECT_EQ(error.kind, NetworkErrorKind::too_long);
    EXPECT_EQ(error.length, 700U);
    EXPECT_FALSE(b->has_work());
}

TEST(SimPort, where_nobody_is_the_host_or_the_network_says_so) {
    Net net;
    const auto a = net.open(1);
    auto b = net.open(2);
    const auto neighbour = net.open(2);
    const HostAddress gone = b->data_address();
    send(*a, gone, "on its way");
    b.reset();
    send(*a, gone, "too late");
    send(*a, host(9), "nowhere");
    net.pass(microseconds(20));
    std::vector<NetworkErrorKind> kinds;
    for (NetworkError error; a->next_network_error(error);) {
        kinds.push_back(error.kind);
        EXPECT_EQ(error.to, error.kind == NetworkErrorKind::port_unreachable ? gone : host(9));
    }
    std::sort(kinds.begin(), kinds.end());
    EXPECT_EQ(kinds,
              (std::vector{NetworkErrorKind::port_unreachable, NetworkErrorKind::port_unreachable,
                           NetworkErrorKind::host_unreachable}));
}

TEST(SimPort, who_crashes_says_nothing_more) {
    Net net;
    const auto a = net.open(1);
    for (const Ending ending : {Ending::closed, Ending::silent}) {
        auto b = net.open(2);
        const HostAddress gone = b->data_address();
        b->crash(ending);
        EXPECT_EQ(send(*b, a->data_address(), "farewell"), 1U);
        b.reset();
        send(*a, gone, "hello?");
        net.pass(microseconds(20));
        EXPECT_EQ(texts(*a), Texts{});
        NetworkError error;
        EXPECT_EQ(a->next_network_error(error), ending == Ending::closed);
    }
}

TEST(SimPort, who_opens_at_the_port_of_another_gets_what_still_travels) {
    Net net;
    const auto a = net.open(1);
    SimPortOptions fixed;
    fixed.data_port = 50'000;
    auto b = net.open(2, fixed);
    send(*a, b->data_address(), "arrived");
    net.pass(microseconds(9));
    send(*a, b->data_address(), "flying");
    net.pass(microseconds(1));
    b.reset();
    b = net.open(2, fixed);
    net.pass(microseconds(10));
    EXPECT_EQ(texts(*b), Texts{"flying"});
}

TEST(SimPort, a_full_socket_takes_no_more_for_a_while) {
    Net net;
    const auto a = net.open(1);
    SimPortOptions often;
    often.refuse_percent = 50;
    often.seed = 3;
    const auto b = net.open(2, often);
    std::size_t sent = 0;
    std::size_t refused = 0;
    while (sent < 20) {
        if (send(*b, a->data_address(), "x") == 1) {
            ++sent;
            continue;
        }
        ++refused;
        EXPECT_FALSE(b->has_room());
        EXPECT_EQ(send(*b, a->data_address(), "x"), 0U);
        const Time deadline = b->next_deadline();
        ASSERT_FALSE(deadline.is_never());
        net.clock.advance_to(deadline);
        EXPECT_TRUE(b->has_room());
    }
    EXPECT_GT(refused, 5U);
    net.pass(microseconds(10));
    EXPECT_EQ(texts(*a).size(), 20U);
}

TEST(SimPort, storms_do_to_datagrams_what_they_may) {
    StormyOptions options;
    options.link.loss = 100'000;
    options.link.duplication = 100'000;
    options.link.reordering = 100'000;
    options.link.reordering_max = microseconds(100);
    options.link.corruption = 100'000;
    Net net(options);
    const auto a = net.open(1);
    const auto b = net.open(2);
    constexpr int count = 1000;
    for (int n = 0; n < count; ++n) {
        send(*a, b->data_address(), "number " + std::to_string(1000 + n));
        net.pass(microseconds(1));
    }
    net.pass(milliseconds(1));
    const Texts all = texts(*b);
    int whole = 0;
    int again = 0;
    int overtaken = 0;
    std::string latest;
    std::vector<bool> seen(2 * count);
    for (const std::string& text : all) {
        const int number =
            text.size() == 11 && text.starts_with("number 1") ? std::atoi(text.c_str() + 7) : 0;
        if (number < 1000 || number >= 1000 + count) continue;
        ++whole;
        again += seen[static_cast<std::size_t>(number)];
        overtaken += text < latest;
        latest = std::max(latest, text);
        seen[static_cast<std::size_t>(number)] = true;
    }
    EXPECT_LT(whole, static_cast<int>(all.size()) - 50);  // the others are corrupted
    EXPECT_GT(again, 50);
    EXPECT_GT(overtaken, 50);
    EXPECT_LT(whole - again, count - 100);  // lost or corrupted
}

TEST(SimPort, who_watches_says_what_tells_of_life_and_what_asks) {
    Net net;
    const auto a = net.open(1);
    const auto b = net.open(2);
    net.network.set_reader([](auto bytes) {
        return DatagramNetwork::Meaning{bytes.size() > 1, bytes.back() == std::byte{'?'}};
    });
    send(*a, b->data_address(), "x");
    net.pass(microseconds(10));
    EXPECT_EQ(texts(*b), Texts{"x"});
    EXPECT_EQ(net.network.last_heard(b->socket(), a->socket()), Time{});
    send(*a, b->data_address(), "life");
    net.pass(microseconds(10));
    EXPECT_EQ(texts(*b), Texts{"life"});
    EXPECT_EQ(net.network.last_heard(b->socket(), a->socket()), Time{20'000});
    const auto asked = [&] { return net.network.first_asked(b->socket(), a->socket()); };
    EXPECT_TRUE(asked().is_never());
    for (int n = 0; n < 2; ++n) {
        send(*b, a->data_address(), "still there?");
        net.pass(microseconds(10));
    }
    EXPECT_EQ(asked(), Time{20'000});
    send(*a, b->data_address(), "more life");
    net.pass(microseconds(10));
    EXPECT_EQ(texts(*b), Texts{"more life"});
    EXPECT_TRUE(asked().is_never()) << "answered";
}

TEST(SimPort, what_a_copy_has_overtaken_tells_of_nothing) {
    Net net;
    net.network.remember(1);
    const auto a = net.open(1);
    const auto b = net.open(2);
    net.pass(microseconds(1));
    send(*a, b->data_address(), "x");
    net.network.replay(0, nullptr);
    net.pass(microseconds(1));
    EXPECT_EQ(texts(*b), Texts{"x"});
    net.pass(microseconds(9));
    EXPECT_EQ(texts(*b), Texts{"x"});
    EXPECT_EQ(net.network.last_heard(b->socket(), a->socket()), Time{});
    send(*a, b->data_address(), "y");
    net.pass(microseconds(10));
    EXPECT_EQ(texts(*b), Texts{"y"});
    EXPECT_EQ(net.network.last_heard(b->socket(), a->socket()), Time{21'000});
}

TEST(SimPort, who_watches_knows_who_heard_whom_when) {
    Net net;
    const auto a = net.open(1);
    auto b = net.open(2);
    net.pass(microseconds(1));
    send(*a, b->data_address(), "x");
    net.pass(microseconds(10));
    EXPECT_EQ(net.network.last_heard(b->socket(), a->socket()), Time{});
    texts(*b);
    EXPECT_EQ(net.network.last_heard(b->socket(), a->socket()), Time{11'000});
    EXPECT_EQ(net.network.last_heard(a->socket(), b->socket()), Time{});
    const SocketId gone = b->socket();
    const HostAddress address = b->data_address();
    b.reset();
    send(*a, address, "x");
    net.pass(microseconds(20));
    NetworkError error;
    EXPECT_TRUE(a->next_network_error(error));
    EXPECT_EQ(net.network.last_told_unreachable(a->socket(), gone), Time{31'000});
}

TEST(SimPort, who_watches_knows_what_was_asked_in_vain) {
    Net net;
    const auto a = net.open(1);
    const auto b = net.open(2);
    const auto in_vain = [&] {
        return net.network.asks_in_vain(a->socket(), b->socket(), microseconds(10),
                                        microseconds(100));
    };
    net.pass(microseconds(1));
    send(*a, b->data_address(), "x");
    EXPECT_FALSE(in_vain()) << "not for long enough";
    net.pass(microseconds(10));
    EXPECT_TRUE(in_vain());
    send(*b, a->data_address(), "of my own");
    net.pass(microseconds(10));
    texts(*a);
    EXPECT_TRUE(in_vain()) << "b talks, and takes nothing";
    texts(*b);
    EXPECT_FALSE(in_vain());
    send(*b, a->data_address(), "it came");
    net.pass(microseconds(10));
    texts(*a);
    send(*a, b->data_address(), "y");
    net.pass(microseconds(10));
    EXPECT_TRUE(in_vain()) << "the next one counts anew";
    net.pass(microseconds(100));
    EXPECT_FALSE(in_vain()) << "that path is over";
}

}  // namespace
}  // namespace via::device::sim::sim_port_test
