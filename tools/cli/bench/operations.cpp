#include "bench/operations.hpp"

#include <algorithm>

#include "bench/stats.hpp"
#include "json.hpp"

namespace via::bench {

namespace {

bool has_size(Operation operation) {
    return operation == Operation::register_memory || operation == Operation::deregister_memory;
}

std::string cost_if_any(double value) {
    return value > 0 ? fmt::format("{:.3f}", value) : std::string("-");
}

}  // namespace

std::string_view name_of(Operation operation) {
    static constexpr std::array<std::string_view, operation_count> names{
        "null system call",
        "open NIC",
        "close NIC",
        "register",
        "deregister",
        "bind window",
        "revoke window",
        "create CQ",
        "destroy CQ",
        "create VI",
        "destroy VI",
        "connect",
        "disconnect",
        "post send",
        "send done, nothing posted",
        "send done",
        "post receive",
        "receive done, nothing there",
        "receive done",
        "CQ done, nothing there",
        "CQ done",
        "notify",
        "notify to handler",
    };
    return names[static_cast<std::size_t>(operation)];
}

std::vector<Timed> all_timed(const std::vector<std::uint64_t>& sizes) {
    std::vector<Timed> all;
    for (std::size_t i = 0; i < operation_count; ++i) {
        const auto operation = static_cast<Operation>(i);
        if (operation == Operation::deregister_memory) continue;
        if (operation != Operation::register_memory) {
            all.push_back({operation, 0});
            continue;
        }
        for (const std::uint64_t size : sizes) {
            all.push_back({operation, size});
            all.push_back({Operation::deregister_memory, size});
        }
    }
    return all;
}

void add_round(OperationSeries& series, const CallTimes& times) {
    const std::size_t calls = std::min<std::size_t>(times.calls, CallTimes::most_calls);
    for (std::size_t i = 0; i < calls; ++i) series.us.push_back(times.ns[i] / 1000.0);
    series.cpu_us += times.cpu_ns / 1000;
}

std::vector<OperationRow> rows_of(const std::vector<OperationSeries>& all) {
    std::vector<OperationRow> rows;
    double null_call_us = 0;
    for (const OperationSeries& series : all) {
        if (series.us.empty()) continue;
        const Summary told = summarise(series.us);
        if (series.timed.operation == Operation::null_call) null_call_us = told.median;
        OperationRow row;
        row.timed = series.timed;
        row.calls = series.us.size();
        row.median_us = told.median;
        row.min_us = told.min;
        row.max_us = told.max;
        row.p99_us = percentile(series.us, 99);
        row.p999_us = percentile(series.us, 99.9);
        row.cpu_us = series.cpu_us / static_cast<double>(row.calls);
        row.null_calls = null_call_us > 0 ? told.median / null_call_us : 0;
        rows.push_back(row);
    }
    return rows;
}

std::string table(const OperationResult& result) {
    constexpr auto line = "{:<26} {:>6} {:>10} {:>10} {:>10} {:>10} {:>10} {:>8} {:>7}\n";
    std::string text = fmt::format("us of one call; {} rounds, {} more were dropped\n",
                                   result.rounds, result.dropped) +
                       fmt::format(line, "operation", "size", "median", "min", "p99", "p99.9",
                                   "cpu us", "null", "calls");
    for (const OperationRow& row : result.rows) {
        text += fmt::format(
            line, name_of(row.timed.operation),
            has_size(row.timed.operation) ? size_text(row.timed.size) : std::string("-"),
            fmt::format("{:.3f}", row.median_us), fmt::format("{:.3f}", row.min_us),
            fmt::format("{:.3f}", row.p99_us), fmt::format("{:.3f}", row.p999_us),
            cost_if_any(row.cpu_us), cost_if_any(row.null_calls), row.calls);
    }
    return text;
}

std::string json_lines(const OperationResult& result, const std::string& device) {
    std::string text;
    for (const OperationRow& row : result.rows) {
        cli::JsonLine line("via-bench-operations-1");
        line.text("bench", "operations").text("device", device);
        line.text("operation", name_of(row.timed.operation));
        if (has_size(row.timed.operation)) {
            line.number("size", row.timed.size);
        } else {
            line.null("size");
        }
        line.text("unit", "us").figure("median", row.median_us).figure("min", row.min_us);
        line.figure("max", row.max_us).figure("p99", row.p99_us).figure("p999", row.p999_us);
        line.figure_if_any("cpu_us", row.cpu_us).figure("null_calls", row.null_calls);
        line.number("calls", row.calls);
        line.number("rounds", result.rounds).number("dropped", result.dropped);
        text += line.line();
    }
    return text;
}

}  // namespace via::bench
