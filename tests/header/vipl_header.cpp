// SPDX-License-Identifier: Apache-2.0
// vipl.h in one C++ mode; the mode is the build's choice.
#include "vipl_checks.h"
#include "vipl_program.h"

#if __cplusplus >= 201103L
#include <type_traits>

// Programs and the library copy descriptors and attributes as bytes.
static_assert(std::is_standard_layout<VIP_DESCRIPTOR>::value, "VIPL 1.2");
static_assert(std::is_trivially_copyable<VIP_DESCRIPTOR>::value, "VIPL 1.2");
static_assert(std::is_trivially_copyable<VIP_CONTROL_SEGMENT>::value, "VIPL 1.2");
static_assert(std::is_standard_layout<VIP_NIC_ATTRIBUTES>::value, "VIPL 1.8");
static_assert(std::is_trivially_copyable<VIP_NIC_ATTRIBUTES>::value, "VIPL 1.8");
static_assert(std::is_enum<VIP_RETURN>::value, "VIPL 1.6");
#endif

int main() {
    VIP_DESCRIPTOR a = VIP_DESCRIPTOR();
    VIP_DESCRIPTOR b;
    a.CS.Length = 3;
    b = a;
    VIPL_EXPECT(b.Control.Length == 3);
    return vipl_program();
}
