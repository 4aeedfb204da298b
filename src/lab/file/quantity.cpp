#include "lab/file/quantity.hpp"

#include <charconv>
#include <cmath>
#include <span>

namespace via::lab::file {
namespace {

struct Name {
    std::string_view word;
    double factor;
};

constexpr Name times[] = {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}};
constexpr Name times_per_word[] = {{"ns/word", 1}, {"us/word", 1e3}};
constexpr Name rates[] = {{"KB/s", 1e3}, {"MB/s", 1e6}, {"GB/s", 1e9}};
constexpr Name sizes[] = {{"B", 1}, {"KB", 1024}, {"MB", 1024.0 * 1024}};
constexpr Name percents[] = {{"%", 1}};
constexpr Name packets[] = {{"packets", 1}, {"packet", 1}};
constexpr Name commands[] = {{"commands", 1}, {"command", 1}};
constexpr Name counts[] = {{"words", 1}, {"word", 1}};

std::span<const Name> names_of(Unit unit) {
    switch (unit) {
        case Unit::time:
            return times;
        case Unit::time_per_word:
            return times_per_word;
        case Unit::rate:
            return rates;
        case Unit::size:
            return sizes;
        case Unit::words:
            return counts;
        case Unit::packets:
            return packets;
        case Unit::percent:
            return percents;
        case Unit::commands:
            return commands;
    }
    return {};
}

/// Sums and products of these stay far from the end of 64 bits.
double largest(Unit unit) {
    switch (unit) {
        case Unit::time:
        case Unit::time_per_word:
            return 1e12;
        case Unit::rate:
            return 1e15;
        case Unit::size:
            return 1024.0 * 1024 * 1024;
        case Unit::words:
        case Unit::packets:
        case Unit::commands:
            return 10'000;
        case Unit::percent:
            return 100;
    }
    return 0;
}

std::string wanted(Unit unit) {
    switch (unit) {
        case Unit::time:
            return "a time, for instance \"2.27 us\"";
        case Unit::time_per_word:
            return "a time per word, for instance \"0.33 us/word\"";
        case Unit::rate:
            return "a rate, for instance \"132 MB/s\"";
        case Unit::size:
            return "a size, for instance \"4096 B\"";
        case Unit::words:
            return "a number of words, for instance \"5 words\"";
        case Unit::packets:
            return "a number of packets, for instance \"64 packets\"";
        case Unit::percent:
            return "a percentage, for instance \"5 %\"";
        case Unit::commands:
            return "a number of commands, for instance \"16 commands\"";
    }
    return {};
}

}  // namespace

std::expected<std::int64_t, std::string> quantity(std::string_view text, Unit unit) {
    double number = 0;
    const auto read = std::from_chars(text.begin(), text.end(), number);
    std::string_view word = text.substr(static_cast<std::size_t>(read.ptr - text.begin()));
    while (!word.empty() && word.front() == ' ') word.remove_prefix(1);
    if (read.ec == std::errc() && std::isfinite(number) && number >= 0) {
        for (const Name& name : names_of(unit)) {
            const double value = number * name.factor;
            const bool some = unit == Unit::rate || unit == Unit::size || unit == Unit::commands ||
                              unit == Unit::packets;
            const bool positive = !some || value >= 1;
            if (name.word == word && value <= largest(unit) && positive) return std::llround(value);
        }
    }
    return std::unexpected("want " + wanted(unit));
}

}  // namespace via::lab::file
