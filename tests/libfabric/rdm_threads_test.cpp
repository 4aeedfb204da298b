// SPDX-License-Identifier: Apache-2.0
// Endpoints for datagrams that several threads use, also more of them than processors.
#include <dlfcn.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "rdm_scene.hpp"

namespace rdm_threads_test {
namespace {

thread_local std::function<void()> at_next_yield;
thread_local int yields = 0;

/// The provider, and not the library below it, whose turn another thread may have at any moment.
bool is_provider(const void* caller) {
    Dl_info found{};
    return dladdr(caller, &found) != 0 &&
           std::string_view(found.dli_fname).ends_with("/libvia-fi.so");
}

}  // namespace
}  // namespace rdm_threads_test

/// For the provider and the library as well.
extern "C" __attribute__((visibility("default"))) int sched_yield() noexcept {
    using namespace rdm_threads_test;
    ++yields;
    if (at_next_yield && is_provider(__builtin_return_address(0)))
        std::exchange(at_next_yield, nullptr)();
    return static_cast<int>(syscall(SYS_sched_yield));
}

namespace rdm_threads_test {
namespace {

using namespace scene;
using Clock = std::chrono::steady_clock;

/// Calls `work` again and again until the provider gives this thread's processor away. Another one
/// must be able to use the endpoint then.
template <class Work>
void others_may_call_when_it_yields(Party& party, Work&& work) {
    std::atomic<bool> wanted{false};
    std::atomic<bool> done{false};
    std::uint64_t place = 0;
    std::thread other([&] {
        wanted.wait(false);
        party.post(&place, sizeof place, 99, 1);
        done = true;
    });
    const auto end = Clock::now() + std::chrono::milliseconds(patience_ms);
    bool yielded = false;
    at_next_yield = [&] {
        yielded = true;
        wanted = true;
        wanted.notify_one();
        while (!done && Clock::now() < end) usleep(100);
        EXPECT_TRUE(done) << "it yields with the lock held";
    };
    while (!yielded && Clock::now() < end) work();
    EXPECT_TRUE(yielded);
    at_next_yield = nullptr;
    wanted = true;
    wanted.notify_one();
    other.join();
}

TEST(Threads, WhoPollsAndYieldsHoldsNoLock) {
    Couple couple;
    couple.a.inject(couple.to_b, "x", 1, 1, 0, &couple.b);  // without a peer it does not poll
    others_may_call_when_it_yields(couple.a, [&] { couple.a.read(); });
}

TEST(Threads, WhoWaitsForAConnectionHoldsNoLock) {
    Couple couple;
    const auto send = [&] { fi_tinject(couple.a.endpoint.get(), "x", 1, couple.to_b, 1); };
    others_may_call_when_it_yields(couple.a, send);
}

TEST(Threads, WhoWaitsForRoomHoldsNoLock) {
    Couple couple;
    couple.a.inject(couple.to_b, "x", 1, 1, 0, &couple.b);
    const auto send = [&] { fi_tinject(couple.a.endpoint.get(), "x", 1, couple.to_b, 1); };
    others_may_call_when_it_yields(couple.a, send);
}

/// Who polls loses the processor with the lock, mostly. Those that find it taken wait once, and not
/// until it loses the processor without. Counted in yields of theirs.
TEST(Threads, WhoPollsLetsOthersHaveTheLockOnOneProcessor) {
    const OneProcessor here;
    Couple couple;
    couple.a.inject(couple.to_b, "x", 1, 1, 0, &couple.b);
    constexpr int each = 60;
    constexpr int posters = 3;
    std::atomic<int> at_work{posters};
    std::atomic<int> vain{0};
    std::vector<std::uint64_t> places(posters);
    std::vector<std::thread> threads;
    for (std::uint64_t& place : places)
        threads.emplace_back([&] {
            for (int post = 0; post < each; ++post) {
                yields = 0;
                couple.a.post(&place, sizeof place, 1, 1);
                vain += yields;
                std::this_thread::yield();
            }
            --at_work;
        });
    while (at_work != 0) couple.a.read();
    for (std::thread& thread : threads) thread.join();
    EXPECT_LT(vain, 4 * posters * each);
}

}  // namespace
}  // namespace rdm_threads_test
