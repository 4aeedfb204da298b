// Names that users and administrators write down: nics.conf and hosts (docs/guide/names.md). Lines
// of "name = targets  # comment", from up to three sources, the first that knows a name decides:
// an environment variable (entries separated by ';'), the user's file, /etc/openvia.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/address.hpp"

namespace via::agent {

/// Told of each line that is not understood, and of each file that cannot be read.
using Complain = std::function<void(const std::string&)>;

/// The contents of one source, read.
struct Source {
    std::string name;          ///< path of the file, or name of the variable
    bool is_variable = false;  ///< entries end at ';' too
    bool is_there = false;
    std::string text;
};

/// Reads `$variable`, the user's `file` and /etc/openvia/`file`, in this order. Variables are not
/// looked at when the program runs with more rights than its user has.
std::vector<Source> read_sources(const char* variable, const char* file, const Complain& complain);
/// One file; at most 64 KiB. A missing one is no reason to complain.
Source read_source(std::string path, const Complain& complain);

/// Hands every well-formed line to `take`, which answers what is wrong with it, or nothing. What is
/// wrong is told with source and line.
using TakeLine = std::function<std::string(std::string_view name, std::string_view targets)>;
void parse_source(const Source& source, const TakeLine& take, const Complain& complain);

/// `text` for a line of the log: short, printable.
std::string shown(std::string_view text);

// NICs --------------------------------------------------------------------------------------------

/// What a NIC's own name begins with: up to a colon, or a comma and options.
std::string_view medium_of(std::string_view name);

struct NicTarget {
    std::string target;  ///< a NIC's own name; empty: nobody knows the name
    std::string where;   ///< the source that knows it; or all that were asked
};
/// What an old program's name stands for. `media` are the words that a NIC's own name begins with.
NicTarget find_nic(std::string_view name, std::span<const Source> sources,
                   std::span<const std::string_view> media, const Complain& complain);
/// Where `auto` is on the network if its own name does not say: what stands behind "udp:" in the
/// entry `network` of nics.conf. Empty: there is none, or none that is a place (that is told).
std::string configured_network(std::span<const std::string_view> media, const Complain& complain);
/// The names that work without any file: those that old programs are known to open, number 0.
std::span<const std::string_view> built_in_nics();
/// What they stand for.
inline constexpr const char* built_in_target = "shm";

// Hosts -------------------------------------------------------------------------------------------

/// The hosts of all sources; constant after loading.
class HostTable {
public:
    HostTable() = default;
    HostTable(std::span<const Source> sources, const Complain& complain);

    /// All addresses of `name`, of the first source that knows it, in its order.
    std::vector<HostAddress> find(std::string_view name) const;
    /// The first name of `address`, or empty.
    std::string name_of(const HostAddress& address) const;

private:
    struct Entry {
        std::size_t source;
        std::string name;
        HostAddress address;
    };
    std::vector<Entry> entries_;
};

}  // namespace via::agent
