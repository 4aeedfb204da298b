// Users at one address of one host: what each listens to is found from another host, whoever of
// them answers for the host, and nobody takes what another has. Needs the administrator, for
// network namespaces and for being somebody else.
#include <grp.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "support/child.hpp"
#include "support/host.hpp"
#include "support/networks.hpp"
#include "support/vipl.hpp"

namespace system_test::users_test {

namespace {

constexpr const char* nic_name = "udp:via0";
constexpr int anna = 60001;
constexpr int ben = 60002;

void become(const std::string& user) {
    const auto id = static_cast<uid_t>(std::stoul(user));
    require(setgroups(0, nullptr) == 0 && setgid(id) == 0 && setuid(id) == 0, "we are " + user);
    unsetenv("HOME");
    setenv("XDG_RUNTIME_DIR", (std::string(getenv("XDG_RUNTIME_DIR")) + "/" + user).c_str(), 1);
}

/// Arguments: network, user, discriminator. Accepts one connection and takes one message each time
/// it is told to; the rival may have been faster.
void be_listener(Parent& parent) {
    enter_network(parent.argument(0));
    become(parent.argument(1));
    Nic nic(nic_name);
    parent.say("open");
    while (parent.hear() == "accept") {
        End end(nic);
        VIP_CONN_HANDLE connection = nullptr;
        VIP_RETURN code = VIP_ERROR_RESOURCE;
        while (code == VIP_ERROR_RESOURCE)
            code = nic.wait_request(parent.argument(2), watchdog_ms, &connection);
        must(code, "VipConnectWait");
        OK(VipConnectAccept(connection, end.vi()));
        const auto outcome = end.wait_received(watchdog_ms);
        require(outcome && outcome->ok(), "a message arrives");
        parent.say("got it");
    }
}
const Role listener_role("users listener", be_listener);

/// Arguments as above. Says how waiting for a connection ends as soon as another one waits.
void be_rival(Parent& parent) {
    enter_network(parent.argument(0));
    become(parent.argument(1));
    Nic nic(nic_name);
    VIP_CONN_HANDLE connection = nullptr;
    VIP_RETURN code = VIP_TIMEOUT;
    while (code == VIP_TIMEOUT) code = nic.wait_request(parent.argument(2), 1, &connection);
    parent.say(name_of(code));
}
const Role rival_role("users rival", be_rival);

/// Arguments: network, address of the host, discriminator. Connects and sends a message.
void be_caller(Parent& parent) {
    enter_network(parent.argument(0));
    Nic nic(nic_name);
    nic.turn_to(parent.argument(1));
    End end(nic);
    end.connect(parent.argument(2));
    end.post_send(0, 64);
    require(end.wait_sent(watchdog_ms)->ok(), "the message is sent");
    parent.say("sent");
    parent.expect("end");
}
const Role caller_role("users caller", be_caller);

class Users : public testing::Test {
protected:
    void SetUp() override {
        if (!networks.why_not().empty()) GTEST_SKIP() << networks.why_not();
        std::filesystem::permissions(host.path(), std::filesystem::perms(0711));
        for (const int user : {anna, ben}) {
            const std::string home = host.path() + "/" + std::to_string(user);
            require(mkdir(home.c_str(), 0700) == 0 && chown(home.c_str(), static_cast<uid_t>(user),
                                                            static_cast<gid_t>(user)) == 0,
                    "a runtime directory for each");
        }
    }
    Child::Options as(int user, const std::string& discriminator) const {
        return {.arguments = {networks.name(1), std::to_string(user), discriminator}};
    }
    /// From another host.
    void call(Child& listener, const std::string& discriminator) const {
        listener.say("accept");
        Child caller("users caller",
                     {.arguments = {networks.name(0), Networks::address(1), discriminator}});
        caller.expect("sent");
        listener.expect("got it");
        caller.say("end");
        caller.join();
    }
    static void dismiss(Child& child) {
        child.say("end");
        child.join();
    }
    Host host;
    Networks networks;
};

TEST_F(Users, BothAreFoundAtOneAddress) {
    Child first("users listener", as(anna, "anna's")), second("users listener", as(ben, "ben's"));
    first.expect("open");
    second.expect("open");
    call(first, "anna's");
    call(second, "ben's");
    dismiss(first);
    dismiss(second);
}

TEST_F(Users, AnotherUserAnswersWhenTheOneThatDidIsKilled) {
    Child first("users listener", as(anna, "anna's"));
    first.expect("open");
    Child second("users listener", as(ben, "ben's"));
    second.expect("open");
    first.kill();
    call(second, "ben's");
    Child third("users listener", as(anna, "anna's"));
    third.expect("open");
    call(third, "anna's");
    dismiss(second);
    dismiss(third);
}

TEST_F(Users, NobodyListensToWhatAnotherHas) {
    Child first("users listener", as(anna, "door"));
    first.expect("open");
    first.say("accept");
    Child rival("users rival", as(ben, "door"));
    EXPECT_EQ(rival.hear(), "ERROR_RESOURCE");
    rival.join();
    Child caller("users caller", {.arguments = {networks.name(0), Networks::address(1), "door"}});
    caller.expect("sent");
    first.expect("got it");
    dismiss(caller);
    dismiss(first);
}

}  // namespace

}  // namespace system_test::users_test
