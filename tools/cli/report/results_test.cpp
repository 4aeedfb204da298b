#include "report/results.hpp"

#include <gtest/gtest.h>

namespace via::report::results_test {
namespace {

constexpr std::string_view good =
    R"({"schema":"via-bench-1","bench":"latency","device":"shm","ours":true,"op":"send","size":8,)"
    R"("wait":"poll","cq":false,"depth":1,"unit":"us","median":0.1,"min":0.09,"max":0.2,)"
    R"("p99":0.2,"p999":null,"cpu_us":0.2,"values":[0.09,0.1,0.2],"rounds":3,"dropped":1,)"
    R"("probe_ns":52.0,"mode":"near","ratio":0.05,"against":"pipe"})";

std::string with(std::string_view from, std::string_view to) {
    std::string text(good);
    return text.replace(text.find(from), from.size(), to);
}

std::string failure_of(std::string_view text) {
    const auto run = parse_run("folder/run.jsonl", text);
    return run ? "" : run.error().what;
}

TEST(Results, ALineIsAFigure) {
    const auto run = parse_run("folder/run.jsonl", std::string(good) + "\n");
    ASSERT_TRUE(run.has_value()) << run.error().what;
    EXPECT_EQ(run->name, "run");
    ASSERT_EQ(run->figures.size(), 1u);
    const Figure& figure = run->figures[0];
    EXPECT_EQ(figure.device, "shm");
    EXPECT_TRUE(figure.ours);
    EXPECT_DOUBLE_EQ(figure.median, 0.1);
    EXPECT_EQ(figure.values.size(), 3u);
    EXPECT_EQ(figure.p99, 0.2);
    EXPECT_FALSE(figure.p999.has_value());
    EXPECT_FALSE(figure.ratio.has_value()) << "ours has one for each channel";
    EXPECT_FALSE(figure.more_is_better());
    EXPECT_EQ(figure.asked("wait"), "poll");
    EXPECT_EQ(figure.asked("depth"), "1");
    EXPECT_EQ(figure.asked("median"), "") << "that is the answer";
}

TEST(Results, OursComesOnceForEachChannel) {
    const auto run =
        parse_run("r.jsonl", std::string(good) + "\n\n" + with("\"pipe\"", "\"futex\"") + "\n");
    ASSERT_TRUE(run.has_value()) << run.error().what;
    EXPECT_EQ(run->figures.size(), 1u);
}

TEST(Results, TwoRunsInOneFileAreRefused) {
    const std::string twice = std::string(good) + "\n" + with("[0.09", "[0.08");
    EXPECT_EQ(
        failure_of(twice),
        "folder/run.jsonl:2: line 1 answers the same question otherwise; a file holds one run");
}

TEST(Results, OtherSchemasOfOursAreKeptAsTheyAre) {
    const auto run =
        parse_run("r.jsonl",
                  R"({"schema":"via-bench-register-1","size":4096,"fresh_ns":{"register":812.5}})");
    ASSERT_TRUE(run.has_value()) << run.error().what;
    ASSERT_EQ(run->notes.size(), 1u);
    const Fields expected{{"size", "4096"}, {"fresh_ns.register", "812.5"}};
    EXPECT_EQ(run->notes[0].fields, expected);
}

TEST(Results, WhatIsNoLineOfOursNamesFileAndLine) {
    const std::string first = std::string(good) + "\n";
    for (const std::string& bad :
         {std::string("nonsense"), std::string("[1]"), std::string("{}"),
          std::string(R"({"schema":"perf-1"})"), with("0.1,", "\"0.1\","), with("0.1,", "-1,"),
          with("\"near\"", "\"sideways\""), with("[0.09,0.1,0.2]", "[]"),
          with("[0.09,0.1,0.2]", "[0.09,null]"), with("\"size\":8", "\"size\":8.5"),
          with("\"shm\"", "\"\""), with("\"ours\":true", "\"ours\":1"),
          with("\"ours\":true", "\"ours\":true,\"version\":1"), with("\"unit\":\"us\",", ""),
          with("}", "")}) {
        EXPECT_TRUE(failure_of(first + bad).starts_with("folder/run.jsonl:2: ")) << bad;
    }
    EXPECT_NE(failure_of(with("[0.09,0.1,0.2]", "3")).find("values"), std::string::npos);
}

TEST(Results, NothingIsARunWithoutFigures) {
    const auto run = parse_run("r.jsonl", "");
    ASSERT_TRUE(run.has_value());
    EXPECT_TRUE(run->figures.empty());
}

TEST(Results, AMachineIsNamesAndTexts) {
    const auto fields = parse_machine(
        "machine.json",
        R"({"kernel":"6.1","versions":{"ucx":"1.13"},"cpus":[0,1],"commands":["a b","c"]})");
    ASSERT_TRUE(fields.has_value());
    const Fields expected{
        {"kernel", "6.1"}, {"versions.ucx", "1.13"}, {"cpus", "0\n1"}, {"commands", "a b\nc"}};
    EXPECT_EQ(*fields, expected);
    EXPECT_FALSE(parse_machine("machine.json", "[]").has_value());
}

TEST(Results, WhatIsTooDeepIsRefused) {
    const auto nested = [](std::size_t depth) {
        std::string text = R"({"schema":"via-bench-deep-1","a":)";
        for (std::size_t n = 0; n < depth; ++n) text += R"({"a":)";
        return text + "1" + std::string(depth + 1, '}');
    };
    EXPECT_EQ(failure_of(nested(10)), "");
    EXPECT_EQ(failure_of(nested(200'000)), "folder/run.jsonl:1: this is no JSON object");
    EXPECT_FALSE(parse_machine("machine.json", nested(200'000)).has_value());
}

TEST(Results, WhatIsNoRegularFileIsNamedAndNotRead) {
    const auto runs = read_runs("/dev/zero");
    ASSERT_FALSE(runs.has_value());
    EXPECT_EQ(runs.error().what, "/dev/zero is no regular file");
}

TEST(Results, WhereThereIsNothingToReadIsSaid) {
    const auto runs = read_runs("/no/such/place");
    ASSERT_FALSE(runs.has_value());
    EXPECT_NE(runs.error().what.find("/no/such/place"), std::string::npos);
    const auto machine = read_machine("/no/such/place");
    ASSERT_TRUE(machine.has_value()) << "a machine need not be described";
    EXPECT_TRUE(machine->empty());
}

}  // namespace
}  // namespace via::report::results_test
