// SPDX-License-Identifier: Apache-2.0
#include "metal/encoder.h"

#include <stdlib.h>

void *encoder_new(class_t *class, command_t *command)
{
    encoder_t *encoder = object_new(class);
    encoder->command = object_retain(command);
    return encoder;
}

void encoder_dealloc(void *self)
{
    encoder_t *encoder = self;
    if (!encoder->ended) die("an encoder was released before endEncoding");
    object_release(encoder->command);
    free(encoder->updated);
}

void encoder_check_open(encoder_t *self, sel_t cmd)
{
    if (self->ended) misuse(self, cmd, "the encoder has ended");
}

void encoder_end(encoder_t *self, sel_t cmd)
{
    encoder_check_open(self, cmd);
    self->ended = true;
    self->command->encoder = NULL;
}

// Dispatches and blits run one after the other, so a fence has nothing to do but to be alive.
static unsigned perform_fence(work_t *work)
{
    return ERROR_NONE;
}

static void fence_use(encoder_t *self, sel_t cmd, void *fence)
{
    encoder_check_open(self, cmd);
    object_check(self, cmd, fence, &MTLFence);
    command_add(self->command, sizeof(work_t), perform_fence, &fence, 1);
}

void encoder_update_fence(encoder_t *self, sel_t cmd, void *fence)
{
    fence_use(self, cmd, fence);
    object_t **more = realloc(self->updated, (self->updated_count + 1) * sizeof *more);
    if (!more) die("no memory for a fence");
    self->updated = more;
    self->updated[self->updated_count++] = fence;
}

// Metal may move waits to the begin of the encoder, and updates to its end.
void encoder_wait_for_fence(encoder_t *self, sel_t cmd, void *fence)
{
    fence_use(self, cmd, fence);
    for (unsigned i = 0; i < self->updated_count; i++)
        if (self->updated[i] == fence) misuse(self, cmd, "this encoder has updated the fence");
}

class_t MTLFence = {
    .name = "MTLFence", .size = sizeof(object_t), .methods = (method_t[]){METHODS_END}};
