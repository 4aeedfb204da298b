#include "hand_back.hpp"

#include <errno.h>

#include "inbox.hpp"
#include "kernel_socket.hpp"
#include "waiting.hpp"

namespace via::sockets {

void set_state(Pipe& pipe, State state) {
    std::uint64_t word = pipe.word.load();
    while (!pipe.word.compare_exchange_weak(word, (word & ~state_mask) | state)) {
    }
}

/// What can be sent again with all locks held: the reader needs one to take anything.
bool fits_in_kernel(int fd, const PipeEnd& end) {
    const std::size_t bytes = end.other().bytes_waiting();
    return bytes == 0 || bytes <= room_in_kernel(fd);
}

/// With all locks: what the peer has not read of ours goes through the kernel.
void send_again(int fd, const PipeEnd& end) {
    Pipe::Again& again = end.pipe().again[end.side()];
    if (again.offset != 0) {
        send_all(fd, end.arena().at<std::byte>(again.offset + again.used), again.left());
        end.arena().release(again.offset, again.room);
        again = {};
    }
    const PipeEnd other = end.other();
    std::array<std::byte, 16384> some;
    for (int turns = 0; turns < 1024; ++turns) {  // more than rings hold: it lies
        const iovec part{some.data(), some.size()};
        Buffers to(&part, 1);
        bool room = false;
        const std::size_t got = other.take(to, {}, room);
        if (got == 0) break;
        send_all(fd, some.data(), got);
    }
}

/// With all locks: what the kernel has that is in front of bytes in memory, or of bytes that wake,
/// into `again`. Nothing of either is left in the kernel, if true.
bool read_ahead(int fd, const PipeEnd& end) {
    if (!kernel_is_empty(fd, end)) {
        if (!kernel_left(fd, end)) return false;
        Pipe::Again& again = end.again();
        std::uint64_t& left = end.reading().left;
        if (again.offset == 0) {
            again.room = left;
            again.offset = end.arena().allocate(left);
        }
        if (again.offset == 0) return false;
        while (left > 0) {
            const long got = raw_receive(fd, end.arena().at<std::byte>(again.offset + again.bytes),
                                         std::min<std::size_t>(left, Arena::longest), MSG_DONTWAIT);
            if (got <= 0) return false;
            again.bytes += static_cast<std::size_t>(got);
            left -= static_cast<std::size_t>(got);
        }
        end.reading().kernel_done.store(1);
    }
    return drain(fd, end);
}

bool any_receives(const Pipe& pipe) {
    const std::uint64_t word = pipe.word.load();
    return receives_of(word, 0) + receives_of(word, 1) != 0;
}

/// Bytes in the kernel that the peer has not read, in front of some that wake.
bool wakes_behind_bytes(const PipeEnd& end) {
    const PipeEnd other = end.other();
    return wakes_left(other) != 0 && other.reading().kernel_done.load() == 0;
}

/// With all locks, and nobody asleep or in the kernel: this end has not read all, and what the
/// kernel has may be in front of bytes that wake or in memory. The peer alone can send that again.
bool is_unread_here(const PipeEnd& end) {
    return end.peer_sending().from.load() != 0 && (wakes_left(end) != 0 || end.has_bytes());
}

/// Once the peer has done its part, or does not do it though nothing would be lost without it.
Back finish_return(int fd, const PipeEnd& end, bool late) {
    Pipe& pipe = end.pipe();
    const bool may = end.peer().handed_back.load() != 0 || (late && !end.has_bytes());
    if (end.own().wants_kernel.load() == 0 || !may) {
        call_for_help(pipe.arenas[1 - end.side()]);
        return Back::again;
    }
    send_again(fd, end);
    set_state(pipe, returned);
    return Back::done;
}

/// With all locks: a thread of this end sleeps until the peer makes room in memory, and would hear
/// nothing of room in the kernel. It is woken, and sleeps no more.
bool sleeps_for_room(const PipeEnd& end) {
    Side& own = end.own();
    if (own.sleepers.load() <= 0) return false;
    if ((own.asleep.load() & for_room) == 0) return wakes_left(end) != 0;
    own.leaves.store(1);
    call_for_help(end.pipe().arenas[1 - end.side()]);
    return true;
}

Back try_to_hand_back(int fd, const PipeEnd& end, bool late) {
    const AllLocks hold(end.pipe());
    Pipe& pipe = end.pipe();
    if (pipe.state() == returned) return Back::done;
    if (pipe.state() == before) {
        set_state(pipe, returned);
        return Back::done;
    }
    if (pipe.state() == returning) return finish_return(fd, end, late);
    if (!late && sleeps_for_room(end)) return Back::again;
    wake(fd, end, for_data | for_room);
    if (any_receives(pipe) || !fits_in_kernel(fd, end)) return Back::again;
    if (end.peer_sending().from.load() != 0 && kernel_is_empty(fd, end)) drain(fd, end);
    const bool unread_here = is_unread_here(end);
    if (unread_here || wakes_behind_bytes(end)) {
        if (unread_here && !read_ahead(fd, end)) return Back::again;
        end.own().wants_kernel.store(1);
        set_state(pipe, returning);
        call_for_help(pipe.arenas[1 - end.side()]);
        return Back::again;
    }
    send_again(fd, end);
    set_state(pipe, returned);
    return Back::done;
}

/// The peer wants it: nothing that it sent is left in the kernel in front of what it will send
/// again, and what it has not read goes through the kernel.
void help_to_hand_back(int fd, const PipeEnd& end) {
    const AllLocks hold(end.pipe());
    Pipe& pipe = end.pipe();
    if (pipe.state() != returning || end.own().handed_back.load() != 0 || any_receives(pipe) ||
        !fits_in_kernel(fd, end))
        return;
    if (wakes_left(end) != 0 && !read_ahead(fd, end)) return;
    send_again(fd, end);
    end.own().handed_back.store(1);
}

/// The peer has closed, or was killed: it says and sends nothing more.
bool is_deserted(int fd, const PipeEnd& end) {
    if (end.peer().closed.load() != 0 || end.own().error.load() != 0 ||
        end.own().at_end.load() == 2)
        return true;
    pollfd look{fd, POLLRDHUP, 0};
    real().poll(&look, 1, 0);
    return (look.revents & POLLERR) != 0 ||
           ((look.revents & POLLRDHUP) != 0 && end.peer_sending().fin.load() == 0);
}

void help_if_wanted(int fd, Entry& entry) {
    Pipe* const pipe = pipe_of(entry);
    if (pipe == nullptr) return;
    const PipeEnd end = entry.end();
    if (pipe->state() == returning && end.peer().wants_kernel.load() != 0)
        help_to_hand_back(fd, end);
    if (pipe->state() == stored && end.peer().leaves.load() != 0) {
        const AllLocks hold(*pipe);
        wake(fd, end, for_room);
    }
}

void hand_back(int fd, Entry& entry, Reason reason) {
    const int error = errno;
    if (Stream* const stream = entry.stream.load())
        stream->reason.store(static_cast<std::uint32_t>(reason));
    const Pipe* const pipe = pipe_of(entry);
    if (pipe == nullptr) {
        entry.kind.store(Kind::plain);
        errno = error;
        return;
    }
    const PipeEnd end = entry.end();
    if (pipe->state() == stored) enter(fd, entry, end);
    const std::uint64_t late = now_ns() + 2000000000;
    for (;;) {
        const bool last = is_deserted(fd, end);
        if (try_to_hand_back(fd, end, now_ns() > late) == Back::done) break;
        if (last) {
            pass_on_the_rest(fd, entry, end, reason);
            break;
        }
        help_if_wanted(fd, entry);
        nap();
    }
    while (pipe->state() == returned && !settle(fd, entry, end)) {
        if (is_deserted(fd, end)) break;
        if (reason == Reason::nested) break;  // the program's reads go on to settle it
        nap();
    }
    errno = error;
}

}  // namespace via::sockets
