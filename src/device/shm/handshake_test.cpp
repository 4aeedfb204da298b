// What a NIC that is turned away learns of it.
#include <gtest/gtest.h>

#include <utility>

#include "device/shm/test_support.hpp"

namespace via::device::shm::test::handshake_test {
namespace {

/// A NIC that has room for one path from this process, and the one who has that path.
struct ShmCrowd : testing::Test {
    ShmCrowd() { connect(first, host); }

    Directory directory;
    Node host{directory, [](ShmConfig& config) { config.paths_per_process_max = 1; }};
    Node first{directory}, second{directory};
};

TEST_F(ShmCrowd, WhoIsTurnedAwayUnheardLearnsWhy) {
    // The greeting lies unread at a host that refuses without looking at it.
    second->resolve(address_of("x"), 7);
    host.turn();
    EXPECT_TRUE(host.reported("too many connections"));
    second.turn();
    ASSERT_EQ(second.count(PathEventKind::unresolved), 1U);
    EXPECT_EQ(second.find(PathEventKind::unresolved)->status, Status::error_resource);
    EXPECT_TRUE(second.reported("too many connections from one process"));
}

/// Lets something happen before the first message is sent.
class Interrupted : public System {
public:
    std::function<void()> before;
    ssize_t sendmsg(int fd, const msghdr* message, int flags) override {
        if (const auto now = std::exchange(before, {})) now();
        return System::sendmsg(fd, message, flags);
    }
};

TEST_F(ShmCrowd, WhoIsTurnedAwayBeforeItGreetsLearnsWhy) {
    Interrupted system;
    Node third{directory, [&](ShmConfig& config) { config.system = &system; }};
    system.before = [&] { host.turn(); };
    third->resolve(address_of("x"), 7);
    EXPECT_TRUE(host.reported("too many connections"));
    third.turn();
    ASSERT_EQ(third.count(PathEventKind::unresolved), 1U);
    EXPECT_EQ(third.find(PathEventKind::unresolved)->status, Status::error_resource);
    EXPECT_TRUE(third.reported("too many connections from one process"));
}

}  // namespace
}  // namespace via::device::shm::test::handshake_test
