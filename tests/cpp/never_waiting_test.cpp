// Posting and taking never wait for another thread (VIPL 4.13), whatever that one is held up in.
#include <poll.h>
#include <sys/ioctl.h>

#include <future>

#include "call_filter.hpp"
#include "scene.hpp"

using namespace via;
using namespace via::test;

namespace never_waiting_test {
namespace {

class NeverWaiting : public Scene {
protected:
    NeverWaiting() {
        must(asking_.post_receive(pool_.take()));
        must(asked_.post_receive(far_pool_.take()));
        connect(asking_, asked_);
    }
    /// Messages both ways, by this thread alone. False: they did not get through in time.
    bool exchange() {
        const auto over = std::chrono::steady_clock::now() + patience;
        for (int n = 0; n < 100; ++n) {
            Done here;
            Done there;
            if (!asking_.post_send(pool_.take(), 8) || !asked_.post_send(far_pool_.take(), 8))
                return false;
            while (!here.all() || !there.all()) {
                if (std::chrono::steady_clock::now() > over) return false;
                here.take(asking_, pool_);
                there.take(asked_, far_pool_);
                std::this_thread::yield();
            }
        }
        return true;
    }

private:
    struct Done {
        bool sent = false;
        bool received = false;
        bool all() const { return sent && received; }
        void take(Vi& vi, BufferPool& pool) {
            if (!sent) {
                const auto done = vi.send_done();
                sent = done && *done && pool.reclaim(*done);
            }
            if (!received) {
                const auto done = vi.receive_done();
                received = done && *done && vi.post_receive(pool.reclaim(*done));
            }
        }
    };
    BufferPool pool_ = must(BufferPool::create(near()));
    BufferPool far_pool_ = must(BufferPool::create(far()));
    Vi asking_ = must(Vi::create(near()));
    Vi asked_ = must(Vi::create(far()));
};
INSTANTIATE_TEST_SUITE_P(Media, NeverWaiting, testing::Values("loopback", "shm", "udp:lo"));

/// The held call, which `let_go()` lets the kernel make.
class Held {
public:
    explicit Held(int listener) : listener_(listener) {
        pollfd calls{listener, POLLIN, 0};
        came_ =
            poll(&calls, 1, 60'000) == 1 && ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &call_) == 0;
    }
    bool came() const { return came_; }
    void let_go() {
        seccomp_notif_resp answer{call_.id, 0, 0, SECCOMP_USER_NOTIF_FLAG_CONTINUE};
        if (came_) ioctl(listener_, SECCOMP_IOCTL_NOTIF_SEND, &answer);
        close(listener_);
    }

private:
    int listener_;
    bool came_ = false;
    seccomp_notif call_{};
};

TEST_P(NeverWaiting, ForWhoRegistersMemory) {
    std::promise<int> ready;
    bool registered = false;
    std::thread registering([&] {
        const int listener = call_filter::hold(SYS_mlock);
        ready.set_value(listener);
        if (listener >= 0) registered = MemoryRegion::allocate(near(), 1 << 16).has_value();
    });
    const int listener = ready.get_future().get();
    if (listener < 0) {
        registering.join();
        GTEST_SKIP() << "seccomp is not allowed here";
    }
    Held held(listener);
    EXPECT_TRUE(held.came()) << "memory is locked as it is registered";
    EXPECT_TRUE(exchange());
    held.let_go();
    registering.join();
    EXPECT_TRUE(registered);
}

struct Gate {
    std::promise<void> entered;
    std::promise<void> open;
};
void stand_still(VIP_PVOID context, VIP_NIC_HANDLE, VIP_VI_HANDLE, VIP_DESCRIPTOR*) {
    Gate& gate = *static_cast<Gate*>(context);
    gate.entered.set_value();
    gate.open.get_future().wait();
}

TEST_P(NeverWaiting, ForWhoIsInAHandler) {
    Gate gate;
    auto pool = must(BufferPool::create(near()));
    auto idle = must(Vi::create(near()));
    ASSERT_EQ(VIP_SUCCESS, VipSendNotify(idle.handle(), &gate, stand_still));
    must(idle.post_send(pool.take(), 8));  // not connected: it completes flushed
    ASSERT_EQ(std::future_status::ready, gate.entered.get_future().wait_for(patience));
    EXPECT_TRUE(exchange());
    gate.open.set_value();
}

}  // namespace
}  // namespace never_waiting_test
