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

/// Warms up, then runs all phases of one kind. `counted_phase` is the program's own: callgrind
/// knows it by that name.
template <class World, class Pass, class Phase>
void warm_and_count(World& world, Pass pass, Phase counted_phase) {
    for (unsigned n = 0; n < messages_warm; ++n) pass(world, n);
    for (unsigned phase = 0; phase < phases; ++phase)
        counted_phase(world, pass, messages_warm + phase * messages_counted);
}
