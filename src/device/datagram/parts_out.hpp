// The way out of frames that were cut when packets were longer.
#pragma once

#include <cstdint>

#include "base/list.hpp"
#include "device/datagram/path.hpp"
#include "device/datagram/shares.hpp"
#include "device/datagram/staging.hpp"
#include "device/device.hpp"

namespace via::device::datagram {

/// Owns which paths send a frame in parts: the oldest one, which the receiver waits for.
class PartsOut {
public:
    PartsOut(Shares& shares, Staging& staging) : shares_(shares), staging_(staging) {}
    ~PartsOut();
    PartsOut(const PartsOut&) = delete;
    PartsOut& operator=(const PartsOut&) = delete;

    bool may_begin(const Path& path, std::uint32_t frame, std::uint32_t length) const;
    bool reserve(Path& path, std::uint32_t header_length, std::uint32_t length, FrameSlot& slot);
    bool empty() { return parted_.empty(); }
    /// Makes packets of them, as many as the windows allow.
    void stage();
    /// Would stage() make some?
    bool has_to_send();
    /// Behind an acknowledgement. True: by it the frame arrived.
    bool end_if_arrived(Path& path);
    void end(Path& path);

private:
    static Path* rail_for(Path& path, std::uint32_t length);
    void stage(Path& path);

    Shares& shares_;
    Staging& staging_;
    List<Path, PartsLink> parted_;
};

}  // namespace via::device::datagram
