// Descriptors: what may be posted, what becomes of it (VIPL 4.9 to 4.12).
#include <algorithm>
#include <cstring>

#include "harness/end.hpp"

namespace conformance::descriptors_test {
namespace {

constexpr VIP_UINT32 no_length = 0xFFFFFFFF;

VIPL_TEST(Vipl_4_9_misaligned_descriptors_are_refused, nothing) {
    test.role("only", [](Role& me) {
        End end(me);
        const Piece room = end.take(256);
        for (const std::size_t offset : {1U, 2U, 4U, 8U, 16U, 32U, 48U, 63U}) {
            // Filled where it is aligned, moved as bytes.
            VIP_DESCRIPTOR filled;
            make_send(&filled, {});
            std::memcpy(room.data + offset, &filled, sizeof filled);
            auto* descriptor = reinterpret_cast<VIP_DESCRIPTOR*>(room.data + offset);
            EXPECT_EQ(VIP_INVALID_PARAMETER,
                      VipPostSend(end.vi(), descriptor, end.memory().handle()));
            EXPECT_EQ(VIP_INVALID_PARAMETER,
                      VipPostRecv(end.vi(), descriptor, end.memory().handle()));
        }
        EXPECT_TRUE(end.send_queue_empty());
        EXPECT_TRUE(end.receive_queue_empty());
    });
}

VIPL_TEST(Vipl_4_9_descriptors_must_lie_in_the_region_named_with_all_their_segments, nothing) {
    test.role("only", [](Role& me) {
        End end(me);
        Memory memory(me.nic(), 8192);
        const auto post = [&](std::size_t at, std::size_t region_from, std::size_t region_length,
                              std::size_t segments) {
            std::byte* base = memory.base();
            VIP_MEM_HANDLE region = 0;
            OK(VipRegisterMem(me.nic().handle(), base + region_from, region_length, nullptr,
                              &region));
            auto* descriptor = reinterpret_cast<VIP_DESCRIPTOR*>(base + at);
            make_receive(descriptor, std::vector<Piece>(segments, memory.take(0, 1)));
            const VIP_RETURN code = VipPostRecv(end.vi(), descriptor, region);
            end.disconnect();
            drain(end.vi());
            OK(VipDeregisterMem(me.nic().handle(), base + region_from, region));
            return code;
        };
        EXPECT_EQ(VIP_SUCCESS, post(1024, 1024, 64, 2)) << "it just fits";
        EXPECT_EQ(VIP_INVALID_PARAMETER, post(1024, 1025, 64, 1)) << "begins before";
        EXPECT_EQ(VIP_INVALID_PARAMETER, post(1024, 1024, 47, 1)) << "a segment ends behind";
        EXPECT_EQ(VIP_INVALID_PARAMETER, post(1024, 2048, 64, 1)) << "elsewhere";
        EXPECT_EQ(VIP_INVALID_PARAMETER, post(1024, 512, 512, 0)) << "right behind the end";
        EXPECT_EQ(VIP_SUCCESS, post(1024, 1000, 24 + 32 + 252 * 16, 252));
        EXPECT_EQ(VIP_INVALID_PARAMETER, post(1024, 1000, 24 + 32 + 252 * 16 - 1, 252));
        EXPECT_EQ(VIP_INVALID_PARAMETER, post(1024, 1024, 64, 3)) << "the third ends behind";
    });
}

VIPL_TEST(Vipl_4_9_leftovers_in_fields_of_the_nic_do_not_matter, nothing) {
    const auto spoil = [](VIP_DESCRIPTOR* descriptor) {
        descriptor->CS.Next.AddressBits = 0xDEAD0000BEEF0000;
        descriptor->CS.NextHandle = 0x7FFFFFFF;
        descriptor->CS.Status = VIP_STATUS_DONE | VIP_STATUS_LENGTH_ERROR | VIP_STATUS_IMMEDIATE;
    };
    test.role("server", [=](Role& me) {
        End end(me);
        VIP_DESCRIPTOR* descriptor = end.memory().descriptor();
        const Piece room = end.take(64);
        make_receive(descriptor, {&room, 1});
        spoil(descriptor);
        descriptor->CS.Control = VIP_CONTROL_IMMEDIATE;
        end.post_receive(descriptor);
        EXPECT_EQ(0U, descriptor->CS.Status & VIP_STATUS_DONE) << "the post cleared it";
        end.accept("client");
        EXPECT_EQ(descriptor, end.received());
        EXPECT_TRUE(has_status(descriptor, VIP_STATUS_DONE | VIP_STATUS_OP_RECEIVE));
        EXPECT_TRUE(holds(room, 1));
    });
    test.role("client", [=](Role& me) {
        End end(me);
        end.connect("server");
        VIP_DESCRIPTOR* descriptor = end.memory().descriptor();
        const Piece data = end.filled(64, 1);
        make_send(descriptor, {&data, 1});
        spoil(descriptor);
        end.post_send(descriptor);
        EXPECT_EQ(descriptor, end.sent());
        EXPECT_TRUE(has_status(descriptor, VIP_STATUS_DONE | VIP_STATUS_OP_SEND));
        me.wait_for_end_of("server");
    });
}

VIPL_TEST(Vipl_4_9_the_post_reads_the_descriptor_once, nothing) {
    const auto overwrite = [](VIP_DESCRIPTOR* descriptor, const Piece& other) {
        descriptor->CS.SegCount = 1;
        descriptor->CS.Control = VIP_CONTROL_RESERVED;
        descriptor->CS.Reserved = 77;
        descriptor->DS[0].Local.Data.AddressBits = reinterpret_cast<VIP_UINT64>(other.data);
        descriptor->DS[0].Local.Handle = other.handle;
        descriptor->DS[0].Local.Length = other.length;
        descriptor->DS[1].Local.Handle = 0;
    };
    test.role("server", [=](Role& me) {
        End end(me);
        const Piece pieces[] = {end.take(32), end.take(32)};
        const Piece other = end.take(64);
        fill_with(other, 3);
        VIP_DESCRIPTOR* descriptor = end.receive(pieces);
        overwrite(descriptor, other);
        end.accept("client");
        EXPECT_EQ(descriptor, end.received());
        EXPECT_EQ(64U, descriptor->CS.Length);
        EXPECT_TRUE(holds(pieces[0], 1));
        EXPECT_TRUE(holds(pieces[1], 1, 32));
        EXPECT_TRUE(holds_only(other, 3));
    });
    test.role("client", [=](Role& me) {
        End end(me);
        end.connect("server");
        const Piece pieces[] = {end.take(32), end.take(32)};
        fill(pieces[0], 1);
        fill(pieces[1], 1, 32);
        VIP_DESCRIPTOR* descriptor = end.send(pieces);
        overwrite(descriptor, end.filled(64, 2));
        EXPECT_EQ(descriptor, end.sent());
        me.wait_for_end_of("server");
    });
}

VIPL_TEST(Vipl_4_9_a_program_may_spin_on_status_and_call_done_afterwards, polls_memory) {
    const auto spin = [](Role& me, const VIP_DESCRIPTOR* descriptor) {
        me.until([=] { return (descriptor->CS.Status & VIP_STATUS_DONE) != 0; },
                 "DONE shows in Status without a call of Done");
        std::atomic_thread_fence(std::memory_order_acquire);
    };
    test.role("server", [=](Role& me) {
        End end(me);
        VIP_DESCRIPTOR* descriptors[20];
        Piece pieces[20];
        for (int index = 0; index < 20; ++index) {
            pieces[index] = end.take(1000);
            descriptors[index] = end.receive(pieces[index]);
        }
        end.accept("client");
        for (unsigned index = 0; index < 20; ++index) {
            spin(me, descriptors[index]);
            EXPECT_EQ(index * 50, descriptors[index]->CS.Length) << "Status is written last";
            EXPECT_EQ(index, descriptors[index]->CS.ImmediateData);
            EXPECT_TRUE(holds(pieces[index].with_length(index * 50), index));
        }
        for (VIP_DESCRIPTOR* descriptor : descriptors) EXPECT_EQ(descriptor, end.received());
        me.meet();
    });
    test.role("client", [=](Role& me) {
        End end(me, {.level = VIP_SERVICE_RELIABLE_DELIVERY});
        end.connect("server");
        for (unsigned index = 0; index < 20; ++index) {
            VIP_DESCRIPTOR* descriptor =
                end.send(end.filled(index * 50, index), VIP_CONTROL_IMMEDIATE, index);
            spin(me, descriptor);
            VIP_DESCRIPTOR* done = nullptr;
            EXPECT_EQ(VIP_SUCCESS, VipSendDone(end.vi(), &done));
            EXPECT_EQ(descriptor, done);
        }
        me.meet();
    });
}

// What a message carries ------------------------------------------------------------------------

VIPL_TEST(Vipl_4_10_no_segments_make_a_message_of_no_bytes_that_consumes_a_receive, nothing) {
    test.role("server", [](Role& me) {
        End end(me);
        const Piece room = end.take(16);
        fill_with(room, 9);
        VIP_DESCRIPTOR* first = end.receive(room);
        VIP_DESCRIPTOR* second = end.receive(Pieces{});
        end.accept("client");
        EXPECT_EQ(first, end.received());
        EXPECT_EQ(0U, first->CS.Length);
        EXPECT_TRUE(holds_only(room, 9));
        EXPECT_EQ(second, end.received());
        EXPECT_EQ(0U, second->CS.Length);
    });
    test.role("client", [](Role& me) {
        End end(me);
        end.connect("server");
        end.send(Pieces{});
        end.send(end.take(0));
        end.sent();
        end.sent();
        me.wait_for_end_of("server");
    });
}

VIPL_TEST(Vipl_4_10_as_many_segments_as_the_nic_reports, nothing) {
    const auto cut = [](Role& me, End& end, std::size_t size) {
        std::vector<Piece> pieces;
        for (VIP_ULONG n = 0; n < std::min(me.nic().attributes().MaxSegmentsPerDesc, 1000UL); ++n)
            pieces.push_back(end.memory().take(size, 1));
        return pieces;
    };
    test.role("server", [=](Role& me) {
        End end(me);
        const std::vector<Piece> pieces = cut(me, end, 21);
        VIP_DESCRIPTOR* descriptor = end.receive(pieces);
        end.accept("client");
        EXPECT_EQ(descriptor, end.received());
        EXPECT_EQ(pieces.size() * 20, descriptor->CS.Length);
        std::size_t from = 0;
        std::size_t left = pieces.size() * 20;
        for (const Piece& piece : pieces) {
            const std::size_t bytes = std::min<std::size_t>(piece.length, left);
            EXPECT_TRUE(holds(piece.with_length(bytes), 1, from));
            from += bytes;
            left -= bytes;
        }
    });
    test.role("client", [=](Role& me) {
        End end(me);
        end.connect("server");
        const std::vector<Piece> pieces = cut(me, end, 20);
        for (std::size_t n = 0; n < pieces.size(); ++n) fill(pieces[n], 1, n * 20);
        VIP_DESCRIPTOR* descriptor = end.send(pieces);
        EXPECT_EQ(descriptor, end.sent());
        me.wait_for_end_of("server");
    });
}

VIPL_TEST(Vipl_4_10_rdma_counts_the_address_segment, nothing) {
    test.role("server", [](Role& me) {
        End end(me);
        const Piece room = end.take(251 * 4 + 16);
        fill_with(room, 9);
        end.accept("client");
        me.tell("client", Target(room));
        end.expect("client", 2);
        EXPECT_TRUE(holds(room.with_length(251 * 4), 1));
        EXPECT_TRUE(holds_only(room.part(251 * 4, 16), 9));
    });
    test.role("client", [](Role& me) {
        End end(me);
        end.connect("server");
        std::vector<Piece> pieces;
        for (std::size_t n = 0; n < 251; ++n) {  // with the address segment 252
            pieces.push_back(end.memory().take(4, 1));
            fill(pieces.back(), 1, n * 4);
        }
        end.write(me.hear<Target>("server"), pieces);
        end.sent();
        end.say("server", 2);
        me.wait_for_end_of("server");
    });
}

VIPL_TEST(Vipl_4_10_a_receive_may_hold_more_than_the_longest_message, nothing) {
    test.role("server", [](Role& me) {
        End end(me, {.transfer_max = 1000});
        VIP_DESCRIPTOR* descriptor = end.memory().descriptor();
        const Piece room = end.take(50000);
        for (const VIP_UINT32 on_entry : {VIP_UINT32{0}, VIP_UINT32{5}, no_length}) {
            make_receive(descriptor, {&room, 1});
            descriptor->CS.Length = on_entry;  // is no limit
            end.post_receive(descriptor);
            if (on_entry == 0) end.accept("client");
            me.tell("client", 'r');
            EXPECT_EQ(descriptor, end.received());
            EXPECT_EQ(1000U, descriptor->CS.Length);
            EXPECT_TRUE(holds(room.with_length(1000), 1));
        }
    });
    test.role("client", [](Role& me) {
        End end(me, {.transfer_max = 1000});
        end.connect("server");
        const Piece data = end.filled(1000, 1);
        for (int round = 0; round < 3; ++round) {
            me.hear<char>("server");
            end.send(data);
            end.sent();
        }
        me.wait_for_end_of("server");
    });
}

VIPL_TEST(Vipl_4_11_a_completed_send_is_as_it_was_but_for_its_status, nothing) {
    test.role("server", [](Role& me) {
        End end(me);
        end.receive(end.take(64));
        end.accept("client");
        end.received();
    });
    test.role("client", [](Role& me) {
        End end(me);
        end.connect("server");
        const Piece pieces[] = {end.take(40), end.take(24)};
        VIP_DESCRIPTOR* descriptor = end.memory().descriptor();
        make_send(descriptor, pieces, VIP_CONTROL_IMMEDIATE, 0xCAFE);
        unsigned char before[sizeof(VIP_DESCRIPTOR)];
        std::memcpy(before, descriptor, sizeof before);
        end.post_send(descriptor);
        EXPECT_EQ(descriptor, end.sent());
        EXPECT_TRUE(has_status(descriptor, VIP_STATUS_DONE | VIP_STATUS_OP_SEND));
        // All but Next, NextHandle and Status.
        EXPECT_EQ(0, std::memcmp(before + 12, reinterpret_cast<char*>(descriptor) + 12, 16));
        EXPECT_EQ(0, std::memcmp(before + 32, reinterpret_cast<char*>(descriptor) + 32, 32));
        me.wait_for_end_of("server");
    });
}

VIPL_TEST(Vipl_4_11_a_receive_learns_length_and_immediate_data_only_when_it_came, nothing) {
    test.role("server", [](Role& me) {
        End end(me);
        VIP_DESCRIPTOR* descriptors[3];
        for (VIP_DESCRIPTOR*& descriptor : descriptors) {
            descriptor = end.memory().descriptor();
            const Piece room = end.take(64);
            make_receive(descriptor, {&room, 1});
            descriptor->CS.ImmediateData = 0x11111111;
            end.post_receive(descriptor);
        }
        end.accept("client");
        for (int n = 0; n < 3; ++n) EXPECT_EQ(descriptors[n], end.received());
        EXPECT_TRUE(has_status(descriptors[0], VIP_STATUS_DONE | VIP_STATUS_OP_RECEIVE));
        EXPECT_EQ(0x11111111U, descriptors[0]->CS.ImmediateData);
        EXPECT_EQ(10U, descriptors[0]->CS.Length);
        EXPECT_TRUE(has_status(descriptors[1],
                               VIP_STATUS_DONE | VIP_STATUS_OP_RECEIVE | VIP_STATUS_IMMEDIATE));
        EXPECT_EQ(0x22222222U, descriptors[1]->CS.ImmediateData);
        EXPECT_EQ(20U, descriptors[1]->CS.Length);
        EXPECT_TRUE(has_status(descriptors[2],
                               VIP_STATUS_DONE | VIP_STATUS_OP_RECEIVE | VIP_STATUS_IMMEDIATE));
        EXPECT_EQ(0U, descriptors[2]->CS.ImmediateData);
        EXPECT_EQ(0U, descriptors[2]->CS.Length);
    });
    test.role("client", [](Role& me) {
        End end(me);
        end.connect("server");
        end.send(end.take(10), 0, 0x99999999);
        end.send(end.take(20), VIP_CONTROL_IMMEDIATE, 0x22222222);
        end.send(Pieces{}, VIP_CONTROL_IMMEDIATE, 0);
        for (int n = 0; n < 3; ++n) end.sent();
        me.wait_for_end_of("server");
    });
}

VIPL_TEST(Vipl_4_11_rdma_write_with_immediate_consumes_a_receive_and_leaves_its_buffers, nothing) {
    test.role("server", [](Role& me) {
        End end(me);
        const Piece target = end.take(100);
        const Piece room = end.take(100);
        fill_with(room, 9);
        VIP_DESCRIPTOR* descriptors[] = {end.receive(room), end.receive(Pieces{}),
                                         end.receive(room)};
        end.accept("client");
        me.tell("client", Target(target));
        for (VIP_DESCRIPTOR* descriptor : descriptors) EXPECT_EQ(descriptor, end.received());
        for (const unsigned n : {0U, 1U}) {
            EXPECT_TRUE(has_status(descriptors[n], VIP_STATUS_DONE | VIP_STATUS_IMMEDIATE |
                                                       VIP_STATUS_OP_REMOTE_RDMA_WRITE));
            EXPECT_EQ(77 + n, descriptors[n]->CS.ImmediateData);
        }
        EXPECT_TRUE(holds_only(room, 9));
        EXPECT_TRUE(holds(target, 1));
        // A write without immediate data consumed none.
        EXPECT_TRUE(has_status(descriptors[2], VIP_STATUS_DONE | VIP_STATUS_OP_RECEIVE));
    });
    test.role("client", [](Role& me) {
        End end(me);
        end.connect("server");
        const auto target = me.hear<Target>("server");
        VIP_DESCRIPTOR* first = end.write(target, end.filled(100, 1), VIP_CONTROL_IMMEDIATE, 77);
        end.write(target, Pieces{}, VIP_CONTROL_IMMEDIATE, 78);
        end.write(target.at(50), Pieces{});
        end.send(Pieces{});
        EXPECT_EQ(first, end.sent());
        EXPECT_TRUE(has_status(first, VIP_STATUS_DONE | VIP_STATUS_OP_RDMA_WRITE));
        for (int n = 0; n < 3; ++n) end.sent();
        me.wait_for_end_of("server");
    });
}

// Faults ------------------------------------------------------------------------------------------

/// A way to spoil a good send of 64 bytes in two segments, and the errors it may complete with.
struct Fault {
    const char* name;
    void (*spoil)(VIP_DESCRIPTOR*);
    VIP_UINT32 errors;
};

constexpr VIP_UINT32 format = VIP_STATUS_FORMAT_ERROR;
constexpr VIP_UINT32 format_or_length = VIP_STATUS_FORMAT_ERROR | VIP_STATUS_LENGTH_ERROR;

const Fault send_faults[] = {
    {"reserved operation", [](auto d) { d->CS.Control |= VIP_CONTROL_OP_RESERVED; }, format},
    {"reserved control bit 4", [](auto d) { d->CS.Control |= 0x10; }, format},
    {"reserved control bit 15", [](auto d) { d->CS.Control |= 0x8000; }, format},
    {"reserved word", [](auto d) { d->CS.Reserved = 1; }, format},
    {"253 segments", [](auto d) { d->CS.SegCount = 253; }, format},
    {"sum too small", [](auto d) { d->CS.Length = 65; }, format_or_length},
    {"sum too large", [](auto d) { d->CS.Length = 63; }, format_or_length},
    {"a segment not counted", [](auto d) { d->CS.SegCount = 1; }, format_or_length},
    {"segments and no length", [](auto d) { d->CS.Length = 0; }, format_or_length},
    {"longer than agreed",
     [](auto d) {
         d->CS.Length = 32 + 65536;
         d->DS[1].Local.Length = 65536;
     },
     format_or_length},
    {"sum of 32 bits overflows to its length",
     [](auto d) {
         d->DS[0].Local.Length = 0xFFFFFFFF;
         d->DS[1].Local.Length = 65;
     },
     format_or_length | VIP_STATUS_PROTECTION_ERROR},
    {"segment without handle", [](auto d) { d->DS[1].Local.Handle = 0; },
     VIP_STATUS_PROTECTION_ERROR},
    {"segment with an invented handle", [](auto d) { d->DS[1].Local.Handle = 0x7FFFFFFF; },
     VIP_STATUS_PROTECTION_ERROR},
    {"segment elsewhere", [](auto d) { d->DS[0].Local.Data.AddressBits = 8; },
     VIP_STATUS_PROTECTION_ERROR},
    {"segment that wraps round", [](auto d) { d->DS[0].Local.Data.AddressBits = ~0ULL - 3; },
     VIP_STATUS_PROTECTION_ERROR},
    {"RDMA write without address segment",
     [](auto d) {
         d->CS.Control |= VIP_CONTROL_OP_RDMAWRITE;
         d->CS.SegCount = 0;
         d->CS.Length = 0;
     },
     format},
};

VIPL_TEST(Vipl_4_12_faults_of_a_send_show_in_its_status_and_an_unreliable_vi_lives_on, nothing) {
    test.role("server", [](Role& me) {
        End end(me, {.level = VIP_SERVICE_UNRELIABLE});
        end.accept("client");
        for (std::size_t n = 0; n < std::size(send_faults); ++n)
            end.expect("client", static_cast<int>(n));
    });
    test.role("client", [](Role& me) {
        End end(me, {.level = VIP_SERVICE_UNRELIABLE});
        const Piece pieces[] = {end.take(32), end.take(32)};
        VIP_DESCRIPTOR* descriptor = end.memory().descriptor(300);
        end.connect("server");
        for (std::size_t n = 0; n < std::size(send_faults); ++n) {
            SCOPED_TRACE(send_faults[n].name);
            make_send(descriptor, pieces);
            send_faults[n].spoil(descriptor);
            end.post_send(descriptor);
            EXPECT_EQ(descriptor, end.sent(VIP_DESCRIPTOR_ERROR));
            EXPECT_TRUE(failed_with(descriptor, send_faults[n].errors));
            EXPECT_EQ(VIP_STATE_CONNECTED, end.state());
            end.say("server", static_cast<int>(n));
        }
        me.wait_for_end_of("server");
    });
}

VIPL_TEST(Vipl_4_12_faults_of_a_send_show_in_its_status_on_a_reliable_vi, nothing) {
    test.role("server", [](Role& me) {
        for (std::size_t n = 0; n < std::size(send_faults); ++n) {
            End end(me);
            end.accept("client");
            me.meet();
        }
    });
    test.role("client", [](Role& me) {
        for (const Fault& fault : send_faults) {
            SCOPED_TRACE(fault.name);
            End end(me);
            const Piece pieces[] = {end.take(32), end.take(32)};
            VIP_DESCRIPTOR* descriptor = end.memory().descriptor(300);
            end.connect("server");
            make_send(descriptor, pieces);
            fault.spoil(descriptor);
            end.post_send(descriptor);
            EXPECT_EQ(descriptor, end.sent(VIP_DESCRIPTOR_ERROR));
            EXPECT_TRUE(failed_with(descriptor, fault.errors));
            me.meet();
        }
    });
}

VIPL_TEST(Vipl_4_12_a_fault_completes_in_its_turn, nothing) {
    test.role("server", [](Role& me) {
        End end(me, {.level = VIP_SERVICE_UNRELIABLE});
        const Piece room = end.take(64);
        end.receive(room);
        end.receive(room);
        end.accept("client");
        EXPECT_EQ(10U, end.received()->CS.Length);
        EXPECT_EQ(30U, end.received()->CS.Length);
    });
    test.role("client", [](Role& me) {
        End end(me, {.level = VIP_SERVICE_UNRELIABLE});
        end.connect("server");
        VIP_DESCRIPTOR* first = end.send(end.take(10));
        VIP_DESCRIPTOR* faulty = end.send(end.take(20).with_handle(0));
        VIP_DESCRIPTOR* last = end.send(end.take(30));
        EXPECT_EQ(first, end.sent());
        EXPECT_EQ(faulty, end.sent(VIP_DESCRIPTOR_ERROR));
        EXPECT_EQ(last, end.sent());
        me.wait_for_end_of("server");
    });
}

const Fault receive_faults[] = {
    {"reserved control bit", [](auto d) { d->CS.Control |= 0x10; }, format},
    {"reserved word", [](auto d) { d->CS.Reserved = 1; }, format},
    {"253 segments", [](auto d) { d->CS.SegCount = 253; }, format},
    {"segment without handle", [](auto d) { d->DS[1].Local.Handle = 0; },
     VIP_STATUS_PROTECTION_ERROR},
    {"segment elsewhere", [](auto d) { d->DS[0].Local.Data.AddressBits = 8; },
     VIP_STATUS_PROTECTION_ERROR},
};

VIPL_TEST(Vipl_4_12_faults_of_a_receive_show_in_its_status, nothing) {
    test.role("server", [](Role& me) {
        for (const Fault& fault : receive_faults) {
            SCOPED_TRACE(fault.name);
            End end(me, {.level = VIP_SERVICE_UNRELIABLE});
            const Piece pieces[] = {end.take(32), end.take(32)};
            VIP_DESCRIPTOR* descriptor = end.memory().descriptor(300);
            make_receive(descriptor, pieces);
            fault.spoil(descriptor);
            end.accept("client");
            end.post_receive(descriptor);
            EXPECT_EQ(descriptor, end.received(VIP_DESCRIPTOR_ERROR));
            EXPECT_TRUE(failed_with(descriptor, fault.errors));
            end.expect("client", 1);
            me.meet();
        }
    });
    test.role("client", [](Role& me) {
        for (std::size_t n = 0; n < std::size(receive_faults); ++n) {
            End end(me, {.level = VIP_SERVICE_UNRELIABLE});
            end.connect("server");
            end.say("server", 1);
            me.meet();
        }
    });
}

VIPL_TEST(Vipl_4_12_a_full_queue_is_error_resource_and_loses_nothing, nothing) {
    test.role("server", [](Role& me) {
        End end(me, {.memory = 1 << 20});
        std::vector<VIP_DESCRIPTOR*> posted;
        for (VIP_RETURN code = VIP_SUCCESS; code == VIP_SUCCESS;) {
            VIP_DESCRIPTOR* descriptor = end.memory().descriptor();
            make_receive(descriptor, {});
            code = VipPostRecv(end.vi(), descriptor, end.memory().handle());
            if (code == VIP_SUCCESS)
                posted.push_back(descriptor);
            else
                EXPECT_EQ(VIP_ERROR_RESOURCE, code);
        }
        EXPECT_GE(posted.size(), me.nic().attributes().MaxDescriptorsPerQueue);
        end.accept("client");
        VIP_DESCRIPTOR* first = posted.front();
        me.tell("client", std::size_t{1});
        EXPECT_EQ(first, end.received());
        end.post_receive(first);  // there is room for one again
        VIP_DESCRIPTOR* more = end.memory().descriptor();
        make_receive(more, {});
        EXPECT_EQ(VIP_ERROR_RESOURCE, VipPostRecv(end.vi(), more, end.memory().handle()));
        me.tell("client", posted.size());
        for (std::size_t n = 1; n < posted.size(); ++n) EXPECT_EQ(posted[n], end.received());
        EXPECT_EQ(first, end.received());
        EXPECT_TRUE(end.receive_queue_empty());
        me.meet();
    });
    test.role("client", [](Role& me) {
        End end(me);
        end.connect("server");
        VIP_DESCRIPTOR* descriptor = end.memory().descriptor();
        for (int part = 0; part < 2; ++part) {
            for (auto left = me.hear<std::size_t>("server"); left > 0; --left) {
                make_send(descriptor, {});
                end.post_send(descriptor);
                end.sent();
            }
        }
        me.meet();
    });
}

}  // namespace
}  // namespace conformance::descriptors_test
