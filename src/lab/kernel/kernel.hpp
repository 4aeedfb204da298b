// What a kernel spends when it takes part in messages: traps, locks, interrupts, copies, and
// processes that sleep. The program runs on one processor; interrupts come to the other one, if
// there is one.
#pragma once

#include "lab/kernel/setting.hpp"
#include "lab/machine.hpp"
#include "lab/parts.hpp"
#include "lab/resource.hpp"

namespace via::lab::kernel {

class Kernel {
public:
    /// Everything given outlives it. `program` and `handler` may be the same processor.
    Kernel(Resource& program, Resource& handler, const Costs& costs, const Setting& setting,
           const Without& without)
        : program_(program),
          handler_(handler),
          costs_(costs),
          setting_(setting),
          without_(without) {}

    Resource& program() { return program_; }
    Resource& handler() { return handler_; }

    Resource::Use system_call(MessageId message) {
        return program_.use(Duration{costs_.system_call},
                            {Share::system_call, "system call", message});
    }
    Resource::Use trap(MessageId message) {
        return program_.use(Duration{costs_.trap}, {Share::system_call, "fast trap", message});
    }
    /// A lock of the kernel's, taken and given back.
    Resource::Use lock(Resource& on, const char* what, MessageId message) {
        const bool contended = setting_.smp && !without_.locks;
        return on.use(Duration{costs_.lock + (contended ? costs_.lock_smp : 0)},
                      {Share::lock, what, message});
    }
    /// The same within a fast trap, which has shut interrupts out: no more with two processors.
    Resource::Use lock_in_trap(const char* what, MessageId message) {
        return program_.use(Duration{costs_.lock}, {Share::lock, what, message});
    }
    /// A lock of a library's: no interrupt is shut out.
    Resource::Use library_lock(MessageId message) {
        const bool contended = setting_.smp && !without_.locks;
        return program_.use(Duration{contended ? costs_.user_lock_smp : 0},
                            {Share::lock, "lock of the library", message});
    }
    Resource::Use interrupt(MessageId message) {
        return handler_.use(Duration{without_.interrupts ? 0 : costs_.interrupt},
                            {Share::interrupt, "interrupt", message});
    }
    Resource::Use copy(Resource& on, std::int64_t bytes, const char* what, MessageId message) {
        const Duration span = without_.copies ? Duration{} : time_of(bytes, costs_.copy);
        return on.use(span, {Share::copy, what, message});
    }
    Resource::Use work(Resource& on, std::int64_t cost, const char* what, MessageId message) {
        return on.use(Duration{cost}, {Share::kernel, what, message});
    }
    /// A process that sleeps is woken, and goes on.
    Task<> wake(MessageId message);
    /// Would a wait that took so long have gone to sleep?
    bool slept(Duration waited) const {
        const std::int64_t spin = setting_.smp ? costs_.spin_smp : costs_.spin;
        return setting_.blocks && !without_.sleeping && waited.ns > spin;
    }

private:
    Resource& program_;
    Resource& handler_;
    const Costs& costs_;
    const Setting& setting_;
    const Without& without_;
};

}  // namespace via::lab::kernel
