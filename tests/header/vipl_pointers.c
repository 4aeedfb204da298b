/* SPDX-License-Identifier: Apache-2.0 */
/* Every function assigned to a pointer of its VIPL 1.0 type. Compiled, never linked. */
#define VIPL_NOTHING
#define OUT VIPL_NOTHING
#include "vipl.h"

#define VIPL_FUNCTION(name, parameters) VIPL_FUNCTION_OF(VIP_RETURN, name, parameters)
#define VIPL_FUNCTION_OF(type, name, parameters) \
    extern type(*pointer_to_##name) parameters;  \
    type(*pointer_to_##name) parameters = name;
#include "vipl_functions.def"
