// Frames emitted as a run against the same, one by one.
#include "engine/pair_test.hpp"

namespace via::engine::test::run_test {

namespace {

constexpr std::uint32_t frame_max = 64;

struct Scene {
    Scene()
        : pair(frame_max, true),
          client(pair.a, attributes(Reliability::delivery)),
          server(pair.b, attributes(Reliability::delivery)) {
        connect(pair, client, server);
    }
    Pair pair;
    Program client;
    Program server;
};

/// Emits `count` frames of what the side's next frames want.
std::vector<Carried> emit_at_once(Side& side, const FrameShape& shape, std::uint32_t count) {
    constexpr std::uint32_t stride = 128;
    std::vector<std::byte> room(std::size_t{count} * stride);
    const std::byte* payload = nullptr;
    side.engine.outbound().emit(
        the_path, {room.data(), nullptr, false, side.frames, &payload, count, stride});
    side.engine.outbound().on_transmitted();
    std::vector<Carried> frames;
    for (std::uint32_t n = 0; n < count; ++n, payload += shape.payload_length) {
        const std::byte* header = room.data() + std::size_t{n} * stride;
        frames.push_back({{header, header + shape.header_length},
                          {payload, payload + shape.payload_length},
                          true,
                          side.frames++});
    }
    return frames;
}

class Run : public testing::Test {
protected:
    /// What the next frames want, of a message of `length` bytes.
    FrameShape begin(std::uint32_t length) {
        scene.client.fill(0, length, 5);
        receive = &scene.server.receive(0, length);
        send = &scene.client.send(0, length);
        FrameShape shape;
        EXPECT_TRUE(scene.pair.a.engine.outbound().next_frame(the_path, shape));
        return shape;
    }
    std::vector<Carried> emit(const FrameShape& shape, std::uint32_t count) {
        return emit_at_once(scene.pair.a, shape, count);
    }

    Scene scene;
    queue::Descriptor* send = nullptr;
    queue::Descriptor* receive = nullptr;
};

TEST_F(Run, its_frames_are_those_of_the_general_way) {
    Scene general;
    constexpr std::uint32_t length = 5 * frame_max + 10;
    general.client.fill(0, length, 5);
    general.server.receive(0, length);
    general.client.send(0, length);
    const FrameShape shape = begin(length);
    ASSERT_EQ(shape.count, 5U);
    for (const std::uint32_t count : {3U, 2U}) {
        FrameShape next = shape;
        if (count == 2) {
            ASSERT_TRUE(scene.pair.a.engine.outbound().next_frame(the_path, next));
            ASSERT_EQ(next.count, 2U);
        }
        for (const Carried& frame : emit(next, count)) {
            const auto expected = general.pair.a.emit();
            ASSERT_TRUE(expected);
            EXPECT_EQ(frame.header, expected->header);
            EXPECT_EQ(frame.payload, expected->payload);
            EXPECT_EQ(frame.number, expected->number);
            EXPECT_EQ(scene.pair.b.take(frame), FrameVerdict::taken);
            scene.pair.a.engine.outbound().on_reaped(the_path, frame.number, false);
        }
    }
    scene.pair.carry();
    EXPECT_EQ(status_of(*send), send_done);
    EXPECT_EQ(status_of(*receive), receive_done);
    EXPECT_TRUE(scene.server.holds(0, length, 5));
}

TEST_F(Run, a_lost_frame_of_it_is_emitted_again) {
    const FrameShape shape = begin(4 * frame_max);
    ASSERT_EQ(shape.count, 3U) << "the last one is another";
    const std::vector<Carried> frames = emit(shape, 3);
    scene.pair.a.engine.outbound().on_reaped(the_path, frames[1].number, true);
    FrameShape again;
    ASSERT_TRUE(scene.pair.a.engine.outbound().next_frame(the_path, again));
    EXPECT_TRUE(again.again);
    EXPECT_EQ(again.count, 1U);
    EXPECT_EQ(again.number, frames[1].number);
    Carried frame{std::vector<std::byte>(again.header_length),
                  std::vector<std::byte>(again.payload_length), true, again.number};
    scene.pair.a.engine.outbound().emit(
        the_path, {frame.header.data(), frame.payload.data(), false, frame.number});
    EXPECT_EQ(frame.header, frames[1].header);
    EXPECT_EQ(frame.payload, frames[1].payload);
}

TEST_F(Run, is_none_across_segments_nor_beside_another_vi) {
    Program other(scene.pair.a, attributes(Reliability::delivery));
    Program others_peer(scene.pair.b, attributes(Reliability::delivery));
    connect(scene.pair, other, others_peer);
    scene.client.post_send(
        scene.client.make(0, {scene.client.segment(0, 100), scene.client.segment(200, 300)}, 400));
    FrameShape shape;
    ASSERT_TRUE(scene.pair.a.engine.outbound().next_frame(the_path, shape));
    EXPECT_EQ(shape.count, 1U) << "36 bytes behind the first frame the segment ends";
    other.send(0, 10 * frame_max);
    ASSERT_TRUE(scene.pair.a.engine.outbound().next_frame(the_path, shape));
    EXPECT_EQ(shape.count, 1U);
}

TEST_F(Run, a_piece_that_does_not_fit_breaks_the_connection) {
    const FrameShape shape = begin(4 * frame_max);
    std::vector<Carried> frames = emit(shape, 3);
    EXPECT_EQ(scene.pair.b.take(frames[0]), FrameVerdict::taken);
    EXPECT_EQ(scene.pair.b.take(frames[2]), FrameVerdict::refused) << "one is missing";
}

/// No device makes such, whatever a peer sends; the engine does not rely on it.
TEST_F(Run, only_pieces_of_a_message_with_their_headers_come_at_once) {
    std::byte bytes[64] = {};
    wire::Header header;
    header.kind = wire::FrameKind::send;
    header.flags = wire::flag::extent;
    header.message_length = 4 * frame_max;
    wire::emit(header, bytes);
    const std::byte payload[frame_max] = {};
    const std::byte* const payloads[] = {payload, payload};
    const auto take = [&](std::size_t header_length, const std::byte* first) {
        return scene.pair.b.engine.on_frame(
            the_path, {bytes, header_length, first, sizeof payload, 2, payloads});
    };
    const char* const why = "several frames at once that are no pieces of a message";
    EXPECT_EQ(take(sizeof bytes, payload), FrameVerdict::hostile);
    EXPECT_STREQ(scene.pair.b.engine.last_refusal(), why);
    EXPECT_EQ(take(wire::header_length_extent, nullptr), FrameVerdict::hostile);
    EXPECT_STREQ(scene.pair.b.engine.last_refusal(), why);
    EXPECT_EQ(take(wire::header_length_base, payload), FrameVerdict::hostile);
    EXPECT_STREQ(scene.pair.b.engine.last_refusal(), why);
    EXPECT_EQ(take(wire::header_length_extent, payload), FrameVerdict::stale);
}

/// What runs are made of: a send, an RDMA write, the answer to an RDMA read.
class EveryRun : public testing::TestWithParam<std::uint16_t> {
protected:
    static constexpr std::uint32_t length = 6 * frame_max + 10;
    static constexpr std::uint32_t target = 1024;
    static constexpr bool is_read(std::uint16_t control) {
        return control == queue::control::rdma_read;
    }
    /// The side that emits the message's bytes, or takes them.
    static Side& from(Scene& scene) { return is_read(GetParam()) ? scene.pair.b : scene.pair.a; }
    static Side& to(Scene& scene) { return is_read(GetParam()) ? scene.pair.a : scene.pair.b; }

    static queue::Descriptor& post(Scene& scene) {
        scene.client.fill(0, length, 5);
        if (GetParam() == 0) {
            scene.server.receive(target, length);
            return scene.client.send(0, length);
        }
        if (!is_read(GetParam()))
            return scene.client.rdma(GetParam(), 0, length, scene.server.address(target),
                                     scene.server.handle());
        scene.server.fill(target, length, 5);
        queue::Descriptor& read = scene.client.rdma(
            GetParam(), 0, length, scene.server.address(target), scene.server.handle());
        const auto request = scene.pair.a.emit();
        EXPECT_EQ(scene.pair.b.take(*request), FrameVerdict::taken);
        scene.pair.a.engine.outbound().on_reaped(the_path, request->number, false);
        return read;
    }
    /// The next frames that the message's side emits, as many as it would at once.
    static std::vector<Carried> emit(Scene& scene, std::uint32_t most = ~0U) {
        Side& side = from(scene);
        FrameShape shape;
        if (!side.engine.outbound().next_frame(the_path, shape)) return {};
        return emit_at_once(side, shape, std::min(shape.count, most));
    }
    /// Takes frames as a device hands them up that knows them for a run.
    static FrameVerdict take(Scene& scene, std::span<const Carried> frames) {
        std::vector<const std::byte*> payloads;
        for (const Carried& frame : frames) payloads.push_back(frame.payload.data());
        const Carried& first = frames.front();
        return to(scene).engine.on_frame(
            the_path,
            {first.header.data(), first.header.size(), payloads.front(), first.payload.size(),
             static_cast<std::uint32_t>(frames.size()), payloads.data()});
    }
    /// But for the target's address, which is another one in each scene.
    static std::vector<std::uint32_t> fields(const Carried& frame) {
        const wire::Header header = frame.parsed();
        return {static_cast<std::uint32_t>(header.kind),
                header.flags,
                header.vi,
                header.message,
                header.message_length,
                header.offset,
                header.remote_handle,
                header.read_number};
    }
    static bool arrived(Scene& scene) {
        return is_read(GetParam()) ? scene.client.holds(0, length, 5)
                                   : scene.server.holds(target, length, 5);
    }

    Scene scene;
};

TEST_P(EveryRun, its_frames_are_those_of_the_general_way_and_are_taken_at_once) {
    Scene general;
    post(general);
    const queue::Descriptor& descriptor = post(scene);
    std::uint32_t at_once = 0;
    std::size_t most = 0;
    for (;;) {
        const std::vector<Carried> frames = emit(scene);
        if (frames.empty()) break;
        most = std::max(most, frames.size());
        for (const Carried& frame : frames) {
            const auto expected = from(general).emit();
            ASSERT_TRUE(expected);
            EXPECT_EQ(fields(frame), fields(*expected));
            EXPECT_EQ(frame.payload, expected->payload);
            EXPECT_EQ(to(general).take(*expected), FrameVerdict::taken);
        }
        std::span<const Carried> rest(frames);
        if (at_once++ == 0 && rest.size() > 1) {  // whose flags are others
            EXPECT_EQ(take(scene, rest.first(1)), FrameVerdict::taken);
            rest = rest.subspan(1);
        }
        EXPECT_EQ(take(scene, rest), FrameVerdict::taken) << to(scene).engine.last_refusal();
        for (const Carried& frame : frames)
            from(scene).engine.outbound().on_reaped(the_path, frame.number, false);
    }
    EXPECT_GE(most, 5U);
    EXPECT_FALSE(from(general).emit());
    scene.pair.carry();
    EXPECT_TRUE(arrived(scene));
    EXPECT_TRUE(arrived(general));
    EXPECT_EQ(descriptor.control.status & queue::status::error_mask, 0U);
    EXPECT_NE(descriptor.control.status & queue::status::done, 0U);
    EXPECT_EQ(to(scene).counters.get(Counter::bytes_received),
              to(general).counters.get(Counter::bytes_received));
}

TEST_P(EveryRun, one_that_does_not_fit_breaks_the_connection) {
    post(scene);
    std::vector<Carried> frames = emit(scene, 1);
    EXPECT_EQ(take(scene, frames), FrameVerdict::taken);
    frames = emit(scene);
    ASSERT_GE(frames.size(), 3U);
    EXPECT_EQ(take(scene, std::span(frames).subspan(1)), FrameVerdict::refused);
}

TEST_P(EveryRun, a_lost_frame_of_it_is_emitted_again) {
    post(scene);
    std::vector<Carried> frames;
    while (frames.size() < 4)
        for (Carried& frame : emit(scene)) frames.push_back(std::move(frame));
    from(scene).engine.outbound().on_reaped(the_path, frames[2].number, true);
    Carried again{std::vector<std::byte>(frames[2].header.size()),
                  std::vector<std::byte>(frames[2].payload.size()), true, frames[2].number};
    FrameShape shape;
    ASSERT_TRUE(from(scene).engine.outbound().next_frame(the_path, shape));
    ASSERT_TRUE(shape.again);
    from(scene).engine.outbound().emit(
        the_path, {again.header.data(), again.payload.data(), false, again.number});
    EXPECT_EQ(again.header, frames[2].header);
    EXPECT_EQ(again.payload, frames[2].payload);
}

std::string kind_of(const testing::TestParamInfo<std::uint16_t>& tested) {
    if (tested.param == 0) return "send";
    return tested.param == queue::control::rdma_write ? "rdma_write" : "rdma_read";
}
INSTANTIATE_TEST_SUITE_P(Engine, EveryRun,
                         testing::Values(std::uint16_t{0}, queue::control::rdma_write,
                                         queue::control::rdma_read),
                         kind_of);

TEST_F(Run, Vipl_4_8_of_a_write_to_a_region_that_went_is_refused) {
    constexpr std::uint32_t length = 6 * frame_max;
    scene.client.rdma(queue::control::rdma_write, 0, length, scene.server.address(0),
                      scene.server.handle());
    FrameShape shape;
    ASSERT_TRUE(scene.pair.a.engine.outbound().next_frame(the_path, shape));
    const std::vector<Carried> frames = emit(shape, shape.count);
    EXPECT_EQ(scene.pair.b.take(frames[0]), FrameVerdict::taken);
    scene.server.forget_region();
    std::vector<const std::byte*> payloads;
    for (const Carried& frame : frames) payloads.push_back(frame.payload.data());
    scene.pair.b.engine.on_frame(
        the_path, {frames[1].header.data(), frames[1].header.size(), payloads[1], frame_max,
                   static_cast<std::uint32_t>(frames.size() - 1), payloads.data() + 1});
    EXPECT_EQ(scene.pair.b.counters.get(Counter::rdma_refused), 1U);
    EXPECT_EQ(scene.server.state(), ViState::error);
}

TEST_F(Run, Vipl_4_8_of_an_answer_whose_region_went_is_none) {
    constexpr std::uint32_t length = 6 * frame_max;
    scene.client.rdma(queue::control::rdma_read, 0, length, scene.server.address(0),
                      scene.server.handle());
    const auto request = scene.pair.a.emit();
    ASSERT_EQ(scene.pair.b.take(*request), FrameVerdict::taken);
    FrameShape shape;
    ASSERT_TRUE(scene.pair.b.engine.outbound().next_frame(the_path, shape));
    EXPECT_EQ(shape.count, 5U);
    scene.server.forget_region();
    ASSERT_TRUE(scene.pair.b.engine.outbound().next_frame(the_path, shape));
    EXPECT_EQ(shape.count, 1U);
    const auto refusal = scene.pair.b.emit();
    ASSERT_TRUE(refusal);
    EXPECT_EQ(refusal->parsed().kind, wire::FrameKind::nak);
}

}  // namespace

}  // namespace via::engine::test::run_test
