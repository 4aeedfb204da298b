// Packets as one line for people.
#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstring>

#include "wire/bytes.hpp"
#include "wire/fields.hpp"
#include "wire/sealed.hpp"

namespace via::wire {

namespace {

/// A line that ends where its room ends.
class Line {
public:
    Line(char* text, std::size_t size) : text_(text), size_(size) {
        if (size_ != 0) text_[0] = '\0';
    }
    __attribute__((format(printf, 2, 3))) void add(const char* format, ...) {
        va_list values;
        va_start(values, format);
        const std::size_t room = size_ - length_;
        const int length = room < 2 ? 0 : std::vsnprintf(text_ + length_, room, format, values);
        va_end(values);
        const auto whole = static_cast<std::size_t>(length);
        length_ += whole < room || whole == 0 ? whole : room - 1;
    }
    std::size_t length() const { return length_; }

private:
    char* text_;
    std::size_t size_;
    std::size_t length_ = 0;
};

void add_offer(const PathOffer& offer, Line& line) {
    line.add(" instance=%016llx receive_room=%u ack_delay_us=%u datagram_max=%u nic_port=%u",
             static_cast<unsigned long long>(offer.instance), offer.receive_room,
             offer.ack_delay_us, unsigned{offer.datagram_max}, unsigned{offer.nic_port});
}

bool print_query(std::span<const std::byte> packet, Line& line) {
    Query query;
    if (parse_query(packet, query) != PacketError::none) return false;
    line.add(" discriminator=");
    for (std::uint16_t n = 0; n < query.discriminator.length; ++n) {
        const std::uint8_t byte = query.discriminator.bytes[n];
        line.add(byte > ' ' && byte <= '~' && byte != '\\' ? "%c" : "\\%02x", unsigned{byte});
    }
    return true;
}

bool print_answer(std::span<const std::byte> packet, Line& line) {
    Answer answer;
    if (parse_answer(packet, answer) != PacketError::none) return false;
    line.add(" %s", name_of(answer.code, answer_names));
    if (answer.code == AnswerCode::found)
        line.add(" port=%u instance=%016llx", unsigned{answer.port},
                 static_cast<unsigned long long>(answer.instance));
    return true;
}

bool print_hello(std::span<const std::byte> packet, Line& line) {
    Hello hello;
    if (parse_hello(packet, hello) != PacketError::none) return false;
    line.add(" target=%016llx attempt=%llu%s", static_cast<unsigned long long>(hello.target),
             static_cast<unsigned long long>(hello.attempt),
             hello.cookie.is_given() ? " cookie" : "");
    add_offer(hello.offer, line);
    if (hello.joins) line.add(" joins");
    return true;
}

bool print_retry(std::span<const std::byte> packet, Line& line) {
    Cookie cookie;
    if (parse_retry(packet, cookie) != PacketError::none) return false;
    line.add(" moment=%llu", static_cast<unsigned long long>(cookie.moment));
    return true;
}

bool print_welcome(std::span<const std::byte> packet, Line& line) {
    Welcome welcome;
    if (parse_welcome(packet, welcome) != PacketError::none) return false;
    line.add(" reply_to=%016llx attempt=%llu", static_cast<unsigned long long>(welcome.connection),
             static_cast<unsigned long long>(welcome.attempt));
    add_offer(welcome.offer, line);
    return true;
}

bool print_refuse(std::span<const std::byte> packet, Line& line) {
    PathRefusal why{};
    if (parse_refuse(packet, why) != PacketError::none) return false;
    line.add(" %s", name_of(why, path_refusal_names));
    return true;
}

bool print_unsupported(std::span<const std::byte> packet, Line& line) {
    Versions versions;
    if (parse_unsupported(packet, versions) != PacketError::none) return false;
    line.add(" versions=%u-%u", unsigned{versions.least}, unsigned{versions.greatest});
    return true;
}

bool print_close(std::span<const std::byte> packet, Line& line) {
    CloseReason why{};
    if (parse_close(packet, why) != PacketError::none) return false;
    line.add(" %s", name_of(why, close_names));
    return true;
}

bool print_rails(std::span<const std::byte> packet, Line& line) {
    Rails rails;
    if (parse_rails(packet, rails) != PacketError::none) return false;
    line.add(" count=%u%s", unsigned{rails.count}, rails.asks ? " asks" : "");
    return true;
}

void add_ack(const Ack& ack, Line& line) {
    line.add(" ack");
    std::uint64_t above = ack.largest + 1;  // 0 when it is the very last number
    for (std::uint32_t n = 0; n < ack.count; ++n) {
        const std::uint64_t last = above - ack.ranges[n].missing - 1;
        const std::uint64_t first = last - (ack.ranges[n].there - 1);
        line.add(n == 0 ? " %llu" : ",%llu", static_cast<unsigned long long>(first));
        if (last != first) line.add("-%llu", static_cast<unsigned long long>(last));
        above = first;
    }
}

void add_frame(const Chunk& chunk, Line& line) {
    Header header;
    const bool good = parse(chunk.frame.data(), chunk.frame.size(), header) == ParseError::none;
    line.add(" frame");
    if (chunk.reliable) line.add(" %u", chunk.frame_number);
    line.add(" %s (%zu)", good ? name_of(header.kind, frame_kind_names) : "?", chunk.frame.size());
}

bool print_data(std::span<const std::byte> packet, Line& line) {
    ChunkReader reader(packet);
    if (reader.bad()) return false;
    line.add(" #%llu", static_cast<unsigned long long>(reader.packet_number()));
    Chunk chunk;
    while (reader.next(chunk)) {
        if (chunk.kind == ChunkKind::frame)
            add_frame(chunk, line);
        else if (chunk.kind == ChunkKind::ack)
            add_ack(chunk.ack, line);
        else if (chunk.kind == ChunkKind::part)
            line.add(" part %u (%u+%zu of %u)", chunk.frame_number, chunk.at, chunk.frame.size(),
                     chunk.whole);
        else
            line.add(" %s", name_of(chunk.kind, chunk_kind_names));
    }
    return !reader.bad();
}

using Print = bool (*)(std::span<const std::byte> packet, Line& line);
/// In the order of PacketKind.
constexpr Print prints[] = {print_query,   print_answer, print_hello,       print_retry,
                            print_welcome, print_refuse, print_unsupported, print_data,
                            print_close,   print_rails};
static_assert(std::size(prints) == packet_kind_max);

// Version 2 ---------------------------------------------------------------------------------------

bool is_sealed(std::span<const std::byte> packet) {
    if (packet.size() < packet_length_least ||
        get<std::uint8_t>(packet.data() + 4) != sealed::version)
        return false;
    const auto kind = get<PacketKind>(packet.data() + 5);
    return kind == PacketKind::hello || kind == PacketKind::welcome || kind == PacketKind::data ||
           kind == PacketKind::close;
}

/// With a cookie, or without one as of version 1.
bool print_sealed_hello(std::span<const std::byte> packet, Line& line) {
    if (packet.size() == sealed::bare_hello_length) {
        std::byte bare[sealed::bare_hello_length];
        std::memcpy(bare, packet.data(), sizeof bare);
        seal(bare, {PacketKind::hello, get<std::uint64_t>(bare + 8)});
        return print_hello(bare, line);
    }
    if (packet.size() != sealed::hello_length) return false;
    const auto zeros = packet.subspan(sealed::hello_zero, 7);
    const auto cipher = get<std::uint8_t>(packet.data() + sealed::hello_cipher);
    if (cipher >= std::size(cipher_names) ||
        std::ranges::any_of(zeros, [](std::byte byte) { return byte != std::byte{0}; }))
        return false;
    line.add(
        " target=%016llx cookie %s",
        static_cast<unsigned long long>(get<std::uint64_t>(packet.data() + sealed::hello_target)),
        name_of(cipher, cipher_names));
    return true;
}

bool print_sealed_text(std::span<const std::byte> packet, Line& line) {
    constexpr std::uint32_t around = sealed::text + sealed::tag_length;
    if (packet.size() < around + sealed::text_least) return false;
    line.add(" #%llu (%zu)",
             static_cast<unsigned long long>(get<std::uint64_t>(packet.data() + sealed::number)),
             packet.size() - around);
    return true;
}

/// What stands in the open of a packet under its path's keys.
PacketError print_sealed(std::span<const std::byte> packet, Line& line) {
    const auto kind = get<PacketKind>(packet.data() + 5);
    const bool is_text = kind == PacketKind::data || kind == PacketKind::close;
    if (is_text ? get<std::uint32_t>(packet.data()) != 0 : !has_checksum(packet))
        return PacketError::checksum;
    line.add("sealed %s connection=%016llx", name_of(kind, packet_kind_names),
             static_cast<unsigned long long>(get<std::uint64_t>(packet.data() + 8)));
    bool good = get<std::uint16_t>(packet.data() + 6) == 0;
    if (good && is_text) good = print_sealed_text(packet, line);
    if (good && kind == PacketKind::hello) good = print_sealed_hello(packet, line);
    if (good && kind == PacketKind::welcome) good = packet.size() == sealed::welcome_length;
    return good ? PacketError::none : PacketError::contents;
}

PacketError print_bare(std::span<const std::byte> packet, Line& line) {
    PacketPrefix prefix;
    if (const PacketError error = parse_prefix(packet, prefix); error != PacketError::none)
        return error;
    line.add("%s", name_of(prefix.kind, packet_kind_names));
    if (prefix.kind != PacketKind::data)
        line.add(" connection=%016llx", static_cast<unsigned long long>(prefix.connection));
    const Print print = prints[static_cast<std::uint8_t>(prefix.kind) - 1];
    return print(packet, line) ? PacketError::none : PacketError::contents;
}

void add_packet(std::span<const std::byte> packet, Line& line) {
    const std::size_t begin = line.length();
    const PacketError error =
        is_sealed(packet) ? print_sealed(packet, line) : print_bare(packet, line);
    if (error != PacketError::none)
        line.add("%spacket of %zu bytes %s", line.length() == begin ? "" : " ... ", packet.size(),
                 to_string(error));
}

// Envelopes ---------------------------------------------------------------------------------------

/// What says `unsupported` is a packet, whatever its version.
bool is_envelope(std::span<const std::byte> datagram) {
    return datagram.size() >= packet_length_least &&
           get<std::uint8_t>(datagram.data() + 4) == envelope_version &&
           get<PacketKind>(datagram.data() + 5) != PacketKind::unsupported;
}

void add_address(const HostAddress& address, Line& line) {
    const std::uint8_t* const byte = address.bytes.data();
    if (address.length == 6) {
        line.add("%u.%u.%u.%u", byte[0], byte[1], byte[2], byte[3]);
    } else {
        for (int n = 0; n < 16; n += 2)
            line.add("%s%x", n == 0 ? "[" : ":", byte[n] << 8 | byte[n + 1]);
        line.add("]");
    }
    line.add(":%u", unsigned{port_of(address)});
}

/// Who made what, for whom; and what is in it.
void add_envelope(std::span<const std::byte> datagram, Line& line) {
    Envelope envelope;
    if (const PacketError error = parse_envelope(datagram, envelope); error != PacketError::none)
        return line.add("envelope of %zu bytes %s", datagram.size(), to_string(error));
    line.add("%s ", name_of(envelope.kind, envelope_kind_names));
    add_address(envelope.source, line);
    line.add(" to ");
    add_address(envelope.destination, line);
    line.add(" hops=%u", unsigned{envelope.hops});
    if (envelope.kind == EnvelopeKind::unreachable)
        return line.add(" connection=%016llx",
                        static_cast<unsigned long long>(envelope.connection));
    line.add(": ");
    add_packet(datagram.subspan(envelope_length(envelope.source.length)), line);
}

}  // namespace

std::size_t print_packet(std::span<const std::byte> packet, char* text, std::size_t size) {
    Line line(text, size);
    if (is_envelope(packet))
        add_envelope(packet, line);
    else
        add_packet(packet, line);
    return line.length();
}

}  // namespace via::wire
