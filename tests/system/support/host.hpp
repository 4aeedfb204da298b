// The host as the library sees it: a runtime directory of its own for each test, and what a process
// holds of the system's things.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace system_test {

/// The program is built with a sanitizer: it keeps freed memory and makes system calls of its own.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool sanitized = true;
#elif defined(__has_feature)
constexpr bool sanitized = __has_feature(address_sanitizer) || __has_feature(thread_sanitizer);
#else
constexpr bool sanitized = false;
#endif

/// A new, empty runtime directory for this process and its children, until the object goes.
class Host {
public:
    Host();
    ~Host();
    Host(const Host&) = delete;
    Host& operator=(const Host&) = delete;

    const std::string& path() const { return path_; }
    /// All entries below that are no directories, and what the links of udp NICs lead to, sorted.
    std::vector<std::string> entries() const;
    /// The directory in which NICs called `shm` meet; there is one once such a NIC was open.
    std::string meeting_place() const;
    /// The names in it, in one line; "" when nothing is left there.
    std::string met() const;
    /// Opens and closes a NIC, which removes what the dead left behind. As after a minute: a name
    /// that is being made is left alone that long.
    void reclaim() const;

private:
    std::string path_;
    std::string before_;
    bool was_set_ = false;
};

/// A discriminator of this test alone: udp NICs of one address meet, whatever their runtime
/// directories, so other tests' are met, too.
std::string door_of_this_host(const std::string& door = "door");

/// Addresses of the machine itself that no other test has meanwhile: all of 127.0.0.0/8, four for
/// each process there can be. `which`: 0 to 3. In the byte order of the host.
std::uint32_t loopback_host(pid_t test, std::uint32_t which);
std::string text_of_host(std::uint32_t host);
/// The first one of this process.
std::string own_loopback_address();

/// What a process holds.
struct Holdings {
    std::size_t descriptors = 0;
    std::size_t threads = 0;
    std::size_t mappings = 0;  ///< of channels
    std::size_t rss_kib = 0;

    static Holdings of(pid_t pid);
    static Holdings now();
    std::string text() const;
};

/// The whole of a small file, of /proc for instance; empty when it cannot be read.
std::string read_file(const std::string& path);
/// The number behind `field` in a file of lines "field: number".
long read_number(const std::string& path, const std::string& field);

/// Seconds of processor time this process has used.
double processor_seconds();

}  // namespace system_test
