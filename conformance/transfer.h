// SPDX-License-Identifier: Apache-2.0
// Tables of transfers, for tests that submit or record them.
#ifndef CONFORMANCE_TRANSFER_H_
#define CONFORMANCE_TRANSFER_H_

#include <keel/keel.h>

// Runs the operations and returns when they have ended.
typedef void (*transfer_run_fn)(const keel_op_t *ops, size_t count);

void transfer_fill_table(transfer_run_fn run);
void transfer_update_table(transfer_run_fn run);
void transfer_copy_table(transfer_run_fn run);

#endif
