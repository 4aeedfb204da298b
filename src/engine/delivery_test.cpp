// VIPL 4.10 to 4.15, 4.23 and 4.25: what arrives, how descriptors end, what breaks a connection.
#include <tuple>

#include "engine/pair_test.hpp"

namespace via::engine::test::delivery_test {
namespace {

using queue::control::immediate;
using queue::control::queue_fence;
using queue::control::rdma_read;
using queue::control::rdma_write;

constexpr Reliability levels[] = {Reliability::unreliable, Reliability::delivery,
                                  Reliability::reception};

/// A connected pair of one level.
struct Connected {
    explicit Connected(Reliability level, std::uint32_t payload_max = 64)
        : pair(payload_max), client(pair.a, attributes(level)), server(pair.b, attributes(level)) {
        connect(pair, client, server);
    }
    Pair pair;
    Program client;
    Program server;
};

struct EveryLevel : testing::TestWithParam<Reliability> {
    Connected net{GetParam()};
    Pair& pair = net.pair;
    Program& client = net.client;
    Program& server = net.server;
};

std::string level_name(const testing::TestParamInfo<Reliability>& info) {
    switch (info.param) {
        case Reliability::unreliable:
            return "unreliable";
        case Reliability::delivery:
            return "delivery";
        default:
            return "reception";
    }
}
INSTANTIATE_TEST_SUITE_P(Engine, EveryLevel, testing::ValuesIn(levels), level_name);

// Messages ----------------------------------------------------------------------------------------

TEST_P(EveryLevel, Vipl_4_11_messages_of_every_length_arrive_whole) {
    for (const std::uint32_t length : {0U, 1U, 24U, 63U, 64U, 65U, 128U, 1000U, 4096U}) {
        client.fill(0, length, length);
        queue::Descriptor& receive = server.receive(0, 4096);
        queue::Descriptor& send = client.send(0, length);
        pair.carry();
        EXPECT_EQ(status_of(send), send_done) << length;
        EXPECT_EQ(status_of(receive), receive_done) << length;
        EXPECT_EQ(receive.control.length, length);
        EXPECT_TRUE(server.holds(0, length, length));
        EXPECT_EQ(send.control.length, length);
    }
}

/// Between two frames time may pass, much of it if the second was lost, and the program looks.
TEST_P(EveryLevel, Vipl_4_24_no_aligned_word_of_a_write_lies_in_two_frames) {
    for (const std::uint32_t payload_max : {64U, 67U, 101U}) {
        Connected odd(GetParam(), payload_max);
        for (const std::size_t shift : {0U, 1U, 5U}) {
            odd.client.fill(0, 1000, 3);
            odd.client.rdma(rdma_write, 0, 1000, odd.server.address(shift), odd.server.handle());
            std::uint32_t behind = 0;
            while (const auto frame = odd.pair.a.emit()) {
                behind = frame->parsed().offset + static_cast<std::uint32_t>(frame->payload.size());
                EXPECT_TRUE(behind == 1000 || (shift + behind) % 8 == 0)
                    << "a frame ends " << behind << " behind " << shift;
                odd.pair.b.take(*frame);
            }
            EXPECT_EQ(behind, 1000U);
            odd.pair.carry();
            EXPECT_TRUE(odd.server.holds(shift, 1000, 3));
        }
    }
}

TEST_P(EveryLevel, Vipl_4_11_immediate_data_is_told_when_it_came) {
    queue::Descriptor& first = server.receive(0, 10);
    queue::Descriptor& second = server.receive(0, 10);
    first.control.immediate_data = second.control.immediate_data = 7;
    client.send(0, 5, immediate, 0xABCD);
    client.send(0, 5);
    pair.carry();
    EXPECT_EQ(status_of(first), receive_done | queue::status::immediate);
    EXPECT_EQ(first.control.immediate_data, 0xABCDU);
    EXPECT_EQ(status_of(second), receive_done);
    EXPECT_EQ(second.control.immediate_data, 7U);
}

TEST_P(EveryLevel, Vipl_4_10_segments_are_gathered_and_scattered) {
    client.fill(100, 300, 3);
    queue::Descriptor& receive =
        server.post_receive(server.make(0, {server.segment(0, 150), server.segment(1000, 250)}, 0));
    client.post_send(client.make(0, {client.segment(100, 200), client.segment(300, 100)}, 300));
    pair.carry();
    EXPECT_EQ(receive.control.length, 300U);
    EXPECT_TRUE(server.holds(0, 150, 3));
    EXPECT_EQ(std::memcmp(server.at(1000), client.at(250), 150), 0);
    EXPECT_EQ(*server.at(1150), std::byte{0});
}

TEST_P(EveryLevel, Vipl_4_15_completions_come_in_posting_order) {
    std::vector<queue::Descriptor*> posted;
    for (std::uint32_t n = 0; n < 20; ++n) posted.push_back(&server.receive(n * 100, 100));
    for (std::uint32_t n = 0; n < 20; ++n) {
        client.fill(n * 100, 100, n);
        client.send(n * 100, (n * 37) % 100);
    }
    pair.carry();
    for (std::uint32_t n = 0; n < 20; ++n) {
        EXPECT_EQ(server.take(server.vi().receive), posted[n]);
        EXPECT_TRUE(server.holds(n * 100, (n * 37) % 100, n));
        EXPECT_NE(client.take(client.vi().send), nullptr);
    }
    EXPECT_TRUE(client.vi().send.work.empty());
}

TEST_P(EveryLevel, Vipl_4_10_faulty_send_completes_with_its_own_error) {
    const bool reliable = GetParam() != Reliability::unreliable;
    queue::Descriptor& wrong =
        client.post_send(client.make(0, {client.segment(0, 10)}, 11));  // sum differs
    pair.carry();
    EXPECT_EQ(status_of(wrong), send_done | queue::status::length_error);
    EXPECT_EQ(client.state(), reliable ? ViState::error : ViState::connected);
    EXPECT_EQ(server.state(), reliable ? ViState::error : ViState::connected);
}

// RDMA --------------------------------------------------------------------------------------------

TEST_P(EveryLevel, Vipl_4_23_rdma_write_is_in_place_when_the_next_message_is) {
    client.fill(0, 500, 9);
    queue::Descriptor& receive = server.receive(4000, 10);
    queue::Descriptor& write =
        client.rdma(rdma_write, 0, 500, server.address(1000), server.handle());
    client.send(0, 1);
    pair.carry();
    EXPECT_EQ(status_of(write), write_done);
    EXPECT_EQ(status_of(receive), receive_done);
    EXPECT_TRUE(server.holds(1000, 500, 9));
}

TEST_P(EveryLevel, Vipl_4_11_rdma_write_with_immediate_consumes_a_receive_and_spares_its_buffers) {
    client.fill(0, 100, 9);
    queue::Descriptor& receive = server.receive(3000, 10);
    queue::Descriptor& write =
        client.make(rdma_write | immediate,
                    {{server.address(1000), server.handle(), 0}, client.segment(0, 100)}, 100);
    write.control.immediate_data = 55;
    client.post_send(write);
    pair.carry();
    EXPECT_EQ(status_of(receive), queue::status::done | queue::status::immediate |
                                      queue::status::operation_remote_rdma_write);
    EXPECT_EQ(receive.control.immediate_data, 55U);
    EXPECT_EQ(receive.control.length, 100U);
    EXPECT_TRUE(server.holds(1000, 100, 9));
    EXPECT_EQ(*server.at(3000), std::byte{0});
}

TEST_P(EveryLevel, Vipl_4_10_rdma_read_fetches_on_reliable_vis_only) {
    server.fill(500, 300, 4);
    queue::Descriptor& read = client.rdma(rdma_read, 0, 300, server.address(500), server.handle());
    pair.carry();
    if (GetParam() == Reliability::unreliable) {
        EXPECT_EQ(status_of(read), read_done | queue::status::format_error);
        EXPECT_EQ(client.state(), ViState::connected);
        return;
    }
    EXPECT_EQ(status_of(read), read_done);
    EXPECT_TRUE(client.holds(0, 300, 4));
}

// VIPL 4.25's table -------------------------------------------------------------------------------

TEST(Engine, Vipl_4_25_unreliable_send_is_done_when_handed_over) {
    Connected net(Reliability::unreliable);
    queue::Descriptor& send = net.client.send(0, 10);
    EXPECT_EQ(status_of(send), 0U);
    ASSERT_TRUE(net.pair.a.emit());
    EXPECT_EQ(status_of(send), send_done);
}

TEST(Engine, Vipl_4_25_reliable_delivery_is_done_when_published_on_a_lossless_device) {
    Connected net(Reliability::delivery);
    queue::Descriptor& send = net.client.send(0, 100);
    ASSERT_TRUE(net.pair.a.emit());
    EXPECT_EQ(status_of(send), 0U);  // half of it
    ASSERT_TRUE(net.pair.a.emit());
    EXPECT_EQ(status_of(send), send_done);
}

TEST(Engine, Vipl_4_25_reliable_reception_is_done_when_placed) {
    Connected net(Reliability::reception);
    net.server.receive(0, 100);
    queue::Descriptor& send = net.client.send(0, 10);
    queue::Descriptor& write =
        net.client.rdma(rdma_write, 0, 10, net.server.address(0), net.server.handle());
    const auto first = net.pair.a.emit();
    const auto second = net.pair.a.emit();
    ASSERT_TRUE(first && second);
    EXPECT_EQ(status_of(send), 0U);
    net.pair.b.take(*first);
    const auto ack = net.pair.b.emit();
    ASSERT_TRUE(ack);
    EXPECT_EQ(ack->parsed().kind, wire::FrameKind::ack);
    net.pair.a.take(*ack);
    EXPECT_EQ(status_of(send), send_done);
    EXPECT_EQ(status_of(write), 0U);
    net.pair.b.take(*second);
    net.pair.carry();
    EXPECT_EQ(status_of(write), write_done);
}

TEST(Engine, Vipl_4_25_unreliable_no_receive_drops_and_stays_connected) {
    Connected net(Reliability::unreliable);
    net.client.fill(0, 100, 1);
    queue::Descriptor& lost = net.client.send(0, 100);
    net.pair.carry();
    EXPECT_EQ(status_of(lost), send_done);
    EXPECT_EQ(net.pair.b.events(), (std::vector{ErrorCode::receive_queue_empty}));
    EXPECT_EQ(net.server.state(), ViState::connected);
    queue::Descriptor& receive = net.server.receive(0, 100);
    net.client.fill(0, 50, 2);
    net.client.send(0, 50);
    net.pair.carry();
    EXPECT_EQ(status_of(receive), receive_done);
    EXPECT_TRUE(net.server.holds(0, 50, 2));
    EXPECT_TRUE(net.pair.a.events().empty());
}

TEST(Engine, Vipl_4_25_reliable_delivery_no_receive_breaks_both) {
    Connected net(Reliability::delivery);
    queue::Descriptor& send = net.client.send(0, 10);
    net.pair.carry();
    EXPECT_EQ(status_of(send), send_done);  // the error came too late for it
    EXPECT_EQ(net.server.state(), ViState::error);
    EXPECT_EQ(net.client.state(), ViState::error);
    EXPECT_EQ(net.pair.b.events(), (std::vector{ErrorCode::receive_queue_empty}));
    EXPECT_EQ(net.pair.a.events(), (std::vector{ErrorCode::connection_lost}));
}

TEST(Engine, Vipl_4_25_reliable_delivery_error_goes_to_the_oldest_outstanding_as_transport) {
    Connected net(Reliability::delivery);
    net.client.send(0, 10);
    queue::Descriptor& read =
        net.client.rdma(rdma_read, 0, 10, net.server.address(0), net.server.handle());
    queue::Descriptor& behind = net.client.send(0, 10, queue_fence);
    net.pair.carry();
    EXPECT_EQ(status_of(read), read_done | queue::status::transport_error);
    EXPECT_EQ(status_of(behind), send_flushed);
    EXPECT_EQ(net.client.state(), ViState::error);
}

TEST(Engine, Vipl_4_25_reliable_delivery_guilty_message_still_being_cut_gets_its_error) {
    Connected net(Reliability::delivery);
    queue::Descriptor& send = net.client.send(0, 1000);
    const auto first = net.pair.a.emit();
    ASSERT_TRUE(first);
    net.pair.b.take(*first);
    net.pair.carry();
    EXPECT_EQ(status_of(send), send_done | queue::status::remote_descriptor_error);
    EXPECT_EQ(net.client.state(), ViState::error);
    EXPECT_EQ(net.server.state(), ViState::error);
}

TEST(Engine, Vipl_4_25_reliable_reception_no_receive_is_the_senders_own_error) {
    Connected net(Reliability::reception);
    net.server.receive(0, 100);
    queue::Descriptor& good = net.client.send(0, 10);
    queue::Descriptor& guilty = net.client.send(0, 10);
    queue::Descriptor& behind = net.client.send(0, 10);
    net.pair.carry();
    EXPECT_EQ(status_of(good), send_done);
    EXPECT_EQ(status_of(guilty), send_done | queue::status::remote_descriptor_error);
    EXPECT_EQ(status_of(behind), send_flushed);
    EXPECT_EQ(net.client.state(), ViState::error);
    EXPECT_EQ(net.server.state(), ViState::error);
    EXPECT_EQ(net.pair.b.events(), (std::vector{ErrorCode::receive_queue_empty}));
    EXPECT_EQ(net.pair.a.events(), (std::vector{ErrorCode::connection_lost}));
}

/// What each way of being refused at the target is.
struct Refusal {
    const char* name;
    bool rights;
    bool handle;
    std::uint64_t offset;
};
constexpr Refusal refusals[] = {{"vi_forbids", false, true, 0},
                                {"wrong_handle", true, false, 0},
                                {"beyond_the_end", true, true, Program::memory_length - 50}};

struct RefusedWrite : testing::TestWithParam<std::tuple<Reliability, Refusal>> {
    Reliability level = std::get<0>(GetParam());
    Refusal refusal = std::get<1>(GetParam());
    Pair pair;
    Program client{pair.a, attributes(level)};
    Program server{pair.b, server_attributes()};

    ViAttributes server_attributes() const {
        ViAttributes result = attributes(level);
        result.rdma_write = result.rdma_read = refusal.rights;
        return result;
    }
    queue::Descriptor& ask(std::uint16_t control) {
        return client.rdma(control, 0, 100, server.address(refusal.offset),
                           refusal.handle ? server.handle() : 0x12345);
    }
    void SetUp() override { connect(pair, client, server); }
};

TEST_P(RefusedWrite, Vipl_4_25_rdma_target_refused) {
    client.fill(0, 100, 1);
    queue::Descriptor& write = ask(rdma_write);
    pair.carry();
    for (std::size_t n = 0; n < Program::memory_length; ++n)
        ASSERT_EQ(*server.at(n), std::byte{0}) << "touched at " << n;
    EXPECT_EQ(pair.b.events(), (std::vector{ErrorCode::rdma_write_protection}));
    if (level == Reliability::unreliable) {
        EXPECT_EQ(status_of(write), write_done);
        EXPECT_EQ(server.state(), ViState::connected);
        EXPECT_EQ(client.state(), ViState::connected);
        queue::Descriptor& receive = server.receive(0, 10);
        client.send(0, 10);
        pair.carry();
        EXPECT_EQ(status_of(receive), receive_done);
        return;
    }
    EXPECT_EQ(server.state(), ViState::error);
    EXPECT_EQ(client.state(), ViState::error);
    EXPECT_EQ(pair.a.events(), (std::vector{ErrorCode::connection_lost}));
    // Two frames: the refusal overtakes the second, so the descriptor is guilty at both levels.
    EXPECT_EQ(status_of(write), write_done | queue::status::rdma_protection_error);
}

struct RefusedRead : RefusedWrite {};

TEST_P(RefusedRead, Vipl_4_25_rdma_read_refused) {
    queue::Descriptor& read = ask(rdma_read);
    pair.carry();
    EXPECT_EQ(status_of(read), read_done | queue::status::rdma_protection_error);
    EXPECT_EQ(pair.b.events(), (std::vector{ErrorCode::rdma_read_protection}));
    EXPECT_EQ(client.state(), ViState::error);
    EXPECT_EQ(server.state(), ViState::error);
}

std::string refusal_name(const testing::TestParamInfo<RefusedWrite::ParamType>& param) {
    return level_name({std::get<0>(param.param), 0}) + "_" + std::get<1>(param.param).name;
}
INSTANTIATE_TEST_SUITE_P(Engine, RefusedWrite,
                         testing::Combine(testing::ValuesIn(levels), testing::ValuesIn(refusals)),
                         refusal_name);
INSTANTIATE_TEST_SUITE_P(Engine, RefusedRead,
                         testing::Combine(testing::Values(Reliability::delivery,
                                                          Reliability::reception),
                                          testing::ValuesIn(refusals)),
                         refusal_name);

/// Whole in one frame or cut, into one segment or behind another one.
TEST_P(EveryLevel, Vipl_4_12_a_receive_longer_than_its_region_takes_what_fits) {
    constexpr std::size_t end = Program::memory_length;
    for (const std::uint32_t fits : {0U, 40U, 200U})
        for (const bool cut : {false, true}) {
            Connected fresh{GetParam()};
            Program& to = fresh.server;
            const auto receive = [&]() -> queue::Descriptor& {
                if (!cut) return to.receive(end - fits, fits + 100);
                return to.post_receive(to.make(0,
                                               {to.segment(end - fits, fits / 2),
                                                to.segment(end - fits + fits / 2, fits + 100)},
                                               0));
            };
            queue::Descriptor& whole = receive();
            queue::Descriptor& empty = receive();
            queue::Descriptor& too_much = receive();
            queue::Descriptor& too_long = receive();
            fresh.client.fill(0, fits, 1);
            fresh.client.send(0, fits);
            fresh.client.send(0, 0);
            fresh.pair.carry();
            EXPECT_EQ(status_of(whole), receive_done);
            EXPECT_TRUE(to.holds(end - fits, fits, 1));
            EXPECT_EQ(status_of(empty), receive_done);
            EXPECT_EQ(to.state(), ViState::connected);
            fresh.client.send(0, fits + 1);
            fresh.pair.carry();
            EXPECT_EQ(status_of(too_much), receive_done | queue::status::protection_error);
            if (GetParam() == Reliability::unreliable) {
                EXPECT_EQ(to.state(), ViState::connected);
                fresh.client.send(0, 1000);
                fresh.pair.carry();
                EXPECT_EQ(status_of(too_long), receive_done | queue::status::length_error);
            } else {
                EXPECT_EQ(to.state(), ViState::error);
            }
        }
}

TEST_P(EveryLevel, Vipl_4_23_receive_shorter_than_its_message) {
    const bool reliable = GetParam() != Reliability::unreliable;
    client.fill(0, 200, 1);
    queue::Descriptor& small = server.receive(0, 100);
    queue::Descriptor& next = server.receive(200, 200);
    queue::Descriptor& send = client.send(0, 200);
    pair.carry();
    EXPECT_EQ(status_of(small), receive_done | queue::status::length_error);
    for (std::size_t n = 0; n < 400; ++n) ASSERT_EQ(*server.at(n), std::byte{0});
    if (!reliable) {
        EXPECT_EQ(status_of(send), send_done);
        client.send(0, 50);
        pair.carry();
        EXPECT_EQ(status_of(next), receive_done);
        EXPECT_TRUE(server.holds(200, 50, 1));
        return;
    }
    EXPECT_EQ(status_of(next), receive_flushed);
    EXPECT_EQ(status_of(send), send_done | queue::status::remote_descriptor_error);
    EXPECT_EQ(client.state(), ViState::error);
    EXPECT_EQ(server.state(), ViState::error);
    // A receive that was there told the program itself.
    EXPECT_TRUE(pair.b.events().empty());
}

TEST_P(EveryLevel, Vipl_4_12_faulty_receive_completes_when_it_is_the_oldest) {
    queue::Descriptor& good = server.receive(0, 100);
    queue::Descriptor& bad =
        server.post_receive(server.make(0, {{server.address(0), 0x777, 100}}, 0));
    EXPECT_EQ(status_of(bad), 0U);
    client.send(0, 10);
    pair.carry();
    EXPECT_EQ(status_of(good), receive_done);
    EXPECT_EQ(status_of(bad), receive_done | queue::status::protection_error);
    const bool reliable = GetParam() != Reliability::unreliable;
    EXPECT_EQ(server.state(), reliable ? ViState::error : ViState::connected);
    EXPECT_EQ(client.state(), reliable ? ViState::error : ViState::connected);
}

/// The fault behind a receive ends the connection when the message that the receive took counts.
TEST_P(EveryLevel, Vipl_4_25_what_was_taken_before_a_faulty_receive_is_done_at_its_sender) {
    queue::Descriptor& good = server.receive(0, 100);
    server.post_receive(server.make(0x10, {server.segment(0, 100)}, 0));
    queue::Descriptor& behind = server.receive(0, 100);
    queue::Descriptor& taken = client.send(0, 100);
    queue::Descriptor& second = client.send(0, 100);
    queue::Descriptor& third = client.send(0, 100);
    pair.carry();
    EXPECT_EQ(status_of(good), receive_done);
    EXPECT_EQ(status_of(taken), send_done);
    const bool reliable = GetParam() != Reliability::unreliable;
    EXPECT_EQ(status_of(behind), reliable ? receive_flushed : receive_done);
    EXPECT_EQ(server.state(), reliable ? ViState::error : ViState::connected);
    EXPECT_EQ(client.state(), reliable ? ViState::error : ViState::connected);
    if (GetParam() != Reliability::reception) return;
    EXPECT_EQ(status_of(second), send_flushed);
    EXPECT_EQ(status_of(third), send_flushed);
}

TEST_P(EveryLevel, Vipl_4_25_a_write_with_immediate_data_before_a_faulty_receive_is_done) {
    queue::Descriptor& good = server.receive(0, 100);
    server.post_receive(server.make(0x10, {server.segment(0, 100)}, 0));
    queue::Descriptor& write =
        client.rdma(rdma_write | immediate, 0, 100, server.address(200), server.handle());
    pair.carry();
    EXPECT_EQ(status_of(good),
              receive_done | queue::status::operation_remote_rdma_write | queue::status::immediate);
    EXPECT_EQ(status_of(write), write_done);
}

/// The receive that is too short is what the sender hears of, not the one behind it.
TEST_P(EveryLevel, Vipl_4_25_a_faulty_receive_behind_hides_no_refusal) {
    queue::Descriptor& small = server.receive(0, 10);
    queue::Descriptor& bad = server.post_receive(server.make(0x10, {server.segment(0, 100)}, 0));
    queue::Descriptor& send = client.send(0, 100);
    pair.carry();
    EXPECT_EQ(status_of(small), receive_done | queue::status::length_error);
    EXPECT_EQ(status_of(bad),
              receive_done | (GetParam() == Reliability::unreliable ? queue::status::format_error
                                                                    : queue::status::flushed));
    EXPECT_EQ(status_of(send), GetParam() == Reliability::unreliable
                                   ? send_done
                                   : send_done | queue::status::remote_descriptor_error);
}

/// Another thread's post is seen before its doorbell: the fault must not be.
TEST_P(EveryLevel, Vipl_4_12_message_never_lands_in_a_faulty_receive) {
    std::byte elsewhere[100] = {};
    queue::Descriptor& bad = server.post_receive(
        server.make(0, {{reinterpret_cast<std::uint64_t>(elsewhere), server.handle(), 100}}, 0),
        false);
    client.fill(0, 100, 1);
    client.send(0, 100);
    pair.carry();
    EXPECT_EQ(status_of(bad) & ~queue::status::flushed,
              receive_done | queue::status::protection_error);
    for (const std::byte byte : elsewhere) ASSERT_EQ(byte, std::byte{0});
}

TEST_P(EveryLevel, Vipl_4_12_immediate_never_completes_a_faulty_receive_well) {
    queue::Descriptor& bad =
        server.post_receive(server.make(0, {{server.address(0), 0x777, 100}}, 0), false);
    queue::Descriptor& write = client.make(
        rdma_write | immediate, {{server.address(0), server.handle(), 0}, client.segment(0, 1)}, 1);
    client.post_send(write);
    pair.carry();
    EXPECT_NE(status_of(bad) & queue::status::error_mask, 0U);
}

// RDMA reads --------------------------------------------------------------------------------------

TEST(Engine, Vipl_4_23_fence_waits_for_earlier_reads) {
    Connected net(Reliability::delivery);
    net.server.fill(0, 200, 6);
    queue::Descriptor& receive = net.server.receive(4000, 100);
    net.client.rdma(rdma_read, 0, 200, net.server.address(0), net.server.handle());
    queue::Descriptor& fenced = net.client.send(0, 100, queue_fence);
    ASSERT_TRUE(net.pair.a.emit());  // the read request
    EXPECT_FALSE(net.pair.a.emit());
    EXPECT_EQ(status_of(fenced), 0U);
    // Without its request the server cannot answer; carry a second connection's worth instead.
    Connected again(Reliability::delivery);
    again.server.fill(0, 200, 6);
    again.server.receive(4000, 100);
    again.client.rdma(rdma_read, 0, 200, again.server.address(0), again.server.handle());
    again.client.send(0, 100, queue_fence);
    again.pair.carry();
    EXPECT_EQ(std::memcmp(again.server.at(4000), again.server.at(0), 100), 0);
    EXPECT_EQ(status_of(receive), 0U);
}

TEST(Engine, Vipl_4_10_more_reads_than_may_be_in_flight_wait) {
    Connected net(Reliability::reception);
    net.server.fill(0, 2000, 2);
    std::vector<queue::Descriptor*> reads;
    for (std::uint32_t n = 0; n < 20; ++n)
        reads.push_back(&net.client.rdma(rdma_read, n * 100, 100, net.server.address(n * 100),
                                         net.server.handle()));
    std::uint32_t requests = 0;
    std::vector<Carried> frames;
    while (auto frame = net.pair.a.emit()) {
        ++requests;
        frames.push_back(*frame);
    }
    EXPECT_EQ(requests, net.pair.a.limits.reads_in_flight_max);
    for (const Carried& frame : frames) EXPECT_EQ(net.pair.b.take(frame), FrameVerdict::taken);
    net.pair.carry();
    for (queue::Descriptor* read : reads) EXPECT_EQ(status_of(*read), read_done);
    EXPECT_TRUE(net.client.holds(0, 2000, 2));
}

TEST(Engine, Vipl_4_15_send_behind_a_read_completes_behind_it) {
    Connected net(Reliability::delivery);
    net.server.receive(0, 100);
    queue::Descriptor& read =
        net.client.rdma(rdma_read, 0, 100, net.server.address(0), net.server.handle());
    queue::Descriptor& send = net.client.send(0, 10);
    const auto request = net.pair.a.emit();
    const auto message = net.pair.a.emit();
    ASSERT_TRUE(request && message);
    EXPECT_EQ(status_of(send), 0U);
    net.pair.b.take(*request);
    net.pair.b.take(*message);
    net.pair.carry();
    EXPECT_EQ(status_of(read), read_done);
    EXPECT_EQ(status_of(send), send_done);
    EXPECT_EQ(net.client.take(net.client.vi().send), &read);
}

TEST(Engine, Vipl_4_25_read_refused_after_later_messages_were_acknowledged_is_the_guilty_one) {
    Connected net(Reliability::reception);
    net.server.receive(0, 100);
    queue::Descriptor& read =
        net.client.rdma(rdma_read, 0, 100, net.server.address(500), net.server.handle());
    queue::Descriptor& send = net.client.send(200, 10);
    net.pair.b.take(*net.pair.a.emit());
    net.pair.b.take(*net.pair.a.emit());
    const auto ack = net.pair.b.emit();
    ASSERT_TRUE(ack);
    ASSERT_EQ(ack->parsed().kind, wire::FrameKind::ack);
    net.pair.a.take(*ack);
    net.server.forget_region();  // before the answer was cut
    net.pair.carry();
    EXPECT_EQ(status_of(read), read_done | queue::status::rdma_protection_error);
    EXPECT_EQ(status_of(send), send_done);  // it was placed, and known to be
    EXPECT_EQ(net.pair.b.events(), (std::vector{ErrorCode::rdma_read_protection}));
}

TEST(Engine, Vipl_4_10_read_of_no_bytes_needs_no_region) {
    Connected net(Reliability::delivery);
    queue::Descriptor& read = net.client.rdma(rdma_read, 0, 0, net.server.address(0), 0x12345);
    net.pair.carry();
    EXPECT_EQ(status_of(read), read_done);
    EXPECT_EQ(net.server.state(), ViState::connected);
}

// Memory ------------------------------------------------------------------------------------------

TEST(Engine, Vipl_4_8_region_of_posted_work_is_in_use) {
    Connected net(Reliability::delivery);
    EXPECT_FALSE(net.pair.b.engine.uses_region(net.server.handle()));
    net.server.receive(0, 100);
    EXPECT_TRUE(net.pair.b.engine.uses_region(net.server.handle()));
    net.client.send(0, 10);
    net.pair.carry();
    EXPECT_FALSE(net.pair.b.engine.uses_region(net.server.handle()));
}

TEST(Engine, Vipl_4_8_rdma_to_a_region_that_went_between_two_frames_is_refused) {
    Connected net(Reliability::reception);
    net.client.fill(0, 200, 1);
    queue::Descriptor& write =
        net.client.rdma(rdma_write, 0, 200, net.server.address(0), net.server.handle());
    net.pair.b.take(*net.pair.a.emit());
    net.server.forget_region();
    net.pair.carry();
    EXPECT_TRUE(net.server.holds(0, 64, 1));
    EXPECT_EQ(*net.server.at(64), std::byte{0});
    EXPECT_EQ(status_of(write), write_done | queue::status::rdma_protection_error);
}

TEST(Engine, Vipl_4_7_tags_must_be_equal_for_rdma_targets) {
    Pair pair;
    const memory::ProtectionTag tag = *pair.b.memory.create_tag();
    ViAttributes tagged = attributes(Reliability::reception);
    tagged.tag = tag;
    Program client(pair.a, attributes(Reliability::reception));
    Program server(pair.b, tagged);
    connect(pair, client, server);
    queue::Descriptor& write = client.rdma(rdma_write, 0, 10, server.address(0), server.handle());
    pair.carry();
    EXPECT_EQ(status_of(write), write_done | queue::status::rdma_protection_error);

    Program again_client(pair.a, attributes(Reliability::reception));
    Program again_server(pair.b, tagged);
    ASSERT_EQ(pair.b.memory.change(again_server.handle(), {tag, true, true}), Status::success);
    connect(pair, again_client, again_server);
    queue::Descriptor& good =
        again_client.rdma(rdma_write, 0, 10, again_server.address(0), again_server.handle());
    pair.carry();
    EXPECT_EQ(status_of(good), write_done);
}

/// A refusal of what was done long ago goes to the oldest outstanding descriptor as TRANSPORT, but
/// not if that has a fault of its own (VIPL 4.12, 4.25).
TEST(LateRefusal, Vipl_4_25_a_descriptor_keeps_its_own_fault) {
    Pair pair;
    Program client(pair.a, attributes(Reliability::delivery));
    Program server(pair.b, attributes(Reliability::delivery));
    connect(pair, client, server);
    client.send(0, 10);  // no receive is posted
    const auto message = pair.a.emit();
    ASSERT_TRUE(message);
    ASSERT_EQ(pair.b.take(*message), FrameVerdict::taken);
    const auto refusal = pair.b.emit();
    ASSERT_TRUE(refusal);
    const queue::Descriptor& faulty = client.post_send(client.make(0, {client.segment(0, 10)}, 11));
    ASSERT_EQ(pair.a.take(*refusal), FrameVerdict::taken);
    EXPECT_EQ(status_of(faulty), send_done | queue::status::length_error);
    EXPECT_EQ(client.state(), ViState::error);
}

/// A reader does not wait for the end of whatever long message the other end sends.
TEST(Delivery, answers_to_reads_go_between_the_frames_of_a_long_message) {
    Pair pair;
    Program client(pair.a, attributes(Reliability::delivery));
    Program server(pair.b, attributes(Reliability::delivery));
    connect(pair, client, server);
    server.receive(0, 4000);
    client.fill(0, 4000, 1);
    client.send(0, 4000);
    const auto begin = pair.a.emit();
    ASSERT_TRUE(begin);
    pair.b.take(*begin);
    queue::Descriptor& read =
        server.rdma(queue::control::rdma_read, 5000, 128, client.address(0), client.handle());
    const auto request = pair.b.emit();
    ASSERT_TRUE(request);
    pair.a.take(*request);
    for (int frames = 0; frames < 4; ++frames) {
        const auto frame = pair.a.emit();
        ASSERT_TRUE(frame);
        EXPECT_EQ(pair.b.take(*frame), FrameVerdict::taken);
    }
    EXPECT_EQ(status_of(read), read_done);
    EXPECT_TRUE(server.holds(5000, 128, 1));
    pair.carry();
    EXPECT_TRUE(server.holds(0, 4000, 1));
}

}  // namespace
}  // namespace via::engine::test::delivery_test
