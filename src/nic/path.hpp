// A way to a peer NIC: the device that has it, and the device's own number.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "device/device.hpp"
#include "engine/vi.hpp"

namespace via::nic {

struct alignas(32) Path {
    device::Device* device = nullptr;
    device::SmallSends* small_sends = nullptr;  ///< the device's, or one that sends nothing
    device::PathId local = 0;
    bool waiting_for_room = false;
    bool violates = false;
};

constexpr std::uint32_t paths_per_device_bits = 12;

/// The engine's number of it.
constexpr engine::PathId path_id(std::size_t device, device::PathId local) {
    return static_cast<engine::PathId>(device << paths_per_device_bits) | local;
}
/// A number that devices may have: others would be another device's path.
constexpr bool is_path(device::PathId local) { return local >> paths_per_device_bits == 0; }

/// Owns what devices but the first found. Somebody who begins to listen does so on the first device
/// first. So whoever was found on another one is looked for on the first once more: it may not have
/// listened there before.
class FoundPaths {
public:
    void add(std::uint64_t cookie, engine::PathId path) { found_.push_back({cookie, path}); }
    /// no_path: nothing was found for that VI.
    engine::PathId take(std::uint64_t cookie);
    void forget(engine::PathId path);

private:
    struct Found {
        std::uint64_t cookie;
        engine::PathId path;
    };
    std::vector<Found> found_;
};

}  // namespace via::nic
