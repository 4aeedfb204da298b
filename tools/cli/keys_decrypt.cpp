// `via keys decrypt`: opens the packets of a capture whose keys were logged, so that the dissector
// reads them.
#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agent/key_log.hpp"
#include "capture_file.hpp"
#include "commands.hpp"
#include "console/output.hpp"
#include "secure/libcrypto/libcrypto.hpp"
#include "secure/packet_reader.hpp"
#include "wire/bytes.hpp"
#include "wire/envelope.hpp"
#include "wire/sealed.hpp"

namespace via::cli {
namespace {

namespace sealed = wire::sealed;
using Bytes = std::span<const std::byte>;

int failed(const std::string& why) {
    console::complain("via keys decrypt: {}", why);
    return exit_failed;
}

/// By the identifier that packets have.
using Readers = std::map<std::uint64_t, std::unique_ptr<secure::PacketReader>>;

struct Counts {
    std::uint64_t opened = 0;
    std::uint64_t unknown = 0;  ///< there is no key
    std::uint64_t forged = 0;   ///< there is one, and they are not under it
};

/// Nothing: it was told why.
std::optional<Readers> read_keys(const std::string& path, secure::Crypto& crypto) {
    std::ifstream in(path);
    if (!in) {
        failed(path + ": " + strerror(errno));
        return std::nullopt;
    }
    Readers readers;
    std::uint64_t number = 0;
    for (std::string line; std::getline(in, line);) {
        ++number;
        if (line.empty() || line.front() == '#') continue;
        const auto key = agent::parse_logged_key(line);
        if (!key) {
            failed(fmt::format("{}:{}: a line is: sealed CONNECTION CIPHER PACKETS KEY", path,
                               number));
            return std::nullopt;
        }
        readers[key->connection] = std::make_unique<secure::PacketReader>(
            crypto, key->cipher, key->key, key->packets_per_key);
    }
    if (readers.empty()) {
        failed(path + ": there is no key in it");
        return std::nullopt;
    }
    return readers;
}

bool is_sealed(Bytes packet) {
    if (packet.size() < sealed::text + secure::tag_length ||
        wire::get<std::uint32_t>(packet.data()) != 0 ||
        wire::get<std::uint8_t>(packet.data() + 4) != sealed::version ||
        wire::get<std::uint16_t>(packet.data() + 6) != 0)
        return false;
    const auto kind = wire::get<wire::PacketKind>(packet.data() + 5);
    return kind == wire::PacketKind::data || kind == wire::PacketKind::close ||
           kind == wire::PacketKind::rails;
}

/// What is in front of a packet that relays pass on; 0: nothing.
std::size_t envelope_length_of(Bytes datagram) {
    wire::Envelope envelope;
    return wire::parse_envelope(datagram, envelope) == wire::PacketError::none &&
                   envelope.kind == wire::EnvelopeKind::carried
               ? wire::envelope_length(envelope.source.length)
               : 0;
}

/// Of several that the kernel was to cut apart: all but the last are equally long, and the next one
/// begins as the first one does. `front`: of each, its envelope.
std::size_t length_of_first(Bytes packets, std::size_t front) {
    const Bytes prefix = packets.first(front + wire::packet_prefix_length);
    for (std::size_t at = front + sealed::text + secure::tag_length;
         at + prefix.size() < packets.size(); ++at)
        if (std::ranges::equal(packets.subspan(at, prefix.size()), prefix)) return at;
    return packets.size();
}

/// Appends it as it was before it was sealed, or as it is.
void open(Bytes packet, const Readers& readers, Counts& counts, std::vector<std::byte>& to) {
    const auto connection = wire::get<std::uint64_t>(packet.data() + 8);
    const auto reader = readers.find(connection);
    const std::size_t text_length = packet.size() - sealed::text - secure::tag_length;
    std::vector<std::byte> bare(wire::packet_prefix_length + text_length);
    if (reader != readers.end() &&
        reader->second->open(wire::get<std::uint64_t>(packet.data() + sealed::number),
                             packet.first(wire::packet_prefix_length), packet.subspan(sealed::text),
                             std::span(bare).subspan(wire::packet_prefix_length))) {
        ++counts.opened;
        wire::seal(bare, {wire::get<wire::PacketKind>(packet.data() + 5), connection});
        to.insert(to.end(), bare.begin(), bare.end());
        return;
    }
    ++(reader == readers.end() ? counts.unknown : counts.forged);
    to.insert(to.end(), packet.begin(), packet.end());
}

Counts open_all(Capture& capture, const Readers& readers) {
    Counts counts;
    for (CapturedPacket& packet : capture.packets) {
        const auto at = udp_payload(capture.link_type, packet.bytes);
        if (!at) continue;
        const auto length = wire::get<std::uint16_t>(packet.bytes.data() + *at - 4);
        Bytes rest =
            Bytes(packet.bytes).subspan(*at, std::size_t(length >> 8 | (length & 255) << 8) - 8);
        const std::size_t front = envelope_length_of(rest);
        if (!is_sealed(rest.subspan(front))) continue;
        std::vector<std::byte> payload;
        for (const std::size_t each = length_of_first(rest, front); !rest.empty();) {
            const Bytes one = rest.first(std::min(each, rest.size()));
            rest = rest.subspan(one.size());
            const std::size_t kept =
                one.size() > front && is_sealed(one.subspan(front)) ? front : one.size();
            payload.insert(payload.end(), one.begin(),
                           one.begin() + static_cast<std::ptrdiff_t>(kept));
            if (kept < one.size()) open(one.subspan(kept), readers, counts, payload);
        }
        set_udp_payload(capture.link_type, packet, payload);
    }
    return counts;
}

}  // namespace

int run_keys_decrypt(const KeysOptions& options) {
    auto crypto = secure::load_libcrypto();
    if (!crypto) return failed("OpenSSL's library cannot be loaded: " + crypto.error());
    const auto readers = read_keys(options.log, **crypto);
    if (!readers) return exit_failed;
    auto capture = read_capture(options.capture);
    if (!capture) return failed(capture.error());
    const Counts counts = open_all(*capture, *readers);
    if (const auto written = write_capture(options.output, *capture); !written)
        return failed(written.error());
    fmt::print("{}: {} sealed packets opened, {} without a key in {}, {} that are not genuine\n",
               options.output, counts.opened, counts.unknown, options.log, counts.forged);
    return exit_good;
}

}  // namespace via::cli
