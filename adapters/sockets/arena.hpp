// Memory that a process, its children by fork() and its peers share: a segment of System V's, which
// has one size for ever. A file could be cut short by a peer, under the feet of who has it mapped.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "board.hpp"
#include "shared.hpp"

namespace via::sockets {

struct ArenaHead {
    static constexpr std::uint64_t right_magic = 0x7669612d736f636c;
    static constexpr std::size_t buckets_count = 2048;
    static constexpr std::size_t users_max = 64;
    static constexpr std::size_t classes = 104;
    struct User {
        std::atomic<std::uint32_t> process;
        std::atomic<std::uint64_t> started;
    };
    std::uint64_t magic, id, process_names;
    char program[64];
    std::atomic<std::uint32_t> calls_for_help;  ///< a futex: a peer wants to hand back
    Lock lock;
    std::uint64_t used, backed;  ///< bytes
    std::array<std::uint64_t, classes> free;
    std::uint64_t free_boards;
    std::array<User, users_max> users;
    std::array<std::uint64_t, buckets_count> buckets;
};

class Arena;
struct LetGo {
    void operator()(Arena* arena) const;
};
/// It is mapped as long as somebody holds it; what nobody holds goes when all its processes have.
using HeldArena = std::unique_ptr<Arena, LetGo>;

class Arena {
public:
    static constexpr std::size_t size = 1ull << 32;
    /// What is the longest thing in it. Behind its end as much more is mapped, of this process
    /// alone: whatever number a peer writes in place of an offset, what begins there is memory.
    static constexpr std::size_t longest = 8 << 20;
    /// Pages that exist at the beginning; then as many at a time.
    static constexpr std::uint64_t step = 256 << 10;

    /// A new one, that this process is in; null: no room, or limits do not allow.
    static Arena* create();
    /// Another process's, by its number; null: gone.
    static HeldArena open(std::uint64_t id);
    /// All of this user's, mapped, but for those of which everybody is dead.
    static std::vector<HeldArena> all();
    HeldArena hold();

    ArenaHead& head() const { return *reinterpret_cast<ArenaHead*>(base_); }
    /// Of any offset: peers can write them.
    template <class T>
    T* at(std::uint64_t offset) const {
        return reinterpret_cast<T*>(base_ + (offset & (size - 1) & ~(alignof(T) - 1)));
    }
    std::uint64_t offset_of(const void* place) const {
        return static_cast<std::uint64_t>(static_cast<const std::byte*>(place) - base_);
    }
    /// Zeroed; 0: there is none.
    std::uint64_t allocate(std::size_t bytes);
    void release(std::uint64_t offset, std::size_t bytes);
    /// 0: there is none. A peer that is late may set bits of a board that was given back, so it
    /// becomes nothing but a board again.
    std::uint64_t take_board();
    void give_back_board(std::uint64_t offset);

    void insert(Stream& stream);
    void remove(Stream& stream);
    Stream* find(const Ends& ends);

    /// This process is in it; false: it is full.
    bool enter();
    /// By fork(). Its parent may have left it by now.
    bool enter_as_child();
    /// The last to leave removes the name; the memory goes with the last mapping.
    void leave();
    bool deserted() const;
    /// In a child by fork(): no other thread holds what one of the parent held.
    static void renew_after_fork();

private:
    friend struct LetGo;
    Arena(std::byte* base, std::uint64_t id) : base_(base), id_(id) {}
    ~Arena();
    static Arena* map(std::uint64_t id);
    static Arena* map_known(std::uint64_t id);
    static void unmap_deserted();
    bool populate(std::uint64_t from, std::uint64_t bytes) const;
    bool back(std::uint64_t bytes);
    bool say_name() const;
    bool remove_name_if_deserted() const;

    std::byte* base_;
    std::uint64_t id_;  ///< what head() says of it a peer can change
    std::atomic<int> holders_{1};
};

/// The system's number of an arena's segment.
constexpr int segment_of(std::uint64_t id) { return static_cast<int>(id & 0x7FFFFFFF); }

std::uint32_t thread_number();
void forget_thread_number();
std::string arena_folder();
/// This user's alone. false: there can be none.
bool have_arena_folder();
/// When a process began, in the kernel's ticks; 0: there is none. Nothing: it cannot be told, as
/// when this process may open no more.
std::optional<std::uint64_t> start_of(std::uint32_t process);

}  // namespace via::sockets
