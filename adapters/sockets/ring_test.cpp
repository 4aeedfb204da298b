// Bytes through the rings of a pipe, both ends in one process.
#include "ring.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <filesystem>
#include <random>
#include <vector>

namespace via::sockets {
namespace ring_test {
namespace {

class Ring : public testing::Test {
protected:
    void SetUp() override {
        arena_ = Arena::create();
        ASSERT_NE(arena_, nullptr);
        id_ = arena_->head().id;
        const std::uint64_t offset = PipeEnd::make(*arena_, {});
        ASSERT_NE(offset, 0u);
        pipe_ = arena_->at<Pipe>(offset);
    }
    /// Also when a lie says that somebody else is in it.
    void TearDown() override {
        arena_->leave();
        for (const auto& entry : std::filesystem::directory_iterator(arena_folder())) {
            unsigned long id = 0;
            if (std::sscanf(entry.path().filename().c_str(), "%16lx-", &id) == 1 && id == id_)
                unlink(entry.path().c_str());
        }
    }

    PipeEnd writer() { return {*arena_, *pipe_, 0}; }
    PipeEnd reader() { return {*arena_, *pipe_, 1}; }

    std::size_t write(std::span<std::byte> bytes) {
        const iovec part{bytes.data(), bytes.size()};
        Buffers from(&part, 1);
        return writer().store(from);
    }
    std::size_t read(std::span<std::byte> bytes) {
        const iovec part{bytes.data(), bytes.size()};
        Buffers to(&part, 1);
        bool room = false;
        return reader().take(to, {}, room);
    }

    Arena* arena_ = nullptr;
    std::uint64_t id_ = 0;
    Pipe* pipe_ = nullptr;
};

TEST_F(Ring, BytesOfABlockAreNeverTakenForALine) {
    // Every word of these bytes says that the line of that place, or a later one, holds a message.
    std::vector<std::byte> sent(40'000);
    std::vector<std::byte> got(sent.size());
    std::mt19937 draw(5);
    for (int turn = 0; turn < 4000; ++turn) {
        const std::uint64_t place = pipe_->send[0].place.load();
        const std::uint64_t later = turn % 3 == 0 ? PipeEnd::first_lines * (1 + draw() % 6) : 0;
        for (std::size_t at = 0; at + 8 <= sent.size(); at += 8) {
            const std::uint64_t line = place + 1 + at / 64 + later;
            const std::uint64_t word = (line + 1) << 16 | 1ull << 14 | 8;
            std::memcpy(sent.data() + at, &word, sizeof word);
        }
        const std::size_t length = 1 + draw() % (turn % 2 == 0 ? 60 : sent.size());
        const std::size_t stored = write(std::span(sent).first(length));
        ASSERT_EQ(reader().bytes_waiting(), stored) << turn;
        ASSERT_EQ(read(std::span(got).first(stored)), stored) << turn;
        ASSERT_TRUE(std::equal(got.begin(), got.begin() + static_cast<long>(stored), sent.begin()));
        ASSERT_FALSE(reader().has_bytes()) << turn;
    }
}

TEST_F(Ring, BytesComeInOrderThroughRingsOfAllSizes) {
    std::mt19937 draw(9);
    std::uint32_t written = 0;
    std::uint32_t seen = 0;
    std::vector<std::byte> some(100'000);
    for (int turn = 0; turn < 3000; ++turn) {
        const std::size_t length = 1 + draw() % (draw() % 4 == 0 ? some.size() : 300);
        for (std::size_t at = 0; at < length; ++at)
            some[at] = static_cast<std::byte>((written + at) * 2654435761u >> 24);
        written += static_cast<std::uint32_t>(write(std::span(some).first(length)));
        if (draw() % 300 == 0) writer().grow();
        const std::size_t got = read(std::span(some).first(1 + draw() % some.size()));
        for (std::size_t at = 0; at < got; ++at)
            ASSERT_EQ(some[at], static_cast<std::byte>((seen + at) * 2654435761u >> 24)) << turn;
        seen += static_cast<std::uint32_t>(got);
    }
    EXPECT_GT(seen, 1'000'000u);
}

/// Another process of the same user, which writes whatever it likes where it may.
class Liar {
public:
    Liar(Arena& arena, Pipe& pipe, unsigned seed) : arena_(arena), pipe_(pipe), draw_(seed) {}
    void lie() {
        SendEnd& sends = pipe_.send[draw_() % 2];
        ReadEnd& reads = pipe_.read[draw_() % 2];
        switch (draw_() % 14) {
            case 0:
                sends.place = number();
                break;
            case 1:
                sends.ring = number();
                break;
            case 2:
                sends.lines = static_cast<std::uint32_t>(number());
                break;
            case 3:
                reads.place = number();
                break;
            case 4:
                reads.ring = number();
                break;
            case 5:
                reads.lines = static_cast<std::uint32_t>(number());
                break;
            case 6:
                reads.offset = static_cast<std::uint32_t>(number());
                break;
            case 7:
                reads.given_back = number();
                break;
            case 8:
                arena_.head().free[draw_() % ArenaHead::classes] = number();
                break;
            case 9:
                arena_.head().used = number();
                break;
            case 10:
                pipe_.again[draw_() % 2] = {number(), number(), number(), number()};
                break;
            case 11:
                arena_.head().backed = number();
                break;
            default:
                say_line(reads);
        }
    }

private:
    /// A line that is next, of any way and length; perhaps it leads to itself.
    void say_line(const ReadEnd& reads) {
        auto* const line = reinterpret_cast<detail::StoreLine*>(
            reinterpret_cast<std::byte*>(arena_.at<detail::StoreLine>(reads.ring)) +
            detail::StoreRing::segment_size(0));
        const std::uint64_t said = number();
        const std::uint64_t word = (reads.place + 1) << 16 | draw_() % (1 << 16);
        for (std::uint32_t at = 0; at < PipeEnd::first_lines; ++at) {
            line[at].word = word + (draw_() % 2 << 16) * at;
            std::memcpy(line[at].payload.data(), &said, sizeof said);
        }
    }
    std::uint64_t number() {
        const std::uint64_t value = std::uint64_t{draw_()} << 32 | draw_();
        switch (draw_() % 4) {
            case 0:
                return value;
            case 1:
                return value % Arena::size;
            case 2:
                return Arena::size - 1 - value % 4096;
            default:
                return value % 70000;
        }
    }
    Arena& arena_;
    Pipe& pipe_;
    std::mt19937 draw_;
};

TEST_F(Ring, NoNumberOfAPeerLeadsOutOfItsMemory) {
    std::vector<std::byte> some(24 << 20);
    std::size_t seen = 0;
    for (int turn = 0; turn < 4000; ++turn) {
        const std::uint64_t offset = PipeEnd::make(*arena_, {});
        if (offset != 0) pipe_ = arena_->at<Pipe>(offset);
        Liar liar(*arena_, *pipe_, static_cast<unsigned>(turn));
        write(std::span(some).first(2000));
        for (int lies = 0; lies < 1 + turn % 4; ++lies) liar.lie();
        write(std::span(some).first(turn % 16 == 0 ? 1'000'000 : 3000));
        writer().grow();
        seen += reader().bytes_waiting() + reader().again().left();
        seen += read(std::span(some).first(turn % 16 == 0 ? some.size() : 70'000));
        writer().has_room();
        arena_->find({});
        if (turn % 50 == 0) {  // others of the process go on in memory of their own
            TearDown();
            SetUp();
        }
    }
    EXPECT_GT(seen, 0u);
}

}  // namespace
}  // namespace ring_test
}  // namespace via::sockets
