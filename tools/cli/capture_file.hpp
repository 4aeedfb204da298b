// Captures of packets as pcap files, and where in each a UDP datagram's bytes are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace via::cli {

struct CapturedPacket {
    std::uint32_t seconds = 0;
    std::uint32_t fraction = 0;         ///< as the file has it
    std::uint32_t original_length = 0;  ///< longer than bytes, where the capture was cut
    std::vector<std::byte> bytes;
};

struct Capture {
    std::vector<std::byte> header;  ///< the file's
    std::uint32_t link_type = 0;
    std::vector<CapturedPacket> packets;
};

/// Error: why not, with the file's name.
std::expected<Capture, std::string> read_capture(const std::string& path);
std::expected<void, std::string> write_capture(const std::string& path, const Capture& capture);

/// Where the payload of a UDP datagram begins that is there in one piece and whole. Nothing: it is
/// something else.
std::optional<std::size_t> udp_payload(std::uint32_t link_type, std::span<const std::byte> packet);
/// Another payload in its place: lengths and checksums of IP and UDP say so.
void set_udp_payload(std::uint32_t link_type, CapturedPacket& packet,
                     std::span<const std::byte> payload);

}  // namespace via::cli
