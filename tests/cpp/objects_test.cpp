// NICs, tags, memory, pools, queues; and what happens when they are destroyed in a wrong order.
#include "scene.hpp"

#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace via;
using namespace via::test;

namespace objects_test {
namespace {

class Objects : public Scene {};
INSTANTIATE_TEST_SUITE_P(Media, Objects, media());

TEST(Nic, AnUnknownNameIsRefusedInWords) {
    const auto nic = Nic::open("nonsense");
    ASSERT_FALSE(nic);
    EXPECT_EQ(VIP_INVALID_PARAMETER, nic.error().code());
    EXPECT_NE(std::string::npos, nic.error().message().find("nonsense")) << nic.error().message();
}

TEST_P(Objects, NicTellsWhatItIs) {
    EXPECT_EQ(VIP_TRUE, must(near().attributes()).ThreadSafe);
    EXPECT_EQ(6U, must(near().address("x")).host().size());
    EXPECT_EQ("x", must(near().address("x")).discriminator());
    EXPECT_TRUE(near().counter(ViaCounterName(0)));
    EXPECT_EQ(VIP_INVALID_PARAMETER, near().counter("no such counter").error().code());
}

TEST_P(Objects, HostsAreFoundByName) {
    EXPECT_EQ(6U, must(near().find_host("localhost")).host().size());
    const auto nobody = near().find_host("no.such.host.invalid");
    ASSERT_FALSE(nobody);
    EXPECT_NE(std::string::npos, nobody.error().message().find("no.such.host.invalid"));
}

TEST_P(Objects, MovedNicsWorkAndMovedFromOnesAnswer) {
    Nic taken = std::move(near());
    EXPECT_TRUE(taken.attributes());
    EXPECT_EQ(VIP_INVALID_PARAMETER, near().attributes().error().code());
    near() = std::move(taken);
    EXPECT_TRUE(near().attributes());
}

TEST_P(Objects, RegionsAreRegisteredAndEnd) {
    std::array<std::byte, 100> bytes{};
    auto region = must(MemoryRegion::of(near(), bytes, {.rdma_write = true}));
    EXPECT_EQ(bytes.data(), region.bytes().data());
    EXPECT_EQ(100U, region.remote().length);
    EXPECT_EQ(region.handle(), region.remote().handle);
    EXPECT_TRUE(region.deregister());
    EXPECT_FALSE(region.deregister());
    const auto own = must(MemoryRegion::allocate(near(), 10'000));
    EXPECT_EQ(0U, reinterpret_cast<std::uintptr_t>(own.bytes().data()) % 4096);
    EXPECT_TRUE(std::ranges::all_of(own.bytes(), [](std::byte b) { return b == std::byte{0}; }));
}

/// Their bytes in all are 65536 more than 64 bits can tell.
TEST_P(Objects, APoolBeyondAllMemoryIsRefusedInWords) {
    const auto pool = BufferPool::create(
        near(), {.buffers = 4'294'901'761, .size = 0xFFFF'FFFF, .segments = 4094});
    ASSERT_FALSE(pool);
    EXPECT_EQ(VIP_ERROR_RESOURCE, pool.error().code());
    EXPECT_NE(std::string::npos, pool.error().message().find("4294901761 buffers of"))
        << pool.error().message();
}

TEST_P(Objects, ATagInUseStays) {
    auto tag = must(ProtectionTag::create(near()));
    auto region = std::optional(must(MemoryRegion::allocate(near(), 64, {.tag = &tag})));
    EXPECT_EQ(VIP_ERROR_RESOURCE, tag.destroy().error().code());
    region.reset();
    EXPECT_TRUE(tag.destroy());
}

TEST_P(Objects, AQueueInUseStays) {
    auto queue = must(CompletionQueue::create(near(), 8));
    EXPECT_TRUE(queue.resize(16));
    auto vi = std::optional(must(Vi::create(near(), {.sends = &queue, .receives = &queue})));
    EXPECT_EQ(VIP_ERROR_RESOURCE, queue.destroy().error().code());
    const auto waited = vi->receive_wait(1ms);
    ASSERT_FALSE(waited);
    EXPECT_NE(std::string::npos, waited.error().message().find("completion queue"));
    vi.reset();
    EXPECT_TRUE(queue.destroy());
}

TEST_P(Objects, ViTellsWhatItIs) {
    const auto vi = must(Vi::create(
        near(),
        {.reliability = Reliability::reception, .max_transfer_bytes = 99, .credits = true}));
    const auto status = must(vi.status());
    EXPECT_EQ(VIP_STATE_IDLE, status.state);
    EXPECT_EQ(VIP_SERVICE_RELIABLE_RECEPTION, status.attributes.ReliabilityLevel);
    EXPECT_EQ(99U, status.attributes.MaxTransferSize);
    EXPECT_TRUE(status.sends_empty && status.receives_empty);
    EXPECT_FALSE(must(vi.credits()).agreed);
}

TEST_P(Objects, AnUnreliableViHasNoCredits) {
    const auto vi = Vi::create(near(), {.reliability = Reliability::unreliable, .credits = true});
    ASSERT_FALSE(vi);
    EXPECT_EQ(VIP_INVALID_RELIABILITY_LEVEL, vi.error().code());
}

TEST_P(Objects, OptionsThatNameAMovedFromObjectAreRefusedInWords) {
    const auto refuses = [](const auto& made) {
        ASSERT_FALSE(made);
        EXPECT_EQ(VIP_INVALID_PARAMETER, made.error().code());
        EXPECT_NE(std::string::npos, made.error().message().find("moved from"))
            << made.error().message();
    };
    auto queue = must(CompletionQueue::create(near(), 4));
    auto tag = must(ProtectionTag::create(near()));
    const CompletionQueue other_queue = std::move(queue);
    const ProtectionTag other_tag = std::move(tag);
    refuses(Vi::create(near(), {.sends = &queue}));
    refuses(Vi::create(near(), {.receives = &queue}));
    refuses(Vi::create(near(), {.tag = &tag}));
    refuses(MemoryRegion::allocate(near(), 4096, {.tag = &tag}));
    refuses(BufferPool::create(near(), {.rights = {.tag = &tag}}));
    refuses(SharedSegment::create(near(), 4096, {.tag = &tag}));
    RegistrationCache cache(near());
    std::array<std::byte, 64> bytes{};
    refuses(cache.lease(bytes, {.tag = &tag}));
    EXPECT_EQ(0U, cache.regions());
}

TEST_P(Objects, ACacheThatWasMovedFromIsRefusedInWords) {
    RegistrationCache cache(near());
    std::array<std::byte, 64> bytes{};
    auto lease = must(cache.lease(bytes));
    RegistrationCache other = std::move(cache);
    const auto refused = cache.lease(bytes);
    ASSERT_FALSE(refused);
    EXPECT_EQ(VIP_INVALID_PARAMETER, refused.error().code());
    EXPECT_NE(std::string::npos, refused.error().message().find("moved from"));
    cache.invalidate(bytes);
    cache.clear();
    EXPECT_EQ(0U, cache.regions() + cache.bytes() + cache.registrations());
    const auto channel =
        MessageChannel::create(near(), must(Vi::create(near())), {.registrations = &cache});
    ASSERT_FALSE(channel);
    EXPECT_EQ(VIP_INVALID_PARAMETER, channel.error().code());
    EXPECT_NE(std::string::npos, channel.error().message().find("moved from"));
    lease = {};
    other.invalidate(bytes);
    EXPECT_EQ(0U, other.regions()) << "its leases went with it";
    EXPECT_EQ(1U, other.registrations());
}

TEST_P(Objects, APoolThatWasMovedFromHasNothingToGive) {
    auto pool = must(BufferPool::create(near(), {.buffers = 2, .size = 100}));
    auto other = std::move(pool);
    EXPECT_FALSE(pool.take());
    EXPECT_EQ(0U, pool.available());
    EXPECT_EQ(0U, pool.buffer_size());
    Buffer buffer = other.take();
    EXPECT_TRUE(buffer);
    EXPECT_FALSE(pool.reclaim(buffer.descriptor().raw()));
}

TEST_P(Objects, PoolsGiveWhatTheyHaveAndTakeItBack) {
    auto pool = must(BufferPool::create(near(), {.buffers = 2, .size = 100}));
    EXPECT_EQ(100U, pool.buffer_size());
    Buffer first = pool.take();
    Buffer second = pool.take();
    EXPECT_TRUE(first && second);
    EXPECT_FALSE(pool.take());
    EXPECT_EQ(100U, first.bytes().size());
    EXPECT_NE(first.bytes().data(), second.bytes().data());
    EXPECT_EQ(0U, reinterpret_cast<std::uintptr_t>(first.descriptor().raw()) % 64);
    EXPECT_GE(first.bytes().data(), reinterpret_cast<std::byte*>(first.descriptor().raw() + 1));
    EXPECT_FALSE(pool.reclaim(first.descriptor().raw())) << "it was not posted";
    Buffer moved = std::move(first);
    EXPECT_FALSE(first);
    moved.give_back();
    EXPECT_EQ(1U, pool.available());
    second = Buffer();
    EXPECT_EQ(2U, pool.available());
}

TEST_P(Objects, APostedBufferComesBackByItsDescriptorOnce) {
    auto pool = must(BufferPool::create(near(), {.buffers = 3, .size = 100, .segments = 5}));
    auto others = must(BufferPool::create(near(), {.buffers = 1}));
    auto vi = must(Vi::create(near()));
    for (int n = 0; n < 3; ++n) must(vi.post_receive(pool.take()));
    EXPECT_EQ(0U, pool.available());
    std::vector<Buffer> back;
    vi.drain([&](VIP_DESCRIPTOR* descriptor) {
        EXPECT_FALSE(others.reclaim(descriptor));
        back.push_back(pool.reclaim(descriptor));
        EXPECT_TRUE(back.back());
        EXPECT_FALSE(pool.reclaim(descriptor)) << "it came back already";
    });
    EXPECT_EQ(3U, back.size());
    back.clear();
    EXPECT_EQ(3U, pool.available());
}

TEST_P(Objects, ABufferThatIsRefusedStaysTheCallers) {
    auto pool = must(BufferPool::create(near(), {.buffers = 1}));
    auto vi = must(Vi::create(near()));
    Vi gone = std::move(vi);
    Buffer buffer = pool.take();
    EXPECT_EQ(VIP_INVALID_PARAMETER, vi.post_receive(std::move(buffer)).error().code());
    EXPECT_TRUE(buffer);
}

TEST_P(Objects, NoBufferOrTooFewBytesAreRefusedByThePost) {
    auto pool = must(BufferPool::create(near(), {.buffers = 2, .size = 100}));
    auto vi = must(Vi::create(near()));
    Buffer buffer = pool.take();
    const auto too_long = vi.post_send(std::move(buffer), 101);
    ASSERT_FALSE(too_long);
    EXPECT_EQ(VIP_INVALID_PARAMETER, too_long.error().code());
    EXPECT_NE(std::string::npos, too_long.error().message().find("101 bytes"));
    EXPECT_TRUE(buffer);
    EXPECT_EQ(100U, buffer.segment(100).length);
    EXPECT_EQ(0xFFFFFFFFU, buffer.segment(101).length) << "it would show the next buffer";
    Buffer last = pool.take();
    const auto nothing = vi.post_receive(pool.take());
    ASSERT_FALSE(nothing);
    EXPECT_EQ(VIP_INVALID_PARAMETER, nothing.error().code());
    EXPECT_NE(std::string::npos, nothing.error().message().find("pool was empty"));
    EXPECT_EQ(VIP_INVALID_PARAMETER, vi.post_send(pool.take(), 1).error().code());
    const auto status = must(vi.status());
    EXPECT_TRUE(status.sends_empty && status.receives_empty);
}

TEST_P(Objects, WhatIsOutOfRangeIsNotSaidToBeMovedFromAlone) {
    const auto says = [](const auto& result, const char* word) {
        return result ? testing::AssertionFailure() << "it is taken"
               : result.error().message().find(word) != std::string::npos
                   ? testing::AssertionSuccess()
                   : testing::AssertionFailure() << result.error().message();
    };
    auto queue = must(CompletionQueue::create(near()));
    auto vi = must(Vi::create(near()));
    const Address there = must(near().address("nobody"));
    const std::vector<std::byte> data(VIA_PRIVATE_DATA_MAX + 1);
    EXPECT_TRUE(says(MemoryRegion::allocate(near(), 0), "1 byte"));
    EXPECT_TRUE(says(BufferPool::create(near(), {.buffers = 0}), "1 byte"));
    EXPECT_TRUE(says(CompletionQueue::create(near(), 0), "65536 entries"));
    EXPECT_TRUE(says(queue.resize(65537), "65536 entries"));
    EXPECT_TRUE(says(vi.connect(there.with(std::string(65, 'x'))), "64 bytes"));
    EXPECT_TRUE(says(vi.connect(there, {.data = data}), "256"));
    EXPECT_TRUE(says(vi.connect(there, {.timeout = 0ms}), "not 0"));
    EXPECT_TRUE(says(vi.connect_peer(there.with(std::string(65, 'x')), there, 1ms), "64 bytes"));
    EXPECT_TRUE(says(vi.peer_done(), "connect_peer()"));
    EXPECT_TRUE(says(Listener(near(), std::string(65, 'x')).wait(0ms), "64 bytes"));
    EXPECT_TRUE(says(near().counter("nonsense"), "ViaCounterName"));
    EXPECT_TRUE(says(near().find_host("localhost", 9), "no address number 9"));
    Nic gone = std::move(near());
    EXPECT_TRUE(says(near().find_host("localhost"), "moved from"));
}

/// The child's end of the pipe gets what opening a NIC says there.
std::string said_in(pid_t (*make)(), const char* device) {
    std::array<int, 2> ends{};
    EXPECT_EQ(0, pipe(ends.data()));
    const pid_t child = make();
    if (child == 0) {
        alarm(60);
        const auto nic = Nic::open(device);
        const std::string said = nic ? "it is open" : nic.error().message();
        _exit(write(ends[1], said.data(), said.size()) > 0 ? 0 : 1);
    }
    close(ends[1]);
    std::array<char, 512> said{};
    EXPECT_LT(0, read(ends[0], said.data(), said.size() - 1));
    close(ends[0]);
    EXPECT_EQ(child, waitpid(child, nullptr, 0));
    return said.data();
}

TEST_P(Objects, AForkedChildOpensItsOwnNic) { EXPECT_EQ("it is open", said_in(fork, GetParam())); }

TEST_P(Objects, AChildMadePastForksHandlersHearsWhyItCanOpenNoNic) {
    const auto make = [] {
        return static_cast<pid_t>(syscall(SYS_clone, SIGCHLD, nullptr, nullptr, nullptr, nullptr));
    };
    EXPECT_NE(std::string::npos, said_in(make, GetParam()).find("fork(3)"));
}

TEST_P(Objects, TooManySegmentsAreRefusedByThePost) {
    auto region = must(MemoryRegion::allocate(near(), 4096));
    auto vi = must(Vi::create(near()));
    const Segment piece = region.segment(1024, 1);
    Descriptor descriptor = region.descriptor(0);
    descriptor.send(piece, piece, piece);
    EXPECT_EQ(VIP_INVALID_PARAMETER, vi.post_send(descriptor).error().code());
    EXPECT_EQ(VIP_INVALID_PARAMETER, vi.post_receive(descriptor).error().code());
    EXPECT_TRUE(must(vi.status()).sends_empty);
}

TEST_P(Objects, SeveralArePostedInOneGoUpToTheFirstThatIsRefused) {
    auto region = must(MemoryRegion::allocate(near(), 64 * 128));
    auto vi = must(Vi::create(near()));
    std::vector<Descriptor> descriptors;
    for (std::size_t n = 0; n < 100; ++n)
        descriptors.push_back(region.descriptor(64 * n).receive(region.segment(64 * 127, 1)));
    std::size_t posted = 0;
    EXPECT_TRUE(vi.post_receives(descriptors, posted));
    EXPECT_EQ(100U, posted);
    vi.drain([](VIP_DESCRIPTOR*) {});
    descriptors[70] = Descriptor(nullptr, 0);
    EXPECT_EQ(VIP_INVALID_PARAMETER, vi.post_receives(descriptors, posted).error().code());
    EXPECT_EQ(70U, posted);
}

TEST_P(Objects, AViTakesOffWhatWasPostedBeforeItGoes) {
    auto region = must(MemoryRegion::allocate(near(), 4096));
    {
        auto vi = must(Vi::create(near()));
        must(vi.post_receive(region.descriptor(0).receive(region.segment(64, 64))));
        EXPECT_EQ(VIP_ERROR_RESOURCE, region.deregister().error().code());
    }
    EXPECT_TRUE(region.deregister()) << "nothing is posted any more";
}

TEST_P(Objects, ARegionThatGoesBeforeItsViLeavesItsMemory) {
    auto vi = must(Vi::create(near()));
    std::byte* bytes = nullptr;
    {
        auto region = must(MemoryRegion::allocate(near(), 4096));
        bytes = region.bytes().data();
        must(vi.post_receive(region.descriptor(0).receive(region.segment(64, 64))));
    }
    const auto* descriptor = reinterpret_cast<const VIP_DESCRIPTOR*>(bytes);
    must(vi.disconnect());
    EXPECT_NE(0U, descriptor->CS.Status & VIP_STATUS_DESC_FLUSHED_ERROR);
    vi.drain([](VIP_DESCRIPTOR*) {});
    near().close();
    ::operator delete(bytes, std::align_val_t(4096));  // so that no leak is reported
}

TEST_P(Objects, ANicMayGoBeforeAllElse) {
    auto tag = must(ProtectionTag::create(near()));
    auto pool = must(BufferPool::create(near()));
    auto queue = must(CompletionQueue::create(near()));
    auto vi = must(Vi::create(near(), {.receives = &queue}));
    must(vi.post_receive(pool.take()));
    near().close();
    EXPECT_EQ(VIP_INVALID_PARAMETER, vi.status().error().code());
    EXPECT_EQ(VIP_INVALID_PARAMETER, queue.done().error().code());
    EXPECT_NE(std::string::npos, vi.send_done().error().message().find("closed"));
}

/// Nobody is in wait() when it comes.
TEST_P(Objects, AListenerStandsFromItsConstructorOn) {
    const std::string name = discriminator("stands");
    Listener listener(far(), name, 1);
    must(listener.listening());
    EXPECT_FALSE(must(listener.done()));
    EXPECT_EQ(VIP_TIMEOUT, listener.wait(0ms).error().code());
    pollfd watched{must(listener.descriptor()), POLLIN, 0};
    EXPECT_EQ(0, poll(&watched, 1, 0));
    auto asking = must(Vi::create(near()));
    const Address there = must(far().address(name));
    std::thread asks([&] { must(asking.connect(there, {.timeout = patience})); });
    ASSERT_EQ(1, poll(&watched, 1, 60'000));
    Listener moved = std::move(listener);
    EXPECT_EQ(VIP_INVALID_PARAMETER, listener.listening().error().code());
    auto request = must(moved.done());
    EXPECT_TRUE(request);
    EXPECT_EQ(0, poll(&watched, 1, 0));
    auto asked = must(Vi::create(far()));
    must(request.accept(asked));
    EXPECT_FALSE(request);
    asks.join();
    must(far().on_error([](const AsyncError&) {}));
    must(near().on_error([](const AsyncError&) {}));
}

}  // namespace
}  // namespace objects_test
