// Blocking calls. The first one that waits leads: it sleeps on the peers' wake words or the
// devices' descriptors itself, so that a message costs one wake-up; others follow and are woken
// when their condition is ready.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>

#include "agent/agent.hpp"
#include "agent/ending.hpp"
#include "agent/poll_watch.hpp"
#include "agent/stranger_watch.hpp"
#include "base/atomic.hpp"
#include "base/list.hpp"
#include "base/time.hpp"
#include "nic/nic.hpp"

namespace via::agent {

class HandlerThread;
class ProgressThread;

/// Owns the list of calls that wait, and says which of them leads. Its mutex is taken last: under
/// it nothing is called but the kernel, to wake somebody.
class Waiters {
public:
    /// All outlive it. `period`: of the agent.
    Waiters(nic::Nic& nic, ProgressThread& progress, HandlerThread& handlers, const Ending& ending,
            Duration period)
        : nic_(nic), progress_(progress), handlers_(handlers), ending_(ending), period_(period) {}

    /// A leader may have to sleep on descriptors. False: errno says why it cannot.
    bool open_event();
    bool has_event() const { return event_ >= 0; }
    /// Nobody waits any more.
    void close_event();

    /// As Agent::wait().
    bool wait(const Condition& condition, Time deadline);
    /// A thread polls for one that waits: that does not yield.
    static bool is_polling();

    /// Somebody took a turn that made progress: wakes those who wait for just that.
    void wake_ready();
    bool has_leader() const { return has_leader_.load(); }
    /// The leader sleeps on what it armed; for who holds the turn.
    bool leader_sleeps() const { return leader_sleeps_; }
    /// False: nobody leads.
    bool wake_leader();
    /// The devices were served: the leader sleeps on words it knows; a new peer's is not among
    /// them.
    void devices_were_served();
    /// Who takes turns need not attend to waiters that are gone.
    void clear_attention();
    /// The NIC closes: all return, and then this does.
    void wake_all_and_wait();
    /// The descriptors are not ours any more: all are woken, but who sleeps on descriptors.
    void abandon();

    /// Polls by calls that wait, and all others.
    std::uint64_t polls() const { return polls_.load(); }
    std::uint64_t program_polls() const { return nic_.polls() - polls_.load(); }

private:
    /// Peers that a leader can sleep on: futex_waitv takes 128 words, one is the leader's own.
    static constexpr std::size_t leader_peers_max = 127;
    /// Descriptors of devices; a UDP device has two.
    static constexpr std::size_t leader_descriptors_max = 16;

    /// One waiting call; lives on its stack.
    struct Waiter : ListLink {
        /// Beside who polls seldom it leads.
        explicit Waiter(Duration period) : poll_watch(period, 0) {}

        Condition condition;
        Atomic<std::uint32_t> word{0};  ///< futex: 1 when it shall look again
        int looks = 0;  ///< as leader: 0 before the first sleep, 1 after it, 2 devices were served
        bool stands_by = false;   ///< as leader: the program polls, which serves the NIC
        PollWatch poll_watch;     ///< while it stands by
        int still_periods = 0;    ///< then, in which the program did not
        StrangerWatch strangers;  ///< as leader
        bool slept_out = false;   ///< as leader: the last sleep ended when its time was over
    };
    struct WaitSet;

    void wake(Waiter& waiter);
    void wake_all();
    void clear_attention_locked();
    void enlist(Waiter& waiter);
    void discharge(Waiter& waiter);
    bool leads(const Waiter& waiter);
    bool poll_for(const Condition& condition, int empty_max);
    /// Before it sleeps as a leader: rests first if it hears strangers.
    void watch_strangers(Waiter& waiter, Time deadline);
    void lead(Waiter& waiter, Time deadline);
    void stand_by(Waiter& waiter, Time deadline);
    bool program_polled(std::uint64_t polls, Time since) const;
    void make_wait_set(WaitSet& wait_set);
    void serve_handles();
    bool sleep_on(Waiter& waiter, WaitSet& wait_set, Time deadline);
    void sleep_on_descriptors(WaitSet& wait_set, Time deadline);
    void step_down(bool crowded);

    nic::Nic& nic_;
    ProgressThread& progress_;
    HandlerThread& handlers_;
    const Ending& ending_;
    const Duration period_;

    std::mutex mutex_;  ///< guards what follows, but for atomics
    List<Waiter> waiters_;
    Waiter* leader_ = nullptr;
    int event_ = -1;        ///< eventfd: wakes a leader that sleeps on a device's descriptors
    bool crowded_ = false;  ///< more peers than a leader can sleep on: the agent serves the NIC
    std::condition_variable none_left_;
    Atomic<bool> has_leader_{false};
    Atomic<bool> no_leaders_{false};  ///< the kernel has no futex_waitv for us
    Atomic<std::uint64_t> polls_{0};
    bool leader_sleeps_ = false;  ///< the turn guards it
};

}  // namespace via::agent
