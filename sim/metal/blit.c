// SPDX-License-Identifier: Apache-2.0
#include "metal/buffer.h"
#include "metal/counter.h"
#include "metal/hazard.h"

#include <string.h>

typedef struct blit_work_t {
    work_t work;
    unsigned long from, to, length;
    uint8_t value;
    unsigned encoder; // its number
} blit_work_t;

// Metal on macOS wants multiples of 4, and something to do.
static void check_range(encoder_t *self, sel_t cmd, buffer_t *buffer, range_t range)
{
    object_check(self, cmd, buffer, &MTLBuffer);
    if (range.length == 0) misuse(self, cmd, "a range of no bytes");
    if (range.location % 4 || range.length % 4)
        misuse(self, cmd, "offset %lu and size %lu must be multiples of 4", range.location,
               range.length);
    buffer_check(self, cmd, buffer, range);
}

static char *memory_of(object_t *buffer)
{
    return ((buffer_t *)buffer)->gpu;
}

// One word is written as a whole: a kernel that looks at it by atomic operations may be let go so.
static access_t writes_as(const blit_work_t *blit)
{
    return blit->length == 4 ? WRITES_ATOMIC : WRITES;
}

static unsigned perform_fill(work_t *work)
{
    blit_work_t *fill = (blit_work_t *)work;
    char *memory = memory_of(work->uses[0]) + fill->to;
    hazard_begin(fill->encoder, false, "a", "fill");
    hazard_touch(memory, fill->length, writes_as(fill));
    memset(memory, fill->value, fill->length);
    hazard_end(fill->encoder);
    return ERROR_NONE;
}

static void blit_fill(encoder_t *self, sel_t cmd, buffer_t *buffer, range_t range, uint8_t value)
{
    encoder_check_open(self, cmd);
    check_range(self, cmd, buffer, range);
    blit_work_t *fill =
        command_add(self->command, sizeof *fill, perform_fill, (void *[]){buffer}, 1);
    fill->encoder = self->number;
    fill->to = range.location;
    fill->length = range.length;
    fill->value = value;
}

static void check_flushed(const buffer_t *buffer, range_t range, const char *what)
{
    long at = buffer_unflushed(buffer, range);
    if (at < 0) return;
    die("byte %ld of a managed buffer of %lu bytes is unflushed: the host has written it since "
        "didModifyRange:, and %s",
        at, buffer->length, what);
}

static unsigned perform_copy(work_t *work)
{
    blit_work_t *copy = (blit_work_t *)work;
    check_flushed((buffer_t *)work->uses[0], (range_t){copy->from, copy->length},
                  "a blit copies it");
    char *to = memory_of(work->uses[1]) + copy->to, *from = memory_of(work->uses[0]) + copy->from;
    hazard_begin(copy->encoder, false, "a", "copy");
    hazard_touch(from, copy->length, READS);
    hazard_touch(to, copy->length, writes_as(copy));
    memcpy(to, from, copy->length);
    hazard_end(copy->encoder);
    return ERROR_NONE;
}

static void blit_copy(encoder_t *self, sel_t cmd, buffer_t *from, unsigned long from_offset,
                      buffer_t *to, unsigned long to_offset, unsigned long length)
{
    encoder_check_open(self, cmd);
    check_range(self, cmd, from, (range_t){from_offset, length});
    check_range(self, cmd, to, (range_t){to_offset, length});
    if (from == to && from_offset < to_offset + length && to_offset < from_offset + length)
        misuse(self, cmd, "the ranges from %lu and %lu overlap", from_offset, to_offset);
    blit_work_t *copy =
        command_add(self->command, sizeof *copy, perform_copy, (void *[]){from, to}, 2);
    copy->encoder = self->number;
    copy->from = from_offset;
    copy->to = to_offset;
    copy->length = length;
}

static unsigned perform_synchronize(work_t *work)
{
    buffer_t *buffer = (buffer_t *)work->uses[0];
    unsigned encoder = ((blit_work_t *)work)->encoder;
    range_t all = {0, buffer->length};
    check_flushed(buffer, all, "synchronizeResource: would undo that");
    hazard_begin(encoder, false, "a", "synchronization");
    hazard_touch(buffer->gpu, buffer->length, READS);
    if (buffer->mapped) memcpy(buffer->host, buffer->gpu, buffer->length);
    hazard_end(encoder);
    buffer_settled(buffer, all);
    return ERROR_NONE;
}

static void blit_synchronize(encoder_t *self, sel_t cmd, buffer_t *buffer)
{
    encoder_check_open(self, cmd);
    object_check(self, cmd, buffer, &MTLBuffer);
    if (buffer->storage != STORAGE_MANAGED)
        misuse(self, cmd, "the buffer's storage is not managed");
    blit_work_t *made =
        command_add(self->command, sizeof *made, perform_synchronize, (void *[]){buffer}, 1);
    made->encoder = self->number;
}

static method_t blit_methods[] = {
    ENCODER_METHODS,
    METHOD("fillBuffer:range:value:", blit_fill),
    METHOD("copyFromBuffer:sourceOffset:toBuffer:destinationOffset:size:", blit_copy),
    METHOD("synchronizeResource:", blit_synchronize),
    METHOD("resolveCounters:inRange:destinationBuffer:destinationOffset:", blit_resolve),
    METHODS_END};
class_t MTLBlitCommandEncoder = {.name = "MTLBlitCommandEncoder",
                                 .size = sizeof(encoder_t),
                                 .dealloc = encoder_dealloc,
                                 .methods = blit_methods};
