#include "lab/study/rows.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "lab/file/machine_file.hpp"
#include "lab/study/explain.hpp"

namespace via::lab::study::rows_test {

Machine firmvia() { return file::load("firmvia").value(); }

TEST(FirmviaRows, WhatIsCheckedInAsReproducedIs) {
    const Machine machine = firmvia();
    const auto rows = firmvia_rows(machine);
    ASSERT_TRUE(rows.has_value()) << rows.error();
    for (const Row& row : *rows) {
        EXPECT_EQ(row.reproduced, row.expected)
            << row.figure << ": paper " << row.paper << ", ours " << row.ours;
    }
    EXPECT_TRUE(holds(*rows));
    EXPECT_EQ(std::ranges::count(*rows, true, &Row::calibrated), 1);
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
