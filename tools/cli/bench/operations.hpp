// The cost of every basic operation: which there are, and from single calls to rows and output.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "bench/types.hpp"

namespace via::bench {

enum class Operation : std::uint8_t {
    null_call,  // a system call that does nothing, to compare with
    open_nic,
    close_nic,
    register_memory,
    deregister_memory,
    bind_window,
    revoke_window,
    create_cq,
    destroy_cq,
    create_vi,
    destroy_vi,
    connect,
    disconnect,
    post_send,
    send_done_empty,
    send_done,
    post_receive,
    receive_done_empty,
    receive_done,
    cq_done_empty,
    cq_done,
    notify,
    notified,
};
inline constexpr std::size_t operation_count = static_cast<std::size_t>(Operation::notified) + 1;

std::string_view name_of(Operation operation);

// What is timed: an operation, of a size if it has one.
struct Timed {
    Operation operation = Operation::null_call;
    std::uint64_t size = 0;

    bool operator==(const Timed&) const = default;
};

// In the order of the table; registering comes once for each size.
std::vector<Timed> all_timed(const std::vector<std::uint64_t>& sizes);

// The single calls of one round, in memory that a process shares with its parent.
struct CallTimes {
    static constexpr std::size_t most_calls = 128;

    std::uint32_t calls = 0;
    std::array<float, most_calls> ns{};
    double cpu_ns = 0;  // of the whole process in all these calls; 0: not read
};

// All calls of the rounds that count.
struct OperationSeries {
    Timed timed;
    std::vector<double> us;
    double cpu_us = 0;  // of all calls together
};
void add_round(OperationSeries& series, const CallTimes& times);

struct OperationRow {
    Timed timed;
    std::size_t calls = 0;
    double median_us = 0;
    double min_us = 0;
    double max_us = 0;
    double p99_us = 0;
    double p999_us = 0;
    double cpu_us = 0;      // processor time of one call; 0: not read, the call does not sleep
    double null_calls = 0;  // median by that of a null system call
};

struct OperationResult {
    std::vector<OperationRow> rows;
    std::uint32_t rounds = 0;
    std::uint32_t dropped = 0;
};

// Operations of which nothing was timed make no row.
std::vector<OperationRow> rows_of(const std::vector<OperationSeries>& all);

std::string table(const OperationResult& result);
std::string json_lines(const OperationResult& result, const std::string& device);

}  // namespace via::bench
