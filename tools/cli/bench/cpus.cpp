#include "bench/cpus.hpp"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <fstream>

namespace via::bench {

namespace {

std::vector<int> threads_of_core(int cpu) {
    std::ifstream file(
        fmt::format("/sys/devices/system/cpu/cpu{}/topology/thread_siblings_list", cpu));
    std::string line;
    std::getline(file, line);
    return parse_cpu_list(line);
}

bool contains(const std::vector<int>& list, int cpu) {
    return std::find(list.begin(), list.end(), cpu) != list.end();
}

}  // namespace

std::vector<int> allowed_cpus() {
    std::vector<int> cpus;
    cpu_set_t set;
    CPU_ZERO(&set);
    if (::sched_getaffinity(0, sizeof set, &set) < 0) return cpus;
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
        if (CPU_ISSET(static_cast<unsigned>(cpu), &set)) cpus.push_back(cpu);
    }
    return cpus;
}

std::vector<int> parse_cpu_list(std::string_view text) {
    std::vector<int> cpus;
    const char* at = text.data();
    const char* end = at + text.size();
    while (at != end) {
        int first = 0;
        const auto read = std::from_chars(at, end, first);
        if (read.ec != std::errc{} || first < 0) return {};
        int last = first;
        at = read.ptr;
        if (at != end && *at == '-') {
            const auto upto = std::from_chars(at + 1, end, last);
            if (upto.ec != std::errc{} || last - first > CPU_SETSIZE) return {};
            at = upto.ptr;
        }
        for (int cpu = first; cpu <= last; ++cpu) cpus.push_back(cpu);
        if (at == end) return cpus;
        if (*at++ != ',') return {};
    }
    return {};
}

Result<std::array<int, 2>> choose_cpus(const std::string& asked) {
    const std::vector<int> allowed = allowed_cpus();
    if (!asked.empty()) {
        const std::vector<int> two = parse_cpu_list(asked);
        if (two.size() != 2 || two[0] == two[1]) {
            return fail("--cpus wants two different processors, for instance 0,1");
        }
        for (const int cpu : two) {
            if (!contains(allowed, cpu)) return fail("processor {} may not be used here", cpu);
        }
        return std::array<int, 2>{two[0], two[1]};
    }
    if (allowed.size() < 2) {
        return fail(
            "two processors are needed, one for each process; {} may be used here. "
            "Widen the affinity (taskset) or the container's limit",
            allowed.size());
    }
    const std::vector<int> siblings = threads_of_core(allowed[0]);
    for (std::size_t i = 1; i < allowed.size(); ++i) {
        if (!contains(siblings, allowed[i])) return std::array<int, 2>{allowed[0], allowed[i]};
    }
    return std::array<int, 2>{allowed[0], allowed[1]};
}

Result<int> choose_cpu(const std::string& asked) {
    const std::vector<int> allowed = allowed_cpus();
    if (allowed.empty()) return fail("no processor may be used here");
    if (asked.empty()) return allowed.front();
    const std::vector<int> one = parse_cpu_list(asked);
    if (one.size() != 1) return fail("--cpus wants one processor here, for instance 0");
    if (!contains(allowed, one[0])) return fail("processor {} may not be used here", one[0]);
    return one[0];
}

std::uint32_t online_processors() {
    return static_cast<std::uint32_t>(std::max(1L, ::sysconf(_SC_NPROCESSORS_ONLN)));
}

}  // namespace via::bench
