// Numbers and texts to bytes and back, for what crosses to another machine. Little-endian, as both
// machines are.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace via::bench {

static_assert(std::endian::native == std::endian::little);

class Writer {
public:
    template <class T>
        requires std::is_arithmetic_v<T>
    void number(T value) {
        const auto* from = reinterpret_cast<const std::byte*>(&value);
        bytes_.insert(bytes_.end(), from, from + sizeof value);
    }
    // Cut to `width` bytes, or filled with zeros.
    void text(std::string_view value, std::size_t width) {
        const std::size_t kept = std::min(value.size(), width);
        const auto* from = reinterpret_cast<const std::byte*>(value.data());
        bytes_.insert(bytes_.end(), from, from + kept);
        bytes_.resize(bytes_.size() + width - kept);
    }
    void flag(bool value) { number(std::uint8_t{value}); }
    template <class T>
    void one_of(T value, T /*last*/) {
        number(static_cast<std::uint8_t>(value));
    }
    std::span<const std::byte> bytes() const { return bytes_; }

private:
    std::vector<std::byte> bytes_;
};

// Reading more than there is gives zeros and makes it not good.
class Reader {
public:
    explicit Reader(std::span<const std::byte> bytes) : rest_(bytes) {}

    template <class T>
        requires std::is_arithmetic_v<T>
    T number() {
        T value{};
        if (take(sizeof value)) std::memcpy(&value, taken_, sizeof value);
        return value;
    }
    // 0 or 1; anything else is not good.
    bool flag() {
        const auto value = number<std::uint8_t>();
        good_ = good_ && value <= 1;
        return value == 1;
    }
    // An enumeration whose last value is `last`.
    template <class T>
    T one_of(T last) {
        const auto value = number<std::uint8_t>();
        good_ = good_ && value <= static_cast<std::uint8_t>(last);
        return good_ ? static_cast<T>(value) : T{};
    }
    // Ends at the first NUL. What is not printable becomes '?': it may go to a terminal.
    std::string text(std::size_t width) {
        if (!take(width)) return {};
        std::string value(reinterpret_cast<const char*>(taken_), width);
        value.resize(std::min(value.find('\0'), width));
        std::replace_if(value.begin(), value.end(), [](char c) { return c < ' ' || c > '~'; }, '?');
        return value;
    }
    // The same as the writer's, for whatever goes both ways.
    template <class T>
    void number(T& value) {
        value = number<T>();
    }
    void flag(bool& value) { value = flag(); }
    template <class T>
    void one_of(T& value, T last) {
        value = one_of(last);
    }
    void text(std::string& value, std::size_t width) { value = text(width); }
    // Everything was there, sensible and nothing is left.
    bool is_done() const { return good_ && rest_.empty(); }

private:
    bool take(std::size_t bytes) {
        if (rest_.size() < bytes) good_ = false;
        if (!good_) return false;
        taken_ = rest_.data();
        rest_ = rest_.subspan(bytes);
        return true;
    }

    std::span<const std::byte> rest_;
    const std::byte* taken_ = nullptr;
    bool good_ = true;
};

}  // namespace via::bench
