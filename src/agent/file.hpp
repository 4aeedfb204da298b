// A file descriptor that closes itself.
#pragma once

#include <errno.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdint>
#include <utility>

#include "agent/not_cancelled.hpp"

namespace via::agent {

class File {
public:
    File() = default;
    explicit File(int descriptor) : descriptor_(descriptor) {}
    File(File&& other) noexcept : descriptor_(other.give()) {}
    File& operator=(File&& other) noexcept {
        if (this != &other) {
            reset();
            descriptor_ = other.give();
        }
        return *this;
    }
    ~File() { reset(); }

    int get() const { return descriptor_; }
    bool valid() const { return descriptor_ >= 0; }
    /// The caller owns it from now on.
    int give() { return std::exchange(descriptor_, -1); }
    void reset() {
        if (valid()) close_uncancelled(give());
    }

private:
    int descriptor_ = -1;
};

/// ftruncate. Beyond the limit of the size of files (ulimit -f), which holds for memory files too,
/// that kills the program (SIGXFSZ): here it is EFBIG.
inline int resize(int file, std::uint64_t bytes) {
    rlimit limit{};
    if (getrlimit(RLIMIT_FSIZE, &limit) < 0) return -1;
    if (bytes > limit.rlim_cur || bytes > std::uint64_t{INT64_MAX}) {
        errno = EFBIG;
        return -1;
    }
    return ftruncate(file, static_cast<off_t>(bytes));
}

}  // namespace via::agent
