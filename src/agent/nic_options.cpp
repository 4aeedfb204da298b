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
    const auto [stopped, error] = std::from_chars(value.begin(), value.end(), number);
    if (error != std::errc{} || stopped != value.end() || number < least || number > most)
        return false;
    options.*member = static_cast<std::remove_reference_t<decltype(options.*member)>>(number);
    return true;
}

template <auto member>
std::string show_number(const NicOptions& options) {
    return std::to_string(options.*member);
}

template <auto member>
bool set_text(NicOptions& options, std::string_view value) {
    options.*member = value;
    return !value.empty();
}

template <auto member>
std::string show_text(const NicOptions& options) {
    return (options.*member).empty() ? "none" : options.*member;
}

constexpr Word<Pin> pins[] = {
    {"require", Pin::require}, {"prefer", Pin::prefer}, {"never", Pin::never}, {"dma", Pin::dma}};

constexpr Word<Granularity> granularities[] = {{"byte", Granularity::byte},
                                               {"page", Granularity::page}};
constexpr Word<OneCopy> one_copies[] = {
    {"measured", OneCopy::measured}, {"always", OneCopy::always}, {"never", OneCopy::never}};
constexpr Word<OwnFrames> own_frames[] = {{"prefer", OwnFrames::prefer},
                                          {"never", OwnFrames::never}};
constexpr Word<Secure> secures[] = {{"configured", Secure::configured},
                                    {"require", Secure::require},
                                    {"prefer", Secure::prefer},
                                    {"never", Secure::never}};
constexpr Word<memory::Replacement> replacements[] = {{"lru", memory::Replacement::lru},
                                                      {"fifo", memory::Replacement::fifo},
                                                      {"random", memory::Replacement::random}};

constexpr Option known_options[] = {
    {"pin", "require, prefer, never or dma",
     "lock registered memory: or fail; where the system lets us; not at all; so that it never "
     "moves",
     set_word<&NicOptions::pin, pins>, show_word<&NicOptions::pin, pins>},
    {"granularity", "byte or page",
     "what a registration grants, to peers too: the bytes that it names; and the others of their "
     "pages (of 4096 bytes), which programs of VIA's time rely on",
     set_word<&NicOptions::granularity, granularities>,
     show_word<&NicOptions::granularity, granularities>},
    {"one_copy", "measured, always or never",
     "large messages between processes: pulled by the receiver (process_vm_readv) where that is "
     "faster; where it is allowed; not",
     set_word<&NicOptions::one_copy, one_copies>, show_word<&NicOptions::one_copy, one_copies>},
    {"silence", "100 to 3600000",
     "milliseconds until a peer between hosts that says nothing counts as gone, or as not "
     "reachable",
     set_number<&NicOptions::silence, 100, 3'600'000>, show_number<&NicOptions::silence>},
    {"own_frames", "prefer or never",
     "datagrams to a busy peer leave as Ethernet frames made like the kernel's, past its UDP and "
     "IP: where the program may open packet sockets (CAP_NET_RAW); not",
     set_word<&NicOptions::own_frames, own_frames>, show_word<&NicOptions::own_frames, own_frames>},
    {"secure", "configured, require, prefer or never",
     "packets between hosts sealed by a key: where there is one; or the NIC does not open; where "
     "there is one, but for hosts that have none and whose key is not known; not",
     set_word<&NicOptions::secure, secures>, show_word<&NicOptions::secure, secures>},
    {"paths", "0 to 4096",
     "peers between hosts that there may be a path to, whoever asked for it. 0: the NIC only "
     "answers for its host, as viad",
     set_number<&NicOptions::paths, 0, NicLimits{}.paths_max>, show_number<&NicOptions::paths>},
    {"ways", "a file",
     "how hosts in no network of ours are reached over relays: as via topology -o wrote it",
     set_text<&NicOptions::ways>, show_text<&NicOptions::ways>},
    {"table_entries", "0 to 1048576",
     "pages in the NIC's own table; others are loaded, and locked, when they are needed. 0: all",
     set_number<&NicOptions::table_entries, 0, memory::CacheShape::entries_max>,
     show_number<&NicOptions::table_entries>},
    {"table_line", "a power of two, 1 to 512", "pages that are loaded together",
     set_number<&NicOptions::table_line, 1, memory::CacheShape::line_max>,
     show_number<&NicOptions::table_line>},
    {"table_ways", "1 to 64", "lines among which the replacement chooses",
     set_number<&NicOptions::table_ways, 1, memory::CacheShape::ways_max>,
     show_number<&NicOptions::table_ways>},
    {"table_replacement", "lru, fifo or random", "which line gives way",
     set_word<&NicOptions::table_replacement, replacements>,
     show_word<&NicOptions::table_replacement, replacements>},
    {"lock_max", "bytes, or 0 for three quarters of RLIMIT_MEMLOCK (64 MiB if unlimited)",
     "memory that stays locked for a NIC with table_entries",
     set_number<&NicOptions::lock_max, 0, ~0ULL>, show_number<&NicOptions::lock_max>},
};

std::string possible_options() {
    std::string text;
    for (const Option& option : known_options)
        text += (text.empty() ? "" : "; ") + std::string(option.name) + " = " + option.values;
    return text;
}

/// What is wrong with "option=value", or nothing.
std::string apply(std::string_view text, NicOptions& options) {
    const std::size_t sign = text.find('=');
    const std::string_view name = text.substr(0, sign);
    const auto* option = std::find_if(std::begin(known_options), std::end(known_options),
                                      [&](const Option& one) { return one.name == name; });
    if (option == std::end(known_options))
        return "\"" + shown(name) + "\" is no option; there are: " + possible_options();
    const std::string_view value = sign == text.npos ? std::string_view{} : text.substr(sign + 1);
    if (option->set(options, value)) return {};
    return "\"" + shown(text) + "\": " + option->name + " is " + option->values;
}

}  // namespace

std::span<const NicOptionText> nic_option_texts() {
    static const std::vector<NicOptionText> texts = [] {
        std::vector<NicOptionText> made;
        for (const Option& option : known_options)
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
    if (const char* fault = memory::fault_of(options.table())) return std::unexpected(fault);
    if (options.table_entries != 0 && options.pin == Pin::dma)
        return std::unexpected(
            "pin=dma keeps all registered memory in place, table_entries only what is used: take "
            "one of them");
    return options;
}

}  // namespace via::agent
