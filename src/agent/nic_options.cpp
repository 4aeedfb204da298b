#include "agent/nic_options.hpp"

#include <stdlib.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <iterator>
#include <vector>

#include "agent/configuration.hpp"

namespace via::agent {

namespace {

struct Option {
    const char* name;
    const char* values;
    const char* meaning;
    bool (*set)(NicOptions& options, std::string_view value);  ///< false: no such value
    std::string (*show)(const NicOptions& options);
};

/// An option whose values are words.
template <class Value>
struct Word {
    std::string_view word;
    Value value;
};

template <auto member, const auto& words>
bool set_word(NicOptions& options, std::string_view value) {
    const auto found = std::find_if(std::begin(words), std::end(words),
                                    [&](const auto& one) { return one.word == value; });
    if (found == std::end(words)) return false;
    options.*member = found->value;
    return true;
}

template <auto member, const auto& words>
std::string show_word(const NicOptions& options) {
    const auto found = std::find_if(std::begin(words), std::end(words),
                                    [&](const auto& one) { return one.value == options.*member; });
    return std::string(found->word);
}

/// An option whose values are numbers from `least` to `most`.
template <auto member, std::uint64_t least, std::uint64_t most>
bool set_number(NicOptions& options, std::string_view value) {
    std::uint64_t number = 0;
    const char* const end = value.data() + value.size();
    const auto [stopped, error] = std::from_chars(value.data(), end, number);
    if (error != std::errc{} || stopped != end || number < least || number > most) return false;
    options.*member = static_cast<std::remove_reference_t<decltype(options.*member)>>(number);
    return true;
}

template <auto member>
std::string show_number(const NicOptions& options) {
    return std::to_string(options.*member);
}

constexpr Word<Pin> pins[] = {
    {"require", Pin::require}, {"prefer", Pin::prefer}, {"never", Pin::never}, {"dma", Pin::dma}};

constexpr Option table[] = {
    {"pin", "require, prefer, never or dma",
     "lock registered memory: or fail; where the system lets us; not at all; so that it never "
     "moves",
     set_word<&NicOptions::pin, pins>, show_word<&NicOptions::pin, pins>},
};

std::string possible_options() {
    std::string text;
    for (const Option& option : table)
        text += (text.empty() ? "" : "; ") + std::string(option.name) + " = " + option.values;
    return text;
}

/// What is wrong with "option=value", or nothing.
std::string apply(std::string_view text, NicOptions& options) {
    const std::size_t sign = text.find('=');
    const std::string_view name = text.substr(0, sign);
    const auto* option = std::find_if(std::begin(table), std::end(table),
                                      [&](const Option& one) { return one.name == name; });
    if (option == std::end(table))
        return "\"" + shown(name) + "\" is no option; there are: " + possible_options();
    const std::string_view value = sign == text.npos ? std::string_view{} : text.substr(sign + 1);
    if (option->set(options, value)) return {};
    return "\"" + shown(text) + "\": " + option->name + " is " + option->values;
}

}  // namespace

std::span<const NicOptionText> nic_option_texts() {
    static const std::vector<NicOptionText> texts = [] {
        std::vector<NicOptionText> made;
        for (const Option& option : table)
            made.push_back({option.name, option.values, option.show(NicOptions{}), option.meaning});
        return made;
    }();
    return texts;
}

NicName split_nic_name(std::string_view name) {
    const std::size_t comma = name.find(',');
    if (comma == name.npos) return {name, {}, false};
    return {name.substr(0, comma), name.substr(comma + 1), true};
}

std::expected<void, std::string> apply_options(std::string_view text, NicOptions& options) {
    while (true) {
        const std::size_t comma = text.find(',');
        std::string wrong = apply(text.substr(0, comma), options);
        if (!wrong.empty()) return std::unexpected(std::move(wrong));
        if (comma == text.npos) return {};
        text.remove_prefix(comma + 1);
    }
}

std::expected<NicOptions, std::string> nic_options(const NicName& name) {
    NicOptions options;
    const char* defaults = secure_getenv("OPENVIA_OPTIONS");
    if (defaults != nullptr && *defaults != '\0') {
        const auto applied = apply_options(defaults, options);
        if (!applied) return std::unexpected("OPENVIA_OPTIONS: " + applied.error());
    }
    if (name.has_options) {
        auto applied = apply_options(name.options, options);
        if (!applied) return std::unexpected(std::move(applied.error()));
    }
    return options;
}

}  // namespace via::agent
