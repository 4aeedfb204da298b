// The two UDP sockets of a pair, or this side's one, connected.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "bench/file_handle.hpp"
#include "bench/places.hpp"
#include "bench/types.hpp"

namespace via::bench {

// Each waits so long for what must come.
inline constexpr std::int64_t udp_lost_after_ns = 2'000'000'000;

// What a datagram costs of the receiver's buffer, generously: the kernel counts its own
// structures and rounds data up.
inline std::uint64_t udp_buffer_cost(std::uint64_t bytes) { return 2 * bytes + 2048; }

class UdpSockets {
public:
    // `places` outlive it.
    explicit UdpSockets(const Places& places) : places_(places) {}

    // Both, connected to each other; between machines only this side's, not yet connected.
    Status open();
    void drop() {
        for (FileHandle& end : ends_) end.reset();
    }
    // That one; the other one is closed.
    int keep(std::size_t side) {
        ends_[1 - side].reset();
        return ends_[side].get();
    }
    // What the receiver's may hold. 0: not open yet.
    std::uint64_t buffer_bytes() const { return buffer_bytes_; }
    // Empty, or why datagrams of that length cannot be sent with a window.
    std::string refuse(std::uint64_t datagram_bytes) const;

private:
    Status bind_one(std::size_t side);

    const Places& places_;
    std::array<FileHandle, 2> ends_;
    std::uint64_t buffer_bytes_ = 0;
};

}  // namespace via::bench
