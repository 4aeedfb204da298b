// Messages that the receiver pulls from the sender's memory.
#include "engine/pair_test.hpp"

namespace via::engine::test::pull_test {
namespace {

constexpr std::size_t large = 100'000;

/// Memory and descriptors large enough for it: Program's are not.
struct Large {
    explicit Large(Side& of) : side(of), bytes(2 * large) {
        handle = *side.memory.add(address(0), bytes.size(), {memory::no_tag, true, true});
    }
    std::uint64_t address(std::size_t offset) {
        return reinterpret_cast<std::uint64_t>(bytes.data()) + offset;
    }
    queue::Segment segment(std::size_t offset, std::size_t length) {
        return {address(offset), handle, static_cast<std::uint32_t>(length)};
    }
    void fill(unsigned seed) {
        for (std::size_t n = 0; n < bytes.size(); ++n)
            bytes[n] = static_cast<std::byte>(seed * 31 + n * 7 + n / 251);
    }
    Side& side;
    std::vector<std::byte> bytes;
    memory::MemoryHandle handle = 0;
};

struct Pulling : testing::Test {
    static ViAttributes wide(Reliability level) {
        ViAttributes result = attributes(level);
        result.transfer_length_max = 1U << 20;
        return result;
    }
    Pair pair{8192};
    Program sender{pair.a, wide(Reliability::delivery)};
    Program receiver{pair.b, wide(Reliability::delivery)};
    Large from{pair.a};
    Large to{pair.b};

    void SetUp() override {
        connect(pair, sender, receiver);
        from.fill(3);
        to.fill(4);
    }
    queue::Descriptor& post_send(std::uint16_t control, std::initializer_list<queue::Segment> all,
                                 std::size_t length) {
        return sender.post_send(sender.make(control, all, static_cast<std::uint32_t>(length)));
    }
    queue::Descriptor& post_receive(std::initializer_list<queue::Segment> all) {
        return receiver.post_receive(receiver.make(0, all, 0), false);
    }
    /// The sender's next frame, which must be an offer to pull; its device says yes.
    std::optional<Carried> offer() {
        FrameShape shape;
        if (!pair.a.engine.outbound().next_frame(the_path, shape) || shape.pullable == 0)
            return std::nullopt;
        pair.a.engine.outbound().let_pull(the_path, shape);
        Carried frame{std::vector<std::byte>(shape.header_length),
                      std::vector<std::byte>(shape.payload_length)};
        pair.a.engine.outbound().emit(the_path, {frame.header.data(), frame.payload.data(), false});
        pair.a.engine.outbound().on_transmitted();
        return frame;
    }
    /// What the receiver's device does: a copy, piece after piece.
    static Status copy(const PullPiece& piece) {
        std::vector<std::byte> bytes;
        for (std::uint32_t n = 0; n < piece.remote_count; ++n) {
            const auto* at = reinterpret_cast<const std::byte*>(piece.remote[n].address);
            bytes.insert(bytes.end(), at, at + piece.remote[n].length);
        }
        std::size_t done = 0;
        for (std::uint32_t n = 0; n < piece.local_count; ++n) {
            EXPECT_LE(done + piece.local[n].length, bytes.size());
            std::memcpy(reinterpret_cast<void*>(piece.local[n].address), bytes.data() + done,
                        piece.local[n].length);
            done += piece.local[n].length;
        }
        EXPECT_EQ(done, bytes.size());
        return Status::success;
    }
    /// Pulls all there is, `bytes` at a time. How many pieces that took.
    int pull(std::uint64_t bytes = ~0ULL) {
        int pieces = 0;
        while (Vi* vi = pair.b.engine.inbound().next_pull()) {
            PullPiece piece;
            if (!pair.b.engine.inbound().next_piece(*vi, bytes, piece)) continue;
            pair.b.engine.inbound().piece_ended(*vi, piece, copy(piece));
            if (++pieces == 100'000) break;
        }
        return pieces;
    }
    bool same(std::size_t length, std::size_t at_from, std::size_t at_to) {
        return std::memcmp(from.bytes.data() + at_from, to.bytes.data() + at_to, length) == 0;
    }
};

TEST_F(Pulling, OneCopyAndWordOfIt) {
    const queue::Descriptor& receive = post_receive({to.segment(0, large)});
    const queue::Descriptor& send = post_send(0, {from.segment(0, large)}, large);
    const auto frame = offer();
    ASSERT_TRUE(frame);
    EXPECT_FALSE(pair.a.emit()) << "nothing follows";
    EXPECT_EQ(FrameVerdict::taken, pair.b.take(*frame));
    EXPECT_EQ(1, pull());
    EXPECT_EQ(receive_done, status_of(receive));
    EXPECT_EQ(large, receive.control.length);
    EXPECT_TRUE(same(large, 0, 0));
    EXPECT_EQ(0U, status_of(send)) << "before the sender knows";
    const auto word_of_it = pair.b.emit();
    ASSERT_TRUE(word_of_it);
    EXPECT_EQ(FrameVerdict::pulled, pair.a.take(*word_of_it));
    EXPECT_EQ(send_done, status_of(send));
    EXPECT_EQ(1U, pair.b.counters.get(Counter::messages_pulled));
}

TEST_F(Pulling, WhatWasTakenBeforeAFaultyReceiveIsDone) {
    const queue::Descriptor& receive = post_receive({to.segment(0, large)});
    const queue::Descriptor& faulty =
        receiver.post_receive(receiver.make(0x10, {to.segment(0, large)}, 0));
    const queue::Descriptor& send = post_send(0, {from.segment(0, large)}, large);
    const auto frame = offer();
    ASSERT_TRUE(frame);
    EXPECT_EQ(FrameVerdict::taken, pair.b.take(*frame));
    EXPECT_EQ(1, pull());
    pair.carry();
    EXPECT_EQ(receive_done, status_of(receive));
    EXPECT_EQ(receive_done | queue::status::format_error, status_of(faulty));
    EXPECT_EQ(send_done, status_of(send));
    EXPECT_EQ(ViState::error, sender.state());
    EXPECT_EQ(ViState::error, receiver.state());
}

TEST_F(Pulling, PiecesOfAllSizesAndPlacesOnBothSides) {
    for (const std::uint64_t bytes : {1ULL, 7ULL, 999ULL, 65536ULL, ~0ULL}) {
        const std::size_t length = bytes < 100 ? pull_length_min : large;
        to.fill(static_cast<unsigned>(bytes % 251 + 5));
        post_receive({to.segment(1, length / 3), to.segment(large + 3, length - length / 3 + 10)});
        post_send(0, {from.segment(11, 5), from.segment(100, length - 5)}, length);
        const auto frame = offer();
        ASSERT_TRUE(frame);
        EXPECT_EQ(FrameVerdict::taken, pair.b.take(*frame));
        pull(bytes);
        pair.carry();
        EXPECT_NE(nullptr, sender.take(sender.vi().send));
        EXPECT_NE(nullptr, receiver.take(receiver.vi().receive));
        EXPECT_TRUE(same(5, 11, 1));
        EXPECT_TRUE(same(length / 3 - 5, 100, 6));
        EXPECT_TRUE(same(length - length / 3, 100 + length / 3 - 5, large + 3));
    }
}

TEST_F(Pulling, RdmaWritePlacesItsLastWordLast) {
    post_receive({});
    const queue::Descriptor& write =
        post_send(queue::control::rdma_write | queue::control::immediate,
                  {{to.address(8), to.handle, 0}, from.segment(0, large)}, large);
    const auto frame = offer();
    ASSERT_TRUE(frame);
    EXPECT_EQ(FrameVerdict::taken, pair.b.take(*frame));
    Vi* vi = pair.b.engine.inbound().next_pull();
    ASSERT_NE(nullptr, vi);
    PullPiece piece;
    const std::byte before = to.bytes[8 + large - 1];
    ASSERT_TRUE(pair.b.engine.inbound().next_piece(*vi, ~0ULL, piece));
    EXPECT_EQ(Status::success, copy(piece));
    EXPECT_TRUE(same(large - 8, 0, 8));
    EXPECT_EQ(before, to.bytes[8 + large - 1]) << "not by the device";
    pair.b.engine.inbound().piece_ended(*vi, piece, Status::success);
    EXPECT_TRUE(same(large, 0, 8));
    pair.carry();
    EXPECT_EQ(write_done, status_of(write));
    EXPECT_EQ(nullptr, pair.b.engine.inbound().next_pull());
}

TEST_F(Pulling, WhatCannotBePulledComesInFrames) {
    const queue::Descriptor& receive = post_receive({to.segment(0, large)});
    const queue::Descriptor& send = post_send(0, {from.segment(0, large)}, large);
    const auto frame = offer();
    EXPECT_EQ(FrameVerdict::taken, pair.b.take(*frame));
    Vi* vi = pair.b.engine.inbound().next_pull();
    PullPiece piece;
    ASSERT_TRUE(pair.b.engine.inbound().next_piece(*vi, 5000, piece));
    pair.b.engine.inbound().piece_ended(*vi, piece, copy(piece));
    ASSERT_TRUE(pair.b.engine.inbound().next_piece(*vi, 5000, piece));
    pair.b.engine.inbound().piece_ended(*vi, piece, Status::error_not_supported);
    const auto word_of_it = pair.b.emit();
    ASSERT_TRUE(word_of_it);
    EXPECT_EQ(FrameVerdict::not_pulled, pair.a.take(*word_of_it));
    pair.carry();
    EXPECT_EQ(send_done, status_of(send));
    EXPECT_EQ(receive_done, status_of(receive));
    EXPECT_TRUE(same(large, 0, 0));
    EXPECT_EQ(0U, pair.b.counters.get(Counter::messages_pulled));
    // And on, from the next message.
    post_receive({to.segment(0, 100)});
    post_send(0, {from.segment(0, 100)}, 100);
    pair.carry();
    EXPECT_EQ(ViState::connected, receiver.state());
}

TEST_F(Pulling, AfterTheSenderLetGoTheBytesCountForNothing) {
    const queue::Descriptor& receive = post_receive({to.segment(0, large)});
    const queue::Descriptor& send = post_send(0, {from.segment(0, large)}, large);
    const auto frame = offer();
    EXPECT_EQ(FrameVerdict::taken, pair.b.take(*frame));
    pair.a.engine.disconnect(sender.vi());
    EXPECT_EQ(send_flushed, status_of(send));
    pull();
    EXPECT_EQ(0U, pair.b.counters.get(Counter::messages_pulled));
    pair.carry();
    EXPECT_EQ(receive_flushed, status_of(receive));
}

TEST_F(Pulling, TheEndOfTheReceiverEndsThePull) {
    post_receive({to.segment(0, large)});
    post_send(0, {from.segment(0, large)}, large);
    const auto frame = offer();
    EXPECT_EQ(FrameVerdict::taken, pair.b.take(*frame));
    pair.b.engine.disconnect(receiver.vi());
    EXPECT_EQ(nullptr, pair.b.engine.inbound().next_pull());
    pair.carry();
    EXPECT_EQ(ViState::error, sender.state());
}

TEST_F(Pulling, TargetThatGoesBetweenPiecesIsRefused) {
    const queue::Descriptor& write = post_send(
        queue::control::rdma_write, {{to.address(0), to.handle, 0}, from.segment(0, large)}, large);
    const auto frame = offer();
    EXPECT_EQ(FrameVerdict::taken, pair.b.take(*frame));
    Vi* vi = pair.b.engine.inbound().next_pull();
    PullPiece piece;
    ASSERT_TRUE(pair.b.engine.inbound().next_piece(*vi, 5000, piece));
    pair.b.engine.inbound().piece_ended(*vi, piece, copy(piece));
    pair.b.memory.suspend(to.handle);
    pair.b.memory.remove(to.handle);
    EXPECT_FALSE(pair.b.engine.inbound().next_piece(*vi, 5000, piece));
    EXPECT_EQ(nullptr, pair.b.engine.inbound().next_pull());
    EXPECT_EQ((std::vector{ErrorCode::rdma_write_protection}), pair.b.events());
    pair.carry();
    EXPECT_EQ(write_done | queue::status::rdma_protection_error, status_of(write));
}

TEST_F(Pulling, NoReceiveBreaksAsWithFrames) {
    const queue::Descriptor& send = post_send(0, {from.segment(0, large)}, large);
    const auto frame = offer();
    EXPECT_EQ(FrameVerdict::taken, pair.b.take(*frame));
    EXPECT_EQ(nullptr, pair.b.engine.inbound().next_pull());
    pair.carry();
    EXPECT_EQ(send_done | queue::status::remote_descriptor_error, status_of(send));
}

TEST_F(Pulling, OfAStreamOnlyTheLastOne) {
    for (int n = 0; n < 2; ++n) post_receive({to.segment(0, large)});
    post_send(0, {from.segment(0, large)}, large);
    const queue::Descriptor& last = post_send(0, {from.segment(0, large)}, large);
    std::optional<Carried> pulled;
    while (!(pulled = offer())) pair.b.take(*pair.a.emit());
    EXPECT_EQ(1U, pulled->parsed().message) << "the peer copies while the next one is cut";
    pair.b.take(*pulled);
    pull();
    pair.carry();
    EXPECT_EQ(send_done, status_of(last));
}

TEST_F(Pulling, OnlyLargeMessagesOfReliableVis) {
    post_receive({to.segment(0, large)});
    post_send(0, {from.segment(0, pull_length_min - 1)}, pull_length_min - 1);
    EXPECT_FALSE(offer());
    Program loose{pair.a, wide(Reliability::unreliable)};
    Program far{pair.b, wide(Reliability::unreliable)};
    pair.carry();
    connect(pair, loose, far);
    loose.post_send(loose.make(0, {from.segment(0, large)}, large));
    EXPECT_FALSE(offer());
}

// Lies --------------------------------------------------------------------------------------------

struct PullLies : Pulling {
    wire::Header header(std::uint8_t flags = wire::flag::first | wire::flag::extent |
                                             wire::flag::pull) {
        wire::Header result;
        result.kind = wire::FrameKind::send;
        result.flags = flags;
        result.vi = receiver.vi().number();
        result.message_length = large;
        return result;
    }
    static std::vector<std::byte> list(std::uint64_t proof,
                                       std::initializer_list<std::uint64_t> lengths) {
        std::vector<std::byte> bytes(sizeof(wire::PullHead));
        const wire::PullHead head{4096, proof};
        std::memcpy(bytes.data(), &head, sizeof head);
        for (const std::uint64_t length : lengths) {
            const wire::PullPlace place{4096, length};
            const auto* at = reinterpret_cast<const std::byte*>(&place);
            bytes.insert(bytes.end(), at, at + sizeof place);
        }
        return bytes;
    }
    void expect_broken(const wire::Header& lie, std::vector<std::byte> payload) {
        post_receive({to.segment(0, large)});
        EXPECT_EQ(FrameVerdict::refused, pair.b.take(lie, std::move(payload)));
        EXPECT_EQ(ViState::error, receiver.state());
        EXPECT_EQ(nullptr, pair.b.engine.inbound().next_pull());
    }
};

TEST_F(PullLies, NoPlace) { expect_broken(header(), list(1, {})); }
TEST_F(PullLies, HalfAPlace) {
    auto payload = list(1, {large});
    payload.pop_back();
    expect_broken(header(), payload);
}
TEST_F(PullLies, TooManyPlaces) {
    auto payload = list(1, {});
    payload.resize(payload.size() + (wire::pull_places_max + 1) * sizeof(wire::PullPlace));
    expect_broken(header(), payload);
}
TEST_F(PullLies, LessThanTheMessage) { expect_broken(header(), list(1, {large - 1})); }
TEST_F(PullLies, MoreThanTheMessage) { expect_broken(header(), list(1, {large, 1})); }
TEST_F(PullLies, WrappingLengths) { expect_broken(header(), list(1, {~0ULL, large + 1})); }
TEST_F(PullLies, EmptyPlace) { expect_broken(header(), list(1, {0, large})); }
TEST_F(PullLies, NoProof) { expect_broken(header(), list(0, {large})); }
TEST_F(PullLies, NotTheFirstFrame) {
    expect_broken(header(wire::flag::extent | wire::flag::pull), list(1, {large}));
}
TEST_F(PullLies, FirstAndLast) {
    expect_broken(
        header(wire::flag::first | wire::flag::last | wire::flag::extent | wire::flag::pull),
        list(1, {large}));
}
TEST_F(PullLies, LongerThanAgreed) {
    wire::Header lie = header();
    lie.message_length = (1U << 20) + 1;
    expect_broken(lie, list(1, {(1U << 20) + 1}));
}
TEST_F(PullLies, FramesWhileItIsPulled) {
    post_receive({to.segment(0, large)});
    EXPECT_EQ(FrameVerdict::taken, pair.b.take(header(), list(1, {large})));
    expect_broken(header(wire::flag::extent), std::vector<std::byte>(100));
}
TEST_F(PullLies, AnotherOneWhileItIsPulled) {
    post_receive({to.segment(0, large)});
    EXPECT_EQ(FrameVerdict::taken, pair.b.take(header(), list(1, {large})));
    expect_broken(header(), list(2, {large}));
}
TEST_F(PullLies, WordOfNothing) {
    wire::Header lie = header(0);
    lie.kind = wire::FrameKind::pulled;
    expect_broken(lie, {});
}
TEST_F(PullLies, AWrongProofIsNoMessage) {
    static std::uint64_t other = 5;
    post_receive({to.segment(0, large)});
    auto payload = list(1, {large});
    const wire::PullHead head{reinterpret_cast<std::uint64_t>(&other), 1};
    std::memcpy(payload.data(), &head, sizeof head);
    const wire::PullPlace place{from.address(0), large};
    std::memcpy(payload.data() + sizeof head, &place, sizeof place);
    EXPECT_EQ(FrameVerdict::taken, pair.b.take(header(), payload));
    pull();
    EXPECT_EQ(0U, pair.b.counters.get(Counter::messages_pulled));
    EXPECT_EQ(nullptr, receiver.take(receiver.vi().receive));
    const auto answer = pair.b.emit();
    ASSERT_TRUE(answer);
    EXPECT_EQ(wire::FrameKind::pulled, answer->parsed().kind);
    EXPECT_EQ(1U, answer->parsed().immediate_or_code);
}

}  // namespace
}  // namespace via::engine::test::pull_test
