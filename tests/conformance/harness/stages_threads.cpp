// Roles as threads of one process: on loopback with one NIC handle for all, on the media between
// processes with a handle each (suite <medium>_threads).
#include <cstdio>
#include <cstdlib>

#include <chrono>
#include <condition_variable>
#include <mutex>

#include "harness/media.hpp"
#include "harness/stage.hpp"

namespace conformance {

namespace {

/// Counts the roles that have ended.
class Attendance {
public:
    void leave(std::size_t role) {
        const std::lock_guard lock(mutex_);
        ended_[role] = true;
        changed_.notify_all();
    }
    bool wait_for_all(std::chrono::seconds time) {
        std::unique_lock lock(mutex_);
        return changed_.wait_for(lock, time, [this] {
            for (const bool ended : ended_)
                if (!ended) return false;
            return true;
        });
    }
    explicit Attendance(std::size_t roles) : ended_(roles) {}
    bool ended(std::size_t role) {
        const std::lock_guard lock(mutex_);
        return ended_[role];
    }

private:
    std::mutex mutex_;
    std::condition_variable changed_;
    std::vector<bool> ended_;
};

class ThreadStage : public Stage {
public:
    std::string device_name(const std::string&) const override { return nic_name(medium_); }
    std::string device_on_own_host(const std::string& role) const override {
        return nic_name(medium_, role);
    }

    void run(const std::vector<RolePlan>& plans) override {
        Lines lines(plans);
        Attendance attendance(plans.size());
        std::vector<std::thread> threads;
        for (std::size_t index = 0; index < plans.size(); ++index) {
            threads.emplace_back([&, index] {
                act_out(plans[index], *this, lines, index);
                attendance.leave(index);
            });
        }
        if (!attendance.wait_for_all(watchdog())) give_up(plans, attendance);
        for (std::thread& thread : threads) thread.join();
    }

protected:
    explicit ThreadStage(std::string medium) : medium_(std::move(medium)) {}

    std::string medium_;

private:
    /// A thread cannot be ended from outside: the whole program stops here.
    [[noreturn]] static void give_up(const std::vector<RolePlan>& plans, Attendance& attendance) {
        for (std::size_t index = 0; index < plans.size(); ++index)
            if (!attendance.ended(index))
                std::fprintf(stderr, "role %s does not end\n", plans[index].name.c_str());
        std::fflush(nullptr);
        std::_Exit(3);
    }
};

/// All roles share one NIC handle, since a loopback joins a NIC to itself.
class Loopback : public ThreadStage {
public:
    Loopback() : ThreadStage("loopback") {}
    std::string name() const override { return medium_; }
    unsigned has() const override { return real_threads | polling | configured | shares; }

    std::shared_ptr<Nic> open_nic(Role& role) override {
        const std::lock_guard lock(mutex_);
        std::shared_ptr<Nic> nic = nic_.lock();
        if (!nic) nic_ = nic = std::make_shared<Nic>(role.device_name());
        return nic;
    }

private:
    std::mutex mutex_;
    std::weak_ptr<Nic> nic_;
};

class Threads : public ThreadStage {
public:
    explicit Threads(std::string medium) : ThreadStage(std::move(medium)) {}
    std::string name() const override { return medium_ + "_threads"; }
    unsigned has() const override {
        const unsigned of_medium = shares_memory(medium_) ? shares : nothing;
        return own_nics | real_threads | polling | configured | of_medium;
    }
};

}  // namespace

const std::vector<Stage*>& stages() {
    static const auto& all = *new auto([] {  // reachable to the very end
        std::vector<Stage*> found;
        for (const std::string& medium : media()) {
            if (medium == "loopback") found.push_back(new Loopback);
            // auto is what its two are: as processes is enough.
            if (is_between_processes(medium) && medium != "auto")
                found.push_back(new Threads(medium));
        }
        return found;
    }());
    return all;
}

}  // namespace conformance
