// Takes numbers and bytes off a fuzzer's input; behind its end all is zero.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <span>

namespace fuzz {

class Input {
public:
    Input(const std::uint8_t* data, std::size_t size) : left_(data, size) {}

    bool empty() const { return left_.empty(); }
    template <class T>
    T take() {
        T value{};
        const std::size_t here = left_.size() < sizeof value ? left_.size() : sizeof value;
        std::memcpy(&value, left_.data(), here);
        left_ = left_.subspan(here);
        return value;
    }
    std::uint8_t byte() { return take<std::uint8_t>(); }
    std::uint16_t half() { return take<std::uint16_t>(); }
    std::uint32_t word() { return take<std::uint32_t>(); }
    std::uint64_t wide() { return take<std::uint64_t>(); }
    /// Up to that many bytes as they are.
    std::span<const std::uint8_t> bytes(std::size_t length) {
        const auto result = left_.first(left_.size() < length ? left_.size() : length);
        left_ = left_.subspan(result.size());
        return result;
    }

private:
    std::span<const std::uint8_t> left_;
};

/// Ends the run: something that must hold does not.
inline void require(bool holds, const char* what) {
    if (holds) return;
    std::fprintf(stderr, "it does not hold that %s\n", what);
    std::abort();
}

}  // namespace fuzz
