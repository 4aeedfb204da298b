#include <errno.h>

#include "connection.hpp"
#include "epoll_set.hpp"

namespace via::sockets {

namespace {

/// Whether the kernel alone cannot say how it stands with one of them.
bool any_of_ours(const pollfd* fds, nfds_t count) {
    bool any = false;
    for (nfds_t at = 0; at < count; ++at) {
        if (Entry* const entry = socket_entry(fds[at].fd)) {
            any = through_memory(fds[at].fd, *entry) || any;
        } else {
            EpollSet::leave_to_kernel(fds[at].fd);
        }
    }
    return any;
}

int kernel_poll(pollfd* fds, nfds_t count, std::uint64_t deadline, const sigset_t* mask) {
    if (deadline == ~0ull) return real().ppoll(fds, count, nullptr, mask);
    const std::uint64_t now = now_ns();
    const std::uint64_t left = now < deadline ? deadline - now : 0;
    const timespec time{static_cast<time_t>(left / 1000000000),
                        static_cast<long>(left % 1000000000)};
    return real().ppoll(fds, count, &time, mask);
}

/// Of the first that has one. Null: all are on this host, or time is too short.
BusyPoll* busy_poll_of(const pollfd* fds, nfds_t count, std::int64_t timeout_ns) {
    if (timeout_ns >= 0 && static_cast<std::uint64_t>(timeout_ns) * 2 <= busy_poll_ticks())
        return nullptr;
    for (nfds_t at = 0; at < count; ++at) {
        Entry* const entry = socket_entry(fds[at].fd);
        if (entry != nullptr && entry->busy_poll.is_on()) return &entry->busy_poll;
    }
    return nullptr;
}

int wait_in_kernel(pollfd* fds, nfds_t count, std::int64_t timeout_ns, std::uint64_t deadline,
                   const sigset_t* mask) {
    int ready = 0;
    BusyPoll* const busy_poll = busy_poll_of(fds, count, timeout_ns);
    const auto ask = [&] { return (ready = kernel_poll(fds, count, 0, mask)) != 0; };
    if (busy_poll != nullptr && busy_poll->finds(busy_poll_ticks(), ask)) return ready;
    return kernel_poll(fds, count, deadline, mask);
}

class Poll {
public:
    Poll(pollfd* fds, nfds_t count) : fds_(fds, count), kernel_(fds, fds + count) {
        for (pollfd& one : kernel_) {
            Entry* const entry = socket_entry(one.fd);
            if (entry != nullptr && through_memory(one.fd, *entry))
                one.events = wakes_of(one.events, *entry);
        }
    }
    std::vector<pollfd>& kernel() { return kernel_; }

    /// What the kernel said, and what memory says.
    int collect() {
        int ready = 0;
        for (std::size_t at = 0; at < fds_.size(); ++at) {
            fds_[at].revents = kernel_[at].revents;
            Entry* const entry = socket_entry(fds_[at].fd);
            if (entry != nullptr && through_memory(fds_[at].fd, *entry)) {
                fds_[at].revents = of_socket(fds_[at], *entry, kernel_[at].revents);
            } else if (kernel_[at].events != fds_[at].events) {
                fds_[at].revents = 0;  // went back to the kernel just now: asked again
                kernel_[at].events = fds_[at].events;
                again_ = true;
            }
            if (fds_[at].revents != 0) ++ready;
        }
        return ready;
    }

    /// Something went back to the kernel meanwhile.
    bool changed() { return std::exchange(again_, false); }

    bool any_in_memory() {
        for (const pollfd& one : fds_) {
            Entry* const entry = socket_entry(one.fd);
            if (entry != nullptr && entry->pipe.load() != nullptr &&
                entry->end().pipe().state() == stored) {
                const PipeEnd end = entry->end();
                if ((one.events & POLLIN) != 0 && end.has_bytes()) return true;
                if ((one.events & POLLOUT) != 0 && end.may_have_room()) return true;
            }
        }
        return false;
    }

    struct Sleep {
        std::vector<Sleeping> asleep;
        bool again = false;   ///< there is something by now
        bool others = false;  ///< threads that are woken and have not run
        bool look = false;    ///< nobody may wake it
    };
    Sleep prepare() {
        Sleep sleep;
        sleep.again = std::exchange(again_, false);
        for (std::size_t at = 0; at < fds_.size(); ++at) {
            const pollfd& one = fds_[at];
            Entry* const entry = socket_entry(one.fd);
            if (entry == nullptr || !through_memory(one.fd, *entry)) {
                sleep.again = sleep.again || kernel_[at].events != one.events;
                kernel_[at].events = one.events;
                continue;
            }
            const short wakes = wakes_of(one.events, *entry);
            if (kernel_[at].events != wakes) {
                kernel_[at].events = wakes;
                sleep.again = true;
            }
            const bool out = wants_room(one.events);
            const bool in = wants_bytes(one.events);
            if (!in && !out) continue;
            if (out && must_look_again(*entry)) sleep.look = true;
            const std::uint32_t why = (out ? for_room : 0u) | (in ? for_data : 0u);
            const Rest rest = about_to_sleep(one.fd, *entry, why, for_others_.sleeper());
            if (rest == Rest::sleeps) sleep.asleep.emplace_back(*entry);
            sleep.again = sleep.again || rest != Rest::sleeps;
            sleep.others = sleep.others || rest == Rest::waits;
        }
        if (sleep.others) for_others_.rest();
        return sleep;
    }

private:
    static bool wants_bytes(short events) { return (events & (POLLIN | POLLRDNORM)) != 0; }
    static bool wants_room(short events) { return (events & (POLLOUT | POLLWRNORM)) != 0; }
    /// What the kernel is asked for in their place. What it has in front of a byte that wakes would
    /// let nobody sleep who does not want it.
    static short wakes_of(short events, Entry& entry) {
        const bool by_byte = wants_bytes(events) || (wants_room(events) && !must_look_again(entry));
        const bool any = wants_bytes(events) || wants_room(events);
        return static_cast<short>((events & (POLLPRI | POLLRDHUP)) | (any ? POLLRDHUP : 0) |
                                  (by_byte ? POLLIN : 0));
    }
    static short of_socket(const pollfd& one, Entry& entry, short kernel) {
        const Readiness found = readiness(one.fd, entry);
        int ends = kernel & (POLLRDHUP | POLLHUP | POLLERR);
        if (entry.end().own().error.load() != 0) ends |= POLLRDHUP | POLLHUP | POLLERR;
        int ready = ends;
        if (found.bytes || ends != 0) ready |= POLLIN | POLLRDNORM;
        if (found.room || (ends & (POLLHUP | POLLERR)) != 0) ready |= POLLOUT | POLLWRNORM;
        return static_cast<short>((ready & (one.events | POLLHUP | POLLERR)) | (kernel & POLLNVAL));
    }

    std::span<pollfd> fds_;
    std::vector<pollfd> kernel_;
    bool again_ = false;
    ForOthers for_others_;
};

}  // namespace

int poll_all(pollfd* fds, nfds_t count, std::int64_t timeout_ns, const sigset_t* mask) {
    const std::uint64_t deadline =
        timeout_ns < 0 ? ~0ull : now_ns() + static_cast<std::uint64_t>(timeout_ns);
    if (!any_of_ours(fds, count)) {
        const int ready = wait_in_kernel(fds, count, timeout_ns, deadline, mask);
        if (ready <= 0 || !any_of_ours(fds, count)) return ready;
    }
    Poll poll(fds, count);
    bool spun = false;
    for (;;) {
        std::vector<pollfd>& kernel = poll.kernel();
        if (kernel_poll(kernel.data(), count, 0, mask) < 0) return -1;
        if (const int ready = poll.collect()) return ready;
        if (poll.changed()) continue;
        if (timeout_ns == 0 || (deadline != ~0ull && now_ns() >= deadline)) return 0;
        if (!spun && may_spin()) {
            spun = true;
            const std::uint64_t until = ticks() + spin_ticks();
            while (ticks() < until && !poll.any_in_memory()) detail::relax_processor();
            continue;
        }
        const Poll::Sleep sleep = poll.prepare();
        int slept = 0;
        const std::uint64_t soon = sleep.look ? now_ns() + 1000000 : ~0ull;
        if (!sleep.again) slept = kernel_poll(kernel.data(), count, std::min(soon, deadline), mask);
        if (slept < 0) return slept;
    }
}

int select_all(int count, fd_set* reads, fd_set* writes, fd_set* others, std::int64_t timeout_ns,
               const sigset_t* mask, std::int64_t* left_ns) {
    constexpr int in = POLLIN | POLLRDNORM | POLLHUP | POLLERR;
    constexpr int out = POLLOUT | POLLWRNORM | POLLERR;
    // Programs with more descriptors than fd_set has pass larger ones.
    const auto has = [](const fd_set* set, int fd) {
        return set != nullptr &&
               (reinterpret_cast<const unsigned long*>(set)[fd / 64] >> (fd % 64) & 1) != 0;
    };
    const auto put = [](fd_set* set, int fd, bool value) {
        if (set == nullptr) return;
        unsigned long& word = reinterpret_cast<unsigned long*>(set)[fd / 64];
        word = (word & ~(1ul << (fd % 64))) | static_cast<unsigned long>(value) << (fd % 64);
    };
    std::vector<pollfd> fds;
    for (int fd = 0; fd < count; ++fd) {
        const int events = (has(reads, fd) ? POLLIN | POLLRDNORM : 0) |
                           (has(writes, fd) ? POLLOUT | POLLWRNORM : 0) |
                           (has(others, fd) ? POLLPRI : 0);
        if (events != 0) fds.push_back({fd, static_cast<short>(events), 0});
    }
    const std::uint64_t begun = now_ns();
    const int ready = poll_all(fds.data(), fds.size(), timeout_ns, mask);
    if (left_ns != nullptr && timeout_ns >= 0)
        *left_ns =
            std::max<std::int64_t>(0, timeout_ns - static_cast<std::int64_t>(now_ns() - begun));
    if (ready < 0) return ready;
    for (const pollfd& one : fds) {
        if ((one.revents & POLLNVAL) == 0) continue;
        errno = EBADF;
        return -1;
    }
    int bits = 0;
    for (const pollfd& one : fds) {
        const bool readable = has(reads, one.fd) && (one.revents & in) != 0;
        const bool writable = has(writes, one.fd) && (one.revents & out) != 0;
        const bool urgent = has(others, one.fd) && (one.revents & POLLPRI) != 0;
        put(reads, one.fd, readable);
        put(writes, one.fd, writable);
        put(others, one.fd, urgent);
        bits += readable + writable + urgent;
    }
    return bits;
}

}  // namespace via::sockets
