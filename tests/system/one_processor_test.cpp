// Two processes that poll share one processor, and each is what the other polls for. Who polls on
// until the system takes the processor away makes each message last a time slice, milliseconds.
#include <gtest/gtest.h>
#include <sched.h>

#include <optional>
#include <string>
#include <thread>
#include <tuple>

#include "support/child.hpp"
#include "support/host.hpp"
#include "support/traffic.hpp"

namespace system_test::one_processor_test {

namespace {

/// By time slices they would take longer than the watchdog's time, by far.
constexpr std::uint64_t round_trips = 20'000;

/// The first processor that we may run on.
void stay_on_one_processor() {
    cpu_set_t all;
    require_call(sched_getaffinity(0, sizeof all, &all) == 0, "sched_getaffinity");
    int first = 0;
    while (!CPU_ISSET(first, &all)) ++first;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(first, &one);
    require_call(sched_setaffinity(0, sizeof one, &one) == 0, "sched_setaffinity");
}

/// A thread that waits for requests meanwhile, and refuses the first, which is our own.
class Listener {
public:
    Listener(Nic& nic, const std::string& name) : nic_(nic), name_(name) {
        thread_ = std::thread([this] {
            VIP_CONN_HANDLE connection = nullptr;
            must(nic_.wait_request(name_, VIP_INFINITE, &connection), "VipConnectWait");
            must(VipConnectReject(connection), "VipConnectReject");
        });
    }
    ~Listener() {
        End caller(nic_);
        VIP_RETURN code = VIP_NO_MATCH;
        while (code == VIP_NO_MATCH) code = caller.request(name_, watchdog_ms);
        require(code == VIP_REJECT, "our own request is refused");
        thread_.join();
    }
    Listener(const Listener&) = delete;
    Listener& operator=(const Listener&) = delete;

private:
    Nic& nic_;
    const std::string name_;
    std::thread thread_;
};

/// Arguments: "accept" or "request", the NIC, "alone" or "beside a listener". Polls for all that it
/// waits for.
void be_poller(Parent& parent) {
    stay_on_one_processor();
    auto& page = parent.shared<TrafficPage>();
    const bool begins = parent.argument(0) == "request";
    Nic nic(parent.argument(1).c_str());
    End end(nic);
    std::optional<Listener> listener;
    if (parent.argument(2) != "alone") listener.emplace(nic, door_of_this_host(parent.argument(0)));
    if (begins)
        end.connect(door_of_this_host());
    else
        end.accept(door_of_this_host());
    const auto send = [&] {
        end.post_send(0, 8);
        while (!end.sent()) {
        }
    };
    for (std::uint64_t n = 0; n < round_trips; ++n) {
        if (begins) send();
        auto outcome = end.received();
        while (!outcome) outcome = end.received();
        require(outcome->ok(), "the message is received");
        end.post_receive(outcome->slot);
        if (!begins) send();
        page.done.store(n + 1, std::memory_order_relaxed);
    }
    parent.say("done");
    parent.expect("leave");
}
const Role poller_role("poller", be_poller);

class OneProcessor : public testing::TestWithParam<std::tuple<const char*, const char*>> {};

TEST_P(OneProcessor, IsGivenToWhoHasSomethingToDo) {
    Host host;
    const auto& [nic, company] = GetParam();
    Child answering("poller", {.arguments = {"accept", nic, company}});
    Child beginning("poller", {.arguments = {"request", nic, company}});
    beginning.expect("done");
    answering.expect("done");
    answering.say("leave");
    beginning.say("leave");
}

INSTANTIATE_TEST_SUITE_P(On, OneProcessor,
                         testing::Combine(testing::Values("shm", "udp:127.0.0.1"),
                                          testing::Values("alone", "beside_a_listener")),
                         [](const auto& about) {
                             std::string name(std::get<0>(about.param), 3);
                             return name.append("_").append(std::get<1>(about.param));
                         });

}  // namespace
}  // namespace system_test::one_processor_test
