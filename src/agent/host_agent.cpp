#include "agent/host_agent.hpp"

#include <errno.h>
#include <inttypes.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "agent/addresses.hpp"
#include "agent/base_directory.hpp"
#include "agent/elsewhere.hpp"
#include "agent/event.hpp"
#include "agent/process.hpp"
#include "base/assert.hpp"
#include "posix/not_cancelled.hpp"

namespace via::agent {

namespace {

/// Turns without work before the agent, just woken, goes back to sleep: a stream of messages
/// should not pay for a wake-up each.
constexpr int idle_turns_before_sleep = 200;

/// A process that ends waits so long at most for what other threads do at the moment.
constexpr std::chrono::seconds leave_time{1};

/// The progress thread's own turns need nobody to be woken for.
thread_local bool is_progress_thread = false;

/// 0: the system does not say.
ino_t network_of_thread() {
    struct stat status;
    return stat("/proc/thread-self/ns/net", &status) == 0 ? status.st_ino : 0;
}

/// Starts a thread that never runs a signal handler of the program.
template <class Body>
std::thread start_thread(Body body) {
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    struct Restore {
        sigset_t& mask;
        ~Restore() { pthread_sigmask(SIG_SETMASK, &mask, nullptr); }
    } restore{before};
    return std::thread(body);
}

}  // namespace

HostAgent::HostAgent(HostAgentOptions options, std::unique_ptr<Statistics> statistics)
    : options_(std::move(options)),
      statistics_(std::move(statistics)),
      nic_(options_.name, options_.limits, statistics_->counters(), *this,
           options_.first_generation),
      // With a small table pages are locked when they are needed.
      pins_(LockedMemory::of_process(),
            options_.nic_options.table_entries == 0 ? options_.nic_options.pin : Pin::never,
            options_.name) {
    const NicOptions& wanted = options_.nic_options;
    if (wanted.granularity == Granularity::page) nic_.memory().grant_whole_pages();
    if (wanted.table_entries == 0) return;
    lines_ =
        std::make_unique<LockedLines>(LockedMemory::of_process(), wanted.pin,
                                      high_water_mark(wanted, LockSystem::real()), options_.name);
    nic_.cache_translations(wanted.table(), *lines_);
    lines_->serve(*nic_.translations());
}

OpenResult HostAgent::open(HostAgentOptions options,
                           std::vector<std::unique_ptr<device::Device>> devices,
                           std::unique_ptr<Statistics> statistics) {
    for (const auto& device : devices)
        if (const char* const why = nic::misfit(device->capabilities()))
            return std::unexpected(OpenError{
                Status::error_resource,
                options.name + " cannot be used, its device is of no use for VIs: " + why});
    std::unique_ptr<HostAgent> agent(new HostAgent(std::move(options), std::move(statistics)));
    for (auto& device : devices) agent->nic_.add_device(std::move(device));
    agent->nic_.engine().begin_proofs(agent->options_.secret);
    agent->network_ = network_of_thread();
    agent->address_ = agent->nic_.devices().front()->address();
    agent->payload_max_ = agent->nic_.devices().front()->capabilities().payload_max;
    const auto failed = [](const char* what) {
        return std::unexpected(
            OpenError{Status::error_resource, std::string(what) + ": " + strerror(errno)});
    };
    set_yield_hook([] { sched_yield(); });
    agent->epoll_ = epoll_create1(EPOLL_CLOEXEC);
    if (agent->epoll_ < 0) return failed("cannot watch the NIC's descriptors (epoll_create1)");
    agent->kicks_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (agent->kicks_ < 0) return failed("cannot make a wake-up descriptor (eventfd)");
    for (auto& device : agent->nic_.devices()) {
        if (device->wake_descriptors({}) == 0 || agent->leader_event_ >= 0) continue;
        agent->leader_event_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        if (agent->leader_event_ < 0) return failed("cannot make a wake-up descriptor (eventfd)");
    }
    const auto words = [](auto& device) { return device->wake_descriptors({}) == 0; };
    const auto& devices_there = agent->nic_.devices();
    if (agent->leader_event_ >= 0 && std::ranges::any_of(devices_there, words)) {
        agent->parked_epoll_ = epoll_create1(EPOLL_CLOEXEC);
        if (agent->parked_epoll_ < 0)
            return failed("cannot watch the NIC's descriptors (epoll_create1)");
    }
    bool watched =
        agent->watch(agent->kicks_, true) && agent->watch(agent->statistics_->descriptor(), true);
    for (auto& device : devices_there)
        watched = watched && (device->wait_handle() < 0 ||
                              agent->watch(device->wait_handle(), !words(device)));
    if (!watched) return failed("cannot watch the NIC's descriptors (epoll_ctl)");
    try {
        agent->progress_ = start_thread([raw = agent.get()] {
            raw->run();
            raw->progress_over_.release();
        });
        agent->handlers_ = start_thread([raw = agent.get()] {
            raw->run_handlers();
            raw->handlers_over_.store(true);
        });
    } catch (const std::system_error& error) {
        return std::unexpected(OpenError{
            Status::error_resource,
            std::string("cannot start the NIC's threads (pthread_create): ") + error.what()});
    }
    return agent;
}

HostAgent::~HostAgent() { close(); }

Time HostAgent::now() {
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return {now.tv_sec * 1'000'000'000 + now.tv_nsec};
}

/// `parked`: while the progress thread is parked, too.
bool HostAgent::watch(int descriptor, bool parked) {
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.fd = descriptor;
    return epoll_ctl(epoll_, EPOLL_CTL_ADD, descriptor, &event) == 0 &&
           (!parked || !is_mixed() ||
            epoll_ctl(parked_epoll_, EPOLL_CTL_ADD, descriptor, &event) == 0);
}

/// Makes the progress thread look at the state anew. A full counter is awake enough.
void HostAgent::kick() {
    std::lock_guard guard(kicks_mutex_);
    if (kicks_ < 0) return;  // closed: a late call of another thread
    if (!set_event(kicks_)) log(0, "cannot wake the progress thread (write): %s", strerror(errno));
}

/// The program runs while the progress thread sleeps, which may not get a processor soon: the
/// program's ways are those of one who is awake from here on, not from when that thread runs.
void HostAgent::rouse() {
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

void HostAgent::attend() {
    const std::uint32_t attention = nic_.attention().load(std::memory_order_relaxed);
    if ((attention & nic::Nic::agent_sleeps) != 0 && !is_progress_thread &&
        !is_watched(nic_.polls() - polls_when_armed_.load()) && polls_again_.poll(now())) {
        roused_.store(true);
        rouse();
    }
    if ((attention & nic::Nic::anybody_waits) != 0) wake_ready();
}

void HostAgent::work_is_left() {
    if (is_progress_thread) {  // it goes on by itself, or was about to sleep
        left_behind_ = true;
        return;
    }
    {
        std::lock_guard guard(waiters_mutex_);
        if (leader_ != nullptr) return wake(*leader_);
    }
    rouse();  // while it ticks it sees within a period that the program stands still
}

/// The program polls; in vain perhaps, for what comes from somebody who waits for its processor.
void HostAgent::look_at_rests() {
    constexpr std::uint32_t rests = nic::Nic::polls_rest;
    std::lock_guard guard(rests_mutex_);  // others come by seldom: one who led before
    const bool shall =
        rest_watch_.look(program_polls(), nic_.counters().get(Counter::frames_received), now());
    const bool does = (nic_.attention().load(std::memory_order_relaxed) & rests) != 0;
    if (shall == does) return;
    if (shall)
        nic_.attention().fetch_or(rests);
    else
        nic_.attention().fetch_and(~rests);
}

/// It does not poll any more, or did not until now.
void HostAgent::program_stood_still() {
    std::lock_guard guard(rests_mutex_);
    rest_watch_.stood_still();
}

void HostAgent::refused(const char* why) {
    log(1, "NIC %s: a connection is ended, its peer sent %s", nic_.name().c_str(), why);
}

void HostAgent::missed_by_a_page(const engine::PageMiss& miss) {
    log(1,
        "NIC %s: %" PRIu64
        " bytes at %s may not be used: the region in that page was registered from %s to %s, and "
        "grants no other bytes. A program that relies on whole pages, as some of VIA's time do, "
        "needs the option granularity=page (OPENVIA_OPTIONS=granularity=page); this is said once",
        nic_.name().c_str(), miss.length, place_text(miss.address).c_str(),
        place_text(miss.region.begin).c_str(), place_text(miss.region.end).c_str());
}

// Memory ------------------------------------------------------------------------------------------

Result<memory::MemoryHandle> HostAgent::register_memory(
    std::uint64_t address, std::uint64_t length, const memory::MemoryAttributes& attributes) {
    memory::MemoryAttributes granted = attributes;
    if (!allowed_by_pages(address, length, granted))
        return std::unexpected(Status::invalid_parameter);
    // Then the NIC, which knows what is wrong with the other arguments. Until we return nobody has
    // been told the handle.
    const auto region = nic_.register_memory(address, length, granted);
    if (!region) return region;
    const Status pinned = pins_.pin(*region, address, length);
    if (pinned == Status::success) return region;
    nic_.deregister(*region, address);
    return std::unexpected(pinned);
}

/// A peer's bytes that come to a page which does not take them would end the process. Notes whether
/// all pages may be written.
bool HostAgent::allowed_by_pages(std::uint64_t address, std::uint64_t length,
                                 memory::MemoryAttributes& attributes) {
    if (length == 0 || address + length < address) return true;  // the NIC refuses that
    PageRights rights;
    try {
        rights = LockSystem::real().page_rights(address, address + length);
    } catch (const std::bad_alloc&) {
        return true;  // as where the kernel does not tell
    }
    attributes.writable = rights.read_only == PageRights::none;
    std::optional<std::string> fault = fault_of(rights);
    if (!fault && attributes.rdma_write && !attributes.writable)
        fault = "a peer shall write there (EnableRdmaWrite), and " + place_text(rights.read_only) +
                " may not be written";
    if (!fault) return true;
    log(1, "NIC %s: cannot register %" PRIu64 " bytes at 0x%" PRIx64 ": %s", nic_.name().c_str(),
        length, address, fault->c_str());
    return false;
}

Status HostAgent::deregister(memory::MemoryHandle region, std::uint64_t address) {
    const Status status = nic_.deregister(region, address);
    if (status == Status::success) pins_.unpin(region);
    return status;
}

// The progress thread -----------------------------------------------------------------------------

void HostAgent::run() {
    is_progress_thread = true;
    int timeout = 0;
    while (!closing_.load()) {
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
            } else if (descriptor == statistics_->descriptor()) {
                statistics_->answer();
            } else {
                devices_ready = true;
            }
        }
        if (closing_.load()) return;
        if (options_.directory_again && names_look_due()) look_at_names();
        if (devices_ready || state_.load() == State::armed) serve(devices_ready);
        timeout = settle();
    }
}

/// The counters' socket, which a cleaner of temporary files or the end of a login took away.
void HostAgent::look_at_names() {
    names_look_at_.store((now() + options_.names_look).ns);
    if (statistics_->is_known()) return;
    const auto directory = options_.directory_again();
    const auto made =
        directory
            ? statistics_->make_known(*directory)
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
void HostAgent::serve(bool devices_ready) {
    nic_.take_turn();
    if (state_.load() == State::armed) {
        nic_.attention().fetch_and(~nic::Nic::agent_sleeps);
        state_.store(State::ticking);
        disarm();
    }
    nic_.counters().add(Counter::agent_turns);
    nic_.counters().add(Counter::wakeups);
    if (devices_ready) nic_.service(now());
    busy_ = nic_.turn(now()).frames() != 0;
    nic_.end_turn();
    if (!devices_ready) return;
    // The leader sleeps on words it knows; a new peer's is not among them.
    std::lock_guard guard(waiters_mutex_);
    if (leader_ != nullptr) wake(*leader_);
    if (!no_leaders_.load() && nic_.counters().get(Counter::paths_open) <= leader_peers_max)
        crowded_ = false;
}

/// Of what we armed for our sleep; the caller has the turn. A leader that came meanwhile sleeps on
/// it now: who told the devices otherwise would leave it asleep.
void HostAgent::disarm() {
    if (!leader_sleeps_) nic_.arm(device::Sleep::awake);
}

/// The program polls, but what needs system calls is ours.
void HostAgent::serve_deadlines() {
    if (!nic_.try_take_turn()) return;  // the next period will do
    const Time due = nic_.next_deadline();
    if (!due.is_never() && now() >= due) nic_.service(now());
    nic_.end_turn();
}

int HostAgent::sleep_time(Time deadline) {
    if (deadline.is_never()) return -1;
    const std::int64_t left = (deadline - now()).ns;
    return left <= 0 ? 0 : static_cast<int>((left + 999'999) / 1'000'000);
}

/// The program roused us: its polls are few as yet.
bool HostAgent::polls_anew() {
    if (!roused_.exchange(false)) return false;
    poll_watch_.begin_again(nic_.polls(), waiting_polls_.load(), now());
    return true;
}

int HostAgent::settle() {
    if (has_leader_.load()) {
        // The leader serves the NIC; when it leaves, it finds us parked and kicks.
        state_.store(State::parked);
        if (has_leader_.load()) return -1;
    }
    state_.store(State::ticking);
    const std::uint64_t polls = nic_.polls();
    const std::uint64_t more = polls - std::exchange(polls_looked_at_, polls);
    const bool polled = polls_anew() || somebody_polled(poll_watch_);
    const bool would_poll = processor_watch_.look(options_.ran(), more, polled);
    // A call that waits and does not lead depends on us: no period to lose.
    const bool waited_for =
        (nic_.attention().load() & nic::Nic::anybody_waits) != 0 || watched_queues_.load() != 0;
    if (!would_poll) program_stood_still();
    if (waited_for || !would_poll) return take_over();
    leave_alone();
    look_at_rests();
    if (polled && !is_watched(more)) {
        turns_period_ = options_.period;
        return static_cast<int>(poll_watch_.period().ns / 1'000'000);
    }
    take_some_turns();
    const Duration period = turns_period_;
    turns_period_ = std::min(period * 2, PollWatch::longest);
    return static_cast<int>(period.ns / 1'000'000);
}

/// The program polls, or would.
void HostAgent::leave_alone() {
    busy_ = false;
    if (still_armed_.exchange(false)) {
        nic_.take_turn();
        if (nic_.is_slept_on()) disarm();
        nic_.end_turn();
    }
    serve_deadlines();
}

/// The program has no processor, and will poll when it has one. Peers are promised this meanwhile.
void HostAgent::take_some_turns() {
    for (bool more = true; more && nic_.try_take_turn();) {
        nic_.counters().add(Counter::agent_turns);
        more = nic_.turn(now()).more;
        nic_.end_turn();
    }
}

/// The program stands still: do what is left, then sleep until somebody wakes us.
int HostAgent::take_over() {
    const std::uint64_t polls = nic_.polls();
    const auto overtaken = [&] {
        return nic_.polls() != polls || has_leader_.load() || closing_.load();
    };
    // After work more may follow: a stream of messages should not pay for a wake-up each.
    for (int idle = busy_ ? 0 : idle_turns_before_sleep; idle <= idle_turns_before_sleep; ++idle) {
        nic_.take_turn();
        nic_.counters().add(Counter::agent_turns);
        const nic::Turn turn = nic_.turn(now());
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
    nic_.service(now());
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

// Names -------------------------------------------------------------------------------------------

// Names: each call holds on to the service, since the NIC may be closed while the resolver is slow.

Status HostAgent::resolve_host(std::string_view name, std::uint32_t index, HostAddress& address) {
    const auto names = options_.names;
    const Status found = names->resolve(name, index, address);
    if (found != Status::success && is_plain(name)) nobody_is_at(address_of_name(name));
    return found;
}

/// After unshare() or setns(): whoever is there meets nobody through this NIC.
void HostAgent::listens_here() {
    const ino_t here = network_of_thread();
    if (here == 0 || network_ == 0 || here == network_ || left_network_.exchange(true)) return;
    log(1,
        "NIC %s: it was opened in the network namespace net:[%ju] (%s), and this thread is in "
        "net:[%ju] (/proc/thread-self/ns/net): it meets only who is in the former; open NICs after "
        "unshare() or setns()",
        nic_.name().c_str(), static_cast<std::uintmax_t>(network_), statistics_->path().c_str(),
        static_cast<std::uintmax_t>(here));
}

/// Programs ask again and again until somebody is there.
void HostAgent::nobody_is_at(const HostAddress& address) {
    listens_here();
    constexpr Duration pause = seconds(1);
    const auto names = options_.names;
    const Time present = now();
    std::int64_t due = look_elsewhere_at_.load();
    if (names == nullptr || present.ns < due ||
        !look_elsewhere_at_.compare_exchange_strong(due, (present + pause).ns))
        return;
    const std::string place = names->elsewhere(address);
    if (place.empty()) return;
    look_elsewhere_at_.store(Time::never().ns);
    log(1, "NIC %s: nobody was found at %s, but NICs of yours that have it are in %s: %s",
        nic_.name().c_str(), to_text(address).c_str(), place.c_str(), elsewhere_advice);
}

Status HostAgent::host_name(const HostAddress& address, std::string& name) {
    const auto names = options_.names;
    return names->name_of(address, name);
}

std::vector<HostAddress> HostAgent::discover() {
    const auto names = options_.names;
    return names->discover();
}

/// The handler of a signal may call exit(), whatever its thread was doing: that does not end then,
/// nor does who waits for it.
bool HostAgent::leave() {
    leaving_.store(true);
    if (nic_.interrupts_turn() || !statistics_->has_its_descriptors()) return false;
    if (closing_.exchange(true)) return true;
    const bool left = leave_in_time();
    if (left) {
        statistics_->retire();
        options_.held.reset();
    } else {
        closing_.store(false);
    }
    return left;
}

bool HostAgent::leave_in_time() {
    const auto deadline = std::chrono::steady_clock::now() + leave_time;
    const auto until_it = [deadline](auto holds) {
        while (!holds()) {
            if (std::chrono::steady_clock::now() >= deadline) return false;
            sched_yield();
        }
        return true;
    };
    if (progress_.joinable()) {
        if (!until_it(
                [this] { return std::unique_lock(kicks_mutex_, std::try_to_lock).owns_lock(); }))
            return false;
        kick();
        if (!progress_over_.try_acquire_until(deadline)) return false;
        progress_.join();
    }
    return until_it([this] { return nic_.leave(); });
}

/// Our descriptors are closed, and their numbers perhaps the program's: nothing of ours may touch
/// them, nor can the progress thread be woken.
bool HostAgent::abandon() {
    log(0,
        "NIC %s: the program has closed the NIC's descriptors (closefrom? close_range?) while it "
        "was open; it is left as by a process that is killed",
        nic_.name().c_str());
    abandoned_ = true;
    {
        std::lock_guard guard(waiters_mutex_);
        leader_event_ = -1;  // who sleeps on descriptors cannot be woken
        for (Waiter* waiter = waiters_.front(); waiter != nullptr; waiter = waiters_.next(*waiter))
            wake(*waiter);
    }
    if (progress_.joinable()) progress_.detach();
    stop_handlers();
    return false;
}

bool HostAgent::close() {
    const posix::NotCancelled not_cancelled;
    if (closing_.exchange(true)) return true;
    if (!statistics_->has_its_descriptors()) return abandon();
    {
        std::unique_lock guard(waiters_mutex_);
        for (Waiter* waiter = waiters_.front(); waiter != nullptr; waiter = waiters_.next(*waiter))
            wake(*waiter);
        no_waiters_.wait(guard, [this] { return waiters_.empty(); });
    }
    if (progress_.joinable()) {
        kick();
        progress_.join();
    }
    nic_.close();
    pins_.end();
    if (lines_ != nullptr) nic_.with_turn([this] { lines_->end(); });
    stop_handlers();
    statistics_->retire();
    options_.held.reset();
    for (const auto& [object, watched] : watched_) ::close(watched.descriptor);
    watched_.clear();
    if (epoll_ >= 0) ::close(std::exchange(epoll_, -1));
    if (parked_epoll_ >= 0) ::close(std::exchange(parked_epoll_, -1));
    if (leader_event_ >= 0) ::close(std::exchange(leader_event_, -1));
    // Late calls may still kick; the number is soon somebody else's.
    std::lock_guard guard(kicks_mutex_);
    if (kicks_ >= 0) ::close(std::exchange(kicks_, -1));
    return true;
}

}  // namespace via::agent
