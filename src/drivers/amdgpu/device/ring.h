// SPDX-License-Identifier: Apache-2.0
// The trace ring: what the GPU tells of its work, in slots of 64 bytes that it shares with the
// host. A slot for a command is also the completion signal of the command's packet, so that the
// packet processor writes the times into it, and closes it. Who has no room drops what it would
// have told, and counts it: nothing waits for the host.
//
// RING_FEATURES says what is compiled in. Without any there is no code.
#ifndef KEEL_SRC_DRIVERS_AMDGPU_DEVICE_RING_H_
#define KEEL_SRC_DRIVERS_AMDGPU_DEVICE_RING_H_

#include "drivers/amdgpu/device/protocol.h"

#define RING_OPERATIONS 1  // commands, with their times
#define RING_ZONES      2  // what the scheduler itself runs, with its times
#define RING_VALUES     4  // numbers that change
#define RING_MESSAGES   8  //
#define RING_PRINTF     16 // texts that are made on the GPU: RING_DEBUG

#ifndef RING_FEATURES
#define RING_FEATURES 0
#endif
#define RING_HAS(feature) ((RING_FEATURES) & (feature))
// The GPU's clock. Without a feature that needs it there is none.
#ifndef RING_NOW
#define RING_NOW() UINT64_C(0)
#endif

#define RING_NONE UINT64_MAX // no slot

typedef enum ring_kind_t {
    RING_VOID,      // nothing: the packet did not run
    RING_OPERATION, // `user`: of the record; `number`: the command's offset; `step`: of the record
    RING_ZONE,      // `number`: ring_zone_t
    RING_VALUE,     // `number`: ring_value_t; `end`: the value
    RING_MESSAGE,   // `number`: ring_message_t; `end`: what it is about
    RING_TEXT,      // ring_text_t; others may follow. `step`: slots of the text before it
    RING_TEXT_END,  // the last one
} ring_kind_t;

// In the order of the names that the host has for them (trace.c).
typedef enum ring_zone_t { ZONE_TICK, ZONE_ADVANCE, RING_ZONE_COUNT } ring_zone_t;
typedef enum ring_value_t { VALUE_LIVE, RING_VALUE_COUNT } ring_value_t;
typedef enum ring_message_t { MESSAGE_STARVED, MESSAGE_FAULT, RING_MESSAGE_COUNT } ring_message_t;

enum { RING_SIGNAL = 1 }; // in ring_slot_t.signal: as HSA has kinds of signals; a user's

// As amd_signal_t, whose reserved words have what the packet processor does not look at.
typedef struct ring_slot_t {
    uint64_t signal;     // RING_SIGNAL
    uint64_t open;       // 1; 0: it is complete. The signal's value
    uint64_t mailbox;    // 0: no interrupt
    uint32_t event;      //
    uint32_t step;       //
    uint64_t start, end; // in ticks of the GPU's clock
    uint64_t user;       //
    uint32_t number;     //
    uint32_t kind;       // ring_kind_t
} ring_slot_t;

// One with a part of a text, where else `end`, `user` and `number` are.
enum { RING_TEXT_SIZE = 20, RING_TEXTS = 4 }; // bytes; slots of a text at most
typedef struct ring_text_t {
    uint64_t head[5];
    char text[RING_TEXT_SIZE];
    uint32_t kind;
} ring_text_t;

_Static_assert(sizeof(ring_slot_t) == PROTOCOL_LINE && sizeof(ring_text_t) == PROTOCOL_LINE,
               "a slot is a cache line");

// One cache line, which has all that the host must know to empty the ring.
typedef struct trace_ring_t {
    _Alignas(PROTOCOL_LINE) uint64_t slots; // ring_slot_t [mask + 1]
    uint64_t mask;
    uint64_t write;   // slots that were taken so far
    uint64_t read;    // the host's: of these, from the first on, those that it has set back
    uint64_t dropped; // slots that were wanted while there was no room
    uint32_t asking;  // the host is to come soon
    uint32_t paused;  // the host's: nothing is to be told
} trace_ring_t;

_Static_assert(sizeof(trace_ring_t) == PROTOCOL_LINE, "the ring is a cache line");

static inline void ring_ask(scheduler_t *s, trace_ring_t *ring)
{
    // acq_rel: pairs with the host's, which clears it and then looks at the ring.
    if (!PROTOCOL_SWAP(&ring->asking, 1, __ATOMIC_ACQ_REL)) host_tell(s);
}

// So many slots, one after the other: the number of the first; RING_NONE: there is no room, or the
// trace is paused.
static inline uint64_t slots_take(scheduler_t *s, uint32_t count)
{
    if (!s->trace) return RING_NONE;
    trace_ring_t *ring = PROTOCOL_AT(trace_ring_t, s->trace);
    // relaxed: the GPU may see the change a little later.
    if (PROTOCOL_LOAD(&ring->paused, __ATOMIC_RELAXED)) return RING_NONE;
    uint64_t size = ring->mask + 1, used;
    uint64_t first = PROTOCOL_LOAD(&ring->write, __ATOMIC_RELAXED);
    do {
        // acquire: pairs with the host's release, behind what it has set back.
        used = first + count - PROTOCOL_LOAD(&ring->read, __ATOMIC_ACQUIRE);
        // Less than 0: the host has gone past `first` meanwhile, which is then another's.
        if ((int64_t)used <= (int64_t)size) continue;
        PROTOCOL_ADD(&ring->dropped, count, __ATOMIC_RELAXED);
        ring_ask(s, ring);
        return RING_NONE;
    } while (!AGENT_CAS(&ring->write, &first, first + count)); // the host only reads it
    if (used > size / 2) ring_ask(s, ring);
    return first;
}

static inline ring_slot_t *ring_slot(const scheduler_t *s, uint64_t number)
{
    const trace_ring_t *ring = PROTOCOL_AT(const trace_ring_t, s->trace);
    return PROTOCOL_AT(ring_slot_t, ring->slots) + (number & ring->mask);
}

static inline void ring_close(ring_slot_t *slot, ring_kind_t kind)
{
    slot->kind = kind;
    // release: pairs with the host's acquire, before it reads the rest.
    PROTOCOL_STORE(&slot->open, 0, __ATOMIC_RELEASE);
}

// A slot that is complete at once.
static inline void ring_put(scheduler_t *s, ring_kind_t kind, uint32_t number, uint64_t start,
                            uint64_t end)
{
    uint64_t taken = slots_take(s, 1);
    if (taken == RING_NONE) return;
    ring_slot_t *slot = ring_slot(s, taken);
    slot->start = start;
    slot->end = end;
    slot->number = number;
    ring_close(slot, kind);
}

// When a zone begins; and its end.
static inline uint64_t zone_begin(void)
{
    return RING_HAS(RING_ZONES) ? RING_NOW() : 0;
}

static inline void zone_end(scheduler_t *s, ring_zone_t zone, uint64_t start)
{
    if (RING_HAS(RING_ZONES)) ring_put(s, RING_ZONE, zone, start, RING_NOW());
}

static inline void value_note(scheduler_t *s, ring_value_t value, uint64_t now)
{
    if (RING_HAS(RING_VALUES)) ring_put(s, RING_VALUE, value, RING_NOW(), now);
}

static inline void message_note(scheduler_t *s, ring_message_t message, uint64_t about)
{
    if (RING_HAS(RING_MESSAGES)) ring_put(s, RING_MESSAGE, message, RING_NOW(), about);
}

#if RING_HAS(RING_PRINTF)
enum { RING_PRINT = RING_TEXTS * RING_TEXT_SIZE }; // bytes of a text, its end included

// Digits of a number, from their end on; returns how many.
static inline uint32_t digits_make(uint64_t value, uint32_t base, char digits[20])
{
    uint32_t count = 0;
    do digits[count++] = "0123456789abcdef"[value % base];
    while (value /= base);
    return count;
}

// The part of printf's language that there is: %u, %d, %x of 64 bits each, and %%. A text that is
// too long is cut.
static inline uint32_t text_make(char text[RING_PRINT], const char *format, const uint64_t *values)
{
    uint32_t size = 0;
    char digits[20];
    for (; *format && size < RING_PRINT - 1; format++) {
        if (*format != '%' || !*++format || *format == '%') {
            if (*format) text[size++] = *format;
            if (!*format) break;
            continue;
        }
        uint64_t value = *values++;
        if (*format == 'd' && (int64_t)value < 0) {
            text[size++] = '-';
            value = -value;
        }
        uint32_t count = digits_make(value, *format == 'x' ? 16 : 10, digits);
        while (count && size < RING_PRINT - 1) text[size++] = digits[--count];
    }
    text[size++] = 0;
    return size;
}

// A message with up to 4 values, for a build that looks for a mistake.
static inline void ring_print(scheduler_t *s, const char *format, const uint64_t values[4])
{
    char text[RING_PRINT];
    uint32_t size = text_make(text, format, values);
    uint32_t count = (size + RING_TEXT_SIZE - 1) / RING_TEXT_SIZE;
    uint64_t first = slots_take(s, count);
    if (first == RING_NONE) return;
    for (uint32_t i = 0; i < count; i++) {
        ring_slot_t *slot = ring_slot(s, first + i);
        ring_text_t *part = (ring_text_t *)(void *)slot;
        slot->start = RING_NOW();
        slot->step = i;
        for (uint32_t k = 0; k < RING_TEXT_SIZE && i * RING_TEXT_SIZE + k < size; k++)
            part->text[k] = text[i * RING_TEXT_SIZE + k];
        ring_close(slot, i + 1 == count ? RING_TEXT_END : RING_TEXT);
    }
}
#define RING_DEBUG(s, format, ...) ring_print((s), (format), (const uint64_t[4]){__VA_ARGS__})
#else
#define RING_DEBUG(s, format, ...) ((void)0)
#endif

#endif
