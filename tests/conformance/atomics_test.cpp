// Atomic operations on a peer's memory (VIPL 5; <via/via.h>).
#include <via/via.h>

#include <cstring>
#include <vector>

#include "harness/end.hpp"

namespace conformance::atomics_test {
namespace {

constexpr VIP_RELIABILITY_LEVEL reliable_levels[] = {VIP_SERVICE_RELIABLE_DELIVERY,
                                                     VIP_SERVICE_RELIABLE_RECEPTION};

/// As a program of the target reads it while peers change it.
VIP_UINT64 word_of(const Piece& piece) {
    return __atomic_load_n(reinterpret_cast<const VIP_UINT64*>(piece.data), __ATOMIC_ACQUIRE);
}

/// A word of the End's memory, with the right; the whole region has it.
Piece offer_word(End& end, VIP_UINT64 value) {
    Piece word = end.take(8);
    std::memcpy(word.data, &value, sizeof value);
    OK(ViaSetMemAtomics(end.nic().handle(), end.memory().base(), end.memory().handle(), VIP_TRUE));
    return word;
}

/// A descriptor that brings what was at `target`.
VIP_DESCRIPTOR* describe(End& end, Target target, const Piece& was, VIP_UINT16 control = 0) {
    VIP_DESCRIPTOR* descriptor = end.memory().descriptor();
    make_read(descriptor, target, {&was, 1});
    descriptor->CS.Control = control;
    return descriptor;
}

VIP_DESCRIPTOR* add(End& end, Target target, const Piece& was, VIP_UINT64 addend,
                    VIP_UINT16 control = 0) {
    VIP_DESCRIPTOR* descriptor = describe(end, target, was, control);
    OK(ViaPostFetchAdd(end.vi(), descriptor, end.memory().handle(), addend));
    return descriptor;
}

VIP_DESCRIPTOR* swap(End& end, Target target, const Piece& was, VIP_UINT64 expected,
                     VIP_UINT64 desired) {
    VIP_DESCRIPTOR* descriptor = describe(end, target, was);
    OK(ViaPostCompareSwap(end.vi(), descriptor, end.memory().handle(), expected, desired));
    return descriptor;
}

VIPL_TEST(Vipl_5_atomics_change_the_peers_word_and_say_what_was_there, nothing) {
    test.role("target", [](Role& me) {
        for (const VIP_RELIABILITY_LEVEL level : reliable_levels) {
            End end(me, {.level = level});
            const Piece word = offer_word(end, 40);
            end.accept("other");
            me.tell("other", Target(word));
            me.hear<char>("other");  // sits outside of the library until all is done
            EXPECT_EQ(6U, word_of(word));
            me.meet();
        }
    });
    test.role("other", [](Role& me) {
        for (const VIP_RELIABILITY_LEVEL level : reliable_levels) {
            End end(me, {.level = level});
            end.connect("target");
            const auto target = me.hear<Target>("target");
            const Piece was[] = {end.take(8), end.take(8), end.take(8), end.take(8)};
            const VIP_DESCRIPTOR* all[] = {
                add(end, target, was[0], 2), swap(end, target, was[1], 42, 7),
                swap(end, target, was[2], 42, 9), add(end, target, was[3], ~VIP_UINT64{0})};
            for (const VIP_DESCRIPTOR* one : all) EXPECT_EQ(one, end.sent());
            EXPECT_TRUE(has_status(all[0], VIP_STATUS_DONE | VIA_STATUS_OP_FETCH_ADD));
            EXPECT_TRUE(has_status(all[1], VIP_STATUS_DONE | VIA_STATUS_OP_COMPARE_SWAP));
            EXPECT_TRUE(has_status(all[2], VIP_STATUS_DONE | VIA_STATUS_OP_COMPARE_SWAP));
            const VIP_UINT64 expected[] = {40, 42, 7, 7};
            for (std::size_t n = 0; n < 4; ++n) EXPECT_EQ(expected[n], word_of(was[n]));
            EXPECT_EQ(8U, all[0]->CS.Length);
            me.tell("target", 'd');
            me.meet();
        }
    });
}

VIPL_TEST(Vipl_5_atomics_are_behind_earlier_writes_and_before_later_ones, nothing) {
    constexpr VIP_UINT64 rounds = 100;
    test.role("target", [](Role& me) {
        End end(me);
        const Piece word = offer_word(end, 0);
        end.accept("other");
        me.tell("other", Target(word));
        me.meet();
        EXPECT_EQ(1000 * rounds, word_of(word));
    });
    test.role("other", [](Role& me) {
        End end(me);
        end.connect("target");
        const auto target = me.hear<Target>("target");
        const Piece was = end.take(8);
        const Piece read = end.take(8);
        const Piece written = end.take(8);
        for (VIP_UINT64 round = 1; round <= rounds; ++round) {
            const VIP_UINT64 value = 1000 * round;
            end.read(target, read);
            add(end, target, was, 5);
            for (int n = 0; n < 2; ++n) end.sent();
            EXPECT_EQ(value - 1000, word_of(was));
            std::memcpy(written.data, &value, sizeof value);
            add(end, target, was, 5);
            end.write(target, written);
            end.read(target, read, VIP_CONTROL_QFENCE);
            for (int n = 0; n < 3; ++n) end.sent();
            EXPECT_EQ(value - 995, word_of(was));
            EXPECT_EQ(value, word_of(read));
        }
        me.meet();
    });
}

// Many at one word --------------------------------------------------------------------------------

constexpr VIP_UINT64 adds_of_each = 400;
constexpr std::size_t depth = 6;  ///< under way at once

/// Adds 1 so often; what was there grows from one to the next.
void count_up(End& end, Target target) {
    std::vector<Piece> was;
    std::vector<VIP_DESCRIPTOR*> descriptors;
    for (std::size_t n = 0; n < depth; ++n) {
        was.push_back(end.take(8));
        descriptors.push_back(end.memory().descriptor());
    }
    VIP_UINT64 last = 0;
    VIP_UINT64 posted = 0;
    for (VIP_UINT64 done = 0; done < adds_of_each; ++done) {
        for (; posted < adds_of_each && posted < done + depth; ++posted) {
            VIP_DESCRIPTOR* next = descriptors[posted % depth];
            make_read(next, target, {&was[posted % depth], 1});
            next->CS.Control = 0;
            OK(ViaPostFetchAdd(end.vi(), next, end.memory().handle(), 1));
        }
        EXPECT_EQ(descriptors[done % depth], end.sent());
        const VIP_UINT64 found = word_of(was[done % depth]);
        require(done == 0 || found > last, "each finds more than the one before it");
        last = found;
    }
}

VIPL_TEST(Vipl_5_atomics_of_several_vis_and_of_the_targets_processor_are_each_counted_once,
          polls_memory) {
    test.role("target", [](Role& me) {
        End first(me);
        End second(me);
        const Piece word = offer_word(first, 0);
        first.accept("one");
        second.accept("two");
        for (const char* other : {"one", "two"}) me.tell(other, Target(word));
        auto* const at = reinterpret_cast<VIP_UINT64*>(word.data);
        for (VIP_UINT64 n = 0; n < adds_of_each; ++n) __atomic_fetch_add(at, 1, __ATOMIC_RELAXED);
        me.meet();
        EXPECT_EQ(3 * adds_of_each, word_of(word));
    });
    for (const char* name : {"one", "two"})
        test.role(name, [](Role& me) {
            End end(me);
            end.connect("target");
            count_up(end, me.hear<Target>("target"));
            me.meet();
        });
}

VIPL_TEST(Vipl_5_a_compare_and_swap_is_a_lock_of_several_hosts, nothing) {
    constexpr int rounds = 60;
    test.role("target", [](Role& me) {
        End first(me);
        End second(me);
        const Piece lock = offer_word(first, 0);
        const Piece guarded = offer_word(first, 0);
        first.accept("one");
        second.accept("two");
        for (const char* other : {"one", "two"}) {
            me.tell(other, Target(lock));
            me.tell(other, Target(guarded));
        }
        me.meet();
        EXPECT_EQ(0U, word_of(lock));
        EXPECT_EQ(VIP_UINT64{2 * rounds}, word_of(guarded));
    });
    for (const char* name : {"one", "two"})
        test.role(name, [](Role& me) {
            End end(me);
            end.connect("target");
            const auto lock = me.hear<Target>("target");
            const auto guarded = me.hear<Target>("target");
            const Piece was = end.take(8);
            const Piece value = end.take(8);
            VIP_DESCRIPTOR* descriptor = end.memory().descriptor();
            const auto change = [&](VIP_UINT64 expected, VIP_UINT64 desired) {
                make_read(descriptor, lock, {&was, 1});
                descriptor->CS.Control = 0;
                OK(ViaPostCompareSwap(end.vi(), descriptor, end.memory().handle(), expected,
                                      desired));
                EXPECT_EQ(descriptor, end.sent());
                return word_of(was) == expected;
            };
            for (int round = 0; round < rounds; ++round) {
                me.until([&] { return change(0, 1); }, "the lock is free");
                end.read(guarded, value);
                end.sent();
                const VIP_UINT64 next = word_of(value) + 1;
                std::memcpy(value.data, &next, sizeof next);
                end.write(guarded, value);
                end.sent();
                require(change(1, 0), "nobody else has it");
            }
            me.meet();
        });
}

VIPL_TEST(Vipl_5_atomics_in_a_segment_are_atomic_with_who_has_it_mapped, shares | polls_memory) {
    test.role("owner", [](Role& me) {
        End end(me);
        VIP_MEM_ATTRIBUTES attributes = rights(true, true);
        VIP_PVOID at = nullptr;
        VIP_MEM_HANDLE handle = 0;
        OK(ViaCreateSegment(me.nic().handle(), 4096, &attributes, &at, &handle));
        OK(ViaSetMemAtomics(me.nic().handle(), at, handle, VIP_TRUE));
        const Piece word{static_cast<std::byte*>(at), 8, handle};
        end.accept("guest");
        me.tell("guest", Target(word));
        auto* const plain = static_cast<VIP_UINT64*>(at);
        for (VIP_UINT64 n = 0; n < adds_of_each; ++n)
            __atomic_fetch_add(plain, 1, __ATOMIC_RELAXED);
        me.meet();
        EXPECT_EQ(3 * adds_of_each, word_of(word));
        end.disconnect();
        OK(ViaDestroySegment(me.nic().handle(), at));
    });
    test.role("guest", [](Role& me) {
        End end(me);
        end.connect("owner");
        const auto target = me.hear<Target>("owner");
        VIP_PVOID at = nullptr;
        VIP_ULONG length = 0;
        OK(ViaImportSegment(end.vi(), target.address, target.handle, VIP_TRUE, patience_ms, &at,
                            &length));
        const Piece was = end.take(8);
        VIP_DESCRIPTOR* descriptor = end.memory().descriptor();
        for (VIP_UINT64 n = 0; n < adds_of_each; ++n) {
            make_read(descriptor, target, {&was, 1});
            descriptor->CS.Control = 0;
            OK(ViaPostFetchAdd(end.vi(), descriptor, end.memory().handle(), 1));
            __atomic_fetch_add(static_cast<VIP_UINT64*>(at), 1, __ATOMIC_RELAXED);
            EXPECT_EQ(descriptor, end.sent());
        }
        me.meet();
        OK(ViaReleaseSegment(me.nic().handle(), at));
    });
}

// Refusals ----------------------------------------------------------------------------------------

struct Refusal {
    const char* name;
    bool write = true;  ///< the VI allows it
    bool read = true;
    bool right = true;  ///< of the region
    bool tag = false;   ///< of the VI, and no region has it
    void (*bend)(Target&, const Memory&) = [](Target&, const Memory&) {};
};

const Refusal refusals[] = {
    {.name = "the VI allows no RDMA write", .write = false},
    {.name = "the VI allows no RDMA read", .read = false},
    {.name = "the region has not the right", .right = false},
    {.name = "only the VI has a tag", .tag = true},
    {.name = "it is no multiple of 8", .bend = [](Target& t, const Memory&) { t.address += 4; }},
    {.name = "it is before the region",
     .bend = [](Target& t,
                const Memory& of) { t.address = reinterpret_cast<VIP_UINT64>(of.base()) - 8; }},
    {.name = "it is behind the region",
     .bend =
         [](Target& t, const Memory& of) {
             t.address = (reinterpret_cast<VIP_UINT64>(of.base()) + of.length() + 7) / 8 * 8;
         }},
    {.name = "it is the last word of all",
     .bend = [](Target& t, const Memory&) { t.address = 0 - VIP_UINT64{8}; }},
    {.name = "the handle is invented",
     .bend = [](Target& t, const Memory&) { t.handle ^= 0x00800000; }},
};

VIPL_TEST(Vipl_5_atomics_that_are_refused_change_nothing_and_break_the_connection, nothing) {
    test.role("target", [](Role& me) {
        for (const VIP_RELIABILITY_LEVEL level : reliable_levels)
            for (const Refusal& refusal : refusals) {
                SCOPED_TRACE(refusal.name);
                const Tag tag(me.nic());
                Memory region(me.nic(), 4096);
                End end(me, {.level = level,
                             .rdma_write = refusal.write,
                             .rdma_read = refusal.read,
                             .tag = refusal.tag ? tag.handle() : nullptr});
                if (refusal.right)
                    OK(ViaSetMemAtomics(me.nic().handle(), region.base(), region.handle(),
                                        VIP_TRUE));
                const Piece words = region.take(16);
                fill_with(words, 9);
                Target target(words);
                refusal.bend(target, region);
                end.accept("other");
                me.tell("other", target);
                end.wait_state(VIP_STATE_ERROR);
                me.nic().wait_error(me, end.vi(), VIP_ERROR_RDMAW_PROT);
                EXPECT_TRUE(holds_only(words, 9));
                me.meet();
            }
    });
    test.role("other", [](Role& me) {
        for (const VIP_RELIABILITY_LEVEL level : reliable_levels)
            for (const Refusal& refusal : refusals) {
                SCOPED_TRACE(refusal.name);
                End end(me, {.level = level});
                end.connect("target");
                const auto target = me.hear<Target>("target");
                const Piece was = end.take(8);
                fill_with(was, 5);
                const VIP_DESCRIPTOR* refused = add(end, target, was, 1);
                EXPECT_EQ(refused, end.sent(VIP_DESCRIPTOR_ERROR));
                EXPECT_TRUE(has_status(refused, VIP_STATUS_DONE | VIP_STATUS_RDMA_PROT_ERROR |
                                                    VIA_STATUS_OP_FETCH_ADD));
                EXPECT_TRUE(holds_only(was, 5));
                end.wait_state(VIP_STATE_ERROR);
                me.meet();
            }
    });
}

VIPL_TEST(Vipl_5_atomics_with_a_fault_are_an_error_of_the_descriptor, nothing) {
    struct Fault {
        const char* name;
        VIP_UINT32 error;
        void (*bend)(VIP_DESCRIPTOR&);
    };
    static constexpr VIP_RELIABILITY_LEVEL levels[] = {VIP_SERVICE_UNRELIABLE,
                                                       VIP_SERVICE_RELIABLE_DELIVERY};
    static const Fault faults[] = {
        {"an operation", VIP_STATUS_FORMAT_ERROR,
         [](VIP_DESCRIPTOR& d) { d.CS.Control = VIP_CONTROL_OP_RDMAREAD; }},
        {"immediate data", VIP_STATUS_FORMAT_ERROR,
         [](VIP_DESCRIPTOR& d) { d.CS.Control = VIP_CONTROL_IMMEDIATE; }},
        {"one segment", VIP_STATUS_FORMAT_ERROR, [](VIP_DESCRIPTOR& d) { d.CS.SegCount = 1; }},
        {"three segments", VIP_STATUS_FORMAT_ERROR, [](VIP_DESCRIPTOR& d) { d.CS.SegCount = 3; }},
        {"four bytes", VIP_STATUS_LENGTH_ERROR,
         [](VIP_DESCRIPTOR& d) { d.CS.Length = d.DS[1].Local.Length = 4; }},
        {"another length", VIP_STATUS_LENGTH_ERROR, [](VIP_DESCRIPTOR& d) { d.CS.Length = 16; }},
        {"no handle", VIP_STATUS_PROTECTION_ERROR,
         [](VIP_DESCRIPTOR& d) { d.DS[1].Local.Handle = 0; }},
    };
    test.role("target", [](Role& me) {
        for (std::size_t n = 0; n <= std::size(faults); ++n) {
            End end(me, {.level = levels[n == std::size(faults) ? 0 : 1],
                         .rdma_read = n != std::size(faults)});
            const Piece word = offer_word(end, 40);
            end.accept("other");
            me.tell("other", Target(word));
            me.meet();
            EXPECT_EQ(40U, word_of(word));
        }
    });
    test.role("other", [](Role& me) {
        for (std::size_t n = 0; n <= std::size(faults); ++n) {
            const bool unreliable = n == std::size(faults);
            SCOPED_TRACE(unreliable ? "an unreliable VI" : faults[n].name);
            End end(me, {.level = levels[unreliable ? 0 : 1], .rdma_read = !unreliable});
            end.connect("target");
            const Piece was = end.take(8);
            VIP_DESCRIPTOR* faulty = describe(end, me.hear<Target>("target"), was);
            if (!unreliable) faults[n].bend(*faulty);
            OK(ViaPostFetchAdd(end.vi(), faulty, end.memory().handle(), 1));
            EXPECT_EQ(faulty, end.sent(VIP_DESCRIPTOR_ERROR));
            EXPECT_TRUE(
                has_status(faulty, VIP_STATUS_DONE | VIA_STATUS_OP_FETCH_ADD |
                                       (unreliable ? VIP_STATUS_FORMAT_ERROR : faults[n].error)));
            me.meet();
        }
    });
}

// Rights and what a NIC can -----------------------------------------------------------------------

VIPL_TEST(Vipl_5_the_right_to_atomics_is_a_regions_own, nothing) {
    test.role("one", [](Role& me) {
        VIP_NIC_HANDLE nic = me.nic().handle();
        VIA_ATOMIC_ATTRIBUTES can{};
        OK(ViaQueryAtomics(nic, &can));
        EXPECT_EQ(VIP_SERVICE_RELIABLE_DELIVERY | VIP_SERVICE_RELIABLE_RECEPTION, can.Support);
        EXPECT_EQ(VIP_ULONG{VIA_ATOMIC_SCOPE_MEMORY}, can.Scope);
        EXPECT_EQ(VIP_INVALID_PARAMETER, ViaQueryAtomics(nic, nullptr));
        EXPECT_EQ(VIP_INVALID_PARAMETER, ViaQueryAtomics(nullptr, &can));

        Memory region(me.nic(), 4096, rights(false, false));
        const auto has_right = [&] {
            VIP_BOOLEAN enabled = VIP_FALSE;
            OK(ViaQueryMemAtomics(nic, region.base(), region.handle(), &enabled));
            return enabled == VIP_TRUE;
        };
        EXPECT_FALSE(has_right());
        OK(ViaSetMemAtomics(nic, region.base(), region.handle(), VIP_TRUE));
        EXPECT_TRUE(has_right());
        VIP_MEM_ATTRIBUTES attributes = rights(true, false);
        OK(VipSetMemAttributes(nic, region.base(), region.handle(), &attributes));
        EXPECT_TRUE(has_right()) << "the other rights are apart from it";
        OK(ViaSetMemAtomics(nic, region.base(), region.handle(), VIP_FALSE));
        EXPECT_FALSE(has_right());
        OK(VipQueryMem(nic, region.base(), region.handle(), &attributes));
        EXPECT_EQ(VIP_TRUE, attributes.EnableRdmaWrite);
        EXPECT_EQ(VIP_FALSE, attributes.EnableRdmaRead);

        EXPECT_EQ(VIP_INVALID_PARAMETER,
                  ViaSetMemAtomics(nic, region.base() + 8, region.handle(), VIP_TRUE));
        EXPECT_EQ(VIP_INVALID_PARAMETER,
                  ViaSetMemAtomics(nic, region.base(), region.handle() ^ 0x00800000, VIP_TRUE));
        EXPECT_EQ(VIP_INVALID_PARAMETER,
                  ViaQueryMemAtomics(nic, region.base(), region.handle(), nullptr));
        VIP_MEM_HANDLE all = 0;
        OK(ViaRegisterAll(nic, &all));
        EXPECT_EQ(VIP_INVALID_PARAMETER, ViaSetMemAtomics(nic, nullptr, all, VIP_TRUE))
            << "for local use only";
        OK(VipDeregisterMem(nic, nullptr, all));
        EXPECT_EQ(VIP_INVALID_PARAMETER, ViaPostFetchAdd(nullptr, nullptr, 0, 1));
    });
}

}  // namespace
}  // namespace conformance::atomics_test
