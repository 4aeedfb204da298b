#include "agent/key_log.hpp"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>

#include "agent/wire_keys.hpp"

namespace via::agent {
namespace {

constexpr std::string_view first_word = "sealed";
/// By kind.
constexpr std::string_view cipher_names[] = {"chacha20-poly1305", "aes-256-gcm"};
constexpr int identifier_digits = 16;

/// The word in front, which goes with the blank behind it.
std::string_view next_word(std::string_view& line) {
    const std::size_t end = line.find(' ');
    const std::string_view word = line.substr(0, end);
    line = end == line.npos ? std::string_view{} : line.substr(end + 1);
    return word;
}

std::optional<std::uint64_t> number_of(std::string_view word, int base) {
    std::uint64_t number = 0;
    const auto read = std::from_chars(word.data(), word.data() + word.size(), number, base);
    if (read.ec != std::errc{} || read.ptr != word.data() + word.size()) return std::nullopt;
    return number;
}

}  // namespace

std::string to_line(const LoggedKey& key) {
    char digits[identifier_digits + 1];
    std::snprintf(digits, sizeof digits, "%016llx",
                  static_cast<unsigned long long>(key.connection));
    secure::PublicKey bytes;
    std::ranges::copy(key.key.bytes(), bytes.begin());
    return std::string(first_word) + ' ' + digits + ' ' +
           std::string(cipher_names[static_cast<std::uint8_t>(key.cipher)]) + ' ' +
           std::to_string(key.packets_per_key) + ' ' + to_text(bytes) + '\n';
}

std::optional<LoggedKey> parse_logged_key(std::string_view line) {
    if (next_word(line) != first_word) return std::nullopt;
    const std::string_view connection = next_word(line);
    const auto* const cipher = std::ranges::find(cipher_names, next_word(line));
    const auto packets = number_of(next_word(line), 10);
    const auto identifier = number_of(connection, 16);
    const auto key = parse_public_key(line);
    if (connection.size() != identifier_digits || !identifier || !key || packets.value_or(0) == 0 ||
        cipher == std::end(cipher_names))
        return std::nullopt;
    return LoggedKey{*identifier, static_cast<secure::CipherKind>(cipher - cipher_names), *packets,
                     secure::Secret(*key)};
}

const char* key_log_asked() { return secure_getenv("OPENVIA_KEY_LOG"); }

std::expected<File, std::string> open_key_log(const std::string& path) {
    constexpr int flags =
        O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;
    File file(open(path.c_str(), flags, 0600));
    struct stat status{};
    if (!file.valid() || fstat(file.get(), &status) != 0)
        return std::unexpected(path + ": " + strerror(errno));
    if (!S_ISREG(status.st_mode)) return std::unexpected(path + ": it is not a file");
    if (status.st_uid != geteuid()) return std::unexpected(path + ": it belongs to another user");
    if ((status.st_mode & 0077U) != 0)
        return std::unexpected(path + ": others may read or write it (chmod 600)");
    return file;
}

}  // namespace via::agent
