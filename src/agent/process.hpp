// What the library must know of the process around it.
#pragma once

#include <atomic>
#include <cstdint>

namespace via::agent {

/// Whose process is this?
enum class ProcessState : char {
    lost = 0,   ///< a forked child that nothing was made ready in, or give_up_process(): nothing of
                ///< ours may be touched
    own = 1,    ///< all that there is of ours is its own
    child = 2,  ///< a forked child: what it inherited is its parent's, the rest its own
};

/// A page that holds the state, and that a fork wipes; nullptr before remember_process().
extern std::atomic<volatile char*> process_page;

/// Two loads.
inline ProcessState process_state() {
    // Sees the page as the release store in remember_process() left it.
    const volatile char* page = process_page.load(std::memory_order_acquire);
    return page == nullptr ? ProcessState::own
                           : static_cast<ProcessState>(__atomic_load_n(page, __ATOMIC_RELAXED));
}

/// True where nothing of ours may be touched: after give_up_process(), and in a child that was made
/// past fork(3) and its handlers (clone, _Fork). A child of fork(3) is made ready for NICs of its
/// own before fork returns there (VIPL 4.3).
inline bool forked() { return process_state() == ProcessState::lost; }

/// Remembers this process as one that uses the library. Called before anything is opened.
/// `child_begins` runs in each forked child from then on, without memory to be had and before any
/// other call: it forgets what is the parent's, whose threads may hold every lock. False when the
/// kernel gives no memory that a fork wipes, or no handlers of a fork.
bool remember_process(void (*child_begins)() = nullptr);

/// Nothing of ours is touched from now on: the process ends, and what it has of ours is in the
/// midst of something that will never be done.
void give_up_process();

/// Writes one line to stderr, or to the file that OPENVIA_LOG names; at most a few a second, the
/// rest counted, as is what nobody reads: it never waits. `level`: 0 error, 1 warning, 2
/// information; OPENVIA_LOG_LEVEL (default 1) says which are wanted. What these variables have
/// wrong is told once, on stderr, and stays the default.
void log(int level, const char* format, ...) __attribute__((format(printf, 2, 3)));

}  // namespace via::agent
