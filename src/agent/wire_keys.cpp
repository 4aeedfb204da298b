#include "agent/wire_keys.hpp"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <filesystem>
#include <utility>

#include "agent/addresses.hpp"
#include "agent/file.hpp"

namespace via::agent {
namespace {

constexpr const char* system_file = "/etc/openvia/wire.keys";
constexpr const char* user_file = "/openvia/wire.keys";
/// A hundred thousand hosts.
constexpr std::size_t keys_bytes_max = 16 * 1024 * 1024;
constexpr std::size_t words_max = 5;
constexpr const char* line_forms =
    "a line is: key DIGITS, own DIGITS or host ADDRESS DIGITS, 64 hexadecimal digits in small "
    "letters, and perhaps until YYYY-MM-DD";
constexpr std::string_view key_blanks = " \t\r";

std::string_view key_line(std::string_view line) {
    line = line.substr(0, line.find('#'));
    const std::size_t begin = line.find_first_not_of(key_blanks);
    if (begin == line.npos) return {};
    return line.substr(begin, line.find_last_not_of(key_blanks) - begin + 1);
}

/// -1: none.
int hex_digit(char letter) {
    if (letter >= '0' && letter <= '9') return letter - '0';
    if (letter >= 'a' && letter <= 'f') return letter - 'a' + 10;
    return -1;
}

bool read_key_digits(std::string_view digits, std::span<std::byte, secure::key_length> key) {
    if (digits.size() != 2 * secure::key_length) return false;
    for (std::size_t n = 0; n < secure::key_length; ++n) {
        const int high = hex_digit(digits[2 * n]);
        const int low = hex_digit(digits[2 * n + 1]);
        if (high < 0 || low < 0) return false;
        key[n] = static_cast<std::byte>(high << 4 | low);
    }
    return true;
}

void put_digits(std::span<const std::byte, secure::key_length> key, char* to) {
    constexpr char digits[] = "0123456789abcdef";
    for (const std::byte byte : key) {
        *to++ = digits[std::to_integer<unsigned>(byte) >> 4];
        *to++ = digits[std::to_integer<unsigned>(byte) & 15];
    }
}

/// The line's words; more than there may be are one.
struct Words {
    std::array<std::string_view, words_max> at;
    std::size_t count = 0;
};
Words words_of(std::string_view line) {
    Words words;
    while (!line.empty() && words.count < words_max) {
        const bool last = words.count + 1 == words_max;
        const std::size_t end = last ? line.npos : line.find_first_of(key_blanks);
        words.at[words.count++] = line.substr(0, end);
        line = key_line(end == line.npos ? std::string_view{} : line.substr(end));
    }
    return words;
}

/// A line that is not empty. Empty: it was taken; else what is wrong with it.
std::string take_line(std::string_view line, WireKeys& found) {
    const Words words = words_of(line);
    const std::size_t digits_at = words.at[0] == "host" ? 2 : 1;
    Expiry until;
    if (words.count == digits_at + 3 && words.at[digits_at + 1] == "until") {
        until = parse_day(words.at[digits_at + 2]);
        if (!until) return "there is no such day";
    } else if (words.count != digits_at + 1) {
        return line_forms;
    }
    const std::string_view digits = words.at[digits_at];
    if (words.at[0] == "host") {
        const auto host = parse_address(words.at[1]);
        const auto key = parse_public_key(digits);
        if (!host) return "that is no address: 10.1.2.3 or [IPV6]";
        if (!key) return line_forms;
        found.hosts.push_back({*host, *key, until});
        return {};
    }
    if (words.at[0] != "key" && words.at[0] != "own") return line_forms;
    std::vector<WireKey>& keys = words.at[0] == "key" ? found.keys : found.own;
    WireKey& key = keys.emplace_back(secure::Secret{}, until);
    if (!read_key_digits(digits, key.key.room())) return line_forms;
    if (keys.size() <= wire_keys_max) return {};
    return "there are more than " + std::to_string(wire_keys_max) + " keys";
}

std::unexpected<std::string> refused_file(const std::string& file, const std::string& why) {
    return std::unexpected(file + ": " + why);
}

/// Who may read it decides who may be taken for one of ours. Empty: that is as it should be.
std::string keys_file_fault(const struct stat& status, const std::string& file) {
    if (!S_ISREG(status.st_mode)) return "it is not a file";
    if (status.st_uid != geteuid() && status.st_uid != 0) return "it belongs to another user";
    const bool roots = status.st_uid == 0 && file == system_file;
    if ((status.st_mode & (roots ? 0037U : 0077U)) == 0) return {};
    return roots ? "others than root and its group may read or write it (chmod 640)"
                 : "others may read or write it (chmod 600)";
}

}  // namespace

std::expected<WireKeys, std::string> parse_wire_keys(const std::string& file,
                                                     std::string_view text) {
    WireKeys found{file, {}, {}, {}};
    for (unsigned number = 1; !text.empty(); ++number) {
        const std::size_t end = text.find('\n');
        const std::string_view line = key_line(text.substr(0, end));
        text.remove_prefix(end == text.npos ? text.size() : end + 1);
        if (line.empty()) continue;
        if (const std::string fault = take_line(line, found); !fault.empty())
            return refused_file(file + ":" + std::to_string(number), fault);
    }
    if (found.keys.empty() && found.own.empty() && found.hosts.empty())
        return refused_file(file, "there is no key in it");
    return found;
}

std::expected<std::optional<WireKeys>, std::string> read_wire_keys(const std::string& file) {
    // Not blocking: it might be a pipe.
    const File opened(open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
    if (!opened.valid() && (errno == ENOENT || errno == ENOTDIR)) return std::nullopt;
    struct stat status{};
    if (!opened.valid() || fstat(opened.get(), &status) < 0)
        return refused_file(file, strerror(errno));
    if (const std::string fault = keys_file_fault(status, file); !fault.empty())
        return refused_file(file, fault);
    if (static_cast<std::uint64_t>(status.st_size) > keys_bytes_max)
        return refused_file(file, "it is longer than 16 MiB");
    // One byte more tells whether it grew meanwhile.
    std::vector<char> text(static_cast<std::size_t>(status.st_size) + 1);
    std::size_t length = 0;
    ssize_t got = 0;
    do {
        got = read(opened.get(), text.data() + length, text.size() - length);
        if (got > 0) length += static_cast<std::size_t>(got);
    } while ((got > 0 && length < text.size()) || (got < 0 && errno == EINTR));
    const int error = errno;
    auto keys = length == text.size()
                    ? refused_file(file, "it grew while it was read; once more may help")
                    : parse_wire_keys(file, std::string_view(text.data(), length));
    secure::erase(std::as_writable_bytes(std::span(text)));
    if (got < 0) return refused_file(file, strerror(error));
    if (!keys) return std::unexpected(keys.error());
    return std::move(*keys);
}

std::string protection_of(const std::optional<WireKeys>& keys, Secure wanted,
                          const HostAddress& host, std::int64_t now_seconds) {
    if (wanted == Secure::never) return "none: secure=never";
    if (!keys) return "none: there is no key here (via keys new)";
    const auto is_good = [now_seconds](const auto& key) {
        return !key.until || now_seconds < *key.until;
    };
    bool is_trusted = false;
    bool is_good_still = false;
    for (const TrustedHost& one : keys->hosts) {
        if (host_text(one.host) != host_text(host)) continue;
        is_trusted = true;
        is_good_still = is_good_still || is_good(one);
    }
    if (is_trusted) {
        if (!is_good_still) return "refused: its key has expired (" + keys->file + ")";
        if (std::ranges::none_of(keys->own, is_good))
            return "refused: there is no key of this host that is good (via keys new --host)";
        return "sealed by the keys of both hosts: its key is trusted (" + keys->file + ")";
    }
    if (std::ranges::any_of(keys->keys, is_good))
        return std::string("sealed by the cluster's key (") + keys->file + ")" +
               (wanted == Secure::prefer ? "; not, if it has no key (secure=prefer)" : "");
    if (!keys->keys.empty()) return "refused: the cluster's key has expired (" + keys->file + ")";
    if (wanted == Secure::prefer) return "none: its key is not known (secure=prefer)";
    return "refused: its key is not known (via keys trust)";
}

std::string own_wire_keys_file() {
    if (const char* base = secure_getenv("XDG_CONFIG_HOME"); base != nullptr && *base == '/')
        return std::string(base) + user_file;
    if (const char* home = secure_getenv("HOME"); home != nullptr && *home == '/')
        return std::string(home) + "/.config" + user_file;
    return {};
}

std::expected<std::optional<WireKeys>, std::string> find_wire_keys() {
    if (const std::string own = own_wire_keys_file(); !own.empty()) {
        auto keys = read_wire_keys(own);
        if (!keys || *keys) return keys;
    }
    return read_wire_keys(system_file);
}

namespace {

std::string expiry_text(Expiry until) { return until ? " until " + day_of(*until) : ""; }

std::expected<void, std::string> add_line(const std::string& file, std::string line) {
    const File opened(
        open(file.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (!opened.valid()) return refused_file(file, strerror(errno));
    line += '\n';
    const ssize_t written = write(opened.get(), line.data(), line.size());
    const int because = errno;
    secure::erase(std::as_writable_bytes(std::span(line)));
    if (written != static_cast<ssize_t>(line.size()))
        return refused_file(file, written < 0 ? strerror(because) : "there is no space for it");
    return {};
}

/// The file as it is, empty if it is not there, and its folder.
std::expected<WireKeys, std::string> present_keys(const std::string& file) {
    const std::filesystem::path folder = std::filesystem::path(file).parent_path();
    std::error_code error;
    std::filesystem::create_directories(folder, error);
    if (error) return refused_file(folder, error.message());
    auto present = read_wire_keys(file);
    if (!present) return std::unexpected(present.error());
    return *present ? std::move(**present) : WireKeys{file, {}, {}, {}};
}

}  // namespace

std::expected<void, std::string> add_wire_key(const std::string& file, WireKeyKind kind,
                                              const WireKey& key) {
    const auto present = present_keys(file);
    if (!present) return std::unexpected(present.error());
    const bool is_own = kind == WireKeyKind::own;
    if ((is_own ? present->own : present->keys).size() == wire_keys_max)
        return refused_file(file, "there are " + std::to_string(wire_keys_max) + " keys in it");
    std::string line = is_own ? "own " : "key ";
    // Of its whole length at once: no copy of a key is left behind where it grows.
    line.reserve(line.size() + 2 * secure::key_length + expiry_text(key.until).size() + 1);
    line.resize(line.size() + 2 * secure::key_length);
    put_digits(key.key.bytes(), line.data() + 4);
    line += expiry_text(key.until);
    return add_line(file, std::move(line));
}

std::expected<void, std::string> add_trusted_host(const std::string& file,
                                                  const TrustedHost& host) {
    const auto present = present_keys(file);
    if (!present) return std::unexpected(present.error());
    return add_line(
        file, "host " + host_text(host.host) + " " + to_text(host.key) + expiry_text(host.until));
}

std::string host_text(const HostAddress& host) {
    const std::string address = to_text(host);
    return address.substr(0, address.rfind(':'));
}

std::optional<secure::PublicKey> parse_public_key(std::string_view digits) {
    secure::PublicKey key;
    if (!read_key_digits(digits, key)) return std::nullopt;
    return key;
}

std::string to_text(const secure::PublicKey& key) {
    std::string text(2 * secure::key_length, '0');
    put_digits(key, text.data());
    return text;
}

Expiry parse_day(std::string_view text) {
    constexpr std::string_view form = "YYYY-MM-DD";
    if (text.size() != form.size() || text[4] != '-' || text[7] != '-') return std::nullopt;
    const auto number = [text](std::size_t at, std::size_t length) {
        unsigned value = 0;
        const auto [end, error] =
            std::from_chars(text.data() + at, text.data() + at + length, value);
        return error == std::errc() && end == text.data() + at + length ? value : 0U;
    };
    const std::chrono::year_month_day day(std::chrono::year(static_cast<int>(number(0, 4))),
                                          std::chrono::month(number(5, 2)),
                                          std::chrono::day(number(8, 2)));
    if (!day.ok()) return std::nullopt;
    return std::chrono::duration_cast<std::chrono::seconds>(
               std::chrono::sys_days(day).time_since_epoch())
        .count();
}

std::string day_of(std::int64_t seconds) {
    const std::chrono::year_month_day day(std::chrono::floor<std::chrono::days>(
        std::chrono::sys_seconds(std::chrono::seconds(seconds))));
    std::array<char, 16> text;
    const int length =
        snprintf(text.data(), text.size(), "%04d-%02u-%02u", static_cast<int>(day.year()),
                 static_cast<unsigned>(day.month()), static_cast<unsigned>(day.day()));
    return {text.data(), static_cast<std::size_t>(length)};
}

}  // namespace via::agent
