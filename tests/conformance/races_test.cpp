// Calls that meet: any may come first, none may hang, be lost or touch what is gone (VIPL 4.26).
#include <atomic>

#include "harness/end.hpp"

namespace conformance::races_test {
namespace {

constexpr int rounds = 40;

VIPL_TEST(Vipl_4_26_post_against_disconnect, nothing) {
    test.role("server", [](Role& me) {
        for (int round = 0; round < rounds; ++round) {
            End end(me);
            for (int n = 0; n < 8; ++n) end.receive(end.take(8));
            end.accept("client");
            end.wait_state(VIP_STATE_ERROR);
        }
    });
    test.role("client", [](Role& me) {
        for (int round = 0; round < rounds; ++round) {
            End end(me);
            end.connect("server");
            std::atomic<int> posted{0};
            Thread poster(me, [&] {
                for (int n = 0; n < 16; ++n) {
                    end.send(end.take(8));
                    end.receive(end.take(8));
                    ++posted;
                }
            });
            while (posted < round % 16) me.pause();
            end.disconnect();
            poster.join();
            // Every send came back, sent or flushed; the receives wait, or were flushed.
            std::size_t sends = 0;
            VIP_DESCRIPTOR* descriptor = nullptr;
            while (sends < 16) {
                const VIP_RETURN code = VipSendWait(end.vi(), patience_ms, &descriptor);
                require(code == VIP_SUCCESS || code == VIP_DESCRIPTOR_ERROR, name_of(code));
                require(descriptor != nullptr, "every send comes back");
                ++sends;
            }
            EXPECT_TRUE(end.send_queue_empty());
            end.disconnect();
            EXPECT_LE(drain(end.vi()), 16U);
        }
    });
}

VIPL_TEST(Vipl_3_pending_a_request_that_was_withdrawn_does_not_end_as_the_next_one, nothing) {
    test.role("server", [](Role& me) {
        Address local = me.nic().address(me.discriminator("held"));
        me.tell("client", local);
        for (int round = 0; round < rounds; ++round) {
            VIP_CONN_HANDLE held[2];
            for (VIP_CONN_HANDLE& connection : held) {
                Address remote;
                VIP_VI_ATTRIBUTES attributes;
                OK(VipConnectWait(me.nic().handle(), local.net(), patience_ms, remote.net(),
                                  &attributes, &connection));
                me.tell("client", 'h');
            }
            for (const VIP_CONN_HANDLE connection : held) OK(VipConnectReject(connection));
        }
    });
    test.role("client", [](Role& me) {
        const Address server = me.hear<Address>("server");
        const Address local = me.nic().address("from");
        for (int round = 0; round < rounds; ++round) {
            End end(me);
            VIP_VI_ATTRIBUTES attributes;
            VIP_VI_ATTRIBUTES others;
            VIP_RETURN former = VIP_SUCCESS;
            Thread asker(me, [&] { former = request(me, end.vi(), local, server, &others); });
            me.hear<char>("server");
            OK(VipDisconnect(end.vi()));
            EXPECT_EQ(VIP_REJECT, request(me, end.vi(), local, server, &attributes));
            asker.join();
            EXPECT_EQ(VIP_INVALID_STATE, former);
            me.hear<char>("server");
        }
    });
}

VIPL_TEST(Vipl_4_26_wait_against_disconnect_and_destroy, nothing) {
    test.role("only", [](Role& me) {
        for (int round = 0; round < rounds; ++round) {
            auto end = std::make_unique<End>(me);
            end->receive(end->take(8));
            std::atomic<bool> begun{false};
            Thread waiter(me, [&, vi = end->vi()] {
                begun = true;
                VIP_DESCRIPTOR* descriptor = nullptr;
                const VIP_RETURN code = VipRecvWait(vi, VIP_INFINITE, &descriptor);
                EXPECT_TRUE(code == VIP_DESCRIPTOR_ERROR || code == VIP_INVALID_STATE ||
                            code == VIP_INVALID_PARAMETER)
                    << name_of(code);
            });
            while (round % 2 == 0 && !begun) me.pause();
            end.reset();  // disconnects, takes what is left, destroys
            waiter.join();
        }
    });
}

VIPL_TEST(Vipl_4_26_queue_wait_against_destroy, nothing) {
    test.role("only", [](Role& me) {
        for (int round = 0; round < rounds; ++round) {
            auto cq = std::make_unique<Cq>(me.nic(), 4);
            std::atomic<bool> begun{false};
            Thread waiter(me, [&, queue = cq->handle()] {
                begun = true;
                VIP_VI_HANDLE vi = nullptr;
                VIP_BOOLEAN receive = VIP_FALSE;
                const VIP_RETURN code = VipCQWait(queue, VIP_INFINITE, &vi, &receive);
                EXPECT_TRUE(code == VIP_INVALID_STATE || code == VIP_INVALID_PARAMETER)
                    << name_of(code);
            });
            while (round % 2 == 0 && !begun) me.pause();
            cq.reset();
            waiter.join();
        }
    });
}

VIPL_TEST(Vipl_4_16_resize_against_wait_and_traffic, nothing) {
    static constexpr int messages = 400;
    test.role("server", [](Role& me) {
        Cq cq(me.nic(), 2);
        Wants wants;
        wants.receive_cq = &cq;
        End end(me, wants);
        for (int n = 0; n < 64; ++n) end.receive(end.take(8));
        end.accept("client");
        std::atomic<bool> over{false};
        Thread resizer(me, [&] {
            for (VIP_ULONG size = 1; !over; size = size % 97 + 1) {
                OK(VipResizeCQ(cq.handle(), size));
                me.pause();
            }
        });
        for (int n = 0; n < messages; ++n) {
            EXPECT_EQ((Cq::Entry{end.vi(), true}), cq.wait());
            VIP_DESCRIPTOR* taken = nullptr;
            OK(VipRecvDone(end.vi(), &taken));
            end.post_receive(taken);
            me.tell("client", n);
        }
        over = true;
        resizer.join();
        me.meet();
        end.disconnect();
        while (drain(end.vi()) != 0) {
        }
    });
    test.role("client", [](Role& me) {
        End end(me);
        end.connect("server");
        int heard = -1;
        for (int n = 0; n < messages; ++n) {
            while (n - heard > 32) heard = me.hear<int>("server");
            end.send(end.take(8));
            end.sent();
        }
        while (heard != messages - 1) heard = me.hear<int>("server");
        me.meet();
    });
}

struct Callback {
    std::atomic<int> begun{0};
    std::atomic<int> ended{0};
    std::atomic<bool> go{false};
};

void slow_handler(VIP_PVOID context, VIP_NIC_HANDLE, VIP_VI_HANDLE, VIP_DESCRIPTOR*) {
    Callback& state = *static_cast<Callback*>(context);
    ++state.begun;
    while (!state.go) std::this_thread::yield();
    ++state.ended;
}

VIPL_TEST(Vipl_4_26_callback_against_close, own_nics | real_threads) {
    test.role("only", [](Role& me) {
        for (int round = 0; round < 10; ++round) {
            VIP_NIC_HANDLE nic = nullptr;
            OK(VipOpenNic(me.device_name().c_str(), &nic));
            VIP_VI_ATTRIBUTES attributes = Wants{}.attributes();
            VIP_VI_HANDLE vi = nullptr;
            OK(VipCreateVi(nic, &attributes, nullptr, nullptr, &vi));
            alignas(64) VIP_DESCRIPTOR descriptor{};
            VIP_MEM_HANDLE memory = 0;
            OK(VipRegisterMem(nic, &descriptor, sizeof descriptor, nullptr, &memory));
            Callback state;
            OK(VipSendNotify(vi, &state, slow_handler));
            OK(VipPostSend(vi, &descriptor, memory));  // flushed at once
            if (round % 2 == 0) me.until([&] { return state.begun == 1; }, "the handler runs");
            Thread closer(me, [&] { OK(VipCloseNic(nic)); });
            if (state.begun == 1) {
                for (int n = 0; n < 100; ++n) me.pause();
                EXPECT_FALSE(closer.ended()) << "closing waits for a handler that runs";
            }
            state.go = true;
            closer.join();
            EXPECT_EQ(state.begun, state.ended) << "nothing runs after the close";
        }
    });
}

VIPL_TEST(Vipl_4_26_two_threads_in_connect_wait, nothing) {
    static constexpr int requests = 30;
    test.role("server", [](Role& me) {
        Nic& nic = me.nic();
        const Address ear = nic.address(me.discriminator("shared"));
        me.tell("client", ear);
        std::atomic<int> answered{0};
        const auto serve = [&] {
            // Two threads, one discriminator: each request goes to exactly one of them.
            for (;;) {
                Address local = ear;
                Address remote;
                VIP_VI_ATTRIBUTES attributes;
                VIP_CONN_HANDLE connection = nullptr;
                const VIP_RETURN code = VipConnectWait(nic.handle(), local.net(), 20, remote.net(),
                                                       &attributes, &connection);
                if (code == VIP_SUCCESS) {
                    OK(VipConnectReject(connection));
                    ++answered;
                } else {
                    require(code == VIP_TIMEOUT, name_of(code));
                    if (answered >= requests) return;
                }
            }
        };
        Thread first(me, serve);
        Thread second(me, serve);
        first.join();
        second.join();
        EXPECT_EQ(requests, answered);
        me.meet();
    });
    test.role("client", [](Role& me) {
        const auto ear = me.hear<Address>("server");
        End end(me);
        for (int n = 0; n < requests; ++n) {
            VIP_VI_ATTRIBUTES attributes;
            EXPECT_EQ(VIP_REJECT,
                      request(me, end.vi(), me.nic().address("from"), ear, &attributes));
        }
        me.meet();
    });
}

}  // namespace
}  // namespace conformance::races_test
