// Too few descriptors, too little memory: every amount that is not quite enough. The calls answer
// with an error that fits, the log says why, and once there is more all works.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>

#include "support/child.hpp"
#include "support/host.hpp"
#include "support/vipl.hpp"

namespace system_test::faults_limits_test {

namespace {

constexpr const char* door = "door";

struct ShortPage {
    std::atomic<std::uint32_t> open, request, sent;  ///< what the calls answered while it was tight
    std::atomic<std::uint32_t> descriptors_before, descriptors_after, threads_after;
};

/// A peer that accepts whoever comes, and takes one message.
void be_host(Parent& parent) {
    Nic nic;
    parent.say("ready");
    for (;;) {
        End end(nic);
        if (VipConnectAccept(end.wait_request(door), end.vi()) == VIP_SUCCESS)
            nic.wait_error(end.vi(), VIP_ERROR_CONN_LOST);
    }
}
const Role host_role("host", be_host);

/// Opens, connects, sends one message and closes, as far as it comes.
void try_all(ShortPage& page) {
    VIP_NIC_HANDLE nic = nullptr;
    page.open = VipOpenNic("shm", &nic);
    if (page.open != VIP_SUCCESS) return;
    VIP_NIC_ATTRIBUTES about{};
    OK(VipQueryNic(nic, &about));
    VIP_VI_ATTRIBUTES wanted{};
    wanted.ReliabilityLevel = VIP_SERVICE_RELIABLE_DELIVERY;
    wanted.MaxTransferSize = Wants{}.length;
    wanted.EnableRdmaWrite = wanted.EnableRdmaRead = VIP_TRUE;
    VIP_VI_HANDLE vi = nullptr;
    OK(VipCreateVi(nic, &wanted, nullptr, nullptr, &vi));
    Address local(about, "from");
    Address remote(about, door);
    VIP_VI_ATTRIBUTES theirs{};
    const double start = now_ms();
    VIP_RETURN code = VIP_NO_MATCH;
    while (code == VIP_NO_MATCH && now_ms() - start < watchdog_ms)
        code = VipConnectRequest(vi, local.get(), remote.get(), 10'000, &theirs);
    page.request = code;
    if (code == VIP_SUCCESS) {
        alignas(VIP_DESCRIPTOR_ALIGNMENT) static VIP_DESCRIPTOR descriptor;
        VIP_MEM_HANDLE handle = 0;
        OK(VipRegisterMem(nic, &descriptor, sizeof descriptor, nullptr, &handle));
        descriptor = {};
        OK(VipPostSend(vi, &descriptor, handle));
        VIP_DESCRIPTOR* sent = nullptr;
        page.sent = VipSendWait(vi, 10'000, &sent);
    }
    OK(VipCloseNic(nic));
}

/// Arguments: which limit, and how much of it there is beyond what is used now.
void be_short(Parent& parent) {
    auto& page = parent.shared<ShortPage>();
    const auto resource = static_cast<__rlimit_resource>(std::stol(parent.argument(0)));
    const rlim_t spare = std::stoul(parent.argument(1));
    VIP_NIC_HANDLE none = nullptr;
    VipOpenNic("no such NIC", &none);  // the log is open from now on
    page.descriptors_before = static_cast<std::uint32_t>(Holdings::now().descriptors);
    rlimit before{};
    require_call(getrlimit(resource, &before) == 0, "getrlimit");
    rlimit tight = before;
    // The lowest descriptors are all in use, or the count would say nothing.
    tight.rlim_cur =
        spare + (resource == RLIMIT_NOFILE
                     ? page.descriptors_before.load()
                     : static_cast<rlim_t>(read_number("/proc/self/status", "VmSize")) * 1024);
    require_call(setrlimit(resource, &tight) == 0, "setrlimit");
    try_all(page);
    require_call(setrlimit(resource, &before) == 0, "setrlimit");
    page.descriptors_after = static_cast<std::uint32_t>(Holdings::now().descriptors);
    page.threads_after = static_cast<std::uint32_t>(Holdings::now().threads);
    parent.say("short");
    parent.expect("again");
    try_all(page);
    parent.say("again");
}
const Role short_role("short", be_short);

class ShortOf : public testing::Test {
protected:
    ShortOf() : peer_("host", {.environment = {"OPENVIA_LOG=" + host_.path() + "/host.log"}}) {
        peer_.expect("ready");
    }
    ~ShortOf() override {
        const std::string log = read_file(host_.path() + "/host.log");
        EXPECT_EQ(log.find("broke the protocol"), log.npos)
            << "who is short of something is no liar:\n"
            << log;
    }

    static const char* answer(const std::atomic<std::uint32_t>& code) {
        return name_of(static_cast<VIP_RETURN>(code.load()));
    }

    /// True when all went well in spite of the limit.
    bool live_with(int resource, std::size_t spare) {
        SCOPED_TRACE("with " + std::to_string(spare) + " to spare");
        const std::string log_path = host_.path() + "/short.log";
        remove(log_path.c_str());
        Child child("short", {.arguments = {std::to_string(resource), std::to_string(spare)},
                              .environment = {"OPENVIA_LOG=" + log_path}});
        auto& page = child.shared<ShortPage>();
        child.expect("short");
        const std::string log = read_file(log_path);
        const bool opened = page.open == VIP_SUCCESS;
        const bool connected = opened && page.request == VIP_SUCCESS;
        if (!opened) {
            EXPECT_STREQ(answer(page.open), "ERROR_RESOURCE") << log;
        } else if (!connected) {
            EXPECT_STREQ(answer(page.request), "ERROR_RESOURCE") << log;
        } else {
            EXPECT_STREQ(answer(page.sent), "SUCCESS") << log;
        }
        EXPECT_TRUE(connected || std::count(log.begin(), log.end(), '\n') > 1) << log;
        EXPECT_EQ(page.descriptors_after, page.descriptors_before);
        EXPECT_EQ(page.threads_after, 1U);
        EXPECT_EQ(host_.met().find("nic-" + std::to_string(child.pid())), std::string::npos);
        child.say("again");
        child.expect("again");
        EXPECT_STREQ(answer(page.open), "SUCCESS");
        EXPECT_STREQ(answer(page.request), "SUCCESS");
        EXPECT_STREQ(answer(page.sent), "SUCCESS");
        child.join();
        return connected;
    }

    Host host_;
    Child peer_;
};

TEST_F(ShortOf, Descriptors) {
    if (sanitized) GTEST_SKIP() << "the sanitizer needs descriptors to look at objects";
    constexpr std::size_t enough_surely = 60;
    std::size_t spare = 0;
    while (spare < enough_surely && !live_with(RLIMIT_NOFILE, spare)) ++spare;
    std::printf("a NIC with one peer needs %zu descriptors\n", spare);
    EXPECT_LT(spare, enough_surely);
    EXPECT_GT(spare, 0U);
}

TEST_F(ShortOf, AddressSpace) {
    if (sanitized) GTEST_SKIP() << "a sanitizer needs all the address space there is";
    constexpr std::size_t step = 512 * 1024;
    constexpr std::size_t enough_surely = 400 * step;
    std::size_t spare = 0;
    while (spare < enough_surely && !live_with(RLIMIT_AS, spare)) spare += step;
    std::printf("a NIC with one peer needs less than %zu KiB of address space\n", spare / 1024);
    EXPECT_LT(spare, enough_surely);
    EXPECT_GT(spare, 0U);
}

}  // namespace

}  // namespace system_test::faults_limits_test
