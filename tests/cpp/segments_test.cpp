// Shared segments in C++.
#include "scene.hpp"

namespace via::test::segments_test {
namespace {

class Segments : public Scene {};
INSTANTIATE_TEST_SUITE_P(Media, Segments, testing::Values("loopback", "shm"));

TEST_P(Segments, StoresAndRdmaReachThePeersMemory) {
    const auto segment =
        must(SharedSegment::create(far(), 5000, {.rdma_write = true, .rdma_read = true}));
    const auto region = must(MemoryRegion::allocate(near(), 4096));
    auto asking = must(Vi::create(near()));
    auto asked = must(Vi::create(far(), {.rdma_write = true, .rdma_read = true}));
    connect(asking, asked);
    auto imported =
        must(ImportedSegment::attach(near(), asking, segment.remote(), Attached::writable));
    ASSERT_EQ(5000U, imported.bytes().size());
    write_text(imported.bytes(), "stored");
    EXPECT_EQ("stored", text_of_bytes(segment.bytes().first(6)));
    write_text(region.bytes().subspan(64), "written");
    must(asking.post_send(
        region.descriptor(0).rdma_write(segment.remote().from(4000), region.segment(64, 7))));
    must(asking.send_wait(patience));
    EXPECT_EQ("written", text_of_bytes(segment.bytes().subspan(4000, 7)));
    // Moved, it is the same; gone, RDMA goes on by frames.
    ImportedSegment moved = std::move(imported);
    EXPECT_EQ("stored", text_of_bytes(moved.bytes().first(6)));
}

TEST_P(Segments, WithoutARightThereIsNone) {
    auto segment = must(SharedSegment::create(far(), 5000, {.rdma_read = true}));
    auto asking = must(Vi::create(near()));
    auto asked = must(Vi::create(far(), {.rdma_write = true, .rdma_read = true}));
    connect(asking, asked);
    const auto refused =
        ImportedSegment::attach(near(), asking, segment.remote(), Attached::writable);
    ASSERT_FALSE(refused);
    EXPECT_EQ(VIP_REJECT, refused.error().code());
    EXPECT_NE(std::string::npos, refused.error().message().find("ViaImportSegment"));
    must(segment.revoke());
    EXPECT_FALSE(ImportedSegment::attach(near(), asking, segment.remote(), Attached::read_only));
}

}  // namespace
}  // namespace via::test::segments_test
