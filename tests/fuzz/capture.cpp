// A capture of packets as anybody may have written it, and packets in it as strangers may have sent
// them: `via keys decrypt` reads both. A datagram's payload lies within its packet; another one in
// its place is found there again; what was written is read as it was.
#include <algorithm>
#include <string>

#include "capture_file.hpp"
#include "input.hpp"
#include "memory_file.hpp"

using namespace via;
using fuzz::require;

namespace {

using Bytes = std::span<const std::byte>;

/// What UDP's header says of the length, without that header.
std::size_t payload_length(Bytes packet, std::size_t at) {
    return (std::to_integer<std::size_t>(packet[at - 4]) << 8 |
            std::to_integer<std::size_t>(packet[at - 3])) -
           8;
}

/// Half of the payload in the place of all.
void change(std::uint32_t link_type, cli::CapturedPacket& packet) {
    const auto at = cli::udp_payload(link_type, packet.bytes);
    if (!at) return;
    require(*at >= 8 && *at <= packet.bytes.size(), "a payload begins within its packet");
    const std::size_t length = payload_length(packet.bytes, *at);
    require(*at + length <= packet.bytes.size(), "it ends there");
    const Bytes all = Bytes(packet.bytes).subspan(*at, length / 2);
    const std::vector<std::byte> half(all.begin(), all.end());
    cli::set_udp_payload(link_type, packet, half);
    require(cli::udp_payload(link_type, packet.bytes) == at, "it is found where it was");
    require(packet.bytes.size() == *at + half.size() &&
                payload_length(packet.bytes, *at) == half.size() &&
                std::ranges::equal(Bytes(packet.bytes).subspan(*at), half),
            "it is what was put there");
}

bool same(const cli::CapturedPacket& one, const cli::CapturedPacket& other) {
    return one.seconds == other.seconds && one.fraction == other.fraction &&
           one.original_length == other.original_length && one.bytes == other.bytes;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    auto capture = cli::read_capture(fuzz::MemoryFile(std::as_bytes(std::span(data, size))).path());
    if (!capture) {
        require(!capture.error().empty(), "it is said why a capture is refused");
        return 0;
    }
    for (cli::CapturedPacket& packet : capture->packets) change(capture->link_type, packet);
    const fuzz::MemoryFile written({});
    require(cli::write_capture(written.path(), *capture).has_value(), "it can be written");
    const auto again = cli::read_capture(written.path());
    require(again && again->header == capture->header && again->link_type == capture->link_type &&
                std::ranges::equal(again->packets, capture->packets, same),
            "what was written is read as it was");
    return 0;
}
