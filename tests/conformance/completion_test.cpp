// Done, Wait and completion queues (VIPL 4.13 to 4.16).
#include <map>

#include "harness/end.hpp"

namespace conformance::completion_test {
namespace {

constexpr VIP_ULONG forever[] = {VIP_INFINITE, 0xFFFFFFFFUL, ~0UL};

/// Lets time pass as the device counts it. Nothing is right or wrong by how much it is.
void let_time_pass(Role& me) {
    Cq idle(me.nic(), 1);
    VIP_VI_HANDLE vi = nullptr;
    VIP_BOOLEAN receive = VIP_FALSE;
    EXPECT_EQ(VIP_TIMEOUT, VipCQWait(idle.handle(), 50, &vi, &receive));
}

VIPL_TEST(Vipl_4_13_done_on_empty_queue_says_descriptor_error, nothing) {
    test.role("only", [](Role& me) {
        End end(me);
        VIP_DESCRIPTOR junk;
        VIP_DESCRIPTOR* descriptor = &junk;
        EXPECT_EQ(VIP_DESCRIPTOR_ERROR, VipSendDone(end.vi(), &descriptor));
        EXPECT_EQ(nullptr, descriptor);
        descriptor = &junk;
        EXPECT_EQ(VIP_DESCRIPTOR_ERROR, VipRecvDone(end.vi(), &descriptor));
        EXPECT_EQ(nullptr, descriptor);
    });
}

VIPL_TEST(Vipl_4_14_wait_on_empty_queue_returns_at_once_as_done_does, nothing) {
    test.role("only", [](Role& me) {
        End end(me);
        VIP_DESCRIPTOR junk;
        for (const VIP_ULONG timeout : {0UL, 100UL, 0xFFFFFFFFUL, ~0UL}) {
            VIP_DESCRIPTOR* descriptor = &junk;
            EXPECT_EQ(VIP_DESCRIPTOR_ERROR, VipSendWait(end.vi(), timeout, &descriptor));
            EXPECT_EQ(nullptr, descriptor);
            descriptor = &junk;
            EXPECT_EQ(VIP_DESCRIPTOR_ERROR, VipRecvWait(end.vi(), timeout, &descriptor));
            EXPECT_EQ(nullptr, descriptor);
        }
    });
}

VIPL_TEST(Vipl_4_13_done_looks_at_the_head_only_and_takes_what_failed_off, nothing) {
    test.role("server", [](Role& me) {
        End end(me, {.level = VIP_SERVICE_UNRELIABLE});
        VIP_DESCRIPTOR* tight = end.receive(end.take(4));
        VIP_DESCRIPTOR* wide = end.receive(end.take(64));
        VIP_DESCRIPTOR* unused = end.receive(end.take(64));
        VIP_DESCRIPTOR* descriptor = nullptr;
        EXPECT_EQ(VIP_NOT_DONE, VipRecvDone(end.vi(), &descriptor));
        end.accept("client");
        me.meet();
        EXPECT_EQ(tight, end.received(VIP_DESCRIPTOR_ERROR));
        EXPECT_EQ(wide, end.received());
        EXPECT_EQ(VIP_NOT_DONE, VipRecvDone(end.vi(), &descriptor));
        EXPECT_EQ(0U, unused->CS.Status & VIP_STATUS_DONE);
        EXPECT_FALSE(end.receive_queue_empty());
        me.meet();
    });
    test.role("client", [](Role& me) {
        End end(me, {.level = VIP_SERVICE_UNRELIABLE});
        end.connect("server");
        end.send(end.take(64));
        end.send(end.take(64));
        end.sent();
        end.sent();
        me.meet();
        me.meet();
    });
}

VIPL_TEST(Vipl_4_14_wait_times_out_and_leaves_the_descriptor_posted, nothing) {
    test.role("server", [](Role& me) {
        End end(me);
        VIP_DESCRIPTOR* posted = end.receive(end.take(64));
        end.accept("client");
        for (const VIP_ULONG timeout : {0UL, 1UL, 30UL}) {
            VIP_DESCRIPTOR* descriptor = nullptr;
            EXPECT_EQ(VIP_TIMEOUT, VipRecvWait(end.vi(), timeout, &descriptor));
        }
        me.meet();
        EXPECT_EQ(posted, end.received());
    });
    test.role("client", [](Role& me) {
        End end(me);
        end.connect("server");
        me.meet();
        end.send(end.take(64));
        end.sent();
        me.wait_for_end_of("server");
    });
}

VIPL_TEST(Vipl_1_5_both_spellings_of_infinite_wait_until_it_happens, nothing) {
    test.role("server", [](Role& me) {
        Cq cq(me.nic(), 8);
        End end(me);
        End bound(me, {.receive_cq = &cq});
        end.accept("client");
        bound.accept("client");
        for (const VIP_ULONG timeout : forever) {
            VIP_DESCRIPTOR* posted = end.receive(end.take(8));
            VIP_DESCRIPTOR* other = bound.receive(bound.take(8));
            me.tell("client", 'r');
            VIP_DESCRIPTOR* descriptor = nullptr;
            EXPECT_EQ(VIP_SUCCESS, VipRecvWait(end.vi(), timeout, &descriptor));
            EXPECT_EQ(posted, descriptor);
            VIP_VI_HANDLE vi = nullptr;
            VIP_BOOLEAN receive = VIP_FALSE;
            EXPECT_EQ(VIP_SUCCESS, VipCQWait(cq.handle(), timeout, &vi, &receive));
            EXPECT_EQ(other, bound.received());
        }
        for (const VIP_ULONG timeout : forever) {
            Address local = me.nic().address(me.discriminator("long"));
            Address remote;
            VIP_VI_ATTRIBUTES attributes;
            VIP_CONN_HANDLE connection = nullptr;
            me.tell("client", local);
            EXPECT_EQ(VIP_SUCCESS, VipConnectWait(me.nic().handle(), local.net(), timeout,
                                                  remote.net(), &attributes, &connection));
            let_time_pass(me);
            EXPECT_EQ(VIP_SUCCESS, VipConnectReject(connection));
        }
        me.meet();
    });
    test.role("client", [](Role& me) {
        End end(me);
        End bound(me);
        end.connect("server");
        bound.connect("server");
        for ([[maybe_unused]] const VIP_ULONG timeout : forever) {
            me.hear<char>("server");
            let_time_pass(me);
            end.send(end.take(8));
            end.sent();
            let_time_pass(me);
            bound.send(bound.take(8));
            bound.sent();
        }
        End refused(me);
        for (const VIP_ULONG timeout : forever) {
            const auto remote = me.hear<Address>("server");
            let_time_pass(me);
            VIP_VI_ATTRIBUTES attributes;
            EXPECT_EQ(VIP_REJECT, request(me, refused.vi(), me.nic().address("c"), remote,
                                          &attributes, timeout));
        }
        me.meet();
    });
}

VIPL_TEST(Vipl_4_13_done_never_blocks_behind_a_wait_of_another_thread, nothing) {
    test.role("server", [](Role& me) {
        End end(me);
        VIP_DESCRIPTOR* posted[] = {end.receive(end.take(8)), end.receive(end.take(8))};
        end.accept("client");
        VIP_DESCRIPTOR* waited = nullptr;
        std::atomic<bool> begun{false};
        Thread waiter(me, [&] {
            begun = true;
            EXPECT_EQ(VIP_SUCCESS, VipRecvWait(end.vi(), VIP_INFINITE, &waited));
        });
        me.until([&] { return begun.load(); }, "the thread is about to wait");
        VIP_DESCRIPTOR* descriptor = nullptr;
        for (int n = 0; n < 1000; ++n) EXPECT_EQ(VIP_NOT_DONE, VipRecvDone(end.vi(), &descriptor));
        me.tell("client", 'g');
        waiter.join();
        EXPECT_EQ(posted[0], waited);
        EXPECT_EQ(posted[1], end.received());
        me.meet();
    });
    test.role("client", [](Role& me) {
        End end(me);
        end.connect("server");
        me.hear<char>("server");
        end.send(end.take(8));
        end.send(end.take(8));
        end.sent();
        end.sent();
        me.meet();
    });
}

VIPL_TEST(Vipl_4_14_queues_bound_to_a_cq_cannot_be_waited_on, nothing) {
    test.role("only", [](Role& me) {
        Cq cq(me.nic(), 8);
        End end(me, {.send_cq = &cq, .receive_cq = &cq});
        VIP_DESCRIPTOR* descriptor = nullptr;
        EXPECT_EQ(VIP_ERROR_RESOURCE, VipSendWait(end.vi(), 0, &descriptor));
        EXPECT_EQ(VIP_ERROR_RESOURCE, VipRecvWait(end.vi(), VIP_INFINITE, &descriptor));
        VIP_DESCRIPTOR* posted = end.receive(end.take(8));
        EXPECT_EQ(VIP_ERROR_RESOURCE, VipRecvWait(end.vi(), VIP_INFINITE, &descriptor));
        EXPECT_EQ(VIP_NOT_DONE, VipRecvDone(end.vi(), &descriptor)) << "Done is allowed";
        end.disconnect();
        EXPECT_EQ(VIP_DESCRIPTOR_ERROR, VipRecvDone(end.vi(), &descriptor));
        EXPECT_EQ(posted, descriptor);
    });
}

VIPL_TEST(Vipl_4_15_descriptors_complete_in_posting_order, nothing) {
    test.role("server", [](Role& me) {
        End end(me);
        std::vector<VIP_DESCRIPTOR*> posted;
        for (int n = 0; n < 50; ++n) posted.push_back(end.receive(end.take(64)));
        const Piece target = end.take(5000);
        end.accept("client");
        me.tell("client", Target(target));
        for (std::size_t n = 0; n < posted.size(); ++n) {
            EXPECT_EQ(posted[n], end.received());
            EXPECT_EQ(n, posted[n]->CS.ImmediateData);
        }
        me.meet();
    });
    test.role("client", [](Role& me) {
        End end(me);
        end.connect("server");
        const auto target = me.hear<Target>("server");
        const Piece large = end.take(5000);
        const Piece small = end.take(64);
        std::vector<VIP_DESCRIPTOR*> posted;
        for (VIP_UINT32 n = 0; n < 50; ++n) {
            posted.push_back(n % 3 == 0 ? end.write(target, large, VIP_CONTROL_IMMEDIATE, n)
                                        : end.send(small, VIP_CONTROL_IMMEDIATE, n));
            if (n % 5 == 0) posted.push_back(end.read(target, large));
        }
        for (VIP_DESCRIPTOR* descriptor : posted) EXPECT_EQ(descriptor, end.sent());
        me.meet();
    });
}

// Completion queues -------------------------------------------------------------------------------

VIPL_TEST(Vipl_4_15_an_empty_cq_is_not_done_and_waiting_on_it_times_out, nothing) {
    test.role("only", [](Role& me) {
        Cq cq(me.nic(), 1);
        VIP_VI_HANDLE vi = nullptr;
        VIP_BOOLEAN receive = VIP_FALSE;
        EXPECT_EQ(VIP_NOT_DONE, VipCQDone(cq.handle(), &vi, &receive));
        for (const VIP_ULONG timeout : {0UL, 1UL, 30UL})
            EXPECT_EQ(VIP_TIMEOUT, VipCQWait(cq.handle(), timeout, &vi, &receive));
    });
}

VIPL_TEST(Vipl_1_9_cq_sizes_from_one_to_the_reported_limit, nothing) {
    test.role("only", [](Role& me) {
        const VIP_ULONG most = me.nic().attributes().MaxCQEntries;
        VIP_CQ_HANDLE cq = nullptr;
        for (const VIP_ULONG good : {1UL, 2UL, 3UL, 1000UL, 65536UL}) {
            EXPECT_EQ(VIP_SUCCESS, VipCreateCQ(me.nic().handle(), good, &cq)) << good;
            EXPECT_EQ(VIP_SUCCESS, VipResizeCQ(cq, most)) << good;
            EXPECT_EQ(VIP_SUCCESS, VipResizeCQ(cq, 1)) << good;
            for (const VIP_ULONG bad : {0UL, most + 1, 0xFFFFFFFFUL, ~0UL})
                EXPECT_EQ(VIP_INVALID_PARAMETER, VipResizeCQ(cq, bad)) << bad;
            EXPECT_EQ(VIP_SUCCESS, VipDestroyCQ(cq));
        }
        for (const VIP_ULONG bad : {0UL, most + 1, 0xFFFFFFFFUL, ~0UL})
            EXPECT_EQ(VIP_INVALID_PARAMETER, VipCreateCQ(me.nic().handle(), bad, &cq)) << bad;
    });
}

/// Takes `count` entries by Wait and Done in turn, and one Done each on the queue named.
std::map<VIP_VI_HANDLE, std::size_t> take_entries(Role& me, Cq& cq, std::size_t count) {
    std::map<VIP_VI_HANDLE, std::size_t> taken;
    for (std::size_t n = 0; n < count; ++n) {
        Cq::Entry entry;
        if (n % 2 == 0) {
            entry = cq.wait();
        } else {
            me.until([&] { return cq.done(entry); }, "there is an entry");
        }
        VIP_DESCRIPTOR* descriptor = nullptr;
        const VIP_RETURN code =
            entry.receive ? VipRecvDone(entry.vi, &descriptor) : VipSendDone(entry.vi, &descriptor);
        require(code == VIP_SUCCESS, "one Done for an entry succeeds at once");
        ++taken[entry.vi];
    }
    Cq::Entry none;
    EXPECT_FALSE(cq.done(none)) << "no entry without a completion";
    return taken;
}

VIPL_TEST(Vipl_4_15_one_done_for_an_entry_succeeds_with_one_cq_for_both_queues_of_two_vis,
          nothing) {
    static constexpr std::size_t messages = 100;
    const auto act = [](Role& me, bool accepts, const char* peer) {
        Cq cq(me.nic(), 1000);
        End first(me, {.send_cq = &cq, .receive_cq = &cq});
        End second(me, {.send_cq = &cq, .receive_cq = &cq});
        for (End* end : {&first, &second}) {
            const Piece room = end->take(64);
            for (std::size_t n = 0; n < messages; ++n) end->receive(room);
        }
        for (End* end : {&first, &second}) accepts ? end->accept(peer) : end->connect(peer);
        for (std::size_t n = 0; n < messages; ++n) {
            first.send(first.take(8));
            second.send(second.take(8));
        }
        const auto taken = take_entries(me, cq, 4 * messages);
        EXPECT_EQ(2 * messages, taken.at(first.vi()));
        EXPECT_EQ(2 * messages, taken.at(second.vi()));
        me.meet();
        first.disconnect();
        second.disconnect();
        EXPECT_EQ(0U, drain(first.vi()) + drain(second.vi()));
    };
    test.role("server", [=](Role& me) { act(me, true, "client"); });
    test.role("client", [=](Role& me) { act(me, false, "server"); });
}

VIPL_TEST(Vipl_4_15_recv_queue_says_which_queue, nothing) {
    test.role("server", [](Role& me) {
        Cq sends(me.nic(), 4);
        Cq receives(me.nic(), 4);
        End end(me, {.send_cq = &sends, .receive_cq = &receives});
        end.receive(end.take(8));
        end.accept("client");
        EXPECT_EQ((Cq::Entry{end.vi(), true}), receives.wait());
        end.received();
        end.send(end.take(8));
        EXPECT_EQ((Cq::Entry{end.vi(), false}), sends.wait());
        end.sent();
        Cq::Entry none;
        EXPECT_FALSE(sends.done(none));
        EXPECT_FALSE(receives.done(none));
        me.meet();
    });
    test.role("client", [](Role& me) {
        End end(me);
        end.receive(end.take(8));
        end.connect("server");
        end.send(end.take(8));
        end.sent();
        end.received();
        me.meet();
    });
}

VIPL_TEST(Vipl_4_16_a_full_cq_loses_nothing_and_says_so_once_per_overrun, nothing) {
    static constexpr std::size_t messages = 40;
    test.role("server", [](Role& me) {
        Cq cq(me.nic(), 4);
        End end(me, {.level = VIP_SERVICE_RELIABLE_RECEPTION, .receive_cq = &cq});
        const Piece room = end.take(64);
        end.accept("client");
        for (int overrun = 0; overrun < 3; ++overrun) {
            std::vector<VIP_DESCRIPTOR*> posted;
            for (std::size_t n = 0; n < messages; ++n) posted.push_back(end.receive(room));
            me.meet();  // all may come
            me.meet();  // all have been placed
            const VIP_ERROR_DESCRIPTOR error =
                me.nic().wait_error(me, cq.handle(), VIP_ERROR_VI_OVERRUN);
            EXPECT_EQ(me.nic().handle(), error.NicHandle);
            EXPECT_EQ(cq.handle(), error.CQHandle);
            EXPECT_EQ(VIP_RESOURCE_CQ, error.ResourceCode);
            for (VIP_DESCRIPTOR* descriptor : posted) {
                EXPECT_EQ((Cq::Entry{end.vi(), true}), cq.wait());
                EXPECT_EQ(descriptor, end.received());
            }
            Cq::Entry none;
            EXPECT_FALSE(cq.done(none));
            EXPECT_EQ(0U, me.nic().errors().count(cq.handle(), VIP_ERROR_VI_OVERRUN));
        }
        me.meet();
    });
    test.role("client", [](Role& me) {
        End end(me, {.level = VIP_SERVICE_RELIABLE_RECEPTION});
        end.connect("server");
        for (int overrun = 0; overrun < 3; ++overrun) {
            me.meet();
            for (std::size_t n = 0; n < messages; ++n) end.send(end.take(8));
            for (std::size_t n = 0; n < messages; ++n) end.sent();  // which says placed
            me.meet();
        }
        me.meet();
    });
}

VIPL_TEST(Vipl_4_16_entries_of_several_vis_wait_in_order_when_the_cq_is_full, nothing) {
    static constexpr std::size_t messages = 20;
    test.role("server", [](Role& me) {
        Cq cq(me.nic(), 1);
        End first(me, {.receive_cq = &cq});
        End second(me, {.receive_cq = &cq});
        std::map<VIP_VI_HANDLE, std::vector<VIP_DESCRIPTOR*>> posted;
        for (End* end : {&first, &second})
            for (std::size_t n = 0; n < messages; ++n)
                posted[end->vi()].push_back(end->receive(Pieces{}));
        first.accept("client");
        second.accept("client");
        me.meet();
        std::map<VIP_VI_HANDLE, std::size_t> next;
        for (std::size_t n = 0; n < 2 * messages; ++n) {
            const Cq::Entry entry = cq.wait();
            VIP_DESCRIPTOR* descriptor = nullptr;
            EXPECT_EQ(VIP_SUCCESS, VipRecvDone(entry.vi, &descriptor));
            EXPECT_EQ(posted[entry.vi].at(next[entry.vi]++), descriptor);
        }
        EXPECT_EQ(messages, next[first.vi()]);
        EXPECT_EQ(messages, next[second.vi()]);
        me.meet();
    });
    test.role("client", [](Role& me) {
        End first(me);
        End second(me);
        first.connect("server");
        second.connect("server");
        for (std::size_t n = 0; n < messages; ++n)
            for (End* end : {&first, &second}) end->send(Pieces{});
        for (std::size_t n = 0; n < messages; ++n)
            for (End* end : {&first, &second}) end->sent();
        me.meet();
        me.meet();
    });
}

VIPL_TEST(Vipl_4_16_resizing_a_full_cq_keeps_its_entries, nothing) {
    test.role("only", [](Role& me) {
        for (const VIP_ULONG size : {1UL, 3UL, 10UL, 65536UL}) {
            Cq cq(me.nic(), 4);
            End end(me, {.receive_cq = &cq});
            std::vector<VIP_DESCRIPTOR*> posted;
            for (int n = 0; n < 10; ++n) posted.push_back(end.receive(Pieces{}));
            end.disconnect();  // ten completions, more than it holds
            EXPECT_EQ(VIP_SUCCESS, VipResizeCQ(cq.handle(), size));
            for (VIP_DESCRIPTOR* descriptor : posted) {
                EXPECT_EQ((Cq::Entry{end.vi(), true}), cq.wait());
                EXPECT_EQ(descriptor, end.received(VIP_DESCRIPTOR_ERROR));
            }
            Cq::Entry none;
            EXPECT_FALSE(cq.done(none)) << size;
        }
    });
}

VIPL_TEST(Vipl_4_16_resizing_under_traffic_with_a_waiter_loses_nothing, nothing) {
    constexpr int messages = 2000;
    test.role("server", [](Role& me) {
        Cq cq(me.nic(), 2);
        End end(me, {.receive_cq = &cq});
        const Piece room = end.take(64);
        for (int n = 0; n < 32; ++n) end.receive(room);
        end.accept("client");
        Thread taker(me, [&] {
            const Piece ack = end.take(0);
            VIP_DESCRIPTOR* acknowledge = end.memory().descriptor();
            for (int n = 0; n < messages; ++n) {
                EXPECT_EQ((Cq::Entry{end.vi(), true}), cq.wait());
                VIP_DESCRIPTOR* descriptor = end.received();
                EXPECT_EQ(static_cast<VIP_UINT32>(n), descriptor->CS.ImmediateData);
                end.post_receive(descriptor);
                if (n % 16 != 15) continue;
                make_send(acknowledge, {&ack, 1});  // sixteen more may come
                end.post_send(acknowledge);
                end.sent();
            }
        });
        VIP_ULONG size = 1;
        while (!taker.ended()) {
            EXPECT_EQ(VIP_SUCCESS, VipResizeCQ(cq.handle(), size));
            size = size % 40 + 1;
            me.pause();
        }
        taker.join();
        me.meet();
        end.disconnect();
        EXPECT_EQ(32U, drain(end.vi()));
    });
    test.role("client", [](Role& me) {
        End end(me);
        std::vector<VIP_DESCRIPTOR*> acknowledgements;
        for (int n = 0; n < 4; ++n) acknowledgements.push_back(end.receive(Pieces{}));
        end.connect("server");
        VIP_DESCRIPTOR* descriptor = end.memory().descriptor();
        for (int n = 0; n < messages; ++n) {
            if (n >= 32 && n % 16 == 0) end.post_receive(end.received());
            make_send(descriptor, {}, VIP_CONTROL_IMMEDIATE, static_cast<VIP_UINT32>(n));
            end.post_send(descriptor);
            end.sent();
        }
        me.meet();
    });
}

VIPL_TEST(Vipl_4_16_a_cq_bound_to_a_vi_cannot_be_destroyed, nothing) {
    test.role("only", [](Role& me) {
        Cq sends(me.nic(), 4);
        Cq receives(me.nic(), 4);
        {
            End end(me, {.send_cq = &sends, .receive_cq = &receives});
            EXPECT_EQ(VIP_ERROR_RESOURCE, VipDestroyCQ(sends.handle()));
            EXPECT_EQ(VIP_ERROR_RESOURCE, VipDestroyCQ(receives.handle()));
        }
        sends.destroy();
        receives.destroy();
    });
}

VIPL_TEST(Vipl_4_16_entries_of_a_destroyed_vi_are_gone, nothing) {
    for (const VIP_ULONG size : {1UL, 16UL}) {
        test.role("with " + std::to_string(size), [=](Role& me) {
            Cq cq(me.nic(), size);
            End stays(me, {.receive_cq = &cq});
            {
                End goes(me, {.send_cq = &cq, .receive_cq = &cq});
                for (int n = 0; n < 3; ++n) {
                    goes.receive(Pieces{});
                    stays.receive(Pieces{});
                    goes.send(Pieces{});
                }
                goes.disconnect();
                stays.disconnect();
                EXPECT_EQ(6U, drain(goes.vi()));
            }
            End heir(me, {.send_cq = &cq, .receive_cq = &cq});  // perhaps in the same place
            for (int n = 0; n < 3; ++n) {
                EXPECT_EQ((Cq::Entry{stays.vi(), true}), cq.wait());
                stays.received(VIP_DESCRIPTOR_ERROR);
            }
            Cq::Entry none;
            EXPECT_FALSE(cq.done(none));
        });
    }
}

}  // namespace
}  // namespace conformance::completion_test
