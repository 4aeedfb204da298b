// Registered by whole pages, as on the NICs of VIA's time: option granularity=page (VIPL 4.6).
#include <vector>

#include "harness/end.hpp"

namespace conformance::granularity_test {
namespace {

constexpr std::size_t page = 4096;

/// Three pages, and a region of 50 bytes in the midst of the second.
struct Ground {
    Ground(Role& me, bool write, bool read) : nic(me.nic()), memory(nic, 3 * page) {
        all = memory.take(3 * page, page);
        fill_with(all, 9);
        VIP_MEM_ATTRIBUTES attributes = rights(write, read);
        OK(VipRegisterMem(nic.handle(), few().data, 50, &attributes, &handle));
    }
    ~Ground() { EXPECT_EQ(VIP_SUCCESS, VipDeregisterMem(nic.handle(), few().data, handle)); }
    Piece few() const { return all.part(page + 1000, 50).with_handle(handle); }
    Piece in_page(std::size_t from, std::size_t bytes) const {
        return all.part(page + from, bytes).with_handle(handle);
    }

    Nic& nic;
    Memory memory;
    Piece all;
    VIP_MEM_HANDLE handle = 0;
};

VIPL_TEST(Vipl_4_6_whole_pages_are_granted_where_the_nic_shall, own_nics) {
    test.role("owner", [](Role& me) {
        me.take_options("granularity=page");
        Ground ground(me, true, true);
        End end(me);
        end.receive(ground.in_page(0, page));
        end.accept("other");
        me.tell("other", Target(ground.few()));
        EXPECT_EQ(page, end.received()->CS.Length);
        EXPECT_TRUE(holds(ground.in_page(0, page), 1));
        end.send(ground.in_page(page - 100, 100));
        end.sent();
        me.meet();  // it has written
        EXPECT_TRUE(holds(ground.in_page(0, 8), 2));
        EXPECT_TRUE(holds(ground.in_page(page - 8, 8), 2));
        me.meet();
        me.nic().wait_error(me, end.vi(), VIP_ERROR_RDMAW_PROT);
        EXPECT_TRUE(holds_only(ground.all.part(0, page), 9));
        EXPECT_TRUE(holds_only(ground.all.part(2 * page, page), 9));
    });
    test.role("other", [](Role& me) {
        End end(me);
        const Piece received = end.take(100);
        end.receive(received);
        end.connect("owner");
        const auto few = me.hear<Target>("owner");
        end.send(end.filled(page, 1));
        end.sent();
        end.received();
        EXPECT_TRUE(holds(received, 1, page - 100));
        const Piece word = end.filled(8, 2);
        for (const long at : {-1000L, static_cast<long>(page) - 1008L}) {
            end.write(few.at(static_cast<std::size_t>(at)), word);
            end.sent();
        }
        const Piece read = end.take(page);
        end.read(few.at(static_cast<std::size_t>(-1000L)), read);
        end.sent();
        EXPECT_TRUE(holds(read.with_length(8), 2));
        me.meet();
        end.write(few.at(page - 1004), word);
        end.wait_state(VIP_STATE_ERROR);
        me.meet();
    });
}

VIPL_TEST(Vipl_4_6_whole_pages_have_the_rights_of_their_region_and_no_others, own_nics) {
    test.role("owner", [](Role& me) {
        me.take_options("granularity=page");
        Ground ground(me, false, true);
        End end(me);
        end.accept("other");
        me.tell("other", Target(ground.few()));
        me.nic().wait_error(me, end.vi(), VIP_ERROR_RDMAW_PROT);
        EXPECT_TRUE(holds_only(ground.all, 9));
        // It is known by what was registered.
        const VIP_NIC_HANDLE nic = me.nic().handle();
        VIP_MEM_ATTRIBUTES attributes{};
        EXPECT_EQ(VIP_INVALID_PARAMETER,
                  VipQueryMem(nic, ground.in_page(0, 1).data, ground.handle, &attributes));
        EXPECT_EQ(VIP_INVALID_PARAMETER,
                  VipDeregisterMem(nic, ground.in_page(0, 1).data, ground.handle));
        me.meet();
    });
    test.role("other", [](Role& me) {
        End end(me);
        end.connect("owner");
        const auto few = me.hear<Target>("owner");
        const Piece read = end.take(8);
        end.read(few.at(50), read);
        end.sent();
        EXPECT_TRUE(holds_only(read, 9));
        end.write(few.at(50), end.filled(8, 2));
        end.wait_state(VIP_STATE_ERROR);
        me.meet();
    });
}

}  // namespace
}  // namespace conformance::granularity_test
