#include "epoll_set.hpp"
#include "hand_back.hpp"
#include "inbox.hpp"
#include "kernel_socket.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>

namespace via::sockets {

/// The first look of this process at a connection whose bytes go through memory.
void enter(int fd, Entry& entry, const PipeEnd& end) {
    if (end.sending().from.load() == 0) {
        std::uint64_t none = 0;
        std::optional<std::uint64_t> sent;
        while (!sent) sent = sent_position(fd, end.side());
        end.sending().from.compare_exchange_strong(none, *sent + 1);
    }
    if (entry.entered.load(std::memory_order_relaxed) || entry.entered.exchange(true)) return;
    start_helper();
    if (entry.in_epoll.load()) EpollSet::refresh(fd);
}

/// The bytes are the kernel's again; true: nothing of them is left in memory.
bool settle(int fd, Entry& entry, const PipeEnd& end) {
    if (!end.reading().lock.take()) return false;
    const bool used = end.peer_sending().from.load() != 0;
    const bool done =
        !used || (end.again().left() == 0 && !end.has_bytes() &&
                  (wakes_left(end) == 0 || (kernel_is_empty(fd, end) && drain(fd, end))));
    end.reading().lock.let_go();
    if (!done) return false;
    entry.kind.store(Kind::plain);
    const int on = entry.stream.load()->no_delay.load() != 0;
    real().setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (entry.in_epoll.load()) EpollSet::refresh(fd);
    return true;
}

namespace {

/// What the kernel has yet to give, as long as it can be told: once both ends have sent a FIN, or
/// one of them a reset, nobody says whether a FIN is among what it has received.
void learn_left(int fd, const PipeEnd& end) {
    if (end.reading().kernel_done.load(std::memory_order_relaxed) != 0 ||
        end.peer_sending().from.load() == 0 || !end.reading().lock.take())
        return;
    kernel_is_empty(fd, end);
    end.reading().lock.let_go();
}

}  // namespace

bool through_memory(int fd, Entry& entry) {
    if (entry.kind.load() == Kind::plain) return false;
    Pipe* const pipe = pipe_of(entry);
    if (pipe == nullptr || pipe->state() == before) return false;
    const PipeEnd end = entry.end();
    if (pipe->state() == stored) {
        enter(fd, entry, end);
        learn_left(fd, end);
    } else if (pipe->state() == returning && end.peer().wants_kernel.load() != 0) {
        help_to_hand_back(fd, end);
    }
    return pipe->state() != returned || !settle(fd, entry, end);
}

}  // namespace via::sockets
