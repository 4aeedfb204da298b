#include "wire/packet.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <set>
#include <string>
#include <vector>

#include "base/random.hpp"
#include "wire/bytes.hpp"
#include "wire/fields.hpp"
#include "wire/sealed.hpp"

namespace via::wire::packet_test {
namespace {

using Bytes = std::vector<std::byte>;
constexpr std::byte guard{0xA5};
constexpr PacketKind connecting_kinds[] = {
    PacketKind::query,       PacketKind::answer,  PacketKind::hello,
    PacketKind::retry,       PacketKind::welcome, PacketKind::refuse,
    PacketKind::unsupported, PacketKind::close,   PacketKind::rails};

std::uint8_t number_of(PacketKind kind) { return static_cast<std::uint8_t>(kind); }

/// What packets of connecting say, all in one.
struct Contents {
    Query query;
    Answer answer;
    Hello hello;
    Cookie cookie;
    Welcome welcome;
    PathRefusal refusal{};
    Versions versions;
    CloseReason reason{};
    Rails rails;
};

Contents random_contents(Random& random) {
    const auto word = [&] { return static_cast<std::uint32_t>(random.next()); };
    const auto half = [&] { return static_cast<std::uint16_t>(random.next()); };
    const auto offer = [&]() -> PathOffer {
        return {random.next(), packet_length_min + word() / 2, word(),
                static_cast<std::uint16_t>(random.between(packet_length_min, packet_length_max)),
                half()};
    };
    Contents contents;
    contents.query.discriminator.length = static_cast<std::uint16_t>(random.below(65));
    for (std::size_t n = 0; n < contents.query.discriminator.length; ++n)
        contents.query.discriminator.bytes[n] = static_cast<std::uint8_t>(random.next());
    if (random.chance(50))
        contents.answer = {AnswerCode::found, static_cast<std::uint16_t>(random.between(1, 65535)),
                           random.next()};
    else
        contents.answer = {AnswerCode::no_match, 0, 0};
    contents.hello = {random.next(), random.next() | 1, {random.next(), random.next()}, offer()};
    if (random.chance(50)) contents.hello.cookie = {};
    contents.hello.joins = random.chance(50);
    contents.rails.asks = random.chance(50);
    contents.rails.count = static_cast<std::uint8_t>(random.below(rails_max + 1));
    for (std::uint32_t n = 0; n < contents.rails.count; ++n) {
        HostAddress& address = contents.rails.addresses[n];
        address.length = random.chance(50) ? 6 : 18;
        for (std::uint16_t at = 0; at < address.length; ++at)
            address.bytes[at] = static_cast<std::uint8_t>(random.next());
        address.bytes[address.length - 1U] |= 1;
    }
    contents.cookie = {random.next(), random.next() | 1};
    contents.welcome = {random.next() | 1, random.next() | 1, offer()};
    contents.refusal = static_cast<PathRefusal>(random.between(1, 3));
    contents.reason = static_cast<CloseReason>(random.between(1, 3));
    return contents;
}

Bytes emitted(PacketKind kind, std::uint64_t connection, const Contents& contents) {
    std::array<std::byte, connecting_length_max> bytes;
    bytes.fill(guard);
    std::uint32_t length = 0;
    switch (kind) {
        case PacketKind::query:
            length = emit_query(connection, contents.query, bytes);
            break;
        case PacketKind::answer:
            length = emit_answer(connection, contents.answer, bytes);
            break;
        case PacketKind::hello:
            length = emit_hello(connection, contents.hello, bytes);
            break;
        case PacketKind::retry:
            length = emit_retry(connection, contents.cookie, bytes);
            break;
        case PacketKind::welcome:
            length = emit_welcome(connection, contents.welcome, bytes);
            break;
        case PacketKind::refuse:
            length = emit_refuse(connection, contents.refusal, bytes);
            break;
        case PacketKind::unsupported:
            length = emit_unsupported(connection, bytes);
            break;
        case PacketKind::close:
            length = emit_close(connection, contents.reason, bytes);
            break;
        case PacketKind::rails:
            length = emit_rails(connection, contents.rails, bytes);
            break;
        case PacketKind::data:
            ADD_FAILURE() << "not a packet of connecting";
    }
    EXPECT_TRUE(std::all_of(bytes.begin() + length, bytes.end(), [](std::byte byte) {
        return byte == guard;
    })) << "emit wrote behind the packet";
    return {bytes.begin(), bytes.begin() + length};
}

PacketError parsed(PacketKind kind, std::span<const std::byte> packet, Contents& contents) {
    switch (kind) {
        case PacketKind::query:
            return parse_query(packet, contents.query);
        case PacketKind::answer:
            return parse_answer(packet, contents.answer);
        case PacketKind::hello:
            return parse_hello(packet, contents.hello);
        case PacketKind::retry:
            return parse_retry(packet, contents.cookie);
        case PacketKind::welcome:
            return parse_welcome(packet, contents.welcome);
        case PacketKind::refuse:
            return parse_refuse(packet, contents.refusal);
        case PacketKind::unsupported:
            return parse_unsupported(packet, contents.versions);
        case PacketKind::close:
            return parse_close(packet, contents.reason);
        case PacketKind::rails:
            return parse_rails(packet, contents.rails);
        case PacketKind::data:
            break;
    }
    return PacketError::kind;
}

/// What a receiver says of the packet: of the prefix, or else of what follows.
PacketError judged(std::span<const std::byte> packet) {
    PacketPrefix prefix;
    const PacketError error = parse_prefix(packet, prefix);
    Contents contents;
    return error == PacketError::none ? parsed(prefix.kind, packet, contents) : error;
}

void repair_checksum(std::span<std::byte> packet) { put(packet.data(), crc32c(packet.subspan(4))); }

/// The same with another number there, and a right checksum.
Bytes changed(Bytes packet, std::size_t offset, std::size_t length, std::uint64_t value) {
    std::memcpy(packet.data() + offset, &value, length);
    repair_checksum(packet);
    return packet;
}

const Field& field(PacketKind kind, const std::string& name) {
    const auto all = packet_layouts[number_of(kind) - 1].fields;
    const auto found = std::find_if(all.begin(), all.end(),
                                    [&](const Field& candidate) { return name == candidate.name; });
    EXPECT_NE(found, all.end()) << name;
    return *found;
}

std::uint64_t number_at(const Field& place, const Bytes& packet) {
    std::uint64_t value = 0;
    std::memcpy(&value, packet.data() + place.offset, place.length);
    return value;
}

TEST(Packet, RoundTripOfEveryKind) {
    Random random(1);
    for (const PacketKind kind : connecting_kinds)
        for (int n = 0; n < 200; ++n) {
            const std::uint64_t connection = random.next();
            const Bytes packet = emitted(kind, connection, random_contents(random));
            EXPECT_EQ(packet.size(), packet_length(kind));
            PacketPrefix prefix;
            ASSERT_EQ(parse_prefix(packet, prefix), PacketError::none);
            ASSERT_EQ(prefix.kind, kind);
            ASSERT_EQ(prefix.connection, connection);
            Contents read;
            ASSERT_EQ(parsed(kind, packet, read), PacketError::none) << int{number_of(kind)};
            ASSERT_EQ(emitted(kind, connection, read), packet);
        }
}

TEST(Packet, EveryFieldStandsWhereTheTableSays) {
    Contents c;
    c.query.discriminator = {{'n', 'a', 'm', 'e'}, 4};
    c.answer = {AnswerCode::found, 0x1112, 0x2122232425262728};
    c.hello = {0x3132333435363738,
               0x4142434445464748,
               {0x5152535455565758, 0x6162636465666768},
               {0x7172737475767778, 0x81828384, 0x91929394, 0xA1A2, 0xB1B2},
               true};
    c.cookie = {0xC1C2C3C4C5C6C7C8, 0xD1D2D3D4D5D6D7D8};
    c.welcome = {0xE1E2E3E4E5E6E7E8, 0xF1F2F3F4F5F6F7F8, c.hello.offer};
    c.refusal = PathRefusal::no_resource;
    c.reason = CloseReason::unknown_path;
    c.rails = {true, 2, {HostAddress{{1, 2, 3, 4, 5, 6}, 6}, HostAddress{{7, 8, 9}, 18}}};
    c.rails.addresses[1].bytes[17] = 1;
    const auto offered = [&](const char* name) -> std::uint64_t {
        const PathOffer& offer = c.hello.offer;
        return !std::strcmp(name, "instance")       ? offer.instance
               : !std::strcmp(name, "receive_room") ? offer.receive_room
               : !std::strcmp(name, "ack_delay_us") ? offer.ack_delay_us
               : !std::strcmp(name, "datagram_max") ? offer.datagram_max
                                                    : offer.nic_port;
    };
    struct Expected {
        PacketKind kind;
        const char* name;
        std::uint64_t value;
    };
    std::vector<Expected> all = {
        {PacketKind::query, "discriminator_length", 4},
        {PacketKind::answer, "code", 1},
        {PacketKind::answer, "port", 0x1112},
        {PacketKind::answer, "instance", 0x2122232425262728},
        {PacketKind::hello, "target", 0x3132333435363738},
        {PacketKind::hello, "attempt", 0x4142434445464748},
        {PacketKind::hello, "moment", 0x5152535455565758},
        {PacketKind::hello, "proof", 0x6162636465666768},
        {PacketKind::retry, "moment", 0xC1C2C3C4C5C6C7C8},
        {PacketKind::retry, "proof", 0xD1D2D3D4D5D6D7D8},
        {PacketKind::welcome, "reply_to", 0xE1E2E3E4E5E6E7E8},
        {PacketKind::welcome, "attempt", 0xF1F2F3F4F5F6F7F8},
        {PacketKind::refuse, "why", 2},
        {PacketKind::unsupported, "least", 1},
        {PacketKind::unsupported, "greatest", 1},
        {PacketKind::close, "why", 3},
        {PacketKind::hello, "joins", 1},
        {PacketKind::rails, "asks", 1},
        {PacketKind::rails, "count", 2},
        {PacketKind::rails, "length_1", 6},
        {PacketKind::rails, "length_2", 18},
        {PacketKind::rails, "length_3", 0},
        {PacketKind::rails, "length_4", 0},
    };
    for (const char* name :
         {"instance", "receive_room", "ack_delay_us", "datagram_max", "nic_port"}) {
        all.push_back({PacketKind::hello, name, offered(name)});
        all.push_back({PacketKind::welcome, name, offered(name)});
    }
    std::set<const Field*> seen;
    for (const Expected& expected : all) {
        const Bytes packet = emitted(expected.kind, 7, c);
        const Field& place = field(expected.kind, expected.name);
        EXPECT_EQ(number_at(place, packet), expected.value) << expected.name;
        EXPECT_TRUE(seen.insert(&place).second);
    }
    const Bytes query = emitted(PacketKind::query, 7, c);
    const Field& discriminator = field(PacketKind::query, "discriminator");
    EXPECT_EQ(std::memcmp(query.data() + discriminator.offset, "name\0", 5), 0);
    const Bytes rails = emitted(PacketKind::rails, 7, c);
    for (std::uint32_t n = 0; n < rails_max; ++n) {
        const Field& place = field(PacketKind::rails, "address_" + std::to_string(n + 1));
        EXPECT_EQ(std::memcmp(rails.data() + place.offset, c.rails.addresses[n].bytes.data(), 18),
                  0);
    }
    std::size_t others = 1 + rails_max;  // the discriminator, addresses
    for (const PacketKind kind : connecting_kinds)
        for (const Field& place : packet_layouts[number_of(kind) - 1].fields)
            if (place.form == FieldForm::zero) {
                EXPECT_EQ(number_at(place, emitted(kind, 7, c)), 0U);
                ++others;
            }
    std::size_t in_all = 0;
    for (const PacketKind kind : connecting_kinds)
        in_all += packet_layouts[number_of(kind) - 1].fields.size();
    EXPECT_EQ(seen.size() + others, in_all) << "every field was looked at";
}

TEST(Packet, ThePrefixStandsWhereItStandsForEver) {
    Contents contents;
    contents.reason = CloseReason::left;
    const Bytes packet = emitted(PacketKind::close, 0x0102030405060708, contents);
    const unsigned char expected[] = {1, 9, 0, 0, 8, 7, 6, 5, 4, 3, 2, 1};
    EXPECT_EQ(std::memcmp(packet.data() + 4, expected, sizeof expected), 0);
    EXPECT_EQ(get<std::uint32_t>(packet.data()), crc32c(std::span(packet).subspan(4)));
}

TEST(Packet, EveryOtherLengthIsRefused) {
    Random random(3);
    for (const PacketKind kind : connecting_kinds) {
        const Bytes whole = emitted(kind, 7, random_contents(random));
        for (std::size_t length = 0; length <= whole.size() + 20; ++length) {
            if (length == whole.size()) continue;
            // Of exactly this length, so that the address sanitizer sees a look beyond it.
            Bytes cut = whole;
            cut.resize(length);
            cut.shrink_to_fit();
            const bool too_short = length < packet_length_least;
            ASSERT_EQ(judged(cut), too_short ? PacketError::truncated : PacketError::checksum);
            if (length >= 4) repair_checksum(cut);
            ASSERT_EQ(judged(cut), too_short ? PacketError::truncated : PacketError::contents)
                << int{number_of(kind)} << ", length " << length;
        }
    }
}

TEST(Packet, EveryChangedBitAndByteIsCaughtByTheChecksum) {
    Random random(4);
    for (const PacketKind kind : connecting_kinds) {
        const Bytes whole = emitted(kind, random.next(), random_contents(random));
        for (std::size_t at = 0; at < whole.size(); ++at)
            for (unsigned change = 1; change <= 255; ++change) {
                Bytes packet = whole;
                packet[at] ^= static_cast<std::byte>(change);
                ASSERT_EQ(judged(packet), PacketError::checksum) << at;
            }
    }
}

TEST(Packet, EveryBadVersionKindAndZeroIsRefused) {
    Random random(5);
    const Bytes good = emitted(PacketKind::close, 0x77, random_contents(random));
    for (unsigned value = 0; value <= 255; ++value) {
        PacketPrefix prefix;
        EXPECT_EQ(parse_prefix(changed(good, 4, 1, value), prefix),
                  value == packet_version ? PacketError::none : PacketError::version);
        EXPECT_EQ(prefix.connection, 0x77U) << "an answer needs it";
        EXPECT_EQ(parse_prefix(changed(good, 5, 1, value), prefix),
                  value >= 1 && value <= packet_kind_max ? PacketError::none : PacketError::kind);
        for (const std::size_t at : {6U, 7U})
            EXPECT_EQ(parse_prefix(changed(good, at, 1, value), prefix),
                      value == 0 ? PacketError::none : PacketError::contents);
    }
}

TEST(Packet, UnsupportedIsReadWhateverItsVersion) {
    const Bytes good = emitted(PacketKind::unsupported, 7, {});
    for (unsigned version = 0; version <= 255; ++version)
        EXPECT_EQ(judged(changed(good, 4, 1, version)), PacketError::none) << version;
    EXPECT_EQ(judged(changed(good, 16, 2, 0x0502)), PacketError::none) << "versions 2 to 5";
}

TEST(Packet, BadValuesBehindARightChecksumAreRefused) {
    Random random(6);
    Contents contents = random_contents(random);
    contents.query.discriminator = {{'n', 'a', 'm', 'e'}, 4};
    contents.answer = {AnswerCode::found, 9, 8};
    const auto refused = [&](PacketKind kind, const char* name, std::uint64_t value) {
        const Field& place = field(kind, name);
        return judged(changed(emitted(kind, 7, contents), place.offset, place.length, value)) ==
               PacketError::contents;
    };
    for (const PacketKind kind : connecting_kinds)
        for (const Field& place : packet_layouts[number_of(kind) - 1].fields) {
            const Bytes good = emitted(kind, 7, contents);
            if (place.form == FieldForm::zero) {
                for (std::size_t at = 0; at < place.length; ++at)
                    EXPECT_EQ(judged(changed(good, place.offset + at, 1, 1)),
                              PacketError::contents);
            }
            if (place.form == FieldForm::named) {
                for (const std::uint64_t value : {0U, 4U, 100U, 0x10001U, ~0U})
                    EXPECT_TRUE(refused(kind, place.name, value)) << value;
            }
        }
    EXPECT_TRUE(refused(PacketKind::query, "discriminator_length", 3)) << "a byte behind its end";
    EXPECT_TRUE(refused(PacketKind::query, "discriminator_length", 65));
    EXPECT_TRUE(refused(PacketKind::query, "discriminator_length", 65535));
    EXPECT_TRUE(refused(PacketKind::answer, "port", 0));
    EXPECT_TRUE(refused(PacketKind::answer, "code", 2)) << "no_match, and yet a port";
    EXPECT_TRUE(refused(PacketKind::hello, "attempt", 0));
    EXPECT_TRUE(refused(PacketKind::welcome, "attempt", 0));
    EXPECT_TRUE(refused(PacketKind::welcome, "reply_to", 0));
    for (const PacketKind kind : {PacketKind::hello, PacketKind::welcome}) {
        EXPECT_TRUE(refused(kind, "datagram_max", packet_length_min - 1));
        EXPECT_TRUE(refused(kind, "datagram_max", packet_length_max + 1));
        EXPECT_TRUE(refused(kind, "receive_room", packet_length_min - 1));
        EXPECT_FALSE(refused(kind, "datagram_max", packet_length_min));
        EXPECT_FALSE(refused(kind, "datagram_max", packet_length_max));
        EXPECT_FALSE(refused(kind, "receive_room", packet_length_min));
    }
    contents.rails = {false, 2, {HostAddress{{1, 2, 3, 4, 5, 6}, 6}, HostAddress{{7, 8, 9}, 18}}};
    contents.rails.addresses[1].bytes[17] = 1;
    EXPECT_FALSE(refused(PacketKind::rails, "asks", 1));
    EXPECT_TRUE(refused(PacketKind::rails, "asks", 2));
    EXPECT_TRUE(refused(PacketKind::rails, "count", 1)) << "an address behind the last one";
    EXPECT_TRUE(refused(PacketKind::rails, "count", 3)) << "one that is none";
    EXPECT_TRUE(refused(PacketKind::rails, "count", rails_max + 1));
    for (const std::uint64_t length : {0U, 4U, 5U, 19U, 65535U})
        EXPECT_TRUE(refused(PacketKind::rails, "length_1", length)) << length;
    EXPECT_TRUE(refused(PacketKind::rails, "length_2", 6)) << "bytes behind its end";
    contents.rails.addresses[0].bytes[4] = contents.rails.addresses[0].bytes[5] = 0;
    EXPECT_TRUE(refused(PacketKind::rails, "asks", 1)) << "no port";
    EXPECT_FALSE(refused(PacketKind::hello, "joins", 1));
    EXPECT_TRUE(refused(PacketKind::hello, "joins", 2));
    EXPECT_TRUE(refused(PacketKind::hello, "joins", 1U << 31));
    contents.answer = {AnswerCode::no_match, 0, 0};
    EXPECT_TRUE(refused(PacketKind::answer, "port", 1));
    EXPECT_TRUE(refused(PacketKind::answer, "instance", 1));
    contents.cookie = {1, 0};
    EXPECT_TRUE(refused(PacketKind::retry, "moment", 0)) << "no cookie at all";
    EXPECT_TRUE(refused(PacketKind::unsupported, "least", 0));
    EXPECT_TRUE(refused(PacketKind::unsupported, "least", 2)) << "above the greatest";
}

TEST(Packet, WhatIsAcceptedIsExactlyWhatEmitMakes) {
    Random random(7);
    std::array<int, packet_kind_max + 1> accepted{};
    for (int n = 0; n < 200'000; ++n) {
        const PacketKind kind = connecting_kinds[random.below(std::size(connecting_kinds))];
        Bytes packet = emitted(kind, random.next(), random_contents(random));
        for (std::uint64_t changes = random.below(4); changes != 0; --changes)
            packet[random.below(packet.size())] =
                static_cast<std::byte>(random.chance(50) ? random.below(4) : random.next());
        repair_checksum(packet);
        PacketPrefix prefix;
        if (parse_prefix(packet, prefix) != PacketError::none) continue;
        Contents read;
        if (prefix.kind == PacketKind::data ||
            parsed(prefix.kind, packet, read) != PacketError::none)
            continue;
        ++accepted[number_of(prefix.kind)];
        if (prefix.kind == PacketKind::unsupported) continue;  // of other versions, too
        ASSERT_EQ(emitted(prefix.kind, prefix.connection, read), packet);
    }
    for (const PacketKind kind : connecting_kinds) EXPECT_GT(accepted[number_of(kind)], 5'000);
}

TEST(Packet, ARefusalIsToldInWords) {
    std::set<std::string> texts;
    for (const PacketError error :
         {PacketError::none, PacketError::truncated, PacketError::checksum, PacketError::version,
          PacketError::kind, PacketError::contents})
        texts.insert(to_string(error));
    EXPECT_EQ(texts.size(), 6U);
    EXPECT_FALSE(texts.contains("unknown"));
}

std::string printed(std::span<const std::byte> packet) {
    char text[1024];
    const std::size_t length = print_packet(packet, text, sizeof text);
    EXPECT_EQ(length, std::strlen(text));
    return text;
}

TEST(PacketPrinting, SaysWhatMatters) {
    Contents c;
    c.query.discriminator = {{'a', ' ', '\\', 0}, 4};
    c.answer = {AnswerCode::found, 4000, 0xAB};
    c.hello = {0x11, 2, {3, 4}, {5, 60000, 1000, 1472, 9741}};
    c.cookie = {30, 4};
    c.welcome = {0x66, 2, c.hello.offer};
    c.refusal = PathRefusal::unknown_instance;
    c.reason = CloseReason::left;
    const auto of = [&](PacketKind kind) { return printed(emitted(kind, 0x99, c)); };
    const std::string id = " connection=0000000000000099 ";
    const std::string offer =
        " instance=0000000000000005 receive_room=60000 ack_delay_us=1000 "
        "datagram_max=1472 nic_port=9741";
    EXPECT_EQ(of(PacketKind::query), "query" + id + "discriminator=a\\20\\5c\\00");
    EXPECT_EQ(of(PacketKind::answer), "answer" + id + "found port=4000 instance=00000000000000ab");
    EXPECT_EQ(of(PacketKind::hello),
              "hello" + id + "target=0000000000000011 attempt=2 cookie" + offer);
    EXPECT_EQ(of(PacketKind::retry), "retry" + id + "moment=30");
    EXPECT_EQ(of(PacketKind::welcome),
              "welcome" + id + "reply_to=0000000000000066 attempt=2" + offer);
    EXPECT_EQ(of(PacketKind::refuse), "refuse" + id + "unknown_instance");
    EXPECT_EQ(of(PacketKind::unsupported), "unsupported" + id + "versions=1-1");
    EXPECT_EQ(of(PacketKind::close), "close" + id + "left");
    c.rails.count = 2;
    for (HostAddress& address : c.rails.addresses) address = {{1, 2, 3, 4, 5, 6}, 6};
    EXPECT_EQ(of(PacketKind::rails), "rails" + id + "count=2");
    c.rails.asks = true;
    EXPECT_EQ(of(PacketKind::rails), "rails" + id + "count=2 asks");
    c.hello.joins = true;
    EXPECT_TRUE(of(PacketKind::hello).ends_with(" joins"));
    c.hello.joins = false;
    c.answer.code = AnswerCode::no_match;
    c.hello.cookie = {};
    EXPECT_EQ(of(PacketKind::answer), "answer" + id + "no_match");
    EXPECT_EQ(of(PacketKind::hello), "hello" + id + "target=0000000000000011 attempt=2" + offer);
}

TEST(PacketPrinting, SaysWhatIsWrong) {
    const Bytes good = emitted(PacketKind::hello, 7, [] {
        Random random(8);
        return random_contents(random);
    }());
    EXPECT_EQ(printed(std::span(good).first(3)), "packet of 3 bytes too short");
    EXPECT_EQ(printed(std::span(good).first(30)), "packet of 30 bytes with a wrong checksum");
    EXPECT_EQ(printed(changed(good, 4, 1, 4)), "packet of 72 bytes of an unknown version");
    EXPECT_EQ(printed(changed(good, 5, 1, 200)), "packet of 72 bytes of an unknown kind");
    EXPECT_EQ(printed(changed(good, 24, 8, 0)),
              "hello connection=0000000000000007 ... packet of 72 bytes with impossible contents");
}

/// Of version 2: what an observer may see.
TEST(PacketPrinting, SaysWhatIsInTheOpenOfSealedPackets) {
    Bytes text(sealed::text + 5 + sealed::tag_length, std::byte{0x77});
    const auto begin = [](Bytes& packet, PacketKind kind) {
        put_packet_prefix(packet, {kind, 0x99});
        put(packet.data() + 4, sealed::version);
    };
    begin(text, PacketKind::data);
    put(text.data() + sealed::number, std::uint64_t{12});
    const std::string id = " connection=0000000000000099";
    EXPECT_EQ(printed(text), "sealed data" + id + " #12 (5)");
    begin(text, PacketKind::close);
    EXPECT_EQ(printed(text), "sealed close" + id + " #12 (5)");
    put(text.data(), std::uint32_t{1});
    EXPECT_EQ(printed(text), "packet of 45 bytes with a wrong checksum");
    put(text.data(), std::uint32_t{0});
    EXPECT_EQ(printed(std::span(text).first(43)),
              "sealed close" + id + " ... packet of 43 bytes with impossible contents");

    const auto finish = [](Bytes& packet) {
        put(packet.data(), crc32c(std::span<const std::byte>(packet).subspan(4)));
        return printed(packet);
    };
    Bytes hello(sealed::hello_length);
    begin(hello, PacketKind::hello);
    put(hello.data() + sealed::hello_target, std::uint64_t{0x11});
    put(hello.data() + sealed::hello_cipher, std::uint8_t{1});
    EXPECT_EQ(finish(hello), "sealed hello" + id + " target=0000000000000011 cookie aes_256_gcm");
    put(hello.data() + sealed::hello_zero + 6, std::uint8_t{1});
    EXPECT_EQ(finish(hello),
              "sealed hello" + id + " ... packet of 232 bytes with impossible contents");
    hello[20] ^= std::byte{1};
    EXPECT_EQ(printed(hello), "packet of 232 bytes with a wrong checksum");
    Contents c;
    c.hello = {0x11, 2, {}, {5, 60000, 1000, 1472, 9741}};
    EXPECT_EQ(printed(changed(emitted(PacketKind::hello, 0x99, c), 4, 1, 2)),
              "sealed " + printed(emitted(PacketKind::hello, 0x99, c)));
    Bytes welcome(sealed::welcome_length);
    begin(welcome, PacketKind::welcome);
    EXPECT_EQ(finish(welcome), "sealed welcome" + id);
    welcome.pop_back();
    EXPECT_EQ(finish(welcome),
              "sealed welcome" + id + " ... packet of 119 bytes with impossible contents");
}

TEST(PacketPrinting, NeverWritesMoreThanItMay) {
    Random random(9);
    for (const PacketKind kind : connecting_kinds) {
        const Bytes packet = emitted(kind, random.next(), random_contents(random));
        const std::string whole = printed(packet);
        for (std::size_t size = 0; size <= whole.size() + 2; ++size) {
            std::vector<char> text(size);  // exactly, so that the address sanitizer sees all
            const std::size_t length = print_packet(packet, text.data(), size);
            const std::size_t expected = size == 0 ? 0 : std::min(size - 1, whole.size());
            ASSERT_EQ(length, expected) << size;
            if (size != 0) {
                ASSERT_EQ(std::string(text.data()), whole.substr(0, expected)) << size;
            }
        }
    }
}

}  // namespace
}  // namespace via::wire::packet_test
