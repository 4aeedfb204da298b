#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>

#include "connection.hpp"
#include "kernel_socket.hpp"

namespace via::sockets {

namespace {

bool is_for_good(const Stream& stream) {
    return stream.reason.load() > static_cast<std::uint32_t>(Reason::shared);
}

void stay_with_kernel(Entry& entry, Reason reason) {
    if (Stream* const stream = entry.stream.load())
        stream->reason.store(static_cast<std::uint32_t>(reason));
    entry.kind.store(Kind::plain);
}

/// So that other processes find it; false: it stays with the kernel.
bool make_known(int fd, Entry& entry) {
    const auto ends = ends_of(fd);
    if (!ends || is_unusual(fd)) {
        stay_with_kernel(entry, Reason::unusual_call);
        return false;
    }
    if (!wanted(*ends)) {
        stay_with_kernel(entry, Reason::options);
        return false;
    }
    Stream* const stream = share(fd, entry, Reason::peer_absent);
    if (stream == nullptr) return false;
    stream->ends = *ends;
    stream->nonblocking.store((real().fcntl(fd, F_GETFL) & O_NONBLOCK) != 0);
    stream->no_delay.store(option_of<int>(fd, IPPROTO_TCP, TCP_NODELAY, 0) != 0);
    stream->process = static_cast<std::uint32_t>(getpid());
    stream->descriptor = static_cast<std::uint32_t>(fd);
    stream->reason.store(static_cast<std::uint32_t>(Reason::peer_absent));
    stream->registered.store(1);
    own_arena()->insert(*stream);
    entry.busy_poll.begin(leaves_host(fd));
    return true;
}

/// No call of ours is in the kernel that was begun before there was a pipe.
void get_ready(int fd, Entry& entry, Pipe& pipe) {
    const int side = static_cast<int>(entry.stream.load()->side);
    if ((pipe.word.load() & ready_bit(side)) != 0) return;
    if (entry.sends.load() != 0 || entry.receives.load() != 0) return;
    const int on = 1;  // Nagle would keep back the second byte that wakes
    real().setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    pipe.word.fetch_or(ready_bit(side));
}

void move_to_memory(Pipe& pipe) {
    constexpr std::uint64_t both = ready_bit(0) | ready_bit(1);
    std::uint64_t word = pipe.word.load();
    while ((word & state_mask) == before && (word & both) == both && (word & sends_mask) == 0 &&
           receives_of(word, 0) <= 1 && receives_of(word, 1) <= 1 &&
           !pipe.word.compare_exchange_weak(word, word | stored)) {
    }
}

void search(int fd, Entry& entry, Stream& stream) {
    if (stream.holders.load() != 1) return;
    for (const HeldArena& arena : Arena::all()) {
        Stream* const peer = arena->find(stream.ends.reversed());
        if (peer == nullptr || peer->side != 1) continue;
        if (peer->holders.load() != 1 || is_for_good(*peer) || peer->pipe.load() != 0) return;
        const auto ends = ends_of(fd);
        if (!ends || *ends != stream.ends || !sent_position(fd, 0) || !received_position(fd))
            return;
        Arena& own = *own_arena();
        free_left_pipes();
        // Without a thread that helps, a peer that hands back could wait for ever.
        const std::uint64_t offset = start_helper() ? PipeEnd::make(own, stream.ends) : 0;
        if (offset == 0) {
            stream.reason.store(static_cast<std::uint32_t>(Reason::memory));
            return;
        }
        own.at<Pipe>(offset)->arenas[0] = own.head().id;
        stream.pipe_arena.store(own.head().id);
        stream.pipe.store(offset);
        if (!attach(entry, own.head().id, offset)) return;
        get_ready(fd, entry, *own.at<Pipe>(offset));
        peer->offer.store(offset);
        peer->offer_arena.store(own.head().id);
        return;
    }
}

void accept_offer(int fd, Entry& entry, Stream& stream) {
    if (stream.holders.load() != 1 || is_for_good(stream)) return;
    const std::uint64_t arena_id = stream.offer_arena.load();
    const std::uint64_t offset = stream.offer.load();
    const HeldArena arena = Arena::open(arena_id);
    const auto ends = ends_of(fd);
    if (arena == nullptr || !ends || *ends != stream.ends || !sent_position(fd, 1) ||
        !received_position(fd)) {
        stay_with_kernel(entry, Reason::counters);
        return;
    }
    if (!start_helper()) {
        stay_with_kernel(entry, Reason::memory);
        return;
    }
    Pipe& pipe = *arena->at<Pipe>(offset);
    if (pipe.magic != Pipe::right_magic || pipe.ends != ends->reversed()) return;
    pipe.arenas[1] = own_arena()->head().id;
    stream.pipe_arena.store(arena_id);
    stream.pipe.store(offset);
    if (!attach(entry, arena_id, offset)) return;
    get_ready(fd, entry, pipe);
    move_to_memory(pipe);
}

void take_step(int fd, Entry& entry, std::uint32_t calls) {
    Stream* const stream = entry.stream.load();
    if (stream != nullptr && is_for_good(*stream)) return;
    if (stream == nullptr || stream->registered.load() == 0) {
        if (calls < options().after || !make_known(fd, entry)) return;
        entry.search_at = calls;
    }
    Stream& known = *entry.stream.load();
    if (known.offer_arena.load() != 0) {
        accept_offer(fd, entry, known);
    } else if (known.side == 0 && calls >= entry.search_at) {
        entry.search_at = calls < 1024 ? calls * 2 : calls + 1024;
        search(fd, entry, known);
    }
}

}  // namespace

void step(int fd, Entry& entry) {
    if (entry.kind.load(std::memory_order_relaxed) == Kind::plain || !active()) return;
    if (Pipe* const pipe = pipe_of(entry)) {
        if (pipe->state() != before) return;
        const int error = errno;
        get_ready(fd, entry, *pipe);
        move_to_memory(*pipe);
        errno = error;
        return;
    }
    const Stream* const stream = entry.stream.load(std::memory_order_relaxed);
    const std::uint32_t calls = entry.calls.fetch_add(1, std::memory_order_relaxed) + 1;
    const bool offered = stream != nullptr && stream->offer_arena.load() != 0;
    if (!offered && calls < std::max(options().after, entry.search_at)) return;
    if (entry.busy.exchange(true)) return;
    const int error = errno;
    take_step(fd, entry, calls);
    errno = error;
    entry.busy.store(false);
}

}  // namespace via::sockets
