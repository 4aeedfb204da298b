// A program with many threads forks while they are busy in every kind of call: each child opens a
// NIC of its own and is served by its parent; the parent's connections go on (VIPL 4.3).
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <functional>
#include <memory>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "support/child.hpp"
#include "support/host.hpp"
#include "support/vipl.hpp"

namespace system_test::fork_test {

namespace {

constexpr unsigned rounds = 12;
constexpr std::size_t word_length = 64;

Wants few() {
    Wants wants;
    wants.receives = wants.sends = 1;
    return wants;
}

void send_word(End& end, std::uint64_t word) {
    fill(end.send_buffer(0), word_length, word);
    end.post_send(0, word_length);
    const auto sent = end.wait_sent(watchdog_ms);
    require(sent && sent->ok(), "a word is sent");
}
void take_word(End& end, std::uint64_t word) {
    const auto received = end.wait_received(watchdog_ms);
    require(received && received->ok(), "a word comes");
    require(holds(end.receive_buffer(0), word_length, word), "it is that word");
    end.post_receive(0);
}

/// Threads that do something again and again until the end of the scope.
class Busy {
public:
    ~Busy() {
        over_.store(true);
        for (std::thread& thread : threads_) thread.join();
    }
    void again(std::function<void()> body) {
        threads_.emplace_back([this, body = std::move(body)] {
            while (!over_.load()) body();
        });
    }

private:
    std::atomic<bool> over_{false};
    std::vector<std::thread> threads_;
};

/// Of a forked child: asks its parent's server, and has a child of its own do so, too.
int be_forked(const char* device, std::uint64_t word, bool forks_too) {
    alarm(watchdog_ms / 1000);
    try {
        Nic nic(device);
        {
            End end(nic, few());
            end.connect(door_of_this_host());
            send_word(end, word);
            take_word(end, word + 1);
        }
        if (!forks_too) return 0;
        const pid_t grandchild = fork();
        require_call(grandchild >= 0, "fork");
        if (grandchild == 0) _exit(be_forked(device, word, false));
        End end(nic, few());
        end.connect(door_of_this_host());
        send_word(end, word);
        take_word(end, word + 1);
        return reap(grandchild) == 0 ? 0 : 2;
    } catch (const std::exception& error) {
        std::fprintf(stderr, "in the forked child: %s\n", error.what());
        return 1;
    }
}

/// Argument: the device.
void be_busy(Parent& parent) {
    const char* const device = parent.argument(0).c_str();
    Nic near(device);
    Nic far(device);
    End left(near, few());
    End right(far, few());
    std::thread connects([&] { left.connect(door_of_this_host("pair")); });
    right.accept(door_of_this_host("pair"));
    connects.join();
    {
        Nic server(device);
        std::atomic<unsigned> served{0};
        std::vector<std::thread> servers;
        for (int n = 0; n < 2; ++n)
            servers.emplace_back([&] {
                while (served.fetch_add(1) < 3 * rounds) {
                    End end(server, few());
                    end.accept(door_of_this_host());
                    const auto received = end.wait_received(watchdog_ms);
                    require(received && received->ok(), "a child's word comes");
                    const auto word =
                        *reinterpret_cast<const std::uint64_t*>(end.receive_buffer(0));
                    std::uint64_t number = 0;
                    while (!holds(end.receive_buffer(0), word_length, number))
                        require(++number < 10 * rounds, "a known word " + std::to_string(word));
                    send_word(end, number + 1);
                    end.wait_received(watchdog_ms);  // until it leaves
                }
            });
        Busy busy;
        busy.again([&] {
            send_word(left, 7);
            take_word(right, 7);
            send_word(right, 8);
            take_word(left, 8);
        });
        busy.again([&] { Nic opened(device); });
        busy.again([&] { Memory memory(near, 1 << 20); });
        busy.again([&] {  // which the log tells
            VIP_MEM_HANDLE handle = 0;
            VipRegisterMem(far.handle(), reinterpret_cast<void*>(4096), 4096, nullptr, &handle);
        });
        busy.again([&] {
            VIP_CONN_HANDLE connection = nullptr;
            far.wait_request(door_of_this_host("nobody"), 1, &connection);
        });
        for (unsigned round = 0; round < rounds; ++round) {
            std::fflush(nullptr);
            const pid_t child = fork();
            require_call(child >= 0, "fork");
            if (child == 0) {
                const int code = be_forked(device, round, true);
                if (round % 2 == 0) _exit(code);
                std::exit(code);  // the whole way
            }
            require(reap(child) == 0, "a child is served");
        }
        for (std::thread& thread : servers) thread.join();
    }
    parent.say("done");
}
const Role busy_role("busy forker", be_busy);

class Fork : public testing::TestWithParam<const char*> {
protected:
    /// What the library said, but for what one of the busy threads has it say all the time.
    void TearDown() override {
        if (!HasFailure()) return;
        std::istringstream lines(read_file(log_));
        for (std::string line; std::getline(lines, line);)
            if (line.find("cannot register") == line.npos) std::printf("%s\n", line.c_str());
    }
    Host host_;
    const std::string log_ = host_.path() + "/log";
};
INSTANTIATE_TEST_SUITE_P(Media, Fork, testing::Values("shm", "udp:lo", "auto"),
                         [](const auto& device) {
                             const std::string name(device.param);
                             return name.substr(0, name.find(':'));
                         });

TEST_P(Fork, ChildrenOfABusyProgramHaveNicsOfTheirOwn) {
    // What the parent's other threads had on their stacks is nobody's in a child, and no leak of
    // its.
    Child child("busy forker",
                {.arguments = {GetParam()},
                 .environment = {"OPENVIA_LOG=" + log_, "LSAN_OPTIONS=detect_leaks=0"}});
    child.expect("done");
    child.join();
}

}  // namespace

}  // namespace system_test::fork_test
