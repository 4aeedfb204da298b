#include "json.hpp"

#include <gtest/gtest.h>

namespace via::cli::json_test {
namespace {

std::string line_with(std::string_view text) { return JsonLine("s").text("t", text).line(); }

TEST(Json, ATextIsEscaped) {
    EXPECT_EQ(line_with("a\"b\\c\n"), "{\"schema\":\"s\",\"t\":\"a\\\"b\\\\c\\n\"}\n");
}

TEST(Json, CharactersStayAndBytesThatAreNoneBecomeTheReplacementCharacter) {
    for (const char* good : {"\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x98\x80", "\xed\x9f\xbf"})
        EXPECT_NE(line_with(good).find(good), std::string::npos) << good;
    EXPECT_EQ(line_with("a\xff"
                        "b"),
              "{\"schema\":\"s\",\"t\":\"a\xef\xbf\xbd"
              "b\"}\n");
    // Cut off, longer than need be, a half of a pair, behind the last character.
    for (const char* bad : {"\x80", "\xc3", "\xe2\x82", "\xc0\xaf", "\xe0\x80\xaf", "\xed\xa0\x80",
                            "\xf4\x90\x80\x80"})
        EXPECT_NE(line_with(bad).find("\"\xef\xbf\xbd"), std::string::npos) << bad;
}

}  // namespace
}  // namespace via::cli::json_test
