// What is not there yet, and must say so: peer to peer, Notify, names of other hosts. Whoever adds
// one of them replaces its test by tests of 4.17, 4.22 or 4.5.
#include "harness/end.hpp"

namespace conformance {
namespace {

void no_completion(VIP_PVOID, VIP_NIC_HANDLE, VIP_VI_HANDLE, VIP_DESCRIPTOR*) {}
void no_entry(VIP_PVOID, VIP_NIC_HANDLE, VIP_VI_HANDLE, VIP_BOOLEAN) {}

VIPL_TEST(Vipl_4_17_and_4_22_what_is_not_supported_yet_says_so_and_changes_nothing, nothing) {
    test.role("only", [](Role& me) {
        Cq cq(me.nic(), 4);
        End end(me);
        Address own = me.nic().address("own");
        VIP_VI_ATTRIBUTES attributes;
        EXPECT_EQ(VIP_ERROR_NOT_SUPPORTED,
                  VipConnectPeerRequest(end.vi(), own.net(), own.net(), 100));
        EXPECT_EQ(VIP_ERROR_NOT_SUPPORTED, VipConnectPeerDone(end.vi(), &attributes));
        EXPECT_EQ(VIP_ERROR_NOT_SUPPORTED, VipConnectPeerWait(end.vi(), &attributes));
        EXPECT_EQ(VIP_ERROR_NOT_SUPPORTED, VipSendNotify(end.vi(), nullptr, no_completion));
        EXPECT_EQ(VIP_ERROR_NOT_SUPPORTED, VipRecvNotify(end.vi(), nullptr, no_completion));
        EXPECT_EQ(VIP_ERROR_NOT_SUPPORTED, VipCQNotify(cq.handle(), nullptr, no_entry));
        EXPECT_EQ(VIP_STATE_IDLE, end.state());
    });
}

}  // namespace
}  // namespace conformance
