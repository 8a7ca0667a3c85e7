// SPDX-License-Identifier: Apache-2.0
// libhsa-runtime64, for sim/forward. Work reaches a GPU by its queues, without a call: when a
// device is lost, they stop, and their owners are told so, on a thread of HSA's, as HSA does it.
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "forward/ledger.h"

enum { ERROR = 0x1000, LESS = 2 };

typedef void (*failed_t)(int status, void *queue, void *data);

typedef struct queue_t {
    struct queue_t *next;
    void *queue;
    failed_t failed; // may be NULL
    void *data;
} queue_t;

extern call_site_t site_hsa_iterate_agents, site_hsa_queue_create, site_hsa_queue_destroy,
    site_hsa_queue_inactivate, site_hsa_signal_create, site_hsa_amd_signal_async_handler;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static queue_t *queues;

// Calls of the real ones.
#define REAL(name, pointer) memcpy(&(pointer), &site_##name.real, sizeof(pointer))

static bool queues_fail(int64_t value, void *data)
{
    int (*inactivate)(void *);
    (void)value, (void)data;
    REAL(hsa_queue_inactivate, inactivate);
    pthread_mutex_lock(&lock);
    for (const queue_t *q = queues; q; q = q->next) {
        inactivate(q->queue);
        if (q->failed) q->failed(ERROR, q->queue, q->data);
    }
    pthread_mutex_unlock(&lock);
    return false;
}

// Has HSA's thread call queues_fail, by a signal that is at 0 all the time.
static void queues_lose(void)
{
    static uint64_t signal;
    int (*create)(int64_t, uint32_t, const void *, uint64_t *);
    int (*watch)(uint64_t, int, int64_t, bool (*)(int64_t, void *), void *);
    REAL(hsa_signal_create, create);
    REAL(hsa_amd_signal_async_handler, watch);
    if (!signal && create(0, 0, NULL, &signal)) abort();
    if (watch(signal, LESS, 1, queues_fail, NULL)) abort();
}

const forward_t forward = {
    .variable = "KEEL_SIM_HSA",
    .prefix = "hsa",
    .files = {"libhsa-runtime64.so.1"},
    .opens = &site_hsa_iterate_agents,
    .unknown = ERROR,
    .missing = ERROR,
    .lose = queues_lose,
};

static void queue_add(queue_t *q)
{
    pthread_mutex_lock(&lock);
    q->next = queues;
    queues = q;
    pthread_mutex_unlock(&lock);
}

static void queue_remove(const void *queue)
{
    pthread_mutex_lock(&lock);
    queue_t **link = &queues, *q;
    while ((q = *link) && q->queue != queue) link = &q->next;
    if (q) *link = q->next;
    pthread_mutex_unlock(&lock);
    free(q);
}

enum { FAILED = 3, DATA = 4, QUEUE = 7 }; // parameters of hsa_queue_create

int own_hsa_queue_create(const uint64_t words[8]);
int own_hsa_queue_create(const uint64_t words[8])
{
    int error = forward_make(&site_hsa_queue_create, words);
    if (error) return error;
    queue_t *q = malloc(sizeof *q);
    if (!q) abort();
    *q = (queue_t){NULL, *(void **)(uintptr_t)words[QUEUE], NULL, (void *)(uintptr_t)words[DATA]};
    memcpy(&q->failed, &words[FAILED], sizeof q->failed);
    queue_add(q);
    ledger_add(&site_hsa_queue_create, "queues", (uintptr_t)q->queue);
    return 0;
}

int own_hsa_queue_destroy(const uint64_t words[8]);
int own_hsa_queue_destroy(const uint64_t words[8])
{
    int (*real)(void *);
    void *queue = (void *)(uintptr_t)words[0];
    next_t next = forward_enter(&site_hsa_queue_destroy);
    queue_remove(queue);
    ledger_remove("queues", words[0]);
    REAL(hsa_queue_destroy, real);
    int error = real(queue);
    return next.error ? (int)next.error : error;
}
