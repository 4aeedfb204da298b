// The error handler (VIPL 4.4).
#include <atomic>
#include <chrono>
#include <mutex>
#include <thread>

#include "harness/end.hpp"

namespace conformance::errors_test {
namespace {

/// Has the peer break a connection for us, as often as we like.
void break_connections(Role& me, int count) {
    for (int n = 0; n < count; ++n) {
        End end(me);
        end.accept("tested");
        me.hear<char>("tested");
        end.disconnect();
    }
}

/// Gets a connection, and has it broken.
void lose_connection(Role& me, End& end) {
    end.connect("other");
    me.tell("other", 'b');
}

struct Heard {
    std::atomic<int> times{0};
    VIP_ERROR_DESCRIPTOR error{};
};

void listen(VIP_PVOID context, VIP_ERROR_DESCRIPTOR* error) {
    auto* heard = static_cast<Heard*>(context);
    heard->error = *error;
    ++heard->times;
}

VIPL_TEST(Vipl_4_4_the_handler_gets_its_context_and_unused_fields_are_null, own_nics) {
    test.role("other", [](Role& me) { break_connections(me, 1); });
    test.role("tested", [](Role& me) {
        End end(me);
        Heard heard;
        OK(VipErrorCallback(me.nic().handle(), &heard, listen));
        lose_connection(me, end);
        me.until([&] { return heard.times > 0; }, "the handler runs");
        EXPECT_EQ(me.nic().handle(), heard.error.NicHandle);
        EXPECT_EQ(end.vi(), heard.error.ViHandle);
        EXPECT_EQ(nullptr, heard.error.CQHandle);
        EXPECT_EQ(nullptr, heard.error.DescriptorPtr);
        EXPECT_EQ(0U, heard.error.OpCode);
        EXPECT_EQ(VIP_RESOURCE_VI, heard.error.ResourceCode);
        EXPECT_EQ(VIP_ERROR_CONN_LOST, heard.error.ErrorCode);
        end.disconnect();
        me.nic().restore_handler();  // none runs any more with the former
        EXPECT_EQ(1, heard.times);
    });
}

VIPL_TEST(Vipl_4_4_a_new_handler_replaces_the_former, own_nics) {
    test.role("other", [](Role& me) { break_connections(me, 2); });
    test.role("tested", [](Role& me) {
        Heard first;
        Heard second;
        {
            End end(me);
            OK(VipErrorCallback(me.nic().handle(), &first, listen));
            lose_connection(me, end);
            me.until([&] { return first.times == 1; }, "the first handler runs");
        }
        {
            End end(me);
            OK(VipErrorCallback(me.nic().handle(), &second, listen));
            lose_connection(me, end);
            me.until([&] { return second.times == 1; }, "the second handler runs");
        }
        me.nic().restore_handler();
        EXPECT_EQ(1, first.times);
    });
}

VIPL_TEST(Vipl_4_4_null_restores_the_default_which_logs, own_nics) {
    test.role("other", [](Role& me) { break_connections(me, 2); });
    test.role("tested", [](Role& me) {
        Heard heard;
        OK(VipErrorCallback(me.nic().handle(), &heard, listen));
        OK(VipErrorCallback(me.nic().handle(), &heard, nullptr));
        {
            End end(me);
            lose_connection(me, end);
            end.wait_state(VIP_STATE_ERROR);
        }
        {
            // Handlers run in order: when this one is heard, the former error has been dealt with.
            End end(me);
            me.nic().restore_handler();
            lose_connection(me, end);
            me.nic().wait_error(me, end.vi(), VIP_ERROR_CONN_LOST);
        }
        EXPECT_EQ(0, heard.times);
    });
}

VIPL_TEST(Vipl_4_4_each_nic_handle_has_a_handler_of_its_own, own_nics) {
    test.role("other", [](Role& me) { break_connections(me, 1); });
    test.role("tested", [](Role& me) {
        Nic bystander(me.device_name());
        End end(me);
        lose_connection(me, end);
        me.nic().wait_error(me, end.vi(), VIP_ERROR_CONN_LOST);
        EXPECT_EQ(0U, bystander.errors().count(end.vi(), VIP_ERROR_CONN_LOST));
    });
}

/// What a handler does with a lost VI, the whole way to its end.
struct Undertaker {
    std::atomic<bool> finished{false};
    VIP_RETURN codes[5];
    VIP_VI_STATE state = VIP_STATE_IDLE;
};

void bury(VIP_PVOID context, VIP_ERROR_DESCRIPTOR* error) {
    auto* undertaker = static_cast<Undertaker*>(context);
    VIP_VI_ATTRIBUTES attributes;
    VIP_BOOLEAN flag;
    VIP_DESCRIPTOR* descriptor;
    VIP_NIC_ATTRIBUTES nic;
    undertaker->codes[0] = VipQueryNic(error->NicHandle, &nic);
    undertaker->codes[1] =
        VipQueryVi(error->ViHandle, &undertaker->state, &attributes, &flag, &flag);
    undertaker->codes[2] = VipDisconnect(error->ViHandle);
    undertaker->codes[3] = VipRecvDone(error->ViHandle, &descriptor);
    undertaker->codes[4] = VipDestroyVi(error->ViHandle);
    undertaker->finished = true;
}

VIPL_TEST(Vipl_4_4_a_handler_may_call_vipl, own_nics) {
    test.role("other", [](Role& me) { break_connections(me, 1); });
    test.role("tested", [](Role& me) {
        Undertaker undertaker;
        {
            Memory memory(me.nic(), 4096);
            VIP_VI_ATTRIBUTES attributes = vi_attributes();
            VIP_VI_HANDLE vi = nullptr;
            OK(VipCreateVi(me.nic().handle(), &attributes, nullptr, nullptr, &vi));
            OK(VipErrorCallback(me.nic().handle(), &undertaker, bury));
            VIP_DESCRIPTOR* descriptor = memory.descriptor();
            make_receive(descriptor, {});
            OK(VipPostRecv(vi, descriptor, memory.handle()));
            attributes.EnableRdmaWrite = VIP_FALSE;
            OK(request(me, vi, me.nic().address("tested"), me.hear<Address>("other"), &attributes));
            me.tell("other", 'b');
            me.until([&] { return undertaker.finished.load(); }, "the handler has finished");
            EXPECT_TRUE(flushed(descriptor));
            EXPECT_EQ(VIP_INVALID_PARAMETER, VipDestroyVi(vi)) << "the handler did that";
        }
        EXPECT_EQ(VIP_SUCCESS, undertaker.codes[0]);
        EXPECT_EQ(VIP_SUCCESS, undertaker.codes[1]);
        EXPECT_EQ(VIP_STATE_ERROR, undertaker.state);
        EXPECT_EQ(VIP_SUCCESS, undertaker.codes[2]);
        EXPECT_EQ(VIP_DESCRIPTOR_ERROR, undertaker.codes[3]);
        EXPECT_EQ(VIP_SUCCESS, undertaker.codes[4]);
        me.nic().restore_handler();
    });
}

struct Closer {
    std::atomic<bool> finished{false};
    VIP_RETURN code = VIP_NOT_DONE;
};

void close_nic(VIP_PVOID context, VIP_ERROR_DESCRIPTOR* error) {
    auto* closer = static_cast<Closer*>(context);
    closer->code = VipCloseNic(error->NicHandle);
    closer->finished = true;
}

VIPL_TEST(Vipl_4_4_a_handler_may_close_the_nic, own_nics) {
    test.role("other", [](Role& me) { break_connections(me, 1); });
    test.role("tested", [](Role& me) {
        VIP_NIC_HANDLE nic = nullptr;
        OK(VipOpenNic(me.device_name().c_str(), &nic));
        Closer closer;
        OK(VipErrorCallback(nic, &closer, close_nic));
        VIP_VI_ATTRIBUTES attributes = vi_attributes();
        VIP_VI_HANDLE vi = nullptr;
        OK(VipCreateVi(nic, &attributes, nullptr, nullptr, &vi));
        const auto other = me.hear<Address>("other");
        OK(request(me, vi, Address(other.host(), "tested"), other, &attributes));
        me.tell("other", 'b');
        me.until([&] { return closer.finished.load(); }, "the handler has finished");
        EXPECT_EQ(VIP_SUCCESS, closer.code);
        VIP_NIC_ATTRIBUTES told;
        EXPECT_EQ(VIP_INVALID_PARAMETER, VipQueryNic(nic, &told));
    });
}

struct Locker {
    std::mutex mutex;
    std::atomic<bool> called{false};
    std::atomic<bool> finished{false};
};

void lock(VIP_PVOID context, VIP_ERROR_DESCRIPTOR*) {
    auto* locker = static_cast<Locker*>(context);
    locker->called = true;
    const std::lock_guard guard(locker->mutex);
    locker->finished = true;
}

VIPL_TEST(Vipl_4_4_a_handler_that_waits_for_the_programs_lock_holds_none_of_ours,
          own_nics | real_threads) {
    test.role("other", [](Role& me) { break_connections(me, 1); });
    test.role("tested", [](Role& me) {
        Locker locker;
        End end(me);
        OK(VipErrorCallback(me.nic().handle(), &locker, lock));
        {
            const std::lock_guard guard(locker.mutex);
            lose_connection(me, end);
            me.until([&] { return locker.called.load(); }, "the handler is called");
            // The handler stands still. Everything works meanwhile.
            EXPECT_EQ(VIP_STATE_ERROR, end.state());
            end.receive(end.take(8));
            end.received(VIP_DESCRIPTOR_ERROR);
            Memory memory(me.nic(), 4096);
            Cq cq(me.nic(), 4);
            End other(me, {.receive_cq = &cq});
            other.receive(other.take(8));
            other.disconnect();
            EXPECT_EQ((Cq::Entry{other.vi(), true}), cq.wait());
            end.disconnect();
            EXPECT_FALSE(locker.finished);
        }
        me.until([&] { return locker.finished.load(); }, "the handler has finished");
        me.nic().restore_handler();
    });
}

VIPL_TEST(Vipl_4_4_setting_a_handler_waits_for_the_former_one_to_finish, own_nics | real_threads) {
    test.role("other", [](Role& me) { break_connections(me, 1); });
    test.role("tested", [](Role& me) {
        auto locker = std::make_unique<Locker>();
        End end(me);
        OK(VipErrorCallback(me.nic().handle(), locker.get(), lock));
        std::unique_lock guard(locker->mutex);
        lose_connection(me, end);
        me.until([&] { return locker->called.load(); }, "the handler is called");
        Thread setter(me, [&] {
            me.nic().restore_handler();
            EXPECT_TRUE(locker->finished) << "the former is not running any more";
            locker.reset();  // so its context may go
        });
        guard.unlock();
        guard.release();
        setter.join();
    });
}

// More than are kept ------------------------------------------------------------------------------

struct Slow {
    std::atomic<bool> open{false};
    std::atomic<int> heard{0};
};

void hear_slowly(VIP_PVOID context, VIP_ERROR_DESCRIPTOR*) {
    Slow& slow = *static_cast<Slow*>(context);
    while (!slow.open) std::this_thread::yield();
    // So long that all others fall asleep.
    if (slow.heard++ == 0) std::this_thread::sleep_for(std::chrono::milliseconds(100));
}

/// What there is no room for is told later, also where the one thread that could fetch it sleeps.
VIPL_TEST(Vipl_4_4_a_slow_handler_hears_every_error_while_a_thread_waits, real_threads) {
    static constexpr int errors = 5000;
    test.role("only", [](Role& me) {
        Slow slow;
        OK(VipErrorCallback(me.nic().handle(), &slow, hear_slowly));
        VIP_CQ_HANDLE never = nullptr;
        OK(VipCreateCQ(me.nic().handle(), 1, &never));
        Thread waits(me, [&] {
            VIP_VI_HANDLE vi = nullptr;
            VIP_BOOLEAN receive = VIP_FALSE;
            EXPECT_EQ(VIP_INVALID_STATE, VipCQWait(never, VIP_INFINITE, &vi, &receive));
        });
        {
            Cq cq(me.nic(), 1);
            Wants wants;
            wants.send_cq = &cq;
            End end(me, wants);
            const Piece piece = end.take(8);
            VIP_DESCRIPTOR* both[] = {end.send(piece), end.send(piece)};  // flushed at once
            for (int n = 1;; ++n) {
                for (VIP_DESCRIPTOR*& one : both) {
                    Cq::Entry entry;
                    EXPECT_TRUE(cq.done(entry));
                    EXPECT_EQ(VIP_DESCRIPTOR_ERROR, VipSendDone(end.vi(), &one));
                }
                if (n == errors) break;
                for (VIP_DESCRIPTOR* one : both) end.post_send(one);
            }
            slow.open = true;
            me.until([&] { return slow.heard == errors; }, "all errors are told");
        }
        OK(VipDestroyCQ(never));
        waits.join();
        me.nic().restore_handler();
    });
}

}  // namespace
}  // namespace conformance::errors_test
