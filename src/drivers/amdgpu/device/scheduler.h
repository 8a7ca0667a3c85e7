// SPDX-License-Identifier: Apache-2.0
// The scheduler, which runs on the GPU. A tick, on the control queue, looks at what came and at who
// waits for cells that have changed, and writes the packets of what is ready into its queue. The
// last packet of each segment goes on with the next one, or retires the record: signals, and asks
// for the next tick. The host is told only when it wants to know. Also compiled for the host, for
// tests.
#ifndef KEEL_SRC_DRIVERS_AMDGPU_DEVICE_SCHEDULER_H_
#define KEEL_SRC_DRIVERS_AMDGPU_DEVICE_SCHEDULER_H_

#include "drivers/amdgpu/device/issue.h"
#include "drivers/amdgpu/device/shelf.h"
#include "drivers/amdgpu/device/waiter.h"

typedef enum record_state_t {
    RECORD_WAITS,
    RECORD_READY,
    RECORD_FITS, // the same, and there is room for it
    RECORD_FAILED,
} record_state_t;
typedef enum grant_t { GRANT_DONE, GRANT_LATER, GRANT_HOST } grant_t;

// A record has ended: from here on it is the host's.
static inline void record_end(scheduler_t *s, record_t *record, bool tell)
{
    record_push(&s->done, record);
    // acq_rel: the last one to end sees that it is. Who counts down to 0 tells the host.
    tell |= PROTOCOL_ADD(&s->live, -1u, __ATOMIC_ACQ_REL) == 1;
    if (tell) host_tell(s);
}

// Makes or fails the signals, and wakes who waits for them. Whether the host does.
static inline bool record_signal(record_t *record)
{
    bool tell = record->cause != 0;
    for (uint32_t i = 0; i < record->signal_count; i++) {
        const cell_point_t *point = PROTOCOL_AT(const cell_point_t, record->signals) + i;
        cell_t *cell = PROTOCOL_AT(cell_t, point->cell);
        if (record->cause) {
            cell_fail(cell, record->cause);
        } else if (!cell_signal(cell, point->value)) {
            record->refused = i + 1; // neither this nor those behind it
            return true;
        }
        cell_wake(cell); // its fence is for `awaited`, too
        tell |= point->value >= PROTOCOL_LOAD(&cell->awaited, __ATOMIC_RELAXED);
    }
    return tell;
}

// The first that waits for a cell: what it waits for may have come before others could see that it
// is wanted. Then a tick looks again.
static inline void wait_check(wait_t *wait)
{
    cell_side_t *side = PROTOCOL_AT(cell_side_t, wait->side);
    const cell_t *cell = PROTOCOL_AT(const cell_t, side->cell);
    // seq_cst: pairs with cell_wake.
    PROTOCOL_FENCE();
    // The bit of a failed one is above all values.
    if (PROTOCOL_LOAD(&cell->value, __ATOMIC_RELAXED) < wait->value) return;
    side_touch(side);
    tick_ask(PROTOCOL_AT(scheduler_t, side->scheduler));
}

// A record that came: it is put among those that wait for the cells which it needs.
static inline record_state_t record_wait(record_t *record)
{
    wait_t *waits = PROTOCOL_AT(wait_t, record->waits);
    for (uint32_t i = 0; i < record->wait_count; i++) {
        const cell_side_t *side = PROTOCOL_AT(const cell_side_t, waits[i].side);
        const cell_t *cell = PROTOCOL_AT(const cell_t, side->cell);
        // acquire: pairs with cell_signal and cell_fail.
        uint64_t value = PROTOCOL_LOAD(&cell->value, __ATOMIC_ACQUIRE);
        if ((value & ~PROTOCOL_FAILED) >= waits[i].value) continue;
        if (value & PROTOCOL_FAILED) {
            record->cause = PROTOCOL_LOAD(&cell->cause, __ATOMIC_RELAXED);
            return RECORD_FAILED;
        }
        wait_link(&waits[i]);
        if (!waits[i].previous) wait_check(&waits[i]);
        record->unmet++;
    }
    if (!record->unmet) return RECORD_READY;
    // relaxed: the tick that the host asked for comes behind its write.
    record->cause = PROTOCOL_LOAD(&record->cancel, __ATOMIC_RELAXED);
    return record->cause ? RECORD_FAILED : RECORD_WAITS;
}

// Whether there is room for the record's packets in its queue.
static inline bool queue_has_room(const record_t *record)
{
    const ring_queue_t *queue = PROTOCOL_AT(const ring_queue_t, record->queue);
    // acquire: pairs with record_retire, before which the packets were read.
    return AGENT_LOAD(&queue->used, __ATOMIC_ACQUIRE) + record->room <= queue->room;
}

// The same, behind those that starve for it.
static inline bool record_fits(const record_t *record)
{
    const ring_queue_t *queue = PROTOCOL_AT(const ring_queue_t, record->queue);
    return !queue->starved.first && queue_has_room(record);
}

// Puts a queue on the list of those for which records starve.
static inline void queue_list(scheduler_t *s, ring_queue_t *queue)
{
    queue->next = s->full;
    s->full = (uintptr_t)queue;
}

// Keeps a record until there is room for it, behind those that have come before.
static inline void record_starve(scheduler_t *s, record_t *record)
{
    ring_queue_t *queue = PROTOCOL_AT(ring_queue_t, record->queue);
    if (RING_HAS(RING_MESSAGES)) message_note(s, MESSAGE_STARVED, record->room);
    if (!queue->starved.first) queue_list(s, queue);
    record_list(&queue->starved, record);
}

// The handle with that number of a list.
static inline handle_t *handle_at(uint64_t handles, uint32_t number)
{
    return PROTOCOL_AT(handle_t, PROTOCOL_AT(const uint64_t, handles)[number]);
}

// All went well: gives back the blocks, before others can see that.
static inline void blocks_give_back(record_t *record)
{
    shelf_t *shelf = PROTOCOL_AT(shelf_t, record->shelf);
    for (uint32_t i = 0; i < record->return_count; i++)
        if (!handle_return(shelf, handle_at(record->returns, i)))
            record_fault(record, FAULT_RETURNED, i, NULL);
}

// Wakes who waits for what the record had. Whether the host does, for blocks.
static inline bool room_give_back(scheduler_t *s, const record_t *record)
{
    ring_queue_t *queue = PROTOCOL_AT(ring_queue_t, record->queue);
    const shelf_t *shelf = PROTOCOL_AT(const shelf_t, record->shelf);
    const shelf_side_t *side = shelf ? PROTOCOL_AT(const shelf_side_t, shelf->sides) : NULL;
    // release: pairs with queue_has_room.
    AGENT_ADD(&queue->used, -record->room, __ATOMIC_RELEASE);
    // seq_cst: pairs with queues_keep, and record_lack, which may be another GPU's or the host's.
    // Either this sees who waits, or they see what came back.
    if (shelf)
        PROTOCOL_FENCE();
    else
        AGENT_FENCE();
    // This scheduler first, then those of the shelf, by one loop: tick_ask is inlined once.
    uint32_t asks = AGENT_LOAD(&s->starving, __ATOMIC_RELAXED);
    scheduler_t *asked = s;
    for (uint32_t left = shelf ? shelf->side_count : 0;; left--, side++) {
        if (asks) tick_ask(asked);
        if (!left) break;
        asks = PROTOCOL_LOAD(&side->waiting, __ATOMIC_RELAXED);
        asked = PROTOCOL_AT(scheduler_t, side->scheduler);
    }
    return shelf && PROTOCOL_LOAD(&shelf->host, __ATOMIC_RELAXED);
}

// The record has no more packets but the one that runs this. `over`: all of it has run.
static inline void record_retire(scheduler_t *s, record_t *record, bool over)
{
    if (over && record->shelf) blocks_give_back(record);
    bool tell = room_give_back(s, record) | record->request;
    // relaxed: it is of this thread, or of packets that have ended.
    bool signals = !AGENT_LOAD(&record->fault, __ATOMIC_RELAXED);
    tell |= !signals || record_signal(record);
    record_end(s, record, tell);
}

// The packet behind a segment, and the doorbell for all of them. With no other packet in front of
// it, it may be the record's first: then it acquires what the waits were for.
static inline void advance_put(const issue_t *i, uint32_t place)
{
    const ring_queue_t *queue = PROTOCOL_AT(const ring_queue_t, i->record->queue);
    uint64_t number = i->first + place;
    advance_args_t *a = PROTOCOL_AT(advance_args_t, queue->advances) + (number & i->mask);
    packet_t *at = packet_at(i, place);
    a->record = i->record->self;
    packet_write(at, &i->scheduler->advance, (uintptr_t)a, 0);
    uint32_t header = i->scheduler->advance.words[0];
    if (!place) header = (header & ~(uint32_t)PACKET_ACQUIRE) | PACKET_SYSTEM;
    packet_open(at, header);
    AGENT_SEND(PROTOCOL_AT(uint64_t, queue->doorbell), number);
}

// The packet in front of a wide segment, whose work-items write the others.
static inline void issue_put(const issue_t *i, const segment_t *segment)
{
    packet_t *at = packet_at(i, 0);
    uint64_t address = ((uintptr_t)i->record->issue_args + 15) & ~(uint64_t)15;
    issue_args_t *a = PROTOCOL_AT(issue_args_t, address);
    *a = (issue_args_t){i->record->self, (uintptr_t)segment, i->first + 1, i->slots};
    packet_write(at, &i->scheduler->issue, address, 0);
    at->words[PACKET_GRID] = (segment->count + PROGRAM_WIDE - 1) / PROGRAM_WIDE * PROGRAM_WIDE;
    packet_open(at, i->scheduler->issue.words[0]);
}

// Writes the packets of a segment, or has them written. Once this has rung, the record may end.
static inline void segment_issue(scheduler_t *s, record_t *record, const segment_t *segment)
{
    const ring_queue_t *queue = PROTOCOL_AT(const ring_queue_t, record->queue);
    const program_command_t *c = PROTOCOL_AT(const program_command_t, segment->commands);
    const program_command_t *end = c + segment->count;
    bool wide = segment_is_wide(segment);
    uint32_t packets = segment->packets + (wide ? 2 : 1);
    // relaxed: the number is all that is wanted of it.
    uint64_t first = PROTOCOL_ADD(PROTOCOL_AT(uint64_t, queue->write), packets, __ATOMIC_RELAXED);
    issue_t i = issue_of(s, record, segment, first);
    if (RING_HAS(RING_OPERATIONS)) i.slots = slots_take(s, segment->count);
    AGENT_ADD(&s->issued, packets, __ATOMIC_RELAXED);
    if (wide)
        issue_put(&i, segment);
    else
        for (; c != end; c++) command_issue(&i, c);
    advance_put(&i, packets - 1);
}

// The rounds of a loop. False: there are too many.
static inline bool loop_count(record_t *record, const segment_t *segment, uint32_t value)
{
    uint32_t *rounds = &record->loops[segment->depth];
    if (value && segment->most && *rounds >= segment->most) {
        record_fault(record, FAULT_LOOP, segment->offset, NULL);
        return false;
    }
    *rounds = value ? *rounds + 1 : 0;
    return true;
}

// The segment behind one whose packets have ended; PROGRAM_NONE: there is none.
static inline uint32_t segment_next(record_t *record, const step_t *step, const segment_t *segment)
{
    if (segment->end == END_RETURN) return (uint32_t)PROGRAM_NONE;
    if (segment->end == END_GOTO) return segment->target;
    const uint32_t *word = PROTOCOL_AT(const uint32_t, place_address(step, &segment->value));
    // relaxed: the packets that wrote it have ended.
    uint32_t value = AGENT_LOAD(word, __ATOMIC_RELAXED);
    const way_t *ways = PROTOCOL_AT(const way_t, segment->ways);
    if (segment->end == END_WHILE && !loop_count(record, segment, value)) return segment->other;
    if (segment->end != END_SWITCH) return value ? segment->target : segment->other;
    for (uint32_t i = 0; i < segment->way_count; i++)
        if (ways[i].match == value) return ways[i].target;
    return segment->other;
}

static inline void step_begin(record_t *record, uint32_t step)
{
    record->step = step;
    record->segment = 0;
    for (int i = 0; i < RECORD_LOOPS; i++) record->loops[i] = 0;
}

// Whether something keeps the record from going on; then it has been retired.
static inline bool record_stops(scheduler_t *s, record_t *record)
{
    // relaxed, both: the fault is of packets that have ended; the host may come too late.
    uint64_t fault = AGENT_LOAD(&record->fault, __ATOMIC_RELAXED);
    uint64_t cancel = PROTOCOL_LOAD(&record->cancel, __ATOMIC_RELAXED);
    bool over = record->step == record->step_count;
    if (!fault && !over && !cancel) return false;
    if (!fault && !over) record->cause = cancel;
    if (fault) message_note(s, MESSAGE_FAULT, fault >> 32);
    record_retire(s, record, over && !fault);
    return true;
}

// Goes on with a record that has no packets left to run: up to the next ones. `first`: none has run
// yet. Then a packet comes before a look at a word that decides: see segment_is_wide. A call would
// need a stack, which the GPU has to make room for.
__attribute__((always_inline)) static inline void scheduler_advance(scheduler_t *s,
                                                                    record_t *record, bool first)
{
    enum { EMPTY = 8 }; // segments without commands; then a packet lets others have their turn
    for (uint32_t empty = 0; !record_stops(s, record);) {
        const step_t *step = PROTOCOL_AT(const step_t, record->steps) + record->step;
        const program_t *program = PROTOCOL_AT(const program_t, step->program);
        const segment_t *segment =
            PROTOCOL_AT(const segment_t, program->segments) + record->segment;
        bool branches = first && segment->end != END_RETURN;
        if (!record->entered && (segment->count || branches || empty++ == EMPTY)) {
            record->entered = 1;
            segment_issue(s, record, segment);
            return;
        }
        record->entered = 0;
        uint32_t next = segment_next(record, step, segment);
        if (next == (uint32_t)PROGRAM_NONE)
            step_begin(record, record->step + 1);
        else
            record->segment = next;
    }
}

// The waits are over: buffers of pools have their memory now. What they are bound to gets their
// addresses; a fault, if one has none.
static inline void lates_bind(record_t *record)
{
    const late_t *late = PROTOCOL_AT(const late_t, record->lates);
    for (uint32_t i = 0; i < record->late_count; i++, late++) {
        // relaxed: the wait for its alloca is over.
        uint64_t address = PROTOCOL_LOAD(PROTOCOL_AT(uint64_t, late->word), __ATOMIC_RELAXED);
        if (!address) {
            record_fault(record, FAULT_MISSING, i, NULL);
            return;
        }
        PROTOCOL_AT(table_entry_t, late->entry)->address += address;
    }
}

// Whether the buffers are as the record needs them, and their bins open: those that get a block
// have no memory; without such ones, those that give one back have it, and for themselves.
static inline bool handles_suit(const shelf_t *shelf, const record_t *record)
{
    uint32_t count = record->grant_count ? record->grant_count : record->return_count;
    uint64_t handles = record->grant_count ? record->grants : record->returns;
    for (uint32_t i = 0; i < count; i++) {
        const handle_t *handle = handle_at(handles, i);
        // relaxed: the waits are over.
        bool has = PROTOCOL_LOAD(&handle->address, __ATOMIC_RELAXED);
        bool own = PROTOCOL_LOAD(&handle->block, __ATOMIC_RELAXED) &&
                   !PROTOCOL_LOAD(&handle->lent, __ATOMIC_RELAXED);
        uint32_t rule = PROTOCOL_LOAD(&shelf_bin(shelf, handle->bin)->rule, __ATOMIC_RELAXED);
        if ((record->grant_count ? has : !own) || rule == SHELF_RULE_CLOSED) return false;
    }
    return true;
}

// What becomes of a record for which a bin has too few blocks.
static inline grant_t bin_refuse(const shelf_bin_t *bin)
{
    // relaxed: the host has records look again when it has changed the rule.
    return PROTOCOL_LOAD(&bin->rule, __ATOMIC_RELAXED) == SHELF_RULE_WAITS ? GRANT_LATER
                                                                           : GRANT_HOST;
}

// The first bin that has too few blocks for the record; NULL: there is none.
static inline const shelf_bin_t *bin_lacking(const record_t *record)
{
    const shelf_t *shelf = PROTOCOL_AT(const shelf_t, record->shelf);
    const shelf_need_t *needs = PROTOCOL_AT(const shelf_need_t, record->needs);
    for (uint32_t i = 0; i < record->need_count; i++) {
        const shelf_bin_t *bin = shelf_bin(shelf, needs[i].bin);
        if (PROTOCOL_LOAD(&bin->free, __ATOMIC_RELAXED) < needs[i].count) return bin;
    }
    return NULL;
}

// Takes what the record needs off the counts of the bins, all or none. It looks at all first: who
// takes some and gives them back has those look again that wait, and that may be itself.
static inline grant_t needs_take(shelf_t *shelf, const record_t *record)
{
    const shelf_need_t *needs = PROTOCOL_AT(const shelf_need_t, record->needs);
    const shelf_bin_t *lacking = bin_lacking(record);
    if (lacking) return bin_refuse(lacking);
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < record->need_count; i++) {
        shelf_bin_t *bin = shelf_bin(shelf, needs[i].bin);
        bytes += needs[i].count * bin->block_size;
        if (bin_count_off(bin, needs[i].count)) continue;
        for (uint32_t k = 0; k < i; k++)
            PROTOCOL_ADD(&shelf_bin(shelf, needs[k].bin)->free, needs[k].count, __ATOMIC_RELAXED);
        if (i) shelf_wake(shelf); // those that have found too few meanwhile
        return bin_refuse(bin);
    }
    shelf_use(shelf, bytes);
    return GRANT_DONE;
}

// The waits are over: takes the blocks that the record needs, all or none.
static inline grant_t blocks_take(record_t *record)
{
    shelf_t *shelf = PROTOCOL_AT(shelf_t, record->shelf);
    if (!handles_suit(shelf, record)) return GRANT_HOST;
    grant_t grant = needs_take(shelf, record);
    if (grant != GRANT_DONE) return grant;
    for (uint32_t i = 0; i < record->grant_count; i++)
        if (!handle_grant(shelf, handle_at(record->grants, i)))
            record_fault(record, FAULT_GRANTED, i, NULL);
    return GRANT_DONE;
}

// Keeps a record until blocks come back. Whether some have by now, or it need not wait.
static inline bool record_lack(record_t *record)
{
    if (!record->lacks)
        PROTOCOL_ADD(&PROTOCOL_AT(shelf_side_t, record->side)->waiting, record->grant_count,
                     __ATOMIC_RELAXED);
    record->lacks = 1;
    // seq_cst: pairs with room_give_back, and with the host's. Either that sees who waits, or this
    // sees the blocks.
    PROTOCOL_FENCE();
    const shelf_bin_t *lacking = bin_lacking(record);
    return !lacking || bin_refuse(lacking) != GRANT_LATER;
}

static inline void record_lacks_not(record_t *record)
{
    if (!record->lacks) return;
    record->lacks = 0;
    PROTOCOL_ADD(&PROTOCOL_AT(shelf_side_t, record->side)->waiting, -record->grant_count,
                 __ATOMIC_RELAXED);
}

// There is room for it, and there are blocks: it goes.
static inline void record_go(scheduler_t *s, record_t *record)
{
    ring_queue_t *queue = PROTOCOL_AT(ring_queue_t, record->queue);
    AGENT_ADD(&queue->used, record->room, __ATOMIC_RELAXED);
    lates_bind(record);
    scheduler_advance(s, record, true);
}

// Keeps a record in a list of its own kind, for later.
static inline void record_keep(scheduler_t *s, record_t *record, bool room)
{
    if (!room) {
        record_starve(s, record);
        return;
    }
    bool again = record_lack(record);
    record_list(&s->lacking, record);
    if (again) tick_ask(s);
}

// Its waits are over, and it will not run here: it has failed, or the host is to run it.
static inline void record_refuse(scheduler_t *s, record_t *record)
{
    waits_unlink(record);
    if (record->cause)
        record_signal(record);
    else
        record->request = REQUEST_WORK;
    record_end(s, record, true);
}

// Lets a record go, or keeps it for later. It is in no list of records.
static inline void record_place(scheduler_t *s, record_t *record, record_state_t state)
{
    bool room = state == RECORD_FITS || (state == RECORD_READY && record_fits(record));
    grant_t grant = room && record->shelf ? blocks_take(record) : GRANT_DONE;
    if (record->request == REQUEST_WORK) grant = GRANT_HOST;
    if (state == RECORD_WAITS) {
        record_list(&s->waiting, record);
        return;
    }
    // relaxed: the tick that the host asked for comes behind its write.
    if (grant == GRANT_LATER) record->cause = PROTOCOL_LOAD(&record->cancel, __ATOMIC_RELAXED);
    bool ends = record->cause || grant == GRANT_HOST;
    if (!ends && (!room || grant == GRANT_LATER)) {
        record_keep(s, record, room);
        return;
    }
    record_lacks_not(record);
    if (ends)
        record_refuse(s, record);
    else
        record_go(s, record);
}

// The first of those that wait for a cell waits no more, and with it maybe its record.
static inline void wait_end(scheduler_t *s, wait_t *wait, uint64_t cause)
{
    record_t *record = PROTOCOL_AT(record_t, wait->record);
    wait_unlink(wait);
    record->cause = cause;
    if (--record->unmet && !cause) return;
    waits_unlink(record);
    record_unlist(&s->waiting, record);
    record_list(&s->lacking, record); // which this tick looks at
}

// A cell that has changed: who waits for it up to its value, or for ever.
static inline void side_look(scheduler_t *s, cell_side_t *side)
{
    const cell_t *cell = PROTOCOL_AT(const cell_t, side->cell);
    // acq_rel: pairs with side_touch. Either this sees the value, or the cell is put on the list
    // again.
    PROTOCOL_SWAP(&side->changed, 0, __ATOMIC_ACQ_REL);
    // acquire: pairs with cell_signal and cell_fail.
    uint64_t value = PROTOCOL_LOAD(&cell->value, __ATOMIC_ACQUIRE);
    bool failed = value & PROTOCOL_FAILED;
    while (side->waiters) {
        wait_t *wait = PROTOCOL_AT(wait_t, side->waiters);
        bool reached = (value & ~PROTOCOL_FAILED) >= wait->value;
        s->looks++;
        if (!reached && !failed) return;
        wait_end(s, wait, reached ? 0 : PROTOCOL_LOAD(&cell->cause, __ATOMIC_RELAXED));
    }
}

static inline void sides_look(scheduler_t *s)
{
    // acquire: pairs with side_touch.
    uint64_t at = PROTOCOL_SWAP(&s->changed, 0, __ATOMIC_ACQUIRE);
    while (at) {
        cell_side_t *side = PROTOCOL_AT(cell_side_t, at);
        at = PROTOCOL_LOAD(&side->next, __ATOMIC_RELAXED); // before it may be put there again
        side_look(s, side);
    }
}

// The host has cancelled records: those of them that wait fail.
static inline void cancels_look(scheduler_t *s)
{
    uint64_t next;
    // acquire: pairs with the host's release, behind the causes.
    if (!PROTOCOL_LOAD(&s->cancels, __ATOMIC_RELAXED)) return;
    PROTOCOL_SWAP(&s->cancels, 0, __ATOMIC_ACQUIRE);
    for (uint64_t at = s->waiting.first; at; at = next) {
        record_t *record = PROTOCOL_AT(record_t, at);
        next = record->next;
        record->cause = PROTOCOL_LOAD(&record->cancel, __ATOMIC_RELAXED);
        if (!record->cause) continue;
        waits_unlink(record);
        record_unlist(&s->waiting, record);
        record_list(&s->lacking, record);
    }
}

// Takes those for which there is room now, oldest first. The rest of a queue's is not looked at,
// however long it is.
static inline record_list_t queues_look(scheduler_t *s)
{
    record_list_t fits = {0};
    uint64_t at = s->full;
    s->full = 0;
    while (at) {
        ring_queue_t *queue = PROTOCOL_AT(ring_queue_t, at);
        // acquire: pairs with record_retire, before which the packets were read.
        uint32_t used = AGENT_LOAD(&queue->used, __ATOMIC_ACQUIRE);
        at = queue->next;
        while (queue->starved.first) {
            record_t *record = PROTOCOL_AT(record_t, queue->starved.first);
            used += record->room;
            if (used > queue->room) break;
            record_unlist(&queue->starved, record);
            record_list(&fits, record);
        }
        if (queue->starved.first) queue_list(s, queue);
    }
    return fits;
}

// Has those looked for again for which there is no room.
static inline void queues_keep(scheduler_t *s)
{
    if (!s->full) return;
    AGENT_STORE(&s->starving, 1, __ATOMIC_RELAXED);
    // seq_cst: pairs with room_give_back. Either that sees who starves, or this sees the room.
    AGENT_FENCE();
    for (uint64_t at = s->full; at;) {
        const ring_queue_t *queue = PROTOCOL_AT(const ring_queue_t, at);
        at = queue->next;
        if (queue_has_room(PROTOCOL_AT(const record_t, queue->starved.first))) tick_ask(s);
    }
}

// Those that can go now, oldest first; behind them those that came. By one loop: record_place is
// inlined once.
static inline void records_look(scheduler_t *s, uint64_t came)
{
    enum { FITS, LACKS, CAME };
    uint64_t at = queues_look(s).first, lacking = s->lacking.first, next;
    s->lacking = (record_list_t){0};
    AGENT_STORE(&s->starving, 0, __ATOMIC_RELAXED);
    for (uint32_t list = FITS; list <= CAME; at = list++ == FITS ? lacking : came) {
        for (; at; at = next) {
            record_t *record = PROTOCOL_AT(record_t, at);
            next = record->next;
            record_state_t state = list == FITS    ? RECORD_FITS
                                   : list == CAME  ? record_wait(record)
                                   : record->cause ? RECORD_FAILED
                                                   : RECORD_READY;
            record_place(s, record, state);
        }
    }
    queues_keep(s);
}

// One at a time.
static inline void scheduler_tick(scheduler_t *s)
{
    // acq_rel: pairs with tick_ask.
    PROTOCOL_SWAP(&s->ticking, 0, __ATOMIC_ACQ_REL);
    uint64_t start = zone_begin();
    s->ticks++;
    RING_DEBUG(s, "tick %u, %u records", s->ticks, PROTOCOL_LOAD(&s->live, __ATOMIC_RELAXED));
    sides_look(s);
    cancels_look(s);
    records_look(s, records_take(&s->inbox));
    value_note(s, VALUE_LIVE, PROTOCOL_LOAD(&s->live, __ATOMIC_RELAXED));
    zone_end(s, ZONE_TICK, start);
}

#endif
