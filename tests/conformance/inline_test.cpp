// Inline sends: bytes that are copied before the post, from anywhere (VIPL 5; <via/via.h>).
#include <via/via.h>

#include <cstring>
#include <vector>

#include "harness/check.hpp"
#include "harness/end.hpp"

namespace conformance::inline_test {
namespace {

constexpr VIP_UINT32 lengths[] = {0, 1, 8, 13, 64, 1000, 5000};
constexpr VIP_UINT32 length_max = 5000;
/// As many as a descriptor can name, which then has room for the longest message behind it.
constexpr std::size_t segments_for_longest = 2 + (length_max + 15) / 16;

/// Memory of the program that no NIC knows, written over as soon as it was copied.
class Scratch {
public:
    void copy_to(VIP_DESCRIPTOR* descriptor, VIP_MEM_HANDLE handle, VIP_UINT32 length,
                 std::uint64_t seed) {
        fill({bytes_.data(), length, 0}, seed);
        ViaCopyInline(descriptor, handle, bytes_.data(), length);
        std::memset(bytes_.data(), 0xEE, bytes_.size());
    }

private:
    std::vector<std::byte> bytes_ = std::vector<std::byte>(length_max);
};

VIPL_TEST(Vipl_5_an_inline_send_carries_what_was_there_when_it_was_made, nothing) {
    test.role("server", [](Role& me) {
        for (const VIP_RELIABILITY_LEVEL level : levels_that_deliver()) {
            End end(me, {.level = level});
            const Piece room = end.take(length_max);
            VIP_DESCRIPTOR* receives[2] = {end.memory().descriptor(), end.memory().descriptor()};
            end.accept("client");
            for (const VIP_UINT32 length : lengths) {
                make_receive(receives[0], {&room, 1});
                make_receive(receives[1], {});
                for (VIP_DESCRIPTOR* receive : receives) end.post_receive(receive);
                const Piece target = end.take(length_max);
                me.tell("client", Target(target));
                EXPECT_EQ(receives[0], end.received());
                EXPECT_EQ(length, receives[0]->CS.Length);
                EXPECT_TRUE(holds(room.with_length(length), length));
                EXPECT_EQ(receives[1], end.received());
                EXPECT_EQ(length + 7, receives[1]->CS.ImmediateData);
                EXPECT_TRUE(holds(target.with_length(length), length + 1U));
            }
            me.meet();
        }
    });
    test.role("client", [](Role& me) {
        Scratch scratch;
        for (const VIP_RELIABILITY_LEVEL level : levels_that_deliver()) {
            End end(me, {.level = level});
            const VIP_MEM_HANDLE handle = end.memory().handle();
            VIP_DESCRIPTOR* send = end.memory().descriptor(segments_for_longest);
            VIP_DESCRIPTOR* write = end.memory().descriptor(segments_for_longest);
            end.connect("server");
            for (const VIP_UINT32 length : lengths) {
                const auto target = me.hear<Target>("server");
                make_send(send, {});
                scratch.copy_to(send, handle, length, length);
                make_write(write, target, {}, VIP_CONTROL_IMMEDIATE, length + 7);
                scratch.copy_to(write, handle, length, length + 1U);
                end.post_send(send);
                end.post_send(write);
                EXPECT_EQ(send, end.sent());
                EXPECT_EQ(write, end.sent());
                EXPECT_EQ(length, write->CS.Length);
            }
            me.meet();
        }
    });
}

VIPL_TEST(Vipl_5_inline_sends_of_one_buffer_go_in_one_post, nothing) {
    static constexpr VIP_UINT32 count = 16;
    static constexpr VIP_UINT32 length = 40;
    test.role("server", [](Role& me) {
        End end(me);
        const Piece room = end.take(count * length);
        for (VIP_UINT32 n = 0; n < count; ++n) end.receive(room.part(n * length, length));
        end.accept("client");
        for (VIP_UINT32 n = 0; n < count; ++n) {
            end.received();
            EXPECT_TRUE(holds(room.part(n * length, length), n));
        }
        me.meet();
    });
    test.role("client", [](Role& me) {
        End end(me);
        end.connect("server");
        Scratch scratch;
        std::vector<VIP_DESCRIPTOR*> sends;
        const std::vector<VIP_MEM_HANDLE> handles(count, end.memory().handle());
        for (VIP_UINT32 n = 0; n < count; ++n) {
            sends.push_back(end.memory().descriptor(segments_for_longest));
            make_send(sends.back(), {});
            scratch.copy_to(sends.back(), handles[n], length, n);
        }
        VIP_UINT32 posted = 0;
        OK(ViaPostSendMany(end.vi(), sends.data(), handles.data(), count, &posted));
        EXPECT_EQ(count, posted);
        for (VIP_UINT32 n = 0; n < count; ++n) EXPECT_EQ(sends[n], end.sent());
        me.meet();
    });
}

VIPL_TEST(Vipl_5_an_inline_send_beyond_its_region_is_a_protection_error, nothing) {
    struct Room {
        alignas(VIP_DESCRIPTOR_ALIGNMENT) VIP_DESCRIPTOR descriptor;
        std::byte behind[64];
    };
    test.role("server", [](Role& me) {
        End end(me);
        end.accept("client");
        me.meet();
    });
    test.role("client", [](Role& me) {
        End end(me);
        Room room{};
        std::byte word[8] = {};
        static_assert(VIA_INLINE_ROOM(8) == 72);
        VIP_MEM_HANDLE handle = 0;
        OK(VipRegisterMem(me.nic().handle(), &room, VIA_INLINE_ROOM(7), nullptr, &handle));
        end.connect("server");
        ViaCopyInline(&room.descriptor, handle, word, sizeof word);
        OK(VipPostSend(end.vi(), &room.descriptor, handle));
        EXPECT_EQ(&room.descriptor, end.sent(VIP_DESCRIPTOR_ERROR));
        EXPECT_TRUE(failed_with(&room.descriptor, VIP_STATUS_PROTECTION_ERROR));
        me.meet();
        OK(VipDeregisterMem(me.nic().handle(), &room, handle));
    });
}

}  // namespace
}  // namespace conformance::inline_test
