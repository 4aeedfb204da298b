// What the system refuses is told with the call, and with the system's own word for the reason:
// each call that opening a NIC makes is forbidden by a filter, as containers and services do.
#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <via/via.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "support/child.hpp"
#include "support/filter.hpp"
#include "support/host.hpp"
#include "support/vipl.hpp"

namespace system_test::refusals_test {

namespace {

bool has(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}

/// Argument 0: the NIC; 1: the number of the call that is forbidden.
void be_refused(Parent& parent) {
    forbid(std::stoi(parent.argument(1)), EPERM);
    VIP_NIC_HANDLE nic = nullptr;
    char why[1024];
    if (ViaOpenNic(parent.argument(0).c_str(), &nic, why, sizeof why) != VIP_SUCCESS) {
        parent.say(why);
        return;
    }
    VipCloseNic(nic);  // what closing lacks is logged
    parent.say("opened");
}
const Role refused_role("refused", be_refused);

struct Forbidden {
    int call;
    const char* said;  ///< one of these, apart by blanks
};
const Forbidden all_forbidden[] = {
    {SYS_socket, "socket getifaddrs"},
    {SYS_bind, "bind getifaddrs"},
    {SYS_listen, "listen"},
    {SYS_fcntl, "F_DUPFD_CLOEXEC F_ADD_SEALS fcntl"},
    {SYS_ftruncate, "ftruncate"},
    {SYS_symlinkat, "symlinkat"},
    {SYS_epoll_ctl, "epoll_ctl"},
    {SYS_epoll_create1, "epoll_create1"},
    {SYS_eventfd2, "eventfd"},
    {SYS_getrandom, "getrandom"},
    {SYS_memfd_create, "memfd_create"},
    {SYS_clone3, "pthread_create"},
    {SYS_fchmod, "fchmod"},
    {SYS_fchmodat, "fchmodat"},
    {SYS_mkdirat, "mkdirat mkdir"},
#ifdef SYS_mkdir
    {SYS_mkdir, "mkdtemp mkdir"},
    {SYS_chmod, "chmod"},
    {SYS_symlink, "symlink"},
#endif
};

bool names_one(const std::string& text, const std::string& calls) {
    for (std::size_t at = 0; at < calls.size();) {
        const std::size_t end = std::min(calls.find(' ', at), calls.size());
        if (has(text, calls.substr(at, end - at))) return true;
        at = end + 1;
    }
    return false;
}

class Refusals : public testing::TestWithParam<const char*> {};

TEST_P(Refusals, OfCallsNameTheCallAndTheReason) {
    std::string nic = GetParam();
    if (nic == "udp") nic += ":" + own_loopback_address();
    int refused = 0;
    for (const Forbidden& one : all_forbidden) {
        const Host host;
        Child child("refused", {.arguments = {nic, std::to_string(one.call)}});
        const std::string why = child.hear();
        child.join();
        if (why == "opened") continue;
        ++refused;
        EXPECT_TRUE(names_one(why, one.said)) << one.said << " is forbidden: " << why;
        EXPECT_TRUE(has(why, std::strerror(EPERM))) << one.said << " is forbidden: " << why;
        EXPECT_FALSE(has(why, "permissions of the directory")) << why;
    }
    EXPECT_GT(refused, 7) << "opening needs such calls";
}

INSTANTIATE_TEST_SUITE_P(Media, Refusals, testing::Values("shm", "udp"),
                         [](const auto& device) { return std::string(device.param); });

}  // namespace

}  // namespace system_test::refusals_test
