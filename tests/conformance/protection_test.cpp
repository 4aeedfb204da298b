// Protection of the program's own memory against its own descriptors, rights that are taken away,
// scatter lists that overlap (VIPL 4.6 to 4.9, 4.12). Refused RDMA targets are in rdma_test.cpp.
#include <algorithm>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "harness/end.hpp"

namespace conformance::protection_test {
namespace {

// Local segments and descriptors ------------------------------------------------------------------

/// Memory of a VI whose tag is `mine`, and ways to name bytes of it that are not the VI's to use.
/// The region is 200 bytes, the good segment 64 from 100 on.
struct Ground {
    explicit Ground(Role& me)
        : mine(me.nic()),
          foreign(me.nic()),
          other(me.device_name()),
          region(me.nic(), 200, rights(true, true, mine.handle())),
          all(region.take(200, 1)),
          wrong_tag(enter(me.nic(), rights(true, true, foreign.handle()))),
          no_tag(enter(me.nic(), rights(true, true))),
          gone(enter(me.nic(), rights(true, true, mine.handle()))),
          nic_(me.nic()) {
        OK(VipDeregisterMem(nic_.handle(), all.data, gone));
        // Another NIC numbers its handles by itself: the same number here may be a good one.
        do of_other_nic = enter(other, rights(true, true));
        while (of_other_nic == region.handle() || of_other_nic == wrong_tag ||
               of_other_nic == no_tag);
        fill_with(all, 9);
    }
    ~Ground() {
        for (const VIP_MEM_HANDLE handle : {wrong_tag, no_tag})
            EXPECT_EQ(VIP_SUCCESS, VipDeregisterMem(nic_.handle(), all.data, handle));
    }
    VIP_MEM_HANDLE enter(Nic& nic, VIP_MEM_ATTRIBUTES attributes) const {
        VIP_MEM_HANDLE handle = 0;
        OK(VipRegisterMem(nic.handle(), all.data, all.length, &attributes, &handle));
        return handle;
    }
    Piece good() const { return all.part(100, 64); }

    Tag mine, foreign;
    Nic other;
    Memory region;
    Piece all;
    VIP_MEM_HANDLE wrong_tag, no_tag, gone, of_other_nic = 0;

private:
    Nic& nic_;
};

struct BadPiece {
    const char* name;
    Piece (*of)(const Ground&);
    bool of_receives = true;  ///< or it may stay posted, and only what arrives tells
};

Piece at_address(const Ground& ground, VIP_UINT64 address) {
    Piece piece = ground.good();
    piece.data = reinterpret_cast<std::byte*>(address);
    return piece;
}

const BadPiece bad_pieces[] = {
    {"it begins one byte before the region",
     [](const Ground& g) { return Piece{g.all.data - 1, 64, g.all.handle}; }},
    {"it ends one byte behind the region", [](const Ground& g) { return g.all.part(137, 64); },
     false},
    {"it is longer than the region", [](const Ground& g) { return g.all.with_length(201); }, false},
    {"it begins where the region ends", [](const Ground& g) { return g.all.part(200, 1); }, false},
    {"it wraps round", [](const Ground& g) { return at_address(g, ~VIP_UINT64{0} - 20); }},
    {"it ends with the last address", [](const Ground& g) { return at_address(g, 0 - 64ULL); }},
    {"the handle is 0", [](const Ground& g) { return g.good().with_handle(0); }},
    {"the handle has bit 31",
     [](const Ground& g) { return g.good().with_handle(g.all.handle | 0x80000000); }},
    {"the handle is stale", [](const Ground& g) { return g.good().with_handle(g.gone); }},
    {"the handle is another NIC's",
     [](const Ground& g) { return g.good().with_handle(g.of_other_nic); }},
    {"it has another tag", [](const Ground& g) { return g.good().with_handle(g.wrong_tag); }},
};

/// Is this the only error of a descriptor, which is done?
testing::AssertionResult only_protection(const VIP_DESCRIPTOR* descriptor) {
    if ((descriptor->CS.Status & VIP_STATUS_ERROR_MASK) != VIP_STATUS_PROTECTION_ERROR)
        return testing::AssertionFailure() << status_text(descriptor->CS.Status);
    return failed_with(descriptor, VIP_STATUS_PROTECTION_ERROR);
}

enum class Use { send, rdma_write, rdma_read, receive };
constexpr const char* name_of_use[] = {"send", "RDMA write", "RDMA read", "receive"};

/// A descriptor of two segments, the bad one first or last; posts it and sees it fail alone.
void post_bad(Role& me, VIP_RELIABILITY_LEVEL level, Use use, const BadPiece& bad, bool first) {
    Ground ground(me);
    End end(me, {.level = level, .tag = ground.mine.handle()});
    const Piece good = end.take(16);
    fill_with(good, 5);
    const Piece wrong = bad.of(ground);
    const Piece pieces[] = {first ? wrong : good, first ? good : wrong};
    end.connect("server");
    const auto target = me.hear<Target>("server");
    VIP_DESCRIPTOR* descriptor = nullptr;
    if (use == Use::send) descriptor = end.send(pieces);
    if (use == Use::rdma_write) descriptor = end.write(target, pieces);
    if (use == Use::rdma_read) descriptor = end.read(target, pieces);
    if (use == Use::receive) descriptor = end.receive(pieces);
    if (use == Use::receive) {
        EXPECT_EQ(descriptor, end.received(VIP_DESCRIPTOR_ERROR));
    } else {
        EXPECT_EQ(descriptor, end.sent(VIP_DESCRIPTOR_ERROR));
    }
    EXPECT_TRUE(only_protection(descriptor));
    if (level == VIP_SERVICE_UNRELIABLE) {
        EXPECT_EQ(VIP_STATE_CONNECTED, end.state());
        end.say("server", 1);
    }
    EXPECT_TRUE(holds_only(ground.all, 9));
    EXPECT_TRUE(holds_only(good, 5));
    me.meet();
}

/// The other end of that; nothing may have reached it.
void see_nothing(Role& me, VIP_RELIABILITY_LEVEL level) {
    End end(me, {.level = level});
    const Piece room = end.take(1024);
    fill_with(room, 7);
    // The word that an unreliable connection still carries must find its own receive.
    if (level != VIP_SERVICE_UNRELIABLE) end.receive(room);
    end.accept("client");
    me.tell("client", Target(room));
    if (level == VIP_SERVICE_UNRELIABLE) end.expect("client", 1);
    me.meet();
    EXPECT_TRUE(holds_only(room, 7));
}

/// All bad pieces in both places of every descriptor that this level has.
template <class Act>
void for_every_bad_piece(VIP_RELIABILITY_LEVEL level, Act act) {
    for (const Use use : {Use::send, Use::rdma_write, Use::rdma_read, Use::receive}) {
        if (use == Use::rdma_read && level == VIP_SERVICE_UNRELIABLE) continue;
        for (const BadPiece& bad : bad_pieces)
            for (const bool first : {true, false}) {
                if (use == Use::receive && !bad.of_receives) continue;
                SCOPED_TRACE(testing::Message() << name_of_use[static_cast<int>(use)] << ", "
                                                << bad.name << (first ? ", first" : ", last"));
                act(use, bad, first);
            }
    }
}

void refuse_local(Test& test, VIP_RELIABILITY_LEVEL level) {
    test.role("server", [=](Role& me) {
        for_every_bad_piece(level, [&](Use, const BadPiece&, bool) { see_nothing(me, level); });
    });
    test.role("client", [=](Role& me) {
        for_every_bad_piece(level, [&](Use use, const BadPiece& bad, bool first) {
            post_bad(me, level, use, bad, first);
        });
    });
}

VIPL_TEST(Vipl_4_12_segments_that_are_not_the_vis_own_fail_on_an_unreliable_vi, nothing) {
    refuse_local(test, VIP_SERVICE_UNRELIABLE);
}
VIPL_TEST(Vipl_4_12_segments_that_are_not_the_vis_own_fail_with_reliable_delivery, nothing) {
    refuse_local(test, VIP_SERVICE_RELIABLE_DELIVERY);
}
VIPL_TEST(Vipl_4_12_segments_that_are_not_the_vis_own_fail_with_reliable_reception, nothing) {
    refuse_local(test, VIP_SERVICE_RELIABLE_RECEPTION);
}

// Receives longer than their region
// ----------------------------------------------------------------

/// A receive whose registered part is `registered` bytes: of one segment, or behind another one.
struct Overhanging {
    std::size_t registered;
    std::size_t first;  ///< of these, in a segment of their own
};
constexpr Overhanging overhanging[] = {{0, 0},     {8, 0},    {100, 0},     {100, 60},
                                       {100, 100}, {5000, 0}, {5000, 3000}, {65536, 0}};

/// Memory of which only the first bytes are registered.
struct Edge {
    Edge(End& end, std::size_t registered)
        : nic(end.nic().handle()), room(end.take(registered + 200)), inside(registered) {
        fill_with(room, 9);
        OK(VipRegisterMem(nic, room.data, std::max<std::size_t>(registered, 1), nullptr, &handle));
    }
    ~Edge() { EXPECT_EQ(VIP_SUCCESS, VipDeregisterMem(nic, room.data, handle)); }
    /// With room for 100 bytes more than are registered.
    std::vector<Piece> pieces(std::size_t first) const {
        // Of a region of one byte, what lies behind that.
        const Piece all = inside == 0 ? room.part(1, 100) : room.with_length(inside + 100);
        std::vector<Piece> result;
        if (first != 0) result.push_back(all.part(0, first).with_handle(handle));
        result.push_back(all.part(first, all.length - first).with_handle(handle));
        return result;
    }
    Piece beyond() const { return room.part(std::max<std::size_t>(inside, 1), 100); }

    VIP_NIC_HANDLE nic;
    Piece room;
    std::size_t inside;
    VIP_MEM_HANDLE handle = 0;
};

VIPL_TEST(Vipl_4_12_a_receive_longer_than_its_region_takes_what_fits_into_the_registered_part,
          nothing) {
    for (const VIP_RELIABILITY_LEVEL level : levels_that_deliver()) {
        const std::string suffix = std::to_string(level);
        test.role("server" + suffix, [=](Role& me) {
            for (const Overhanging& of : overhanging) {
                End end(me, {.level = level, .transfer_max = 65537});
                {
                    Edge edge(end, of.registered);
                    VIP_DESCRIPTOR* whole = end.receive(edge.pieces(of.first));
                    VIP_DESCRIPTOR* empty = end.receive(edge.pieces(of.first));
                    VIP_DESCRIPTOR* written = end.receive(edge.pieces(of.first));
                    VIP_DESCRIPTOR* too_much = end.receive(edge.pieces(of.first));
                    end.accept("client" + suffix);
                    me.tell("client" + suffix, Target(end.take(8)));
                    EXPECT_EQ(whole, end.received());
                    EXPECT_EQ(of.registered, whole->CS.Length);
                    EXPECT_TRUE(holds(edge.room.with_length(of.registered), 3));
                    EXPECT_EQ(empty, end.received());
                    EXPECT_EQ(0U, empty->CS.Length);
                    EXPECT_EQ(written, end.received())
                        << "an RDMA write takes it, and no bytes of it";
                    EXPECT_EQ(too_much, end.received(VIP_DESCRIPTOR_ERROR));
                    EXPECT_TRUE(only_protection(too_much));
                    EXPECT_TRUE(holds_only(edge.beyond(), 9));
                    if (level == VIP_SERVICE_UNRELIABLE) {
                        EXPECT_EQ(VIP_STATE_CONNECTED, end.state());
                        end.expect("client" + suffix, 1);
                    } else {
                        EXPECT_EQ(VIP_STATE_ERROR, end.state());
                    }
                    end.disconnect();
                }
                me.meet_with("client" + suffix);
            }
        });
        test.role("client" + suffix, [=](Role& me) {
            for (const Overhanging& of : overhanging) {
                End end(me, {.level = level, .transfer_max = 65537});
                end.connect("server" + suffix);
                const auto word = me.hear<Target>("server" + suffix);
                end.send(end.filled(of.registered, 3));
                EXPECT_EQ(of.registered, end.sent()->CS.Length);
                end.send(Pieces());
                end.sent();
                end.write(word, end.take(8), VIP_CONTROL_IMMEDIATE, 5);
                end.sent();
                end.send(end.take(of.registered + 1));
                if (level == VIP_SERVICE_UNRELIABLE) {
                    end.sent();
                    end.say("server" + suffix, 1);
                } else {
                    end.wait_state(VIP_STATE_ERROR);
                }
                me.meet_with("server" + suffix);
            }
        });
    }
}

VIPL_TEST(Vipl_4_9_descriptors_need_a_handle_that_lives_on_this_nic_with_the_vis_tag, nothing) {
    test.role("only", [](Role& me) {
        Ground ground(me);
        End end(me, {.tag = ground.mine.handle()});
        auto* inside = reinterpret_cast<VIP_DESCRIPTOR*>(ground.all.data + 64);
        const auto refused = [&](VIP_DESCRIPTOR* descriptor, VIP_MEM_HANDLE handle) {
            EXPECT_EQ(VIP_INVALID_PARAMETER, VipPostSend(end.vi(), descriptor, handle));
            EXPECT_EQ(VIP_INVALID_PARAMETER, VipPostRecv(end.vi(), descriptor, handle));
        };
        make_send(inside, {});
        for (const VIP_MEM_HANDLE handle : {ground.gone, ground.of_other_nic, ground.wrong_tag,
                                            ground.all.handle | 0x80000000, VIP_MEM_HANDLE{0}})
            refused(inside, handle);
        // Nobody could read these; that they are not asked for is the point.
        for (const VIP_UINT64 address : {0 - 64ULL, 0 - 128ULL, 64ULL, 1ULL << 63})
            refused(reinterpret_cast<VIP_DESCRIPTOR*>(address), ground.all.handle);
        EXPECT_TRUE(end.send_queue_empty());
        EXPECT_TRUE(end.receive_queue_empty());
        EXPECT_EQ(VIP_SUCCESS, VipPostSend(end.vi(), inside, ground.all.handle));
    });
}

VIPL_TEST(Vipl_4_7_memory_without_a_tag_is_there_for_every_vi_but_not_for_its_peer, nothing) {
    test.role("server", [](Role& me) {
        for (const VIP_RELIABILITY_LEVEL level : levels_that_deliver()) {
            Tag mine(me.nic());
            End end(me, {.level = level, .tag = mine.handle()});
            Memory plain(me.nic(), 8192, rights(false, false)),
                open(me.nic(), 4096, rights(true, true));
            const Piece room = plain.take(500);
            const Piece pieces[] = {room.part(0, 100), end.take(50), room.part(100, 50)};
            VIP_DESCRIPTOR* receive = plain.descriptor(3);
            make_receive(receive, pieces);
            OK(VipPostRecv(end.vi(), receive, plain.handle()));
            VIP_DESCRIPTOR* whole = plain.descriptor();
            const Piece second = plain.take(500);
            make_receive(whole, Pieces(&second, 1));
            OK(VipPostRecv(end.vi(), whole, plain.handle()));
            end.accept("client");
            me.tell("client", Target(open.take(64)));
            EXPECT_EQ(receive, end.received());
            EXPECT_TRUE(holds(pieces[0], 3));
            EXPECT_TRUE(holds(pieces[1], 3, 100));
            EXPECT_TRUE(holds(pieces[2], 3, 150));
            EXPECT_EQ(whole, end.received());
            EXPECT_TRUE(holds(second.with_length(200), 3));
            // Back from there, too.
            VIP_DESCRIPTOR* send = plain.descriptor();
            make_send(send, Pieces(&second, 1));
            OK(VipPostSend(end.vi(), send, plain.handle()));
            EXPECT_EQ(send, end.sent());
            me.meet();
            if (level != VIP_SERVICE_UNRELIABLE) end.wait_broken();
            me.meet();
            EXPECT_TRUE(holds_only({open.base(), 64, 0}, 0)) << "its peer has no right";
        }
    });
    test.role("client", [](Role& me) {
        for (const VIP_RELIABILITY_LEVEL level : levels_that_deliver()) {
            End end(me, {.level = level});
            const Piece room = end.take(500);
            VIP_DESCRIPTOR* receive = end.receive(room);
            end.connect("server");
            const auto target = me.hear<Target>("server");
            const Piece data = end.filled(200, 3);
            end.send(data);
            end.sent();
            end.send(data);
            end.sent();
            EXPECT_EQ(receive, end.received());
            EXPECT_TRUE(holds(room.with_length(200), 3));
            me.meet();
            end.write(target, end.filled(64, 5));
            if (level == VIP_SERVICE_UNRELIABLE)
                end.sent();
            else
                end.wait_state(VIP_STATE_ERROR);
            me.meet();
        }
    });
}

VIPL_TEST(Vipl_4_6_a_region_of_no_bytes_is_refused, nothing) {
    test.role("only", [](Role& me) {
        char bytes[8];
        VIP_MEM_HANDLE handle = 77;
        EXPECT_EQ(VIP_INVALID_PARAMETER,
                  VipRegisterMem(me.nic().handle(), bytes, 0, nullptr, &handle));
        EXPECT_EQ(77U, handle);
    });
}

VIPL_TEST(Vipl_4_10_a_segment_of_no_bytes_touches_nothing_whatever_it_names, nothing) {
    test.role("server", [](Role& me) {
        for (const VIP_RELIABILITY_LEVEL level : levels_that_deliver()) {
            End end(me, {.level = level});
            const Piece room = end.take(64);
            fill_with(room, 7);
            const Piece pieces[] = {room.part(0, 8), {nullptr, 0, 0}, room.part(8, 8)};
            end.receive(pieces);
            end.accept("client");
            me.tell("client", Target(room));
            EXPECT_EQ(16U, end.received()->CS.Length);
            EXPECT_TRUE(holds(room.with_length(16), 1));
            EXPECT_TRUE(holds_only(room.part(16, 48), 7));
            me.meet();
        }
    });
    test.role("client", [](Role& me) {
        for (const VIP_RELIABILITY_LEVEL level : levels_that_deliver()) {
            End end(me, {.level = level});
            end.connect("server");
            const auto target = me.hear<Target>("server");
            const Piece data = end.filled(16, 1);
            const Piece nowhere{reinterpret_cast<std::byte*>(~VIP_UINT64{0}), 0, 0x7FFFFFFF};
            Target wrong = target;
            wrong.handle = 0;
            wrong.address = ~VIP_UINT64{0};
            end.write(wrong, nowhere);
            const Piece pieces[] = {nowhere, data.part(0, 4), nowhere, data.part(4, 12)};
            end.send(pieces);
            end.sent();
            end.sent();
            EXPECT_EQ(VIP_STATE_CONNECTED, end.state());
            me.meet();
        }
    });
}

// Scatter and gather lists that overlap -----------------------------------------------------------

VIPL_TEST(Vipl_4_10_gathering_the_same_bytes_twice_sends_them_twice, nothing) {
    test.role("server", [](Role& me) {
        End end(me);
        const Piece room = end.take(100);
        const Piece target = end.take(100);
        end.receive(room);
        end.accept("client");
        me.tell("client", Target(target));
        end.received();
        for (const Piece& piece : {room, target}) {
            EXPECT_TRUE(holds(piece.part(0, 60), 1));
            EXPECT_TRUE(holds(piece.part(60, 40), 1, 16));
        }
    });
    test.role("client", [](Role& me) {
        End end(me);
        end.connect("server");
        const auto target = me.hear<Target>("server");
        const Piece data = end.filled(64, 1);
        const Piece pieces[] = {data.part(0, 60), data.part(16, 40)};
        end.write(target, pieces);
        end.send(pieces);
        end.sent();
        end.sent();
        me.wait_for_end_of("server");
    });
}

/// Three segments of 40 bytes that begin 20 bytes after each other, in the middle of a room of 120.
struct Overlapping {
    explicit Overlapping(End& end) : room(end.take(120)) { fill_with(room, 7); }
    std::vector<Piece> pieces() const {
        return {room.part(20, 40), room.part(40, 40), room.part(60, 40)};
    }
    /// 120 bytes of pattern 1 have been scattered: bytes of one segment alone are known, those of
    /// two are what one of them got, those around are as they were.
    void expect_scattered() const {
        EXPECT_TRUE(holds_only(room.part(0, 20), 7));
        EXPECT_TRUE(holds(room.part(20, 20), 1));
        std::byte sent[120];
        fill({sent, 120, 0}, 1);
        for (std::size_t at = 40; at < 80; ++at) {
            const std::size_t earlier = at - 20 + (at < 60 ? 0 : 20);
            const std::byte is = room.data[at];
            EXPECT_TRUE(is == sent[earlier] || is == sent[earlier + 20]) << "byte " << at;
        }
        EXPECT_TRUE(holds(room.part(80, 20), 1, 100));
        EXPECT_TRUE(holds_only(room.part(100, 20), 7));
    }
    Piece room;
};

VIPL_TEST(Vipl_4_10_scatter_lists_that_overlap_stay_within_their_segments, nothing) {
    test.role("server", [](Role& me) {
        for (const VIP_RELIABILITY_LEVEL level : levels_that_deliver()) {
            End end(me, {.level = level});
            const Overlapping scatter(end);
            end.receive(scatter.pieces());
            end.accept("client");
            me.tell("client", Target(end.filled(120, 1)));
            EXPECT_EQ(120U, end.received()->CS.Length);
            scatter.expect_scattered();
            me.meet();
        }
    });
    test.role("client", [](Role& me) {
        for (const VIP_RELIABILITY_LEVEL level : levels_that_deliver()) {
            End end(me, {.level = level});
            end.connect("server");
            const auto target = me.hear<Target>("server");
            end.send(end.filled(120, 1));
            end.sent();
            if (level != VIP_SERVICE_UNRELIABLE) {
                const Overlapping scatter(end);
                end.read(target, scatter.pieces());
                end.sent();
                scatter.expect_scattered();
            }
            me.meet();
        }
    });
}

// Rights that are taken away ----------------------------------------------------------------------

/// Ways in which VipSetMemAttributes shuts a region of a VI with tag `mine` to its peer.
struct Shut {
    const char* name;
    bool keeps_right;
    bool keeps_tag;
};
constexpr Shut ways[] = {{"the right goes", false, true}, {"the tag changes", true, false}};

/// A region is reached, then shut, then no more; without a connection that could break it opens
/// again and is reached again.
void shut_region(Role& me, VIP_RELIABILITY_LEVEL level, bool writes, const Shut& way) {
    const Tag mine(me.nic());
    const Tag foreign(me.nic());
    End end(me, {.level = level, .tag = mine.handle()});
    Memory region(me.nic(), 64, rights(true, true, mine.handle()));
    const Piece piece = region.take(64);
    fill(piece, 1);
    const auto change = [&](bool right, bool tag) {
        VIP_MEM_ATTRIBUTES attributes =
            rights(right || !writes, right || writes, tag ? mine.handle() : foreign.handle());
        OK(VipSetMemAttributes(me.nic().handle(), piece.data, piece.handle, &attributes));
    };
    end.accept("client");
    me.tell("client", Target(piece));
    end.expect("client", 1);
    EXPECT_TRUE(holds(piece, writes ? 2 : 1));
    change(way.keeps_right, way.keeps_tag);
    fill_with(piece, 3);
    me.meet();
    if (level == VIP_SERVICE_UNRELIABLE) {
        end.expect("client", 2);
    } else {
        end.wait_state(VIP_STATE_ERROR);
    }
    me.nic().wait_error(me, end.vi(), writes ? VIP_ERROR_RDMAW_PROT : VIP_ERROR_RDMAR_PROT);
    EXPECT_TRUE(holds_only(piece, 3));
    if (level == VIP_SERVICE_UNRELIABLE) {
        change(true, true);
        me.meet();
        end.expect("client", 3);
        EXPECT_TRUE(holds(piece, 2));
    }
    me.meet();
}

void reach_region(Role& me, VIP_RELIABILITY_LEVEL level, bool writes) {
    End end(me, {.level = level});
    const Piece data = end.filled(64, 2);
    end.connect("server");
    const auto target = me.hear<Target>("server");
    const auto reach = [&] { return writes ? end.write(target, data) : end.read(target, data); };
    reach();
    end.sent();
    EXPECT_TRUE(holds(data, writes ? 2 : 1));
    end.say("server", 1);
    me.meet();
    if (level == VIP_SERVICE_UNRELIABLE) {
        reach();
        end.sent();
        end.say("server", 2);
        me.meet();
        reach();
        end.sent();
        end.say("server", 3);
    } else {
        const VIP_DESCRIPTOR* refused = reach();
        end.wait_state(VIP_STATE_ERROR);
        // A write with reliable delivery may be done before its refusal comes (VIPL 4.25).
        const auto [code, descriptor] = end.send_outcome();
        EXPECT_EQ(refused, descriptor);
        const bool own = !writes || level == VIP_SERVICE_RELIABLE_RECEPTION;
        EXPECT_TRUE(code == VIP_DESCRIPTOR_ERROR || (code == VIP_SUCCESS && !own));
        EXPECT_TRUE(code == VIP_SUCCESS || failed_with(refused, VIP_STATUS_RDMA_PROT_ERROR));
        EXPECT_TRUE(holds(data, writes ? 2 : 1)) << "what was there before";
    }
    me.meet();
}

/// Both operations on all levels, in all ways.
template <class Act>
void for_every_way(Act act) {
    for (const VIP_RELIABILITY_LEVEL level : levels_that_deliver())
        for (const bool writes : {true, false}) {
            if (!writes && level == VIP_SERVICE_UNRELIABLE) continue;
            for (const Shut& way : ways) {
                SCOPED_TRACE(testing::Message() << "level " << level << ", " << way.name
                                                << (writes ? ", write" : ", read"));
                act(level, writes, way);
            }
        }
}

VIPL_TEST(Vipl_4_6_rights_and_tags_that_are_taken_away_hold_from_then_on, nothing) {
    test.role("server", [](Role& me) {
        for_every_way([&](VIP_RELIABILITY_LEVEL level, bool writes, const Shut& way) {
            shut_region(me, level, writes, way);
        });
    });
    test.role("client", [](Role& me) {
        for_every_way([&](VIP_RELIABILITY_LEVEL level, bool writes, const Shut&) {
            reach_region(me, level, writes);
        });
    });
}

VIPL_TEST(Vipl_4_7_a_tag_that_changes_shuts_the_vis_own_descriptors_out, nothing) {
    test.role("only", [](Role& me) {
        const Tag mine(me.nic());
        const Tag foreign(me.nic());
        End end(me, {.tag = mine.handle()});
        Memory region(me.nic(), 4096, rights(false, false, mine.handle()));
        VIP_DESCRIPTOR* descriptor = region.descriptor();
        make_receive(descriptor, {});
        const auto give_to = [&](const Tag& tag) {
            VIP_MEM_ATTRIBUTES attributes = rights(false, false, tag.handle());
            OK(VipSetMemAttributes(me.nic().handle(), region.base(), region.handle(), &attributes));
        };
        give_to(foreign);
        EXPECT_EQ(VIP_INVALID_PARAMETER, VipPostRecv(end.vi(), descriptor, region.handle()));
        give_to(mine);
        EXPECT_EQ(VIP_SUCCESS, VipPostRecv(end.vi(), descriptor, region.handle()));
        end.disconnect();
    });
}

VIPL_TEST(Vipl_4_7_a_vis_own_tag_changes_only_where_its_posted_receives_allow, nothing) {
    test.role("only", [](Role& me) {
        const Tag mine(me.nic());
        const Tag foreign(me.nic());
        const Wants wants{.tag = mine.handle()};
        End end(me, wants);
        Memory region(me.nic(), 4096, rights(false, false, foreign.handle()));
        const auto take = [&](VIP_PROTECTION_HANDLE tag) {
            VIP_VI_ATTRIBUTES attributes = wants.attributes();
            attributes.Ptag = tag;
            return VipSetViAttributes(end.vi(), &attributes);
        };
        const auto own_tag = [&] {
            VIP_VI_STATE state;
            VIP_BOOLEAN flag;
            VIP_VI_ATTRIBUTES told;
            OK(VipQueryVi(end.vi(), &state, &told, &flag, &flag));
            return told.Ptag;
        };
        VIP_DESCRIPTOR* posted = end.receive(end.take(64));
        EXPECT_EQ(VIP_ERROR_RESOURCE, take(foreign.handle()));
        EXPECT_EQ(mine.handle(), own_tag()) << "a refusal changes nothing";
        EXPECT_EQ(VIP_SUCCESS, take(nullptr));
        EXPECT_EQ(VIP_ERROR_RESOURCE, take(foreign.handle()));
        EXPECT_EQ(VIP_SUCCESS, take(mine.handle()));

        // The descriptor's memory and its data's both count; data of no bytes does not.
        EXPECT_EQ(VIP_SUCCESS, take(nullptr));
        end.receive(region.take(64).with_length(0));
        EXPECT_EQ(VIP_SUCCESS, take(mine.handle()));
        EXPECT_EQ(VIP_SUCCESS, take(nullptr));
        VIP_DESCRIPTOR* mixed = end.receive(region.take(64));
        EXPECT_EQ(VIP_ERROR_RESOURCE, take(mine.handle()));
        EXPECT_EQ(VIP_ERROR_RESOURCE, take(foreign.handle()));

        end.disconnect();
        EXPECT_EQ(posted, end.received(VIP_DESCRIPTOR_ERROR));
        end.received(VIP_DESCRIPTOR_ERROR);
        EXPECT_EQ(mixed, end.received(VIP_DESCRIPTOR_ERROR));
        EXPECT_EQ(VIP_SUCCESS, take(foreign.handle())) << "nothing is posted any more";
    });
}

}  // namespace
}  // namespace conformance::protection_test
