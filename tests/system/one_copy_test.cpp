// Large messages between processes in one copy, and in two where one is not allowed.
#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <via/via.h>

#include <cerrno>

#include "support/child.hpp"
#include "support/filter.hpp"
#include "support/host.hpp"
#include "support/vipl.hpp"

namespace system_test::one_copy_test {

namespace {

constexpr const char* door = "door";
constexpr std::size_t length = 300'000;
constexpr unsigned messages = 20;

constexpr uid_t nobody = 65534;

/// An ordinary user, whose processes may look into each other, or `closed` not into this one.
void become_nobody(bool closed) {
    require_call(setresgid(nobody, nobody, nobody) == 0, "setresgid");
    require_call(setresuid(nobody, nobody, nobody) == 0, "setresuid");
    require_call(prctl(PR_SET_DUMPABLE, closed ? 0 : 1) == 0, "prctl PR_SET_DUMPABLE");
}

std::uint64_t counted(Nic& nic, const char* name) {
    VIP_UINT64 value = 0;
    must(ViaReadCounter(nic.handle(), name, &value), "ViaReadCounter");
    return value;
}

/// Argument 0: what this process forbids first. Sends, then hears how many were pulled.
void be_sender(Parent& parent) {
    if (parent.argument(0) == "open") become_nobody(false);
    if (parent.argument(0) == "closed") become_nobody(true);
    Nic nic;
    Wants wants;
    wants.length = length;
    End end(nic, wants);
    end.connect(door);
    for (std::uint64_t number = 0; number < messages; ++number) {
        fill(end.send_buffer(0), length, number);
        end.post_send(0, length);
        const auto outcome = end.wait_sent(watchdog_ms);
        require(outcome && outcome->ok(), "it is sent");
    }
    parent.say("sent");
    parent.expect("end");
}
const Role sender_role("one-copy-sender", be_sender);

void be_receiver(Parent& parent) {
    if (parent.argument(0) == "nobody") become_nobody(false);
    if (parent.argument(0) == "no reading") forbid(SYS_process_vm_readv, EPERM);
    Nic nic;
    Wants wants;
    wants.length = length;
    wants.receives = messages;  // none is posted again
    End end(nic, wants);
    parent.say("ready");
    end.accept(door);
    for (std::uint64_t number = 0; number < messages; ++number) {
        const auto outcome = end.wait_received(watchdog_ms);
        require(outcome && outcome->ok(), "it is received");
        require(outcome->descriptor->CS.Length == length, "whole");
        require(holds(end.receive_buffer(outcome->slot), length, number), "and right");
    }
    parent.say(std::to_string(counted(nic, "messages_pulled")));
    parent.expect("end");
}
const Role receiver_role("one-copy-receiver", be_receiver);

/// How many of the messages the receiver pulled by itself.
std::uint64_t pulled(const std::string& sender_does, const std::string& receiver_does,
                     const std::string& sender_wants = "always",
                     const std::string& receiver_wants = "always") {
    Child::Options options;
    options.environment = {"OPENVIA_OPTIONS=one_copy=" + receiver_wants};
    options.arguments = {receiver_does};
    Child receiver("one-copy-receiver", options);
    receiver.expect("ready");
    options.environment = {"OPENVIA_OPTIONS=one_copy=" + sender_wants};
    options.arguments = {sender_does};
    Child sender("one-copy-sender", options);
    const std::string count = receiver.hear();
    sender.expect("sent");
    sender.say("end");
    receiver.say("end");
    sender.join();
    receiver.join();
    return std::stoull(count);
}

}  // namespace

TEST(OneCopy, WhereTheSystemLetsUs) {
    Host host;
    EXPECT_EQ(messages, pulled("", ""));
}

TEST(OneCopy, NotWhereTheOptionForbidsIt) {
    Host host;
    EXPECT_EQ(0U, pulled("", "", "never"));
    EXPECT_EQ(0U, pulled("", "", "always", "never")) << "nor where the receiver's does";
}

TEST(OneCopy, AFilterOfSystemCallsLeavesTwoCopies) {
    Host host;
    EXPECT_EQ(0U, pulled("", "no reading"));
}

TEST(OneCopy, AProcessThatMayNotBeLookedIntoSendsTwoCopies) {
    if (geteuid() != 0) GTEST_SKIP() << "takes the administrator, who becomes an ordinary user";
    EXPECT_EQ(messages, pulled("open", "nobody")) << "as an ordinary user it works";
    EXPECT_EQ(0U, pulled("closed", "nobody"));
}

}  // namespace system_test::one_copy_test
