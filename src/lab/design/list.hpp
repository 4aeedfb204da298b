// All alternatives of a NIC's parts, and how to put a design together from words such as "at=3".
#pragma once

#include <expected>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "lab/machine.hpp"
#include "lab/parts.hpp"

namespace via::lab::design {

/// A machine's own words, and over them what the user wants else.
using Options = Words;

struct Alternative {
    std::string_view part;  ///< "at", "doorbell", ...
    std::string_view name;  ///< "1"
    std::string_view what;
};
std::span<const Alternative> alternatives();

/// Of the options of a design that was made, so the word is there and a number.
std::int64_t number_of(const Options& options, std::string_view word);

/// Adds "at=3,doorbell=d1" to options; the error says what is no word of a design.
std::expected<void, std::string> add(Options& options, std::string_view words);

/// The error says which word is unknown, missing, or does not go with the others, or how much more
/// memory than the NIC has it would need.
std::expected<Design, std::string> make(const Machine& machine, const Options& options,
                                        const Load& load);

}  // namespace via::lab::design
