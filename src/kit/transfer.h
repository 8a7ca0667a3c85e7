// SPDX-License-Identifier: Apache-2.0
// Files that are read into and written from buffers of a device with a queue of copies.
//
// Where the host can reach the buffer, the file is moved as a whole. Else it goes a piece at a time
// through staging, memory that both sides see, with room for two: while the device copies one
// piece, the file is at the next.
//
//     read:             file --> land: copy, and the next piece's file --> land: ...
//     write: copies --> staged: file --> land: copy into its place, and the next file --> land: ...
//
// The file's part of a piece is a step, of which the driver counts begin and end. It says when
// copies and steps are over; all calls but transfer_ops_t.done are made by one thread at a time.
#ifndef KEEL_SRC_KIT_TRANSFER_H_
#define KEEL_SRC_KIT_TRANSFER_H_

#include "base/aio.h"
#include "kit/bind.h"

enum { TRANSFER_PIECE = 16 << 20 };

// Those of a submission that are under way; zero at first, and part of the driver's struct for it.
typedef struct transfers_t {
    struct transfer_t *_Atomic landed; // whose step has ended
    struct transfer_t *staged;         // whose first copies are on the queue; see transfers_staged
} transfers_t;

// The driver's.
typedef struct transfer_ops_t {
    // Memory that the device knows by *address, until all transfers are over.
    keel_status_t (*stage)(transfers_t *transfers, uint64_t size, void **data, uint64_t *address);
    // Puts a copy on the queue.
    keel_status_t (*copy)(transfers_t *transfers, const bound_copy_t *copy);
    // Counts a step in. False, and nothing is counted, if the submission has failed: then no more
    // is done for it.
    bool (*begin)(transfers_t *transfers);
    // A step has ended. A status, which is consumed, is the submission's failure, by that command.
    // On a thread of aio's, or within the call that began the step; if it was the last, the command
    // may be gone when this returns.
    void (*done)(transfers_t *transfers, const keel_cmd_transfer_t *c, keel_status_t status);
} transfer_ops_t;

// Begins a read: a step that the caller has counted in, and that ends by `done` in any case.
void transfer_read(transfers_t *transfers, const transfer_ops_t *ops, aio_t *aio,
                   keel_cmd_transfer_t *c);
// Begins a write: puts its first copies on the queue, and then transfers_staged is due.
keel_status_t transfer_write(transfers_t *transfers, const transfer_ops_t *ops, aio_t *aio,
                             keel_cmd_transfer_t *c);
// The copies of writes that were begun are over: goes on with their files.
void transfers_staged(transfers_t *transfers);
// All copies and all steps are over: puts the next copies on the queue, and begins the next steps.
// True if there were any: then it is due again when they are over.
bool transfers_land(transfers_t *transfers);

#endif
