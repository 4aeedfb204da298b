#include <errno.h>
#include <linux/sockios.h>
#include <sched.h>

#include "hand_back.hpp"
#include "inbox.hpp"
#include "kernel_socket.hpp"
#include "waiting.hpp"

namespace via::sockets {

namespace {

/// Behind the FIN nothing can go through the kernel any more, if the peer hands back.
void leave_in_kernel(int fd, const PipeEnd& end) {
    if (end.sending().fin.load() != 0) return;
    // Its helping thread reads what lies in front of bytes that wake. It may be stopped.
    for (int tries = 0; tries < 400; ++tries) {
        const bool begun = end.pipe().state() == returning;
        if (!begun && (!wakes_behind_bytes(end) || end.has_bytes())) break;
        if (try_to_hand_back(fd, end, false) == Back::done || is_deserted(fd, end)) return;
        nap();
    }
    const AllLocks hold(end.pipe());
    if (end.pipe().state() != stored || any_receives(end.pipe()) || !end.other().has_bytes() ||
        !fits_in_kernel(fd, end))
        return;
    wake(fd, end, for_data | for_room);
    send_again(fd, end);
    set_state(end.pipe(), returned);
}

bool deserted(std::uint64_t id) {
    const HeldArena its = id == 0 ? nullptr : Arena::open(id);
    return its == nullptr || its->deserted();
}

/// In this process's own arena.
struct LeftPipe {
    Pipe* pipe;
    std::uint64_t peer;  ///< its arena
};
constinit Lock left_lock{};
std::vector<LeftPipe>& left_pipes() {
    static auto* list = new std::vector<LeftPipe>;
    return *list;
}

void leave_for_later(Pipe& pipe, std::uint64_t peer) {
    if (!left_lock.take()) return;
    left_pipes().push_back({&pipe, peer});
    left_lock.let_go();
}

}  // namespace

void free_left_pipes() {
    Arena* const own = own_arena_if_made();
    if (own == nullptr || !left_lock.take()) return;
    std::erase_if(left_pipes(), [own](const LeftPipe& left) {
        if (!deserted(left.peer)) return false;
        PipeEnd::destroy(*own, *left.pipe);
        return true;
    });
    left_lock.let_go();
}

void forget_left_pipes() {
    left_lock.let_go();
    left_pipes().clear();
}

bool has_unread_by_peer(const Entry& entry) {
    const PipeEnd end = entry.end();
    return end.other().has_bytes() || wakes_behind_bytes(end);
}

void say_goodbye(int fd, Entry& entry) {
    const PipeEnd end = entry.end();
    Pipe& pipe = end.pipe();
    const int side = end.side();
    if (pipe.state() != before && entry.kind.load() != Kind::plain) {
        help_if_wanted(fd, entry);
        if (pipe.state() == stored) {
            enter(fd, entry, end);
            leave_in_kernel(fd, end);
        }
        end.own().closed.store(1);
        end.sending().fin.fetch_or(2);
        end.own().asleep.exchange(0);
        if (end.reading().lock.take()) {
            const bool empty = kernel_is_empty(fd, end);
            const bool unread_bytes = end.has_bytes() || (!empty && queue_of(fd, SIOCINQ) > 0);
            if (unread_bytes && end.peer_sending().from.load() != 0) {
                const linger now{1, 0};  // as the kernel answers what was not read: with a reset
                real().setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
            } else if (empty) {
                for (int tries = 0; tries < 1000 && !drain(fd, end); ++tries) sched_yield();
            }
            end.reading().lock.let_go();
        }
    }
    Arena& arena = end.arena();
    const HeldArena hold = arena.hold();
    detach(entry);
    const bool peer_left = (pipe.word.fetch_or(left_bit(side)) & left_bit(1 - side)) != 0;
    const bool peer_died = !peer_left &&
                           (end.own().at_end.load() != 0 || end.own().error.load() != 0) &&
                           end.peer().closed.load() == 0;
    if (pipe.side[0].sleepers.load() > 0 || pipe.side[1].sleepers.load() > 0) return;
    const std::uint64_t peer = pipe.arenas[1 - side];
    if (peer_left || (peer_died && deserted(peer)))
        PipeEnd::destroy(arena, pipe);
    else if (peer_died && &arena == own_arena_if_made())
        leave_for_later(pipe, peer);
}

}  // namespace via::sockets
