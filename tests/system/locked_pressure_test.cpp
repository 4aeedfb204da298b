// Registered memory under memory pressure: the experiment of Seifert and Rehm, "Proposing a
// Mechanism for Reliably Locking VIA Communication Memory in Linux". A process registers memory; an
// allocator takes all the memory there is; then a peer writes through the NIC, and the process
// looks at what it has.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstring>

#include "support/child.hpp"
#include "support/host.hpp"
#include "support/pressure.hpp"
#include "support/vipl.hpp"

namespace system_test::locked_pressure_test {

namespace {

constexpr const char* door = "door";
constexpr std::size_t page = 4096;
constexpr std::size_t region_bytes = 32U << 20;
constexpr std::size_t group_bytes = 64U << 20;
constexpr std::size_t allocator_bytes = 128U << 20;
constexpr std::size_t swap_bytes = 192U << 20;
constexpr std::size_t pages = region_bytes / page;
constexpr std::size_t written_each = 128;  ///< pages: the peer writes to the first of so many
constexpr std::size_t written_bytes = 64;
constexpr unsigned writes = pages / written_each;

/// They carry immediate data, so that the owner knows when they are there.
Wants one_receive_for_each_write() {
    Wants wants;
    wants.receives = writes;
    return wants;
}

/// What the process under pressure tells.
struct Report {
    std::uint64_t address;
    VIP_MEM_HANDLE handle;
    long major_faults;  ///< of looking at each page of the region
    std::size_t wrong;  ///< pages that do not hold what they should
};

/// Of this thread: the NIC's own have memory that is not registered.
long major_faults() {
    rusage usage{};
    require_call(getrusage(RUSAGE_THREAD, &usage) == 0, "getrusage");
    return usage.ru_majflt;
}

/// Argument 0: the NIC's name. Registers memory, and looks at it when all is over.
void be_owner(Parent& parent) {
    auto& report = parent.shared<Report>();
    parent.expect("enclosed");
    Nic nic(parent.argument(0).c_str());
    Memory memory(nic, region_bytes);
    for (std::size_t n = 0; n < pages; ++n) fill(memory.data() + n * page, page, n);
    report.address = reinterpret_cast<std::uint64_t>(memory.data());
    report.handle = memory.handle();
    End end(nic, one_receive_for_each_write());
    end.accept(door);
    parent.say("registered");
    parent.expect("receive");
    for (unsigned n = 0; n < writes; ++n) {
        const auto received = end.wait_received(watchdog_ms);
        require(received && received->ok(), "the peer's bytes arrive");
    }
    const volatile std::byte* bytes = memory.data();
    const long before = major_faults();
    for (std::size_t n = 0; n < pages; ++n) static_cast<void>(bytes[n * page]);
    report.major_faults = major_faults() - before;
    for (std::size_t n = 0; n < pages; ++n) {
        // What the peer wrote, then what was there before.
        const std::size_t written = n % written_each == 0 ? written_bytes : 0;
        std::byte expected[page];
        fill(expected, page, n);
        fill(expected, written, n + pages);
        report.wrong += std::memcmp(memory.data() + n * page, expected, page) != 0;
    }
    parent.say("looked");
    parent.expect("end");
}
const Role owner_role("owner under pressure", be_owner);

/// Takes memory, and writes to all of it, twice.
void be_allocator(Parent& parent) {
    parent.expect("enclosed");
    void* at =
        mmap(nullptr, allocator_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    require_call(at != MAP_FAILED, "mmap");
    auto* bytes = static_cast<volatile unsigned char*>(at);
    for (unsigned round = 1; round <= 2; ++round)
        for (std::size_t n = 0; n < allocator_bytes; n += page)
            bytes[n] = static_cast<unsigned char>(round + n / page);
    parent.say("allocated");
    parent.expect("end");
}
const Role allocator_role("allocator", be_allocator);

struct Experiment {
    PageCensus under_pressure;
    Report report;
};

Experiment run(const Pressure& pressure, const std::string& nic_name) {
    const Host host;
    Child owner("owner under pressure", {.arguments = {nic_name}});
    pressure.enclose(owner.pid());
    owner.say("enclosed");
    Nic nic;
    End end(nic);
    end.connect(door);
    owner.expect("registered");
    Child allocator("allocator");
    pressure.enclose(allocator.pid());
    allocator.say("enclosed");
    allocator.expect("allocated");
    Experiment experiment{};
    const Report& report = owner.shared<Report>();
    experiment.under_pressure = census(owner.pid(), report.address, region_bytes);
    owner.say("receive");
    for (std::size_t n = 0; n < pages; n += written_each) {
        fill(end.send_buffer(0), written_bytes, n + pages);
        end.post_write(0, report.address + n * page, report.handle, 0);
        const auto sent = end.wait_sent(watchdog_ms);
        require(sent && sent->ok(), "the peer writes");
    }
    owner.expect("looked");
    experiment.report = report;
    owner.say("end");
    owner.join();
    allocator.say("end");
    allocator.join();
    nic.wait_error(end.vi(), VIP_ERROR_CONN_LOST);
    return experiment;
}

class LockedUnderPressure : public testing::Test {
protected:
    void SetUp() override {
        if (sanitized) GTEST_SKIP() << "a sanitizer's own memory would be what is swapped out";
        if (!pressure_.why_not().empty()) GTEST_SKIP() << pressure_.why_not();
    }
    const Pressure pressure_{group_bytes, sanitized ? 0 : swap_bytes};
};

void expect_in_place(const Experiment& experiment) {
    EXPECT_EQ(experiment.under_pressure.present, pages);
    EXPECT_EQ(experiment.under_pressure.swapped, 0U);
    EXPECT_EQ(experiment.report.major_faults, 0);
    EXPECT_EQ(experiment.report.wrong, 0U);
}

TEST_F(LockedUnderPressure, RegisteredMemoryStaysAndThePeersBytesAreSeen) {
    expect_in_place(run(pressure_, "shm,pin=require"));
}

TEST_F(LockedUnderPressure, PinnedMemoryStaysToo) {
    expect_in_place(run(pressure_, "shm,pin=dma"));
}

// Shows that the pressure is real. Unlike in the paper the program sees the peer's bytes all the
// same: our NIC goes through its page tables. Only the time is lost.
TEST_F(LockedUnderPressure, WithoutLockingItIsSwappedOut) {
    const Experiment experiment = run(pressure_, "shm,pin=never");
    EXPECT_GT(experiment.under_pressure.swapped, pages / 4);
    EXPECT_GT(experiment.report.major_faults, 0);
    EXPECT_EQ(experiment.report.wrong, 0U);
    std::printf("swapped %zu of %zu pages; %ld major faults in looking at them\n",
                experiment.under_pressure.swapped, pages, experiment.report.major_faults);
}

}  // namespace

}  // namespace system_test::locked_pressure_test
