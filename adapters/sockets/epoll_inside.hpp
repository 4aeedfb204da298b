// What the parts of the epoll sets share.
#pragma once

#include "epoll_set.hpp"

namespace via::sockets {

/// With all epoll sets held; not taken by a thread that holds them already.
extern Lock sets_lock;
struct SetsHold {
    SetsHold() : taken(sets_lock.take()) {}
    ~SetsHold() {
        if (taken) sets_lock.let_go();
    }
    SetsHold(const SetsHold&) = delete;
    SetsHold& operator=(const SetsHold&) = delete;
    bool taken;
};

constexpr std::uint64_t slot_bits = 24;
constexpr std::uint32_t always = EPOLLERR | EPOLLHUP;
constexpr std::uint32_t end_bits = EPOLLERR | EPOLLHUP | EPOLLRDHUP;

inline bool wants_room(const epoll_event& told) {
    return (told.events & (EPOLLOUT | EPOLLWRNORM)) != 0;
}
inline bool wants_bytes(const epoll_event& told) {
    return (told.events & (EPOLLIN | EPOLLRDNORM)) != 0;
}
/// No value of a program's has these 40 bits by chance.
std::uint64_t mark_base();
/// With the sets held.
std::vector<EpollSet*>& all_sets();
/// With the sets held. Null: none of ours, or none yet.
EpollSet* set_of(int fd, bool make);

}  // namespace via::sockets
