#include "base/status.hpp"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "base/counters.hpp"

namespace via::status_test {
namespace {

TEST(Status, ValuesAreThoseOfTheCInterface) {
    // VIPL 1.6, in order from 0: the C API layer only casts.
    EXPECT_EQ(static_cast<int>(Status::success), 0);
    EXPECT_EQ(static_cast<int>(Status::not_done), 1);
    EXPECT_EQ(static_cast<int>(Status::timeout), 4);
    EXPECT_EQ(static_cast<int>(Status::invalid_ptag), 9);
    EXPECT_EQ(static_cast<int>(Status::descriptor_error), 11);
    EXPECT_EQ(static_cast<int>(Status::error_name_service), 13);
    EXPECT_EQ(static_cast<int>(Status::error_not_supported), 16);
}

TEST(Status, EachHasATextOfItsOwn) {
    std::set<std::string> texts;
    for (int n = 0; n <= static_cast<int>(Status::error_not_supported); ++n)
        texts.insert(to_string(static_cast<Status>(n)));
    EXPECT_EQ(texts.size(), 17U);
    EXPECT_STREQ(to_string(Status::success), "success");
    EXPECT_STREQ(to_string(Status::no_match), "no match");
    EXPECT_STREQ(to_string(Status::error_not_supported), "error not supported");
}

TEST(Counters, EachHasANameAndATextOfItsOwn) {
    std::set<std::string> names;
    std::set<std::string> texts;
    for (std::uint32_t n = 0; n < counter_count; ++n) {
        names.insert(counter_name(n));
        texts.insert(counter_text(n));
    }
    EXPECT_EQ(names.size(), counter_count);
    EXPECT_EQ(texts.size(), counter_count);
    EXPECT_STREQ(counter_name(static_cast<std::uint32_t>(Counter::rdma_writes)), "rdma_writes");
}

TEST(Counters, CountUpAndDownEachForItself) {
    Counters counters{};
    counters.add(Counter::sends);
    counters.add(Counter::sends, 41);
    counters.add(Counter::vis_open, 3);
    counters.subtract(Counter::vis_open);
    for (std::uint32_t n = 0; n < counter_count; ++n) {
        const auto counter = static_cast<Counter>(n);
        EXPECT_EQ(counters.get(counter), counter == Counter::sends      ? 42U
                                         : counter == Counter::vis_open ? 2U
                                                                        : 0U)
            << counter_name(n);
    }
}

}  // namespace
}  // namespace via::status_test
