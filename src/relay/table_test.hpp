// Tables of tests: hosts are numbers, as in 10.0.0.NUMBER.
#pragma once

#include <gtest/gtest.h>

#include <charconv>
#include <optional>
#include <string>
#include <string_view>

#include "relay/ways.hpp"

namespace via::relay::test {

inline HostAddress host(std::uint8_t number, std::uint16_t port) {
    HostAddress address;
    address.length = 6;
    address.bytes = {10, 0, 0, number};
    return with_port(address, port);
}

inline std::optional<HostAddress> parse_number(std::string_view text) {
    unsigned number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc{} || end != text.data() + text.size() || number > 255) return {};
    return host(static_cast<std::uint8_t>(number), 9741);
}

inline Ways ways(const std::string& text) {
    auto read = Ways::parse(text, "test", parse_number);
    EXPECT_TRUE(read) << (read ? "" : read.error());
    return read ? *read : Ways{};
}

}  // namespace via::relay::test
