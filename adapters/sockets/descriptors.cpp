#include "descriptors.hpp"

#include <errno.h>

#include "connection.hpp"
#include "epoll_set.hpp"

namespace via::sockets {

constinit std::array<Entry, descriptors_max> descriptors{};
constinit std::atomic<int> highest{0};

namespace {

void forget(Entry& entry) {
    detach(entry);
    entry.stream.store(nullptr);
    entry.kind.store(Kind::other);
}

}  // namespace

bool attach(Entry& entry, std::uint64_t arena_id, std::uint64_t offset) {
    HeldArena arena = Arena::open(arena_id);
    if (arena == nullptr) return false;
    Pipe* const pipe = arena->at<Pipe>(offset);
    if (pipe->magic != Pipe::right_magic) return false;
    entry.pipe_arena.store(arena.get());
    Pipe* none = nullptr;
    if (entry.pipe.compare_exchange_strong(none, pipe)) arena.release();  // until detach()
    start_helper();
    return true;
}

void detach(Entry& entry) {
    Pipe* const pipe = entry.pipe.exchange(nullptr);
    if (pipe != nullptr) LetGo()(entry.pipe_arena.load());
    if (Arena* const arena = entry.peer_arena.exchange(nullptr)) LetGo()(arena);
    entry.entered.store(false);
}

Board* board_of_peer(Entry& entry, std::uint64_t offset) {
    Arena* arena = entry.peer_arena.load(std::memory_order_acquire);
    if (arena == nullptr) {
        const PipeEnd end = entry.end();
        HeldArena opened_now = Arena::open(end.pipe().arenas[1 - end.side()]);
        if (opened_now == nullptr) return nullptr;
        if (entry.peer_arena.compare_exchange_strong(arena, opened_now.get()))
            arena = opened_now.release();  // until detach()
    }
    return arena->at<Board>(offset);
}

Pipe* pipe_of(Entry& entry) {
    if (Pipe* const pipe = entry.pipe.load(std::memory_order_acquire)) return pipe;
    const Stream* const stream = entry.stream.load(std::memory_order_acquire);
    if (stream == nullptr) return nullptr;
    const std::uint64_t offset = stream->pipe.load();
    if (offset == 0) return nullptr;
    if (!attach(entry, stream->pipe_arena.load(), offset)) return nullptr;
    return entry.pipe.load();
}

Stream* share(int fd, Entry& entry, Reason reason) {
    if (Stream* const there = entry.stream.load()) return there;
    Arena* const arena = own_arena();
    const std::uint64_t offset = arena == nullptr ? 0 : arena->allocate(sizeof(Stream));
    if (offset == 0) {
        entry.kind.store(Kind::plain);
        return nullptr;
    }
    Stream* const made = arena->at<Stream>(offset);
    made->holders.store(1);
    made->side = entry.kind.load() == Kind::accepted;
    made->process = static_cast<std::uint32_t>(getpid());
    made->descriptor = static_cast<std::uint32_t>(fd);
    made->reason.store(static_cast<std::uint32_t>(reason));
    entry.stream.store(made);
    return made;
}

void opened(int fd, Kind kind) {
    if (static_cast<unsigned>(fd) >= descriptors_max || !active()) return;
    Entry& entry = descriptors[static_cast<unsigned>(fd)];
    int seen = highest.load();
    while (seen <= fd && !highest.compare_exchange_weak(seen, fd + 1)) {
    }
    if (EpollSet* const set = entry.set.exchange(nullptr)) EpollSet::close(set, fd);
    if (entry.kind.load() != Kind::other) forget(entry);  // closed past us
    entry.calls.store(0);
    entry.search_at = 0;
    entry.sends.store(0);
    entry.receives.store(0);
    entry.in_epoll.store(false);
    entry.in_sets = 0;
    entry.item = nullptr;
    entry.busy.store(false);
    entry.looked.store(0);
    entry.busy_poll.begin(false);
    entry.kind.store(kind);
}

void before_program(bool ends_this_one) {
    const int error = errno;
    const bool borrowed = is_borrowed();
    SharedSets::before_program(ends_this_one);
    for_counted([&](int fd, Entry& entry) {
        const int flags = real().fcntl(fd, F_GETFD);
        if (flags < 0) return;
        if ((flags & FD_CLOEXEC) == 0) {
            if (entry.kind.load() != Kind::plain) hand_back(fd, entry, Reason::exec);
        } else if (ends_this_one && !borrowed) {
            if (pipe_of(entry) != nullptr && entry.end().pipe().state() == stored)
                look_at_kernel(fd, entry.end());
            if (Stream* const stream = entry.stream.load()) stream->holders.fetch_sub(1);
        }
    });
    if (ends_this_one && !borrowed)
        if (Arena* const arena = own_arena_if_made()) arena->leave();
    errno = error;
}

void after_failed_program() {
    const int error = errno;
    if (!is_borrowed()) {
        for_counted([](int fd, Entry& entry) {
            Stream* const stream = entry.stream.load();
            if (stream != nullptr && (real().fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0)
                stream->holders.fetch_add(1);
        });
        if (Arena* const arena = own_arena_if_made()) arena->enter();
        SharedSets::after_failed_program();
    }
    errno = error;
}

void closing(int fd) {
    if (static_cast<unsigned>(fd) >= descriptors_max) return;
    Entry& entry = descriptors[static_cast<unsigned>(fd)];
    if (entry.kind.load() == Kind::other || is_borrowed()) return;
    const int error = errno;
    if (EpollSet* const set = entry.set.exchange(nullptr)) EpollSet::close(set, fd);
    if (entry.in_epoll.load()) EpollSet::forget_everywhere(fd);
    Stream* const stream = entry.stream.load();
    if (stream != nullptr && stream->holders.fetch_sub(1) == 1) {
        if (pipe_of(entry) != nullptr) say_goodbye(fd, entry);
        Arena* const arena = own_arena_if_made();
        if (arena != nullptr) {
            if (stream->registered.load() != 0) arena->remove(*stream);
            arena->release(arena->offset_of(stream), sizeof(Stream));
        }
    }
    forget(entry);
    errno = error;
}

void copied(int fd, int copy) {
    if (is_borrowed() || copy < 0 || copy == fd) return;
    const int error = errno;
    if (epoll_entry(fd) != nullptr) EpollSet::copied(fd, copy);
    Entry* const entry = socket_entry(fd);
    if (entry == nullptr) {
        errno = error;
        return;
    }
    if (entry->sends.load() + entry->receives.load() != 0 && pipe_of(*entry) == nullptr)
        hand_back(fd, *entry, Reason::shared);
    if (Stream* const stream = share(fd, *entry, Reason::shared)) {
        if (copy >= descriptors_max) {
            hand_back(fd, *entry, Reason::shared);
        } else {
            opened(copy, entry->kind.load());
            stream->holders.fetch_add(1);
            descriptors[static_cast<unsigned>(copy)].stream.store(stream);
        }
    }
    errno = error;
}

}  // namespace via::sockets
