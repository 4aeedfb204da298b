#pragma once
// Locks that cost the thread which has them again and again no locked instruction. It owns the
// lock: it says by plain stores, to a word that only it writes, that it is inside. Whoever else
// wants the lock takes that right away first, by a heavy fence; from then on the lock is an
// ordinary one, until one thread had it alone for long.
//
// One that lost the right, and was put aside before it looked, says late that it is inside, and
// takes that back. So each that ever owned the lock has a word of its own for that.
//
// A process that forks leaves these locks alone in the child, as all others: who was inside is not
// there to leave. For the same reason nobody may be cancelled inside.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "base/asymmetric_fence.hpp"
#include "base/atomic.hpp"

namespace via {

#ifdef VIA_MODEL
inline namespace under_model {
#endif

/// Ways to get it wrong, for tests: the interleaving checker finds each.
enum class BiasMistake : std::uint8_t {
    none,
    no_light_fence,        ///< between the owner's mark and its look
    owner_looks_first,     ///< and then sets its mark
    no_heavy_fence,        ///< but a full fence of who takes the right away
    heavy_fence_first,     ///< and then takes the right away
    owner_not_waited_for,  ///< who took the right away goes in at once
    left_without_release,  ///< of what the owner did inside
    one_mark_for_all,      ///< owners, one after the other
    late_mark_stays,       ///< of who lost the right
    passed_without_fence,  ///< by who waits for its holder only
    loss_unnoticed,        ///< by the owner, when it leaves
};

/// The right of one thread to a lock, and the marks by which those that ever had it say that they
/// are inside. What is said of a caller who excludes others holds for all that give or take the
/// right: it holds the word that everybody but the owner has to take.
template <std::size_t owners_most, BiasMistake mistake = BiasMistake::none>
class Bias {
public:
    struct Owner {
        Atomic<std::uint32_t> inside{0};   ///< it is, or wants to be; only it writes this
        Atomic<std::uintptr_t> thread{0};  ///< as this_thread() says it; 0: nobody so far
    };

    /// The caller is inside, if it has the right, until leave(`owner`).
    [[gnu::always_inline]] bool enter(std::uintptr_t self, Owner*& owner) {
        owner = owner_.load(memory_order_relaxed);
        if (owner->thread.load(memory_order_relaxed) != self) return false;
        if constexpr (mistake == BiasMistake::owner_looks_first) {
            if (owner_.load(memory_order_acquire) != owner) return false;
        }
        owner->inside.store(1, memory_order_relaxed);
        if constexpr (mistake != BiasMistake::no_light_fence) light_fence();
        if (mistake == BiasMistake::owner_looks_first || owner_.load(memory_order_acquire) == owner)
            [[likely]]
            return true;
        if constexpr (mistake != BiasMistake::late_mark_stays)
            owner->inside.exchange(0, memory_order_seq_cst);
        atomic_fence_after_rmw();
        return false;
    }
    [[gnu::always_inline]] static void leave(Owner& owner) {
        owner.inside.store(0, mistake == BiasMistake::left_without_release ? memory_order_relaxed
                                                                           : memory_order_release);
    }
    /// The right went while its owner was inside. After leave() and a light fence.
    bool is_lost(const Owner* owner) const {
        return mistake != BiasMistake::loss_unnoticed && owner_.load(memory_order_relaxed) != owner;
    }

    /// Who has the right, as this_thread() says it; 0: nobody; neither: it is just being taken.
    std::uintptr_t thread() const {
        return owner_.load(memory_order_relaxed)->thread.load(memory_order_relaxed);
    }
    /// That thread has or had the right, and is inside, or wants to be.
    bool is_inside(std::uintptr_t thread) const {
        return std::ranges::any_of(owners_, [thread](const Owner& owner) {
            return owner.thread.load(memory_order_relaxed) == thread &&
                   owner.inside.load(memory_order_relaxed) != 0;
        });
    }

    // By who excludes others --------------------------------------------------------------------
    bool is_given() const { return owner_.load(memory_order_relaxed) != &nobody; }
    /// Afterwards the owner is inside, and latest() shows it, or it does not get in.
    [[gnu::noinline]] void take_away() {
        if constexpr (mistake == BiasMistake::heavy_fence_first) heavy_fence(FenceReach::process);
        owner_.store(&just_taken, memory_order_relaxed);
        if constexpr (mistake == BiasMistake::no_heavy_fence)
            atomic_fence(memory_order_seq_cst);
        else if constexpr (mistake != BiasMistake::heavy_fence_first)
            heavy_fence(FenceReach::process);
        owner_.store(&nobody, memory_order_relaxed);
    }
    /// Who has the right, or had it last. Who had it earlier was seen outside by who gave it.
    const Owner& latest() const { return owners_[latest_]; }
    /// Of latest(), also by who does not exclude others any more.
    static bool is_inside(const Owner& owner, memory_order order) {
        return mistake != BiasMistake::owner_not_waited_for && owner.inside.load(order) != 0;
    }
    /// latest() was not inside. Nothing happens if too many others had the right before.
    void give(std::uintptr_t thread) {
        for (std::uint32_t n = 0; n < owners_most; ++n) {
            Owner& owner = owners_[n];
            const std::uintptr_t found = owner.thread.load(memory_order_relaxed);
            if (mistake != BiasMistake::one_mark_for_all && found != 0 && found != thread) continue;
            owner.thread.store(thread, memory_order_relaxed);
            latest_ = n;
            owner_.store(&owner, memory_order_relaxed);
            return;
        }
    }

private:
    // Of no thread: enter() compares with them, and nobody writes to them.
    static inline constinit Owner nobody{};
    static inline constinit Owner just_taken{.thread{1}};

    Atomic<Owner*> owner_{&nobody};
    std::array<Owner, owners_most> owners_;  ///< `thread` of a new one is written by who gives
    std::uint32_t latest_ = 0;
};

/// Takes in a row by one thread until it owns a lock; each time that another one takes this away it
/// needs more, so that threads which share a lock do without.
class BiasEarning {
public:
    static constexpr std::uint32_t takes_to_own = 64;
    static constexpr std::uint32_t takes_to_own_most = 1U << 20;

    constexpr BiasEarning() = default;
    /// 0: the next take, and each time that it was taken away.
    constexpr explicit BiasEarning(std::uint32_t takes) : needed_(takes) {}
    /// True: `thread` has it again and again.
    bool took(std::uintptr_t thread) {
        streak_ = last_ == thread ? streak_ + 1 : 1;
        last_ = thread;
        return streak_ >= needed_;
    }
    bool is_earned() const { return streak_ >= needed_; }
    std::uintptr_t last() const { return last_; }
    void begin_anew() { streak_ = 0; }
    void lost() {
        if (needed_ < takes_to_own_most) needed_ *= takes_more;
    }

private:
    static constexpr std::uint32_t takes_more = 16;
    std::uintptr_t last_ = 0;
    std::uint32_t streak_ = 0;
    std::uint32_t needed_ = takes_to_own;
};

/// A SpinLock with an owner. Not recursive, not fair; never held across a call-back or anything
/// that may block. Where there is no heavy fence nobody comes to own it.
template <std::size_t owners_most = 4, BiasMistake mistake = BiasMistake::none>
class BiasedLock {
public:
    BiasedLock() = default;
    /// `owner` owns it from the beginning (0: nobody), and others after so many takes.
    BiasedLock(std::uintptr_t owner, std::uint32_t takes) : earning_(takes) {
        if (owner != 0) bias_.give(owner);
    }

    /// What unlock() needs.
    using Hold = Atomic<std::uint32_t>*;
    [[nodiscard, gnu::always_inline]] Hold lock() {
        const std::uintptr_t self = this_thread();
        typename Bias<owners_most, mistake>::Owner* owner;
        if (bias_.enter(self, owner)) [[likely]]
            return &owner->inside;
        return lock_shared(self);
    }
    [[gnu::always_inline]] static void unlock(Hold hold) {
        hold->store(0, mistake == BiasMistake::left_without_release ? memory_order_relaxed
                                                                    : memory_order_release);
    }

    /// Whoever changed what holders look at calls this, and then sees what those did who did not
    /// see the change. Leaves the lock to its owner. Not by who holds it. `fenced`: a heavy fence
    /// was made since the change, for instance for another lock.
    void wait_for_holder(bool& fenced) {
        take_word();
        const std::uintptr_t owner = bias_.thread();
        if (owner != 0 && owner != this_thread()) {
            if (!fenced && mistake != BiasMistake::passed_without_fence)
                heavy_fence(FenceReach::process);
            fenced = true;
        }
        wait_for_latest();
        word_.store(0, memory_order_release);
    }

    class Guard {
    public:
        [[gnu::always_inline]] explicit Guard(BiasedLock& lock) : hold_(lock.lock()) {}
        [[gnu::always_inline]] ~Guard() { unlock(hold_); }
        Guard(const Guard&) = delete;
        Guard& operator=(const Guard&) = delete;

    private:
        Hold hold_;
    };

private:
    /// Free as a rule, so it does not look first.
    void take_word() {
        if (word_.exchange(1, memory_order_acquire) == 0) [[likely]]
            return;
        unsigned spins = 0;
        do relax(spins++);
        while (word_.load(memory_order_relaxed) != 0 ||
               word_.exchange(1, memory_order_acquire) != 0);
    }
    void wait_for_latest() {
        const auto& latest = bias_.latest();
        for (unsigned spins = 0; bias_.is_inside(latest, memory_order_acquire);) relax(spins++);
    }
    [[gnu::noinline]] Hold lock_shared(std::uintptr_t self) {
        take_word();
        if (bias_.is_given()) {
            bias_.take_away();
            earning_.lost();
        }
        wait_for_latest();
        if (earning_.took(self)) {
            earning_.begin_anew();
            if (has_heavy_fence(FenceReach::process)) bias_.give(self);  // from its next time on
        }
        return &word_;
    }

    [[no_unique_address]] Bias<owners_most, mistake> bias_;
    Atomic<std::uint32_t> word_{0};  ///< held by one that does not own it
    BiasEarning earning_;
};

#ifdef VIA_MODEL
}  // inline namespace under_model
#endif

}  // namespace via
