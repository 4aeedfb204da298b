// Every checker bites: each is fed histories that are broken in one way, and one that is not.
#include "sim/checkers.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <initializer_list>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "sim/check_atomics.hpp"
#include "sim/check_bound.hpp"
#include "sim/check_bytes.hpp"
#include "sim/check_completion.hpp"
#include "sim/check_exactly_once.hpp"
#include "sim/check_liveness.hpp"
#include "sim/check_order.hpp"
#include "sim/check_protection.hpp"
#include "sim/check_state.hpp"

namespace via::sim::checkers_test {
namespace {

namespace status = queue::status;

/// Feeds the happenings, one nanosecond apart, and ends the run; what the checker said.
template <class AChecker>
std::string verdict(std::initializer_list<Happening> history, bool finish = true) {
    AChecker checker;
    Time now{};
    for (const Happening& what : history) checker.observe({now = now + nanoseconds(1), what});
    if (finish) checker.finish(now);
    return checker.violation();
}

#define EXPECT_GOOD(what) EXPECT_EQ(what, "")
#define EXPECT_BITES(what, words) EXPECT_NE((what).find(words), std::string::npos) << (what)

std::vector<std::byte> bytes_of(std::initializer_list<int> values) {
    std::vector<std::byte> bytes;
    for (int value : values) bytes.push_back(static_cast<std::byte>(value));
    return bytes;
}
const std::vector<std::byte> abc = bytes_of({1, 2, 3});
const std::vector<std::byte> abd = bytes_of({1, 2, 4});
const std::vector<std::byte> ab = bytes_of({1, 2});

Posted posted_send(WorkNumber work, Reliability level = Reliability::delivery,
                   std::uint32_t fault = 0, std::uint32_t operation = status::operation_send) {
    return {work, 0, false, operation, fault, ViState::connected, level};
}
Posted posted_receive(WorkNumber work, std::uint32_t fault = 0) {
    return {
        work, 0, true, status::operation_receive, fault, ViState::connected, Reliability::delivery};
}
// bytes -------------------------------------------------------------------------------------------

TEST(CheckBytes, delivered_is_what_was_sent) {
    EXPECT_GOOD(verdict<CheckBytes>({Sent{1, 0, true, abc}, Delivered{1, 0, abc}}));
    EXPECT_BITES((verdict<CheckBytes>({Sent{1, 0, true, abc}, Delivered{1, 0, abd}})),
                 "differs at byte 2");
    EXPECT_BITES((verdict<CheckBytes>({Sent{1, 0, true, abc}, Delivered{1, 0, ab}})), "2 arrived");
}

TEST(CheckBytes, nothing_else_is_touched) {
    EXPECT_GOOD(verdict<CheckBytes>({Opened{7, 0, 100, 10, false}, Opened{8, 0, 110, 10, true},
                                     Changed{0, 100, 20}, Closed{7}, Changed{0, 110, 10}}));
    EXPECT_BITES((verdict<CheckBytes>({Changed{0, 5, 1}})), "byte 5");
    EXPECT_BITES((verdict<CheckBytes>({Opened{7, 0, 100, 10, false}, Changed{0, 105, 6}})),
                 "byte 110");
    EXPECT_BITES((verdict<CheckBytes>({Opened{7, 1, 100, 10, false}, Changed{0, 100, 1}})),
                 "byte 100");
    EXPECT_BITES(
        (verdict<CheckBytes>({Opened{7, 0, 100, 10, false}, Closed{7}, Changed{0, 100, 1}})),
        "byte 100");
}

// exactly once ------------------------------------------------------------------------------------

TEST(CheckExactlyOnce, once_and_there) {
    EXPECT_GOOD(verdict<CheckExactlyOnce>(
        {Sent{1, 0, true, abc}, Sent{2, 0, false, abc}, Delivered{1, 0, abc}, Quiet{0}}));
    EXPECT_BITES((verdict<CheckExactlyOnce>(
                     {Sent{1, 0, true, abc}, Delivered{1, 0, abc}, Delivered{1, 0, abc}})),
                 "delivered twice");
    EXPECT_BITES((verdict<CheckExactlyOnce>({Delivered{1, 0, abc}})), "never sent");
    EXPECT_BITES((verdict<CheckExactlyOnce>({Sent{1, 0, true, abc}, Delivered{1, 1, abc}})),
                 "on channel 1");
    EXPECT_BITES((verdict<CheckExactlyOnce>({Sent{1, 0, true, abc}, Sent{2, 0, true, abc},
                                             Delivered{2, 0, abc}, Quiet{0}})),
                 "message 1 of channel 0 was never delivered");
    EXPECT_GOOD(verdict<CheckExactlyOnce>({Sent{1, 0, true, abc}, Quiet{1}}));
}

// order -------------------------------------------------------------------------------------------

TEST(CheckOrder, as_posted) {
    EXPECT_GOOD(
        verdict<CheckOrder>({Sent{1, 0, true, abc}, Sent{2, 1, true, abc}, Sent{3, 0, true, abc},
                             Delivered{2, 1, abc}, Delivered{1, 0, abc}, Delivered{3, 0, abc}}));
    EXPECT_BITES(
        (verdict<CheckOrder>({Sent{1, 0, true, abc}, Sent{2, 0, true, abc}, Delivered{2, 0, abc}})),
        "message 2 arrived before message 1");
    EXPECT_BITES(
        (verdict<CheckOrder>({Sent{1, 0, true, abc}, Delivered{1, 0, abc}, Delivered{1, 0, abc}})),
        "or again");
    EXPECT_GOOD(verdict<CheckOrder>(
        {Sent{1, 0, false, abc}, Sent{2, 0, false, abc}, Delivered{2, 0, abc}}));
    EXPECT_BITES((verdict<CheckOrder>({Sent{1, 0, false, abc}, Sent{2, 0, false, abc},
                                       Delivered{2, 0, abc}, Delivered{1, 0, abc}})),
                 "message 1 arrived after a later one");
}

TEST(CheckOrder, what_goes_straight_to_memory_may_overtake_what_is_sent_and_not_what_is_written) {
    const Sent send{1, 0, true, abc};
    const Sent write{2, 0, true, abc, false, true};
    const Sent next_write{3, 0, true, abc, false, true};
    EXPECT_GOOD(
        verdict<CheckOrder>({send, write, Delivered{2, 0, abc, true}, Delivered{1, 0, abc}}));
    EXPECT_BITES((verdict<CheckOrder>({send, write, Delivered{2, 0, abc}})),
                 "message 2 arrived before message 1");
    EXPECT_BITES((verdict<CheckOrder>({write, next_write, Delivered{3, 0, abc, true}})),
                 "message 3 arrived before message 2");
    EXPECT_BITES(
        (verdict<CheckOrder>({write, Delivered{2, 0, abc, true}, Delivered{2, 0, abc, true}})),
        "or again");
    // What is sent behind a write finds it there.
    const Sent behind{4, 0, true, abc};
    EXPECT_BITES((verdict<CheckOrder>({write, behind, Delivered{4, 0, abc}})),
                 "message 4 arrived before message 2");
}

TEST(CheckOrder, a_read_whose_bytes_are_there_holds_no_fence_back) {
    EXPECT_GOOD(
        verdict<CheckOrder>({posted_send(1, Reliability::delivery, 0, status::operation_rdma_read),
                             RdmaAsked{1, 9, 1, 2, 0, 8, false}, posted_send(2),
                             Sent{2, 0, true, abc, true}, ReadLanded{1}, Delivered{2, 0, abc}},
                            false));
}

TEST(CheckOrder, fence_waits_for_reads) {
    const Posted read = posted_send(1, Reliability::delivery, 0, status::operation_rdma_read);
    const RdmaAsked asked{1, 5, 0, 77, 1000, 100, false};
    const Sent fenced{2, 0, true, abc, true};
    const Completed read_done{1, status::done | status::operation_rdma_read, false};
    EXPECT_GOOD(verdict<CheckOrder>(
        {read, asked, posted_send(2), fenced, read_done, Delivered{2, 0, abc}}));
    EXPECT_BITES((verdict<CheckOrder>({read, asked, posted_send(2), fenced, Delivered{2, 0, abc}})),
                 "RDMA read 1 was still under way");
    // A read that was posted later, or a message without fence: nothing to wait for.
    EXPECT_GOOD(verdict<CheckOrder>({posted_send(2), fenced, read, asked, Delivered{2, 0, abc}}));
    EXPECT_GOOD(verdict<CheckOrder>(
        {read, asked, posted_send(2), Sent{2, 0, true, abc}, Delivered{2, 0, abc}}));
}

// completion --------------------------------------------------------------------------------------

constexpr std::uint32_t done = status::done;

TEST(CheckCompletion, once_in_order_and_given_back) {
    EXPECT_GOOD(verdict<CheckCompletion>(
        {posted_send(1), posted_receive(2), posted_send(3), Completed{1, done, false}, Taken{1},
         Completed{3, done, false}, Completed{2, done | status::operation_receive, false}, Taken{3},
         Taken{2}}));
    EXPECT_BITES(
        (verdict<CheckCompletion>({posted_send(1), posted_send(2), Completed{2, done, false}})),
        "before work 1");
    EXPECT_BITES((verdict<CheckCompletion>(
                     {posted_send(1), Completed{1, done, false}, Completed{1, done, false}})),
                 "completed again");
    EXPECT_BITES((verdict<CheckCompletion>({Completed{1, done, false}})), "never posted");
    EXPECT_BITES((verdict<CheckCompletion>({posted_send(1)})), "never completed");
    EXPECT_BITES((verdict<CheckCompletion>({posted_send(1), Completed{1, done, false}})),
                 "never given back");
    EXPECT_BITES((verdict<CheckCompletion>({posted_send(1), Taken{1}})), "before it was its turn");
    EXPECT_BITES(
        (verdict<CheckCompletion>({posted_send(1), posted_send(2), Completed{1, done, false},
                                   Completed{2, done, false}, Taken{2}})),
        "before it was its turn");
}

std::string bits(const Posted& posted, std::uint32_t bits, bool placed = true) {
    return verdict<CheckCompletion>(
        {posted, Completed{posted.work, bits, placed}, Taken{posted.work}});
}

TEST(CheckCompletion, status_bits_must_be_possible) {
    EXPECT_GOOD(bits(posted_send(1), done));
    EXPECT_GOOD(bits(posted_send(1), done | status::flushed));
    EXPECT_GOOD(bits(posted_send(1), done | status::transport_error));
    EXPECT_GOOD(
        bits(posted_receive(1), done | status::operation_remote_rdma_write | status::immediate));
    EXPECT_GOOD(bits(posted_send(1, Reliability::delivery, status::length_error),
                     done | status::length_error));
    EXPECT_BITES(bits(posted_send(1), 0), "not DONE");
    EXPECT_BITES(bits(posted_send(1), done | 0x200), "not DONE alone");
    EXPECT_BITES(bits(posted_send(1), done | status::flushed | status::transport_error),
                 "more than one");
    EXPECT_BITES(bits(posted_send(1), done | status::operation_rdma_write), "another operation");
    EXPECT_BITES(bits(posted_receive(1), done), "another operation");
    EXPECT_BITES(bits(posted_send(1), done | status::immediate), "IMMEDIATE");
    EXPECT_BITES(bits(posted_send(1, Reliability::delivery, status::length_error), done),
                 "fault was not found");
    EXPECT_BITES(bits(posted_send(1), done | status::format_error), "nothing was wrong");
    EXPECT_BITES(bits(posted_send(1), done | status::length_error), "its length was right");
    EXPECT_BITES(
        bits(posted_receive(1), done | status::operation_receive | status::remote_descriptor_error),
        "an error of sends");
    EXPECT_BITES(bits(posted_send(1, Reliability::unreliable), done | status::transport_error),
                 "unreliable");
    EXPECT_BITES(bits(posted_send(1), done | status::rdma_protection_error), "error of RDMA");
}

TEST(CheckCompletion, reliable_reception_is_done_when_placed) {
    EXPECT_GOOD(bits(posted_send(1, Reliability::reception), done, true));
    EXPECT_BITES(bits(posted_send(1, Reliability::reception), done, false), "before it was placed");
    EXPECT_GOOD(bits(posted_send(1, Reliability::reception, 0, status::operation_rdma_read),
                     done | status::operation_rdma_read, false));
    EXPECT_GOOD(bits(posted_send(1, Reliability::delivery), done, false));
}

// protection --------------------------------------------------------------------------------------

constexpr memory::MemoryHandle handle = 77;
constexpr memory::MemoryHandle other_handle = 78;

Granted granted(bool write, bool read, memory::ProtectionTag tag = memory::no_tag,
                memory::MemoryHandle of = handle, std::uint64_t begin = 1000) {
    return {0, of, begin, 100, {tag, write, read}};
}
ViMade made(bool write, bool read, memory::ProtectionTag tag = memory::no_tag) {
    engine::ViAttributes attributes;
    attributes.rdma_write = write;
    attributes.rdma_read = read;
    attributes.tag = tag;
    return {5, 0, attributes};
}
RdmaAsked asked(bool write, std::uint64_t begin = 1000, std::uint64_t length = 100) {
    return {1, 5, 0, handle, begin, length, write};
}
constexpr std::uint32_t write_done = done | status::operation_rdma_write;
constexpr std::uint32_t read_done = done | status::operation_rdma_read;

TEST(CheckProtection, changes_lie_within_regions) {
    EXPECT_GOOD(verdict<CheckProtection>(
        {granted(true, false), Opened{1, 0, 1000, 100, true}, Changed{0, 1000, 100}}));
    EXPECT_GOOD(verdict<CheckProtection>(
        {granted(false, false), Opened{1, 0, 1000, 100, false}, Changed{0, 1000, 100}}));
    EXPECT_BITES((verdict<CheckProtection>({Opened{1, 0, 1000, 100, false}, Changed{0, 1000, 1}})),
                 "no region allows it");
    EXPECT_BITES((verdict<CheckProtection>(
                     {granted(false, true), Opened{1, 0, 1000, 100, true}, Changed{0, 1000, 1}})),
                 "no region allows it");
    EXPECT_BITES((verdict<CheckProtection>({granted(true, false), Revoked{0, handle},
                                            Opened{1, 0, 1000, 100, true}, Changed{0, 1000, 1}})),
                 "no region allows it");
    EXPECT_BITES((verdict<CheckProtection>(
                     {granted(true, false), Opened{1, 0, 1050, 100, true}, Changed{0, 1050, 60}})),
                 "byte 1100");
    // Two regions side by side carry a change together.
    EXPECT_GOOD(verdict<CheckProtection>({granted(true, false),
                                          granted(true, false, memory::no_tag, other_handle, 1100),
                                          Opened{1, 0, 1050, 100, true}, Changed{0, 1050, 100}}));
}

TEST(CheckProtection, operations_succeed_only_if_allowed) {
    const Completed placed{1, write_done, true};
    EXPECT_GOOD(
        verdict<CheckProtection>({granted(true, false), made(true, false), asked(true), placed}));
    const auto bites = [&](std::initializer_list<Happening> history) {
        EXPECT_BITES(verdict<CheckProtection>(history), "never allowed");
    };
    bites({made(true, false), asked(true), placed});
    bites({granted(false, true), made(true, true), asked(true), placed});
    bites({granted(true, false), made(false, true), asked(true), placed});
    bites({granted(true, false), made(true, false), asked(true, 1000, 101), placed});
    bites({granted(true, false), made(true, false), asked(true, 999, 10), placed});
    bites({granted(true, false), made(true, false), asked(true, 1001, 100), placed});
    bites({granted(true, false), made(true, false), asked(true, 0 - 50ULL, 1100), placed});
    bites({granted(true, false), made(true, false), asked(true, 0 - 1ULL, 2), placed});
    bites({granted(true, false), made(true, false), asked(true, 1000, 0 - 10ULL), placed});
    bites({granted(true, false, 3), made(true, false, 4), asked(true), placed});
    bites({granted(true, false, 3), made(true, false, 3), granted(true, false, 4),
           RdmaAsked{1, 5, 0, other_handle, 1000, 100, true}, placed});
    bites({granted(true, false), Revoked{0, handle}, made(true, false), asked(true), placed});
    bites({granted(true, true), made(true, false), asked(false), Completed{1, read_done, false}});
    bites({granted(true, false), made(false, false), asked(true), Delivered{1, 0, abc}});
    // Published is not carried out: Reliable Delivery says nothing about the target.
    EXPECT_GOOD(verdict<CheckProtection>(
        {made(true, false), asked(true), Completed{1, write_done, false}}));
    EXPECT_GOOD(verdict<CheckProtection>(
        {granted(true, false, 3), made(true, false), asked(true), placed}));
    EXPECT_GOOD(verdict<CheckProtection>({made(true, false), asked(true, 0, 0), placed}));
}

TEST(CheckProtection, operations_are_refused_only_if_not_allowed) {
    const Completed refused{1, write_done | status::rdma_protection_error, false};
    EXPECT_BITES(
        (verdict<CheckProtection>({granted(true, false), made(true, false), asked(true), refused})),
        "allowed all the time");
    EXPECT_GOOD(verdict<CheckProtection>({made(true, false), asked(true), refused}));
    EXPECT_GOOD(verdict<CheckProtection>(
        {granted(true, false), made(true, false), asked(true), Revoked{0, handle}, refused}));
    EXPECT_GOOD(verdict<CheckProtection>({granted(true, false), made(true, false), asked(true),
                                          granted(false, false), granted(true, false), refused}));
}

// state -------------------------------------------------------------------------------------------

constexpr ViState idle = ViState::idle;
constexpr ViState pending = ViState::connect_pending;
constexpr ViState connected = ViState::connected;
constexpr ViState error = ViState::error;
constexpr ViState all_states[] = {idle, connected, pending, error};

StateChanged change(ViState from, ViState to, Cause cause) { return {5, from, to, cause}; }

TEST(CheckState, only_legal_transitions) {
    // VIPL 3; pending to error is the two steps of one turn.
    const std::vector<std::tuple<Cause, ViState, ViState>> legal = {
        {Cause::turn, pending, idle},     {Cause::turn, pending, connected},
        {Cause::turn, pending, error},    {Cause::turn, connected, error},
        {Cause::connect, idle, pending},  {Cause::accept, idle, connected},
        {Cause::accept, idle, error},     {Cause::disconnect, pending, idle},
        {Cause::disconnect, error, idle}, {Cause::disconnect, connected, idle},
    };
    for (Cause cause : {Cause::turn, Cause::connect, Cause::accept, Cause::disconnect}) {
        for (ViState from : all_states) {
            for (ViState to : all_states) {
                if (from == to) continue;
                CheckState checker;
                Time now{};
                const auto feed = [&](const Happening& what) {
                    checker.observe({now = now + nanoseconds(1), what});
                };
                feed(made(false, false));
                if (from != idle) feed(change(idle, pending, Cause::connect));
                if (from == connected) feed(change(pending, connected, Cause::turn));
                if (from == error) feed(change(pending, error, Cause::turn));
                ASSERT_EQ(checker.violation(), "");
                feed(change(from, to, cause));
                const bool good = std::find(legal.begin(), legal.end(),
                                            std::tuple{cause, from, to}) != legal.end();
                EXPECT_EQ(checker.violation().empty(), good)
                    << to_text(change(from, to, cause)) << ": " << checker.violation();
            }
        }
    }
}

TEST(CheckState, states_follow_each_other) {
    EXPECT_BITES((verdict<CheckState>({made(false, false), change(connected, error, Cause::turn)})),
                 "known as idle");
}

TEST(CheckState, lost_is_told_once_and_in_error_only) {
    const auto up = change(idle, connected, Cause::accept);
    const auto broken = change(connected, error, Cause::turn);
    EXPECT_GOOD(verdict<CheckState>({made(false, false), up, broken, Lost{5}}));
    EXPECT_BITES((verdict<CheckState>({made(false, false), up, Lost{5}})), "in state connected");
    EXPECT_BITES((verdict<CheckState>({made(false, false), up, broken, Lost{5}, Lost{5}})),
                 "again");
    EXPECT_BITES((verdict<CheckState>({made(false, false), up,
                                       change(connected, idle, Cause::disconnect), Lost{5}})),
                 "in state idle");
    EXPECT_GOOD(verdict<CheckState>({made(false, false), up, broken, Lost{5},
                                     change(error, idle, Cause::disconnect), up, broken, Lost{5}}));
}

TEST(CheckState, posts_that_go_nowhere_are_flushed_at_once) {
    Posted posted = posted_send(1);
    posted.state = idle;
    CheckState good;
    good.observe({Time{1}, posted});
    good.observe({Time{1}, Completed{1, done | status::flushed, false}});
    good.observe({Time{2}, Stopped{}});
    EXPECT_GOOD(good.violation());
    CheckState late;
    late.observe({Time{1}, posted});
    late.observe({Time{2}, Completed{1, done | status::flushed, false}});
    EXPECT_BITES(late.violation(), "not flushed at once");
    CheckState otherwise;
    otherwise.observe({Time{1}, posted});
    otherwise.observe({Time{1}, Completed{1, done, false}});
    EXPECT_BITES(otherwise.violation(), "completed with status 1");
    Posted receive = posted_receive(2);
    receive.state = error;
    EXPECT_BITES((verdict<CheckState>({receive, Stopped{}})), "not flushed at once");
    receive.state = idle;
    EXPECT_GOOD(verdict<CheckState>({receive, Stopped{}}));
}

TEST(CheckState, nothing_is_left_posted_on_a_vi_that_broke_or_was_disconnected) {
    Posted receive = posted_receive(1);
    receive.vi = 5;
    const auto up = change(idle, connected, Cause::accept);
    const Completed flushed{1, done | status::operation_receive | status::flushed, false};
    EXPECT_BITES((verdict<CheckState>(
                     {made(false, false), up, receive, change(connected, error, Cause::turn)})),
                 "work 1 was not flushed");
    EXPECT_BITES((verdict<CheckState>({made(false, false), up, receive,
                                       change(connected, idle, Cause::disconnect)})),
                 "work 1 was not flushed");
    EXPECT_GOOD(verdict<CheckState>(
        {made(false, false), up, receive, flushed, change(connected, error, Cause::turn)}));
    // A refused request leaves the receives where they are.
    EXPECT_GOOD(verdict<CheckState>({made(false, false), change(idle, pending, Cause::connect),
                                     receive, change(pending, idle, Cause::turn)}));
}

TEST(CheckState, calls_answer_what_they_must) {
    EXPECT_GOOD(verdict<CheckState>({Called{"X", Status::timeout, Status::timeout}}));
    EXPECT_BITES((verdict<CheckState>({Called{"X", Status::timeout, Status::success}})),
                 "X answered \"timeout\" instead of \"success\"");
}

// liveness ----------------------------------------------------------------------------------------

TEST(CheckLiveness, everything_ends_in_time) {
    const auto run = [](Time completed_at, bool receive_flushed) {
        CheckLiveness checker;
        checker.observe({Time{1}, posted_send(1)});
        checker.observe({Time{1}, posted_receive(2)});
        checker.observe({Time{10}, Stopped{nanoseconds(100)}});
        checker.observe({completed_at, Completed{1, done, true}});
        if (receive_flushed)
            checker.observe({Time{500}, Completed{2, done | status::flushed, false}});
        checker.observe({Time{500}, Emptied{}});
        checker.finish(Time{500});
        return checker.violation();
    };
    EXPECT_GOOD(run(Time{110}, true));
    EXPECT_BITES(run(Time{111}, true), "work 1 is still under way");
    EXPECT_BITES(run(Time{110}, false), "work 2 was not flushed");
    EXPECT_BITES((verdict<CheckLiveness>({posted_send(1), Stopped{nanoseconds(1000)}, Rested{}})),
                 "work 1 is still under way");
    EXPECT_GOOD(verdict<CheckLiveness>({posted_send(1), Stopped{nanoseconds(1000)},
                                        Completed{1, done, true}, Rested{}, Emptied{}}));
    EXPECT_BITES((verdict<CheckLiveness>({Stopped{nanoseconds(1000)}})), "did not come to its end");
}

// bound -------------------------------------------------------------------------------------------

TEST(CheckBound, no_turn_does_too_much) {
    EXPECT_GOOD(verdict<CheckBound>({TurnDone{0, 8, 8, 100, 100}}));
    EXPECT_BITES((verdict<CheckBound>({TurnDone{0, 9, 8, 100, 100}})), "9 frames");
    EXPECT_BITES((verdict<CheckBound>({TurnDone{0, 8, 8, 101, 100}})), "101 bytes");
}

// atomics -----------------------------------------------------------------------------------------

TEST(CheckAtomics, each_is_carried_out_once) {
    const WordMade made{1, 100};
    const WordAsked first{1, 1, 0, 5, {}};
    const WordAsked second{2, 1, 0, 7, {}};
    const WordAsked swap{3, 1, 2, 1, 105};
    EXPECT_GOOD(verdict<CheckAtomics>({made, first, second, swap, WordFound{1, 100},
                                       WordFound{3, 105}, WordFound{2, 106}, WordEnded{1, 113}}));
    EXPECT_GOOD(verdict<CheckAtomics>(
        {made, first, swap, WordFound{1, 100}, WordFound{3, 100}, WordEnded{1, 105}}));
    EXPECT_BITES((verdict<CheckAtomics>({made, first, WordFound{1, 100}, WordEnded{1, 110}})),
                 "grew by 5 more");
    EXPECT_BITES((verdict<CheckAtomics>({made, first, WordFound{1, 101}, WordEnded{1, 106}})),
                 "grew by 1 more");
    EXPECT_BITES((verdict<CheckAtomics>({made, first, WordFound{1, 100}, WordEnded{1, 100}})),
                 "ended as 100");
    EXPECT_BITES((verdict<CheckAtomics>({made, first, WordAsked{2, 1, 2, 7, {}}, WordFound{1, 100},
                                         WordFound{2, 100}, WordEnded{1, 107}})),
                 "another one left it");
    EXPECT_BITES((verdict<CheckAtomics>({made, first, second, WordFound{1, 107}, WordFound{2, 100},
                                         WordEnded{1, 112}})),
                 "an earlier one of its VI left 112");
    EXPECT_BITES((verdict<CheckAtomics>({made, first, WordFound{1, 100}, WordFound{1, 100}})),
                 "brought something again");
    EXPECT_BITES((verdict<CheckAtomics>({made})), "did not end");
}

TEST(CheckAtomics, those_not_heard_of_were_carried_out_or_not) {
    const auto run = [](std::uint64_t last) {
        return verdict<CheckAtomics>({WordMade{1, 100}, WordAsked{1, 1, 0, 5, {}},
                                      WordAsked{2, 1, 0, 7, {}}, WordFound{1, 100},
                                      WordEnded{1, last}});
    };
    EXPECT_GOOD(run(105));
    EXPECT_GOOD(run(112));
    EXPECT_BITES(run(113), "grew by 1 more");
}

// all together ------------------------------------------------------------------------------------

TEST(Checkers, the_first_violation_is_kept_and_traced) {
    std::string text;
    Trace trace;
    trace.set_sink([&](std::string_view line) { text += line; });
    Checkers checkers(trace);
    checkers.observe(Time{5}, TurnDone{0, 1, 8, 1, 100});
    EXPECT_FALSE(checkers.failed());
    checkers.observe(Time{6}, TurnDone{0, 9, 8, 1, 100});
    checkers.observe(Time{7}, Called{"X", Status::timeout, Status::success});
    EXPECT_EQ(checkers.violation(),
              "bound: node 0 moved 9 frames in one turn, at most 8 are allowed");
    EXPECT_EQ(text,
              "5 turn node=0 frames=1 bytes=1\n"
              "6 turn node=0 frames=9 bytes=1\n"
              "6 violation of bound: node 0 moved 9 frames in one turn, at most 8 are allowed\n"
              "7 called X: timeout\n");
}

}  // namespace
}  // namespace via::sim::checkers_test
