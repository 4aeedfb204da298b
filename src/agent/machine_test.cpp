#include "agent/machine.hpp"

#include <string.h>
#include <call_filter.hpp>

#include <set>

#include "agent/test_support.hpp"

namespace via::agent::machine_test {
namespace {

const Facility* find(const Machine& machine, const std::string& name) {
    for (const Facility& facility : machine.facilities)
        if (name == facility.name) return &facility;
    return nullptr;
}

TEST(Machine, KnowsItself) {
    const Machine machine = look_at_machine();
    EXPECT_EQ(machine.kernel.substr(0, 6), "Linux ");
    EXPECT_GE(machine.processors, 1U);
    EXPECT_GE(machine.online, 1U);
    rlimit files{};
    ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &files), 0);
    EXPECT_EQ(machine.files.now, files.rlim_cur);
    EXPECT_GT(machine.locked_areas_max, 0U);
    EXPECT_EQ(std::set<std::string>({"avx512", "avx2", "sse2", "none"}).count(machine.streaming),
              1U);
}

TEST(Machine, EveryFacilityIsExplainedAndAFaultNamed) {
    const Machine machine = look_at_machine();
    std::set<std::string> names;
    for (const Facility& facility : machine.facilities) {
        EXPECT_TRUE(names.insert(facility.name).second) << facility.name;
        EXPECT_GT(strlen(facility.use), 10U) << facility.name;
        EXPECT_GT(strlen(facility.cost), 10U) << facility.name;
        EXPECT_EQ(facility.works, facility.fault.empty()) << facility.name << facility.fault;
    }
    EXPECT_GE(names.size(), 8U);
}

TEST(Machine, SaysWhatIsTrueOfWaitingAndOfCopyingOnce) {
    const Machine machine = look_at_machine();
    EXPECT_EQ(std::string(find(machine, "process-vm-readv")->use).find("not used"),
              std::string::npos);
    EXPECT_NE(std::string(find(machine, "futex-waitv")->cost).find("two wake-ups"),
              std::string::npos)
        << "as the log says it";
}

TEST(Machine, ProbesLeaveNothingOpenAndSayWhatFailed) {
    const int before = test::open_descriptors();
    EXPECT_TRUE(find(look_at_machine(), "memfd-sealing")->works);
    EXPECT_EQ(test::open_descriptors(), before);
    {
        const test::DescriptorsUsedUp used(0);
        const Machine machine = look_at_machine();
        EXPECT_FALSE(find(machine, "memfd-sealing")->works);
        EXPECT_EQ(find(machine, "memfd-sealing")->fault, strerror(EMFILE));
        EXPECT_EQ(find(machine, "proc-reopen")->fault, strerror(EMFILE));
        EXPECT_TRUE(find(machine, "wipe-on-fork")->works) << "that needs no descriptor";
    }
    EXPECT_EQ(test::open_descriptors(), before);
}

TEST(Machine, ASmallLimitOfFileSizesIsToldAndKillsNobody) {
    const test::Limit small(RLIMIT_FSIZE, 100);
    EXPECT_EQ(find(look_at_machine(), "memfd-sealing")->fault, strerror(EFBIG));
}

TEST(Machine, SeesWhatAContainerForbids) {
    constexpr int no_filters = 77;
    constexpr int never_worked = 78;
    const std::pair<const char*, long> calls[] = {{"futex-waitv", SYS_futex_waitv},
                                                  {"membarrier", SYS_membarrier},
                                                  {"pidfd", SYS_pidfd_open},
                                                  {"memfd-sealing", SYS_memfd_create},
                                                  {"mlock", SYS_mlock},
                                                  {"io-uring", SYS_io_uring_setup},
                                                  {"process-vm-readv", SYS_process_vm_readv},
                                                  {"packet-socket", SYS_socket}};
    for (const auto& [facility, number] : calls) {
        const int result = test::in_child([name = facility, call = number] {
            if (!find(look_at_machine(), name)->works) return never_worked;
            if (!call_filter::forbid(call, EPERM)) return no_filters;
            const Machine machine = look_at_machine();
            if (find(machine, name)->works || find(machine, name)->fault != strerror(EPERM))
                return 2;
            return find(machine, "wipe-on-fork")->works ? 0 : 3;
        });
        if (result == no_filters) GTEST_SKIP() << "this system lets us forbid nothing";
        if (result != never_worked) {
            EXPECT_EQ(result, 0) << facility;
        }
    }
}

}  // namespace
}  // namespace via::agent::machine_test
