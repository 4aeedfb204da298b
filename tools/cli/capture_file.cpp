#include "capture_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>

namespace via::cli {
namespace {

constexpr std::size_t file_header_length = 24;
constexpr std::size_t record_header_length = 16;
constexpr std::uint32_t magic_micro = 0xA1B2'C3D4;
constexpr std::uint32_t magic_nano = 0xA1B2'3C4D;
constexpr std::uint32_t magic_pcapng = 0x0A0D'0D0A;
constexpr std::size_t packet_length_max = 1 << 20;
constexpr std::size_t udp_header_length = 8;
constexpr std::size_t ipv6_header_length = 40;
constexpr unsigned udp_protocol = 17;

using Bytes = std::span<const std::byte>;

std::uint32_t word_at(Bytes bytes, std::size_t at) {
    std::uint32_t word = 0;
    std::memcpy(&word, bytes.data() + at, sizeof word);
    return word;
}
unsigned byte_at(Bytes bytes, std::size_t at) { return std::to_integer<unsigned>(bytes[at]); }
unsigned short_at(Bytes bytes, std::size_t at) {
    return byte_at(bytes, at) << 8 | byte_at(bytes, at + 1);
}
void put_short(std::span<std::byte> bytes, std::size_t at, std::size_t value) {
    bytes[at] = static_cast<std::byte>(value >> 8 & 0xFF);
    bytes[at + 1] = static_cast<std::byte>(value & 0xFF);
}

/// Of what comes before the network's header. Nothing: such links are not known here.
std::optional<std::size_t> link_header_length(std::uint32_t link_type, Bytes packet) {
    switch (link_type) {
        case 0:  // of BSD's loopback
            return 4;
        case 1: {  // Ethernet, with tags of virtual networks
            std::size_t at = 12;
            while (packet.size() > at + 2 &&
                   (short_at(packet, at) == 0x8100 || short_at(packet, at) == 0x88A8))
                at += 4;
            return at + 2;
        }
        case 101:  // IP alone
        case 228:
        case 229:
            return 0;
        case 113:  // "any" of Linux
            return 16;
        case 276:
            return 20;
        default:
            return std::nullopt;
    }
}

/// Where a datagram's headers are.
struct Place {
    std::size_t network = 0;
    std::size_t transport = 0;
    bool is_ipv6 = false;
    bool is_well = false;
};

Place find_udp(std::uint32_t link_type, Bytes packet) {
    Place place;
    const auto link = link_header_length(link_type, packet);
    if (!link || packet.size() < *link + 20) return place;
    place.network = *link;
    const unsigned version = byte_at(packet, *link) >> 4;
    std::size_t end = 0;
    if (version == 4) {
        place.transport = *link + 4 * std::size_t{byte_at(packet, *link) & 15};
        end = *link + short_at(packet, *link + 2);
        const bool is_fragment = (short_at(packet, *link + 6) & 0x3FFF) != 0;
        if (byte_at(packet, *link + 9) != udp_protocol || is_fragment) return place;
    } else if (version == 6 && packet.size() >= *link + ipv6_header_length) {
        place.is_ipv6 = true;
        place.transport = *link + ipv6_header_length;
        end = place.transport + short_at(packet, *link + 4);
        if (byte_at(packet, *link + 6) != udp_protocol) return place;
    } else {
        return place;
    }
    place.is_well = place.transport >= *link + 20 && place.transport + udp_header_length <= end &&
                    end <= packet.size() &&
                    place.transport + short_at(packet, place.transport + 4) == end;
    return place;
}

/// The sum of the internet's checksums, not folded.
std::uint32_t sum_of(Bytes bytes, std::uint32_t sum = 0) {
    for (std::size_t n = 0; n < bytes.size(); ++n)
        sum += n % 2 == 0 ? byte_at(bytes, n) << 8 : byte_at(bytes, n);
    return sum;
}
unsigned checksum_of(std::uint32_t sum) {
    while (sum > 0xFFFF) sum = (sum & 0xFFFF) + (sum >> 16);
    return ~sum & 0xFFFF;
}

/// "": all was read.
std::string read_packets(Bytes file, Capture& capture) {
    for (std::size_t at = file_header_length; at < file.size();) {
        if (file.size() - at < record_header_length) return "it ends within a packet";
        const std::uint32_t length = word_at(file, at + 8);
        if (length > packet_length_max) return "a packet is longer than any";
        if (file.size() - at - record_header_length < length) return "it ends within a packet";
        const Bytes bytes = file.subspan(at + record_header_length, length);
        capture.packets.push_back({word_at(file, at),
                                   word_at(file, at + 4),
                                   word_at(file, at + 12),
                                   {bytes.begin(), bytes.end()}});
        at += record_header_length + length;
    }
    return {};
}

}  // namespace

std::expected<Capture, std::string> read_capture(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    if (!in) return std::unexpected(path + ": " + strerror(errno));
    const std::string text{std::istreambuf_iterator<char>(in), {}};
    if (in.bad()) return std::unexpected(path + ": it cannot be read");
    const Bytes file = std::as_bytes(std::span(text));
    const std::uint32_t magic = file.size() < file_header_length ? 0 : word_at(file, 0);
    if (magic == magic_pcapng)
        return std::unexpected(path +
                               ": it is a pcapng file; editcap -F pcap makes a pcap file of "
                               "it");
    if (magic != magic_micro && magic != magic_nano)
        return std::unexpected(path + ": it is not a pcap file of a little-endian machine");
    Capture capture;
    capture.header.assign(file.begin(), file.begin() + file_header_length);
    capture.link_type = word_at(file, 20) & 0xFFFF;
    if (!link_header_length(capture.link_type, {}))
        return std::unexpected(path + ": links of type " + std::to_string(capture.link_type) +
                               " are not known here");
    const std::string fault = read_packets(file, capture);
    if (!fault.empty()) return std::unexpected(path + ": " + fault);
    return capture;
}

std::expected<void, std::string> write_capture(const std::string& path, const Capture& capture) {
    // What was secret is for its reader alone.
    const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (file < 0) return std::unexpected(path + ": " + strerror(errno));
    std::vector<std::byte> bytes = capture.header;
    for (const CapturedPacket& packet : capture.packets) {
        const auto length = static_cast<std::uint32_t>(packet.bytes.size());
        const std::uint32_t head[] = {packet.seconds, packet.fraction, length,
                                      packet.original_length};
        const Bytes header = std::as_bytes(std::span(head));
        bytes.insert(bytes.end(), header.begin(), header.end());
        bytes.insert(bytes.end(), packet.bytes.begin(), packet.bytes.end());
    }
    std::string fault;
    for (std::size_t at = 0; at < bytes.size() && fault.empty();) {
        const ssize_t written = write(file, bytes.data() + at, bytes.size() - at);
        if (written < 0 && errno != EINTR) fault = strerror(errno);
        at += written > 0 ? static_cast<std::size_t>(written) : 0;
    }
    if (close(file) != 0 && fault.empty()) fault = strerror(errno);
    if (!fault.empty()) return std::unexpected(path + ": " + fault);
    return {};
}

std::optional<std::size_t> udp_payload(std::uint32_t link_type, Bytes packet) {
    const Place place = find_udp(link_type, packet);
    if (!place.is_well) return std::nullopt;
    return place.transport + udp_header_length;
}

void set_udp_payload(std::uint32_t link_type, CapturedPacket& packet, Bytes payload) {
    const Place place = find_udp(link_type, packet.bytes);
    const std::size_t length = udp_header_length + payload.size();
    packet.bytes.resize(place.transport + udp_header_length);
    packet.bytes.insert(packet.bytes.end(), payload.begin(), payload.end());
    packet.original_length = static_cast<std::uint32_t>(packet.bytes.size());
    const std::span<std::byte> bytes = packet.bytes;
    put_short(bytes, place.transport + 4, length);
    put_short(bytes, place.transport + 6, 0);
    if (!place.is_ipv6) {  // where UDP may be without a checksum
        put_short(bytes, place.network + 2, place.transport - place.network + length);
        put_short(bytes, place.network + 10, 0);
        const Bytes header = bytes.subspan(place.network, place.transport - place.network);
        return put_short(bytes, place.network + 10, checksum_of(sum_of(header)));
    }
    put_short(bytes, place.network + 4, length);
    const std::uint32_t pseudo = sum_of(bytes.subspan(place.network + 8, 32),
                                        static_cast<std::uint32_t>(length) + udp_protocol);
    const unsigned checksum = checksum_of(sum_of(bytes.subspan(place.transport), pseudo));
    put_short(bytes, place.transport + 6, checksum == 0 ? 0xFFFF : checksum);
}

}  // namespace via::cli
