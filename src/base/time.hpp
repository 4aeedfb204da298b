// Virtual or real time as plain nanoseconds. The base room knows no clock: somebody hands `now` in.
#pragma once

#include <compare>
#include <cstdint>
#include <limits>

namespace via {

/// A span of time in nanoseconds; may be negative.
struct Duration {
    std::int64_t ns = 0;
    friend constexpr auto operator<=>(Duration, Duration) = default;
    friend constexpr Duration operator+(Duration a, Duration b) { return {a.ns + b.ns}; }
    friend constexpr Duration operator*(Duration a, std::int64_t n) { return {a.ns * n}; }
};

constexpr Duration nanoseconds(std::int64_t n) { return {n}; }
constexpr Duration microseconds(std::int64_t n) { return {n * 1000}; }
constexpr Duration milliseconds(std::int64_t n) { return {n * 1'000'000}; }
constexpr Duration seconds(std::int64_t n) { return {n * 1'000'000'000}; }

/// A moment on some monotonic clock, in nanoseconds since that clock's start.
struct Time {
    std::int64_t ns = 0;
    friend constexpr auto operator<=>(Time, Time) = default;
    friend constexpr Duration operator-(Time a, Time b) { return {a.ns - b.ns}; }

    static constexpr Time never() { return {std::numeric_limits<std::int64_t>::max()}; }
    constexpr bool is_never() const { return *this == never(); }
};

/// Saturates at never(), so that "no deadline" stays none.
constexpr Time operator+(Time t, Duration d) {
    if (t.is_never() || d.ns > Time::never().ns - t.ns) return Time::never();
    return {t.ns + d.ns};
}

constexpr Time earlier(Time a, Time b) { return a < b ? a : b; }

}  // namespace via
