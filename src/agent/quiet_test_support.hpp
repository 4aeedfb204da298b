// For tests of the agent's threads: a NIC whose devices bring nothing and say how they are slept
// on.
#pragma once

#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "agent/host_agent.hpp"
#include "agent/test_support.hpp"
#include "nic/absent_device.hpp"

namespace via::agent::test {

/// Nothing ever comes. Says how it is slept on, and wants a turn when the test wants it to.
class QuietDevice : public nic::AbsentDevice, public device::Sleeping {
public:
    struct Seen {
        std::atomic<device::Sleep> sleep{device::Sleep::awake};
        std::atomic<std::int64_t> deadline{Time::never().ns};
        std::atomic<std::thread::id> served_by{};
        std::atomic<std::thread::id> woken_by{};  ///< who said last that we are awake
        /// What it is slept on, one after another, the last for ever.
        std::vector<device::WakeWord> words{};
        std::atomic<const void*> woken_by_word{nullptr};
        std::function<void(device::Sleep)> armed{};  ///< called by arm(); set under the turn
    };
    /// Slept on by words, or by the descriptor.
    explicit QuietDevice(Seen& seen, int descriptor = -1) : seen_(seen), descriptor_(descriptor) {
        capabilities_ = {.payload_max = 1024,
                         .header_max = 64,
                         .large_length_min = ~0U,
                         .lossless = true,
                         .ordered = true};
    }

    device::Sleeping* sleeping() override { return this; }
    Time next_deadline() const override { return {seen_.deadline.load()}; }
    void service(Time) override { seen_.served_by = std::this_thread::get_id(); }
    void arm(device::Sleep sleep) override {
        if (sleep == device::Sleep::awake) seen_.woken_by = std::this_thread::get_id();
        seen_.sleep = sleep;
        if (seen_.armed) seen_.armed(sleep);
    }
    int wait_handle() const override { return -1; }
    std::size_t wake_words(std::span<device::WakeWord> words) override {
        if (seen_.words.empty()) return 0;
        words.front() = seen_.words.front();
        if (seen_.words.size() > 1) seen_.words.erase(seen_.words.begin());
        return 1;
    }
    void woken_by(const device::WakeWord& word) override { seen_.woken_by_word = word.address; }
    std::size_t wake_descriptors(std::span<device::WakeDescriptor> descriptors) const override {
        if (descriptor_ < 0) return 0;
        if (!descriptors.empty()) descriptors.front() = {descriptor_, false};
        return 1;
    }

private:
    Seen& seen_;
    int descriptor_;
};

inline bool becomes_true(const std::function<bool()>& condition) {
    const auto watchdog = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (!condition())
        if (std::chrono::steady_clock::now() > watchdog) return false;
    return true;
}

struct HostAgentTest : testing::Test {
    explicit HostAgentTest(bool mixed = false) {
        auto statistics = Statistics::open(folder_.path(), "quiet");
        EXPECT_TRUE(statistics);
        std::vector<std::unique_ptr<device::Device>> devices;
        devices.push_back(std::make_unique<QuietDevice>(seen));
        if (mixed) devices.push_back(std::make_unique<QuietDevice>(network, descriptor));
        HostAgentOptions options;
        options.name = "quiet";
        options.directory_again = [this]() -> std::expected<std::string, std::string> {
            return folder_.path();
        };
        options.names_look = milliseconds(1);
        options.ran = [this, really = ran_beside_caller()] {
            agents_looks.fetch_add(1);
            return has_no_processor ? Ran{} : really();
        };
        auto opened =
            HostAgent::open(std::move(options), std::move(devices), std::move(*statistics));
        EXPECT_TRUE(opened);
        agent = std::move(*opened);
    }

    ~HostAgentTest() override {
        agent.reset();
        ::close(descriptor);
    }

    bool falls_asleep() {
        return becomes_true([&] { return seen.sleep == device::Sleep::on_handle; });
    }
    bool is_awake() const { return seen.sleep == device::Sleep::awake; }
    /// A call that waits until `end` says so.
    std::thread wait_for(std::atomic<bool>& end, bool by_completion = true) {
        return std::thread([this, &end, by_completion] {
            agent->wait(
                {[](const void* of) { return static_cast<const std::atomic<bool>*>(of)->load(); },
                 &end, by_completion},
                Time::never());
        });
    }
    /// It leads. Behind its first sleep, a short one, it looks after the devices, then sleeps for
    /// good.
    bool sleeps_for_good(const std::thread& leader) {
        return becomes_true([&] {
            nic::Nic& nic = agent->nic();
            nic.take_turn();
            const bool sleeps =
                seen.served_by == leader.get_id() && seen.sleep == device::Sleep::on_words;
            nic.end_turn();
            return sleeps;
        });
    }
    /// A turn with a deadline that has passed: who sleeps looks.
    void wake_up() {
        agent->nic().take_turn();
        seen.deadline = agent->now().ns;
        agent->nic().end_turn();
    }

    std::atomic<bool> has_no_processor{false};  ///< nor goes to sleep, as far as the agent is told
    std::atomic<int> agents_looks{0};
    const TemporaryFolder folder_;
    const int descriptor = ::eventfd(0, EFD_CLOEXEC);
    QuietDevice::Seen seen, network;
    std::unique_ptr<Agent> agent;
};

/// A device of words beside one of descriptors, as shm beside udp.
struct MixedHostAgentTest : HostAgentTest {
    MixedHostAgentTest() : HostAgentTest(true) {}
};

}  // namespace via::agent::test
