// SPDX-License-Identifier: Apache-2.0
#include "amd/engine/strict.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

// The number of a packet in the ring: no more than one round ahead of those that are over.
static uint64_t packet_id(const queue_t *queue, const void *packet)
{
    uint64_t slot = (uint64_t)((const uint8_t *)packet - queue->ring) / PACKET_SIZE;
    uint64_t read = __atomic_load_n(queue->read_index, __ATOMIC_RELAXED);
    return read + (slot - read) % packet_count(queue);
}

static uint16_t header_of(const void *packet)
{
    uint16_t header;
    memcpy(&header, packet, sizeof header);
    return header;
}

__attribute__((format(printf, 3, 4))) static void
report(const queue_t *queue, const watched_t *watched, const char *format, ...)
{
    char what[320], text[256];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    packet_text(queue, watched->body, header_of(watched->body), what, sizeof what);
    log_line(LOG_ERROR, "queue %llu of node %u, packet %llu, %s: %s", (unsigned long long)queue->id,
             queue->node, (unsigned long long)packet_id(queue, watched->at), what, text);
}

static const amd_signal_t *signal_of(const queue_t *queue, const watched_t *watched)
{
    hsa_signal_t signal = ((const hsa_barrier_and_packet_t *)watched->body)->completion_signal;
    if (!signal.handle) return NULL;
    return map_bytes(signal.handle, sizeof(amd_signal_t), queue->node);
}

// The arguments of a dispatch, as many bytes as the kernel's descriptor says.
static const uint8_t *kernarg_of(const queue_t *queue, const watched_t *watched, size_t *out_size)
{
    enum { DESCRIPTOR_KERNARG_SIZE = 8 };
    const hsa_kernel_dispatch_packet_t *dispatch = (const void *)watched->body;
    uint32_t size;
    if ((header_of(dispatch) & 0xff) != HSA_PACKET_TYPE_KERNEL_DISPATCH) return NULL;
    const uint8_t *field =
        map_bytes(dispatch->kernel_object + DESCRIPTOR_KERNARG_SIZE, sizeof size, queue->node);
    if (!field) return NULL;
    memcpy(&size, field, sizeof size);
    *out_size = size < sizeof watched->kernarg ? size : sizeof watched->kernarg;
    uint64_t address = (uint64_t)(uintptr_t)dispatch->kernarg_address;
    return *out_size ? map_bytes(address, *out_size, queue->node) : NULL;
}

void strict_begin(watched_t *watched, const queue_t *queue, const void *packet)
{
    watched->at = packet;
    memcpy(watched->body, packet, PACKET_SIZE);
    const amd_signal_t *signal = signal_of(queue, watched);
    watched->signal_kind = signal ? signal->kind : 0;
    watched->signal_mailbox = signal ? signal->event_mailbox_ptr : 0;
    watched->signal_event = signal ? signal->event_id : 0;
    watched->kernarg_size = 0;
    const uint8_t *kernarg = kernarg_of(queue, watched, &watched->kernarg_size);
    if (!kernarg) watched->kernarg_size = 0;
    if (kernarg) memcpy(watched->kernarg, kernarg, watched->kernarg_size);
}

// The first byte that differs; size when none does.
static size_t first_change(const uint8_t *a, const uint8_t *b, size_t size)
{
    size_t k = 0;
    while (k < size && a[k] == b[k]) k++;
    return k;
}

static void check_kernarg(const queue_t *queue, const watched_t *watched)
{
    size_t size;
    const uint8_t *kernarg = watched->kernarg_size ? kernarg_of(queue, watched, &size) : NULL;
    if (!kernarg) return;
    size_t byte = first_change(watched->kernarg, kernarg, watched->kernarg_size);
    if (byte == watched->kernarg_size) return;
    report(queue, watched, "byte %zu of its arguments was written while it ran", byte);
}

void strict_end(watched_t *watched, const queue_t *queue)
{
    size_t byte = first_change(watched->body, watched->at, PACKET_SIZE);
    const amd_signal_t *signal = signal_of(queue, watched);
    if (byte < PACKET_SIZE) {
        report(queue, watched, "byte %zu of it was written after it had been made valid", byte);
    }
    if (signal && (signal->kind != watched->signal_kind ||
                   signal->event_mailbox_ptr != watched->signal_mailbox ||
                   signal->event_id != watched->signal_event)) {
        report(queue, watched, "its signal 0x%llx was destroyed, or another made there, meanwhile",
               (unsigned long long)((const hsa_barrier_and_packet_t *)watched->body)
                   ->completion_signal.handle);
    }
    check_kernarg(queue, watched);
    watched->at = NULL;
}

void strict_doorbell(const queue_t *queue, uint64_t value, uint64_t next, uint64_t written)
{
    unsigned long long id = queue->id, rung = value;
    if (value == UINT64_MAX || value < next) return;
    if (value >> 32 == UINT32_MAX) {
        log_line(LOG_ERROR,
                 "queue %llu of node %u: half of the doorbell was written, 0x%llx: it has "
                 "64 bits",
                 id, queue->node, rung);
    } else if (value >= written) {
        log_line(LOG_ERROR,
                 "queue %llu of node %u: the doorbell was rung with %llu, but the write "
                 "index is %llu: it takes the number of a packet",
                 id, queue->node, rung, (unsigned long long)written);
    } else if ((header_of(packet_at(queue, value)) & 0xff) == HSA_PACKET_TYPE_INVALID) {
        log_line(LOG_ERROR,
                 "queue %llu of node %u: the doorbell was rung for packet %llu before its "
                 "header was made valid",
                 id, queue->node, rung);
    }
}

static void report_copy(const queue_t *queue, uint64_t value, const char *what, uint64_t than)
{
    log_line(LOG_ERROR, "copy queue %llu of node %u: the doorbell was rung with 0x%llx: %s %llu",
             (unsigned long long)queue->id, queue->node, (unsigned long long)value, what,
             (unsigned long long)than);
}

void strict_copy_doorbell(const queue_t *queue, uint64_t value, uint64_t before, uint64_t read)
{
    // Acquire: pairs with the release of the writer of packets.
    uint64_t written = __atomic_load_n(queue->write_index, __ATOMIC_ACQUIRE);
    if (value >> 32 == UINT32_MAX) {
        report_copy(queue, value, "half of it was written, and it has bits:", 64);
    } else if (value % 4) {
        report_copy(queue, value, "packets end at multiples of", 4);
    } else if (before != UINT64_MAX && value < before) {
        report_copy(queue, value, "it goes back from", before);
    } else if (value - read > queue->size) {
        report_copy(queue, value, "so many bytes are not in a ring of", queue->size);
    } else if (value > written) {
        report_copy(queue, value, "the write index is only", written);
    }
}

void strict_copy_packet(const queue_t *queue, uint64_t read, uint64_t bytes, uint64_t rung)
{
    if (bytes <= rung - read) return;
    log_line(LOG_ERROR,
             "copy queue %llu of node %u: the packet at byte %llu has %llu bytes, of which the "
             "doorbell was rung for %llu",
             (unsigned long long)queue->id, queue->node, (unsigned long long)read,
             (unsigned long long)bytes, (unsigned long long)(rung - read));
}

void strict_queue_end(const queue_t *queue, uint64_t next)
{
    uint64_t written = __atomic_load_n(queue->write_index, __ATOMIC_ACQUIRE);
    uint64_t rung = __atomic_load_n(queue->doorbell, __ATOMIC_ACQUIRE);
    const uint8_t *packet = packet_at(queue, next);
    char what[320];
    bool valid = (header_of(packet) & 0xff) != HSA_PACKET_TYPE_INVALID;
    if (next >= written || !valid || (rung != UINT64_MAX && rung >= next)) return;
    packet_text(queue, packet, header_of(packet), what, sizeof what);
    log_line(LOG_ERROR,
             "queue %llu of node %u ends: the doorbell was never rung for packet %llu, %s",
             (unsigned long long)queue->id, queue->node, (unsigned long long)next, what);
}

void strict_signal(const queue_t *queue, hsa_signal_t signal, int64_t value)
{
    if (value > 0 || !sim_settings()->strict) return;
    log_line(LOG_ERROR,
             "queue %llu of node %u: a packet counts its signal 0x%llx down from %lld: it was not "
             "armed, or others use it too",
             (unsigned long long)queue->id, queue->node, (unsigned long long)signal.handle,
             (long long)value);
}
