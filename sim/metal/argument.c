// SPDX-License-Identifier: Apache-2.0
#include "metal/argument.h"

#include "metal/buffer.h"

#include <string.h>

enum { POINTER = 8 };

typedef struct argument_encoder_t {
    object_t object;
    function_t *function; // retained
    unsigned count;       // of pointers
    buffer_t *target;     // borrowed; NULL: none was set
    unsigned long offset;
} argument_encoder_t;

void *argument_encoder_new(const void *self, sel_t cmd, function_t *function, unsigned long index)
{
    if (index >= BUFFERS || !function->entry->arguments[index])
        misuse(self, cmd, "kernel %s has no argument buffer at buffer(%lu)", function->entry->name,
               index);
    argument_encoder_t *encoder = object_new(&MTLArgumentEncoder);
    encoder->function = object_retain(function);
    encoder->count = function->entry->arguments[index];
    return encoder;
}

static void encoder_dealloc(void *self)
{
    object_release(((argument_encoder_t *)self)->function);
}

static unsigned long encoder_length(argument_encoder_t *self, sel_t cmd)
{
    return self->count * POINTER;
}

static void encoder_set_target(argument_encoder_t *self, sel_t cmd, buffer_t *buffer,
                               unsigned long offset)
{
    object_check(self, cmd, buffer, &MTLBuffer);
    if (offset % POINTER) misuse(self, cmd, "offset %lu: must be a multiple of 8", offset);
    buffer_check(self, cmd, buffer, (range_t){offset, self->count * POINTER});
    if (!buffer->host) misuse(self, cmd, "the storage of the argument buffer is private");
    self->target = buffer;
    self->offset = offset;
}

static void encoder_set_buffer(argument_encoder_t *self, sel_t cmd, buffer_t *buffer,
                               unsigned long offset, unsigned long index)
{
    uint64_t address = 0;
    if (!self->target) misuse(self, cmd, "no argument buffer is set");
    object_check(self, cmd, self->target, &MTLBuffer);
    if (index >= self->count) misuse(self, cmd, "id %lu: there are %u", index, self->count);
    if (buffer) {
        object_check(self, cmd, buffer, &MTLBuffer);
        buffer_check(self, cmd, buffer, (range_t){offset, 1});
        address = (uintptr_t)buffer->gpu + offset;
    }
    memcpy(self->target->host + self->offset + index * POINTER, &address, sizeof address);
}

static method_t encoder_methods[] = {METHOD("encodedLength", encoder_length),
                                     METHOD("setArgumentBuffer:offset:", encoder_set_target),
                                     METHOD("setBuffer:offset:atIndex:", encoder_set_buffer),
                                     METHODS_END};
class_t MTLArgumentEncoder = {.name = "MTLArgumentEncoder",
                              .size = sizeof(argument_encoder_t),
                              .dealloc = encoder_dealloc,
                              .methods = encoder_methods};
