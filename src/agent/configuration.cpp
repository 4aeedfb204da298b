#include "agent/configuration.hpp"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>

#include "agent/addresses.hpp"
#include "agent/file.hpp"
#include "base/printable.hpp"

namespace via::agent {

namespace {

constexpr const char* system_directory = "/etc/openvia/";
constexpr std::size_t file_bytes_max = 64 * 1024;
constexpr std::size_t nic_name_max = 63;
constexpr std::size_t host_name_max = 255;
constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";
constexpr std::string_view blanks = " \t\r\f\v";

constexpr std::array<std::string_view, 9> known_old_names = {
    "nic0",      "VINIC",         "VINIC0",      "via0",        "/dev/nic0",
    "/dev/via0", "/dev/via_eth0", "/dev/via_lo", "/dev/clanvi0"};

std::string_view trimmed(std::string_view text) {
    const std::size_t begin = text.find_first_not_of(blanks);
    if (begin == text.npos) return {};
    return text.substr(begin, text.find_last_not_of(blanks) - begin + 1);
}

/// Splits off what stands before the next of `separators`.
std::string_view next_part(std::string_view& rest, std::string_view separators) {
    const std::size_t end = rest.find_first_of(separators);
    const std::string_view part = rest.substr(0, end);
    rest.remove_prefix(end == rest.npos ? rest.size() : end + 1);
    return part;
}

/// Directory of the user's files, with a slash at its end; empty: there is none.
std::string user_directory() {
    // A relative one is to be ignored, says the specification of XDG_CONFIG_HOME.
    if (const char* base = secure_getenv("XDG_CONFIG_HOME"); base != nullptr && *base == '/')
        return std::string(base) + "/openvia/";
    if (const char* home = secure_getenv("HOME"); home != nullptr && *home == '/')
        return std::string(home) + "/.config/openvia/";
    return {};
}

std::string place(const Source& source, unsigned number) {
    return source.name + (source.is_variable ? ", entry " : ":") + std::to_string(number);
}

}  // namespace

std::string shown(std::string_view text) {
    constexpr std::size_t length_max = 64;
    const std::string shown = printable(text.substr(0, length_max));
    return text.size() > length_max ? shown + "..." : shown;
}

// Sources -----------------------------------------------------------------------------------------

Source read_source(std::string path, const Complain& complain) {
    Source source;
    source.name = std::move(path);
    const auto failed = [&](const std::string& why) {
        complain("cannot read " + source.name + ": " + why + "; its names are not known");
        source.text.clear();
        return source;
    };
    // Not blocking: it might be a pipe.
    const File file(open(source.name.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
    if (!file.valid() && (errno == ENOENT || errno == ENOTDIR)) return source;
    if (!file.valid()) return failed(std::string("open: ") + strerror(errno));
    struct stat status;
    if (fstat(file.get(), &status) < 0) return failed(std::string("fstat: ") + strerror(errno));
    if (!S_ISREG(status.st_mode)) return failed("it is not a file");
    source.text.resize(file_bytes_max + 1);
    std::size_t length = 0;
    while (length < source.text.size()) {
        const ssize_t got =
            read(file.get(), source.text.data() + length, source.text.size() - length);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return failed(std::string("read: ") + strerror(errno));
        if (got == 0) break;
        length += static_cast<std::size_t>(got);
    }
    if (length > file_bytes_max) return failed("it is longer than 64 KiB");
    source.text.resize(length);
    // Some editors begin a file with it; it would be part of the first name.
    if (source.text.starts_with(byte_order_mark)) source.text.erase(0, byte_order_mark.size());
    source.is_there = true;
    return source;
}

std::vector<Source> read_sources(const char* variable, const char* file, const Complain& complain) {
    std::vector<Source> sources;
    const char* value = secure_getenv(variable);
    sources.push_back({variable, true, value != nullptr, value != nullptr ? value : ""});
    if (const std::string directory = user_directory(); !directory.empty())
        sources.push_back(read_source(directory + file, complain));
    sources.push_back(read_source(std::string(system_directory) + file, complain));
    return sources;
}

void parse_source(const Source& source, const TakeLine& take, const Complain& complain) {
    std::string_view rest = source.text;
    for (unsigned number = 1; !rest.empty(); ++number) {
        std::string_view line = next_part(rest, source.is_variable ? ";\n" : "\n");
        line = trimmed(line.substr(0, line.find('#')));
        if (line.empty()) continue;
        std::string_view targets = line;
        const std::string_view name = trimmed(next_part(targets, "="));
        targets = trimmed(targets);
        std::string wrong;
        if (line.find('=') == line.npos) {
            wrong = "there is no '='";
        } else if (name.empty()) {
            wrong = "there is no name before the '='";
        } else if (targets.empty()) {
            wrong = "there is nothing behind the '='";
        } else {
            wrong = take(name, targets);
        }
        if (!wrong.empty())
            complain(place(source, number) + ": \"" + shown(line) + "\" is left out: " + wrong +
                     " (a line is: name = target  # comment)");
    }
}

// NICs --------------------------------------------------------------------------------------------

std::string_view medium_of(std::string_view name) {
    return name.substr(0, name.find_first_of(":,"));
}

std::span<const std::string_view> built_in_nics() { return known_old_names; }

NicTarget find_nic(std::string_view name, std::span<const Source> sources,
                   std::span<const std::string_view> media, const Complain& complain) {
    NicTarget found;
    std::string asked;
    for (const Source& source : sources) {
        std::vector<std::string_view> seen;
        const auto take = [&](std::string_view line_name, std::string_view target) -> std::string {
            if (line_name.size() > nic_name_max) return "the name is longer than 63 bytes";
            if (line_name.find_first_of(blanks) != line_name.npos)
                return "the name has a blank in it";
            if (std::find(media.begin(), media.end(), medium_of(line_name)) != media.end())
                return "it is a NIC's own name already";
            if (target.find_first_of(blanks) != target.npos) return "there is more than one target";
            if (std::find(media.begin(), media.end(), medium_of(target)) == media.end())
                return "the target is no NIC";
            if (std::find(seen.begin(), seen.end(), line_name) != seen.end())
                return "an earlier line has the name already";
            seen.push_back(line_name);
            if (found.target.empty() && line_name == name)
                found = {std::string(target), source.name};
            return {};
        };
        parse_source(source, take, complain);
        asked += source.name + (source.is_there ? ", " : " (not there), ");
    }
    if (!found.target.empty()) return found;
    if (std::find(known_old_names.begin(), known_old_names.end(), name) != known_old_names.end())
        return {built_in_target, "the built-in names"};
    return {{}, asked + "the built-in names"};
}

std::string configured_network(std::span<const std::string_view> media, const Complain& complain) {
    constexpr std::string_view medium = "udp:";
    const auto sources = read_sources("OPENVIA_NICS", "nics.conf", complain);
    const auto [target, where] = find_nic("network", sources, media, complain);
    if (target.empty()) return {};
    std::string place;
    if (target.starts_with(medium))
        place = target.substr(medium.size(), target.find(',') - medium.size());
    if (place.empty())
        complain(where + ": \"network = " + shown(target) +
                 "\" is left out: it is no place for auto, which uses shm alone (network wants "
                 "udp:INTERFACE or udp:ADDRESS)");
    return place;
}

// Hosts -------------------------------------------------------------------------------------------

HostTable::HostTable(std::span<const Source> sources, const Complain& complain) {
    for (std::size_t number = 0; number < sources.size(); ++number) {
        const auto take = [&](std::string_view name, std::string_view targets) -> std::string {
            if (name.size() > host_name_max) return "the name is longer than 255 bytes";
            if (name.find_first_of(blanks) != name.npos) return "the name has a blank in it";
            std::vector<HostAddress> addresses;
            while (!targets.empty()) {
                const std::string_view target = next_part(targets, " \t\r\f\v,");
                if (target.empty()) continue;
                auto address = parse_shm_name(target);
                if (!address) address = parse_address(target);
                if (!address)
                    return "\"" + shown(target) +
                           "\" is none of IPV4, IPV4:PORT, [IPV6], [IPV6]:PORT, shm, shm:NAME";
                addresses.push_back(*address);
            }
            if (addresses.empty()) return "there is no address";
            for (const HostAddress& address : addresses)
                entries_.push_back({number, std::string(name), address});
            return {};
        };
        parse_source(sources[number], take, complain);
    }
}

std::vector<HostAddress> HostTable::find(std::string_view name) const {
    std::vector<HostAddress> addresses;
    std::size_t source = 0;
    for (const Entry& entry : entries_) {
        if (!same_host_name(entry.name, name)) continue;
        if (addresses.empty()) source = entry.source;
        if (entry.source == source) addresses.push_back(entry.address);
    }
    return addresses;
}

std::string HostTable::name_of(const HostAddress& address) const {
    for (const Entry& entry : entries_)
        if (entry.address == address) return entry.name;
    return {};
}

}  // namespace via::agent
