// The subcommands of `via`. Each has its own file; main.cpp only reads the command line.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace via::cli {

// Exit codes of every subcommand.
inline constexpr int exit_good = 0;
inline constexpr int exit_failed = 1;        // it could not be done; standard error says why
inline constexpr int exit_usage = 2;         // the command line was wrong
inline constexpr int exit_inconclusive = 3;  // bench: the wanted mode never came
inline constexpr int exit_slower = 4;        // bench compare: a figure of ours is slower

struct InfoOptions {
    std::string device;  // empty: all
    std::string peer;    // not empty: only the way to that host
    bool json = false;
};

struct StatOptions {
    int pid = 0;            // 0: all processes of this user
    double interval_s = 0;  // 0: once
    bool all = false;       // also counters that are zero
    bool json = false;
};

struct KeysOptions {
    bool system = false;  // in /etc, for all users
    bool beside = false;  // also where there is one already
    bool host = false;    // this host's own, not the cluster's
    std::string until;    // YYYY-MM-DD; empty: for ever
    std::string trusted_host;
    std::string trusted_key;
    std::string capture;
    std::string log;
    std::string output;
};

struct DemoOptions {
    std::string device = "shm";
};

struct BenchOptions {
    std::string bench;  // the word behind `via bench`
    std::string device = "shm";
    std::string op = "send";
    std::string wait = "poll";
    std::string reliability = "delivery";
    std::string mode = "any";  // near, far, both
    double near_below_ns = 100;
    double far_above_ns = 150;
    bool keep_disturbed = false;
    std::string cpus;  // "A,B", with a peer or to serve "A"; empty: the first ones
    std::vector<std::string> sizes;
    std::vector<std::string> against;
    std::vector<std::string> netns;   // two network namespaces, or none
    std::string peer;                 // HOST[:PORT] of `via bench serve`, or empty
    std::string address;              // serve: HOST[:PORT] to listen at, or empty
    std::vector<std::string> places;  // report: a folder; compare: two files or folders
    std::string markdown;             // report: the file to write instead of a page
    double tolerance_percent = 5;     // compare: less is called noise, however certain
    std::vector<std::string> given;   // options that the command line names
    bool cq = false;
    bool rotate_vis = false;
    bool exported = false;
    bool quick = false;                    // suite
    std::string output = "bench-results";  // suite: the folder
    bool immediate = false;
    bool both_ways = false;
    bool json = false;
    int reuse = -1;  // percent; less than 0: buffers in turn
    std::uint32_t depth = 16;
    std::uint32_t vis = 0;
    std::uint32_t active_vis = 1;
    std::uint32_t segments = 1;
    std::uint32_t post_many = 1;
    std::uint32_t senders = 1;
    std::uint32_t spinners = 0;
    std::uint32_t rounds = 10;
    int max_seconds = 300;
};

int run_info(const InfoOptions& options);
int run_keys_new(const KeysOptions& options);
int run_keys_show();
int run_keys_trust(const KeysOptions& options);
int run_keys_decrypt(const KeysOptions& options);
int run_stat(const StatOptions& options);
int run_demo(const DemoOptions& options);
// Everything behind the word mpirun, as it came.
int run_mpirun(const std::vector<std::string>& given);
// Everything behind the word sockets, as it came: another program's arguments are among it.
int run_sockets(const std::vector<std::string>& given);
int run_bench_messages(const BenchOptions& options);
int run_bench_channels(const BenchOptions& options);
int run_bench_operations(const BenchOptions& options);
int run_bench_register(const BenchOptions& options);
int run_bench_suite(const BenchOptions& options);
int run_bench_serve(const BenchOptions& options);
int run_bench_report(const BenchOptions& options);
int run_bench_goals(const BenchOptions& options);
int run_bench_compare(const BenchOptions& options);

}  // namespace via::cli
