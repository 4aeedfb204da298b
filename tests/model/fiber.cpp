// The fortified longjmp takes a change of stacks for an error.
#undef _FORTIFY_SOURCE

#include "fiber.hpp"

#include <setjmp.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>

#if defined(__SANITIZE_ADDRESS__)
#define VIA_MODEL_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define VIA_MODEL_ASAN 1
#endif
#endif
#ifdef VIA_MODEL_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#include <sanitizer/lsan_interface.h>
#endif

namespace via::model {

// ucontext makes the stack, once; after that _setjmp and _longjmp switch, because swapcontext
// costs a system call each time.
struct Fiber::Machine {
    std::byte* stack = nullptr;
    std::size_t guard_bytes = 0;
    void (*entry)(void*) = nullptr;
    void* argument = nullptr;
    ucontext_t first{};
    jmp_buf ground;  // the bottom of the stack, before entry is called
    jmp_buf inside;
    jmp_buf outside;
    bool fresh = true;  // not resumed since start()
#ifdef VIA_MODEL_ASAN
    void* fake_inside = nullptr;
    void* fake_outside = nullptr;
    const void* outside_stack = nullptr;
    std::size_t outside_bytes = 0;
#endif

    // The sanitizer is told of every change of stacks, on both sides of it. What an abandoned run
    // had allocated is lost: no leak of the code under test.
    void leave_outside() {
#ifdef VIA_MODEL_ASAN
        __lsan_disable();
        __sanitizer_start_switch_fiber(&fake_outside, stack, stack_bytes);
#endif
    }
    void arrive_outside() {
#ifdef VIA_MODEL_ASAN
        __sanitizer_finish_switch_fiber(fake_outside, nullptr, nullptr);
        __lsan_enable();
#endif
    }
    // An abandoned run leaves its fake stack to the next one, which collects the frames in it.
    void arrive_inside() {
#ifdef VIA_MODEL_ASAN
        __sanitizer_finish_switch_fiber(fake_inside, &outside_stack, &outside_bytes);
#endif
    }
    void leave_inside() {
#ifdef VIA_MODEL_ASAN
        __sanitizer_start_switch_fiber(&fake_inside, outside_stack, outside_bytes);
#endif
    }

    // makecontext passes ints only.
    static void enter(unsigned high, unsigned low) {
        const auto address = (std::uint64_t{high} << 32) | low;
        auto* const machine = reinterpret_cast<Machine*>(address);
        machine->arrive_inside();
        if (_setjmp(machine->ground) == 0) {
            machine->leave_inside();
            _longjmp(machine->outside, 1);
        }
        machine->arrive_inside();
        machine->entry(machine->argument);
        std::abort();
    }
};

Fiber::Fiber() : machine_(new Machine) {
    Machine& machine = *machine_;
    machine.guard_bytes = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    void* memory = mmap(nullptr, machine.guard_bytes + stack_bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) std::abort();
    if (mprotect(memory, machine.guard_bytes, PROT_NONE) != 0) std::abort();
    machine.stack = static_cast<std::byte*>(memory) + machine.guard_bytes;

    if (getcontext(&machine.first) != 0) std::abort();
    machine.first.uc_stack.ss_sp = machine.stack;
    machine.first.uc_stack.ss_size = stack_bytes;
    machine.first.uc_link = nullptr;
    const auto address = reinterpret_cast<std::uint64_t>(machine_);
    makecontext(&machine.first, reinterpret_cast<void (*)()>(&Machine::enter), 2,
                static_cast<unsigned>(address >> 32), static_cast<unsigned>(address));
    machine.leave_outside();
    if (_setjmp(machine.outside) == 0) setcontext(&machine.first);
    machine_->arrive_outside();
}

Fiber::~Fiber() {
    munmap(machine_->stack - machine_->guard_bytes, machine_->guard_bytes + stack_bytes);
    delete machine_;
}

void Fiber::start(void (*entry)(void*), void* argument) {
    machine_->entry = entry;
    machine_->argument = argument;
    machine_->fresh = true;
#ifdef VIA_MODEL_ASAN
    // What an abandoned run left poisoned. The frame at the bottom has no poisoned variables.
    __asan_unpoison_memory_region(machine_->stack, stack_bytes);
#endif
}

void Fiber::resume() {
    machine_->leave_outside();
    if (_setjmp(machine_->outside) == 0) {
        const bool fresh = machine_->fresh;
        machine_->fresh = false;
        _longjmp(fresh ? machine_->ground : machine_->inside, 1);
    }
    machine_->arrive_outside();
}

void Fiber::suspend() {
    machine_->leave_inside();
    if (_setjmp(machine_->inside) == 0) _longjmp(machine_->outside, 1);
    machine_->arrive_inside();
}

}  // namespace via::model
