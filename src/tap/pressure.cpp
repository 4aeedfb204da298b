#include "tap/pressure.hpp"

#include "base/assert.hpp"

namespace via::tap {

Pressure::Pressure(std::unique_ptr<device::Device> below, const PressureOptions& options)
    : Tap(std::move(below)),
      options_(options),
      random_(options.seed),
      small_random_(~options.seed),
      small_below_(Tap::below().small_sends()) {
    VIA_ASSERT(options.refuse_percent < 100);
}

bool Pressure::refuses(Random& random) {
    const bool refused = random.chance(options_.refuse_percent);
    if (refused) ++refused_;
    return refused;
}

bool Pressure::reserve(device::PathId path, std::uint32_t header_length,
                       std::uint32_t payload_length, device::FrameSlot& slot) {
    return !refuses(random_) && below().reserve(path, header_length, payload_length, slot);
}

std::uint32_t Pressure::send_small(device::PathId path, std::uint64_t low, std::uint64_t high,
                                   const std::byte* payload, std::uint32_t length, bool alone) {
    return refuses(small_random_)
               ? not_sent
               : small_below_->send_small(path, low, high, payload, length, alone);
}

std::uint32_t Pressure::send_pieces(device::PathId path, std::uint64_t low, std::uint64_t high,
                                    const Pieces& payload) {
    return refuses(small_random_) ? not_sent : small_below_->send_pieces(path, low, high, payload);
}

std::size_t Pressure::receive(std::span<device::Frame> frames) {
    // At least one: a device that had something must not seem empty for ever.
    if (frames.size() > 1 && random_.chance(options_.short_percent)) {
        ++shortened_;
        return below().receive(frames.first(1));
    }
    return below().receive(frames);
}

}  // namespace via::tap
