// SPDX-License-Identifier: Apache-2.0
// ROCR's own functions, as its tables have them before this library replaces some.
#ifndef KEEL_SRC_CAPTURE_HSA_TABLE_H_
#define KEEL_SRC_CAPTURE_HSA_TABLE_H_

#include <stddef.h>

#include "capture/hsa/abi.h"

typedef struct hsa_functions_t {
#define CORE(slot, result, name, parameters)         result(*name) parameters;
#define AMD(first, second, result, name, parameters) result(*name) parameters; // NULL: not there
#include "capture/hsa/functions.def"
#undef CORE
#undef AMD
} hsa_functions_t;

// Filled by table_read; stays as it is.
extern hsa_functions_t hsa;

// Takes the functions out of the tables. False, after a warning in the log, if the tables have a
// version that this library does not know.
bool table_read(const hsa_tables_t *tables);

// Puts the functions that are set in `ours` into the tables.
void table_replace(hsa_tables_t *tables, const hsa_functions_t *ours);

#endif
