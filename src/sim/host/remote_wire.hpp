// What a process says to the one that owns the world, and hears from it: packets of one socket.
// Both are the same build of the same library on one machine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/address.hpp"
#include "base/extent.hpp"
#include "base/time.hpp"
#include "device/device.hpp"

namespace via::sim::remote {

/// The socket's path is in this variable.
constexpr const char* variable = "OPENVIA_LAB";
constexpr std::uint32_t version = 3;

enum class Kind : std::uint32_t {
    // Answered by `result`
    open,     ///< a NIC; value: version of the asker
    listen,   ///< discriminator
    reserve,  ///< room for a frame of header_length and payload_length
    wait,     ///< nothing can go on here before `time`, or until something comes, or one of the
              ///< hosts of `value` (bits of NICs) is no longer busy
    // Not answered
    close,
    posted,  ///< what VI `value` has posted to receive: extents follow
    resolve,
    unlisten,
    frame,  ///< for the room reserved: payload follows; cookie: where that lay
    transmit,
    close_for_violation,
    release,
    wants_room,
    poll,  ///< the program looked for completions
    wake,  ///< it waited for `time` from the beginning, and goes on
    // Answers
    event,    ///< a path event, before the result of wait
    arrival,  ///< a frame, before the result of wait: payload follows
    result,   ///< status; time: now; value: of wait the bits of NICs whose host is busy
};

struct Packet {
    Kind kind{};
    std::uint32_t nic = 0;
    std::uint32_t path = 0;
    std::uint32_t value = 0;
    Status status = Status::success;
    device::PathEventKind event{};
    std::uint32_t header_length = 0;
    std::uint32_t payload_length = 0;  ///< bytes that follow
    std::uint64_t cookie = 0;
    Time time{};
    NetAddress address{};  ///< of resolve, listen, unlisten; the own one of open
    std::byte header[device::Frame::inline_max]{};
};

/// A descriptor of a socket that keeps packets whole.
class Line {
public:
    explicit Line(int descriptor) : descriptor_(descriptor) {}
    ~Line();
    Line(const Line&) = delete;
    Line& operator=(const Line&) = delete;

    int descriptor() const { return descriptor_; }
    /// False: the other one is gone.
    bool send(Packet packet, std::span<const std::byte> payload = {});
    /// False: the other one is gone, or does not speak as it should. Waits.
    bool receive(Packet& packet, std::vector<std::byte>& payload);

private:
    int descriptor_;
};

}  // namespace via::sim::remote
