#include "agent/wire_keys.hpp"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <utility>

#include "agent/file.hpp"

namespace via::agent {
namespace {

constexpr const char* system_file = "/etc/openvia/wire.keys";
constexpr const char* user_file = "/openvia/wire.keys";
constexpr std::size_t keys_bytes_max = 16 * 1024;
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

bool read_key_digits(std::string_view digits, secure::Secret& key) {
    if (digits.size() != 2 * secure::key_length) return false;
    for (std::size_t n = 0; n < secure::key_length; ++n) {
        const int high = hex_digit(digits[2 * n]);
        const int low = hex_digit(digits[2 * n + 1]);
        if (high < 0 || low < 0) return false;
        key.room()[n] = static_cast<std::byte>(high << 4 | low);
    }
    return true;
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
    WireKeys found{file, {}};
    for (unsigned number = 1; !text.empty(); ++number) {
        const std::size_t end = text.find('\n');
        const std::string_view line = key_line(text.substr(0, end));
        text.remove_prefix(end == text.npos ? text.size() : end + 1);
        if (line.empty()) continue;
        const std::string place = file + ":" + std::to_string(number);
        const std::size_t gap = line.find_first_of(key_blanks);
        const std::string_view digits = gap == line.npos
                                            ? std::string_view{}
                                            : line.substr(line.find_first_not_of(key_blanks, gap));
        secure::Secret key;
        if (line.substr(0, gap) != "key" || !read_key_digits(digits, key))
            return refused_file(place, "a line is: key and 64 hexadecimal digits in small letters");
        if (found.keys.size() == wire_keys_max)
            return refused_file(place,
                                "there are more than " + std::to_string(wire_keys_max) + " keys");
        found.keys.push_back(key);
    }
    if (found.keys.empty()) return refused_file(file, "there is no key in it");
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
    std::array<char, keys_bytes_max + 1> text;
    std::size_t length = 0;
    ssize_t got = 0;
    do {
        got = read(opened.get(), text.data() + length, text.size() - length);
        if (got > 0) length += static_cast<std::size_t>(got);
    } while ((got > 0 && length < text.size()) || (got < 0 && errno == EINTR));
    const int error = errno;
    auto keys = length > keys_bytes_max
                    ? refused_file(file, "it is longer than 16 KiB")
                    : parse_wire_keys(file, std::string_view(text.data(), length));
    secure::erase(std::as_writable_bytes(std::span(text)));
    if (got < 0) return refused_file(file, strerror(error));
    if (!keys) return std::unexpected(keys.error());
    return std::move(*keys);
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

std::expected<void, std::string> add_wire_key(const std::string& file, const secure::Secret& key) {
    const std::filesystem::path folder = std::filesystem::path(file).parent_path();
    std::error_code error;
    std::filesystem::create_directories(folder, error);
    if (error) return refused_file(folder, error.message());
    if (const auto present = read_wire_keys(file); !present) {
        return std::unexpected(present.error());
    } else if (*present && (*present)->keys.size() == wire_keys_max) {
        return refused_file(file, "there are " + std::to_string(wire_keys_max) + " keys in it");
    }
    const File opened(
        open(file.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (!opened.valid()) return refused_file(file, strerror(errno));
    constexpr char digits[] = "0123456789abcdef";
    std::array<char, 5 + 2 * secure::key_length> line{'k', 'e', 'y', ' '};
    for (std::size_t n = 0; n < secure::key_length; ++n) {
        const auto byte = std::to_integer<unsigned>(key.bytes()[n]);
        line[4 + 2 * n] = digits[byte >> 4];
        line[5 + 2 * n] = digits[byte & 15];
    }
    line.back() = '\n';
    const ssize_t written = write(opened.get(), line.data(), line.size());
    const int because = errno;
    secure::erase(std::as_writable_bytes(std::span(line)));
    if (written != static_cast<ssize_t>(line.size()))
        return refused_file(file, written < 0 ? strerror(because) : "there is no space for it");
    return {};
}

}  // namespace via::agent
