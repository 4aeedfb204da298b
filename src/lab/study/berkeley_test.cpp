// Which mechanism each of Berkeley VIA's figures depends on.
#include <gtest/gtest.h>

#include "lab/file/machine_file.hpp"
#include "lab/study/bench.hpp"

namespace via::lab::study::berkeley_test {

struct LabBerkeley : testing::Test {
    Machine first = file::load("berkeley1").value();
    Machine second = file::load("berkeley2").value();
    Bench one{first};
    Bench two{second};
    void TearDown() override {
        EXPECT_FALSE(one.error().has_value()) << *one.error();
        EXPECT_FALSE(two.error().has_value()) << *two.error();
    }
};

TEST_F(LabBerkeley, DescriptorsAreFetchedOnBothSides) {
    const Explanation standard = one.one_message(one.trial(), 4);
    const auto fetches = [](const Explanation& of, const char* host) {
        return std::ranges::count_if(of.happenings, [&](const Happening& happening) {
            return std::string_view(happening.what) == "start a fetch" &&
                   happening.resource.starts_with(host);
        });
    };
    EXPECT_EQ(fetches(standard, "host 0"), 1);
    EXPECT_EQ(fetches(standard, "host 1"), 1);
    const Explanation token = one.one_message(one.trial("descriptors=token"), 4);
    EXPECT_EQ(fetches(token, "host 0") + fetches(token, "host 1"), 0);
    EXPECT_LT(token.total_ns, standard.total_ns - 5000);
}

TEST_F(LabBerkeley, MergedDescriptorsSpareADma) {
    const auto dmas = [](const Explanation& of) {
        return std::ranges::count_if(of.happenings, [](const Happening& happening) {
            return std::string_view(happening.what) == "start the DMA from the host";
        });
    };
    EXPECT_EQ(dmas(one.one_message(one.trial(), 64)), 1);
    EXPECT_EQ(dmas(one.one_message(one.trial("payload=merged"), 64)), 0);
    EXPECT_EQ(dmas(one.one_message(one.trial("payload=merged"), 65)), 1);
}

TEST_F(LabBerkeley, AStagedPacketWaitsUntilItIsWhole) {
    Trial trial = one.trial();
    const double staged = one.one_way_us(trial, 4096);
    trial.without.staging = true;
    EXPECT_GT(staged, one.one_way_us(trial, 4096) + 10);
}

TEST_F(LabBerkeley, OneStagingAreaBoundsThePeak) {
    Trial trial = one.trial();
    const double bounded = one.rate_mb(trial, 65536);
    trial.without.fifo_end = true;
    EXPECT_GT(one.rate_mb(trial, 65536), 1.3 * bounded);
}

TEST_F(LabBerkeley, MissesAreFetchedFromTheHost) {
    Trial trial = two.trial("cache=1,ways=1", 2);
    Question question;
    question.rounds = 64;
    const double with = half_round_trip_ns(trial, question).value();
    trial.without.misses = true;
    const double without = half_round_trip_ns(trial, question).value();
    // One translation missed on each side, of two messages.
    EXPECT_NEAR(with - without, 3600, 900);
}

TEST_F(LabBerkeley, APageForEachPairOfDoorbellsFillsTheNic) {
    const auto memory = [](const Trial& trial) {
        const auto made = design::make(trial.machine, trial.design, trial.load);
        return made ? made->doorbell->nic_memory(trial.load) : -1;
    };
    EXPECT_EQ(memory(one.trial("", 100)), 100 * 4096);
    EXPECT_EQ(memory(two.trial("", 100)), 4096 * ((100 * 16 * 4 + 4095) / 4096));
    EXPECT_EQ(memory(one.trial("", 129)), -1);
}

}  // namespace via::lab::study::berkeley_test
