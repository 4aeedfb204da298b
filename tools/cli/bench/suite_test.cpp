#include "bench/suite.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "bench/machine.hpp"

namespace via::bench::suite_test {
namespace {

TEST(Suite, EveryQuestionHasAFileAndNoCommandComesTwice) {
    for (const bool quick : {true, false}) {
        std::set<std::string> names;
        std::set<std::string> commands;
        std::size_t count = 0;
        for (const SuiteQuestion& question : suite_questions(quick)) {
            EXPECT_TRUE(names.insert(question.name).second) << question.name;
            EXPECT_TRUE(question.variants.empty() || !question.compared)
                << "a channel would answer the same twice in one file";
            for (const auto& words : commands_of(question, {}, {})) {
                commands.insert(joined(words));
                ++count;
            }
        }
        EXPECT_EQ(commands.size(), count);
        EXPECT_GT(count, quick ? 30u : 60u);
    }
}

TEST(Suite, ACommandHasItsWordsThoseOfTheVariantAndTheCommonOnes) {
    const SuiteQuestion varied{"name", {"rate", "--size", "8"}, {{"--depth", "2"}}, false, false,
                               {}};
    const auto commands = commands_of(varied, {"--device", "udp:lo"}, {"pipe"});
    ASSERT_EQ(commands.size(), 1u);
    EXPECT_EQ(joined(commands[0]), "rate --size 8 --depth 2 --device udp:lo --json");
    const SuiteQuestion compared{"name", {"rate"}, {}, true, false, {"spsc"}};
    EXPECT_EQ(joined(commands_of(compared, {}, {"pipe"})[0]), "rate --against spsc,pipe --json");
    EXPECT_EQ(joined(commands_of(compared, {}, {"pipe"}, false)[0]), "rate --against pipe --json")
        << "hosts have no memory in common";
}

TEST(Machine, ValuesOfTheKernelsFiles) {
    constexpr std::string_view text =
        "processor\t: 0\nmodel name\t: Some Thing 3.0\n\nmodel name\t: x";
    EXPECT_EQ(value_in(text, "model name"), "Some Thing 3.0");
    EXPECT_EQ(value_in(text, "model"), "");
    EXPECT_EQ(value_in("NAME=\"a b\"", "NAME"), "a b");
    EXPECT_EQ(value_in("", "NAME"), "");
}

TEST(Machine, OneObjectWithWhatWasAsked) {
    const std::string text = machine_json({{"rate", "via bench rate", 3, 1.5}}, "--quick");
    EXPECT_TRUE(text.starts_with(R"({"schema":"via-bench-machine-1","time":")")) << text;
    EXPECT_NE(text.find(R"("rate":{"command":"via bench rate","code":3,"seconds":1.5}})"),
              std::string::npos)
        << text;
    EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1);
}

}  // namespace
}  // namespace via::bench::suite_test
