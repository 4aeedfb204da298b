// NICs of different addresses on one machine: who finds whom, and who is believed.
#include "device/shm/folder.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "device/shm/test_support.hpp"

namespace via::device::shm::test::folder_test {
namespace {

HostAddress address(std::uint8_t a, std::uint8_t d, unsigned port) {
    HostAddress made;
    made.length = 6;
    made.bytes = {
        a, 0, 0, d, static_cast<std::uint8_t>(port >> 8), static_cast<std::uint8_t>(port)};
    return made;
}

TEST(ShmFolder, IsCalledAfterItsAddress) {
    EXPECT_EQ(folder_name(test_address()), "shm-127.0.0.1-9741");
    EXPECT_EQ(folder_name(address(255, 0, 65535)), "shm-255.0.0.0-65535");
    HostAddress found;
    ASSERT_TRUE(parse_folder_name("shm-127.0.0.1-9741", found));
    EXPECT_EQ(found, test_address());
    HostAddress long_one = test_address();
    long_one.length = 18;
    EXPECT_EQ(folder_name(long_one), "");
}

TEST(ShmFolder, OtherSpellingsAreNoNames) {
    HostAddress found;
    for (const char* name :
         {"", "shm", "shm-A", "shm-127.0.0.1", "shm-127.0.0.1-", "shm-127.0.0.01-9741",
          "shm-127.0.0.256-9741", "shm-127.0.0.1-9741 ", "shm-127.0.0.1-9741x",
          "shm-127.0.0.1-99999", "shm-127.0.0.-1-1", "shm-+1.0.0.1-1", "xshm-127.0.0.1-9741"})
        EXPECT_FALSE(parse_folder_name(name, found)) << name;
}

/// It is shown on terminals, and any process of the user can write it.
TEST(ShmFolder, AHostNameIsPlainToSee) {
    Directory directory;
    ASSERT_EQ(::symlink("a\x1b[2J b", (directory.path + "/name").c_str()), 0);
    const auto folder = Folder::open(System::real(), directory.path);
    ASSERT_TRUE(folder);
    EXPECT_EQ(folder->host(), "a?[2J?b");
}

TEST(ShmFolder, BelongsToOneHostName) {
    Directory directory;
    const auto folder = Folder::open(System::real(), directory.path);
    ASSERT_TRUE(folder);
    EXPECT_EQ(folder->host(), "");
    EXPECT_TRUE(folder->claim("left"));
    EXPECT_TRUE(folder->claim("left")) << "every NIC of that host says so";
    EXPECT_EQ(folder->host(), "left");
    const auto refused = folder->claim("right");
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().status, Status::error_resource);
    for (const char* part : {"left", "right", "choose another"})
        EXPECT_NE(refused.error().text.find(part), std::string::npos) << refused.error().text;
    Node node(directory, [](ShmConfig& config) { config.host = "right"; });
    EXPECT_EQ(node.device, nullptr);
    EXPECT_NE(node.error.find("left"), std::string::npos) << node.error;
}

/// Two addresses, a NIC at each.
class ShmNeighbours : public ::testing::Test {
protected:
    static NetAddress at(std::uint8_t last, const std::string& text) {
        return {test_address(last), discriminator(text)};
    }
    Directory directory;
    Directory other_directory{directory, test_address(2)};
    Node node{directory};
    Node other{other_directory, [this](ShmConfig& config) {
                   config.directory = other_directory.path;
                   config.address = test_address(2);
                   config.host = "other";
               }};
};

TEST_F(ShmNeighbours, FindEachOtherByAddressAndKnowWhoItIs) {
    ASSERT_NE(other.device, nullptr) << other.error;
    ASSERT_EQ(other->listen(discriminator("x")), Status::success);
    ASSERT_EQ(node->listen(discriminator("x")), Status::success) << "theirs, not ours";
    node->resolve(at(2, "x"), 1);
    ASSERT_TRUE(turn_until({&node, &other}, [&] {
        return node.has(PathEventKind::resolved) && other.has(PathEventKind::up);
    }));
    const PathId out = node.find(PathEventKind::resolved)->path;
    const PathId in = other.find(PathEventKind::up)->path;
    EXPECT_EQ(node->peer_address(out), test_address(2));
    EXPECT_EQ(other->peer_address(in), test_address(1));
    expect_passes(node, out, other, in, 24, 8192, 1);
    expect_passes(other, in, node, out, 24, 8192, 2);
    // The way back is the same channel.
    other->resolve(at(1, "x"), 2);
    other.turn();
    ASSERT_TRUE(other.has(PathEventKind::resolved));
    EXPECT_EQ(other.find(PathEventKind::resolved)->path, in);
}

TEST_F(ShmNeighbours, SayWhetherTheHostOrTheListenerIsMissing) {
    const auto answer_for = [&](const NetAddress& remote) {
        node.events.clear();
        node->resolve(remote, 1);
        node.turn();
        EXPECT_EQ(node.events.size(), 1U);
        EXPECT_EQ(node.events[0].kind, PathEventKind::unresolved);
        return node.events[0].status;
    };
    EXPECT_EQ(answer_for(at(2, "x")), Status::no_match);
    EXPECT_EQ(answer_for(at(3, "x")), Status::no_match) << "it may come";
    NetAddress strange = at(2, "x");
    strange.host.length = 18;
    EXPECT_EQ(answer_for(strange), Status::not_reachable);
    strange.host.length = 0;
    EXPECT_EQ(answer_for(strange), Status::not_reachable);
    strange = at(2, "x");
    strange.host.bytes[5] ^= 1;
    EXPECT_EQ(answer_for(strange), Status::not_reachable) << "another port";
    // A listener whose process has ended.
    ASSERT_EQ(::symlink(make_nic_name(1, 5).c_str(), (other_directory.path + "/d-78").c_str()), 0);
    EXPECT_EQ(answer_for(at(2, "x")), Status::no_match);
    EXPECT_TRUE(node.reports.empty()) << node.reports[0];
}

TEST_F(ShmNeighbours, AFolderThatIsNotOursAloneIsNotEntered) {
    const std::string path = directory.machine + "/" + folder_name(test_address(3));
    ASSERT_EQ(::symlink(other_directory.path.c_str(), path.c_str()), 0);
    node->resolve(at(3, "x"), 1);
    ASSERT_EQ(::unlink(path.c_str()), 0);
    ASSERT_EQ(::mkdir(path.c_str(), 0700), 0);
    ASSERT_EQ(::chmod(path.c_str(), 0755), 0);
    node->resolve(at(3, "x"), 2);
    ASSERT_EQ(::rmdir(path.c_str()), 0);
    node.turn();
    EXPECT_EQ(node.count(PathEventKind::unresolved), 2U);
    EXPECT_EQ(node.reports.size(), 2U);
    EXPECT_TRUE(node.reported("0700"));
}

TEST_F(ShmNeighbours, AnAddressIsBelievedOnlyWithANameInItsFolder) {
    const auto outcome_of = [&](const HostAddress& claimed, std::uint64_t key) {
        Liar liar(directory);
        EXPECT_TRUE(liar.connect(node->name()));
        liar.greet(make_hello(liar.layout, claimed, make_nic_name(::getpid(), key)),
                   liar.make_memory());
        node.events.clear();
        node.reports.clear();
        node.turn();
        const bool in = node.has(PathEventKind::up);
        if (in) {
            EXPECT_EQ(node->peer_address(node.events[0].path), claimed);
        } else {
            EXPECT_TRUE(liar.hung_up() && node.reported("directory of its NIC address"));
        }
        return in;
    };
    EXPECT_TRUE(outcome_of(test_address(1), 0xBAD)) << "the liar's own name is there";
    EXPECT_FALSE(outcome_of(test_address(1), 0xBAE));
    EXPECT_FALSE(outcome_of(test_address(2), 0xBAD)) << "another host's NIC it is not";
    EXPECT_FALSE(outcome_of(test_address(3), 0xBAD)) << "no such host";
    Liar neighbour(other_directory);
    EXPECT_TRUE(outcome_of(test_address(2), 0xBAD));
}

TEST_F(ShmNeighbours, AreListedWhileTheyLive) {
    System& system = System::real();
    std::vector<Host> hosts = present_hosts(system, directory.machine);
    ASSERT_EQ(hosts.size(), 2U);
    EXPECT_EQ(hosts[0].address, test_address(1));
    EXPECT_EQ(hosts[0].name, "");
    EXPECT_EQ(hosts[1].address, test_address(2));
    EXPECT_EQ(hosts[1].name, "other");
    other.device.reset();
    // What a killed one leaves behind counts for nothing.
    ASSERT_EQ(::symlink(make_nic_name(1, 5).c_str(), (other_directory.path + "/d-78").c_str()), 0);
    Liar(other_directory).settle(make_nic_name(999999999, 5));
    ::unlink((other_directory.path + "/" + make_nic_name(::getpid(), 0xBAD)).c_str());
    hosts = present_hosts(system, directory.machine);
    ASSERT_EQ(hosts.size(), 1U);
    EXPECT_EQ(hosts[0].address, test_address(1));
    const auto found = find_host(system, directory.machine, test_address(2));
    ASSERT_TRUE(found) << "still known";
    EXPECT_EQ(found->name, "other");
    EXPECT_FALSE(find_host(system, directory.machine, test_address(3)));
    EXPECT_TRUE(present_hosts(system, directory.machine + "/no").empty());
}

}  // namespace
}  // namespace via::device::shm::test::folder_test
