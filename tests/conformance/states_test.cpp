// The table of section 3, row by row.
#include "harness/end.hpp"

namespace conformance::states_test {
namespace {

/// Brings a VI into CONNECT_PENDING: a thread asks, role `holder` takes the request with
/// take_request() and keeps it.
class Pending {
public:
    Pending(Role& me, End& end)
        : asker_(me, [this, &me, &end, holder = me.hear<Address>("holder")] {
              VIP_VI_ATTRIBUTES attributes;
              result_ = request(me, end.vi(), me.nic().address("pending"), holder, &attributes);
          }) {
        me.hear<char>("holder");  // it has the request
        EXPECT_EQ(VIP_STATE_CONNECT_PENDING, end.state());
    }
    VIP_RETURN result() {
        asker_.join();
        return result_;
    }

private:
    VIP_RETURN result_ = VIP_NOT_DONE;
    Thread asker_;
};

/// Waits for a request of that role, to be answered later.
VIP_CONN_HANDLE take_request(Role& me, std::string_view from) {
    Address local = me.nic().address(me.discriminator("holder"));
    me.tell(from, local);
    Address remote;
    VIP_VI_ATTRIBUTES attributes;
    VIP_CONN_HANDLE connection = nullptr;
    OK(VipConnectWait(me.nic().handle(), local.net(), patience_ms, remote.net(), &attributes,
                      &connection));
    me.tell(from, 'h');
    return connection;
}

VIP_DESCRIPTOR* done_at_once(End& end, bool receive) {
    VIP_DESCRIPTOR* descriptor = nullptr;
    EXPECT_EQ(VIP_DESCRIPTOR_ERROR,
              receive ? VipRecvDone(end.vi(), &descriptor) : VipSendDone(end.vi(), &descriptor));
    return descriptor;
}

VIPL_TEST(Vipl_3_none_create_gives_idle_with_empty_queues, nothing) {
    test.role("only", [](Role& me) {
        End end(me, {.transfer_max = 5000, .rdma_read = false});
        VIP_VI_STATE state = VIP_STATE_ERROR;
        VIP_VI_ATTRIBUTES attributes;
        VIP_BOOLEAN send_empty = 77;
        VIP_BOOLEAN receive_empty = 77;
        OK(VipQueryVi(end.vi(), &state, &attributes, &send_empty, &receive_empty));
        EXPECT_EQ(VIP_STATE_IDLE, state);
        EXPECT_EQ(VIP_TRUE, send_empty);
        EXPECT_EQ(VIP_TRUE, receive_empty);
        EXPECT_EQ(VIP_SERVICE_RELIABLE_DELIVERY, attributes.ReliabilityLevel);
        EXPECT_EQ(5000U, attributes.MaxTransferSize);
        EXPECT_EQ(nullptr, attributes.QoS);
        EXPECT_EQ(nullptr, attributes.Ptag);
        EXPECT_EQ(VIP_TRUE, attributes.EnableRdmaWrite);
        EXPECT_EQ(VIP_FALSE, attributes.EnableRdmaRead);
    });
}

VIPL_TEST(Vipl_3_none_create_refuses_attributes_that_the_nic_does_not_have, nothing) {
    test.role("only", [](Role& me) {
        const auto created_with = [&](auto change) {
            VIP_VI_ATTRIBUTES attributes = vi_attributes();
            change(attributes);
            VIP_VI_HANDLE vi = nullptr;
            const VIP_RETURN code =
                VipCreateVi(me.nic().handle(), &attributes, nullptr, nullptr, &vi);
            if (code == VIP_SUCCESS) OK(VipDestroyVi(vi));
            return code;
        };
        constexpr VIP_RELIABILITY_LEVEL none[] = {0, 3, 5, 6, 7, 8, 0xFFFF};
        for (const VIP_RELIABILITY_LEVEL level : none)
            EXPECT_EQ(VIP_INVALID_RELIABILITY_LEVEL,
                      created_with([=](auto& a) { a.ReliabilityLevel = level; }))
                << level;
        const VIP_ULONG longest = me.nic().attributes().MaxTransferSize;
        EXPECT_EQ(VIP_SUCCESS, created_with([=](auto& a) { a.MaxTransferSize = longest; }));
        if (longest < 0x7FFFFFFF) {  // else it is what an int can tell (VIPL 1.9)
            EXPECT_EQ(VIP_INVALID_MTU,
                      created_with([=](auto& a) { a.MaxTransferSize = longest + 1; }));
        }
        EXPECT_EQ(VIP_INVALID_MTU, created_with([](auto& a) { a.MaxTransferSize = ~0UL; }));
        EXPECT_EQ(VIP_INVALID_QOS, created_with([](auto& a) { a.QoS = &a; }));
        EXPECT_EQ(VIP_INVALID_RDMAREAD, created_with([](auto& a) {
                      a.ReliabilityLevel = VIP_SERVICE_UNRELIABLE;
                      a.EnableRdmaRead = VIP_TRUE;
                  }));
    });
}

VIPL_TEST(Vipl_3_idle_posted_receives_stay_and_are_used_after_connecting, nothing) {
    test.role("server", [](Role& me) {
        End end(me);
        VIP_DESCRIPTOR* first = end.receive(end.take(64));
        VIP_DESCRIPTOR* second = end.receive(end.take(64));
        EXPECT_EQ(VIP_STATE_IDLE, end.state());
        EXPECT_FALSE(end.receive_queue_empty());
        VIP_DESCRIPTOR* none = nullptr;
        EXPECT_EQ(VIP_NOT_DONE, VipRecvDone(end.vi(), &none));
        end.accept("client");
        EXPECT_EQ(first, end.received());
        EXPECT_EQ(10U, first->CS.Length);
        EXPECT_EQ(second, end.received());
        EXPECT_EQ(20U, second->CS.Length);
        EXPECT_TRUE(end.receive_queue_empty());
    });
    test.role("client", [](Role& me) {
        End end(me);
        end.connect("server");
        end.send(end.take(10));
        end.send(end.take(20));
        end.sent();
        end.sent();
        me.wait_for_end_of("server");
    });
}

VIPL_TEST(Vipl_3_idle_posted_sends_complete_at_once_flushed, nothing) {
    test.role("only", [](Role& me) {
        End end(me);
        const Piece piece = end.take(64);
        const VIP_DESCRIPTOR* posted[] = {end.send(piece), end.write(Target(piece), piece),
                                          end.read(Target(piece), piece)};
        const VIP_UINT32 operations[] = {VIP_STATUS_OP_SEND, VIP_STATUS_OP_RDMA_WRITE,
                                         VIP_STATUS_OP_RDMA_READ};
        for (int index = 0; index < 3; ++index) {
            EXPECT_EQ(posted[index], done_at_once(end, false));
            EXPECT_TRUE(has_status(posted[index], VIP_STATUS_DONE | VIP_STATUS_DESC_FLUSHED_ERROR |
                                                      operations[index]));
        }
        EXPECT_EQ(VIP_STATE_IDLE, end.state());
        EXPECT_TRUE(end.send_queue_empty());
    });
}

VIPL_TEST(Vipl_3_pending_takes_receives_and_flushes_sends, nothing) {
    test.role("asker", [](Role& me) {
        End end(me);
        Pending pending(me, end);
        VIP_DESCRIPTOR* receive = end.receive(end.take(64));
        const VIP_DESCRIPTOR* send = end.send(end.take(64));
        EXPECT_EQ(send, done_at_once(end, false));
        EXPECT_TRUE(flushed(send));
        EXPECT_EQ(VIP_STATE_CONNECT_PENDING, end.state());
        me.tell("holder", 'a');
        EXPECT_EQ(VIP_SUCCESS, pending.result());
        EXPECT_EQ(VIP_STATE_CONNECTED, end.state());
        EXPECT_EQ(receive, end.received());
        EXPECT_TRUE(has_status(receive, VIP_STATUS_DONE | VIP_STATUS_OP_RECEIVE));
    });
    test.role("holder", [](Role& me) {
        End end(me);
        const VIP_CONN_HANDLE connection = take_request(me, "asker");
        me.hear<char>("asker");
        OK(VipConnectAccept(connection, end.vi()));
        EXPECT_EQ(VIP_STATE_CONNECTED, end.state());
        end.send(end.take(64));
        end.sent();
        me.wait_for_end_of("asker");
    });
}

VIPL_TEST(Vipl_3_pending_refuses_attributes_destruction_and_a_second_request, nothing) {
    test.role("asker", [](Role& me) {
        End end(me);
        Pending pending(me, end);
        VIP_VI_ATTRIBUTES attributes = vi_attributes();
        EXPECT_EQ(VIP_INVALID_STATE, VipSetViAttributes(end.vi(), &attributes));
        EXPECT_EQ(VIP_INVALID_STATE, VipDestroyVi(end.vi()));
        Address own = me.nic().address("pending");
        EXPECT_EQ(VIP_INVALID_STATE,
                  VipConnectRequest(end.vi(), own.net(), own.net(), patience_ms, &attributes));
        EXPECT_EQ(VIP_STATE_CONNECT_PENDING, end.state());
        me.tell("holder", 'a');
        EXPECT_EQ(VIP_SUCCESS, pending.result());
        me.meet();
    });
    test.role("holder", [](Role& me) {
        End end(me);
        const VIP_CONN_HANDLE connection = take_request(me, "asker");
        me.hear<char>("asker");
        OK(VipConnectAccept(connection, end.vi()));
        me.meet();
    });
}

VIPL_TEST(Vipl_3_pending_accepted_gives_each_side_the_attributes_of_the_other, nothing) {
    test.role("server", [](Role& me) {
        End end(me, {.transfer_max = 1234, .rdma_write = true, .rdma_read = false});
        const VIP_VI_ATTRIBUTES theirs = end.accept("client");
        EXPECT_EQ(VIP_SERVICE_RELIABLE_DELIVERY, theirs.ReliabilityLevel);
        EXPECT_EQ(1234U, theirs.MaxTransferSize);
        EXPECT_EQ(nullptr, theirs.QoS);
        EXPECT_EQ(VIP_FALSE, theirs.EnableRdmaWrite);
        EXPECT_EQ(VIP_TRUE, theirs.EnableRdmaRead);
        me.meet();
    });
    test.role("client", [](Role& me) {
        End end(me, {.transfer_max = 1234, .rdma_write = false, .rdma_read = true});
        const VIP_VI_ATTRIBUTES theirs = end.connect("server");
        EXPECT_EQ(VIP_STATE_CONNECTED, end.state());
        EXPECT_EQ(VIP_SERVICE_RELIABLE_DELIVERY, theirs.ReliabilityLevel);
        EXPECT_EQ(1234U, theirs.MaxTransferSize);
        EXPECT_EQ(VIP_TRUE, theirs.EnableRdmaWrite);
        EXPECT_EQ(VIP_FALSE, theirs.EnableRdmaRead);
        me.meet();
    });
}

VIPL_TEST(Vipl_3_pending_refused_gives_idle_and_the_same_vi_may_ask_again, nothing) {
    test.role("asker", [](Role& me) {
        End end(me);
        VIP_DESCRIPTOR* receive = end.receive(end.take(64));
        VIP_VI_ATTRIBUTES attributes;
        Address own = me.nic().address("asker");
        Address nobody = me.nic().address(me.discriminator("nobody"));
        EXPECT_EQ(VIP_NO_MATCH,
                  VipConnectRequest(end.vi(), own.net(), nobody.net(), patience_ms, &attributes));
        EXPECT_EQ(VIP_STATE_IDLE, end.state());
        auto holder = me.hear<Address>("holder");
        EXPECT_EQ(VIP_REJECT, request(me, end.vi(), own, holder, &attributes));
        me.hear<char>("holder");
        EXPECT_EQ(VIP_STATE_IDLE, end.state());
        holder = me.hear<Address>("holder");
        request_unanswered(me, end.vi(), own, holder, "holder");
        EXPECT_EQ(VIP_STATE_IDLE, end.state());
        EXPECT_FALSE(end.receive_queue_empty()) << "the receive stays posted";
        me.tell("holder", 't');
        holder = me.hear<Address>("holder");
        EXPECT_EQ(VIP_SUCCESS, request(me, end.vi(), own, holder, &attributes));
        EXPECT_EQ(receive, end.received());
    });
    test.role("holder", [](Role& me) {
        End end(me);
        OK(VipConnectReject(take_request(me, "asker")));
        const VIP_CONN_HANDLE given_up = take_request(me, "asker");
        me.hear<char>("asker");
        expect_withdrawn(me, end, given_up);
        OK(VipConnectAccept(take_request(me, "asker"), end.vi()));
        end.send(end.take(8));
        end.sent();
        me.wait_for_end_of("asker");
    });
}

VIPL_TEST(Vipl_3_pending_disconnect_withdraws_the_request, nothing) {
    test.role("asker", [](Role& me) {
        End end(me);
        const VIP_DESCRIPTOR* receive = end.receive(end.take(64));
        Pending pending(me, end);
        EXPECT_EQ(VIP_SUCCESS, VipDisconnect(end.vi()));
        EXPECT_EQ(VIP_STATE_IDLE, end.state());
        EXPECT_EQ(VIP_INVALID_STATE, pending.result());
        EXPECT_EQ(VIP_STATE_IDLE, end.state());
        EXPECT_EQ(receive, done_at_once(end, true));
        EXPECT_TRUE(flushed(receive));
        me.tell("holder", 'd');
        me.meet();
    });
    test.role("holder", [](Role& me) {
        End end(me);
        const VIP_CONN_HANDLE connection = take_request(me, "asker");
        me.hear<char>("asker");
        expect_withdrawn(me, end, connection);
        me.meet();
    });
}

VIPL_TEST(Vipl_3_connected_disconnect_flushes_here_and_breaks_there, nothing) {
    test.role("here", [](Role& me) {
        End end(me);
        const VIP_DESCRIPTOR* receives[] = {end.receive(end.take(64)), end.receive(end.take(64))};
        end.connect("there");
        me.meet();
        EXPECT_EQ(VIP_SUCCESS, VipDisconnect(end.vi()));
        for (const VIP_DESCRIPTOR* receive : receives)  // before the call returned
            EXPECT_TRUE(has_status(
                receive, VIP_STATUS_DONE | VIP_STATUS_DESC_FLUSHED_ERROR | VIP_STATUS_OP_RECEIVE));
        EXPECT_EQ(VIP_STATE_IDLE, end.state());
        for (const VIP_DESCRIPTOR* receive : receives) EXPECT_EQ(receive, done_at_once(end, true));
        me.meet();
        EXPECT_EQ(0U, me.nic().errors().count(end.vi(), VIP_ERROR_CONN_LOST));
    });
    test.role("there", [](Role& me) {
        End end(me);
        const VIP_DESCRIPTOR* receives[] = {end.receive(end.take(64)), end.receive(end.take(64))};
        end.accept("here");
        me.meet();
        for (const VIP_DESCRIPTOR* receive : receives) {
            EXPECT_EQ(receive, end.received(VIP_DESCRIPTOR_ERROR));
            EXPECT_TRUE(flushed(receive));
        }
        EXPECT_EQ(VIP_STATE_ERROR, end.state());
        me.nic().wait_error(me, end.vi(), VIP_ERROR_CONN_LOST);
        me.meet();
        EXPECT_EQ(0U, me.nic().errors().count(end.vi(), VIP_ERROR_CONN_LOST)) << "told once";
    });
}

VIPL_TEST(Vipl_3_connected_refuses_attributes_destruction_and_connecting, nothing) {
    const auto refuses = [](Role& me, End& end) {
        VIP_VI_ATTRIBUTES attributes = vi_attributes();
        Address own = me.nic().address("x");
        EXPECT_EQ(VIP_INVALID_STATE, VipSetViAttributes(end.vi(), &attributes));
        EXPECT_EQ(VIP_INVALID_STATE, VipDestroyVi(end.vi()));
        EXPECT_EQ(VIP_INVALID_STATE,
                  VipConnectRequest(end.vi(), own.net(), own.net(), patience_ms, &attributes));
        EXPECT_EQ(VIP_STATE_CONNECTED, end.state());
        me.meet();
    };
    test.role("server", [=](Role& me) {
        End end(me);
        end.accept("client");
        refuses(me, end);
    });
    test.role("client", [=](Role& me) {
        End end(me);
        end.connect("server");
        refuses(me, end);
    });
}

/// What must hold of a VI in ERROR, until Disconnect makes it idle and as good as new.
void check_error_state(Role& me, End& end) {
    EXPECT_EQ(VIP_STATE_ERROR, end.state());
    const VIP_DESCRIPTOR* send = end.send(end.take(8));
    const VIP_DESCRIPTOR* receive = end.receive(end.take(8));
    EXPECT_EQ(send, done_at_once(end, false));
    EXPECT_EQ(receive, done_at_once(end, true));
    EXPECT_TRUE(flushed(send));
    EXPECT_TRUE(flushed(receive));
    VIP_VI_ATTRIBUTES attributes = vi_attributes();
    Address own = me.nic().address("x");
    EXPECT_EQ(VIP_INVALID_STATE, VipSetViAttributes(end.vi(), &attributes));
    EXPECT_EQ(VIP_INVALID_STATE, VipDestroyVi(end.vi()));
    EXPECT_EQ(VIP_INVALID_STATE,
              VipConnectRequest(end.vi(), own.net(), own.net(), patience_ms, &attributes));
    EXPECT_EQ(VIP_STATE_ERROR, end.state());
    EXPECT_EQ(VIP_SUCCESS, VipDisconnect(end.vi()));
    EXPECT_EQ(VIP_STATE_IDLE, end.state());
    EXPECT_EQ(VIP_SUCCESS, VipSetViAttributes(end.vi(), &attributes));
}

VIPL_TEST(Vipl_3_error_flushes_at_once_and_disconnect_leads_out_of_it, nothing) {
    test.role("broken", [](Role& me) {
        End end(me);
        end.connect("other");
        me.meet();
        end.wait_state(VIP_STATE_ERROR);
        check_error_state(me, end);
        end.connect("other");
        end.say("other", 8);
    });
    test.role("other", [](Role& me) {
        End end(me);
        end.accept("broken");
        me.meet();
        end.disconnect();
        end.accept("broken");
        end.expect("broken", 8);
    });
}

VIPL_TEST(Vipl_3_connected_a_fatal_error_on_a_reliable_vi_leads_to_error, nothing) {
    constexpr VIP_RELIABILITY_LEVEL levels[] = {VIP_SERVICE_RELIABLE_DELIVERY,
                                                VIP_SERVICE_RELIABLE_RECEPTION};
    for (const VIP_RELIABILITY_LEVEL level : levels) {
        const std::string suffix =
            level == VIP_SERVICE_RELIABLE_DELIVERY ? "delivery" : "reception";
        test.role("sender " + suffix, [=](Role& me) {
            End end(me, {.level = level});
            end.connect("receiver " + suffix);
            end.send(end.take(64));  // longer than its receive (VIPL 4.23)
            end.wait_broken();
            check_error_state(me, end);
        });
        test.role("receiver " + suffix, [=](Role& me) {
            End end(me, {.level = level});
            end.receive(end.take(8));
            end.accept("sender " + suffix);
            end.wait_broken();
            check_error_state(me, end);
        });
    }
}

VIPL_TEST(Vipl_3_any_disconnect_succeeds_always, nothing) {
    test.role("only", [](Role& me) {
        End end(me);
        EXPECT_EQ(VIP_SUCCESS, VipDisconnect(end.vi())) << "never connected";
        EXPECT_EQ(VIP_SUCCESS, VipDisconnect(end.vi())) << "twice";
        EXPECT_EQ(VIP_STATE_IDLE, end.state());
        const VIP_DESCRIPTOR* receive = end.receive(end.take(8));
        EXPECT_EQ(VIP_SUCCESS, VipDisconnect(end.vi()));
        EXPECT_EQ(receive, done_at_once(end, true)) << "posted receives are flushed";
        EXPECT_TRUE(flushed(receive));
    });
}

VIPL_TEST(Vipl_3_idle_destroy_needs_empty_queues, nothing) {
    test.role("only", [](Role& me) {
        Memory memory(me.nic(), 4096);
        VIP_VI_ATTRIBUTES attributes = vi_attributes();
        VIP_VI_HANDLE vi = nullptr;
        OK(VipCreateVi(me.nic().handle(), &attributes, nullptr, nullptr, &vi));
        VIP_DESCRIPTOR* receive = memory.descriptor();
        make_receive(receive, {});
        OK(VipPostRecv(vi, receive, memory.handle()));
        EXPECT_EQ(VIP_ERROR_RESOURCE, VipDestroyVi(vi)) << "a descriptor is posted";
        OK(VipDisconnect(vi));
        EXPECT_EQ(VIP_ERROR_RESOURCE, VipDestroyVi(vi)) << "it is done, but not taken";
        EXPECT_EQ(1U, drain(vi));
        VIP_DESCRIPTOR* send = memory.descriptor();
        make_send(send, {});
        OK(VipPostSend(vi, send, memory.handle()));
        EXPECT_EQ(VIP_ERROR_RESOURCE, VipDestroyVi(vi)) << "a send is done, but not taken";
        EXPECT_EQ(1U, drain(vi));
        EXPECT_EQ(VIP_SUCCESS, VipDestroyVi(vi));
    });
}

VIPL_TEST(Vipl_3_idle_destroy_does_not_mind_entries_in_completion_queues, nothing) {
    test.role("only", [](Role& me) {
        Cq cq(me.nic(), 8);
        {
            End end(me, {.send_cq = &cq, .receive_cq = &cq});
            end.receive(end.take(8));
            end.disconnect();
            EXPECT_EQ(1U, drain(end.vi()));
        }  // destroyed with an entry still there
        Cq::Entry entry;
        EXPECT_FALSE(cq.done(entry));
    });
}

VIPL_TEST(Vipl_1_10_a_vi_keeps_a_word_of_the_program, nothing) {
    test.role("only", [](Role& me) {
        int mine = 0;
        VIP_VI_ATTRIBUTES attributes = vi_attributes();
        VIP_VI_HANDLE vi = nullptr;
        VIP_VI_HANDLE other = nullptr;
        OK(VipCreateVi(me.nic().handle(), &attributes, nullptr, nullptr, &vi));
        OK(VipCreateVi(me.nic().handle(), &attributes, nullptr, nullptr, &other));
        EXPECT_EQ(nullptr, VipGetUserData(vi));
        VipSetUserData(vi, &mine);
        EXPECT_EQ(&mine, VipGetUserData(vi));
        EXPECT_EQ(nullptr, VipGetUserData(other));
        OK(VipDestroyVi(vi));
        EXPECT_EQ(nullptr, VipGetUserData(vi)) << "a stale handle names nothing";
        VipSetUserData(vi, &mine);
        OK(VipCreateVi(me.nic().handle(), &attributes, nullptr, nullptr, &vi));
        EXPECT_EQ(nullptr, VipGetUserData(vi)) << "what comes in its place begins anew";
        for (const VIP_VI_HANDLE each : {vi, other}) OK(VipDestroyVi(each));
        EXPECT_EQ(nullptr, VipGetUserData(nullptr));
    });
}

VIPL_TEST(Vipl_3_idle_attributes_can_be_replaced, nothing) {
    test.role("only", [](Role& me) {
        End end(me);
        VIP_VI_ATTRIBUTES attributes = vi_attributes(VIP_SERVICE_RELIABLE_RECEPTION);
        attributes.MaxTransferSize = 777;
        attributes.EnableRdmaRead = VIP_TRUE;
        EXPECT_EQ(VIP_SUCCESS, VipSetViAttributes(end.vi(), &attributes));
        VIP_VI_STATE state;
        VIP_BOOLEAN flag;
        VIP_VI_ATTRIBUTES told;
        OK(VipQueryVi(end.vi(), &state, &told, &flag, &flag));
        EXPECT_EQ(VIP_SERVICE_RELIABLE_RECEPTION, told.ReliabilityLevel);
        EXPECT_EQ(777U, told.MaxTransferSize);
        EXPECT_EQ(VIP_FALSE, told.EnableRdmaWrite);
        EXPECT_EQ(VIP_TRUE, told.EnableRdmaRead);
        attributes.ReliabilityLevel = 3;
        EXPECT_EQ(VIP_INVALID_RELIABILITY_LEVEL, VipSetViAttributes(end.vi(), &attributes));
        attributes = vi_attributes();
        attributes.MaxTransferSize = ~0UL;
        EXPECT_EQ(VIP_INVALID_MTU, VipSetViAttributes(end.vi(), &attributes));
        OK(VipQueryVi(end.vi(), &state, &told, &flag, &flag));
        EXPECT_EQ(777U, told.MaxTransferSize) << "a refusal changes nothing";
    });
}

}  // namespace
}  // namespace conformance::states_test
