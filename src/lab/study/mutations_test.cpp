#include "lab/study/mutations.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "lab/file/machine_file.hpp"

namespace via::lab::study::mutations_test {

const Mechanism& mechanism(std::string_view name) {
    return *std::ranges::find(mechanisms(), name, &Mechanism::name);
}

std::vector<Change> without(std::string_view name, const char* machine) {
    const Machine one = file::load(machine).value();
    const auto found = changes_without({&mechanism(name), 1}, {&one, 1});
    EXPECT_TRUE(found.has_value()) << found.error();
    return found.value_or(std::vector<Change>{});
}

// All of them over all machines: `via lab without`, which a test holds against the document.
TEST(LabMutations, ARowThatDependsOnAMechanismBreaksWithoutIt) {
    const std::vector<Change> changes = without("interrupts", "tulip");
    ASSERT_EQ(changes.size(), 2U);
    EXPECT_EQ(changes[0].with.figure, "latency, VIA");
    EXPECT_EQ(changes[1].with.figure, "latency, TCP");
    for (const Change& one : changes) {
        EXPECT_FALSE(one.reproduced);
        EXPECT_NE(one.without, one.with.ours);
    }
}

TEST(LabMutations, WhatAMachineHasNotCannotBeTakenAway) {
    EXPECT_TRUE(without("staging", "tulip").empty());
    EXPECT_TRUE(without("sleeping", "tulip").empty()) << "nothing of its rows sleeps";
}

/// Its rows are the first version's: of the second's some are a little otherwise.
TEST(LabMutations, WhereNoRowBreaksThoseAreToldThatAreOtherwise) {
    const std::vector<Change> broken = without("staging", "berkeley1");
    ASSERT_EQ(broken.size(), 1U);
    EXPECT_FALSE(broken[0].reproduced);
    const std::vector<Change> others = without("staging", "berkeley2");
    EXPECT_FALSE(others.empty());
    EXPECT_TRUE(std::ranges::all_of(others, &Change::reproduced));
}

/// But parking, which is the model's own.
TEST(LabMutations, EachMechanismHasAName) {
    std::set<std::string_view> names;
    for (const Mechanism& one : mechanisms()) names.insert(one.name);
    EXPECT_EQ(names.size(), mechanisms().size());
    EXPECT_EQ(names.size(), sizeof(Without) / sizeof(bool) - 1);
}

}  // namespace via::lab::study::mutations_test
