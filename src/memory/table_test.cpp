#include "memory/table.hpp"

#include <gtest/gtest.h>

#include <deque>
#include <map>
#include <set>

#include "base/random.hpp"

namespace via::memory::table_test {
namespace {

constexpr std::uint64_t end_of_memory = ~0ULL;

MemoryAttributes with_tag(ProtectionTag tag, bool write = false, bool read = false) {
    return {tag, write, read};
}

bool may(const MemoryTable& table, MemoryHandle handle, std::uint64_t address, std::uint64_t length,
         ProtectionTag tag = no_tag) {
    return table.check(handle, address, length, tag, Access::local);
}

/// As deregistering does when nobody uses the region.
void end(MemoryTable& table, MemoryHandle handle) {
    table.suspend(handle);
    table.remove(handle);
}

TEST(MemoryTable, AnswersExactlyToTheByte) {
    MemoryTable table(16, 16);
    const MemoryHandle handle = table.add(1000, 50, {}).value();
    for (std::uint64_t address = 990; address <= 1060; ++address)
        for (std::uint64_t length = 0; length <= 60; ++length)
            ASSERT_EQ(may(table, handle, address, length),
                      address >= 1000 && address + length <= 1050)
                << address << " + " << length;
}

TEST(MemoryTable, GrantsWholePagesWhereItShall) {
    MemoryTable table(16, 16);
    table.grant_whole_pages();
    const MemoryHandle handle = table.add(0x5123, 0x1000, {}).value();
    EXPECT_TRUE(may(table, handle, 0x5000, 0x2000));
    EXPECT_FALSE(may(table, handle, 0x4FFF, 1));
    EXPECT_FALSE(may(table, handle, 0x7000, 1));
    EXPECT_TRUE(table.is_region(handle, 0x5123)) << "it is known as it was registered";
    EXPECT_FALSE(table.is_region(handle, 0x5000));
    MemoryAttributes attributes;
    EXPECT_EQ(table.query(handle, 0x5123, attributes), Status::success);
    EXPECT_EQ(table.query(handle, 0x5000, attributes), Status::invalid_parameter);
    EXPECT_FALSE(table.check(handle, 0x5123, 1, no_tag, Access::remote_write)) << "no more rights";
    const MemoryHandle aligned = table.add(0x5000, 0x1000, {}).value();
    EXPECT_FALSE(may(table, aligned, 0x5000, 0x1001));
    const MemoryHandle last = table.add(end_of_memory - 10, 5, {}).value();
    EXPECT_TRUE(may(table, last, end_of_memory - 10, 5)) << "no page ends there";
    EXPECT_FALSE(may(table, last, 0, 1));
    const MemoryHandle all = table.add(0, end_of_memory, {}).value();
    EXPECT_TRUE(may(table, all, 12345, end_of_memory - 12345));
}

TEST(MemoryTable, KnowsWhatOnlyWholePagesWouldAllow) {
    MemoryTable table(16, 16);
    const ProtectionTag tag = table.create_tag().value();
    const MemoryHandle handle = table.add(0x5123, 0x10, with_tag(tag)).value();
    const auto misses = [&](std::uint64_t address, std::uint64_t length,
                            Access access = Access::local, ProtectionTag of = no_tag) {
        return table.misses_by_a_page(handle, address, length, of, access);
    };
    EXPECT_TRUE(misses(0x5000, 0x1000, Access::local, tag));
    EXPECT_TRUE(misses(0x5130, 4));
    EXPECT_FALSE(misses(0x5123, 0x10)) << "that is allowed";
    EXPECT_FALSE(misses(0x5130, 4, Access::remote_read)) << "no right to read";
    EXPECT_FALSE(misses(0x5FFF, 2)) << "ends in the next page";
    EXPECT_FALSE(misses(0x5130, 4, Access::local, table.create_tag().value())) << "another tag";
    EXPECT_FALSE(table.misses_by_a_page(handle + 1, 0x5130, 4, no_tag, Access::local));
    end(table, handle);
    EXPECT_FALSE(misses(0x5130, 4));
}

TEST(MemoryTable, WrapAroundIsNoWayIn) {
    MemoryTable table(16, 16);
    const MemoryHandle low = table.add(4096, 4096, {}).value();
    const MemoryHandle high = table.add(end_of_memory - 4095, 4095, {}).value();
    for (const std::uint64_t back : {0ULL, 1ULL, 4095ULL, 4096ULL, 8191ULL, 1ULL << 63}) {
        const std::uint64_t length = end_of_memory - back;
        EXPECT_FALSE(may(table, low, 4096, length)) << length;
        EXPECT_FALSE(may(table, low, 8191, length)) << length;
        EXPECT_FALSE(may(table, high, end_of_memory - 1, length)) << length;
        EXPECT_FALSE(may(table, low, 0 - length, length)) << length;
    }
    EXPECT_TRUE(may(table, high, end_of_memory - 1, 1));
    EXPECT_FALSE(may(table, high, end_of_memory, 1));
    EXPECT_FALSE(may(table, high, end_of_memory - 1, 2));
    EXPECT_FALSE(may(table, low, end_of_memory, 4097));
}

TEST(MemoryTable, RefusesRegionsThatAreNone) {
    MemoryTable table(16, 16);
    EXPECT_EQ(table.add(1000, 0, {}).error(), Status::invalid_parameter);
    EXPECT_EQ(table.add(end_of_memory, 2, {}).error(), Status::invalid_parameter);
    EXPECT_EQ(table.add(1000, end_of_memory, {}).error(), Status::invalid_parameter);
    EXPECT_EQ(table.add(1000, 10, with_tag(77)).error(), Status::invalid_ptag);
    EXPECT_EQ(table.regions(), 0U);
    EXPECT_TRUE(table.add(0, end_of_memory, {}).has_value()) << "all of memory is a region";
}

TEST(MemoryTable, InventedHandlesAreRefused) {
    MemoryTable table(2000, 16);
    EXPECT_FALSE(table.live(0));
    const MemoryHandle handle = table.add(1000, 50, {}).value();
    EXPECT_NE(handle, 0U);
    EXPECT_LT(handle, 1U << 31) << "VIPL 1.11";
    Random random(1);
    for (int n = 0; n < 100'000; ++n) {
        const auto invented = static_cast<MemoryHandle>(random.next());
        if (invented == handle) continue;
        ASSERT_FALSE(table.live(invented)) << invented;
        ASSERT_FALSE(may(table, invented, 1000, 1));
        ASSERT_FALSE(table.is_region(invented, 1000));
    }
    for (std::uint32_t bit = 0; bit < 32; ++bit) ASSERT_FALSE(table.live(handle ^ (1U << bit)));
    EXPECT_FALSE(may(table, 0, 0, 0));
    MemoryAttributes attributes;
    EXPECT_EQ(table.query(handle + 1, 1000, attributes), Status::invalid_parameter);
    EXPECT_EQ(table.change(handle + 1, {}), Status::invalid_parameter);
}

TEST(MemoryTable, AStaleHandleStaysDead) {
    MemoryTable table(1, 16);
    std::set<MemoryHandle> former;
    for (int n = 0; n < 100; ++n) {
        const MemoryHandle handle = table.add(1000, 50, {}).value();
        ASSERT_TRUE(former.insert(handle).second) << "a handle came back";
        ASSERT_TRUE(may(table, handle, 1000, 50));
        for (const MemoryHandle old : former)
            if (old != handle) {
                ASSERT_FALSE(table.live(old));
                ASSERT_FALSE(may(table, old, 1000, 1));
                ASSERT_FALSE(table.is_region(old, 1000));
            }
        end(table, handle);
        ASSERT_FALSE(table.live(handle));
        ASSERT_FALSE(may(table, handle, 1000, 1));
        ASSERT_FALSE(table.is_region(handle, 1000));
    }
    EXPECT_EQ(table.regions(), 0U);
}

TEST(MemoryTable, SlotsAreRetiredBeforeAGenerationRepeats) {
    constexpr std::uint32_t slots = 3;
    MemoryTable table(slots, 16);
    std::set<MemoryHandle> handles;
    std::uint64_t registrations = 0;
    for (;; ++registrations) {
        const auto handle = table.add(1000, 50, {});
        if (!handle) {
            EXPECT_EQ(handle.error(), Status::error_resource);
            break;
        }
        ASSERT_TRUE(handles.insert(*handle).second);
        ASSERT_LT(*handle, 1U << 31);
        end(table, *handle);
        ASSERT_LE(registrations, slots * handle_generation_max);
    }
    EXPECT_EQ(registrations, slots * handle_generation_max) << "every generation is used";
}

TEST(MemoryTable, SlotsAreReusedInOrderOfRelease) {
    MemoryTable table(8, 16);
    std::vector<MemoryHandle> handles;
    for (int n = 0; n < 8; ++n) handles.push_back(table.add(1000, 50, {}).value());
    EXPECT_EQ(table.add(1000, 50, {}).error(), Status::error_resource);
    const std::size_t order[] = {5, 2, 7, 0, 3};
    for (const std::size_t n : order) end(table, handles[n]);
    for (const std::size_t n : order) {
        const MemoryHandle handle = table.add(1000, 50, {}).value();
        EXPECT_EQ(handle_index(handle), handle_index(handles[n]));
        EXPECT_NE(handle, handles[n]);
    }
    EXPECT_EQ(table.add(1000, 50, {}).error(), Status::error_resource);
}

TEST(MemoryTable, OverlappingRegionsAreEachTheirOwn) {
    MemoryTable table(16, 16);
    const MemoryHandle wide = table.add(1000, 100, with_tag(no_tag, true)).value();
    const MemoryHandle narrow = table.add(1010, 10, with_tag(no_tag, false, true)).value();
    EXPECT_NE(wide, narrow);
    EXPECT_TRUE(table.check(wide, 1010, 10, no_tag, Access::remote_write));
    EXPECT_FALSE(table.check(wide, 1010, 10, no_tag, Access::remote_read));
    EXPECT_FALSE(table.check(narrow, 1010, 10, no_tag, Access::remote_write));
    EXPECT_TRUE(table.check(narrow, 1010, 10, no_tag, Access::remote_read));
    end(table, wide);
    EXPECT_TRUE(may(table, narrow, 1010, 10));
    EXPECT_FALSE(may(table, wide, 1010, 10));
}

TEST(MemoryTable, TagsMustMatchUnlessTheViHasNone) {
    MemoryTable table(16, 16);
    const ProtectionTag one = table.create_tag().value();
    const ProtectionTag two = table.create_tag().value();
    EXPECT_NE(one, two);
    const MemoryHandle tagged = table.add(1000, 50, with_tag(one)).value();
    const MemoryHandle untagged = table.add(2000, 50, {}).value();
    EXPECT_TRUE(may(table, tagged, 1000, 50, one));
    EXPECT_FALSE(may(table, tagged, 1000, 50, two));
    EXPECT_FALSE(may(table, tagged, 1000, 0, two)) << "length 0 asks for the tag, too";
    EXPECT_TRUE(may(table, tagged, 1000, 50, no_tag)) << "VIPL 4.7";
    EXPECT_TRUE(may(table, untagged, 2000, 50, one)) << "it serves every VI";
    const MemoryHandle open = table.add(3000, 50, with_tag(no_tag, true, true)).value();
    EXPECT_TRUE(may(table, open, 3000, 50, one));
    EXPECT_FALSE(table.check(open, 3000, 50, one, Access::remote_write)) << "not its peer";
    EXPECT_FALSE(table.check(open, 3000, 50, one, Access::remote_read));
    EXPECT_TRUE(may(table, untagged, 2000, 50, no_tag));
}

TEST(MemoryTable, ATagInUseCannotGo) {
    MemoryTable table(16, 2);
    const ProtectionTag tag = table.create_tag().value();
    const MemoryHandle handle = table.add(1000, 50, with_tag(tag)).value();
    EXPECT_EQ(table.destroy_tag(tag, 0), Status::error_resource);
    EXPECT_EQ(table.change(handle, {}), Status::success);
    EXPECT_EQ(table.destroy_tag(tag, 1), Status::error_resource) << "a VI carries it";
    EXPECT_EQ(table.change(handle, with_tag(tag)), Status::success);
    EXPECT_EQ(table.destroy_tag(tag, 0), Status::error_resource);
    end(table, handle);
    EXPECT_EQ(table.destroy_tag(tag, 0), Status::success);
    EXPECT_EQ(table.destroy_tag(tag, 0), Status::invalid_parameter) << "it is gone";
    EXPECT_EQ(table.destroy_tag(no_tag, 0), Status::invalid_parameter);
    EXPECT_EQ(table.add(1000, 50, with_tag(tag)).error(), Status::invalid_ptag);
}

TEST(MemoryTable, TagsOfAnIndexRunOutBeforeTheirHandlesRepeat) {
    MemoryTable table(16, 2, 3);
    std::set<ProtectionTag> all;
    for (auto tag = table.create_tag(); tag && all.size() < 100; tag = table.create_tag()) {
        EXPECT_TRUE(all.insert(*tag).second);
        EXPECT_EQ(table.destroy_tag(*tag, 0), Status::success);
    }
    EXPECT_EQ(all.size(), 6U) << "three of each of two";
    EXPECT_EQ(table.create_tag().error(), Status::error_resource);
}

TEST(MemoryTable, TagsRunOutAndNeverComeBack) {
    MemoryTable table(16, 2);
    std::set<ProtectionTag> former;
    const ProtectionTag kept = table.create_tag().value();
    for (int n = 0; n < 5000; ++n) {
        const ProtectionTag tag = table.create_tag().value();
        ASSERT_TRUE(former.insert(tag).second);
        ASSERT_EQ(table.create_tag().error(), Status::error_resource);
        ASSERT_TRUE(table.is_tag(tag));
        ASSERT_EQ(table.destroy_tag(tag, 0), Status::success);
        ASSERT_FALSE(table.is_tag(tag));
    }
    EXPECT_TRUE(table.is_tag(kept));
}

TEST(MemoryTable, RightsAreForRemoteAccessOnly) {
    MemoryTable table(16, 16);
    for (const bool write : {false, true})
        for (const bool read : {false, true}) {
            const MemoryHandle handle = table.add(1000, 50, with_tag(no_tag, write, read)).value();
            EXPECT_TRUE(table.check(handle, 1000, 50, no_tag, Access::local));
            EXPECT_EQ(table.check(handle, 1000, 50, no_tag, Access::remote_write), write);
            EXPECT_EQ(table.check(handle, 1000, 50, no_tag, Access::remote_read), read);
            MemoryAttributes attributes;
            ASSERT_EQ(table.query(handle, 1000, attributes), Status::success);
            EXPECT_EQ(attributes.rdma_write, write);
            EXPECT_EQ(attributes.rdma_read, read);
            end(table, handle);
        }
}

TEST(MemoryTable, ALookIsOfOneMoment) {
    MemoryTable table(16, 16);
    const ProtectionTag tag = table.create_tag().value();
    const MemoryHandle handle = table.add(4096, 64, with_tag(tag, true)).value();
    const Region region = table.look(handle);
    EXPECT_EQ(region.handle, handle);
    EXPECT_TRUE(region.allows(4096, 64, tag, Access::remote_write));
    EXPECT_FALSE(region.allows(4096, 64, tag, Access::remote_read));
    EXPECT_FALSE(region.allows(4097, 64, tag, Access::local));
    table.suspend(handle);
    EXPECT_TRUE(region.allows(4096, 64, tag, Access::local)) << "as it was";
    const Region none = table.look(handle);
    EXPECT_EQ(none.handle, 0U);
    for (const std::uint64_t address :
         {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{4096}, end_of_memory})
        EXPECT_FALSE(none.allows(address, 0, no_tag, Access::local)) << address;
}

TEST(MemoryTable, ChangeAndQueryAgree) {
    MemoryTable table(16, 16);
    const ProtectionTag tag = table.create_tag().value();
    const MemoryHandle handle = table.add(1000, 50, {}).value();
    EXPECT_EQ(table.change(handle, with_tag(tag, true, true)), Status::success);
    MemoryAttributes attributes;
    EXPECT_EQ(table.query(handle, 1001, attributes), Status::invalid_parameter)
        << "only the address it was registered with";
    EXPECT_EQ(table.query(handle, 1000, attributes), Status::success);
    EXPECT_EQ(attributes.tag, tag);
    EXPECT_TRUE(attributes.rdma_write && attributes.rdma_read);
    EXPECT_EQ(table.change(handle, with_tag(tag + 1)), Status::invalid_ptag);
    EXPECT_TRUE(may(table, handle, 1000, 50, tag)) << "a refused change changes nothing";
    end(table, handle);
    EXPECT_EQ(table.query(handle, 1000, attributes), Status::invalid_parameter);
    EXPECT_EQ(table.change(handle, {}), Status::invalid_parameter);
}

TEST(MemoryTable, AMillionRegionsFit) {
    constexpr std::uint32_t million = 1U << 20;
    MemoryTable table(million, 16);
    std::vector<MemoryHandle> handles(million);
    const auto address_of = [](std::uint32_t n) { return 4096 + std::uint64_t{n} * 64; };
    for (std::uint32_t n = 0; n < million; ++n)
        handles[n] = table.add(address_of(n), 64, {}).value();
    EXPECT_EQ(table.regions(), million);
    EXPECT_EQ(table.add(1000, 50, {}).error(), Status::error_resource);
    for (std::uint32_t n = 0; n < million; ++n) {
        ASSERT_TRUE(table.is_region(handles[n], address_of(n)));
        ASSERT_TRUE(may(table, handles[n], address_of(n), 64));
        ASSERT_FALSE(may(table, handles[n], address_of(n), 65));
        ASSERT_FALSE(may(table, handles[n], address_of(n) - 1, 1));
    }
    for (std::uint32_t n = 0; n < million; n += 2) end(table, handles[n]);
    EXPECT_EQ(table.regions(), million / 2);
    for (std::uint32_t n = 0; n < million; ++n) ASSERT_EQ(table.live(handles[n]), n % 2 != 0);
}

TEST(MemoryTable, MatchesAModelUnderRandomUse) {
    struct Region {
        std::uint64_t begin, length;
        MemoryAttributes attributes;
    };
    constexpr std::uint32_t slots = 30;
    constexpr std::uint32_t tags_max = 5;
    MemoryTable table(slots, tags_max);
    std::map<MemoryHandle, Region> model;
    std::vector<MemoryHandle> handles{0};  // all there ever were
    std::set<ProtectionTag> tags;
    std::vector<ProtectionTag> all_tags{no_tag};
    Random random(1);
    const auto any_attributes = [&] {
        return MemoryAttributes{all_tags[random.below(all_tags.size())], random.chance(50),
                                random.chance(50), random.chance(70)};
    };
    const auto agree = [](bool write, bool writable) { return writable || !write; };
    const auto is_good = [&](ProtectionTag tag) { return tag == no_tag || tags.contains(tag); };
    for (int step = 0; step < 60'000; ++step) {
        const MemoryHandle handle =
            handles[handles.size() - 1 - random.below(std::min<std::size_t>(handles.size(), 60))];
        const auto region = model.find(handle);
        switch (random.below(6)) {
            case 0: {
                const Region fresh{random.between(1000, 2000), random.between(1, 100),
                                   any_attributes()};
                const auto added = table.add(fresh.begin, fresh.length, fresh.attributes);
                if (!agree(fresh.attributes.rdma_write, fresh.attributes.writable)) {
                    ASSERT_EQ(added.error(), Status::invalid_parameter);
                } else if (!is_good(fresh.attributes.tag)) {
                    ASSERT_EQ(added.error(), Status::invalid_ptag);
                } else if (model.size() == slots) {
                    ASSERT_EQ(added.error(), Status::error_resource);
                } else {
                    ASSERT_TRUE(added.has_value());
                    handles.push_back(*added);
                    ASSERT_TRUE(model.emplace(*added, fresh).second);
                }
                break;
            }
            case 1:
                if (region != model.end() && random.chance(40)) {
                    end(table, handle);
                    model.erase(region);
                }
                break;
            case 2: {
                MemoryAttributes attributes = any_attributes();
                Status expected = region == model.end()      ? Status::invalid_parameter
                                  : !is_good(attributes.tag) ? Status::invalid_ptag
                                                             : Status::success;
                if (expected == Status::success) {
                    attributes.writable = region->second.attributes.writable;  // stays as it was
                    if (!agree(attributes.rdma_write, attributes.writable))
                        expected = Status::invalid_parameter;
                }
                ASSERT_EQ(table.change(handle, attributes), expected);
                if (expected == Status::success) region->second.attributes = attributes;
                break;
            }
            case 3: {
                const auto created = table.create_tag();
                ASSERT_EQ(created.has_value(), tags.size() < tags_max);
                if (!created) break;
                tags.insert(*created);
                all_tags.push_back(*created);
                break;
            }
            case 4: {
                const ProtectionTag tag = all_tags[random.below(all_tags.size())];
                bool used = false;
                for (const auto& [other, one] : model) used = used || one.attributes.tag == tag;
                const Status expected = !tags.contains(tag) ? Status::invalid_parameter
                                        : used              ? Status::error_resource
                                                            : Status::success;
                ASSERT_EQ(table.destroy_tag(tag, 0), expected);
                if (expected == Status::success) tags.erase(tag);
                break;
            }
            default:
                break;
        }
        ASSERT_EQ(table.regions(), model.size());
        const std::uint64_t address = random.between(990, 2110);
        const std::uint64_t length = random.below(40);
        const ProtectionTag tag = all_tags[random.below(all_tags.size())];
        const auto access = static_cast<Access>(random.below(4));
        const auto now = model.find(handle);
        bool expected = now != model.end();
        if (expected) {
            const Region& one = now->second;
            expected = address >= one.begin && address + length <= one.begin + one.length &&
                       (tag == no_tag || tag == one.attributes.tag ||
                        (one.attributes.tag == no_tag &&
                         (access == Access::local || access == Access::local_write))) &&
                       (access == Access::local ||
                        (access == Access::local_write    ? one.attributes.writable
                         : access == Access::remote_write ? one.attributes.rdma_write
                                                          : one.attributes.rdma_read));
        }
        ASSERT_EQ(table.check(handle, address, length, tag, access), expected) << step;
    }
}

TEST(MemoryTable, WhatMayNotBeWrittenIsReadOnlyForEverybody) {
    MemoryTable table(2, 16);
    EXPECT_EQ(table.add(1000, 50, {no_tag, true, false, false}).error(), Status::invalid_parameter);
    const MemoryHandle handle = table.add(1000, 50, {no_tag, false, true, false}).value();
    EXPECT_TRUE(may(table, handle, 1000, 50));
    EXPECT_TRUE(table.check(handle, 1000, 50, no_tag, Access::remote_read));
    EXPECT_FALSE(table.check(handle, 1000, 50, no_tag, Access::local_write));
    table.suspend(handle);
    EXPECT_EQ(table.change(handle, with_tag(no_tag, true)), Status::invalid_parameter);
    EXPECT_EQ(table.change(handle, {}), Status::success);
    table.resume(handle);
    EXPECT_FALSE(table.check(handle, 1000, 50, no_tag, Access::local_write)) << "as registered";
}

TEST(MemoryTable, ASuspendedRegionRefusesUntilResumed) {
    MemoryTable table(2, 16);
    const ProtectionTag tag = table.create_tag().value();
    const MemoryHandle handle = table.add(1000, 50, with_tag(tag, true, true)).value();
    table.suspend(handle);
    EXPECT_FALSE(table.live(handle));
    EXPECT_FALSE(may(table, handle, 1000, 1));
    EXPECT_FALSE(table.check(handle, 1000, 1, tag, Access::remote_write));
    EXPECT_EQ(table.destroy_tag(tag, 0), Status::error_resource) << "it still carries its tag";
    const MemoryHandle other = table.add(1000, 50, {}).value();
    EXPECT_NE(handle_index(other), handle_index(handle)) << "its slot is not free";
    table.resume(handle);
    EXPECT_TRUE(table.check(handle, 1000, 50, tag, Access::remote_write));
    end(table, handle);
    EXPECT_EQ(table.destroy_tag(tag, 0), Status::success);
}

TEST(MemoryTableDeathTest, WrongUseStopsTheProgram) {
    MemoryTable table(16, 16);
    const MemoryHandle handle = table.add(1000, 50, {}).value();
    EXPECT_DEATH(table.remove(handle), "broken invariant") << "not suspended";
    end(table, handle);
    EXPECT_DEATH(table.suspend(handle), "broken invariant") << "gone";
    EXPECT_DEATH(table.remove(~0U), "broken invariant") << "never there";
}

}  // namespace
}  // namespace via::memory::table_test
