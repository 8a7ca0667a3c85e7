// SPDX-License-Identifier: Apache-2.0
// Streams, events, and the work on them.
#include <stdlib.h>
#include <string.h>

#include "drivers/stream/vendor_inside.h"

enum { MOST_STREAMS = 256 };

typedef struct stream_t {
    thing_t thing;
    int32_t priority;
    uint32_t index; // among those of its priority
    work_t *first, **last;
    uint32_t pending;         // pieces of work
    uint32_t load, most_load; // room that these and events take
    uint32_t allowed;         // of these may run, if it is held
    bool of_queue, let, late; // `let`: it is not held
} stream_t;

struct event_t {
    thing_t thing;
    const stream_t *stream;  // of the last record
    uint64_t recorded, come; // how often
};

static stream_t *streams[MOST_STREAMS], *queues[MOST_STREAMS];
static uint32_t stream_count, queue_count;
static uint32_t room;     // of a stream, in launches; 0: any number
static uint32_t channels; // of a priority; 0: each stream has its own
static uint64_t put_count;
static bool held;

static bool is_piece(const work_t *work)
{
    return work->kind <= WORK_RUN;
}

static uint32_t load_of(const work_t *work)
{
    const stream_quirks_t *quirks = &kind_now()->quirks;
    switch (work->kind) {
    case WORK_LAUNCH: return 1;
    case WORK_FILL:
    case WORK_COPY: return quirks->transfer_room ? quirks->transfer_room : 1;
    case WORK_RUN: return quirks->graph_unrolls ? program_length(work->program) : 1;
    case WORK_RECORD:
    case WORK_WAIT: return quirks->event_room;
    case WORK_FREE: return 0;
    }
    return 0;
}

void launch_check(const stream_launch_t *launch)
{
    for (int i = 0; i < 3; i++)
        if (!launch->groups[i] || !launch->group_size[i]) misuse("a launch of no groups; ");
}

void launch_copy(stream_launch_t *to, const stream_launch_t *from)
{
    void *arguments = malloc(from->size + 1);
    if (!arguments) abort();
    *to = *from;
    to->arguments = from->size ? memcpy(arguments, from->arguments, from->size) : arguments;
}

void work_finish(work_t *work)
{
    free((void *)(uintptr_t)work->launch.arguments);
    if (work->program) program_release(work->program);
}

// With the quirk, one that lies within a word is not to come here.
static void fill_run(const bound_fill_t *fill)
{
    uint32_t word = kind_now()->quirks.fill_word;
    if (word && fill->target % word && fill->target % word + fill->count * fill->size < word)
        misuse("a fill of %llu bytes at 0x%llx", (unsigned long long)(fill->count * fill->size),
               (unsigned long long)fill->target);
    for (uint64_t i = 0; i < fill->count; i++)
        memcpy((char *)(uintptr_t)fill->target + i * fill->size, &fill->pattern, fill->size);
}

void work_run(const work_t *work)
{
    const bound_copy_t *copy = &work->copy;
    switch (work->kind) {
    case WORK_LAUNCH: ((const kernel_t *)work->launch.function)->fn(&work->launch); break;
    case WORK_FILL: fill_run(&work->fill); break;
    case WORK_COPY:
        memcpy((void *)(uintptr_t)copy->target, (void *)(uintptr_t)copy->source, copy->size);
        break;
    case WORK_RUN: program_run(work->program); break;
    case WORK_RECORD: work->event->come = work->record; break;
    case WORK_FREE: memory_end(work->address); break;
    case WORK_WAIT: break;
    }
}

// Whether another stream on the same channel has work that was put there before.
static bool head_is_behind(const stream_t *s)
{
    for (uint32_t i = 0; channels && i < stream_count; i++) {
        const stream_t *t = streams[i];
        bool shares = t->priority == s->priority && t->index % channels == s->index % channels;
        if (shares && t->first && t->first->order < s->first->order) return true;
    }
    return false;
}

static bool head_can_run(const stream_t *s)
{
    const work_t *work = s->first;
    if (!work || head_is_behind(s)) return false;
    if (work->kind == WORK_WAIT) return work->event->come >= work->record;
    return !held || !s->of_queue || s->let || s->allowed || !is_piece(work);
}

static void head_drop(stream_t *s, bool run)
{
    work_t *work = s->first;
    s->first = work->next;
    if (!s->first) s->last = &s->first;
    s->load -= load_of(work);
    if (is_piece(work)) {
        s->pending--;
        if (s->allowed) s->allowed--;
    }
    if (run) work_run(work);
    work_finish(work);
    free(work);
}

void pump(void)
{
    for (bool more = true; more;) {
        more = false;
        for (uint32_t i = 0; i < stream_count; i++)
            for (; head_can_run(streams[i]); more = true) head_drop(streams[i], true);
    }
}

// An empty stream takes anything.
static bool is_full(const stream_t *s, uint32_t load)
{
    return room && load && s->load && s->load + load > room;
}

void stream_put(stream_h handle, const work_t *work)
{
    stream_t *s = thing_of(handle, THING_STREAM);
    uint32_t load = load_of(work);
    if (is_full(s, load) && kind_now()->quirks.full_shared)
        misuse("work for a full stream, which holds up all others; ");
    while (is_full(s, load)) changed_wait();
    work_t *put = malloc(sizeof *put);
    if (!put) abort();
    *put = *work;
    put->next = NULL;
    put->order = put_count++;
    *s->last = put;
    s->last = &put->next;
    if (is_piece(work)) s->pending++;
    s->load += load;
    if (s->most_load < s->load) s->most_load = s->load;
}

static keel_status_t stream_create(stream_vendor_t *v, int32_t priority, stream_h *stream)
{
    BEGIN(stream_create);
    if (stream_count == MOST_STREAMS) abort();
    stream_t *s = thing_new(THING_STREAM, sizeof *s);
    s->last = &s->first;
    s->priority = priority;
    s->of_queue = priority != VENDOR_GREATEST;
    for (uint32_t i = 0; i < stream_count; i++) s->index += streams[i]->priority == priority;
    streams[stream_count++] = s;
    if (s->of_queue) queues[queue_count++] = s;
    *stream = s;
    return done(NULL);
}

// What is on it still runs.
static void stream_destroy(stream_vendor_t *v, stream_h stream)
{
    BEGIN_VOID(stream_destroy);
    thing_end(stream, THING_STREAM);
    done(NULL);
}

static keel_status_t stream_drain(stream_vendor_t *v, stream_h stream)
{
    BEGIN(stream_drain);
    const stream_t *s = thing_of(stream, THING_STREAM);
    if (s->first && head_is_behind(s)) misuse("a drain waits for the work of other streams; ");
    while (s->first && !head_is_behind(s)) changed_wait();
    return done(NULL);
}

static keel_status_t event_create(stream_vendor_t *v, stream_event_kind_t kind,
                                  stream_event_h *event)
{
    (void)kind;
    BEGIN(event_create);
    *event = thing_new(THING_EVENT, sizeof(event_t));
    return done(NULL);
}

static void event_destroy(stream_vendor_t *v, stream_event_h event)
{
    BEGIN_VOID(event_destroy);
    thing_end(event, THING_EVENT);
    done(NULL);
}

static keel_status_t event_record(stream_vendor_t *v, stream_event_h event, stream_h stream)
{
    BEGIN(event_record);
    event_t *e = thing_of(event, THING_EVENT);
    e->stream = thing_of(stream, THING_STREAM);
    stream_put(stream, &(work_t){.kind = WORK_RECORD, .event = e, .record = ++e->recorded});
    return done(NULL);
}

static bool event_is_over(const event_t *e)
{
    return e->come >= e->recorded && !(e->stream && e->stream->late);
}

static keel_status_t event_query(stream_vendor_t *v, stream_event_h event, bool *over)
{
    BEGIN(event_query);
    *over = event_is_over(thing_of(event, THING_EVENT));
    return done(NULL);
}

static keel_status_t event_sync(stream_vendor_t *v, stream_event_h event)
{
    BEGIN(event_sync);
    const event_t *e = thing_of(event, THING_EVENT);
    while (!event_is_over(e)) changed_wait();
    return done(NULL);
}

static keel_status_t stream_wait(stream_vendor_t *v, stream_h stream, stream_event_h event)
{
    BEGIN(stream_wait);
    event_t *e = thing_of(event, THING_EVENT);
    stream_put(stream, &(work_t){.kind = WORK_WAIT, .event = e, .record = e->recorded});
    return done(NULL);
}

static keel_status_t fill(stream_vendor_t *v, stream_h stream, const bound_fill_t *f)
{
    BEGIN(fill);
    stream_put(stream, &(work_t){.kind = WORK_FILL, .fill = *f});
    return done(NULL);
}

static keel_status_t copy(stream_vendor_t *v, stream_h stream, const bound_copy_t *c)
{
    BEGIN(copy);
    stream_put(stream, &(work_t){.kind = WORK_COPY, .copy = *c});
    return done(NULL);
}

static keel_status_t launch(stream_vendor_t *v, stream_h stream, const stream_launch_t *l)
{
    work_t work = {.kind = WORK_LAUNCH};
    BEGIN(launch);
    launch_check(l);
    launch_copy(&work.launch, l);
    stream_put(stream, &work);
    return done(NULL);
}

void stream_slots(stream_api_t *api)
{
    api->stream_create = stream_create;
    api->stream_destroy = stream_destroy;
    api->stream_drain = stream_drain;
    api->stream_wait = stream_wait;
    api->event_create = event_create;
    api->event_destroy = event_destroy;
    api->event_record = event_record;
    api->event_query = event_query;
    api->event_sync = event_sync;
    api->fill = fill;
    api->copy = copy;
    api->launch = launch;
}

void streams_reset(void)
{
    for (uint32_t i = 0; i < stream_count; i++)
        while (streams[i]->first) head_drop(streams[i], false);
    stream_count = queue_count = room = channels = 0;
    held = false;
}

void vendor_hold(void)
{
    vendor_lock();
    held = true;
    done(NULL);
}

void vendor_let(uint32_t queue)
{
    vendor_lock();
    queues[queue]->let = true;
    done(NULL);
}

void vendor_go(void)
{
    vendor_lock();
    held = false;
    done(NULL);
}

uint32_t vendor_run(uint32_t queue, uint32_t n)
{
    vendor_lock();
    stream_t *s = queues[queue];
    s->allowed = n;
    pump();
    n -= s->allowed;
    s->allowed = 0;
    done(NULL);
    return n;
}

uint32_t vendor_pending(uint32_t queue)
{
    vendor_lock();
    uint32_t pending = queues[queue]->pending;
    done(NULL);
    return pending;
}

int32_t vendor_priority(uint32_t queue)
{
    vendor_lock();
    int32_t priority = queues[queue]->priority;
    done(NULL);
    return priority;
}

uint32_t vendor_most_load(uint32_t queue)
{
    vendor_lock();
    uint32_t most = queues[queue]->most_load;
    done(NULL);
    return most;
}

bool queue_has_pending(uint32_t queue, uint32_t n)
{
    return queues[queue]->pending >= n;
}

void vendor_room(uint32_t launches)
{
    vendor_lock();
    room = launches;
    done(NULL);
}

void vendor_channels(uint32_t count)
{
    vendor_lock();
    channels = count;
    done(NULL);
}

void vendor_late(uint32_t queue, bool late)
{
    vendor_lock();
    queues[queue]->late = late;
    done(NULL);
}
