#include "shared.hpp"

namespace via::sockets {

const char* text_of(Reason reason) {
    switch (reason) {
        case Reason::none:
            return "";
        case Reason::peer_absent:
            return "the peer is not under via sockets on this host";
        case Reason::shared:
            return "several processes or descriptors have it";
        case Reason::asked_for:
            return "the program asked for the kernel";
        case Reason::options:
            return "excluded by --only or --not";
        case Reason::memory:
            return "no memory for its rings";
        case Reason::counters:
            return "the kernel's counters do not fit";
        case Reason::exec:
            return "a program was started that inherits it";
        case Reason::stdio:
            return "used through stdio";
        case Reason::uring:
            return "the program uses io_uring or system calls of its own";
        case Reason::nested:
            return "it is in an epoll set";
        case Reason::descriptor_passed:
            return "passed to another process";
        case Reason::half_closed:
            return "closed for one direction";
        case Reason::unusual_call:
            return "a call or option that memory cannot carry";
        case Reason::closing:
            return "closing";
        case Reason::shared_set:
            return "it is in an epoll set that other processes have, too";
        case Reason::own_calls:
            return "it is written in Go, and makes its system calls itself";
    }
    return "";
}

}  // namespace via::sockets
