// SPDX-License-Identifier: Apache-2.0
// Hazards, with hazards=1: two accesses of one byte of a buffer that Metal does not track, of which
// one writes, and which nothing orders. Such a pair ends the process, whatever order the two
// happened to run in. What orders works:
//
//     in one encoder   a barrier between them; all works of a serial encoder
//     a fence          what an encoder had done when it updated the fence comes before what another
//                      one does after it has waited for it
//     an event         what a command buffer had done when it signalled comes before what another
//                      one, or the same, does after it has waited for it
//     the host         what it has seen the end of (by a handler, a wait, the status, an event)
//                      comes before what is committed, and before events it raises, after that
//
// That one command buffer of a queue comes behind another orders nothing. Kernels are compiled to
// tell of each load and store (compile.c). Two atomic operations are no hazard, and so are a blit's
// of one word and an atomic one.
//
// The host's own accesses cannot be seen, but what it has written can, in buffers of shared storage
// of up to 64 KiB: a byte that changes while no work writes it, from a commit to the moment in
// which the host sees the end.
//
// Without the setting nothing here does anything, and numbers are 0.
#ifndef SIM_METAL_HAZARD_H_
#define SIM_METAL_HAZARD_H_

#include "metal/buffer.h"

// Works of an encoder, up to `before`.
typedef struct cover_t {
    unsigned encoder, before;
} cover_t;

// What comes before something.
typedef struct known_t {
    uint64_t moment; // whatever the host had seen the end of then
    cover_t *covers; // and these; owned
    unsigned count;
} known_t;

typedef enum access_t { READS, WRITES, READS_ATOMIC, WRITES_ATOMIC } access_t;

// A number for a command buffer, and for an encoder of it.
unsigned hazard_batch(void);
unsigned hazard_encoder(unsigned batch);
// Of a command buffer: a buffer that it uses, before it is committed; it is committed; its works
// have ended; the host sees that; it is gone.
void hazard_uses(unsigned batch, const void *object);
void hazard_committed(unsigned batch);
void hazard_ended(unsigned batch);
void hazard_seen(unsigned batch);
void hazard_gone(unsigned batch);
// It signals an event, or has waited for one, when its works are done.
void hazard_signals(unsigned batch, known_t *event);
void hazard_waited(unsigned batch, const known_t *event);
// The host raises an event, or sees that it was raised.
void hazard_raises(known_t *event);
void hazard_sees(const known_t *event);

// In an encoder, when its works are done.
void hazard_barrier(unsigned encoder);
void hazard_update(unsigned encoder, known_t *fence);
void hazard_wait(unsigned encoder, const known_t *fence);

// Around what a work does on this thread. `serial`: its encoder's works follow each other.
void hazard_begin(unsigned encoder, bool serial, const char *what, const char *name);
void hazard_touch(const void *at, size_t size, access_t access);
void hazard_end(unsigned encoder);

// Buffers that Metal does not track.
void hazard_add(buffer_t *buffer);
void hazard_remove(buffer_t *buffer);
// The host makes the GPU's copy of managed storage equal to its own.
void hazard_flush(const buffer_t *buffer, range_t range);

#endif
