// Who takes turns while nobody asks, and how it sleeps:
//   ticking  the program polls; the agent looks now and then whether it still does
//   armed    the program stood still for a period: peers wake the agent, which takes the turns
//   parked   a call of the program waits and sleeps in the agent's place (the leader)
// The program's polls take the agent out of armed, unless they are seldom, and parked; see
// docs/design/turn-and-wake-up.md.
#pragma once

#include <chrono>
#include <cstdint>
#include <mutex>
#include <semaphore>
#include <thread>

#include "agent/ending.hpp"
#include "agent/host_agent_options.hpp"
#include "agent/poll_watch.hpp"
#include "agent/processor_watch.hpp"
#include "agent/statistics.hpp"
#include "agent/waiters.hpp"
#include "agent/watched_objects.hpp"
#include "agent/yield_watch.hpp"
#include "base/atomic.hpp"
#include "base/time.hpp"
#include "nic/nic.hpp"

namespace via::agent {

/// Owns the thread, what it sleeps on, and how the program polls. Each of its two mutexes is taken
/// last: nothing is called under it but the kernel.
class ProgressThread {
public:
    /// All outlive it.
    ProgressThread(nic::Nic& nic, Waiters& waiters, const WatchedObjects& watched,
                   Statistics& statistics, HostAgentOptions& options, const Ending& ending);

    /// For a NIC that has its devices. nullptr, or what failed; errno says why.
    const char* open();
    /// Throws std::system_error.
    void start();
    /// The end, which `ending` has told of. By end_until(): false where it does not come in time.
    void end();
    bool end_until(std::chrono::steady_clock::time_point deadline);
    /// Its descriptors are not ours any more: it is never woken.
    void abandon();
    /// After end().
    void close_descriptors();

    // By any thread -------------------------------------------------------------------------------
    /// Makes it look at the state anew.
    void kick();
    /// The program runs while the thread sleeps.
    void rouse();
    /// The program polled while the thread sleeps: does it begin to poll again?
    void hear_poll();
    /// A turn left work. True: it was the thread's own, which goes on by itself.
    bool goes_on_by_itself();
    /// Somebody led and does not any more.
    void tick();
    void is_needed_again();

    // By it, and by who leads in its place
    // ----------------------------------------------------------
    /// There are devices with wake words and others with descriptors.
    bool is_mixed() const { return parked_epoll_ >= 0; }
    bool somebody_polled(PollWatch& watch) const;
    void serve_deadlines();
    void look_at_yields();
    void program_stood_still();
    /// The thread looks.
    void look_at_names_if_due() {
        if (names_are_due()) kick();
    }

private:
    enum class State : std::uint32_t { ticking, armed, parked };

    void run();
    bool watch(int descriptor, bool parked);
    bool names_are_due() const;
    void look_at_names();
    WaysNow ways_now();
    void serve(bool devices_ready);
    int sleep_time(Time deadline) const;
    bool polls_anew();
    /// Decides how to sleep; returns the time in milliseconds for epoll_wait (-1: for ever).
    int settle();
    void leave_alone();
    void take_some_turns();
    int take_over();
    void disarm();

    nic::Nic& nic_;
    Waiters& waiters_;
    const WatchedObjects& watched_;
    Statistics& statistics_;
    HostAgentOptions& options_;
    const Ending& ending_;

    Atomic<State> state_{State::ticking};
    Atomic<std::int64_t> names_look_at_{0};  ///< ns: by the thread
    int epoll_ = -1;
    /// On a NIC with devices of both kinds, what the thread sleeps on while it is parked: all but
    /// the wait handles that the leader sleeps on.
    int parked_epoll_ = -1;
    std::mutex kicks_mutex_;
    int kicks_ = -1;  ///< eventfd; written to and closed under the lock

    Atomic<bool> roused_{false};       ///< the program polls again
    Atomic<bool> still_armed_{false};  ///< we were woken, and the devices not told
    Atomic<std::uint64_t> polls_when_armed_{0};
    PollsAgain polls_again_;  ///< while the thread is armed

    std::mutex yields_mutex_;
    YieldWatch yield_watch_;  ///< of the thread, or of who leads

    // The thread's own
    PollWatch poll_watch_;
    ProcessorWatch processor_watch_;
    Duration turns_period_;  ///< of a program that has no processor
    std::uint64_t polls_looked_at_ = 0;
    bool names_failed_ = false;  ///< that was told
    bool busy_ = false;          ///< it just had work
    bool left_behind_ = false;   ///< our own last turn left work

    std::thread thread_;
    std::binary_semaphore over_{0};  ///< it only has to be joined
};

}  // namespace via::agent
