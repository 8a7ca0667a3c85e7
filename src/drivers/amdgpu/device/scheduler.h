// SPDX-License-Identifier: Apache-2.0
// The scheduler, which runs on the GPU. A tick, on the control queue, looks at what waits and
// copies the packets of what is ready into its queue. The last packet of each retires it: it
// signals, and asks for the next tick. The host is told only when it wants to know. Also compiled
// for the host, for tests.
#ifndef KEEL_SRC_DRIVERS_AMDGPU_DEVICE_SCHEDULER_H_
#define KEEL_SRC_DRIVERS_AMDGPU_DEVICE_SCHEDULER_H_

#include "drivers/amdgpu/device/protocol.h"

typedef enum record_state_t { RECORD_WAITS, RECORD_READY, RECORD_FAILED } record_state_t;

// A record has ended: from here on it is the host's.
static inline void record_end(scheduler_t *s, record_t *record, bool tell)
{
    record_push(&s->done, record);
    // acq_rel: the last one to end sees that it is. Who counts down to 0 tells the host.
    tell |= PROTOCOL_ADD(&s->live, -1u, __ATOMIC_ACQ_REL) == 1;
    if (!tell) return;
    // acq_rel: pairs with the host's, which clears it and then takes the list.
    if (PROTOCOL_SWAP(&s->telling, 1, __ATOMIC_ACQ_REL)) return;
    PROTOCOL_ADD(&s->told, 1, __ATOMIC_RELAXED);
    packet_put(&s->control, &s->tell);
}

// Makes or fails the signals. Whether the host waits for one of them.
static inline bool record_signal(record_t *record)
{
    const cell_point_t *points = PROTOCOL_AT(const cell_point_t, record->points);
    bool tell = record->cause != 0;
    for (uint32_t i = 0; i < record->signal_count; i++) {
        const cell_point_t *point = &points[record->wait_count + i];
        cell_t *cell = PROTOCOL_AT(cell_t, point->cell);
        if (record->cause) {
            cell_fail(cell, record->cause);
        } else if (!cell_signal(cell, point->value)) {
            record->refused = i + 1; // neither this nor those behind it
            return true;
        }
        // seq_cst: pairs with the host's, between its write of `awaited` and its look at the value.
        PROTOCOL_FENCE();
        tell |= point->value >= PROTOCOL_LOAD(&cell->awaited, __ATOMIC_RELAXED);
    }
    return tell;
}

static inline record_state_t record_state(record_t *record)
{
    const cell_point_t *points = PROTOCOL_AT(const cell_point_t, record->points);
    record_state_t state = RECORD_READY;
    for (uint32_t i = 0; i < record->wait_count; i++) {
        cell_t *cell = PROTOCOL_AT(cell_t, points[i].cell);
        // acquire: pairs with cell_signal and cell_fail.
        uint64_t value = PROTOCOL_LOAD(&cell->value, __ATOMIC_ACQUIRE);
        if ((value & ~PROTOCOL_FAILED) >= points[i].value) continue;
        state = RECORD_WAITS;
        if (!(value & PROTOCOL_FAILED)) continue;
        record->cause = PROTOCOL_LOAD(&cell->cause, __ATOMIC_RELAXED);
        return RECORD_FAILED;
    }
    // relaxed: the tick that the host asked for comes behind its write.
    uint64_t cancel = PROTOCOL_LOAD(&record->cancel, __ATOMIC_RELAXED);
    if (state == RECORD_READY || !cancel) return state;
    record->cause = cancel;
    return RECORD_FAILED;
}

static inline bool queue_has_room(const record_t *record)
{
    const ring_queue_t *queue = PROTOCOL_AT(const ring_queue_t, record->queue);
    // acquire: pairs with scheduler_retire, before which the packets were read.
    return PROTOCOL_LOAD(&queue->used, __ATOMIC_ACQUIRE) + record->packet_count <= queue->room;
}

// Copies the packets, for which there is room. Once this has rung, the record may end.
static inline void record_issue(scheduler_t *s, const record_t *record)
{
    ring_queue_t *queue = PROTOCOL_AT(ring_queue_t, record->queue);
    const packet_t *from = PROTOCOL_AT(const packet_t, record->packets);
    packet_t *ring = PROTOCOL_AT(packet_t, queue->packets);
    uint32_t count = record->packet_count;
    PROTOCOL_ADD(&queue->used, count, __ATOMIC_RELAXED);
    uint64_t first = PROTOCOL_ADD(PROTOCOL_AT(uint64_t, queue->write), count, __ATOMIC_RELAXED);
    s->issued += count;
    for (uint32_t i = 0; i < count; i++)
        for (int w = 1; w < 16; w++) ring[(first + i) & queue->mask].words[w] = from[i].words[w];
    // release: pairs with the packet processor, which reads the rest when a header is valid.
    PROTOCOL_RELEASE();
    for (uint32_t i = 0; i < count; i++)
        PROTOCOL_STORE(&ring[(first + i) & queue->mask].words[0], from[i].words[0],
                       __ATOMIC_RELAXED);
    PROTOCOL_STORE(PROTOCOL_AT(uint64_t, queue->doorbell), first + count - 1, __ATOMIC_RELEASE);
}

// Puts what came behind what waits.
static inline void records_accept(scheduler_t *s)
{
    uint64_t came = records_take(&s->inbox);
    if (!came) return;
    if (s->waiting)
        PROTOCOL_AT(record_t, s->last)->next = came;
    else
        s->waiting = came;
    while (came) {
        s->last = came;
        came = PROTOCOL_AT(record_t, came)->next;
    }
}

// Takes a record out of those that wait; `before` is the one in front of it.
static inline void record_unlink(scheduler_t *s, uint64_t before, uint64_t at)
{
    uint64_t next = PROTOCOL_AT(record_t, at)->next;
    if (before)
        PROTOCOL_AT(record_t, before)->next = next;
    else
        s->waiting = next;
    if (at == s->last) s->last = before;
}

// One at a time.
static inline void scheduler_tick(scheduler_t *s)
{
    uint64_t before = 0, next;
    // acq_rel: pairs with tick_ask.
    PROTOCOL_SWAP(&s->ticking, 0, __ATOMIC_ACQ_REL);
    s->ticks++;
    records_accept(s);
    for (uint64_t at = s->waiting; at; at = next) {
        record_t *record = PROTOCOL_AT(record_t, at);
        record_state_t state = record_state(record);
        next = record->next;
        if (state == RECORD_WAITS || (state == RECORD_READY && !queue_has_room(record))) {
            before = at;
            continue;
        }
        record_unlink(s, before, at);
        if (state == RECORD_READY) {
            record_issue(s, record);
        } else {
            record_signal(record);
            record_end(s, record, true);
            tick_ask(s); // others may wait for what it failed
        }
    }
}

// The packets of a record before this one have ended.
static inline void scheduler_retire(scheduler_t *s, record_t *record)
{
    ring_queue_t *queue = PROTOCOL_AT(ring_queue_t, record->queue);
    // release: pairs with queue_has_room.
    PROTOCOL_ADD(&queue->used, -record->packet_count, __ATOMIC_RELEASE);
    bool tell = record_signal(record);
    tick_ask(s);
    record_end(s, record, tell);
}

#endif
