// Frames emitted as a run against the same, one by one.
#include "engine/pair_test.hpp"

namespace via::engine::test {

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

class Run : public testing::Test {
protected:
    /// What the next frames want, of a message of `length` bytes.
    FrameShape begin(std::uint32_t length) {
        scene.client.fill(0, length, 5);
        receive = &scene.server.receive(0, length);
        send = &scene.client.send(0, length);
        FrameShape shape;
        EXPECT_TRUE(scene.pair.a.engine.next_frame(the_path, shape));
        return shape;
    }
    /// Emits `count` frames at once.
    std::vector<Carried> emit(const FrameShape& shape, std::uint32_t count) {
        constexpr std::uint32_t stride = 128;
        std::vector<std::byte> room(std::size_t{count} * stride);
        const std::byte* payload = nullptr;
        Side& a = scene.pair.a;
        a.engine.emit(the_path, {room.data(), nullptr, false, a.frames, &payload, count, stride});
        a.engine.on_transmitted();
        std::vector<Carried> frames;
        for (std::uint32_t n = 0; n < count; ++n, payload += shape.payload_length) {
            const std::byte* header = room.data() + std::size_t{n} * stride;
            frames.push_back({{header, header + shape.header_length},
                              {payload, payload + shape.payload_length},
                              true,
                              a.frames++});
        }
        return frames;
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
            ASSERT_TRUE(scene.pair.a.engine.next_frame(the_path, next));
            ASSERT_EQ(next.count, 2U);
        }
        for (const Carried& frame : emit(next, count)) {
            const auto expected = general.pair.a.emit();
            ASSERT_TRUE(expected);
            EXPECT_EQ(frame.header, expected->header);
            EXPECT_EQ(frame.payload, expected->payload);
            EXPECT_EQ(frame.number, expected->number);
            EXPECT_EQ(scene.pair.b.take(frame), FrameVerdict::taken);
            scene.pair.a.engine.on_reaped(the_path, frame.number, false);
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
    scene.pair.a.engine.on_reaped(the_path, frames[1].number, true);
    FrameShape again;
    ASSERT_TRUE(scene.pair.a.engine.next_frame(the_path, again));
    EXPECT_TRUE(again.again);
    EXPECT_EQ(again.count, 1U);
    EXPECT_EQ(again.number, frames[1].number);
    Carried frame{std::vector<std::byte>(again.header_length),
                  std::vector<std::byte>(again.payload_length), true, again.number};
    scene.pair.a.engine.emit(the_path,
                             {frame.header.data(), frame.payload.data(), false, frame.number});
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
    ASSERT_TRUE(scene.pair.a.engine.next_frame(the_path, shape));
    EXPECT_EQ(shape.count, 1U) << "36 bytes behind the first frame the segment ends";
    other.send(0, 10 * frame_max);
    ASSERT_TRUE(scene.pair.a.engine.next_frame(the_path, shape));
    EXPECT_EQ(shape.count, 1U);
}

TEST_F(Run, a_piece_that_does_not_fit_breaks_the_connection) {
    const FrameShape shape = begin(4 * frame_max);
    std::vector<Carried> frames = emit(shape, 3);
    EXPECT_EQ(scene.pair.b.take(frames[0]), FrameVerdict::taken);
    EXPECT_EQ(scene.pair.b.take(frames[2]), FrameVerdict::refused) << "one is missing";
}

}  // namespace

}  // namespace via::engine::test
