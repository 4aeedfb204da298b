// The one way to read what a peer wrote. A hostile peer may change its memory at any moment, so
// each location is loaded once per decision, with a single atomic load, then checked, then used.
//
// Built with VIA_HOSTILE_READS the second load of a location within one decision returns other
// bytes, as the worst peer would arrange it; a test that still passes proves that nothing in the
// decision depended on reading twice.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/atomic.hpp"

namespace via::device::shm {

#ifdef VIA_HOSTILE_READS

namespace detail {

class HostileReads {
public:
    void begin() { count_ = 0; }
    /// True when `location` was loaded before in this decision.
    bool again(const void* location) {
        for (std::size_t i = 0; i < count_; ++i) {
            if (seen_[i] == location) return true;
        }
        if (count_ < seen_max) seen_[count_++] = location;
        return false;
    }

private:
    static constexpr std::size_t seen_max = 32;
    const void* seen_[seen_max] = {};
    std::size_t count_ = 0;
};

inline thread_local HostileReads hostile_reads;

}  // namespace detail

/// A new decision begins: reading a location anew is legitimate (a later poll).
inline void peer_decision() { detail::hostile_reads.begin(); }

template <class T>
T peer_load(const Atomic<T>& location, memory_order order) {
    const T value = location.load(order);
    return detail::hostile_reads.again(&location) ? static_cast<T>(~value) : value;
}

#else

inline void peer_decision() {}

template <class T>
T peer_load(const Atomic<T>& location, memory_order order) {
    return location.load(order);
}

#endif

}  // namespace via::device::shm
