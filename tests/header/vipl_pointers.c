/* SPDX-License-Identifier: Apache-2.0 */
/* Every function assigned to a pointer of its VIPL 1.0 type. Compiled, never linked. */
#define VIPL_NOTHING
#define OUT VIPL_NOTHING
#include "vipl.h"

#define VIPL_FUNCTION(name, parameters)               \
    extern VIP_RETURN(*pointer_to_##name) parameters; \
    VIP_RETURN(*pointer_to_##name) parameters = name;
#include "vipl_functions.def"
