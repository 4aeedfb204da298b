// Forbids system calls to all threads of this process and its children, as the filters of careful
// containers do.
#pragma once

namespace system_test {

/// From now on `call` fails with `error`.
void forbid(int call, int error);

}  // namespace system_test
