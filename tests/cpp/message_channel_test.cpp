// The message channel: three protocols, one order, and a peer that cannot be trusted.
#include <sys/resource.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <functional>
#include <future>
#include <random>

#include "call_filter.hpp"
#include "scene.hpp"

namespace via::test::message_channel_test {
namespace {

using Options = MessageChannelOptions;
using Bytes = std::vector<std::byte>;
using Sizes = std::vector<std::size_t>;

/// No stores: as where processes cannot share memory.
constexpr Options unshared{.stores_max = 0};
/// For many messages: who polls long keeps others off the processor, under a sanitizer for seconds.
constexpr std::uint32_t few_polls = 100;

struct Ends {
    MessageChannel near, far;
};

/// Bytes of a known series. Copied, as megabytes made one by one take long under a sanitizer.
Bytes pattern(std::size_t length, std::uint32_t seed) {
    static const Bytes series = [] {
        Bytes bytes(65521);  // a prime: no place in a page or ring sees the same bytes again soon
        std::mt19937 random;
        std::ranges::generate(bytes, [&] { return static_cast<std::byte>(random() & 0xFF); });
        return bytes;
    }();
    Bytes bytes(length);
    std::size_t from = seed * std::size_t{31} % series.size();
    for (std::size_t done = 0; done < length; from = 0) {
        const std::size_t part = std::min(length - done, series.size() - from);
        std::memcpy(bytes.data() + done, series.data() + from, part);
        done += part;
    }
    return bytes;
}

bool same(std::span<const std::byte> bytes, const Bytes& expected) {
    return bytes.size() == expected.size() &&
           (expected.empty() || std::memcmp(bytes.data(), expected.data(), bytes.size()) == 0);
}

class Channels : public Scene {
protected:
    Channels() {
        // Peers leave and lie here; that is no news.
        must(near().on_error([](const AsyncError&) {}));
        must(far().on_error([](const AsyncError&) {}));
    }
    Ends meet(const Options& of_near = {}, const Options& of_far = {}) {
        auto asking = must(Vi::create(near(), MessageChannel::vi_options()));
        auto asked = must(Vi::create(far(), MessageChannel::vi_options()));
        connect(asking, asked);
        auto other = std::async(std::launch::async, [&] {
            return MessageChannel::create(far(), std::move(asked), of_far);
        });
        auto one = must(MessageChannel::create(near(), std::move(asking), of_near));
        return {std::move(one), must(other.get())};
    }
    Ends meet_alike(const Options& options) { return meet(options, options); }
};
INSTANTIATE_TEST_SUITE_P(Media, Channels, media());

/// Receives the next message, and says whether it is this one.
testing::AssertionResult brings(MessageChannel& channel, const Bytes& expected) {
    const auto length = channel.wait(patience);
    if (!length) return testing::AssertionFailure() << length.error().message();
    if (*length != expected.size())
        return testing::AssertionFailure() << *length << " bytes, not " << expected.size();
    Bytes room(*length);
    const auto received = channel.receive(room, patience);
    if (!received) return testing::AssertionFailure() << received.error().message();
    if (!same(room, expected)) return testing::AssertionFailure() << "other bytes";
    return testing::AssertionSuccess();
}

/// Sends in another thread, for large messages need both sides.
std::future<Expected<void>> sending(MessageChannel& channel, const Bytes& bytes) {
    return std::async(std::launch::async, [&] { return channel.send(bytes); });
}

TEST_P(Channels, EverySizeAroundTheThresholdsGoesItsWay) {
    Ends ends = meet();
    EXPECT_TRUE(ends.near.stores());
    EXPECT_EQ(8176U, ends.near.stores_max());
    EXPECT_EQ(32768U, ends.near.message_max());
    for (const std::size_t length :
         Sizes{0,        1,     8,     55,    56,    57,      111,     112,
               113,      1007,  1008,  1009,  4096,  8175,    8176,    8177,
               16384,    32767, 32768, 32769, 65536, 100'000, 1 << 20, (1 << 20) + 1,
               5'000'003}) {
        const Bytes bytes = pattern(length, 1);
        auto sent = sending(ends.near, bytes);
        EXPECT_TRUE(brings(ends.far, bytes)) << length;
        must(sent.get());
        auto answered = sending(ends.far, bytes);
        EXPECT_TRUE(brings(ends.near, bytes)) << length;
        must(answered.get());
    }
    for (const MessageChannel* end : {&ends.near, &ends.far}) {
        EXPECT_EQ(15U, end->counts().sent.stored);
        EXPECT_EQ(4U, end->counts().sent.posted);
        EXPECT_EQ(6U, end->counts().sent.written);
        EXPECT_EQ(15U, end->counts().received.stored);
        EXPECT_EQ(4U, end->counts().received.posted);
        EXPECT_EQ(6U, end->counts().received.written);
    }
}

TEST_P(Channels, WithoutStoresSmallOnesAreMessages) {
    Ends ends = meet(unshared, {});
    EXPECT_FALSE(ends.near.stores());
    EXPECT_FALSE(ends.far.stores());
    EXPECT_EQ(0U, ends.far.stores_max());
    for (const std::size_t length : Sizes{0, 1, 56, 8176, 32768, 32769, 3'000'000}) {
        const Bytes bytes = pattern(length, 2);
        auto sent = sending(ends.far, bytes);
        EXPECT_TRUE(brings(ends.near, bytes)) << length;
        must(sent.get());
    }
    EXPECT_EQ(0U, ends.far.counts().sent.stored);
    EXPECT_EQ(5U, ends.far.counts().sent.posted);
    EXPECT_EQ(2U, ends.far.counts().sent.written);
}

TEST_P(Channels, ThresholdsAreTheSmallerOnes) {
    Ends ends = meet({.stores_max = 5000, .message_max = 100'000},
                     {.stores_max = 100, .message_max = 2000, .ring_bytes = 1024});
    EXPECT_EQ(100U, ends.near.stores_max());
    EXPECT_EQ(2000U, ends.near.message_max());
    EXPECT_EQ(100U, ends.far.stores_max());
    EXPECT_EQ(2000U, ends.far.message_max());
    // Everything by RDMA but what is empty.
    Ends bare = meet_alike({.stores_max = 0, .message_max = 0});
    for (const std::size_t length : Sizes{0, 1, 70}) {
        const Bytes bytes = pattern(length, 3);
        auto sent = sending(bare.near, bytes);
        EXPECT_TRUE(brings(bare.far, bytes)) << length;
        must(sent.get());
    }
    EXPECT_EQ(1U, bare.near.counts().sent.posted);
    EXPECT_EQ(2U, bare.near.counts().sent.written);
}

TEST_P(Channels, MemoryThatComesAgainIsRegisteredOnce) {
    RegistrationCache cache(far());
    Bytes room(100'000);
    const Bytes bytes = pattern(room.size(), 9);
    {
        Ends ends = meet({}, {.registrations = &cache});
        for (int n = 0; n < 10; ++n) {
            auto sent = sending(ends.near, bytes);
            EXPECT_EQ(room.size(), must(ends.far.receive(room, patience)));
            EXPECT_EQ(bytes, room);
            must(sent.get());
        }
    }
    EXPECT_EQ(1U, cache.registrations());
    cache.invalidate(room);
}

TEST_P(Channels, WhatTheCacheHasNoRoomForComesAllTheSame) {
    RegistrationCache cache(far(), {.regions = 4, .bytes = 64 << 10});
    Bytes room(100'000);
    const Bytes bytes = pattern(room.size(), 9);
    Ends ends = meet({}, {.registrations = &cache});
    for (int n = 0; n < 2; ++n) {
        auto sent = sending(ends.near, bytes);
        EXPECT_EQ(room.size(), must(ends.far.receive(room, patience)));
        EXPECT_EQ(bytes, room);
        must(sent.get());
    }
    EXPECT_EQ(0U, cache.registrations());
}

/// Both send and receive a known series of sizes, mixed, at once.
void exchange(Ends& ends, std::uint32_t messages, std::size_t longest) {
    const auto sizes = [&](std::uint32_t seed) {
        std::mt19937 random(seed);
        Sizes chosen(messages);
        for (std::size_t& size : chosen) {
            // As many of each power of two.
            const auto bits = random() % static_cast<std::size_t>(std::bit_width(longest) + 1);
            size = std::min(random() % (std::size_t{1} << bits), longest);
        }
        return chosen;
    };
    const auto end = [&](MessageChannel& channel, std::uint32_t mine, std::uint32_t theirs) {
        const auto out = sizes(mine);
        const auto in = sizes(theirs);
        std::mt19937 random(mine + 100);
        Bytes room(longest);
        std::uint32_t sent = 0;
        std::uint32_t received = 0;
        while (sent < messages || received < messages) {
            // Whoever receives is ahead in sending: so the two never both wait for a message.
            if (sent < messages && (received >= sent || random() % 2 == 0)) {
                must(channel.send(pattern(out[sent], mine + sent), patience));
                ++sent;
            } else {
                const auto length = must(channel.receive(room, patience));
                if (length != in[received] ||
                    !same(std::span(room).first(length), pattern(length, theirs + received)))
                    throw std::runtime_error("message " + std::to_string(received) + " is wrong");
                ++received;
            }
        }
    };
    auto other = std::async(std::launch::async, [&] { end(ends.far, 2, 1); });
    EXPECT_NO_THROW(end(ends.near, 1, 2));
    EXPECT_NO_THROW(other.get());
}

TEST_P(Channels, ThousandsOfRandomSizesBothWays) {
    Ends ends = meet_alike({.stores_max = 400, .message_max = 4096, .ring_bytes = 1024});
    exchange(ends, 4000, 60'000);
    const MessageCounts& received = ends.far.counts().received;
    EXPECT_LT(100U, received.stored);
    EXPECT_LT(100U, received.posted);
    EXPECT_LT(100U, received.written);
    EXPECT_EQ(4000U, received.stored + received.posted + received.written);
}
TEST_P(Channels, ThousandsOfRandomSizesBothWaysWithoutStores) {
    Ends ends =
        meet_alike({.stores_max = 0, .message_max = 1000, .receives = 4, .polls = few_polls});
    exchange(ends, 2000, 60'000);
}
TEST_P(Channels, TheSmallestRingGoesRoundAndRound) {
    Ends ends = meet_alike({.message_max = 0, .ring_bytes = 1024});
    EXPECT_EQ(8U * 56, ends.near.stores_max());
    exchange(ends, 5000, 440);
    EXPECT_EQ(5000U, ends.near.counts().received.stored);
}
TEST_P(Channels, SleepersAreAlwaysWoken) {
    // Without polls each step goes to sleep or nearly.
    Ends ends = meet_alike({.stores_max = 200, .message_max = 1000, .polls = 0});
    exchange(ends, 3000, 4000);
    const Bytes bytes = pattern(8, 4);
    auto echo = std::async(std::launch::async, [&] {
        for (int n = 0; n < 3000; ++n) {
            if (!brings(ends.far, bytes)) return false;
            must(ends.far.send(bytes));
        }
        return true;
    });
    for (int n = 0; n < 3000; ++n) {
        must(ends.near.send(bytes));
        ASSERT_TRUE(brings(ends.near, bytes));
    }
    EXPECT_TRUE(echo.get());
    EXPECT_LT(0U, ends.near.counts().sleeps + ends.far.counts().sleeps);
    EXPECT_LT(0U, ends.near.counts().wakes + ends.far.counts().wakes);
}

TEST_P(Channels, SleepersAreWokenWhereAFilterForbidsTheirFences) {
    Ends ends = meet_alike({.stores_max = 200, .message_max = 1000, .polls = 0});
    const Bytes bytes = pattern(8, 4);
    auto echo = std::async(std::launch::async, [&] {
        if (!call_filter::forbid(SYS_membarrier, EPERM)) return false;
        for (int n = 0; n < 300; ++n) {
            if (!brings(ends.far, bytes)) return false;
            must(ends.far.send(bytes));
        }
        return true;
    });
    for (int n = 0; n < 300; ++n) {
        must(ends.near.send(bytes));
        ASSERT_TRUE(brings(ends.near, bytes));
    }
    EXPECT_TRUE(echo.get());
    EXPECT_LT(0U, ends.far.counts().sleeps);
}

double processor_ms() {
    rusage usage{};
    getrusage(RUSAGE_THREAD, &usage);
    const auto ms = [](const timeval& time) {
        return static_cast<double>(time.tv_sec) * 1e3 + static_cast<double>(time.tv_usec) / 1e3;
    };
    return ms(usage.ru_utime) + ms(usage.ru_stime);
}

TEST_P(Channels, WhoWaitsSleeps) {
    for (const Options& options : {Options{}, unshared}) {
        Ends ends = meet_alike(options);
        const double before = processor_ms();
        const auto nothing = ends.near.wait(1s);
        EXPECT_GT(500, processor_ms() - before);
        ASSERT_FALSE(nothing);
        EXPECT_EQ(VIP_TIMEOUT, nothing.error().code());
        EXPECT_LE(1U, ends.near.counts().sleeps);
        must(ends.far.send(pattern(3, 5)));
        EXPECT_TRUE(brings(ends.near, pattern(3, 5))) << "a time-out harms nothing";
    }
}

TEST_P(Channels, BothMaySendFirstAndReceiveAfterwards) {
    const Sizes sizes{3'000'000, 10, 10'000, 2'000'000, 0, 17'000};
    for (const Options& options :
         {Options{.polls = few_polls}, Options{.stores_max = 0, .polls = few_polls}}) {
        Ends ends = meet_alike(options);
        const auto end = [&](MessageChannel& channel) {
            for (const std::size_t size : sizes) must(channel.send(pattern(size, 6), patience));
            // More small ones than any ring or pool has room for.
            for (std::uint32_t n = 0; n < 3000; ++n)
                must(channel.send(pattern(n % 1500, n), patience));
            for (const std::size_t size : sizes) EXPECT_TRUE(brings(channel, pattern(size, 6)));
            for (std::uint32_t n = 0; n < 3000; ++n)
                EXPECT_TRUE(brings(channel, pattern(n % 1500, n)));
        };
        auto other = std::async(std::launch::async, [&] { end(ends.far); });
        end(ends.near);
        other.get();
        EXPECT_LT(0U, ends.near.counts().held + ends.far.counts().held);
    }
}

TEST_P(Channels, LookingAndPeekingTakeNothing) {
    Ends ends = meet();
    EXPECT_EQ(std::nullopt, must(ends.far.next()));
    Bytes room(100);
    EXPECT_EQ(std::nullopt, must(ends.far.try_receive(room)));
    must(ends.near.send(pattern(70, 7)));
    EXPECT_EQ(70U, must(ends.far.wait(patience)));
    EXPECT_EQ(70U, must(ends.far.next()));
    const auto too_small = ends.far.receive(std::span(room).first(69));
    ASSERT_FALSE(too_small);
    EXPECT_EQ(VIP_ERROR_RESOURCE, too_small.error().code());
    EXPECT_NE(std::string::npos, too_small.error().message().find("70 bytes"));
    EXPECT_EQ(70U, must(ends.far.try_receive(room)));
    room.resize(70);
    EXPECT_EQ(pattern(70, 7), room);
}

TEST_P(Channels, WithoutRoomASendEndsInTime) {
    for (const Options& options : {Options{.ring_bytes = 1024}, unshared}) {
        Ends ends = meet_alike(options);
        std::uint32_t sent = 0;
        for (;; ++sent) {
            const auto done = ends.near.send(pattern(40, sent), 0ms);
            if (done) continue;
            EXPECT_EQ(VIP_TIMEOUT, done.error().code());
            break;
        }
        EXPECT_LE(16U, sent);
        for (std::uint32_t n = 0; n < sent; ++n) EXPECT_TRUE(brings(ends.far, pattern(40, n))) << n;
        must(ends.near.send(pattern(40, 8), patience));
        EXPECT_TRUE(brings(ends.far, pattern(40, 8)));
        // A large one cannot be taken back.
        const auto large = ends.near.send(pattern(100'000, 8), 1ms);
        ASSERT_FALSE(large);
        EXPECT_EQ(VIP_TIMEOUT, large.error().code());
        EXPECT_NE(std::string::npos, large.error().message().find("ended the channel"));
        // Whoever tries again as long as time is up must not do so for ever.
        EXPECT_EQ(VIP_INVALID_STATE, ends.near.send({}).error().code());
        EXPECT_EQ(VIP_INVALID_STATE, ends.near.receive({}, patience).error().code());
        EXPECT_EQ(VIP_INVALID_STATE, ends.near.next().error().code());
        EXPECT_FALSE(ends.far.receive({}, patience));
    }
}

// ---- The end ------------------------------------------------------------------------------------

TEST_P(Channels, WhatCameWholeIsReceivedBeforeTheEnd) {
    for (const Options& options : {Options{}, unshared}) {
        std::optional<Ends> ends = meet_alike(options);
        MessageChannel far = std::move(ends->far);
        must(ends->near.send(pattern(20, 1)));
        must(ends->near.send(pattern(9000, 2)));
        must(ends->near.send(pattern(30, 3)));
        ends.reset();
        EXPECT_TRUE(brings(far, pattern(20, 1)));
        EXPECT_TRUE(brings(far, pattern(9000, 2)));
        EXPECT_TRUE(brings(far, pattern(30, 3)));
        Bytes room(100);
        for (int n = 0; n < 3; ++n) {
            const auto ended = far.receive(room, patience);
            ASSERT_FALSE(ended);
            EXPECT_TRUE(ended.error().flushed()) << ended.error().message();
        }
        EXPECT_FALSE(far.send(room));
        EXPECT_FALSE(far.try_receive(room));
    }
}

TEST_P(Channels, WhoWaitsHearsOfTheEnd) {
    const Bytes large = pattern(100'000, 1);
    const Bytes small = pattern(40, 1);
    const auto fill = [&](MessageChannel& channel) {
        for (;;)
            if (auto sent = channel.send(small); !sent) return sent;
    };
    for (const Options& options : {Options{.ring_bytes = 1024}, unshared}) {
        for (int what = 0; what < 6; ++what) {
            Ends ends = meet_alike(options);
            std::optional<MessageChannel> far = std::move(ends.far);
            auto waiting = std::async(std::launch::async, [&]() -> Expected<void> {
                if (what % 3 == 0) return ends.near.send(large);  // nobody takes it
                if (what % 3 == 1) return fill(ends.near);
                const auto received = ends.near.wait();
                return received ? Expected<void>() : std::unexpected(received.error());
            });
            EXPECT_EQ(std::future_status::timeout, waiting.wait_for(20ms));
            if (what < 3)
                far.reset();
            else
                ends.near.stop();
            const auto ended = waiting.get();
            ASSERT_FALSE(ended) << what;
            if (what >= 3) {
                EXPECT_EQ(VIP_INVALID_STATE, ended.error().code()) << ended.error().message();
            }
        }
    }
}

TEST_P(Channels, WithoutCreditsOrConnectionThereIsNone) {
    auto lonely = must(Vi::create(near(), MessageChannel::vi_options()));
    const auto unconnected = MessageChannel::create(near(), std::move(lonely));
    ASSERT_FALSE(unconnected);
    EXPECT_EQ(VIP_INVALID_STATE, unconnected.error().code());
    auto asking = must(Vi::create(near()));
    auto asked = must(Vi::create(far()));
    connect(asking, asked);
    const auto plain = MessageChannel::create(near(), std::move(asking));
    ASSERT_FALSE(plain);
    EXPECT_EQ(VIP_INVALID_PARAMETER, plain.error().code());
    EXPECT_NE(std::string::npos, plain.error().message().find("vi_options"));
    for (const Options& options : {Options{.ring_bytes = 1000}, Options{.ring_bytes = 512},
                                   Options{.receives = 3}, Options{.receives = 1001}}) {
        auto one = must(Vi::create(near(), MessageChannel::vi_options()));
        auto other = must(Vi::create(far(), MessageChannel::vi_options()));
        connect(one, other);
        EXPECT_FALSE(MessageChannel::create(near(), std::move(one), options));
    }
    // A peer that says nothing.
    auto one = must(Vi::create(near(), MessageChannel::vi_options()));
    auto other = must(Vi::create(far(), MessageChannel::vi_options()));
    connect(one, other);
    const auto silent = MessageChannel::create(near(), std::move(one), {.connect_timeout = 10ms});
    ASSERT_FALSE(silent);
    EXPECT_EQ(VIP_TIMEOUT, silent.error().code());
}

// ---- Peers that lie -----------------------------------------------------------------------------

using detail::ChannelFrame;
using detail::FrameKind;
using detail::StoreRing;
using detail::Way;

/// An end that does by hand what a channel does, and whatever else it likes.
class Liar {
public:
    static constexpr std::uint32_t lines = 16;
    static constexpr std::uint32_t receives = 4;

    Liar(Nic& nic, Vi vi)
        : nic_(nic),
          pool_(must(BufferPool::create(nic, {.buffers = 64, .size = 4096}))),
          ours_(must(SharedSegment::create(nic, StoreRing::segment_size(lines),
                                           {.rdma_write = true, .rdma_read = true}))),
          vi_(std::move(vi)) {
        for (int n = 0; n < 40; ++n) must(vi_.post_receive(pool_.take()));
    }
    ChannelFrame honest_hello() const {
        return {.kind = FrameKind::hello,
                .handle = ours_.handle(),
                .address = ours_.remote().address,
                .length = 1000,
                .version = 1,
                .lines = lines,
                .receives = receives,
                .stores_max = 100};
    }
    /// Begins as a channel does.
    void meet(const ChannelFrame& hello) {
        post(hello);
        const ChannelFrame theirs = hear();
        const bool stores = hello.lines != 0 && theirs.lines != 0;
        if (stores) {
            theirs_ = must(ImportedSegment::attach(
                nic_, vi_,
                {theirs.address, StoreRing::segment_size(theirs.lines), theirs.handle, 0},
                Attached::writable));
            ring = StoreRing(theirs_->bytes(), theirs.lines);
        }
        post({.kind = FrameKind::ready, .number = stores ? 1U : 0U});
        static_cast<void>(hear());
    }
    void post(const ChannelFrame& frame, std::size_t length = sizeof(ChannelFrame)) {
        Buffer buffer = pool_.take();
        std::memcpy(buffer.bytes().data(), &frame, sizeof frame);
        must(vi_.post_send(std::move(buffer), length));
    }
    void notify(VIP_UINT32 immediate) {
        Buffer buffer = pool_.take();
        const RemoteSegment nowhere{};
        must(vi_.post_send(buffer.descriptor().rdma_write(nowhere).immediate(immediate)));
        buffer.release();
    }
    ChannelFrame hear() {
        const auto heard = must(vi_.receive_wait(patience));
        ChannelFrame frame;
        std::memcpy(&frame, heard.bytes().data(), sizeof frame);
        return frame;
    }
    /// The first word of the peer's ring, as no ring writes it.
    void first_word(std::uint64_t word) {
        detail::store(*reinterpret_cast<std::uint64_t*>(theirs_->bytes().data() +
                                                        sizeof(detail::SharedWords)),
                      word);
    }

    StoreRing ring;  ///< the peer's

private:
    Nic& nic_;
    BufferPool pool_;
    SharedSegment ours_;
    std::optional<ImportedSegment> theirs_;
    Vi vi_;
};

class Lies : public Channels {
protected:
    struct Met {
        Expected<MessageChannel> honest;
        std::unique_ptr<Liar> liar;
    };
    /// @param change  of the liar's hello
    template <class Change>
    Met meet_liar(const Options& options, Change change) {
        auto asking = must(Vi::create(near(), MessageChannel::vi_options()));
        auto asked = must(Vi::create(far(), MessageChannel::vi_options()));
        connect(asking, asked);
        auto liar = std::make_unique<Liar>(far(), std::move(asked));
        auto other = std::async(std::launch::async, [&] {
            return MessageChannel::create(near(), std::move(asking), options);
        });
        ChannelFrame hello = liar->honest_hello();
        change(hello);
        try {
            liar->meet(hello);
        } catch (const std::runtime_error&) {  // it was found out
        }
        return {other.get(), std::move(liar)};
    }
};
INSTANTIATE_TEST_SUITE_P(Media, Lies, media());

void nothing(ChannelFrame&) {}
void no_stores(ChannelFrame& hello) {
    hello.lines = 0;
    hello.stores_max = 0;
}

/// What the honest end does when it meets the lie.
Expected<void> receive_all(MessageChannel& channel) {
    Bytes room(1 << 20);
    for (;;)
        if (auto received = channel.receive(room, patience); !received)
            return std::unexpected(std::move(received.error()));
}
Expected<void> send_all(MessageChannel& channel, std::size_t length) {
    for (;;)
        if (auto sent = channel.send(pattern(length, 1), patience); !sent) return sent;
}

TEST_P(Lies, InAHelloLetNothingBegin) {
    const std::vector<void (*)(ChannelFrame&)> lies{
        [](ChannelFrame& hello) { hello.version = 2; },
        [](ChannelFrame& hello) { hello.receives = 0; },
        [](ChannelFrame& hello) { hello.lines = 17; },
        [](ChannelFrame& hello) { hello.lines = 8; },
        [](ChannelFrame& hello) { hello.lines = 1U << 31; },
        [](ChannelFrame& hello) { hello.lines = 32; },  // the segment is smaller
        [](ChannelFrame& hello) { hello.stores_max = 449; },
        [](ChannelFrame& hello) { hello.handle += 1; },
        [](ChannelFrame& hello) { hello.kind = FrameKind::message; },
        [](ChannelFrame& hello) { hello.kind = FrameKind{77}; },
        [](ChannelFrame& hello) { hello.kind = FrameKind::answer; }};
    for (std::size_t n = 0; n < lies.size(); ++n) {
        const Met met = meet_liar({}, lies[n]);
        ASSERT_FALSE(met.honest) << n;
        EXPECT_EQ(VIP_REJECT, met.honest.error().code()) << n << met.honest.error().message();
    }
}

TEST_P(Lies, InTheRingEndTheChannel) {
    const auto by_stores = [](std::size_t length) {
        return [length](MessageChannel& channel) { return send_all(channel, length); };
    };
    struct Lie {
        std::function<void(Liar&)> tell;
        std::function<Expected<void>(MessageChannel&)> meet;
    };
    const std::vector<Lie> lies{
        {[](Liar& liar) { liar.first_word(1 << 16 | 1 << 14 | 16383); }, receive_all},
        {[](Liar& liar) { liar.first_word(1 << 16); }, receive_all},
        {[](Liar& liar) { liar.ring.announce(0, Way::posted, 32769); }, receive_all},
        {[](Liar& liar) { liar.ring.announce(0, Way::written, ~0ULL); }, receive_all},
        {[](Liar& liar) {
             liar.ring.announce(0, Way::posted, 10);
             liar.post({.kind = FrameKind::message, .length = 20}, 64 + 20);
         },
         receive_all},
        {[](Liar& liar) { detail::store(liar.ring.words().lines_taken, std::uint64_t{17}); },
         by_stores(10)},
        {[](Liar& liar) { detail::store(liar.ring.words().lines_taken, ~0ULL); }, by_stores(10)},
        {[](Liar& liar) { detail::store(liar.ring.words().messages_taken, std::uint64_t{5}); },
         by_stores(500)}};
    for (std::size_t n = 0; n < lies.size(); ++n) {
        Met met = meet_liar({}, nothing);
        MessageChannel honest = must(std::move(met.honest));
        ASSERT_TRUE(honest.stores());
        lies[n].tell(*met.liar);
        const auto ended = lies[n].meet(honest);
        EXPECT_EQ(VIP_REJECT, ended.error().code()) << n << ' ' << ended.error().message();
        EXPECT_FALSE(honest.send({})) << "for ever";
        EXPECT_FALSE(honest.next());
    }
}

TEST_P(Lies, InMessagesEndTheChannel) {
    const std::vector<std::function<void(Liar&)>> lies{
        [](Liar& liar) { liar.post({}, 5); },
        [](Liar& liar) { liar.post({.kind = FrameKind{9}}); },
        [](Liar& liar) { liar.post(liar.honest_hello()); },
        [](Liar& liar) { liar.post({.kind = FrameKind::ready}); },
        [](Liar& liar) { liar.post({.kind = FrameKind::message, .length = 5}); },
        [](Liar& liar) { liar.post({.kind = FrameKind::answer, .number = 1}); },
        [](Liar& liar) { liar.post({.kind = FrameKind::taken, .number = 1}); },
        [](Liar& liar) { liar.post({.kind = FrameKind::large, .length = ~0ULL}); },
        [](Liar& liar) { liar.notify(0); },
        [](Liar& liar) { liar.notify(1); }};
    for (const auto change : {&nothing, &no_stores}) {
        for (std::size_t n = 0; n < lies.size(); ++n) {
            Met met = meet_liar({}, *change);
            MessageChannel honest = must(std::move(met.honest));
            lies[n](*met.liar);
            const auto ended = receive_all(honest);
            EXPECT_EQ(VIP_REJECT, ended.error().code()) << n << ' ' << ended.error().message();
        }
    }
    // More messages than it has room for.
    Met met = meet_liar({.receives = 4}, nothing);
    MessageChannel honest = must(std::move(met.honest));
    for (int n = 0; n < 5; ++n) met.liar->post({.kind = FrameKind::message});
    EXPECT_EQ(VIP_REJECT, receive_all(honest).error().code());
}

TEST_P(Lies, ALargeMessageThatNeverComesEndsTheChannel) {
    const auto ask = [](Liar& liar, bool stores) {
        if (stores)
            liar.ring.announce(0, Way::written, 100'000);
        else
            liar.post({.kind = FrameKind::large, .length = 100'000});
    };
    for (const auto change : {&nothing, &no_stores}) {
        {  // it dies
            Met met = meet_liar({}, *change);
            MessageChannel honest = must(std::move(met.honest));
            ask(*met.liar, honest.stores());
            auto receiving = std::async(std::launch::async, [&] { return receive_all(honest); });
            EXPECT_EQ(std::future_status::timeout, receiving.wait_for(20ms));
            met.liar.reset();
            EXPECT_TRUE(receiving.get().error().flushed());
        }
        {  // it only stops
            Met met = meet_liar({.transfer_timeout = 20ms}, *change);
            MessageChannel honest = must(std::move(met.honest));
            ask(*met.liar, honest.stores());
            EXPECT_EQ(VIP_TIMEOUT, receive_all(honest).error().code());
            EXPECT_EQ(VIP_INVALID_STATE, receive_all(honest).error().code());
        }
    }
    // Announced as a message of the VI, and does not come.
    Met met = meet_liar({.transfer_timeout = 20ms}, nothing);
    MessageChannel honest = must(std::move(met.honest));
    met.liar->ring.announce(0, Way::posted, 10);
    EXPECT_EQ(VIP_TIMEOUT, receive_all(honest).error().code());
}

/// It says that it takes messages, and posts no receives: what is posted here is never done.
TEST_P(Lies, ThatMessagesAreTakenEndTheChannel) {
    Met met = meet_liar({.transfer_timeout = 20ms}, nothing);
    MessageChannel honest = must(std::move(met.honest));
    detail::SharedWords& words = met.liar->ring.words();
    std::uint64_t sent = 0;
    while (honest.send(pattern(500, 1), patience)) {
        ASSERT_LT(++sent, 100U);
        detail::store(words.messages_taken, sent);
        detail::store(words.lines_taken, sent);
    }
    EXPECT_EQ(VIP_INVALID_STATE, honest.send(pattern(500, 1)).error().code());
    EXPECT_EQ(VIP_INVALID_STATE, receive_all(honest).error().code());
}

TEST_P(Lies, WhereThereIsNoMemoryNothingIsWritten) {
    Met met = meet_liar({}, nothing);
    MessageChannel honest = must(std::move(met.honest));
    detail::SharedWords& words = met.liar->ring.words();
    detail::store(words.answer_address, std::uint64_t{0x1000});
    detail::store(words.answer_handle, std::uint64_t{12345});
    detail::store(words.answer_number, std::uint64_t{1});
    EXPECT_FALSE(send_all(honest, 100'000));
    EXPECT_EQ(VIP_STATE_IDLE, must(honest.vi().status()).state);
}

}  // namespace
}  // namespace via::test::message_channel_test
