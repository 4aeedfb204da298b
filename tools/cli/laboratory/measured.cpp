#include "laboratory/measured.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <optional>
#include <string_view>

#include "lab/file/text.hpp"

namespace via::cli {
namespace {

constexpr std::string_view device = "shm";
constexpr const char* operations_command = "via bench operations --json";
constexpr const char* latency_command =
    "via bench latency --size 8,512,4K,64K,1M --against line,two-copy --json";
constexpr std::uint64_t line_size = 8;

struct Wanted {
    std::string_view operation;
    double MeasuredNic::* place;
};
constexpr Wanted wanted[] = {
    {"post send", &MeasuredNic::post_send},
    {"post receive", &MeasuredNic::post_receive},
    {"receive done", &MeasuredNic::receive_done},
    {"CQ done, nothing there", &MeasuredNic::empty_poll},
    {"null system call", &MeasuredNic::system_call},
    {"notify to handler", &MeasuredNic::notify},
};

std::optional<double> number_of(std::string_view text) {
    double value = 0;
    const auto read = std::from_chars(text.data(), text.data() + text.size(), value);
    const bool good = read.ec == std::errc() && read.ptr == text.data() + text.size();
    return good && std::isfinite(value) && value >= 0 ? std::optional(value) : std::nullopt;
}

/// Of the first run that has it.
std::optional<double> median_of(const std::vector<report::Run>& runs, std::string_view operation) {
    for (const report::Run& run : runs) {
        for (const report::Note& note : run.notes) {
            const bool is_it = note.schema == "via-bench-operations-1" &&
                               report::value_of(note.fields, "device") == device &&
                               report::value_of(note.fields, "operation") == operation;
            if (is_it) return number_of(report::value_of(note.fields, "median"));
        }
    }
    return std::nullopt;
}

bool is_plain_latency(const report::Figure& figure) {
    return figure.bench == "latency" && figure.unit == "us" && figure.median > 0;
}

std::optional<double> latency_of(const report::Run& run, std::string_view channel,
                                 std::uint64_t size, std::string_view mode) {
    for (const report::Figure& one : run.figures)
        if (is_plain_latency(one) && one.device == channel && one.size == size && one.mode == mode)
            return one.median;
    return std::nullopt;
}

/// By the size of a message, each once.
std::vector<std::pair<std::int64_t, double>> all_latencies(const report::Run& run,
                                                           std::string_view channel,
                                                           std::string_view mode) {
    std::map<std::int64_t, double> all;
    for (const report::Figure& one : run.figures)
        if (is_plain_latency(one) && one.device == channel && one.mode == mode)
            all.try_emplace(static_cast<std::int64_t>(one.size), one.median);
    return {all.begin(), all.end()};
}

/// True: one mode of that run has all limits, and ours beside them.
bool take_latencies(const report::Run& run, MeasuredNic& nic) {
    for (const report::Figure& first : run.figures) {
        const auto line = latency_of(run, "line", line_size, first.mode);
        const auto two_copy = latency_of(run, "two-copy", two_copy_bytes, first.mode);
        const auto far_copy = latency_of(run, "two-copy", far_copy_bytes, first.mode);
        if (!line || !two_copy || !far_copy || std::min(*two_copy, *far_copy) <= *line) continue;
        nic.line = *line;
        nic.two_copy = *two_copy;
        nic.far_copy = *far_copy;
        nic.mode = first.mode;
        nic.latencies = all_latencies(run, device, nic.mode);
        if (!nic.latencies.empty()) return true;
    }
    return false;
}

std::string cost(const char* key, double us, const std::string& source) {
    return fmt::format("{} = {{ cost = \"{:.4f} us\", source = \"{}\" }}\n", key, us, source);
}

/// Bytes a second of both copies.
std::string copies(const char* key, const MeasuredNic& nic, std::uint64_t bytes, double us) {
    const double rate = 2 * static_cast<double>(bytes) / (us - nic.line) * 1e6;
    return fmt::format(
        "{} = {{ cost = \"{:.3f} GB/s\", source = \"via bench latency: two-copy, {} B, less a "
        "line; both copies\" }}\n",
        key, rate / 1e9, bytes);
}

}  // namespace

std::expected<MeasuredNic, std::string> measured_nic(const std::vector<report::Run>& runs) {
    MeasuredNic nic;
    for (const Wanted& one : wanted) {
        const auto median = median_of(runs, one.operation);
        if (!median)
            return std::unexpected(fmt::format("nobody measured \"{}\" of {}: {}", one.operation,
                                               device, operations_command));
        nic.*one.place = *median;
    }
    if (std::ranges::none_of(runs, [&](const auto& run) { return take_latencies(run, nic); }))
        return std::unexpected(
            fmt::format("no run has latencies of {}, of line at {} B and of "
                        "two-copy at {} and {} B, all in one mode: {}",
                        device, line_size, two_copy_bytes, far_copy_bytes, latency_command));
    return nic;
}

std::expected<MeasuredCache, std::string> cache_of_system(const std::string& folder) {
    const auto line_of = [&](int index, const char* what) {
        auto text = lab::file::read_text(fmt::format("{}/index{}/{}", folder, index, what));
        return std::string(text ? text->substr(0, text->find('\n')) : "");
    };
    // Third-level caches are shared, and of the first level the second holds most.
    for (int index = 0; !line_of(index, "level").empty(); ++index) {
        const std::string size = line_of(index, "size");
        if (line_of(index, "level") != "2" || line_of(index, "type") == "Instruction") continue;
        std::int64_t kilobytes = 0;
        const char* const end = size.data() + size.size();
        const auto read = std::from_chars(size.data(), end, kilobytes);
        const bool good = read.ec == std::errc() && std::string_view(read.ptr, end) == "K";
        if (good && kilobytes > 0 && kilobytes < std::int64_t{1} << 20)
            return MeasuredCache{kilobytes * 1024, fmt::format("{}/index{}", folder, index)};
        return std::unexpected(
            fmt::format("{}/index{}/size: \"{}\" is no number of K", folder, index, size));
    }
    return std::unexpected(
        fmt::format("{} does not say what a processor's second cache holds", folder));
}

std::string machine_text(const MeasuredNic& nic, const MeasuredCache& cache,
                         const std::string& processor) {
    std::string title = fmt::format("OpenVIA's software NIC over shared memory: {}", processor);
    std::erase_if(title, [](char c) { return c == '"' || c == '\\' || c < ' '; });
    std::string text = fmt::format(
        "# Written by `via lab measure`, of\n#     {}\n#     {}, mode {}\n\n"
        "name = \"shm\"\ntitle = \"{}\"\npaper = \"none\"\nparts = \"software\"\n\n[host]\n",
        operations_command, latency_command, nic.mode, title);
    const auto operation = [](const char* name) {
        return std::string("via bench operations: ") + name;
    };
    text += cost("user_post", nic.post_send, operation("post send"));
    text += cost("user_poll", nic.empty_poll, operation("CQ done, nothing there"));
    text += cost("system_call", nic.system_call, operation("null system call"));
    text += cost("interrupt", nic.notify, operation("notify to handler"));
    text +=
        "page = { cost = \"4096 B\", assumed = \"the processor's; nothing here depends on it\" }\n";
    text += "\n[link]\n" + copies("rate", nic, two_copy_bytes, nic.two_copy) + "\n[software]\n";
    text += cost("line", nic.line, fmt::format("via bench latency: line, {} B", line_size));
    text +=
        fmt::format("cache = {{ cost = \"{} B\", source = \"{}\" }}\n", cache.bytes, cache.source);
    text += copies("far", nic, far_copy_bytes, nic.far_copy);
    text += cost(
        "receive", std::max(nic.receive_done - nic.line, 0.0),
        operation(fmt::format("receive done, {:.4f} us, less its line", nic.receive_done).c_str()));
    text += cost("post_receive", nic.post_receive, operation("post receive"));
    constexpr int polls = 200;
    text += fmt::format(
        "spin = {{ cost = \"{:.3f} us\", assumed = \"{} empty polls "
        "(docs/design/turn-and-wake-up.md)\" }}\n",
        polls * nic.empty_poll, polls);
    return text +
           "frame = { cost = \"8192 B\", assumed = \"as the ring's "
           "(docs/design/ring-and-channel.md)\" }\n"
           "room = { cost = \"4 MB\", assumed = \"the arena (docs/design/ring-and-channel.md)\" "
           "}\n";
}

}  // namespace via::cli
