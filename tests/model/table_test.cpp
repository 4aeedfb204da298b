// The memory table: whoever translates takes no lock while regions come and go, and gets a yes only
// for what one region allowed at one moment.

#include <gtest/gtest.h>

#include "checker.hpp"
#include "memory/table.hpp"

namespace via::table_test {
namespace {

using memory::Access;
using memory::MemoryHandle;
using model::explore_all;
using model::Program;

/// One slot, in which a region follows another one somewhere else, of other tag and rights.
struct Successors {
    memory::MemoryTable table{1, 2};
    memory::ProtectionTag first_tag = *table.create_tag();
    memory::ProtectionTag second_tag = *table.create_tag();
    MemoryHandle first = *table.add(1000, 50, {first_tag, true, false});
    static constexpr MemoryHandle second = memory::make_handle(0, 2);

    void replace() {
        table.suspend(first);
        table.remove(first);
        const auto handle = table.add(1040, 50, {second_tag, false, true});
        VIA_MODEL_CHECK(handle && *handle == second);
    }
    bool may(MemoryHandle handle, std::uint64_t address, std::uint64_t length,
             memory::ProtectionTag tag, Access access) const {
        return table.check(handle, address, length, tag, access);
    }
};

TEST(MemoryTable, an_old_handle_never_reaches_into_the_next_region) {
    const Program<Successors> program{
        "replace against check",
        {[](Successors& s) { s.replace(); },
         [](Successors& s) {
             VIA_MODEL_CHECK(!s.may(s.first, 1040, 50, s.first_tag, Access::local));
         },
         [](Successors& s) {
             VIA_MODEL_CHECK(!s.may(s.second, 1000, 50, s.second_tag, Access::local));
         }},
        [](Successors& s) {
            VIA_MODEL_CHECK(!s.may(s.first, 1000, 1, memory::no_tag, Access::local));
            VIA_MODEL_CHECK(s.may(s.second, 1040, 50, s.second_tag, Access::remote_read));
        }};
    const auto result = explore_all(program);
    EXPECT_TRUE(result.passed()) << result.report();
}

TEST(MemoryTable, tag_and_rights_are_those_of_one_region) {
    const Program<Successors> program{
        "replace against check of rights",
        {[](Successors& s) { s.replace(); },
         [](Successors& s) {
             VIA_MODEL_CHECK(!s.may(s.first, 1045, 1, s.second_tag, Access::local));
             VIA_MODEL_CHECK(!s.may(s.first, 1045, 1, s.first_tag, Access::remote_read));
         },
         [](Successors& s) {
             VIA_MODEL_CHECK(!s.may(s.second, 1045, 1, s.first_tag, Access::local));
             VIA_MODEL_CHECK(!s.may(s.second, 1045, 1, s.second_tag, Access::remote_write));
         }}};
    const auto result = explore_all(program);
    EXPECT_TRUE(result.passed()) << result.report();
}

// What the second look at the handle is for.
struct OneLook : Successors {
    bool may_by_one_look(std::uint64_t address) const {
        return handle.load(memory_order_acquire) == first &&
               address < end.load(memory_order_relaxed);
    }
    void replace_by_hand() {
        handle.store(0, memory_order_seq_cst);
        atomic_fence(memory_order_release);
        end.store(1090, memory_order_relaxed);
        handle.store(second, memory_order_release);
    }
    Atomic<std::uint32_t> handle{first};
    Atomic<std::uint64_t> end{1050};
};

TEST(MemoryTable, one_look_at_the_handle_would_not_do) {
    const Program<OneLook> program{"replace against one look",
                                   {[](OneLook& s) { s.replace_by_hand(); },
                                    [](OneLook& s) { VIA_MODEL_CHECK(!s.may_by_one_look(1060)); }}};
    EXPECT_FALSE(explore_all(program).passed());
}

}  // namespace
}  // namespace via::table_test
