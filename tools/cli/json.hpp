// One JSON object a line, built member by member.
#pragma once

#include <fmt/format.h>

#include <span>
#include <string>
#include <string_view>

namespace via::cli {

class JsonLine {
public:
    explicit JsonLine(std::string_view schema) { text("schema", schema); }

    JsonLine& text(std::string_view name, std::string_view value) {
        return raw(name, '"' + escaped(value) + '"');
    }
    template <class Number>
    JsonLine& number(std::string_view name, Number value) {
        return raw(name, fmt::format("{}", value));
    }
    JsonLine& boolean(std::string_view name, bool value) {
        return raw(name, value ? "true" : "false");
    }
    /// Six digits: measured figures deserve no more.
    JsonLine& figure(std::string_view name, double value) {
        return raw(name, fmt::format("{:.6g}", value));
    }
    /// The same, or null for what is not more than 0.
    JsonLine& figure_if_any(std::string_view name, double value) {
        return value > 0 ? figure(name, value) : null(name);
    }
    JsonLine& figures(std::string_view name, std::span<const double> values) {
        std::string list;
        for (const double value : values) {
            list += fmt::format("{}{:.6g}", list.empty() ? "" : ",", value);
        }
        return raw(name, '[' + list + ']');
    }
    JsonLine& null(std::string_view name) { return raw(name, "null"); }
    /// Members until close() belong to an object called `name`.
    JsonLine& open(std::string_view name) {
        raw(name, "{");
        first_ = true;
        ++depth_;
        return *this;
    }
    JsonLine& close() {
        line_ += '}';
        first_ = false;
        --depth_;
        return *this;
    }
    /// The whole line, with its end.
    std::string line() const { return line_ + std::string(depth_ + 1, '}') + '\n'; }

private:
    /// Bytes of the UTF-8 character that `text` begins with; 0: there is none.
    static std::size_t character_length(std::string_view text) {
        const auto byte = [&](std::size_t n) {
            return n < text.size() ? static_cast<unsigned char>(text[n]) : 0U;
        };
        const unsigned first = byte(0);
        if (first < 0x80) return 1;
        if (first < 0xc2 || first > 0xf4) return 0;
        // Longer than need be, a half of a pair, or behind the last character.
        const unsigned second_min = first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : 0x80;
        const unsigned second_max = first == 0xed ? 0x9f : first == 0xf4 ? 0x8f : 0xbf;
        if (byte(1) < second_min || byte(1) > second_max) return 0;
        const std::size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
        for (std::size_t n = 2; n < length; ++n) {
            if ((byte(n) & 0xc0) != 0x80) return 0;
        }
        return length;
    }
    /// Names of NICs and programs may be of any bytes, JSON is of characters.
    static std::string escaped(std::string_view text) {
        std::string safe;
        while (!text.empty()) {
            const char c = text.front();
            const std::size_t length = character_length(text);
            if (c == '"' || c == '\\') safe += '\\';
            if (length == 0) {
                safe += "\\ufffd";
            } else if (static_cast<unsigned char>(c) < 0x20) {
                safe += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
            } else {
                safe += text.substr(0, length);
            }
            text.remove_prefix(length == 0 ? 1 : length);
        }
        return safe;
    }
    JsonLine& raw(std::string_view name, std::string_view value) {
        if (!first_) line_ += ',';
        first_ = false;
        line_ += fmt::format("\"{}\":{}", name, value);
        return *this;
    }
    std::string line_ = "{";
    bool first_ = true;
    std::size_t depth_ = 0;
};

}  // namespace via::cli
