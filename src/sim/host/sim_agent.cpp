#include "sim/host/sim_agent.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <new>
#include <system_error>
#include <utility>
#include <vector>

#include "base/assert.hpp"
#include "device/sim/sim_device.hpp"
#include "sim/host/remote_world.hpp"

namespace via::sim {

namespace {

constexpr std::size_t hosts_max = 250;
constexpr std::uint16_t default_port = 9741;
/// What a poll without progress costs: programs that only poll must see time pass. It grows while
/// nothing happens, so that long waits by polling do not take for ever.
constexpr Duration poll_time_first = nanoseconds(200);
constexpr Duration poll_time_last = microseconds(50);
/// Errors kept for a handler that does not come to run; the engine keeps the rest.
constexpr std::size_t events_max = 256;

/// VIPL's names (1.6), for errors that no handler of the program takes.
constexpr const char* error_names[] = {"POST_DESC",  "CONN_LOST",      "RECVQ_EMPTY", "VI_OVERRUN",
                                       "RDMAW_PROT", "RDMAW_DATA",     "RDMAW_ABORT", "RDMAR_PROT",
                                       "COMP_PROT",  "RDMA_TRANSPORT", "CATASTROPHIC"};

bool is_never_ready(const void*) { return false; }
bool is_true(const void* subject) { return *static_cast<const bool*>(subject); }
bool is_zero(const void* subject) { return *static_cast<const unsigned*>(subject) == 0; }

/// The world of the process: its network, its hosts and the NICs that are open there. Never
/// destroyed: threads of the program may call until the very end.
class HostWorld final : public Clockwork {
public:
    static HostWorld& instance() {
        static HostWorld& world = *new HostWorld;
        return world;
    }

    Time now() const override { return network_->clock.now(); }
    void settle() override {
        for (bool again = true; again;) {
            again = false;
            for (SimAgent* agent : agents_) again |= agent->turn_if_due();
        }
    }
    Time next() override {
        Time moment = Time::never();
        for (SimAgent* agent : agents_) moment = earlier(moment, agent->next_deadline());
        return moment;
    }
    bool advance(Time moment) override {
        if (carrier() != nullptr && !carrier()->next().is_never() && carrier()->next() <= moment) {
            carrier()->run(moment);
            return true;
        }
        if (moment.is_never()) return false;
        network_->clock.advance_to(moment);
        return true;
    }

    /// What a pause lets pass: little, but more and more while nothing happens.
    Duration pause_time() {
        std::uint64_t progress = 0;
        for (SimAgent* agent : agents_) progress += agent->nic().engine().progress();
        if (std::exchange(progress_seen_, progress) != progress) pause_time_ = poll_time_first;
        return std::exchange(pause_time_, std::min(pause_time_ * 2, poll_time_last));
    }

    bool restart(std::uint64_t seed) {
        if (!agents_.empty() || !baton_.is_alone()) return false;
        network_ = std::make_unique<Network>(seed, maker_);
        hosts_.clear();
        progress_seen_ = 0;
        pause_time_ = poll_time_first;
        return true;
    }

    void carry_by(device::sim::CarrierMaker maker) { maker_ = std::move(maker); }

    Baton& baton() { return baton_; }
    device::sim::Fabric& fabric() { return network_->fabric; }
    /// nullptr: it is the weather that decides.
    device::sim::Carrier* carrier() {
        return network_->remote ? network_->remote.get() : network_->carrier.get();
    }
    bool is_elsewhere() const { return network_->remote != nullptr; }
    /// nullptr and errno: nobody is there.
    remote::RemoteWorld* connect(const std::string& socket) {
        if (!network_->remote)
            network_->remote = remote::RemoteWorld::connect(socket, network_->clock);
        return network_->remote.get();
    }
    std::vector<SimAgent*>& agents() { return agents_; }
    std::vector<std::string>& hosts() { return hosts_; }

    /// The host's number; hosts_max: there is none and none may be added.
    std::size_t number_of(std::string_view host, bool add) {
        const auto found = std::find(hosts_.begin(), hosts_.end(), host);
        const auto number = static_cast<std::size_t>(found - hosts_.begin());
        if (found != hosts_.end()) return number;
        if (!add || hosts_.size() == hosts_max) return hosts_max;
        hosts_.emplace_back(host);
        return number;
    }
    static HostAddress address_of(std::size_t number) {
        HostAddress address;
        address.length = 6;
        address.bytes = {10,
                         0,
                         0,
                         static_cast<std::uint8_t>(number + 1),
                         default_port >> 8,
                         default_port & 0xFF};
        return address;
    }

private:
    struct Network {
        Network(std::uint64_t seed, const device::sim::CarrierMaker& maker)
            : weather(seed, {}), fabric(clock, weather, maker ? whole_messages : usual) {
            if (!maker) return;
            carrier = maker(clock, fabric, seed);
            fabric.carry_by(*carrier);
        }
        static constexpr device::sim::FabricOptions usual{};
        /// A descriptor of a NIC is a message, not a part of one.
        static constexpr device::sim::FabricOptions whole_messages{65'536, 64, 256};
        device::sim::VirtualClock clock;
        device::sim::FairWeather weather;
        device::sim::Fabric fabric;
        std::unique_ptr<device::sim::Carrier> carrier;
        std::unique_ptr<remote::RemoteWorld> remote;  ///< nullptr: the world is here
    };

    HostWorld() : network_(std::make_unique<Network>(1, maker_)), baton_(*this) {}

    device::sim::CarrierMaker maker_;

    std::unique_ptr<Network> network_;
    Baton baton_;
    std::vector<SimAgent*> agents_;  ///< in order of opening
    std::vector<std::string> hosts_;
    std::uint64_t progress_seen_ = 0;
    Duration pause_time_ = poll_time_first;
};

HostWorld& world() { return HostWorld::instance(); }
Baton& baton() { return world().baton(); }

}  // namespace

// The calls of baton.hpp --------------------------------------------------------------------------

Place enlist(std::string_view name) { return baton().enlist(name); }
void join(Place place) { baton().join(place); }
void leave() { baton().leave(false); }
Time now() { return world().now(); }

void pause() {
    baton().join_unless_member();
    baton().wait({is_never_ready, nullptr}, world().now() + world().pause_time(), nullptr,
                 "a pause");
}

Away::Away() : name_(baton().my_name()), was_member_(baton().is_member()) {
    if (was_member_) baton().leave(true);
}
Away::~Away() {
    if (was_member_) baton().come_back(name_);
}

// Opening and closing -----------------------------------------------------------------------------

namespace {

agent::OpenResult started(std::unique_ptr<SimAgent> agent) {
    if (!agent->start())
        return std::unexpected(agent::OpenError{Status::error_resource,
                                                "the system gives no thread for error handlers"});
    return agent;
}

}  // namespace

agent::OpenResult open_sim(std::string_view host, std::uint32_t first_generation,
                           const agent::NicOptions& options) {
    baton().join_unless_member();
    const std::size_t number = world().number_of(host, true);
    if (number == hosts_max)
        return std::unexpected(
            agent::OpenError{Status::error_resource,
                             "the simulated network has 250 hosts already; use one of them"});
    auto agent = std::make_unique<SimAgent>(std::string(host), HostWorld::address_of(number),
                                            first_generation, options);
    auto device =
        std::make_unique<device::sim::SimDevice>(world().fabric(), HostWorld::address_of(number));
    const device::sim::NodeId node = device->node();
    agent->add_device(std::move(device), node);
    return started(std::move(agent));
}

agent::OpenResult open_remote(const std::string& socket, std::uint32_t first_generation,
                              const agent::NicOptions& options) {
    baton().join_unless_member();
    const auto refused = [&](const char* why) {
        return std::unexpected(agent::OpenError{
            Status::error_resource, std::string(remote::variable) + " says that " + socket +
                                        " leads to a simulated " + "cluster: " + why});
    };
    remote::RemoteWorld* const owner = world().connect(socket);
    if (owner == nullptr) return refused(std::strerror(errno));
    std::unique_ptr<remote::RemoteDevice> device = owner->open();
    if (device == nullptr) return refused("it takes no NIC more");
    auto agent =
        std::make_unique<SimAgent>("localhost", device->address(), first_generation, options);
    const device::sim::NodeId node = device->nic();
    agent->add_device(std::move(device), node);
    return started(std::move(agent));
}

bool restart(std::uint64_t seed) {
    baton().join_unless_member();
    return world().restart(seed);
}

void carry_by(device::sim::CarrierMaker maker) {
    baton().join_unless_member();
    world().carry_by(std::move(maker));
}

void add_host(std::string_view host) {
    baton().join_unless_member();
    const std::size_t number = world().number_of(host, true);
    VIA_ASSERT(number < hosts_max);
}

SimAgent::SimAgent(std::string host, const HostAddress& address, std::uint32_t first_generation,
                   const agent::NicOptions& options)
    : host_(std::move(host)),
      address_(address),
      nic_("sim:" + host_, NicLimits{}, counters_, *this, first_generation) {
    if (options.granularity == agent::Granularity::page) nic_.memory().grant_whole_pages();
    if (options.table_entries != 0) nic_.cache_translations(options.table(), *this);
    // Every poll is heard of, and every progress: that is when time may pass.
    nic_.attention().store(nic::Nic::agent_sleeps | nic::Nic::anybody_waits);
    handlers_->nic_name = nic_.name();
    world().agents().push_back(this);
}

void SimAgent::add_device(std::unique_ptr<device::Device> device, device::sim::NodeId node) {
    payload_max_ = device->capabilities().payload_max;
    node_ = node;
    if (world().carrier() != nullptr) world().carrier()->attend(node_, receives_);
    nic_.add_device(std::move(device));
}

SimAgent::~SimAgent() {
    if (!closed_) close();
}

bool SimAgent::start() {
    const Place place = baton().enlist("the error handlers of NIC " + nic_.name(), true);
    try {
        handler_thread_ = std::thread(run_handlers, handlers_, place);
    } catch (const std::system_error&) {
        baton().dismiss(place);
        handlers_->ended = true;
        return false;
    }
    return true;
}

bool SimAgent::close() {
    baton().join_unless_member();
    if (closed_) return true;
    closed_ = true;
    // Who waits for this NIC comes back with the news.
    baton().wait({is_zero, &waiting_}, Time::never(), nullptr, "calls on a NIC that closes");
    nic_.close();
    std::erase(world().agents(), this);
    handlers_->stop = true;
    if (handler_thread_.joinable() && handlers_->thread != std::this_thread::get_id()) {
        baton().wait({is_true, &handlers_->ended}, Time::never(), nullptr,
                     "an error handler's end");
        handler_thread_.join();
    } else if (handler_thread_.joinable()) {
        handler_thread_.detach();  // it closes its own NIC and ends when its handler returns
    }
    return true;
}

// Time and waiting --------------------------------------------------------------------------------

Time SimAgent::now() { return world().now(); }

bool SimAgent::wait(const agent::Condition& condition, Time deadline) {
    baton().join_unless_member();
    if (closed_ || condition.ready(condition.subject)) return condition.ready(condition.subject);
    // Some things come by a turn that nothing announces: completions that find room in their queue.
    nic_.take_turn();
    nic_.turn(world().now());
    nic_.end_turn();
    ++waiting_;
    const Time begin = world().now();
    const bool ready = baton().wait(condition, deadline, &closed_, "NIC " + nic_.name());
    --waiting_;
    if (world().carrier() != nullptr && !closed_) go_on_as_host(world().now() - begin);
    return ready;
}

bool SimAgent::turn_if_due() {
    const Time deadline = nic_.next_deadline();
    if (!nic_.has_work() && (deadline.is_never() || deadline > world().now())) return false;
    nic_.take_turn();
    nic_.counters().add(Counter::agent_turns);
    nic_.turn(world().now());
    nic_.end_turn();
    return true;
}

Time SimAgent::next_deadline() { return nic_.next_deadline(); }

/// After a poll, or progress. A poll that found nothing costs time and lets the others run: a
/// program may wait by polling alone.
void SimAgent::attend() {
    if (Baton::is_settling()) return;
    const std::uint64_t polls = nic_.polls();
    const std::uint64_t progress = nic_.engine().progress();
    const bool polled = std::exchange(polls_seen_, polls) != polls;
    const bool moved = std::exchange(progress_seen_, progress) != progress;
    if (world().carrier() != nullptr) look_as_host(polled, moved);
    if (moved || !polled) {
        poll_time_ = poll_time_first;
        return;
    }
    const Duration cost = poll_time_;
    poll_time_ = std::min(std::max(poll_time_ * 2, poll_time_first), poll_time_last);
    if (world().carrier() == nullptr) {
        baton().wait({is_never_ready, nullptr}, world().now() + cost, nullptr, "a poll");
        return;
    }
    // A program that polls sees what comes when it comes.
    const auto has_moved = [](const void* subject) {
        const auto& agent = *static_cast<const SimAgent*>(subject);
        return const_cast<SimAgent&>(agent).nic_.engine().progress() != agent.progress_seen_;
    };
    if (baton().wait({has_moved, this}, world().now() + cost, nullptr, "a poll"))
        look_as_host(true, true);
}

/// Who waited without polling was asleep, and is woken by an interrupt.
void SimAgent::go_on_as_host(Duration waited) {
    world().carrier()->wake(node_, waited);
    look_as_host(false, true);
}

/// Posts and polls take time of the host's processor, and the program goes on when that has come
/// to them all.
void SimAgent::look_as_host(bool polled, bool moved) {
    device::sim::Carrier* const carrier = world().carrier();
    if (polled) carrier->poll(node_);
    if (!polled && !moved) return;
    const auto is_idle = [](const void* subject) {
        return !world().carrier()->busy(static_cast<const SimAgent*>(subject)->node_);
    };
    baton().wait({is_idle, this}, Time::never(), nullptr, "a host's processor");
}

// Handlers ----------------------------------------------------------------------------------------

bool SimAgent::wants_reports() {
    const std::lock_guard lock(handlers_->mutex);
    return handlers_->events.size() < events_max;
}

void SimAgent::report(const engine::ErrorEvent& event) {
    const std::lock_guard lock(handlers_->mutex);
    handlers_->events.push_back(event);
}

void SimAgent::run_error_handler(Handlers& handlers, const engine::ErrorEvent& event) {
    const agent::Handler handler = handlers.handler;
    if (handler.run != nullptr) {
        handler.run(handler.context, event);
    } else {
        std::fprintf(stderr, "openvia: NIC %s, VI %u: %s\n", handlers.nic_name.c_str(),
                     event.vi == nullptr ? 0 : event.vi->index,
                     error_names[static_cast<std::size_t>(event.code)]);
    }
}

/// A thread of the library that takes part like any other; a handler runs with the baton and no
/// lock.
void SimAgent::run_handlers(const std::shared_ptr<Handlers>& handlers, Place place) {
    baton().join(place);
    handlers->thread = std::this_thread::get_id();
    const auto has_something = [](const void* subject) {
        auto& state = *static_cast<Handlers*>(const_cast<void*>(subject));
        const std::lock_guard lock(state.mutex);
        return state.stop || !state.events.empty() || state.notifications.any_ready();
    };
    const std::string what = "errors of NIC " + handlers->nic_name;
    for (;;) {
        baton().wait({has_something, handlers.get()}, Time::never(), nullptr, what);
        engine::ErrorEvent event;
        std::unique_ptr<agent::Notification> notification;
        bool is_event = false;
        {
            const std::lock_guard lock(handlers->mutex);
            if (handlers->stop) break;
            is_event = !handlers->events.empty();
            if (is_event) {
                event = handlers->events.front();
                handlers->events.pop_front();
            } else {
                notification = handlers->notifications.take_ready();
                if (notification == nullptr) continue;
            }
        }
        handlers->running = true;
        if (is_event) run_error_handler(*handlers, event);
        const bool done = is_event || notification->run();
        handlers->running = false;
        if (is_event) continue;
        const std::lock_guard lock(handlers->mutex);
        handlers->notifications.finish(std::move(notification), done);
    }
    handlers->ended = true;
    baton().leave(false);
}

agent::Handler SimAgent::set_error_handler(agent::Handler handler) {
    baton().join_unless_member();
    std::swap(handler, handlers_->handler);
    const auto is_quiet = [](const void* subject) {
        return !static_cast<const Handlers*>(subject)->running;
    };
    if (handlers_->thread != std::this_thread::get_id() && !handlers_->ended)
        baton().wait({is_quiet, handlers_.get()}, Time::never(), nullptr, "an error handler");
    return handler;
}

/// All nodes live in one process: plain memory is shared already.
Result<agent::Segment> SimAgent::make_segment(std::uint64_t length,
                                              const memory::MemoryAttributes& attributes) {
    constexpr std::size_t page = 4096;
    const std::size_t rounded = (length + page - 1) / page * page;
    if (rounded < length) return std::unexpected(Status::error_resource);
    auto* base =
        static_cast<std::byte*>(::operator new(rounded, std::align_val_t(page), std::nothrow));
    if (base == nullptr) return std::unexpected(Status::error_resource);
    std::memset(base, 0, rounded);
    const std::shared_ptr<std::byte> owner(
        base, [](std::byte* bytes) { ::operator delete(bytes, std::align_val_t(page)); });
    const auto region = nic_.add_segment({base, length, -1, owner}, attributes);
    if (!region) return std::unexpected(region.error());
    return agent::Segment{base, *region};
}

Status SimAgent::destroy_segment(const std::byte* base) {
    const auto removed = nic_.remove_segment(base);
    return removed ? Status::success : removed.error();
}

Status SimAgent::notify(std::unique_ptr<agent::Notification> notification) {
    baton().join_unless_member();
    const std::lock_guard lock(handlers_->mutex);
    if (!notification->has_object()) return Status::invalid_parameter;
    return handlers_->notifications.add(std::move(notification)) ? Status::success
                                                                 : Status::error_resource;
}

void SimAgent::cancel_notifications(std::uint64_t object) {
    baton().join_unless_member();
    bool running = false;
    {
        const std::lock_guard lock(handlers_->mutex);
        running = handlers_->notifications.cancel(object);
    }
    const auto is_quiet = [](const void* subject) {
        return !static_cast<const Handlers*>(subject)->running;
    };
    if (running && handlers_->thread != std::this_thread::get_id() && !handlers_->ended)
        baton().wait({is_quiet, handlers_.get()}, Time::never(), nullptr, "a handler");
}

namespace {

/// Of the system that the processes of a simulated cluster run on: for them it is one host.
bool is_own_name(std::string_view name) {
    char own[256] = {};
    if (name == "localhost") return true;
    if (gethostname(own, sizeof own - 1) != 0) return false;
    const std::string_view whole = own;
    return name == whole || name == whole.substr(0, whole.find('.'));
}

}  // namespace

// Names -------------------------------------------------------------------------------------------

Status SimAgent::resolve_host(std::string_view name, std::uint32_t index, HostAddress& address) {
    baton().join_unless_member();
    if (world().is_elsewhere()) {
        if (index != 0 || !is_own_name(name)) return Status::error_name_service;
        address = address_;
        return Status::success;
    }
    const std::size_t number = world().number_of(name == "localhost" ? host_ : name, false);
    if (number == hosts_max || index != 0) return Status::error_name_service;
    address = HostWorld::address_of(number);
    return Status::success;
}

Status SimAgent::host_name(const HostAddress& address, std::string& name) {
    baton().join_unless_member();
    if (world().is_elsewhere() && address == address_) {
        name = host_;
        return Status::success;
    }
    for (std::size_t number = 0; number < world().hosts().size(); ++number) {
        if (!(HostWorld::address_of(number) == address)) continue;
        name = world().hosts()[number];
        return Status::success;
    }
    return Status::error_name_service;
}

/// In the order of their addresses, which is that of naming.
std::vector<HostAddress> SimAgent::discover() {
    baton().join_unless_member();
    std::vector<HostAddress> found;
    for (const SimAgent* agent : world().agents()) found.push_back(agent->address_);
    std::sort(found.begin(), found.end(),
              [](const HostAddress& a, const HostAddress& b) { return a.bytes < b.bytes; });
    found.erase(std::unique(found.begin(), found.end()), found.end());
    return found;
}

}  // namespace via::sim
