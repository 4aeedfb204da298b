// SPDX-License-Identifier: Apache-2.0
#include "vipl_pointers.c"
