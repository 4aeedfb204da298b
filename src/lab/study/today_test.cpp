#include "lab/study/today.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "lab/file/machine_file.hpp"

namespace via::lab::study::today_test {

Machine machine(const char* name) {
    auto read = file::load(name);
    EXPECT_TRUE(read.has_value()) << read.error();
    return read.value_or(Machine{});
}

constexpr std::uint32_t rounds = 8;

double at(const Curve& curve, std::int64_t x) {
    const auto found = std::ranges::find(curve.x, x);
    EXPECT_NE(found, curve.x.end()) << curve.name << " has nothing at " << x;
    return found == curve.x.end() ? 0 : curve.y[static_cast<std::size_t>(found - curve.x.begin())];
}

bool says(const Answer& answer, std::string_view part) {
    return std::ranges::any_of(answer.findings, [&](const std::string& one) {
        return one.find(part) != std::string::npos;
    });
}

TEST(LabToday, ADoorbellThatIsPolledLosesAndARegisterTakesWhatItTakes) {
    const auto answer = ask_doorbells(machine("rnic"), rounds);
    ASSERT_TRUE(answer.has_value()) << answer.error();
    ASSERT_EQ(answer->curves.size(), 4U);
    const Curve &d1 = answer->curves[0], &stored = answer->curves[3];
    EXPECT_GT(at(d1, 4096), 20 * at(d1, 1));
    EXPECT_NEAR(at(stored, 4096), at(stored, 1), 0.05 * at(stored, 1));
    EXPECT_TRUE(says(*answer, "d1: each VI's word is polled, loses to d2"));
}

TEST(LabToday, ATableOf64GigabytesFitsNoNicAtSmallPages) {
    Machine rnic = machine("rnic");
    rnic.design["cache"] = "256";
    const auto answer = ask_translation(rnic, rounds);
    ASSERT_TRUE(answer.has_value()) << answer.error();
    ASSERT_EQ(answer->curves.size(), 4U);
    const Curve &table = answer->curves[1], &cache = answer->curves[2];
    EXPECT_EQ(std::ranges::find(table.x, 4096), table.x.end()) << "64 MB of table";
    EXPECT_GT(at(cache, 4096), 1.2 * at(cache, 1 << 30)) << "a miss each, against none";
    EXPECT_TRUE(says(*answer, "fits the NIC from pages of"));
}

TEST(LabToday, QueuesThatArePolledCostByTheirNumber) {
    const auto answer = ask_queues(machine("rnic"), rounds);
    ASSERT_TRUE(answer.has_value()) << answer.error();
    const Curve &polled = answer->curves[1], &entries = answer->curves[2];
    const auto poll = static_cast<double>(machine("rnic").costs.user_poll) / 1e3;
    EXPECT_NEAR(at(polled, 1000) - at(polled, 1), 999 * poll, 0.1 * 999 * poll);
    EXPECT_LT(at(entries, 1000), at(polled, 1000));
}

TEST(LabToday, WhoSleepsPaysTheInterruptUntilLoadKeepsItAwake) {
    const Machine rnic = machine("rnic");
    const auto answer = ask_interrupt(rnic, rounds);
    ASSERT_TRUE(answer.has_value()) << answer.error();
    const Curve &polls = answer->curves[0], &sleeps = answer->curves[1];
    EXPECT_GT(at(sleeps, 1) - at(polls, 1), static_cast<double>(rnic.costs.interrupt) / 1e3);
    EXPECT_TRUE(says(*answer, "for less than a tenth of them") ||
                says(*answer, "for more than a tenth of them"));
    EXPECT_FALSE(ask_interrupt(machine("gnic2"), rounds).has_value())
        << "its kernel is another model";
}

TEST(LabToday, EightToOneIsWithinATenthOfPacketsAlone) {
    const auto answer = ask_incast(machine("rnic"), rounds);
    ASSERT_TRUE(answer.has_value()) << answer.error();
    const Curve &ours = answer->curves[0], &packets = answer->curves[1];
    for (std::size_t n = 0; n < ours.x.size(); ++n)
        EXPECT_NEAR(ours.y[n], packets.y[n], 0.1 * packets.y[n]) << ours.x[n] << " senders";
    EXPECT_GT(at(ours, 8), 6 * at(answer->curves[2], 8)) << "a formula knows nobody else";
}

TEST(LabToday, ConclusionsAreSaidToHoldWhereTheirDesignIsFaster) {
    const auto answer = ask_turns(machine("rnic"), rounds / 2);
    ASSERT_TRUE(answer.has_value()) << answer.error();
    ASSERT_EQ(answer->findings.size(), answer->curves.size());
    for (std::size_t n = 0; n < answer->curves.size(); ++n) {
        const std::string& finding = answer->findings[n];
        const bool holds = finding.find("): holds, ") != std::string::npos;
        const bool turned = finding.find("): turned over, ") != std::string::npos;
        EXPECT_NE(holds, turned) << finding;
        EXPECT_EQ(holds, at(answer->curves[n], 100) < 1) << finding;
    }
}

TEST(LabToday, StartsOfDmasThatOverlapCarryTheLink) {
    Machine rnic = machine("rnic");
    Question question;
    question.size = 65536;
    const auto rate = [&] {
        const Trial trial{rnic, rnic.design, {1, 1 << 20}, {}};
        return bandwidth(trial, question)->bytes_per_second;
    };
    const double many = rate();
    rnic.costs.dma_under_way = 1;
    EXPECT_GT(many, 1.3 * rate());
}

}  // namespace via::lab::study::today_test
