// `via bench register`: what registering costs, as a table or JSON.
#include <algorithm>
#include <cstdio>

#include "bench/cpus.hpp"
#include "bench/via_register.hpp"
#include "commands.hpp"
#include "console/output.hpp"
#include "json.hpp"

namespace via::cli {

namespace {

using namespace via::bench;

constexpr std::uint64_t largest_region = std::uint64_t{1} << 30;

Result<std::vector<std::uint64_t>> sizes_of(const BenchOptions& options) {
    std::vector<std::string> texts = options.sizes;
    if (texts.empty()) texts = {"4K", "16K", "64K", "256K", "1M", "16M", "64M"};
    std::vector<std::uint64_t> sizes;
    for (const std::string& text : texts) {
        const auto size = parse_size(text);
        if (!size || *size == 0 || *size > largest_region)
            return fail("--size {}: want bytes from 1 to 1024M, for instance 4K,1M", text);
        sizes.push_back(*size);
    }
    return sizes;
}

std::string table_of(const std::vector<RegisterRow>& rows) {
    std::string text = fmt::format(
        "{:>6} {:>10} {:>10} {:>9} {:>9} {:>10} {:>10} {:>10} {:>6} {:>8} {:>9} {:>6} {:>9}\n",
        "size", "register", "deregister", "per page", "per page", "cpu", "mlock", "munlock",
        "ratio", "present", "locked", "calls", "cached");
    text += fmt::format(
        "{:>6} {:>10} {:>10} {:>9} {:>9} {:>10} {:>10} {:>10} {:>6} {:>8} {:>9} {:>6} {:>9}\n", "",
        "us", "us", "ns", "ns", "us", "us", "us", "", "ratio", "us", "", "us");
    for (const RegisterRow& row : rows) {
        const auto pages = static_cast<double>(row.pages());
        text += fmt::format(
            "{:>6} {:>10.2f} {:>10.2f} {:>9.1f} {:>9.1f} {:>10.2f} {:>10.2f} {:>10.2f} {:>6.2f} "
            "{:>8.2f} "
            "{:>9.3f} {:>6.2f} {:>9.3f}\n",
            size_text(row.size), row.fresh_register_ns / 1e3, row.fresh_deregister_ns / 1e3,
            row.fresh_register_ns / pages, row.fresh_deregister_ns / pages, row.fresh_cpu_ns / 1e3,
            row.fresh_mlock_ns / 1e3, row.fresh_munlock_ns / 1e3, row.fresh_ratio(),
            row.present_ratio(), row.locked_ns / 1e3, row.locked_calls(), row.cached_ns / 1e3);
    }
    return text;
}

std::string json_of(const std::vector<RegisterRow>& rows, const BenchOptions& options) {
    std::string text;
    for (const RegisterRow& row : rows) {
        JsonLine line("via-bench-register-1");
        line.text("bench", "register")
            .text("device", options.device)
            .number("size", row.size)
            .boolean("locks", row.locks);
        line.number("rounds", options.rounds);
        line.open("fresh_ns").number("register", row.fresh_register_ns);
        line.number("deregister", row.fresh_deregister_ns).number("cpu", row.fresh_cpu_ns);
        line.number("mlock", row.fresh_mlock_ns);
        line.number("munlock", row.fresh_munlock_ns).number("ratio", row.fresh_ratio()).close();
        line.open("present_ns").number("register", row.present_register_ns);
        line.number("deregister", row.present_deregister_ns).number("mlock", row.present_mlock_ns);
        line.number("munlock", row.present_munlock_ns).number("ratio", row.present_ratio()).close();
        line.number("locked_ns", row.locked_ns).number("null_call_ns", row.null_call_ns);
        line.number("locked_calls", row.locked_calls()).number("cached_ns", row.cached_ns);
        text += line.line();
    }
    return text;
}

int complain(const std::string& what, int code) {
    console::complain("via bench: {}", what);
    return code;
}

}  // namespace

int run_bench_register(const BenchOptions& options) {
    const auto sizes = sizes_of(options);
    if (!sizes) return complain(sizes.error().what, exit_usage);
    const auto cpus = choose_cpus(options.cpus);
    if (!cpus) return complain(cpus.error().what, exit_usage);
    const auto rows = measure_registration(options.device, *sizes, options.rounds, cpus->front());
    if (!rows) return complain(rows.error().what, exit_failed);
    fmt::print("{}", options.json ? json_of(*rows, options) : table_of(*rows));
    console::flush_output();
    if (!std::all_of(rows->begin(), rows->end(), [](const RegisterRow& row) { return row.locks; }))
        return complain("the NIC did not lock all pages, so the ratios compare different things",
                        exit_inconclusive);
    return exit_good;
}

}  // namespace via::cli
