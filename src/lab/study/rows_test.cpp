#include "lab/study/rows.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "lab/file/machine_file.hpp"
#include "lab/study/explain.hpp"

namespace via::lab::study::rows_test {

Machine firmvia() { return file::load("firmvia").value(); }

/// Rows that the machine's own numbers, or those of what it is like, were set by.
std::int64_t calibrations_of(const Machine& machine) {
    std::int64_t count = 0;
    for (const auto& [key, origin] : machine.origins)
        count += origin.file.empty() && origin.standing == Standing::calibrated ? 1 : 0;
    return count;
}

void check_rows(std::string_view study) {
    ASSERT_NE(std::ranges::find(studies(), study, &Study::name), studies().end());
    for (const Study& one : studies()) {
        if (one.name != study) continue;
        const Machine machine = file::load(std::string(one.machine)).value();
        const auto rows = rows_of(machine);
        ASSERT_TRUE(rows.has_value()) << rows.error();
        for (const Row& row : *rows) {
            EXPECT_EQ(row.reproduced, row.expected)
                << one.machine << ": " << row.figure << ": paper " << row.paper << ", ours "
                << row.ours;
        }
        EXPECT_TRUE(holds(*rows));
        EXPECT_GE(std::ranges::count(*rows, true, &Row::calibrated), calibrations_of(machine));
    }
}

TEST(LabRows, FirmviaIsAsCheckedIn) { check_rows("firmvia"); }
TEST(LabRows, BerkeleyIsAsCheckedIn) { check_rows("berkeley"); }
TEST(LabRows, MviaIsAsCheckedIn) { check_rows("mvia"); }
TEST(LabRows, HandlesAreAsCheckedIn) { check_rows("handles"); }
TEST(LabRows, SciIsAsCheckedIn) { check_rows("sci"); }
TEST(LabRows, AMachineWithoutAPaperHasNone) {
    Machine machine = firmvia();
    machine.name = "mine";
    EXPECT_EQ(rows_of(machine).error(), "no paper's figures are known of mine");
}

TEST(FirmviaRows, OnlyARowThatWasReproducedOnceCanBreak) {
    Row row;
    row.reproduced = row.expected = true;
    EXPECT_TRUE(holds({row}));
    Row open = row;
    open.reproduced = open.expected = false;
    EXPECT_TRUE(holds({row, open}));
    row.reproduced = false;
    EXPECT_FALSE(holds({row, open}));
}

TEST(LabExplain, ThePathIsWholeAndItsPartsAddUp) {
    const Machine machine = firmvia();
    const Trial trial{machine, machine.design, {1, 1 << 20}, {}};
    for (const std::int64_t size : {0, 4, 100, 256, 1024, 5000}) {
        Question question;
        question.size = size;
        const auto found = explain(trial, question);
        ASSERT_TRUE(found.has_value()) << found.error();
        std::int64_t at = 0, sum = 0;
        for (const Happening& happening : found->happenings) {
            if (!happening.on_path) continue;
            EXPECT_EQ(happening.start_ns, at) << size << ": " << happening.what;
            at = happening.end_ns;
        }
        for (const std::int64_t part : found->parts_ns) sum += part;
        EXPECT_EQ(at, found->total_ns);
        EXPECT_EQ(sum, found->total_ns);
    }
}

TEST(LabExplain, ShowsTheLookThatCameTooEarly) {
    const Machine machine = firmvia();
    const Trial trial{machine, machine.design, {1, 1 << 20}, {}};
    const auto looks = [&](std::int64_t size) {
        Question question;
        question.size = size;
        const auto found = explain(trial, question);
        return std::ranges::count_if(found.value().happenings, [](const Happening& one) {
            return std::string_view(one.what) == "look at the DMA counter";
        });
    };
    EXPECT_EQ(looks(128), 1);
    EXPECT_GE(looks(256), 2);
}

}  // namespace via::lab::study::rows_test
