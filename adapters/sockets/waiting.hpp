// Sleeping until the peer has stored something or made room, and being woken.
#pragma once

#include <errno.h>

#include "connection.hpp"

namespace via::sockets {

/// With one of our locks held: who hands back takes them all, and then nobody wakes any more.
void wake(int fd, const PipeEnd& end, std::uint32_t why);
/// What one call has waited.
struct Waited {
    int rounds = 0;
    std::uint64_t since_ns = 0;  ///< its first sleep
    std::uint64_t until_ns = 0;  ///< end of SO_RCVTIMEO or SO_SNDTIMEO; 0: not asked yet
    ForOthers for_others;
};
/// false: errno says why the call ends.
bool wait_for_bytes(int fd, Entry& entry, const PipeEnd& end, Waited& waited);
/// false: errno says why the call ends.
bool wait_for_room(int fd, Entry& entry, const PipeEnd& end, Waited& waited);
/// A look at the kernel costs as much as a hundred at memory. Of a socket in an epoll set the
/// kernel tells by itself that its peer has ended: looks of calls with bytes are for programs that
/// do not ask the set.
struct Period {
    std::uint64_t alone_ns, in_epoll_ns;
};
constexpr Period of_receives{15'000, 1'000'000};
constexpr Period of_sends{100'000, 10'000'000};
bool is_time(const Entry& entry, const Period& period);
/// The same, and the look is this one.
bool time_to_look(Entry& entry, const Period& period);

inline ssize_t fails(int error) {
    errno = error;
    return -1;
}
inline bool is_nonblocking(const Entry& entry, int flags) {
    return (flags & MSG_DONTWAIT) != 0 || entry.stream.load()->nonblocking.load() != 0;
}
constexpr int kernel_parts = 64;

}  // namespace via::sockets
