#include "bench/operations.hpp"

#include <gtest/gtest.h>

#include <set>

#include "bench/stopwatch.hpp"

namespace via::bench::operations_test {
namespace {

CallTimes times_of(std::initializer_list<float> ns) {
    CallTimes times;
    for (const float each : ns) times.ns[times.calls++] = each;
    return times;
}

TEST(Operations, EveryOneHasANameOfItsOwnAndRegisteringItsSizes) {
    std::set<std::string_view> names;
    for (std::size_t i = 0; i < operation_count; ++i) {
        names.insert(name_of(static_cast<Operation>(i)));
    }
    EXPECT_EQ(names.size(), operation_count);
    const auto all = all_timed({4096, 65536});
    EXPECT_EQ(all.size(), operation_count + 2);
    const Timed wanted{Operation::deregister_memory, 65536};
    EXPECT_EQ(std::count(all.begin(), all.end(), wanted), 1);
}

TEST(Operations, AllCallsOfAllRoundsWeighAlikeBesideANullCall) {
    OperationSeries null_call{{Operation::null_call, 0}, {}, 0};
    OperationSeries create{{Operation::create_vi, 0}, {}, 0};
    const OperationSeries never{{Operation::cq_done, 0}, {}, 0};
    add_round(null_call, times_of({200, 200}));
    CallTimes times = times_of({1000, 3000, 2000});
    times.cpu_ns = 9000;
    add_round(create, times);
    add_round(create, times_of({2000, 100000}));
    const auto rows = rows_of({null_call, create, never});
    ASSERT_EQ(rows.size(), 2u) << "what was not timed makes no row";
    EXPECT_DOUBLE_EQ(rows[1].median_us, 2);
    EXPECT_DOUBLE_EQ(rows[1].p99_us, 100);
    EXPECT_DOUBLE_EQ(rows[1].min_us, 1);
    EXPECT_DOUBLE_EQ(rows[1].null_calls, 10);
    EXPECT_DOUBLE_EQ(rows[1].cpu_us, 1.8);
    EXPECT_EQ(rows[1].calls, 5u);
}

TEST(Operations, MoreCallsThanThereIsRoomForAreNotRead) {
    OperationSeries series;
    CallTimes times;
    times.calls = 1'000'000;
    add_round(series, times);
    EXPECT_EQ(series.us.size(), CallTimes::most_calls);
}

TEST(Operations, OneJsonObjectALineWithNullForWhatThereIsNot) {
    OperationSeries series{{Operation::register_memory, 4096}, {1.5}, 3};
    OperationSeries other{{Operation::post_send, 0}, {0.25}, 0};
    const OperationResult result{rows_of({series, other}), 7, 2};
    EXPECT_EQ(json_lines(result, "shm"),
              R"({"schema":"via-bench-operations-1","bench":"operations","device":"shm",)"
              R"("operation":"register","size":4096,"unit":"us","median":1.5,"min":1.5,)"
              R"("max":1.5,"p99":1.5,"p999":1.5,"cpu_us":3,"null_calls":0,"calls":1,)"
              R"("rounds":7,"dropped":2})"
              "\n"
              R"({"schema":"via-bench-operations-1","bench":"operations","device":"shm",)"
              R"("operation":"post send","size":null,"unit":"us","median":0.25,"min":0.25,)"
              R"("max":0.25,"p99":0.25,"p999":0.25,"cpu_us":null,"null_calls":0,"calls":1,)"
              R"("rounds":7,"dropped":2})"
              "\n");
    const std::string text = table(result);
    EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 4);
    EXPECT_NE(text.find("7 rounds, 2 more were dropped"), std::string::npos);
}

TEST(Stopwatch, TimesEachCallInNanosecondsAndForgetsWhatWasTakenBack) {
    const std::vector<Timed> all = all_timed({4096});
    std::vector<CallTimes> board(all.size());
    Stopwatch watch(board, all);
    watch.start();
    const auto work = [] {
        const std::int64_t until_ns = now_ns() + 50'000;
        while (now_ns() < until_ns) {
        }
        return 7;
    };
    EXPECT_EQ(watch.slow(all[1], work), 7);
    EXPECT_EQ(watch.slow(all[1], work), 7);
    watch.take_back_slow(all[1]);
    EXPECT_EQ(watch.fast(all[2], [] { return 8; }), 8);
    watch.stop();
    EXPECT_EQ(board[0].calls, 0u);
    ASSERT_EQ(board[1].calls, 1u);
    EXPECT_GT(board[1].ns[0], 40'000);
    EXPECT_GT(board[1].cpu_ns, 0);
    ASSERT_EQ(board[2].calls, 1u);
    EXPECT_LT(board[2].ns[0], board[1].ns[0]);
}

}  // namespace
}  // namespace via::bench::operations_test
