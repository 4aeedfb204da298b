// The call that leads: it sleeps on all that could make it ready, or stands by while the program
// polls.
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

#include "agent/clock.hpp"
#include "agent/event.hpp"
#include "agent/futex.hpp"
#include "agent/process.hpp"
#include "agent/progress_thread.hpp"
#include "agent/waiters.hpp"

namespace via::agent {

namespace {

/// Polls in a period of the agent that show that the program serves the NIC itself.
constexpr std::int64_t steady_polls = 100;
/// Fewer show nothing, in however short a time.
constexpr std::int64_t steady_polls_min = 4;
/// Periods without them after which it is believed that the program polls no more: it may have been
/// waiting for a processor, which a leader that each packet wakes would only take away from it.
constexpr int still_periods_max = 10;
/// A leader that slept so long looks after the devices once, then sleeps for good.
constexpr Duration before_long_sleep = milliseconds(10);

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

futex_waitv word_of(const void* address, std::uint32_t expected, bool shared) {
    futex_waitv word{};
    word.uaddr = reinterpret_cast<std::uintptr_t>(address);
    word.val = expected;
    word.flags = FUTEX_32 | (shared ? 0 : FUTEX_PRIVATE_FLAG);
    return word;
}

}  // namespace

/// What a leader sleeps on besides its own word or event.
struct Waiters::WaitSet {
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
void Waiters::make_wait_set(WaitSet& wait_set) {
    const auto free = [](auto& all, std::size_t taken) {
        return std::span(all).subspan(std::min(taken, all.size()));
    };
    for (device::Sleeping* device : nic_.devices().sleeping()) {
        const bool by_handle = progress_.is_mixed() && device->wake_descriptors({}) == 0;
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
void Waiters::lead(Waiter& waiter, Time deadline) {
    WaitSet wait_set;
    nic_.take_turn();
    const Time due = nic_.next_deadline();
    // The agent is parked for our sake: its duties are ours. One look before a long sleep.
    if (waiter.looks == 1 || (!due.is_never() && clock_now() >= due)) {
        if (waiter.looks == 1) waiter.looks = 2;
        nic_.service(clock_now());
        progress_.look_at_names_if_due();
    }
    make_wait_set(wait_set);
    atomic_fence(std::memory_order_seq_cst);
    // Who was woken before it came to lead: its word is set, so the next one would set no event.
    const bool look_again = wait_set.too_small() || nic_.has_work() || waiter.word.load() != 0 ||
                            waiter.condition.ready(waiter.condition.subject);
    if (waiter.looks == 0) deadline = earlier(deadline, clock_now() + before_long_sleep);
    if (look_again) {
        nic_.arm(device::Sleep::awake);
    } else {
        deadline = nic_.sleep_until_deadline(deadline);
        leader_sleeps_ = true;
    }
    nic_.end_turn();
    if (wait_set.too_small()) return step_down(true);
    if (look_again) return;

    const Time begin = clock_now();
    const std::uint64_t polls = program_polls();
    const bool slept = sleep_on(waiter, wait_set, deadline);
    waiter.slept_out = clock_now() >= deadline;
    waiter.stands_by = program_polled(polls, begin);
    if (waiter.stands_by) progress_.program_stood_still();
    waiter.still_periods = 0;
    if (waiter.looks == 0) waiter.looks = 1;
    nic_.take_turn();
    nic_.counters().add(Counter::wakeups);
    leader_sleeps_ = false;
    nic_.arm(device::Sleep::awake);
    if (wait_set.handle_ready) serve_handles();
    if (wait_set.woken != 0)
        for (device::Sleeping* device : nic_.devices().sleeping())
            device->woken_by(wait_set.words[wait_set.woken - 1]);
    nic_.end_turn();
    if (slept) return;
    no_leaders_.store(true);
    step_down(true);
}

/// As a leader sleeps while the program polls: not on the devices, where each frame would wake it
/// to find that the program was quicker, but as the agent does, a period at a time. Where the
/// program did not poll for one it takes a turn instead, so that peers are answered.
void Waiters::stand_by(Waiter& waiter, Time deadline) {
    progress_.serve_deadlines();
    // Of devices of both kinds the agent, parked, hears only some: a peer that greets is ours to
    // see.
    if (progress_.is_mixed() && nic_.try_take_turn()) {
        serve_handles();
        nic_.end_turn();
    }
    const Time begin = clock_now();
    const std::uint64_t polls = program_polls();
    sleep_on_own(waiter.word, earlier(deadline, begin + waiter.poll_watch.period()));
    progress_.somebody_polled(waiter.poll_watch);
    progress_.look_at_yields();
    if (static_cast<std::int64_t>(program_polls() - polls) >= steady_polls_min) {
        waiter.still_periods = 0;
        return;
    }
    waiter.stands_by = ++waiter.still_periods <= still_periods_max;
    if (!nic_.try_take_turn()) return;
    nic_.turn(clock_now());
    nic_.end_turn();
}

/// Has it polled steadily since it had polled so often, then? The few polls of one who only posts
/// would leave the devices alone for a period.
bool Waiters::program_polled(std::uint64_t polls, Time since) const {
    const auto more = static_cast<std::int64_t>(program_polls() - polls);
    return more >= steady_polls_min && more * period_.ns >= steady_polls * (clock_now() - since).ns;
}

/// Takes away what made a handle readable. The others need no care now, and who has not heard
/// anything for long looks seldom, until it is served.
void Waiters::serve_handles() {
    const Time present = clock_now();
    for (device::Sleeping* device : nic_.devices().sleeping())
        if (device->wake_descriptors({}) == 0) device->service(present);
}

/// False: the kernel does not let us.
bool Waiters::sleep_on(Waiter& waiter, WaitSet& wait_set, Time deadline) {
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

void Waiters::sleep_on_descriptors(WaitSet& wait_set, Time deadline) {
    std::array<pollfd, leader_descriptors_max + 1> entries;
    for (std::size_t n = 0; n < wait_set.descriptor_count; ++n) {
        const device::WakeDescriptor& one = wait_set.descriptors[n];
        entries[n] = {one.descriptor, static_cast<short>(POLLIN | (one.for_room ? POLLOUT : 0)), 0};
    }
    pollfd& own = entries[wait_set.descriptor_count];
    own = {event_, POLLIN, 0};
    const timespec left = to_timespec({std::max<std::int64_t>(0, (deadline - clock_now()).ns)});
    const int ready = ppoll(entries.data(), wait_set.descriptor_count + 1,
                            deadline.is_never() ? nullptr : &left, nullptr);
    if (ready < 0 && errno != EINTR) log(0, "cannot sleep (ppoll): %s", strerror(errno));
    for (std::size_t n = 0; n < wait_set.descriptor_count && ready > 0; ++n)
        if (wait_set.is_handle(n) && entries[n].revents != 0) wait_set.handle_ready = true;
    if (ready > 0 && own.revents != 0 && !clear_event(event_))
        log(0, "cannot read the wake-up descriptor (read): %s", strerror(errno));
}

/// There are more peers than words to sleep on, or not so many any more.
void Waiters::step_down(bool crowded) {
    {
        std::lock_guard guard(mutex_);
        crowded_ = crowded;
        leader_ = nullptr;
        has_leader_.store(false);
    }
    progress_.tick();
}

}  // namespace via::agent
