// A peer that lies: it can break its own connection or its path, never us, never another VI.
#include "base/random.hpp"
#include "engine/pair_test.hpp"

namespace via::engine::test::hostile_test {
namespace {

/// One connection over which lies come in, and one beside it that must not notice.
struct Hostile : testing::Test {
    Pair pair;
    Program liar{pair.a, attributes(Reliability::delivery)};
    Program victim{pair.b, attributes(Reliability::delivery)};
    Program friend_there{pair.a, attributes(Reliability::delivery)};
    Program friend_here{pair.b, attributes(Reliability::delivery)};

    void SetUp() override {
        connect(pair, liar, victim);
        connect(pair, friend_there, friend_here);
    }
    wire::Header header(wire::FrameKind kind, std::uint8_t flags = 0, std::uint32_t message = 0) {
        wire::Header result;
        result.kind = kind;
        result.flags = flags;
        result.vi = victim.vi().number();
        result.message = message;
        return result;
    }
    void expect_friend_works() {
        friend_there.take_all();
        friend_here.take_all();
        friend_there.fill(0, 100, 77);
        queue::Descriptor& receive = friend_here.receive(0, 100);
        friend_there.send(0, 100);
        pair.carry(true);
        EXPECT_EQ(status_of(receive), receive_done);
        EXPECT_TRUE(friend_here.holds(0, 100, 77));
    }
    void expect_broken(const wire::Header& lie, std::vector<std::byte> payload = {}) {
        EXPECT_EQ(pair.b.take(lie, std::move(payload)), FrameVerdict::refused);
        EXPECT_EQ(victim.state(), ViState::error);
        EXPECT_EQ(pair.b.events(), (std::vector{ErrorCode::connection_lost}));
        EXPECT_STRNE(pair.b.engine.last_refusal(), "");
        EXPECT_EQ(pair.b.counters.get(Counter::frames_refused), 1U);
        pair.carry(true);  // the liar is told
        EXPECT_EQ(liar.state(), ViState::error);
        expect_friend_works();
    }
};

using wire::FrameKind;
namespace flag = wire::flag;

constexpr std::uint8_t whole = flag::first | flag::last;

TEST_F(Hostile, message_out_of_sequence) { expect_broken(header(FrameKind::send, whole, 5)); }

TEST_F(Hostile, message_that_continues_nothing) {
    expect_broken(header(FrameKind::send, flag::last), std::vector<std::byte>(10));
}

TEST_F(Hostile, message_within_another) {
    victim.receive(0, 1000);
    wire::Header first = header(FrameKind::send, flag::first | flag::extent);
    first.message_length = 100;
    EXPECT_EQ(pair.b.take(first, std::vector<std::byte>(50)), FrameVerdict::taken);
    expect_broken(first, std::vector<std::byte>(50));
}

TEST_F(Hostile, message_that_changes_its_kind) {
    victim.receive(0, 1000);
    wire::Header first = header(FrameKind::send, flag::first | flag::extent);
    first.message_length = 100;
    pair.b.take(first, std::vector<std::byte>(50));
    wire::Header rest = header(FrameKind::rdma_write, flag::last | flag::extent | flag::remote);
    rest.message_length = 100;
    rest.offset = 50;
    rest.remote_address = victim.address(4000);
    rest.remote_handle = victim.handle();
    expect_broken(rest, std::vector<std::byte>(50));
}

TEST_F(Hostile, message_with_a_gap) {
    victim.receive(0, 1000);
    wire::Header first = header(FrameKind::send, flag::first | flag::extent);
    first.message_length = 100;
    pair.b.take(first, std::vector<std::byte>(50));
    wire::Header rest = header(FrameKind::send, flag::last | flag::extent);
    rest.message_length = 100;
    rest.offset = 60;
    expect_broken(rest, std::vector<std::byte>(40));
}

TEST_F(Hostile, message_that_grows_while_it_arrives) {
    victim.receive(0, 1000);
    wire::Header first = header(FrameKind::send, flag::first | flag::extent);
    first.message_length = 100;
    pair.b.take(first, std::vector<std::byte>(50));
    wire::Header rest = header(FrameKind::send, flag::last | flag::extent);
    rest.message_length = 2000;
    rest.offset = 50;
    expect_broken(rest, std::vector<std::byte>(1950));
}

TEST_F(Hostile, message_with_more_bytes_than_it_says) {
    wire::Header lie = header(FrameKind::send, whole | flag::extent);
    lie.message_length = 10;
    expect_broken(lie, std::vector<std::byte>(20));
}

TEST_F(Hostile, message_without_bytes_that_does_not_end) {
    wire::Header lie = header(FrameKind::send, flag::first | flag::extent);
    lie.message_length = 10;
    expect_broken(lie);
}

TEST_F(Hostile, message_longer_than_agreed) {
    wire::Header lie = header(FrameKind::send, flag::first | flag::extent);
    lie.message_length = 0xFFFFFFFF;
    expect_broken(lie, std::vector<std::byte>(50));
}

TEST_F(Hostile, write_without_address) {
    expect_broken(header(FrameKind::rdma_write, whole), std::vector<std::byte>(10));
}

TEST_F(Hostile, write_whose_end_wraps_around) {
    wire::Header lie = header(FrameKind::rdma_write, whole | flag::extent | flag::remote);
    lie.message_length = 64;
    lie.remote_address = ~std::uint64_t{0} - 10;
    lie.remote_handle = victim.handle();
    EXPECT_EQ(pair.b.take(lie, std::vector<std::byte>(64)), FrameVerdict::taken);
    EXPECT_EQ(pair.b.events(), (std::vector{ErrorCode::rdma_write_protection}));
    EXPECT_EQ(victim.state(), ViState::error);
    expect_friend_works();
}

TEST_F(Hostile, answer_to_no_read) {
    wire::Header lie = header(FrameKind::read_reply, whole | flag::extent | flag::remote);
    lie.message_length = 10;
    expect_broken(lie, std::vector<std::byte>(10));
}

TEST_F(Hostile, answer_longer_than_its_read) {
    victim.rdma(queue::control::rdma_read, 0, 10, liar.address(0), liar.handle());
    ASSERT_TRUE(pair.b.emit());
    wire::Header lie = header(FrameKind::read_reply, whole | flag::extent | flag::remote);
    lie.message_length = 50;
    EXPECT_EQ(pair.b.take(lie, std::vector<std::byte>(50)), FrameVerdict::refused);
    for (std::size_t n = 0; n < 50; ++n) EXPECT_EQ(*victim.at(n), std::byte{0});
    EXPECT_EQ(victim.state(), ViState::error);
}

TEST_F(Hostile, acknowledgement_of_what_was_not_sent) {
    expect_broken(header(FrameKind::ack, 0, 3));
}

TEST_F(Hostile, refusal_of_what_was_not_sent) { expect_broken(header(FrameKind::nak, 0, 0)); }

TEST_F(Hostile, more_reads_than_agreed) {
    for (std::uint32_t n = 0; n <= Vi::reads_max; ++n) {
        wire::Header request =
            header(FrameKind::read_request, whole | flag::extent | flag::remote, n);
        request.message_length = 10;
        request.remote_address = victim.address(0);
        request.remote_handle = victim.handle();
        request.read_number = n;
        EXPECT_EQ(pair.b.take(request),
                  n < Vi::reads_max ? FrameVerdict::taken : FrameVerdict::refused);
    }
    EXPECT_EQ(victim.state(), ViState::error);
}

TEST_F(Hostile, frames_for_nobody_are_stale) {
    for (const std::uint32_t number : {0U, 5U, 0xFFFFFFFFU, victim.vi().number() + 0x10000}) {
        wire::Header stray = header(FrameKind::send, whole);
        stray.vi = number;
        EXPECT_EQ(pair.b.take(stray), FrameVerdict::stale) << number;
    }
    EXPECT_EQ(victim.state(), ViState::connected);
}

/// Requests for a discriminator that nobody has, whose refusals nobody takes: how many until the
/// path is closed?
std::uint32_t ask_without_end(Side& side, PathId path) {
    wire::Header request;
    request.kind = FrameKind::request;
    std::byte header[wire::header_length_base];
    wire::emit(request, header);
    wire::ConnectMessage message{};
    message.reliability = static_cast<std::uint16_t>(Reliability::delivery);
    const ReceivedFrame frame{header, sizeof header, reinterpret_cast<const std::byte*>(&message),
                              sizeof message};
    std::uint32_t taken = 0;
    while (side.engine.on_frame(path, frame) == FrameVerdict::taken) ++taken;
    return taken;
}

TEST_F(Hostile, who_takes_no_answer_gets_no_more_than_his_share) {
    const std::uint32_t alone = ask_without_end(pair.b, the_path);
    EXPECT_LE(alone, 16384U);
    std::uint32_t all = alone;
    std::uint32_t least = alone;
    constexpr PathId paths = 100;
    for (PathId path = 1; path < paths; ++path) {
        pair.b.engine.on_path_up(path, 64, {}, false);
        least = ask_without_end(pair.b, path);
        all += least;
    }
    EXPECT_LT(all, 131072U + 64 * paths) << "whatever the number of paths";
    EXPECT_EQ(least, 64U) << "the next one has something, too";
    for (PathId path = 1; path < paths; ++path) pair.b.engine.on_path_down(path);
    pair.b.engine.on_path_up(1, 64, {}, false);
    EXPECT_GE(ask_without_end(pair.b, 1), alone) << "those that ended gave theirs back";
}

TEST_F(Hostile, the_paths_of_an_address_leave_half_of_all_answers_to_others) {
    HostAddress greedy;
    greedy.length = 6;
    greedy.bytes = {10, 0, 0, 3, 1, 1};
    constexpr PathId paths = 100;
    std::uint32_t all = 0;
    for (PathId path = 1; path <= paths; ++path) {
        greedy.bytes[5] = static_cast<std::uint8_t>(path);  // another port
        pair.b.engine.on_path_up(path, 64, greedy, false);
        all += ask_without_end(pair.b, path);
    }
    EXPECT_LE(all, 131072U / 2 + 64 * paths);
    HostAddress other = greedy;
    other.bytes[3] = 4;
    pair.b.engine.on_path_up(paths + 1, 64, other, false);
    EXPECT_EQ(ask_without_end(pair.b, paths + 1), 16384U) << "as much as any path may have";
}

/// Requests from that path for a program that has a call that waits each time, and answers none:
/// how many, until one is refused? They are added to `given`.
std::uint32_t ask_until_refused(Engine& engine, PathId path, std::vector<std::uint64_t>& given) {
    wire::Header request;
    request.kind = FrameKind::request;
    std::byte header[wire::header_length_base];
    wire::emit(request, header);
    wire::ConnectMessage message{};
    message.reliability = static_cast<std::uint16_t>(Reliability::delivery);
    for (std::uint32_t count = 0;; ++count) {
        message.vi = count;
        Listener listener;
        engine.requests().listen(listener);
        EXPECT_EQ(
            engine.on_frame(path, {header, sizeof header,
                                   reinterpret_cast<const std::byte*>(&message), sizeof message}),
            FrameVerdict::taken);
        engine.requests().unlisten(listener);
        if (!listener.given.load()) return count;
        given.push_back(listener.connection);
    }
}

TEST(HostileLossy, the_paths_of_an_address_leave_half_of_the_requests_that_wait_to_others) {
    Side side(1000, true);
    const std::uint32_t most = side.limits.connections_waiting_max;
    HostAddress greedy;
    greedy.length = 6;
    greedy.bytes = {10, 0, 0, 3, 1, 1};
    HostAddress other = greedy;
    other.bytes[3] = 4;
    std::vector<std::uint64_t> given;
    for (PathId path = 1; path <= 4; ++path) {
        greedy.bytes[5] = static_cast<std::uint8_t>(path);  // another port
        side.engine.on_path_up(path, 1000, greedy, true);
        ask_until_refused(side.engine, path, given);
    }
    EXPECT_EQ(given.size(), most / 2);
    side.engine.on_path_up(5, 1000, other, true);
    std::vector<std::uint64_t> others;
    EXPECT_EQ(ask_until_refused(side.engine, 5, others), most / 4);
    // Paths that end leave them to the program, which has not looked.
    for (PathId path = 1; path <= 4; ++path) side.engine.on_path_down(path);
    side.engine.on_path_up(1, 1000, greedy, true);
    EXPECT_EQ(ask_until_refused(side.engine, 1, given), 0U);
    Program server(side, attributes(Reliability::delivery));
    for (std::size_t n = 0; n < given.size(); ++n) {
        if (n % 2 == 0)
            EXPECT_EQ(side.engine.reject(given[n]), Status::success);
        else  // known to be given up
            EXPECT_EQ(side.engine.accept(given[n], server.vi()), Status::timeout);
    }
    given.clear();
    for (const std::uint64_t connection : others) side.engine.reject(connection);
    EXPECT_EQ(ask_until_refused(side.engine, 1, given), most / 2) << "all were given back";
}

TEST(HostileLossy, answers_count_until_the_peer_has_them) {
    Side side(1000, true);
    const std::uint32_t most = ask_without_end(side, the_path);
    std::vector<std::uint32_t> numbers;
    while (const auto frame = side.emit()) numbers.push_back(frame->number);
    ASSERT_EQ(numbers.size(), most);
    EXPECT_EQ(ask_without_end(side, the_path), 0U) << "they left, and may be lost";
    for (const std::uint32_t number : numbers)
        side.engine.outbound().on_reaped(the_path, number, false);
    EXPECT_EQ(ask_without_end(side, the_path), most);
}

TEST_F(Hostile, bytes_that_are_no_frame_close_the_path) {
    for (std::size_t length : {0UZ, 1UZ, 15UZ, 16UZ, 40UZ, 64UZ}) {
        const Carried garbage{std::vector<std::byte>(length, std::byte{0xFF}), {}};
        EXPECT_EQ(pair.b.take(garbage), FrameVerdict::hostile);
    }
    wire::Header request = header(FrameKind::request);
    EXPECT_EQ(pair.b.take(request, std::vector<std::byte>(10)), FrameVerdict::hostile);
    std::vector<std::byte> nonsense(sizeof(wire::ConnectMessage), std::byte{0xFF});
    EXPECT_EQ(pair.b.take(request, nonsense), FrameVerdict::hostile);
    EXPECT_EQ(pair.b.take(header(FrameKind::accept), nonsense), FrameVerdict::hostile);
    expect_friend_works();
}

/// True headers with one or two fields changed, thousands of them; the victim connects anew each
/// time. Memory that was never offered stays untouched throughout.
TEST_F(Hostile, changed_frames_break_nobody_else) {
    Random random(2024);
    std::vector<std::byte> guard(4096, std::byte{0x5A});
    for (int round = 0; round < 4000; ++round) {
        if (victim.state() != ViState::connected) {
            pair.b.engine.disconnect(victim.vi());
            pair.a.engine.disconnect(liar.vi());
            pair.carry(true);
            liar.take_all();
            victim.take_all();
            connect(pair, liar, victim);
        }
        if (random.chance(70)) victim.receive(0, 1000);
        wire::Header lie =
            header(static_cast<FrameKind>(random.between(1, 11)),
                   static_cast<std::uint8_t>(random.below(32)), victim.vi().expected_message);
        if (random.chance(50)) lie.message = static_cast<std::uint32_t>(random.below(4));
        if ((lie.flags & flag::remote) != 0) lie.flags |= flag::extent;
        std::vector<std::byte> payload(random.below(100));
        lie.message_length = static_cast<std::uint32_t>(
            random.chance(50) ? payload.size() : random.below(random.chance(50) ? 200 : ~0ULL));
        lie.offset = static_cast<std::uint32_t>(random.chance(70) ? 0 : random.below(200));
        lie.remote_address = random.chance(50) ? victim.address(random.below(8192))
                                               : reinterpret_cast<std::uint64_t>(guard.data());
        lie.remote_handle =
            random.chance(80) ? victim.handle() : static_cast<std::uint32_t>(random.next());
        lie.read_number = lie.message;
        pair.b.take(lie, std::move(payload));
        victim.take_all();
        pair.carry(true);
        pair.b.events();
        pair.a.events();
    }
    for (const std::byte byte : guard) ASSERT_EQ(byte, std::byte{0x5A});
    EXPECT_EQ(friend_here.state(), ViState::connected);
    expect_friend_works();
    EXPECT_GT(pair.b.counters.get(Counter::frames_refused), 500U);
}

}  // namespace
}  // namespace via::engine::test::hostile_test
