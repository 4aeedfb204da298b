#pragma once
// Every atomic of the library goes through this header, so that one compile definition, VIA_MODEL,
// puts the real code under the interleaving checker of tests/model. Without VIA_MODEL each call
// below is the std::atomic call of the same name and costs nothing more.
//
// An Atomic<T> may lie in memory mapped by several processes: it is lock-free, of standard layout,
// as large as T, and all-zero bytes are a valid object holding T{} (no constructor need run).
// A translation unit compiled with VIA_MODEL must not be linked with one that was not: the types
// live in an inline namespace there, which turns most such mixtures into a link error.

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#ifdef VIA_MODEL

// The scheduler of the checker; defined in tests/model.
namespace via::model {

enum class Rmw : std::uint8_t { exchange, add, bit_and, bit_or };

void atomic_init(void* at, std::size_t size);
std::uint64_t atomic_load(const void* at, std::size_t size, std::memory_order order);
void atomic_store(void* at, std::size_t size, std::uint64_t value, std::memory_order order);
std::uint64_t atomic_rmw(void* at, std::size_t size, Rmw kind, std::uint64_t operand,
                         std::memory_order order);
bool atomic_compare_exchange(void* at, std::size_t size, std::uint64_t& expected,
                             std::uint64_t desired, std::memory_order success,
                             std::memory_order failure, bool weak);
void fence(std::memory_order order);
void fence_after_rmw();
void light_fence();
void heavy_fence(bool of_process);
std::uintptr_t this_thread();
void relax();
void plain_read(const void* at, std::size_t size);
void plain_write(const void* at, std::size_t size);

}  // namespace via::model

// Tell the checker about ordinary (non-atomic) accesses to shared bytes; it reports data races.
#define VIA_MODEL_READ(pointer, bytes) ::via::model::plain_read((pointer), (bytes))
#define VIA_MODEL_WRITE(pointer, bytes) ::via::model::plain_write((pointer), (bytes))

#else

#define VIA_MODEL_READ(pointer, bytes) ((void)0)
#define VIA_MODEL_WRITE(pointer, bytes) ((void)0)

#endif

namespace via {

#ifdef VIA_MODEL
inline namespace under_model {
#endif

using std::memory_order;
using std::memory_order_acq_rel;
using std::memory_order_acquire;
using std::memory_order_relaxed;
using std::memory_order_release;
using std::memory_order_seq_cst;

namespace detail {

// What std::memory_order a failed compare-exchange has when only one order was given.
constexpr memory_order failure_order(memory_order success) noexcept {
    if (success == memory_order_acq_rel) return memory_order_acquire;
    if (success == memory_order_release) return memory_order_relaxed;
    return success;
}

template <typename T>
concept AtomicValue = std::is_trivially_copyable_v<T> &&
                      (std::is_integral_v<T> || std::is_enum_v<T> || std::is_pointer_v<T>) &&
                      (sizeof(T) == 1 || sizeof(T) == 2 || sizeof(T) == 4 || sizeof(T) == 8);

template <typename T>
concept AtomicNumber = std::is_integral_v<T> && !std::is_same_v<T, bool>;

#ifdef VIA_MODEL
template <typename T>
std::uint64_t to_word(T value) noexcept {
    if constexpr (std::is_pointer_v<T>)
        return reinterpret_cast<std::uintptr_t>(value);
    else
        return static_cast<std::uint64_t>(value);
}
template <typename T>
T from_word(std::uint64_t word) noexcept {
    if constexpr (std::is_pointer_v<T>)
        return reinterpret_cast<T>(word);
    else
        return static_cast<T>(word);
}
#endif

}  // namespace detail

/// An atomic integer, bool, enum or pointer; the operations are those of std::atomic<T>, with the
/// order always spelled out by the caller or seq_cst. Any thread (or process, for one in shared
/// memory) may call any operation; construction is not atomic. Not copyable.
template <typename T>
    requires detail::AtomicValue<T>
class Atomic {
public:
    using value_type = T;

#ifndef VIA_MODEL
    constexpr Atomic() noexcept = default;
    constexpr explicit(false) Atomic(T value) noexcept : value_(value) {}

    T load(memory_order order = memory_order_seq_cst) const noexcept { return value_.load(order); }
    void store(T value, memory_order order = memory_order_seq_cst) noexcept {
        value_.store(value, order);
    }
    T exchange(T value, memory_order order = memory_order_seq_cst) noexcept {
        return value_.exchange(value, order);
    }
    bool compare_exchange_strong(T& expected, T desired, memory_order success,
                                 memory_order failure) noexcept {
        return value_.compare_exchange_strong(expected, desired, success, failure);
    }
    bool compare_exchange_weak(T& expected, T desired, memory_order success,
                               memory_order failure) noexcept {
        return value_.compare_exchange_weak(expected, desired, success, failure);
    }
    T fetch_add(T by, memory_order order = memory_order_seq_cst) noexcept
        requires detail::AtomicNumber<T>
    {
        return value_.fetch_add(by, order);
    }
    T fetch_sub(T by, memory_order order = memory_order_seq_cst) noexcept
        requires detail::AtomicNumber<T>
    {
        return value_.fetch_sub(by, order);
    }
    T fetch_or(T bits, memory_order order = memory_order_seq_cst) noexcept
        requires detail::AtomicNumber<T>
    {
        return value_.fetch_or(bits, order);
    }
    T fetch_and(T bits, memory_order order = memory_order_seq_cst) noexcept
        requires detail::AtomicNumber<T>
    {
        return value_.fetch_and(bits, order);
    }
#else
    constexpr Atomic() noexcept : Atomic(T{}) {}
    constexpr explicit(false) Atomic(T value) noexcept : value_(value) {
        if (!__builtin_is_constant_evaluated()) model::atomic_init(&value_, sizeof(T));
    }

    T load(memory_order order = memory_order_seq_cst) const noexcept {
        return detail::from_word<T>(model::atomic_load(&value_, sizeof(T), order));
    }
    void store(T value, memory_order order = memory_order_seq_cst) noexcept {
        model::atomic_store(&value_, sizeof(T), detail::to_word(value), order);
    }
    T exchange(T value, memory_order order = memory_order_seq_cst) noexcept {
        return rmw(model::Rmw::exchange, value, order);
    }
    bool compare_exchange_strong(T& expected, T desired, memory_order success,
                                 memory_order failure) noexcept {
        return compare_exchange(expected, desired, success, failure, false);
    }
    bool compare_exchange_weak(T& expected, T desired, memory_order success,
                               memory_order failure) noexcept {
        return compare_exchange(expected, desired, success, failure, true);
    }
    T fetch_add(T by, memory_order order = memory_order_seq_cst) noexcept
        requires detail::AtomicNumber<T>
    {
        return rmw(model::Rmw::add, by, order);
    }
    T fetch_sub(T by, memory_order order = memory_order_seq_cst) noexcept
        requires detail::AtomicNumber<T>
    {
        return rmw(model::Rmw::add, static_cast<T>(std::uint64_t{0} - detail::to_word(by)), order);
    }
    T fetch_or(T bits, memory_order order = memory_order_seq_cst) noexcept
        requires detail::AtomicNumber<T>
    {
        return rmw(model::Rmw::bit_or, bits, order);
    }
    T fetch_and(T bits, memory_order order = memory_order_seq_cst) noexcept
        requires detail::AtomicNumber<T>
    {
        return rmw(model::Rmw::bit_and, bits, order);
    }
#endif

    bool compare_exchange_strong(T& expected, T desired,
                                 memory_order order = memory_order_seq_cst) noexcept {
        return compare_exchange_strong(expected, desired, order, detail::failure_order(order));
    }
    bool compare_exchange_weak(T& expected, T desired,
                               memory_order order = memory_order_seq_cst) noexcept {
        return compare_exchange_weak(expected, desired, order, detail::failure_order(order));
    }

    Atomic(const Atomic&) = delete;
    Atomic& operator=(const Atomic&) = delete;

private:
#ifndef VIA_MODEL
    static_assert(std::atomic<T>::is_always_lock_free, "must work between processes");
    static_assert(sizeof(std::atomic<T>) == sizeof(T) && std::is_standard_layout_v<std::atomic<T>>);
    std::atomic<T> value_{};
#else
    T rmw(model::Rmw kind, T operand, memory_order order) noexcept {
        return detail::from_word<T>(
            model::atomic_rmw(&value_, sizeof(T), kind, detail::to_word(operand), order));
    }
    bool compare_exchange(T& expected, T desired, memory_order success, memory_order failure,
                          bool weak) noexcept {
        std::uint64_t word = detail::to_word(expected);
        const bool done = model::atomic_compare_exchange(
            &value_, sizeof(T), word, detail::to_word(desired), success, failure, weak);
        if (!done) expected = detail::from_word<T>(word);
        return done;
    }
    alignas(sizeof(T)) T value_;
#endif
};

static_assert(sizeof(Atomic<std::uint64_t>) == 8 && alignof(Atomic<std::uint64_t>) == 8);
static_assert(std::is_standard_layout_v<Atomic<std::uint32_t>>);
static_assert(std::is_trivially_destructible_v<Atomic<std::uint32_t>>);

/// Atomic load of an object of plain memory (a peer's bytes, the last word of a placed message).
/// `at` must be aligned to sizeof(T); all concurrent accesses must be atomic and of this size.
template <typename T>
    requires detail::AtomicValue<T>
T atomic_load_at(const T* at, memory_order order) noexcept {
#ifndef VIA_MODEL
    static_assert(std::atomic_ref<T>::is_always_lock_free);
    // atomic_ref<const T> is C++26; nothing is written through this pointer.
    return std::atomic_ref<T>(*const_cast<T*>(at)).load(order);
#else
    return detail::from_word<T>(model::atomic_load(at, sizeof(T), order));
#endif
}

/// Atomic store to an object of plain memory; the same conditions as atomic_load_at.
template <typename T>
    requires detail::AtomicValue<T>
void atomic_store_at(T* at, std::type_identity_t<T> value, memory_order order) noexcept {
#ifndef VIA_MODEL
    static_assert(std::atomic_ref<T>::is_always_lock_free);
    std::atomic_ref<T>(*at).store(value, order);
#else
    model::atomic_store(at, sizeof(T), detail::to_word(value), order);
#endif
}

/// std::atomic_thread_fence. Between a store and a later load of another variable only seq_cst
/// orders anything. Thread sanitizer does not understand fences: under it, give the variables
/// themselves acquire and release.
inline void atomic_fence(memory_order order) noexcept {
#ifdef VIA_MODEL
    model::fence(order);
#else
#if defined(__SANITIZE_THREAD__) && defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wtsan"
#endif
    std::atomic_thread_fence(order);
#if defined(__SANITIZE_THREAD__) && defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif
#endif
}

/// A seq_cst fence for a place where the last access before it was a read-modify-write: that is a
/// full fence on x86 already, where this costs nothing. Elsewhere, and in C++, an exchange or
/// compare-exchange orders no later relaxed load, whatever its own order.
inline void atomic_fence_after_rmw() noexcept {
#ifdef VIA_MODEL
    model::fence_after_rmw();
#elif defined(__x86_64__)
    std::atomic_signal_fence(memory_order_seq_cst);
#else
    atomic_fence(memory_order_seq_cst);
#endif
}

/// Which thread this is: never 0, and different from all others that live.
inline std::uintptr_t this_thread() noexcept {
#ifdef VIA_MODEL
    return model::this_thread();
#else
    return reinterpret_cast<std::uintptr_t>(__builtin_thread_pointer());
#endif
}

using YieldHook = void (*)();

namespace detail {
// A std::atomic also under VIA_MODEL: it is no part of the code under test.
inline constinit std::atomic<YieldHook> yield_hook{nullptr};
inline constexpr unsigned spins_before_yield = 64;
}  // namespace detail

/// What relax() calls after many spins, e.g. the agent's sched_yield; base itself may not call the
/// operating system. nullptr (the default) means none. Any thread; takes effect at once.
inline void set_yield_hook(YieldHook hook) noexcept {
    detail::yield_hook.store(hook, memory_order_release);
}

/// One pause of a spin loop. `spins` is how often this loop has already paused; from the 64th pause
/// on the yield hook is called too, so that a preempted holder gets the processor:
///     for (unsigned spins = 0; !ready(); ++spins) relax(spins);
/// Under the checker a loop that relaxes is put to sleep until something it read has changed.
inline void relax([[maybe_unused]] unsigned spins = 0) noexcept {
#ifdef VIA_MODEL
    model::relax();
#else
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("isb" ::: "memory");  // yield is a no-op on most arm64 cores
#endif
    if (spins >= detail::spins_before_yield) {
        if (const YieldHook hook = detail::yield_hook.load(memory_order_acquire)) hook();
    }
#endif
}

/// A test-and-test-and-set lock for a few instructions. Not recursive, not fair; never held across
/// a call-back or anything that may block. Satisfies Lockable (std::lock_guard). All-zero bytes are
/// an unlocked lock; a process that dies holding one in shared memory leaves it locked.
class SpinLock {
public:
    constexpr SpinLock() noexcept = default;

    /// At once as a rule, so it does not look first.
    void lock() noexcept {
        if (locked_.exchange(1, memory_order_acquire) != 0) [[unlikely]]
            wait_and_lock();
    }
    /// True if the lock was free and is now the caller's.
    [[nodiscard]] bool try_lock() noexcept {
        return locked_.load(memory_order_relaxed) == 0 &&
               locked_.exchange(1, memory_order_acquire) == 0;
    }
    void unlock() noexcept { locked_.store(0, memory_order_release); }

private:
    [[gnu::noinline]] void wait_and_lock() noexcept {
        unsigned spins = 0;
        do relax(spins++);
        while (!try_lock());
    }
    Atomic<std::uint32_t> locked_{0};
};

#ifdef VIA_MODEL
}  // inline namespace under_model
#endif

}  // namespace via
