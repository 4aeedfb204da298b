// The agent on a real host. One per open NIC; two threads: progress and handlers.
//
// Progress (who takes turns while nobody asks, and how it sleeps):
//   ticking  the program polls; the agent looks now and then whether it still does
//   armed    the program stood still for a period: peers wake the agent, which takes the turns
//   parked   a call of the program waits and sleeps in the agent's place (the leader)
// The program's polls take the agent out of armed, unless they are seldom, and parked; see
// docs/design/turn-and-wake-up.md.
#pragma once

#include <sys/types.h>

#include <condition_variable>
#include <deque>
#include <expected>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <semaphore>
#include <string>
#include <thread>
#include <vector>

#include "agent/agent.hpp"
#include "agent/file.hpp"
#include "agent/locked_lines.hpp"
#include "agent/locked_memory.hpp"
#include "agent/name_service.hpp"
#include "agent/nic_options.hpp"
#include "agent/poll_watch.hpp"
#include "agent/processor_watch.hpp"
#include "agent/rest_watch.hpp"
#include "agent/statistics.hpp"
#include "base/list.hpp"
#include "nic/nic.hpp"

namespace via::agent {

struct HostAgentOptions {
    std::string name;                          ///< what was opened
    std::shared_ptr<const NameService> names;  ///< who answers questions for hosts
    Duration period = milliseconds(1);         ///< of looking whether the program still polls,
                                               ///< the first: see PollWatch
    NicLimits limits;
    NicOptions nic_options;
    std::uint32_t first_generation = 0;  ///< of handles; differs between NICs
    std::uint64_t secret = 0;            ///< random: nobody else's proofs are the same
    File held;                           ///< of hold_directory(), while the NIC is open
    /// Where the counters' socket belongs by now, and the directory is made if it is gone; empty:
    /// nobody looks whether the socket is still there.
    std::function<std::expected<std::string, std::string>()> directory_again = {};
    Duration names_look = seconds(60);  ///< while something goes on: how often that is looked at
    std::function<Ran()> ran = ran_beside_caller();  ///< what the program's threads did so far
};

class HostAgent final : public Agent, private nic::Attendant {
public:
    /// Starts the progress thread. error: what failed and why.
    static OpenResult open(HostAgentOptions options,
                           std::vector<std::unique_ptr<device::Device>> devices,
                           std::unique_ptr<Statistics> statistics);
    ~HostAgent() override;

    nic::Nic& nic() override { return nic_; }
    Time now() override;
    const HostAddress& address() const override { return address_; }
    std::uint32_t payload_max() const override { return payload_max_; }
    Result<memory::MemoryHandle> register_memory(
        std::uint64_t address, std::uint64_t length,
        const memory::MemoryAttributes& attributes) override;
    Status deregister(memory::MemoryHandle region, std::uint64_t address) override;
    bool wait(const Condition& condition, Time deadline) override;
    Handler set_error_handler(Handler handler) override;
    Status watch_queue(std::uint64_t name, int& descriptor) override;
    void queue_is_empty(queue::CompletionQueue& queue) override;
    Status watch_listener(std::uint64_t name, int& descriptor) override;
    Result<Segment> make_segment(std::uint64_t length,
                                 const memory::MemoryAttributes& attributes) override;
    Status destroy_segment(const std::byte* base) override;
    Status notify(std::unique_ptr<Notification> notification) override;
    void cancel_notifications(std::uint64_t object) override;
    Status resolve_host(std::string_view name, std::uint32_t index, HostAddress& address) override;
    Status host_name(const HostAddress& address, std::string& name) override;
    void listens_here() override;
    void nobody_is_at(const HostAddress& address) override;
    std::vector<HostAddress> discover() override;
    bool close() override;
    bool leave() override;
    bool is_over() const override {
        return !leaving_.load() && !abandoned_ && handlers_over_.load();
    }

private:
    enum class State : std::uint32_t { ticking, armed, parked };
    /// A program whose handler does not keep up gets further errors later, none is lost.
    static constexpr std::uint32_t events_waiting_max = 4096;

    /// Turns of who only takes and answers requests of a listener that it watches are fewer; who
    /// polls more brings the requests himself.
    static constexpr std::uint64_t watched_polls_min = 4;
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
        bool stands_by = false;  ///< as leader: the program polls, which serves the NIC
        PollWatch poll_watch;    ///< while it stands by
        int still_periods = 0;   ///< then, in which the program did not
    };

    HostAgent(HostAgentOptions options, std::unique_ptr<Statistics> statistics);

    // nic::Attendant
    void attend() override;
    void work_is_left() override;
    void rest() override;
    void refused(const char* why) override;
    void missed_by_a_page(const engine::PageMiss& miss) override;
    bool wants_reports() override { return events_waiting_.load() < events_waiting_max; }
    void report(const engine::ErrorEvent& event) override;
    void entry_came(queue::CompletionQueue& queue) override;
    void queue_goes(const queue::CompletionQueue& queue) override;
    void requests_changed(engine::Backlog& backlog) override;
    void listener_goes(const engine::Backlog& backlog) override;

    bool allowed_by_pages(std::uint64_t address, std::uint64_t length,
                          memory::MemoryAttributes& attributes);

    // host_agent.cpp: the progress thread
    bool leave_in_time();
    bool abandon();
    void run();
    bool watch(int descriptor, bool parked);
    void kick();
    void rouse();
    int sleep_time(Time deadline);
    /// Decides how to sleep; returns the time in milliseconds for epoll_wait (-1: for ever).
    int settle();
    void leave_alone();
    void take_some_turns();
    int take_over();
    void disarm();
    bool somebody_polled(PollWatch& watch) {
        return watch.look(nic_.polls(), waiting_polls_.load(), now());
    }
    bool polls_anew();
    bool names_look_due() { return now() >= Time{names_look_at_.load()}; }
    void look_at_names();
    void look_at_rests();
    void program_stood_still();
    /// Would the program hear of what it watches outside of the library too late without us?
    bool is_watched(std::uint64_t polls_since) const {
        return watched_queues_.load() != 0 ||
               (watched_listeners_.load() != 0 && polls_since < watched_polls_min);
    }
    void serve_deadlines();
    void serve(bool devices_ready);

    // waiting.cpp
    struct WaitSet;
    void wake(Waiter& waiter);
    void wake_ready();
    void clear_attention();
    void lead(Waiter& waiter, Time deadline);
    void stand_by(Waiter& waiter, Time deadline);
    std::uint64_t program_polls() const { return nic_.polls() - waiting_polls_.load(); }
    bool program_polled(std::uint64_t polls, Time since);
    void make_wait_set(WaitSet& wait_set);
    void serve_handles();
    bool sleep_on(Waiter& waiter, WaitSet& wait_set, Time deadline);
    void sleep_on_descriptors(WaitSet& wait_set, Time deadline);
    void step_down(bool crowded);
    bool wait_in_vain(Time deadline);
    bool poll_for(const Condition& condition);
    void follow(Waiter& waiter, Time deadline);
    void enlist(Waiter& waiter);
    void discharge(Waiter& waiter);

    // watching.cpp
    struct Watched {
        int descriptor = -1;  ///< eventfd
        bool readable = false;
        bool is_queue = false;
    };
    Watched* begin_to_watch(const void* object, bool is_queue);
    void make_readable(Watched& watched);
    void make_unreadable(Watched& watched);
    void end_watching(const void* object);

    // handlers.cpp
    void run_handlers();
    void run_error_handler(std::unique_lock<std::mutex>& guard);
    bool run_notification(std::unique_lock<std::mutex>& guard);
    void handler_ended();
    void wait_for_handler(std::unique_lock<std::mutex>& guard);
    void look_for_notifications();
    void notifications_changed();
    void stop_handlers();

    HostAgentOptions options_;
    std::unique_ptr<Statistics> statistics_;
    std::unique_ptr<LockedLines> lines_;  ///< of a NIC with a small table; the turn guards it
    nic::Nic nic_;
    RegionPins pins_;
    HostAddress address_;
    std::uint32_t payload_max_ = 0;

    Atomic<State> state_{State::ticking};
    Atomic<std::int64_t> look_elsewhere_at_{0};  ///< ns: not before, for who is not met here
    ino_t network_ = 0;                          ///< namespace in which the NIC was opened
    Atomic<bool> left_network_{false};           ///< that was told
    Atomic<std::int64_t> names_look_at_{0};      ///< ns: by the progress thread
    bool names_failed_ = false;                  ///< that was told; its own
    Atomic<bool> closing_{false};
    bool abandoned_ = false;       ///< close() failed; written before anybody asks
    Atomic<bool> leaving_{false};  ///< the process ends: nothing comes any more
    /// There are devices with wake words and others with descriptors.
    bool is_mixed() const { return parked_epoll_ >= 0; }

    int epoll_ = -1;
    /// On a NIC with devices of both kinds, what the progress thread sleeps on while it is parked:
    /// all but the wait handles that the leader sleeps on.
    int parked_epoll_ = -1;
    std::mutex kicks_mutex_;
    int kicks_ = -1;  ///< eventfd; written to and closed under the lock
    PollWatch poll_watch_{options_.period};
    ProcessorWatch processor_watch_{options_.period, seldom_polls};  ///< the progress thread's
    Duration turns_period_ = options_.period;  ///< of a program that has no processor; its own
    PollsAgain polls_again_{options_.period};  ///< while the progress thread is armed
    Atomic<bool> roused_{false};               ///< for they do
    std::mutex rests_mutex_;
    RestWatch rest_watch_;             ///< of the progress thread, or of who leads
    bool busy_ = false;                ///< the progress thread just had work; its own
    bool left_behind_ = false;         ///< our own last turn left work; the progress thread's
    Atomic<bool> still_armed_{false};  ///< we were woken, and the devices not told
    bool leader_sleeps_ = false;       ///< on what it armed; the turn guards it
    std::thread progress_;
    std::binary_semaphore progress_over_{0};  ///< it only has to be joined

    std::mutex waiters_mutex_;
    List<Waiter> waiters_;
    Waiter* leader_ = nullptr;
    int leader_event_ = -1;  ///< eventfd: wakes a leader that sleeps on a device's descriptors
    Atomic<bool> has_leader_{false};
    Atomic<std::uint64_t> waiting_polls_{0};  ///< by calls that wait
    Atomic<bool> no_leaders_{false};          ///< the kernel has no futex_waitv for us
    bool crowded_ = false;  ///< more peers than a leader can sleep on: the agent serves the NIC
    std::condition_variable no_waiters_;

    std::mutex watched_mutex_;
    std::map<const void*, Watched> watched_;  ///< by completion queue or listener
    Atomic<std::uint32_t> watched_queues_{0};
    Atomic<std::uint32_t> watched_listeners_{0};
    Atomic<std::uint64_t> polls_when_armed_{0};
    std::uint64_t polls_looked_at_ = 0;  ///< the progress thread's

    std::mutex handler_mutex_;
    std::condition_variable handler_changed_;
    std::deque<engine::ErrorEvent> events_;
    Atomic<std::uint32_t> events_waiting_{0};  ///< how many there are
    Handler handler_{};
    Notifications notifications_;
    Atomic<bool> notified_{false};  ///< there are notifications
    bool look_ = false;             ///< one of them may be ready
    bool handler_running_ = false;  ///< of errors or of a notification
    std::uint64_t handlers_ended_ = 0;
    bool handlers_stop_ = false;
    std::thread handlers_;
    std::thread::id handlers_id_;        ///< also when the thread was detached
    Atomic<bool> handlers_over_{false};  ///< it does not touch us any more
};

}  // namespace via::agent
