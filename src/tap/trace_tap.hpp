// Prints every frame and path event that passes, one line each, in the order in which the NIC and
// its device exchange them.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "tap/tap.hpp"

namespace via::tap {

/// Gets one line without its end; must not call the device.
using TraceSink = std::function<void(std::string_view line)>;

/// Lines: "> path 0 send first last vi=65536 message=0 length=8" for a frame that is transmitted,
/// "< path 0 ..." for one received, "event path 0 up" and the like. A frame that the device takes
/// in one call is printed then. They hold no address of memory, so that equal runs print equal
/// lines.
class TraceTap final : public Tap, public device::SmallSends {
public:
    TraceTap(std::unique_ptr<device::Device> below, TraceSink sink);

    bool reserve(device::PathId path, std::uint32_t header_length, std::uint32_t payload_length,
                 device::FrameSlot& slot) override;
    device::SmallSends* small_sends() override { return small_below_ != nullptr ? this : nullptr; }
    std::uint32_t send_small(device::PathId path, std::uint64_t low, std::uint64_t high,
                             const std::byte* payload, std::uint32_t length, bool alone) override;
    std::uint32_t send_pieces(device::PathId path, std::uint64_t low, std::uint64_t high,
                              const Pieces& payload) override;
    void transmit(device::PathId path) override;
    std::size_t receive(std::span<device::Frame> frames) override;
    void close_for_violation(device::PathId path, const char* reason) override;
    bool next_event(device::PathEvent& event) override;

private:
    struct Staged {
        device::PathId path;
        const std::byte* header;
        std::uint32_t header_length;
        std::uint32_t payload_length;
    };
    void print_frame(const char* direction, device::PathId path, const std::byte* header,
                     std::uint32_t length, std::uint32_t payload_length);
    void print_small(device::PathId path, std::uint64_t low, std::uint64_t high,
                     std::uint32_t payload_length);

    TraceSink sink_;
    device::SmallSends* small_below_;  ///< of the device below, or nullptr
    std::vector<Staged> staged_;       ///< reserved, still being filled
};

}  // namespace via::tap
