// SPDX-License-Identifier: Apache-2.0
// The packets of a compute queue, one by one.
#ifndef SIM_AMD_ENGINE_PACKET_H_
#define SIM_AMD_ENGINE_PACKET_H_

#include "amd/engine/engine.h"

// What became of a packet. A queue with a failed packet has reported it and ended.
typedef enum { PACKET_DONE, PACKET_WAITS, PACKET_FAILED, PACKET_STOPPED } outcome_t;

// How many packets the ring of a queue holds, and where one of them lies.
static inline uint64_t packet_count(const queue_t *queue)
{
    return queue->size / PACKET_SIZE;
}

static inline uint8_t *packet_at(const queue_t *queue, uint64_t id)
{
    return queue->ring + id % packet_count(queue) * PACKET_SIZE;
}

// Runs a kernel dispatch to its end.
outcome_t packet_dispatch(queue_t *queue, isa_t *isa, const void *packet, uint64_t id);

// Does what any other packet wants if it can be done now, else PACKET_WAITS.
outcome_t packet_try(queue_t *queue, const void *packet, uint16_t header);

// Counts the completion signal down, if there is one, and wakes who waits for it.
outcome_t packet_complete(queue_t *queue, hsa_signal_t signal, uint64_t start);

// What a packet is and, of a barrier, what it waits for.
void packet_text(const queue_t *queue, const void *packet, uint16_t header, char *out, size_t size);

#endif
