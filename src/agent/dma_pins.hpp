// Pages that the kernel neither swaps out nor moves to other frames: buffers registered with an
// io_uring that is used for nothing else. The Linux of today gives a program no other way to pin
// memory for as long as it likes (docs/design/memory.md).
#pragma once

#include <cstdint>
#include <expected>
#include <mutex>
#include <string>
#include <vector>

#include "agent/file.hpp"
#include "agent/lock_system.hpp"

namespace via::agent {

/// Any thread.
class DmaPins {
public:
    static constexpr std::uint32_t buffers_max = 1U << 14;  ///< the kernel's, of one ring
    static constexpr std::uint64_t buffer_bytes_max = 1ULL << 30;
    static constexpr std::uint64_t present_bytes = 16ULL << 20;  ///< made present at a time

    explicit DmaPins(LockSystem& system) : system_(system) {}

    /// Pins the pages of [address, address + length), length > 0; as often as it is called. Returns
    /// the buffers' numbers, for unpin(); or what is wrong, and then nothing is pinned. Throws
    /// bad_alloc, with nothing pinned.
    std::expected<std::vector<std::uint32_t>, std::string> pin(std::uint64_t address,
                                                               std::uint64_t length);
    void unpin(const std::vector<std::uint32_t>& buffers);

private:
    std::string open();
    int update(std::uint32_t buffer, std::uint64_t address, std::uint64_t length);
    void make_present(std::uint64_t address, std::uint64_t length);
    void release(const std::vector<std::uint32_t>& buffers);
    static std::string all_in_use();
    std::string why(int error) const;

    LockSystem& system_;
    std::mutex mutex_;
    File ring_;
    std::vector<std::uint32_t> free_;  ///< room for all, so that giving back takes no memory
};

}  // namespace via::agent
