// Segments of programs between two devices: offered, mapped, withdrawn; and lies about them.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstring>

#include "device/shm/test_support.hpp"

namespace via::device::shm::test::segment_test {
namespace {

constexpr std::uint64_t bytes = 10000;
constexpr std::uint64_t the_cookie = 0x1234567890;

bool carries(const PathEvent* event) {
    return event != nullptr && event->attachment.base != nullptr;
}

struct ShmSegment : testing::Test {
    ShmSegment() : paths(connect(guest, owner)) { guest.events.clear(); }

    Status offer(bool writable, GrantId& grant) {
        return owner->sharing()->offer(paths.to, segment.memory(), writable, the_cookie, grant);
    }
    const PathEvent* attached() {
        guest.events.clear();
        guest.turn();
        return guest.find(PathEventKind::attached);
    }

    Directory directory;
    Node owner{directory}, guest{directory};
    Paths paths;  // from the guest
    TestSegment segment{bytes};
};

TEST_F(ShmSegment, IsTheSameMemoryOnBothSides) {
    GrantId grant = no_grant;
    ASSERT_EQ(offer(true, grant), Status::success);
    EXPECT_NE(grant, no_grant);
    const PathEvent* event = attached();
    ASSERT_TRUE(carries(event));
    EXPECT_EQ(event->path, paths.from);
    EXPECT_EQ(event->cookie, the_cookie);
    const Attachment& attachment = event->attachment;
    EXPECT_EQ(attachment.length, bytes);
    EXPECT_TRUE(attachment.writable);
    EXPECT_TRUE(attachment.holds());
    attachment.base[bytes - 1] = std::byte{9};
    EXPECT_EQ(segment.memory().base[bytes - 1], std::byte{9});
}

TEST_F(ShmSegment, WhoMayOnlyReadGetsADescriptorThatOnlyReads) {
    GrantId grant = no_grant;
    ASSERT_EQ(offer(false, grant), Status::success);
    const PathEvent* event = attached();
    ASSERT_TRUE(carries(event));
    EXPECT_FALSE(event->attachment.writable);
    EXPECT_NE(::mprotect(event->attachment.base, 4096, PROT_READ | PROT_WRITE), 0)
        << "nothing makes it writable afterwards";
}

TEST_F(ShmSegment, RevokedItHoldsNoMoreAndTheWordIsNeverTheSame) {
    GrantId first = no_grant;
    ASSERT_EQ(offer(true, first), Status::success);
    const Attachment before = attached()->attachment;
    owner->sharing()->revoke(paths.to, first);
    EXPECT_FALSE(before.holds());
    GrantId second = no_grant;
    ASSERT_EQ(offer(true, second), Status::success);
    EXPECT_EQ(first, second) << "the word is used again";
    EXPECT_FALSE(before.holds());
    EXPECT_TRUE(attached()->attachment.holds());
}

TEST_F(ShmSegment, AGrantThatIsThereServesAgain) {
    GrantId grant = no_grant;
    ASSERT_EQ(offer(true, grant), Status::success);
    const GrantId first = grant;
    EXPECT_TRUE(carries(attached()));
    ASSERT_EQ(offer(true, grant), Status::success);
    EXPECT_EQ(first, grant);
    EXPECT_TRUE(carries(attached()));
}

TEST_F(ShmSegment, GrantsOfAPeerAreLimited) {
    GrantId last = no_grant;
    for (std::uint32_t n = 0; n < grants_max; ++n) {
        GrantId grant = no_grant;
        ASSERT_EQ(offer(true, grant), Status::success) << n;
        last = grant;
        guest.events.clear();
        guest.turn();
    }
    GrantId grant = no_grant;
    EXPECT_EQ(offer(true, grant), Status::error_resource);
    EXPECT_EQ(grant, no_grant);
    EXPECT_TRUE(owner.reported("more segments"));
    owner->sharing()->revoke(paths.to, last);
    EXPECT_EQ(offer(true, grant), Status::success);
}

TEST_F(ShmSegment, WithoutRoomInTheSocketItIsRefusedAndTheGrantFree) {
    GrantId grant = no_grant;
    for (int n = 0; n < 100000; ++n) {
        GrantId next = no_grant;
        if (offer(true, next) != Status::success) break;
        owner->sharing()->revoke(paths.to, next);
        grant = next;
    }
    GrantId refused = no_grant;
    ASSERT_EQ(offer(true, refused), Status::error_resource) << "nobody reads";
    EXPECT_TRUE(owner.reported("cannot offer"));
    ASSERT_TRUE(turn_until({&guest}, [&] {
        GrantId next = no_grant;
        return offer(true, next) == Status::success && next == grant;
    }));
}

TEST_F(ShmSegment, TheMappingOutlivesTheOwner) {
    GrantId grant = no_grant;
    segment.memory().base[5] = std::byte{77};
    ASSERT_EQ(offer(false, grant), Status::success);
    const Attachment attachment = attached()->attachment;
    guest.events.clear();
    owner.device.reset();
    ASSERT_TRUE(turn_until({&guest}, [&] {
        Frame frames[1];
        guest->receive(frames);
        return guest.has(PathEventKind::down);
    }));
    EXPECT_EQ(attachment.base[5], std::byte{77});
}

// Lies --------------------------------------------------------------------------------------------

struct ShmSegmentLies : testing::Test {
    void SetUp() override {
        ASSERT_EQ(node->listen(discriminator("x")), Status::success);
        ASSERT_TRUE(liar.enter(node->name()));
        node.turn();
        ASSERT_TRUE(node.has(PathEventKind::up));
        node.events.clear();
    }
    SegmentOffer good() {
        SegmentOffer offer = make_segment_offer(bytes, the_cookie, true);
        offer.grant = 3;
        offer.granted = 5;
        return offer;
    }
    void expect_cut(const SegmentOffer& offer, std::vector<int> descriptors, const char* why) {
        liar.send_bytes(&offer, sizeof offer, std::move(descriptors));
        node.turn();
        node.turn();
        EXPECT_TRUE(node.has(PathEventKind::down)) << why;
        EXPECT_FALSE(node.has(PathEventKind::attached)) << why;
        EXPECT_TRUE(node.reported(why)) << (node.reports.empty() ? "" : node.reports.back());
    }

    Directory directory;
    Node node{directory};
    Liar liar{directory};
    TestSegment segment{bytes};
};

TEST_F(ShmSegmentLies, AnHonestOfferIsTaken) {
    const SegmentOffer offer = good();
    liar.control().grants[3].store(5);
    liar.send_bytes(&offer, sizeof offer, {segment.memory().descriptor});
    node.turn();
    ASSERT_TRUE(carries(node.find(PathEventKind::attached)));
    EXPECT_TRUE(node.find(PathEventKind::attached)->attachment.holds());
    liar.control().grants[3].store(6);
    EXPECT_FALSE(node.find(PathEventKind::attached)->attachment.holds());
}

TEST_F(ShmSegmentLies, LiesInEachField) {
    const struct {
        const char* field;
        void (*tell)(SegmentOffer&);
    } lies[] = {
        {"magic", [](SegmentOffer& o) { o.head.magic ^= 1; }},
        {"version", [](SegmentOffer& o) { ++o.head.version; }},
        {"kind", [](SegmentOffer& o) { o.head.kind = 9; }},
        {"length", [](SegmentOffer& o) { o.length = 0; }},
        {"grant", [](SegmentOffer& o) { o.grant = grants_max; }},
        {"granted", [](SegmentOffer& o) { o.granted = 0; }},
        {"writable", [](SegmentOffer& o) { o.writable = 2; }},
        {"zero", [](SegmentOffer& o) { o.zero = 1; }},
    };
    for (const auto& lie : lies) {
        Liar other(directory);
        ASSERT_TRUE(other.enter(node->name()));
        node.turn();
        node.events.clear();
        SegmentOffer offer = good();
        lie.tell(offer);
        other.send_bytes(&offer, sizeof offer, {segment.memory().descriptor});
        node.turn();
        node.turn();
        EXPECT_TRUE(node.has(PathEventKind::down)) << lie.field;
        EXPECT_FALSE(node.has(PathEventKind::attached)) << lie.field;
    }
}

TEST_F(ShmSegmentLies, WithoutMemory) { expect_cut(good(), {}, "without its memory"); }
TEST_F(ShmSegmentLies, WithTwoMemories) {
    const int descriptor = segment.memory().descriptor;
    expect_cut(good(), {descriptor, descriptor}, "without its memory");
}
TEST_F(ShmSegmentLies, OfAnotherSize) {
    SegmentOffer offer = good();
    offer.length += 1;
    expect_cut(offer, {segment.memory().descriptor}, "another size");
}
TEST_F(ShmSegmentLies, ThatCanShrink) {
    const TestSegment loose(bytes, 0);
    expect_cut(good(), {loose.memory().descriptor}, "not sealed");
}
TEST_F(ShmSegmentLies, ThatIsNoMemory) {
    int ends[2];
    ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    expect_cut(good(), {ends[0]}, "not sealed");
    ::close(ends[0]);
    ::close(ends[1]);
}

TEST_F(ShmSegmentLies, AFloodOfOffersLeavesNothingBehind) {
    const std::size_t descriptors = count_descriptors();
    for (int round = 0; round < 50; ++round) {
        const SegmentOffer offer = good();
        for (int n = 0; n < 10; ++n) {
            ASSERT_TRUE(liar.send_bytes(&offer, sizeof offer, {segment.memory().descriptor}));
        }
        node.turn();
        EXPECT_EQ(count_descriptors(), descriptors);
        node.events.clear();  // as the engine drops what nobody asked for
    }
    EXPECT_EQ(count_segment_mappings(), 1U) << "our own";
}

struct Mapper final : System {
    void* mmap(std::size_t length, int protection, int flags, int fd) override {
        ++mapped;
        return System::mmap(length, protection, flags, fd);
    }
    unsigned mapped = 0;
};

TEST(ShmSegmentOffers, UnaskedAreNotMappedAndThePathLives) {
    Directory directory;
    Mapper system;
    Node node{directory, [&](ShmConfig& config) { config.system = &system; }};
    node.expects_segments = false;
    Liar liar{directory};
    ASSERT_TRUE(liar.enter(node->name()));
    node.turn();
    const TestSegment segment{bytes};
    const std::size_t descriptors = count_descriptors();
    system.mapped = 0;
    SegmentOffer offer = make_segment_offer(bytes, the_cookie, true);
    offer.granted = 5;
    for (int n = 0; n < 10; ++n)
        ASSERT_TRUE(liar.send_bytes(&offer, sizeof offer, {segment.memory().descriptor}));
    node.turn();
    EXPECT_EQ(system.mapped, 0U);
    EXPECT_FALSE(node.has(PathEventKind::attached));
    EXPECT_FALSE(node.has(PathEventKind::down)) << "an answer may be late";
    EXPECT_EQ(count_descriptors(), descriptors);
    node.expects_segments = true;
    for (int n = 0; n < 10; ++n)
        ASSERT_TRUE(liar.send_bytes(&offer, sizeof offer, {segment.memory().descriptor}));
    node.turn();
    EXPECT_EQ(system.mapped, 1U) << "one answer to one question";
    EXPECT_EQ(node.count(PathEventKind::attached), 1U);
}

}  // namespace
}  // namespace via::device::shm::test::segment_test
