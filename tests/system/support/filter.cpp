#include "support/filter.hpp"

#include "call_filter.hpp"
#include "support/must.hpp"

namespace system_test {

void forbid(int call, int error) {
    require_call(call_filter::forbid(call, error, SECCOMP_FILTER_FLAG_TSYNC),
                 "seccomp for all threads");
}

}  // namespace system_test
