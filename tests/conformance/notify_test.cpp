// Handlers that run once, when something completes (VIPL 4.17).
#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "harness/end.hpp"

namespace conformance::notify_test {
namespace {

/// What handlers heard. They run on a thread of the library.
struct Heard {
    std::atomic<int> count{0};
    VIP_NIC_HANDLE nic = nullptr;
    VIP_VI_HANDLE vi = nullptr;
    std::vector<VIP_DESCRIPTOR*> descriptors;
    VIP_BOOLEAN receive = 2;
    std::vector<int> order;
};

struct Numbered {
    Heard* heard;
    int number;
};

void on_descriptor(VIP_PVOID context, VIP_NIC_HANDLE nic, VIP_VI_HANDLE vi,
                   VIP_DESCRIPTOR* descriptor) {
    const Numbered& me = *static_cast<Numbered*>(context);
    me.heard->nic = nic;
    me.heard->vi = vi;
    me.heard->descriptors.push_back(descriptor);
    me.heard->order.push_back(me.number);
    ++me.heard->count;
}

void on_entry(VIP_PVOID context, VIP_NIC_HANDLE nic, VIP_VI_HANDLE vi, VIP_BOOLEAN receive) {
    const Numbered& me = *static_cast<Numbered*>(context);
    me.heard->nic = nic;
    me.heard->vi = vi;
    me.heard->receive = receive;
    me.heard->order.push_back(me.number);
    ++me.heard->count;
}

void wait_for(Role& me, const Heard& heard, int count, Where where = Where::current()) {
    me.until([&] { return heard.count == count; }, "a handler has run", where);
}

VIPL_TEST(Vipl_4_17_receive_notify_takes_the_descriptor_off, nothing) {
    test.role("server", [](Role& me) {
        End end(me);
        Heard heard;
        Numbered first{&heard, 1};
        VIP_DESCRIPTOR* posted = end.receive(end.take(64));
        OK(VipRecvNotify(end.vi(), &first, on_descriptor));
        end.accept("client");
        wait_for(me, heard, 1);
        EXPECT_EQ(me.nic().handle(), heard.nic);
        EXPECT_EQ(end.vi(), heard.vi);
        EXPECT_EQ(posted, heard.descriptors.front());
        EXPECT_EQ(10U, posted->CS.Length);
        EXPECT_TRUE(end.receive_queue_empty());
        me.meet();
    });
    test.role("client", [](Role& me) {
        End end(me);
        end.connect("server");
        end.send(end.filled(10, 1));
        end.sent();
        me.meet();
    });
}

VIPL_TEST(Vipl_4_17_what_is_complete_already_triggers_at_once, nothing) {
    test.role("only", [](Role& me) {
        End end(me);
        Heard heard;
        Numbered first{&heard, 1};
        VIP_DESCRIPTOR* sent = end.send(end.take(8));  // not connected: flushed at once
        OK(VipSendNotify(end.vi(), &first, on_descriptor));
        wait_for(me, heard, 1);
        EXPECT_EQ(sent, heard.descriptors.front());
        EXPECT_TRUE(flushed(sent));
        EXPECT_TRUE(end.send_queue_empty());
    });
}

VIPL_TEST(Vipl_4_17_several_run_in_order_one_completion_each, nothing) {
    static constexpr int messages = 8;
    test.role("server", [](Role& me) {
        End end(me);
        Heard heard;
        std::vector<Numbered> all;
        std::vector<VIP_DESCRIPTOR*> posted;
        for (int n = 0; n < messages; ++n) all.push_back({&heard, n});
        for (int n = 0; n < messages; ++n) posted.push_back(end.receive(end.take(64)));
        for (Numbered& one : all) OK(VipRecvNotify(end.vi(), &one, on_descriptor));
        end.accept("client");
        wait_for(me, heard, messages);
        EXPECT_EQ(posted, heard.descriptors);
        for (int n = 0; n < messages; ++n) EXPECT_EQ(n, heard.order[static_cast<std::size_t>(n)]);
        me.meet();
        EXPECT_EQ(messages, heard.count) << "each runs once";
    });
    test.role("client", [](Role& me) {
        End end(me);
        end.connect("server");
        for (int n = 0; n < messages; ++n) end.send(end.take(8));
        for (int n = 0; n < messages; ++n) end.sent();
        me.meet();
    });
}

VIPL_TEST(Vipl_4_17_queue_form_has_taken_the_entry, nothing) {
    test.role("server", [](Role& me) {
        Cq cq(me.nic(), 8);
        Wants wants;
        wants.receive_cq = &cq;
        End end(me, wants);
        Heard heard;
        Numbered first{&heard, 1};
        VIP_DESCRIPTOR* posted = end.receive(end.take(64));
        OK(VipCQNotify(cq.handle(), &first, on_entry));
        end.accept("client");
        wait_for(me, heard, 1);
        EXPECT_EQ(me.nic().handle(), heard.nic);
        EXPECT_EQ(end.vi(), heard.vi);
        EXPECT_EQ(VIP_TRUE, heard.receive);
        Cq::Entry entry;
        EXPECT_FALSE(cq.done(entry));
        VIP_DESCRIPTOR* taken = nullptr;
        OK(VipRecvDone(end.vi(), &taken));
        EXPECT_EQ(posted, taken);
        EXPECT_EQ(VIP_ERROR_RESOURCE, VipRecvNotify(end.vi(), &first, on_descriptor))
            << "the queue belongs to a completion queue";
        OK(VipSendNotify(end.vi(), &first, on_descriptor));
        me.meet();
        end.disconnect();
    });
    test.role("client", [](Role& me) {
        End end(me);
        end.connect("server");
        end.send(end.take(8));
        end.sent();
        me.meet();
    });
}

VIPL_TEST(Vipl_4_17_end_of_the_connection_is_a_completion_too, nothing) {
    test.role("server", [](Role& me) {
        End end(me);
        Heard heard;
        Numbered first{&heard, 1};
        VIP_DESCRIPTOR* posted = end.receive(end.take(64));
        OK(VipRecvNotify(end.vi(), &first, on_descriptor));
        end.accept("client");
        me.meet();
        wait_for(me, heard, 1);
        EXPECT_EQ(posted, heard.descriptors.front());
        EXPECT_TRUE(flushed(posted));
    });
    test.role("client", [](Role& me) {
        End end(me);
        end.connect("server");
        me.meet();
        end.disconnect();
    });
}

VIPL_TEST(Vipl_4_17_destroying_cancels, nothing) {
    test.role("only", [](Role& me) {
        Heard heard;
        Numbered first{&heard, 1};
        {
            End end(me);
            OK(VipSendNotify(end.vi(), &first, on_descriptor));
            OK(VipRecvNotify(end.vi(), &first, on_descriptor));
            Cq cq(me.nic(), 4);
            OK(VipCQNotify(cq.handle(), &first, on_entry));
        }
        // A new VI may lie where the old one was; it has no handlers.
        End end(me);
        end.send(end.take(8));
        VIP_DESCRIPTOR* sent = nullptr;
        EXPECT_EQ(VIP_DESCRIPTOR_ERROR, VipSendDone(end.vi(), &sent));
        EXPECT_NE(nullptr, sent) << "no handler took it";
        EXPECT_EQ(0, heard.count);
    });
}

/// Handlers that see what they run for go, and are not finished then.
struct Outliving {
    VIP_CQ_HANDLE queue = nullptr;
    std::atomic<bool> runs{false};
    bool finished = false;
};

void outlive_vi(VIP_PVOID context, VIP_NIC_HANDLE, VIP_VI_HANDLE vi, VIP_DESCRIPTOR*) {
    Outliving& me = *static_cast<Outliving*>(context);
    me.runs = true;
    VIP_VI_STATE state;
    VIP_VI_ATTRIBUTES attributes;
    VIP_BOOLEAN empty;
    while (VipQueryVi(vi, &state, &attributes, &empty, &empty) == VIP_SUCCESS)
        std::this_thread::yield();
    me.finished = true;
}

void outlive_queue(VIP_PVOID context, VIP_NIC_HANDLE, VIP_VI_HANDLE vi, VIP_BOOLEAN receive) {
    Outliving& me = *static_cast<Outliving*>(context);
    me.runs = true;
    while (VipCQDone(me.queue, &vi, &receive) != VIP_INVALID_PARAMETER) std::this_thread::yield();
    me.finished = true;
}

VIPL_TEST(Vipl_4_17_destroying_waits_for_the_handler_that_runs, real_threads) {
    test.role("only", [](Role& me) {
        const auto post = [&](End& end, VIP_VI_HANDLE vi) {
            VIP_DESCRIPTOR* descriptor = end.memory().descriptor();
            make_send(descriptor, {});
            OK(VipPostSend(vi, descriptor, end.memory().handle()));  // not connected: flushed
        };
        End end(me);
        VIP_VI_ATTRIBUTES attributes = Wants{}.attributes();
        VIP_VI_HANDLE vi = nullptr;
        Outliving of_vi;
        OK(VipCreateVi(me.nic().handle(), &attributes, nullptr, nullptr, &vi));
        OK(VipSendNotify(vi, &of_vi, outlive_vi));
        post(end, vi);
        me.until([&] { return of_vi.runs.load(); }, "the VI's handler runs");
        OK(VipDestroyVi(vi));
        EXPECT_TRUE(of_vi.finished);

        Outliving of_queue;
        OK(VipCreateCQ(me.nic().handle(), 4, &of_queue.queue));
        OK(VipCreateVi(me.nic().handle(), &attributes, of_queue.queue, nullptr, &vi));
        OK(VipCQNotify(of_queue.queue, &of_queue, outlive_queue));
        post(end, vi);
        me.until([&] { return of_queue.runs.load(); }, "the queue's handler runs");
        VIP_DESCRIPTOR* sent = nullptr;
        EXPECT_EQ(VIP_DESCRIPTOR_ERROR, VipSendDone(vi, &sent));
        OK(VipDestroyVi(vi));
        OK(VipDestroyCQ(of_queue.queue));
        EXPECT_TRUE(of_queue.finished);
    });
}

struct Chain {
    End* end;
    std::atomic<int> left;
    std::atomic<int> bad{0};
};

/// A handler may call the library: takes, posts anew, and asks to be called again.
void next_in_chain(VIP_PVOID context, VIP_NIC_HANDLE, VIP_VI_HANDLE vi,
                   VIP_DESCRIPTOR* descriptor) {
    Chain& chain = *static_cast<Chain*>(context);
    if ((descriptor->CS.Status & VIP_STATUS_ERROR_MASK) != 0) ++chain.bad;
    if (chain.left > 1) {
        if (VipRecvNotify(vi, context, next_in_chain) != VIP_SUCCESS) ++chain.bad;
        if (VipPostRecv(vi, descriptor, chain.end->memory().handle()) != VIP_SUCCESS) ++chain.bad;
    }
    --chain.left;  // last: the next message comes once this is seen, and needs the receive
}

VIPL_TEST(Vipl_4_17_handler_may_call_the_library, nothing) {
    static constexpr int messages = 50;
    test.role("server", [](Role& me) {
        End end(me);
        Chain chain{&end, messages};
        end.receive(end.take(64));
        OK(VipRecvNotify(end.vi(), &chain, next_in_chain));
        end.accept("client");
        for (int n = messages; n > 0; --n) {
            me.tell("client", n);
            me.until([&] { return chain.left < n; }, "the next handler has run");
        }
        EXPECT_EQ(0, chain.bad);
        me.meet();
    });
    test.role("client", [](Role& me) {
        End end(me);
        end.connect("server");
        for (int n = 0; n < messages; ++n) {
            me.hear<int>("server");
            end.send(end.take(8));
            end.sent();
        }
        me.meet();
    });
}

VIPL_TEST(Vipl_4_17_beside_a_program_that_takes_by_itself, nothing) {
    static constexpr int messages = 40;
    test.role("server", [](Role& me) {
        End end(me);
        Heard heard;
        std::vector<Numbered> all(messages / 2, {&heard, 0});
        for (int n = 0; n < messages; ++n) end.receive(end.take(64));
        for (Numbered& one : all) OK(VipRecvNotify(end.vi(), &one, on_descriptor));
        end.accept("client");
        int taken = 0;
        while (taken + heard.count < messages) {
            VIP_DESCRIPTOR* descriptor = nullptr;
            if (VipRecvDone(end.vi(), &descriptor) == VIP_SUCCESS) ++taken;
            me.pause();
        }
        EXPECT_EQ(messages, taken + heard.count) << "each completion went to one of the two";
        me.meet();
        end.disconnect();
        while (heard.count > 0 && drain(end.vi()) != 0) {
        }
    });
    test.role("client", [](Role& me) {
        End end(me);
        end.connect("server");
        for (int n = 0; n < messages; ++n) {
            end.send(end.take(8));
            end.sent();
        }
        me.meet();
    });
}

void take_a_while(VIP_PVOID context, VIP_NIC_HANDLE, VIP_VI_HANDLE, VIP_DESCRIPTOR*) {
    ++*static_cast<std::atomic<int>*>(context);
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
}

/// Others follow it at once, and would keep the caller for as long as there are any.
VIPL_TEST(Vipl_4_4_who_sets_the_handler_waits_for_no_more_than_the_one_that_runs, real_threads) {
    static constexpr int all = 500;
    test.role("only", [](Role& me) {
        std::atomic<int> ran{0};  // outlives the VI, whose handlers still run
        End end(me);
        for (int n = 0; n < all; ++n) OK(VipSendNotify(end.vi(), &ran, take_a_while));
        for (int n = 0; n < all; ++n) end.send(end.take(8));  // not connected: flushed at once
        me.until([&] { return ran > 0; }, "the first handler runs");
        me.nic().restore_handler();
        EXPECT_TRUE(ran < all);
    });
}

VIPL_TEST(Vipl_2_notify_refuses_what_makes_no_sense, nothing) {
    test.role("only", [](Role& me) {
        End end(me);
        Cq cq(me.nic(), 4);
        EXPECT_EQ(VIP_INVALID_PARAMETER, VipSendNotify(end.vi(), nullptr, nullptr));
        EXPECT_EQ(VIP_INVALID_PARAMETER, VipRecvNotify(end.vi(), nullptr, nullptr));
        EXPECT_EQ(VIP_INVALID_PARAMETER, VipCQNotify(cq.handle(), nullptr, nullptr));
        EXPECT_EQ(VIP_INVALID_PARAMETER, VipSendNotify(nullptr, nullptr, on_descriptor));
        EXPECT_EQ(VIP_INVALID_PARAMETER, VipRecvNotify(nullptr, nullptr, on_descriptor));
        EXPECT_EQ(VIP_INVALID_PARAMETER, VipCQNotify(nullptr, nullptr, on_entry));
    });
}

}  // namespace
}  // namespace conformance::notify_test
