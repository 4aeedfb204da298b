#pragma once
// What an atomic load may return: the memory models of the checker.
//
// Every atomic variable keeps all the values it ever had in its modification order. Each thread has
// a view, the oldest value of every variable that it may still read; release and acquire pass
// views (and vector clocks) from thread to thread.
//   weak  C++ memory model: a load may return any value not older than the view, a store may
//         land before values the thread has not seen. What is missing is a load that sees a store
//         which comes later in program order ("load buffering").
//   tso   x86: stores wait in a first-in first-out buffer per thread.
//   sc    one memory, no delays.

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/atomic.hpp"
#include "checker.hpp"
#include "clock.hpp"

namespace via::model {

// Index of a value in its variable's modification order: 0 is the initial one.
using Place = std::uint16_t;

class SharedMemory {
public:
    // Forgets everything. Variables are told apart by object numbers, given out by the caller.
    void reset(Memory model, unsigned threads);
    // The variable's initial value is what lies at `at` now.
    void add(unsigned object, void* at, std::size_t bytes);
    void retire(unsigned object);

    // --- what a step may do; the newest first ---
    // `past`: steps that the thread's next step depends on already. If given, choices that another
    // interleaving shows as well are left out.
    struct Reach {
        unsigned thread;
        unsigned object;
        bool sc;
        const StepClock* past;
    };
    // Places a load may read.
    void loads(const Reach& reach, std::vector<Place>& places) const;
    // Places whose value a read-modify-write may replace.
    void updates(const Reach& reach, std::vector<Place>& places) const;
    // Places a store may come right after.
    void stores(const Reach& reach, std::vector<Place>& places) const;
    // A compare-exchange: places it may replace (value == expected) or fail with (others).
    void compares(const Reach& reach, std::uint64_t expected, std::vector<Place>& places) const;

    // --- effects ---
    std::uint64_t read(unsigned thread, unsigned object, Place place, std::memory_order order);
    // New value right after `place`.
    void store(unsigned thread, unsigned object, Place place, std::uint64_t value,
               std::memory_order order, Stamp stamp);
    // Replaces the value at `place`, which the caller has read.
    void update(unsigned thread, unsigned object, Place place, std::uint64_t value,
                std::memory_order order, Stamp stamp);
    // Acquire and release parts, and under the weak model the order of all seq_cst fences.
    void fence(unsigned thread, std::memory_order order);
    // What the thread did so far is before its next light fence's other side.
    void light_fence(unsigned thread);
    // A seq_cst fence where the thread is, but of what it did before its last light fence only: the
    // compiler may have put a store behind loads that follow it, so that it is yet to come.
    void heavy_fence(unsigned thread);
    // Messages that pass outside of atomics (eventfd): a release into / an acquire out of a slot.
    void give(unsigned thread, unsigned slot);
    void take(unsigned thread, unsigned slot);
    // `to` cannot read anything older than `from` can; no happens-before.
    void show(unsigned from, unsigned to);
    // Ends a step of the thread: what it does from now on has not been released yet.
    void tick(unsigned thread);

    // --- TSO store buffers ---
    void buffer(unsigned thread, unsigned object, std::uint64_t value, std::memory_order order,
                const StepClock& clock);
    bool buffered(unsigned thread) const { return !threads_[thread].buffer.empty(); }
    // Stores are buffered that a heavy fence has to wait for.
    bool holds_back(unsigned thread) const { return threads_[thread].lit_stores != 0; }
    // The value of the thread's own newest store to the object that is still buffered, or null.
    const std::uint64_t* forwarded(unsigned thread, unsigned object) const;
    unsigned oldest_buffered(unsigned thread) const { return threads_[thread].buffer[0].object; }
    const StepClock& oldest_clock(unsigned thread) const {
        return threads_[thread].buffer[0].clock;
    }
    void flush(unsigned thread, Stamp stamp);

    // --- looking ---
    std::uint64_t newest(unsigned object) const;
    std::uint64_t value(unsigned object, Place place) const;
    Place last(unsigned object) const;
    // How many values of other threads stand at or before `place`.
    unsigned foreign(unsigned thread, unsigned object, Place place) const;
    const SyncClock& clock(unsigned thread) const { return threads_[thread].now.sync; }

private:
    using Id = std::uint16_t;  // of a value, in the order in which they were stored

    struct View {
        std::array<Id, max_objects> id{};
    };
    struct Knowledge {
        View view;
        SyncClock sync;
    };
    struct Value {
        std::uint64_t bits = 0;
        Knowledge message;
        Stamp stamp;
        unsigned thread = max_threads;  // none: the initial value
        bool update = false;            // nothing may come between it and its predecessor
    };
    struct Variable {
        void* at = nullptr;
        std::size_t bytes = 0;
        std::vector<Value> values;  // by Id
        std::vector<Id> order;      // by Place
        std::vector<Place> place;   // by Id
    };
    struct Buffered {
        unsigned object;
        std::uint64_t bits;
        Knowledge message;
        StepClock clock;
    };
    struct Thread {
        Knowledge now;
        Knowledge acquired;          // read without acquire: an acquire fence adds it to `now`
        Knowledge released;          // `now` at the last release fence
        Knowledge lit;               // `now` at the last light fence
        std::size_t lit_stores = 0;  // buffered, from before the last light fence
        std::vector<Buffered> buffer;
    };

    Place floor(const Reach& reach) const;
    void join(View& view, const View& other) const;
    void join(Knowledge& knowledge, const Knowledge& other) const;
    Knowledge message(unsigned thread, std::memory_order order) const;
    void insert(unsigned thread, unsigned object, Place place, Value value, bool sc);

    Memory model_ = Memory::sc;
    unsigned objects_ = 0;  // views are used up to here
    std::vector<Variable> variables_;
    std::array<Thread, max_threads> threads_;
    std::vector<Knowledge> slots_;
    View sc_;  // what the seq_cst fences and stores so far make visible
};

}  // namespace via::model
