// SPDX-License-Identifier: Apache-2.0
#include "lab/kernel/kernel.hpp"

namespace via::lab::kernel {

Task<> Kernel::wake(MessageId message) {
    co_await lock(handler_, "lock of the run queue", message);
    co_await program_.use(Duration{costs_.process_switch},
                          {Share::kernel, "the process goes on", message});
}

}  // namespace via::lab::kernel
