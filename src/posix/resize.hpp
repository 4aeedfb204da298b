// The length of a file, without the signal.
#pragma once

#include <errno.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdint>

namespace via::posix {

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

}  // namespace via::posix
