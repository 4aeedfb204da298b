// Unmodified programs as hosts of a simulated cluster: starts them one after the other, owns the
// world that their NICs are in, and lets virtual time go on while none of them can.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <expected>
#include <list>
#include <memory>
#include <string>
#include <vector>

#include "lab/carrier/cluster_carrier.hpp"
#include "lab/exec/client.hpp"

namespace via::lab::exec {

using Program = std::vector<std::string>;  ///< and its arguments

struct Outcome {
    std::vector<int> statuses;  ///< of the programs: exit code, or 128 and the signal
    Time time{};
};

class Cluster {
public:
    /// The error says what cannot be.
    /// A program that calls nothing of VIPL for `patience`, of the system's time, ends them all.
    static std::expected<std::unique_ptr<Cluster>, std::string> make(
        carrier::Plan plan, std::uint64_t seed, std::chrono::milliseconds patience);
    ~Cluster();
    Cluster(const Cluster&) = delete;
    Cluster& operator=(const Cluster&) = delete;

    /// Once. Ends when all have ended; the error says why they could not.
    std::expected<Outcome, std::string> run(const std::vector<Program>& programs);
    const carrier::ClusterCarrier& carrier() const { return *carrier_; }

private:
    struct Child {
        pid_t pid = -1;
        bool ended = false;
        int status = 0;
    };

    Cluster() : fabric_(clock_, weather_, {65'536, 64, 256}) {}
    std::expected<void, std::string> listen();
    std::expected<void, std::string> start(const Program& program);
    std::expected<void, std::string> wait_for_first_call();
    std::expected<void, std::string> go_on();
    std::expected<bool, std::string> accept(int wait_ms);
    std::expected<bool, std::string> wake_one();
    std::expected<bool, std::string> let_run(std::list<Client>::iterator client);
    std::string all_descriptions() const;
    void reap();
    void end_all();
    bool all_ended() const;

    device::sim::VirtualClock clock_;
    device::sim::FairWeather weather_{1, {}};  // not asked: there is a carrier
    device::sim::Fabric fabric_;
    std::unique_ptr<carrier::ClusterCarrier> carrier_;
    std::chrono::milliseconds patience_{};
    std::string folder_;
    int listener_ = -1;
    std::list<Client> clients_;
    std::vector<Child> children_;
};

}  // namespace via::lab::exec
