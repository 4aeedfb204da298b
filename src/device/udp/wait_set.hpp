// The wait handle: while somebody polls, what comes must not wake the agent. A socket that the
// handle knows tells it of each datagram, whether that is heard or not: so it is known only while
// we sleep on the handle.
#pragma once

#include "base/time.hpp"
#include "device/udp/system.hpp"

namespace via::device::udp {

/// Owns the wait handle, and whether it knows the sockets.
class WaitSet {
public:
    explicit WaitSet(System& system) : system_(system) {}

    bool open();
    int handle() const { return epoll_.get(); }
    /// It is readable whenever `fd` is.
    bool add(int fd);
    /// Does it know the sockets? Then a new one must watch(), too.
    bool is_watching() const { return watching_; }
    /// `for_room`: it is to tell, too, when the socket has room.
    bool watch(int socket, bool for_room = false);
    /// `for_sockets(call)` calls for each socket; `refused` is the one that is to have room, or -1.
    template <class ForSockets>
    void arm(bool on_handle, int refused, ForSockets for_sockets) {
        if (on_handle != watching_ || (on_handle && refused >= 0)) {
            bool done = true;
            for_sockets([&](int socket) {
                const bool changed = on_handle ? watch(socket, socket == refused) : forget(socket);
                done = changed && done;
            });
            watching_ = done ? on_handle : !on_handle;  // else one more try the next time
        }
        // The kernel did not let us hear: a sleeping thread looks again soon.
        again_ = on_handle && !watching_ ? system_.now() + milliseconds(10) : Time::never();
    }
    /// When to look again, since the handle does not tell.
    Time next_deadline() const { return again_; }

private:
    bool forget(int socket);

    System& system_;
    Descriptor epoll_;
    bool watching_ = false;
    Time again_ = Time::never();
};

}  // namespace via::device::udp
