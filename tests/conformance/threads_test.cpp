// Any call from any thread (VIPL 4.26).
#include <pthread.h>
#include <via/via.h>

#include <atomic>
#include <functional>
#include <set>
#include <thread>

#include "harness/end.hpp"

namespace conformance::threads_test {
namespace {

VIPL_TEST(Vipl_4_26_one_thread_waits_for_requests_for_ever_while_others_do_everything_else,
          nothing) {
    constexpr int connections = 20;
    test.role("server", [](Role& me) {
        Nic& nic = me.nic();
        Address local = nic.address(me.discriminator("always"));
        std::vector<std::unique_ptr<End>> ends;
        for (int n = 0; n < connections; ++n) {
            ends.push_back(std::make_unique<End>(me));
            ends.back()->receive(ends.back()->take(8));
        }
        Thread acceptor(me, [&] {
            for (auto& end : ends) {
                Address remote;
                VIP_VI_ATTRIBUTES attributes;
                VIP_CONN_HANDLE connection = nullptr;
                OK(VipConnectWait(nic.handle(), local.net(), VIP_INFINITE, remote.net(),
                                  &attributes, &connection));
                OK(VipConnectAccept(connection, end->vi()));
            }
        });
        // Meanwhile: memory, queues, and a connection of its own with traffic.
        End busy(me);
        busy.accept("client");
        me.tell("client", local);
        for (int n = 0; n < 100; ++n) {
            Memory memory(nic, 4096);
            Cq cq(nic, 4);
            busy.expect("client", n);
        }
        for (auto& end : ends) end->received();
        acceptor.join();
        me.meet();
    });
    test.role("client", [](Role& me) {
        End busy(me);
        busy.connect("server");
        const auto server = me.hear<Address>("server");
        std::vector<std::unique_ptr<End>> ends;
        for (int n = 0; n < 100; ++n) {
            busy.say("server", n);
            if (n % 5 != 0) continue;
            End& end = *ends.emplace_back(std::make_unique<End>(me));
            VIP_VI_ATTRIBUTES attributes;
            OK(request(me, end.vi(), me.nic().address("c"), server, &attributes));
            end.send(end.take(8));
            end.sent();
        }
        me.meet();
    });
}

VIPL_TEST(Vipl_4_26_two_threads_post_to_both_queues_of_one_vi_at_once, nothing) {
    constexpr VIP_UINT32 messages = 3000;
    constexpr VIP_UINT32 window = 32;
    // Each role sends from one thread and receives in another; every `window` messages the
    // receiver lets the next ones come, through a connection of its own.
    const auto act = [](Role& me, bool accepts, const char* peer) {
        End end(me);
        End credit(me);
        VIP_DESCRIPTOR* receives[2 * window];
        VIP_DESCRIPTOR* sends[window];
        const Piece room = end.take(64);
        for (auto& receive : receives) receive = end.receive(room);
        for (auto& send : sends) send = end.memory().descriptor();
        for (int n = 0; n < 4; ++n) credit.receive(Pieces{});
        for (End* one : {&end, &credit}) accepts ? one->accept(peer) : one->connect(peer);

        Thread receiver(me, [&] {
            VIP_DESCRIPTOR* grant = credit.memory().descriptor();
            for (VIP_UINT32 n = 0; n < messages; ++n) {
                VIP_DESCRIPTOR* descriptor = end.received();
                require(
                    descriptor == receives[n % (2 * window)] && descriptor->CS.ImmediateData == n,
                    "everything comes in order");
                end.post_receive(descriptor);
                if (n % window != window - 1) continue;
                make_send(grant, {});
                credit.post_send(grant);
                credit.sent();
            }
        });
        for (VIP_UINT32 n = 0; n < messages; ++n) {
            if (n >= 2 * window && n % window == 0) credit.post_receive(credit.received());
            VIP_DESCRIPTOR* descriptor = sends[n % window];
            if (n >= window) require(end.sent() == descriptor, "sends end in order");
            make_send(descriptor, {&room, 1}, VIP_CONTROL_IMMEDIATE, n);
            end.post_send(descriptor);
        }
        for (VIP_UINT32 n = 0; n < window; ++n) end.sent();
        receiver.join();
        me.meet();
    };
    test.role("server", [=](Role& me) { act(me, true, "client"); });
    test.role("client", [=](Role& me) { act(me, false, "server"); });
}

VIPL_TEST(Vipl_4_26_two_threads_post_to_the_same_queue, nothing) {
    static constexpr VIP_UINT32 each = 400;
    test.role("server", [](Role& me) {
        End end(me);
        const Piece room = end.take(64);
        for (VIP_UINT32 n = 0; n < 2 * each; ++n) end.receive(room);
        end.accept("client");
        VIP_UINT32 next[2] = {0, 0};
        for (VIP_UINT32 n = 0; n < 2 * each; ++n) {
            const VIP_UINT32 word = end.received()->CS.ImmediateData;
            require(word % 1000 == next[word / 1000]++, "each thread's messages stay in order");
        }
        EXPECT_EQ(each, next[0]);
        EXPECT_EQ(each, next[1]);
        me.meet();
    });
    test.role("client", [](Role& me) {
        End end(me);
        end.connect("server");
        std::set<VIP_DESCRIPTOR*> posted;
        VIP_DESCRIPTOR* descriptors[2][each];
        for (auto& row : descriptors)
            for (auto& descriptor : row) posted.insert(descriptor = end.memory().descriptor());
        const auto post = [&](VIP_UINT32 thread) {
            for (VIP_UINT32 n = 0; n < each; ++n) {
                make_send(descriptors[thread][n], {}, VIP_CONTROL_IMMEDIATE, thread * 1000 + n);
                end.post_send(descriptors[thread][n]);
            }
        };
        {
            Thread first(me, [&] { post(0); });
            Thread second(me, [&] { post(1); });
            first.join();
            second.join();
        }
        for (VIP_UINT32 n = 0; n < 2 * each; ++n)
            EXPECT_EQ(1U, posted.erase(end.sent())) << "each is taken once";
        me.meet();
    });
}

VIPL_TEST(Vipl_4_26_several_threads_take_from_one_queue_and_each_message_once, nothing) {
    constexpr int messages = 600;
    test.role("server", [](Role& me) {
        End end(me);
        std::vector<VIP_DESCRIPTOR*> posted;
        const Piece room = end.take(64);
        for (int n = 0; n < messages; ++n) posted.push_back(end.receive(room));
        end.accept("client");
        std::set<VIP_DESCRIPTOR*> taken[3];
        const auto take = [&](std::size_t thread) {
            for (;;) {
                VIP_DESCRIPTOR* descriptor = nullptr;
                const VIP_RETURN code = VipRecvWait(end.vi(), patience_ms, &descriptor);
                if (descriptor == nullptr) {  // all are taken
                    EXPECT_EQ(VIP_DESCRIPTOR_ERROR, code);
                    return;
                }
                EXPECT_EQ(VIP_SUCCESS, code);
                taken[thread].insert(descriptor);
            }
        };
        {
            Thread first(me, [&] { take(0); });
            Thread second(me, [&] { take(1); });
            Thread third(me, [&] { take(2); });
            first.join();
            second.join();
            third.join();
        }
        EXPECT_EQ(posted.size(), taken[0].size() + taken[1].size() + taken[2].size());
        taken[0].merge(taken[1]);
        taken[0].merge(taken[2]);
        EXPECT_EQ(posted.size(), taken[0].size());
        me.meet();
    });
    test.role("client", [](Role& me) {
        End end(me);
        end.connect("server");
        VIP_DESCRIPTOR* descriptor = end.memory().descriptor();
        for (int n = 0; n < messages; ++n) {
            make_send(descriptor, {});
            end.post_send(descriptor);
            end.sent();
        }
        me.meet();
    });
}

VIPL_TEST(Vipl_4_26_several_threads_wait_on_one_cq_and_each_entry_comes_once, nothing) {
    constexpr int messages = 300;
    test.role("server", [](Role& me) {
        Cq cq(me.nic(), 16);
        End end(me, {.receive_cq = &cq});
        const Piece room = end.take(64);
        for (int n = 0; n < messages; ++n) end.receive(room);
        end.accept("client");
        std::atomic<int> taken{0};
        const auto take = [&] {
            while (taken.fetch_add(1) < messages) {
                EXPECT_EQ((Cq::Entry{end.vi(), true}), cq.wait());
                VIP_DESCRIPTOR* descriptor = nullptr;
                require(VipRecvDone(end.vi(), &descriptor) == VIP_SUCCESS,
                        "one Done for an entry succeeds");
            }
        };
        {
            Thread first(me, take);
            Thread second(me, take);
            first.join();
            second.join();
        }
        Cq::Entry none;
        EXPECT_FALSE(cq.done(none));
        EXPECT_TRUE(end.receive_queue_empty());
        me.meet();
    });
    test.role("client", [](Role& me) {
        End end(me);
        end.connect("server");
        VIP_DESCRIPTOR* descriptor = end.memory().descriptor();
        for (int n = 0; n < messages; ++n) {
            make_send(descriptor, {});
            end.post_send(descriptor);
            end.sent();
        }
        me.meet();
    });
}

VIPL_TEST(Vipl_4_26_threads_with_a_vi_each_do_not_disturb_each_other, nothing) {
    constexpr int threads = 4;
    constexpr VIP_UINT32 rounds = 300;
    const auto act = [](Role& me, bool accepts, const char* peer) {
        std::vector<std::unique_ptr<End>> ends;
        std::vector<VIP_DESCRIPTOR*> receives;
        for (int n = 0; n < threads; ++n) {
            End& end = *ends.emplace_back(std::make_unique<End>(me));
            receives.push_back(end.receive(end.take(8)));
            accepts ? end.accept(peer) : end.connect(peer);
        }
        me.meet();
        std::vector<std::unique_ptr<Thread>> running;
        for (std::size_t n = 0; n < threads; ++n) {
            running.push_back(std::make_unique<Thread>(me, [&, n] {
                End& end = *ends[n];
                VIP_DESCRIPTOR* send = end.memory().descriptor();
                for (VIP_UINT32 round = 0; round < rounds; ++round) {
                    if (!accepts || round > 0) {
                        make_send(send, {}, VIP_CONTROL_IMMEDIATE, round);
                        end.post_send(send);
                        end.sent();
                    }
                    // Ping and pong: the answer to our word, or the next word of the asker.
                    VIP_DESCRIPTOR* got = end.received();
                    require(got == receives[n], "the one receive is used");
                    end.post_receive(got);
                }
                if (!accepts) return;
                make_send(send, {}, VIP_CONTROL_IMMEDIATE, rounds);
                end.post_send(send);
                end.sent();
            }));
        }
        for (auto& thread : running) thread->join();
        me.meet();
    };
    test.role("server", [=](Role& me) { act(me, true, "client"); });
    test.role("client", [=](Role& me) { act(me, false, "server"); });
}

VIPL_TEST(Vipl_4_26_threads_create_register_and_destroy_at_once, nothing) {
    test.role("only", [](Role& me) {
        Nic& nic = me.nic();
        const auto churn = [&] {
            for (int n = 0; n < 200; ++n) {
                Memory memory(nic, 4096);
                Cq cq(nic, 4);
                VIP_PROTECTION_HANDLE tag = nullptr;
                OK(VipCreatePtag(nic.handle(), &tag));
                VIP_VI_ATTRIBUTES attributes = vi_attributes();
                attributes.Ptag = tag;
                VIP_VI_HANDLE vi = nullptr;
                OK(VipCreateVi(nic.handle(), &attributes, cq.handle(), cq.handle(), &vi));
                OK(VipDestroyVi(vi));
                OK(VipDestroyPtag(nic.handle(), tag));
            }
        };
        Thread first(me, churn);
        Thread second(me, churn);
        Thread third(me, churn);
        first.join();
        second.join();
        third.join();
    });
}

VIPL_TEST(Vipl_4_2_closing_a_nic_ends_the_waiting_of_its_threads, nothing) {
    test.role("only", [](Role& me) {
        Nic nic(me.device_name());
        Memory memory(nic, 4096);
        VIP_CQ_HANDLE cq = nullptr;
        OK(VipCreateCQ(nic.handle(), 4, &cq));
        VIP_VI_ATTRIBUTES attributes = vi_attributes();
        VIP_VI_HANDLE vi = nullptr;
        OK(VipCreateVi(nic.handle(), &attributes, nullptr, nullptr, &vi));
        VIP_DESCRIPTOR* descriptor = memory.descriptor();
        make_receive(descriptor, {});
        OK(VipPostRecv(vi, descriptor, memory.handle()));
        const VIP_NIC_HANDLE handle = nic.handle();
        Address local = nic.address(me.discriminator("nobody"));
        std::atomic<int> begun{0};
        const auto ends = [](VIP_RETURN code) {
            EXPECT_NE(VIP_SUCCESS, code);
            EXPECT_NE(VIP_TIMEOUT, code);
        };
        Thread on_cq(me, [&] {
            VIP_VI_HANDLE found;
            VIP_BOOLEAN receive;
            ++begun;
            ends(VipCQWait(cq, VIP_INFINITE, &found, &receive));
        });
        Thread on_queue(me, [&] {
            VIP_DESCRIPTOR* done = nullptr;
            ++begun;
            ends(VipRecvWait(vi, VIP_INFINITE, &done));
        });
        Thread on_requests(me, [&] {
            Address remote;
            VIP_VI_ATTRIBUTES theirs;
            VIP_CONN_HANDLE connection;
            ++begun;
            ends(VipConnectWait(handle, local.net(), VIP_INFINITE, remote.net(), &theirs,
                                &connection));
        });
        me.until([&] { return begun == 3; }, "all are about to wait");
        nic.close();
        on_cq.join();
        on_queue.join();
        on_requests.join();
    });
}

/// What would wake it, and who follows it, count on its end.
VIPL_TEST(Vipl_4_14_a_call_that_waits_is_no_cancellation_point, real_threads) {
    test.role("only", [](Role& me) {
        Cq never(me.nic(), 1);
        std::atomic<bool> calls{false};
        std::atomic<int> result{-1};
        std::thread waits([&] {
            VIP_VI_HANDLE vi = nullptr;
            VIP_BOOLEAN receive = VIP_FALSE;
            calls = true;
            result = VipCQWait(never.handle(), 100, &vi, &receive);
        });
        me.until([&] { return calls.load(); }, "the thread runs");
        EXPECT_EQ(0, pthread_cancel(waits.native_handle()));
        waits.join();
        EXPECT_EQ(VIP_TIMEOUT, result);
    });
}

/// A thread makes that call and is cancelled as soon as it meets a place for that: behind it.
bool succeeds_though_cancelled(const std::function<VIP_RETURN()>& call) {
    std::atomic<bool> succeeded{false};
    std::thread thread([&] {
        pthread_cancel(pthread_self());
        succeeded = call() == VIP_SUCCESS;
        pthread_testcancel();
    });
    thread.join();
    return succeeded;
}

/// How often peers were woken that slept; where none ever is, of that medium, a call more each
/// time.
VIP_UINT64 calls_to_sleepers(Role& me) {
    static VIP_UINT64 asked = 0;
    VIP_UINT64 value = 0;
    OK(ViaReadCounter(me.nic().handle(), "peers_woken", &value));
    return me.device_name().starts_with("udp") ? ++asked : value;
}
constexpr int sleepers_met = 5;

/// To wake a peer takes a call of the system's while the NIC is the caller's alone.
VIPL_TEST(Vipl_4_26_a_post_that_wakes_a_peer_is_no_cancellation_point, processes) {
    test.role("sleeps", [](Role& me) {
        End end(me);
        const Piece room = end.take(8);
        end.accept("cancelled");
        me.tell("cancelled", Target(room));
        me.hear<char>("cancelled");
    });
    test.role("cancelled", [](Role& me) {
        End end(me);
        end.connect("sleeps");
        const auto target = me.hear<Target>("sleeps");
        const Piece data = end.take(8);
        VIP_DESCRIPTOR* write = end.memory().descriptor();
        int met = 0;
        me.until(
            [&] {
                make_write(write, target, {&data, 1});
                const VIP_UINT64 before = calls_to_sleepers(me);
                require(succeeds_though_cancelled(
                            [&] { return VipPostSend(end.vi(), write, end.memory().handle()); }),
                        "the post returns");
                met += calls_to_sleepers(me) != before ? 1 : 0;
                EXPECT_EQ(VIP_STATE_CONNECTED, end.state());
                EXPECT_EQ(write, end.sent());
                return met == sleepers_met;
            },
            "posts meet a peer that sleeps");
        me.tell("sleeps", 'e');
    });
}

VIPL_TEST(Vipl_4_26_a_disconnect_that_wakes_a_peer_is_no_cancellation_point, processes) {
    test.role("sleeps", [](Role& me) {
        for (bool over = false; !over;) {
            End end(me);
            end.accept("cancelled");
            over = me.hear<char>("cancelled") == 'e';
        }
    });
    test.role("cancelled", [](Role& me) {
        int met = 0;
        int pauses = 1024;
        me.until(
            [&] {
                End end(me);
                end.connect("sleeps");
                for (int n = 0; n < pauses; ++n) me.pause();
                if (pauses < 1 << 17) pauses *= 2;
                const VIP_UINT64 before = calls_to_sleepers(me);
                require(succeeds_though_cancelled([&] { return VipDisconnect(end.vi()); }),
                        "the call returns");
                met += calls_to_sleepers(me) != before ? 1 : 0;
                EXPECT_EQ(VIP_STATE_IDLE, end.state());
                me.tell("sleeps", met == sleepers_met ? 'e' : 'n');
                return met == sleepers_met;
            },
            "ends of connections meet a peer that sleeps");
    });
}

/// A thread changes a region's rights, and its tag if VIs of any may use it; this one asks and
/// posts.
void use_while_it_changes(Role& me, VIP_PROTECTION_HANDLE vi_tag) {
    static constexpr int times = 10000;
    const VIP_NIC_HANDLE nic = me.nic().handle();
    const Tag other(me.nic());
    End end(me, {.tag = vi_tag});
    Memory region(me.nic(), 4096, rights(false, false, vi_tag));
    const Piece data = region.take(64);
    VIP_DESCRIPTOR* sent = region.descriptor();
    std::atomic<bool> over{false};
    std::atomic<int> changes{0};
    Thread changer(me, [&] {
        for (unsigned turn = 0; !over; ++turn) {
            const bool is_others = vi_tag == nullptr && (turn & 4) != 0;
            VIP_MEM_ATTRIBUTES wanted =
                rights((turn & 1) != 0, (turn & 2) != 0, is_others ? other.handle() : vi_tag);
            const VIP_RETURN code =
                VipSetMemAttributes(nic, region.base(), region.handle(), &wanted);
            require(code == VIP_SUCCESS || code == VIP_ERROR_RESOURCE, name_of(code));
            if (code == VIP_SUCCESS) ++changes;
        }
    });
    VIP_RETURN queried = VIP_SUCCESS;
    VIP_RETURN posted = VIP_SUCCESS;
    bool whole = true;
    const auto all_is_well = [&] {
        return queried == VIP_SUCCESS && posted == VIP_SUCCESS && whole;
    };
    for (int n = 0; (n < times || changes < times) && !changer.ended() && all_is_well(); ++n) {
        VIP_MEM_ATTRIBUTES told;
        for (int k = 0; k < 4 && queried == VIP_SUCCESS; ++k)
            queried = VipQueryMem(nic, region.base(), region.handle(), &told);
        make_send(sent, {&data, 1});
        posted = VipPostSend(end.vi(), sent, region.handle());
        if (posted != VIP_SUCCESS) break;
        VIP_DESCRIPTOR* taken = nullptr;
        while (VipSendDone(end.vi(), &taken) == VIP_NOT_DONE) {
        }
        whole = taken == sent && flushed(sent);  // it is idle
    }
    over = true;
    changer.join();
    EXPECT_EQ(VIP_SUCCESS, queried);
    EXPECT_EQ(VIP_SUCCESS, posted);
    EXPECT_TRUE(whole) << status_text(sent->CS.Status);
}

VIPL_TEST(Vipl_4_26_a_region_is_there_for_other_threads_while_its_attributes_change, real_threads) {
    test.role("only", [](Role& me) {
        const Tag tag(me.nic());
        for (const VIP_PROTECTION_HANDLE vi_tag : {VIP_PROTECTION_HANDLE{nullptr}, tag.handle()})
            use_while_it_changes(me, vi_tag);
    });
}

}  // namespace
}  // namespace conformance::threads_test
