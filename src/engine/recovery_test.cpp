// Media that lose frames (docs/design/protocol.md): what is lost is emitted again from where its
// bytes are, or skipped; descriptors are done as VIPL 4.25 says; unreliable VIs live with gaps.
#include <algorithm>

#include "engine/pair_test.hpp"

namespace via::engine::test::recovery_test {
namespace {

using queue::control::immediate;
using queue::control::rdma_read;
using queue::control::rdma_write;

struct Lossy {
    explicit Lossy(Reliability level, std::uint32_t payload_max = 64, std::uint32_t epoch = 0)
        : pair(payload_max, true),
          client(pair.a, attributes(level)),
          server(pair.b, attributes(level)) {
        server.vi().epoch = epoch;
        connect(pair, client, server);
    }
    /// Everything that side a wants to send now; none of it has arrived.
    std::vector<Carried> emit_all() {
        std::vector<Carried> frames;
        while (auto frame = pair.a.emit()) frames.push_back(std::move(*frame));
        return frames;
    }
    void reap(const Carried& frame, bool lost) {
        pair.a.engine.outbound().on_reaped(the_path, frame.number, lost);
    }
    void arrive(const Carried& frame) {
        const FrameVerdict verdict = pair.b.take(frame);
        EXPECT_TRUE(verdict == FrameVerdict::taken || verdict == FrameVerdict::stale)
            << pair.b.engine.last_refusal();
    }

    Pair pair;
    Program client;
    Program server;
};

bool same(const Carried& a, const Carried& b) {
    return a.header == b.header && a.payload == b.payload && a.number == b.number;
}

TEST(Recovery, a_lost_piece_is_emitted_again_from_the_registered_memory) {
    for (const std::uint16_t operation : {std::uint16_t{0}, rdma_write}) {
        Lossy net(Reliability::delivery);
        net.client.fill(0, 200, 1);
        net.server.receive(0, 400);
        if (operation == 0)
            net.client.send(0, 200);
        else
            net.client.rdma(rdma_write, 0, 200, net.server.address(512), net.server.handle());
        const auto frames = net.emit_all();
        ASSERT_EQ(frames.size(), 4U);
        net.reap(frames[1], true);
        net.reap(frames[1], true);  // said twice, emitted once
        const auto again = net.emit_all();
        ASSERT_EQ(again.size(), 1U);
        EXPECT_TRUE(same(again[0], frames[1]));
        EXPECT_EQ(net.pair.a.counters.get(Counter::frames_resent), 1U);
        net.client.fill(64, 64, 9);  // the program changes what it should not: no copy was kept
        net.reap(frames[1], true);
        EXPECT_NE(net.emit_all().at(0).payload, frames[1].payload);
    }
}

TEST(Recovery, of_what_is_lost_the_oldest_is_emitted_first_however_it_was_said) {
    Lossy net(Reliability::delivery);
    net.client.send(0, 300);
    const auto frames = net.emit_all();
    ASSERT_EQ(frames.size(), 5U);
    for (const std::size_t n : {3U, 1U, 4U, 0U, 2U}) net.reap(frames[n], true);
    const auto again = net.emit_all();
    ASSERT_EQ(again.size(), 5U);
    for (std::size_t n = 0; n < 5; ++n) EXPECT_TRUE(same(again[n], frames[n])) << n;
}

TEST(Recovery, Vipl_4_25_delivery_is_done_when_all_its_frames_and_all_before_were_acknowledged) {
    Lossy net(Reliability::delivery);
    queue::Descriptor& first = net.client.send(0, 100);
    queue::Descriptor& second = net.client.send(0, 10);
    const auto frames = net.emit_all();
    ASSERT_EQ(frames.size(), 3U);
    net.reap(frames[2], false);
    net.reap(frames[1], false);
    EXPECT_EQ(status_of(first), 0U);
    EXPECT_EQ(status_of(second), 0U);
    net.reap(frames[0], false);
    EXPECT_EQ(status_of(first), send_done);
    EXPECT_EQ(status_of(second), send_done);
    net.reap(frames[0], true);  // late and wrong
    EXPECT_TRUE(net.emit_all().empty());
}

/// A device may read what was emitted until it is notified, at the turn's end.
TEST(Recovery, Vipl_4_25_what_was_emitted_is_flushed_when_no_device_reads_it_any_more) {
    Lossy net(Reliability::delivery);
    queue::Descriptor& good = net.client.send(0, 60);
    queue::Descriptor& faulty =
        net.client.post_send(net.client.make(0, {{net.client.address(0), 77, 10}}, 10));
    ASSERT_TRUE(net.pair.a.emit());
    const auto parting = net.pair.a.emit();
    ASSERT_TRUE(parting);
    EXPECT_EQ(parting->parsed().kind, wire::FrameKind::disconnect);
    EXPECT_EQ(net.client.state(), ViState::error);
    EXPECT_EQ(status_of(good), 0U);
    EXPECT_EQ(status_of(faulty), 0U);
    EXPECT_TRUE(net.pair.a.engine.news().any());
    net.pair.a.engine.connections().flush_late();
    EXPECT_EQ(status_of(good), send_flushed);
    EXPECT_EQ(status_of(faulty), send_done | queue::status::protection_error);
}

TEST(Recovery, Vipl_4_25_reception_waits_for_the_remote_engine) {
    Lossy net(Reliability::reception);
    net.server.receive(0, 100);
    queue::Descriptor& send = net.client.send(0, 10);
    const auto frames = net.emit_all();
    net.reap(frames.at(0), false);
    EXPECT_EQ(status_of(send), 0U);
    net.arrive(frames[0]);
    net.pair.carry();
    EXPECT_EQ(status_of(send), send_done);
}

TEST(Recovery, what_the_peer_had_when_it_left_is_done_though_nothing_acknowledges_it) {
    for (const Reliability level : {Reliability::delivery, Reliability::reception}) {
        Lossy net(level);
        net.server.receive(0, 100);
        net.server.receive(0, 100);
        queue::Descriptor& had = net.client.send(0, 10);
        queue::Descriptor& half = net.client.send(0, 100);
        const auto frames = net.emit_all();
        ASSERT_EQ(frames.size(), 3U);
        net.arrive(frames[0]);
        net.arrive(frames[1]);
        net.pair.b.engine.disconnect(net.server.vi());
        net.pair.carry();
        EXPECT_EQ(net.client.vi().state_now(), ViState::error);
        EXPECT_EQ(status_of(had), send_done);
        EXPECT_EQ(status_of(half), send_flushed);
    }
}

TEST(Recovery, what_the_peer_had_before_it_refused_is_done_though_nothing_acknowledges_it) {
    for (const Reliability level : {Reliability::delivery, Reliability::reception}) {
        Lossy net(level);
        net.server.receive(0, 100);
        queue::Descriptor& had = net.client.send(0, 10);
        queue::Descriptor& refused = net.client.send(0, 10);
        for (const Carried& frame : net.emit_all()) net.arrive(frame);
        net.pair.carry();
        EXPECT_EQ(status_of(had), send_done);
        EXPECT_EQ(status_of(refused), send_done | queue::status::remote_descriptor_error);
    }
}

TEST(Recovery, a_peer_that_leaves_with_more_than_it_was_sent_has_nothing_of_it) {
    for (const std::uint32_t claim : {2U, 0x80000000U, ~0U}) {
        Lossy net(Reliability::delivery);
        queue::Descriptor& send = net.client.send(0, 10);
        net.emit_all();
        wire::Header header;
        header.kind = wire::FrameKind::disconnect;
        header.vi = net.client.vi().number();
        header.message = claim;
        net.pair.a.take(header);
        EXPECT_EQ(net.client.vi().state_now(), ViState::error);
        EXPECT_EQ(status_of(send), send_flushed);
    }
}

TEST(Recovery, Vipl_4_25_unreliable_frames_have_no_number_and_are_done_when_sent) {
    Lossy net(Reliability::unreliable);
    const std::uint32_t before = net.pair.a.frames;
    queue::Descriptor& send = net.client.send(0, 100);
    queue::Descriptor& write =
        net.client.rdma(rdma_write, 0, 100, net.server.address(0), net.server.handle());
    for (const Carried& frame : net.emit_all()) EXPECT_FALSE(frame.numbered);
    EXPECT_EQ(net.pair.a.frames, before);
    EXPECT_EQ(status_of(send), send_done);
    EXPECT_EQ(status_of(write), write_done);
}

TEST(Recovery, of_a_connection_that_is_over_a_skip_fills_the_number) {
    Lossy net(Reliability::delivery);
    net.client.send(0, 100);
    const auto frames = net.emit_all();
    net.pair.a.engine.disconnect(net.client.vi());
    net.reap(frames.at(0), true);
    const auto after = net.emit_all();
    ASSERT_EQ(after.size(), 2U);
    EXPECT_EQ(after[0].parsed().kind, wire::FrameKind::skip);
    EXPECT_EQ(after[0].number, frames[0].number);
    EXPECT_TRUE(after[0].payload.empty());
    EXPECT_EQ(after[1].parsed().kind, wire::FrameKind::disconnect);
    EXPECT_EQ(net.pair.b.take(after[0]), FrameVerdict::taken);
    net.reap(after[1], true);  // what connecting sends is repeated though the VI is elsewhere
    EXPECT_EQ(net.emit_all().at(0).parsed().kind, wire::FrameKind::disconnect);
}

TEST(Recovery, what_follows_a_skip_of_its_connection_is_no_fault) {
    Lossy net(Reliability::delivery);
    net.server.receive(0, 200);
    net.client.send(0, 10);
    net.client.send(0, 10);
    net.client.rdma(rdma_read, 0, 10, net.server.address(0), net.server.handle());
    const auto frames = net.emit_all();
    ASSERT_EQ(frames.size(), 3U);
    net.pair.a.engine.disconnect(net.client.vi());
    net.reap(frames[0], true);
    const auto after = net.emit_all();
    ASSERT_EQ(after.size(), 2U);
    ASSERT_EQ(after[0].parsed().kind, wire::FrameKind::skip);
    EXPECT_EQ(after[0].parsed().vi, net.server.vi().number());
    EXPECT_EQ(net.pair.b.take(after[0]), FrameVerdict::taken);
    EXPECT_EQ(net.pair.b.take(frames[1]), FrameVerdict::stale);
    EXPECT_EQ(net.pair.b.take(frames[2]), FrameVerdict::stale);
    EXPECT_EQ(net.server.vi().state.load(), ViState::connected);
    EXPECT_EQ(net.pair.b.take(after[1]), FrameVerdict::taken);
    EXPECT_EQ(net.server.vi().state.load(), ViState::error);
}

TEST(Recovery, a_message_known_to_be_placed_is_not_read_again) {
    Lossy net(Reliability::reception);
    net.server.receive(0, 100);
    queue::Descriptor& send = net.client.send(0, 10);
    const auto frames = net.emit_all();
    net.arrive(frames.at(0));
    net.pair.carry();
    ASSERT_EQ(status_of(send), send_done);  // the buffer is the program's again
    net.reap(frames[0], true);
    const auto skip = net.emit_all();
    EXPECT_EQ(skip.at(0).parsed().kind, wire::FrameKind::skip);
    EXPECT_EQ(skip.at(0).parsed().vi, 0U);  // the connection stands
}

/// 65,536 connections of one VI later. Number 0 is that of no VI, which such a skip says.
TEST(Recovery, a_skip_of_no_connection_is_none_of_a_vi_whose_epochs_begin_anew) {
    Lossy net(Reliability::reception, 64, 0xFFFF);
    ASSERT_EQ(net.server.vi().index, 0U);
    net.server.receive(0, 100);
    net.server.receive(200, 100);
    net.client.fill(0, 10, 1);
    net.client.send(0, 10);
    const auto frames = net.emit_all();
    net.arrive(frames.at(0));
    net.pair.carry();
    net.reap(frames[0], true);
    const auto skip = net.emit_all();
    ASSERT_EQ(skip.at(0).parsed().vi, 0U);
    net.arrive(skip[0]);
    queue::Descriptor& send = net.client.send(0, 10);
    net.pair.carry();
    EXPECT_EQ(status_of(send), send_done);
    EXPECT_TRUE(net.server.holds(200, 10, 1));
    EXPECT_FALSE(net.server.vi().placing.given_up);
}

TEST(Recovery, requests_with_their_data_are_repeated) {
    Pair pair(64, true);
    Program client(pair.a, attributes(Reliability::delivery));
    NetAddress remote;
    remote.discriminator = word("ear");
    const std::byte data[] = {std::byte{7}, std::byte{8}};
    ASSERT_EQ(
        pair.a.engine.connecting().begin_connect(client.vi(), {}, remote, Time::never(), data),
        Status::success);
    pair.a.engine.connecting().connect_on(client.vi(), the_path);
    const auto request = pair.a.emit();
    ASSERT_TRUE(request);
    pair.a.engine.outbound().on_reaped(the_path, request->number, true);
    const auto again = pair.a.emit();
    ASSERT_TRUE(again);
    EXPECT_TRUE(same(*again, *request));
}

struct Reading {
    Lossy net{Reliability::delivery};
    queue::Descriptor& read =
        net.client.rdma(rdma_read, 0, 100, net.server.address(0), net.server.handle());
    std::vector<Carried> replies;

    Reading() {
        net.server.fill(0, 100, 3);
        for (const Carried& frame : net.emit_all()) {
            net.arrive(frame);
            net.reap(frame, false);
        }
        while (auto frame = net.pair.b.emit()) replies.push_back(std::move(*frame));
        EXPECT_EQ(replies.size(), 2U);
    }
};

TEST(Recovery, answers_to_reads_are_repeated_from_the_region) {
    Reading reading;
    Side& target = reading.net.pair.b;
    target.engine.outbound().on_reaped(the_path, reading.replies[1].number, true);
    const auto again = target.emit();
    ASSERT_TRUE(again);
    EXPECT_TRUE(same(*again, reading.replies[1]));
    reading.net.pair.a.take(reading.replies[0]);
    reading.net.pair.a.take(*again);
    EXPECT_EQ(status_of(reading.read), read_done);
    EXPECT_TRUE(reading.net.client.holds(0, 100, 3));
}

TEST(Recovery, Vipl_4_8_a_lost_answer_whose_region_is_gone_becomes_a_refusal) {
    Reading reading;
    Side& target = reading.net.pair.b;
    reading.net.server.forget_region();
    target.engine.outbound().on_reaped(the_path, reading.replies[1].number, true);
    const auto refusal = target.emit();
    ASSERT_TRUE(refusal);
    EXPECT_EQ(refusal->parsed().kind, wire::FrameKind::nak);
    EXPECT_EQ(refusal->number, reading.replies[1].number);
    reading.net.pair.a.take(reading.replies[0]);
    reading.net.pair.a.take(*refusal);
    EXPECT_EQ(status_of(reading.read), read_done | queue::status::rdma_protection_error);
    EXPECT_EQ(reading.net.client.state(), ViState::error);
    reading.net.pair.carry();
    EXPECT_EQ(reading.net.server.state(), ViState::error);
    const auto events = target.events();
    EXPECT_NE(std::find(events.begin(), events.end(), ErrorCode::rdma_read_protection),
              events.end());
}

TEST(Recovery, Vipl_4_8_nothing_comes_of_the_refusal_when_the_answer_had_arrived) {
    Reading reading;
    Side& target = reading.net.pair.b;
    for (const Carried& reply : reading.replies) reading.net.pair.a.take(reply);
    ASSERT_EQ(status_of(reading.read), read_done);
    reading.net.server.forget_region();
    target.engine.outbound().on_reaped(the_path, reading.replies[1].number, true);
    ASSERT_TRUE(target.emit());  // which the reader's device drops: it has that number
    EXPECT_EQ(reading.net.client.state(), ViState::connected);
    EXPECT_EQ(reading.net.server.state(), ViState::connected);
    EXPECT_TRUE(target.events().empty());
    // Nor when the connection ends, long after.
    reading.net.pair.a.engine.disconnect(reading.net.client.vi());
    const auto parting = reading.net.pair.a.emit();
    ASSERT_TRUE(parting);
    target.take(*parting);
    EXPECT_EQ(target.events(), (std::vector{ErrorCode::connection_lost}));
}

TEST(Recovery, Vipl_4_8_a_lost_answer_before_a_refused_one_is_refused_as_well) {
    Reading reading;
    Side& target = reading.net.pair.b;
    reading.net.client.rdma(rdma_read, 100, 100, reading.net.server.address(0),
                            reading.net.server.handle());
    for (const Carried& frame : reading.net.emit_all()) reading.net.arrive(frame);
    reading.net.server.forget_region();
    const auto later = target.emit();
    ASSERT_TRUE(later);
    ASSERT_EQ(later->parsed().kind, wire::FrameKind::nak);
    target.engine.outbound().on_reaped(the_path, reading.replies[1].number, true);
    const auto again = target.emit();
    ASSERT_TRUE(again);
    ASSERT_EQ(again->parsed().kind, wire::FrameKind::nak);
    reading.net.pair.a.take(reading.replies[0]);
    reading.net.pair.a.take(*again);
    reading.net.pair.a.take(*later);
    EXPECT_EQ(status_of(reading.read), read_done | queue::status::rdma_protection_error);
    EXPECT_EQ(reading.net.client.state(), ViState::error);
}

TEST(Recovery, Vipl_4_25_a_read_that_is_refused_leaves_those_before_it_their_answers) {
    for (const bool lossy : {false, true}) {
        Pair pair(64, lossy);
        Program client(pair.a, attributes(Reliability::delivery));
        Program server(pair.b, attributes(Reliability::delivery));
        connect(pair, client, server);
        server.fill(0, 200, 3);
        queue::Descriptor& good =
            client.rdma(rdma_read, 0, 200, server.address(0), server.handle());
        queue::Descriptor& bad = client.rdma(rdma_read, 512, 10, server.address(0), 77);
        pair.carry();
        EXPECT_EQ(status_of(good), read_done);
        EXPECT_TRUE(client.holds(0, 200, 3));
        EXPECT_EQ(status_of(bad), read_done | queue::status::rdma_protection_error);
        EXPECT_EQ(client.state(), ViState::error);
        EXPECT_EQ(server.state(), ViState::error);
    }
}

TEST(Recovery, a_refusal_in_place_of_an_answer_is_repeated_as_one) {
    Lossy net(Reliability::delivery);
    net.client.rdma(rdma_read, 0, 100, net.server.address(0), net.server.handle());
    for (const Carried& frame : net.emit_all()) net.arrive(frame);
    net.server.forget_region();
    const auto refusal = net.pair.b.emit();
    ASSERT_TRUE(refusal);
    ASSERT_EQ(refusal->parsed().kind, wire::FrameKind::nak);
    net.pair.b.engine.outbound().on_reaped(the_path, refusal->number, true);
    const auto again = net.pair.b.emit();
    ASSERT_TRUE(again);
    EXPECT_EQ(again->header, refusal->header);
    EXPECT_TRUE(again->payload.empty());
    EXPECT_EQ(net.pair.a.take(*again), FrameVerdict::taken);
    EXPECT_EQ(net.client.state(), ViState::error);
}

TEST(Recovery, frames_of_a_path_that_went_down_are_forgotten) {
    Lossy net(Reliability::delivery);
    net.client.send(0, 10);
    const auto frames = net.emit_all();
    net.reap(frames.at(0), true);
    net.pair.a.engine.on_path_down(the_path);
    net.reap(frames.at(0), true);
    net.reap(frames.at(0), false);
    FrameShape shape;
    EXPECT_EQ(net.pair.a.engine.paths().first_sending(), no_path);
    net.pair.a.engine.on_path_up(the_path, 64, {}, true);
    EXPECT_FALSE(net.pair.a.engine.outbound().next_frame(the_path, shape));
}

// Gaps --------------------------------------------------------------------------------------------

/// Messages of 150 bytes (three frames each) over an unreliable VI, and two receives.
struct Gaps {
    Lossy net{Reliability::unreliable};
    std::vector<Carried> frames;
    queue::Descriptor& receive = net.server.receive(0, 200);
    queue::Descriptor& next = net.server.receive(1024, 200);

    explicit Gaps(std::uint32_t messages = 2) {
        for (std::uint32_t n = 0; n < messages; ++n) {
            net.client.fill(200 * n, 150, n);
            net.client.send(200 * n, 150);
        }
        frames = net.emit_all();
        EXPECT_EQ(frames.size(), 3 * messages);
    }
    void arrive(std::initializer_list<std::size_t> which) {
        for (const std::size_t n : which) net.arrive(frames[n]);
    }
    void expect_second_alone() {
        EXPECT_EQ(status_of(receive), receive_done);
        EXPECT_EQ(receive.control.length, 150U);
        EXPECT_TRUE(net.server.holds(0, 150, 1));
        EXPECT_EQ(status_of(next), 0U);
        EXPECT_EQ(net.server.state(), ViState::connected);
    }
};

TEST(Gaps, Vipl_4_25_a_message_without_its_beginning_is_dropped) {
    Gaps gaps;
    gaps.arrive({1, 2, 3, 4, 5});
    gaps.expect_second_alone();
}

TEST(Gaps, Vipl_4_25_a_message_without_its_middle_leaves_its_receive_to_the_next) {
    Gaps gaps;
    gaps.arrive({0, 2, 3, 4, 5});
    gaps.expect_second_alone();
}

TEST(Gaps, Vipl_4_25_a_message_without_its_end_leaves_its_receive_to_the_next) {
    Gaps gaps;
    gaps.arrive({0, 1, 3, 4, 5});
    gaps.expect_second_alone();
}

TEST(Gaps, Vipl_4_25_never_out_of_order) {
    Gaps gaps;
    gaps.arrive({3, 4, 5, 0, 1, 2});
    gaps.expect_second_alone();
}

TEST(Gaps, Vipl_4_25_pieces_out_of_order_are_no_message) {
    Gaps gaps;
    gaps.arrive({0, 2, 1, 3, 4, 5});
    gaps.expect_second_alone();
}

TEST(Gaps, a_whole_message_may_be_missing) {
    Gaps gaps(3);
    gaps.arrive({0, 1, 2, 6, 7, 8});
    EXPECT_EQ(status_of(gaps.receive), receive_done);
    EXPECT_EQ(status_of(gaps.next), receive_done);
    EXPECT_TRUE(gaps.net.server.holds(0, 150, 0));
    EXPECT_TRUE(gaps.net.server.holds(1024, 150, 2));
}

TEST(Gaps, half_of_a_message_without_receive_is_dropped_with_it) {
    Lossy net(Reliability::unreliable);
    net.client.send(0, 150);
    net.client.fill(0, 150, 1);
    const auto first = net.emit_all();
    net.client.send(0, 150);
    const auto second = net.emit_all();
    net.arrive(first.at(0));  // finds none
    queue::Descriptor& receive = net.server.receive(0, 200);
    net.arrive(second.at(0));
    net.arrive(second.at(1));
    net.arrive(second.at(2));
    EXPECT_EQ(status_of(receive), receive_done);
    EXPECT_TRUE(net.server.holds(0, 150, 1));
}

TEST(Gaps, an_rdma_write_that_lost_a_piece_gives_no_news) {
    Lossy net(Reliability::unreliable);
    queue::Descriptor& receive = net.server.receive(0, 0);
    for (unsigned n = 0; n < 2; ++n)
        net.client.rdma(rdma_write | immediate, 0, 150, net.server.address(0), net.server.handle());
    const auto frames = net.emit_all();
    ASSERT_EQ(frames.size(), 6U);
    for (const std::size_t n : {0U, 2U, 3U, 4U}) net.arrive(frames[n]);
    EXPECT_EQ(status_of(receive), 0U);
    net.arrive(frames[5]);
    EXPECT_NE(status_of(receive), 0U);
    EXPECT_EQ(receive.control.length, 150U);
}

TEST(Gaps, nothing_may_be_missing_where_nothing_is_lost) {
    Pair pair;
    Program client(pair.a, attributes(Reliability::unreliable));
    Program server(pair.b, attributes(Reliability::unreliable));
    connect(pair, client, server);
    client.send(0, 150);
    server.receive(0, 200);
    (void)pair.a.emit();
    EXPECT_EQ(pair.b.take(*pair.a.emit()), FrameVerdict::refused);
}

}  // namespace
}  // namespace via::engine::test::recovery_test
