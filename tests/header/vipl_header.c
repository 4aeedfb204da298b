/* SPDX-License-Identifier: Apache-2.0 */
/* vipl.h in one C mode; the mode is the build's choice. */
#include "vipl_checks.h"
#include "vipl_program.h"

int main(void) { return vipl_program(); }
