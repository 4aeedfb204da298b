// Two pinned processes that keep one channel alive and answer questions one at a time.
#pragma once

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <memory>
#include <string>

#include "bench/channel.hpp"
#include "bench/child_process.hpp"
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
    int wire = -1;           // to the process on the other machine, if it is there
    std::uint64_t word = 0;  // and what the two call their channel
};

struct Answer;  // what one side answers, pair_child.hpp

// What both sides brought back from one question.
struct RawSample {
    std::array<Reading, 2> readings;  // of one clock
    std::array<Disturbance, 2> disturbances;
    double probe_before_ns = 0;
    double probe_after_ns = 0;
    bool remote = false;  // two machines: there was no probe
};

// The two processes, wherever they live.
class AnyPair {
public:
    virtual ~AnyPair() = default;

    // Sleeps until both sides answered. A side that dies, fails or does not answer within
    // timeout_ms ends the pair, and the failure says which, how and doing what; every later call
    // fails too.
    virtual Result<RawSample> ask(const Question& question, const Effort& effort,
                                  int timeout_ms) = 0;
    virtual const Channel& channel() const = 0;
};

// Both on this machine. Not thread-safe; forks, so the caller must have one thread only.
class Pair final : public AnyPair {
public:
    // Forks the two processes and opens the channel between them.
    static Result<std::unique_ptr<Pair>> start(std::unique_ptr<Channel> channel,
                                               const PairSetup& setup);

    // Ends both processes: politely, then by SIGKILL; always waits for them.
    ~Pair() override;

    Result<RawSample> ask(const Question& question, const Effort& effort, int timeout_ms) override;
    const Channel& channel() const override { return *channel_; }
    pid_t process(Side side) const { return sides_[static_cast<std::size_t>(side)].pid(); }

private:
    explicit Pair(std::unique_ptr<Channel> channel) : channel_(std::move(channel)) {}
    Shared& shared_view() const;
    Result<std::array<Answer, 2>> collect(int timeout_ms);
    std::string failure_of(std::size_t side, const std::string& what);
    std::string complaint_of(std::size_t side, const std::string& what);
    void end_children(bool politely);

    std::unique_ptr<Channel> channel_;
    SharedMap shared_;
    std::array<ChildProcess, 2> sides_;
    bool broken_ = false;
};

// How long a process may take to close its channel, and to end once it has lost its parent's ear.
inline constexpr int polite_ms = 5'000;
inline constexpr int end_patience_ms = 1'000;

}  // namespace via::bench
