#pragma once
// Vector clocks, and what one operation touches.

#include <algorithm>
#include <array>
#include <bitset>
#include <cstdint>

namespace via::model {

inline constexpr unsigned max_threads = 4;
// A process is a model thread or, under TSO, the store buffer of one (thread + max_threads).
inline constexpr unsigned max_processes = 2 * max_threads;
// Atomic variables, futex queues and eventfds that one execution may touch.
inline constexpr unsigned max_objects = 192;
// Object 0 stands for the order of all sequentially consistent fences.
inline constexpr unsigned fence_object = 0;
// These stand for all that a thread does, where a fence of all threads may come between.
constexpr unsigned thread_object(unsigned thread) { return 1 + thread; }
// The last object stands for what is left of Options::surprises.
inline constexpr unsigned surprise_object = max_objects - 1;

template <unsigned N>
struct Clock {
    std::array<std::uint16_t, N> at{};

    void join(const Clock& other) {
        for (unsigned i = 0; i < N; ++i) at[i] = std::max(at[i], other.at[i]);
    }
    bool includes(unsigned who, unsigned count) const { return at[who] >= count; }
};

// Which steps an outcome depends on; used to find interleavings worth trying.
using StepClock = Clock<max_processes>;
// C++ happens-before between threads; used to find data races.
using SyncClock = Clock<max_threads>;

// The count-th step of a process. Count 0 is "before everything".
struct Stamp {
    unsigned process = 0;
    unsigned count = 0;
};

struct Footprint {
    std::bitset<max_objects> reads;
    std::bitset<max_objects> writes;

    // True if the order of two steps with these footprints can matter.
    bool conflicts(const Footprint& other) const {
        return ((writes & (other.reads | other.writes)) | (other.writes & reads)).any();
    }
};

}  // namespace via::model
