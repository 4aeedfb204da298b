// Agents of simulated NICs, for programs that use vipl.h: "sim:HOST" opens a NIC on host HOST of a
// world that the whole process shares. Waiting moves virtual time on (baton.hpp).
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "agent/agent.hpp"
#include "agent/nic_options.hpp"
#include "base/counters.hpp"
#include "device/sim/carrier.hpp"
#include "sim/host/baton.hpp"
#include "sim/posted_receives.hpp"

namespace via::sim {

/// Opens a NIC on that host of the process's world. Hosts get the addresses 10.0.0.1, 10.0.0.2 and
/// so on, port 9741, in the order in which they are named first. Several NICs of one host are like
/// several processes: a discriminator belongs to one of them at a time.
/// error_resource: 250 hosts were named already, or no thread can be started.
agent::OpenResult open_sim(std::string_view host, std::uint32_t first_generation,
                           const agent::NicOptions& options = {});
/// The same in the world of `via lab exec`, which that socket leads to. All NICs there have one
/// address, as processes of a host do, and hardware of their own. The first call decides.
agent::OpenResult open_remote(const std::string& socket, std::uint32_t first_generation,
                              const agent::NicOptions& options);
/// Begins a new world: time 0, no hosts, delays drawn from `seed`; so a test does not depend on
/// what ran before it. False: somebody else takes part, or has a NIC open.
bool restart(std::uint64_t seed);
/// Worlds from the next restart() on have NICs and a network that take their time by themselves.
void carry_by(device::sim::CarrierMaker maker);
/// Names a host before anybody opens a NIC there, so that its address can be asked for.
void add_host(std::string_view host);

class SimAgent final : public agent::Agent, private nic::Attendant, private memory::LineLoader {
public:
    SimAgent(std::string host, const HostAddress& address, std::uint32_t first_generation,
             const agent::NicOptions& options);
    /// Its device, which is `node` in the world. Once, before start().
    void add_device(std::unique_ptr<device::Device> device, device::sim::NodeId node);
    ~SimAgent() override;
    /// Starts the thread for handlers. False: the system gives none.
    bool start();

    nic::Nic& nic() override { return nic_; }
    Time now() override;
    const HostAddress& address() const override { return address_; }
    std::uint32_t payload_max() const override { return payload_max_; }
    // No pages are locked: nothing of the simulated world depends on where they are, and what the
    // system grants must not change what a seed leads to.
    Result<memory::MemoryHandle> register_memory(
        std::uint64_t address, std::uint64_t length,
        const memory::MemoryAttributes& attributes) override {
        return nic_.register_memory(address, length, attributes);
    }
    Status deregister(memory::MemoryHandle region, std::uint64_t address) override {
        return nic_.deregister(region, address);
    }
    bool wait(const agent::Condition& condition, Time deadline) override;
    agent::Handler set_error_handler(agent::Handler handler) override;
    Status watch_queue(std::uint64_t, int&) override {
        return Status::error_not_supported;  // no descriptor knows of virtual time
    }
    void queue_is_empty(queue::CompletionQueue&) override {}
    Status watch_listener(std::uint64_t, int&) override { return Status::error_not_supported; }
    Result<agent::Segment> make_segment(std::uint64_t length,
                                        const memory::MemoryAttributes& attributes) override;
    Status destroy_segment(const std::byte* base) override;
    Status notify(std::unique_ptr<agent::Notification> notification) override;
    void cancel_notifications(std::uint64_t object) override;
    Status resolve_host(std::string_view name, std::uint32_t index, HostAddress& address) override;
    Status host_name(const HostAddress& address, std::string& name) override;
    std::vector<HostAddress> discover() override;
    bool close() override;
    bool leave() override {
        close();
        return true;
    }

    // The world's, with the baton
    /// One turn if one is due.
    bool turn_if_due();
    Time next_deadline();

private:
    /// What the thread for handlers needs; it may outlive the agent when it closed that itself.
    struct Handlers {
        std::mutex mutex;
        std::deque<engine::ErrorEvent> events;
        agent::Handler handler{};
        agent::Notifications notifications;
        std::string nic_name;
        std::thread::id thread;
        bool running = false;
        bool stop = false;
        bool ended = false;
    };
    static void run_error_handler(Handlers& handlers, const engine::ErrorEvent& event);
    static void run_handlers(const std::shared_ptr<Handlers>& handlers, Place place);

    void attend() override;
    void look_as_host(bool polled, bool moved);
    void go_on_as_host(Duration waited);
    bool wants_reports() override;
    void report(const engine::ErrorEvent& event) override;

    // Of a small table, for which nothing is locked here.
    bool load(const memory::Line&) override { return true; }
    void evicted(const memory::LineName&) override {}
    void forget(memory::MemoryHandle) override {}

    std::string host_;
    HostAddress address_;
    Counters counters_{};
    PostedReceives receives_{nic_};
    nic::Nic nic_;
    device::sim::NodeId node_ = device::sim::no_node;
    std::uint32_t payload_max_ = 0;
    bool closed_ = false;
    unsigned waiting_ = 0;  ///< calls within wait()
    std::uint64_t polls_seen_ = 0;
    std::uint64_t progress_seen_ = 0;
    Duration poll_time_{};  ///< what the next poll without progress costs
    std::shared_ptr<Handlers> handlers_ = std::make_shared<Handlers>();
    std::thread handler_thread_;
};

}  // namespace via::sim
