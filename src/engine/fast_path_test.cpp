// The fast path of the common message against the general one: the same frames, the same outcomes.
#include <cstring>
#include <functional>

#include "engine/fast_path.hpp"
#include "engine/pair_test.hpp"

namespace via::engine::test::fast_path_test {

namespace {

constexpr std::uint32_t frame_max = 64;

struct Setting {
    Reliability reliability;
    bool lossy;
};

struct Scene {
    explicit Scene(const Setting& setting)
        : pair(frame_max, setting.lossy),
          client(pair.a, attributes(setting.reliability)),
          server(pair.b, attributes(setting.reliability)) {
        connect(pair, client, server);
    }
    /// The frame of the message just posted without a doorbell; none if it is no common one.
    std::optional<Carried> emit_common() {
        FrameShape shape;
        if (!pair.a.engine.next_is_common(client.vi(), shape)) return std::nullopt;
        Carried frame{std::vector<std::byte>(shape.header_length),
                      std::vector<std::byte>(shape.payload_length), false, 0};
        frame.numbered = pair.a.retransmits && shape.must_arrive;
        frame.number = frame.numbered ? pair.a.frames++ : 0;
        pair.a.engine.emit_common(client.vi(),
                                  {frame.header.data(), frame.payload.data(), false, frame.number});
        pair.a.engine.common_transmitted(client.vi());
        return frame;
    }
    queue::Descriptor& post(std::uint32_t length, std::uint16_t control = 0) {
        return client.post_send(client.make(control, {client.segment(0, length)}, length), false);
    }
    /// Neither has a segment.
    queue::Descriptor& post_empty() { return client.post_send(client.make(0, {}, 0), false); }
    queue::Descriptor& receive_empty() { return server.post_receive(server.make(0, {}, 0)); }

    Pair pair;
    Program client;
    Program server;
};

class FastPath : public testing::TestWithParam<Setting> {};

TEST_P(FastPath, its_frames_are_those_of_the_general_way) {
    Scene fast(GetParam());
    Scene general(GetParam());
    for (const std::uint32_t length : {0U, 1U, 8U, 63U, frame_max}) {
        std::optional<Carried> frames[2];
        queue::Descriptor* sends[2];
        queue::Descriptor* receives[2];
        for (Scene* scene : {&fast, &general}) {
            const int n = scene == &general;
            scene->client.fill(0, length, length);
            receives[n] = &scene->server.receive(0, frame_max);
            sends[n] = &scene->post(length);
            if (n == 0) {
                frames[n] = scene->emit_common();
            } else {
                scene->pair.a.engine.on_doorbell(scene->client.vi());
                frames[n] = scene->pair.a.emit();
            }
            ASSERT_TRUE(frames[n]) << length;
        }
        EXPECT_EQ(frames[0]->header, frames[1]->header);
        EXPECT_EQ(frames[0]->payload, frames[1]->payload);
        EXPECT_EQ(status_of(*sends[0]), status_of(*sends[1])) << "before it arrived";
        for (Scene* scene : {&fast, &general}) {
            const int n = scene == &general;
            EXPECT_EQ(scene->pair.b.take(*frames[n]), FrameVerdict::taken);
            if (frames[n]->numbered)
                scene->pair.a.engine.outbound().on_reaped(the_path, frames[n]->number, false);
            scene->pair.carry();
            EXPECT_EQ(status_of(*sends[n]), send_done);
            EXPECT_EQ(status_of(*receives[n]), receive_done);
            EXPECT_EQ(receives[n]->control.length, length);
            EXPECT_TRUE(scene->server.holds(0, length, length));
            scene->client.take_all();
            scene->server.take_all();
        }
    }
}

TEST_P(FastPath, SeveralGoOneBehindTheOtherWhereFramesShareNoPackets) {
    Scene scene(GetParam());
    if (GetParam().lossy) {
        scene.post(8), scene.post(8);
        EXPECT_FALSE(scene.emit_common());
        return;
    }
    constexpr std::uint32_t count = 5;
    std::vector<queue::Descriptor*> receives, sends;
    for (std::uint32_t n = 0; n < count; ++n) {
        receives.push_back(&scene.server.receive(n * frame_max, frame_max));
        sends.push_back(&scene.post(n));
    }
    scene.client.fill(0, count, 7);
    for (std::uint32_t n = 0; n < count; ++n) {
        const auto frame = scene.emit_common();
        ASSERT_TRUE(frame) << n;
        EXPECT_EQ(scene.pair.b.take(*frame), FrameVerdict::taken);
        if (frame->numbered)
            scene.pair.a.engine.outbound().on_reaped(the_path, frame->number, false);
        scene.pair.carry();
        EXPECT_EQ(status_of(*sends[n]), send_done);
        EXPECT_EQ(receives[n]->control.length, n);
    }
    EXPECT_FALSE(scene.emit_common());
    EXPECT_TRUE(scene.server.holds((count - 1) * frame_max, count - 1, 7));
}

TEST_P(FastPath, OnesWithoutASegmentTakeTheFastPath) {
    Scene scene(GetParam());
    const bool quick = GetParam().reliability != Reliability::reception && !GetParam().lossy;
    const bool reliable = GetParam().reliability != Reliability::unreliable;
    for (int n = 0; n < 2; ++n) {
        queue::Descriptor& receive = scene.receive_empty();
        queue::Descriptor& send = scene.post_empty();
        EXPECT_EQ(scene.pair.a.engine.next_is_small(scene.client.vi()), quick);
        const auto frame = scene.emit_common();
        ASSERT_TRUE(frame);
        const std::uint32_t length = scene.pair.b.engine.take_common(
            the_path, frame->header.data(), frame->header.size(), nullptr, 0);
        EXPECT_EQ(length, reliable ? 0 : Engine::not_common);
        if (!reliable) {
            EXPECT_EQ(scene.pair.b.take(*frame), FrameVerdict::taken);
        }
        if (frame->numbered)
            scene.pair.a.engine.outbound().on_reaped(the_path, frame->number, false);
        scene.pair.carry();
        EXPECT_EQ(status_of(send), send_done);
        EXPECT_EQ(status_of(receive), receive_done);
        EXPECT_EQ(receive.control.length, 0U);
        scene.client.take_all();
        scene.server.take_all();
    }
}

TEST_P(FastPath, NoByteFitsWhereThereIsNoSegment) {
    Scene scene(GetParam());
    queue::Descriptor& receive = scene.receive_empty();
    scene.post(1);
    const auto frame = scene.emit_common();
    ASSERT_TRUE(frame);
    EXPECT_EQ(scene.pair.b.engine.take_common(the_path, frame->header.data(), frame->header.size(),
                                              frame->payload.data(), frame->payload.size()),
              Engine::not_common);
    EXPECT_EQ(scene.pair.b.take(*frame), FrameVerdict::taken);
    EXPECT_NE(status_of(receive) & queue::status::error_mask, 0U);
}

TEST(Quick, WhatADeviceTakesInOneCallIsTheSameFrameWithTheSameOutcome) {
    Scene scene({Reliability::delivery, false});
    for (const std::uint32_t length : {0U, 1U, 8U, frame_max}) {
        scene.client.fill(0, length, length);
        queue::Descriptor& receive = scene.server.receive(0, frame_max);
        queue::Descriptor& send = scene.post(length);
        Vi& vi = scene.client.vi();
        Carried frame{std::vector<std::byte>(wire::header_length_base),
                      std::vector<std::byte>(length), false, 0};
        const std::uint64_t words[2] = {wire::whole_send_low(vi.remote_number),
                                        wire::whole_send_high(vi.next_message)};
        ASSERT_TRUE(scene.pair.a.engine.next_is_small(vi)) << length;
        const queue::WorkEntry& entry = scene.pair.a.engine.small_entry();
        EXPECT_EQ(entry.length, length);
        std::memcpy(frame.header.data(), words, sizeof words);
        if (length != 0)
            std::memcpy(frame.payload.data(),
                        reinterpret_cast<const void*>(entry.segments[0].address), length);
        scene.pair.a.engine.small_sent(vi);
        EXPECT_EQ(status_of(send), send_done);
        EXPECT_EQ(scene.pair.b.take(frame), FrameVerdict::taken);
        scene.pair.carry();
        EXPECT_EQ(status_of(receive), receive_done);
        EXPECT_EQ(receive.control.length, length);
        EXPECT_TRUE(scene.server.holds(0, length, length));
        scene.client.take_all();
        scene.server.take_all();
    }
}

TEST(Quick, OthersGoAnotherWay) {
    Scene scene({Reliability::delivery, false});
    scene.post(frame_max + 1);
    EXPECT_FALSE(scene.pair.a.engine.next_is_small(scene.client.vi()))
        << "it is longer than a frame";
    for (const Setting& setting :
         {Setting{Reliability::reception, false}, Setting{Reliability::delivery, true}}) {
        Scene acknowledged(setting);
        acknowledged.post(8);
        EXPECT_FALSE(acknowledged.pair.a.engine.next_is_small(acknowledged.client.vi()));
    }
    Scene parted({Reliability::delivery, false});
    parted.pair.a.engine.disconnect(parted.client.vi());
    EXPECT_FALSE(parted.pair.a.engine.next_is_small(parted.client.vi()));
}

class FastPathAndLoss : public FastPath {};

TEST_P(FastPathAndLoss, a_frame_that_was_lost_is_emitted_again) {
    Scene scene(GetParam());
    scene.client.fill(0, 8, 1);
    queue::Descriptor& receive = scene.server.receive(0, 8);
    queue::Descriptor& send = scene.post(8);
    const auto lost = scene.emit_common();
    ASSERT_TRUE(lost);
    scene.pair.a.engine.outbound().on_reaped(the_path, lost->number, true);
    EXPECT_EQ(status_of(send), 0U);
    scene.pair.carry();
    EXPECT_EQ(status_of(send), send_done);
    EXPECT_EQ(status_of(receive), receive_done);
    EXPECT_TRUE(scene.server.holds(0, 8, 1));
}

TEST_P(FastPath, what_is_not_common_goes_the_general_way) {
    const bool reliable = GetParam().reliability != Reliability::unreliable;
    const struct {
        const char* what;
        std::function<void(Scene&)> make;
    } cases[] = {
        {"nothing is posted", [](Scene&) {}},
        {"immediate data", [](Scene& scene) { scene.post(8, queue::control::immediate); }},
        {"a fence", [](Scene& scene) { scene.post(8, queue::control::queue_fence); }},
        {"longer than a frame", [](Scene& scene) { scene.post(frame_max + 1); }},
        {"two segments",
         [](Scene& scene) {
             scene.client.post_send(
                 scene.client.make(0, {scene.client.segment(0, 4), scene.client.segment(8, 4)}, 8),
                 false);
         }},
        {"a fault", [](Scene& scene) { scene.post(8, 0x40); }},
        {"RDMA",
         [](Scene& scene) {
             scene.client.post_send(
                 scene.client.make(queue::control::rdma_write,
                                   {{scene.server.address(0), scene.server.handle(), 0},
                                    scene.client.segment(0, 8)},
                                   8),
                 false);
         }},
        {"another VI wants to send",
         [](Scene& scene) {
             scene.post(8);
             scene.pair.a.engine.on_doorbell(scene.client.vi());
         }},
        {"a receive with a fault",
         [](Scene& scene) {
             scene.post(8);
             scene.client.post_receive(scene.client.make(0x40, {scene.client.segment(64, 8)}, 8),
                                       false);
         }},
        {"the connection is over",
         [](Scene& scene) {
             scene.pair.a.engine.on_path_down(the_path);
             scene.post(8);
         }},
    };
    for (const auto& one : cases) {
        Scene scene(GetParam());
        scene.server.receive(0, 1024);
        scene.server.receive(1024, 1024);
        one.make(scene);
        EXPECT_FALSE(scene.emit_common()) << one.what;
        if (scene.client.state() != ViState::connected) continue;
        scene.pair.a.engine.on_doorbell(scene.client.vi());
        scene.pair.carry(true);
        EXPECT_FALSE(scene.client.vi().send.work.has_outstanding() && reliable) << one.what;
    }
}

/// What a frame did at its receiver.
struct Outcome {
    FrameVerdict verdict;
    ViState state;
    std::uint32_t expected;
    std::vector<std::uint32_t> statuses;
    std::vector<std::uint32_t> lengths;
    std::vector<ErrorCode> events;
    std::vector<std::byte> bytes;
    std::uint64_t received;
    bool ack_due;
    bool operator==(const Outcome&) const = default;
};

/// A whole message of `length` bytes, told in the short form or in the one that names its extent,
/// which the general way takes.
Outcome take(const Setting& setting, std::uint32_t length, bool extent,
             const std::function<void(Scene&, wire::Header&)>& make) {
    Scene scene(setting);
    wire::Header header;
    header.kind = wire::FrameKind::send;
    header.flags = wire::flag::first | wire::flag::last;
    header.vi = scene.server.vi().number();
    header.message = scene.server.vi().expected_message;
    make(scene, header);
    if (extent) header.flags |= wire::flag::extent;
    header.message_length = length;
    std::vector<std::byte> payload(length);
    for (std::size_t n = 0; n < length; ++n) payload[n] = static_cast<std::byte>(n * 3 + 1);
    Outcome outcome{};
    outcome.verdict = scene.pair.b.take(header, payload);
    outcome.state = scene.server.state();
    outcome.expected = scene.server.vi().expected_message;
    outcome.ack_due = scene.server.vi().ack_due;
    while (const queue::Descriptor* done = scene.server.take(scene.server.vi().receive)) {
        outcome.statuses.push_back(done->control.status);
        outcome.lengths.push_back(done->control.length);
    }
    outcome.events = scene.pair.b.events();
    outcome.bytes.assign(scene.server.at(0), scene.server.at(Program::memory_length));
    outcome.received = scene.pair.b.counters.get(Counter::receives);
    return outcome;
}

TEST_P(FastPath, a_receiver_does_the_same_either_way) {
    const struct {
        const char* what;
        std::function<void(Scene&, wire::Header&)> make;
    } cases[] = {
        {"a receive", [](Scene& scene, wire::Header&) { scene.server.receive(0, 64); }},
        {"more receives",
         [](Scene& scene, wire::Header&) {
             scene.server.receive(64, 64);
             scene.server.receive(0, 64);
         }},
        {"no receive", [](Scene&, wire::Header&) {}},
        {"a receive that is too short",
         [](Scene& scene, wire::Header&) {
             scene.server.receive(0, 7);
             scene.server.receive(64, 64);
         }},
        {"a receive of two segments",
         [](Scene& scene, wire::Header&) {
             scene.server.post_receive(scene.server.make(
                 0, {scene.server.segment(0, 5), scene.server.segment(64, 59)}, 64));
         }},
        {"a receive with a fault, not heard of yet",
         [](Scene& scene, wire::Header&) {
             scene.server.post_receive(scene.server.make(0x40, {scene.server.segment(0, 64)}, 64),
                                       false);
             scene.server.receive(64, 64);
         }},
        {"a message out of sequence",
         [](Scene& scene, wire::Header& header) {
             scene.server.receive(0, 64);
             header.message += 2;
         }},
        {"an old message",
         [](Scene& scene, wire::Header& header) {
             scene.server.receive(0, 64);
             --header.message;
         }},
        {"another VI",
         [](Scene& scene, wire::Header& header) {
             scene.server.receive(0, 64);
             ++header.vi;
         }},
        {"an earlier connection",
         [](Scene& scene, wire::Header& header) {
             scene.server.receive(0, 64);
             header.vi -= 1U << 16;
         }},
        {"within another message",
         [](Scene& scene, wire::Header& header) {
             scene.server.receive(0, 64);
             wire::Header first = header;
             first.flags = wire::flag::first | wire::flag::extent;
             first.message_length = 64;
             scene.pair.b.take(first, std::vector<std::byte>(8));
         }},
    };
    for (const auto& one : cases)
        for (const std::uint32_t length : {0U, 1U, 8U, 60U})
            EXPECT_EQ(take(GetParam(), length, false, one.make),
                      take(GetParam(), length, true, one.make))
                << one.what << ", " << length << " bytes";
}

TEST_P(FastPath, a_longer_message_than_agreed_ends_the_connection) {
    const auto make = [](Scene& scene, wire::Header&) { scene.server.receive(0, 8000); };
    const Outcome outcome = take(GetParam(), 4097, false, make);
    EXPECT_EQ(outcome, take(GetParam(), 4097, true, make));
    EXPECT_EQ(outcome.verdict, FrameVerdict::refused);
}

constexpr Setting settings[] = {
    {Reliability::unreliable, false}, {Reliability::delivery, false},
    {Reliability::reception, false},  {Reliability::unreliable, true},
    {Reliability::delivery, true},    {Reliability::reception, true},
};
std::string setting_name(const testing::TestParamInfo<Setting>& setting) {
    const char* const names[] = {"unreliable", "delivery", "reception"};
    const auto level = static_cast<unsigned>(setting.param.reliability) / 2;
    return std::string(names[level]) + (setting.param.lossy ? "_lossy" : "");
}
INSTANTIATE_TEST_SUITE_P(Engine, FastPath, testing::ValuesIn(settings), setting_name);
INSTANTIATE_TEST_SUITE_P(Engine, FastPathAndLoss, testing::Values(settings[4], settings[5]),
                         setting_name);

TEST(PlainWithCredits, the_last_credit_is_not_overdrawn) {
    Pair pair(frame_max);
    Program client(pair.a, attributes(Reliability::delivery));
    Program server(pair.b, attributes(Reliability::delivery));
    client.vi().wants_credits = server.vi().wants_credits = true;
    server.receive(0, 64);
    connect(pair, client, server);
    ASSERT_TRUE(client.vi().credits_agreed.load());
    FrameShape shape;
    client.post_send(client.make(0, {client.segment(0, 8)}, 8), false);
    EXPECT_TRUE(pair.a.engine.next_is_common(client.vi(), shape));
    pair.a.engine.on_doorbell(client.vi());
    pair.carry();
    client.post_send(client.make(0, {client.segment(0, 8)}, 8), false);
    EXPECT_FALSE(pair.a.engine.next_is_common(client.vi(), shape)) << "no receive is posted";
}

}  // namespace

}  // namespace via::engine::test::fast_path_test
