#include "agent/progress_thread.hpp"

#include <errno.h>
#include <sched.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <expected>
#include <utility>

#include "agent/base_directory.hpp"
#include "agent/clock.hpp"
#include "agent/event.hpp"
#include "agent/process.hpp"
#include "agent/thread.hpp"

namespace via::agent {

namespace {

/// Turns without work before the agent, just woken, goes back to sleep: a stream of messages
/// should not pay for a wake-up each.
constexpr int idle_turns_before_sleep = 200;

/// The progress thread's own turns need nobody to be woken for.
thread_local bool is_progress_thread = false;

}  // namespace

ProgressThread::ProgressThread(nic::Nic& nic, Waiters& waiters, const WatchedObjects& watched,
                               Statistics& statistics, HostAgentOptions& options,
                               const Ending& ending)
    : nic_(nic),
      waiters_(waiters),
      watched_(watched),
      statistics_(statistics),
      options_(options),
      ending_(ending),
      polls_again_(options.period),
      poll_watch_(options.period),
      processor_watch_(options.period, seldom_polls),
      turns_period_(options.period) {}

// Beginning and end -------------------------------------------------------------------------------

const char* ProgressThread::open() {
    constexpr const char* cannot_watch = "cannot watch the NIC's descriptors (epoll_create1)";
    epoll_ = epoll_create1(EPOLL_CLOEXEC);
    if (epoll_ < 0) return cannot_watch;
    kicks_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (kicks_ < 0) return "cannot make a wake-up descriptor (eventfd)";
    const auto words = [](auto* device) { return device->wake_descriptors({}) == 0; };
    const auto& devices = nic_.devices().sleeping();
    if (waiters_.has_event() && std::ranges::any_of(devices, words)) {
        parked_epoll_ = epoll_create1(EPOLL_CLOEXEC);
        if (parked_epoll_ < 0) return cannot_watch;
    }
    bool watched = watch(kicks_, true) && watch(statistics_.descriptor(), true);
    for (const device::Sleeping* device : devices)
        watched =
            watched && (device->wait_handle() < 0 || watch(device->wait_handle(), !words(device)));
    return watched ? nullptr : "cannot watch the NIC's descriptors (epoll_ctl)";
}

void ProgressThread::start() {
    thread_ = start_thread([this] {
        run();
        over_.release();
    });
}

void ProgressThread::end() {
    if (!thread_.joinable()) return;
    kick();
    thread_.join();
}

/// A thread that the process's end interrupted may hold the mutex for ever.
bool ProgressThread::end_until(std::chrono::steady_clock::time_point deadline) {
    if (!thread_.joinable()) return true;
    while (!std::unique_lock(kicks_mutex_, std::try_to_lock).owns_lock()) {
        if (std::chrono::steady_clock::now() >= deadline) return false;
        sched_yield();
    }
    kick();
    if (!over_.try_acquire_until(deadline)) return false;
    thread_.join();
    return true;
}

void ProgressThread::abandon() {
    if (thread_.joinable()) thread_.detach();
}

void ProgressThread::close_descriptors() {
    if (epoll_ >= 0) ::close(std::exchange(epoll_, -1));
    if (parked_epoll_ >= 0) ::close(std::exchange(parked_epoll_, -1));
    // Late calls may still kick; the number is soon somebody else's.
    std::lock_guard guard(kicks_mutex_);
    if (kicks_ >= 0) ::close(std::exchange(kicks_, -1));
}

/// `parked`: while the progress thread is parked, too.
bool ProgressThread::watch(int descriptor, bool parked) {
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.fd = descriptor;
    return epoll_ctl(epoll_, EPOLL_CTL_ADD, descriptor, &event) == 0 &&
           (!parked || !is_mixed() ||
            epoll_ctl(parked_epoll_, EPOLL_CTL_ADD, descriptor, &event) == 0);
}

// By any thread -----------------------------------------------------------------------------------

/// A full counter is awake enough.
void ProgressThread::kick() {
    std::lock_guard guard(kicks_mutex_);
    if (kicks_ < 0) return;  // closed: a late call of another thread
    if (!set_event(kicks_)) log(0, "cannot wake the progress thread (write): %s", strerror(errno));
}

/// The thread may not get a processor soon: the program's ways are those of one who is awake from
/// here on, not from when the thread runs.
void ProgressThread::rouse() {
    if ((nic_.attention().fetch_and(~nic::Nic::agent_sleeps) & nic::Nic::agent_sleeps) == 0) return;
    state_.store(State::ticking);
    if (nic_.try_take_turn()) {
        disarm();  // peers need not make calls for our sake
        nic_.end_turn();
    } else {
        still_armed_.store(true);
    }
    kick();
}

void ProgressThread::hear_poll() {
    if (is_progress_thread || watched_.need_service(nic_.polls() - polls_when_armed_.load()) ||
        !polls_again_.poll(clock_now()))
        return;
    roused_.store(true);
    rouse();
}

bool ProgressThread::goes_on_by_itself() {
    if (is_progress_thread) left_behind_ = true;  // or it was about to sleep
    return is_progress_thread;
}

void ProgressThread::tick() {
    state_.store(State::ticking);
    kick();
}

void ProgressThread::is_needed_again() {
    if (state_.load() == State::ticking) return;
    nic_.attention().fetch_and(~nic::Nic::agent_sleeps);
    tick();
}

bool ProgressThread::somebody_polled(PollWatch& watch) const {
    return watch.look(nic_.polls(), waiters_.polls(), clock_now());
}

bool ProgressThread::names_are_due() const {
    return options_.directory_again && clock_now() >= Time{names_look_at_.load()};
}

/// The program polls; without result perhaps, for what comes from somebody who waits for its
/// processor.
void ProgressThread::look_at_yields() {
    constexpr std::uint32_t yields = nic::Nic::polls_yield;
    std::lock_guard guard(yields_mutex_);  // others come by seldom: one who led before
    const bool shall = yield_watch_.look(
        waiters_.program_polls(), nic_.counters().get(Counter::frames_received), clock_now());
    const bool does = (nic_.attention().load(std::memory_order_relaxed) & yields) != 0;
    if (shall == does) return;
    if (shall)
        nic_.attention().fetch_or(yields);
    else
        nic_.attention().fetch_and(~yields);
}

/// It does not poll any more, or did not until now.
void ProgressThread::program_stood_still() {
    std::lock_guard guard(yields_mutex_);
    yield_watch_.stood_still();
}

// The thread --------------------------------------------------------------------------------------

void ProgressThread::run() {
    is_progress_thread = true;
    int timeout = 0;
    while (!ending_.closing.load()) {
        epoll_event events[8];
        // Whoever takes us out of that state kicks.
        const bool parked = is_mixed() && state_.load() == State::parked;
        const int count = epoll_wait(parked ? parked_epoll_ : epoll_, events, 8, timeout);
        if (count < 0 && errno != EINTR) {
            log(0, "NIC %s: the progress thread cannot wait (epoll_wait): %s", nic_.name().c_str(),
                strerror(errno));
            return;
        }
        bool devices_ready = false;
        for (int n = 0; n < count; ++n) {
            const int descriptor = events[n].data.fd;
            if (descriptor == kicks_) {
                if (!clear_event(kicks_))
                    log(0, "cannot read the wake-up descriptor (read): %s", strerror(errno));
            } else if (descriptor == statistics_.descriptor()) {
                statistics_.answer([this] { return ways_now(); });
            } else {
                devices_ready = true;
            }
        }
        if (ending_.closing.load()) return;
        if (names_are_due()) look_at_names();
        if (devices_ready || state_.load() == State::armed) serve(devices_ready);
        timeout = settle();
    }
}

/// For who reads our counters.
WaysNow ProgressThread::ways_now() {
    return nic_.holding_turn([this] {
        WaysNow now;
        now.all = nic_.report_ways(now.ways, Statistics::ways_max);
        return now;
    });
}

/// The counters' socket, which a cleaner of temporary files or the end of a login took away.
void ProgressThread::look_at_names() {
    names_look_at_.store((clock_now() + options_.names_look).ns);
    if (statistics_.is_known()) return;
    const auto directory = options_.directory_again();
    const auto made =
        directory
            ? statistics_.make_known(*directory)
            : std::expected<void, std::string>(std::unexpected(std::string(directory.error())));
    if (made) {
        options_.held = hold_directory(directory->substr(0, directory->rfind('/')));
        log(1, "NIC %s: its counters' socket was gone; via stat finds it again, in %s",
            nic_.name().c_str(), directory->c_str());
    } else if (!names_failed_) {
        log(1, "NIC %s: its counters' socket is gone, and cannot be made again: %s",
            nic_.name().c_str(), made.error().c_str());
    }
    names_failed_ = !made;
}

/// Something came while the program did not look.
void ProgressThread::serve(bool devices_ready) {
    nic_.take_turn();
    if (state_.load() == State::armed) {
        nic_.attention().fetch_and(~nic::Nic::agent_sleeps);
        state_.store(State::ticking);
        disarm();
    }
    nic_.counters().add(Counter::agent_turns);
    nic_.counters().add(Counter::wakeups);
    if (devices_ready) nic_.service(clock_now());
    busy_ = nic_.turn(clock_now()).frames() != 0;
    nic_.end_turn();
    if (devices_ready) waiters_.devices_were_served();
}

/// Of what we armed for our sleep; the caller has the turn. A leader that came meanwhile sleeps on
/// it now: who told the devices otherwise would leave it asleep.
void ProgressThread::disarm() {
    if (!waiters_.leader_sleeps()) nic_.arm(device::Sleep::awake);
}

/// The program polls, but what needs system calls is ours.
void ProgressThread::serve_deadlines() {
    if (!nic_.try_take_turn()) return;  // the next period will do
    const Time due = nic_.next_deadline();
    if (!due.is_never() && clock_now() >= due) nic_.service(clock_now());
    nic_.end_turn();
}

int ProgressThread::sleep_time(Time deadline) const {
    if (deadline.is_never()) return -1;
    const std::int64_t left = (deadline - clock_now()).ns;
    return left <= 0 ? 0 : static_cast<int>((left + 999'999) / 1'000'000);
}

/// The program roused us: its polls are few as yet.
bool ProgressThread::polls_anew() {
    if (!roused_.exchange(false)) return false;
    poll_watch_.begin_again(nic_.polls(), waiters_.polls(), clock_now());
    return true;
}

int ProgressThread::settle() {
    if (waiters_.has_leader()) {
        // The leader serves the NIC; when it leaves, it finds us parked and kicks.
        state_.store(State::parked);
        if (waiters_.has_leader()) return -1;
    }
    state_.store(State::ticking);
    const std::uint64_t polls = nic_.polls();
    const std::uint64_t more = polls - std::exchange(polls_looked_at_, polls);
    const bool polled = polls_anew() || somebody_polled(poll_watch_);
    const bool would_poll = processor_watch_.look(options_.ran(), more, polled);
    // A call that waits and does not lead depends on us: no period to lose.
    const bool waited_for =
        (nic_.attention().load() & nic::Nic::anybody_waits) != 0 || watched_.has_queues();
    if (!would_poll) program_stood_still();
    if (waited_for || !would_poll) return take_over();
    leave_alone();
    look_at_yields();
    if (polled && !watched_.need_service(more)) {
        turns_period_ = options_.period;
        return static_cast<int>(poll_watch_.period().ns / 1'000'000);
    }
    take_some_turns();
    const Duration period = turns_period_;
    turns_period_ = std::min(period * 2, PollWatch::longest);
    return static_cast<int>(period.ns / 1'000'000);
}

/// The program polls, or would.
void ProgressThread::leave_alone() {
    busy_ = false;
    if (still_armed_.exchange(false)) {
        nic_.take_turn();
        if (nic_.is_slept_on()) disarm();
        nic_.end_turn();
    }
    serve_deadlines();
}

/// The program has no processor, and will poll when it has one. Peers are promised this meanwhile.
void ProgressThread::take_some_turns() {
    for (bool more = true; more && nic_.try_take_turn();) {
        nic_.counters().add(Counter::agent_turns);
        more = nic_.turn(clock_now()).more;
        nic_.end_turn();
    }
}

/// The program stands still: do what is left, then sleep until somebody wakes us.
int ProgressThread::take_over() {
    const std::uint64_t polls = nic_.polls();
    const auto overtaken = [&] {
        return nic_.polls() != polls || waiters_.has_leader() || ending_.closing.load();
    };
    // After work more may follow: a stream of messages should not pay for a wake-up each.
    for (int idle = busy_ ? 0 : idle_turns_before_sleep; idle <= idle_turns_before_sleep; ++idle) {
        nic_.take_turn();
        nic_.counters().add(Counter::agent_turns);
        const nic::Turn turn = nic_.turn(clock_now());
        nic_.end_turn();
        if (turn.frames() != 0 || turn.more) idle = 0;
        if (overtaken()) return 0;
        relax();
    }
    busy_ = false;
    nic_.take_turn();
    if (overtaken()) {  // by a leader that sleeps already, perhaps
        nic_.end_turn();
        return 0;
    }
    nic_.service(clock_now());
    nic_.arm(device::Sleep::on_handle);
    polls_when_armed_.store(polls);
    state_.store(State::armed);
    nic_.attention().fetch_or(nic::Nic::agent_sleeps);
    atomic_fence_after_rmw();
    if (nic_.has_work() || overtaken()) {
        nic_.attention().fetch_and(~nic::Nic::agent_sleeps);
        state_.store(State::ticking);
        nic_.arm(device::Sleep::awake);
        nic_.end_turn();
        return 0;
    }
    const Time deadline = nic_.sleep_until_deadline(Time::never());
    left_behind_ = false;
    nic_.end_turn();  // may answer a doorbell that was rung while we held the turn
    return left_behind_ ? 0 : sleep_time(deadline);
}

}  // namespace via::agent
