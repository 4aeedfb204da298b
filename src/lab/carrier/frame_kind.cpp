#include "lab/carrier/frame_kind.hpp"

#include "base/assert.hpp"
#include "wire/frame.hpp"

namespace via::lab::carrier {
namespace {

/// Nothing of it goes to the host's memory but, perhaps, the news.
Landing told(bool reports) { return {false, false, reports, 0}; }

/// A message longer than a frame: where it lies at the receiver is not known here, so its pages are
/// counted from the beginning of one.
Landing behind_the_first(const wire::Header& header) {
    return {false, true, header.has(wire::flag::last), header.offset};
}

Landing written(const wire::Header& header) {
    const bool consumes = header.has(wire::flag::last) && header.has(wire::flag::immediate);
    const std::uint64_t address = header.remote_address + header.offset;
    return {consumes, true, consumes, static_cast<std::int64_t>(address)};
}

}  // namespace

FrameUse use_of(const std::byte* bytes, std::size_t length) {
    wire::Header header;
    const wire::ParseError error = wire::parse(bytes, length, header);
    VIA_ASSERT(error == wire::ParseError::none);
    const std::uint32_t vi = header.vi & 0xFFFF;
    switch (header.kind) {
        case wire::FrameKind::send:
            if (header.has(wire::flag::first)) return {Maker::program, vi, Landing{}};
            return {Maker::program, vi, behind_the_first(header)};
        case wire::FrameKind::rdma_write:
            return {Maker::program, vi, written(header), true};
        case wire::FrameKind::read_request:  // served by the firmware there
            return {Maker::program, vi, told(false)};
        case wire::FrameKind::read_reply:
            return {Maker::firmware, vi, behind_the_first(header)};
        case wire::FrameKind::ack:
        case wire::FrameKind::nak:  // a send is over
            return {Maker::firmware, vi, told(true)};
        case wire::FrameKind::credit:
        case wire::FrameKind::pulled:
        case wire::FrameKind::skip:
            return {Maker::firmware, vi, told(false)};
        default:
            return {Maker::driver, vi, told(true)};
    }
}

}  // namespace via::lab::carrier
