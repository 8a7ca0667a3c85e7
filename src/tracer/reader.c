// SPDX-License-Identifier: Apache-2.0
#include "tracer/reader.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/status.h"

static keel_status_t file_error(const char *path, int error)
{
    char what[512];
    snprintf(what, sizeof what, "cannot read %s", path);
    return status_from_errno(status_errno_code(error), error, what);
}

static keel_status_t file_map(reader_t *reader)
{
    struct stat about;
    int fd = open(reader->path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return file_error(reader->path, errno);
    uint32_t ended = 0;
    reader->ended =
        pread(fd, &ended, sizeof ended, offsetof(trace_header_t, ended)) == (ssize_t)sizeof ended &&
        ended;
    int error = fstat(fd, &about) ? errno : 0;
    void *memory = MAP_FAILED;
    if (!error && S_ISREG(about.st_mode) && about.st_size >= TRACE_HEADER_SIZE) {
        memory = mmap(NULL, (size_t)about.st_size, PROT_READ, MAP_SHARED, fd, 0);
        if (memory == MAP_FAILED) error = errno;
    }
    close(fd);
    if (error) return file_error(reader->path, error);
    if (memory == MAP_FAILED)
        return KEEL_ERROR(KEEL_INVALID_ARGUMENT, "%s is no trace: it is too short", reader->path);
    reader->header = memory;
    reader->size = (uint64_t)about.st_size;
    return NULL;
}

static keel_status_t header_check(reader_t *reader)
{
    const trace_header_t *header = reader->header;
    if (memcmp(header->magic, TRACE_MAGIC, sizeof TRACE_MAGIC) != 0)
        return KEEL_ERROR(KEEL_INVALID_ARGUMENT, "%s is no trace", reader->path);
    if (header->version != TRACE_VERSION || header->slots != TRACE_SLOTS)
        return KEEL_ERROR(KEEL_INVALID_ARGUMENT,
                          "%s is a trace of version %u; this program reads version %d",
                          reader->path, header->version, TRACE_VERSION);
    uint64_t room = (reader->size - TRACE_HEADER_SIZE) / TRACE_CHUNK;
    uint32_t taken = atomic_load(&((trace_header_t *)(uintptr_t)header)->chunks);
    reader->chunks = taken < room ? taken : (uint32_t)room;
    return NULL;
}

static const trace_record_t *slot_at(const reader_t *reader, uint64_t slot)
{
    return (const trace_record_t *)(const void *)((const char *)reader->header +
                                                  TRACE_HEADER_SIZE) +
           slot;
}

static trace_kind_t kind_of(const trace_record_t *record)
{
    // acquire: pairs with trace_put, in a process that may still run.
    return (trace_kind_t)atomic_load_explicit(&((trace_record_t *)(uintptr_t)record)->kind,
                                              memory_order_acquire);
}

// Adds to an array of pointers.
static keel_status_t list_add(void *items, size_t *count, size_t *capacity, const void *item)
{
    const void ***list = items;
    if (*count == *capacity) {
        size_t more = *capacity ? *capacity * 2 : 64;
        const void **grown = mem_resize((void *)(uintptr_t)*list, more * sizeof *grown);
        if (!grown) return status_no_memory();
        *list = grown;
        *capacity = more;
    }
    (*list)[(*count)++] = item;
    return NULL;
}

static int part_compare(const void *a, const void *b)
{
    const trace_name_part_t *x = *(const trace_name_part_t *const *)a;
    const trace_name_part_t *y = *(const trace_name_part_t *const *)b;
    if (x->name != y->name) return x->name < y->name ? -1 : 1;
    return (x->part > y->part) - (x->part < y->part);
}

static int clock_compare(const void *a, const void *b)
{
    uint64_t x = (*(const trace_record_t *const *)a)->start;
    uint64_t y = (*(const trace_record_t *const *)b)->start;
    return (x > y) - (x < y);
}

static int id_compare(const void *a, const void *b)
{
    uint64_t x = (*(const trace_record_t *const *)a)->id;
    uint64_t y = (*(const trace_record_t *const *)b)->id;
    return (x > y) - (x < y);
}

static int pair_compare(const void *a, const void *b)
{
    int order = id_compare(a, b);
    return order ? order : clock_compare(a, b);
}

// Sorts an array that may be NULL.
static void list_sort(void *items, size_t count, int (*compare)(const void *, const void *))
{
    if (count) qsort(items, count, sizeof(void *), compare);
}

static keel_status_t record_sort_in(reader_t *reader, const trace_record_t *record)
{
    switch (kind_of(record)) {
    case TRACE_NAME:
        return list_add(&reader->names.parts, &reader->names.count, &reader->names.capacity,
                        record);
    case TRACE_CLOCKS:
        return list_add(&reader->clocks.records, &reader->clocks.count, &reader->clocks.capacity,
                        record);
    case TRACE_THREAD:
        return list_add(&reader->threads.records, &reader->threads.count, &reader->threads.capacity,
                        record);
    case TRACE_QUEUE:
        return list_add(&reader->queues.records, &reader->queues.count, &reader->queues.capacity,
                        record);
    case TRACE_PAIR:
        return list_add(&reader->pairs.records, &reader->pairs.count, &reader->pairs.capacity,
                        record);
    default: reader->unknown += kind_of(record) >= TRACE_KINDS; return NULL;
    }
}

// Gives back the memory of pages that were read, which the system reads again if need be. Without
// it a long trace would fill the memory while it is read.
static void pages_forget(const reader_t *reader, uint64_t from, uint64_t to)
{
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    uint64_t first = (TRACE_HEADER_SIZE + from * sizeof(trace_record_t)) / page * page;
    uint64_t last = (TRACE_HEADER_SIZE + to * sizeof(trace_record_t)) / page * page;
    if (last > first)
        madvise((char *)(uintptr_t)reader->header + first, last - first, MADV_DONTNEED);
}

enum { STEP = 64 * TRACE_SLOTS }; // records after which pages are given back

static keel_status_t records_sort_in(reader_t *reader)
{
    for (uint64_t i = 0; i < (uint64_t)reader->chunks * TRACE_SLOTS; i++) {
        if (i && i % STEP == 0) pages_forget(reader, i - STEP, i);
        KEEL_TRY(record_sort_in(reader, slot_at(reader, i)));
    }
    return NULL;
}

// The rate between the first and the last, if they are far enough apart to tell; else that which
// the process believed in.
static double clocks_rate(const reader_t *reader)
{
    const trace_record_t *first = reader->clocks.records[0];
    const trace_record_t *last = reader->clocks.records[reader->clocks.count - 1];
    double told = first->id ? 1e9 / (double)first->id : 1;
    if (last->start - first->start < first->id / 10 || last->a[0] <= first->a[0]) return told;
    return (double)(last->a[0] - first->a[0]) / (double)(last->start - first->start);
}

keel_status_t reader_open(reader_t *reader, const char *path)
{
    *reader = (reader_t){.path = mem_copy_text(path)};
    if (!reader->path) return status_no_memory();
    KEEL_TRY(file_map(reader));
    KEEL_TRY(header_check(reader));
    KEEL_TRY(records_sort_in(reader));
    list_sort(reader->names.parts, reader->names.count, part_compare);
    list_sort(reader->clocks.records, reader->clocks.count, clock_compare);
    list_sort(reader->queues.records, reader->queues.count, id_compare);
    list_sort(reader->threads.records, reader->threads.count, id_compare);
    list_sort(reader->pairs.records, reader->pairs.count, pair_compare);
    if (reader->clocks.count) reader->clocks.ns_per_tick = clocks_rate(reader);
    return NULL;
}

void reader_close(reader_t *reader)
{
    if (reader->header) munmap((void *)(uintptr_t)reader->header, reader->size);
    mem_free((void *)reader->names.parts);
    mem_free((void *)reader->clocks.records);
    mem_free((void *)reader->queues.records);
    mem_free((void *)reader->threads.records);
    mem_free((void *)reader->pairs.records);
    mem_free(reader->path);
    *reader = (reader_t){0};
}

// How many of an array's items, which `before` holds for, come first.
static size_t list_split(size_t count, bool (*before)(const void *, size_t, uint64_t),
                         const void *items, uint64_t key)
{
    size_t low = 0, high = count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (before(items, middle, key))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool clock_is_before(const void *items, size_t i, uint64_t ticks)
{
    return ((const trace_record_t *const *)items)[i]->start <= ticks;
}

// Between two readings of the clocks time runs at one rate.
typedef struct stretch_t {
    uint64_t low, high; // in ticks: it holds from one to before the other
    uint64_t ticks, ns; // a moment in it
    double rate;
} stretch_t;

// From the nearest reading before, at the rate to the next one, so that a clock that is being set
// right does not add up.
static stretch_t stretch_find(const reader_t *reader, uint64_t ticks)
{
    const trace_record_t **clocks = reader->clocks.records;
    size_t count = reader->clocks.count, i = list_split(count, clock_is_before, clocks, ticks);
    const trace_record_t *from = clocks[i ? i - 1 : 0];
    stretch_t stretch = {i ? from->start : 0, i < count ? clocks[i]->start : UINT64_MAX,
                         from->start, from->a[0], reader->clocks.ns_per_tick};
    if (!i || i == count) return stretch;
    uint64_t apart = clocks[i]->start - from->start;
    if (apart > from->id / 100 && clocks[i]->a[0] > from->a[0])
        stretch.rate = (double)(clocks[i]->a[0] - from->a[0]) / (double)apart;
    return stretch;
}

static uint64_t ticks_ns(const reader_t *reader, stretch_t *stretch, uint64_t ticks)
{
    if (reader->header->clock != TRACE_CLOCK_TICKS || !reader->clocks.count) return ticks;
    if (ticks < stretch->low || ticks >= stretch->high) *stretch = stretch_find(reader, ticks);
    double off = (double)(int64_t)(ticks - stretch->ticks) * stretch->rate;
    if (!(fabs(off) < 9e18)) off = 0; // damaged
    return stretch->ns + (uint64_t)(int64_t)off;
}

static bool boot_is_before(const void *items, size_t i, uint64_t boot_ns)
{
    return ((const trace_record_t *const *)items)[i]->a[1] <= boot_ns;
}

// The two clocks differ by the time for which the machine was suspended.
static uint64_t boot_to_ns(const reader_t *reader, uint64_t boot_ns)
{
    const trace_record_t **clocks = reader->clocks.records;
    if (!reader->clocks.count) return boot_ns;
    size_t i = list_split(reader->clocks.count, boot_is_before, clocks, boot_ns);
    const trace_record_t *from = clocks[i ? i - 1 : 0];
    return boot_ns - (from->a[1] - from->a[0]);
}

static bool pair_is_before(const void *items, size_t i, uint64_t time)
{
    return ((const trace_record_t *const *)items)[i]->start <= time;
}

static bool pair_clock_is_before(const void *items, size_t i, uint64_t clock)
{
    return ((const trace_record_t *const *)items)[i]->id < clock;
}

// From the reading before, or the first one, at the rate to the next one, if they are far enough
// apart to tell.
static uint64_t device_to_ns(const reader_t *reader, uint32_t clock, uint64_t time)
{
    enum { APART_NS = 10000000 };
    const trace_record_t **pairs = reader->pairs.records;
    size_t first = list_split(reader->pairs.count, pair_clock_is_before, pairs, clock);
    size_t end = list_split(reader->pairs.count, pair_clock_is_before, pairs, clock + 1ull);
    if (first == end) return time;
    size_t after = first + list_split(end - first, pair_is_before, pairs + first, time);
    size_t at = after > first ? after - 1 : first;
    const trace_record_t *from = pairs[at], *next = at + 1 < end ? pairs[at + 1] : NULL;
    double rate = 1, off = (double)(int64_t)(time - from->start);
    if (next && next->start - from->start > APART_NS && next->a[0] > from->a[0])
        rate = (double)(next->a[0] - from->a[0]) / (double)(next->start - from->start);
    off *= rate;
    if (!(fabs(off) < 9e18)) off = 0; // damaged
    return from->a[0] + (uint64_t)(int64_t)off;
}

static uint64_t time_ns(const reader_t *reader, stretch_t *stretch, const trace_record_t *raw,
                        uint64_t time)
{
    uint32_t clock = reader_clock(raw);
    if (clock > TRACE_DEVICE_NS) return device_to_ns(reader, clock - TRACE_DEVICE_NS, time);
    if (clock == TRACE_BOOT_NS) return boot_to_ns(reader, time);
    return clock == TRACE_MONOTONIC_NS ? time : ticks_ns(reader, stretch, time);
}

void reader_each(const reader_t *reader, uint32_t kinds, reader_fn fn, void *user)
{
    uint64_t thread = 0;
    stretch_t stretch = {UINT64_MAX, 0, 0, 0, 0};
    for (uint64_t i = 0; i < (uint64_t)reader->chunks * TRACE_SLOTS; i++) {
        if (i % TRACE_SLOTS == 0) thread = 0;
        if (i && i % STEP == 0) pages_forget(reader, i - STEP, i);
        const trace_record_t *raw = slot_at(reader, i);
        trace_kind_t kind = kind_of(raw);
        if (kind == TRACE_THREAD) thread = raw->id;
        if (kind >= TRACE_KINDS || !(kinds >> kind & 1)) continue;
        reader_record_t record = {raw, time_ns(reader, &stretch, raw, raw->start),
                                  time_ns(reader, &stretch, raw, raw->end), thread};
        // The processor may read its counter early: never more than some ns.
        if (record.end_ns < record.start_ns) record.end_ns = record.start_ns;
        fn(user, &record);
    }
}

static bool name_is_before(const void *items, size_t i, uint64_t name)
{
    return ((const trace_name_part_t *const *)items)[i]->name < name;
}

size_t reader_name_size(const reader_t *reader, uint32_t name)
{
    enum { LEAST = 32 }; // for a name that is not told
    size_t first = list_split(reader->names.count, name_is_before, reader->names.parts, name);
    size_t end = list_split(reader->names.count, name_is_before, reader->names.parts, name + 1ull);
    if (first == end && reader->names_of) return reader_name_size(reader->names_of, name);
    return LEAST + (end - first) * TRACE_PART;
}

const char *reader_name(const reader_t *reader, uint32_t name, char *text, size_t size)
{
    const trace_name_part_t **parts = reader->names.parts;
    size_t i = list_split(reader->names.count, name_is_before, parts, name), length = 0;
    *text = 0;
    if (!name) return text;
    if (i == reader->names.count || parts[i]->name != name) {
        if (reader->names_of) return reader_name(reader->names_of, name, text, size);
        snprintf(text, size, "name %u", name);
        return text;
    }
    for (size_t first = i; i < reader->names.count && parts[i]->name == name && length + 1 < size;
         i++) {
        if (i > first && parts[i]->part == parts[i - 1]->part) continue;
        size_t part = strnlen(parts[i]->text, TRACE_PART);
        if (part > size - 1 - length) part = size - 1 - length;
        memcpy(text + length, parts[i]->text, part);
        length += part;
    }
    text[length] = 0;
    return text;
}

static bool id_is_before(const void *items, size_t i, uint64_t number)
{
    return ((const trace_record_t *const *)items)[i]->id < number;
}

static const trace_record_t *list_find(const trace_record_t **records, size_t count, uint64_t id)
{
    size_t i = list_split(count, id_is_before, records, id);
    return i < count && records[i]->id == id ? records[i] : NULL;
}

const trace_record_t *reader_queue(const reader_t *reader, uint64_t number)
{
    return list_find(reader->queues.records, reader->queues.count, number);
}

const trace_record_t *reader_thread(const reader_t *reader, uint64_t number)
{
    return list_find(reader->threads.records, reader->threads.count, number);
}
