// A completion queue's descriptor under io_uring (VIPL 5): poll and epoll are in the conformance
// tests. Skipped where the kernel or a filter allows no ring.
#include <gtest/gtest.h>
#include <liburing.h>
#include <poll.h>
#include <via/via.h>

#include <cstring>
#include <thread>

#include "support/vipl.hpp"

namespace system_test::queue_uring_test {

namespace {

/// One ring, and at most one request to wait for readiness in it.
class Ring {
public:
    Ring() : error_(io_uring_queue_init(8, &ring_, 0)) {}
    ~Ring() {
        if (error_ == 0) io_uring_queue_exit(&ring_);
    }
    Ring(const Ring&) = delete;
    Ring& operator=(const Ring&) = delete;

    int error() const { return error_; }
    void ask(int descriptor) {
        io_uring_sqe* entry = io_uring_get_sqe(&ring_);
        io_uring_prep_poll_add(entry, descriptor, POLLIN);
        require(io_uring_submit(&ring_) == 1, "the request is taken");
    }
    /// Within that time; 0: what has come already.
    bool answered(long long timeout_ms) {
        __kernel_timespec time{timeout_ms / 1000, timeout_ms % 1000 * 1'000'000};
        io_uring_cqe* answer = nullptr;
        if (io_uring_wait_cqe_timeout(&ring_, &answer, &time) != 0) return false;
        EXPECT_NE(answer->res & POLLIN, 0);
        io_uring_cqe_seen(&ring_, answer);
        return true;
    }

private:
    io_uring ring_{};
    int error_;
};

TEST(QueueDescriptor, Vipl_5_works_with_io_uring) {
    Ring ring;
    if (ring.error() != 0) GTEST_SKIP() << "no io_uring here: " << strerror(-ring.error());
    Nic nic("loopback");
    VIP_CQ_HANDLE queue = nullptr;
    OK(VipCreateCQ(nic.handle(), 16, &queue));
    VIP_VI_ATTRIBUTES wanted{};
    wanted.ReliabilityLevel = VIP_SERVICE_RELIABLE_DELIVERY;
    wanted.MaxTransferSize = 64;
    VIP_VI_HANDLE vi = nullptr;
    OK(VipCreateVi(nic.handle(), &wanted, queue, nullptr, &vi));
    alignas(VIP_DESCRIPTOR_ALIGNMENT) VIP_DESCRIPTOR sends[8] = {};
    VIP_MEM_HANDLE memory = 0;
    OK(VipRegisterMem(nic.handle(), sends, sizeof sends, nullptr, &memory));
    int descriptor = -1;
    OK(ViaCQDescriptor(queue, &descriptor));
    const auto take_all = [&] {
        VIP_VI_HANDLE from = nullptr;
        VIP_BOOLEAN receive = VIP_TRUE;
        int taken = 0;
        while (VipCQDone(queue, &from, &receive) == VIP_SUCCESS) {
            VIP_DESCRIPTOR* sent = nullptr;
            EXPECT_EQ(VIP_DESCRIPTOR_ERROR, VipSendDone(from, &sent));
            ++taken;
        }
        return taken;
    };
    for (int round = 0; round < 100; ++round) {
        ring.ask(descriptor);
        EXPECT_FALSE(ring.answered(0)) << "the queue is empty";
        // Sends of a VI that is not connected complete at once, here on another thread.
        std::thread poster([&] {
            for (int n = 0; n < 1 + round % 8; ++n) OK(VipPostSend(vi, &sends[n], memory));
        });
        ASSERT_TRUE(ring.answered(20'000));
        poster.join();
        EXPECT_EQ(take_all(), 1 + round % 8);
    }
    OK(VipDeregisterMem(nic.handle(), sends, memory));
    OK(VipDestroyVi(vi));
    OK(VipDestroyCQ(queue));
    nic.close();
}

}  // namespace

}  // namespace system_test::queue_uring_test
