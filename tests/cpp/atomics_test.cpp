// Atomic operations in C++.
#include "scene.hpp"

namespace via::test::atomics_test {
namespace {

class Atomics : public Scene {};
INSTANTIATE_TEST_SUITE_P(Media, Atomics, testing::Values("loopback", "shm"));

/// As a program of the target reads it while peers change it.
std::uint64_t word_at(std::span<const std::byte> bytes) {
    return __atomic_load_n(reinterpret_cast<const std::uint64_t*>(bytes.data()), __ATOMIC_ACQUIRE);
}

TEST_P(Atomics, ChangeThePeersWord) {
    EXPECT_EQ(VIP_ULONG{VIA_ATOMIC_SCOPE_MEMORY}, must(far().atomics()).Scope);
    auto shared = must(MemoryRegion::allocate(far(), 4096));
    must(shared.allow_atomics());
    const auto region = must(MemoryRegion::allocate(near(), 4096));
    auto asking = must(Vi::create(near()));
    auto asked = must(Vi::create(far(), {.rdma_write = true, .rdma_read = true}));
    connect(asking, asked);
    const auto was = region.segment(64, 8);
    auto descriptor = region.descriptor(0);
    must(asking.post_fetch_add(descriptor.atomic(shared.remote().from(8), was), 41));
    EXPECT_EQ(Operation::fetch_add, must(asking.send_wait(patience)).operation());
    EXPECT_EQ(0U, word_at(region.bytes().subspan(64)));
    must(asking.post_compare_swap(descriptor.atomic(shared.remote().from(8), was).fence(), 41, 7));
    EXPECT_EQ(Operation::compare_swap, must(asking.send_wait(patience)).operation());
    EXPECT_EQ(41U, word_at(region.bytes().subspan(64)));
    EXPECT_EQ(7U, word_at(shared.bytes().subspan(8)));
}

TEST_P(Atomics, WithoutTheRightThereAreNone) {
    auto shared = must(SharedSegment::create(far(), 4096, {.rdma_write = true, .rdma_read = true}));
    must(shared.allow_atomics());
    must(shared.allow_atomics(false));
    const auto region = must(MemoryRegion::allocate(near(), 4096));
    auto asking = must(Vi::create(near()));
    auto asked = must(Vi::create(far(), {.rdma_write = true, .rdma_read = true}));
    connect(asking, asked);
    auto descriptor = region.descriptor(0);
    must(asking.post_fetch_add(descriptor.atomic(shared.remote(), region.segment(64, 8)), 1));
    const auto refused = asking.send_wait(patience);
    ASSERT_FALSE(refused);
    EXPECT_NE(0U, refused.error().descriptor()->CS.Status & VIP_STATUS_RDMA_PROT_ERROR);
    EXPECT_EQ(0U, word_at(shared.bytes()));
}

}  // namespace
}  // namespace via::test::atomics_test
