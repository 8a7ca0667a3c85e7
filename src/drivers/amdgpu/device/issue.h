// SPDX-License-Identifier: Apache-2.0
// Commands of a program become packets of a queue, in a range that is reserved for their segment.
// Each command knows its place in it, so that they can be written in any order: by one work-item
// after the other, or each by its own. The packet processor waits where a header is still invalid.
#ifndef KEEL_SRC_DRIVERS_AMDGPU_DEVICE_ISSUE_H_
#define KEEL_SRC_DRIVERS_AMDGPU_DEVICE_ISSUE_H_

#include "drivers/amdgpu/device/program.h"
#include "drivers/amdgpu/device/ring.h"

enum {
    PACKET_INVALID = 1,     // as HSA has the types of packets
    PACKET_BARRIER_AND = 3, //
    PACKET_TYPE = 0xff,     // their bits in the header
    PACKET_HEADER = 0xffff, // the bits that are not the dispatch's setup
    PACKET_BARRIER = 1 << 8,
    PACKET_ACQUIRE = 3 << 9, // the scope of the acquire; 2 is that of the system
    PACKET_SYSTEM = 2 << 9,
    PACKET_GRID = 3,       // words: the grid's three
    PACKET_ARGUMENTS = 10, // the address of the arguments
    PACKET_SIGNAL = 14,    // the signal of its end
    GROUP_SIZE_X = 3,      // kinds of hidden arguments: counts are before it
    GRID_DIMS = 6,         //
};

// What a work-item needs to know to write a command.
typedef struct issue_t {
    record_t *record;
    const step_t *step;
    const scheduler_t *scheduler;
    const program_command_t *commands; // of the segment
    packet_t *ring;
    uint64_t mask, first;
    uint64_t slots; // of the trace, one for each command; RING_NONE: there are none
} issue_t;

static inline issue_t issue_of(const scheduler_t *s, record_t *record, const segment_t *segment,
                               uint64_t first)
{
    const ring_queue_t *queue = PROTOCOL_AT(const ring_queue_t, record->queue);
    return (issue_t){
        .record = record,
        .step = PROTOCOL_AT(const step_t, record->steps) + record->step,
        .scheduler = s,
        .commands = PROTOCOL_AT(const program_command_t, segment->commands),
        .ring = PROTOCOL_AT(packet_t, queue->packets),
        .mask = queue->mask,
        .first = first,
        .slots = RING_NONE,
    };
}

// The slot of a command, which is to be the signal of its packet; 0: it is not traced.
static inline uint64_t slot_of(const issue_t *i, const program_command_t *c)
{
    if (!RING_HAS(RING_OPERATIONS) || i->slots == RING_NONE) return 0;
    ring_slot_t *slot = ring_slot(i->scheduler, i->slots + (uint64_t)(c - i->commands));
    slot->user = i->record->user;
    slot->step = i->record->step;
    slot->number = c->offset;
    slot->kind = RING_OPERATION;
    return (uintptr_t)slot;
}

// The packet of a command does not run.
static inline void slot_void(uint64_t slot)
{
    if (RING_HAS(RING_OPERATIONS) && slot) ring_close(PROTOCOL_AT(ring_slot_t, slot), RING_VOID);
}

static inline packet_t *packet_at(const issue_t *i, uint32_t place)
{
    return i->ring + ((i->first + place) & i->mask);
}

// All but the header, which is invalid until packet_open: the packet processor looks at it.
static inline void packet_write(packet_t *at, const packet_t *from, uint64_t arguments,
                                uint64_t signal)
{
    quarter_t *to = (quarter_t *)(void *)at;
    const quarter_t *quarters = (const quarter_t *)(const void *)from;
    quarter_t head = quarters[0], grid = quarters[1], middle = quarters[2], tail = quarters[3];
    middle[2] = (uint32_t)arguments;
    middle[3] = (uint32_t)(arguments >> 32);
    if (RING_HAS(RING_OPERATIONS)) {
        tail[2] = (uint32_t)signal;
        tail[3] = (uint32_t)(signal >> 32);
    }
    for (int i = 1; i < 4; i++) at->words[i] = head[i];
    to[1] = grid;
    to[2] = middle;
    to[3] = tail;
}

static inline void packet_open(packet_t *at, uint32_t header)
{
    // release: pairs with the packet processor, which reads the rest when the header is valid. It
    // is this GPU's, and so are the kernels that read the arguments.
    AGENT_SEND(&at->words[0], header);
}

// In place of a dispatch that has nothing to do: it keeps the order.
static inline void packet_skip(packet_t *at, uint32_t header)
{
    for (int i = 1; i < 16; i++) at->words[i] = 0;
    packet_open(at, (header & PACKET_HEADER & ~(uint32_t)PACKET_TYPE) | PACKET_BARRIER_AND);
}

static inline uint64_t packet_signal(const packet_t *packet)
{
    return packet->words[PACKET_SIGNAL] | (uint64_t)packet->words[PACKET_SIGNAL + 1] << 32;
}

static inline uint64_t packet_arguments(const packet_t *packet)
{
    return packet->words[PACKET_ARGUMENTS] | (uint64_t)packet->words[PACKET_ARGUMENTS + 1] << 32;
}

// The first fault stays. The host, which is told, finds the command by its offset.
static inline void record_fault(record_t *record, uint32_t kind, uint32_t offset,
                                const uint32_t counts[3])
{
    uint64_t none = 0;
    if (!AGENT_CAS(&record->fault, &none, (uint64_t)kind << 32 | offset) || !counts) return;
    for (int i = 0; i < 3; i++) record->fault_counts[i] = counts[i];
}

static inline uint64_t place_address(const step_t *step, const place_t *place)
{
    if (place->slot == PLACE_KNOWN) return place->offset;
    if (place->slot == PLACE_PARAMETERS) return step->parameters + place->offset;
    return PROTOCOL_AT(const table_entry_t, step->table)[place->slot].address + place->offset;
}

static inline uint64_t place_length(const step_t *step, const place_t *place)
{
    if (place->length != PLACE_WHOLE) return place->length;
    return PROTOCOL_AT(const table_entry_t, step->table)[place->slot].length - place->offset;
}

static inline void bytes_patch(unsigned char *to, const unsigned char *from, uint32_t size)
{
    bool words = !(((uintptr_t)to | (uintptr_t)from | size) & 3);
    if (words)
        for (uint32_t i = 0; i < size; i += 4)
            *(uint32_t *)(void *)(to + i) = *(const uint32_t *)(const void *)(from + i);
    else
        for (uint32_t i = 0; i < size; i++) to[i] = from[i];
}

static inline void slot_patch(const table_entry_t *table, const patch_t *patch,
                              unsigned char *bytes)
{
    const table_entry_t entry = table[patch->slot];
    uint64_t address = entry.address + patch->offset, length = entry.length - patch->offset;
    uint32_t length_at = patch->size;
    __builtin_memcpy(bytes + patch->at, &address, sizeof address);
    if (length_at) __builtin_memcpy(bytes + length_at, &length, sizeof length);
}

// The arguments of a command, for this execution; their address. What is read again and again is
// read once: for the compiler, all that is written might change it.
static inline uint64_t arguments_write(const issue_t *i, const program_command_t *c)
{
    uint64_t address = i->record->arguments + c->place;
    quarter_t *to = PROTOCOL_AT(quarter_t, address);
    unsigned char *bytes = PROTOCOL_AT(unsigned char, address);
    const quarter_t *from = PROTOCOL_AT(const quarter_t, c->arguments);
    const patch_t *patch = PROTOCOL_AT(const patch_t, c->patches);
    const table_entry_t *table = PROTOCOL_AT(const table_entry_t, i->step->table);
    const quarter_t *end = from + c->size / 16;
    const patch_t *last = patch + c->patch_count;
    while (from != end) *to++ = *from++;
    for (; patch != last; patch++) {
        if (patch->kind == PATCH_SLOT)
            slot_patch(table, patch, bytes);
        else
            bytes_patch(bytes + patch->at,
                        PROTOCOL_AT(const unsigned char, i->step->parameters) + patch->offset,
                        patch->size);
    }
    return address;
}

// Whether so many groups can be; 0 of them can.
static inline bool grid_fits(const program_grid_t *grid, const packet_t *packet,
                             const uint32_t counts[3])
{
    const uint64_t sizes[3] = {packet->words[1] & 0xffff, packet->words[1] >> 16,
                               packet->words[2] & 0xffff};
    uint64_t xy = (uint64_t)counts[0] * counts[1], all;
    if (!xy || !counts[2]) return true;
    for (int i = 0; i < 3; i++)
        if (counts[i] * sizes[i] > UINT32_MAX) return false;
    return !__builtin_mul_overflow(xy, (uint64_t)counts[2], &all) && all <= grid->most;
}

// What the grid says, to where the kernel looks for it.
static inline void counts_tell(const program_grid_t *grid, const packet_t *packet,
                               const uint32_t counts[3], unsigned char *bytes)
{
    for (int k = 0; k < 3; k++) {
        if (!grid->raw)
            __builtin_memcpy(bytes + 4 * k, &counts[k], 4);
        else if (grid->hidden >> k & 1)
            __builtin_memcpy(bytes + grid->places[k], &counts[k], 4);
    }
    if (!(grid->hidden >> GRID_DIMS & 1)) return;
    uint16_t dims = counts[2] * (packet->words[2] & 0xffff) > 1 ? 3
                    : counts[1] * (packet->words[1] >> 16) > 1  ? 2
                                                                : 1;
    __builtin_memcpy(bytes + grid->places[GRID_DIMS], &dims, 2);
}

// Puts the counts into a packet whose header is invalid, and opens it.
static inline void counts_put(record_t *record, const program_command_t *c, packet_t *at,
                              uint64_t arguments, const uint32_t counts[3])
{
    const program_grid_t *grid = PROTOCOL_AT(const program_grid_t, c->more);
    uint32_t header = c->packet.words[0];
    bool fits = grid_fits(grid, &c->packet, counts);
    if (!fits) record_fault(record, FAULT_COUNTS, c->offset, counts);
    if (!fits || !counts[0] || !counts[1] || !counts[2]) {
        slot_void(packet_signal(at));
        packet_skip(at, header);
        return;
    }
    counts_tell(grid, &c->packet, counts, PROTOCOL_AT(unsigned char, arguments));
    at->words[PACKET_GRID] = counts[0] * (c->packet.words[1] & 0xffff);
    at->words[PACKET_GRID + 1] = counts[1] * (c->packet.words[1] >> 16);
    at->words[PACKET_GRID + 2] = counts[2] * (c->packet.words[2] & 0xffff);
    packet_open(at, header);
}

// relaxed: what wrote them has ended, and this kernel, or the tick, has acquired it.
static inline void counts_load(uint64_t address, uint32_t counts[3])
{
    const uint32_t *words = PROTOCOL_AT(const uint32_t, address);
    for (int i = 0; i < 3; i++) counts[i] = AGENT_LOAD(&words[i], __ATOMIC_RELAXED);
}

// Has a packet in front of the dispatch's put the counts in, when what comes before has ended.
static inline void counts_defer(const issue_t *i, const program_command_t *c,
                                const program_grid_t *grid, uint64_t arguments, uint64_t counts)
{
    packet_t *at = packet_at(i, c->packet_at);
    patch_args_t *a = PROTOCOL_AT(patch_args_t, i->record->arguments + grid->place);
    const uint32_t kept = PACKET_BARRIER | PACKET_ACQUIRE; // of the dispatch, whose first this is
    *a = (patch_args_t){
        .record = i->record->self,
        .command = (uintptr_t)c,
        .packet = (uintptr_t)packet_at(i, c->packet_at + 1),
        .arguments = arguments,
        .counts = counts,
    };
    packet_write(at, &i->scheduler->patch, i->record->arguments + grid->place, 0);
    packet_open(at, i->scheduler->patch.words[0] | (c->packet.words[0] & kept));
}

static inline void counted_issue(const issue_t *i, const program_command_t *c)
{
    const program_grid_t *grid = PROTOCOL_AT(const program_grid_t, c->more);
    uint64_t arguments = arguments_write(i, c), address = place_address(i->step, &grid->counts);
    packet_write(packet_at(i, c->packet_at + (grid->dynamic ? 1 : 0)), &c->packet, arguments,
                 slot_of(i, c));
    if (grid->dynamic) {
        counts_defer(i, c, grid, arguments, address);
        return;
    }
    uint32_t counts[3];
    counts_load(address, counts);
    counts_put(i->record, c, packet_at(i, c->packet_at), arguments, counts);
}

// A fill or a copy whose groups are known only now.
static inline void groups_issue(const issue_t *i, const program_command_t *c, uint32_t groups)
{
    packet_t *at = packet_at(i, c->packet_at);
    uint64_t slot = slot_of(i, c);
    if (!groups) {
        slot_void(slot);
        packet_skip(at, c->packet.words[0]);
        return;
    }
    packet_write(at, &c->packet, i->record->arguments + c->place, slot);
    at->words[PACKET_GRID] = groups * BUILTIN_GROUP;
    packet_open(at, c->packet.words[0]);
}

static inline uint32_t pattern_given(const step_t *step, const program_fill_t *fill)
{
    const unsigned char *bytes = PROTOCOL_AT(const unsigned char, step->parameters) + fill->offset;
    uint32_t pattern = 0;
    for (uint32_t b = 0; b < 4; b++)
        pattern |= (uint32_t)bytes[b & (fill->pattern_size - 1)] << 8 * b;
    return pattern;
}

static inline void fill_issue(const issue_t *i, const program_command_t *c)
{
    const program_fill_t *fill = PROTOCOL_AT(const program_fill_t, c->more);
    builtin_fill_t *a = PROTOCOL_AT(builtin_fill_t, i->record->arguments + c->place);
    uint64_t length = place_length(i->step, &fill->target);
    bool fits = !(length & (fill->pattern_size - 1));
    uint32_t pattern = fill->given ? pattern_given(i->step, fill) : fill->pattern;
    if (!fits) record_fault(i->record, FAULT_RANGE, c->offset, NULL);
    uint32_t groups = fill_arguments(a, place_address(i->step, &fill->target), length, pattern);
    groups_issue(i, c, fits ? groups : 0);
}

static inline void copy_issue(const issue_t *i, const program_command_t *c)
{
    const program_copy_t *copy = PROTOCOL_AT(const program_copy_t, c->more);
    builtin_copy_t *a = PROTOCOL_AT(builtin_copy_t, i->record->arguments + c->place);
    uint64_t target = place_address(i->step, &copy->target), length;
    uint64_t source = place_address(i->step, &copy->source);
    length = place_length(i->step, &copy->target);
    bool apart = source >= target + length || target >= source + length;
    bool fits = apart && length == place_length(i->step, &copy->source);
    if (!fits) record_fault(i->record, FAULT_RANGE, c->offset, NULL);
    uint32_t groups = copy_arguments(a, target, source, length);
    groups_issue(i, c, fits ? groups : 0);
}

static inline void command_issue(const issue_t *i, const program_command_t *c)
{
    uint32_t kind = c->kind;
    if (kind <= COMMAND_PATCHED) {
        packet_t *at = packet_at(i, c->packet_at);
        uint32_t header = c->packet.words[0];
        uint64_t arguments = packet_arguments(&c->packet);
        if (kind == COMMAND_PATCHED) arguments = arguments_write(i, c);
        packet_write(at, &c->packet, arguments, slot_of(i, c));
        packet_open(at, header);
    } else if (kind == COMMAND_FILL) {
        fill_issue(i, c);
    } else if (kind == COMMAND_COPY) {
        copy_issue(i, c);
    } else {
        counted_issue(i, c);
    }
}

// keel_issue: one of the commands of a segment.
static inline void issue_run(const issue_args_t *a, uint32_t item)
{
    const segment_t *segment = PROTOCOL_AT(const segment_t, a->segment);
    record_t *record = PROTOCOL_AT(record_t, a->record);
    if (item >= segment->count) return;
    issue_t i =
        issue_of(PROTOCOL_AT(const scheduler_t, record->scheduler), record, segment, a->first);
    i.slots = a->slots;
    command_issue(&i, i.commands + item);
}

// keel_patch: the counts are final.
static inline void patch_run(const patch_args_t *a)
{
    uint32_t counts[3];
    counts_load(a->counts, counts);
    counts_put(PROTOCOL_AT(record_t, a->record), PROTOCOL_AT(const program_command_t, a->command),
               PROTOCOL_AT(packet_t, a->packet), a->arguments, counts);
}

#endif
