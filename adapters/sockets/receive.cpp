#include "hand_back.hpp"
#include "inbox.hpp"
#include "kernel_socket.hpp"
#include "waiting.hpp"

namespace via::sockets {

namespace {

/// Behind the last bytes in memory, which MSG_PEEK leaves there, come the kernel's.
bool goes_on_in_kernel(int fd, Entry& entry, const PipeEnd& end, int flags) {
    if ((flags & MSG_PEEK) == 0) return settle(fd, entry, end);
    if (!end.reading().lock.take()) return false;
    const bool so = kernel_is_empty(fd, end) && drain(fd, end);
    end.reading().lock.let_go();
    return so;
}

/// What a program sees that asks again and again: without a lock, and no other thread reads.
bool has_nothing_new(const Entry& entry, const PipeEnd& end) {
    const ReadEnd& reading = end.reading();
    const Side& own = end.own();
    if (reading.lock.owner.load(std::memory_order_acquire) != 0 ||
        reading.kernel_done.load() == 0 || end.has_bytes() || end.pipe().state() != stored ||
        own.at_end.load() != 0 || own.error.load() != 0 || end.peer_sending().fin.load() != 0 ||
        end.peer().closed.load() != 0)
        return false;
    return reading.lock.owner.load(std::memory_order_acquire) == 0 && !is_time(entry, of_receives);
}

/// Nothing: the bytes go another way by now.
std::optional<ssize_t> receive_stored(int fd, Entry& entry, const PipeEnd& end, Buffers& to,
                                      int flags, Waited& waited) {
    if (is_nonblocking(entry, flags) && has_nothing_new(entry, end)) return fails(EAGAIN);
    for (waited.rounds = 0;;) {
        if (!end.reading().lock.take()) return fails(EINTR);
        bool room = false;
        std::size_t got = take(fd, end, to, flags, room);
        Side& own = end.own();
        if (got == 0) {
            const bool leaves = end.peer_sending().fin.load() != 0 || end.peer().closed.load() != 0;
            if (own.at_end.load() == 0 && own.error.load() == 0 && kernel_is_empty(fd, end) &&
                (leaves || time_to_look(entry, of_receives))) {
                if (own.sleepers.load() <= 0 || leaves) drain(fd, end);
                ask_for_end(fd, end);
            }
            // What was stored comes before what the kernel says of the end.
            if (own.at_end.load() != 0 || own.error.load() != 0)
                got = take(fd, end, to, flags, room);
        }
        if (room) {
            std::atomic_thread_fence(std::memory_order_seq_cst);  // against about_to_sleep()
            wake(fd, end, for_room);
        }
        end.reading().lock.let_go();
        if (got > 0 && end.pipe().state() == returned && !to.done() &&
            goes_on_in_kernel(fd, entry, end, flags)) {
            std::array<iovec, kernel_parts> rest;
            const ssize_t more = kernel_receive(fd, rest.data(), to.rest(rest.data(), kernel_parts),
                                                flags | MSG_DONTWAIT);
            if (more > 0) got += static_cast<std::size_t>(more);
        }
        if (got > 0) return static_cast<ssize_t>(got);
        if (const int error = take_error(end)) {
            own.at_end.store(2);
            return fails(error);
        }
        if (own.at_end.load() != 0) return 0;
        if (is_nonblocking(entry, flags)) return fails(EAGAIN);
        if (!wait_for_bytes(fd, entry, end, waited)) return -1;
        if (!through_memory(fd, entry)) return std::nullopt;
    }
}

/// Owns that a call is counted as in the kernel, also if its thread is cancelled there.
class InKernel {
public:
    explicit InKernel(const PipeEnd& end) : word_(end.pipe().word), one_(one_receive(end.side())) {
        was_before_ = (word_.fetch_add(one_) & state_mask) == before;
    }
    ~InKernel() {
        if (one_ != 0) word_.fetch_sub(one_);
    }
    InKernel(const InKernel&) = delete;
    InKernel& operator=(const InKernel&) = delete;
    bool was_before() const { return was_before_; }
    /// true: still before, and counted no more.
    bool ends_before() {
        std::uint64_t word = word_.load();
        while ((word & state_mask) == before)
            if (word_.compare_exchange_weak(word, word - one_)) return std::exchange(one_, 0) != 0;
        return false;
    }

private:
    std::atomic<std::uint64_t>& word_;
    std::uint64_t one_;
    bool was_before_;
};

/// A call that was in the kernel while the bytes may have moved to memory. true: `got` is its
/// result.
bool came_back(int fd, const PipeEnd& end, InKernel& call, ssize_t& got, int flags) {
    if (call.ends_before()) return true;
    const int error = errno;
    bool over = got < 0 && error == EINTR;
    if (got > 0) {
        got = data_among(fd, end, got, flags);
        over = got > 0;
    } else {
        heard(end, got, error);
    }
    errno = error;
    return over;
}

/// While there is no memory.
ssize_t receive_by_kernel(int fd, Entry& entry, const iovec* parts, int count, int flags) {
    ssize_t got = 0;
    const auto ask = [&] {
        got = kernel_receive(fd, parts, count, flags | MSG_DONTWAIT);
        return got >= 0 || errno != EAGAIN;
    };
    if (entry.busy_poll.is_on() && !is_nonblocking(entry, flags) &&
        entry.busy_poll.finds(busy_poll_ticks(), ask))
        return got;
    return kernel_receive(fd, parts, count, flags);
}

ssize_t receive_some(int fd, Entry& entry, const iovec* parts, int count, int flags,
                     Waited& waited) {
    for (;;) {
        if (entry.kind.load(std::memory_order_relaxed) == Kind::plain)
            return kernel_receive(fd, parts, count, flags);
        ssize_t bytes = 0;
        const auto by_kernel = [&] { return receive_by_kernel(fd, entry, parts, count, flags); };
        Pipe* const pipe = pipe_or_kernel(fd, entry, entry.receives, bytes, by_kernel);
        if (pipe == nullptr) return bytes;
        const PipeEnd end = entry.end();
        if (pipe->state() == before) {
            InKernel call(end);
            if (!call.was_before()) continue;
            ssize_t got = kernel_receive(fd, parts, count, flags);
            if (!came_back(fd, end, call, got, flags)) continue;
            if (got > 0) step(fd, entry);
            return got;
        }
        if (!through_memory(fd, entry)) continue;
        Buffers to(parts, count);
        if (to.done()) return 0;
        if (const auto got = receive_stored(fd, entry, end, to, flags, waited)) return *got;
    }
}

}  // namespace

ssize_t receive(int fd, Entry& entry, const iovec* parts, int count, int flags) {
    if ((flags & MSG_OOB) != 0 || (flags & MSG_ERRQUEUE) != 0 ||
        ((flags & MSG_WAITALL) != 0 && (flags & MSG_PEEK) != 0)) {
        hand_back(fd, entry, Reason::unusual_call);
        return kernel_receive(fd, parts, count, flags);
    }
    Waited waited;
    if ((flags & MSG_WAITALL) == 0) return receive_some(fd, entry, parts, count, flags, waited);
    Buffers to(parts, count);
    ssize_t sum = 0;
    while (!to.done()) {
        std::array<iovec, kernel_parts> rest;
        const ssize_t got = receive_some(fd, entry, rest.data(), to.rest(rest.data(), kernel_parts),
                                         flags & ~MSG_WAITALL, waited);
        if (got <= 0) return sum > 0 ? sum : got;
        to.use(static_cast<std::size_t>(got));
        sum += got;
    }
    return sum;
}

}  // namespace via::sockets
