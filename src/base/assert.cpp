#include "base/assert.hpp"

#include <cstdio>
#include <cstdlib>

namespace via {

void assert_failed(const char* condition, const char* file, int line) {
    std::fprintf(stderr, "openvia: %s:%d: broken invariant: %s\n", file, line, condition);
    std::abort();
}

}  // namespace via
