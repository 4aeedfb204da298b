#include "lab/study/compare.hpp"

#include <gtest/gtest.h>

#include "lab/file/machine_file.hpp"

namespace via::lab::study::compare_test {

Contender contender(const char* machine, std::string_view words) {
    const auto read = file::load(machine);
    EXPECT_TRUE(read.has_value());
    Trial trial{*read, read->design, {1, 1 << 20}, {}};
    EXPECT_TRUE(design::add(trial.design, words).has_value());
    return {std::string(words), trial};
}

TEST(LabCompare, FindsWhereDoorbellsThatArePolledLose) {
    const std::vector<Contender> two = {contender("firmvia", "doorbell=d1,at=2"),
                                        contender("firmvia", "")};
    const auto found = compare(two, Of::latency, Over::vis, {1, 64}, Question{});
    ASSERT_TRUE(found.has_value()) << found.error();
    EXPECT_EQ(found->winners[0], 0U);
    EXPECT_EQ(found->winners[1], 1U);
    ASSERT_EQ(found->crossings.size(), 1U);
    const Crossing& crossing = found->crossings[0];
    EXPECT_GT(crossing.at, 5);
    EXPECT_LT(crossing.at, 20);
    // Polling is no work on the message's path: it waits until one of the two loops comes to it.
    EXPECT_TRUE(crossing.cause.starts_with("waiting for host ")) << crossing.cause;
    EXPECT_NE(crossing.cause.find(" firmware, "), std::string::npos) << crossing.cause;
    Question question;
    Trial there = two[0].trial;
    there.load.vis = crossing.at;
    EXPECT_GT(latency(there, question)->mean_ns, latency(two[1].trial, question)->mean_ns);
    there.load.vis = crossing.at - 1;
    EXPECT_LT(latency(there, question)->mean_ns, latency(two[1].trial, question)->mean_ns);
}

TEST(LabCompare, ADesignThatDoesNotFitCannotWin) {
    const std::vector<Contender> two = {contender("berkeley1", ""), contender("firmvia", "")};
    const auto found = compare(two, Of::latency, Over::vis, {1, 200}, Question{});
    ASSERT_TRUE(found.has_value()) << found.error();
    EXPECT_TRUE(found->samples[0][0].has_value());
    EXPECT_FALSE(found->samples[1][0].has_value());
    EXPECT_EQ(found->winners[1], 1U);
    EXPECT_NE(found->refusals[0].find("of the NIC's memory for 200 VIs"), std::string::npos);
    EXPECT_EQ(found->reasons[1], "the others cannot be");
}

TEST(LabCompare, OfBandwidthTheMoreWins) {
    const std::vector<Contender> two = {contender("gnic2", "stack=tcp"), contender("gnic2", "")};
    Question question;
    question.stream_bytes = 1 << 20;
    const auto found = compare(two, Of::bandwidth, Over::sizes, {65536}, question);
    ASSERT_TRUE(found.has_value()) << found.error();
    EXPECT_EQ(found->winners[0], 1U);
    EXPECT_GT(found->samples[0][1]->value, found->samples[0][0]->value);
    EXPECT_NE(found->reasons[0].find("processor"), std::string::npos) << found->reasons[0];
}

TEST(LabCompare, WhereStreamsCrossTheSlowResourceIsNamedWithWhatItDoesMore) {
    const std::vector<Contender> two = {contender("firmvia", "packet=1000"),
                                        contender("firmvia", "packet=1024,payload=dma,at=2")};
    Question question;
    question.stream_bytes = 1 << 20;
    const auto found = compare(two, Of::bandwidth, Over::sizes, {4, 1000, 16384}, question);
    ASSERT_TRUE(found.has_value()) << found.error();
    ASSERT_FALSE(found->crossings.empty());
    for (const Crossing& one : found->crossings) {
        EXPECT_TRUE(one.cause.starts_with("what takes longest is host ")) << one.cause;
        EXPECT_NE(one.cause.find(" us a message, of "), std::string::npos) << one.cause;
    }
    // What resources were busy with adds up to no more than the time that went by.
    const Sample& sample = *found->samples[2][0];
    for (const auto& [resource, spent] : sample.spent_ns) {
        double sum = 0;
        for (const double part : spent) sum += part;
        if (resource == "switch") continue;  // serves several at once
        EXPECT_LE(sum, 1.05 * 16384 * 1e9 / sample.value) << resource;
    }
}

TEST(LabCompare, WhereNoneCanBeTheReasonIsSaid) {
    const auto found = compare({contender("firmvia", "at=9")}, Of::latency, Over::sizes, {4}, {});
    ASSERT_FALSE(found.has_value());
    EXPECT_NE(found.error().find("at=9: want one of"), std::string::npos);
}

}  // namespace via::lab::study::compare_test
