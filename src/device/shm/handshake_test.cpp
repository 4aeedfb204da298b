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

/// They connect while there is room, and greet together.
TEST(ShmCrowds, ThoseThatGreetTogetherGetNoMorePathsThanOthers) {
    constexpr std::size_t paths_max = 4;
    Directory directory;
    Node host{directory, [](ShmConfig& config) { config.paths_per_process_max = paths_max; }};
    std::vector<std::unique_ptr<Liar>> crowd;
    for (std::size_t n = 0; n < 2 * paths_max; ++n) {
        crowd.push_back(std::make_unique<Liar>(directory));
        ASSERT_TRUE(crowd.back()->connect(host->name()));
    }
    host.turn();
    EXPECT_TRUE(host.events.empty());
    for (auto& one : crowd) ASSERT_TRUE(one->greet(one->hello(), one->make_memory()));
    host.turn();
    EXPECT_EQ(host.count(PathEventKind::up), paths_max);
    std::size_t refused = 0;
    for (auto& one : crowd) {
        const auto heard = check_hello(one->hear());
        if (!heard && heard.error().by_peer && heard.error().reason == Refusal::resources)
            ++refused;
    }
    EXPECT_EQ(refused, paths_max);
    EXPECT_TRUE(host.reported("too many connections"));
}

}  // namespace
}  // namespace via::device::shm::test::handshake_test
