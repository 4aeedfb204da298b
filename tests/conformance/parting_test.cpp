// How connections end, and what becomes of what was posted (VIPL 4.18).
#include "harness/end.hpp"

namespace conformance::parting_test {
namespace {

VIPL_TEST(Vipl_4_18_disconnect_flushes_both_queues_in_posting_order_with_cq_entries, nothing) {
    test.role("here", [](Role& me) {
        Cq cq(me.nic(), 64);
        End end(me, {.send_cq = &cq, .receive_cq = &cq});
        std::vector<VIP_DESCRIPTOR*> receives;
        for (int n = 0; n < 10; ++n) receives.push_back(end.receive(end.take(8)));
        end.connect("there");
        // Reads behind each other; the other end stands still, its NIC may answer or not.
        std::vector<VIP_DESCRIPTOR*> sends;
        const auto target = me.hear<Target>("there");
        for (int n = 0; n < 10; ++n) sends.push_back(end.read(target, end.take(5000)));
        end.disconnect();
        for (const VIP_DESCRIPTOR* receive : receives) EXPECT_TRUE(flushed(receive));
        std::size_t next_send = 0;
        std::size_t next_receive = 0;
        bool broken = false;
        for (Cq::Entry entry; cq.done(entry);) {
            EXPECT_EQ(end.vi(), entry.vi);
            VIP_DESCRIPTOR* descriptor = nullptr;
            if (entry.receive) {
                EXPECT_EQ(VIP_DESCRIPTOR_ERROR, VipRecvDone(entry.vi, &descriptor));
                EXPECT_EQ(receives.at(next_receive++), descriptor);
            } else {
                const VIP_RETURN code = VipSendDone(entry.vi, &descriptor);
                EXPECT_EQ(sends.at(next_send++), descriptor);
                EXPECT_FALSE(broken && code == VIP_SUCCESS) << "a clean one behind a flushed one";
                if (code == VIP_SUCCESS) continue;
                broken = true;
                EXPECT_TRUE(flushed(descriptor));
            }
        }
        EXPECT_EQ(10U, next_send);
        EXPECT_EQ(10U, next_receive);
        me.meet();
    });
    test.role("there", [](Role& me) {
        End end(me);
        const Piece source = end.take(5000);
        end.accept("here");
        me.tell("here", Target(source));
        me.meet();
    });
}

VIPL_TEST(Vipl_4_18_after_the_peer_parted_the_rest_is_flushed_in_order_with_cq_entries, nothing) {
    test.role("stays", [](Role& me) {
        Cq cq(me.nic(), 64);
        End end(me, {.receive_cq = &cq});
        std::vector<VIP_DESCRIPTOR*> receives;
        for (int n = 0; n < 20; ++n) receives.push_back(end.receive(end.take(8)));
        end.accept("parts");
        for (int n = 0; n < 20; ++n) {
            EXPECT_EQ((Cq::Entry{end.vi(), true}), cq.wait());
            const VIP_DESCRIPTOR* descriptor =
                end.received(n < 7 ? VIP_SUCCESS : VIP_DESCRIPTOR_ERROR);
            EXPECT_EQ(receives[static_cast<std::size_t>(n)], descriptor);
            EXPECT_TRUE(has_status(descriptor, VIP_STATUS_DONE | VIP_STATUS_OP_RECEIVE |
                                                   (n < 7 ? 0U : VIP_STATUS_DESC_FLUSHED_ERROR)));
        }
        Cq::Entry none;
        EXPECT_FALSE(cq.done(none));
        me.nic().wait_error(me, end.vi(), VIP_ERROR_CONN_LOST);
        EXPECT_EQ(VIP_STATE_ERROR, end.state());
        me.meet();
        EXPECT_EQ(0U, me.nic().errors().count(end.vi(), VIP_ERROR_CONN_LOST)) << "told once";
    });
    test.role("parts", [](Role& me) {
        End end(me);
        end.connect("stays");
        for (int n = 0; n < 7; ++n) end.send(end.take(8));
        for (int n = 0; n < 7; ++n) end.sent();
        end.disconnect();
        me.meet();
    });
}

/// What a handler finds when it hears of the loss.
struct Witness {
    std::atomic<int> flushed{0};
    std::atomic<bool> finished{false};
};

void count_flushed(VIP_PVOID context, VIP_ERROR_DESCRIPTOR* error) {
    auto* witness = static_cast<Witness*>(context);
    VIP_DESCRIPTOR* descriptor = nullptr;
    while (VipRecvDone(error->ViHandle, &descriptor) == VIP_DESCRIPTOR_ERROR &&
           descriptor != nullptr)
        ++witness->flushed;
    witness->finished = true;
}

VIPL_TEST(Vipl_4_18_conn_lost_comes_after_everything_was_flushed, own_nics) {
    test.role("stays", [](Role& me) {
        Witness witness;
        End end(me);
        for (int n = 0; n < 100; ++n) end.receive(Pieces{});
        OK(VipErrorCallback(me.nic().handle(), &witness, count_flushed));
        end.accept("parts");
        me.meet();
        me.until([&] { return witness.finished.load(); }, "the handler has run");
        EXPECT_EQ(100, witness.flushed);
        me.nic().restore_handler();
    });
    test.role("parts", [](Role& me) {
        End end(me);
        end.connect("stays");
        me.meet();
        end.disconnect();
        me.wait_for_end_of("stays");
    });
}

VIPL_TEST(Vipl_4_18_threads_that_wait_for_ever_wake_when_the_peer_parts, nothing) {
    test.role("stays", [](Role& me) {
        Cq cq(me.nic(), 8);
        End plain(me);
        End bound(me, {.receive_cq = &cq});
        VIP_DESCRIPTOR* plain_receive = plain.receive(plain.take(8));
        VIP_DESCRIPTOR* bound_receive = bound.receive(bound.take(8));
        plain.accept("parts");
        bound.accept("parts");
        Thread plain_waiter(me, [&] {
            VIP_DESCRIPTOR* descriptor = nullptr;
            EXPECT_EQ(VIP_DESCRIPTOR_ERROR, VipRecvWait(plain.vi(), VIP_INFINITE, &descriptor));
            EXPECT_EQ(plain_receive, descriptor);
        });
        Thread bound_waiter(me, [&] {
            VIP_VI_HANDLE vi = nullptr;
            VIP_BOOLEAN receive = VIP_FALSE;
            EXPECT_EQ(VIP_SUCCESS, VipCQWait(cq.handle(), ~0UL, &vi, &receive));
            EXPECT_EQ(bound.vi(), vi);
            EXPECT_EQ(VIP_TRUE, receive);
        });
        me.tell("parts", 'p');
        plain_waiter.join();
        bound_waiter.join();
        EXPECT_EQ(bound_receive, bound.received(VIP_DESCRIPTOR_ERROR));
        EXPECT_TRUE(flushed(bound_receive));
        me.meet();
    });
    test.role("parts", [](Role& me) {
        End plain(me);
        End bound(me);
        plain.connect("stays");
        bound.connect("stays");
        me.hear<char>("stays");
        plain.disconnect();
        bound.disconnect();
        me.meet();
    });
}

VIPL_TEST(Vipl_4_18_disconnect_wakes_a_waiting_thread_of_the_same_vi, nothing) {
    test.role("only", [](Role& me) {
        End end(me);
        VIP_DESCRIPTOR* posted = end.receive(end.take(8));
        std::atomic<bool> begun{false};
        Thread waiter(me, [&] {
            begun = true;
            VIP_DESCRIPTOR* descriptor = nullptr;
            EXPECT_EQ(VIP_DESCRIPTOR_ERROR, VipRecvWait(end.vi(), VIP_INFINITE, &descriptor));
            EXPECT_EQ(posted, descriptor);
        });
        me.until([&] { return begun.load(); }, "the thread is about to wait");
        end.disconnect();
        waiter.join();
    });
}

VIPL_TEST(Vipl_3_nothing_touches_the_buffers_after_disconnect_returned, polls_memory) {
    constexpr std::size_t length = 60000;
    test.role("parts", [](Role& me) {
        for (int round = 0; round < 10; ++round) {
            End end(me, {.memory = 600000});
            const Piece target = end.take(length);
            std::vector<Piece> rooms;
            for (int n = 0; n < 5; ++n) end.receive(rooms.emplace_back(end.take(length)));
            end.accept("floods");
            me.tell("floods", Target(target));
            volatile std::byte* first = target.data;
            me.until([=] { return *first != std::byte{0}; }, "the flood has begun");
            end.disconnect();
            std::vector<VIP_DESCRIPTOR*> taken;
            drain(end.vi());
            fill_with(target, 3);
            for (const Piece& room : rooms) fill_with(room, 4);
            me.meet();  // the other has noticed
            EXPECT_TRUE(holds_only(target, 3)) << "round " << round;
            for (const Piece& room : rooms) EXPECT_TRUE(holds_only(room, 4)) << "round " << round;
        }
    });
    test.role("floods", [](Role& me) {
        for (int round = 0; round < 10; ++round) {
            End end(me);
            const Piece data = end.take(length);
            fill_with(data, 0xEE);
            end.connect("parts");
            const auto target = me.hear<Target>("parts");
            for (int n = 0; n < 20; ++n) end.write(target, data);
            for (int n = 0; n < 5; ++n) end.send(data);
            end.wait_state(VIP_STATE_ERROR);
            me.meet();
        }
    });
}

VIPL_TEST(Vipl_4_18_a_request_on_its_way_ends_when_the_other_end_closes, own_nics) {
    test.role("asker", [](Role& me) {
        End end(me);
        VIP_VI_ATTRIBUTES attributes;
        const VIP_RETURN code = request(me, end.vi(), me.nic().address("asker"),
                                        me.hear<Address>("holder"), &attributes, VIP_INFINITE);
        EXPECT_NE(VIP_SUCCESS, code);
        EXPECT_EQ(VIP_STATE_IDLE, end.state());
        end.connect("second");  // as good as new
        end.say("second", 1);
        me.meet();
    });
    test.role("holder", [](Role& me) {
        Nic nic(me.device_name());
        Address local = nic.address(me.discriminator("holder"));
        me.tell("asker", local);
        Address remote;
        VIP_VI_ATTRIBUTES attributes;
        VIP_CONN_HANDLE connection = nullptr;
        OK(VipConnectWait(nic.handle(), local.net(), patience_ms, remote.net(), &attributes,
                          &connection));
        nic.close();
        EXPECT_EQ(VIP_INVALID_PARAMETER, VipConnectReject(connection));
        me.meet();
    });
    test.role("second", [](Role& me) {
        End end(me);
        end.accept("asker");
        end.expect("asker", 1);
        me.meet();
    });
}

VIPL_TEST(Vipl_4_21_accepting_a_requester_that_has_closed_is_a_timeout, own_nics) {
    test.role("asker", [](Role& me) {
        Nic nic(me.device_name());
        VIP_VI_ATTRIBUTES attributes = vi_attributes();
        VIP_VI_HANDLE vi = nullptr;
        OK(VipCreateVi(nic.handle(), &attributes, nullptr, nullptr, &vi));
        const auto holder = me.hear<Address>("holder");
        {
            Thread asker(me, [&] {
                EXPECT_NE(VIP_SUCCESS, request(me, vi, nic.address("asker"), holder, &attributes));
            });
            me.hear<char>("holder");  // it has the request
            nic.close();
            asker.join();
        }
        me.meet();
        me.meet();
    });
    test.role("holder", [](Role& me) {
        End end(me);
        Address local = me.nic().address(me.discriminator("holder"));
        me.tell("asker", local);
        Address remote;
        VIP_VI_ATTRIBUTES attributes;
        VIP_CONN_HANDLE connection = nullptr;
        OK(VipConnectWait(me.nic().handle(), local.net(), patience_ms, remote.net(), &attributes,
                          &connection));
        me.tell("asker", 'h');
        me.meet();
        expect_withdrawn(me, end, connection);
        me.meet();
    });
}

}  // namespace
}  // namespace conformance::parting_test
