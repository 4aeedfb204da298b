// Functions whose instructions callgrind counts begin with "measured_"; counts.py divides what they
// took by how often they were called. It counts only within counted_phase().
#pragma once

// Called as they are: neither inlined nor cloned for their callers.
#if defined(__clang__)
#define VIA_MEASURED extern "C" __attribute__((noinline, used))
#else
#define VIA_MEASURED extern "C" __attribute__((noipa, used))
#endif

/// Messages that are counted, and as many before them so that everything is warm.
constexpr unsigned messages_counted = 1000;
