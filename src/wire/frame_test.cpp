#include "wire/frame.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstring>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/random.hpp"
#include "wire/fields.hpp"

namespace via::wire::frame_test {
namespace {

constexpr std::size_t room = 64;
using Bytes = std::array<std::byte, room>;
constexpr std::byte guard{0xA5};

constexpr auto skip = static_cast<std::uint8_t>(FrameKind::skip);

/// Every legal set of flags; a skip has none.
std::vector<std::uint8_t> legal_flags(std::uint8_t kind) {
    if (kind == skip) return {0};
    std::vector<std::uint8_t> sets;
    for (unsigned flags = 0; flags <= flag::all; ++flags)
        if (((flags & flag::remote) == 0 || (flags & flag::extent) != 0) &&
            ((flags & flag::placed) == 0 || (flags & flag::remote) != 0) &&
            ((flags & flag::pull) == 0 || (flags & flag::extent) != 0))
            sets.push_back(static_cast<std::uint8_t>(flags));
    return sets;
}

Header random_header(Random& random, std::uint8_t kind, std::uint8_t flags) {
    const auto word = [&] { return static_cast<std::uint32_t>(random.next()); };
    Header header;
    header.kind = static_cast<FrameKind>(kind);
    header.flags = flags;
    header.vi = word();
    header.message = word();
    header.immediate_or_code = word();
    if ((flags & flag::extent) != 0) {
        header.message_length = word();
        header.offset = word();
    }
    if ((flags & flag::remote) != 0) {
        header.remote_address = random.next();
        header.remote_handle = word();
        header.read_number = word();
    }
    return header;
}

void expect_equal(const Header& a, const Header& b) {
    EXPECT_EQ(a.kind, b.kind);
    EXPECT_EQ(a.flags, b.flags);
    EXPECT_EQ(a.vi, b.vi);
    EXPECT_EQ(a.message, b.message);
    EXPECT_EQ(a.immediate_or_code, b.immediate_or_code);
    EXPECT_EQ(a.message_length, b.message_length);
    EXPECT_EQ(a.offset, b.offset);
    EXPECT_EQ(a.remote_address, b.remote_address);
    EXPECT_EQ(a.remote_handle, b.remote_handle);
    EXPECT_EQ(a.read_number, b.read_number);
}

Bytes emitted(const Header& header) {
    Bytes bytes;
    bytes.fill(guard);
    emit(header, bytes.data());
    return bytes;
}

TEST(Frame, RoundTripOfEveryKindAndEverySetOfFlags) {
    Random random(1);
    for (std::uint8_t kind = 1; kind <= frame_kind_max; ++kind)
        for (const std::uint8_t flags : legal_flags(kind))
            for (int n = 0; n < 20; ++n) {
                const Header header = random_header(random, kind, flags);
                const Bytes bytes = emitted(header);
                for (std::size_t at = header_length(flags); at < room; ++at)
                    ASSERT_EQ(bytes[at], guard) << "emit wrote behind the header";
                Header read;
                ASSERT_EQ(parse(bytes.data(), header_length(flags), read), ParseError::none);
                expect_equal(header, read);
                ASSERT_EQ(emitted(read), bytes);
            }
}

TEST(Frame, PlacesOfAllFieldsAreFixed) {
    Header header;
    header.kind = FrameKind::read_request;
    header.flags = flag::first | flag::extent | flag::remote;
    header.vi = 0x01020304;
    header.message = 0x11121314;
    header.immediate_or_code = 0x21222324;
    header.message_length = 0x31323334;
    header.offset = 0x41424344;
    header.remote_address = 0x5152535455565758;
    header.remote_handle = 0x61626364;
    header.read_number = 0x71727374;
    const Bytes bytes = emitted(header);
    const unsigned char expected[] = {8,    25,   1,    0,    0x04, 0x03, 0x02, 0x01, 0x14, 0x13,
                                      0x12, 0x11, 0x24, 0x23, 0x22, 0x21, 0x34, 0x33, 0x32, 0x31,
                                      0x44, 0x43, 0x42, 0x41, 0x58, 0x57, 0x56, 0x55, 0x54, 0x53,
                                      0x52, 0x51, 0x64, 0x63, 0x62, 0x61, 0x74, 0x73, 0x72, 0x71};
    static_assert(sizeof expected == header_length_remote);
    EXPECT_EQ(std::memcmp(bytes.data(), expected, sizeof expected), 0);
    const std::pair<const char*, std::uint64_t> values[] = {
        {"kind", 8},
        {"flags", 25},
        {"version", 1},
        {"zero", 0},
        {"vi", header.vi},
        {"message", header.message},
        {"immediate_or_code", header.immediate_or_code},
        {"message_length", header.message_length},
        {"offset", header.offset},
        {"remote_address", header.remote_address},
        {"remote_handle", header.remote_handle},
        {"read_number", header.read_number}};
    const auto* next = values;
    for (const std::span<const Field> part :
         {std::span<const Field>(fields::frame), std::span<const Field>(fields::frame_extent),
          std::span<const Field>(fields::frame_remote)})
        for (const Field& field : part) {
            std::uint64_t value = 0;
            std::memcpy(&value, bytes.data() + field.offset, field.length);
            EXPECT_STREQ(field.name, next->first);
            EXPECT_EQ(value, next->second) << field.name;
            ++next;
        }
    EXPECT_EQ(next, std::end(values));
}

TEST(Frame, EveryTruncatedLengthIsRefused) {
    Random random(2);
    for (std::uint8_t kind = 1; kind <= frame_kind_max; ++kind)
        for (const std::uint8_t flags : legal_flags(kind)) {
            const Bytes bytes = emitted(random_header(random, kind, flags));
            for (std::size_t length = 0; length < header_length(flags); ++length) {
                // Of exactly this length, so that the address sanitizer sees a look beyond it.
                const std::vector<std::byte> cut(
                    bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(length));
                Header header;
                ASSERT_EQ(parse(cut.data(), length, header), ParseError::truncated)
                    << "length " << length << ", flags " << int{flags};
            }
            Header header;
            EXPECT_EQ(parse(bytes.data(), room, header), ParseError::none) << "payload may follow";
        }
}

TEST(Frame, EveryBadFlagIsRefused) {
    Random random(3);
    for (std::uint8_t kind = 1; kind <= frame_kind_max; ++kind) {
        const std::vector<std::uint8_t> legal = legal_flags(kind);
        const std::set<std::uint8_t> good(legal.begin(), legal.end());
        Bytes bytes = emitted(random_header(random, kind, flag::all));
        for (unsigned flags = 0; flags <= 255; ++flags) {
            bytes[1] = static_cast<std::byte>(flags);
            Header header;
            EXPECT_EQ(parse(bytes.data(), room, header),
                      good.contains(static_cast<std::uint8_t>(flags)) ? ParseError::none
                                                                      : ParseError::flags)
                << flags;
        }
    }
}

TEST(Frame, EveryBadKindVersionAndPaddingIsRefused) {
    Random random(4);
    const Bytes good = emitted(random_header(random, 6, flag::all));
    for (unsigned value = 0; value <= 255; ++value) {
        const auto with = [&](std::size_t at) {
            Bytes bytes = good;
            bytes[at] = static_cast<std::byte>(value);
            Header header;
            return parse(bytes.data(), room, header);
        };
        EXPECT_EQ(with(0), value == 0 || value > frame_kind_max ? ParseError::kind
                           : value == skip                      ? ParseError::flags
                                                                : ParseError::none)
            << value;
        EXPECT_EQ(with(2), value == 1 ? ParseError::none : ParseError::version) << value;
        EXPECT_EQ(with(3), value == 0 ? ParseError::none : ParseError::version) << value;
    }
}

TEST(Frame, WhatIsAcceptedIsExactlyWhatEmitMakes) {
    Random random(5);
    int accepted = 0;
    for (int n = 0; n < 200'000; ++n) {
        Bytes bytes;
        for (std::byte& byte : bytes) byte = static_cast<std::byte>(random.next());
        // Mostly plausible beginnings, or nothing would get through.
        if (random.chance(90)) bytes[0] = static_cast<std::byte>(random.below(frame_kind_max + 2));
        if (random.chance(90)) bytes[1] = static_cast<std::byte>(random.below(34));
        if (random.chance(90)) bytes[2] = std::byte{1};
        if (random.chance(90)) bytes[3] = std::byte{0};
        const std::size_t length = random.below(room + 1);
        const std::vector<std::byte> exact(bytes.begin(),
                                           bytes.begin() + static_cast<std::ptrdiff_t>(length));
        Header header;
        if (parse(exact.data(), length, header) != ParseError::none) continue;
        ++accepted;
        ASSERT_LE(header_length(header.flags), length);
        const Bytes again = emitted(header);
        ASSERT_EQ(std::memcmp(again.data(), bytes.data(), header_length(header.flags)), 0);
    }
    EXPECT_GT(accepted, 10'000);
}

TEST(Frame, AFailedParseIsToldInWords) {
    std::set<std::string> texts;
    for (const ParseError error : {ParseError::none, ParseError::truncated, ParseError::version,
                                   ParseError::kind, ParseError::flags})
        texts.insert(to_string(error));
    EXPECT_EQ(texts.size(), 5U);
    EXPECT_FALSE(texts.contains("unknown"));
}

std::string printed(const Header& header, std::size_t payload_length) {
    char text[256];
    const std::size_t length = print(header, payload_length, text, sizeof text);
    EXPECT_EQ(length, std::strlen(text));
    return text;
}

TEST(Fields, OfAConnectMessageStandWhereItsMembersStand) {
    const std::pair<std::size_t, std::size_t> members[] = {
        {offsetof(ConnectMessage, vi), sizeof ConnectMessage::vi},
        {offsetof(ConnectMessage, transfer_length_max), sizeof ConnectMessage::transfer_length_max},
        {offsetof(ConnectMessage, reliability), sizeof ConnectMessage::reliability},
        {offsetof(ConnectMessage, rdma_write_enabled), sizeof ConnectMessage::rdma_write_enabled},
        {offsetof(ConnectMessage, rdma_read_enabled), sizeof ConnectMessage::rdma_read_enabled},
        {offsetof(ConnectMessage, features), sizeof ConnectMessage::features},
        {offsetof(ConnectMessage, qos), sizeof ConnectMessage::qos},
        {offsetof(ConnectMessage, local_length), sizeof ConnectMessage::local_length},
        {offsetof(ConnectMessage, remote_length), sizeof ConnectMessage::remote_length},
        {offsetof(ConnectMessage, local_discriminator), sizeof ConnectMessage::local_discriminator},
        {offsetof(ConnectMessage, remote_discriminator),
         sizeof ConnectMessage::remote_discriminator},
        {offsetof(ConnectMessage, private_length), sizeof ConnectMessage::private_length}};
    ASSERT_EQ(std::size(members), std::size(fields::connect));
    for (std::size_t n = 0; n < std::size(members); ++n) {
        EXPECT_EQ(fields::connect[n].offset, members[n].first) << fields::connect[n].name;
        EXPECT_EQ(fields::connect[n].length, members[n].second) << fields::connect[n].name;
    }
}

TEST(FramePrinting, SaysWhatMatters) {
    Header header;
    header.kind = FrameKind::send;
    header.flags = flag::first | flag::last;
    header.vi = 3;
    header.message = 7;
    EXPECT_EQ(printed(header, 40), "send first last vi=3 message=7 length=40");
    header.flags = flag::immediate | flag::extent;
    header.immediate_or_code = 99;
    header.offset = 100;
    header.message_length = 500;
    EXPECT_EQ(printed(header, 8), "send vi=3 message=7 length=8 immediate=99 offset=100 of=500");
    header.kind = FrameKind::rdma_write;
    header.flags = flag::extent | flag::remote;
    header.remote_handle = 5;
    header.read_number = 2;
    EXPECT_EQ(printed(header, 8),
              "rdma_write vi=3 message=7 length=8 offset=100 of=500 handle=5 read=2");
    header.kind = FrameKind::nak;
    header.flags = 0;
    header.immediate_or_code = static_cast<std::uint32_t>(NakCode::protection);
    EXPECT_EQ(printed(header, 0), "nak vi=3 message=7 length=0 code=2");
}

TEST(FramePrinting, EveryKindHasANameOfItsOwn) {
    std::set<std::string> names;
    for (std::uint8_t kind = 0; kind <= frame_kind_max; ++kind) {
        Header header;
        header.kind = static_cast<FrameKind>(kind);
        names.insert(printed(header, 0).substr(0, printed(header, 0).find(' ')));
    }
    EXPECT_EQ(names.size(), frame_kind_max + 1U);
    EXPECT_TRUE(names.contains("skip"));
    Header strange;
    strange.kind = static_cast<FrameKind>(200);
    EXPECT_EQ(printed(strange, 0), "? vi=0 message=0 length=0");
}

TEST(FramePrinting, NeverWritesMoreThanItMay) {
    Random random(6);
    for (const std::uint8_t flags : legal_flags(8)) {
        const Header header = random_header(random, 8, flags);
        const std::string whole = printed(header, ~std::size_t{0});
        for (std::size_t size = 0; size <= whole.size() + 2; ++size) {
            std::vector<char> text(size + 8, '#');
            const std::size_t length = print(header, ~std::size_t{0}, text.data(), size);
            for (std::size_t at = size; at < text.size(); ++at) ASSERT_EQ(text[at], '#') << size;
            const std::size_t expected = size == 0                 ? 0
                                         : size - 1 < whole.size() ? size - 1
                                                                   : whole.size();
            ASSERT_EQ(length, expected) << size;
            if (size != 0) {
                ASSERT_EQ(std::string(text.data()), whole.substr(0, expected)) << size;
            }
        }
    }
}

TEST(Frame, GoesOnIsToldOfPartsOfMessagesOnly) {
    for (std::uint8_t kind = 1; kind <= frame_kind_max; ++kind)
        for (const std::uint8_t flags : legal_flags(kind)) {
            Bytes bytes{};
            emit({.kind = static_cast<FrameKind>(kind), .flags = flags}, bytes.data());
            const auto is = static_cast<FrameKind>(kind);
            const bool message = is == FrameKind::send || is == FrameKind::rdma_write;
            const bool part = message || is == FrameKind::read_reply;
            EXPECT_EQ(is_of_message(bytes.data(), bytes.size()), message) << int{kind};
            EXPECT_EQ(goes_on(bytes.data(), bytes.size()), part && (flags & flag::last) == 0)
                << int{kind} << ' ' << int{flags};
        }
    EXPECT_FALSE(goes_on(nullptr, 0));
    EXPECT_FALSE(is_of_message(nullptr, 0));
}

}  // namespace
}  // namespace via::wire::frame_test
