// What the wire does to frames: the shares that were asked for, and the kinds of corruption.
#include "wire.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <numeric>

namespace weather::wire_test {

namespace {

constexpr int frames = 20'000;
constexpr std::size_t frame_bytes = 100;

struct Arrival {
    int number;
    bool intact;
    std::int64_t at_ns;
};

Bytes frame_of(int number) {
    Bytes bytes(frame_bytes);
    for (std::size_t n = 0; n < bytes.size(); ++n) bytes[n] = static_cast<std::byte>(n);
    std::memcpy(bytes.data(), &number,
                sizeof number);  // where Ethernet's header is: never corrupted
    return bytes;
}

/// One frame each microsecond.
std::vector<Arrival> arrivals(const Weather& weather) {
    Wire wire(weather, 1);
    std::vector<Arrival> all;
    const auto until = [&](std::int64_t now) {
        return wire.leave(now, [&](const Bytes& bytes) {
            int number = 0;
            std::memcpy(&number, bytes.data(), sizeof number);
            all.push_back({number, bytes == frame_of(number), now});
        });
    };
    for (int number = 0; number < frames; ++number) {
        wire.enter(frame_of(number), number * 1000);
        until(number * 1000);
    }
    for (std::int64_t now = frames * 1000; now >= 0;) now = until(now);
    return all;
}

/// As a share of all frames.
double share(const std::vector<Arrival>& all, bool (*counts)(const Arrival&, const Arrival&)) {
    int count = 0;
    for (std::size_t n = 1; n < all.size(); ++n) count += counts(all[n - 1], all[n]) ? 1 : 0;
    return 100.0 * count / frames;
}

TEST(Wire, CarriesEverythingInOrderInFineWeather) {
    const auto all = arrivals({.delay_us = 500});
    ASSERT_EQ(all.size(), static_cast<std::size_t>(frames));
    for (int number = 0; number < frames; ++number) {
        const Arrival& one = all[static_cast<std::size_t>(number)];
        ASSERT_EQ(one.number, number);
        ASSERT_TRUE(one.intact);
        ASSERT_GE(one.at_ns, number * 1000 + 500'000);
    }
}

TEST(Wire, LosesTheShareThatWasAskedForAloneAndInBursts) {
    for (const double burst : {1.0, 5.0}) {
        const auto all = arrivals({.loss_percent = 20, .burst_frames = burst});
        EXPECT_NEAR(100.0 * static_cast<double>(all.size()) / frames, 80, 2);
        const double gaps = share(all, [](const Arrival& before, const Arrival& one) {
            return one.number > before.number + 1;
        });
        EXPECT_NEAR(gaps, burst > 1 ? 20 / burst : 16, 1);
    }
    EXPECT_TRUE(arrivals({.loss_percent = 100}).empty());
}

TEST(Wire, DoublesDamagesAndHoldsBack) {
    EXPECT_NEAR(100.0 * static_cast<double>(arrivals({.duplicate_percent = 10}).size()) / frames,
                110, 1);
    EXPECT_NEAR(share(arrivals({.corrupt_percent = 10}),
                      [](const Arrival&, const Arrival& one) { return !one.intact; }),
                10, 1);
    const auto reordered = arrivals({.reorder_percent = 10, .held_us = 100});
    EXPECT_EQ(reordered.size(), static_cast<std::size_t>(frames));
    EXPECT_GT(share(reordered, [](const Arrival& before,
                                  const Arrival& one) { return one.number < before.number; }),
              5);
}

TEST(Wire, CarriesWhatLooksForNeighboursWhateverTheWeather) {
    Wire wire({.loss_percent = 100}, 1);
    Bytes arp(60);
    arp[12] = std::byte{8};
    arp[13] = std::byte{6};
    Bytes ipv6(90);
    ipv6[12] = std::byte{0x86};
    ipv6[13] = std::byte{0xDD};
    ipv6[20] = std::byte{58};
    for (const Bytes& frame : {arp, ipv6, frame_of(1)}) wire.enter(frame, 0);
    std::vector<Bytes> came;
    wire.leave(0, [&](const Bytes& frame) { came.push_back(frame); });
    EXPECT_EQ(came, (std::vector{arp, ipv6}));
}

TEST(Wire, DropsWhatDoesNotFitIntoTheQueueOfARate) {
    // 100 bytes each microsecond are 800 megabits a second.
    const auto all = arrivals({.megabits = 400, .queue_bytes = 10'000});
    EXPECT_NEAR(100.0 * static_cast<double>(all.size()) / frames, 50, 1);
}

}  // namespace

}  // namespace weather::wire_test
