// One process of a pair, as its parent sees it: started, asked, watched and ended.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

#include "bench/channel.hpp"
#include "bench/file_handle.hpp"

namespace via::bench {

struct PairSetup;
struct Order;
struct Answer;

// A file of the parent that no process it forks from now on may keep open: otherwise the death of
// whoever is at its other end, or the parent's own, would go unnoticed.
class ParentFile {
public:
    ParentFile() = default;
    explicit ParentFile(FileHandle file);
    ParentFile(ParentFile&& other) noexcept = default;
    ParentFile& operator=(ParentFile&& other) noexcept;
    ~ParentFile() { reset(); }

    int get() const { return file_.get(); }
    explicit operator bool() const { return static_cast<bool>(file_); }
    void reset();

private:
    FileHandle file_;
};

class ChildProcess {
public:
    ChildProcess() = default;
    ChildProcess(const ChildProcess&) = delete;
    ChildProcess& operator=(const ChildProcess&) = delete;
    ~ChildProcess() { end(0); }

    // Forks; the caller must have one thread only.
    Status start(Channel& channel, Shared& shared, Side side, const PairSetup& setup);

    // False: it is gone, or going.
    bool send(const Order& order);
    // What it answered, once control() can be read.
    bool receive(Answer& answer);
    void say_quit();

    int control() const { return control_.get(); }
    pid_t pid() const { return pid_; }
    bool is_stopped() const;

    // Waits up to patience_ms for a process that is ending, and says how it did.
    std::string how_it_ended(int patience_ms);
    // Waits until deadline_ns of CLOCK_MONOTONIC for its own end, then uses SIGKILL; false: it had
    // to. Reaps it.
    bool end(std::int64_t deadline_ns);

private:
    bool is_running() const { return pid_ > 0 && !reaped_; }

    pid_t pid_ = -1;
    bool reaped_ = false;
    ParentFile control_;
};

}  // namespace via::bench
