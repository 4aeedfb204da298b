// What the library must know of the process around it.
#pragma once

#include <atomic>
#include <cstdint>

namespace via::agent {

/// A page that reads as zero in a forked child; nullptr before remember_process().
extern std::atomic<volatile char*> process_page;

/// True in a child that was forked after the library came to life: nothing of ours may be touched
/// there (VIPL 4.3). One load. True after give_up_process(), too.
inline bool forked() {
    // Sees the page as the release store in remember_process() left it.
    const volatile char* page = process_page.load(std::memory_order_acquire);
    return page != nullptr && __atomic_load_n(page, __ATOMIC_RELAXED) == 0;
}

/// Remembers this process as the one that uses the library. Called before anything is opened.
/// False when the kernel gives no memory that a fork wipes.
bool remember_process();

/// This process counts as a forked child from now on: it ends, and what it has of ours is in the
/// midst of something that will never be done.
void give_up_process();

/// Writes one line to stderr, or to the file that OPENVIA_LOG names; at most a few a second, the
/// rest counted. `level`: 0 error, 1 warning, 2 information; OPENVIA_LOG_LEVEL (default 1) says
/// which are wanted. What these variables have wrong is told once, on stderr, and stays the
/// default.
void log(int level, const char* format, ...) __attribute__((format(printf, 2, 3)));

}  // namespace via::agent
