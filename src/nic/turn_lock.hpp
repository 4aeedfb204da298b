// The turn: who holds it may touch engine and devices. Taking it is one uncontended exchange; the
// data path only ever tries. Doorbells are what a try that failed leaves behind: whoever lets the
// turn go looks at them afterwards, so that no post is stranded.
//
// An exchange waits until all stores before it have arrived, a message's own among them. So a
// thread that has the turn again and again comes to own it: it says by plain stores that it is
// inside, and whoever else wants the turn takes that away from it first, by a fence of all threads
// (docs/design/turn-and-wake-up.md).
#pragma once

#include "base/atomic.hpp"

namespace via::nic {

class TurnLock {
public:
    /// Takes in a row by one thread, until it owns the turn; and at most, where others took that
    /// away from it for their posts and polls.
    static constexpr std::uint32_t takes_to_own = 64;
    static constexpr std::uint32_t takes_to_own_most = 1U << 20;

    TurnLock() = default;
    /// `owner`, as this_thread() says it of that thread, owns it from the beginning (0: nobody),
    /// and others after so many takes. Only where has_fence_all().
    TurnLock(std::uintptr_t owner, std::uint32_t takes) : owner_(owner), needed_(takes) {}

    /// The data path's.
    [[gnu::always_inline]] bool try_take() {
        const std::uintptr_t self = this_thread();
        if (owner_.load(std::memory_order_relaxed) == self) [[likely]] {
            inside_.store(self, std::memory_order_relaxed);
            atomic_fence_left_to_others();
            if (owner_.load(std::memory_order_acquire) == self) [[likely]] {
                if (owned_) return false;
                owned_ = true;
                return true;
            }
            inside_.exchange(0, std::memory_order_seq_cst);
            atomic_fence_after_rmw();
        }
        return try_take_shared(self, true);
    }
    /// The same for calls off the data path: nobody comes to own the turn by them.
    bool try_take_rarely() {
        const std::uintptr_t self = this_thread();
        return owner_.load(std::memory_order_relaxed) == self ? try_take()
                                                              : try_take_shared(self, false);
    }
    /// For calls off the data path: a turn is short and bounded.
    void take() {
        for (unsigned spins = 0; !try_take_rarely(); ++spins) relax(spins);
    }
    /// A full fence, too, but of its owner only if is_anothers() was heeded: it lets the
    /// caller look at doorbells: a ringer either sees the turn free or is seen.
    [[gnu::always_inline]] void release() {
        if (owned_) [[likely]] {
            owned_ = false;
            inside_.store(0, std::memory_order_release);
            atomic_fence_left_to_others();
            if (owner_.load(std::memory_order_relaxed) <= nobody_yet) [[unlikely]]
                atomic_fence(std::memory_order_seq_cst);
            return;
        }
        if (streak_ >= needed_) [[unlikely]]
            own();
        holder_.store(0, std::memory_order_relaxed);
        held_.exchange(0, std::memory_order_seq_cst);
        atomic_fence_after_rmw();
    }
    /// Its releases are no fence towards the caller. Whoever makes something known that the holder
    /// looks at after release() takes the turn once then, before its own look.
    bool is_anothers() const {
        const std::uintptr_t owner = owner_.load(std::memory_order_relaxed);
        return owner != 0 && owner != this_thread();
    }

    /// The calling thread has it: this is the handler of a signal that came meanwhile. False as
    /// well while it only just takes it or lets it go.
    bool is_callers() const {
        const std::uintptr_t self = this_thread();
        return holder_.load(std::memory_order_relaxed) == self ||
               inside_.load(std::memory_order_relaxed) == self;
    }

private:
    static constexpr std::uintptr_t nobody_yet = 1;  ///< while it is taken away

    [[gnu::noinline]] bool try_take_shared(std::uintptr_t self, bool counts) {
        for (;;) {
            if (held_.load(std::memory_order_relaxed) != 0 ||
                held_.exchange(1, std::memory_order_acquire) != 0)
                return false;
            if (owner_.load(std::memory_order_relaxed) != 0) disown(counts);
            if (inside_.load(std::memory_order_acquire) == 0) break;
            // Who is inside looks at doorbells. If it left meanwhile it may have found us here.
            held_.exchange(0, std::memory_order_seq_cst);
            atomic_fence_after_rmw();
            if (inside_.load(std::memory_order_relaxed) != 0) return false;
        }
        holder_.store(self, std::memory_order_relaxed);
        if (counts) {
            streak_ = last_ == self ? streak_ + 1 : 1;
            last_ = self;
        } else {
            streak_ = 0;
        }
        return true;
    }
    /// held_ is ours. Afterwards the owner is inside and seen, or does not get in.
    [[gnu::noinline]] void disown(bool by_data_path) {
        owner_.store(nobody_yet, std::memory_order_relaxed);
        atomic_fence_all();
        owner_.store(0, std::memory_order_relaxed);
        if (by_data_path && needed_ < takes_to_own_most) needed_ *= takes_more;
    }
    /// held_ is ours, and nobody owns it.
    [[gnu::noinline]] void own() {
        streak_ = 0;
        if (has_fence_all()) owner_.store(last_, std::memory_order_relaxed);
    }

    static constexpr std::uint32_t takes_more = 16;

    Atomic<std::uintptr_t> owner_{0};   ///< changed by who has held_
    Atomic<std::uintptr_t> inside_{0};  ///< its owner is, or wants to be
    Atomic<std::uint32_t> held_{0};     ///< by one who does not own it
    Atomic<std::uintptr_t> holder_{0};  ///< who that is, while it is certain
    bool owned_ = false;                ///< the holder's: it is inside
    std::uint32_t streak_ = 0;          ///< held_'s: takes in a row by last_
    std::uint32_t needed_ = takes_to_own;
    std::uintptr_t last_ = 0;
};

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
