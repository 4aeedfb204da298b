#include "agent/waiters.hpp"

#include <errno.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include <utility>

#include "agent/clock.hpp"
#include "agent/event.hpp"
#include "agent/futex.hpp"
#include "agent/handler_thread.hpp"
#include "agent/process.hpp"
#include "agent/progress_thread.hpp"
#include "posix/not_cancelled.hpp"

namespace via::agent {

namespace {

thread_local bool polls_for_wait = false;

struct PollsForWait {
    PollsForWait() { polls_for_wait = true; }
    ~PollsForWait() { polls_for_wait = false; }
    PollsForWait(const PollsForWait&) = delete;
    PollsForWait& operator=(const PollsForWait&) = delete;
};

/// Empty polls before a call is listed, and again before it goes to sleep: an answer that is on
/// its way costs no wake-up, nor do the parts of a long one.
constexpr int polls_before_sleep = 100;
/// Nothing is on its way where no peer woke the leader, but strangers or the clock.
constexpr int polls_for_nobody = 10;
/// Strangers are not to decide how long a leader polls: one that hears them rests before it listens
/// again, so that many of their packets cost one wake-up.
constexpr Duration rest_after_strangers = microseconds(200);
/// Polls before it looks at the clock again, however much there is to do for others.
constexpr int polls_max = 10'000;
/// Who listens, as many do all the time, is not looked after for each message.
std::uint32_t attention_for(const Condition& condition) {
    return condition.by_completion ? nic::Nic::somebody_waits : nic::Nic::somebody_listens;
}

/// The process ends, and nothing comes any more. Who waits for ever ends with it.
bool wait_for_nothing(Time deadline) {
    for (Time present = clock_now(); present < deadline; present = clock_now()) {
        const timespec left = to_timespec({(earlier(deadline, present + seconds(1)) - present).ns});
        nanosleep(&left, nullptr);
    }
    return false;
}

}  // namespace

// The caller of these three holds the mutex.

void Waiters::wake(Waiter& waiter) {
    if (waiter.word.exchange(1) != 0) return;
    // A new leader may still sleep as a follower.
    wake_sleeper(waiter.word);
    if (&waiter == leader_ && event_ >= 0 && !set_event(event_))
        log(0, "cannot wake a call that waits (write): %s", strerror(errno));
}

void Waiters::wake_all() {
    for (Waiter* waiter = waiters_.front(); waiter != nullptr; waiter = waiters_.next(*waiter))
        wake(*waiter);
}

void Waiters::clear_attention_locked() {
    std::uint32_t needless = nic::Nic::anybody_waits;
    for (Waiter* waiter = waiters_.front(); waiter != nullptr; waiter = waiters_.next(*waiter))
        needless &= ~attention_for(waiter->condition);
    nic_.attention().fetch_and(~needless);
}

// Called by all, without it.

bool Waiters::open_event() {
    event_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    return event_ >= 0;
}

void Waiters::close_event() {
    if (event_ >= 0) ::close(std::exchange(event_, -1));
}

bool Waiters::is_polling() { return polls_for_wait; }

void Waiters::wake_ready() {
    std::lock_guard guard(mutex_);
    for (Waiter* waiter = waiters_.front(); waiter != nullptr; waiter = waiters_.next(*waiter))
        if (waiter->condition.ready(waiter->condition.subject)) wake(*waiter);
}

bool Waiters::wake_leader() {
    std::lock_guard guard(mutex_);
    if (leader_ == nullptr) return false;
    wake(*leader_);
    return true;
}

void Waiters::devices_were_served() {
    std::lock_guard guard(mutex_);
    if (leader_ != nullptr) wake(*leader_);
    if (!no_leaders_.load() && nic_.counters().get(Counter::paths_open) <= leader_peers_max)
        crowded_ = false;
}

void Waiters::wake_all_and_wait() {
    std::unique_lock guard(mutex_);
    wake_all();
    none_left_.wait(guard, [this] { return waiters_.empty(); });
}

void Waiters::abandon() {
    std::lock_guard guard(mutex_);
    event_ = -1;  // who sleeps on descriptors cannot be woken
    wake_all();
}

void Waiters::clear_attention() {
    std::lock_guard guard(mutex_);
    clear_attention_locked();
}

bool Waiters::leads(const Waiter& waiter) {
    std::lock_guard guard(mutex_);
    return leader_ == &waiter;
}

void Waiters::enlist(Waiter& waiter) {
    {
        std::lock_guard guard(mutex_);
        waiters_.push_back(waiter);
        if (leader_ == nullptr && !crowded_) {
            leader_ = &waiter;
            has_leader_.store(true);
        }
    }
    // Who clears attention from here on leaves what we ask for.
    nic_.call_for_attention(attention_for(waiter.condition));
}

void Waiters::discharge(Waiter& waiter) {
    bool agent_needed = false;
    {
        std::lock_guard guard(mutex_);
        List<Waiter>::remove(waiter);
        if (leader_ == &waiter) {
            leader_ = crowded_ ? nullptr : waiters_.front();
            has_leader_.store(leader_ != nullptr);
            if (leader_ != nullptr) wake(*leader_);
            agent_needed = leader_ == nullptr;
        }
        clear_attention_locked();
        if (waiters_.empty()) none_left_.notify_all();
    }
    // A notification that came meanwhile may have set the bits just before we cleared them.
    if (handlers_.has_notifications()) {
        nic_.call_for_attention(nic::Nic::anybody_waits);
        handlers_.look_for_notifications();
    }
    // A parked agent has to look after the NIC again when the program goes elsewhere; an armed one,
    // as it stays for a queue's descriptor, was disarmed by the leader.
    if (agent_needed) progress_.is_needed_again();
}

bool Waiters::poll_for(const Condition& condition, int empty_max) {
    const PollsForWait polls_for_wait_here;
    const std::uint64_t before = nic_.polls();
    int empty = 0;
    for (int polls = 0; polls < polls_max && empty < empty_max; ++polls) {
        if (condition.ready(condition.subject)) return true;
        empty = nic_.poll() ? 0 : empty + 1;
        polls_.fetch_add(1);
        relax();
    }
    // Others had the turn all the time: what only a turn brings would come by none while we sleep.
    if (nic_.polls() == before) nic_.poll_surely();
    return condition.ready(condition.subject);
}

void Waiters::watch_strangers(Waiter& waiter, Time deadline) {
    const Counters& counters = nic_.counters();
    const Time now = clock_now();
    waiter.strangers.look(
        counters.get(Counter::frames_received) + counters.get(Counter::frames_sent), now);
    if (waiter.strangers.hears_strangers())
        sleep_on_own(waiter.word, earlier(deadline, now + rest_after_strangers));
}

bool Waiters::wait(const Condition& condition, Time deadline) {
    const posix::NotCancelled not_cancelled;
    if (ending_.leaving.load()) return wait_for_nothing(deadline);
    if (poll_for(condition, polls_before_sleep)) return true;
    Waiter waiter(period_);
    waiter.condition = condition;
    enlist(waiter);
    bool result = false;
    while (!ending_.leaving.load()) {
        waiter.word.exchange(0);  // sees what the one who set it saw
        result = waiter.stands_by
                     ? condition.ready(condition.subject)
                     : poll_for(condition, waiter.slept_out || waiter.strangers.hears_strangers()
                                               ? polls_for_nobody
                                               : polls_before_sleep);
        if (result || ending_.closing.load() || clock_now() >= deadline) break;
        if (!leads(waiter)) {
            sleep_on_own(waiter.word, deadline);
        } else if (waiter.stands_by) {
            stand_by(waiter, deadline);
        } else {
            watch_strangers(waiter, deadline);
            lead(waiter, deadline);
        }
    }
    // leave() says so before it says that the NIC closes: who saw that sees why.
    if (!result && ending_.leaving.load()) wait_for_nothing(deadline);
    discharge(waiter);
    return result;
}

}  // namespace via::agent
