// Atomic operations: asked for and answered as RDMA reads are, carried out when they come as writes
// are, once, and refused as either.
#include "engine/pair_test.hpp"

namespace via::engine::test::atomic_test {
namespace {

using memory::WordChange;
using queue::control::queue_fence;
using queue::control::rdma_read;
using queue::control::rdma_write;

WordChange add(std::uint64_t addend) { return {true, addend}; }
WordChange swap(std::uint64_t expected, std::uint64_t desired) {
    return {false, expected, desired};
}

constexpr std::size_t the_word = 512;

struct Net {
    explicit Net(Reliability level = Reliability::delivery, bool lossy = false,
                 ViAttributes of_server = attributes(Reliability::delivery))
        : pair(64, lossy), client(pair.a, attributes(level)), server(pair.b, [&] {
              of_server.reliability = level;
              return of_server;
          }()) {
        connect(pair, client, server);
        EXPECT_EQ(pair.b.memory.allow_atomics(server.handle(), true), Status::success);
    }
    queue::Descriptor& ask(const WordChange& change, std::size_t result = 0,
                           std::uint16_t control = 0) {
        return client.atomic(change, result, server.address(the_word), server.handle(), control);
    }

    Pair pair;
    Program client;
    Program server;
};

std::vector<Carried> emit_all(Side& side) {
    std::vector<Carried> frames;
    while (auto frame = side.emit()) frames.push_back(std::move(*frame));
    return frames;
}

TEST(Atomic, changes_the_peers_word_and_brings_what_was_there) {
    for (const Reliability level : {Reliability::delivery, Reliability::reception}) {
        Net net(level);
        net.server.put_word(the_word, 40);
        queue::Descriptor& added = net.ask(add(2), 0);
        queue::Descriptor& swapped = net.ask(swap(42, 7), 8);
        queue::Descriptor& not_swapped = net.ask(swap(42, 9), 16);
        queue::Descriptor& wrapped = net.ask(add(~std::uint64_t{0}), 24);
        net.pair.carry();
        EXPECT_EQ(status_of(added), add_done);
        EXPECT_EQ(status_of(swapped), swap_done);
        EXPECT_EQ(status_of(not_swapped), swap_done) << "no error: the program compares itself";
        EXPECT_EQ(status_of(wrapped), add_done);
        EXPECT_EQ(net.client.word_at(0), 40U);
        EXPECT_EQ(net.client.word_at(8), 42U);
        EXPECT_EQ(net.client.word_at(16), 7U);
        EXPECT_EQ(net.client.word_at(24), 7U);
        EXPECT_EQ(net.server.word_at(the_word), 6U);
        EXPECT_EQ(net.pair.a.counters.get(Counter::atomics), 4U);
        EXPECT_EQ(net.client.take(net.client.vi().send), &added);
    }
}

TEST(Atomic, is_behind_what_was_written_before_and_before_what_is_written_later) {
    Net net;
    net.client.put_word(64, 100);
    net.client.put_word(72, 200);
    net.client.rdma(rdma_write, 64, 8, net.server.address(the_word), net.server.handle());
    net.ask(add(1));
    net.client.rdma(rdma_write, 72, 8, net.server.address(the_word), net.server.handle());
    net.pair.carry();
    EXPECT_EQ(net.client.word_at(0), 100U);
    EXPECT_EQ(net.server.word_at(the_word), 200U);
}

TEST(Atomic, answers_come_in_turn_with_those_to_reads) {
    Net net;
    net.server.fill(1024, 200, 3);
    queue::Descriptor& first =
        net.client.rdma(rdma_read, 1024, 200, net.server.address(1024), net.server.handle());
    queue::Descriptor& second = net.ask(add(5));
    queue::Descriptor& third =
        net.client.rdma(rdma_read, 8, 8, net.server.address(the_word), net.server.handle());
    net.pair.carry();
    EXPECT_EQ(status_of(first), read_done);
    EXPECT_EQ(status_of(second), add_done);
    EXPECT_EQ(status_of(third), read_done);
    EXPECT_TRUE(net.client.holds(1024, 200, 3));
    EXPECT_EQ(net.client.word_at(0), 0U);
    EXPECT_EQ(net.client.word_at(8), 5U);
}

TEST(Atomic, a_fence_waits_for_it_and_no_more_are_under_way_than_may_be) {
    Net net;
    queue::Descriptor& first = net.ask(add(1));
    net.client.send(100, 10, queue_fence);
    net.server.receive(100, 10);
    ASSERT_TRUE(net.pair.a.emit());
    EXPECT_FALSE(net.pair.a.emit()) << "the send waits";
    Net many;
    for (int n = 0; n < 20; ++n) many.ask(add(1));
    EXPECT_EQ(emit_all(many.pair.a).size(), many.pair.a.limits.reads_in_flight_max);
    EXPECT_EQ(status_of(first), 0U);
}

TEST(Atomic, uses_the_region_of_its_result_and_no_other) {
    Net net;
    queue::Segment words{};
    words.handle = net.pair.a.memory.add(net.client.address(0), 64, {}).value();
    words.length = 1;
    std::uint64_t desired = 0;
    std::memcpy(&desired, &words.handle, sizeof desired);
    net.ask(swap(0, desired));
    EXPECT_TRUE(net.pair.a.engine.uses_region(net.client.handle()));
    EXPECT_FALSE(net.pair.a.engine.uses_region(words.handle)) << "a word is no segment";
}

// Refusals ----------------------------------------------------------------------------------------

struct Refusal {
    const char* name;
    bool write = true;
    bool read = true;
    bool right = true;
    std::int64_t shift = 0;  ///< of the address
    std::uint32_t handle = 0;
};

TEST(Atomic, is_refused_without_rights_beyond_the_region_and_at_no_multiple_of_8) {
    const Refusal refusals[] = {
        {.name = "no RDMA write to the VI", .write = false},
        {.name = "no RDMA read from the VI", .read = false},
        {.name = "no right to the region", .right = false},
        {.name = "not aligned", .shift = 4},
        {.name = "before the region", .shift = -520},
        {.name = "behind it", .shift = Program::memory_length - 512},
        {.name = "another handle", .handle = 0x80000001},
    };
    for (const Refusal& refusal : refusals)
        for (const bool behind_a_read : {false, true}) {
            SCOPED_TRACE(std::string(refusal.name) + (behind_a_read ? ", behind a read" : ""));
            if (behind_a_read && !refusal.read) continue;  // that read would be refused
            ViAttributes rights = attributes(Reliability::delivery);
            rights.rdma_write = refusal.write;
            rights.rdma_read = refusal.read;
            Net net(Reliability::delivery, false, rights);
            ASSERT_EQ(net.pair.b.memory.allow_atomics(net.server.handle(), refusal.right),
                      Status::success);
            net.server.put_word(the_word, 40);
            queue::Descriptor* read = nullptr;
            if (behind_a_read)
                read = &net.client.rdma(rdma_read, 1024, 200, net.server.address(1024),
                                        net.server.handle());
            const std::uint64_t at =
                net.server.address(the_word) + static_cast<std::uint64_t>(refusal.shift);
            queue::Descriptor& refused =
                net.client.atomic(add(1), 0, at, net.server.handle() ^ refusal.handle);
            queue::Descriptor& later = net.ask(add(1), 8);
            net.pair.carry();
            EXPECT_EQ(status_of(refused), add_done | queue::status::rdma_protection_error);
            EXPECT_EQ(status_of(later), add_done | queue::status::flushed);
            EXPECT_TRUE(read == nullptr || status_of(*read) == read_done);
            EXPECT_EQ(net.server.word_at(the_word), 40U);
            EXPECT_EQ(net.client.word_at(0), 0U);
            EXPECT_EQ(net.pair.b.events(), (std::vector{ErrorCode::rdma_write_protection}));
            EXPECT_EQ(net.pair.b.counters.get(Counter::rdma_refused), 1U);
            EXPECT_EQ(net.client.state(), ViState::error);
            EXPECT_EQ(net.server.state(), ViState::error);
        }
}

TEST(Atomic, faults_are_found_by_the_post) {
    const auto status_with = [](std::uint16_t control, std::uint32_t length, std::uint32_t handle,
                                Reliability level = Reliability::delivery) {
        Side side;
        Program program(side, attributes(level));
        const memory::Region region = side.memory.look(program.handle());
        const CheckContext context{side.memory, region, memory::no_tag, 4096,
                                   level != Reliability::unreliable};
        queue::ControlSegment segment{};
        segment.control = control;
        segment.segment_count = 2;
        segment.length = length;
        const queue::Segment segments[2] = {
            {1, 2, 3}, {program.address(0), program.handle() ^ handle, length}};
        return check_atomic(context, segment, segments);
    };
    EXPECT_EQ(status_with(0, 8, 0), 0U);
    EXPECT_EQ(status_with(queue_fence, 8, 0), 0U);
    EXPECT_EQ(status_with(0, 8, 0, Reliability::unreliable), queue::status::format_error);
    EXPECT_EQ(status_with(rdma_read, 8, 0), queue::status::format_error);
    EXPECT_EQ(status_with(queue::control::immediate, 8, 0), queue::status::format_error);
    EXPECT_EQ(status_with(0, 8, 1), queue::status::protection_error);
    EXPECT_EQ(status_with(0, 4, 0), queue::status::length_error);
    EXPECT_EQ(status_with(0, 16, 0), queue::status::length_error);
}

TEST(Atomic, what_a_liar_sends_breaks_its_own_connection) {
    constexpr std::uint8_t whole =
        wire::flag::first | wire::flag::last | wire::flag::extent | wire::flag::remote;
    const auto verdict_of = [](auto bend, std::size_t payload) {
        Net net;
        wire::Header lie;
        lie.kind = wire::FrameKind::compare_swap;
        lie.flags = whole;
        lie.vi = net.server.vi().number();
        lie.message_length = 8;
        lie.remote_address = net.server.address(the_word);
        lie.remote_handle = net.server.handle();
        bend(lie);
        return net.pair.b.take(lie, std::vector<std::byte>(payload));
    };
    EXPECT_EQ(verdict_of([](wire::Header&) {}, 16), FrameVerdict::taken);
    EXPECT_EQ(verdict_of([](wire::Header&) {}, 8), FrameVerdict::refused);
    EXPECT_EQ(verdict_of([](wire::Header&) {}, 0), FrameVerdict::refused);
    EXPECT_EQ(verdict_of([](wire::Header& h) { h.kind = wire::FrameKind::fetch_add; }, 16),
              FrameVerdict::refused);
    EXPECT_EQ(verdict_of([](wire::Header& h) { h.message = 1; }, 16), FrameVerdict::refused);
    EXPECT_EQ(verdict_of([](wire::Header& h) { h.read_number = 1; }, 16), FrameVerdict::refused);
    EXPECT_EQ(verdict_of([](wire::Header& h) { h.offset = 8; }, 16), FrameVerdict::refused);
    EXPECT_EQ(verdict_of([](wire::Header& h) { h.message_length = 16; }, 16),
              FrameVerdict::refused);
    EXPECT_EQ(verdict_of([](wire::Header& h) { h.flags = whole & ~wire::flag::remote; }, 16),
              FrameVerdict::refused);
    EXPECT_EQ(verdict_of([](wire::Header& h) { h.flags |= wire::flag::pull; }, 16),
              FrameVerdict::refused);
}

TEST(Atomic, more_at_once_than_agreed_break_the_connection) {
    Net net;
    for (std::uint32_t n = 0; n <= Vi::reads_max; ++n) {
        wire::Header one;
        one.kind = wire::FrameKind::fetch_add;
        one.flags = wire::flag::first | wire::flag::last | wire::flag::extent | wire::flag::remote;
        one.vi = net.server.vi().number();
        one.message = one.read_number = n;
        one.message_length = 8;
        one.remote_address = net.server.address(the_word);
        one.remote_handle = net.server.handle();
        std::vector<std::byte> words(8);
        words[0] = std::byte{1};
        EXPECT_EQ(net.pair.b.take(one, words),
                  n < Vi::reads_max ? FrameVerdict::taken : FrameVerdict::refused);
    }
    EXPECT_EQ(net.server.word_at(the_word), Vi::reads_max);
}

// Other versions ----------------------------------------------------------------------------------

/// Two sides, of which each hears that the other one understands this.
struct OtherVersion {
    explicit OtherVersion(std::uint32_t hears)
        : client(pair.a, attributes(Reliability::delivery)),
          server(pair.b, attributes(Reliability::delivery)) {
        connect_by(pair, client, server, [&] { carry(hears); });
        EXPECT_EQ(pair.b.memory.allow_atomics(server.handle(), true), Status::success);
    }
    void carry(std::uint32_t hears) {
        for (bool moved = true; moved;) {
            moved = false;
            for (Side* from : {&pair.a, &pair.b}) {
                auto frame = from->emit();
                if (!frame) continue;
                moved = true;
                wire::Header header = frame->parsed();
                atomics += header.kind >= wire::FrameKind::compare_swap ? 1 : 0;
                if (header.kind <= wire::FrameKind::accept) header.immediate_or_code = hears;
                wire::emit(header, frame->header.data());
                EXPECT_EQ((from == &pair.a ? pair.b : pair.a).take(*frame), FrameVerdict::taken);
            }
        }
    }

    Pair pair;
    Program client;
    Program server;
    unsigned atomics = 0;  ///< frames of them that were sent
};

TEST(Atomic, goes_to_no_peer_of_a_version_without) {
    for (const bool asked : {true, false}) {
        OtherVersion net(0);
        Program& one = asked ? net.server : net.client;
        Program& older = asked ? net.client : net.server;
        queue::Descriptor& added = one.atomic(add(1), 0, older.address(the_word), older.handle());
        net.carry(0);
        EXPECT_EQ(net.atomics, 0U) << "it would close the path";
        EXPECT_EQ(status_of(added), add_done | queue::status::format_error);
        EXPECT_EQ(one.state(), ViState::error);
    }
}

TEST(Atomic, goes_to_a_peer_that_understands_what_nobody_does_today) {
    OtherVersion net(~0U);
    queue::Descriptor& added =
        net.client.atomic(add(1), 0, net.server.address(the_word), net.server.handle());
    net.carry(~0U);
    EXPECT_EQ(status_of(added), add_done);
    EXPECT_EQ(net.server.word_at(the_word), 1U);
}

TEST(Atomic, that_it_is_understood_is_told_with_requests_and_acceptances) {
    Net net;
    EXPECT_TRUE(net.client.vi().peer_knows_atomics.load());
    EXPECT_TRUE(net.server.vi().peer_knows_atomics.load());
}

// Media that lose frames --------------------------------------------------------------------------

TEST(Atomic, a_lost_question_is_asked_again_with_the_same_words) {
    Net net(Reliability::delivery, true);
    queue::Descriptor& added = net.ask(swap(0, 9));
    const auto frames = emit_all(net.pair.a);
    ASSERT_EQ(frames.size(), 1U);
    net.pair.a.engine.outbound().on_reaped(the_path, frames[0].number, true);
    const auto again = emit_all(net.pair.a);
    ASSERT_EQ(again.size(), 1U);
    EXPECT_EQ(again[0].header, frames[0].header);
    EXPECT_EQ(again[0].payload, frames[0].payload);
    EXPECT_EQ(net.pair.b.take(again[0]), FrameVerdict::taken);
    net.pair.a.engine.outbound().on_reaped(the_path, again[0].number, false);
    EXPECT_EQ(status_of(added), 0U) << "that the question arrived is no answer";
    net.pair.carry();
    EXPECT_EQ(status_of(added), swap_done);
    EXPECT_EQ(net.server.word_at(the_word), 9U);
}

TEST(Atomic, a_lost_answer_is_kept_and_never_computed_again) {
    Net net(Reliability::delivery, true);
    net.server.put_word(the_word, 40);
    queue::Descriptor& added = net.ask(add(2));
    const auto question = emit_all(net.pair.a);
    EXPECT_EQ(net.pair.b.take(question.at(0)), FrameVerdict::taken);
    const auto lost = emit_all(net.pair.b);
    ASSERT_EQ(lost.size(), 1U);
    net.server.put_word(the_word, 1000);  // its program goes on,
    net.server.forget_region();           // and the region goes
    net.pair.b.engine.outbound().on_reaped(the_path, lost[0].number, true);
    const auto again = emit_all(net.pair.b);
    ASSERT_EQ(again.size(), 1U);
    EXPECT_EQ(again[0].header, lost[0].header);
    EXPECT_EQ(again[0].payload, lost[0].payload);
    EXPECT_EQ(net.pair.a.take(again[0]), FrameVerdict::taken);
    EXPECT_EQ(status_of(added), add_done);
    EXPECT_EQ(net.client.word_at(0), 40U);
    EXPECT_EQ(net.server.word_at(the_word), 1000U);
}

TEST(Atomic, a_lost_question_of_a_connection_that_is_over_is_skipped) {
    Net net(Reliability::delivery, true);
    net.ask(add(2));
    const auto frames = emit_all(net.pair.a);
    net.pair.a.engine.outbound().on_reaped(the_path, frames.at(0).number, true);
    net.pair.a.engine.disconnect(net.client.vi());
    const auto again = emit_all(net.pair.a);
    ASSERT_EQ(again.size(), 2U);
    EXPECT_EQ(again[0].parsed().kind, wire::FrameKind::skip);
    EXPECT_EQ(again[1].parsed().kind, wire::FrameKind::disconnect);
}

// Other parties -----------------------------------------------------------------------------------

TEST(Atomic, an_attached_segment_is_changed_by_frames_and_nothing_overtakes_that) {
    Net net;
    const Atomic<std::uint32_t> grant{1};
    Attachment segment;
    segment.base = net.server.at(0);
    segment.length = Program::memory_length;
    segment.writable = true;
    segment.grant = &grant;
    segment.granted = 1;
    net.client.vi().imports.push_back({net.server.handle(), net.server.address(0), segment});
    net.client.put_word(64, 100);
    const auto write = [&] {
        net.client.rdma(rdma_write, 64, 8, net.server.address(the_word), net.server.handle());
    };
    write();
    queue::Descriptor& added = net.ask(add(1));
    write();
    queue::Descriptor& read =
        net.client.rdma(rdma_read, 8, 8, net.server.address(the_word), net.server.handle());
    for (const Carried& frame : emit_all(net.pair.a))
        EXPECT_EQ(net.pair.b.take(frame), FrameVerdict::taken);
    net.pair.carry();
    EXPECT_EQ(status_of(added), add_done);
    EXPECT_EQ(net.client.word_at(0), 100U) << "behind the first write";
    EXPECT_EQ(net.server.word_at(the_word), 100U) << "before the second";
    EXPECT_EQ(status_of(read), read_done);
    EXPECT_EQ(net.client.word_at(8), 100U);
    EXPECT_EQ(net.pair.a.counters.get(Counter::direct_transfers), 1U) << "the first write";
    write();
    net.pair.carry();
    EXPECT_EQ(net.pair.a.counters.get(Counter::direct_transfers), 2U) << "all is answered";
}

}  // namespace
}  // namespace via::engine::test::atomic_test
