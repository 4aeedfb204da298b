// The turn: who holds it may touch engine and devices. Taking it is one uncontended exchange; the
// data path only ever tries. Doorbells are what a try that failed leaves behind: the releasing
// thread rechecks them, so that no post is stranded.
//
// An exchange waits until all stores before it have arrived, a message's own among them. So a
// thread that has the turn again and again comes to own it, as a BiasedLock
// (docs/design/turn-and-wake-up.md). The turn differs from one in that nobody waits for who is
// inside, and who leaves looks at doorbells.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/assert.hpp"
#include "base/atomic.hpp"
#include "base/biased_lock.hpp"

namespace via::nic {

/// `mistake`: for tests.
template <BiasMistake mistake>
class TurnLockOf {
public:
    /// Takes in a row by one thread, until it owns the turn.
    static constexpr std::uint32_t takes_to_own = BiasEarning::takes_to_own;
    /// Threads that come to own one turn while it lives.
    static constexpr std::size_t owners_most = 64;

    TurnLockOf() = default;
    /// `owner`, as this_thread() says it of that thread, owns it from the beginning (0: nobody),
    /// and others after so many takes. Only where has_heavy_fence().
    TurnLockOf(std::uintptr_t owner, std::uint32_t takes) : earning_(takes) {
        if (owner != 0) bias_.give(owner);
    }

    /// The data path's.
    [[gnu::always_inline]] bool try_take() {
        const std::uintptr_t self = this_thread();
        Owner* owner;
        if (bias_.enter(self, owner)) [[likely]] {
            if (owned_ != nullptr) return false;
            owned_ = owner;
            return true;
        }
        return try_take_shared(self, true);
    }
    /// The same for calls off the data path: nobody comes to own the turn by them.
    bool try_take_rarely() {
        const std::uintptr_t self = this_thread();
        return bias_.thread() == self ? try_take() : try_take_shared(self, false);
    }
    /// For calls off the data path: a turn is short and bounded.
    void take() {
        for (unsigned spins = 0; !try_take_rarely(); ++spins) relax(spins);
    }
    /// A full fence, too, but of its owner only if is_anothers() was heeded: it lets the
    /// caller look at doorbells: a ringer either sees the turn free or is seen.
    [[gnu::always_inline]] void release() {
        if (Owner* const owner = owned_; owner != nullptr) [[likely]] {
            owned_ = nullptr;
            Bias::leave(*owner);
            light_fence();
            if (bias_.is_lost(owner)) [[unlikely]]
                atomic_fence(std::memory_order_seq_cst);
            return;
        }
        if (earning_.is_earned()) [[unlikely]]
            own();
        holder_.store(0, std::memory_order_relaxed);
        const std::uint32_t held = held_.exchange(0, std::memory_order_seq_cst);
        VIA_ASSERT(held == 1);  // it is released by its holder
        atomic_fence_after_rmw();
    }
    /// Its releases are no fence towards the caller. Whoever makes something known that the holder
    /// looks at after release() takes the turn once then, before its own look.
    bool is_anothers() const {
        const std::uintptr_t thread = bias_.thread();
        return thread != 0 && thread != this_thread();
    }

    /// Somebody has it; for who thinks it has.
    bool is_taken() const {
        return owned_ != nullptr || held_.load(std::memory_order_relaxed) != 0;
    }

    /// The calling thread has it: this is the handler of a signal that came meanwhile. False as
    /// well while it only just takes or releases it.
    bool is_callers() const {
        const std::uintptr_t self = this_thread();
        return holder_.load(std::memory_order_relaxed) == self || bias_.is_inside(self);
    }

private:
    using Bias = via::Bias<owners_most, mistake>;
    using Owner = typename Bias::Owner;

    [[gnu::noinline]] bool try_take_shared(std::uintptr_t self, bool counts) {
        for (;;) {
            if (held_.load(std::memory_order_relaxed) != 0 ||
                held_.exchange(1, std::memory_order_acquire) != 0)
                return false;
            if (bias_.is_given()) {
                bias_.take_away();
                if (counts) earning_.lost();
            }
            const Owner& latest = bias_.latest();  // another's to say once held_ is free
            if (!Bias::is_inside(latest, std::memory_order_acquire)) break;
            // Who is inside looks at doorbells. If it left meanwhile it may have found us here.
            held_.exchange(0, std::memory_order_seq_cst);
            atomic_fence_after_rmw();
            if (Bias::is_inside(latest, std::memory_order_relaxed)) return false;
        }
        holder_.store(self, std::memory_order_relaxed);
        if (counts)
            earning_.took(self);
        else
            earning_.begin_anew();
        return true;
    }
    /// held_ is ours, and nobody owns it.
    [[gnu::noinline]] void own() {
        earning_.begin_anew();
        if (has_heavy_fence(FenceReach::process)) bias_.give(earning_.last());
    }

    Bias bias_;                         ///< given and taken away by who has held_
    Atomic<std::uint32_t> held_{0};     ///< by one who does not own it
    Atomic<std::uintptr_t> holder_{0};  ///< who that is, while it is certain
    Owner* owned_ = nullptr;            ///< the holder's: itself, where it owns it
    BiasEarning earning_;               ///< held_'s
};

using TurnLock = TurnLockOf<BiasMistake::none>;

/// A list of things that want attention: many push, the holder of the turn takes all.
/// `T` has `Atomic<bool> rung` and `T* next_rung`.
template <class T>
class Doorbells {
public:
    /// Any thread. Several rings before an answer count once.
    void ring(T& item) {
        if (item.rung.exchange(true, std::memory_order_acq_rel)) return;
        T* first = first_.load(std::memory_order_relaxed);
        do {
            item.next_rung = first;
        } while (!first_.compare_exchange_weak(first, &item, std::memory_order_seq_cst,
                                               std::memory_order_relaxed));
        atomic_fence_after_rmw();  // a try to take the turn that fails now is seen by its holder
    }
    bool any() const { return first_.load(std::memory_order_relaxed) != nullptr; }

    /// The turn. Calls answer(item) for all rung items.
    template <class Answer>
    void answer(Answer answer) {
        if (!any()) return;
        for (T* item = first_.exchange(nullptr, std::memory_order_acquire); item != nullptr;) {
            T* next = item->next_rung;
            // Before looking at its queues: sees what those who found it rung had posted.
            item->rung.exchange(false, std::memory_order_acq_rel);
            answer(*item);
            item = next;
        }
    }

private:
    Atomic<T*> first_{nullptr};
};

}  // namespace via::nic
