// Shared segments: asking, being asked, and RDMA that needs no frames.
#include "engine/fast_path.hpp"
#include "engine/pair_test.hpp"

namespace via::engine::test::attach_test {
namespace {

constexpr std::uint32_t grant_value = 7;

/// A guest on side a, an owner on side b, whose whole memory is the segment. The test is the NICs.
struct Attaching : testing::Test {
    Pair pair;
    Program guest{pair.a, attributes(Reliability::delivery)};
    Program owner{pair.b, attributes(Reliability::delivery)};
    Atomic<std::uint32_t> grant{grant_value};

    void SetUp() override { connect(pair, guest, owner); }

    std::uint32_t ask(bool writable = true) {
        const auto number = pair.a.engine.segments().begin_attach(guest.vi(), owner.handle(),
                                                                  owner.address(0), writable);
        EXPECT_TRUE(number);
        return number.value_or(0);
    }
    std::uint64_t cookie(std::uint32_t number) {
        return (std::uint64_t{number} << 32) | guest.vi().number();
    }
    Attachment segment(bool writable = true) {
        return {owner.at(0), Program::memory_length, writable, &grant, grant_value, nullptr};
    }
    /// The owner's NIC offers what it was asked for.
    void offer(bool writable = true) {
        AttachQuestion question;
        ASSERT_TRUE(pair.b.engine.segments().next_question(question));
        EXPECT_EQ(&owner.vi(), question.vi);
        EXPECT_EQ(owner.handle(), question.handle);
        EXPECT_EQ(writable, question.writable);
        EXPECT_TRUE(Segments::is_current(question));
        pair.a.engine.segments().on_attached(the_path, cookie(question.message), segment(writable));
        EXPECT_FALSE(pair.b.engine.segments().next_question(question));
    }
    Status outcome(std::uint32_t number) {
        Import import;
        return pair.a.engine.segments().take_attach(guest.vi(), number, import);
    }
    void attach(bool writable = true) {
        const std::uint32_t number = ask(writable);
        pair.carry();
        offer(writable);
        EXPECT_EQ(number, guest.vi().attaches_decided.load());
        ASSERT_EQ(Status::success, outcome(number));
    }
    queue::Descriptor& write(std::size_t from, std::uint32_t length, std::size_t to,
                             std::uint16_t control = 0) {
        return guest.rdma(queue::control::rdma_write | control, from, length, owner.address(to),
                          owner.handle());
    }
    std::uint64_t direct() { return pair.a.counters.get(Counter::direct_transfers); }
};

TEST_F(Attaching, RdmaToASegmentNeedsNoFrame) {
    attach();
    guest.fill(0, 3000, 1);
    const queue::Descriptor& written = write(0, 3000, 100);
    EXPECT_FALSE(pair.a.emit());
    EXPECT_EQ(write_done, status_of(written));
    EXPECT_TRUE(owner.holds(100, 3000, 1));
    const queue::Descriptor& read =
        guest.rdma(queue::control::rdma_read, 4000, 3000, owner.address(100), owner.handle());
    EXPECT_FALSE(pair.a.emit());
    EXPECT_EQ(read_done, status_of(read));
    EXPECT_TRUE(guest.holds(4000, 3000, 1));
    EXPECT_EQ(2U, direct());
}

/// A write of one segment that is posted alone takes the fast path (fast_path.cpp), if it may.
TEST_F(Attaching, ACommonWriteNeedsNoFrameEither) {
    FrameShape shape;
    const auto post = [&](std::size_t to, std::uint32_t length,
                          std::uint16_t control = 0) -> auto& {
        return guest.post_send(
            guest.make(queue::control::rdma_write | control,
                       {{owner.address(to), owner.handle(), 0}, guest.segment(0, length)}, length),
            false);
    };
    const auto goes_fast = [&] { return pair.a.engine.next_is_common(guest.vi(), shape); };
    const auto go_on = [&] {
        pair.a.engine.on_doorbell(guest.vi());
        pair.carry(true);
    };
    guest.fill(0, 3000, 1);
    post(0, 8);
    EXPECT_FALSE(goes_fast()) << "nothing is attached";
    go_on();
    attach();
    pair.carry();
    for (const std::uint32_t length : {3000U, 8U, 0U}) {
        const queue::Descriptor& written = post(100, length);
        ASSERT_TRUE(goes_fast());
        EXPECT_EQ(0U, shape.header_length);
        pair.a.engine.carry_out_common(guest.vi());
        EXPECT_EQ(write_done, status_of(written));
        EXPECT_TRUE(owner.holds(100, length, 1));
        EXPECT_FALSE(pair.a.emit());
    }
    EXPECT_EQ(3U, direct());
    post(0, 8, queue::control::immediate);
    EXPECT_FALSE(goes_fast()) << "the news travel";
    go_on();
    post(Program::memory_length - 4, 8);
    EXPECT_FALSE(goes_fast()) << "beyond the segment: the peer refuses it";
    grant.store(0);
    post(0, 8);
    EXPECT_FALSE(goes_fast()) << "the right is gone";
}

TEST_F(Attaching, ReadOnlyServesReadsAndLeavesWritesToFrames) {
    attach(false);
    guest.fill(0, 50, 1);
    const queue::Descriptor& written = write(0, 50, 0);
    const auto frame = pair.a.emit();
    ASSERT_TRUE(frame);
    EXPECT_EQ(write_done, status_of(written));
    EXPECT_EQ(0U, direct());
    // While nothing shows that it was placed, a read would overtake it.
    guest.rdma(queue::control::rdma_read, 100, 50, owner.address(0), owner.handle());
    const auto request = pair.a.emit();
    ASSERT_TRUE(request);
    EXPECT_EQ(wire::FrameKind::read_request, request->parsed().kind);
    pair.b.take(*frame);
    pair.b.take(*request);
    pair.carry();
    EXPECT_TRUE(owner.holds(0, 50, 1));
    EXPECT_TRUE(guest.holds(100, 50, 1));
    guest.rdma(queue::control::rdma_read, 200, 50, owner.address(0), owner.handle());
    EXPECT_FALSE(pair.a.emit()) << "the answer showed it";
    EXPECT_TRUE(guest.holds(200, 50, 1));
    EXPECT_EQ(1U, direct());
}

/// Data to any region of the owner, then a flag in the segment.
TEST_F(Attaching, AWriteDoesNotOvertakeOneThatWentByFrames) {
    Program other(pair.b, attributes(Reliability::delivery));
    attach();
    guest.fill(0, 100, 1);
    guest.rdma(queue::control::rdma_write, 0, 50, other.address(0), other.handle());
    const auto data = pair.a.emit();
    ASSERT_TRUE(data);
    const queue::Descriptor& flag = write(50, 8, 0);
    const auto behind = pair.a.emit();
    ASSERT_TRUE(behind);
    EXPECT_EQ(0U, direct());
    EXPECT_FALSE(owner.holds(0, 8, 1));
    pair.b.take(*data);
    EXPECT_TRUE(other.holds(0, 50, 1));
    pair.b.take(*behind);
    EXPECT_EQ(write_done, status_of(flag));
    EXPECT_EQ(std::memcmp(owner.at(0), guest.at(50), 8), 0);
    attach();  // a question that followed them tells, too
    write(0, 8, 0);
    EXPECT_FALSE(pair.a.emit());
    EXPECT_EQ(1U, direct());
}

TEST_F(Attaching, OrderWithFramesHolds) {
    guest.fill(0, 200, 1);
    guest.fill(200, 200, 2);
    write(0, 200, 0);  // four frames
    auto first = pair.a.emit();
    ASSERT_TRUE(first);
    const std::uint32_t number = ask();
    write(200, 200, 0);
    // The question comes behind the message that was begun, and what is behind it waits.
    std::vector<Carried> rest;
    while (auto frame = pair.a.emit()) rest.push_back(std::move(*frame));
    ASSERT_EQ(4U, rest.size());
    EXPECT_EQ(wire::FrameKind::attach_request, rest.back().parsed().kind);
    pair.b.take(*first);
    for (const Carried& frame : rest) EXPECT_EQ(FrameVerdict::taken, pair.b.take(frame));
    EXPECT_TRUE(owner.holds(0, 200, 1));
    offer();
    EXPECT_FALSE(pair.a.emit()) << "carried out without a frame";
    EXPECT_TRUE(owner.holds(0, 200, 2));
    EXPECT_EQ(Status::success, outcome(number));
}

/// The NIC publishes what others were sent before a message that goes without frames, and only
/// then.
TEST_F(Attaching, WhatGoesWithoutFramesIsForgottenWhenItWasCarriedOut) {
    attach();
    guest.fill(0, 50, 1);
    write(0, 50, 0);
    Engine& engine = pair.a.engine;
    FrameShape shape;
    ASSERT_TRUE(engine.outbound().next_frame(the_path, shape));
    EXPECT_TRUE(engine.outbound().goes_direct());
    engine.outbound().carry_out(the_path);
    EXPECT_FALSE(engine.outbound().goes_direct());

    write(0, 50, 0);  // found, but not carried out: something else comes first
    ASSERT_TRUE(engine.outbound().next_frame(the_path, shape));
    EXPECT_TRUE(engine.outbound().goes_direct());
    wire::Header stranger;
    stranger.kind = wire::FrameKind::accept;
    wire::ConnectMessage message{};
    message.reliability = 2;
    std::vector<std::byte> payload(sizeof message);
    std::memcpy(payload.data(), &message, sizeof message);
    pair.a.take(stranger, payload);
    ASSERT_TRUE(engine.outbound().next_frame(the_path, shape));
    EXPECT_EQ(shape.header_length, wire::header_length_base);
    EXPECT_FALSE(engine.outbound().goes_direct());
}

TEST_F(Attaching, ImmediateDataFollowsTheBytes) {
    attach();
    const queue::Descriptor& receive = owner.receive(8000, 10);
    guest.fill(0, 500, 3);
    queue::Descriptor& written =
        guest.make(queue::control::rdma_write | queue::control::immediate,
                   {{owner.address(20), owner.handle(), 0}, guest.segment(0, 500)}, 500);
    written.control.immediate_data = 42;
    guest.post_send(written);
    const auto frame = pair.a.emit();
    ASSERT_TRUE(frame);
    EXPECT_TRUE(frame->payload.empty());
    EXPECT_TRUE(owner.holds(20, 500, 3)) << "before the news";
    pair.b.take(*frame);
    EXPECT_EQ(
        queue::status::done | queue::status::operation_remote_rdma_write | queue::status::immediate,
        status_of(receive));
    EXPECT_EQ(500U, receive.control.length);
    EXPECT_EQ(42U, receive.control.immediate_data);
    EXPECT_EQ(write_done, status_of(written));
    // And the sequence goes on.
    owner.receive(0, 100);
    guest.send(0, 100);
    pair.carry();
    EXPECT_EQ(ViState::connected, owner.state());
}

TEST_F(Attaching, ReceptionLevelIsAcknowledgedAcrossBoth) {
    Program near{pair.a, attributes(Reliability::reception)};
    Program far{pair.b, attributes(Reliability::reception)};
    connect(pair, near, far);
    const auto number =
        pair.a.engine.segments().begin_attach(near.vi(), far.handle(), far.address(0), true);
    pair.carry();
    AttachQuestion question;
    ASSERT_TRUE(pair.b.engine.segments().next_question(question));
    pair.a.engine.segments().on_attached(
        the_path, (std::uint64_t{*number} << 32) | near.vi().number(),
        {far.at(0), Program::memory_length, true, &grant, grant_value, nullptr});
    far.receive(0, 10);
    far.receive(10, 10);
    const queue::Descriptor& first = near.send(0, 10);
    const queue::Descriptor& direct =
        near.rdma(queue::control::rdma_write, 0, 10, far.address(100), far.handle());
    const queue::Descriptor& last = near.send(0, 10);
    while (auto frame = pair.a.emit()) pair.b.take(*frame);
    EXPECT_EQ(0U, status_of(first));
    EXPECT_EQ(0U, status_of(direct)) << "completes in order";
    pair.carry();
    EXPECT_EQ(send_done, status_of(first));
    EXPECT_EQ(write_done, status_of(direct));
    EXPECT_EQ(send_done, status_of(last));
}

TEST_F(Attaching, WithdrawnGrantSendsRdmaByFramesAgain) {
    attach();
    grant.store(0);
    guest.fill(0, 10, 1);
    write(0, 10, 0);
    EXPECT_TRUE(pair.a.emit());
    EXPECT_EQ(0U, direct());
}

TEST_F(Attaching, WhatDoesNotFitGoesByFramesAndIsRefusedThere) {
    attach();
    write(0, 10, Program::memory_length - 9);
    EXPECT_EQ(0U, direct());
    pair.carry();
    EXPECT_EQ(ViState::error, guest.state());
    EXPECT_EQ((std::vector{ErrorCode::rdma_write_protection}), pair.b.events());
}

TEST_F(Attaching, TheFenceWaitsForReadsByFrames) {
    Program other{pair.b, attributes(Reliability::delivery)};  // memory that is no segment
    attach();
    guest.rdma(queue::control::rdma_read, 0, 10, other.address(0), other.handle());
    const queue::Descriptor& fenced = write(0, 10, 0, queue::control::queue_fence);
    const auto request = pair.a.emit();
    ASSERT_TRUE(request);
    EXPECT_FALSE(pair.a.emit());
    EXPECT_EQ(0U, direct());
    pair.b.take(*request);
    pair.carry();
    EXPECT_EQ(write_done, status_of(fenced));
    EXPECT_EQ(1U, direct());
}

TEST_F(Attaching, RefusalsSayWhy) {
    const struct {
        wire::AttachRefusal why;
        Status outcome;
    } cases[] = {{wire::AttachRefusal::no_right, Status::reject},
                 {wire::AttachRefusal::not_supported, Status::error_not_supported},
                 {wire::AttachRefusal::no_resource, Status::error_resource},
                 {static_cast<wire::AttachRefusal>(99), Status::reject}};
    for (const auto& one : cases) {
        const std::uint32_t number = ask();
        pair.carry();
        AttachQuestion question;
        ASSERT_TRUE(pair.b.engine.segments().next_question(question));
        pair.b.engine.segments().refuse_attach(question, one.why);
        pair.carry();
        EXPECT_EQ(one.outcome, outcome(number));
    }
    EXPECT_EQ(ViState::connected, guest.state());
}

TEST_F(Attaching, OneQuestionAtATimeAndItsAnswerOnly) {
    const std::uint32_t number = ask();
    EXPECT_EQ(Status::error_resource,
              pair.a.engine.segments()
                  .begin_attach(guest.vi(), owner.handle(), owner.address(0), true)
                  .error());
    pair.carry();
    EXPECT_TRUE(pair.a.engine.segments().expects_attachment(the_path, cookie(number)));
    EXPECT_FALSE(pair.a.engine.segments().expects_attachment(the_path, cookie(number + 1)));
    EXPECT_FALSE(pair.a.engine.segments().expects_attachment(the_path, cookie(number) + 1));
    EXPECT_FALSE(pair.a.engine.segments().expects_attachment(the_path + 1, cookie(number)));
    // Not what was asked: another question's, another VI's, another path's.
    pair.a.engine.segments().on_attached(the_path, cookie(number + 1), segment());
    pair.a.engine.segments().on_attached(the_path, cookie(number) + 1, segment());
    pair.a.engine.segments().on_attached(the_path + 1, cookie(number), segment());
    EXPECT_NE(number, guest.vi().attaches_decided.load());
    EXPECT_EQ(Status::timeout, outcome(number)) << "given up";
    EXPECT_EQ(Status::invalid_state, outcome(number)) << "and over";
    EXPECT_FALSE(pair.a.engine.segments().expects_attachment(the_path, cookie(number)));
    offer();  // too late
    guest.fill(0, 10, 1);
    write(0, 10, 0);
    EXPECT_TRUE(pair.a.emit());
    EXPECT_EQ(0U, direct());
}

TEST_F(Attaching, AnotherKindThanAskedForIsNoAnswer) {
    const std::uint32_t number = ask(true);
    pair.carry();
    pair.a.engine.segments().on_attached(the_path, cookie(number), segment(false));
    EXPECT_EQ(Status::reject, outcome(number));
}

TEST_F(Attaching, NoResourceHere) {
    const std::uint32_t number = ask(true);
    pair.carry();
    pair.a.engine.segments().on_attached(the_path, cookie(number), {});
    EXPECT_EQ(Status::error_resource, outcome(number));
}

TEST_F(Attaching, TheEndOfTheConnectionEndsAll) {
    attach();
    owner.vi().has_grants = true;
    const std::uint32_t number = ask();
    const std::uint32_t owner_number = owner.vi().number();
    pair.a.engine.disconnect(guest.vi());
    EXPECT_EQ(number, guest.vi().attaches_decided.load());
    EXPECT_EQ(Status::invalid_state, outcome(number));
    EXPECT_EQ(Status::invalid_state,
              pair.a.engine.segments()
                  .begin_attach(guest.vi(), owner.handle(), owner.address(0), true)
                  .error());
    EXPECT_TRUE(guest.vi().imports.empty());
    pair.carry();
    std::uint32_t parted = 0;
    ASSERT_TRUE(pair.b.engine.segments().next_parted(parted));
    EXPECT_EQ(owner_number, parted);
    EXPECT_FALSE(pair.b.engine.segments().next_parted(parted));
}

TEST_F(Attaching, ReleasedItGoesByFrames) {
    attach();
    pair.a.engine.segments().release_import(owner.at(0));
    write(0, 10, 0);
    EXPECT_TRUE(pair.a.emit());
}

// Lies --------------------------------------------------------------------------------------------

struct LyingGuest : Attaching {
    wire::Header header(wire::FrameKind kind, std::uint8_t flags) {
        wire::Header result;
        result.kind = kind;
        result.flags = flags;
        result.vi = owner.vi().number();
        result.remote_address = owner.address(0);
        result.remote_handle = owner.handle();
        return result;
    }
    void expect_broken(const wire::Header& lie, std::vector<std::byte> payload = {}) {
        EXPECT_EQ(FrameVerdict::refused, pair.b.take(lie, std::move(payload)));
        EXPECT_EQ(ViState::error, owner.state());
    }
};

constexpr std::uint8_t remote = wire::flag::extent | wire::flag::remote;
constexpr std::uint8_t news =
    remote | wire::flag::first | wire::flag::last | wire::flag::immediate | wire::flag::placed;

TEST_F(LyingGuest, QuestionWithoutAPlace) {
    expect_broken(header(wire::FrameKind::attach_request, 0));
}
TEST_F(LyingGuest, QuestionWithPayload) {
    expect_broken(header(wire::FrameKind::attach_request, remote), std::vector<std::byte>(8));
}
TEST_F(LyingGuest, QuestionForMoreThanWriting) {
    wire::Header lie = header(wire::FrameKind::attach_request, remote);
    lie.immediate_or_code = 2;
    expect_broken(lie);
}
TEST_F(LyingGuest, NewsOfAnotherKindOfMessage) {
    expect_broken(header(wire::FrameKind::send, news));
}
TEST_F(LyingGuest, NewsWithoutImmediateData) {
    expect_broken(header(wire::FrameKind::rdma_write,
                         static_cast<std::uint8_t>(news & ~wire::flag::immediate)));
}
TEST_F(LyingGuest, NewsWithPayload) {
    expect_broken(header(wire::FrameKind::rdma_write, news), std::vector<std::byte>(8));
}
TEST_F(LyingGuest, NewsOutOfSequence) {
    wire::Header lie = header(wire::FrameKind::rdma_write, news);
    lie.message = 1;
    expect_broken(lie);
}
TEST_F(LyingGuest, NewsOfMoreThanAgreed) {
    wire::Header lie = header(wire::FrameKind::rdma_write, news);
    lie.message_length = 4097;
    expect_broken(lie);
}
TEST_F(LyingGuest, NewsWithinAnotherMessage) {
    owner.receive(0, 100);
    wire::Header begun = header(wire::FrameKind::send, wire::flag::first | wire::flag::extent);
    begun.message_length = 20;
    ASSERT_EQ(FrameVerdict::taken, pair.b.take(begun, std::vector<std::byte>(10)));
    expect_broken(header(wire::FrameKind::rdma_write, news));
}
TEST_F(LyingGuest, AnswerToNoQuestionIsIgnored) {
    EXPECT_EQ(FrameVerdict::stale, pair.b.take(header(wire::FrameKind::attach_refuse, 0)));
    pair.b.engine.segments().on_attached(the_path, owner.vi().number(), segment());
    EXPECT_TRUE(owner.vi().imports.empty());
}
TEST_F(LyingGuest, ForeignMemoryIsRefusedAndTheConnectionStays) {
    wire::Header lie = header(wire::FrameKind::attach_request, remote);
    for (const std::uint32_t handle : {0U, owner.handle() + 1, 0x7FFFFFFFU}) {
        lie.remote_handle = handle;
        EXPECT_EQ(FrameVerdict::taken, pair.b.take(lie));
    }
    lie.remote_handle = owner.handle();
    lie.remote_address += 8;
    EXPECT_EQ(FrameVerdict::taken, pair.b.take(lie));
    AttachQuestion question;
    EXPECT_FALSE(pair.b.engine.segments().next_question(question));
    EXPECT_EQ(ViState::connected, owner.state());
    EXPECT_EQ(4U, pair.b.counters.get(Counter::rdma_refused));
}

}  // namespace
}  // namespace via::engine::test::attach_test
