// SPDX-License-Identifier: Apache-2.0
// Endpoints for datagrams whose program computes and reads nothing: FI_PROGRESS_AUTO.
#include <algorithm>
#include <atomic>
#include <thread>

#include <rdma/fi_atomic.h>

#include "rdm_rma_scene.hpp"

using namespace scene;

namespace rdm_progress_test {
namespace {

constexpr std::uint64_t all_rights = FI_REMOTE_READ | FI_REMOTE_WRITE;

Info progress_hints(fi_threading threading) {
    Info info = rma_hints(FI_RMA | FI_ATOMIC);
    info->domain_attr->data_progress = FI_PROGRESS_AUTO;
    info->domain_attr->threading = threading;
    return info;
}

TEST(DatagramProgress, IsOfferedToWhoAsks) {
    const Info info = find(progress_hints(FI_THREAD_DOMAIN).get());
    EXPECT_EQ(info->domain_attr->data_progress, FI_PROGRESS_AUTO);
    EXPECT_EQ(info->domain_attr->control_progress, FI_PROGRESS_AUTO);
    const Info none = find(rma_hints().get());
    EXPECT_EQ(none->domain_attr->data_progress, FI_PROGRESS_MANUAL);
}

/// `b`'s program reads nothing until the end: it is connected, has its receives filled, short and
/// long, and its memory changed.
TEST(DatagramProgress, GoesOnWhileTheProgramComputes) {
    for (const fi_threading threading : {FI_THREAD_SAFE, FI_THREAD_DOMAIN}) {
        Party a(rma_hints(FI_RMA | FI_ATOMIC).get());
        Party b(progress_hints(threading).get());
        const fi_addr_t to = a.knows(b);
        std::atomic<std::uint64_t> target = 0;
        const auto region = b.memory(&target, sizeof target, all_rights);
        const auto bytes = pattern(200000, 1);
        std::vector<std::byte> got(bytes.size());
        b.post(got.data(), got.size(), 1, 1);
        a.send(to, bytes.data(), bytes.size(), 1, 2);
        EXPECT_EQ(a.completion().op_context, word(2));  // it was pulled
        EXPECT_EQ(got, bytes);
        const std::uint64_t one = 1;
        for (std::uint64_t time = 0; time < 100; ++time) {
            std::uint64_t found = 99;
            until_taken(a, nullptr, [&] {
                return fi_fetch_atomic(a.endpoint.get(), &one, 1, nullptr, &found, nullptr, to,
                                       address_of(&target), fi_mr_key(region.get()), FI_UINT64,
                                       FI_SUM, word(3));
            });
            EXPECT_EQ(a.completion().op_context, word(3));
            EXPECT_EQ(found, time);
        }
        EXPECT_EQ(target, 100U);
        EXPECT_EQ(b.completion().op_context, word(1));
    }
}

/// The thread and the program's own do the same at the same time.
TEST(DatagramProgress, BesideTheProgramsOwn) {
    Couple couple(progress_hints(FI_THREAD_DOMAIN).get());
    std::uint64_t target = 0;
    const auto region = couple.b.memory(&target, sizeof target, all_rights);
    constexpr std::uint64_t each = 2000;
    std::thread other([&] {
        std::uint64_t ended = 0;
        const std::uint64_t one = 1;
        for (std::uint64_t begun = 0; ended < each;) {
            fi_cq_tagged_entry entry{};
            if (begun < each && fi_atomic(couple.a.endpoint.get(), &one, 1, nullptr, couple.to_b,
                                          address_of(&target), fi_mr_key(region.get()), FI_UINT64,
                                          FI_SUM, word(1)) == 0) {
                while (fi_tinject(couple.a.endpoint.get(), &begun, sizeof begun, couple.to_b, 5) !=
                       0) {
                    if (fi_cq_read(couple.a.queue.get(), &entry, 1) == 1) ++ended;
                }
                ++begun;
            }
            if (fi_cq_read(couple.a.queue.get(), &entry, 1) == 1) ++ended;
        }
    });
    std::uint64_t said = ~std::uint64_t{0};
    for (std::uint64_t time = 0; time < each; ++time) {
        couple.b.post(&said, sizeof said, 5, 2);
        couple.b.completion();
        EXPECT_EQ(said, time);
    }
    other.join();
    EXPECT_EQ(target, each);
}

}  // namespace
}  // namespace rdm_progress_test
