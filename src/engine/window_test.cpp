// Memory windows: what a peer may do by one, and what lands when it ends in the midst of that.
#include <gtest/gtest.h>

#include "engine/pair_test.hpp"

namespace via::engine::window_test {
namespace {

using namespace test;

constexpr std::uint32_t refused = queue::status::rdma_protection_error;

/// The server's region has no rights for peers; its windows have.
struct Scene {
    explicit Scene(Reliability level = Reliability::reception, bool lossy = false,
                   std::uint32_t payload_max = 64)
        : pair(payload_max, lossy),
          client(pair.a, attributes(level)),
          server(pair.b, attributes(level)) {
        connect(pair, client, server);
        pair.b.memory.suspend(server.handle());
        EXPECT_EQ(pair.b.memory.change(server.handle(), {}), Status::success);
        pair.b.memory.resume(server.handle());
    }

    memory::MemoryHandle window(std::size_t offset, std::uint64_t length, bool write, bool read,
                                bool atomics = false, memory::ProtectionTag tag = memory::no_tag) {
        memory::MemoryAttributes rights{tag, write, read};
        rights.atomics = atomics;
        return pair.b.memory.bind_window(server.handle(), server.address(offset), length, rights)
            .value();
    }
    void revoke(memory::MemoryHandle window) {
        EXPECT_EQ(pair.b.memory.end_window(window), Status::success);
    }
    queue::Descriptor& write(memory::MemoryHandle window, std::size_t to, std::uint32_t length) {
        return client.rdma(queue::control::rdma_write, 0, length, server.address(to), window);
    }
    queue::Descriptor& read(memory::MemoryHandle window, std::size_t from, std::uint32_t length) {
        return client.rdma(queue::control::rdma_read, 4096, length, server.address(from), window);
    }
    bool is_refused(const queue::Descriptor& descriptor) const {
        return (status_of(descriptor) & queue::status::error_mask) == refused;
    }

    Pair pair;
    Program client;
    Program server;
};

TEST(Windows, ArePeersRightsToTheByte) {
    Scene s;
    s.client.fill(0, 300, 1);
    const memory::MemoryHandle window = s.window(1000, 300, true, true);
    const queue::Descriptor& written = s.write(window, 1000, 300);
    const queue::Descriptor& read = s.read(window, 1001, 299);
    s.pair.carry();
    EXPECT_EQ(status_of(written), write_done);
    EXPECT_EQ(status_of(read), read_done);
    EXPECT_TRUE(s.server.holds(1000, 300, 1));
    EXPECT_EQ(std::memcmp(s.client.at(4096), s.client.at(1), 299), 0);
}

TEST(Windows, OneByteMoreIsRefused) {
    for (const std::size_t from : {999U, 1001U}) {
        for (const bool writes : {true, false}) {
            Scene s;
            const memory::MemoryHandle window = s.window(1000, 300, true, true);
            const queue::Descriptor& asked =
                writes ? s.write(window, from, 300) : s.read(window, from, 300);
            s.client.fill(0, 300, 1);
            s.pair.carry(true);
            EXPECT_TRUE(s.is_refused(asked)) << from << writes;
            EXPECT_EQ(s.server.word_at(1000), 0U) << "not its beginning either";
            EXPECT_EQ(s.pair.b.counters.get(Counter::rdma_refused), 1U);
            EXPECT_EQ(s.server.state(), ViState::error);
        }
    }
}

TEST(Windows, TheRegionsHandleGetsNothingByThem) {
    Scene s;
    s.window(0, 4096, true, true);
    const queue::Descriptor& written = s.write(s.server.handle(), 0, 8);
    s.pair.carry(true);
    EXPECT_TRUE(s.is_refused(written));
}

TEST(Windows, AreNoMemoryOfDescriptorsAndTheirData) {
    Scene s;
    const memory::MemoryHandle window = s.window(0, 4096, true, true);
    const memory::Region region = s.pair.b.memory.look(window);
    EXPECT_FALSE(is_descriptor_in(region, s.server.at(0), memory::no_tag));
    queue::Descriptor& send = s.server.make(0, {{s.server.address(0), window, 8}}, 8);
    s.server.post_send(send);
    s.pair.carry(true);
    EXPECT_EQ(status_of(send) & queue::status::error_mask, queue::status::protection_error);
}

TEST(Windows, NothingLandsWhenOneEndsWithinAMessage) {
    for (const Reliability level :
         {Reliability::unreliable, Reliability::delivery, Reliability::reception}) {
        for (const std::size_t frames : {0U, 1U, 3U}) {
            Scene s(level);
            s.client.fill(0, 640, 7);
            const memory::MemoryHandle window = s.window(1000, 640, true, false);
            s.write(window, 1000, 640);
            std::vector<Carried> under_way;
            while (auto frame = s.pair.a.emit()) under_way.push_back(std::move(*frame));
            ASSERT_GE(under_way.size(), 10U);
            for (std::size_t n = 0; n < frames; ++n)
                EXPECT_EQ(s.pair.b.take(under_way[n]), FrameVerdict::taken);
            s.revoke(window);
            std::vector<std::byte> before(s.server.at(0), s.server.at(4096));
            EXPECT_EQ(s.server.word_at(1000) != 0, frames != 0);
            for (std::size_t n = frames; n < under_way.size(); ++n) s.pair.b.take(under_way[n]);
            EXPECT_EQ(std::memcmp(before.data(), s.server.at(0), before.size()), 0);
            EXPECT_EQ(s.pair.b.counters.get(Counter::rdma_refused), 1U);
            EXPECT_EQ(s.pair.b.events().front(), ErrorCode::rdma_write_protection);
            EXPECT_EQ(s.server.state(),
                      level == Reliability::unreliable ? ViState::connected : ViState::error);
        }
    }
}

TEST(Windows, NothingIsReadWhenOneEndsWithinAnAnswer) {
    for (const std::size_t frames : {0U, 1U, 3U}) {
        Scene s;
        s.server.fill(1000, 640, 7);
        const memory::MemoryHandle window = s.window(1000, 640, false, true);
        const queue::Descriptor& read = s.read(window, 1000, 640);
        ASSERT_EQ(s.pair.b.take(*s.pair.a.emit()), FrameVerdict::taken);
        for (std::size_t n = 0; n < frames; ++n)
            EXPECT_EQ(s.pair.a.take(*s.pair.b.emit()), FrameVerdict::taken);
        s.revoke(window);
        s.server.fill(1000, 640, 9);
        s.pair.carry(true);
        EXPECT_TRUE(s.is_refused(read));
        EXPECT_EQ(s.client.word_at(4096 + 64 * frames), 0U) << "nothing behind what was sent";
        EXPECT_EQ(s.pair.b.events().front(), ErrorCode::rdma_read_protection);
    }
}

TEST(Windows, WhatIsLostIsNotReadAgainWhenOneEnded) {
    Scene s(Reliability::reception, true);
    s.server.fill(1000, 64, 7);
    const memory::MemoryHandle window = s.window(1000, 64, false, true);
    s.read(window, 1000, 64);
    s.pair.b.take(*s.pair.a.emit());
    const auto answer = s.pair.b.emit();
    ASSERT_EQ(answer->parsed().kind, wire::FrameKind::read_reply);
    s.revoke(window);
    s.pair.b.engine.outbound().on_reaped(the_path, answer->number, true);
    const auto again = s.pair.b.emit();
    ASSERT_TRUE(again);
    EXPECT_EQ(again->parsed().kind, wire::FrameKind::nak);
}

TEST(Windows, AnotherOneInItsPlaceIsAnotherOne) {
    Scene s;
    const memory::MemoryHandle first = s.window(1000, 64, true, false);
    s.revoke(first);
    s.window(1000, 64, true, false);
    const queue::Descriptor& late = s.write(first, 1000, 64);
    s.pair.carry(true);
    EXPECT_TRUE(s.is_refused(late));
}

TEST(Windows, EndWithTheirRegion) {
    Scene s;
    const memory::MemoryHandle window = s.window(1000, 640, true, false);
    s.client.fill(0, 640, 7);
    s.write(window, 1000, 640);
    ASSERT_EQ(s.pair.b.take(*s.pair.a.emit()), FrameVerdict::taken);
    EXPECT_FALSE(s.pair.b.engine.uses_region(s.server.handle())) << "a window does not hold it";
    s.server.forget_region();
    s.pair.carry(true);
    EXPECT_TRUE(s.server.holds(1000, 64, 7));
    EXPECT_EQ(s.server.word_at(1064), 0U);
    s.revoke(window);
}

TEST(Windows, GrantAtomicOperations) {
    Scene s;
    const memory::MemoryHandle window = s.window(1000, 8, false, false, true);
    s.server.put_word(1000, 5);
    const queue::Descriptor& add = s.client.atomic({true, 3}, 0, s.server.address(1000), window);
    s.pair.carry();
    EXPECT_EQ(status_of(add), add_done);
    EXPECT_EQ(s.client.word_at(0), 5U);
    EXPECT_EQ(s.server.word_at(1000), 8U);
    s.revoke(window);
    const queue::Descriptor& late = s.client.atomic({true, 3}, 0, s.server.address(1000), window);
    s.pair.carry(true);
    EXPECT_TRUE(s.is_refused(late));
    EXPECT_EQ(s.server.word_at(1000), 8U);
}

TEST(Windows, OneForWritingIsNoneForOthers) {
    Scene s;
    const memory::MemoryHandle window = s.window(1000, 64, true, false);
    const queue::Descriptor& add = s.client.atomic({true, 3}, 0, s.server.address(1000), window);
    s.pair.carry(true);
    EXPECT_TRUE(s.is_refused(add));
    EXPECT_EQ(s.server.word_at(1000), 0U);
}

TEST(Windows, KeepPeersApartByTags) {
    for (const bool own : {true, false}) {
        Pair pair;
        const memory::ProtectionTag tag = pair.b.memory.create_tag().value();
        const memory::ProtectionTag others = pair.b.memory.create_tag().value();
        ViAttributes tagged = attributes(Reliability::reception);
        tagged.tag = tag;
        Program client(pair.a, attributes(Reliability::reception));
        Program server(pair.b, tagged);
        connect(pair, client, server);
        const memory::MemoryHandle window =
            pair.b.memory
                .bind_window(server.handle(), server.address(0), 64, {own ? tag : others, true})
                .value();
        const queue::Descriptor& written =
            client.rdma(queue::control::rdma_write, 0, 8, server.address(0), window);
        pair.carry(true);
        EXPECT_EQ(status_of(written) & queue::status::error_mask, own ? 0 : refused);
    }
}

}  // namespace
}  // namespace via::engine::window_test
