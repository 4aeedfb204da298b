#pragma once
// A stack of its own for each model thread. A fiber may be abandoned half-way: the next start()
// uses its stack again, and nothing that lay on it is destroyed.

#include <cstddef>

namespace via::model {

class Fiber {
public:
    static constexpr std::size_t stack_bytes = 256 * 1024;

    Fiber();
    ~Fiber();
    Fiber(const Fiber&) = delete;
    Fiber& operator=(const Fiber&) = delete;

    // entry(argument) runs from the next resume() on and must never return.
    void start(void (*entry)(void*), void* argument);
    // From the scheduler: run the fiber until it suspends.
    void resume();
    // From inside the fiber: back to the scheduler.
    void suspend();

private:
    struct Machine;
    Machine* machine_;
};

}  // namespace via::model
