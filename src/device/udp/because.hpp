// Why a system call failed, for people, and what to do where that is known.
#pragma once

#include <cerrno>
#include <cstring>
#include <string>

namespace via::device::udp {

/// `otherwise` is said where the reason alone does not tell what to do.
inline std::string because(int error, const char* otherwise = "") {
    const std::string why = std::string(": ") + std::strerror(error);
    if (error == EMFILE) return why + "; raise the limit of open files (ulimit -n)";
    if (error == ENFILE) return why + "; the machine is out of open files (fs.file-max)";
    return why + otherwise;
}

}  // namespace via::device::udp
