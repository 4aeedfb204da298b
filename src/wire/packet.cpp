#include "wire/packet.hpp"

#include <algorithm>
#include <cstring>

#include "wire/bytes.hpp"
#include "wire/fields.hpp"

namespace via::wire {

namespace {

constexpr std::uint32_t query_length = packet_length(PacketKind::query);
constexpr std::uint32_t answer_length = packet_length(PacketKind::answer);
constexpr std::uint32_t hello_length = packet_length(PacketKind::hello);
constexpr std::uint32_t retry_length = packet_length(PacketKind::retry);
constexpr std::uint32_t welcome_length = packet_length(PacketKind::welcome);
constexpr std::uint32_t refuse_length = packet_length(PacketKind::refuse);
constexpr std::uint32_t unsupported_length = packet_length(PacketKind::unsupported);
constexpr std::uint32_t close_length = packet_length(PacketKind::close);
constexpr std::uint32_t rails_length = packet_length(PacketKind::rails);
constexpr std::uint32_t rail_length = 20;  ///< of one address, with its length before it
static_assert(rails_length == 20 + rails_max * rail_length);
static_assert(std::max({rails_length, query_length, hello_length, welcome_length}) <=
              connecting_length_max);

// Nobody gets others to send more than three times what he sent, with whatever sender's address.
static_assert(answer_length < query_length);
static_assert(std::max({retry_length, welcome_length, refuse_length}) <= 3 * hello_length);
// Whatever is long enough to be looked at.
static_assert(std::max(unsupported_length, close_length) <= packet_length_least);
// A peer whose path is gone says something longer than the answer.
static_assert(close_length < data_header_length);

void put_offer(const PathOffer& offer, std::byte* to) {
    put(to, offer.instance);
    put(to + 8, offer.receive_room);
    put(to + 12, offer.ack_delay_us);
    put(to + 16, offer.datagram_max);
    put(to + 18, offer.nic_port);
}

/// False: there is no path to what says this.
bool get_offer(const std::byte* from, PathOffer& offer) {
    offer.instance = get<std::uint64_t>(from);
    offer.receive_room = get<std::uint32_t>(from + 8);
    offer.ack_delay_us = get<std::uint32_t>(from + 12);
    offer.datagram_max = get<std::uint16_t>(from + 16);
    offer.nic_port = get<std::uint16_t>(from + 18);
    return offer.datagram_max >= packet_length_min && offer.datagram_max <= packet_length_max &&
           offer.receive_room >= packet_length_min;
}

std::uint32_t seal_connecting(ConnectingBytes packet, std::uint32_t length, PacketKind kind,
                              std::uint64_t connection) {
    seal(packet.first(length), {kind, connection});
    return length;
}

}  // namespace

PacketError parse_prefix(std::span<const std::byte> packet, PacketPrefix& prefix) {
    if (packet.size() < packet_length_least) return PacketError::truncated;
    return has_checksum(packet) ? parse_authentic_prefix(packet, prefix) : PacketError::checksum;
}

PacketError parse_authentic_prefix(std::span<const std::byte> packet, PacketPrefix& prefix) {
    if (packet.size() < packet_length_least) return PacketError::truncated;
    const auto kind = get<std::uint8_t>(packet.data() + 5);
    prefix.connection = get<std::uint64_t>(packet.data() + 8);
    if (get<std::uint8_t>(packet.data() + 4) != packet_version &&
        kind != static_cast<std::uint8_t>(PacketKind::unsupported))
        return PacketError::version;
    if (kind == 0 || kind > packet_kind_max) return PacketError::kind;
    prefix.kind = static_cast<PacketKind>(kind);
    return get<std::uint16_t>(packet.data() + 6) == 0 ? PacketError::none : PacketError::contents;
}

void put_packet_prefix(std::span<std::byte> packet, const PacketPrefix& prefix) {
    put(packet.data(), std::uint32_t{0});
    put(packet.data() + 4, packet_word(prefix.kind));
    put(packet.data() + 8, prefix.connection);
}

void seal(std::span<std::byte> packet, const PacketPrefix& prefix, const Body& body) {
    put(packet.data() + 4, packet_word(prefix.kind));
    put(packet.data() + 8, prefix.connection);
    std::span<const std::byte> rest = packet.subspan(4);  // behind the checksum's own place
    std::uint32_t sum = 0;
    if (body.bytes != nullptr) {
        sum = crc32c(rest.first(body.at - 4));
        sum = crc32c_copy(sum, {body.bytes, body.length}, packet.data() + body.at, body.more);
        rest = packet.subspan(body.at + body.length);
    }
    put(packet.data(), crc32c(sum, rest));
}

std::uint32_t emit_query(std::uint64_t connection, const Query& query, ConnectingBytes packet) {
    std::byte* const to = packet.data();
    put(to + 16, query.discriminator.length);
    put(to + 18, std::uint16_t{0});
    std::memset(to + 20, 0, sizeof query.discriminator.bytes);
    std::memcpy(to + 20, query.discriminator.bytes.data(), query.discriminator.length);
    return seal_connecting(packet, query_length, PacketKind::query, connection);
}

PacketError parse_query(std::span<const std::byte> packet, Query& query) {
    if (packet.size() != query_length) return PacketError::contents;
    const std::byte* const from = packet.data();
    Discriminator& discriminator = query.discriminator;
    discriminator.length = get<std::uint16_t>(from + 16);
    std::memcpy(discriminator.bytes.data(), from + 20, discriminator.bytes.size());
    if (discriminator.length > discriminator.bytes.size() || get<std::uint16_t>(from + 18) != 0)
        return PacketError::contents;
    const bool padded =
        std::all_of(discriminator.bytes.begin() + discriminator.length, discriminator.bytes.end(),
                    [](std::uint8_t byte) { return byte == 0; });
    return padded ? PacketError::none : PacketError::contents;
}

std::uint32_t emit_answer(std::uint64_t connection, const Answer& answer, ConnectingBytes packet) {
    const bool found = answer.code == AnswerCode::found;
    put(packet.data() + 16, answer.code);
    put(packet.data() + 20, found ? answer.port : std::uint16_t{0});
    put(packet.data() + 22, std::uint16_t{0});
    put(packet.data() + 24, found ? answer.instance : std::uint64_t{0});
    return seal_connecting(packet, answer_length, PacketKind::answer, connection);
}

PacketError parse_answer(std::span<const std::byte> packet, Answer& answer) {
    if (packet.size() != answer_length) return PacketError::contents;
    answer.code = get<AnswerCode>(packet.data() + 16);
    answer.port = get<std::uint16_t>(packet.data() + 20);
    answer.instance = get<std::uint64_t>(packet.data() + 24);
    if (get<std::uint16_t>(packet.data() + 22) != 0) return PacketError::contents;
    const bool good =
        answer.code == AnswerCode::found
            ? answer.port != 0
            : answer.code == AnswerCode::no_match && answer.port == 0 && answer.instance == 0;
    return good ? PacketError::none : PacketError::contents;
}

std::uint32_t emit_hello(std::uint64_t connection, const Hello& hello, ConnectingBytes packet) {
    put(packet.data() + 16, hello.target);
    put(packet.data() + 24, hello.attempt);
    put(packet.data() + 32, hello.cookie.moment);
    put(packet.data() + 40, hello.cookie.proof);
    put_offer(hello.offer, packet.data() + 48);
    put(packet.data() + 68, std::uint32_t{hello.joins});
    return seal_connecting(packet, hello_length, PacketKind::hello, connection);
}

PacketError parse_hello(std::span<const std::byte> packet, Hello& hello) {
    if (packet.size() != hello_length) return PacketError::contents;
    hello.target = get<std::uint64_t>(packet.data() + 16);
    hello.attempt = get<std::uint64_t>(packet.data() + 24);
    hello.cookie.moment = get<std::uint64_t>(packet.data() + 32);
    hello.cookie.proof = get<std::uint64_t>(packet.data() + 40);
    const auto joins = get<std::uint32_t>(packet.data() + 68);
    hello.joins = joins != 0;
    const bool good =
        get_offer(packet.data() + 48, hello.offer) && hello.attempt != 0 && joins <= 1;
    return good ? PacketError::none : PacketError::contents;
}

std::uint32_t emit_retry(std::uint64_t connection, const Cookie& cookie, ConnectingBytes packet) {
    put(packet.data() + 16, cookie.moment);
    put(packet.data() + 24, cookie.proof);
    return seal_connecting(packet, retry_length, PacketKind::retry, connection);
}

PacketError parse_retry(std::span<const std::byte> packet, Cookie& cookie) {
    if (packet.size() != retry_length) return PacketError::contents;
    cookie.moment = get<std::uint64_t>(packet.data() + 16);
    cookie.proof = get<std::uint64_t>(packet.data() + 24);
    return cookie.is_given() ? PacketError::none : PacketError::contents;
}

std::uint32_t emit_welcome(std::uint64_t connection, const Welcome& welcome,
                           ConnectingBytes packet) {
    put(packet.data() + 16, welcome.connection);
    put(packet.data() + 24, welcome.attempt);
    put_offer(welcome.offer, packet.data() + 32);
    put(packet.data() + 52, std::uint32_t{0});
    return seal_connecting(packet, welcome_length, PacketKind::welcome, connection);
}

PacketError parse_welcome(std::span<const std::byte> packet, Welcome& welcome) {
    if (packet.size() != welcome_length) return PacketError::contents;
    welcome.connection = get<std::uint64_t>(packet.data() + 16);
    welcome.attempt = get<std::uint64_t>(packet.data() + 24);
    const bool good = get_offer(packet.data() + 32, welcome.offer) && welcome.connection != 0 &&
                      welcome.attempt != 0 && get<std::uint32_t>(packet.data() + 52) == 0;
    return good ? PacketError::none : PacketError::contents;
}

std::uint32_t emit_refuse(std::uint64_t connection, PathRefusal why, ConnectingBytes packet) {
    put(packet.data() + 16, why);
    return seal_connecting(packet, refuse_length, PacketKind::refuse, connection);
}

PacketError parse_refuse(std::span<const std::byte> packet, PathRefusal& why) {
    if (packet.size() != refuse_length) return PacketError::contents;
    why = get<PathRefusal>(packet.data() + 16);
    const bool good = why >= PathRefusal::unknown_instance && why <= PathRefusal::not_admitted;
    return good ? PacketError::none : PacketError::contents;
}

std::uint32_t emit_unsupported(std::uint64_t connection, ConnectingBytes packet) {
    put(packet.data() + 16, packet_version);
    put(packet.data() + 17, packet_version);
    put(packet.data() + 18, std::uint16_t{0});
    return seal_connecting(packet, unsupported_length, PacketKind::unsupported, connection);
}

PacketError parse_unsupported(std::span<const std::byte> packet, Versions& versions) {
    if (packet.size() != unsupported_length) return PacketError::contents;
    versions.least = get<std::uint8_t>(packet.data() + 16);
    versions.greatest = get<std::uint8_t>(packet.data() + 17);
    const bool good = versions.least != 0 && versions.least <= versions.greatest &&
                      get<std::uint16_t>(packet.data() + 18) == 0;
    return good ? PacketError::none : PacketError::contents;
}

std::uint32_t emit_close(std::uint64_t connection, CloseReason why, ConnectingBytes packet) {
    put(packet.data() + 16, why);
    return seal_connecting(packet, close_length, PacketKind::close, connection);
}

PacketError parse_close(std::span<const std::byte> packet, CloseReason& why) {
    if (packet.size() != close_length) return PacketError::contents;
    why = get<CloseReason>(packet.data() + 16);
    const bool good = why == CloseReason::left || why == CloseReason::broke_the_protocol ||
                      why == CloseReason::unknown_path;
    return good ? PacketError::none : PacketError::contents;
}

std::uint32_t emit_rails(std::uint64_t connection, const Rails& rails, ConnectingBytes packet) {
    std::byte* to = packet.data() + packet_prefix_length;
    put(to, static_cast<std::uint8_t>(rails.asks));
    put(to + 1, rails.count);
    put(to + 2, std::uint16_t{0});
    to += 4;
    for (std::uint32_t n = 0; n < rails_max; ++n, to += rail_length) {
        const HostAddress& address = rails.addresses[n];
        const std::uint16_t length = n < rails.count ? address.length : std::uint16_t{0};
        std::memset(to, 0, rail_length);
        put(to, length);
        std::memcpy(to + 2, address.bytes.data(), length);
    }
    return seal_connecting(packet, rails_length, PacketKind::rails, connection);
}

PacketError parse_rails(std::span<const std::byte> packet, Rails& rails) {
    if (packet.size() != rails_length) return PacketError::contents;
    const std::byte* from = packet.data() + packet_prefix_length;
    const auto asks = get<std::uint8_t>(from);
    rails.asks = asks != 0;
    rails.count = get<std::uint8_t>(from + 1);
    if (asks > 1 || rails.count > rails_max || get<std::uint16_t>(from + 2) != 0)
        return PacketError::contents;
    from += 4;
    for (std::uint32_t n = 0; n < rails_max; ++n, from += rail_length) {
        HostAddress& address = rails.addresses[n];
        address.length = get<std::uint16_t>(from);
        const bool is_length =
            n < rails.count ? address.length == 6 || address.length == 18 : address.length == 0;
        if (!is_length) return PacketError::contents;
        std::memcpy(address.bytes.data(), from + 2, address.bytes.size());
        if (!std::all_of(address.bytes.begin() + address.length, address.bytes.end(),
                         [](std::uint8_t byte) { return byte == 0; }))
            return PacketError::contents;
        if (address.length != 0 && port_of(address) == 0) return PacketError::contents;
    }
    return PacketError::none;
}

const char* to_string(PacketError error) {
    switch (error) {
        case PacketError::none:
            return "none";
        case PacketError::truncated:
            return "too short";
        case PacketError::checksum:
            return "with a wrong checksum";
        case PacketError::version:
            return "of an unknown version";
        case PacketError::kind:
            return "of an unknown kind";
        case PacketError::contents:
            return "with impossible contents";
    }
    return "unknown";
}

}  // namespace via::wire
