#include "agent/host_agent.hpp"

#include <errno.h>
#include <inttypes.h>
#include <sched.h>
#include <string.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "agent/addresses.hpp"
#include "agent/base_directory.hpp"
#include "agent/clock.hpp"
#include "agent/elsewhere.hpp"
#include "agent/process.hpp"
#include "agent/yield.hpp"
#include "base/assert.hpp"
#include "posix/not_cancelled.hpp"

namespace via::agent {

namespace {

/// A process that ends waits so long at most for what other threads do at the moment.
constexpr std::chrono::seconds leave_time{1};

/// 0: the system does not say.
ino_t network_of_thread() {
    struct stat status;
    return stat("/proc/thread-self/ns/net", &status) == 0 ? status.st_ino : 0;
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
        if (const char* const why = nic::misfit(*device))
            return std::unexpected(OpenError{
                Status::error_resource,
                options.name + " cannot be used, its device is of no use for VIs: " + why});
    std::unique_ptr<HostAgent> agent(new HostAgent(std::move(options), std::move(statistics)));
    for (auto& device : devices) agent->nic_.add_device(std::move(device));
    agent->nic_.engine().begin_proofs(agent->options_.secret);
    agent->network_ = network_of_thread();
    agent->address_ = agent->nic_.devices().front().address();
    agent->payload_max_ = agent->nic_.devices().front().capabilities().payload_max;
    const auto failed = [](const char* what) {
        return std::unexpected(
            OpenError{Status::error_resource, std::string(what) + ": " + strerror(errno)});
    };
    set_yield_hook([] { sched_yield(); });
    for (const device::Sleeping* device : agent->nic_.devices().sleeping())
        if (device->wake_descriptors({}) != 0 && !agent->waiters_.has_event() &&
            !agent->waiters_.open_event())
            return failed("cannot make a wake-up descriptor (eventfd)");
    if (const char* const what = agent->progress_.open()) return failed(what);
    try {
        agent->progress_.start();
        agent->handlers_.start();
    } catch (const std::system_error& error) {
        return std::unexpected(OpenError{
            Status::error_resource,
            std::string("cannot start the NIC's threads (pthread_create): ") + error.what()});
    }
    return agent;
}

HostAgent::~HostAgent() { close(); }

Time HostAgent::now() { return clock_now(); }

void HostAgent::attend() {
    const std::uint32_t attention = nic_.attention().load(std::memory_order_relaxed);
    if ((attention & nic::Nic::agent_sleeps) != 0) progress_.hear_poll();
    if ((attention & nic::Nic::anybody_waits) == 0) return;
    waiters_.wake_ready();
    handlers_.look_for_notifications();
}

void HostAgent::work_is_left() {
    if (progress_.goes_on_by_itself() || waiters_.wake_leader()) return;
    progress_.rouse();  // while it ticks it sees within a period that the program stands still
}

/// Any thread of the program that polls. A call that waits polls for a moment only, and then
/// sleeps.
void HostAgent::yield() {
    if (!Waiters::is_polling()) yield_now_or_later();
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

// What the program hears of otherwise -------------------------------------------------------------

Status HostAgent::watch_queue(std::uint64_t name, int& descriptor) {
    const Status status = watched_.watch_queue(name, descriptor);
    if (status == Status::success) progress_.kick();
    return status;
}

Status HostAgent::watch_listener(std::uint64_t name, int& descriptor) {
    const Status status = watched_.watch_listener(name, descriptor);
    if (status == Status::success) progress_.kick();
    return status;
}

Status HostAgent::notify(std::unique_ptr<Notification> notification) {
    const Status status = handlers_.notify(std::move(notification));
    // The progress thread serves who cannot poll; it may be waiting for the program's next poll.
    if (status == Status::success) progress_.kick();
    return status;
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
    const Time present = clock_now();
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
    ending_.leaving.store(true);
    if (nic_.interrupts_turn() || !statistics_->has_its_descriptors()) return false;
    if (ending_.closing.exchange(true)) return true;
    const bool left = leave_in_time();
    if (left) {
        statistics_->retire();
        options_.held.reset();
    } else {
        ending_.closing.store(false);
    }
    return left;
}

bool HostAgent::leave_in_time() {
    const auto deadline = std::chrono::steady_clock::now() + leave_time;
    if (!progress_.end_until(deadline)) return false;
    while (!nic_.leave()) {
        if (std::chrono::steady_clock::now() >= deadline) return false;
        sched_yield();
    }
    return true;
}

/// Our descriptors are closed, and their numbers perhaps the program's: nothing of ours may touch
/// them, nor can the progress thread be woken.
bool HostAgent::abandon() {
    log(0,
        "NIC %s: the program has closed the NIC's descriptors (closefrom? close_range?) while it "
        "was open; it is left as by a process that is killed",
        nic_.name().c_str());
    abandoned_ = true;
    waiters_.abandon();
    progress_.abandon();
    handlers_.stop();
    return false;
}

bool HostAgent::close() {
    const posix::NotCancelled not_cancelled;
    if (ending_.closing.exchange(true)) return true;
    if (!statistics_->has_its_descriptors()) return abandon();
    waiters_.wake_all_and_wait();
    progress_.end();
    nic_.close();
    pins_.end();
    if (lines_ != nullptr) nic_.with_turn([this] { lines_->end(); });
    handlers_.stop();
    statistics_->retire();
    options_.held.reset();
    watched_.close_all();
    waiters_.close_event();
    progress_.close_descriptors();
    return true;
}

}  // namespace via::agent
