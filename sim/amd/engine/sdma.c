// SPDX-License-Identifier: Apache-2.0
// The copy engine. Its ring holds packets of several words; doorbell and indices count bytes.
#include <string.h>

#include "amd/engine/strict.h"

enum {
    SDMA_NOP = 0,
    SDMA_COPY = 1,
    SDMA_FENCE = 5,
    SDMA_TRAP = 6,
    SDMA_POLL = 8,
    SDMA_ATOMIC = 10,
    SDMA_FILL = 11,
    SDMA_TIMESTAMP = 13,
    SDMA_GCR = 17,
    SDMA_COPY_LINEAR = 0,
    SDMA_COPY_RECTANGLE = 4,
    SDMA_PACKET_MAX = 13,
};

// Words of the packet that was run; 0 when the queue shall end.
typedef unsigned words_t;

static words_t fault(queue_t *queue, uint64_t address)
{
    log_line(LOG_ERROR, "copy queue %llu: may not touch 0x%llx", (unsigned long long)queue->id,
             (unsigned long long)address);
    queue_memory_fault(queue, address);
    return 0;
}

static uint64_t address_at(const uint32_t *word)
{
    return word[0] | (uint64_t)word[1] << 32;
}

static words_t copy_linear(queue_t *queue, const uint32_t *packet)
{
    uint64_t count = (packet[1] & 0x3fffffff) + 1ull;
    uint64_t from = address_at(packet + 3), to = address_at(packet + 5);
    const void *source = map_bytes(from, count, queue->node);
    void *target = map_bytes(to, count, queue->node);
    log_line(LOG_PACKETS, "copy queue %llu: %llu bytes from 0x%llx to 0x%llx",
             (unsigned long long)queue->id, (unsigned long long)count, (unsigned long long)from,
             (unsigned long long)to);
    if (!source) return fault(queue, from);
    if (!target) return fault(queue, to);
    memmove(target, source, count);
    return 7;
}

typedef struct {
    uint64_t base, pitch, slice; // in elements, but for the base
    uint32_t x, y, z;
} side_t;

static side_t side_read(const uint32_t *word)
{
    return (side_t){
        .base = address_at(word),
        .x = word[2] & 0x3fff,
        .y = word[2] >> 16 & 0x3fff,
        .z = word[3] & 0x7ff,
        .pitch = (word[3] >> 13) + 1ull,
        .slice = (word[4] & 0xfffffff) + 1ull,
    };
}

static uint64_t side_row(const side_t *side, uint32_t y, uint32_t z, unsigned element_log2)
{
    uint64_t element = (side->z + z) * side->slice + (side->y + y) * side->pitch + side->x;
    return side->base + (element << element_log2);
}

static words_t copy_rectangle(queue_t *queue, const uint32_t *packet)
{
    unsigned element_log2 = packet[0] >> 29;
    side_t from = side_read(packet + 1), to = side_read(packet + 6);
    uint32_t width = (packet[11] & 0x3fff) + 1, height = (packet[11] >> 16 & 0x3fff) + 1;
    uint32_t depth = (packet[12] & 0x7ff) + 1;
    uint64_t bytes = (uint64_t)width << element_log2;
    for (uint32_t z = 0; z < depth; z++) {
        for (uint32_t y = 0; y < height; y++) {
            uint64_t source = side_row(&from, y, z, element_log2);
            uint64_t target = side_row(&to, y, z, element_log2);
            const void *read = map_bytes(source, bytes, queue->node);
            void *write = map_bytes(target, bytes, queue->node);
            if (!read) return fault(queue, source);
            if (!write) return fault(queue, target);
            memmove(write, read, bytes);
        }
    }
    return 13;
}

static bool holds(unsigned function, uint32_t value, uint32_t wanted)
{
    switch (function) {
    case 1: return value < wanted;
    case 2: return value <= wanted;
    case 3: return value == wanted;
    case 4: return value != wanted;
    case 5: return value >= wanted;
    case 6: return value > wanted;
    default: return true;
    }
}

static words_t poll(queue_t *queue, const uint32_t *packet)
{
    enum { POLL_WORDS = 6 };
    bool memory = packet[0] >> 31;
    uint64_t address = address_at(packet + 1);
    patience_t patience = {0};
    if (!memory) return POLL_WORDS; // a register: nothing to wait for
    const uint32_t *word = map_bytes(address, sizeof *word, queue->node);
    if (!word) return fault(queue, address);
    // Acquire: pairs with the signalling side.
    while (!holds(packet[0] >> 28 & 7, __atomic_load_n(word, __ATOMIC_ACQUIRE) & packet[4],
                  packet[3])) {
        if (queue_idle(queue, &memory_bell, &patience)) return 0;
    }
    return POLL_WORDS;
}

static words_t fill(queue_t *queue, const uint32_t *packet)
{
    uint64_t address = address_at(packet + 1), count = (packet[4] & 0x3fffffff) + 1ull;
    uint32_t *target = map_bytes(address, count, queue->node);
    if (!target) return fault(queue, address);
    for (uint64_t k = 0; k < count / 4; k++) target[k] = packet[3];
    return 5;
}

static words_t write_word(queue_t *queue, const uint32_t *packet)
{
    uint64_t address = address_at(packet + 1);
    uint32_t *target = map_bytes(address, sizeof *target, queue->node);
    if (!target) return fault(queue, address);
    __atomic_store_n(target, packet[3], __ATOMIC_RELEASE); // after the copies before it
    bell_ring(&memory_bell);
    return 4;
}

static words_t add(queue_t *queue, const uint32_t *packet)
{
    enum { ATOMIC_ADD_64 = 47 };
    uint64_t address = address_at(packet + 1);
    uint64_t *target = map_bytes(address, sizeof *target, queue->node);
    if (!target) return fault(queue, address);
    if (packet[0] >> 25 != ATOMIC_ADD_64) {
        log_line(LOG_ERROR, "copy queue %llu: atomic %u is not modelled",
                 (unsigned long long)queue->id, packet[0] >> 25);
        queue_fail(queue, "atomic", QUEUE_ERROR_PACKET);
        return 0;
    }
    __atomic_fetch_add(target, address_at(packet + 3), __ATOMIC_ACQ_REL); // after the copies
    bell_ring(&memory_bell);
    return 8;
}

static words_t timestamp(queue_t *queue, const uint32_t *packet)
{
    uint64_t address = address_at(packet + 1);
    uint64_t *target = map_bytes(address, sizeof *target, queue->node);
    if (!target) return fault(queue, address);
    *target = gpu_ticks(queue->node);
    return 3;
}

static words_t run_packet(queue_t *queue, const uint32_t *packet)
{
    unsigned operation = packet[0] & 0xff, kind = packet[0] >> 8 & 0xff;
    switch (operation) {
    case SDMA_NOP: return 1 + (packet[0] >> 16 & 0x3fff);
    case SDMA_COPY:
        if (kind == SDMA_COPY_LINEAR) return copy_linear(queue, packet);
        if (kind == SDMA_COPY_RECTANGLE) return copy_rectangle(queue, packet);
        break;
    case SDMA_FENCE: return write_word(queue, packet);
    case SDMA_TRAP: event_interrupt(packet[1] & 0xfffffff); return 2;
    case SDMA_POLL: return poll(queue, packet);
    case SDMA_ATOMIC: return add(queue, packet);
    case SDMA_FILL: return fill(queue, packet);
    case SDMA_TIMESTAMP: return timestamp(queue, packet);
    case SDMA_GCR: return 5; // caches are not modelled
    default: break;
    }
    log_line(LOG_ERROR, "copy queue %llu: packet %08x is not modelled",
             (unsigned long long)queue->id, packet[0]);
    queue_fail(queue, "copy", QUEUE_ERROR_PACKET);
    return 0;
}

// Where the packets end that the queue has been told of. rung is the doorbell as it was.
static uint64_t announced(const queue_t *queue, uint64_t read, uint64_t *rung)
{
    // Acquire: pairs with the runtime's release after it has written packets.
    uint64_t value = __atomic_load_n(queue->doorbell, __ATOMIC_ACQUIRE);
    if (value != *rung) strict_copy_doorbell(queue, value, *rung, read);
    *rung = value;
    if (value == UINT64_MAX) return 0;
    return value >> 32 == UINT32_MAX ? (uint32_t)value : value; // the half that was written
}

void sdma_run(queue_t *queue)
{
    uint64_t read = 0, rung = UINT64_MAX;
    patience_t patience = {0};
    for (;;) {
        uint64_t written = announced(queue, read, &rung);
        if (read >= written) {
            if (queue_idle(queue, &queue->bell, &patience)) return;
            continue;
        }
        patience = (patience_t){0};
        uint32_t packet[SDMA_PACKET_MAX];
        for (unsigned k = 0; k < SDMA_PACKET_MAX; k++) {
            memcpy(&packet[k], queue->ring + ((read + 4 * k) & (queue->size - 1)), sizeof *packet);
        }
        atomic_store(&queue->waiting, read);
        atomic_store(&queue->waiting_since, clock_ns());
        words_t words = run_packet(queue, packet);
        atomic_store(&queue->waiting_since, 0);
        if (!words) return;
        strict_copy_packet(queue, read, 4ull * words, written);
        read += 4ull * words;
        // Release: a writer that sees the index may overwrite the packets.
        __atomic_store_n(queue->read_index, read, __ATOMIC_RELEASE);
    }
}
