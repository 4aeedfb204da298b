// Too few descriptors, too little memory: every amount that is not quite enough. The calls answer
// with an error that fits, the log says why, and once there is more all works.
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <via/via.h>

#include <algorithm>
#include <array>
#include <utility>

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

/// Registers until it is refused, as it must be: there are more places than memory for them.
void register_all(Parent& parent) {
    Nic nic;
    static char memory[64];
    const auto add = [&](VIP_MEM_HANDLE& handle) {
        return VipRegisterMem(nic.handle(), memory, sizeof memory, nullptr, &handle);
    };
    VIP_MEM_HANDLE first = 0;
    OK(add(first));  // before the limit: a thread that starts meanwhile may take all there is
    rlimit before{};
    require_call(getrlimit(RLIMIT_AS, &before) == 0, "getrlimit");
    rlimit tight = before;
    tight.rlim_cur =
        8 * 1024 * 1024 + static_cast<rlim_t>(read_number("/proc/self/status", "VmSize")) * 1024;
    require_call(setrlimit(RLIMIT_AS, &tight) == 0, "setrlimit");
    VIP_RETURN code = VIP_SUCCESS;
    unsigned long count = 1;
    for (VIP_MEM_HANDLE handle = 0; code == VIP_SUCCESS; ++count) code = add(handle);
    require_call(setrlimit(RLIMIT_AS, &before) == 0, "setrlimit");
    parent.say(name_of(code));
    VIP_NIC_ATTRIBUTES about{};
    OK(VipQueryNic(nic.handle(), &about));
    require(count < about.MaxRegisterRegions, "memory is what was missing");
    OK(VipDeregisterMem(nic.handle(), memory, first));
    for (int n = 0; n < 2; ++n) OK(add(first));
    parent.say("there is more");
}
const Role register_role("register", register_all);

/// While this lives not a byte is to be had, nor a page.
class NoMemory {
public:
    NoMemory() {
        // Of the stack there is enough already.
        volatile char stack[256 * 1024];
        for (std::size_t at = 0; at < sizeof stack; at += 1024) stack[at] = 0;
        require_call(getrlimit(RLIMIT_AS, &before_) == 0, "getrlimit");
        rlimit tight = before_;
        tight.rlim_cur = 0;
        require_call(setrlimit(RLIMIT_AS, &tight) == 0, "setrlimit");
        for (std::size_t bytes = 1 << 20; bytes > 4096; bytes /= 2) take_all(bytes);
        for (std::size_t bytes = 4096; bytes != 0; bytes -= 16) take_all(bytes);
    }
    ~NoMemory() {
        setrlimit(RLIMIT_AS, &before_);
        while (taken_ != nullptr) free(std::exchange(taken_, *static_cast<void**>(taken_)));
    }

private:
    void take_all(std::size_t bytes) {
        while (void* taken = malloc(bytes)) {
            *static_cast<void**>(taken) = taken_;
            taken_ = taken;
        }
    }
    rlimit before_{};
    void* taken_ = nullptr;
};

/// What needs memory of the library is refused without, and works again with it.
void live_without_memory(Parent& parent) {
    Nic nic;
    VIP_VI_ATTRIBUTES wanted{};
    wanted.ReliabilityLevel = VIP_SERVICE_RELIABLE_DELIVERY;
    wanted.MaxTransferSize = Wants{}.length;
    VIP_CQ_HANDLE queue = nullptr;
    OK(VipCreateCQ(nic.handle(), 1, &queue));
    VIP_VI_HANDLE idle = nullptr;
    OK(VipCreateVi(nic.handle(), &wanted, nullptr, nullptr, &idle));
    Address local = nic.address("local");
    Address remote = nic.address("remote");
    static char memory[64];
    unsigned long refused = 0;
    std::array<VIP_VI_HANDLE, 20'000> vis;
    std::size_t vis_made = 0;
    const auto try_all_calls = [&] {
        const char* failed = nullptr;
        const auto see = [&](const char* call, VIP_RETURN code) {
            if (code == VIP_ERROR_RESOURCE) ++refused;
            if (code != VIP_ERROR_RESOURCE && code != VIP_SUCCESS) failed = call;
            return code == VIP_SUCCESS;
        };
        VIP_PROTECTION_HANDLE tag = nullptr;
        if (see("VipCreatePtag", VipCreatePtag(nic.handle(), &tag)))
            see("VipDestroyPtag", VipDestroyPtag(nic.handle(), tag));
        VIP_MEM_HANDLE handle = 0;
        if (see("VipRegisterMem",
                VipRegisterMem(nic.handle(), memory, sizeof memory, nullptr, &handle)))
            see("VipDeregisterMem", VipDeregisterMem(nic.handle(), memory, handle));
        VIP_CQ_HANDLE another = nullptr;
        if (see("VipCreateCQ", VipCreateCQ(nic.handle(), 1000, &another)))
            see("VipDestroyCQ", VipDestroyCQ(another));
        see("VipResizeCQ", VipResizeCQ(queue, 1000));
        VIP_PVOID segment = nullptr;
        if (see("ViaCreateSegment",
                ViaCreateSegment(nic.handle(), 4096, nullptr, &segment, &handle)))
            see("ViaDestroySegment", ViaDestroySegment(nic.handle(), segment));
        int descriptor = -1;
        see("ViaCQDescriptor", ViaCQDescriptor(queue, &descriptor));
        see("VipCQNotify",
            VipCQNotify(queue, nullptr,
                        [](VIP_PVOID, VIP_NIC_HANDLE, VIP_VI_HANDLE, VIP_BOOLEAN) {}));
        if (see("ViaConnectPeerRequest",
                ViaConnectPeerRequest(idle, local.get(), remote.get(), VIP_INFINITE, memory, 64)))
            see("VipDisconnect", VipDisconnect(idle));
        while (vis_made < vis.size() &&
               see("VipCreateVi",
                   VipCreateVi(nic.handle(), &wanted, nullptr, nullptr, &vis[vis_made])))
            if (++vis_made % 1000 == 0) break;
        require(failed == nullptr, failed == nullptr ? "" : failed);
    };
    {
        const NoMemory no_memory;
        try_all_calls();
    }
    parent.say(refused > 5 ? "refused" : "there was memory");
    const unsigned long before = refused;
    try_all_calls();
    require(refused == before, "with memory all is well");
    for (std::size_t n = 0; n < vis_made; ++n) OK(VipDestroyVi(vis[n]));
    OK(VipDestroyVi(idle));
    OK(VipDestroyCQ(queue));
    parent.say("all is well");
}
const Role without_role("without-memory", live_without_memory);

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

TEST_F(ShortOf, MemoryForRegions) {
    if (sanitized) GTEST_SKIP() << "a sanitizer needs all the address space there is";
    const std::string log_path = host_.path() + "/register.log";
    Child child("register",
                {.environment = {"OPENVIA_LOG=" + log_path, "OPENVIA_OPTIONS=pin=never"}});
    child.expect("ERROR_RESOURCE");
    child.expect("there is more");
    child.join();
}

TEST_F(ShortOf, AnyMemory) {
    if (sanitized) GTEST_SKIP() << "a sanitizer needs all the address space there is";
    Child child("without-memory", {.environment = {"OPENVIA_OPTIONS=pin=never"}});
    child.expect("refused");
    child.expect("all is well");
    child.join();
}

}  // namespace

}  // namespace system_test::faults_limits_test
