// Runs the tests, or one role of a test in a child process.
#include <gtest/gtest.h>

#include "support/child.hpp"

int main(int argc, char** argv) {
    const int result = system_test::run_role(argc, argv);
    if (result >= 0) return result;
    testing::InitGoogleTest(&argc, argv);
    return RUN_ALL_TESTS();
}
