// SPDX-License-Identifier: Apache-2.0
#include "metal/hazard_order.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// A command buffer.
typedef struct batch_t {
    known_t known;
    uint64_t committed; // the host's moment then
    uint64_t seen;      // the moment in which the host sees its end; 0: not yet
    unsigned last;      // of its encoders
} batch_t;

typedef struct span_t {   // an encoder
    unsigned batch, next; // of the same command buffer
    unsigned works;       // that were begun
    unsigned barriers;    // that it has passed
    known_t known;        // by fences
    uint64_t mark;        // of a join; where it is in what is joined
    unsigned place;
} span_t;

typedef struct node_t { // a work
    unsigned encoder, index, barriers;
    bool serial;
    char name[40];
} node_t;

// Tables; number 0 is none.
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static batch_t *batches;
static span_t *spans;
static node_t *nodes;
static unsigned batch_count = 1, span_count = 1, node_count = 1;
static known_t host;
static uint64_t joins;
static PER_THREAD unsigned current, ordered; // the second is known to come before the first

void hazard_lock(void)
{
    pthread_mutex_lock(&lock);
}

void hazard_unlock(void)
{
    pthread_mutex_unlock(&lock);
}

static void *grown(void *table, unsigned count, size_t size)
{
    if (table && (count & (count - 1)) != 0) return table;
    void *larger = realloc(table, 2 * (size_t)count * size);
    if (!larger) die("no memory to look for hazards");
    return larger;
}

static bool is_seen(const span_t *span, uint64_t moment)
{
    uint64_t seen = batches[span->batch].seen;
    return seen && seen <= moment;
}

// Drops what is known by the moment already, and marks the rest.
static void prune(known_t *known, uint64_t mark)
{
    unsigned kept = 0;
    for (unsigned i = 0; i < known->count; i++) {
        span_t *span = &spans[known->covers[i].encoder];
        if (is_seen(span, known->moment)) continue;
        span->mark = mark;
        span->place = kept;
        known->covers[kept++] = known->covers[i];
    }
    known->count = kept;
}

static void cover_add(known_t *to, cover_t cover, uint64_t mark)
{
    span_t *span = &spans[cover.encoder];
    if (is_seen(span, to->moment)) return;
    if (span->mark == mark) {
        cover_t *old = &to->covers[span->place];
        if (old->before < cover.before) old->before = cover.before;
        return;
    }
    span->mark = mark;
    span->place = to->count;
    to->covers[to->count++] = cover;
}

static void join(known_t *to, const known_t *from)
{
    uint64_t mark = ++joins;
    if (to->moment < from->moment) to->moment = from->moment;
    if (!from->count) return;
    prune(to, mark);
    to->covers = realloc(to->covers, (to->count + from->count) * sizeof *to->covers);
    if (!to->covers) die("no memory to look for hazards");
    for (unsigned i = 0; i < from->count; i++) cover_add(to, from->covers[i], mark);
}

static void forget(known_t *known)
{
    free(known->covers);
    *known = (known_t){0};
}

unsigned hazard_batch(void)
{
    if (!settings()->hazards) return 0;
    hazard_lock();
    batches = grown(batches, batch_count, sizeof *batches);
    batches[batch_count] = (batch_t){0};
    unsigned number = batch_count++;
    hazard_unlock();
    return number;
}

unsigned hazard_encoder(unsigned batch)
{
    if (!batch) return 0;
    hazard_lock();
    spans = grown(spans, span_count, sizeof *spans);
    spans[span_count] = (span_t){.batch = batch, .next = batches[batch].last};
    unsigned number = batches[batch].last = span_count++;
    hazard_unlock();
    return number;
}

void hazard_committed(unsigned batch)
{
    if (!batch) return;
    hazard_lock();
    batches[batch].committed = ++host.moment;
    join(&batches[batch].known, &host);
    watch_begin(batch);
    hazard_unlock();
}

void hazard_ended(unsigned batch)
{
    if (!batch) return;
    hazard_lock();
    watch_settle(batch);
    hazard_unlock();
}

// All that the command buffer has done and knows, or had when it ended.
static void learn(known_t *to, unsigned batch)
{
    join(to, &batches[batch].known);
    for (unsigned at = batches[batch].last; at; at = spans[at].next) {
        cover_t own = {at, spans[at].works};
        join(to, &spans[at].known);
        if (own.before) join(to, &(known_t){.covers = &own, .count = 1});
    }
}

void hazard_seen(unsigned batch)
{
    if (!batch) return;
    hazard_lock();
    if (!batches[batch].seen) {
        watch_check(batch);
        batches[batch].seen = ++host.moment;
        learn(&host, batch);
    }
    hazard_unlock();
}

void hazard_gone(unsigned batch)
{
    if (!batch) return;
    hazard_lock();
    watch_end(batch);
    forget(&batches[batch].known);
    for (unsigned at = batches[batch].last; at; at = spans[at].next) forget(&spans[at].known);
    hazard_unlock();
}

void hazard_signals(unsigned batch, known_t *event)
{
    if (!batch) return;
    hazard_lock();
    learn(event, batch);
    hazard_unlock();
}

void hazard_waited(unsigned batch, const known_t *event)
{
    if (!batch) return;
    hazard_lock();
    join(&batches[batch].known, event);
    hazard_unlock();
}

// A raise is a moment of its own: it tells of what the host has written before.
void hazard_raises(known_t *event)
{
    if (!settings()->hazards) return;
    hazard_lock();
    host.moment++;
    join(event, &host);
    hazard_unlock();
}

void hazard_sees(const known_t *event)
{
    if (!settings()->hazards) return;
    hazard_lock();
    join(&host, event);
    hazard_unlock();
}

void hazard_barrier(unsigned encoder)
{
    if (!encoder) return;
    hazard_lock();
    spans[encoder].barriers++;
    hazard_unlock();
}

// Transitive: what comes before the encoder comes before who waits.
void hazard_update(unsigned encoder, known_t *fence)
{
    if (!encoder) return;
    hazard_lock();
    cover_t own = {encoder, spans[encoder].works};
    forget(fence);
    join(fence, &batches[spans[encoder].batch].known);
    join(fence, &spans[encoder].known);
    if (own.before) join(fence, &(known_t){.covers = &own, .count = 1});
    hazard_unlock();
}

void hazard_wait(unsigned encoder, const known_t *fence)
{
    if (!encoder) return;
    hazard_lock();
    join(&spans[encoder].known, fence);
    hazard_unlock();
}

void hazard_begin(unsigned encoder, bool serial, const char *what, const char *name)
{
    if (!encoder) return;
    hazard_lock();
    nodes = grown(nodes, node_count, sizeof *nodes);
    node_t *node = &nodes[node_count];
    span_t *span = &spans[encoder];
    *node = (node_t){encoder, span->works++, span->barriers, serial, ""};
    snprintf(node->name, sizeof node->name, "%s %s", what, name);
    current = node_count++;
    ordered = 0;
    hazard_unlock();
}

void hazard_end(unsigned encoder)
{
    if (!encoder) return;
    hazard_lock();
    touches_settle();
    current = 0;
    hazard_unlock();
}

unsigned work_current(void)
{
    return current;
}

const char *work_name(unsigned work)
{
    return nodes[work].name;
}

unsigned work_batch(unsigned work)
{
    return spans[nodes[work].encoder].batch;
}

static bool knows(const known_t *known, const node_t *node)
{
    if (is_seen(&spans[node->encoder], known->moment)) return true;
    for (unsigned i = 0; i < known->count; i++)
        if (known->covers[i].encoder == node->encoder && node->index < known->covers[i].before)
            return true;
    return false;
}

bool work_is_before(unsigned work)
{
    if (work == ordered || work == current) return true;
    const node_t *first = &nodes[work], *second = &nodes[current];
    const span_t *span = &spans[second->encoder];
    bool before = first->encoder == second->encoder
                      ? second->serial || first->barriers < second->barriers
                      : knows(&batches[span->batch].known, first) || knows(&span->known, first);
    if (before) ordered = work;
    return before;
}

bool work_is_seen(unsigned work)
{
    return knows(&host, &nodes[work]);
}

bool work_is_older(unsigned work, unsigned batch)
{
    return is_seen(&spans[nodes[work].encoder], batches[batch].committed);
}

bool batch_is_told(unsigned batch)
{
    return batches[batch].known.moment > batches[batch].committed;
}
