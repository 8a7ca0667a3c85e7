// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <stdio.h>

#include "base/status.h"
#include "base/thread.h"
#include "drivers/cpu/cpu.h"

enum { MAX_IN_TURN = 64 }; // runs of one chain before others of the list have their turn

// The run that the last one set off, unless another is to be served first.
static cpu_run_t *worker_next(cpu_worker_t *worker)
{
    cpu_run_t *run = worker->next;
    worker->next = NULL;
    if (!run) return NULL;
    uint32_t level = cpu_run_level(run);
    uint32_t ready = atomic_load_explicit(&worker->node->ready_mask, memory_order_relaxed) >> level;
    if (ready >> 1 || (ready && ++worker->in_turn > MAX_IN_TURN)) {
        worker->in_turn = 0;
        cpu_node_push(worker->node, run, false);
        return NULL;
    }
    run->workers = 1;
    return run;
}

static void *worker_main(void *argument)
{
    cpu_worker_t *worker = argument;
    cpu_node_t *node = worker->node;
    cpu_this_worker = worker;
    for (;;) {
        bool alone = true;
        cpu_run_t *run = worker_next(worker);
        if (!run) run = cpu_node_take(node, worker, &alone);
        if (run)
            cpu_run_drive(run, worker, alone);
        else if (atomic_load(&node->stopping))
            break;
        else
            cpu_node_sleep(node);
    }
    return NULL;
}

keel_status_t cpu_workers_start(cpu_node_t *node)
{
    for (uint32_t i = 0; i < node->worker_count; i++) {
        cpu_worker_t *worker = &node->workers[i];
        worker->node = node;
        worker->index = node->first_worker + i;
        worker->random = node->device->seed + worker->index;
        char name[16];
        snprintf(name, sizeof name, "keel-cpu%u", worker->index);
        int error = thread_start(&worker->thread, name, worker_main, worker);
        if (error)
            return status_from_errno(KEEL_RESOURCE_EXHAUSTED, error, "cannot start a worker");
        worker->started = true;
    }
    return NULL;
}

void cpu_workers_stop(cpu_node_t *node)
{
    cpu_node_stop(node);
    for (uint32_t i = 0; node->workers && i < node->worker_count; i++)
        if (node->workers[i].started) pthread_join(node->workers[i].thread, NULL);
}
