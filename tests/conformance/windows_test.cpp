// Memory windows: rights of peers to part of a region, bound and revoked (VIPL 5; <via/via.h>).
#include <via/via.h>

#include <cstring>

#include "harness/end.hpp"

namespace conformance::windows_test {
namespace {

constexpr VIP_RELIABILITY_LEVEL reliable_levels[] = {VIP_SERVICE_RELIABLE_DELIVERY,
                                                     VIP_SERVICE_RELIABLE_RECEPTION};

VIA_WINDOW_ATTRIBUTES grant(bool write, bool read, bool atomics = false,
                            VIP_PROTECTION_HANDLE tag = nullptr) {
    VIA_WINDOW_ATTRIBUTES attributes{};
    attributes.Ptag = tag;
    attributes.EnableRdmaWrite = write ? VIP_TRUE : VIP_FALSE;
    attributes.EnableRdmaRead = read ? VIP_TRUE : VIP_FALSE;
    attributes.EnableAtomics = atomics ? VIP_TRUE : VIP_FALSE;
    return attributes;
}

/// The same bytes as a peer names them by a window.
Target bind(Nic& nic, const Piece& piece, const VIA_WINDOW_ATTRIBUTES& attributes,
            Where where = Where::current()) {
    VIP_MEM_HANDLE window = 0;
    must(ViaBindWindow(nic.handle(), piece.data, piece.length, piece.handle, &attributes, &window),
         "ViaBindWindow", where);
    return Target(piece.with_handle(window));
}

void revoke(Nic& nic, const Target& window, Where where = Where::current()) {
    must(ViaRevokeWindow(nic.handle(), window.handle), "ViaRevokeWindow", where);
}

VIPL_TEST(Vipl_5_windows_grant_what_the_region_does_not, nothing) {
    test.role("owner", [](Role& me) {
        for (const VIP_RELIABILITY_LEVEL level : reliable_levels) {
            End end(me, {.level = level});
            Memory closed(me.nic(), 200'000, rights(false, false));
            const Piece whole = closed.take(150'000);
            fill(whole, 1);
            const Target window = bind(me.nic(), whole, grant(true, true));
            const Piece word = closed.take(8);
            fill_with(word, 0);
            const Target of_word = bind(me.nic(), word, grant(false, false, true));
            end.accept("other");
            me.tell("other", window);
            me.tell("other", of_word);
            me.meet();
            EXPECT_TRUE(holds(whole, 2));
            EXPECT_EQ(5, static_cast<int>(word.data[0]));
            revoke(me.nic(), window);
            revoke(me.nic(), of_word);
            me.meet();
        }
    });
    test.role("other", [](Role& me) {
        for (const VIP_RELIABILITY_LEVEL level : reliable_levels) {
            End end(me, {.level = level, .memory = 600'000});
            end.connect("owner");
            const auto window = me.hear<Target>("owner");
            const auto of_word = me.hear<Target>("owner");
            const Piece was = end.take(60'000);
            const Piece out = end.take(150'000);
            fill(out, 2);
            for (std::size_t at = 0; at < 150'000; at += 50'000) {
                end.read(window.at(at), was.with_length(50'000));
                end.sent();
                EXPECT_TRUE(holds(was.with_length(50'000), 1, at));
                end.write(window.at(at), out.part(at, 50'000));
                end.sent();
            }
            const Piece found = end.take(8);
            VIP_DESCRIPTOR* add = end.memory().descriptor();
            make_read(add, of_word, {&found, 1});
            add->CS.Control = 0;
            OK(ViaPostFetchAdd(end.vi(), add, end.memory().handle(), 5));
            end.sent();
            end.read(of_word.at(0), found);  // no such right
            EXPECT_EQ(VIP_DESCRIPTOR_ERROR, end.send_outcome().code);
            me.meet();
            me.meet();
        }
    });
}

struct Beyond {
    const char* name;
    int from;    ///< bytes from the window's begin
    int length;  ///< more than the window's
    bool writes;
};
constexpr Beyond beyonds[] = {
    {"a write that begins before it", -1, 0, true},  {"a read that begins before it", -1, 0, false},
    {"a write one byte too long", 0, 1, true},       {"a read one byte too long", 0, 1, false},
    {"a write that begins behind it", 100, 0, true}, {"a read of its neighbour", 128, 0, false},
};

VIPL_TEST(Vipl_5_windows_are_exact_to_the_byte, own_nics) {
    constexpr VIP_UINT32 size = 100;
    test.role("owner", [](Role& me) {
        for (const Beyond& beyond : beyonds) {
            SCOPED_TRACE(beyond.name);
            End end(me);
            Memory closed(me.nic(), 8192, rights(false, false));
            const Piece room = closed.take(4096);
            fill(room, 1);
            const Target window = bind(me.nic(), room.part(1000, size), grant(true, true));
            end.accept("other");
            me.tell("other", window);
            end.wait_broken();
            me.nic().wait_error(me, end.vi(),
                                beyond.writes ? VIP_ERROR_RDMAW_PROT : VIP_ERROR_RDMAR_PROT);
            EXPECT_TRUE(holds(room, 1)) << "not its beginning either";
            revoke(me.nic(), window);
            me.meet();
        }
    });
    test.role("other", [](Role& me) {
        for (const Beyond& beyond : beyonds) {
            SCOPED_TRACE(beyond.name);
            End end(me, {.level = VIP_SERVICE_RELIABLE_DELIVERY});
            end.connect("owner");
            const Target target =
                me.hear<Target>("owner").at(static_cast<std::size_t>(beyond.from));
            const Piece data =
                end.filled(static_cast<std::size_t>(static_cast<int>(size) + beyond.length), 2);
            beyond.writes ? end.write(target, data) : end.read(target, data);
            end.wait_broken();
            me.meet();
        }
    });
}

// Revoked while much is under way: every NIC's ways to write, long messages and short ones.
VIPL_TEST(Vipl_5_nothing_lands_when_the_call_that_revokes_a_window_returned,
          own_nics | polls_memory) {
    static constexpr VIP_UINT32 sizes[] = {8, 3000, 60'000, 300'000};
    constexpr int rounds = 4;
    test.role("owner", [](Role& me) {
        for (const VIP_UINT32 size : sizes) {
            for (int round = 0; round < rounds; ++round) {
                End end(me, {.transfer_max = 1U << 20});
                Memory closed(me.nic(), size + 4096, rights(false, false));
                const Piece room = closed.take(size);
                fill_with(room, 0);
                const Target window = bind(me.nic(), room, grant(true, false));
                end.accept("writer");
                me.tell("writer", window);
                const volatile std::byte& first = *room.data;
                me.until([&] { return first != std::byte{0}; }, "something has landed");
                revoke(me.nic(), window);
                fill_with(room, 7);
                end.wait_broken();
                EXPECT_TRUE(holds_only(room, 7)) << size;
                me.meet();
                EXPECT_TRUE(holds_only(room, 7)) << size;
            }
        }
    });
    test.role("writer", [](Role& me) {
        for (const VIP_UINT32 size : sizes) {
            for (int round = 0; round < rounds; ++round) {
                End end(me, {.transfer_max = 1U << 20, .memory = size + 65536U});
                const Piece out = end.take(size);
                fill_with(out, 3);
                VIP_DESCRIPTOR* writes[4];
                end.connect("owner");
                const auto window = me.hear<Target>("owner");
                for (VIP_DESCRIPTOR*& write : writes) {
                    write = end.memory().descriptor();
                    make_write(write, window, {&out, 1});
                    end.post_send(write);
                }
                while (end.state() != VIP_STATE_ERROR) {
                    const auto [code, done] = end.send_outcome();
                    if (code != VIP_SUCCESS) break;
                    make_write(done, window, {&out, 1});
                    if (VipPostSend(end.vi(), done, end.memory().handle()) != VIP_SUCCESS) break;
                }
                end.wait_broken();
                me.meet();
            }
        }
    });
}

VIPL_TEST(Vipl_5_windows_have_a_tag_of_their_own, nothing) {
    test.role("owner", [](Role& me) {
        Tag mine(me.nic());
        Tag others(me.nic());
        for (const bool fits : {true, false}) {
            End end(me, {.tag = mine.handle()});
            Memory closed(me.nic(), 4096, rights(false, false));
            const Piece room = closed.take(64);
            fill_with(room, 0);
            const Target window = bind(
                me.nic(), room, grant(true, false, false, fits ? mine.handle() : others.handle()));
            EXPECT_EQ(VIP_ERROR_RESOURCE,
                      VipDestroyPtag(me.nic().handle(), fits ? mine.handle() : others.handle()));
            end.accept("other");
            me.tell("other", window);
            if (fits)
                end.expect("other", 1);
            else
                end.wait_broken();
            me.meet();
            EXPECT_TRUE(fits ? holds(room, 1) : holds_only(room, 0));
            revoke(me.nic(), window);
            me.meet();
        }
    });
    test.role("other", [](Role& me) {
        for (const bool fits : {true, false}) {
            End end(me);
            end.connect("owner");
            end.write(me.hear<Target>("owner"), end.filled(64, 1));
            if (fits) {
                end.sent();
                end.say("owner", 1);
            } else {
                end.wait_broken();
            }
            me.meet();
            me.meet();
        }
    });
}

VIPL_TEST(Vipl_5_windows_of_segments_go_in_frames, shares) {
    test.role("owner", [](Role& me) {
        End end(me);
        VIP_MEM_ATTRIBUTES none = rights(false, false);
        VIP_PVOID at = nullptr;
        Piece segment;
        OK(ViaCreateSegment(me.nic().handle(), 10000, &none, &at, &segment.handle));
        segment.data = static_cast<std::byte*>(at);
        segment.length = 10000;
        const Target window = bind(me.nic(), segment.part(100, 5000), grant(true, true));
        end.accept("other");
        me.tell("other", window);
        me.meet();
        EXPECT_TRUE(holds(segment.part(100, 5000), 1));
        revoke(me.nic(), window);
        OK(ViaDestroySegment(me.nic().handle(), at));
        me.meet();
    });
    test.role("other", [](Role& me) {
        End end(me);
        end.connect("owner");
        const auto window = me.hear<Target>("owner");
        VIP_PVOID mapped = nullptr;
        VIP_ULONG length = 0;
        for (const VIP_BOOLEAN writable : {VIP_FALSE, VIP_TRUE})
            EXPECT_EQ(VIP_REJECT, ViaImportSegment(end.vi(), window.address, window.handle,
                                                   writable, patience_ms, &mapped, &length));
        end.write(window, end.filled(5000, 1));
        const Piece back = end.take(5000);
        end.read(window, back, VIP_CONTROL_QFENCE);
        end.sent();
        end.sent();
        EXPECT_TRUE(holds(back, 1));
        me.meet();
        me.meet();
    });
}

VIPL_TEST(Vipl_5_windows_end_with_their_region, nothing) {
    test.role("only", [](Role& me) {
        const VIP_NIC_HANDLE nic = me.nic().handle();
        Memory closed(me.nic(), 4096, rights(false, false));
        const Piece room = closed.take(64);
        const Target window = bind(me.nic(), room, grant(true, false));
        VIA_WINDOW_STATE state{};
        OK(ViaQueryWindow(nic, window.handle, &state));
        EXPECT_EQ(VIP_TRUE, state.Live);
        EXPECT_EQ(static_cast<VIP_PVOID>(room.data), state.Address);
        EXPECT_EQ(64U, state.Length);
        EXPECT_EQ(closed.handle(), state.MemoryHandle);
        EXPECT_EQ(VIP_TRUE, state.Attributes.EnableRdmaWrite);
        EXPECT_EQ(VIP_FALSE, state.Attributes.EnableRdmaRead);
        EXPECT_EQ(VIP_FALSE, state.Attributes.EnableAtomics);
        EXPECT_EQ(nullptr, state.Attributes.Ptag);
        closed.deregister();
        OK(ViaQueryWindow(nic, window.handle, &state));
        EXPECT_EQ(VIP_FALSE, state.Live);
        OK(ViaRevokeWindow(nic, window.handle));
        EXPECT_EQ(VIP_INVALID_PARAMETER, ViaRevokeWindow(nic, window.handle));
        EXPECT_EQ(VIP_INVALID_PARAMETER, ViaQueryWindow(nic, window.handle, &state));
    });
}

VIPL_TEST(Vipl_5_windows_that_cannot_be_are_refused, nothing) {
    test.role("only", [](Role& me) {
        const VIP_NIC_HANDLE nic = me.nic().handle();
        Memory region(me.nic(), 4096, rights(true, true));
        const Piece room = region.take(64);
        const VIA_WINDOW_ATTRIBUTES all = grant(true, true, true);
        const VIA_WINDOW_ATTRIBUTES none = grant(false, false);
        VIP_MEM_HANDLE window = 77;
        VIP_MEM_HANDLE everything = 0;
        OK(ViaRegisterAll(nic, &everything));
        std::byte* const behind = region.base() + region.length();
        const auto bind_of = [&](void* at, VIP_ULONG length, VIP_MEM_HANDLE handle,
                                 const VIA_WINDOW_ATTRIBUTES* attributes) {
            return ViaBindWindow(nic, at, length, handle, attributes, &window);
        };
        EXPECT_EQ(VIP_INVALID_PARAMETER, bind_of(room.data, 0, room.handle, &all));
        EXPECT_EQ(VIP_INVALID_PARAMETER, bind_of(behind - 1, 2, room.handle, &all));
        EXPECT_EQ(VIP_INVALID_PARAMETER, bind_of(room.data, ~VIP_ULONG{0}, room.handle, &all));
        EXPECT_EQ(VIP_INVALID_PARAMETER, bind_of(room.data, 64, room.handle + 1, &all));
        EXPECT_EQ(VIP_INVALID_PARAMETER, bind_of(room.data, 64, 0, &all));
        EXPECT_EQ(VIP_INVALID_PARAMETER, bind_of(room.data, 64, everything, &all));
        EXPECT_EQ(VIP_INVALID_PARAMETER, bind_of(room.data, 64, room.handle, &none));
        EXPECT_EQ(VIP_INVALID_PARAMETER, bind_of(room.data, 64, room.handle, nullptr));
        EXPECT_EQ(VIP_INVALID_PARAMETER,
                  ViaBindWindow(nic, room.data, 64, room.handle, &all, nullptr));
        EXPECT_EQ(VIP_INVALID_PARAMETER,
                  ViaBindWindow(nullptr, room.data, 64, room.handle, &all, &window));
        const VIA_WINDOW_ATTRIBUTES no_tag = grant(true, false, false, nic);
        EXPECT_EQ(VIP_INVALID_PTAG, bind_of(room.data, 64, room.handle, &no_tag));
        EXPECT_EQ(77U, window) << "a call that fails writes nothing";
        OK(bind_of(room.data, 64, room.handle, &all));
        const VIP_MEM_HANDLE first = window;
        EXPECT_EQ(VIP_INVALID_PARAMETER, bind_of(room.data, 64, first, &all)) << "of a window";
        for (const VIP_MEM_HANDLE handle : {0U, room.handle, first + 1, ~0U})
            EXPECT_EQ(VIP_INVALID_PARAMETER, ViaRevokeWindow(nic, handle));
        EXPECT_EQ(VIP_INVALID_PARAMETER, ViaRevokeWindow(nullptr, first));
        EXPECT_EQ(VIP_INVALID_PARAMETER, ViaQueryWindow(nic, first, nullptr));
        EXPECT_EQ(VIP_INVALID_PARAMETER, VipDeregisterMem(nic, room.data, first))
            << "it is no region";
        // A descriptor of ours uses memory by its region's handle.
        End end(me);
        VIP_DESCRIPTOR* send = end.memory().descriptor();
        const Piece through = room.with_handle(first);
        make_send(send, Pieces(&through, 1));
        end.post_send(send);
        EXPECT_EQ(VIP_DESCRIPTOR_ERROR, end.send_outcome().code);
        EXPECT_EQ(VIP_INVALID_PARAMETER, VipPostSend(end.vi(), send, first));
        OK(ViaRevokeWindow(nic, first));
        OK(VipDeregisterMem(nic, nullptr, everything));
    });
}

}  // namespace
}  // namespace conformance::windows_test
