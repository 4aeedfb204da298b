// Shared segments: exported, imported, revoked (VIPL 5; <via/via.h>).
#include <unistd.h>
#include <via/via.h>

#include <csignal>
#include <cstdlib>
#include <cstring>

#include "harness/end.hpp"

namespace conformance::segments_test {
namespace {

constexpr std::size_t size = 10000;  // not whole pages

/// A segment of a role's NIC; destroyed with the object.
struct Segment {
    Segment(Nic& of, VIP_MEM_ATTRIBUTES attributes, std::size_t bytes = size) : nic(of) {
        VIP_PVOID at = nullptr;
        must(ViaCreateSegment(nic.handle(), bytes, &attributes, &at, &piece.handle),
             "ViaCreateSegment");
        piece.data = static_cast<std::byte*>(at);
        piece.length = static_cast<VIP_UINT32>(bytes);
    }
    Segment(const Segment&) = delete;
    ~Segment() {
        if (piece.data != nullptr) {
            EXPECT_EQ(VIP_SUCCESS, destroy());
        }
    }
    VIP_RETURN destroy() {
        const VIP_RETURN code = ViaDestroySegment(nic.handle(), piece.data);
        if (code == VIP_SUCCESS) piece.data = nullptr;
        return code;
    }

    Nic& nic;
    Piece piece;
};

VIP_RETURN import(End& end, Target target, bool writable, std::byte** at,
                  VIP_ULONG* length = nullptr) {
    VIP_PVOID address = nullptr;
    VIP_ULONG bytes = 0;
    const VIP_RETURN code =
        ViaImportSegment(end.vi(), target.address, target.handle, writable ? VIP_TRUE : VIP_FALSE,
                         patience_ms, &address, &bytes);
    *at = static_cast<std::byte*>(address);
    if (length != nullptr) *length = bytes;
    return code;
}

VIP_UINT64 counted(End& end, const char* name) {
    VIP_UINT64 value = 0;
    OK(ViaReadCounter(end.nic().handle(), name, &value));
    return value;
}

VIPL_TEST(Vipl_5_segment_is_memory_of_both_sides, shares | polls_memory) {
    test.role("owner", [](Role& me) {
        End end(me);
        const Segment segment(me.nic(), rights(true, true));
        EXPECT_TRUE(holds_only(segment.piece, 0));
        end.accept("guest");
        fill(segment.piece.part(0, 100), 1);
        me.tell("guest", Target(segment.piece));
        // Plain stores of the other side; the last word is a release store.
        const auto* last = reinterpret_cast<const VIP_UINT64*>(segment.piece.data + size - 16);
        me.until([&] { return __atomic_load_n(last, __ATOMIC_ACQUIRE) == 77; }, "the guest stored");
        EXPECT_TRUE(holds(segment.piece.part(200, 5000), 2));
        me.meet();
    });
    test.role("guest", [](Role& me) {
        End end(me);
        end.connect("owner");
        const auto target = me.hear<Target>("owner");
        std::byte* at = nullptr;
        VIP_ULONG length = 0;
        OK(import(end, target, true, &at, &length));
        EXPECT_EQ(size, length);
        const Piece here{at, size, 0};
        EXPECT_TRUE(holds(here.part(0, 100), 1));
        fill(here.part(200, 5000), 2);
        __atomic_store_n(reinterpret_cast<VIP_UINT64*>(at + size - 16), 77, __ATOMIC_RELEASE);
        me.meet();
        OK(ViaReleaseSegment(me.nic().handle(), at));
        EXPECT_EQ(VIP_INVALID_PARAMETER, ViaReleaseSegment(me.nic().handle(), at));
    });
}

VIPL_TEST(Vipl_5_rdma_to_an_imported_segment_is_carried_out_by_the_initiator, shares) {
    test.role("owner", [](Role& me) {
        End end(me);
        const Segment segment(me.nic(), rights(true, true));
        end.accept("guest");
        VIP_DESCRIPTOR* with_immediate = end.receive(end.take(64));  // before the guest writes
        me.tell("guest", Target(segment.piece));
        EXPECT_EQ(with_immediate, end.received());
        EXPECT_TRUE(holds(segment.piece.part(1, 9000), 5));
        EXPECT_TRUE(holds_only(segment.piece.part(9001, size - 9001), 0));
        EXPECT_EQ(VIP_UINT32{3000}, with_immediate->CS.Length);
        EXPECT_EQ(99U, with_immediate->CS.ImmediateData);
        EXPECT_TRUE(has_status(with_immediate, VIP_STATUS_DONE | VIP_STATUS_IMMEDIATE |
                                                   VIP_STATUS_OP_REMOTE_RDMA_WRITE));
        end.expect("guest", 1);
        me.meet();
    });
    test.role("guest", [](Role& me) {
        End end(me);
        end.connect("owner");
        const auto target = me.hear<Target>("owner");
        const Piece data = end.filled(9000, 5);
        // By frames, then by ourselves: in order all the same.
        const Piece wrong = end.filled(9000, 6);
        end.write(target.at(1), wrong);
        std::byte* at = nullptr;
        OK(import(end, target, true, &at));
        EXPECT_EQ(wrong.length, end.sent()->CS.Length);
        const VIP_UINT64 before = counted(end, "direct_transfers");
        const Piece pieces[] = {data.part(0, 1000), data.part(1000, 5000)};
        end.write(target.at(1), pieces);
        end.write(target.at(6001), data.part(6000, 3000), VIP_CONTROL_IMMEDIATE, 99);
        const Piece back = end.take(9000);
        VIP_DESCRIPTOR* read = end.read(target.at(1), back);
        EXPECT_TRUE(has_status(end.sent(), VIP_STATUS_DONE | VIP_STATUS_OP_RDMA_WRITE));
        EXPECT_TRUE(has_status(end.sent(), VIP_STATUS_DONE | VIP_STATUS_OP_RDMA_WRITE));
        EXPECT_EQ(read, end.sent());
        EXPECT_TRUE(has_status(read, VIP_STATUS_DONE | VIP_STATUS_OP_RDMA_READ));
        EXPECT_TRUE(holds(back, 5));
        EXPECT_EQ(before + 3, counted(end, "direct_transfers"));
        end.say("owner", 1);
        me.meet();
    });
}

VIPL_TEST(Vipl_5_segment_without_the_right_is_not_given, shares) {
    test.role("owner", [](Role& me) {
        VIP_PROTECTION_HANDLE own = nullptr;
        VIP_PROTECTION_HANDLE other = nullptr;
        OK(VipCreatePtag(me.nic().handle(), &own));
        OK(VipCreatePtag(me.nic().handle(), &other));
        {
            Wants wants;
            wants.tag = own;
            End end(me, wants);
            end.accept("guest");
            Segment read(me.nic(), rights(false, true, own));
            Segment write(me.nic(), rights(true, false, own));
            Segment none(me.nic(), rights(false, false, own));
            Segment strange(me.nic(), rights(true, true, other));
            Segment untagged(me.nic(), rights(true, true));
            Segment gone(me.nic(), rights(true, true, own));
            const Target late(gone.piece);
            OK(gone.destroy());
            const Memory plain(me.nic(), 4096, rights(true, true, own));
            const Target refused[] = {Target(write.piece),
                                      Target(none.piece),
                                      Target(strange.piece),
                                      Target(untagged.piece),
                                      late,
                                      Target(read.piece).at(1),
                                      Target(Piece{plain.base(), 4096, plain.handle()})};
            me.tell("guest", Target(read.piece));
            me.tell("guest", static_cast<int>(std::size(refused)));
            for (const Target& target : refused) me.tell("guest", target);
            end.expect("guest", 3);
        }
        OK(VipDestroyPtag(me.nic().handle(), own));
        OK(VipDestroyPtag(me.nic().handle(), other));
    });
    test.role("guest", [](Role& me) {
        End end(me);
        std::byte* at = nullptr;
        EXPECT_EQ(VIP_INVALID_STATE, import(end, Target(), false, &at)) << "not connected";
        end.connect("owner");
        const auto readable = me.hear<Target>("owner");
        EXPECT_EQ(VIP_REJECT, import(end, readable, true, &at));
        OK(import(end, readable, false, &at));
        for (int left = me.hear<int>("owner"); left != 0; --left) {
            const auto target = me.hear<Target>("owner");
            EXPECT_EQ(VIP_REJECT, import(end, target, false, &at)) << left;
            EXPECT_EQ(VIP_REJECT, import(end, target, true, &at)) << left;
        }
        Target invented = readable;
        invented.handle ^= 1;
        EXPECT_EQ(VIP_REJECT, import(end, invented, false, &at));
        end.say("owner", 3);  // the connection bore all that
    });
}

VIPL_TEST(Vipl_5_vi_that_allows_no_rdma_gives_no_segment, shares) {
    test.role("owner", [](Role& me) {
        const Segment segment(me.nic(), rights(true, true));
        for (const bool read : {false, true}) {
            Wants wants;
            wants.rdma_write = false;
            wants.rdma_read = read;
            End end(me, wants);
            end.accept("guest");
            me.tell("guest", Target(segment.piece));
            end.expect("guest", 4);
        }
    });
    test.role("guest", [](Role& me) {
        for (const bool read : {false, true}) {
            End end(me);
            end.connect("owner");
            const auto target = me.hear<Target>("owner");
            std::byte* at = nullptr;
            EXPECT_EQ(VIP_REJECT, import(end, target, true, &at));
            EXPECT_EQ(read ? VIP_SUCCESS : VIP_REJECT, import(end, target, false, &at));
            end.say("owner", 4);
        }
    });
}

VIPL_TEST(Vipl_5_read_only_import_is_read_only_to_the_processor, shares | processes) {
    test.role("owner", [](Role& me) {
        End end(me);
        const Segment segment(me.nic(), rights(true, true));
        end.accept("guest");
        me.tell("guest", Target(segment.piece));
        me.wait_for_end_of("guest");
        EXPECT_TRUE(holds_only(segment.piece, 0));
        end.wait_broken();
    });
    test.role(
        "guest",
        [](Role& me) {
            End end(me);
            end.connect("owner");
            std::byte* at = nullptr;
            OK(import(end, me.hear<Target>("owner"), false, &at));
            signal(SIGSEGV, SIG_DFL);
            *const_cast<volatile std::byte*>(at) = std::byte{1};
        },
        killed_by(SIGSEGV));
}

/// The guest imports the owner's segment, writes to it by itself, and once more when the owner has
/// done something between; nobody has looked yet what became of that. Returns where the segment is.
std::byte* write_before_and_after(Role& me, End& end) {
    const auto target = me.hear<Target>("owner");
    std::byte* at = nullptr;
    OK(import(end, target, true, &at));
    end.write(target, end.filled(size, 8));
    end.sent();
    EXPECT_EQ(1U, counted(end, "direct_transfers"));
    end.say("owner", 5);
    me.hear<int>("owner");
    end.write(target, end.filled(size, 9));
    return at;
}

/// What ends the right, at the owner.
enum class End_of_right { deregister, attributes, destroy };

void lose_right(Test& test, End_of_right how) {
    test.role("owner", [how](Role& me) {
        End end(me);
        Segment segment(me.nic(), rights(true, true));
        end.accept("guest");
        me.tell("guest", Target(segment.piece));
        end.expect("guest", 5);
        VIP_MEM_ATTRIBUTES less = rights(false, true);
        if (how == End_of_right::deregister)
            OK(VipDeregisterMem(me.nic().handle(), segment.piece.data, segment.piece.handle));
        if (how == End_of_right::attributes)
            OK(VipSetMemAttributes(me.nic().handle(), segment.piece.data, segment.piece.handle,
                                   &less));
        Piece watched = segment.piece;
        if (how == End_of_right::destroy) OK(segment.destroy());
        me.tell("guest", 1);
        end.wait_broken();
        if (how != End_of_right::destroy) {
            EXPECT_TRUE(holds(watched, 8));
        }
    });
    test.role("guest", [](Role& me) {
        End end(me);
        end.connect("owner");
        std::byte* const at = write_before_and_after(me, end);
        const End::Outcome outcome = end.send_outcome();
        EXPECT_EQ(1U, counted(end, "direct_transfers"));
        // Delivery: the refusal may come after the write was done (VIPL 4.25).
        EXPECT_TRUE(outcome.code == VIP_SUCCESS || outcome.code == VIP_DESCRIPTOR_ERROR);
        end.wait_broken();
        EXPECT_TRUE(holds(Piece{at, size, 0}, 8)) << "what we have mapped stays readable";
        OK(ViaReleaseSegment(me.nic().handle(), at));
    });
}
VIPL_TEST(Vipl_5_deregistering_a_segment_revokes_it, shares | own_nics) {
    lose_right(test, End_of_right::deregister);
}
VIPL_TEST(Vipl_5_taking_rights_from_a_segment_revokes_it, shares | own_nics) {
    lose_right(test, End_of_right::attributes);
}
VIPL_TEST(Vipl_5_destroying_a_segment_revokes_it, shares | own_nics) {
    lose_right(test, End_of_right::destroy);
}

VIPL_TEST(Vipl_5_attributes_that_are_refused_revoke_nothing, shares | own_nics) {
    test.role("owner", [](Role& me) {
        End end(me);
        const Segment segment(me.nic(), rights(true, true));
        VIP_PROTECTION_HANDLE gone = nullptr;
        OK(VipCreatePtag(me.nic().handle(), &gone));
        OK(VipDestroyPtag(me.nic().handle(), gone));
        end.accept("guest");
        me.tell("guest", Target(segment.piece));
        end.expect("guest", 5);
        VIP_MEM_ATTRIBUTES refused = rights(false, false, gone);
        EXPECT_EQ(VIP_INVALID_PTAG, VipSetMemAttributes(me.nic().handle(), segment.piece.data,
                                                        segment.piece.handle, &refused));
        me.tell("guest", 1);
        end.expect("guest", 6);
        EXPECT_TRUE(holds(segment.piece, 9));
    });
    test.role("guest", [](Role& me) {
        End end(me);
        end.connect("owner");
        std::byte* const at = write_before_and_after(me, end);
        end.sent();
        EXPECT_EQ(2U, counted(end, "direct_transfers"));
        end.say("owner", 6);
        me.wait_for_end_of("owner");
        OK(ViaReleaseSegment(me.nic().handle(), at));
    });
}

VIPL_TEST(Vipl_5_rdma_beyond_a_segment_is_refused_exactly, shares) {
    test.role("owner", [](Role& me) {
        const Segment segment(me.nic(), rights(true, true));
        for (int n = 0; n < 2; ++n) {
            End end(me);
            end.accept("guest");
            me.tell("guest", Target(segment.piece));
            end.wait_broken();
            EXPECT_TRUE(holds_only(segment.piece.part(0, size - 100), 0));
            EXPECT_TRUE(holds_only(segment.piece.part(size - 100, 100), 3));
        }
    });
    test.role("guest", [](Role& me) {
        for (const bool before : {false, true}) {
            End end(me);
            end.connect("owner");
            const auto target = me.hear<Target>("owner");
            std::byte* at = nullptr;
            OK(import(end, target, true, &at));
            const Piece data = end.take(100);
            fill_with(data, 3);
            end.write(target.at(size - 100), data);  // up to the last byte
            end.sent();
            fill_with(data, 4);
            end.write(before ? target.at(static_cast<std::size_t>(-1)) : target.at(size - 99),
                      data);
            end.wait_broken();
            OK(ViaReleaseSegment(me.nic().handle(), at));
        }
    });
}

VIPL_TEST(Vipl_5_imported_memory_outlives_the_connection_and_its_owner, shares | own_nics) {
    test.role("owner", [](Role& me) {
        End end(me);
        const Segment segment(me.nic(), rights(true, true));
        fill(segment.piece, 11);
        end.accept("guest");
        me.tell("guest", Target(segment.piece));
        end.expect("guest", 1);
    });
    test.role("guest", [](Role& me) {
        End end(me);
        end.connect("owner");
        const auto target = me.hear<Target>("owner");
        std::byte* at = nullptr;
        OK(import(end, target, false, &at));
        end.say("owner", 1);
        me.wait_for_end_of("owner");
        end.wait_broken();
        EXPECT_TRUE(holds(Piece{at, size, 0}, 11));
        std::byte* again = nullptr;
        EXPECT_EQ(VIP_INVALID_STATE, import(end, target, false, &again));
        OK(ViaReleaseSegment(me.nic().handle(), at));
    });
}

VIPL_TEST(Vipl_5_segments_are_imported_again_and_again, shares) {
    constexpr int rounds = 1200;  // more than one peer may have at a time
    test.role("owner", [](Role& me) {
        End end(me);
        const Segment segment(me.nic(), rights(true, true));
        end.accept("guest");
        me.tell("guest", Target(segment.piece));
        end.expect("guest", 6);
    });
    test.role("guest", [](Role& me) {
        End end(me);
        end.connect("owner");
        const auto target = me.hear<Target>("owner");
        for (int n = 0; n < rounds; ++n) {
            std::byte* at = nullptr;
            OK(import(end, target, n % 2 == 0, &at));
            OK(ViaReleaseSegment(me.nic().handle(), at));
        }
        // By frames again.
        end.write(target, end.filled(100, 1));
        end.sent();
        EXPECT_EQ(0U, counted(end, "direct_transfers"));
        end.say("owner", 6);
    });
}

/// What a process writes to a peer's segment after its NICs have left.
struct LastWrite {
    VIP_VI_HANDLE vi;
    VIP_DESCRIPTOR* write;
    VIP_MEM_HANDLE handle;
};
LastWrite* last_write = nullptr;

/// As the destructor of a global object: what was registered before the library's own comes last.
const int registered_early = std::atexit([] {
    if (last_write == nullptr) return;
    const VIP_RETURN code = VipPostSend(last_write->vi, last_write->write, last_write->handle);
    _exit(code == VIP_SUCCESS ? 3 : 4);
});

VIPL_TEST(Vipl_4_2_the_last_clean_up_of_a_process_may_write_to_a_segment, shares | processes) {
    test.role("owner", [](Role& me) {
        End end(me);
        const Segment segment(me.nic(), rights(true, true));
        fill(segment.piece, 1);
        end.accept("exits");
        me.tell("exits", Target(segment.piece));
        me.wait_for_end_of("exits");
        EXPECT_TRUE(holds(segment.piece, 1));
    });
    test.role(
        "exits",
        [](Role& me) {
            EXPECT_EQ(0, registered_early);
            static End& end = *new End(me);
            end.connect("owner");
            const auto target = me.hear<Target>("owner");
            std::byte* at = nullptr;
            OK(import(end, target, true, &at));
            end.write(target, end.filled(100, 1));
            end.sent();
            VIP_DESCRIPTOR* write = end.memory().descriptor();
            const Piece data = end.filled(100, 2);
            make_write(write, target, {&data, 1});
            last_write = new LastWrite{end.vi(), write, end.memory().handle()};
            std::exit(9);
        },
        exits_with(3));
}

VIPL_TEST(Vipl_5_segment_calls_with_bad_arguments, nothing) {
    test.role("only", [](Role& me) {
        const VIP_NIC_HANDLE nic = me.nic().handle();
        End end(me);
        VIP_MEM_ATTRIBUTES attributes = rights(true, true);
        VIP_PVOID at = nullptr;
        VIP_MEM_HANDLE handle = 0;
        VIP_ULONG length = 0;
        EXPECT_EQ(VIP_INVALID_PARAMETER, ViaCreateSegment(nullptr, 1, &attributes, &at, &handle));
        EXPECT_EQ(VIP_INVALID_PARAMETER, ViaCreateSegment(nic, 0, &attributes, &at, &handle));
        EXPECT_EQ(VIP_INVALID_PARAMETER, ViaCreateSegment(nic, 1, &attributes, nullptr, &handle));
        EXPECT_EQ(VIP_INVALID_PARAMETER, ViaCreateSegment(nic, 1, &attributes, &at, nullptr));
        EXPECT_EQ(VIP_ERROR_RESOURCE, ViaCreateSegment(nic, ~0UL, &attributes, &at, &handle));
        attributes.Ptag = &attributes;
        EXPECT_EQ(VIP_INVALID_PTAG, ViaCreateSegment(nic, 1, &attributes, &at, &handle));
        OK(ViaCreateSegment(nic, 1, nullptr, &at, &handle));
        EXPECT_EQ(VIP_INVALID_PARAMETER, ViaDestroySegment(nic, &attributes));
        EXPECT_EQ(VIP_INVALID_PARAMETER, ViaDestroySegment(nic, nullptr));
        EXPECT_EQ(VIP_INVALID_PARAMETER, ViaReleaseSegment(nic, at)) << "not an import";
        OK(VipDeregisterMem(nic, at, handle));
        OK(ViaDestroySegment(nic, at));
        EXPECT_EQ(VIP_INVALID_PARAMETER, ViaDestroySegment(nic, at));
        EXPECT_EQ(VIP_INVALID_PARAMETER,
                  ViaImportSegment(nullptr, 0, 1, VIP_FALSE, 1, &at, &length));
        EXPECT_EQ(VIP_INVALID_PARAMETER,
                  ViaImportSegment(end.vi(), 0, 1, VIP_FALSE, 1, nullptr, &length));
        EXPECT_EQ(VIP_INVALID_PARAMETER,
                  ViaImportSegment(end.vi(), 0, 1, VIP_FALSE, 1, &at, nullptr));
    });
}

VIPL_TEST(Vipl_5_segment_used_by_a_posted_descriptor_stays, nothing) {
    test.role("only", [](Role& me) {
        End end(me);
        Segment segment(me.nic(), rights(false, false));
        end.receive(segment.piece);
        EXPECT_EQ(VIP_ERROR_RESOURCE, segment.destroy());
        end.disconnect();
        end.received(VIP_DESCRIPTOR_ERROR);
        OK(segment.destroy());
    });
}

}  // namespace
}  // namespace conformance::segments_test
