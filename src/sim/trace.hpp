// The trace of a run: one line of text per event, and a hash over all of them. Equal runs have
// equal traces, byte for byte; lines hold places within memory, never addresses.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include "base/time.hpp"

namespace via::sim {

class Trace {
public:
    /// Gets every line, its end included. Whoever wants to keep a trace brings one.
    using Sink = std::function<void(std::string_view line)>;

    void set_sink(Sink sink) { sink_ = std::move(sink); }
    /// One line "<now in ns> <text>"; text beyond 300 bytes is cut.
    void line(Time now, const char* format, ...) __attribute__((format(printf, 3, 4)));
    void add(Time now, std::string_view text);  ///< the same

    std::uint64_t hash() const { return hash_; }
    std::uint64_t lines() const { return lines_; }

private:
    static constexpr std::size_t text_max = 338;  ///< bytes of a line, but its end

    Sink sink_;
    std::uint64_t hash_ = 0xCBF29CE484222325ULL;  // FNV-1a
    std::uint64_t lines_ = 0;
};

}  // namespace via::sim
