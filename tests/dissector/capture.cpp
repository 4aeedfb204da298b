// Writes a capture with every kind of packet, chunk and frame, and what a dissector has to say of
// it: for each datagram one line of information, and every field's name, place and bytes.
// And a capture of damaged ones, of which it has to say anything at all.
//   capture CAPTURE EXPECTED DAMAGED
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/random.hpp"
#include "wire/bytes.hpp"
#include "wire/envelope.hpp"
#include "wire/fields.hpp"
#include "wire/sealed.hpp"

using namespace via;
using namespace via::wire;

namespace {

using Bytes = std::vector<std::byte>;

constexpr std::uint16_t host_port = 9741;
constexpr std::size_t ip_length = 20;
constexpr std::size_t udp_length = 8;

struct Datagram {
    std::uint16_t from;
    std::uint16_t to;
    std::vector<Bytes> packets;  ///< more than one: the kernel was to cut them
    bool known = true;           ///< as ours
};

// The capture -------------------------------------------------------------------------------------

template <class T>
void append(Bytes& bytes, T value) {
    bytes.resize(bytes.size() + sizeof value);
    put(bytes.data() + bytes.size() - sizeof value, value);
}
void append_big_endian(Bytes& bytes, std::uint16_t value) {
    append(bytes, static_cast<std::uint8_t>(value >> 8));
    append(bytes, static_cast<std::uint8_t>(value));
}

void append_datagram(Bytes& file, const Datagram& datagram, std::uint32_t number) {
    Bytes payload;
    for (const Bytes& packet : datagram.packets)
        payload.insert(payload.end(), packet.begin(), packet.end());
    const auto length = static_cast<std::uint16_t>(udp_length + payload.size());
    append(file, number);  // s
    append(file, std::uint32_t{0});
    append(file, static_cast<std::uint32_t>(ip_length + length));
    append(file, static_cast<std::uint32_t>(ip_length + length));
    append(file, std::uint16_t{0x0045});
    append_big_endian(file, static_cast<std::uint16_t>(ip_length + length));
    append(file, std::uint32_t{0});
    append(file, std::uint16_t{0x1140});      // time to live 64, UDP
    append(file, std::uint16_t{0});           // no checksum
    append(file, std::uint32_t{0x0100A8C0});  // 192.168.0.1
    append(file, std::uint32_t{0x0200A8C0});
    append_big_endian(file, datagram.from);
    append_big_endian(file, datagram.to);
    append_big_endian(file, length);
    append(file, std::uint16_t{0});  // no checksum
    file.insert(file.end(), payload.begin(), payload.end());
}

Bytes capture_of(const std::vector<Datagram>& datagrams) {
    Bytes file;
    append(file, std::uint32_t{0xA1B2C3D4});  // pcap 2.4, times in us
    append(file, std::uint16_t{2});
    append(file, std::uint16_t{4});
    append(file, std::uint64_t{0});
    append(file, std::uint32_t{262144});
    append(file, std::uint32_t{228});  // IPv4 without a link's header
    std::uint32_t number = 0;
    for (const Datagram& datagram : datagrams) append_datagram(file, datagram, ++number);
    return file;
}

// What is expected of it --------------------------------------------------------------------------

class Expected {
public:
    void add(const Datagram& datagram) {
        text_ += "datagram\n";
        if (!datagram.known) return;
        std::size_t at = 0;
        std::string info;
        for (const Bytes& packet : datagram.packets) {
            char line[2048];
            print_packet(packet, line, sizeof line);
            info += (at == 0 ? "" : " | ") + std::string(line);
            add_packet(packet, ip_length + udp_length + at);
            at += packet.size();
        }
        text_ += "info " + info + "\n";
    }
    const std::string& text() const { return text_; }

private:
    void add_fields(const char* layout, const std::byte* bytes, std::size_t at) {
        const auto find = [&](std::span<const Layout> layouts) {
            for (const Layout& candidate : layouts)
                if (std::strcmp(candidate.name, layout) == 0)
                    for (const Field& field : candidate.fields)
                        add_field(candidate, field, bytes, at);
        };
        find(packet_layouts);
        find(other_layouts);
    }
    void add_field(const Layout& layout, const Field& field, const std::byte* bytes,
                   std::size_t at) {
        std::string value;
        for (std::size_t n = 0; n < field.length; ++n) {
            char digits[3];
            std::snprintf(digits, sizeof digits, "%02x",
                          std::to_integer<unsigned>(bytes[field.offset + n]));
            value += digits;
        }
        text_ += "field " + std::string(layout.filter) + "." + field.name + " " +
                 std::to_string(at + field.offset) + " " + std::to_string(field.length) + " " +
                 value;
        if (field.form == FieldForm::named) {
            std::uint32_t number = 0;
            std::memcpy(&number, bytes + field.offset, field.length);
            text_ += " " + std::string(name_of(number, field.names));
        }
        text_ += "\n";
    }
    /// With what is in it, if it is whole; false: it is none.
    bool add_envelope(const Bytes& datagram, std::size_t at) {
        Envelope envelope;
        if (parse_envelope(datagram, envelope) != PacketError::none)
            return datagram.size() >= packet_length_least &&
                   get<std::uint8_t>(datagram.data() + 4) == envelope_version;
        add_fields("envelope", datagram.data(), at);
        add_fields(envelope.source.length == 6 ? "envelope_ipv4" : "envelope_ipv6", datagram.data(),
                   at);
        const std::size_t length = envelope_length(envelope.source.length);
        if (envelope.kind == EnvelopeKind::carried)
            add_packet({datagram.begin() + static_cast<std::ptrdiff_t>(length), datagram.end()},
                       at + length);
        return true;
    }
    /// Of version 2 and with right contents; false: it is none.
    bool add_sealed(const Bytes& packet, std::size_t at) {
        if (packet.size() < packet_length_least ||
            get<std::uint8_t>(packet.data() + 4) != sealed::version)
            return false;
        add_fields("prefix", packet.data(), at);
        const auto kind = get<PacketKind>(packet.data() + 5);
        const bool is_text = kind == PacketKind::data || kind == PacketKind::close;
        if (is_text && packet.size() >= sealed::text + sealed::tag_length + sealed::text_least)
            add_fields("sealed_text", packet.data(), at);
        if (kind == PacketKind::hello)
            add_fields(packet.size() == sealed::bare_hello_length ? "hello" : "sealed_hello",
                       packet.data(), at);
        if (kind == PacketKind::welcome) add_fields("sealed_welcome", packet.data(), at);
        return true;
    }
    void add_packet(const Bytes& packet, std::size_t at) {
        if (add_envelope(packet, at) || add_sealed(packet, at)) return;
        PacketPrefix prefix;
        const PacketError error = parse_prefix(packet, prefix);
        if (error == PacketError::truncated) return;
        add_fields("prefix", packet.data(), at);
        if (error != PacketError::none) return;
        add_fields(name_of(prefix.kind, packet_kind_names), packet.data(), at);
        if (prefix.kind == PacketKind::data) add_chunks(packet, at);
    }
    void add_chunks(const Bytes& packet, std::size_t at) {
        ChunkReader reader(packet);
        std::size_t offset = data_header_length;
        for (Chunk chunk; reader.next(chunk);) {
            const std::byte* const bytes = packet.data() + offset;
            add_fields("chunk", bytes, at + offset);
            if (chunk.kind == ChunkKind::ack) {
                add_fields("ack_chunk", bytes, at + offset);
                for (std::size_t n = 0; n < chunk.ack.count; ++n)
                    add_fields("ack_range", bytes + 16 + 8 * n, at + offset + 16 + 8 * n);
            } else if (chunk.kind == ChunkKind::frame) {
                add_fields("frame_chunk", bytes, at + offset);
                add_frame(chunk.frame, at + offset + frame_chunk_overhead);
            } else if (chunk.kind == ChunkKind::part) {
                add_fields("part_chunk", bytes, at + offset);
            }
            offset += chunk_prefix_length + std::size_t{get<std::uint16_t>(bytes + 2)};
        }
    }
    void add_frame(std::span<const std::byte> frame, std::size_t at) {
        Header header;
        if (parse(frame.data(), frame.size(), header) != ParseError::none) return;
        add_fields("frame", frame.data(), at);
        if (header.has(flag::extent)) add_fields("frame_extent", frame.data(), at);
        if (header.has(flag::remote)) add_fields("frame_remote", frame.data(), at);
        const std::size_t length = header_length(header.flags);
        const bool connects = header.kind == FrameKind::request ||
                              header.kind == FrameKind::peer_request ||
                              header.kind == FrameKind::accept;
        if (connects) add_fields("connect", frame.data() + length, at + length);
    }

    std::string text_;
};

// Packets -----------------------------------------------------------------------------------------

template <class Emit>
Bytes connecting(Emit emit) {
    std::array<std::byte, connecting_length_max> bytes;
    const std::uint32_t length = emit(ConnectingBytes(bytes));
    return {bytes.begin(), bytes.begin() + length};
}

Bytes frame_of(FrameKind kind, std::uint8_t flags, std::size_t payload_length) {
    Header header;
    header.kind = kind;
    header.flags = flags;
    header.vi = 3;
    header.message = 70000;
    header.immediate_or_code = 2;
    header.message_length = 4000;
    header.offset = 1000;
    header.remote_address = 0x7F0011223344;
    header.remote_handle = 5;
    header.read_number = 6;
    Bytes bytes(header_length(flags) + payload_length, std::byte{0x5A});
    emit(header, bytes.data());
    return bytes;
}

Bytes connect_frame(FrameKind kind) {
    ConnectMessage message{};
    message.vi = 9;
    message.transfer_length_max = 1U << 20;
    message.reliability = 4;
    message.rdma_read_enabled = 1;
    message.features = connect_feature::credits;
    message.local_length = 2;
    message.remote_length = 1;
    std::memcpy(message.local_discriminator, "me", 2);
    message.remote_discriminator[0] = 'y';
    message.private_length = 3;
    Bytes bytes = frame_of(kind, 0, sizeof message + message.private_length);
    std::memcpy(bytes.data() + header_length_base, &message, sizeof message);
    return bytes;
}

/// A data packet of these frames, the unreliable ones without a number.
Bytes data(std::uint64_t number, const std::vector<Bytes>& frames, bool reliable = true,
           const Ack* ack = nullptr) {
    Bytes bytes(data_header_length);
    const auto grow = [&](std::size_t length) {
        bytes.resize(bytes.size() + length);
        return bytes.data() + bytes.size() - length;
    };
    if (ack != nullptr) emit_ack_chunk(*ack, grow(ack_length(*ack)));
    std::uint32_t next = reliable ? 100 : 0;
    for (const Bytes& frame : frames) {
        const auto length = static_cast<std::uint32_t>(frame.size());
        std::byte* const to = grow(frame_chunk_overhead + frame.size());
        emit_frame_chunk(reliable, next, length, to);
        std::memcpy(to + frame_chunk_overhead, frame.data(), frame.size());
        next += reliable;
    }
    emit_ping_chunk(grow(chunk_prefix_length));
    emit_padding_chunk(20, grow(20));
    seal_data(bytes, 0xA1A2A3A4A5A6A7A8, number);
    return bytes;
}

void add_meeting(std::vector<Datagram>& all) {
    constexpr std::uint64_t id = 0x1122334455667788;
    const PathOffer offer{0xAABBCCDD00112233, 212992, 1000, 1472, host_port};
    const auto to_host = [&](auto emit) { all.push_back({40000, host_port, {connecting(emit)}}); };
    const auto to_data_port = [&](auto emit) { all.push_back({40000, 50000, {connecting(emit)}}); };
    Query query;
    query.discriminator = {{'a', ' ', '[', ']', '\\', 0, 0xFF}, 7};
    to_host([&](auto to) { return emit_query(id, query, to); });
    to_host([&](auto to) { return emit_answer(id, {AnswerCode::found, 50000, 77}, to); });
    to_host([&](auto to) { return emit_answer(id, {AnswerCode::no_match, 0, 0}, to); });
    Hello hello{77, 3, {}, offer};
    to_data_port([&](auto to) { return emit_hello(id, hello, to); });
    hello.cookie = {123456789, 0xFEDCBA9876543210};
    to_data_port([&](auto to) { return emit_retry(id, hello.cookie, to); });
    to_data_port([&](auto to) { return emit_hello(id, hello, to); });
    to_data_port([&](auto to) { return emit_welcome(id, {~id, 3, offer}, to); });
    for (const auto why : {PathRefusal::unknown_instance, PathRefusal::no_resource})
        to_data_port([&](auto to) { return emit_refuse(id, why, to); });
    to_data_port([&](auto to) { return emit_unsupported(id, to); });
    for (const auto why :
         {CloseReason::left, CloseReason::broke_the_protocol, CloseReason::unknown_path})
        to_data_port([&](auto to) { return emit_close(id, why, to); });
}

void add_data(std::vector<Datagram>& all) {
    std::vector<Bytes> frames;
    for (std::uint8_t n = 1; n <= frame_kind_max; ++n) {
        const auto kind = static_cast<FrameKind>(n);
        const bool connects = kind == FrameKind::request || kind == FrameKind::accept ||
                              kind == FrameKind::peer_request;
        frames.push_back(connects ? connect_frame(kind) : frame_of(kind, 0, n % 3));
    }
    using namespace flag;
    for (const int flags :
         {first | last | immediate, last | extent, extent | remote, int{flag::all}})
        frames.push_back(frame_of(FrameKind::rdma_write, static_cast<std::uint8_t>(flags), 50));
    Ack ack;
    ack.largest = 0x123456789ABC;
    ack.delay = 250;
    ack.count = 3;
    ack.ranges[0] = {0, 1};
    ack.ranges[1] = {70000, 4000000000};
    ack.ranges[2] = {1, 2};
    all.push_back({50000, 50001, {data(0, frames, true, &ack)}});
    all.push_back({50000, 50001, {data(1, {frames[5], Bytes(7)}, false)}});
    all.push_back({50000, 50001, {data(2, {frames[5]}), data(3, {}), data(4, {frames[6]})}});
}

/// The first and the last part of a frame.
void add_parts(std::vector<Datagram>& all) {
    const Bytes frame = frame_of(FrameKind::send, 0, 1200);
    Bytes packet(data_header_length);
    for (const std::uint32_t n : {0U, 2U}) {
        Bytes chunk(part_chunk_overhead + part_length);
        chunk.resize(emit_part_chunk(101, n, frame, chunk.data()));
        packet.insert(packet.end(), chunk.begin(), chunk.end());
    }
    seal_data(packet, 0xA1A2A3A4A5A6A7A8, 5);
    all.push_back({50000, 50001, {packet}});
}

/// Of version 2; what is under keys is any bytes.
void add_sealed(std::vector<Datagram>& all) {
    const auto made = [](PacketKind kind, std::size_t length) {
        Bytes packet(length, std::byte{0x77});
        put_packet_prefix(packet, {kind, 0xA1A2A3A4A5A6A7A8});
        put(packet.data() + 4, sealed::version);
        return packet;
    };
    const auto text = [&](PacketKind kind, std::uint64_t number, std::size_t length) {
        Bytes packet = made(kind, sealed::text + length + sealed::tag_length);
        put(packet.data() + sealed::number, number);
        return packet;
    };
    const auto add = [&](Bytes packet) {
        put(packet.data(), crc32c(std::span<const std::byte>(packet).subspan(4)));
        all.push_back({40000, 50000, {std::move(packet)}});
    };
    Bytes bare = connecting([](ConnectingBytes to) {
        return emit_hello(5, {77, 3, {}, {0xAABBCCDD00112233, 212992, 1000, 1472, host_port}}, to);
    });
    put(bare.data() + 4, sealed::version);
    add(bare);
    Bytes hello = made(PacketKind::hello, sealed::hello_length);
    put(hello.data() + sealed::hello_cipher, std::uint64_t{1});
    add(hello);
    add(made(PacketKind::welcome, sealed::welcome_length));
    all.push_back({50000, 50001, {text(PacketKind::data, 1ULL << 40, 1400)}});
    all.push_back({50000, 50001, {text(PacketKind::close, 0, sealed::text_least)}});
    all.push_back({50000,
                   50001,
                   {text(PacketKind::data, 5, 300), text(PacketKind::data, 6, 300),
                    text(PacketKind::data, 7, 20)}});
    all.push_back({50000, host_port, {text(PacketKind::data, 8, sealed::text_least - 1)}});
    Bytes marked = text(PacketKind::data, 9, 20);
    put(marked.data(), std::uint32_t{1});
    all.push_back({60000, 60001, {marked}, false});
}

/// What relays pass on, some cut by the kernel later, and their notices.
void add_enveloped(std::vector<Datagram>& all) {
    const auto address = [](std::uint16_t length, std::uint8_t last, std::uint16_t port) {
        HostAddress host;
        host.length = length;
        host.bytes = {0xFE, 0x80, 0, last};
        return with_port(host, port);
    };
    const auto envelope_of = [&](EnvelopeKind kind, std::uint16_t length, std::uint64_t connection,
                                 const Bytes& packet) {
        Bytes datagram(envelope_length(length));
        emit_envelope({kind, 8, connection, address(length, 1, 50000), address(length, 2, 50001)},
                      datagram.data());
        datagram.insert(datagram.end(), packet.begin(), packet.end());
        return datagram;
    };
    constexpr std::uint16_t relay_port = 9742;
    const auto carried = [&](std::uint16_t length, const Bytes& packet) {
        return envelope_of(EnvelopeKind::carried, length, get<std::uint64_t>(packet.data() + 8),
                           packet);
    };
    const Bytes frame = frame_of(FrameKind::send, flag::first | flag::last, 40);
    const Bytes query =
        connecting([](ConnectingBytes to) { return emit_query(7, Query{{{'a'}, 1}}, to); });
    all.push_back({50000, relay_port, {carried(6, query)}});
    all.push_back({relay_port, 50001, {carried(18, data(9, {frame}))}});
    all.push_back(
        {relay_port,
         relay_port,
         {carried(6, data(10, {frame})), carried(6, data(11, {frame})), carried(6, data(12, {}))}});
    all.push_back({relay_port, 50000, {envelope_of(EnvelopeKind::unreachable, 6, 7, {})}});
    Bytes wrong = carried(6, data(13, {frame}));
    wrong.back() ^= std::byte{1};  // the packet, which no relay looks into
    all.push_back({50000, relay_port, {wrong}});
    wrong[6] ^= std::byte{1};
    all.push_back({50000, relay_port, {wrong}});
    all.push_back({60000, 60001, {wrong}, false});
}

void add_bad_ones(std::vector<Datagram>& all) {
    Bytes packet = data(5, {frame_of(FrameKind::send, 0, 9)});
    const Bytes good = packet;
    packet[40] ^= std::byte{1};
    all.push_back({40000, host_port, {packet}});
    all.push_back({60000, 60001, {packet}, false});
    packet = good;
    packet[4] = std::byte{4};
    put(packet.data(), crc32c(std::span(packet).subspan(4)));
    all.push_back({40000, host_port, {packet}});
    all.push_back({60000, 60001, {packet}, false});
    all.push_back({40000, host_port, {Bytes(19)}});
    all.push_back({60000, 60001, {Bytes(19)}, false});
    packet = good;
    packet.pop_back();
    seal_data(packet, 1, 6);
    all.push_back({60000, 60001, {packet}});
}

/// Changed, cut and joined, mostly with a right checksum, to the host's port.
std::vector<Datagram> damaged(const std::vector<Datagram>& all) {
    Random random(1);
    std::vector<Datagram> result;
    for (int n = 0; n < 2'000; ++n) {
        Datagram datagram = all[random.below(all.size())];
        datagram.to = host_port;
        for (Bytes& packet : datagram.packets) {
            for (std::uint64_t changes = random.below(5); changes != 0; --changes)
                packet[random.below(packet.size())] =
                    static_cast<std::byte>(random.chance(50) ? random.below(20) : random.next());
            if (random.chance(20)) packet.resize(1 + random.below(packet.size()));
            if (packet.size() > 4 && random.chance(90))
                put(packet.data(), crc32c(std::span(packet).subspan(4)));
        }
        result.push_back(std::move(datagram));
    }
    return result;
}

bool write(const char* path, const void* bytes, std::size_t length) {
    std::ofstream file(path, std::ios::binary);
    file.write(static_cast<const char*>(bytes), static_cast<std::streamsize>(length));
    file.close();
    if (!file) std::fprintf(stderr, "%s: cannot be written\n", path);
    return static_cast<bool>(file);
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 4) {
        std::fprintf(stderr, "usage: %s CAPTURE EXPECTED DAMAGED\n", argv[0]);
        return 2;
    }
    std::vector<Datagram> all;
    add_meeting(all);
    add_data(all);
    add_parts(all);
    add_sealed(all);
    add_enveloped(all);
    add_bad_ones(all);
    Expected expected;
    for (const Datagram& datagram : all) expected.add(datagram);
    const std::string& text = expected.text();
    const Bytes good = capture_of(all);
    const Bytes bad = capture_of(damaged(all));
    const bool written = write(argv[1], good.data(), good.size()) &&
                         write(argv[2], text.data(), text.size()) &&
                         write(argv[3], bad.data(), bad.size());
    return written ? 0 : 1;
}
