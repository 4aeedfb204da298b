#pragma once
// Asymmetric fences: of two that pair, the one on the frequent side is light and costs nothing, and
// the one on the rare side is heavy and pays for both. (The terms are those of folly and of C++'s
// proposal P1202.) Where one side stores a and loads b, and the other stores b and loads a, with a
// light fence between on the one side and a heavy fence on the other, at least one of the two sees
// the other's store. Two light fences do nothing for each other.
//
// A heavy fence needs the operating system, which base may not call: the agent hangs it in. Where
// there is none, both sides make full fences (atomic_fence), and both have to know of it. One that
// was hung in stays for those who count on it, even if nobody shall do so from now on.

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/atomic.hpp"

namespace via {

#ifdef VIA_MODEL
inline namespace under_model {
#endif

/// Whose light fences a heavy fence pairs with.
enum class FenceReach : std::uint8_t {
    process,  ///< those of all threads of this process
    host,     ///< those of all processes on this host that hung in such a fence, too
};

/// Keeps the compiler from changing the order of what stands before and behind it; the processor
/// may. Only for what pairs with a heavy fence that somebody surely makes.
[[gnu::always_inline]] inline void light_fence() noexcept {
#ifdef VIA_MODEL
    model::light_fence();
#else
    std::atomic_signal_fence(memory_order_seq_cst);
#endif
}

/// A full fence of the caller, and at some moment of the call one of each thread within reach.
/// Takes microseconds. Only where has_heavy_fence(), now or when a light fence counted on it.
using HeavyFence = void (*)();

namespace detail {
inline constinit std::array<std::atomic<HeavyFence>, 2> heavy_fences{};
inline constinit std::array<std::atomic<bool>, 2> heavy_fences_withdrawn{};
}  // namespace detail

/// What heavy_fence() calls. Set before anybody asks; nullptr (the default): there is none.
inline void set_heavy_fence(FenceReach reach, HeavyFence fence) noexcept {
    detail::heavy_fences[static_cast<std::size_t>(reach)].store(fence, memory_order_release);
    detail::heavy_fences_withdrawn[static_cast<std::size_t>(reach)].store(false,
                                                                          memory_order_release);
}
/// From now on nobody new shall count on it. Any thread, also from within the fence.
inline void withdraw_heavy_fence(FenceReach reach) noexcept {
    detail::heavy_fences_withdrawn[static_cast<std::size_t>(reach)].store(true,
                                                                          memory_order_release);
}
inline bool has_heavy_fence(FenceReach reach) noexcept {
#ifdef VIA_MODEL
    static_cast<void>(reach);
    return true;
#else
    const auto at = static_cast<std::size_t>(reach);
    return detail::heavy_fences[at].load(memory_order_acquire) != nullptr &&
           !detail::heavy_fences_withdrawn[at].load(memory_order_acquire);
#endif
}
inline void heavy_fence(FenceReach reach) noexcept {
#ifdef VIA_MODEL
    model::heavy_fence(reach == FenceReach::process);
#else
    detail::heavy_fences[static_cast<std::size_t>(reach)].load(memory_order_acquire)();
#endif
}

/// The frequent side's fence where it is known only later whether the other side's is heavy.
[[gnu::always_inline]] inline void fence_to(bool other_is_heavy) noexcept {
    if (other_is_heavy) [[likely]]
        light_fence();
    else
        atomic_fence(memory_order_seq_cst);
}

#ifdef VIA_MODEL
}  // inline namespace under_model
#endif

}  // namespace via
