// What the two processes of a pair share beside the channel they measure, and one side's view of
// it.
#pragma once

#include <sys/types.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "bench/types.hpp"

namespace via::bench {

// A cache line of its own; the neighbour too, which processors fetch in pairs.
struct alignas(128) Line {
    std::atomic<std::uint64_t> value{0};
};

// The lines of a probe and of the line limit, mapped shared and zeroed: a set of them each way. How
// far a line travels depends on its address as well, where several pieces of a processor share the
// memory, so that one line alone would tell of itself. Hence lines of many pages in turn, as few as
// every processor's first table of translations holds.
struct Lines {
    static constexpr std::size_t count = 64;

    // The line that `side` writes in that trip; no two next to each other follow each other.
    std::atomic<std::uint64_t>& word(std::size_t side, std::uint64_t trip) {
        const std::size_t number = trip * 37 % count;
        std::byte* page = lanes[side].data() + number % pages * page_bytes;
        return reinterpret_cast<Line*>(page + number * sizeof(Line) % page_bytes)->value;
    }
    void clear(std::size_t side) {
        for (std::uint64_t trip = 0; trip < count; ++trip) {
            word(side, trip).store(0, std::memory_order_relaxed);
        }
    }

private:
    static constexpr std::size_t pages = 16;
    static constexpr std::size_t page_bytes = 4096;
    std::array<std::array<std::byte, pages * page_bytes>, 2> lanes;
};

// What one side tells the other before and during setup. Plain bytes, read after a meet().
struct Published {
    pid_t pid = 0;
    std::uint64_t arena = 0;          // address in that process
    std::uint32_t memory_handle = 0;  // VIA: region of the arena
    std::uint32_t host_bytes = 0;     // VIA: bytes of host
    std::array<std::uint8_t, 64> host{};
    std::uint32_t port = 0;            // between machines: of this side's socket
    std::uint32_t datagram_bytes = 0;  // between machines: what this side's network takes
    std::uint64_t buffer_bytes = 0;    // between machines: what this side's socket holds
    int cpu = 0;      // of a program to run: where it is to be pinned; stays on one machine
    Reading reading;  // of a channel that tunes itself: the last trial; stays on one machine
};

// Mapped shared and zeroed before the pair is forked. Both sides are our own processes. Between
// machines each has its own, for its process and its parent.
struct Shared {
    Lines* probe = nullptr;       // the same for all pairs, so that their readings compare
    std::array<Line, 2> arrived;  // meetings reached, by side
    Line abort;                   // set by the parent: give up meeting
    Line closing;                 // set by the first side to close
    std::array<Line, 2> step;     // what each side is doing, a Step: for the watchdog's message
    Line mode;                    // 1 + Mode as the last probe told it, 0: neither
    std::array<Published, 2> published;
};

enum class Step : std::uint64_t { starting, idle, probing, measuring, closing };
const char* name_of(Step step);

// A private, touched, page-aligned piece of memory of one process: user buffers and descriptors.
struct Arena {
    std::byte* base = nullptr;
    std::size_t bytes = 0;
};

// What a side says that gives up because of the other one.
inline constexpr const char* called_off = "called off";

// Bytes that `question` needs of an arena: two pools of buffers and room for descriptors.
std::size_t arena_bytes_for(const Question& question);

// From one descriptor to the next: 32 bytes, then 16 for an address and for each segment of data,
// up to a power of two from 64 on (VIPL 1.2, 4.9).
std::size_t descriptor_stride(std::uint32_t segments);

// Receives and sends besides those of messages: credits and other empty messages.
inline constexpr std::uint64_t control_receives = 8;
inline constexpr std::uint64_t control_sends = 4;

// The buffers of one direction. They come in turn: message i uses buffer i modulo count, a power of
// two. Or `reuse` percent of the messages, evenly spread, take those of `again` buffers in turn,
// and the others the `count` buffers behind them.
struct Pool {
    std::byte* base = nullptr;
    std::uint64_t stride = 64;
    std::uint32_t count = 1;
    std::uint32_t again = 0;
    std::uint32_t reuse = 0;

    std::uint64_t index(std::uint64_t message) const {
        if (again == 0) return message & (count - 1);
        const std::uint64_t reused = message * reuse / 100;
        const bool reuses = (message + 1) * reuse / 100 != reused;
        return reuses ? reused & (again - 1) : again + ((message - reused) & (count - 1));
    }
    std::byte* buffer(std::uint64_t number) const { return base + number * stride; }
    std::byte* at(std::uint64_t message) const { return buffer(index(message)); }
    std::uint32_t total() const { return again + count; }
    std::size_t bytes() const { return total() * stride; }
    // Messages that may be under way: no two of them share a buffer.
    std::uint32_t window() const { return again == 0 ? count : again; }
};

struct Pools {
    Pool send;
    Pool receive;
    std::byte* rest = nullptr;  // descriptors behind the pools
};

// Both sides lay out their arenas alike, so an offset names the same buffer in both.
Pools pools_of(const Arena& arena, const Question& question);

// How the other side's clock stands to ours: ours + ahead_ns is theirs, give or take within_ns.
struct ClockGap {
    std::int64_t ahead_ns = 0;
    std::int64_t within_ns = 0;  // half of the shortest exchange
};

// One side's view. Used by its single measuring thread only.
class Link {
public:
    // `wire`: a TCP connection to the other side if that is on another machine, or -1. Whoever
    // is behind it is not believed: what it publishes is checked here or where it is used.
    Link(Shared& shared, Side side, int wire = -1) : shared_(shared), side_(side), wire_(wire) {}

    bool is_remote() const { return wire_ >= 0; }
    Side side() const { return side_; }
    bool is_first() const { return side_ == Side::first; }
    std::size_t own() const { return static_cast<std::size_t>(side_); }
    std::size_t other() const { return 1 - own(); }
    Shared& shared() { return shared_; }
    const Shared& shared() const { return shared_; }
    Published& mine() { return shared_.published[own()]; }
    const Published& theirs() const { return shared_.published[other()]; }

    void set_step(Step step) {
        shared_.step[own()].value.store(static_cast<std::uint64_t>(step),
                                        std::memory_order_relaxed);
    }

    // Spins until the other side is here too; what either wrote before is visible after. False
    // when the parent called it off, or the other machine is gone or talks nonsense. The parent's
    // watchdog bounds it in time.
    bool meet();

    // One way of a cache line in ns: ping-pong over lines of which each goes one way, no pause.
    // Both sides call it, behind a meeting; only the first side gets the figure, the second gets 0.
    // None when it was called off.
    std::optional<double> probe();

    // In place of the probe between machines: both sides call it; the first side gets the figures,
    // the second zeros. Fails as meet() does.
    bool compare_clocks(ClockGap& gap);

    Arena arena;
    std::uint64_t word = 0;  // between machines: names this pair

private:
    bool meet_over_wire();
    bool put(std::span<const std::byte> bytes);
    bool get(std::span<std::byte> bytes);

    Shared& shared_;
    Side side_;
    int wire_;
    std::uint64_t meetings_ = 0;
};

}  // namespace via::bench
