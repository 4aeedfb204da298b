#pragma once

#include <cstddef>

namespace via::test {

/// Calls of operator new so far, of the library, too.
std::size_t allocations_of_this_thread();

}  // namespace via::test
