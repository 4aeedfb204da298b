// `via stat`: the live counters of this user's running processes, read from outside.
#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <map>
#include <tuple>
#include <vector>

#include "agent/addresses.hpp"
#include "agent/directory.hpp"
#include "agent/statistics.hpp"
#include "commands.hpp"
#include "console/output.hpp"
#include "json.hpp"

namespace via::cli {

namespace {

using agent::StatisticsView;
using Values = std::vector<std::uint64_t>;

/// Tells NICs apart from one look to the next: process, opened at, name, and among equals the nth.
using Identity = std::tuple<int, std::uint64_t, std::string, unsigned>;

/// What one look found of one NIC. Read once; the page may change meanwhile.
struct Sample {
    std::string program;
    Values values;
    agent::WaysNow ways;
    double at_s;
};
using Samples = std::map<Identity, Sample>;

double now_s() {
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) / 1e9;
}

Samples take_samples(const std::string& directory, int pid, bool& complete) {
    Samples samples;
    for (const StatisticsView& view : agent::find_statistics(directory, &complete)) {
        if (pid != 0 && view.process() != pid) continue;
        Sample sample{view.program(), Values(counter_count), view.ways(), now_s()};
        for (std::uint32_t n = 0; n < counter_count; ++n)
            sample.values[n] = view.counters().get(static_cast<Counter>(n));
        unsigned nth = 0;
        const auto identity = [&] {
            return Identity{view.process(), view.opened_at(), view.nic_name(), nth};
        };
        while (samples.contains(identity())) ++nth;
        samples.emplace(identity(), std::move(sample));
    }
    return samples;
}

/// A number of things that are there now, not a count of what happened.
bool is_gauge(std::uint32_t counter) {
    return std::string_view(counter_name(counter)).ends_with("_open");
}

std::string rate_of(const Sample& sample, const Sample* before, std::uint32_t counter) {
    if (before == nullptr || is_gauge(counter)) return "";
    const std::uint64_t more = sample.values[counter] - before->values[counter];
    const double seconds = sample.at_s - before->at_s;
    if (more == 0 || seconds <= 0 || sample.values[counter] < before->values[counter]) return "";
    return fmt::format("{:.0f}/s", static_cast<double>(more) / seconds);
}

std::string age_of(std::uint64_t opened_at) {
    const std::int64_t age_s = time(nullptr) - static_cast<std::int64_t>(opened_at);
    if (age_s < 120) return fmt::format("{} s", std::max<std::int64_t>(age_s, 0));
    if (age_s < 7200) return fmt::format("{} min", age_s / 60);
    return fmt::format("{} h", age_s / 3600);
}

const char* text_of(device::WayState state) {
    switch (state) {
        case device::WayState::answers:
            return "answers";
        case device::WayState::doubtful:
            return "does not answer";
        case device::WayState::mute:
            return "mute";
        case device::WayState::passed_on:
            return "passed on";
    }
    return "?";
}

/// Of a path, all that its ways took.
std::uint64_t bytes_of_path(const agent::WaysNow& now, std::uint32_t path) {
    std::uint64_t bytes = 0;
    for (const device::Way& way : now.ways)
        if (way.path == path) bytes += way.bytes;
    return bytes;
}

/// Of a host alone the port is 0.
std::string text_of(const HostAddress& address) {
    const std::string text = agent::to_text(address);
    return port_of(address) != 0 ? text : text.substr(0, text.rfind(':'));
}

void print_ways(const agent::WaysNow& now) {
    for (const device::Way& way : now.ways) {
        const std::uint64_t all = bytes_of_path(now, way.path);
        fmt::print("  {} {}: {} to {}",
                   way.state == device::WayState::passed_on ? "stream" : "path", way.path,
                   text_of(way.own), text_of(way.peer));
        if (way.over.length != 0) fmt::print(" over relay {}", text_of(way.over));
        if (way.round_trip.ns != 0)
            fmt::print(", round trip {:.1f} us", static_cast<double>(way.round_trip.ns) / 1e3);
        fmt::print(", {} packets, {} bytes", way.packets, way.bytes);
        if (way.bytes != all)
            fmt::print(" ({:.0f} % of the path's)",
                       100 * static_cast<double>(way.bytes) / static_cast<double>(all));
        fmt::print(", {}\n", text_of(way.state));
    }
    if (now.all > now.ways.size()) fmt::print("  and {} more ways\n", now.all - now.ways.size());
}

void print_table(const Identity& identity, const Sample& sample, const Sample* before, bool all) {
    const auto& [pid, opened_at, nic, nth] = identity;
    fmt::print("process {} ({}), NIC {}, open for {}\n", pid, sample.program, nic,
               age_of(opened_at));
    bool any = false;
    for (std::uint32_t n = 0; n < counter_count; ++n) {
        if (sample.values[n] == 0 && !all) continue;
        any = true;
        const std::string rate = rate_of(sample, before, n);
        fmt::print("  {:<26}{:>20}", counter_name(n), sample.values[n]);
        if (before != nullptr) fmt::print("{:>16}", rate);
        fmt::print("  {}\n", counter_text(n));
    }
    if (!any) fmt::print("  nothing has happened yet: all counters are zero\n");
    print_ways(sample.ways);
}

JsonLine json_of(const device::Way& way) {
    JsonLine object;
    object.number("path", way.path).text("own", text_of(way.own)).text("peer", text_of(way.peer));
    way.over.length == 0 ? object.null("over") : object.text("over", text_of(way.over));
    object.figure_if_any("round_trip_us", static_cast<double>(way.round_trip.ns) / 1e3);
    object.number("packets", way.packets).number("bytes", way.bytes);
    return object.text("state", text_of(way.state));
}

void print_json(const Identity& identity, const Sample& sample) {
    const auto& [pid, opened_at, nic, nth] = identity;
    JsonLine line("via-stat-1");
    line.number("pid", pid).text("program", sample.program).text("nic", nic);
    line.number("opened_at", opened_at).open("counters");
    for (std::uint32_t n = 0; n < counter_count; ++n)
        line.number(counter_name(n), sample.values[n]);
    std::vector<JsonLine> ways;
    for (const device::Way& way : sample.ways.ways) ways.push_back(json_of(way));
    line.close().objects("ways", ways).number("ways_in_all", sample.ways.all);
    fmt::print("{}", line.line());
}

void print_samples(const Samples& samples, const Samples& before, const StatOptions& options) {
    bool first = true;
    for (const auto& [identity, sample] : samples) {
        if (options.json) {
            print_json(identity, sample);
            continue;
        }
        if (!first) fmt::print("\n");
        first = false;
        const auto former = before.find(identity);
        print_table(identity, sample, former == before.end() ? nullptr : &former->second,
                    options.all);
    }
}

void sleep_for(double seconds) {
    timespec left{};
    left.tv_sec = static_cast<time_t>(seconds);
    left.tv_nsec = static_cast<long>((seconds - static_cast<double>(left.tv_sec)) * 1e9);
    while (nanosleep(&left, &left) != 0 && errno == EINTR) continue;
}

std::string nothing_found(const StatOptions& options, const std::string& directory) {
    const std::string where = options.pid != 0 ? fmt::format("process {} of yours has", options.pid)
                                               : std::string("no process of yours has");
    return fmt::format("{} {} open on this host (looked in {})", where,
                       options.pid != 0 ? "no NIC" : "a NIC", directory);
}

}  // namespace

int run_stat(const StatOptions& options) {
    const auto directory = agent::host_directory();
    if (!directory) {
        console::complain("via stat: {}", directory.error());
        return exit_failed;
    }
    Samples before;
    for (;;) {
        bool complete = true;
        Samples samples = take_samples(*directory, options.pid, complete);
        const bool named = options.pid != 0 && !samples.empty();
        if (!complete && !named) {
            console::complain("via stat: not all processes could be asked; the log says why");
        } else if (samples.empty()) {
            console::complain("{}", nothing_found(options, *directory));
        }
        print_samples(samples, before, options);
        if (!console::flush_output()) return exit_failed;
        // Waiting for the first process makes sense; for one that was named and is gone, it does
        // not.
        if (options.pid != 0 && samples.empty()) return exit_failed;
        if (options.interval_s <= 0) return complete || named ? exit_good : exit_failed;
        before = std::move(samples);
        sleep_for(options.interval_s);
        if (!options.json) fmt::print("\n");
    }
}

}  // namespace via::cli
