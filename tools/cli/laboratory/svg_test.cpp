#include "laboratory/svg.hpp"

#include <gtest/gtest.h>

namespace via::cli::svg_test {

std::size_t count(const std::string& text, const std::string& part) {
    std::size_t found = 0;
    for (std::size_t at = 0; (at = text.find(part, at)) != std::string::npos; at += part.size())
        ++found;
    return found;
}

TEST(LabSvg, AStackHasAPieceForEachShareAndAKeyOfThem) {
    Stack first{"4 B", {}}, second{"a < b", {}};
    first.parts_ns[0] = 1000;
    first.parts_ns[3] = 2000;
    second.parts_ns[3] = 500;
    const std::string text = stacks_svg("where & what", {first, second});
    EXPECT_EQ(count(text, "<rect"), 3U + 2U);  // pieces, and the key
    EXPECT_EQ(count(text, "<title>user: 1.00 us</title>"), 1U);
    EXPECT_EQ(count(text, ">a &lt; b</text>"), 1U);
    EXPECT_EQ(count(text, "where &amp; what"), 1U);
    // The longest bar is as wide as the picture's part for bars, 640.
    EXPECT_EQ(count(text, "width=\"213.33\""), 1U);
    EXPECT_EQ(count(text, "width=\"426.67\""), 1U);
}

TEST(LabSvg, StacksThatDifferByMuchAreShownInPercent) {
    Stack small{"4 B", {}}, large{"64 KB", {}};
    small.parts_ns[0] = small.parts_ns[3] = 500;
    large.parts_ns[3] = 20'000;
    const std::string text = stacks_svg("parts", {small, large});
    EXPECT_EQ(count(text, ">4 B, 1.0 us</text>"), 1U);
    EXPECT_EQ(count(text, ">64 KB, 20.0 us</text>"), 1U);
    EXPECT_EQ(count(text, ">%</text>"), 1U);
    EXPECT_EQ(count(text, "width=\"320.00\""), 2U);
    EXPECT_EQ(count(text, "width=\"640.00\""), 1U);
}

TEST(LabSvg, ATimelineHasALineForEachResourceInTheirOrder) {
    lab::study::Explanation one;
    one.total_ns = 1000;
    one.happenings = {{0, 400, "processor", lab::Share::user, "post", true},
                      {100, 900, "engine", lab::Share::bus, "moves", false},
                      {400, 1000, "firmware", lab::Share::firmware, "steps", true},
                      {900, 2000, "engine", lab::Share::bus, "goes on", false}};
    const std::string text = timeline_svg("one", one);
    EXPECT_LT(text.find(">processor<"), text.find(">engine<"));
    EXPECT_LT(text.find(">engine<"), text.find(">firmware<"));
    EXPECT_EQ(count(text, ">engine<"), 1U);
    EXPECT_EQ(count(text, "fill-opacity=\"0.35\""), 2U);
    EXPECT_EQ(count(text, "width=\"64.00\""), 1U);  // what lasts beyond the message is cut off
    EXPECT_EQ(count(text, "beside the message's way"), 2U);
}

TEST(LabSvg, AHeatMapIsDarkestWhereMostIs) {
    const Heat heat{"%", {"C1 L1", "C2 L1"}, {"a<b", "c"}, {{0, 4}, {1, 2.5}}};
    const std::string text = heat_svg("misses", heat);
    EXPECT_EQ(count(text, "<rect"), 4U);
    EXPECT_EQ(count(text, "fill-opacity=\"0.900\""), 1U);
    EXPECT_EQ(count(text, "fill-opacity=\"0.000\""), 1U);
    EXPECT_EQ(count(text, "fill-opacity=\"0.450\""), 1U);  // a quarter of the largest
    EXPECT_EQ(count(text, ">a&lt;b</text>"), 1U);
    EXPECT_LT(text.find(">4.00<"), text.find(">2.50<"));
}

}  // namespace via::cli::svg_test
