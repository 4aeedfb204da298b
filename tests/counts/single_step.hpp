// Counts what one call executes that waits for all stores before it: locked instructions, exchanges
// with memory, full fences; and system calls. The processor traps after each instruction of the
// calling thread (its trap flag), and a handler looks at the next one. x86-64.
#pragma once

#include <signal.h>
#include <ucontext.h>

#include <array>
#include <cstdint>

struct Steps {
    unsigned waits = 0;  ///< locked instructions, exchanges, fences and system calls
    unsigned instructions = 0;
    /// The first of those that wait.
    std::array<const std::uint8_t*, 32> at{};
};
inline Steps steps;

inline bool is_prefix(std::uint8_t byte) {
    switch (byte) {
        case 0x26:
        case 0x2E:
        case 0x36:
        case 0x3E:
        case 0x64:
        case 0x65:  // segments
        case 0x66:
        case 0x67:
        case 0xF2:
        case 0xF3:
            return true;
        default:
            return false;
    }
}

inline void look_at_instruction(const std::uint8_t* at) {
    ++steps.instructions;
    bool locked = false;
    for (; is_prefix(*at) || *at == 0xF0; ++at) locked = locked || *at == 0xF0;
    if ((*at & 0xF0) == 0x40) ++at;  // REX
    const bool in_memory = at[1] < 0xC0;
    const bool exchange = (*at == 0x86 || *at == 0x87) && in_memory;
    const bool full_fence = at[0] == 0x0F && at[1] == 0xAE && (at[2] & 0xF8) == 0xF0;  // mfence
    const bool system_call = at[0] == 0x0F && at[1] == 0x05;
    if (!locked && !exchange && !full_fence && !system_call) return;
    if (steps.waits < steps.at.size()) steps.at[steps.waits] = at;
    ++steps.waits;
}

/// From here on all traps come here.
inline void begin_to_step() {
    struct sigaction action{};
    action.sa_flags = SA_SIGINFO;
    action.sa_sigaction = [](int, siginfo_t*, void* context) {
        const auto* interrupted = static_cast<ucontext_t*>(context);
        look_at_instruction(
            reinterpret_cast<const std::uint8_t*>(interrupted->uc_mcontext.gregs[REG_RIP]));
    };
    sigaction(SIGTRAP, &action, nullptr);
}

/// Counts what call() executes.
template <class Call>
void step_through(Call call) {
    steps = {};
    // Below the red zone, where the compiler may have its variables.
    asm volatile("sub $128, %%rsp; pushfq; orq $0x100, (%%rsp); popfq; add $128, %%rsp" ::
                     : "memory", "cc");
    call();
    asm volatile("sub $128, %%rsp; pushfq; andq $~0x100, (%%rsp); popfq; add $128, %%rsp" ::
                     : "memory", "cc");
}
