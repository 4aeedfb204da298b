// Blocking calls. The first one that waits leads: it sleeps on the peers' wake words or the
// devices' descriptors itself, so that a message costs one wake-up; others follow and are woken
// when their condition is ready.
#include <errno.h>
#include <linux/futex.h>
#include <poll.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <span>

#include "agent/event.hpp"
#include "agent/host_agent.hpp"
#include "agent/process.hpp"
#include "agent/rest.hpp"
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

/// Polls in vain before a call is listed, and again before it goes to sleep: an answer that is on
/// its way costs no wake-up, nor do the parts of a long one.
constexpr int polls_before_sleep = 100;
/// Polls before it looks at the clock again, however much there is to do for others.
constexpr int polls_max = 10'000;
/// Polls in a period of the agent that show that the program serves the NIC itself.
constexpr std::int64_t steady_polls = 100;
/// Fewer show nothing, in however short a time.
constexpr std::int64_t steady_polls_min = 4;
/// Periods without them after which it is believed that the program polls no more: it may have been
/// waiting for a processor, which a leader that each packet wakes would only take away from it.
constexpr int still_periods_max = 10;
/// A leader that slept so long looks after the devices once, then sleeps for good.
constexpr Duration before_long_sleep = milliseconds(10);

/// Who listens, as many do all the time, is not looked after for each message.
std::uint32_t attention_for(const Condition& condition) {
    return condition.by_completion ? nic::Nic::somebody_waits : nic::Nic::somebody_listens;
}

timespec to_timespec(Time time) { return {time.ns / 1'000'000'000, time.ns % 1'000'000'000}; }

/// Sleeps until a word changes, somebody wakes it, or the deadline; not at all where one is gone
/// (EFAULT): its peer died meanwhile, and the next wait set is made without it. False: the kernel
/// does not let us (older than 5.16, or a filter forbids it). `woken`: which word somebody ended it
/// by, if so.
bool sleep_on_words(futex_waitv* words, unsigned count, Time deadline, unsigned& woken) {
    const timespec until = to_timespec(deadline);
    const long result = syscall(SYS_futex_waitv, words, count, 0,
                                deadline.is_never() ? nullptr : &until, CLOCK_MONOTONIC);
    if (result >= 0) woken = static_cast<unsigned>(result);
    if (result >= 0 || (errno != ENOSYS && errno != EPERM && errno != EINVAL)) return true;
    log(1, "calls that wait need two wake-ups here: no futex_waitv: %s", strerror(errno));
    return false;
}

/// The same on one private word, with the call that every kernel has.
void sleep_on_own(const Atomic<std::uint32_t>& word, Time deadline) {
    const timespec until = to_timespec(deadline);
    const long result =
        syscall(SYS_futex, &word, FUTEX_WAIT_BITSET | FUTEX_PRIVATE_FLAG, 0,
                deadline.is_never() ? nullptr : &until, nullptr, FUTEX_BITSET_MATCH_ANY);
    if (result < 0 && errno != EAGAIN && errno != EINTR && errno != ETIMEDOUT)
        log(0, "cannot sleep (futex): %s", strerror(errno));
}

futex_waitv word_of(const void* address, std::uint32_t expected, bool shared) {
    futex_waitv word{};
    word.uaddr = reinterpret_cast<std::uintptr_t>(address);
    word.val = expected;
    word.flags = FUTEX_32 | (shared ? 0 : FUTEX_PRIVATE_FLAG);
    return word;
}

}  // namespace

void HostAgent::wake(Waiter& waiter) {
    if (waiter.word.exchange(1) != 0) return;
    // A new leader may still sleep as a follower.
    syscall(SYS_futex, &waiter.word, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, 1, nullptr, nullptr, 0);
    if (&waiter == leader_ && leader_event_ >= 0 && !set_event(leader_event_))
        log(0, "cannot wake a call that waits (write): %s", strerror(errno));
}

/// Who took a turn that made progress wakes those who wait for just that.
void HostAgent::wake_ready() {
    {
        std::lock_guard guard(waiters_mutex_);
        for (Waiter* waiter = waiters_.front(); waiter != nullptr; waiter = waiters_.next(*waiter))
            if (waiter->condition.ready(waiter->condition.subject)) wake(*waiter);
    }
    if (notified_.load()) look_for_notifications();
}

void HostAgent::enlist(Waiter& waiter) {
    {
        std::lock_guard guard(waiters_mutex_);
        waiters_.push_back(waiter);
        if (leader_ == nullptr && !crowded_) {
            leader_ = &waiter;
            has_leader_.store(true);
        }
    }
    // Who clears attention from here on leaves what we ask for.
    nic_.call_for_attention(attention_for(waiter.condition));
}

/// The caller holds waiters_mutex_. Who takes turns need not attend to waiters that are gone.
void HostAgent::clear_attention() {
    std::uint32_t needless = nic::Nic::anybody_waits;
    for (Waiter* waiter = waiters_.front(); waiter != nullptr; waiter = waiters_.next(*waiter))
        needless &= ~attention_for(waiter->condition);
    nic_.attention().fetch_and(~needless);
}

void HostAgent::discharge(Waiter& waiter) {
    bool agent_needed = false;
    {
        std::lock_guard guard(waiters_mutex_);
        List<Waiter>::remove(waiter);
        if (leader_ == &waiter) {
            leader_ = crowded_ ? nullptr : waiters_.front();
            has_leader_.store(leader_ != nullptr);
            if (leader_ != nullptr) wake(*leader_);
            agent_needed = leader_ == nullptr;
        }
        clear_attention();
        if (waiters_.empty()) no_waiters_.notify_all();
    }
    // A notification that came meanwhile may have set the bits just before we cleared them.
    if (notified_.load()) {
        nic_.call_for_attention(nic::Nic::anybody_waits);
        look_for_notifications();
    }
    // A parked agent has to look after the NIC again when the program goes elsewhere; an armed one,
    // as it stays for a queue's descriptor, was disarmed by the leader.
    if (agent_needed && state_.load() != State::ticking) {
        nic_.attention().fetch_and(~nic::Nic::agent_sleeps);
        state_.store(State::ticking);
        kick();
    }
}

/// There are more peers than words to sleep on, or not so many any more.
void HostAgent::step_down(bool crowded) {
    {
        std::lock_guard guard(waiters_mutex_);
        crowded_ = crowded;
        leader_ = nullptr;
        has_leader_.store(false);
    }
    state_.store(State::ticking);
    kick();
}

/// What a leader sleeps on besides its own word or event.
struct HostAgent::WaitSet {
    std::array<device::WakeWord, leader_peers_max> words;
    std::size_t word_count = 0;
    unsigned woken = 0;  ///< one more than the number of the word that ended the sleep
    std::array<device::WakeDescriptor, leader_descriptors_max> descriptors;
    std::size_t descriptor_count = 0;
    std::uint32_t handles = 0;  ///< bit by number: of these the descriptor is a wait handle
    bool handle_ready = false;

    /// No call sleeps on all of that.
    bool too_small() const {
        return word_count > words.size() || descriptor_count > descriptors.size();
    }
    bool is_handle(std::size_t descriptor) const { return (handles >> descriptor & 1) != 0; }
    void add_handle(int descriptor) {
        if (descriptor_count < descriptors.size()) {
            descriptors[descriptor_count] = {descriptor, false};
            handles |= 1U << descriptor_count;
        }
        ++descriptor_count;
    }
};

/// A device has words or descriptors. No call sleeps on both: where there are devices of both kinds
/// those with words wake us by their handle.
void HostAgent::make_wait_set(WaitSet& wait_set) {
    const auto free = [](auto& all, std::size_t taken) {
        return std::span(all).subspan(std::min(taken, all.size()));
    };
    for (auto& device : nic_.devices()) {
        const bool by_handle = is_mixed() && device->wake_descriptors({}) == 0;
        device->arm(by_handle ? device::Sleep::on_handle : device::Sleep::on_words);
        if (by_handle) {
            wait_set.add_handle(device->wait_handle());
            continue;
        }
        const std::size_t descriptors =
            device->wake_descriptors(free(wait_set.descriptors, wait_set.descriptor_count));
        wait_set.descriptor_count += descriptors;
        if (descriptors == 0)
            wait_set.word_count += device->wake_words(free(wait_set.words, wait_set.word_count));
    }
}

/// Sleeps on everything that could make the waiter ready; returns when it should look again.
void HostAgent::lead(Waiter& waiter, Time deadline) {
    WaitSet wait_set;
    nic_.take_turn();
    const Time due = nic_.next_deadline();
    // The agent is parked for our sake: its duties are ours. One look before a long sleep.
    if (waiter.looks == 1 || (!due.is_never() && now() >= due)) {
        if (waiter.looks == 1) waiter.looks = 2;
        nic_.service(now());
        if (options_.directory_again && names_look_due()) kick();  // the agent looks at names
    }
    make_wait_set(wait_set);
    atomic_fence(std::memory_order_seq_cst);
    // Who was woken before it came to lead: its word is set, so the next one would set no event.
    const bool look_again = wait_set.too_small() || nic_.has_work() || waiter.word.load() != 0 ||
                            waiter.condition.ready(waiter.condition.subject);
    if (waiter.looks == 0) deadline = earlier(deadline, now() + before_long_sleep);
    if (look_again) {
        nic_.arm(device::Sleep::awake);
    } else {
        deadline = nic_.sleep_until_deadline(deadline);
        leader_sleeps_ = true;
    }
    nic_.end_turn();
    if (wait_set.too_small()) return step_down(true);
    if (look_again) return;

    const Time begin = now();
    const std::uint64_t polls = program_polls();
    const bool slept = sleep_on(waiter, wait_set, deadline);
    waiter.stands_by = program_polled(polls, begin);
    if (waiter.stands_by) program_stood_still();
    waiter.still_periods = 0;
    if (waiter.looks == 0) waiter.looks = 1;
    nic_.take_turn();
    nic_.counters().add(Counter::wakeups);
    leader_sleeps_ = false;
    nic_.arm(device::Sleep::awake);
    if (wait_set.handle_ready) serve_handles();
    if (wait_set.woken != 0)
        for (auto& device : nic_.devices()) device->woken_by(wait_set.words[wait_set.woken - 1]);
    nic_.end_turn();
    if (slept) return;
    no_leaders_.store(true);
    step_down(true);
}

/// As a leader sleeps while the program polls: not on the devices, where each frame would wake it
/// to find that the program was quicker, but as the agent does, a period at a time. Where the
/// program did not poll for one it takes a turn instead, so that peers are answered.
void HostAgent::stand_by(Waiter& waiter, Time deadline) {
    serve_deadlines();
    // Of devices of both kinds the agent, parked, hears only some: a peer that greets is ours to
    // see.
    if (is_mixed() && nic_.try_take_turn()) {
        serve_handles();
        nic_.end_turn();
    }
    const Time begin = now();
    const std::uint64_t polls = program_polls();
    sleep_on_own(waiter.word, earlier(deadline, begin + waiter.poll_watch.period()));
    somebody_polled(waiter.poll_watch);
    look_at_rests();
    if (static_cast<std::int64_t>(program_polls() - polls) >= steady_polls_min) {
        waiter.still_periods = 0;
        return;
    }
    waiter.stands_by = ++waiter.still_periods <= still_periods_max;
    if (!nic_.try_take_turn()) return;
    nic_.turn(now());
    nic_.end_turn();
}

/// Has it polled steadily since it had polled so often, then? The few polls of one who only posts
/// would leave the devices alone for a period.
bool HostAgent::program_polled(std::uint64_t polls, Time since) {
    const auto more = static_cast<std::int64_t>(program_polls() - polls);
    return more >= steady_polls_min &&
           more * options_.period.ns >= steady_polls * (now() - since).ns;
}

/// Takes away what made a handle readable. The others need no care now, and who has not heard
/// anything for long looks seldom, until it is served.
void HostAgent::serve_handles() {
    const Time present = now();
    for (auto& device : nic_.devices())
        if (device->wake_descriptors({}) == 0) device->service(present);
}

/// False: the kernel does not let us.
bool HostAgent::sleep_on(Waiter& waiter, WaitSet& wait_set, Time deadline) {
    if (wait_set.descriptor_count != 0) {
        sleep_on_descriptors(wait_set, deadline);
        return true;
    }
    std::array<futex_waitv, leader_peers_max + 1> words;
    words[0] = word_of(&waiter.word, 0, false);
    for (std::size_t n = 0; n < wait_set.word_count; ++n)
        words[n + 1] = word_of(wait_set.words[n].address, wait_set.words[n].expected, true);
    const auto count = static_cast<unsigned>(wait_set.word_count) + 1;
    return sleep_on_words(words.data(), count, deadline, wait_set.woken);
}

void HostAgent::sleep_on_descriptors(WaitSet& wait_set, Time deadline) {
    std::array<pollfd, leader_descriptors_max + 1> entries;
    for (std::size_t n = 0; n < wait_set.descriptor_count; ++n) {
        const device::WakeDescriptor& one = wait_set.descriptors[n];
        entries[n] = {one.descriptor, static_cast<short>(POLLIN | (one.for_room ? POLLOUT : 0)), 0};
    }
    pollfd& own = entries[wait_set.descriptor_count];
    own = {leader_event_, POLLIN, 0};
    const timespec left = to_timespec({std::max<std::int64_t>(0, (deadline - now()).ns)});
    const int ready = ppoll(entries.data(), wait_set.descriptor_count + 1,
                            deadline.is_never() ? nullptr : &left, nullptr);
    if (ready < 0 && errno != EINTR) log(0, "cannot sleep (ppoll): %s", strerror(errno));
    for (std::size_t n = 0; n < wait_set.descriptor_count && ready > 0; ++n)
        if (wait_set.is_handle(n) && entries[n].revents != 0) wait_set.handle_ready = true;
    if (ready > 0 && own.revents != 0 && !clear_event(leader_event_))
        log(0, "cannot read the wake-up descriptor (read): %s", strerror(errno));
}

void HostAgent::follow(Waiter& waiter, Time deadline) { sleep_on_own(waiter.word, deadline); }

/// Any thread of the program that polls. A call that waits polls for a moment only, and then
/// sleeps.
void HostAgent::rest() {
    if (!polls_for_wait) rest_now_or_later();
}

bool HostAgent::poll_for(const Condition& condition) {
    const PollsForWait polls_for_wait_here;
    const std::uint64_t before = nic_.polls();
    int vain = 0;
    for (int polls = 0; polls < polls_max && vain < polls_before_sleep; ++polls) {
        if (condition.ready(condition.subject)) return true;
        vain = nic_.poll() ? 0 : vain + 1;
        waiting_polls_.fetch_add(1);
        relax();
    }
    // Others had the turn all the time: what only a turn brings would come by none while we sleep.
    if (nic_.polls() == before) nic_.poll_surely();
    return condition.ready(condition.subject);
}

/// The process ends, and nothing comes any more. Who waits for ever ends with it.
bool HostAgent::wait_in_vain(Time deadline) {
    for (Time present = now(); present < deadline; present = now()) {
        const timespec left = to_timespec({(earlier(deadline, present + seconds(1)) - present).ns});
        nanosleep(&left, nullptr);
    }
    return false;
}

bool HostAgent::wait(const Condition& condition, Time deadline) {
    const posix::NotCancelled not_cancelled;
    if (leaving_.load()) return wait_in_vain(deadline);
    if (poll_for(condition)) return true;
    Waiter waiter(options_.period);
    waiter.condition = condition;
    enlist(waiter);
    bool result = false;
    while (!leaving_.load()) {
        waiter.word.exchange(0);  // sees what the one who set it saw
        result = waiter.stands_by ? condition.ready(condition.subject) : poll_for(condition);
        if (result || closing_.load() || now() >= deadline) break;
        bool leads = false;
        {
            std::lock_guard guard(waiters_mutex_);
            leads = leader_ == &waiter;
        }
        if (leads && waiter.stands_by)
            stand_by(waiter, deadline);
        else if (leads)
            lead(waiter, deadline);
        else
            follow(waiter, deadline);
    }
    // leave() says so before it says that the NIC closes: who saw that sees why.
    if (!result && leaving_.load()) wait_in_vain(deadline);
    discharge(waiter);
    return result;
}

}  // namespace via::agent
