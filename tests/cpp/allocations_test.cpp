// The data path allocates nothing, and neither does who accepts.
#include "allocations.hpp"
#include "scene.hpp"

using namespace via;
using namespace via::test;

namespace allocations_test {
namespace {

class Allocations : public Scene {};
INSTANTIATE_TEST_SUITE_P(Media, Allocations, media());

/// Between hosts, too: what arrives there is taken in by the calls of whoever polls.
class AllocationsAnywhere : public Scene {};
INSTANTIATE_TEST_SUITE_P(Media, AllocationsAnywhere, testing::Values("loopback", "shm", "udp:lo"));

TEST(AllocationsThemselves, AreSeen) {
    const std::size_t before = allocations_of_this_thread();
    ::operator delete(::operator new(1000));
    EXPECT_EQ(before + 1, allocations_of_this_thread());
}

struct Counted {
    BufferPool pool;
    CompletionQueue queue;
    Vi vi;
    explicit Counted(Nic& nic)
        : pool(must(BufferPool::create(nic))),
          queue(must(CompletionQueue::create(nic))),
          vi(must(Vi::create(nic, {.sends = &queue, .receives = &queue}))) {
        must(vi.post_receive(pool.take()));
    }
    /// The next completion, whose buffer goes back.
    bool take() {
        for (;;) {
            const auto done = queue.done();
            if (!done) return false;
            if (*done) return static_cast<bool>(pool.reclaim(*done));
        }
    }
    bool send() { return vi.post_send(pool.take(), 8).has_value() && take(); }
    bool receive() { return take() && vi.post_receive(pool.take()).has_value(); }
};

/// A hundred rounds without an allocation must come: lists grow until they have held the most at
/// once, and on a busy machine that may come late.
template <class Round>
void expect_none_in_the_end(const Round& round) {
    std::size_t allocations = 0;
    for (int tries = 0; tries < 50; ++tries) {
        const std::size_t before = allocations_of_this_thread();
        bool right = true;
        for (int n = 0; n < 100; ++n) right = round() && right;
        allocations = allocations_of_this_thread() - before;
        ASSERT_TRUE(right);
        if (allocations == 0) return;
    }
    FAIL() << allocations << " allocations in the last hundred rounds";
}

TEST_P(AllocationsAnywhere, PostingAndTakingNeedNone) {
    Counted here(near());
    Counted there(far());
    connect(here.vi, there.vi);
    const auto round = [&] {
        return here.send() && there.receive() && there.send() && here.receive();
    };
    expect_none_in_the_end(round);
}

TEST_P(AllocationsAnywhere, RdmaNeedsNone) {
    auto from = must(MemoryRegion::allocate(near(), 1 << 16));
    auto to = must(MemoryRegion::allocate(far(), 1 << 16, {.rdma_write = true, .rdma_read = true}));
    const ViOptions options{.rdma_write = true, .rdma_read = true};
    auto asking = must(Vi::create(near(), options));
    auto asked = must(Vi::create(far(), options));
    connect(asking, asked);
    const auto finished = [&](const Descriptor& descriptor) {
        if (!asking.post_send(descriptor)) return false;
        for (;;) {
            const auto done = asking.send_done();
            if (!done) return false;
            if (*done) return true;
            (void)asked.receive_done();  // the other end takes its turns here, too
        }
    };
    const auto round = [&] {
        bool right = true;
        for (const std::size_t length : {8UL, 5000UL, 30000UL})
            right =
                finished(from.descriptor(0).rdma_write(to.remote(), from.segment(64, length))) &&
                finished(from.descriptor(0).rdma_read(to.remote(), from.segment(64, length))) &&
                right;
        return right;
    };
    expect_none_in_the_end(round);
}

/// What the requests of a backlog need came with the listener, what a connection needs with its VI.
TEST_P(AllocationsAnywhere, AcceptingNeedsNone) {
    constexpr std::size_t clients = 8;
    std::vector<Vi> asking;
    std::vector<Vi> asked;
    for (std::size_t n = 0; n <= clients; ++n) {
        asking.push_back(must(Vi::create(near())));
        asked.push_back(must(Vi::create(far())));
    }
    connect(asking.back(), asked.back());  // the NICs know each other
    const std::string name = discriminator("standing");
    const Listener listener(far(), name, clients);
    const Address there = must(far().address(name));
    constexpr std::array<std::byte, 16> word{};
    std::thread others([&] {
        for (std::size_t n = 0; n < clients; ++n)
            EXPECT_TRUE(asking[n].connect(there, {.timeout = patience, .data = word}));
    });
    const auto over = std::chrono::steady_clock::now() + patience;
    std::size_t allocations = 0;
    for (std::size_t n = 0; n < clients;) {
        ASSERT_LT(std::chrono::steady_clock::now(), over);
        const std::size_t before = allocations_of_this_thread();
        auto request = listener.done();
        const bool accepted = request && *request && request->accept(asked[n]);
        allocations += allocations_of_this_thread() - before;
        if (accepted) ++n;
    }
    others.join();
    EXPECT_EQ(0U, allocations);
}

TEST_P(AllocationsAnywhere, NothingYetAndFailuresNeedNone) {
    auto pool = must(BufferPool::create(near()));
    auto vi = must(Vi::create(near()));
    must(vi.post_receive(pool.take()));
    const std::size_t before = allocations_of_this_thread();
    const bool nothing_yet = vi.receive_done().has_value();
    const bool nothing_posted = !vi.send_done().has_value();
    const bool refused = !vi.post_send(Descriptor(nullptr, 0)).has_value();
    EXPECT_EQ(before, allocations_of_this_thread());
    EXPECT_TRUE(nothing_yet && nothing_posted && refused);
}

TEST_P(Allocations, SmallAndMiddleMessagesNeedNone) {
    auto asking = must(Vi::create(near(), MessageChannel::vi_options()));
    auto asked = must(Vi::create(far(), MessageChannel::vi_options()));
    connect(asking, asked);
    std::optional<MessageChannel> there;
    std::thread other([&] { there = must(MessageChannel::create(far(), std::move(asked))); });
    auto here = must(MessageChannel::create(near(), std::move(asking)));
    other.join();
    std::vector<std::byte> bytes(here.message_max());
    const auto round = [&](std::size_t length) {
        return here.send(std::span(bytes).first(length)) && there->receive(bytes) == length &&
               there->send(std::span(bytes).first(length)) && here.receive(bytes) == length;
    };
    for (int n = 0; n < 1000; ++n)
        for (const std::size_t length : {0UL, 500UL, 10000UL, bytes.size()})
            ASSERT_TRUE(round(length));
    const std::size_t before = allocations_of_this_thread();
    bool right = true;
    for (int n = 0; n < 100; ++n)
        for (const std::size_t length : {0UL, 500UL, 10000UL, bytes.size()})
            right = round(length) && right;
    EXPECT_EQ(before, allocations_of_this_thread());
    EXPECT_TRUE(right);
    EXPECT_EQ(2200U, here.counts().sent.stored);
    EXPECT_EQ(2200U, here.counts().sent.posted);
}

TEST_P(Allocations, CachedRegistrationsNeedNone) {
    std::vector<std::byte> memory(1 << 16);
    const std::span<std::byte> all(memory);
    RegistrationCache cache(near(), {.regions = 8});
    const auto use = [&](std::size_t index) {
        return cache.lease(all.subspan(index * 1000, 1000)).has_value();
    };
    bool right = true;
    for (std::size_t n = 0; n < 100; ++n) right = use(n % 16) && right;
    const std::uint64_t registrations = cache.registrations();
    const std::size_t before = allocations_of_this_thread();
    for (std::size_t n = 0; n < 100; ++n) right = use(n % 4 == 0 ? 0 : 3) && right;
    EXPECT_LE(cache.registrations(), registrations + 2);
    for (std::size_t n = 0; n < 100; ++n) right = use(n % 16) && right;  // and when some go, too
    cache.invalidate(all.first(5000));
    EXPECT_EQ(before, allocations_of_this_thread());
    EXPECT_TRUE(right);
}

struct Shared {
    Counted& end;
    AsyncVi& vi;
    int rounds = 0;
};

Detached receive_for_ever(Shared& shared) {
    while (const auto message = co_await shared.vi.receive()) {
        if (!shared.vi.vi().post_receive(shared.end.pool.reclaim(*message))) break;
        ++shared.rounds;
    }
}
Detached send_one(Shared& shared) {
    const Buffer buffer = shared.end.pool.take();
    EXPECT_TRUE(co_await shared.vi.send(buffer.descriptor().send(buffer.segment(8))));
}

TEST_P(Allocations, AwaitingNeedsNone) {
    Counted here(near());
    Counted there(far());
    connect(here.vi, there.vi);
    must(near().on_error([](const AsyncError&) {}));
    must(far().on_error([](const AsyncError&) {}));
    Reactor near_reactor(here.queue);
    Reactor far_reactor(there.queue);
    AsyncVi sending(near_reactor, std::move(here.vi));
    std::optional<AsyncVi> receiving(std::in_place, far_reactor, std::move(there.vi));
    Shared from{here, sending};
    Shared to{there, *receiving};
    receive_for_ever(to);
    const auto send_and_wait = [&] {
        const std::size_t before = allocations_of_this_thread();
        send_one(from);
        for (const int now = to.rounds; to.rounds == now;) {
            must(near_reactor.poll());
            must(far_reactor.poll());
        }
        return allocations_of_this_thread() - before;
    };
    for (int n = 0; n < 1000; ++n) send_and_wait();
    for (int n = 0; n < 100; ++n) EXPECT_EQ(1U, send_and_wait()) << "the frame of send_one alone";
    must(receiving->vi().disconnect());
    must(far_reactor.wait(patience));  // ends the coroutine that receives
}

}  // namespace
}  // namespace allocations_test
