// Assertions that stay on in release: a broken invariant stops the program before it spreads.
#pragma once

namespace via {

/// Prints the broken condition and aborts. Programmer errors only, never a peer's or user's doing.
[[noreturn]] void assert_failed(const char* condition, const char* file, int line);

}  // namespace via

#define VIA_ASSERT(condition)                     \
    (__builtin_expect(!!(condition), 1) ? (void)0 \
                                        : ::via::assert_failed(#condition, __FILE__, __LINE__))
