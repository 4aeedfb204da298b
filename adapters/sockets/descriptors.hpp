// What this process knows of its descriptors.
#pragma once

#include <memory>
#include <optional>

#include "ring.hpp"

namespace via::sockets {

class EpollSet;

/// plain: a socket that stays with the kernel; only its closing matters.
enum class Kind : std::uint8_t { other, connected, accepted, epoll, plain };

/// One descriptor. Written by whoever opens and closes it; the counts by all.
struct Entry {
    std::atomic<Kind> kind;
    std::atomic<bool> in_epoll;  ///< some set has it
    std::atomic<bool> busy;      ///< somebody takes the next step for it
    std::atomic<bool> entered;   ///< this process has seen that bytes go through memory
    std::atomic<std::uint32_t> calls;
    std::uint32_t search_at;
    std::atomic<std::uint32_t> sends, receives;  ///< in the kernel, not counted in a pipe
    std::atomic<std::uint64_t> looked;           ///< ticks, when the kernel was asked last
    std::atomic<Stream*> stream;
    std::atomic<Pipe*> pipe;
    std::atomic<Arena*> pipe_arena;
    std::atomic<EpollSet*> set;

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

struct Options {
    bool off = false;
    bool epoll = true;        ///< sockets in epoll sets, too
    std::uint32_t after = 4;  ///< calls with bytes before a peer is looked for
    std::uint64_t spin_ns = 20000;
    std::string only, without;  ///< ports, commas between
};
const Options& options();
/// Whether one of the two ports is meant.
bool wanted(const Ends& ends);

/// The process is accelerated still. Ended by stop(), for all time.
bool active();
void stop(Reason reason);
/// This process's own arena, made when first asked for; null: none can be had.
Arena* own_arena();
Arena* own_arena_if_made();

/// The pipe of a socket, attached when another process of the family has made it.
Pipe* pipe_of(Entry& entry);
/// false: its memory cannot be mapped.
bool attach(Entry& entry, std::uint64_t arena, std::uint64_t offset);
void detach(Entry& entry);

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
/// exit() has come, or _exit().
void leave();
/// A thread that does what a peer that hands back wants, whatever the program does. At a process's
/// first call on a connection in memory; a child by fork() has its own. false: there is no memory.
bool start_helper();
/// A peer hands back, and this one's program may be far from any call of ours.
void call_for_help(std::uint64_t arena);
/// A vfork() child, which has our memory and descriptors of its own.
bool is_borrowed();

}  // namespace via::sockets
