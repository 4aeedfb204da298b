#include "nic/path.hpp"

#include <gtest/gtest.h>

namespace via::nic::path_test {
namespace {

TEST(FoundPaths, what_was_found_is_taken_once_and_not_when_its_path_went) {
    FoundPaths found;
    found.add(10, path_id(1, 2));
    found.add(11, path_id(1, 3));
    EXPECT_EQ(found.take(12), engine::no_path);
    EXPECT_EQ(found.take(10), path_id(1, 2));
    EXPECT_EQ(found.take(10), engine::no_path);
    found.forget(path_id(1, 3));
    EXPECT_EQ(found.take(11), engine::no_path);
}

TEST(Path, numbers_of_two_devices_never_meet) {
    EXPECT_TRUE(is_path((1U << paths_per_device_bits) - 1));
    EXPECT_FALSE(is_path(1U << paths_per_device_bits));
    EXPECT_NE(path_id(0, (1U << paths_per_device_bits) - 1), path_id(1, 0));
}

}  // namespace
}  // namespace via::nic::path_test
