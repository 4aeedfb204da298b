// Receives that many VIs share (VIPL 5; <via/via.h>).
#include <via/via.h>

#include <array>
#include <cstring>
#include <map>
#include <memory>
#include <vector>

#include "harness/end.hpp"

namespace conformance::shared_receives_test {
namespace {

constexpr VIP_RELIABILITY_LEVEL reliable_levels[] = {VIP_SERVICE_RELIABLE_DELIVERY,
                                                     VIP_SERVICE_RELIABLE_RECEPTION};

/// A shared receive queue and memory for its receives; ends with the object.
class Shared {
public:
    explicit Shared(Nic& nic, VIP_UINT32 quota = 0, std::size_t memory_length = 256 * 1024,
                    VIP_PROTECTION_HANDLE tag = nullptr)
        : memory(nic, memory_length, rights(false, false, tag)) {
        const VIA_SHARED_RECV_ATTRIBUTES attributes{tag, 4096, quota};
        OK(ViaCreateSharedRecv(nic.handle(), &attributes, &handle));
    }
    Shared(const Shared&) = delete;
    ~Shared() { EXPECT_EQ(VIP_SUCCESS, ViaDestroySharedRecv(handle)); }

    VIP_DESCRIPTOR* receive(const Piece& piece) {
        VIP_DESCRIPTOR* descriptor = memory.descriptor();
        make_receive(descriptor, {&piece, 1});
        post(descriptor);
        return descriptor;
    }
    VIP_DESCRIPTOR* receive(std::size_t bytes) { return receive(memory.take(bytes)); }
    void post(VIP_DESCRIPTOR* descriptor) {
        OK(ViaPostSharedRecv(handle, descriptor, memory.handle()));
    }
    VIA_SHARED_RECV_STATE state() const {
        VIA_SHARED_RECV_STATE state;
        OK(ViaQuerySharedRecv(handle, &state));
        return state;
    }

    Memory memory;
    VIA_SHARED_RECV_HANDLE handle = nullptr;
};

/// An End that takes from the queue.
struct Taker : End {
    Taker(Role& me, const Shared& from, const Wants& wants = {}) : End(me, wants) {
        OK(ViaSetSharedRecv(vi(), from.handle));
    }
};

Piece piece_of(const VIP_DESCRIPTOR* descriptor) {
    return {static_cast<std::byte*>(descriptor->DS[0].Local.Data.Address), descriptor->CS.Length,
            descriptor->DS[0].Local.Handle};
}

VIPL_TEST(Vipl_5_a_shared_receive_completes_on_the_vi_that_took_it, nothing) {
    test.role("server", [](Role& me) {
        for (const VIP_RELIABILITY_LEVEL level : levels_that_deliver()) {
            Shared shared(me.nic());
            Cq cq(me.nic(), 16);
            Taker one(me, shared, {.level = level});
            Taker two(me, shared, {.level = level, .receive_cq = &cq});
            one.accept("client");
            two.accept("client");
            EXPECT_EQ(2U, shared.state().Vis);
            VIP_DESCRIPTOR* none = nullptr;
            EXPECT_EQ(VIP_NOT_DONE, VipRecvDone(one.vi(), &none)) << "one may come without a post";
            VIP_DESCRIPTOR* first = shared.receive(64);
            VIP_DESCRIPTOR* second = shared.receive(5000);
            EXPECT_EQ(2U, shared.state().Posted);
            me.tell("client", 'p');
            EXPECT_EQ(first, one.received());
            EXPECT_TRUE(has_status(first, VIP_STATUS_DONE | VIP_STATUS_OP_RECEIVE));
            EXPECT_TRUE(holds(piece_of(first), 1));
            me.tell("client", 'p');
            EXPECT_EQ((Cq::Entry{two.vi(), true}), cq.wait());
            VIP_DESCRIPTOR* took = nullptr;
            EXPECT_EQ(VIP_SUCCESS, VipRecvDone(two.vi(), &took));
            EXPECT_EQ(second, took);
            EXPECT_EQ(5000U, took->CS.Length);
            EXPECT_TRUE(holds(piece_of(took), 2));
            VIP_DESCRIPTOR* own = one.receive(one.take(64));
            VIP_DESCRIPTOR* third = shared.receive(64);
            me.tell("client", 'p');
            EXPECT_EQ(own, one.received()) << "its own are used first";
            EXPECT_EQ(third, one.received());
            EXPECT_TRUE(
                has_status(third, VIP_STATUS_DONE | VIP_STATUS_OP_RECEIVE | VIP_STATUS_IMMEDIATE));
            EXPECT_EQ(77U, third->CS.ImmediateData);
            me.meet();
        }
    });
    test.role("client", [](Role& me) {
        for (const VIP_RELIABILITY_LEVEL level : levels_that_deliver()) {
            End one(me, {.level = level});
            End two(me, {.level = level});
            one.connect("server");
            two.connect("server");
            me.hear<char>("server");
            one.send(one.filled(60, 1));
            one.sent();
            me.hear<char>("server");
            two.send(two.filled(5000, 2));
            two.sent();
            me.hear<char>("server");
            one.send(one.take(1));
            one.send(one.take(2), VIP_CONTROL_IMMEDIATE, 77);
            for (int n = 0; n < 2; ++n) one.sent();
            me.meet();
        }
    });
}

/// RDMA that tells of itself takes one, too; its buffers stay as they are.
VIPL_TEST(Vipl_5_an_rdma_write_with_immediate_data_takes_a_shared_receive, nothing) {
    test.role("server", [](Role& me) {
        Shared shared(me.nic());
        Taker end(me, shared);
        const Piece target = end.take(64);
        const Piece room = shared.memory.take(64);
        fill_with(room, 9);
        const VIP_DESCRIPTOR* receive = shared.receive(room);
        end.accept("client");
        me.tell("client", Target(target));
        EXPECT_EQ(receive, end.received());
        EXPECT_TRUE(has_status(
            receive, VIP_STATUS_DONE | VIP_STATUS_OP_REMOTE_RDMA_WRITE | VIP_STATUS_IMMEDIATE));
        EXPECT_TRUE(holds(target, 3));
        EXPECT_TRUE(holds_only(room, 9));
        me.meet();
    });
    test.role("client", [](Role& me) {
        End end(me);
        end.connect("server");
        end.write(me.hear<Target>("server"), end.filled(64, 3), VIP_CONTROL_IMMEDIATE, 5);
        end.sent();
        me.meet();
    });
}

VIPL_TEST(Vipl_5_an_empty_shared_queue_is_as_an_empty_receive_queue, nothing) {
    test.role("server", [](Role& me) {
        for (const VIP_RELIABILITY_LEVEL level : levels_that_deliver()) {
            Shared shared(me.nic());
            Taker end(me, shared, {.level = level});
            end.accept("client");
            me.meet();
            me.nic().wait_error(me, end.vi(), VIP_ERROR_RECVQ_EMPTY);
            VIP_DESCRIPTOR* none = nullptr;
            if (level == VIP_SERVICE_UNRELIABLE) {
                EXPECT_EQ(VIP_NOT_DONE, VipRecvDone(end.vi(), &none));
                EXPECT_EQ(VIP_STATE_CONNECTED, end.state());
            } else {
                EXPECT_EQ(VIP_DESCRIPTOR_ERROR, VipRecvDone(end.vi(), &none)) << "none comes";
                EXPECT_EQ(VIP_STATE_ERROR, end.state());
            }
            me.meet();
        }
    });
    test.role("client", [](Role& me) {
        for (const VIP_RELIABILITY_LEVEL level : levels_that_deliver()) {
            End end(me, {.level = level});
            end.connect("server");
            me.meet();
            end.send(end.take(8));
            end.wait_state(level == VIP_SERVICE_UNRELIABLE ? VIP_STATE_CONNECTED : VIP_STATE_ERROR);
            me.meet();
        }
    });
}

/// Who waits for a message hears that none comes any more.
VIPL_TEST(Vipl_5_a_wait_on_a_shared_queue_ends_with_the_connection, nothing) {
    test.role("server", [](Role& me) {
        Shared shared(me.nic());
        shared.receive(64);
        Taker end(me, shared);
        VIP_DESCRIPTOR* none = nullptr;
        EXPECT_EQ(VIP_DESCRIPTOR_ERROR, VipRecvWait(end.vi(), VIP_INFINITE, &none)) << "idle";
        end.accept("client");
        EXPECT_EQ(VIP_TIMEOUT, VipRecvWait(end.vi(), 0, &none));
        me.tell("client", 'g');
        EXPECT_EQ(VIP_DESCRIPTOR_ERROR, VipRecvWait(end.vi(), VIP_INFINITE, &none));
        EXPECT_EQ(nullptr, none);
        EXPECT_EQ(1U, shared.state().Posted);
    });
    test.role("client", [](Role& me) {
        End end(me);
        end.connect("server");
        me.hear<char>("server");
        end.disconnect();
    });
}

// Many VIs ----------------------------------------------------------------------------------------

constexpr std::size_t vis = 12;
constexpr VIP_UINT32 messages_of_each = 40;

/// They never have more receives than two for each of them, and with credits none breaks.
VIPL_TEST(Vipl_5_many_vis_share_few_receives_and_each_keeps_its_order, nothing) {
    test.role("server", [](Role& me) {
        for (const VIP_RELIABILITY_LEVEL level : reliable_levels) {
            Shared shared(me.nic());
            Cq cq(me.nic(), 64);
            std::vector<std::unique_ptr<Taker>> ends;
            std::map<VIP_VI_HANDLE, VIP_UINT32> next;
            for (std::size_t n = 0; n < vis; ++n) {
                ends.push_back(std::make_unique<Taker>(
                    me, shared, Wants{.level = level, .receive_cq = &cq, .memory = 4096}));
                OK(ViaSetCredits(ends.back()->vi(), VIP_TRUE));
                next[ends.back()->vi()] = 0;
            }
            for (std::size_t n = 0; n < 2 * vis; ++n) shared.receive(8);
            for (auto& end : ends) end->accept("client");
            me.meet();
            for (std::size_t n = 0; n < vis * messages_of_each; ++n) {
                const Cq::Entry entry = cq.wait();
                VIP_DESCRIPTOR* got = nullptr;
                OK(VipRecvDone(entry.vi, &got));
                VIP_UINT32 number = 0;
                std::memcpy(&number, piece_of(got).data, sizeof number);
                EXPECT_EQ(next[entry.vi]++, number);
                make_receive(got, std::array{piece_of(got).with_length(8)});
                shared.post(got);
            }
            me.meet();
        }
    });
    test.role("client", [](Role& me) {
        for (const VIP_RELIABILITY_LEVEL level : reliable_levels) {
            std::vector<std::unique_ptr<End>> ends;
            for (std::size_t n = 0; n < vis; ++n) {
                ends.push_back(
                    std::make_unique<End>(me, Wants{.level = level, .memory = 16 * 1024}));
                OK(ViaSetCredits(ends.back()->vi(), VIP_TRUE));
            }
            for (auto& end : ends) end->connect("server");
            me.meet();
            for (VIP_UINT32 number = 0; number < messages_of_each; ++number)
                for (auto& end : ends) {
                    const Piece piece = end->take(4);
                    std::memcpy(piece.data, &number, sizeof number);
                    end->send(piece);
                }
            for (auto& end : ends)
                for (VIP_UINT32 n = 0; n < messages_of_each; ++n) end->sent();
            me.meet();
        }
    });
}

VIPL_TEST(Vipl_5_a_vi_that_takes_nothing_off_leaves_receives_to_the_others, nothing) {
    test.role("server", [](Role& me) {
        Shared shared(me.nic(), 4);
        Taker lazy(me, shared);
        Taker busy(me, shared);
        for (Taker* end : {&lazy, &busy}) OK(ViaSetCredits(end->vi(), VIP_TRUE));
        for (int n = 0; n < 16; ++n) shared.receive(64);
        lazy.accept("client");
        busy.accept("client");
        me.meet();
        for (int n = 0; n < 50; ++n) shared.post(busy.received());
        EXPECT_EQ(VIP_STATE_CONNECTED, lazy.state());
        for (int n = 0; n < 50; ++n) shared.post(lazy.received());
        me.meet();
    });
    test.role("client", [](Role& me) {
        End lazy(me);
        End busy(me);
        for (End* end : {&lazy, &busy}) {
            OK(ViaSetCredits(end->vi(), VIP_TRUE));
            end->connect("server");
        }
        me.meet();
        for (int n = 0; n < 50; ++n) {
            lazy.send(lazy.take(8));
            busy.send(busy.take(8));
        }
        for (int n = 0; n < 50; ++n) busy.sent();
        for (int n = 0; n < 50; ++n) lazy.sent();
        me.meet();
    });
}

// The limit ---------------------------------------------------------------------------------------

VIPL_TEST(Vipl_5_the_limit_of_a_shared_queue_is_an_event_once, nothing) {
    test.role("server", [](Role& me) {
        Shared shared(me.nic());
        Taker end(me, shared);
        for (int n = 0; n < 6; ++n) shared.receive(64);
        end.accept("client");
        EXPECT_EQ(VIP_TIMEOUT, ViaSharedRecvWait(shared.handle, 0)) << "nothing is armed";
        OK(ViaArmSharedRecv(shared.handle, 4));
        EXPECT_EQ(4U, shared.state().Limit);
        EXPECT_EQ(VIP_TIMEOUT, ViaSharedRecvWait(shared.handle, 0));
        me.tell("client", 3);
        EXPECT_EQ(VIP_SUCCESS, ViaSharedRecvWait(shared.handle, VIP_INFINITE));
        EXPECT_EQ(0U, shared.state().Limit);
        EXPECT_GE(3U, shared.state().Posted);
        for (int n = 0; n < 3; ++n) end.received();
        EXPECT_EQ(VIP_TIMEOUT, ViaSharedRecvWait(shared.handle, 0)) << "once";
        OK(ViaArmSharedRecv(shared.handle, 4));
        EXPECT_EQ(VIP_SUCCESS, ViaSharedRecvWait(shared.handle, 0)) << "at once";
        OK(ViaArmSharedRecv(shared.handle, 3));
        EXPECT_EQ(VIP_TIMEOUT, ViaSharedRecvWait(shared.handle, 0));
        me.tell("client", 1);
        EXPECT_EQ(VIP_SUCCESS, ViaSharedRecvWait(shared.handle, patience_ms));
        end.received();
        me.meet();
    });
    test.role("client", [](Role& me) {
        End end(me);
        end.connect("server");
        for (int round = 0; round < 2; ++round)
            for (int left = me.hear<int>("server"); left > 0; --left) {
                end.send(end.take(8));
                end.sent();
            }
        me.meet();
    });
}

VIPL_TEST(Vipl_5_who_waits_for_a_limit_hears_that_the_queue_is_gone, real_threads) {
    test.role("server", [](Role& me) {
        const VIA_SHARED_RECV_ATTRIBUTES attributes{nullptr, 8, 0};
        VIA_SHARED_RECV_HANDLE queue = nullptr;
        OK(ViaCreateSharedRecv(me.nic().handle(), &attributes, &queue));
        Thread waiter(me, [queue] {
            const VIP_RETURN code = ViaSharedRecvWait(queue, VIP_INFINITE);
            EXPECT_TRUE(code == VIP_INVALID_STATE || code == VIP_INVALID_PARAMETER) << code;
        });
        OK(ViaDestroySharedRecv(queue));
        waiter.join();
    });
}

// Refusals ----------------------------------------------------------------------------------------

VIPL_TEST(Vipl_5_what_is_wrong_with_a_shared_receive_is_said_at_once, nothing) {
    test.role("only", [](Role& me) {
        Shared shared(me.nic());
        const Piece piece = shared.memory.take(64);
        VIP_DESCRIPTOR* descriptor = shared.memory.descriptor();
        const auto refused = [&](VIP_UINT32 error) {
            EXPECT_EQ(VIP_DESCRIPTOR_ERROR,
                      ViaPostSharedRecv(shared.handle, descriptor, shared.memory.handle()));
            EXPECT_TRUE(has_status(descriptor, VIP_STATUS_DONE | VIP_STATUS_OP_RECEIVE | error));
            EXPECT_EQ(0U, shared.state().Posted);
        };
        make_receive(descriptor, {&piece, 1});
        descriptor->CS.Control = VIP_CONTROL_OP_RDMAREAD;
        refused(VIP_STATUS_FORMAT_ERROR);
        make_receive(descriptor, {&piece, 1});
        descriptor->CS.SegCount = 253;
        refused(VIP_STATUS_FORMAT_ERROR);
        const Piece stray = piece.with_handle(piece.handle ^ 0x00800000);
        make_receive(descriptor, {&stray, 1});
        refused(VIP_STATUS_PROTECTION_ERROR);

        make_receive(descriptor, {&piece, 1});
        EXPECT_EQ(VIP_INVALID_PARAMETER,
                  ViaPostSharedRecv(shared.handle, descriptor, stray.handle));
        EXPECT_EQ(VIP_INVALID_PARAMETER,
                  ViaPostSharedRecv(shared.handle, nullptr, shared.memory.handle()));
        EXPECT_EQ(VIP_INVALID_PARAMETER,
                  ViaPostSharedRecv(nullptr, descriptor, shared.memory.handle()));
        shared.post(descriptor);
        EXPECT_EQ(VIP_ERROR_RESOURCE,
                  VipDeregisterMem(me.nic().handle(), shared.memory.base(), shared.memory.handle()))
            << "a posted receive uses it";
    });
}

VIPL_TEST(Vipl_5_a_shared_queue_has_room_for_what_was_asked_for, nothing) {
    test.role("only", [](Role& me) {
        VIA_SHARED_RECV_HANDLE queue = nullptr;
        for (const VIA_SHARED_RECV_ATTRIBUTES& wrong :
             {VIA_SHARED_RECV_ATTRIBUTES{nullptr, 0, 0},
              VIA_SHARED_RECV_ATTRIBUTES{nullptr, 65537, 0},
              VIA_SHARED_RECV_ATTRIBUTES{nullptr, 1, 0x80000000}})
            EXPECT_EQ(VIP_INVALID_PARAMETER,
                      ViaCreateSharedRecv(me.nic().handle(), &wrong, &queue));
        VIA_SHARED_RECV_ATTRIBUTES attributes{me.nic().handle(), 1, 0};
        EXPECT_EQ(VIP_INVALID_PTAG, ViaCreateSharedRecv(me.nic().handle(), &attributes, &queue));
        attributes.Ptag = nullptr;
        attributes.MaxDescriptors = 2;
        OK(ViaCreateSharedRecv(me.nic().handle(), &attributes, &queue));
        Memory memory(me.nic(), 4096);
        VIP_DESCRIPTOR* descriptor = nullptr;
        for (const VIP_RETURN expected : {VIP_SUCCESS, VIP_SUCCESS, VIP_ERROR_RESOURCE}) {
            const Piece piece = memory.take(8);
            descriptor = memory.descriptor();
            make_receive(descriptor, {&piece, 1});
            EXPECT_EQ(expected, ViaPostSharedRecv(queue, descriptor, memory.handle()));
        }
        OK(ViaDestroySharedRecv(queue));
        EXPECT_EQ(VIP_INVALID_PARAMETER, ViaPostSharedRecv(queue, descriptor, memory.handle()));
        EXPECT_EQ(VIP_INVALID_PARAMETER, ViaDestroySharedRecv(queue));
        EXPECT_EQ(VIP_INVALID_PARAMETER, ViaArmSharedRecv(queue, 1));
        EXPECT_EQ(VIP_INVALID_PARAMETER, ViaSharedRecvWait(queue, 0));
    });  // and the memory can be deregistered
}

VIPL_TEST(Vipl_5_a_vi_takes_from_a_queue_of_its_tag_which_stays_while_it_does, nothing) {
    test.role("server", [](Role& me) {
        const Tag tag(me.nic());
        Shared shared(me.nic(), 0, 4096, tag.handle());
        End without(me);
        EXPECT_EQ(VIP_INVALID_PTAG, ViaSetSharedRecv(without.vi(), shared.handle));
        EXPECT_EQ(VIP_INVALID_PARAMETER, ViaSetSharedRecv(without.vi(), without.vi()));
        Taker end(me, shared, {.tag = tag.handle()});
        VIP_VI_ATTRIBUTES attributes = Wants{}.attributes();
        EXPECT_EQ(VIP_INVALID_PTAG, VipSetViAttributes(end.vi(), &attributes));
        EXPECT_EQ(VIP_ERROR_RESOURCE, ViaDestroySharedRecv(shared.handle));
        EXPECT_EQ(VIP_ERROR_RESOURCE, VipDestroyPtag(me.nic().handle(), tag.handle()));
        end.accept("client");
        EXPECT_EQ(VIP_INVALID_STATE, ViaSetSharedRecv(end.vi(), nullptr));
        const VIP_DESCRIPTOR* receive = shared.receive(64);
        me.meet();
        EXPECT_EQ(receive, end.received());
        me.meet();
        end.disconnect();
        OK(ViaSetSharedRecv(end.vi(), nullptr));
        EXPECT_EQ(0U, shared.state().Vis);
    });
    test.role("client", [](Role& me) {
        End end(me);
        end.connect("server");
        me.meet();
        end.send(end.take(8));
        end.sent();
        me.meet();
    });
}

}  // namespace
}  // namespace conformance::shared_receives_test
