// What <via/via.h> adds to VIPL (VIPL 5).
#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <unistd.h>
#include <via/via.h>

#include <atomic>
#include <cstring>
#include <string>
#include <thread>

#include "harness/end.hpp"

namespace conformance::extensions_test {
namespace {

// Private data ------------------------------------------------------------------------------------

std::string data_of(VIP_VI_HANDLE vi) {
    char bytes[VIA_PRIVATE_DATA_MAX];
    VIP_UINT32 length = sizeof bytes;
    OK(ViaQueryPrivateData(vi, bytes, &length));
    require(length <= sizeof bytes, "no more than can be");
    return {bytes, length};
}

/// Listens where the client is told to ask. There is no room for data; `length` is how much came.
VIP_CONN_HANDLE request_of_client(Role& me, VIP_UINT32& length) {
    Address local = me.nic().address(me.discriminator("data"));
    me.tell("client", local);
    Address remote;
    VIP_VI_ATTRIBUTES attributes;
    VIP_CONN_HANDLE connection = nullptr;
    OK(ViaConnectWait(me.nic().handle(), local.net(), patience_ms, remote.net(), &attributes,
                      &connection, nullptr, &length));
    return connection;
}

VIPL_TEST(Vipl_5_private_data_with_request_and_acceptance, nothing) {
    test.role("server", [](Role& me) {
        End end(me);
        Address local = me.nic().address(me.discriminator("data"));
        me.tell("client", local);
        Address remote;
        VIP_VI_ATTRIBUTES attributes;
        VIP_CONN_HANDLE connection;
        char bytes[300];
        VIP_UINT32 length = sizeof bytes;
        OK(ViaConnectWait(me.nic().handle(), local.net(), patience_ms, remote.net(), &attributes,
                          &connection, bytes, &length));
        EXPECT_EQ("hello", std::string(bytes, length));
        const std::string answer(VIA_PRIVATE_DATA_MAX, 'y');
        EXPECT_EQ(VIP_INVALID_PARAMETER,
                  ViaConnectAccept(connection, end.vi(), answer.data(), VIA_PRIVATE_DATA_MAX + 1));
        EXPECT_EQ(VIP_INVALID_PARAMETER, ViaConnectAccept(connection, end.vi(), nullptr, 1));
        OK(ViaConnectAccept(connection, end.vi(), answer.data(), VIA_PRIVATE_DATA_MAX));
        EXPECT_EQ("", data_of(end.vi())) << "it asked nobody";
        me.meet();
    });
    test.role("client", [](Role& me) {
        End end(me);
        auto server = me.hear<Address>("server");
        VIP_VI_ATTRIBUTES attributes;
        Address local = me.nic().address("from");
        VIP_RETURN code = VIP_NO_MATCH;
        while (code == VIP_NO_MATCH)
            code = ViaConnectRequest(end.vi(), local.net(), server.net(), patience_ms, &attributes,
                                     "hello", 5);
        OK(code);
        EXPECT_EQ(std::string(VIA_PRIVATE_DATA_MAX, 'y'), data_of(end.vi()));
        char few[3];
        VIP_UINT32 length = sizeof few;
        OK(ViaQueryPrivateData(end.vi(), few, &length));
        EXPECT_EQ(VIP_UINT32{VIA_PRIVATE_DATA_MAX}, length) << "what came, not what fitted";
        length = 0;
        OK(ViaQueryPrivateData(end.vi(), nullptr, &length));
        me.meet();
    });
}

/// The name is held by a VI whose peer never comes; requests are taken only later.
VIPL_TEST(Vipl_5_a_request_waits_for_its_listener_where_the_name_is_held, nothing) {
    test.role("server", [](Role& me) {
        End holder(me);
        Address local = me.nic().address(me.discriminator("held"));
        Address nobody = me.nic().address(me.discriminator("held, by nobody else"));
        OK(VipConnectPeerRequest(holder.vi(), local.net(), nobody.net(), VIP_INFINITE));
        me.tell("client", local);
        me.hear<int>("client");
        Address remote;
        VIP_VI_ATTRIBUTES attributes;
        VIP_CONN_HANDLE connection;
        OK(VipConnectWait(me.nic().handle(), local.net(), patience_ms, remote.net(), &attributes,
                          &connection));
        OK(VipConnectReject(connection));
        me.tell("client", nobody);
        me.meet();
    });
    test.role("client", [](Role& me) {
        End end(me);
        auto server = me.hear<Address>("server");
        Address local = me.nic().address("from");
        VIP_VI_ATTRIBUTES attributes;
        EXPECT_EQ(VIP_NO_MATCH,
                  VipConnectRequest(end.vi(), local.net(), server.net(), VIP_INFINITE, &attributes))
            << "VIPL's own call does not wait";
        me.tell("server", 1);
        EXPECT_EQ(VIP_REJECT, ViaConnectRequest(end.vi(), local.net(), server.net(), VIP_INFINITE,
                                                &attributes, nullptr, 0));
        auto nobody = me.hear<Address>("server");
        EXPECT_EQ(VIP_NO_MATCH, ViaConnectRequest(end.vi(), local.net(), nobody.net(), VIP_INFINITE,
                                                  &attributes, nullptr, 0));
        me.meet();
    });
}

VIPL_TEST(Vipl_5_private_data_with_rejection, nothing) {
    test.role("server", [](Role& me) {
        VIP_UINT32 length = 0;
        VIP_CONN_HANDLE connection = request_of_client(me, length);
        EXPECT_EQ(0U, length);
        OK(ViaConnectReject(connection, "no room", 7));
        me.meet();
    });
    test.role("client", [](Role& me) {
        End end(me);
        auto server = me.hear<Address>("server");
        VIP_VI_ATTRIBUTES attributes;
        EXPECT_EQ(VIP_REJECT, request(me, end.vi(), me.nic().address("from"), server, &attributes));
        EXPECT_EQ("no room", data_of(end.vi()));
        EXPECT_EQ(VIP_STATE_IDLE, end.state());
        me.meet();
    });
}

VIPL_TEST(Vipl_5_private_data_between_peers, nothing) {
    const auto act = [](Role& me, const char* other, const char* word, const char* data) {
        End end(me);
        Address local = me.nic().address(me.discriminator(word));
        me.tell(other, local);
        auto remote = me.hear<Address>(other);
        OK(ViaConnectPeerRequest(end.vi(), local.net(), remote.net(), patience_ms, data,
                                 static_cast<VIP_UINT32>(std::strlen(data))));
        VIP_VI_ATTRIBUTES attributes;
        OK(VipConnectPeerWait(end.vi(), &attributes));
        EXPECT_EQ(std::string("from ") + other, data_of(end.vi()));
        me.meet();
    };
    test.role("left", [act](Role& me) { act(me, "right", "l", "from left"); });
    test.role("right", [act](Role& me) { act(me, "left", "r", "from right"); });
}

// Credits -----------------------------------------------------------------------------------------

VIPL_TEST(Vipl_5_with_credits_a_send_waits_for_a_receive, nothing) {
    test.role("server", [](Role& me) {
        End end(me);
        OK(ViaSetCredits(end.vi(), VIP_TRUE));
        end.accept("client");
        VIP_BOOLEAN agreed = VIP_FALSE;
        VIP_UINT32 left = 7;
        OK(ViaQueryCredits(end.vi(), &agreed, &left));
        EXPECT_EQ(VIP_TRUE, agreed);
        EXPECT_EQ(0U, left);
        EXPECT_EQ(VIP_INVALID_STATE, ViaSetCredits(end.vi(), VIP_FALSE));
        me.meet();  // the client has sent, and nothing was lost for want of a receive
        for (int n = 0; n < 100; ++n) {
            end.receive(end.take(8));
            end.received();
        }
        me.meet();
    });
    test.role("client", [](Role& me) {
        End end(me);
        OK(ViaSetCredits(end.vi(), VIP_TRUE));
        end.connect("server");
        for (int n = 0; n < 100; ++n) end.send(end.take(8));
        VIP_DESCRIPTOR* none;
        for (int n = 0; n < 100; ++n) EXPECT_EQ(VIP_NOT_DONE, VipSendDone(end.vi(), &none));
        EXPECT_EQ(VIP_STATE_CONNECTED, end.state());
        me.meet();
        for (int n = 0; n < 100; ++n) end.sent();
        me.meet();
    });
}

VIPL_TEST(Vipl_5_credits_need_both_sides_and_a_reliable_vi, nothing) {
    test.role("server", [](Role& me) {
        End end(me);
        end.accept("client");
        me.meet();
    });
    test.role("client", [](Role& me) {
        Wants unreliable;
        unreliable.level = VIP_SERVICE_UNRELIABLE;
        End other(me, unreliable);
        EXPECT_EQ(VIP_INVALID_RELIABILITY_LEVEL, ViaSetCredits(other.vi(), VIP_TRUE));
        OK(ViaSetCredits(other.vi(), VIP_FALSE));
        End end(me);
        OK(ViaSetCredits(end.vi(), VIP_TRUE));
        end.connect("server");
        VIP_BOOLEAN agreed = VIP_TRUE;
        VIP_UINT32 left = 7;
        OK(ViaQueryCredits(end.vi(), &agreed, &left));
        EXPECT_EQ(VIP_FALSE, agreed);
        EXPECT_EQ(0U, left);
        me.meet();
    });
}

VIPL_TEST(Vipl_5_a_new_vi_has_no_credits_and_no_data_of_one_that_was_destroyed, nothing) {
    static constexpr int vis = 100;
    test.role("server", [](Role& me) {
        {
            End end(me);
            OK(ViaSetCredits(end.vi(), VIP_TRUE));
            VIP_UINT32 length = 0;
            VIP_CONN_HANDLE connection = request_of_client(me, length);
            OK(ViaConnectAccept(connection, end.vi(), "secret", 6));
            me.meet();
        }
        me.meet();
        for (int n = 0; n < vis; ++n) {
            End end(me);
            end.accept("client");
            me.meet();
        }
    });
    test.role("client", [](Role& me) {
        {
            End end(me);
            OK(ViaSetCredits(end.vi(), VIP_TRUE));
            auto server = me.hear<Address>("server");
            VIP_VI_ATTRIBUTES attributes;
            OK(request(me, end.vi(), me.nic().address("from"), server, &attributes));
            EXPECT_EQ("secret", data_of(end.vi()));
            me.meet();
        }
        me.meet();
        for (int n = 0; n < vis; ++n) {  // one of them takes its place
            End end(me);
            EXPECT_EQ("", data_of(end.vi())) << n;
            end.connect("server");
            VIP_BOOLEAN agreed = VIP_TRUE;
            VIP_UINT32 left = 7;
            OK(ViaQueryCredits(end.vi(), &agreed, &left));
            EXPECT_EQ(VIP_FALSE, agreed) << n;
            me.meet();
        }
    });
}

// Several at once ---------------------------------------------------------------------------------

VIPL_TEST(Vipl_5_several_posted_and_taken_at_once, nothing) {
    static constexpr VIP_UINT32 count = 64;
    test.role("server", [](Role& me) {
        End end(me);
        VIP_DESCRIPTOR* posted[count];
        VIP_MEM_HANDLE handles[count];
        for (VIP_UINT32 n = 0; n < count; ++n) {
            posted[n] = end.memory().descriptor();
            const Piece piece = end.take(8);
            make_receive(posted[n], Pieces(&piece, 1));
            handles[n] = end.memory().handle();
        }
        VIP_UINT32 done = 0;
        OK(ViaPostRecvMany(end.vi(), posted, handles, count, &done));
        EXPECT_EQ(count, done);
        end.accept("client");
        VIP_DESCRIPTOR* taken[count];
        for (VIP_UINT32 all = 0; all < count;) {
            VIP_UINT32 now = 0;
            const VIP_RETURN code = ViaRecvDoneMany(end.vi(), taken, count, &now);
            if (code == VIP_NOT_DONE) {
                EXPECT_EQ(0U, now);
                me.pause();
                continue;
            }
            OK(code);
            for (VIP_UINT32 n = 0; n < now; ++n) EXPECT_EQ(posted[all + n], taken[n]);
            all += now;
        }
        VIP_UINT32 now = 7;
        EXPECT_EQ(VIP_DESCRIPTOR_ERROR, ViaRecvDoneMany(end.vi(), taken, count, &now));
        EXPECT_EQ(0U, now) << "nothing is posted";
        me.meet();
    });
    test.role("client", [](Role& me) {
        End end(me);
        end.connect("server");
        VIP_DESCRIPTOR* posted[count];
        VIP_MEM_HANDLE handles[count];
        for (VIP_UINT32 n = 0; n < count; ++n) {
            posted[n] = end.memory().descriptor();
            handles[n] = end.memory().handle();
        }
        handles[count - 1] = 0;
        VIP_UINT32 done = 0;
        EXPECT_EQ(VIP_INVALID_PARAMETER, ViaPostSendMany(end.vi(), posted, handles, count, &done));
        EXPECT_EQ(count - 1, done) << "those before the bad one";
        end.post_send(posted[count - 1]);
        VIP_DESCRIPTOR* taken[5];
        for (VIP_UINT32 all = 0; all < count;) {
            VIP_UINT32 now = 0;
            if (ViaSendDoneMany(end.vi(), taken, 5, &now) == VIP_NOT_DONE) {
                me.pause();
                continue;
            }
            EXPECT_LE(now, 5U);
            for (VIP_UINT32 n = 0; n < now; ++n) EXPECT_EQ(posted[all + n], taken[n]);
            all += now;
        }
        me.meet();
    });
}

VIPL_TEST(Vipl_5_taking_several_stops_at_an_error, nothing) {
    test.role("only", [](Role& me) {
        End end(me);
        end.send(end.take(8));  // not connected: flushed
        end.send(end.take(8));
        VIP_DESCRIPTOR* taken[4];
        VIP_UINT32 now = 0;
        EXPECT_EQ(VIP_DESCRIPTOR_ERROR, ViaSendDoneMany(end.vi(), taken, 4, &now));
        EXPECT_EQ(1U, now);
        EXPECT_TRUE(flushed(taken[0]));
        EXPECT_EQ(VIP_DESCRIPTOR_ERROR, ViaSendDoneMany(end.vi(), taken, 4, &now));
        EXPECT_EQ(1U, now);
    });
}

VIPL_TEST(Vipl_5_several_entries_at_once, nothing) {
    static constexpr VIP_UINT32 count = 20;
    test.role("server", [](Role& me) {
        Cq cq(me.nic(), 64);
        Wants wants;
        wants.receive_cq = &cq;
        End end(me, wants);
        for (VIP_UINT32 n = 0; n < count; ++n) end.receive(end.take(8));
        end.accept("client");
        for (VIP_UINT32 all = 0; all < count;) {
            VIA_COMPLETION entries[8];
            VIP_UINT32 now = 0;
            const VIP_RETURN code = ViaCQDoneMany(cq.handle(), entries, 8, &now);
            if (code == VIP_NOT_DONE) {
                me.pause();
                continue;
            }
            OK(code);
            EXPECT_LE(now, 8U);
            for (VIP_UINT32 n = 0; n < now; ++n) {
                EXPECT_EQ(end.vi(), entries[n].ViHandle);
                EXPECT_EQ(VIP_TRUE, entries[n].RecvQueue);
                VIP_DESCRIPTOR* taken = nullptr;
                OK(VipRecvDone(end.vi(), &taken));
            }
            all += now;
        }
        me.meet();
        end.disconnect();
    });
    test.role("client", [](Role& me) {
        End end(me);
        end.connect("server");
        for (VIP_UINT32 n = 0; n < count; ++n) end.send(end.take(8));
        for (VIP_UINT32 n = 0; n < count; ++n) end.sent();
        me.meet();
    });
}

// A descriptor per completion queue ---------------------------------------------------------------

bool readable(int descriptor, int timeout_ms) {
    pollfd one{descriptor, POLLIN, 0};
    return poll(&one, 1, timeout_ms) == 1;
}

VIPL_TEST(Vipl_5_queue_descriptor_tells_of_every_entry, real_threads) {
    static constexpr int messages = 300;
    test.role("server", [](Role& me) {
        Cq cq(me.nic(), 64);
        Wants wants;
        wants.receive_cq = &cq;
        End end(me, wants);
        int descriptor = -1;
        int again = -1;
        OK(ViaCQDescriptor(cq.handle(), &descriptor));
        OK(ViaCQDescriptor(cq.handle(), &again));
        EXPECT_EQ(descriptor, again);
        EXPECT_FALSE(readable(descriptor, 0));
        for (int n = 0; n < 32; ++n) end.receive(end.take(8));
        end.accept("client");
        // Edge-triggered, the hardest: an edge that is missed is never made up for.
        const int epoll = epoll_create1(EPOLL_CLOEXEC);
        epoll_event wanted{};
        wanted.events = EPOLLIN | EPOLLET;
        EXPECT_EQ(0, epoll_ctl(epoll, EPOLL_CTL_ADD, descriptor, &wanted));
        for (int received = 0; received < messages;) {
            epoll_event event;
            require(epoll_wait(epoll, &event, 1, patience_ms) == 1, "the descriptor is readable");
            Cq::Entry entry;
            while (cq.done(entry)) {
                VIP_DESCRIPTOR* taken = nullptr;
                OK(VipRecvDone(end.vi(), &taken));
                ++received;
                end.post_receive(taken);
                me.tell("client", received);
            }
        }
        EXPECT_FALSE(readable(descriptor, 0)) << "the queue is empty";
        close(epoll);
        me.meet();
        end.disconnect();
        EXPECT_TRUE(readable(descriptor, 0)) << "what was flushed";
        Cq::Entry entry;
        while (cq.done(entry)) {
            VIP_DESCRIPTOR* taken = nullptr;
            VipRecvDone(end.vi(), &taken);
        }
        EXPECT_FALSE(readable(descriptor, 0));
    });
    test.role("client", [](Role& me) {
        End end(me);
        end.connect("server");
        int heard = 0;
        for (int n = 0; n < messages; ++n) {
            // Sometimes one at a time, sometimes several on the way.
            while (n - heard >= (n % 3 == 0 ? 1 : 8)) heard = me.hear<int>("server");
            end.send(end.take(8));
            end.sent();
        }
        while (heard < messages) heard = me.hear<int>("server");
        me.meet();
    });
}

VIPL_TEST(Vipl_5_queue_descriptor_of_a_queue_that_has_entries_is_readable, real_threads) {
    test.role("only", [](Role& me) {
        Cq cq(me.nic(), 8);
        Wants wants;
        wants.send_cq = &cq;
        End end(me, wants);
        end.send(end.take(8));  // not connected: flushed at once
        int descriptor = -1;
        OK(ViaCQDescriptor(cq.handle(), &descriptor));
        EXPECT_TRUE(readable(descriptor, 0));
        cq.wait();
        VIP_DESCRIPTOR* taken = nullptr;
        EXPECT_EQ(VIP_DESCRIPTOR_ERROR, VipSendDone(end.vi(), &taken));
        EXPECT_FALSE(readable(descriptor, 0));
    });
}

/// Between two looks the program sleeps outside of the library, where no turn comes by.
VIPL_TEST(Vipl_4_16_queue_descriptor_tells_of_entries_that_waited_for_room, real_threads) {
    static constexpr int messages = 4;
    test.role("only", [](Role& me) {
        Cq cq(me.nic(), 1);
        Wants wants;
        wants.send_cq = &cq;
        End end(me, wants);
        int descriptor = -1;
        OK(ViaCQDescriptor(cq.handle(), &descriptor));
        for (int n = 0; n < messages; ++n) end.send(end.take(8));  // not connected: flushed at once
        me.nic().wait_error(me, cq.handle(), VIP_ERROR_VI_OVERRUN);
        for (int n = 0; n < messages; ++n) {
            require(readable(descriptor, patience_ms), "the next entry has entered");
            Cq::Entry entry;
            EXPECT_TRUE(cq.done(entry));
            VIP_DESCRIPTOR* taken = nullptr;
            EXPECT_EQ(VIP_DESCRIPTOR_ERROR, VipSendDone(end.vi(), &taken));
        }
        EXPECT_FALSE(readable(descriptor, 0));
    });
}

struct Gate {
    std::atomic<bool> inside{false};
    std::atomic<bool> open{false};
};

void wait_at_gate(VIP_PVOID context, VIP_NIC_HANDLE, VIP_VI_HANDLE, VIP_BOOLEAN) {
    Gate& gate = *static_cast<Gate*>(context);
    gate.inside = true;
    while (!gate.open) std::this_thread::yield();
}

/// Whoever destroys a queue waits for its handler, and another queue takes its place meanwhile.
VIPL_TEST(Vipl_5_queue_descriptor_is_not_closed_with_another_queue, real_threads) {
    test.role("only", [](Role& me) {
        Gate gate;
        VIP_CQ_HANDLE going = nullptr;
        OK(VipCreateCQ(me.nic().handle(), 4, &going));
        VIP_VI_ATTRIBUTES attributes = vi_attributes();
        VIP_VI_HANDLE vi = nullptr;
        OK(VipCreateVi(me.nic().handle(), &attributes, going, nullptr, &vi));
        End end(me);
        OK(VipCQNotify(going, &gate, wait_at_gate));
        VIP_DESCRIPTOR* const sent = end.send(end.take(8));  // a descriptor of ours for the other
        VIP_DESCRIPTOR* taken = nullptr;
        EXPECT_EQ(VIP_DESCRIPTOR_ERROR, VipSendDone(end.vi(), &taken));
        OK(VipPostSend(vi, sent, end.memory().handle()));  // not connected: flushed at once
        me.until([&] { return gate.inside.load(); }, "the handler runs");
        EXPECT_EQ(VIP_DESCRIPTOR_ERROR, VipSendDone(vi, &taken));
        OK(VipDestroyVi(vi));
        Thread destroys(me, [&] { OK(VipDestroyCQ(going)); });
        VIP_VI_HANDLE of = nullptr;
        VIP_BOOLEAN receive = VIP_FALSE;
        me.until([&] { return VipCQDone(going, &of, &receive) == VIP_INVALID_PARAMETER; },
                 "the queue is gone");
        Cq cq(me.nic(), 4);
        int descriptor = -1;
        OK(ViaCQDescriptor(cq.handle(), &descriptor));
        gate.open = true;
        destroys.join();
        EXPECT_NE(-1, fcntl(descriptor, F_GETFD)) << "the descriptor is open";
        Wants wants;
        wants.send_cq = &cq;
        End other(me, wants);
        other.send(other.take(8));
        EXPECT_TRUE(readable(descriptor, patience_ms));
        cq.wait();
        EXPECT_EQ(VIP_DESCRIPTOR_ERROR, VipSendDone(other.vi(), &taken));
    });
}

// Memory, counters, words -------------------------------------------------------------------------

VIPL_TEST(Vipl_5_one_handle_for_all_memory, nothing) {
    test.role("server", [](Role& me) {
        End end(me);
        VIP_MEM_HANDLE all = 0;
        OK(ViaRegisterAll(me.nic().handle(), &all));
        alignas(64) VIP_DESCRIPTOR on_stack{};
        char text[8] = {};
        on_stack.CS.SegCount = 1;
        on_stack.DS[0].Local.Data.Address = text;
        on_stack.DS[0].Local.Handle = all;
        on_stack.DS[0].Local.Length = sizeof text;
        OK(VipPostRecv(end.vi(), &on_stack, all));
        EXPECT_EQ(VIP_ERROR_RESOURCE, VipDeregisterMem(me.nic().handle(), nullptr, all));
        end.accept("client");
        EXPECT_EQ(&on_stack, end.received());
        EXPECT_EQ(0, std::memcmp(text, "anywhere", 8));
        VIP_MEM_ATTRIBUTES rdma{nullptr, VIP_TRUE, VIP_TRUE};
        EXPECT_EQ(VIP_INVALID_PARAMETER,
                  VipSetMemAttributes(me.nic().handle(), nullptr, all, &rdma))
            << "for local use only";
        OK(VipDeregisterMem(me.nic().handle(), nullptr, all));
        EXPECT_EQ(VIP_INVALID_PARAMETER, VipPostRecv(end.vi(), &on_stack, all));
        me.meet();
    });
    test.role("client", [](Role& me) {
        End end(me);
        end.connect("server");
        const Piece piece = end.take(8);
        std::memcpy(piece.data, "anywhere", 8);
        end.send(piece);
        end.sent();
        me.meet();
    });
}

VIPL_TEST(Vipl_5_counters_by_name, nothing) {
    test.role("only", [](Role& me) {
        VIP_UINT64 value = 7;
        VIP_UINT32 count = 0;
        for (; ViaCounterName(count) != nullptr; ++count) {
            EXPECT_NE(nullptr, ViaCounterText(count));
            OK(ViaReadCounter(me.nic().handle(), ViaCounterName(count), &value));
        }
        EXPECT_GT(count, 20U);
        EXPECT_EQ(nullptr, ViaCounterText(count));
        EXPECT_EQ(VIP_INVALID_PARAMETER, ViaReadCounter(me.nic().handle(), "nonsense", &value));
        VIP_UINT64 before = 0;
        OK(ViaReadCounter(me.nic().handle(), "vis_open", &before));
        End end(me);
        OK(ViaReadCounter(me.nic().handle(), "vis_open", &value));
        EXPECT_EQ(before + 1, value);
    });
}

VIPL_TEST(Vipl_5_errors_in_words, nothing) {
    test.role("only", [](Role&) {
        for (int code = 0; code <= VIP_ERROR_NOT_SUPPORTED; ++code)
            EXPECT_STRNE(ViaReturnText(static_cast<VIP_RETURN>(31)),
                         ViaReturnText(static_cast<VIP_RETURN>(code)));
        VIP_NIC_HANDLE nic = nullptr;
        char why[300];
        EXPECT_EQ(VIP_INVALID_PARAMETER, ViaOpenNic("nonsense", &nic, why, sizeof why));
        EXPECT_NE(nullptr, std::strstr(why, "nonsense")) << why;
        char few[5];
        EXPECT_EQ(VIP_INVALID_PARAMETER, ViaOpenNic("nonsense", &nic, few, sizeof few));
        EXPECT_EQ(4U, std::strlen(few));
        EXPECT_EQ(VIP_INVALID_PARAMETER, ViaOpenNic("nonsense", &nic, nullptr, 0));
    });
}

}  // namespace
}  // namespace conformance::extensions_test
