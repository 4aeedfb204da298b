// Against threads of the program that are cancelled (pthread_cancel) in one of our calls.
#pragma once

#include <pthread.h>
#include <unistd.h>

namespace via::posix {

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

/// By libc's function all the same: ThreadSanitizer has to see that a descriptor ends, or takes
/// what has its number next for it. Not to be repeated after EINTR: Linux has closed it by then.
inline int close_uncancelled(int descriptor) {
    const NotCancelled not_cancelled;
    return ::close(descriptor);
}

}  // namespace via::posix
