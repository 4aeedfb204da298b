// Where roles run: threads sharing one NIC, threads with a NIC each, processes, simulated nodes. A
// test program links exactly one stages_*.cpp, which defines stages().
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "harness/nic.hpp"
#include "harness/test.hpp"

namespace conformance {

#if defined(__SANITIZE_THREAD__)
constexpr bool under_tsan = true;
#elif defined(__has_feature)
constexpr bool under_tsan = __has_feature(thread_sanitizer);
#else
constexpr bool under_tsan = false;
#endif
constexpr unsigned polling = under_tsan ? nothing : polls_memory;

class Stage {
public:
    virtual ~Stage() = default;
    /// Name of the test suite.
    virtual std::string name() const = 0;
    /// The Needs that are met here.
    virtual unsigned has() const = 0;
    /// Runs the roles to their end; reports failures to GoogleTest.
    virtual void run(const std::vector<RolePlan>& plans) = 0;

    // For roles, from their threads.
    virtual std::string device_name(const std::string& role) const = 0;
    /// The same on a host that no other role is on, if this medium has several hosts.
    virtual std::string device_on_own_host(const std::string& role) const;
    virtual std::string host_name(const std::string& role) const;
    virtual std::shared_ptr<Nic> open_nic(Role& role);
    /// Starts a thread of a role.
    virtual std::thread start_thread(std::function<void()> act) { return std::thread(act); }
    /// Lets other threads of the test run for a moment.
    virtual void pause();
    /// Time as this stage's patience counts it.
    virtual long now_ms() const;
    /// True when other roles run only while this one pauses or waits in VIPL.
    virtual bool by_turns() const { return false; }
};

/// A program that hangs is ended after this, 100 s; VIA_TEST_SECONDS asks for more, for tests that
/// were asked to do more. Nothing else depends on it.
std::chrono::seconds watchdog();

/// The stages of this program.
const std::vector<Stage*>& stages();

/// Lines between every two roles, by which they tell each other values: socket pairs, so that one
/// means serves threads and processes, and nothing needs a clock or VIPL itself.
class Lines {
public:
    explicit Lines(const std::vector<RolePlan>& plans);
    ~Lines();
    const std::vector<std::string>& roles() const { return roles_; }
    /// A word that no other run on this machine has.
    const std::string& run_id() const { return run_id_; }
    /// The end that `from` holds of its line to `to`.
    int end(std::size_t from, std::size_t to) const { return ends_[from * roles_.size() + to]; }
    /// The others learn that this role has ended.
    void hang_up(std::size_t role);
    /// Closes all but the ends of that role; with roles().size() closes all.
    void keep_only(std::size_t role);

private:
    std::vector<std::string> roles_;
    std::vector<int> ends_;
    std::string run_id_;
};

/// Runs a role's function; what it throws becomes a failure of GoogleTest. False: it threw.
bool act_out(const RolePlan& plan, Stage& stage, Lines& lines, std::size_t index);

}  // namespace conformance
