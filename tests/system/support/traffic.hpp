// A checked stream of messages from an initiator to a target, by send, RDMA write or RDMA read.
// Either may die at any moment: what they know stands in a page that both processes share.
#pragma once

#include <atomic>
#include <cstdint>

#include "support/vipl.hpp"

namespace system_test {

enum class Operation : std::uint8_t { send, write, read };
const char* name_of(Operation operation);

/// Shared by both processes. Counts begin at 0 and only grow.
struct TrafficPage {
    std::atomic<std::uint64_t> credits;  ///< messages that may be started in all; the target's
    std::atomic<std::uint64_t> started;  ///< the initiator posted them
    std::atomic<std::uint64_t> done;     ///< completed without error; the initiator's
    std::atomic<std::uint64_t> taken;    ///< received and found right; the target's
    std::atomic<std::uint64_t> address;  ///< of the target's first buffer
    std::atomic<std::uint64_t> stride;   ///< bytes from one buffer to the next
    std::atomic<std::uint64_t> slots;    ///< the target's buffers
    std::atomic<std::uint32_t> handle;   ///< of the memory they are in
    std::atomic<std::uint32_t> leave;    ///< the test asks a role to come to an end
};

/// Posts messages as long as there are credits, and takes what completed.
class Initiator {
public:
    Initiator(End& end, Operation operation, TrafficPage& page)
        : end_(end), operation_(operation), page_(page) {}
    /// Never blocks.
    void step(Where where = Where::current());
    /// As step(), but sleeps at most that long until something is back. False: nothing is.
    bool wait(VIP_ULONG timeout_ms, Where where = Where::current());
    /// The connection is over: a descriptor came back with an error, or none was under way to tell.
    bool over() const { return failed_ != 0 || broken_; }
    std::uint64_t done() const { return done_; }
    std::uint64_t failed() const { return failed_; }
    bool all_back() const { return started_ == done_ + failed_; }

private:
    void start_all(Where where);
    void start(Where where);
    void take(const Outcome& outcome, Where where);

    End& end_;
    Operation operation_;
    TrafficPage& page_;
    std::uint64_t started_ = 0;
    std::uint64_t done_ = 0;
    std::uint64_t failed_ = 0;
    bool broken_ = false;
};

/// Takes messages, checks every byte, and gives credits.
class Target {
public:
    /// Before connecting: tells the page where the memory is.
    Target(End& end, Operation operation, TrafficPage& page);
    /// Never blocks, and returns even while more arrives all the time.
    void step(Where where = Where::current());
    /// Takes one, for which it sleeps at most that long. False: nothing came.
    bool wait(VIP_ULONG timeout_ms, Where where = Where::current());
    bool over() const { return failed_ != 0; }
    std::uint64_t taken() const { return taken_; }
    std::uint64_t failed() const { return failed_; }
    /// Every receive that was posted came back.
    bool all_back() const { return failed_ == end_.wants().receives; }

private:
    void take(const Outcome& outcome, Where where);

    End& end_;
    Operation operation_;
    TrafficPage& page_;
    std::uint64_t taken_ = 0;
    std::uint64_t failed_ = 0;
};

}  // namespace system_test
