#include "agent/machine.hpp"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <linux/io_uring.h>
#include <sched.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "agent/file.hpp"
#include "agent/heavy_fences.hpp"
#include "agent/lock_system.hpp"
#include "agent/locked_memory.hpp"
#include "memory/copy.hpp"
#include "posix/resize.hpp"

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif

namespace via::agent {

namespace {

constexpr std::size_t probe_bytes = 4096;

/// A probe's outcome: 0, or errno of what failed.
using Probe = int (*)();

int sealed_memory(int seals) {
    const File file(memfd_create("via-probe", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    if (!file.valid() || posix::resize(file.get(), probe_bytes) < 0) return errno;
    return fcntl(file.get(), F_ADD_SEALS, seals) < 0 ? errno : 0;
}

int try_sealing() { return sealed_memory(F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL); }

int try_future_write() { return sealed_memory(F_SEAL_FUTURE_WRITE); }

int try_reopening() {
    const File file(memfd_create("via-probe", MFD_CLOEXEC));
    if (!file.valid()) return errno;
    const std::string path = "/proc/self/fd/" + std::to_string(file.get());
    const File again(open(path.c_str(), O_RDONLY | O_CLOEXEC));
    return again.valid() ? 0 : errno;
}

int try_wipe_on_fork() {
    void* page =
        mmap(nullptr, probe_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED) return errno;
    const int error = madvise(page, probe_bytes, MADV_WIPEONFORK) < 0 ? errno : 0;
    munmap(page, probe_bytes);
    return error;
}

int try_giving_back() {
    const File file(memfd_create("via-probe", MFD_CLOEXEC));
    if (!file.valid() || posix::resize(file.get(), probe_bytes) < 0) return errno;
    void* page = mmap(nullptr, probe_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
    if (page == MAP_FAILED) return errno;
    const int error = madvise(page, probe_bytes, MADV_REMOVE) < 0 ? errno : 0;
    munmap(page, probe_bytes);
    return error;
}

int try_pidfd() {
    const File process(static_cast<int>(syscall(SYS_pidfd_open, getpid(), 0)));
    return process.valid() ? 0 : errno;
}

int try_peer_pidfd() {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0) return errno;
    const File one(ends[0]);
    const File other(ends[1]);
    int process = -1;
    socklen_t length = sizeof process;
    if (getsockopt(one.get(), SOL_SOCKET, SO_PEERPIDFD, &process, &length) < 0) return errno;
    close(process);
    return 0;
}

/// A word that has changed already: the call must come back at once and say so.
int try_futex_waitv() {
    const std::uint32_t word = 1;
    futex_waitv wait{};
    wait.uaddr = reinterpret_cast<std::uintptr_t>(&word);
    wait.val = 0;
    wait.flags = FUTEX_32 | FUTEX_PRIVATE_FLAG;
    const timespec soon{};
    if (syscall(SYS_futex_waitv, &wait, 1, 0, &soon, CLOCK_MONOTONIC) >= 0) return 0;
    return errno == EAGAIN ? 0 : errno;
}

int try_one_copy() {
    char from = 1;
    char to = 0;
    const iovec local{&to, 1};
    const iovec remote{&from, 1};
    return process_vm_readv(getpid(), &local, 1, &remote, 1, 0) == 1 ? 0 : errno;
}

int try_locking() {
    LockSystem& system = LockSystem::real();
    void* page =
        mmap(nullptr, probe_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED) return errno;
    const int error =
        system.mlock(reinterpret_cast<std::uint64_t>(page), probe_bytes) < 0 ? errno : 0;
    munmap(page, probe_bytes);  // that unlocks it, too
    return error;
}

int try_io_uring() {
    io_uring_params parameters{};
    const File ring(LockSystem::real().io_uring_setup(1, &parameters));
    return ring.valid() ? 0 : errno;
}

int try_packet_socket() {
    const File packets(socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0));
    return packets.valid() ? 0 : errno;
}

struct Entry {
    const char* name;
    const char* use;
    const char* cost;
    Probe probe;
};

constexpr Entry all_entries[] = {
    {"memfd-sealing", "memory that a peer can neither cut off nor resize while we read it",
     "device shm cannot be opened", try_sealing},
    {"seal-future-write", "counters that others can read and nobody else can write",
     "no NIC can be opened", try_future_write},
    {"proc-reopen", "giving a peer a descriptor that can only be read (through /proc)",
     "no NIC can be opened", try_reopening},
    {"wipe-on-fork", "telling a forked child from its parent", "no NIC can be opened",
     try_wipe_on_fork},
    {"pidfd", "hearing of a peer's death at once", "device shm accepts no peers", try_pidfd},
    {"peer-pidfd", "the same for peers whose process number means nothing here (Linux 6.5)",
     "the death of a process in another pid namespace is told by its socket alone", try_peer_pidfd},
    {"futex-waitv", "sleeping on the wake-up words of all peers in one call",
     "calls that wait need two wake-ups: the progress thread's and their own", try_futex_waitv},
    {"membarrier",
     "asymmetric fences: no locked instruction on a message's way, sleepers pay instead",
     "full fences are in force: each message pays one, and a locked instruction for each lock",
     offer_heavy_fences},
    {"madvise-remove", "giving the memory of idle connections back to the system",
     "a connection keeps the memory of its busiest moment", try_giving_back},
    {"mlock", "keeping registered memory from being swapped out",
     "registered memory is not locked; pin=require fails", try_locking},
    {"io-uring", "pinning registered memory so that it never moves", "pin=dma fails", try_io_uring},
    {"process-vm-readv", "copying large messages once, from process to process",
     "large messages go in two copies", try_one_copy},
    {"packet-socket", "raw Ethernet transmit to a busy peer (CAP_NET_RAW)",
     "small messages between hosts take a sixth longer; own_frames=prefer does nothing",
     try_packet_socket},
};

ResourceLimit limit_of(__rlimit_resource resource) {
    rlimit limit{};
    if (getrlimit(resource, &limit) < 0) return {0, 0};
    const auto value = [](rlim_t one) {
        return one == RLIM_INFINITY ? ResourceLimit::unlimited : std::uint64_t{one};
    };
    return {value(limit.rlim_cur), value(limit.rlim_max)};
}

unsigned processors_allowed(unsigned online) {
    cpu_set_t set;
    CPU_ZERO(&set);
    // Fails on machines with more processors than the set holds.
    if (sched_getaffinity(0, sizeof set, &set) < 0) return online;
    return static_cast<unsigned>(CPU_COUNT(&set));
}

}  // namespace

Machine look_at_machine() {
    Machine machine{};
    utsname name{};
    uname(&name);
    machine.kernel = std::string(name.sysname) + " " + name.release + " " + name.machine;
    const long online = sysconf(_SC_NPROCESSORS_ONLN);
    machine.online = online > 0 ? static_cast<unsigned>(online) : 1;
    machine.processors = processors_allowed(machine.online);
    machine.files = limit_of(RLIMIT_NOFILE);
    machine.locked = limit_of(RLIMIT_MEMLOCK);
    machine.lock_right = LockSystem::real().has_lock_right();
    machine.locked_areas_max = LockedMemory::of_process().areas_max();
    machine.streaming = memory::streaming_stores();
    for (const Entry& entry : all_entries) {
        const int error = entry.probe();
        machine.facilities.push_back({entry.name, entry.use, entry.cost, error == 0,
                                      error == 0 ? std::string() : strerror(error)});
    }
    return machine;
}

}  // namespace via::agent
