// What of a kernel's part can be chosen: words of a design, as those of a NIC.
#pragma once

#include <cstdint>
#include <expected>
#include <span>
#include <string>
#include <string_view>

#include "lab/machine.hpp"

namespace via::lab::kernel {

struct Setting {
    bool tcp = false;       ///< else VIA
    bool blocks = false;    ///< who waits may sleep; else it polls
    bool smp = false;       ///< two processors
    bool switched = false;  ///< else a cable
    std::int64_t mtu = 0;   ///< bytes of a packet, with the protocol's headers
};

using Options = Words;

struct Choice {
    std::string_view word;
    std::string_view value;
    std::string_view what;
};
std::span<const Choice> choices();

/// Is it a word of this room's, on such a machine?
bool is_word(const Machine& machine, std::string_view word);

/// What is left of a design's words: those of its adapter.
Options adapter_words(const Machine& machine, Options words);

/// The error says which word is missing, unknown, or has a value that it cannot have.
std::expected<Setting, std::string> setting_of(const Machine& machine, const Options& options);

}  // namespace via::lab::kernel
