// How the agent starts its threads.
#pragma once

#include <signal.h>

#include <thread>

namespace via::agent {

/// Starts a thread that never runs a signal handler of the program. Throws std::system_error.
template <class Body>
std::thread start_thread(Body body) {
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    struct Restore {
        sigset_t& mask;
        ~Restore() { pthread_sigmask(SIG_SETMASK, &mask, nullptr); }
    } restore{before};
    return std::thread(body);
}

}  // namespace via::agent
