// What OPENVIA_SOCKETS says.
#pragma once

#include <string>

#include "shared.hpp"

namespace via::sockets {

struct Options {
    bool off = false;
    bool epoll = true;        ///< sockets in epoll sets, too
    std::uint32_t after = 4;  ///< calls with bytes before a peer is looked for
    std::uint64_t spin_ns = 20000;
    std::string only, without;  ///< ports, commas between
};
const Options& options();
/// How long memory is asked before a thread sleeps; 0: not at all.
std::uint64_t spin_ticks();
/// The same of the kernel, for bytes of another host: longer than a peer that sleeps takes to wake
/// up and answer, or two that began to sleep would never stop to.
std::uint64_t busy_poll_ticks();
/// Whether one of the two ports is meant.
bool wanted(const Ends& ends);

}  // namespace via::sockets
