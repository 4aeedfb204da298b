// The library that `via sockets` loads before a program's own, and what it says of a connection.
#pragma once

#include <string>

namespace via::bench {

/// Beside this program; empty: it is not there.
std::string sockets_library();

/// Why the bytes of this process's socket go through the kernel; empty: they go through memory.
std::string why_in_kernel(int fd);

}  // namespace via::bench
