// The SCI card: its window, its two tables, and what depends on which of its mechanisms.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "lab/file/machine_file.hpp"
#include "lab/study/bench.hpp"
#include "lab/study/passing.hpp"
#include "lab/study/storing.hpp"
#include "lab/study/today.hpp"

namespace via::lab::study::sci_test {

struct LabSci : testing::Test {
    Machine machine = file::load("sci").value();
    Trial trial{machine, machine.design, {1, 1 << 20}, {}};
    std::unique_ptr<Cluster> made = Cluster::make(trial, 2, 1).value();
    Cluster& cluster = *made;
    LabSci() { cluster.connect(1); }

    /// Until nothing happens any more but what firmware polls for.
    void run(Task<> work) {
        bool ended = false;
        cluster.schedule().spawn(until_done(std::move(work), ended));
        ASSERT_TRUE(cluster.schedule().run_until(ended, 5'000'000));
    }
    static Task<> until_done(Task<> work, bool& ended) {
        co_await work;
        ended = true;
    }
};

// The window --------------------------------------------------------------------------------------

namespace {

Task<> many_stores(Cluster& cluster, std::vector<int>& landed) {
    int n = 0;
    for (const std::int64_t size : {4, 64, 1, 200, 0, 4096, 33}) {
        co_await cluster.window(0).store(1, {n * 64, size}, 1,
                                         [&landed, n] { landed.push_back(n); });
        ++n;
    }
    co_await cluster.window(0).barrier(1);
}

}  // namespace

TEST_F(LabSci, EachStoreLandsOnceAndNoByteIsLost) {
    std::vector<int> landed;
    run(many_stores(cluster, landed));
    EXPECT_EQ(landed, (std::vector<int>{0, 1, 2, 3, 4, 5, 6}));
    const WindowCounts& counts = cluster.window(0).counts();
    EXPECT_EQ(counts.bytes_stored, 4 + 64 + 1 + 200 + 4096 + 33);
    EXPECT_EQ(cluster.window(1).counts().bytes_landed, counts.bytes_stored);
    EXPECT_EQ(cluster.network().payload_bytes(), counts.bytes_stored);
}

TEST_F(LabSci, StoresBecomeBurstsAndPacketsAtTheirBoundaries) {
    run(cluster.window(0).store(1, {16, 128}, 1));
    run(cluster.window(0).barrier(1));
    EXPECT_EQ(cluster.window(0).counts().bursts, 5U) << "16, 3 x 32, 16 bytes";
    EXPECT_EQ(cluster.window(0).counts().packets, 3U) << "48, 64, 16 bytes";
}

namespace {

Task<> barrier_then(Cluster& cluster, bool& landed, bool& seen) {
    co_await cluster.window(0).store(1, {0, 4096}, 1, [&landed] { landed = true; });
    EXPECT_FALSE(landed) << "the processor goes on before";
    co_await cluster.window(0).barrier(1);
    seen = landed;
}

}  // namespace

TEST_F(LabSci, BehindABarrierAllHasLanded) {
    bool landed = false, seen = false;
    run(barrier_then(cluster, landed, seen));
    EXPECT_TRUE(seen);
}

TEST_F(LabSci, AnAnswerFreesAStream) {
    const double of_eight = store_bytes_per_second(trial, 65536).value();
    trial.machine.costs.streams = 1;
    const double of_one = store_bytes_per_second(trial, 65536).value();
    EXPECT_LT(of_one, of_eight / 3) << "64 bytes, and their answer, before the next ones go";
}

TEST_F(LabSci, ALoadKeepsTheProcessorAStoreDoesNot) {
    const std::int64_t load = load_ns(trial).value();
    EXPECT_GT(load, by_stores(trial, 4).value().one_way_ns);
    EXPECT_GT(load, 10 * by_stores(trial, 4).value().processor_ns);
}

TEST_F(LabSci, WithoutCombiningAWordIsABurst) {
    const double combined = store_bytes_per_second(trial, 4096).value();
    trial.without.combining = true;
    EXPECT_LT(store_bytes_per_second(trial, 4096).value(), combined / 3);
}

TEST_F(LabSci, WithoutBarriersAFlagFollowsItsDataAtOnce) {
    const double ordered = passing_ns(trial, chempi_ways()[0], 4).value();
    trial.without.barriers = true;
    const double at_once = passing_ns(trial, chempi_ways()[0], 4).value();
    EXPECT_LT(at_once + 2000, ordered);
}

// Stores and the DMA engine have one bus and one link.
TEST_F(LabSci, DmaSlowsStoresDown) {
    const std::int64_t alone = by_stores(trial, 16384).value().one_way_ns;
    PhysicalDescriptor descriptor;
    descriptor.message = 1;
    descriptor.buffer = {0, 65536};
    descriptor.target = Target{1, 0, {false, true, false, 0}};
    run(cluster.bearer(0).send(descriptor, false));
    const Time begin = cluster.schedule().now();
    run(cluster.window(0).store(1, {0, 16384}, 1));
    run(cluster.window(0).barrier(1));
    EXPECT_GT((cluster.schedule().now() - begin).ns, alone * 5 / 4);
}

// Both tables -------------------------------------------------------------------------------------

struct LabSciTags : LabSci {
    static constexpr std::uint32_t mine = 7, other = 8;
    Translation& tables = *cluster.host(0).design().translation;
    LabSciTags() {
        cluster.host(0).connect(0, 1, mine);
        cluster.host(1).connect(0, 0, mine);
    }
    /// An RDMA write of so many bytes; how many of them came.
    std::int64_t write(std::int64_t from, std::int64_t to, std::int64_t bytes) {
        const std::int64_t before = cluster.host(1).bytes_received();
        PhysicalDescriptor descriptor;
        descriptor.message = ++message;
        descriptor.buffer = {from, bytes};
        descriptor.target = Target{1, 0, {false, true, false, to}};
        run(cluster.bearer(0).send(descriptor, false));
        run(sent());
        return cluster.host(1).bytes_received() - before;
    }
    Task<> sent() {
        const MessageId done = co_await cluster.host(0).sent(0, 1);
        EXPECT_EQ(done, message) << "it completes, whatever came of it";
        co_await cluster.schedule().sleep(microseconds(100));
    }
    std::uint64_t refused() { return cluster.host(0).adapter().counts().refused; }
    MessageId message = 0;
};

TEST_F(LabSciTags, TheEngineReachesPagesOfItsOwnProcessAlone) {
    tables.protect({0, 4096}, mine, false);
    tables.protect({4096, 4096}, other, false);
    tables.protect({0, 16384}, mine, true);
    tables.protect({16384, 16384}, other, true);
    EXPECT_EQ(write(0, 0, 4096), 4096);
    EXPECT_EQ(write(4096, 0, 4096), 0) << "from another process's memory";
    EXPECT_EQ(write(2048, 0, 4096), 0) << "half of it";
    EXPECT_EQ(write(0, 16384, 64), 0) << "to memory that another process imported";
    EXPECT_EQ(write(0, 16000, 4000), 0) << "the end of it";
    EXPECT_EQ(refused(), 4U);
    EXPECT_EQ(write(0, 0, 64), 64) << "what was refused is in nobody's way";
}

TEST_F(LabSciTags, ANodeThatIsWrittenToAsksNoTags) {
    cluster.host(1).design().translation->protect({0, 4096}, other, false);
    EXPECT_EQ(write(0, 0, 64), 64);
    EXPECT_EQ(refused(), 0U);
}

TEST_F(LabSciTags, StoresAskNoTags) {
    tables.protect({0, 16384}, other, true);
    run(cluster.window(0).store(1, {0, 64}, 1));
    run(cluster.window(0).barrier(1));
    EXPECT_EQ(cluster.window(1).counts().bytes_landed, 64);
}

TEST_F(LabSciTags, EachTableIsLookedIntoOncePerPageOfItsOwn) {
    const AdapterCounts before = cluster.host(0).adapter().counts();
    EXPECT_EQ(write(0, 0, 65536), 65536);
    const std::uint64_t looks = cluster.host(0).adapter().counts().translations;
    // 16 pages of 4 KB, 4 of 16 KB, and the descriptor's.
    EXPECT_EQ(looks - before.translations, 16U + 4 + 1);
    EXPECT_EQ(cluster.host(1).adapter().counts().translations, 16U);
}

// Designs and questions ---------------------------------------------------------------------------

TEST(LabSciDesign, TablesOfImportedPagesWantAWindow) {
    const Machine firmvia = file::load("firmvia").value();
    design::Options options = firmvia.design;
    options["at"] = "both";
    const auto made = design::make(firmvia, options, {1, 1 << 20});
    ASSERT_FALSE(made.has_value());
    EXPECT_EQ(made.error(),
              "design of firmvia: at=both: the machine imports no memory (its parts have no "
              "window)");
}

TEST(LabSciDesign, APacketOfStoresHasRoomEverywhere) {
    Machine machine = file::load("sci").value();
    machine.costs.stream = 1 << 20;
    EXPECT_NE(design::make(machine, machine.design, {1, 1 << 20}).error().find("window.stream, "),
              std::string::npos);
    machine.costs.stream = 48;
    EXPECT_NE(design::make(machine, machine.design, {1, 1 << 20}).error().find("no multiple"),
              std::string::npos);
}

TEST_F(LabSci, RegisteringEachMessageMovesTheSwitchPointUp) {
    const auto switch_point = [&](bool registers) {
        return first_where(
            64, 16384,
            [&](std::int64_t size) {
                return passing_ns(trial, chempi_ways()[2], size, registers).value() <
                       passing_ns(trial, chempi_ways()[0], size, registers).value();
            },
            64);
    };
    const std::int64_t before = switch_point(false), each = switch_point(true);
    EXPECT_GT(before, 512);
    EXPECT_GT(each, before + 256);
    EXPECT_LT(each, 16384);
}

TEST(LabSciQuestions, AreOfMachinesWithAWindow) {
    const Machine firmvia = file::load("firmvia").value();
    for (const auto ask : {ask_protocols, ask_processor})
        EXPECT_EQ(ask(firmvia, 1).error(),
                  "firmvia imports no memory: its parts have no window; ask of --machine sci");
    const Trial trial{firmvia, firmvia.design, {1, 1 << 20}, {}};
    EXPECT_EQ(by_stores(trial, 4).error(), "firmvia imports no memory: its parts have no window");
}

TEST_F(LabSci, AnAnswerNamesTheSwitchPoints) {
    const auto answer = ask_processor(machine, 1);
    ASSERT_TRUE(answer.has_value()) << answer.error();
    EXPECT_EQ(answer->curves.size(), 4U);
    EXPECT_NE(
        std::ranges::find(answer->findings,
                          "As 003 reckons, DMA leaves the processor more time from 128 B on."),
        answer->findings.end());
}

}  // namespace via::lab::study::sci_test
