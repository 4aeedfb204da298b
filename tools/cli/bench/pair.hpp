// Two pinned processes that keep one channel alive and answer questions one at a time.
#pragma once

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <memory>
#include <string>

#include "bench/channel.hpp"
#include "bench/file_handle.hpp"
#include "bench/shared_map.hpp"
#include "bench/stats.hpp"

namespace via::bench {

struct PairSetup {
    std::array<int, 2> cpus{0, 1};  // where the two processes are pinned
    std::uint32_t processors = 2;   // online, to tell foreign load
    ModeLimits limits;              // for channels that tune themselves by mode
    Places places;
    std::size_t arena_bytes = 0;  // of each process
    std::uint64_t max_size = 0;   // largest message
    int open_timeout_ms = 30'000;
};

struct Answer;  // what one side answers, pair_child.hpp

// What both sides brought back from one question.
struct RawSample {
    std::array<Reading, 2> readings;
    std::array<Disturbance, 2> disturbances;
    double probe_before_ns = 0;
    double probe_after_ns = 0;
};

// Not thread-safe; forks, so the caller must have one thread only.
class Pair {
public:
    // Forks the two processes and opens the channel between them.
    static Result<std::unique_ptr<Pair>> start(std::unique_ptr<Channel> channel,
                                               const PairSetup& setup);

    // Ends both processes: politely, then by SIGKILL; always waits for them.
    ~Pair();

    // Sleeps until both sides answered. A side that dies, fails or does not answer within
    // timeout_ms ends the pair, and the failure says which, how and doing what; every later call
    // fails too.
    Result<RawSample> ask(const Question& question, const Effort& effort, int timeout_ms);

    const Channel& channel() const { return *channel_; }
    pid_t process(Side side) const { return sides_[static_cast<std::size_t>(side)].pid; }

private:
    struct Child {
        pid_t pid = -1;
        bool reaped = false;
        FileHandle control;

        bool is_running() const { return pid > 0 && !reaped; }
    };

    explicit Pair(std::unique_ptr<Channel> channel) : channel_(std::move(channel)) {}
    Status fork_side(Side side, const PairSetup& setup);
    Shared& shared_view() const;
    Result<std::array<Answer, 2>> collect(int timeout_ms);
    std::string trouble_of(std::size_t side, const std::string& what);
    std::string complaint_of(std::size_t side, const std::string& what);
    std::string how_it_ended(std::size_t side, int patience_ms);
    void end_children(bool politely);

    std::unique_ptr<Channel> channel_;
    SharedMap shared_;
    std::array<Child, 2> sides_;
    bool broken_ = false;
};

}  // namespace via::bench
