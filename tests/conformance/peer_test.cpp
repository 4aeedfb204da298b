// Peer to peer: both sides ask (VIPL 4.22).
#include "harness/end.hpp"

namespace conformance::peer_test {
namespace {

/// What each side of a peer-to-peer connection does first.
VIP_RETURN ask(End& end, Address local, Address remote, VIP_ULONG timeout = patience_ms) {
    return VipConnectPeerRequest(end.vi(), local.net(), remote.net(), timeout);
}

void wait_connected(End& end, Where where = Where::current()) {
    VIP_VI_ATTRIBUTES theirs{};
    must(VipConnectPeerWait(end.vi(), &theirs), "VipConnectPeerWait", where);
    EXPECT_EQ(VIP_SERVICE_RELIABLE_DELIVERY, theirs.ReliabilityLevel);
    EXPECT_EQ(65536U, theirs.MaxTransferSize);
    EXPECT_EQ(VIP_STATE_CONNECTED, end.state());
}

/// Both roles learn the other's address, and meet.
Address exchange(Role& me, std::string_view other, const Address& own) {
    me.tell(other, own);
    return me.hear<Address>(other);
}

struct Names {
    const char* left;
    const char* right;
};

template <bool left_first, bool equal>
void plan_meeting(Test& test) {
    const auto act = [](Role& me, const char* other, const char* word, bool first) {
        End end(me);
        Address local = me.nic().address(me.discriminator(equal ? "same" : word));
        const Address remote = exchange(me, other, local);
        if (!first) me.meet();
        OK(ask(end, local, remote));
        EXPECT_TRUE(end.state() == VIP_STATE_CONNECT_PENDING || end.state() == VIP_STATE_CONNECTED);
        if (first) me.meet();
        wait_connected(end);
        if (first) {
            end.expect(other, 1);
            end.say(other, 2);
        } else {
            end.say(other, 1);
            end.expect(other, 2);
        }
        me.meet();
    };
    test.role("left", [act](Role& me) { act(me, "right", "l", left_first); });
    test.role("right", [act](Role& me) { act(me, "left", "r", !left_first); });
}

VIPL_TEST(Vipl_4_22_left_asks_first, nothing) { plan_meeting<true, false>(test); }
VIPL_TEST(Vipl_4_22_right_asks_first, nothing) { plan_meeting<false, false>(test); }
VIPL_TEST(Vipl_4_22_equal_discriminators_are_legal, nothing) { plan_meeting<true, true>(test); }
VIPL_TEST(Vipl_4_22_equal_discriminators_the_other_way_round, nothing) {
    plan_meeting<false, true>(test);
}

VIPL_TEST(Vipl_4_22_several_with_equal_addresses_meet_two_by_two, nothing) {
    test.role("only", [](Role& me) {
        const Address all = me.nic().address(me.discriminator("same"));
        std::vector<std::unique_ptr<End>> ends;
        for (int n = 0; n < 6; ++n) {
            ends.push_back(std::make_unique<End>(me));
            OK(ask(*ends.back(), all, all));
        }
        for (auto& end : ends) wait_connected(*end);
    });
}

VIPL_TEST(Vipl_4_22_both_at_once_many_times, nothing) {
    constexpr int rounds = 20;
    const auto act = [](Role& me, const char* other, const char* word, bool speaks) {
        Address local = me.nic().address(me.discriminator(word));
        const Address remote = exchange(me, other, local);
        for (int round = 0; round < rounds; ++round) {
            End end(me);
            me.meet();
            OK(ask(end, local, remote));
            wait_connected(end);
            if (speaks)
                end.say(other, round);
            else
                end.expect(other, round);
            me.meet();
        }
    };
    test.role("left", [act](Role& me) { act(me, "right", "l", true); });
    test.role("right", [act](Role& me) { act(me, "left", "r", false); });
}

VIPL_TEST(Vipl_4_22_done_polls, nothing) {
    const auto act = [](Role& me, const char* other, const char* word, bool late) {
        End end(me);
        VIP_VI_ATTRIBUTES theirs;
        EXPECT_EQ(VIP_INVALID_STATE, VipConnectPeerDone(end.vi(), &theirs));
        EXPECT_EQ(VIP_INVALID_STATE, VipConnectPeerWait(end.vi(), &theirs));
        Address local = me.nic().address(me.discriminator(word));
        const Address remote = exchange(me, other, local);
        if (late) me.meet();
        OK(ask(end, local, remote));
        if (!late) {
            for (int n = 0; n < 10; ++n)
                EXPECT_EQ(VIP_NOT_DONE, VipConnectPeerDone(end.vi(), &theirs));
            me.meet();
        }
        VIP_RETURN code = VIP_NOT_DONE;
        while (code == VIP_NOT_DONE) code = VipConnectPeerDone(end.vi(), &theirs);
        OK(code);
        EXPECT_EQ(65536U, theirs.MaxTransferSize);
        EXPECT_EQ(VIP_STATE_CONNECTED, end.state());
        me.meet();
    };
    test.role("left", [act](Role& me) { act(me, "right", "l", false); });
    test.role("right", [act](Role& me) { act(me, "left", "r", true); });
}

VIPL_TEST(Vipl_4_22_a_new_vi_has_no_attempt_of_one_that_was_destroyed, nothing) {
    test.role("only", [](Role& me) {
        Address local = me.nic().address(me.discriminator("alone"));
        Address nobody = me.nic().address(me.discriminator("nobody"));
        VIP_VI_ATTRIBUTES attributes = vi_attributes();
        VIP_VI_ATTRIBUTES theirs;
        VIP_VI_HANDLE vi = nullptr;
        OK(VipCreateVi(me.nic().handle(), &attributes, nullptr, nullptr, &vi));
        OK(VipConnectPeerRequest(vi, local.net(), nobody.net(), 1));
        EXPECT_EQ(VIP_TIMEOUT, VipConnectPeerWait(vi, &theirs));
        OK(VipDestroyVi(vi));
        for (int n = 0; n < 100; ++n) {  // one of them takes its place
            OK(VipCreateVi(me.nic().handle(), &attributes, nullptr, nullptr, &vi));
            EXPECT_EQ(VIP_INVALID_STATE, VipConnectPeerDone(vi, &theirs)) << n;
            EXPECT_EQ(VIP_INVALID_STATE, VipConnectPeerWait(vi, &theirs)) << n;
            OK(VipDestroyVi(vi));
        }
    });
}

VIPL_TEST(Vipl_4_22_nobody_asks_for_us, nothing) {
    test.role("only", [](Role& me) {
        // Whichever of the two would be the one that looks for the other.
        for (const auto& [mine, theirs] : {Names{"a", "b"}, Names{"b", "a"}, Names{"a", "a"}}) {
            End end(me);
            const Address local = me.nic().address(me.discriminator(mine));
            const Address remote = me.nic().address(me.discriminator(theirs));
            VIP_VI_ATTRIBUTES attributes;
            OK(ask(end, local, remote, 30));
            EXPECT_EQ(VIP_TIMEOUT, VipConnectPeerWait(end.vi(), &attributes));
            EXPECT_EQ(VIP_TIMEOUT, VipConnectPeerDone(end.vi(), &attributes));
            EXPECT_EQ(VIP_STATE_IDLE, end.state());
        }
    });
}

VIPL_TEST(Vipl_4_22_match_must_be_crosswise, nothing) {
    test.role("left", [](Role& me) {
        End end(me);
        Address local = me.nic().address(me.discriminator("l"));
        const Address remote = exchange(me, "right", local);
        OK(ask(end, local, remote, 100));
        VIP_VI_ATTRIBUTES attributes;
        EXPECT_EQ(VIP_TIMEOUT, VipConnectPeerWait(end.vi(), &attributes));
        me.meet();
    });
    test.role("right", [](Role& me) {
        End end(me);
        Address local = me.nic().address(me.discriminator("r"));
        exchange(me, "left", local);
        OK(ask(end, local, me.nic().address(me.discriminator("another")), 100));
        VIP_VI_ATTRIBUTES attributes;
        EXPECT_EQ(VIP_TIMEOUT, VipConnectPeerWait(end.vi(), &attributes));
        me.meet();
    });
}

VIPL_TEST(Vipl_4_21_peers_that_do_not_fit_both_hear_of_it, nothing) {
    const auto act = [](Role& me, const char* other, const char* word, VIP_ULONG transfer_max) {
        Wants wants;
        wants.transfer_max = transfer_max;
        End end(me, wants);
        Address local = me.nic().address(me.discriminator(word));
        const Address remote = exchange(me, other, local);
        OK(ask(end, local, remote));
        VIP_VI_ATTRIBUTES attributes;
        EXPECT_EQ(VIP_INVALID_MTU, VipConnectPeerWait(end.vi(), &attributes));
        EXPECT_EQ(VIP_STATE_IDLE, end.state());
        me.meet();
    };
    test.role("left", [act](Role& me) { act(me, "right", "l", 1000); });
    test.role("right", [act](Role& me) { act(me, "left", "r", 2000); });
}

VIPL_TEST(Vipl_3_disconnect_ends_a_peer_request, nothing) {
    test.role("only", [](Role& me) {
        for (const auto& [mine, theirs] : {Names{"a", "b"}, Names{"b", "a"}}) {
            End end(me);
            const Address local = me.nic().address(me.discriminator(mine));
            const Address remote = me.nic().address(me.discriminator(theirs));
            OK(ask(end, local, remote, VIP_INFINITE));
            EXPECT_EQ(VIP_STATE_CONNECT_PENDING, end.state());
            EXPECT_EQ(VIP_INVALID_STATE, ask(end, local, remote, VIP_INFINITE));
            Thread waiter(me, [&] {
                VIP_VI_ATTRIBUTES attributes;
                EXPECT_EQ(VIP_INVALID_STATE, VipConnectPeerWait(end.vi(), &attributes));
            });
            end.disconnect();
            waiter.join();
            EXPECT_EQ(VIP_STATE_IDLE, end.state());
            // The name is free again: somebody may listen there.
            VIP_VI_ATTRIBUTES attributes;
            VIP_CONN_HANDLE connection;
            Address from;
            Address own = local;
            EXPECT_EQ(VIP_TIMEOUT, VipConnectWait(me.nic().handle(), own.net(), 1, from.net(),
                                                  &attributes, &connection));
        }
    });
}

VIPL_TEST(Vipl_2_peer_calls_refuse_what_makes_no_sense, nothing) {
    test.role("only", [](Role& me) {
        End end(me);
        Address own = me.nic().address(me.discriminator("own"));
        VIP_VI_ATTRIBUTES attributes;
        EXPECT_EQ(VIP_INVALID_PARAMETER, VipConnectPeerRequest(end.vi(), nullptr, own.net(), 1));
        EXPECT_EQ(VIP_INVALID_PARAMETER, VipConnectPeerRequest(end.vi(), own.net(), nullptr, 1));
        EXPECT_EQ(VIP_INVALID_PARAMETER, VipConnectPeerRequest(end.vi(), own.net(), own.net(), 0));
        EXPECT_EQ(VIP_INVALID_PARAMETER, VipConnectPeerRequest(nullptr, own.net(), own.net(), 1));
        EXPECT_EQ(VIP_INVALID_PARAMETER, VipConnectPeerDone(end.vi(), nullptr));
        EXPECT_EQ(VIP_INVALID_PARAMETER, VipConnectPeerDone(nullptr, &attributes));
        EXPECT_EQ(VIP_INVALID_PARAMETER, VipConnectPeerWait(end.vi(), nullptr));
        EXPECT_EQ(VIP_STATE_IDLE, end.state());
    });
}

}  // namespace
}  // namespace conformance::peer_test
