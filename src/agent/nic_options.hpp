// Options of a NIC: what may follow its name, "shm:left,pin=require", and the defaults for every
// NIC of the process in OPENVIA_OPTIONS (docs/guide/names.md).
#pragma once

#include <cstdint>
#include <expected>
#include <span>
#include <string>
#include <string_view>

#include "base/limits.hpp"
#include "memory/translation_cache.hpp"

namespace via::agent {

/// Are the pages of registered memory kept in place?
enum class Pin {
    require,  ///< locked, or the registration fails
    prefer,   ///< locked where the system lets us
    never,    ///< not locked
    dma,      ///< locked, and never moved to other frames; or the registration fails
};

/// How do large messages go between processes of one host?
enum class OneCopy {
    measured,  ///< whichever is faster
    always,    ///< the receiver pulls them, where the system lets it
    never,     ///< through shared memory
};

/// Do datagrams between hosts leave as Ethernet frames of our own?
enum class OwnFrames {
    prefer,  ///< to a busy peer, where the system lets us
    never,
};

/// Are packets between hosts sealed, so that nobody without the key reads or makes them?
enum class Secure {
    configured,  ///< where there is a key
    require,     ///< or the NIC does not open
    prefer,      ///< where there is one, also with hosts that have none
    never,       ///< though there is a key
};

/// Which bytes does a registration grant?
enum class Granularity {
    byte,  ///< those that it names
    page,  ///< and the others of their pages
};

/// Another option is a member here and a line of the table in nic_options.cpp.
struct NicOptions {
    Pin pin = Pin::prefer;
    Granularity granularity = Granularity::byte;
    OneCopy one_copy = OneCopy::measured;
    // Of the NIC's own table: memory::CacheShape
    std::uint32_t table_entries = memory::CacheShape{}.entries;
    std::uint32_t table_line = memory::CacheShape{}.line;
    std::uint32_t table_ways = memory::CacheShape{}.ways;
    memory::Replacement table_replacement = memory::CacheShape{}.replacement;
    std::uint32_t silence = 5000;  ///< ms of patience with a peer that says nothing
    OwnFrames own_frames = OwnFrames::prefer;
    Secure secure = Secure::configured;
    std::string ways;  ///< file of ways over relays; empty: there are none
    std::uint32_t paths = NicLimits{}.paths_max;  ///< over udp
    std::uint64_t lock_max = 0;  ///< bytes that the small table may lock; 0: as the system allows

    memory::CacheShape table() const {
        return {table_entries, table_line, table_ways, table_replacement};
    }
};

/// An option as `via info` tells of it.
struct NicOptionText {
    std::string name;
    std::string values;     ///< that it may have
    std::string otherwise;  ///< the value of a NIC whose name does not say
    std::string meaning;
};
std::span<const NicOptionText> nic_option_texts();

/// A NIC's own name, and what follows the first comma.
struct NicName {
    std::string_view name;
    std::string_view options;  ///< "option=value,..." or empty
    bool has_options;          ///< there is a comma
};
NicName split_nic_name(std::string_view name);

/// Changes what "option=value,option=value" names. Error: what is wrong with it, what is possible.
std::expected<void, std::string> apply_options(std::string_view text, NicOptions& options);

/// Of a NIC: OPENVIA_OPTIONS, then what follows its name. The variable is not looked at when the
/// program runs with more rights than its user has.
std::expected<NicOptions, std::string> nic_options(const NicName& name);

}  // namespace via::agent
