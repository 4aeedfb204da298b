// Against threads of the program that are cancelled (pthread_cancel) in one of our calls.
#pragma once

#include <pthread.h>

namespace via::agent {

/// A thread that ended while it waits, or has the turn, would leave that and whom it was to wake
/// behind.
class NotCancelled {
public:
    NotCancelled() { pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before_); }
    ~NotCancelled() { pthread_setcancelstate(before_, nullptr); }
    NotCancelled(const NotCancelled&) = delete;
    NotCancelled& operator=(const NotCancelled&) = delete;

private:
    int before_ = PTHREAD_CANCEL_ENABLE;
};

}  // namespace via::agent
