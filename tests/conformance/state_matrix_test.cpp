// Every call in every state of the VI (VIPL 3): what it answers, and that the state stays.
#include <via/via.h>

#include "harness/end.hpp"

namespace conformance::state_matrix_test {
namespace {

void no_completion(VIP_PVOID, VIP_NIC_HANDLE, VIP_VI_HANDLE, VIP_DESCRIPTOR*) {}

/// Asks everything of a VI whose queues are empty and that stays in `state`. `connection` is a
/// request that waits for an answer.
void expect_row(Role& me, End& end, VIP_VI_STATE state, VIP_CONN_HANDLE connection) {
    SCOPED_TRACE("state " + std::to_string(state));
    const bool idle = state == VIP_STATE_IDLE;
    const VIP_RETURN only_idle = VIP_INVALID_STATE;
    Address own = me.nic().address("own");
    VIP_VI_ATTRIBUTES attributes = Wants{}.attributes();
    VIP_DESCRIPTOR* descriptor = nullptr;
    EXPECT_EQ(state, end.state());

    // Nothing is posted.
    EXPECT_EQ(VIP_DESCRIPTOR_ERROR, VipSendDone(end.vi(), &descriptor));
    EXPECT_EQ(nullptr, descriptor);
    EXPECT_EQ(VIP_DESCRIPTOR_ERROR, VipRecvDone(end.vi(), &descriptor));
    EXPECT_EQ(VIP_DESCRIPTOR_ERROR, VipSendWait(end.vi(), VIP_INFINITE, &descriptor));
    EXPECT_EQ(VIP_DESCRIPTOR_ERROR, VipRecvWait(end.vi(), VIP_INFINITE, &descriptor));
    EXPECT_EQ(state, end.state());

    // Connecting is for idle VIs; there it is tested by itself.
    if (!idle) {
        EXPECT_EQ(only_idle, VipConnectRequest(end.vi(), own.net(), own.net(), 1, &attributes));
        EXPECT_EQ(only_idle, VipConnectPeerRequest(end.vi(), own.net(), own.net(), 1));
        EXPECT_EQ(only_idle, VipConnectAccept(connection, end.vi()));
        EXPECT_EQ(only_idle, VipSetViAttributes(end.vi(), &attributes));
        VIP_VI_ATTRIBUTES nonsense = attributes;
        nonsense.ReliabilityLevel = 3;
        nonsense.MaxTransferSize = ~0UL;
        EXPECT_EQ(only_idle, VipSetViAttributes(end.vi(), &nonsense));
        EXPECT_EQ(only_idle, ViaSetCredits(end.vi(), VIP_TRUE));
        EXPECT_EQ(only_idle, VipDestroyVi(end.vi()));
    } else {
        EXPECT_EQ(VIP_SUCCESS, VipSetViAttributes(end.vi(), &attributes));
        EXPECT_EQ(VIP_SUCCESS, ViaSetCredits(end.vi(), VIP_FALSE));
    }
    if (state != VIP_STATE_CONNECT_PENDING) {  // else it is pending by a peer request
        EXPECT_EQ(VIP_INVALID_STATE, VipConnectPeerDone(end.vi(), &attributes));
        EXPECT_EQ(VIP_INVALID_STATE, VipConnectPeerWait(end.vi(), &attributes));
    } else {
        EXPECT_EQ(VIP_NOT_DONE, VipConnectPeerDone(end.vi(), &attributes));
    }
    EXPECT_EQ(state, end.state());

    // Posting is allowed always; only a connected VI does something with it.
    const bool works = state == VIP_STATE_CONNECTED;
    const bool waits = idle || state == VIP_STATE_CONNECT_PENDING || works;
    VIP_DESCRIPTOR* received = end.receive(end.take(8));
    EXPECT_EQ(waits ? VIP_NOT_DONE : VIP_DESCRIPTOR_ERROR, VipRecvDone(end.vi(), &descriptor));
    if (waits) {
        EXPECT_EQ(VIP_TIMEOUT, VipRecvWait(end.vi(), 1, &descriptor));
    }
    VIP_DESCRIPTOR* sent = end.send(end.take(8));
    EXPECT_EQ(sent, end.sent(works ? VIP_SUCCESS : VIP_DESCRIPTOR_ERROR));
    EXPECT_EQ(!works, bool(flushed(sent)));
    EXPECT_EQ(state, end.state());
    if (waits) {
        EXPECT_FALSE(end.receive_queue_empty());
        EXPECT_EQ(idle ? VIP_ERROR_RESOURCE : VIP_INVALID_STATE, VipDestroyVi(end.vi()));
    } else {
        EXPECT_EQ(received, descriptor);
        EXPECT_TRUE(flushed(received));
    }
    EXPECT_EQ(VIP_SUCCESS, VipSendNotify(end.vi(), nullptr, no_completion));
    EXPECT_EQ(state, end.state());

    // Out of every state into idle, and the receives are flushed.
    end.disconnect();
    EXPECT_EQ(VIP_STATE_IDLE, end.state());
    if (waits) {
        EXPECT_EQ(received, end.received(VIP_DESCRIPTOR_ERROR));
        EXPECT_TRUE(flushed(received));
    }
    EXPECT_EQ(VIP_DESCRIPTOR_ERROR, VipRecvDone(end.vi(), &descriptor));
    EXPECT_EQ(nullptr, descriptor);
}

VIPL_TEST(Vipl_3_every_call_in_every_state, nothing) {
    test.role("subject", [](Role& me) {
        Address ear = me.nic().address(me.discriminator("ear"));
        me.tell("partner", ear);
        Address remote;
        VIP_VI_ATTRIBUTES attributes;
        VIP_CONN_HANDLE connection = nullptr;
        OK(VipConnectWait(me.nic().handle(), ear.net(), VIP_INFINITE, remote.net(), &attributes,
                          &connection));
        {
            End idle(me);
            expect_row(me, idle, VIP_STATE_IDLE, connection);
        }
        {
            End pending(me);
            Address local = me.nic().address(me.discriminator("me"));
            Address nobody = me.nic().address(me.discriminator("nobody"));
            OK(VipConnectPeerRequest(pending.vi(), local.net(), nobody.net(), VIP_INFINITE));
            expect_row(me, pending, VIP_STATE_CONNECT_PENDING, connection);
        }
        {
            End connected(me);
            connected.accept("partner");
            expect_row(me, connected, VIP_STATE_CONNECTED, connection);
        }
        {
            End broken(me);
            broken.accept("partner");
            me.meet();
            broken.wait_broken();
            expect_row(me, broken, VIP_STATE_ERROR, connection);
        }
        OK(VipConnectReject(connection));
        me.meet();
    });
    test.role("partner", [](Role& me) {
        const auto ear = me.hear<Address>("subject");
        End asking(me);
        Thread asker(me, [&] {
            VIP_VI_ATTRIBUTES attributes;
            EXPECT_EQ(VIP_REJECT, request(me, asking.vi(), me.nic().address("from"), ear,
                                          &attributes, VIP_INFINITE));
        });
        {
            End end(me);
            end.receive(end.take(8));
            end.connect("subject");
            end.received();
            end.wait_broken();
        }
        {
            End end(me);
            end.connect("subject");
            me.meet();
            end.disconnect();
        }
        me.meet();
        asker.join();
    });
}

}  // namespace
}  // namespace conformance::state_matrix_test
