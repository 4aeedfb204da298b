// Traces: what is written is read, what nobody writes is refused, and a design sees the addresses.
#include <gtest/gtest.h>

#include <algorithm>

#include "base/random.hpp"
#include "lab/file/machine_file.hpp"
#include "lab/study/bench.hpp"
#include "lab/study/replay.hpp"
#include "lab/study/sweep.hpp"
#include "lab/study/trace_rows.hpp"

namespace via::lab::study::trace_test {

constexpr std::uint64_t base = 0x7f0000000000;

/// Two processes; the first sends and writes, so many times, to pages of the second one in turn.
Trace example(std::uint64_t pages, int rounds) {
    Trace trace;
    trace.processes = 2;
    trace.connections = {{0, 1}};
    trace.events.push_back({TraceKind::register_memory, 1, 0, 0, {{base, pages * 4096}}});
    for (int n = 0; n < rounds; ++n) {
        const std::uint64_t page = base + static_cast<std::uint64_t>(n) % pages * 4096;
        trace.events.push_back({TraceKind::receive, 1, 0, 0, {{page, 2048}, {page + 2048, 2048}}});
        trace.events.push_back({TraceKind::send, 0, 0, 0, {{base, 4096}}});
        trace.events.push_back({TraceKind::rdma_write, 0, 0, page, {{base + 64, 100}}});
    }
    trace.events.push_back({TraceKind::deregister_memory, 1, 0, 0, {{base, 0}}});
    return trace;
}

Machine mini() { return file::load("mini").value(); }

TEST(LabTrace, WhatIsWrittenIsRead) {
    const Trace trace = example(8, 20);
    const auto read = decode(encode(trace));
    ASSERT_TRUE(read.has_value()) << read.error();
    EXPECT_EQ(read->processes, trace.processes);
    EXPECT_EQ(read->connections, trace.connections);
    EXPECT_EQ(read->events, trace.events);
    EXPECT_EQ(encode(*read), encode(trace));
}

TEST(LabTrace, EveryPartOfATraceAloneIsRefused) {
    const std::string bytes = encode(example(3, 4));
    for (std::size_t length = 0; length < bytes.size(); ++length)
        EXPECT_FALSE(decode(std::string_view(bytes).substr(0, length)).has_value()) << length;
    EXPECT_FALSE(decode(bytes + "x").has_value());
}

TEST(LabTrace, BytesThatAnybodyWroteAreRefusedOrAreATrace) {
    const std::string good = encode(example(3, 4));
    Random random(7);
    int refused = 0;
    for (int n = 0; n < 20'000; ++n) {
        std::string bytes = good;
        for (std::uint64_t flips = random.between(1, 4); flips > 0; --flips) {
            const auto at = static_cast<std::size_t>(random.below(bytes.size()));
            bytes[at] = static_cast<char>(random.below(256));
        }
        const auto read = decode(bytes);
        refused += read ? 0 : 1;
        EXPECT_TRUE(!read || encode(*read) == bytes) << "one way alone to write it";
    }
    EXPECT_GT(refused, 5'000);
}

TEST(LabTrace, SaysWhatIsWrong) {
    EXPECT_EQ(decode("no").error(), "this is no trace");
    Trace trace = example(1, 1);
    trace.processes = 3;
    trace.events[1].process = 2;
    const auto read = decode(encode(trace));
    ASSERT_FALSE(read.has_value());
    EXPECT_NE(read.error().find("a post on others' connection"), std::string::npos);
}

/// As example(), with one more message of so many bytes.
std::string with_message(std::uint64_t length) {
    Trace trace = example(1, 1);
    trace.events.push_back({TraceKind::send, 0, 0, 0, {{base, length}}});
    return encode(trace);
}

TEST(LabTrace, AMessageThatNoNicTakesIsRefused) {
    EXPECT_TRUE(decode(with_message(trace_message_max)).has_value());
    EXPECT_NE(decode(with_message(std::uint64_t{1} << 40)).error().find("trace, event 6, byte "),
              std::string::npos);
    EXPECT_NE(decode(with_message(std::uint64_t{1} << 40))
                  .error()
                  .find(": a message of 1099511627776 bytes, at most 1073741824 are allowed"),
              std::string::npos);
    Trace pieces = example(1, 0);
    pieces.events.push_back(
        {TraceKind::rdma_write, 0, 0, base, {{base, trace_message_max}, {base, 1}}});
    EXPECT_NE(decode(encode(pieces)).error().find("a message of 1073741825 bytes"),
              std::string::npos);
    pieces.events.back() = {TraceKind::register_memory, 0, 0, 0, {{base, trace_piece_max + 1}}};
    EXPECT_NE(decode(encode(pieces)).error().find("a piece of 1099511627777 bytes"),
              std::string::npos);
}

TEST(LabTrace, MoreBytesThanAnybodyReplaysAreRefused) {
    Trace trace = example(1, 0);
    for (std::uint64_t n = 0; n < trace_messages_max / trace_message_max; ++n)
        trace.events.push_back({TraceKind::send, 0, 0, 0, {{base, trace_message_max}}});
    EXPECT_TRUE(decode(encode(trace)).has_value());
    trace.events.push_back({TraceKind::send, 0, 0, 0, {{base, 1}}});
    EXPECT_NE(decode(encode(trace))
                  .error()
                  .find(": messages with 68719476737 bytes, at most 68719476736 are allowed"),
              std::string::npos);
}

TEST(LabSweep, CountsMissesOfBothEnds) {
    const Trace trace = example(8, 24);
    const Missed held = missed(trace, {64, 1, 2}, 1);
    // A send touches a page of the sender and one of the receiver twice (two pieces); a write one
    // of each.
    EXPECT_EQ(held.lookups, 24U * 3 + 24U * 2);
    EXPECT_EQ(held.send, 1U);
    EXPECT_EQ(held.receive, 8U);
    EXPECT_EQ(held.send_cold + held.receive_cold, 9U);
    EXPECT_EQ(missed(trace, {64, 8, 2}, 1).receive, 1U);
    const Missed small = missed(trace, {4, 1, 4}, 1);
    EXPECT_EQ(small.receive_cold, 8U);
    EXPECT_GT(small.receive, 8U);
    EXPECT_EQ(missed(trace, {64, 1, 2}, 2).lookups, 0U);
    EXPECT_EQ(missed(trace, {64, 1, 2}, 1, 2).receive, held.receive) << "seen in the first pass";
    EXPECT_EQ(missed(trace, {64, 1, 2}, 1, 2).lookups, 2 * held.lookups);
}

TEST(LabSweep, AVictimCacheHoldsWhatWasDroppedLast) {
    const Trace trace = example(3, 30);
    // Of one set, three pages in turn each drop the next one.
    const Missed alone = missed(trace, {1, 1, 1}, 1);
    EXPECT_EQ(alone.receive, 30U);
    EXPECT_EQ(missed(trace, {1, 1, 1, 1}, 1).receive, 30U) << "one victim is gone when it is asked";
    const Missed held = missed(trace, {1, 1, 1, 2}, 1);
    EXPECT_EQ(held.receive, 3U);
    EXPECT_EQ(held.receive, held.receive_cold);
    EXPECT_EQ(held.lookups, alone.lookups);
}

TEST(LabTraceRows, FirmviasFiguresAreOfEachTrace) {
    const std::vector<NamedTrace> traces = {{"one", example(8, 24)}, {"two", example(300, 900)}};
    const auto rows = trace_rows("firmvia", traces, {}, mini());
    ASSERT_TRUE(rows.has_value()) << rows.error();
    ASSERT_EQ(rows->size(), 10U);
    EXPECT_EQ((*rows)[0].ours, "7.5 % compulsory, 0 % others");
    EXPECT_FALSE((*rows)[0].reproduced);
    EXPECT_TRUE((*rows)[1].reproduced);
    EXPECT_FALSE((*rows)[8].reproduced)
        << "300 pages are too many for 128 entries: " << (*rows)[8].ours;
    for (const Row& row : *rows) EXPECT_FALSE(row.expected) << "whose traces these are decides";
}

TEST(LabTraceRows, TheSweepsAreOfItsPrograms) {
    EXPECT_NE(trace_rows("handles", {{"mine", example(8, 24)}}, {}, mini()).error().find("fft, lu"),
              std::string::npos);
    const auto rows = trace_rows("handles", {{"fft", example(300, 900)}}, {1, 64, 8}, mini());
    ASSERT_TRUE(rows.has_value()) << rows.error();
    const auto lines =
        std::ranges::find(*rows, "fft: lines of 8 and of 128 entries, C8 A2", &Row::figure);
    ASSERT_NE(lines, rows->end());
    EXPECT_TRUE(lines->reproduced) << lines->ours;
    // 19 lines in turn: 16 lose each of them before it is used again, 32 hold them all.
    const std::string_view sizes = "fft: misses of C32 less than of C16, L128 A4";
    const auto halved = std::ranges::find(*rows, sizes, &Row::figure);
    ASSERT_NE(halved, rows->end());
    EXPECT_TRUE(halved->note.starts_with("100 % of those not compulsory")) << halved->note;
    const auto few = trace_rows("handles", {{"fft", example(8, 24)}}, {1, 64, 8}, mini());
    const auto held = std::ranges::find(*few, sizes, &Row::figure);
    ASSERT_NE(held, few->end());
    EXPECT_TRUE(held->note.starts_with("all of them are compulsory")) << held->note;
    EXPECT_EQ(trace_rows("mvia", {}, {}, mini()).error(), "mvia has no figures of traces");
}

const Row& execution_of(const std::vector<Row>& rows, const std::string& program) {
    const auto found = std::ranges::find(
        rows, program + ": takes longer by dynamic look-up, the best caches", &Row::figure);
    EXPECT_NE(found, rows.end());
    return *found;
}

TEST(LabTraceRows, WhatACacheHoldsMissesTheFirstTimeAlone) {
    // 8 pages are in any cache; of 700 in turn the largest, of 512, has lost each line before it is
    // used again.
    const auto rows = trace_rows("handles", {{"fft", example(8, 24)}, {"lu", example(700, 1400)}},
                                 {1, 64, 8}, mini());
    ASSERT_TRUE(rows.has_value()) << rows.error();
    const Row& few = execution_of(*rows, "fft");
    EXPECT_TRUE(few.reproduced) << few.ours;
    EXPECT_GT(std::stod(few.ours.substr(few.ours.rfind("first ") + 6)), 3) << few.ours;
    const Row& many = execution_of(*rows, "lu");
    EXPECT_FALSE(many.reproduced) << many.ours;
    EXPECT_FALSE(many.expected);
}

TEST(LabTraceRows, RadixAloneIsToTakeLonger) {
    const auto rows = trace_rows("handles", {{"radix", example(8, 24)}}, {1, 64, 8}, mini());
    ASSERT_TRUE(rows.has_value()) << rows.error();
    EXPECT_FALSE(execution_of(*rows, "radix").reproduced);
}

TEST(LabTraceRows, WhatAProgramTakesIsByTheCachesThatAreTheBestForIt) {
    // 300 pages in turn, of which 256 keep none, and 512 all.
    const auto rows = trace_rows("handles", {{"fft", example(300, 600)}}, {1, 64, 8}, mini());
    ASSERT_TRUE(rows.has_value()) << rows.error();
    const Row& row = execution_of(*rows, "fft");
    EXPECT_TRUE(row.note.starts_with("C512 L16 ")) << row.note;
    EXPECT_TRUE(row.reproduced) << row.ours;
}

TEST(LabSweep, TheTableIsThePapers) {
    EXPECT_EQ(table_of_shapes(1, 1).size(), 36U);
    for (const CacheShape& shape : table_of_shapes(64, 8))
        EXPECT_GE(shape.entries, shape.line * shape.ways);
}

TEST(LabSweep, MissesAsOftenAsTheModelsOfNics) {
    const Trace trace = example(8, 24);
    const Machine machine = file::load("mini").value();
    Bench bench(machine);
    const auto found = replay(bench.trial("cache=4,line=1,ways=4"), trace, {});
    ASSERT_TRUE(found.has_value());
    const Missed alone = missed(trace, {4, 1, 4}, 1);
    EXPECT_EQ(found->misses(), alone.send + alone.receive);
    EXPECT_EQ(found->cold_misses(), alone.send_cold + alone.receive_cold);
}

struct LabReplay : testing::Test {
    Machine machine = file::load("mini").value();
    Bench bench{machine};
    Replayed play(std::string_view words, const Trace& trace, std::uint32_t per_host = 1) {
        const auto found = replay(bench.trial(words), trace, {per_host});
        EXPECT_TRUE(found.has_value()) << found.error();
        return found.value_or(Replayed{});
    }
};

TEST_F(LabReplay, EachPageMissesOnceWhereTheCacheHoldsThemAll) {
    const Replayed found = play("line=1", example(8, 24));
    EXPECT_EQ(found.messages, 48U);
    EXPECT_EQ(found.registrations, 1U);
    EXPECT_EQ(found.misses(), 8U + 1);
    EXPECT_EQ(found.cold_misses(), found.misses());
    EXPECT_EQ(found.send_misses(), 1U);
}

TEST_F(LabReplay, ASecondPassMissesWhatTheCacheDoesNotHold) {
    const Trace trace = example(8, 24);
    const auto twice = [&](std::string_view words) {
        return replay(bench.trial(words), trace, {.passes = 2}).value_or(Replayed{}).passes;
    };
    const std::vector<Pass> held = twice("line=1"), lost = twice("cache=4,line=1,ways=4");
    ASSERT_EQ(held.size(), 2U);
    EXPECT_EQ(held[0].misses, 8U + 1);
    EXPECT_EQ(held[0].time, play("line=1", trace).time);
    EXPECT_EQ(held[1].misses, 0U);
    EXPECT_LT(held[1].time, held[0].time);
    EXPECT_GT(lost[1].misses, 8U);
}

TEST_F(LabReplay, ALineOfPagesMissesOnce) {
    EXPECT_EQ(play("line=8", example(8, 24)).misses(), 1U + 1);
}

TEST_F(LabReplay, ACacheThatIsTooSmallMissesAgain) {
    const Trace trace = example(8, 24);
    const Replayed small = play("cache=4,line=1,ways=4", trace);
    EXPECT_GT(small.misses(), small.cold_misses());
    EXPECT_EQ(small.cold_misses(), 8U + 1);
    EXPECT_GT(small.time, play("line=1", trace).time);
}

TEST_F(LabReplay, ProcessesOfOneHostUseNoNic) {
    const Replayed found = play("", example(8, 24), 2);
    EXPECT_EQ(found.within_hosts, 48U);
    EXPECT_EQ(found.translations(), 0U);
}

TEST_F(LabReplay, RepeatsToTheNanosecond) {
    const Trace trace = example(8, 24);
    EXPECT_EQ(play("cache=4,line=1,ways=4", trace).time, play("cache=4,line=1,ways=4", trace).time);
}

TEST_F(LabReplay, EveryConnectionHasVisThatAreLookedAt) {
    Trace trace = example(1, 0);
    trace.connections.assign(5, {0, 1});
    for (std::uint32_t n = 0; n < 5; ++n)
        trace.events.push_back({TraceKind::rdma_write, n % 2, n, base, {{base, 64}}});
    const auto found = replay(bench.trial(), trace, {1, 1, 1'000'000});
    ASSERT_TRUE(found.has_value()) << found.error();
    EXPECT_EQ(found->messages, 5U);
}

TEST_F(LabReplay, AReadIsCarriedByThePeersNic) {
    Trace trace = example(1, 0);
    trace.events.push_back({TraceKind::rdma_read, 0, 0, base, {{base, 64}}});
    const Replayed found = play("line=1", trace);
    EXPECT_EQ(found.hosts[0].bytes_received, 64);
    EXPECT_EQ(found.send_misses(), 1U);
}

TEST_F(LabReplay, OtherMachinesHaveTracesToo) {
    const Machine firmvia = file::load("firmvia").value();
    Bench other(firmvia);
    const auto found =
        replay(other.trial("at=3,cache=4,ways=1,rdma=translated"), example(8, 24), {});
    ASSERT_TRUE(found.has_value()) << found.error();
    EXPECT_GT(found->misses(), 8U);
    EXPECT_EQ(found->cold_misses(), 8U + 1) << "compulsory ones: 8 pages there, one here";
    const Machine clan = file::load("clan").value();
    Bench third(clan);
    EXPECT_FALSE(replay(third.trial(), example(1, 1), {}).has_value());
}

}  // namespace via::lab::study::trace_test
