// Clients meet servers (VIPL 4.19 to 4.21).
#include <set>

#include "harness/end.hpp"

namespace conformance::connecting_test {
namespace {

/// What ConnectWait told of a request.
struct Request {
    VIP_RETURN code = VIP_NOT_DONE;
    Address remote;
    VIP_VI_ATTRIBUTES attributes{};
    VIP_CONN_HANDLE handle = nullptr;
};

Request wait_for_request(Nic& nic, Address local, VIP_ULONG timeout = patience_ms) {
    Request found;
    found.code = VipConnectWait(nic.handle(), local.net(), timeout, found.remote.net(),
                                &found.attributes, &found.handle);
    return found;
}

/// Tells role `client` where to ask, and waits for it.
Request next_request(Role& me, std::string_view client) {
    const Address local = me.nic().address(me.discriminator("server"));
    me.tell(client, local);
    Request found = wait_for_request(me.nic(), local);
    must(found.code, "VipConnectWait");
    return found;
}

VIP_RETURN ask(Role& me, End& end, const Address& remote, VIP_ULONG timeout = patience_ms) {
    VIP_VI_ATTRIBUTES attributes;
    return request(me, end.vi(), me.nic().address("client"), remote, &attributes, timeout);
}

VIPL_TEST(Vipl_4_19_wait_tells_the_requesters_address_and_writes_no_byte_more, nothing) {
    test.role("server", [](Role& me) {
        Address local = me.nic().address(me.discriminator("server"));
        for (const std::size_t length : {30U, 1U, 0U}) {
            End end(me);
            me.tell("client", local);
            AddressRoom<40> room;  // as old programs have it on their stacks
            VIP_VI_ATTRIBUTES attributes;
            VIP_CONN_HANDLE connection = nullptr;
            OK(VipConnectWait(me.nic().handle(), local.net(), patience_ms, room.net(), &attributes,
                              &connection));
            EXPECT_EQ(6, room.net()->HostAddressLen);
            EXPECT_EQ(length, room.net()->DiscriminatorLen);
            EXPECT_EQ(me.hear<Address>("client").host(), room.host());
            EXPECT_EQ(std::string(length, 'd'), room.discriminator());
            EXPECT_TRUE(room.intact_beyond(4 + 6 + length));
            OK(VipConnectAccept(connection, end.vi()));
            me.meet();
        }
    });
    test.role("client", [](Role& me) {
        for (const std::size_t length : {30U, 1U, 0U}) {
            End end(me);
            const auto server = me.hear<Address>("server");
            const Address own = me.nic().address(std::string(length, 'd'));
            me.tell("server", own);
            VIP_VI_ATTRIBUTES attributes;
            OK(request(me, end.vi(), own, server, &attributes));
            me.meet();
        }
    });
}

VIPL_TEST(Vipl_4_19_host_bytes_of_the_local_address_may_be_junk, nothing) {
    test.role("server", [](Role& me) {
        End end(me);
        const std::string discriminator = me.discriminator("server");
        me.tell("client", me.nic().address(discriminator));
        const Request found =
            wait_for_request(me.nic(), Address("\xFF\xFE\x00\x01\x02\x03", discriminator));
        OK(found.code);
        OK(VipConnectAccept(found.handle, end.vi()));
        me.meet();
    });
    test.role("client", [](Role& me) {
        End end(me);
        EXPECT_EQ(VIP_SUCCESS, ask(me, end, me.hear<Address>("server")));
        me.meet();
    });
}

VIPL_TEST(Vipl_4_19_wait_times_out_and_writes_nothing, nothing) {
    test.role("only", [](Role& me) {
        const Address local = me.nic().address(me.discriminator("server"));
        for (const VIP_ULONG timeout : {0UL, 1UL, 30UL}) {
            const Request found = wait_for_request(me.nic(), local, timeout);
            EXPECT_EQ(VIP_TIMEOUT, found.code);
            EXPECT_TRUE(found.remote.intact_beyond(0));
            EXPECT_EQ(nullptr, found.handle);
        }
    });
}

VIPL_TEST(Vipl_1_9_discriminators_have_up_to_64_bytes_of_any_value, nothing) {
    const auto discriminators = [](const Role& me) {
        const std::string id = me.discriminator("");
        std::vector<std::string> all;
        for (const char filler : {'\0', '\xFF', 'x'})
            all.push_back(id + std::string(64 - id.size(), filler));
        all.push_back(std::string(64 - id.size(), '\0') + id);
        return all;
    };
    test.role("server", [=](Role& me) {
        for (const std::string& discriminator : discriminators(me)) {
            End end(me);
            const Address local = me.nic().address(discriminator);
            me.tell("client", local);
            const Request found = wait_for_request(me.nic(), local);
            OK(found.code);
            EXPECT_EQ(discriminator, found.remote.discriminator());
            OK(VipConnectAccept(found.handle, end.vi()));
            me.meet();
        }
    });
    test.role("client", [=](Role& me) {
        for (const std::string& discriminator : discriminators(me)) {
            End end(me);
            VIP_VI_ATTRIBUTES attributes;
            EXPECT_EQ(VIP_SUCCESS, request(me, end.vi(), me.nic().address(discriminator),
                                           me.hear<Address>("server"), &attributes));
            me.meet();
        }
    });
}

VIPL_TEST(Vipl_4_20_only_the_whole_remote_discriminator_matches, nothing) {
    test.role("server", [](Role& me) {
        const std::string name = me.discriminator("server");
        const Address local = me.nic().address(name);
        End end(me);
        me.tell("client", local);
        const Request found = wait_for_request(me.nic(), local);
        OK(found.code);
        OK(VipConnectAccept(found.handle, end.vi()));
        me.meet();
    });
    test.role("client", [](Role& me) {
        const auto server = me.hear<Address>("server");
        const std::string name(server.discriminator());
        End end(me);
        VIP_VI_ATTRIBUTES attributes;
        for (const std::string& near :
             {name + "x", name + std::string(1, '\0'), name.substr(0, name.size() - 1),
              std::string(), name.substr(1)}) {
            Address wrong(server.host(), near);
            // Our own discriminator takes no part, even if it is the right one.
            Address own = me.nic().address(name);
            EXPECT_EQ(VIP_NO_MATCH,
                      VipConnectRequest(end.vi(), own.net(), wrong.net(), patience_ms, &attributes))
                << near;
        }
        EXPECT_EQ(VIP_SUCCESS, ask(me, end, server));
        me.meet();
    });
}

VIPL_TEST(Vipl_4_20_timeout_zero_is_refused, nothing) {
    test.role("only", [](Role& me) {
        End end(me);
        Address own = me.nic().address(me.discriminator("x"));
        VIP_VI_ATTRIBUTES attributes;
        EXPECT_EQ(VIP_INVALID_PARAMETER,
                  VipConnectRequest(end.vi(), own.net(), own.net(), 0, &attributes));
        EXPECT_EQ(VIP_STATE_IDLE, end.state());
    });
}

VIPL_TEST(Vipl_4_20_nobody_waiting_is_no_match_promptly_and_cheaply, nothing) {
    test.role("server", [](Role& me) {
        me.tell("client", me.nic().address(me.discriminator("nobody")));
        me.meet();
    });
    test.role("client", [](Role& me) {
        End end(me);
        Address own = me.nic().address("client");
        auto nobody = me.hear<Address>("server");
        VIP_VI_ATTRIBUTES attributes;
        // Patience for each would last for hours.
        for (int n = 0; n < 100; ++n)
            require(VipConnectRequest(end.vi(), own.net(), nobody.net(), patience_ms,
                                      &attributes) == VIP_NO_MATCH,
                    "NO_MATCH");
        EXPECT_EQ(VIP_STATE_IDLE, end.state());
        me.meet();
    });
}

VIPL_TEST(Vipl_4_20_no_such_host_is_not_reachable, nothing) {
    test.role("only", [](Role& me) {
        End end(me);
        Address own = me.nic().address("client");
        Address nowhere({"\xC0\x00\x02\x01\x00\x01", 6}, me.discriminator("x"));  // RFC 5737
        VIP_VI_ATTRIBUTES attributes;
        EXPECT_EQ(VIP_NOT_REACHABLE,
                  VipConnectRequest(end.vi(), own.net(), nowhere.net(), patience_ms, &attributes));
        EXPECT_EQ(VIP_STATE_IDLE, end.state());
    });
}

VIPL_TEST(Vipl_4_20_a_request_that_is_not_answered_times_out, nothing) {
    test.role("server", [](Role& me) {
        End end(me);
        const Request found = next_request(me, "client");
        me.tell("client", 'h');
        me.hear<char>("client");
        expect_withdrawn(me, end, found.handle);
        me.meet();
    });
    test.role("client", [](Role& me) {
        End end(me);
        request_unanswered(me, end.vi(), me.nic().address("client"), me.hear<Address>("server"),
                           "server");
        EXPECT_EQ(VIP_STATE_IDLE, end.state());
        me.tell("server", 'x');
        me.meet();
    });
}

VIPL_TEST(Vipl_4_20_a_rejected_request_is_reject_and_its_handle_is_used_up, nothing) {
    test.role("server", [](Role& me) {
        End end(me);
        const Request found = next_request(me, "client");
        EXPECT_EQ(VIP_SUCCESS, VipConnectReject(found.handle));
        EXPECT_EQ(VIP_INVALID_PARAMETER, VipConnectReject(found.handle));
        EXPECT_EQ(VIP_INVALID_PARAMETER, VipConnectAccept(found.handle, end.vi()));
        me.meet();
    });
    test.role("client", [](Role& me) {
        End end(me);
        EXPECT_EQ(VIP_REJECT, ask(me, end, me.hear<Address>("server")));
        EXPECT_EQ(VIP_STATE_IDLE, end.state());
        me.meet();
    });
}

VIPL_TEST(Vipl_4_19_an_accepted_request_has_its_handle_used_up, nothing) {
    test.role("server", [](Role& me) {
        End end(me);
        End other(me);
        const Request found = next_request(me, "client");
        EXPECT_EQ(VIP_SUCCESS, VipConnectAccept(found.handle, end.vi()));
        EXPECT_EQ(VIP_INVALID_PARAMETER, VipConnectAccept(found.handle, other.vi()));
        EXPECT_EQ(VIP_INVALID_PARAMETER, VipConnectReject(found.handle));
        end.expect("client", 5);
    });
    test.role("client", [](Role& me) {
        End end(me);
        EXPECT_EQ(VIP_SUCCESS, ask(me, end, me.hear<Address>("server")));
        end.say("server", 5);
        me.wait_for_end_of("server");
    });
}

VIPL_TEST(Vipl_4_21_a_vi_that_does_not_agree_is_refused_and_another_may_be_tried, nothing) {
    test.role("server", [](Role& me) {
        End unreliable(me, {.level = VIP_SERVICE_UNRELIABLE});
        End reception(me, {.level = VIP_SERVICE_RELIABLE_RECEPTION});
        End shorter(me, {.transfer_max = 65535});
        End longer(me, {.transfer_max = 65537});
        End busy(me);
        End right(me, {.rdma_write = false});
        const Piece room = shorter.take(8);
        shorter.receive(room);
        OK(VipConnectAccept(next_request(me, "client").handle, busy.vi()));

        const VIP_CONN_HANDLE connection = next_request(me, "client").handle;
        EXPECT_EQ(VIP_INVALID_RELIABILITY_LEVEL, VipConnectAccept(connection, unreliable.vi()));
        EXPECT_EQ(VIP_INVALID_RELIABILITY_LEVEL, VipConnectAccept(connection, reception.vi()));
        EXPECT_EQ(VIP_INVALID_MTU, VipConnectAccept(connection, shorter.vi()));
        EXPECT_EQ(VIP_INVALID_MTU, VipConnectAccept(connection, longer.vi()));
        EXPECT_EQ(VIP_INVALID_STATE, VipConnectAccept(connection, busy.vi()));
        for (End* end : {&unreliable, &reception, &shorter, &longer})
            EXPECT_EQ(VIP_STATE_IDLE, end->state());
        EXPECT_EQ(VIP_STATE_CONNECTED, busy.state());
        EXPECT_FALSE(shorter.receive_queue_empty()) << "what was posted stays";
        EXPECT_EQ(VIP_SUCCESS, VipConnectAccept(connection, right.vi()));
        right.expect("client", 6);
        busy.expect("client", 7);
    });
    test.role("client", [](Role& me) {
        End first(me);
        End end(me);
        EXPECT_EQ(VIP_SUCCESS, ask(me, first, me.hear<Address>("server")));
        EXPECT_EQ(VIP_SUCCESS, ask(me, end, me.hear<Address>("server")));
        end.say("server", 6);
        first.say("server", 7);
        me.wait_for_end_of("server");
    });
}

VIPL_TEST(Vipl_4_19_several_wait_at_once_with_different_discriminators, nothing) {
    constexpr int waiters = 8;
    const auto name = [](const Role& me, int n) {
        return me.discriminator("waiter " + std::to_string(n));
    };
    test.role("server", [=](Role& me) {
        Nic& nic = me.nic();
        me.tell("client", nic.address(""));
        std::vector<std::unique_ptr<End>> ends;
        std::vector<std::unique_ptr<Thread>> threads;
        for (int n = 0; n < waiters; ++n) {
            ends.push_back(std::make_unique<End>(me));
            threads.push_back(std::make_unique<Thread>(me, [&, n] {
                const Request found = wait_for_request(nic, nic.address(name(me, n)));
                OK(found.code);
                EXPECT_EQ(std::to_string(n), found.remote.discriminator());
                OK(VipConnectAccept(found.handle, ends[static_cast<std::size_t>(n)]->vi()));
            }));
        }
        for (auto& thread : threads) thread->join();
        me.meet();
    });
    test.role("client", [=](Role& me) {
        const auto server = me.hear<Address>("server");
        std::vector<std::unique_ptr<End>> ends;
        for (int n = waiters - 1; n >= 0; --n) {
            ends.push_back(std::make_unique<End>(me));
            VIP_VI_ATTRIBUTES attributes;
            OK(request(me, ends.back()->vi(), me.nic().address(std::to_string(n)),
                       {server.host(), name(me, n)}, &attributes));
        }
        me.meet();
    });
}

VIPL_TEST(Vipl_4_19_a_request_goes_to_exactly_one_of_several_waiters, nothing) {
    constexpr int waiters = 6;
    test.role("server", [](Role& me) {
        Nic& nic = me.nic();
        const Address local = nic.address(me.discriminator("same"));
        me.tell("client", local);
        std::vector<std::unique_ptr<End>> ends;
        std::string found[waiters];
        {
            std::vector<std::unique_ptr<Thread>> threads;
            for (int n = 0; n < waiters; ++n) {
                ends.push_back(std::make_unique<End>(me));
                threads.push_back(std::make_unique<Thread>(me, [&, n, vi = ends.back()->vi()] {
                    const Request request = wait_for_request(nic, local);
                    OK(request.code);
                    found[n] = request.remote.discriminator();
                    OK(VipConnectAccept(request.handle, vi));
                }));
            }
            for (auto& thread : threads) thread->join();
        }
        EXPECT_EQ(std::size_t{waiters}, std::set<std::string>(found, found + waiters).size());
        me.meet();
    });
    test.role("client", [](Role& me) {
        const auto server = me.hear<Address>("server");
        std::vector<std::unique_ptr<End>> ends;
        for (int n = 0; n < waiters; ++n) {
            ends.push_back(std::make_unique<End>(me));
            VIP_VI_ATTRIBUTES attributes;
            OK(request(me, ends.back()->vi(), me.nic().address(std::to_string(n)), server,
                       &attributes));
        }
        me.meet();
    });
}

VIPL_TEST(Vipl_4_19_a_request_is_answered_while_another_one_is_kept_waiting, nothing) {
    test.role("server", [](Role& me) {
        End end(me);
        End later(me);
        const Request kept = next_request(me, "patient");
        const Request quick = next_request(me, "quick");
        OK(VipConnectAccept(quick.handle, end.vi()));
        end.expect("quick", 1);
        OK(VipConnectAccept(kept.handle, later.vi()));
        later.expect("patient", 2);
    });
    for (const char* name : {"patient", "quick"}) {
        test.role(name, [=](Role& me) {
            End end(me);
            EXPECT_EQ(VIP_SUCCESS, ask(me, end, me.hear<Address>("server")));
            end.say("server", name == std::string("quick") ? 1 : 2);
            me.wait_for_end_of("server");
        });
    }
}

VIPL_TEST(Vipl_4_19_a_nic_connects_to_itself, nothing) {
    test.role("only", [](Role& me) {
        Nic& nic = me.nic();
        const Address local = nic.address(me.discriminator("self"));
        End server(me);
        End client(me);
        Thread accepter(me, [&] {
            const Request found = wait_for_request(nic, local);
            OK(found.code);
            OK(VipConnectAccept(found.handle, server.vi()));
        });
        EXPECT_EQ(VIP_SUCCESS, ask(me, client, local));
        accepter.join();
        const Piece room = server.take(1000);
        server.receive(room);
        client.send(client.filled(1000, 3));
        EXPECT_EQ(1000U, server.received()->CS.Length);
        EXPECT_TRUE(holds(room, 3));
        client.sent();
    });
}

VIPL_TEST(Vipl_3_the_same_two_vis_connect_again_and_again, nothing) {
    constexpr int rounds = 50;
    test.role("server", [](Role& me) {
        End end(me);
        for (int round = 0; round < rounds; ++round) {
            end.accept("client");
            end.expect("client", round);
            me.meet();
            end.disconnect();
        }
    });
    test.role("client", [](Role& me) {
        End end(me);
        for (int round = 0; round < rounds; ++round) {
            end.connect("server");
            end.say("server", round);
            me.meet();
            end.disconnect();
        }
    });
}

VIPL_TEST(Vipl_4_19_many_vis_of_two_nics_are_connected_at_once, nothing) {
    constexpr int count = 200;
    const auto act = [](Role& me, bool accepts, const char* peer) {
        std::vector<std::unique_ptr<End>> ends;
        for (int n = 0; n < count; ++n) {
            ends.push_back(std::make_unique<End>(me, Wants{.memory = 4096}));
            accepts ? ends.back()->accept(peer) : ends.back()->connect(peer);
        }
        for (int n = 0; n < count; ++n) {
            End& end = *ends[static_cast<std::size_t>(n)];
            accepts ? end.expect(peer, n) : end.say(peer, n);
        }
        me.meet();
    };
    test.role("server", [=](Role& me) { act(me, true, "client"); });
    test.role("client", [=](Role& me) { act(me, false, "server"); });
}

}  // namespace
}  // namespace conformance::connecting_test
