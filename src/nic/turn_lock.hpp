// The turn: who holds it may touch engine and devices. Taking it is one uncontended exchange; the
// data path only ever tries. Doorbells are what a try that failed leaves behind: whoever lets the
// turn go looks at them afterwards, so that no post is stranded.
#pragma once

#include "base/atomic.hpp"

namespace via::nic {

class TurnLock {
public:
    bool try_take() {
        return held_.load(std::memory_order_relaxed) == 0 &&
               held_.exchange(1, std::memory_order_acquire) == 0;
    }
    /// For calls off the data path: a turn is short and bounded.
    void take() {
        for (unsigned spins = 0; !try_take(); ++spins) relax(spins);
    }
    /// A full fence, too: it lets the caller look at doorbells: a ringer either sees the turn
    /// free or is seen.
    void release() {
        held_.exchange(0, std::memory_order_seq_cst);
        atomic_fence_after_rmw();
    }

private:
    Atomic<std::uint32_t> held_{0};
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
