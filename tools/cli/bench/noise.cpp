#include "bench/noise.hpp"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <ctime>
#include <string>
#include <string_view>

#include "bench/clock.hpp"

namespace via::bench {

namespace {

std::string read_whole(const char* path) {
    std::string text;
    const int fd = ::open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return text;
    std::array<char, 8192> chunk{};
    ssize_t got = 0;
    while ((got = ::read(fd, chunk.data(), chunk.size())) > 0) {
        text.append(chunk.data(), static_cast<std::size_t>(got));
    }
    ::close(fd);
    return text;
}

// The number in column `column` (0 is the first) of the blank-separated `line`; 0 when missing.
std::uint64_t number_at(std::string_view line, int column) {
    for (; column >= 0; --column) {
        while (!line.empty() && line.front() == ' ') line.remove_prefix(1);
        const std::size_t length = std::min(line.find(' '), line.size());
        if (column == 0) {
            std::uint64_t value = 0;
            const char* begin = line.data();
            std::from_chars(begin, begin + length, value);
            return value;
        }
        line.remove_prefix(length);
    }
    return 0;
}

// The line of `text` that begins with `label` and a blank, without them.
std::string_view line_of(std::string_view text, const std::string& label) {
    while (!text.empty()) {
        const std::size_t length = std::min(text.find('\n'), text.size());
        std::string_view line = text.substr(0, length);
        text.remove_prefix(std::min(length + 1, text.size()));
        if (line.starts_with(label + " ")) return line.substr(label.size() + 1);
    }
    return {};
}

// user, nice, system, irq and softirq of a processor's line; the kernel counts in ticks.
std::int64_t busy_ns_in(std::string_view line) {
    std::uint64_t ticks = 0;
    for (const int column : {0, 1, 2, 5, 6}) ticks += number_at(line, column);
    const auto ticks_per_s = static_cast<std::uint64_t>(std::max(::sysconf(_SC_CLK_TCK), 1L));
    return static_cast<std::int64_t>(ticks * (1'000'000'000 / ticks_per_s));
}

}  // namespace

Look look_around(int cpu) {
    Look look;
    // /proc/self/schedstat: time on a processor, time waiting for one, timeslices.
    look.run_delay_ns = number_at(read_whole("/proc/self/schedstat"), 1);
    const std::string stat = read_whole("/proc/stat");
    // cpuN user nice system idle iowait irq softirq steal ...
    const std::string_view own = line_of(stat, "cpu" + std::to_string(cpu));
    look.steal_ticks = number_at(own, 7);
    look.busy_ns = busy_ns_in(own);
    look.runnable = static_cast<std::uint32_t>(number_at(line_of(stat, "procs_running"), 0));

    rusage thread{};
    rusage process{};
    rusage children{};
    ::getrusage(RUSAGE_THREAD, &thread);
    ::getrusage(RUSAGE_SELF, &process);
    ::getrusage(RUSAGE_CHILDREN, &children);
    look.children_cpu_ns = nanoseconds(children.ru_utime) + nanoseconds(children.ru_stime);
    look.involuntary = static_cast<std::uint64_t>(thread.ru_nivcsw);
    look.own_switches = static_cast<std::uint64_t>(process.ru_nivcsw - thread.ru_nivcsw +
                                                   process.ru_nvcsw - thread.ru_nvcsw);
    look.process_cpu_ns = static_cast<std::uint64_t>(clock_ns(CLOCK_PROCESS_CPUTIME_ID));
    look.thread_cpu_ns = static_cast<std::uint64_t>(clock_ns(CLOCK_THREAD_CPUTIME_ID));
    look.wall_ns = now_ns();
    return look;
}

Disturbance between_looks(const Look& before, const Look& after, std::uint32_t processors) {
    Disturbance told;
    told.wall_ns = after.wall_ns - before.wall_ns;
    told.involuntary = after.involuntary - before.involuntary;
    told.own_switches = after.own_switches - before.own_switches;
    told.run_delay_ns = after.run_delay_ns - before.run_delay_ns;
    const std::uint64_t process_ns = after.process_cpu_ns - before.process_cpu_ns;
    const std::uint64_t thread_ns = after.thread_cpu_ns - before.thread_cpu_ns;
    told.own_others_ns = process_ns > thread_ns ? process_ns - thread_ns : 0;
    told.delays_are_told = after.run_delay_ns > 0;
    const std::int64_t programs_ns = after.children_cpu_ns - before.children_cpu_ns;
    told.strange_ns =
        after.busy_ns - before.busy_ns - programs_ns - static_cast<std::int64_t>(process_ns);
    told.steal_ticks = after.steal_ticks - before.steal_ticks;
    told.runnable = std::max(before.runnable, after.runnable);
    told.processors = processors;
    return told;
}

}  // namespace via::bench
