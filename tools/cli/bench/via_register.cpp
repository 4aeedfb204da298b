#include "bench/via_register.hpp"

#include <sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <via/via.hpp>

#include "bench/clock.hpp"
#include "bench/stats.hpp"

namespace via::bench {

namespace {

// How often what takes well under a microsecond is done between two looks at the clock.
constexpr int repeats = 200;

class Mapping {
public:
    Mapping(std::uint64_t size, bool present) : size_(size) {
        const int flags = MAP_PRIVATE | MAP_ANONYMOUS | (present ? MAP_POPULATE : 0);
        void* at = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, flags, -1, 0);
        at_ = at == MAP_FAILED ? nullptr : at;
        // The same pages for all: neighbours that merge into a huge one would differ by chance.
        if (at_ != nullptr) ::madvise(at_, size, MADV_NOHUGEPAGE);
    }
    ~Mapping() {
        if (at_ != nullptr) ::munmap(at_, size_);
    }
    Mapping(const Mapping&) = delete;
    Mapping& operator=(const Mapping&) = delete;

    bool good() const { return at_ != nullptr; }
    std::span<std::byte> bytes() const { return {static_cast<std::byte*>(at_), size_}; }

private:
    std::uint64_t size_;
    void* at_ = nullptr;
};

std::uint64_t locked_kib() {
    std::uint64_t kib = 0;
    std::FILE* const file = std::fopen("/proc/self/status", "re");
    if (file == nullptr) return 0;
    char line[256];
    while (std::fgets(line, sizeof line, file) != nullptr)
        if (std::sscanf(line, "VmLck: %lu", &kib) == 1) break;
    std::fclose(file);
    return kib;
}

struct Times {
    std::vector<double> first, second, cpu;
    void add(std::int64_t begin, std::int64_t middle, std::int64_t end) {
        first.push_back(static_cast<double>(middle - begin));
        second.push_back(static_cast<double>(end - middle));
    }
};

// Registers and deregisters. True: it locked the pages meanwhile.
Result<bool> register_once(const Nic& nic, std::span<std::byte> bytes, Times& times) {
    const std::uint64_t before = locked_kib();
    const std::int64_t cpu_begin = cpu_ns();
    const std::int64_t begin = now_ns();
    auto region = MemoryRegion::of(nic, bytes);
    const std::int64_t middle = now_ns();
    const std::int64_t cpu_middle = cpu_ns();
    if (!region) return fail("{}", region.error().message());
    const bool locks = locked_kib() >= before + bytes.size() / 1024;
    const std::int64_t cpu_again = cpu_ns();
    const std::int64_t again = now_ns();
    const auto gone = region->deregister();
    const std::int64_t end = now_ns();
    const std::int64_t cpu_end = cpu_ns();
    if (!gone) return fail("{}", gone.error().message());
    times.add(begin, middle, middle + (end - again));
    times.cpu.push_back(static_cast<double>(cpu_middle - cpu_begin + cpu_end - cpu_again));
    return locks;
}

Status lock_once(std::span<std::byte> bytes, Times& times) {
    // Between the two as much as above, so that the caches look alike.
    const std::uint64_t before = locked_kib();
    const std::int64_t begin = now_ns();
    if (::mlock(bytes.data(), bytes.size()) != 0)
        return fail_errno("mlock; see 'ulimit -l' for how much this process may lock");
    const std::int64_t middle = now_ns();
    if (locked_kib() < before) return fail("VmLck shrinks while pages are locked");
    const std::int64_t again = now_ns();
    if (::munlock(bytes.data(), bytes.size()) != 0) return fail_errno("munlock");
    times.add(begin, middle, middle + (now_ns() - again));
    return {};
}

template <class Act>
double each_ns(Act act) {
    const std::int64_t begin = now_ns();
    for (int count = 0; count < repeats; ++count) act();
    return static_cast<double>(now_ns() - begin) / repeats;
}

class Measurement {
public:
    Measurement(const Nic& nic, std::uint64_t size)
        : nic_(nic), cache_(nic, {.bytes = size}), present_(size, true) {
        row_.size = size;
        row_.locks = true;
    }

    // Which is asked first changes from round to round.
    Status round(bool ours_first) {
        if (!present_.good()) return fail_errno("mmap");
        for (const bool ours : {ours_first, !ours_first}) {
            // So that both are given pages that were in use a moment ago, not cold ones.
            if (!Mapping(row_.size, true).good()) return fail_errno("mmap");
            const Mapping fresh(row_.size, false);
            if (!fresh.good()) return fail_errno("mmap");
            if (auto done = once(ours, fresh.bytes(), ours ? fresh_[0] : fresh_[1]); !done)
                return done;
        }
        for (const bool ours : {ours_first, !ours_first})
            if (auto done = once(ours, present_.bytes(), ours ? kept_[0] : kept_[1]); !done)
                return done;
        return small_ones();
    }
    RegisterRow row() {
        row_.fresh_register_ns = median(fresh_[0].first);
        row_.fresh_deregister_ns = median(fresh_[0].second);
        row_.fresh_mlock_ns = median(fresh_[1].first);
        row_.fresh_munlock_ns = median(fresh_[1].second);
        row_.present_register_ns = median(kept_[0].first);
        row_.present_deregister_ns = median(kept_[0].second);
        row_.present_mlock_ns = median(kept_[1].first);
        row_.present_munlock_ns = median(kept_[1].second);
        row_.locked_ns = median(locked_);
        row_.null_call_ns = median(null_calls_);
        row_.cached_ns = median(cached_);
        row_.fresh_cpu_ns = median(fresh_[0].cpu);
        return row_;
    }

private:
    Status once(bool ours, std::span<std::byte> bytes, Times& times) {
        if (!ours) return lock_once(bytes, times);
        const auto locks = register_once(nic_, bytes, times);
        if (!locks) return std::unexpected(locks.error());
        row_.locks = row_.locks && *locks;
        return {};
    }
    // What makes no system call, or none that does anything.
    Status small_ones() {
        const auto outer = MemoryRegion::of(nic_, present_.bytes());
        if (!outer) return fail("{}", outer.error().message());
        bool good = true;
        locked_.push_back(each_ns([&] {
            auto region = MemoryRegion::of(nic_, present_.bytes());
            good = region && region->deregister() && good;
        }));
        null_calls_.push_back(each_ns([] { ::syscall(SYS_getppid); }));
        good = cache_.lease(present_.bytes()).has_value() && good;
        cached_.push_back(
            each_ns([&] { good = cache_.lease(present_.bytes()).has_value() && good; }));
        cache_.clear();
        if (!good) return fail("memory that was registered once could not be registered again");
        return {};
    }

    const Nic& nic_;
    RegistrationCache cache_;
    Mapping present_;
    RegisterRow row_;
    std::array<Times, 2> fresh_, kept_;  // ours, bare
    std::vector<double> locked_, null_calls_, cached_;
};

}  // namespace

Result<std::vector<RegisterRow>> measure_registration(const std::string& device,
                                                      const std::vector<std::uint64_t>& sizes,
                                                      std::uint32_t rounds, int cpu) {
    auto nic = Nic::open(device);
    if (!nic) return fail("{}", nic.error().message());
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    if (::sched_setaffinity(0, sizeof set, &set) != 0) return fail_errno("sched_setaffinity");
    std::vector<std::unique_ptr<Measurement>> all;
    for (const std::uint64_t size : sizes) all.push_back(std::make_unique<Measurement>(*nic, size));
    for (std::uint32_t round = 0; round < rounds; ++round)
        for (const auto& each : all)
            if (auto done = each->round(round % 2 == 0); !done)
                return std::unexpected(done.error());
    std::vector<RegisterRow> rows;
    for (const auto& each : all) rows.push_back(each->row());
    return rows;
}

}  // namespace via::bench
