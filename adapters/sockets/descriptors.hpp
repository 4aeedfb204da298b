// What this process knows of its descriptors.
#pragma once

#include <memory>
#include <optional>

#include "busy_poll.hpp"
#include "ring.hpp"

namespace via::sockets {

class EpollSet;

/// plain: a socket that stays with the kernel; only its closing matters.
enum class Kind : std::uint8_t { other, connected, accepted, epoll, plain };

/// One descriptor. Written by whoever opens and closes it; the counts by all.
struct Entry {
    std::atomic<Kind> kind;
    std::atomic<bool> in_epoll;  ///< some set has had it
    std::atomic<bool> busy;      ///< somebody takes the next step for it
    std::atomic<bool> entered;   ///< this process has seen that bytes go through memory
    std::uint32_t in_sets;       ///< how many have it; with all sets held, as this:
    void* item;                  ///< an EpollSet::Item of it, of whatever set, or null
    std::atomic<std::uint32_t> calls;
    std::uint32_t search_at;
    std::atomic<std::uint32_t> sends, receives;  ///< in the kernel, not counted in a pipe
    std::atomic<std::uint64_t> looked;           ///< ticks, when the kernel was asked last
    std::atomic<Stream*> stream;
    std::atomic<Pipe*> pipe;
    std::atomic<Arena*> pipe_arena;
    std::atomic<Arena*> peer_arena;  ///< of the peer's board, when first asked for
    std::atomic<EpollSet*> set;
    BusyPoll busy_poll;

    PipeEnd end() const {
        return {*pipe_arena.load(std::memory_order_relaxed), *pipe.load(std::memory_order_relaxed),
                static_cast<int>(stream.load(std::memory_order_relaxed)->side & 1)};
    }
};

constexpr int descriptors_max = 65536;
extern std::array<Entry, descriptors_max> descriptors;
extern std::atomic<int> highest;  ///< descriptor that was ever ours, plus 1

/// Null: none of ours, the kernel's alone.
inline Entry* socket_entry(int fd) {
    if (static_cast<unsigned>(fd) >= descriptors_max) [[unlikely]]
        return nullptr;
    Entry& entry = descriptors[static_cast<unsigned>(fd)];
    const Kind kind = entry.kind.load(std::memory_order_relaxed);
    return kind == Kind::connected || kind == Kind::accepted ? &entry : nullptr;
}
inline Entry* epoll_entry(int fd) {
    if (static_cast<unsigned>(fd) >= descriptors_max) return nullptr;
    Entry& entry = descriptors[static_cast<unsigned>(fd)];
    return entry.kind.load(std::memory_order_relaxed) == Kind::epoll ? &entry : nullptr;
}

/// Also those that have gone back to the kernel: their ends are counted still.
template <class Do>
void for_counted(const Do& what) {
    for (int fd = 0; fd < highest.load(); ++fd) {
        Entry& entry = descriptors[static_cast<unsigned>(fd)];
        const bool plain = entry.kind.load() == Kind::plain && entry.stream.load() != nullptr;
        if (plain || socket_entry(fd) != nullptr) what(fd, entry);
    }
}
template <class Do>
void for_sockets(const Do& what) {
    for (int fd = 0; fd < highest.load(); ++fd)
        if (Entry* const entry = socket_entry(fd)) what(fd, *entry);
}

/// The pipe of a socket, attached when another process of the family has made it.
Pipe* pipe_of(Entry& entry);
/// false: its memory cannot be mapped.
bool attach(Entry& entry, std::uint64_t arena, std::uint64_t offset);
void detach(Entry& entry);
/// Where the peer is told what was stored for it; null: that memory cannot be mapped.
Board* board_of_peer(Entry& entry, std::uint64_t offset);

/// The socket is known to other processes, or to another descriptor: a Stream with a count.
Stream* share(int fd, Entry& entry, Reason reason);

void opened(int fd, Kind kind);
/// Before the kernel's close; `last` is told through the pipe.
void closing(int fd);
/// dup() and the like have made `copy`.
void copied(int fd, int copy);
/// Around exec(): what the new program inherits is the kernel's again.
void before_program(bool ends_this_one);
void after_failed_program();

}  // namespace via::sockets
