// Listeners that stand: what <via/via.h> adds to VIPL 4.19 (VIPL 5).
#include <fcntl.h>
#include <poll.h>
#include <via/via.h>

#include <list>
#include <string>

#include "harness/end.hpp"

namespace conformance::listener_test {
namespace {

bool readable(int descriptor, int timeout_ms) {
    pollfd one{descriptor, POLLIN, 0};
    return poll(&one, 1, timeout_ms) == 1;
}

class Standing {
public:
    Standing(Role& me, std::string_view word, VIP_ULONG backlog)
        : address_(me.nic().address(me.discriminator(word))) {
        OK(ViaCreateListener(me.nic().handle(), address_.net(), backlog, &handle_));
    }
    Standing(const Standing&) = delete;
    ~Standing() {
        if (handle_ != nullptr) ViaDestroyListener(handle_);
    }
    VIA_LISTENER_HANDLE handle() const { return handle_; }
    const Address& address() const { return address_; }
    void destroy() {
        OK(ViaDestroyListener(handle_));
        handle_ = nullptr;
    }

    struct Taken {
        VIP_RETURN code = VIP_SUCCESS;
        VIP_CONN_HANDLE connection = nullptr;
        std::string data;
        Address remote;
    };
    Taken take(VIP_ULONG timeout = patience_ms) const {
        Taken taken;
        VIP_VI_ATTRIBUTES attributes;
        char bytes[VIA_PRIVATE_DATA_MAX];
        VIP_UINT32 length = sizeof bytes;
        taken.code = ViaListenerWait(handle_, timeout, taken.remote.net(), &attributes,
                                     &taken.connection, bytes, &length);
        if (taken.code == VIP_SUCCESS) taken.data.assign(bytes, length);
        return taken;
    }

private:
    Address address_;
    VIA_LISTENER_HANDLE handle_ = nullptr;
};

/// VipConnectRequest, once.
VIP_RETURN ask(Role& me, End& end, Address remote, VIP_ULONG timeout = patience_ms) {
    VIP_VI_ATTRIBUTES attributes;
    Address local = me.nic().address("asker");
    return VipConnectRequest(end.vi(), local.net(), remote.net(), timeout, &attributes);
}

/// The same with private data, and again while nobody takes it.
VIP_RETURN insist(Role& me, End& end, Address remote, std::string_view data) {
    VIP_VI_ATTRIBUTES attributes;
    Address local = me.nic().address("asker");
    return ViaConnectRequest(end.vi(), local.net(), remote.net(), patience_ms, &attributes,
                             data.data(), static_cast<VIP_UINT32>(data.size()));
}

/// Nobody waits in a call when they come, but for one moment in many.
VIPL_TEST(Vipl_5_a_storm_of_requests_within_the_backlog_is_refused_nobody, nothing) {
    static constexpr int each = 24;
    const std::string clients[] = {"first", "second", "third"};
    test.role("server", [=](Role& me) {
        const Standing listener(me, "storm", each * std::size(clients));
        for (const std::string& client : clients) me.tell(client, listener.address());
        std::list<End> ends;
        Wants wants;
        wants.memory = 4096;
        for (std::size_t n = 0; n < each * std::size(clients); ++n) {
            const auto taken = listener.take();
            OK(taken.code);
            OK(VipConnectAccept(taken.connection, ends.emplace_back(me, wants).vi()));
        }
        me.meet();
    });
    for (const std::string& client : clients)
        test.role(client, [](Role& me) {
            const auto server = me.hear<Address>("server");
            Wants wants;
            wants.memory = 4096;
            std::list<End> ends;
            std::list<Thread> threads;
            for (int n = 0; n < each; ++n) {
                End& end = ends.emplace_back(me, wants);
                threads.emplace_back(me, [&] { EXPECT_EQ(VIP_SUCCESS, ask(me, end, server)); });
            }
            for (Thread& thread : threads) thread.join();
            me.meet();
        });
}

VIPL_TEST(Vipl_5_requests_that_wait_come_with_their_private_data_in_order, nothing) {
    test.role("server", [](Role& me) {
        const Standing listener(me, "data", 4);
        EXPECT_EQ(VIP_TIMEOUT, listener.take(0).code);
        EXPECT_EQ(VIP_TIMEOUT, listener.take(10).code);
        me.tell("client", listener.address());
        for (const std::string data : {"", "hello", "bye"}) {
            End end(me);
            const auto taken = listener.take();
            OK(taken.code);
            EXPECT_EQ(data, taken.data);
            EXPECT_EQ("asker", taken.remote.discriminator());
            if (data == "bye")
                OK(ViaConnectReject(taken.connection, "no", 2));
            else
                OK(ViaConnectAccept(taken.connection, end.vi(), "yes", 3));
            me.meet();
        }
    });
    test.role("client", [](Role& me) {
        const auto server = me.hear<Address>("server");
        for (const std::string data : {"", "hello", "bye"}) {
            End end(me);
            EXPECT_EQ(data == "bye" ? VIP_REJECT : VIP_SUCCESS, insist(me, end, server, data));
            char bytes[8];
            VIP_UINT32 length = sizeof bytes;
            OK(ViaQueryPrivateData(end.vi(), bytes, &length));
            EXPECT_EQ(data == "bye" ? "no" : "yes", std::string(bytes, length));
            me.meet();
        }
    });
}

VIPL_TEST(Vipl_5_a_request_beyond_the_backlog_is_no_match_or_insists, nothing) {
    test.role("server", [](Role& me) {
        const Standing listener(me, "full", 1);
        me.tell("client", listener.address());
        me.hear<int>("client");
        End first(me);
        End second(me);
        const auto one = listener.take();
        OK(one.code);
        OK(VipConnectAccept(one.connection, first.vi()));
        const auto other = listener.take();
        OK(other.code);
        EXPECT_EQ("insists", other.data);
        OK(VipConnectAccept(other.connection, second.vi()));
        me.meet();
    });
    test.role("client", [](Role& me) {
        const auto server = me.hear<Address>("server");
        End ends[] = {End(me), End(me), End(me)};
        std::atomic<int> outcomes[VIP_ERROR_NOT_SUPPORTED + 1]{};
        std::list<Thread> threads;
        for (int n = 0; n < 2; ++n)
            threads.emplace_back(me, [&, n] { ++outcomes[ask(me, ends[n], server)]; });
        me.until([&] { return outcomes[VIP_NO_MATCH] == 1; }, "one is refused");
        Thread insists(me, [&] { EXPECT_EQ(VIP_SUCCESS, insist(me, ends[2], server, "insists")); });
        me.tell("server", 1);
        for (Thread& thread : threads) thread.join();
        insists.join();
        EXPECT_EQ(1, outcomes[VIP_SUCCESS]);
        me.meet();
    });
}

/// What comes behind the news on the same way shows that they came.
VIPL_TEST(Vipl_5_who_gives_up_leaves_the_backlog, nothing) {
    test.role("server", [](Role& me) {
        const Standing listener(me, "patient", 1);
        const Standing other(me, "asked later", 1);
        me.tell("client", listener.address());
        me.tell("client", other.address());
        const auto taken = other.take();
        OK(taken.code);
        EXPECT_EQ(VIP_TIMEOUT, listener.take(0).code);
        OK(VipConnectReject(taken.connection));
        End end(me);
        const auto again = listener.take();
        OK(again.code);
        OK(VipConnectAccept(again.connection, end.vi()));
        me.meet();
    });
    test.role("client", [](Role& me) {
        const auto server = me.hear<Address>("server");
        const auto other = me.hear<Address>("server");
        End end(me);
        EXPECT_EQ(VIP_TIMEOUT, ask(me, end, server, 20));
        EXPECT_EQ(VIP_REJECT, ask(me, end, other));
        EXPECT_EQ(VIP_SUCCESS, ask(me, end, server));
        me.meet();
    });
}

VIPL_TEST(Vipl_5_who_is_killed_leaves_the_backlog, processes) {
    test.role("server", [](Role& me) {
        const Standing listener(me, "mourning", 1);
        int descriptor = -1;
        OK(ViaListenerDescriptor(listener.handle(), &descriptor));
        me.tell("killed", listener.address());
        require(readable(descriptor, patience_ms), "a request waits");
        me.tell("killed", 1);
        me.wait_for_end_of("killed");
        me.until([&] { return !readable(descriptor, 0); }, "it has left");
        EXPECT_EQ(VIP_TIMEOUT, listener.take(0).code);
    });
    test.role(
        "killed",
        [](Role& me) {
            const auto server = me.hear<Address>("server");
            End end(me);
            Thread asks(me, [&] { ask(me, end, server, VIP_INFINITE); });
            me.hear<int>("server");
            kill(getpid(), SIGKILL);
        },
        killed_by(SIGKILL));
}

VIPL_TEST(Vipl_5_a_listener_that_ends_refuses_those_who_wait, nothing) {
    test.role("server", [](Role& me) {
        Standing listener(me, "ends", 2);
        me.tell("client", listener.address());
        // In turn: that one of them came, both did.
        const Standing other(me, "also ends", 2);
        me.tell("client", other.address());
        const auto taken = other.take();
        OK(taken.code);
        listener.destroy();
        OK(VipConnectReject(taken.connection));
        me.meet();
    });
    test.role("client", [](Role& me) {
        const auto first = me.hear<Address>("server");
        const auto second = me.hear<Address>("server");
        End ends[] = {End(me), End(me)};
        Thread asks(me, [&] { EXPECT_EQ(VIP_NO_MATCH, ask(me, ends[0], first)); });
        me.until([&] { return ends[0].state() == VIP_STATE_CONNECT_PENDING; }, "it asks");
        EXPECT_EQ(VIP_REJECT, ask(me, ends[1], second));
        asks.join();
        me.meet();
    });
}

VIPL_TEST(Vipl_5_a_nic_that_closes_refuses_those_who_wait, own_nics) {
    test.role("server", [](Role& me) {
        Nic nic(me.device_name());
        Address local = nic.address(me.discriminator("closes"));
        VIA_LISTENER_HANDLE listener = nullptr;
        OK(ViaCreateListener(nic.handle(), local.net(), 3, &listener));
        me.tell("client", local);
        me.hear<int>("client");
        nic.close();
        VIP_UINT32 none = 0;
        Address remote;
        VIP_VI_ATTRIBUTES attributes;
        VIP_CONN_HANDLE connection = nullptr;
        EXPECT_EQ(VIP_INVALID_PARAMETER, ViaListenerWait(listener, 0, remote.net(), &attributes,
                                                         &connection, nullptr, &none));
        EXPECT_EQ(VIP_INVALID_PARAMETER, ViaDestroyListener(listener));
        me.meet();
    });
    test.role("client", [](Role& me) {
        const auto server = me.hear<Address>("server");
        End end(me);
        EXPECT_EQ(VIP_TIMEOUT, ask(me, end, server, 20)) << "it waits, and nobody takes it";
        Thread asks(me, [&] { EXPECT_NE(VIP_SUCCESS, ask(me, end, server)); });
        me.until([&] { return end.state() == VIP_STATE_CONNECT_PENDING; }, "it asks");
        me.tell("server", 1);
        asks.join();
        me.meet();
    });
}

/// Whether a request comes before the look or behind it, the descriptor tells of it.
VIPL_TEST(Vipl_5_a_listeners_descriptor_is_readable_while_requests_wait, real_threads) {
    static constexpr int requests = 40;
    test.role("server", [](Role& me) {
        const Standing listener(me, "watched", 8);
        const Standing other(me, "watched, but nobody asks", 8);
        int descriptor = -1;
        int again = -1;
        int of_other = -1;
        OK(ViaListenerDescriptor(listener.handle(), &descriptor));
        OK(ViaListenerDescriptor(listener.handle(), &again));
        OK(ViaListenerDescriptor(other.handle(), &of_other));
        EXPECT_EQ(descriptor, again);
        EXPECT_NE(descriptor, of_other);
        EXPECT_FALSE(readable(descriptor, 0));
        me.tell("client", listener.address());
        for (int taken = 0; taken < requests;) {
            require(readable(descriptor, patience_ms), "the descriptor tells of a request");
            EXPECT_TRUE(readable(descriptor, 0)) << "until it is taken";
            for (;;) {
                const auto request = listener.take(0);
                if (request.code == VIP_TIMEOUT) break;
                OK(request.code);
                OK(VipConnectReject(request.connection));
                ++taken;
            }
        }
        EXPECT_FALSE(readable(descriptor, 0));
        EXPECT_FALSE(readable(of_other, 0));
        me.meet();
    });
    test.role("client", [](Role& me) {
        const auto server = me.hear<Address>("server");
        End ends[] = {End(me), End(me)};
        const auto ask_often = [&](End& end) {
            for (int n = 0; n < requests / 2; ++n) EXPECT_EQ(VIP_REJECT, ask(me, end, server));
        };
        Thread asks(me, [&] { ask_often(ends[1]); });
        ask_often(ends[0]);
        asks.join();
        me.meet();
    });
}

VIPL_TEST(Vipl_5_the_descriptor_of_a_listener_tells_of_requests_that_waited_before, real_threads) {
    test.role("server", [](Role& me) {
        Standing listener(me, "late", 8);
        me.tell("client", listener.address());
        me.hear<int>("client");
        int descriptor = -1;
        OK(ViaListenerDescriptor(listener.handle(), &descriptor));
        require(readable(descriptor, patience_ms), "a request waited");
        listener.destroy();
        EXPECT_EQ(-1, fcntl(descriptor, F_GETFD)) << "it ends with the listener";
        me.meet();
    });
    test.role("client", [](Role& me) {
        const auto server = me.hear<Address>("server");
        End end(me);
        Thread asks(me, [&] { EXPECT_EQ(VIP_NO_MATCH, ask(me, end, server)); });
        me.until([&] { return end.state() == VIP_STATE_CONNECT_PENDING; }, "it asks");
        me.tell("server", 1);
        asks.join();
        me.meet();
    });
}

VIPL_TEST(Vipl_5_whoever_waits_is_woken_when_the_listener_ends, nothing) {
    test.role("only", [](Role& me) {
        Standing listener(me, "woken", 1);
        const VIA_LISTENER_HANDLE stale = listener.handle();
        std::atomic<int> woken{0};
        const auto wait = [&] {
            const VIP_RETURN code = listener.take(VIP_INFINITE).code;
            EXPECT_TRUE(code == VIP_INVALID_STATE || code == VIP_INVALID_PARAMETER) << code;
            ++woken;
        };
        Thread first(me, wait);
        Thread second(me, wait);
        me.pause();
        OK(ViaDestroyListener(stale));
        first.join();
        second.join();
        EXPECT_EQ(2, woken);
        EXPECT_EQ(VIP_INVALID_PARAMETER, ViaDestroyListener(stale));
        EXPECT_EQ(VIP_INVALID_PARAMETER, listener.take(0).code);
    });
}

VIPL_TEST(Vipl_5_listeners_of_the_same_name_take_requests_in_turn, nothing) {
    test.role("server", [](Role& me) {
        const Standing first(me, "shared", 4);
        const Standing second(me, "shared", 4);
        me.tell("client", first.address());
        for (int n = 0; n < 2; ++n)
            for (const Standing* listener : {&first, &second}) {
                const auto taken = listener->take();
                OK(taken.code);
                OK(VipConnectReject(taken.connection));
            }
        me.meet();
    });
    test.role("client", [](Role& me) {
        const auto server = me.hear<Address>("server");
        End end(me);
        for (int n = 0; n < 4; ++n) EXPECT_EQ(VIP_REJECT, ask(me, end, server));
        me.meet();
    });
}

VIPL_TEST(Vipl_5_what_a_listener_is_asked_for_is_checked, nothing) {
    test.role("only", [](Role& me) {
        Address local = me.nic().address(me.discriminator("checked"));
        VIA_LISTENER_HANDLE listener = nullptr;
        const VIP_NIC_HANDLE nic = me.nic().handle();
        EXPECT_EQ(VIP_INVALID_PARAMETER, ViaCreateListener(nic, local.net(), 0, &listener));
        EXPECT_EQ(VIP_INVALID_PARAMETER,
                  ViaCreateListener(nic, local.net(), VIA_BACKLOG_MAX + 1, &listener));
        EXPECT_EQ(VIP_INVALID_PARAMETER, ViaCreateListener(nic, nullptr, 1, &listener));
        EXPECT_EQ(VIP_INVALID_PARAMETER, ViaCreateListener(nic, local.net(), 1, nullptr));
        EXPECT_EQ(VIP_INVALID_PARAMETER, ViaCreateListener(nullptr, local.net(), 1, &listener));
        EXPECT_EQ(nullptr, listener);
        OK(ViaCreateListener(nic, local.net(), VIA_BACKLOG_MAX, &listener));
        EXPECT_EQ(VIP_INVALID_PARAMETER, ViaListenerDescriptor(listener, nullptr));
        EXPECT_EQ(VIP_INVALID_PARAMETER, ViaDestroyListener(nic));
        OK(ViaDestroyListener(listener));
    });
}

}  // namespace
}  // namespace conformance::listener_test
