// Why something did not work, for people: what failed, why, what to do.
#pragma once

#include <cerrno>
#include <cstring>
#include <expected>
#include <string>
#include <string_view>

#include "base/status.hpp"

namespace via::device::shm {

struct Failure {
    Status status;  ///< what the program is told
    std::string text;
};

template <class T>
using Outcome = std::expected<T, Failure>;

inline const char* advice_for(int error) {
    switch (error) {
        case EMFILE:
            return "raise the limit on open files (ulimit -n) or close something";
        case ENFILE:
            return "the machine is out of open files (fs.file-max)";
        case EFBIG:
            return "raise the limit on the size of files (ulimit -f), which holds for memory too";
        case ENOMEM:
        case ENOBUFS:
            return "free memory, or raise the memory limit or vm.max_map_count";
        case ENOSPC:
            return "free space, or raise fs.epoll.max_user_watches";
        case EACCES:
            return "check the owner and the permissions of the directory";
        case EROFS:
            return "make the file system writable, or set XDG_RUNTIME_DIR to a directory on one";
        case ENOENT:
            return "make sure that the directory and /proc exist";
        default:
            return "try again; it may be a filter of system calls (seccomp) that forbids it";
    }
}

/// `what` names the thing and the call, e.g. "cannot create shared memory (memfd_create)".
inline std::unexpected<Failure> failure(std::string_view what, int error) {
    std::string text = "shm: ";
    text += what;
    text += ": ";
    text += strerrordesc_np(error) != nullptr ? strerrordesc_np(error) : "unknown error";
    text += "; ";
    text += advice_for(error);
    return std::unexpected(Failure{Status::error_resource, std::move(text)});
}

}  // namespace via::device::shm
