// Shows that the harness can fail: every test but one does, each in another way. CMakeLists.txt
// counts them.
#include <signal.h>
#include <unistd.h>

#include "harness/test.hpp"

namespace conformance {
namespace {

void returns_at_once(Role&) {}
void meets(Role& me) { me.meet(); }

VIPL_TEST(Good_values_are_told_in_order, processes) {
    test.role("x", [](Role& me) {
        me.tell("y", 5);
        me.tell("y", 'c');
        me.meet();
        me.wait_for_end_of("y");
    });
    test.role("y", [](Role& me) {
        EXPECT_EQ(5, me.hear<int>("x"));
        EXPECT_EQ('c', me.hear<char>("x"));
        me.meet();
    });
    test.role(
        "dies",
        [](Role& me) {
            me.meet();
            raise(SIGKILL);
        },
        killed_by(SIGKILL));
}

VIPL_TEST(Bad_1_an_expectation_fails, processes) {
    test.role("x", [](Role&) { EXPECT_EQ(1, 2); });
    test.role("y", returns_at_once);
}

VIPL_TEST(Bad_2_a_call_fails, processes) {
    test.role("x", [](Role&) { OK(VIP_TIMEOUT); });
}

VIPL_TEST(Bad_3_a_role_is_left_alone, processes) {
    test.role("x", meets);
    test.role("y", returns_at_once);
}

VIPL_TEST(Bad_4_an_expectation_fails_in_a_thread, processes) {
    test.role("x", [](Role& me) {
        Thread thread(me, [] { EXPECT_EQ(1, 2); });
        thread.join();
    });
}

VIPL_TEST(Bad_5_a_call_fails_in_a_thread, processes) {
    test.role("x", [](Role& me) {
        Thread thread(me, [] { OK(VIP_TIMEOUT); });
        thread.join();
    });
}

VIPL_TEST(Bad_6_a_value_of_another_type, processes) {
    test.role("x", [](Role& me) { me.tell("y", 5); });
    test.role("y", [](Role& me) { me.hear<char>("x"); });
}

VIPL_TEST(Bad_7_roles_meet_at_different_points, processes) {
    test.role("x", meets);
    test.role("y", [](Role& me) { me.tell("x", 'x'); });
}

VIPL_TEST(Bad_8_a_role_exits, processes) {
    test.role("x", [](Role&) { _exit(5); });
}

VIPL_TEST(Bad_9_a_role_is_killed, processes) {
    test.role("x", [](Role&) { raise(SIGKILL); });
}

VIPL_TEST(Bad_10_a_role_lives_that_should_be_killed, processes) {
    test.role("x", returns_at_once, killed_by(SIGKILL));
}

VIPL_TEST(Bad_11_a_role_dies_otherwise_than_planned, processes) {
    test.role("x", [](Role&) { _exit(5); }, exits_with(6));
}

VIPL_TEST(Bad_12_a_role_exits_cleanly_in_the_midst, processes) {
    test.role("x", [](Role&) { _exit(0); });
}

}  // namespace
}  // namespace conformance
