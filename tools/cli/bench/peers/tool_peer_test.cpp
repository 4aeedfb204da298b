// What programs of others printed, recorded, and what is made of it.
#include "bench/peers/tool_peer.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace via::bench::tool_peer_test {
namespace {

ToolOrder order_of(std::uint64_t bytes, std::uint64_t messages, Bench bench = Bench::latency) {
    ToolOrder order;
    order.question.bench = bench;
    order.question.size = bytes;
    order.messages = messages;
    return order;
}

std::string with(std::string_view text, std::string_view from, std::string_view to) {
    std::string changed(text);
    return changed.replace(changed.find(from), from.size(), to);
}

void expect_no_sense(const ToolPeer& peer, const ToolOrder& order, const std::string& text) {
    const auto ns = peer.message_ns(text, order);
    ASSERT_FALSE(ns.has_value()) << text;
    EXPECT_NE(ns.error().what.find("makes no sense"), std::string::npos);
    if (text.size() > 10) {
        EXPECT_NE(ns.error().what.find(text.substr(0, 5)), std::string::npos) << "it is shown";
    }
}

constexpr std::string_view pingpong =
    "bytes   #sent   #ack     total       time     MB/sec    usec/xfer   Mxfers/sec\n"
    "64k     300     =300     37m         0.03s   1572.55      41.67       0.02\n";

TEST(FiPingpong, TellsOneWay) {
    const auto peer = make_fi_pingpong(Provider::tcp);
    const auto ns = peer->message_ns(pingpong, order_of(65536, 300));
    ASSERT_TRUE(ns.has_value()) << ns.error().what;
    EXPECT_DOUBLE_EQ(*ns, 41670);
    EXPECT_TRUE(peer->message_ns("a warning\n" + std::string(pingpong), order_of(65536, 300)));
}

TEST(FiPingpong, SmallMessagesAreAllowedTheirRounding) {
    const auto ns = make_fi_pingpong(Provider::tcp)
                        ->message_ns(
                            "bytes   #sent   #ack     total       time     MB/sec    "
                            "usec/xfer   Mxfers/sec\n"
                            "8       2k      =2k      31k         0.11s      0.28      "
                            "28.08       0.04\n",
                            order_of(8, 2000));
    ASSERT_TRUE(ns.has_value()) << ns.error().what;
    EXPECT_DOUBLE_EQ(*ns, 28080);
}

TEST(FiPingpong, WhatMakesNoSenseIsNoFigure) {
    const auto peer = make_fi_pingpong(Provider::tcp);
    for (const std::string& text :
         {std::string(), std::string("[error] failed to connect"), with(pingpong, "\n64k", " 64k"),
          with(pingpong, "41.67", "-41.67"), with(pingpong, "41.67", "nan"),
          with(pingpong, "41.67", "0"), with(pingpong, "41.67", "41x"),
          with(pingpong, "  0.02", ""), with(pingpong, "usec/xfer", "msec/xfer"),
          with(pingpong, "1572.55", "786.28")}) {
        expect_no_sense(*peer, order_of(65536, 300), text);
    }
    expect_no_sense(*peer, order_of(4096, 300), std::string(pingpong));
}

TEST(FiPingpong, HasAPingPongAlone) {
    const auto peer = make_fi_pingpong(Provider::shm);
    EXPECT_TRUE(peer->refuses(order_of(8, 1).question).empty());
    EXPECT_FALSE(peer->refuses(order_of(0, 1).question).empty());
    EXPECT_FALSE(peer->refuses(order_of(8, 1, Bench::bandwidth).question).empty());
}

constexpr std::string_view tag_latency =
    "iterations,50.0_percentile_lat,avg_lat,overall_lat,avg_bw,overall_bw,avg_mr,overall_mr\n"
    " 20000,0.442,1.078,1.078,7.08,7.08,927882,927882\n";
constexpr std::string_view tag_stream =
    "iterations,50.0_percentile_lat,avg_lat,overall_lat,avg_bw,overall_bw,avg_mr,overall_mr\n"
    "20000,0.174,48.406,147.250,1291.16,424.45,20659,6791\n";

TEST(UcxPerftest, TellsTheMeanOfAllMessages) {
    const auto peer = make_ucx_perftest(UcxTest::tag);
    const auto latency = peer->message_ns(tag_latency, order_of(8, 20000));
    ASSERT_TRUE(latency.has_value()) << latency.error().what;
    EXPECT_NEAR(*latency, 1077.7, 0.1);
    const auto stream = peer->message_ns(tag_stream, order_of(65536, 20000, Bench::bandwidth));
    ASSERT_TRUE(stream.has_value()) << stream.error().what;
    EXPECT_NEAR(*stream, 147250, 10) << "of 445 MB/s";
}

TEST(UcxPerftest, WhatMakesNoSenseIsNoFigure) {
    const auto peer = make_ucx_perftest(UcxTest::tag);
    for (const std::string& text :
         {std::string(), std::string("[1700000000.1] [host:1] UCX ERROR no transport"),
          with(tag_latency, "\n 20000", "\n 2000"), with(tag_latency, ",927882\n", ",92788\n"),
          with(tag_latency, "1.078,7.08", "10.78,7.08"), with(tag_latency, ",7.08,9", ",70.8,9"),
          with(tag_latency, "overall_mr", "overall"), with(tag_latency, ",0.442", "")}) {
        expect_no_sense(*peer, order_of(8, 20000), text);
    }
    expect_no_sense(*peer, order_of(16, 20000), std::string(tag_latency));
}

TEST(UcxPerftest, APutIsAWriteAndATransportCarriesLittle) {
    EXPECT_EQ(make_ucx_perftest(UcxTest::put)->adapt({}).op, Op::write);
    EXPECT_EQ(make_ucx_perftest(UcxTest::tag)->adapt({}).op, Op::send);
    EXPECT_FALSE(make_ucx_perftest(UcxTest::uct_am)->refuses(order_of(8192, 1).question).empty());
    EXPECT_TRUE(make_ucx_perftest(UcxTest::tag)->refuses(order_of(8192, 1).question).empty());
}

TEST(UcxPerftest, OnlyTheFirstSideNamesTheOther) {
    const auto peer = make_ucx_perftest(UcxTest::tag_tcp);
    ToolOrder order = order_of(8, 1000);
    order.address = "192.0.2.1";
    const auto names_it = [&] {
        const auto arguments = peer->command(order).arguments;
        return std::find(arguments.begin(), arguments.end(), "192.0.2.1") != arguments.end();
    };
    EXPECT_TRUE(names_it());
    order.side = Side::second;
    EXPECT_FALSE(names_it());
    EXPECT_EQ(peer->command(order).settings, std::vector<std::string>{"UCX_TLS=tcp,self"});
}

constexpr std::string_view client =
    "via-peer-2 bytes messages phases good took_ns lost_ns\n0 8 1000 20 18 286000 1200\n";

TEST(OwnClient, TellsItsTime) {
    for (const Client which : {Client::openmpi, Client::mpich, Client::zeromq}) {
        const auto peer = make_client(which);
        const auto latency = peer->message_ns(client, order_of(8, 1000));
        ASSERT_TRUE(latency.has_value()) << latency.error().what;
        EXPECT_DOUBLE_EQ(*latency, 143) << "half a round trip";
        EXPECT_EQ(peer->lost_ns(client), 1200);
        EXPECT_DOUBLE_EQ(*peer->message_ns(client, order_of(8, 1000, Bench::rate)), 286);
    }
}

TEST(OwnClient, WhatMakesNoSenseIsNoFigure) {
    const auto peer = make_client(Client::openmpi);
    for (const std::string& text :
         {std::string(), std::string("mpirun was unable to launch the specified application"),
          with(client, "1000", "999"), with(client, "286000", "0"), with(client, "took_ns", "ns"),
          with(client, "\n0 8", "\n8")}) {
        expect_no_sense(*peer, order_of(8, 1000), text);
    }
}

TEST(OwnClient, BlocksWhereItsLibraryDoes) {
    EXPECT_EQ(make_client(Client::zeromq)->adapt({}).wait, Wait::block);
    EXPECT_EQ(make_client(Client::mpich)->adapt({}).wait, Wait::poll);
    EXPECT_TRUE(make_client(Client::mpich)->is_launcher());
}

}  // namespace
}  // namespace via::bench::tool_peer_test
