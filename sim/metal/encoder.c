// SPDX-License-Identifier: Apache-2.0
#include "metal/encoder.h"

#include "metal/counter.h"
#include "metal/hazard.h"

#include <stdlib.h>

void *encoder_new(class_t *class, command_t *command)
{
    encoder_t *encoder = object_new(class);
    encoder->command = object_retain(command);
    encoder->begin = command->last_work;
    encoder->owner = pthread_self();
    encoder->number = hazard_encoder(command->number);
    return encoder;
}

// Puts `count` works behind `link` in any order. Answers the link behind them.
static work_t **works_mix(work_t **link, unsigned count)
{
    work_t **works = make(count * sizeof *works + 1), *rest = *link;
    for (unsigned i = 0; i < count; i++, rest = rest->next) {
        unsigned at = (unsigned)(draw() % (i + 1));
        works[i] = works[at];
        works[at] = rest;
    }
    for (unsigned i = 0; i < count; i++, link = &(*link)->next) *link = works[i];
    *link = rest;
    free(works);
    return link;
}

// With a seed, what no barrier orders runs in another order than it was encoded in.
static void encoder_mix(encoder_t *self)
{
    work_t **link = self->begin;
    if (!settings()->seed || !self->concurrent) return;
    while (*link) {
        unsigned count = 0;
        for (work_t *work = *link; work && !work->ordered; work = work->next) count++;
        link = works_mix(link, count);
        if (*link) link = &(*link)->next;
    }
    self->command->last_work = link;
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
    if (!pthread_equal(self->owner, pthread_self()))
        misuse(self, cmd, "another thread has made the encoder: encoders are of one thread");
}

void encoder_end(encoder_t *self, sel_t cmd)
{
    encoder_check_open(self, cmd);
    const work_t *first = self->first_sample ? self->first_sample->next : *self->begin;
    bool worked = first != NULL;
    encoder_mix(self);
    pass_end(self, worked);
    self->ended = true;
    self->command->encoder = NULL;
}

typedef struct fence_t {
    object_t object;
    known_t known;
    atomic_bool updated; // by what was committed
} fence_t;

typedef struct fence_work_t {
    work_t work;
    unsigned encoder; // its number
} fence_work_t;

// Dispatches and blits run one after the other, so a fence orders what hazard.h knows, and no more.
static unsigned perform_update(work_t *work)
{
    hazard_update(((fence_work_t *)work)->encoder, &((fence_t *)work->uses[0])->known);
    return ERROR_NONE;
}

static unsigned perform_wait(work_t *work)
{
    hazard_wait(((fence_work_t *)work)->encoder, &((fence_t *)work->uses[0])->known);
    return ERROR_NONE;
}

void encoder_check_fences(const command_t *command, sel_t cmd)
{
    for (const work_t *work = command->works; work; work = work->next) {
        if (work->perform != perform_update && work->perform != perform_wait) continue;
        fence_t *fence = (fence_t *)work->uses[0];
        if (work->perform == perform_update) atomic_store(&fence->updated, true);
        if (!atomic_load(&fence->updated))
            misuse(command, cmd,
                   "an encoder waits for a fence that nothing has updated which was "
                   "committed before");
    }
}

static void fence_use(encoder_t *self, sel_t cmd, void *fence, perform_fn perform)
{
    encoder_check_open(self, cmd);
    object_check(self, cmd, fence, &MTLFence);
    fence_work_t *made = command_add(self->command, sizeof *made, perform, &fence, 1);
    made->encoder = self->number;
    made->work.ordered = true;
}

void encoder_update_fence(encoder_t *self, sel_t cmd, void *fence)
{
    fence_use(self, cmd, fence, perform_update);
    object_t **more = realloc(self->updated, (self->updated_count + 1) * sizeof *more);
    if (!more) die("no memory for a fence");
    self->updated = more;
    self->updated[self->updated_count++] = fence;
}

// Metal may move waits to the begin of the encoder, and updates to its end.
void encoder_wait_for_fence(encoder_t *self, sel_t cmd, void *fence)
{
    fence_use(self, cmd, fence, perform_wait);
    for (unsigned i = 0; i < self->updated_count; i++)
        if (self->updated[i] == fence) misuse(self, cmd, "this encoder has updated the fence");
}

static void fence_dealloc(void *self)
{
    free(((fence_t *)self)->known.covers);
}

class_t MTLFence = {.name = "MTLFence",
                    .size = sizeof(fence_t),
                    .dealloc = fence_dealloc,
                    .methods = (method_t[]){METHODS_END}};
