// One direction of a wire: what becomes of each frame, and when it leaves. It has no clock and no
// socket; what it draws comes from a seed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <random>
#include <span>
#include <string>
#include <vector>

namespace weather {

using Bytes = std::vector<std::byte>;

struct Weather {
    double delay_us = 0;
    double loss_percent = 0;
    double burst_frames = 1;  ///< lost one behind the other, in the mean
    double duplicate_percent = 0;
    double corrupt_percent = 0;
    double reorder_percent = 0;  ///< held back, while others overtake them
    double held_us = 1000;       ///< for how long, at most
    double megabits = 0;         ///< 0: as fast as it goes
    std::uint32_t queue_bytes = 256 * 1024;
};

class Wire {
public:
    Wire(const Weather& weather, std::uint64_t seed) : weather_(weather), random_(seed) {}

    void enter(std::span<const std::byte> frame, std::int64_t now_ns);
    /// Gives `send` what is due; the moment of the next one, or -1.
    template <class Send>
    std::int64_t leave(std::int64_t now_ns, Send send) {
        for (; !frames_.empty() && frames_.begin()->first <= now_ns; ++carried_) {
            send(frames_.begin()->second);
            frames_.erase(frames_.begin());
        }
        return frames_.empty() ? -1 : frames_.begin()->first;
    }
    std::string told() const;

private:
    bool happens(double percent) { return chance_(random_) * 100 < percent; }
    bool is_lost();
    void corrupt(Bytes& frame);
    void carry(std::span<const std::byte> frame, std::int64_t now_ns);

    const Weather weather_;
    std::mt19937_64 random_;
    std::uniform_real_distribution<double> chance_{0, 1};
    std::multimap<std::int64_t, Bytes> frames_;  ///< by the moment when they leave
    std::int64_t free_ns_ = 0;
    std::uint64_t burst_left_ = 0;
    std::uint64_t carried_ = 0;
    std::uint64_t lost_ = 0;
    std::uint64_t overflowed_ = 0;
    std::uint64_t duplicated_ = 0;
    std::uint64_t corrupted_ = 0;
    std::uint64_t held_ = 0;
};

}  // namespace weather
