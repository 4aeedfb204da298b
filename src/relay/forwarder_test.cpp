#include "relay/forwarder.hpp"

#include "relay/table_test.hpp"
#include "wire/packet.hpp"

namespace via::relay::test::forwarder_test {
namespace {

/// Between hosts 1 and 5 at its addresses 2 and 3, and behind relay 4.
const char* const table =
    "way 2 1 1 100\nway 2 2 2 0\nway 3 3 3 0\nway 3 4 4 100\nway 3 5 4 200\nway 2 5 1 900\n"
    "relay 4\n";

struct AForwarder : ::testing::Test {
    Forwarder forwarder{ways(table)};

    static std::vector<std::byte> datagram(const HostAddress& source,
                                           const HostAddress& destination,
                                           std::uint8_t hops = hops_max) {
        std::vector<std::byte> bytes(wire::envelope_length(6) + 100);
        wire::emit_envelope({wire::EnvelopeKind::carried, hops, 0, source, destination},
                            bytes.data());
        return bytes;
    }
    std::string fate(const HostAddress& from, std::vector<std::byte> bytes) {
        const Totals before = forwarder.totals();
        const auto onward = forwarder.pass_on(from, bytes);
        const Totals& after = forwarder.totals();
        if (onward) {
            EXPECT_EQ(after.passed_on, before.passed_on + 1);
            EXPECT_EQ(after.bytes, before.bytes + bytes.size()) << "not a byte more than came";
            return std::to_string(onward->from.bytes[3]) + " to " +
                   std::to_string(onward->to.bytes[3]) + ":" + std::to_string(port_of(onward->to));
        }
        if (after.malformed != before.malformed) return "malformed";
        if (after.strangers != before.strangers) return "stranger";
        if (after.unknown != before.unknown) return "unknown";
        return after.going_round != before.going_round ? "going round" : "not counted";
    }
};

TEST_F(AForwarder, takes_the_fastest_way) {
    EXPECT_EQ(fate(host(1, 700), datagram(host(1, 700), host(5, 800))), "3 to 4:9742");
    EXPECT_EQ(fate(host(4, relay_port), datagram(host(5, 800), host(1, 700))), "2 to 1:700")
        << "the last one gets it at its own port";
    EXPECT_EQ(fate(host(1, 700), datagram(host(1, 700), host(3, 9741))), "3 to 3:9741")
        << "a program of the relay's own host";
}

TEST_F(AForwarder, hears_hosts_for_themselves_and_relays_for_all) {
    EXPECT_EQ(fate(host(1, 700), datagram(host(4, 700), host(5, 800))), "stranger");
    EXPECT_EQ(fate(host(1, 700), datagram(host(1, 701), host(5, 800))), "stranger")
        << "another process of that host";
    EXPECT_EQ(fate(host(9, 700), datagram(host(9, 700), host(5, 800))), "stranger")
        << "it is not in the table";
    EXPECT_EQ(fate(host(4, relay_port), datagram(host(9, 700), host(1, 800))), "stranger")
        << "not even a relay speaks for who is not in the table";
}

TEST_F(AForwarder, sends_nothing_to_who_is_not_in_its_table) {
    EXPECT_EQ(fate(host(1, 700), datagram(host(1, 700), host(9, 800))), "unknown");
    EXPECT_EQ(fate(host(1, 700), datagram(host(1, 700), host(3, relay_port))), "unknown")
        << "nor to a relay, itself for instance";
}

TEST_F(AForwarder, lets_nothing_go_round) {
    EXPECT_EQ(fate(host(1, 700), datagram(host(1, 700), host(5, 800), 0)), "going round");
    EXPECT_EQ(fate(host(1, 700), datagram(host(1, 700), host(5, 800), hops_max + 1)),
              "going round");
    EXPECT_EQ(fate(host(4, relay_port), datagram(host(1, 700), host(5, 800))), "going round")
        << "it comes from where it would go";
    std::vector<std::byte> one = datagram(host(1, 700), host(5, 800), 3);
    ASSERT_TRUE(forwarder.pass_on(host(1, 700), one));
    wire::Envelope envelope;
    ASSERT_EQ(wire::parse_envelope(one, envelope), wire::PacketError::none);
    EXPECT_EQ(envelope.hops, 2);
}

TEST_F(AForwarder, drops_what_is_no_envelope) {
    EXPECT_EQ(fate(host(1, 700), std::vector<std::byte>(200)), "malformed");
    EXPECT_EQ(fate(host(1, 700), {}), "malformed");
    auto one = datagram(host(1, 700), host(5, 800));
    one.resize(wire::envelope_length(6) + wire::packet_length_least - 1);
    EXPECT_EQ(fate(host(1, 700), one), "malformed") << "no packet is as short";
}

TEST_F(AForwarder, tells_who_sent_it_that_nobody_takes_it) {
    const auto one = datagram(host(1, 700), host(5, 800));
    // The network quotes the beginning.
    const auto notice = forwarder.tell_unreachable(std::span(one).first(64));
    ASSERT_TRUE(notice);
    EXPECT_EQ(notice->onward.to, host(1, 700));
    EXPECT_LT(notice->length, one.size()) << "nobody gets more than he sent";
    wire::Envelope said;
    ASSERT_EQ(wire::parse_envelope(std::span(notice->bytes).first(notice->length), said),
              wire::PacketError::none);
    EXPECT_EQ(said.kind, wire::EnvelopeKind::unreachable);
    EXPECT_EQ(said.source, host(5, 800));
    EXPECT_EQ(said.destination, host(1, 700));
    // Of a notice there is none, nor of less than an envelope.
    EXPECT_FALSE(forwarder.tell_unreachable(std::span(notice->bytes).first(notice->length)));
    EXPECT_FALSE(forwarder.tell_unreachable(std::span(one).first(20)));
}

}  // namespace
}  // namespace via::relay::test::forwarder_test
