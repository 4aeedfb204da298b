#include "arena.hpp"

#include <errno.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/syscall.h>

#include <bit>
#include <cstring>

#include "real.hpp"

namespace via::sockets {

namespace {

thread_local std::uint32_t own_number __attribute__((tls_model("initial-exec"))) = 0;

/// Four sizes between a power of two and the next: a ring is a little more than one.
struct Class {
    explicit Class(std::size_t bytes) {
        if (bytes <= 256) return;
        const auto power = static_cast<std::size_t>(std::bit_width(bytes - 1)) - 1;
        const std::size_t quarter = ((bytes - 1) >> (power - 2) & 3) + 1;
        number = std::min((power - 8) * 4 + quarter, ArenaHead::classes - 1);
        rounded = (4 + quarter) << (power - 2);
    }
    std::size_t number = 0;
    std::size_t rounded = 256;
};

/// A chain that a peer has closed to a circle ends, too.
constexpr int longest_chain = 1 << 17;

std::size_t bucket_of(const Ends& ends) {
    std::uint64_t hash = 1469598103934665603ull;
    const auto mix = [&](const Address& one) {
        for (const std::uint8_t byte : one.host) hash = (hash ^ byte) * 1099511628211ull;
        hash = (hash ^ one.port) * 1099511628211ull;
    };
    mix(ends.local);
    mix(ends.remote);
    return (hash >> 20) % ArenaHead::buckets_count;
}

}  // namespace

std::uint32_t thread_number() {
    if (own_number == 0) own_number = static_cast<std::uint32_t>(real().syscall(SYS_gettid));
    return own_number;
}
void forget_thread_number() { own_number = 0; }

bool Lock::take() {
    const std::uint32_t self = thread_number();
    for (std::uint32_t tries = 1;; ++tries) {
        std::uint32_t none = 0;
        if (owner.compare_exchange_strong(none, self, std::memory_order_acquire)) return true;
        if (none == self) return false;
        if (tries % 64 != 0) {
            detail::relax_processor();
            continue;
        }
        sched_yield();
        // Whoever had it was killed: what it was about to say is told by the ring's lines.
        if (tries % 4096 == 0 && kill(static_cast<pid_t>(none), 0) < 0 && errno == ESRCH &&
            owner.compare_exchange_strong(none, self, std::memory_order_acquire))
            return true;
    }
}

Arena::~Arena() { munmap(base_, size + longest); }

Arena* Arena::map(std::uint64_t id) {
    void* const place = mmap(nullptr, size + longest, PROT_NONE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (place == MAP_FAILED) return nullptr;
    auto* const base = static_cast<std::byte*>(place);
    if (shmat(segment_of(id), base, SHM_REMAP) != place ||
        mmap(base + size, longest, PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) == MAP_FAILED) {
        munmap(place, size + longest);
        return nullptr;
    }
    madvise(place, size + longest, MADV_DONTDUMP);
    return new Arena(base, id);
}

/// false: there is no memory. Whoever touches such a page might get a signal.
bool Arena::populate(std::uint64_t from, std::uint64_t bytes) const {
    return madvise(base_ + from, bytes, MADV_POPULATE_WRITE) == 0;
}

bool Arena::back(std::uint64_t bytes) {
    ArenaHead& own = head();
    if (bytes <= own.backed) return true;
    if (bytes > size || bytes - own.backed > longest + step) return false;  // a peer lies
    const std::uint64_t until = (bytes + step - 1) / step * step;
    if (!populate(own.backed, until - own.backed)) return false;
    own.backed = until;
    return true;
}

std::uint64_t Arena::allocate(std::size_t bytes) {
    const auto [kind, rounded] = Class(bytes);
    ArenaHead& own = head();
    if (bytes > longest || !own.lock.take()) return 0;
    std::uint64_t offset = own.free[kind];
    if (offset != 0) {
        own.free[kind] = *at<std::uint64_t>(offset);
    } else if (back(own.used + rounded)) {
        offset = own.used;
        own.used += rounded;
    }
    own.lock.let_go();
    if (offset != 0) std::memset(at<std::byte>(offset), 0, bytes);
    return offset;
}

void Arena::release(std::uint64_t offset, std::size_t bytes) {
    const std::size_t kind = Class(bytes).number;
    ArenaHead& own = head();
    if (!own.lock.take()) return;
    *at<std::uint64_t>(offset) = own.free[kind];
    own.free[kind] = offset;
    own.lock.let_go();
}

std::uint64_t Arena::take_board() {
    ArenaHead& own = head();
    if (!own.lock.take()) return 0;
    const std::uint64_t offset = own.free_boards;
    // The link to the next one lies behind it.
    if (offset != 0) own.free_boards = *at<std::uint64_t>(offset + sizeof(Board));
    own.lock.let_go();
    if (offset == 0) return allocate(sizeof(Board) + sizeof(std::uint64_t));
    at<Board>(offset)->reset();
    return offset;
}

void Arena::give_back_board(std::uint64_t offset) {
    ArenaHead& own = head();
    if (!own.lock.take()) return;
    *at<std::uint64_t>(offset + sizeof(Board)) = own.free_boards;
    own.free_boards = offset;
    own.lock.let_go();
}

void Arena::insert(Stream& stream) {
    ArenaHead& own = head();
    std::uint64_t& first = own.buckets[bucket_of(stream.ends)];
    if (!own.lock.take()) return;
    stream.next = first;
    first = offset_of(&stream);
    own.lock.let_go();
}

void Arena::remove(Stream& stream) {
    ArenaHead& own = head();
    if (!own.lock.take()) return;
    std::uint64_t* link = &own.buckets[bucket_of(stream.ends)];
    for (int left = longest_chain; left > 0 && *link != 0; --left) {
        if (*link == offset_of(&stream)) {
            *link = stream.next;
            break;
        }
        link = &at<Stream>(*link)->next;
    }
    own.lock.let_go();
}

Stream* Arena::find(const Ends& ends) {
    ArenaHead& own = head();
    if (!own.lock.take()) return nullptr;
    std::uint64_t at_offset = own.buckets[bucket_of(ends)];
    int left = longest_chain;
    while (at_offset != 0 && left-- > 0 && at<Stream>(at_offset)->ends != ends)
        at_offset = at<Stream>(at_offset)->next;
    own.lock.let_go();
    return left < 0 || at_offset == 0 ? nullptr : at<Stream>(at_offset);
}

}  // namespace via::sockets
