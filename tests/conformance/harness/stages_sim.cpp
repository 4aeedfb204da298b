// Roles as nodes of a simulated world: a thread each, one running at a time by the baton of
// sim/host, virtual time. Links the modules themselves instead of libvia.so, which does not export
// the baton. What the nodes are on is in a file of its own: sim_weather.cpp, sim_laboratory.cpp.
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <mutex>

#include "harness/sim_network.hpp"
#include "harness/stage.hpp"
#include "sim/host/baton.hpp"

namespace conformance {

namespace {

/// Every test has hosts of its own: the world is one for the whole process and forgets none.
class Simulated : public Stage {
public:
    Simulated() { begin_sim_network(); }
    std::string name() const override { return sim_network_name; }
    unsigned has() const override { return own_nics | polling | sim_network_has(); }
    bool by_turns() const override { return true; }
    std::string device_name(const std::string& role) const override {
        return "sim:" + host_name(role);
    }
    /// Letters, digits and dots: what a host's name may have.
    std::string host_name(const std::string& role) const override {
        std::string name = role;
        for (char& letter : name)
            if (letter == ' ') letter = '.';
        return name;
    }
    void pause() override { via::sim::pause(); }
    long now_ms() const override { return via::sim::now().ns / 1'000'000; }
    std::thread start_thread(std::function<void()> act) override {
        const via::sim::Place place = via::sim::enlist("a role's thread");
        return std::thread([place, act = std::move(act)] {
            via::sim::join(place);
            act();
            via::sim::leave();
        });
    }

    void run(const std::vector<RolePlan>& plans) override {
        Lines lines(plans);
        std::size_t left = plans.size();
        std::mutex mutex;
        std::condition_variable changed;
        std::vector<via::sim::Place> places;
        for (const RolePlan& plan : plans) places.push_back(via::sim::enlist(plan.name));
        std::vector<std::thread> threads;
        for (std::size_t index = 0; index < plans.size(); ++index) {
            threads.emplace_back([&, index] {
                via::sim::join(places[index]);
                act_out(plans[index], *this, lines, index);
                via::sim::leave();
                const std::lock_guard lock(mutex);
                --left;
                changed.notify_all();
            });
        }
        {
            // Virtual time ends what waits; this only ends what runs for ever.
            std::unique_lock lock(mutex);
            if (!changed.wait_for(lock, watchdog(), [&] { return left == 0; })) {
                std::fprintf(stderr, "%zu roles do not end\n", left);
                std::fflush(nullptr);
                std::_Exit(3);
            }
        }
        for (std::thread& thread : threads) thread.join();
    }
};

}  // namespace

const std::vector<Stage*>& stages() {
    static const auto& all = *new std::vector<Stage*>{new Simulated};
    return all;
}

}  // namespace conformance
