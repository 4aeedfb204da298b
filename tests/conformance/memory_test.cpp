// Registered memory and protection tags (VIPL 4.6 to 4.8).
#include <set>
#include <span>

#include "harness/end.hpp"

namespace conformance::memory_test {
namespace {

/// Registers any bytes, as they lie.
VIP_MEM_HANDLE enter(Nic& nic, void* address, std::size_t length, VIP_MEM_ATTRIBUTES attributes,
                     Where where = Where::current()) {
    VIP_MEM_HANDLE handle = 0;
    must(VipRegisterMem(nic.handle(), address, length, &attributes, &handle), "VipRegisterMem",
         where);
    return handle;
}

VIP_PROTECTION_HANDLE new_tag(Nic& nic, Where where = Where::current()) {
    VIP_PROTECTION_HANDLE tag = nullptr;
    must(VipCreatePtag(nic.handle(), &tag), "VipCreatePtag", where);
    return tag;
}

VIPL_TEST(Vipl_4_6_attributes_left_out_mean_no_tag_and_no_rdma, nothing) {
    test.role("only", [](Role& me) {
        char bytes[100];
        VIP_MEM_HANDLE handle = 0;
        OK(VipRegisterMem(me.nic().handle(), bytes, sizeof bytes, nullptr, &handle));
        VIP_MEM_ATTRIBUTES attributes = rights(true, true, &attributes);
        OK(VipQueryMem(me.nic().handle(), bytes, handle, &attributes));
        EXPECT_EQ(nullptr, attributes.Ptag);
        EXPECT_EQ(VIP_FALSE, attributes.EnableRdmaWrite);
        EXPECT_EQ(VIP_FALSE, attributes.EnableRdmaRead);
        OK(VipDeregisterMem(me.nic().handle(), bytes, handle));
    });
}

VIPL_TEST(Vipl_4_6_attributes_are_told_and_can_be_changed, nothing) {
    test.role("only", [](Role& me) {
        const VIP_NIC_HANDLE nic = me.nic().handle();
        const VIP_PROTECTION_HANDLE tag = new_tag(me.nic());
        char bytes[100];
        const VIP_MEM_HANDLE handle = enter(me.nic(), bytes, sizeof bytes, rights(true, false));
        VIP_MEM_ATTRIBUTES attributes;
        OK(VipQueryMem(nic, bytes, handle, &attributes));
        EXPECT_EQ(nullptr, attributes.Ptag);
        EXPECT_EQ(VIP_TRUE, attributes.EnableRdmaWrite);
        EXPECT_EQ(VIP_FALSE, attributes.EnableRdmaRead);
        attributes = rights(false, true, tag);
        OK(VipSetMemAttributes(nic, bytes, handle, &attributes));
        attributes = rights(true, false);
        OK(VipQueryMem(nic, bytes, handle, &attributes));
        EXPECT_EQ(tag, attributes.Ptag);
        EXPECT_EQ(VIP_FALSE, attributes.EnableRdmaWrite);
        EXPECT_EQ(VIP_TRUE, attributes.EnableRdmaRead);
        OK(VipDeregisterMem(nic, bytes, handle));
        OK(VipDestroyPtag(nic, tag));
    });
}

VIPL_TEST(Vipl_4_6_deregistering_takes_the_original_address, nothing) {
    test.role("only", [](Role& me) {
        const VIP_NIC_HANDLE nic = me.nic().handle();
        char bytes[100];
        const VIP_MEM_HANDLE handle = enter(me.nic(), bytes, sizeof bytes, rights(false, false));
        VIP_MEM_ATTRIBUTES attributes;
        for (char* wrong : {bytes + 1, bytes + 99, static_cast<char*>(nullptr)}) {
            EXPECT_EQ(VIP_INVALID_PARAMETER, VipDeregisterMem(nic, wrong, handle));
            EXPECT_EQ(VIP_INVALID_PARAMETER, VipQueryMem(nic, wrong, handle, &attributes));
        }
        EXPECT_EQ(VIP_SUCCESS, VipQueryMem(nic, bytes, handle, &attributes));
        EXPECT_EQ(VIP_SUCCESS, VipDeregisterMem(nic, bytes, handle));
        EXPECT_EQ(VIP_INVALID_PARAMETER, VipDeregisterMem(nic, bytes, handle));
    });
}

VIPL_TEST(Vipl_4_6_a_region_beyond_the_end_of_all_addresses_is_refused, nothing) {
    test.role("only", [](Role& me) {
        VIP_MEM_HANDLE handle = 77;
        char bytes[8];
        EXPECT_NE(VIP_SUCCESS,
                  VipRegisterMem(me.nic().handle(), bytes, ~VIP_ULONG{0}, nullptr, &handle));
        EXPECT_EQ(77U, handle);
    });
}

VIPL_TEST(Vipl_1_11_memory_handles_are_never_zero_never_repeat_and_keep_bit_31_clear, nothing) {
    test.role("only", [](Role& me) {
        char bytes[8];
        std::set<VIP_MEM_HANDLE> seen;
        for (int round = 0; round < 20000; ++round) {
            const VIP_MEM_HANDLE handle = enter(me.nic(), bytes, sizeof bytes, {});
            require(handle != 0 && handle >> 31 == 0, "a handle is not 0, bit 31 zero");
            require(seen.insert(handle).second, "no handle comes twice");
            OK(VipDeregisterMem(me.nic().handle(), bytes, handle));
        }
    });
}

VIPL_TEST(Vipl_4_6_any_address_and_length_works_exact_to_the_byte, nothing) {
    struct Case {
        std::size_t from, length;  // within a region from 1000 to 1037
        bool allowed;
    };
    static constexpr Case cases[] = {
        {1000, 37, true},  {1000, 1, true},  {1036, 1, true},  {999, 1, false}, {999, 38, false},
        {1000, 38, false}, {1037, 1, false}, {1036, 2, false}, {0, 16, false},  {1001, 36, true}};
    test.role("server", [](Role& me) {
        End end(me, {.level = VIP_SERVICE_UNRELIABLE});
        std::vector<Piece> rooms;
        for (const Case& one : cases) {
            rooms.push_back(end.take(100));
            if (one.allowed) end.receive(rooms.back());
        }
        end.accept("client");
        for (std::size_t n = 0; n < std::size(cases); ++n) {
            if (!cases[n].allowed) continue;
            EXPECT_EQ(cases[n].length, end.received()->CS.Length);
            EXPECT_TRUE(holds(rooms[n].with_length(cases[n].length), 1, cases[n].from));
        }
    });
    test.role("client", [](Role& me) {
        End end(me, {.level = VIP_SERVICE_UNRELIABLE});
        const Piece all = end.filled(4096, 1);
        const VIP_MEM_HANDLE exact = enter(me.nic(), all.data + 1000, 37, rights(false, false));
        end.connect("server");
        for (const Case& one : cases) {
            SCOPED_TRACE(testing::Message() << one.length << " bytes from " << one.from);
            end.send(all.part(one.from, one.length).with_handle(exact));
            const VIP_DESCRIPTOR* sent = end.sent(one.allowed ? VIP_SUCCESS : VIP_DESCRIPTOR_ERROR);
            EXPECT_TRUE(has_status(sent, one.allowed
                                             ? VIP_STATUS_DONE
                                             : VIP_STATUS_DONE | VIP_STATUS_PROTECTION_ERROR));
        }
        me.wait_for_end_of("server");
        OK(VipDeregisterMem(me.nic().handle(), all.data + 1000, exact));
    });
}

VIPL_TEST(Vipl_4_6_registrations_of_the_same_bytes_have_rights_of_their_own, nothing) {
    test.role("server", [](Role& me) {
        End end(me, {.level = VIP_SERVICE_UNRELIABLE});
        const Piece piece = end.take(64);
        fill_with(piece, 7);
        const VIP_MEM_HANDLE closed = enter(me.nic(), piece.data, 64, rights(false, false));
        const VIP_MEM_HANDLE open = enter(me.nic(), piece.data, 64, rights(true, false));
        const VIP_MEM_HANDLE half = enter(me.nic(), piece.data + 32, 32, rights(true, false));
        EXPECT_NE(closed, open);
        end.accept("client");
        for (const VIP_MEM_HANDLE handle : {closed, open, half})
            me.tell("client", Target(piece.with_handle(handle)));
        me.meet();  // written with `closed`
        me.nic().wait_error(me, end.vi(), VIP_ERROR_RDMAW_PROT);
        EXPECT_TRUE(holds_only(piece, 7));
        me.meet();
        end.expect("client", 1);
        EXPECT_TRUE(holds(piece, 1));
        OK(VipDeregisterMem(me.nic().handle(), piece.data, open));  // the others live on
        me.meet();
        end.expect("client", 2);
        EXPECT_TRUE(holds(piece.part(0, 32), 1));
        EXPECT_TRUE(holds(piece.part(32, 32), 2));
        OK(VipDeregisterMem(me.nic().handle(), piece.data, closed));
        OK(VipDeregisterMem(me.nic().handle(), piece.data + 32, half));
        me.meet();
    });
    test.role("client", [](Role& me) {
        End end(me, {.level = VIP_SERVICE_UNRELIABLE});
        end.connect("server");
        const auto closed = me.hear<Target>("server");
        const auto open = me.hear<Target>("server");
        const auto half = me.hear<Target>("server");
        end.write(closed, end.filled(64, 1));
        end.sent();
        me.meet();
        me.meet();
        end.write(open, end.filled(64, 1));
        end.sent();
        end.say("server", 1);
        me.meet();
        end.write(half.at(32), end.filled(32, 2));
        end.sent();
        end.say("server", 2);
        me.meet();
    });
}

// Tags --------------------------------------------------------------------------------------------

VIPL_TEST(Vipl_4_7_a_vi_without_tag_uses_memory_of_any_tag, nothing) {
    test.role("server", [](Role& me) {
        const VIP_PROTECTION_HANDLE tag = new_tag(me.nic());
        {
            End end(me);
            Memory tagged(me.nic(), 4096, rights(true, true, tag));
            const Piece room = tagged.take(64);
            VIP_DESCRIPTOR* descriptor = tagged.descriptor();
            make_receive(descriptor, {&room, 1});
            OK(VipPostRecv(end.vi(), descriptor, tagged.handle()));
            end.accept("client");
            me.tell("client", Target(tagged.take(64)));
            EXPECT_EQ(descriptor, end.received());
            EXPECT_TRUE(holds(room, 5));
            me.meet();
            end.disconnect();
        }
        OK(VipDestroyPtag(me.nic().handle(), tag));
    });
    test.role("client", [](Role& me) {
        const VIP_PROTECTION_HANDLE tag = new_tag(me.nic());
        {
            End end(me);
            Memory tagged(me.nic(), 4096, rights(true, true, tag));
            end.connect("server");
            const Piece data = tagged.take(64);
            fill(data, 5);
            VIP_DESCRIPTOR* write = tagged.descriptor();
            make_write(write, me.hear<Target>("server"), {&data, 1});
            OK(VipPostSend(end.vi(), write, tagged.handle()));
            EXPECT_EQ(write, end.sent());
            end.send(data);
            end.sent();
            me.meet();
            end.disconnect();
        }
        OK(VipDestroyPtag(me.nic().handle(), tag));
    });
}

VIPL_TEST(Vipl_4_7_a_tagged_vi_uses_no_memory_of_another_tag, nothing) {
    test.role("server", [](Role& me) {
        End end(me, {.level = VIP_SERVICE_UNRELIABLE});
        end.accept("client");
        end.expect("client", 3);
    });
    test.role("client", [](Role& me) {
        const VIP_PROTECTION_HANDLE mine = new_tag(me.nic());
        const VIP_PROTECTION_HANDLE foreign = new_tag(me.nic());
        {
            End end(me, {.level = VIP_SERVICE_UNRELIABLE, .tag = mine});
            Memory other(me.nic(), 4096, rights(true, true, foreign));
            end.connect("server");
            VIP_DESCRIPTOR* descriptor = other.descriptor();
            make_send(descriptor, {});
            EXPECT_EQ(VIP_INVALID_PARAMETER, VipPostSend(end.vi(), descriptor, other.handle()));
            EXPECT_EQ(VIP_INVALID_PARAMETER, VipPostRecv(end.vi(), descriptor, other.handle()));
            end.send(other.take(8));
            EXPECT_TRUE(has_status(end.sent(VIP_DESCRIPTOR_ERROR),
                                   VIP_STATUS_DONE | VIP_STATUS_PROTECTION_ERROR));
            end.say("server", 3);
        }
        OK(VipDestroyPtag(me.nic().handle(), mine));
        OK(VipDestroyPtag(me.nic().handle(), foreign));
    });
}

VIPL_TEST(Vipl_4_7_rdma_targets_need_the_tag_of_their_vi, nothing) {
    test.role("server", [](Role& me) {
        const VIP_PROTECTION_HANDLE mine = new_tag(me.nic());
        {
            End end(me, {.level = VIP_SERVICE_UNRELIABLE, .tag = mine});
            Memory untagged(me.nic(), 4096);
            const Piece wrong = untagged.take(64);
            const Piece right = end.take(64);
            fill_with(wrong, 9);
            end.accept("client");
            me.tell("client", Target(wrong));
            me.tell("client", Target(right));
            end.expect("client", 4);
            EXPECT_TRUE(holds_only(wrong, 9));
            EXPECT_TRUE(holds(right, 1));
            me.nic().wait_error(me, end.vi(), VIP_ERROR_RDMAW_PROT);
            me.meet();
        }
        OK(VipDestroyPtag(me.nic().handle(), mine));
    });
    test.role("client", [](Role& me) {
        End end(me, {.level = VIP_SERVICE_UNRELIABLE});
        end.connect("server");
        const Piece data = end.filled(64, 1);
        end.write(me.hear<Target>("server"), data);
        end.write(me.hear<Target>("server"), data);
        end.sent();
        end.sent();
        end.say("server", 4);
        me.meet();
    });
}

// In use ------------------------------------------------------------------------------------------

VIPL_TEST(Vipl_4_8_a_tag_in_use_cannot_go, nothing) {
    test.role("only", [](Role& me) {
        const VIP_NIC_HANDLE nic = me.nic().handle();
        const VIP_PROTECTION_HANDLE tag = new_tag(me.nic());
        char bytes[64];
        const VIP_MEM_HANDLE memory =
            enter(me.nic(), bytes, sizeof bytes, rights(false, false, tag));
        EXPECT_EQ(VIP_ERROR_RESOURCE, VipDestroyPtag(nic, tag)) << "a region has it";
        OK(VipDeregisterMem(nic, bytes, memory));
        VIP_VI_ATTRIBUTES attributes = vi_attributes();
        attributes.Ptag = tag;
        VIP_VI_HANDLE vi = nullptr;
        OK(VipCreateVi(nic, &attributes, nullptr, nullptr, &vi));
        EXPECT_EQ(VIP_ERROR_RESOURCE, VipDestroyPtag(nic, tag)) << "a VI has it";
        attributes.Ptag = nullptr;
        OK(VipSetViAttributes(vi, &attributes));
        EXPECT_EQ(VIP_SUCCESS, VipDestroyPtag(nic, tag)) << "nobody has it any more";
        OK(VipDestroyVi(vi));
    });
}

VIPL_TEST(Vipl_4_8_a_region_used_by_a_posted_descriptor_cannot_go, nothing) {
    test.role("only", [](Role& me) {
        const VIP_NIC_HANDLE nic = me.nic().handle();
        End end(me);
        Memory data(me.nic(), 4096);
        Memory descriptors(me.nic(), 4096);
        const Piece piece = data.take(64);
        VIP_DESCRIPTOR* descriptor = descriptors.descriptor();
        make_receive(descriptor, {&piece, 1});
        OK(VipPostRecv(end.vi(), descriptor, descriptors.handle()));
        for (const Memory* used : {&data, &descriptors}) {
            EXPECT_EQ(VIP_ERROR_RESOURCE, VipDeregisterMem(nic, used->base(), used->handle()));
            VIP_MEM_ATTRIBUTES none = rights(false, false);
            EXPECT_EQ(VIP_ERROR_RESOURCE,
                      VipSetMemAttributes(nic, used->base(), used->handle(), &none));
            VIP_MEM_ATTRIBUTES attributes;
            OK(VipQueryMem(nic, used->base(), used->handle(), &attributes));
            EXPECT_EQ(VIP_TRUE, attributes.EnableRdmaWrite) << "nothing has changed";
        }
        end.disconnect();  // flushes
        data.deregister();
        descriptors.deregister();
    });
}

VIPL_TEST(Vipl_4_8_many_regions_in_use_by_one_descriptor_are_all_kept, nothing) {
    test.role("only", [](Role& me) {
        End end(me);
        std::vector<std::unique_ptr<Memory>> regions;
        std::vector<Piece> pieces;
        for (int count = 0; count < 20; ++count) {
            regions.push_back(std::make_unique<Memory>(me.nic(), 64));
            pieces.push_back(regions.back()->take(8));
        }
        end.receive(pieces);
        for (const auto& region : regions)
            EXPECT_EQ(VIP_ERROR_RESOURCE,
                      VipDeregisterMem(me.nic().handle(), region->base(), region->handle()));
        end.disconnect();
    });
}

VIPL_TEST(Vipl_4_8_incoming_rdma_is_refused_once_a_region_is_gone, nothing) {
    test.role("server", [](Role& me) {
        End end(me, {.level = VIP_SERVICE_UNRELIABLE});
        Memory region(me.nic(), 4096);
        const Piece piece = region.take(64);
        end.accept("client");
        me.tell("client", Target(piece));
        me.meet();  // it has been written once, and a message has come behind
        end.expect("client", 6);
        EXPECT_TRUE(holds(piece, 1));
        region.deregister();
        fill_with(piece, 3);
        me.meet();
        end.expect("client", 5);
        EXPECT_TRUE(holds_only(piece, 3));
        me.nic().wait_error(me, end.vi(), VIP_ERROR_RDMAW_PROT);
        me.meet();
    });
    test.role("client", [](Role& me) {
        End end(me, {.level = VIP_SERVICE_UNRELIABLE});
        end.connect("server");
        const auto target = me.hear<Target>("server");
        const Piece data = end.filled(64, 1);
        end.write(target, data);
        end.sent();
        me.meet();
        end.say("server", 6);
        me.meet();
        end.write(target, data);
        end.sent();
        end.say("server", 5);
        me.meet();
    });
}

/// What shuts a region while RDMA to it is on its way.
void shut(Nic& nic, Memory& region, bool deregisters) {
    if (deregisters) return region.deregister();
    VIP_MEM_ATTRIBUTES none = rights(false, false);
    OK(VipSetMemAttributes(nic.handle(), region.base(), region.handle(), &none));
}

constexpr VIP_RELIABILITY_LEVEL reliable_levels[] = {VIP_SERVICE_RELIABLE_DELIVERY,
                                                     VIP_SERVICE_RELIABLE_RECEPTION};

/// Both ways of it on each of these levels, a few times.
template <class Act>
void in_the_midst(std::span<const VIP_RELIABILITY_LEVEL> of, Act act) {
    for (const VIP_RELIABILITY_LEVEL level : of)
        for (const bool deregisters : {true, false})
            for (int round = 0; round < 5; ++round) {
                SCOPED_TRACE(testing::Message() << "level " << level << ", round " << round
                                                << (deregisters ? ", deregistering" : ", rights"));
                act(level, deregisters);
            }
}
constexpr std::size_t long_length = 60000;

VIPL_TEST(Vipl_4_8_nothing_is_written_once_a_region_is_shut_in_the_midst_of_rdma, polls_memory) {
    test.role("server", [](Role& me) {
        in_the_midst(levels_that_deliver(), [&](VIP_RELIABILITY_LEVEL level, bool deregisters) {
            End end(me, {.level = level});
            Memory region(me.nic(), long_length);
            const Piece piece = region.take(long_length);
            end.accept("client");
            me.tell("client", Target(piece));
            volatile std::byte* first = piece.data;
            me.until([=] { return *first != std::byte{0}; }, "the peer's writes arrive");
            shut(me.nic(), region, deregisters);
            fill_with(piece, 3);
            me.nic().wait_error(me, end.vi(), VIP_ERROR_RDMAW_PROT);
            me.tell("client", 's');
            me.meet();  // the writer has given up
            EXPECT_TRUE(holds_only(piece, 3));
        });
    });
    test.role("client", [](Role& me) {
        in_the_midst(levels_that_deliver(), [&](VIP_RELIABILITY_LEVEL level, bool) {
            End end(me, {.level = level});
            const Piece data = end.take(long_length);
            fill_with(data, 0xEE);
            end.connect("server");
            const auto target = me.hear<Target>("server");
            for (int count = 0; count < 8; ++count) end.write(target, data);
            VIP_RETURN code = VIP_SUCCESS;
            const bool breaks = level != VIP_SERVICE_UNRELIABLE;
            while (code == VIP_SUCCESS && (breaks || !me.was_told_by("server"))) {
                VIP_DESCRIPTOR* done = nullptr;
                code = VipSendWait(end.vi(), patience_ms, &done);
                if (code != VIP_SUCCESS) break;
                make_write(done, target, {&data, 1});
                end.post_send(done);
            }
            EXPECT_EQ(breaks ? VIP_DESCRIPTOR_ERROR : VIP_SUCCESS, code);
            me.hear<char>("server");
            if (breaks) {
                end.wait_state(VIP_STATE_ERROR);
            } else {
                EXPECT_EQ(VIP_STATE_CONNECTED, end.state());
            }
            me.meet();
        });
    });
}

VIPL_TEST(Vipl_4_8_nothing_is_read_once_a_region_is_shut_in_the_midst_of_rdma, nothing) {
    test.role("server", [](Role& me) {
        in_the_midst(reliable_levels, [&](VIP_RELIABILITY_LEVEL level, bool deregisters) {
            End end(me, {.level = level});
            Memory region(me.nic(), long_length);
            const Piece piece = region.take(long_length);
            fill_with(piece, 1);
            end.accept("client");
            me.tell("client", Target(piece));
            me.hear<char>("client");  // its reads are running
            shut(me.nic(), region, deregisters);
            fill_with(piece, 3);
            me.nic().wait_error(me, end.vi(), VIP_ERROR_RDMAR_PROT);
            me.meet();
        });
    });
    test.role("client", [](Role& me) {
        in_the_midst(reliable_levels, [&](VIP_RELIABILITY_LEVEL level, bool) {
            End end(me, {.level = level});
            const Piece rooms[] = {end.take(long_length), end.take(long_length)};
            end.connect("server");
            const auto target = me.hear<Target>("server");
            for (const Piece& room : rooms) end.read(target, room);
            VIP_DESCRIPTOR* done = nullptr;
            VIP_RETURN code = VIP_SUCCESS;
            for (unsigned count = 0; code == VIP_SUCCESS; ++count) {
                code = VipSendWait(end.vi(), patience_ms, &done);
                if (code != VIP_SUCCESS) break;
                require(bool(holds_only(rooms[count % 2], 1)), "a read gets what was granted");
                make_read(done, target, {&rooms[count % 2], 1});
                end.post_send(done);
                if (count == 0) me.tell("server", 'r');
            }
            EXPECT_EQ(VIP_DESCRIPTOR_ERROR, code);
            EXPECT_TRUE(failed_with(done, VIP_STATUS_RDMA_PROT_ERROR));
            me.meet();
        });
    });
}

}  // namespace
}  // namespace conformance::memory_test
