// What long-lived programs meet: nobody reads the errors, peers go, descriptors and names are taken
// away by others.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <string>
#include <vector>

#include "leaver.hpp"
#include "support/child.hpp"
#include "support/host.hpp"
#include "support/vipl.hpp"

namespace system_test::daemon_test {

namespace {

bool has(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}

/// Without an error handler of its own, as old programs are. Receives are posted, and if argument 0
/// says so a message that nobody takes.
void be_unheard(Parent& parent) {
    Nic nic(parent.argument(1).c_str());
    OK(VipErrorCallback(nic.handle(), nullptr, nullptr));
    End end(nic, leavers_wants);
    end.accept(door_of_this_host());
    parent.say("connected");
    parent.expect("send");
    if (parent.argument(0) == "sending") end.post_send(0, 8);
    parent.say("sent");
    parent.expect("end");
}
const Role unheard_role("unheard", be_unheard);

const Role leaver_role("leaver", be_leaver);

/// Closes everything that it did not open itself, as daemons do, and opens files of its own.
void be_daemon(Parent& parent) {
    VIP_NIC_HANDLE nic = nullptr;
    std::string device = parent.argument(0);
    OK(VipOpenNic(device.data(), &nic));
    const std::string file = parent.argument(1);
    require_call(close_range(3, ~0U, 0) == 0, "close_range");
    std::vector<int> own;
    for (int n = 0; n < 64; ++n) own.push_back(open(file.c_str(), O_RDWR | O_CREAT, 0600));
    require(VipCloseNic(nic) == VIP_ERROR_RESOURCE, "it cannot be closed");
    for (const int one : own)
        require_call(lseek(one, 0, SEEK_END) == 0, "our files are left alone");
    require(VipCloseNic(nic) == VIP_INVALID_PARAMETER, "it is gone");
    _exit(17);
}
const Role daemon_role("daemon", be_daemon);

class Daemon : public testing::TestWithParam<const char*> {};

TEST_P(Daemon, ANicWithoutItsDescriptorsIsClosedWithAnError) {
    Host host;
    const std::string log = host.path() + "/log";
    Child daemon("daemon", {.arguments = {GetParam(), host.path() + "/own"},
                            .environment = {"OPENVIA_LOG=" + log}});
    const int ended = reap(daemon.pid());
    EXPECT_TRUE(WIFEXITED(ended) && WEXITSTATUS(ended) == 17) << ended;
    EXPECT_TRUE(has(read_file(log), "has closed the NIC's descriptors")) << read_file(log);
}

INSTANTIATE_TEST_SUITE_P(Media, Daemon, testing::Values("shm", "udp:127.0.0.1", "auto:127.0.0.1"),
                         [](const auto& device) {
                             const std::string name = device.param;
                             return name.substr(0, name.find(':'));
                         });

/// Opens its NIC (argument 0) with rights that it gives away before it listens.
void be_resigned(Parent& parent) {
    Nic nic(parent.argument(0).c_str());
    constexpr uid_t nobody = 65534;
    require_call(setgid(nobody) == 0 && setuid(nobody) == 0, "setgid, setuid");
    VIP_CONN_HANDLE connection = nullptr;
    require(nic.wait_request(door_of_this_host(), 1, &connection) == VIP_ERROR_RESOURCE,
            "it cannot listen");
    parent.say("told");
    parent.expect("end");
}
const Role resigned_role("resigned", be_resigned);

TEST_P(Daemon, WhoGaveItsRightsAwayIsToldWhereAndWhyItCannotListen) {
    if (geteuid() != 0) GTEST_SKIP() << "takes the administrator, who becomes an ordinary user";
    Host host;
    const std::string log = host.path() + "/log";
    Child child("resigned", {.arguments = {GetParam()}, .environment = {"OPENVIA_LOG=" + log}});
    child.expect("told");
    const std::string text = read_file(log);
    const bool is_udp = std::string(GetParam()).starts_with("udp");
    EXPECT_TRUE(has(text, "cannot announce a listener in " +
                              (is_udp ? "/dev/shm/openvia-" : host.path() + "/openvia/")))
        << text;
    EXPECT_TRUE(has(text, "symlinkat): Permission denied")) << text;
    child.kill();
}

/// Leaves its network behind, and listens, or asks (argument 0).
void be_emigrant(Parent& parent) {
    Nic nic("shm");
    parent.say(unshare(CLONE_NEWNET) == 0 ? "left" : "no right to");
    End end(nic);
    VIP_CONN_HANDLE connection = nullptr;
    for (int twice = 0; twice < 2; ++twice) {
        const VIP_RETURN code = parent.argument(0) == "listens"
                                    ? nic.wait_request(door_of_this_host(), 1, &connection)
                                    : end.request(door_of_this_host(), watchdog_ms);
        require(code == VIP_TIMEOUT || code == VIP_NO_MATCH, "nobody is there");
    }
    parent.say("told");
    parent.expect("end");
}
const Role emigrant_role("emigrant", be_emigrant);

TEST(Daemon, WhoLeavesTheNetworkOfItsNicIsTold) {
    for (const char* does : {"listens", "asks"}) {
        Host host;
        const std::string log = host.path() + "/log";
        Child child("emigrant", {.arguments = {does}, .environment = {"OPENVIA_LOG=" + log}});
        if (child.hear() != "left") GTEST_SKIP() << "no right to make a network namespace";
        child.expect("told");
        const std::string text = read_file(log);
        EXPECT_TRUE(has(text, "it was opened in the network namespace net:[")) << text;
        EXPECT_TRUE(has(text, host.path() + "/openvia/")) << text;
        EXPECT_EQ(text.find("it was opened"), text.rfind("it was opened")) << text;
        child.kill();
    }
}

class Unheard : public testing::TestWithParam<const char*> {
protected:
    /// What is logged when the peer ends.
    std::string lost(const std::string& how) {
        Host host;
        const std::string log = host.path() + "/log";
        Child unheard("unheard", {.arguments = {how, GetParam()},
                                  .environment = {"OPENVIA_LOG=" + log, "OPENVIA_LOG_LEVEL=2"}});
        Child leaver("leaver", {.arguments = {GetParam()}});
        unheard.expect("connected");
        leaver.expect("connected");
        leaver.stop();
        unheard.say("send");
        unheard.expect("sent");
        leaver.kill();
        std::string text;
        until("the log tells of the peer's end", [&] {
            text = read_file(log);
            return has(text, "the connection was lost") && text.ends_with('\n');
        });
        unheard.kill();
        return text;
    }
};

/// On standard error at every normal end, since one of two ends first.
TEST_P(Unheard, TheEndOfAPeerIsNoWarningWhereNothingWasUnderWay) {
    const std::string log = lost("idle");
    EXPECT_FALSE(has(log, "warning")) << log;
    EXPECT_TRUE(has(log, "info: NIC ")) << log;
}

TEST_P(Unheard, AMessageThatIsLostIsTold) {
    const std::string log = lost("sending");
    EXPECT_TRUE(has(log, "warning: NIC ")) << log;
    EXPECT_TRUE(has(log, "lost, and what was under way with it")) << log;
}

INSTANTIATE_TEST_SUITE_P(Media, Unheard, testing::Values("shm", "udp:127.0.0.1"),
                         [](const auto& device) { return std::string(device.param).substr(0, 3); });

}  // namespace

}  // namespace system_test::daemon_test
