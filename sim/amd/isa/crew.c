// SPDX-License-Identifier: Apache-2.0
// Threads that help with the workgroups of a dispatch. Each has an interpreter of its own, with its
// own decoded code and its own memory for waves, and shares nothing but the grid.
#include <pthread.h>
#include <stdlib.h>

#include "amd/isa/state.h"
#include "amd/usage.h"

typedef struct {
    struct crew *crew;
    isa_t *isa; // owned
    pthread_t thread;
    bool faulted;
} helper_t;

struct crew {
    pthread_mutex_t lock;
    pthread_cond_t wake, idle;
    grid_t *grid;    // borrowed while it runs
    uint64_t round;  // grows with every dispatch
    unsigned active; // helpers that have not ended this round
    bool over;
    unsigned count;
    helper_t helpers[];
};

static void help(helper_t *helper, grid_t *grid, unsigned index)
{
    isa_t *isa = helper->isa;
    if (grid->seed) isa_shuffle(isa, grid->seed * (index + 2) | 1);
    if (grid->weak) isa_weak(isa, grid->weak);
    helper->faulted = !grid_run(isa, grid) && isa->fault.kind != FAULT_NONE;
}

static void *helper_main(void *argument)
{
    helper_t *helper = argument;
    struct crew *crew = helper->crew;
    uint64_t seen = 0;
    pthread_mutex_lock(&crew->lock);
    for (;;) {
        while (crew->round == seen && !crew->over) pthread_cond_wait(&crew->wake, &crew->lock);
        if (crew->over) break;
        seen = crew->round;
        pthread_mutex_unlock(&crew->lock);
        help(helper, crew->grid, (unsigned)(helper - crew->helpers));
        pthread_mutex_lock(&crew->lock);
        if (--crew->active == 0) pthread_cond_signal(&crew->idle);
    }
    pthread_mutex_unlock(&crew->lock);
    return NULL;
}

bool isa_threads(isa_t *isa, unsigned count)
{
    crew_destroy(isa->crew);
    isa->crew = NULL;
    if (count < 2) return true;
    struct crew *crew = calloc(1, sizeof *crew + count * sizeof *crew->helpers);
    if (!crew) return false;
    pthread_mutex_init(&crew->lock, NULL);
    pthread_cond_init(&crew->wake, NULL);
    pthread_cond_init(&crew->idle, NULL);
    isa_host_t host = isa->host;
    host.meanwhile = NULL;
    host.units = isa->units;
    for (; crew->count + 1 < count; crew->count++) {
        helper_t *helper = &crew->helpers[crew->count];
        helper->crew = crew;
        helper->isa = isa_create(isa->gfx, isa->node, &host);
        if (!helper->isa || usage_thread(&helper->thread, helper_main, helper)) {
            isa_destroy(helper->isa);
            break;
        }
    }
    isa->crew = crew;
    return crew->count + 1 >= count;
}

void crew_destroy(struct crew *crew)
{
    if (!crew) return;
    pthread_mutex_lock(&crew->lock);
    crew->over = true;
    pthread_cond_broadcast(&crew->wake);
    pthread_mutex_unlock(&crew->lock);
    for (unsigned k = 0; k < crew->count; k++) {
        pthread_join(crew->helpers[k].thread, NULL);
        isa_destroy(crew->helpers[k].isa);
    }
    pthread_cond_destroy(&crew->wake);
    pthread_cond_destroy(&crew->idle);
    pthread_mutex_destroy(&crew->lock);
    free(crew);
}

void crew_start(struct crew *crew, grid_t *grid)
{
    if (!crew) return;
    pthread_mutex_lock(&crew->lock);
    crew->grid = grid;
    crew->active = crew->count;
    crew->round++;
    pthread_cond_broadcast(&crew->wake);
    pthread_mutex_unlock(&crew->lock);
}

const fault_t *crew_join(struct crew *crew)
{
    const fault_t *fault = NULL;
    if (!crew) return NULL;
    pthread_mutex_lock(&crew->lock);
    while (crew->active) pthread_cond_wait(&crew->idle, &crew->lock);
    for (unsigned k = 0; k < crew->count && !fault; k++) {
        if (crew->helpers[k].faulted) fault = isa_fault(crew->helpers[k].isa);
    }
    pthread_mutex_unlock(&crew->lock);
    return fault;
}

uint64_t crew_count(const struct crew *crew)
{
    uint64_t count = 0;
    for (unsigned k = 0; crew && k < crew->count; k++) count += isa_count(crew->helpers[k].isa);
    return count;
}
