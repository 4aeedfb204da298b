// A device that is often out of room and hands over little at a time: finds engines that take
// back-pressure for an error, or believe that one receive() empties a device.
#pragma once

#include <cstdint>

#include "base/random.hpp"
#include "tap/tap.hpp"

namespace via::tap {

struct PressureOptions {
    std::uint64_t seed = 0;
    std::uint32_t refuse_percent = 30;  ///< of all calls that need room, below 100
    std::uint32_t short_percent = 30;   ///< of all calls to receive() that get one frame at most
};

/// Takes no capability away: nothing is lost, order is kept. A refusal has no cause that could go
/// away, so has_work() tells whoever waits for room to ask again.
class Pressure final : public Tap, public device::SmallSends {
public:
    Pressure(std::unique_ptr<device::Device> below, const PressureOptions& options);

    bool reserve(device::PathId path, std::uint32_t header_length, std::uint32_t payload_length,
                 device::FrameSlot& slot) override;
    device::SmallSends* small_sends() override { return small_below_ != nullptr ? this : nullptr; }
    std::uint32_t send_small(device::PathId path, std::uint64_t low, std::uint64_t high,
                             const std::byte* payload, std::uint32_t length, bool alone) override;
    std::uint32_t send_pieces(device::PathId path, std::uint64_t low, std::uint64_t high,
                              const Pieces& payload) override;
    std::size_t receive(std::span<device::Frame> frames) override;

    std::uint64_t refused() const { return refused_; }
    std::uint64_t shortened() const { return shortened_; }

private:
    bool refuses(Random& random);

    PressureOptions options_;
    Random random_;
    Random small_random_;  ///< of what is sent in one call; whether it is changes nothing else
    device::SmallSends* small_below_;  ///< of the device below, or nullptr
    std::uint64_t refused_ = 0;
    std::uint64_t shortened_ = 0;
};

}  // namespace via::tap
