#include <gtest/gtest.h>
TEST(a,b){}
