// Functions whose instructions callgrind counts begin with "measured_"; counts.py divides what they
// took by how often they were called. It counts only within counted_phase().
#pragma once

// Called as they are: neither inlined nor cloned for their callers.
#if defined(__clang__)
#define VIA_MEASURED extern "C" __attribute__((noinline, used))
#else
#define VIA_MEASURED extern "C" __attribute__((noipa, used))
#endif

/// Messages before those that are counted, so that everything is warm.
constexpr unsigned messages_warm = 1000;
/// Messages of one phase: few, so that most phases go by without a switch to another thread.
constexpr unsigned messages_counted = 20;
constexpr unsigned phases = 31;
