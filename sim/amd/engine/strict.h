// SPDX-License-Identifier: Apache-2.0
// Mistakes of those who write packets, which a GPU would not notice and which would show now and
// then, as something else. Each is a line in the log that names queue, packet and kernel; the queue
// goes on as a GPU would.
#ifndef SIM_AMD_ENGINE_STRICT_H_
#define SIM_AMD_ENGINE_STRICT_H_

#include "amd/engine/packet.h"

// Looks at a packet that is about to run, or to wait; with its arguments if it is a dispatch.
void strict_begin(watched_t *watched, const queue_t *queue, const void *packet);

// Compares it when it is over, before its signal tells of that.
void strict_end(watched_t *watched, const queue_t *queue);

// A doorbell has another value than before. Packets before next have begun; written is the write
// index.
void strict_doorbell(const queue_t *queue, uint64_t value, uint64_t next, uint64_t written);

// The same for a copy engine, whose doorbell takes the end of the packets, in bytes. It was at
// before, and what is before read is over.
void strict_copy_doorbell(const queue_t *queue, uint64_t value, uint64_t before, uint64_t read);

// A packet of a copy engine at byte read had so many bytes; the doorbell was rung for those before
// rung.
void strict_copy_packet(const queue_t *queue, uint64_t read, uint64_t bytes, uint64_t rung);

// The queue ends; packets from next on have not begun.
void strict_queue_end(const queue_t *queue, uint64_t next);

// A packet is over and counts its signal down from this value.
void strict_signal(const queue_t *queue, hsa_signal_t signal, int64_t value);

#endif
