#include "waiting.hpp"

#include <linux/sockios.h>
#include <sched.h>
#include <time.h>

#include "inbox.hpp"
#include "kernel_socket.hpp"

namespace via::sockets {

namespace {

/// false: none is on its way, as behind a FIN.
bool send_byte(int fd, const PipeEnd& end) {
    if (end.sending().fin.load() != 0) return false;
    end.own().wakes_sent.fetch_add(1);
    const char byte = 0;
    const bool sent = raw_send(fd, &byte, 1, MSG_DONTWAIT | MSG_NOSIGNAL) == 1;
    if (!sent) end.own().wakes_sent.fetch_sub(1);
    return sent;
}

/// For an epoll set of the peer's.
void tell_board(int fd, const PipeEnd& end, const Mark& mark) {
    Entry& entry = descriptors[static_cast<unsigned>(fd)];
    Board* const board = board_of_peer(entry, mark.board);
    if (board == nullptr) {  // the set hears of it from the kernel
        send_byte(fd, end);
    } else if (const std::uint64_t sleep = board->mark(mark.bit)) {
        // Over a connection that has left the set meanwhile it wakes nobody there.
        if (!send_byte(fd, end)) return;
        std::atomic_thread_fence(std::memory_order_seq_cst);
        if (end.peer().mark.load() == mark.word()) board->woken(sleep);
    }
}

}  // namespace

/// With one of our locks held: who hands back takes them all, and then nobody wakes any more.
void wake(int fd, const PipeEnd& end, std::uint32_t why) {
    const Mark mark = Mark::of(end.peer().mark.load(std::memory_order_relaxed));
    const bool marks = mark.board != 0 && ((why & for_data) != 0 || mark.room);
    const bool sleeps = (end.peer().asleep.load(std::memory_order_relaxed) & why) != 0;
    if ((!marks && !sleeps) || end.pipe().state() != stored) return;
    if (sleeps && end.sending().fin.load() == 0 && end.peer().asleep.exchange(0) != 0)
        send_byte(fd, end);
    if (marks) tell_board(fd, end, mark);
}

bool is_time(const Entry& entry, const Period& period) {
    const bool in_epoll = entry.in_epoll.load(std::memory_order_relaxed);
    const std::uint64_t ns = in_epoll ? period.in_epoll_ns : period.alone_ns;
    return ticks() - entry.looked.load(std::memory_order_relaxed) >= ns * 2;
}
bool time_to_look(Entry& entry, const Period& period) {
    if (!is_time(entry, period)) return false;
    entry.looked.store(ticks(), std::memory_order_relaxed);
    return true;
}

/// For the peer, or another thread, which is about to hand back.
void nap() {
    const timespec moment{0, 50000};
    clock_nanosleep(CLOCK_MONOTONIC, 0, &moment, nullptr);
}

void ForOthers::rest() {
    if (++rests_ <= yields)
        sched_yield();
    else
        nap();
}

Rest about_to_sleep(int fd, Entry& entry, std::uint32_t why, Sleeper how) {
    constexpr std::uint32_t most_wakes = 256;  // the kernel has room for more
    const PipeEnd end = entry.end();
    if (!end.reading().lock.take()) return Rest::looks;
    Side& own = end.own();
    bool waits = false;
    if (kernel_is_empty(fd, end) && end.pipe().state() == stored) {
        if (how == Sleeper::alone || own.sleepers.load() <= 0 || wakes_left(end) > most_wakes) {
            own.sleepers.store(0);
            drain(fd, end);
        } else {
            waits = how == Sleeper::by_level && wakes_left(end) != 0;
        }
    }
    const std::uint32_t others = own.asleep.fetch_or(why);
    std::atomic_thread_fence(std::memory_order_seq_cst);  // against wake() after a store
    const bool over = own.at_end.load() != 0 || own.error.load() != 0;
    const bool stays = end.pipe().state() != stored || end.peer().wants_kernel.load() != 0 ||
                       ((why & for_data) != 0 && (end.has_bytes() || over)) ||
                       ((why & for_room) != 0 && (end.has_room() || end.peer().closed.load() != 0 ||
                                                  own.leaves.load() != 0 || own.error.load() != 0 ||
                                                  own.at_end.load() == 2));
    // Who is marked asleep has found nothing. What other threads wait for stays as it is.
    if (stays || waits)
        own.asleep.fetch_and(~(why & ~others));
    else
        own.sleepers.fetch_add(1);
    end.reading().lock.let_go();
    return stays ? Rest::looks : waits ? Rest::waits : Rest::sleeps;
}

Sleeping::~Sleeping() {
    if (entry_ != nullptr && entry_->pipe.load() != nullptr)
        entry_->end().own().sleepers.fetch_sub(1);
}

bool must_look_again(Entry& entry) {
    const PipeEnd end = entry.end();
    return end.peer_sending().fin.load() != 0 || end.reading().kernel_done.load() == 0;
}

Readiness readiness(int fd, Entry& entry) {
    const PipeEnd end = entry.end();
    Readiness found;
    if (!end.reading().lock.take()) return found;
    if (end.pipe().state() == returned) {
        found.bytes = end.has_bytes() || queue_of(fd, SIOCINQ) > static_cast<int>(wakes_left(end));
    } else if (kernel_is_empty(fd, end)) {
        found.bytes = end.has_bytes();
    } else {
        found.bytes = end.has_bytes() || queue_of(fd, SIOCINQ) > 0;
    }
    end.reading().lock.let_go();
    const Side& own = end.own();
    found.room = end.may_have_room() || end.pipe().state() == returned ||
                 end.peer().closed.load() != 0 || end.sending().fin.load() != 0 ||
                 own.error.load() != 0 || own.at_end.load() == 2;
    return found;
}

namespace {

/// Spins for a little. false: nothing has come, or the peer is about to end.
bool appears(const PipeEnd& end, bool (PipeEnd::*there)() const) {
    const std::uint64_t until = ticks() + spin_ticks();
    while (ticks() < until) {
        for (int looks = 0; looks < 20; ++looks) {
            if ((end.*there)()) return true;
            detail::relax_processor();
        }
        if (end.peer().wants_kernel.load() != 0 || end.peer().closed.load() != 0) return false;
    }
    return false;
}

std::uint64_t limit_of(int fd, int option) {
    const auto limit = option_of<timeval>(fd, SOL_SOCKET, option, {});
    if (limit.tv_sec == 0 && limit.tv_usec == 0) return ~0ull;
    return static_cast<std::uint64_t>(limit.tv_sec) * 1000000000 +
           static_cast<std::uint64_t>(limit.tv_usec) * 1000;
}

/// Of all the sleeps of a call. true: the limit has come.
bool is_over(int fd, int option, Waited& waited) {
    if (waited.until_ns == 0) {
        const std::uint64_t limit = limit_of(fd, option);
        waited.until_ns = limit == ~0ull ? limit : waited.since_ns + limit;
    }
    return waited.until_ns != ~0ull && now_ns() >= waited.until_ns;
}

/// No byte will wake: a moment in the kernel, and a look at what it knows.
bool rest_for_a_moment(int fd, const PipeEnd& end, bool ask) {
    if (ask && end.sending().lock.take()) {
        if (end.own().at_end.load() != 0) {  // who is gone answers this with a reset
            send_byte(fd, end);
        }
        end.sending().lock.let_go();
    }
    pollfd none{-1, 0, 0};
    if (real().poll(&none, 1, 1) < 0) return false;
    look_at_kernel(fd, end);
    return true;
}

/// In the kernel, until a byte wakes or the limit has come. false: errno says why the call ends.
bool sleep_until(int fd, const PipeEnd& end, std::uint64_t until_ns) {
    if (until_ns != ~0ull) {
        const std::uint64_t now = now_ns();
        const std::uint64_t ms = now < until_ns ? (until_ns - now + 999999) / 1000000 : 0;
        pollfd wait{fd, POLLIN | POLLRDHUP, 0};
        const int ready =
            real().poll(&wait, 1, static_cast<int>(std::min<std::uint64_t>(ms, 1 << 30)));
        if (ready > 0) look_at_kernel(fd, end);
        return ready >= 0;
    }
    char byte;
    const long got = real().recv(fd, &byte, 1, MSG_PEEK);
    const int error = errno;
    heard(end, got, error);
    errno = error;
    return got >= 0 || (error != EAGAIN && error != EINTR);
}

/// false: first another look at what there is.
bool may_sleep(int fd, Entry& entry, Asleep why, Waited& waited) {
    const Rest rest = about_to_sleep(fd, entry, why, waited.for_others.sleeper());
    if (rest == Rest::waits) waited.for_others.rest();
    if (rest == Rest::sleeps) return true;
    const PipeEnd end = entry.end();
    if (end.pipe().state() == returning || (why == for_room && end.own().leaves.load() != 0)) nap();
    return false;
}

}  // namespace

/// false: errno says why the call ends.
bool wait_for_bytes(int fd, Entry& entry, const PipeEnd& end, Waited& waited) {
    if (waited.rounds == 0 && appears(end, &PipeEnd::has_bytes)) return true;
    ++waited.rounds;
    if (!may_sleep(fd, entry, for_data, waited)) return true;
    const Sleeping asleep(entry);
    if (waited.since_ns == 0) {  // the kernel keeps the limit of the first sleep itself
        waited.since_ns = now_ns();
        return sleep_until(fd, end, ~0ull);
    }
    if (!is_over(fd, SO_RCVTIMEO, waited)) return sleep_until(fd, end, waited.until_ns);
    errno = EAGAIN;
    return false;
}

/// false: errno says why the call ends.
bool wait_for_room(int fd, Entry& entry, const PipeEnd& end, Waited& waited) {
    if (waited.rounds == 0 && appears(end, &PipeEnd::has_room)) return true;
    if (waited.since_ns == 0) waited.since_ns = now_ns();
    if (is_over(fd, SO_SNDTIMEO, waited)) {
        errno = EAGAIN;
        return false;
    }
    const bool first = waited.rounds++ == 0;
    const bool unseen = must_look_again(entry);
    // After the first moment memory of more room is asked for.
    if (first || unseen) return rest_for_a_moment(fd, end, unseen);
    if (!may_sleep(fd, entry, for_room, waited)) return true;
    const Sleeping asleep(entry);
    return sleep_until(fd, end, waited.until_ns) ||
           (errno == EAGAIN && waited.until_ns == ~0ull);  // SO_RCVTIMEO's
}

}  // namespace via::sockets
