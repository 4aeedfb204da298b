// The turn: who holds it may touch engine and devices. Taking it is one uncontended exchange; the
// data path only ever tries. Doorbells are what a try that failed leaves behind: whoever lets the
// turn go looks at them afterwards, so that no post is stranded.
//
// An exchange waits until all stores before it have arrived, a message's own among them. So a
// thread that has the turn again and again comes to own it: it says by plain stores that it is
// inside, and whoever else wants the turn takes that away from it first, by a fence of all threads
// (docs/design/turn-and-wake-up.md). One that lost it so may yet say that it is inside, at any time
// before it looks whether it is the owner still. So each that ever owned the turn has a mark of its
// own to say that by.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "base/atomic.hpp"

namespace via::nic {

class TurnLock {
public:
    /// Takes in a row by one thread, until it owns the turn; and at most, where others took that
    /// away from it for their posts and polls.
    static constexpr std::uint32_t takes_to_own = 64;
    static constexpr std::uint32_t takes_to_own_most = 1U << 20;
    /// Threads that come to own one turn while it lives.
    static constexpr std::size_t owners_most = 64;

    TurnLock() = default;
    /// `owner`, as this_thread() says it of that thread, owns it from the beginning (0: nobody),
    /// and others after so many takes. Only where has_fence_all().
    TurnLock(std::uintptr_t owner, std::uint32_t takes) : needed_(takes) {
        if (owner != 0) make_owner(owner);
    }

    /// The data path's.
    [[gnu::always_inline]] bool try_take() {
        const std::uintptr_t self = this_thread();
        Owner* const owner = owner_.load(std::memory_order_relaxed);
        if (owner->thread.load(std::memory_order_relaxed) == self) [[likely]] {
            owner->inside.store(1, std::memory_order_relaxed);
            atomic_fence_left_to_others();
            if (owner_.load(std::memory_order_acquire) == owner) [[likely]] {
                if (owned_ != nullptr) return false;
                owned_ = owner;
                return true;
            }
            owner->inside.exchange(0, std::memory_order_seq_cst);
            atomic_fence_after_rmw();
        }
        return try_take_shared(self, true);
    }
    /// The same for calls off the data path: nobody comes to own the turn by them.
    bool try_take_rarely() {
        const std::uintptr_t self = this_thread();
        return owners_thread() == self ? try_take() : try_take_shared(self, false);
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
            owner->inside.store(0, std::memory_order_release);
            atomic_fence_left_to_others();
            if (owner_.load(std::memory_order_relaxed) != owner) [[unlikely]]
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
        const std::uintptr_t thread = owners_thread();
        return thread != 0 && thread != this_thread();
    }

    /// Somebody has it; for who thinks it has.
    bool is_taken() const {
        return owned_ != nullptr || held_.load(std::memory_order_relaxed) != 0;
    }

    /// The calling thread has it: this is the handler of a signal that came meanwhile. False as
    /// well while it only just takes it or lets it go.
    bool is_callers() const {
        const std::uintptr_t self = this_thread();
        if (holder_.load(std::memory_order_relaxed) == self) return true;
        return std::ranges::any_of(owners_, [self](const Owner& owner) {
            return owner.thread.load(std::memory_order_relaxed) == self &&
                   owner.inside.load(std::memory_order_relaxed) != 0;
        });
    }

private:
    /// One that owns it, or did so.
    struct Owner {
        Atomic<std::uintptr_t> thread{0};  ///< as this_thread() says it; 0: nobody so far
        Atomic<std::uint32_t> inside{0};   ///< it is, or wants to be
    };

    std::uintptr_t owners_thread() const {
        return owner_.load(std::memory_order_relaxed)->thread.load(std::memory_order_relaxed);
    }

    [[gnu::noinline]] bool try_take_shared(std::uintptr_t self, bool counts) {
        for (;;) {
            if (held_.load(std::memory_order_relaxed) != 0 ||
                held_.exchange(1, std::memory_order_acquire) != 0)
                return false;
            if (owner_.load(std::memory_order_relaxed) != &nobody_) disown(counts);
            // Who owned it earlier was seen outside by who came to own it later.
            const Atomic<std::uint32_t>& inside = latest_->inside;
            if (inside.load(std::memory_order_acquire) == 0) break;
            // Who is inside looks at doorbells. If it left meanwhile it may have found us here.
            held_.exchange(0, std::memory_order_seq_cst);
            atomic_fence_after_rmw();
            if (inside.load(std::memory_order_relaxed) != 0) return false;
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
        owner_.store(&nobody_yet_, std::memory_order_relaxed);
        atomic_fence_all();
        owner_.store(&nobody_, std::memory_order_relaxed);
        if (by_data_path && needed_ < takes_to_own_most) needed_ *= takes_more;
    }
    /// held_ is ours, and nobody owns it.
    [[gnu::noinline]] void own() {
        streak_ = 0;
        if (has_fence_all()) make_owner(last_);
    }
    /// Not if too many others did before.
    void make_owner(std::uintptr_t thread) {
        for (Owner& owner : owners_) {
            const std::uintptr_t found = owner.thread.load(std::memory_order_relaxed);
            if (found != 0 && found != thread) continue;
            owner.thread.store(thread, std::memory_order_relaxed);
            latest_ = &owner;
            owner_.store(&owner, std::memory_order_relaxed);
            return;
        }
    }

    static constexpr std::uint32_t takes_more = 16;
    static constexpr std::uintptr_t nobodys_thread = 1;

    Atomic<Owner*> owner_{&nobody_};    ///< changed by who has held_
    Atomic<std::uint32_t> held_{0};     ///< by one who does not own it
    Atomic<std::uintptr_t> holder_{0};  ///< who that is, while it is certain
    Owner* owned_ = nullptr;            ///< the holder's: itself, where it owns it
    Owner* latest_ = &nobody_;          ///< held_'s: who owns it, or the last that did
    std::uint32_t streak_ = 0;          ///< held_'s: takes in a row by last_
    std::uint32_t needed_ = takes_to_own;
    std::uintptr_t last_ = 0;
    Owner nobody_;
    Owner nobody_yet_{.thread{nobodys_thread}};  ///< is_anothers() while it is taken away
    std::array<Owner, owners_most> owners_;  ///< `thread` of a new one is written by who has held_
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
