// Small tables (memory::TranslationCache): the NIC touches nothing whose page it has not reached.
// Memory of programs is closed to everybody until the agent loads a page, and again when it goes.
#include <sys/mman.h>

#include <map>

#include "engine/pair_test.hpp"
#include "memory/translation_cache.hpp"

namespace via::engine::test::translation_test {
namespace {

using queue::control::rdma_read;
using queue::control::rdma_write;

constexpr std::size_t page = memory::table_page_length;
constexpr std::size_t pages = 64;

/// Registered memory of a program, page by page open or closed, and its agent.
class Guarded final : public memory::LineLoader {
public:
    explicit Guarded(Side& side, const memory::CacheShape& shape)
        : bytes_(static_cast<std::byte*>(
              mmap(nullptr, pages * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))),
          cache_(shape, side.memory, side.counters, *this),
          handle_(*side.memory.add(address(0), pages * page, {memory::no_tag, true, true})) {
        side.engine.set_translations(cache_);
    }
    ~Guarded() override { munmap(bytes_, pages * page); }

    bool load(const memory::Line& line) override {
        if (loads_left == 0) return false;
        --loads_left;
        ++loads;
        protect(line.begin, line.length, PROT_READ | PROT_WRITE);
        lines_[line.name] = line;
        return true;
    }
    void evicted(const memory::LineName& line) override {
        protect(lines_.at(line).begin, lines_.at(line).length, PROT_NONE);
        lines_.erase(line);
    }
    void forget(memory::MemoryHandle) override {}

    std::uint64_t address(std::size_t offset) const {
        return reinterpret_cast<std::uint64_t>(bytes_) + offset;
    }
    queue::Segment segment(std::size_t offset, std::uint32_t length) const {
        return {address(offset), handle_, length};
    }
    memory::MemoryHandle handle() const { return handle_; }

    /// The program looks at its memory, or changes it.
    template <class Act>
    auto open(Act act) {
        protect(address(0), pages * page, PROT_READ | PROT_WRITE);
        struct Close {
            Guarded& all;
            ~Close() {
                all.protect(all.address(0), pages * page, PROT_NONE);
                for (const auto& [name, line] : all.lines_)
                    all.protect(line.begin, line.length, PROT_READ | PROT_WRITE);
            }
        } close{*this};
        return act(bytes_);
    }
    void fill(std::size_t offset, std::size_t length, unsigned seed) {
        open([&](std::byte* bytes) {
            for (std::size_t n = 0; n < length; ++n) bytes[offset + n] = pattern(seed, n);
        });
    }
    bool holds(std::size_t offset, std::size_t length, unsigned seed) {
        return open([&](const std::byte* bytes) {
            for (std::size_t n = 0; n < length; ++n)
                if (bytes[offset + n] != pattern(seed, n)) return false;
            return true;
        });
    }

    std::size_t loads_left = ~std::size_t{0};
    std::size_t loads = 0;

private:
    static std::byte pattern(unsigned seed, std::size_t n) {
        return static_cast<std::byte>(seed * 31 + n * 7 + 1);
    }
    static void protect(std::uint64_t address, std::uint64_t length, int how) {
        ASSERT_EQ(mprotect(reinterpret_cast<void*>(address), length, how), 0);
    }

    std::byte* bytes_;
    std::map<memory::LineName, memory::Line> lines_;
    memory::TranslationCache cache_;
    memory::MemoryHandle handle_;
};

/// Two programs whose NICs have tables of one set of four pages each.
struct SmallTables : testing::TestWithParam<Reliability> {
    SmallTables() { connect(pair, client, server); }

    queue::Descriptor& send(std::initializer_list<queue::Segment> segments, std::uint32_t length) {
        return client.post_send(client.make(0, segments, length));
    }
    queue::Descriptor& receive(std::initializer_list<queue::Segment> segments) {
        return server.post_receive(server.make(0, segments, 0));
    }
    queue::Descriptor& rdma(std::uint16_t control, std::size_t offset, std::uint32_t length,
                            std::size_t remote) {
        return client.post_send(client.make(
            control, {{theirs.address(remote), theirs.handle(), 0}, ours.segment(offset, length)},
            length));
    }
    /// RDMA between the client and the server's own memory, without frames from now on.
    void attach() {
        const auto number = pair.a.engine.segments().begin_attach(client.vi(), server.handle(),
                                                                  server.address(0), true);
        pair.carry();
        AttachQuestion question;
        ASSERT_TRUE(number && pair.b.engine.segments().next_question(question));
        pair.a.engine.segments().on_attached(
            the_path, (std::uint64_t{*number} << 32) | client.vi().number(),
            {server.at(0), Program::memory_length, true, &grant, 7, nullptr});
        Import import;
        ASSERT_EQ(pair.a.engine.segments().take_attach(client.vi(), *number, import),
                  Status::success);
    }
    queue::Descriptor& direct(std::uint16_t control, std::size_t offset, std::uint32_t length) {
        return client.post_send(client.make(
            control, {{server.address(0), server.handle(), 0}, ours.segment(offset, length)},
            length));
    }
    bool reliable() const { return GetParam() != Reliability::unreliable; }

    static constexpr memory::CacheShape shape{4, 1, 4};
    Pair pair{1000};
    Program client{pair.a, attributes(GetParam())};
    Program server{pair.b, attributes(GetParam())};
    Guarded ours{pair.a, shape};
    Guarded theirs{pair.b, shape};
    Atomic<std::uint32_t> grant{7};
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
INSTANTIATE_TEST_SUITE_P(Engine, SmallTables,
                         testing::Values(Reliability::unreliable, Reliability::delivery,
                                         Reliability::reception),
                         level_name);

TEST_P(SmallTables, messages_go_through_pages_that_come_when_they_are_needed) {
    for (unsigned n = 0; n < 12; ++n) {
        const std::size_t offset = n * 4 * page + 37 * n;
        ours.fill(offset, 4000, n);
        const queue::Descriptor& received =
            receive({theirs.segment(offset, 100), theirs.segment(offset + 100, 3900)});
        const queue::Descriptor& sent =
            send({ours.segment(offset, 3001), ours.segment(offset + 3001, 999)}, 4000);
        pair.carry();
        ASSERT_EQ(status_of(sent), send_done) << n;
        ASSERT_EQ(status_of(received), receive_done) << n;
        ASSERT_TRUE(theirs.holds(offset, 4000, n)) << n;
    }
    EXPECT_GT(ours.loads, 12U);
    EXPECT_GT(pair.a.counters.get(Counter::translation_evictions), 8U);
    EXPECT_GT(pair.b.counters.get(Counter::translation_hits), 12U);
}

TEST_P(SmallTables, remote_writes_and_reads_reach_their_pages) {
    for (unsigned n = 0; n < 12; ++n) {
        const std::size_t offset = (60 - n * 4) * page + 41 * n;
        ours.fill(offset, 4096, n);
        const queue::Descriptor& write = rdma(rdma_write, offset, 4096, offset + 5);
        pair.carry();
        ASSERT_EQ(status_of(write), write_done) << n;
        ASSERT_TRUE(theirs.holds(offset + 5, 4096, n)) << n;
        if (!reliable()) continue;
        const queue::Descriptor& read = rdma(rdma_read, offset + page, 4000, offset + 5);
        pair.carry();
        ASSERT_EQ(status_of(read), read_done) << n;
        ASSERT_TRUE(ours.holds(offset + page, 4000, n)) << n;
    }
}

TEST_P(SmallTables, segments_of_peers_are_written_from_pages_that_come) {
    attach();
    ours.fill(page - 1500, 4000, 1);
    const queue::Descriptor& written = direct(rdma_write, page - 1500, 4000);
    EXPECT_FALSE(pair.a.emit()) << "no frame is needed";
    EXPECT_EQ(status_of(written), write_done);
    EXPECT_TRUE(server.holds(0, 4000, 1));
    EXPECT_EQ(ours.loads, 2U);
    if (reliable()) {
        const queue::Descriptor& read = direct(rdma_read, 20 * page, 4000);
        EXPECT_FALSE(pair.a.emit());
        EXPECT_EQ(status_of(read), read_done);
        EXPECT_TRUE(ours.holds(20 * page, 4000, 1));
    }
    ours.loads_left = 1;
    const queue::Descriptor& refused = direct(rdma_write, 40 * page - 1, 2);
    EXPECT_EQ(pair.a.emit().has_value(), reliable()) << "the end of the connection";
    EXPECT_EQ(status_of(refused), write_done | queue::status::protection_error);
}

/// What a program finds when its agent refuses a page at the first frame (0) or a later one.
struct Refusals : SmallTables {};
INSTANTIATE_TEST_SUITE_P(Engine, Refusals,
                         testing::Values(Reliability::unreliable, Reliability::delivery,
                                         Reliability::reception),
                         level_name);
/// Unreliable VIs do not read.
struct ReadRefusals : SmallTables {};
INSTANTIATE_TEST_SUITE_P(Engine, ReadRefusals,
                         testing::Values(Reliability::delivery, Reliability::reception),
                         level_name);

constexpr std::uint32_t send_refused = send_done | queue::status::protection_error;
constexpr std::uint32_t receive_refused = receive_done | queue::status::protection_error;

TEST_P(Refusals, a_source_that_cannot_be_reached_fails_its_descriptor) {
    ours.loads_left = 0;
    const queue::Descriptor& refused = send({ours.segment(0, 100)}, 100);
    pair.carry();
    EXPECT_EQ(status_of(refused), send_refused);
    EXPECT_EQ(client.state(), reliable() ? ViState::error : ViState::connected);
    if (reliable()) return;
    ours.loads_left = 1;
    ours.fill(0, 100, 1);
    const queue::Descriptor& received = receive({theirs.segment(0, 100)});
    const queue::Descriptor& sent = send({ours.segment(0, 100)}, 100);
    pair.carry();
    EXPECT_EQ(status_of(sent), send_done) << "the next message goes as if nothing had been";
    EXPECT_EQ(status_of(received), receive_done);
    EXPECT_TRUE(theirs.holds(0, 100, 1));
}

TEST_P(Refusals, several_sources_that_cannot_be_reached_fail_one_by_one) {
    ours.loads_left = 0;
    const queue::Descriptor& first = send({ours.segment(0, 100)}, 100);
    const queue::Descriptor& second = send({ours.segment(0, 100)}, 100);
    const queue::Descriptor& third = send({}, 0);
    const queue::Descriptor& received = receive({});
    pair.carry();
    EXPECT_EQ(status_of(first), send_refused);
    EXPECT_EQ(status_of(second), reliable() ? send_flushed : send_refused);
    EXPECT_EQ(status_of(third), reliable() ? send_flushed : send_done);
    EXPECT_EQ(status_of(received), reliable() ? receive_flushed : receive_done);
}

TEST_P(Refusals, half_a_message_ends_the_connection) {
    ours.loads_left = 1;
    const queue::Descriptor& received = receive({theirs.segment(0, 4000)});
    const queue::Descriptor& refused = send({ours.segment(page - 1500, 4000)}, 4000);
    pair.carry();
    EXPECT_EQ(status_of(refused), send_refused);
    EXPECT_EQ(client.state(), ViState::error) << "also an unreliable one: the peer waits for more";
    EXPECT_EQ(server.state(), ViState::error);
    EXPECT_EQ(status_of(received), receive_flushed);
}

TEST_P(Refusals, a_receive_that_cannot_be_reached_fails_and_the_message_with_it) {
    for (const std::size_t loads : {0U, 1U}) {
        SCOPED_TRACE(loads);
        theirs.loads_left = loads;
        const queue::Descriptor& refused = receive({theirs.segment(page - 1500, 4000)});
        const queue::Descriptor& sent = send({ours.segment(0, 4000)}, 4000);
        pair.carry();
        EXPECT_EQ(status_of(refused), receive_refused);
        EXPECT_EQ(server.state(), reliable() ? ViState::error : ViState::connected);
        EXPECT_EQ(client.state(), server.state());
        EXPECT_EQ((status_of(sent) & queue::status::error_mask) != 0, reliable())
            << "the refusal comes while it is being sent";
        if (reliable()) return;
        theirs.loads_left = 10;
        const queue::Descriptor& received = receive({theirs.segment(10 * page, 4000)});
        ours.fill(0, 4000, 9);
        send({ours.segment(0, 4000)}, 4000);
        pair.carry();
        EXPECT_EQ(status_of(received), receive_done) << "an unreliable VI goes on";
        EXPECT_TRUE(theirs.holds(10 * page, 4000, 9));
    }
}

TEST_P(Refusals, a_target_that_cannot_be_reached_is_refused_like_a_foreign_one) {
    theirs.loads_left = 1;
    const queue::Descriptor& write = rdma(rdma_write, 0, 4000, page - 1500);
    pair.carry();
    EXPECT_EQ(pair.b.counters.get(Counter::rdma_refused), 1U);
    EXPECT_EQ(pair.b.events().front(), ErrorCode::rdma_write_protection);
    EXPECT_EQ(server.state(), reliable() ? ViState::error : ViState::connected);
    EXPECT_EQ((status_of(write) & queue::status::rdma_protection_error) != 0, reliable());
}

TEST_P(ReadRefusals, a_read_fails_at_either_end) {
    theirs.loads_left = 1;
    const queue::Descriptor& refused = rdma(rdma_read, 0, 4000, page - 1500);
    pair.carry();
    EXPECT_EQ(status_of(refused), read_done | queue::status::rdma_protection_error);
    EXPECT_EQ(pair.b.counters.get(Counter::rdma_refused), 1U);
    EXPECT_EQ(server.state(), ViState::error);
}

TEST_P(ReadRefusals, an_answer_without_a_place_ends_its_read) {
    ours.loads_left = 1;
    const queue::Descriptor& refused = rdma(rdma_read, page - 1500, 4000, 0);
    pair.carry();
    EXPECT_EQ(status_of(refused), read_done | queue::status::protection_error);
    EXPECT_EQ(client.state(), ViState::error);
    EXPECT_EQ(server.state(), ViState::error);
}

}  // namespace
}  // namespace via::engine::test::translation_test
