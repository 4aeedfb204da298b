// The window over links of a given rate: what is left of it for frames, and how long the queue is.
#include "base/random.hpp"
#include "device/datagram/device_pair_test.hpp"

namespace via::device::datagram::test::bottleneck_test {
namespace {

struct Bottleneck : ::testing::Test, Scene {
    Random random{1};
    std::int64_t bytes_per_second = 125'000'000;
    Duration way = milliseconds(1);
    std::uint64_t queue_bytes = 1'000'000;
    std::uint64_t loss_per_mille = 0;

    Time free_at{};
    Duration longest_queue{};
    std::uint64_t overflowed = 0;

    void build() {
        a.port().room = b.port().room = 4U << 20;
        b.port().keep_max = 4096;
        network.weather = [this](const Datagram& datagram) {
            const auto bytes = static_cast<std::int64_t>(datagram.bytes.size() + 46);
            if (random.below(1000) < loss_per_mille) return Fate{};
            if (datagram.from.bytes[3] != 1) return Fate{way};
            const Time start = std::max(free_at, network.now);
            const Duration queue = start - network.now;
            if (static_cast<std::uint64_t>(queue.ns / 1000 * (bytes_per_second / 1000) / 1000) >
                queue_bytes) {
                ++overflowed;
                return Fate{};
            }
            longest_queue = std::max(longest_queue, queue);
            free_at = start + Duration{bytes * 1'000'000'000 / bytes_per_second};
            return Fate{free_at - network.now + way};
        };
        meet();
        network.log.clear();
    }
    /// Bytes a second that arrive while there is always more to send.
    double goodput(Duration span) {
        std::uint64_t bytes = 0;
        b.on_message = [&](const std::string& message) { bytes += message.size(); };
        const Time begin = network.now;
        const std::string message(1400, 'x');
        while (network.now - begin < span) {
            while (a.waiting() < 64) a.send(message);
            run(microseconds(100));
            network.log.clear();
            b.received.clear();
            a.arrived.clear();
        }
        b.on_message = nullptr;
        return static_cast<double>(bytes) * 1e9 / static_cast<double>((network.now - begin).ns);
    }
};

// Of a gigabit link messages get 92 %: the rest are headers.

TEST_F(Bottleneck, near) {
    way = microseconds(10);
    build();
    EXPECT_GT(goodput(milliseconds(100)), 0.9 * 125e6);
    EXPECT_LT(longest_queue.ns, milliseconds(2).ns) << "it doubled until there was one";
    longest_queue = {};
    EXPECT_GT(goodput(milliseconds(100)), 0.9 * 125e6);
    EXPECT_LT(longest_queue.ns, milliseconds(1).ns) << "a quarter of a millisecond is aimed at";
    EXPECT_EQ(a.device->statistics(a.path).packets_lost, 0U);
}

TEST_F(Bottleneck, far) {
    build();
    goodput(milliseconds(200));
    longest_queue = {};
    EXPECT_GT(goodput(milliseconds(500)), 0.9 * 125e6);
    EXPECT_LT(longest_queue.ns, way.ns) << "a quarter of the round trip is aimed at";
    EXPECT_EQ(overflowed, 0U);
}

TEST_F(Bottleneck, a_queue_too_short_for_the_delay_to_show) {
    queue_bytes = 30'000;
    build();
    goodput(milliseconds(200));
    EXPECT_GT(goodput(milliseconds(500)), 0.8 * 125e6);
}

TEST_F(Bottleneck, one_percent_lost) {
    loss_per_mille = 10;
    build();
    goodput(milliseconds(200));
    // What a Reno sender gets there: 1.22 packets / (round trip * sqrt(loss)).
    const double textbook = 1.22 * 1400 / (0.002 * 0.1);
    EXPECT_GT(goodput(milliseconds(500)), 4 * textbook);
}

TEST_F(Bottleneck, a_fifth_lost) {
    loss_per_mille = 200;
    build();
    const double textbook = 1.22 * 1400 / (0.002 * 0.447);
    EXPECT_GT(goodput(seconds(1)), 2 * textbook);
}

TEST_F(Bottleneck, across_a_continent) {
    bytes_per_second = 12'500'000;
    way = milliseconds(25);
    build();
    goodput(seconds(2));
    EXPECT_GT(goodput(seconds(2)), 0.85 * 12.5e6);
}

}  // namespace
}  // namespace via::device::datagram::test::bottleneck_test
