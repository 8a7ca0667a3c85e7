// SPDX-License-Identifier: Apache-2.0
// The lists of a node, and how its workers sleep.
//
// No wake-up is lost: a thread adds work before it looks whether a worker polls or sleeps,
// and a worker announces that it is about to sleep before it looks for work the last time; these
// four are sequentially consistent. A worker that polls spares others the call into the kernel;
// when it takes something and leaves more behind, it wakes the next. Workers that have just had
// work, and are not the one that polls, wait a while to be called to a run in parts: by `epoch`,
// without the kernel.
#include "base/clock.h"
#include "base/memory.h"
#include "base/status.h"
#include "drivers/cpu/cpu.h"

THREAD_LOCAL cpu_worker_t *cpu_this_worker;
THREAD_LOCAL const keel_queue_t *cpu_submitting;

keel_status_t cpu_node_init(cpu_node_t *node, cpu_device_t *device, uint32_t workers)
{
    node->device = device;
    node->worker_count = workers;
    node->share_count = workers < CPU_MAX_SHARES ? workers : CPU_MAX_SHARES;
    for (int i = 0; i < CPU_LEVELS; i++) node->levels[i].last = &node->levels[i].first;
    if (!workers) return NULL;
    node->workers = mem_zalloc_aligned(workers * sizeof *node->workers, 64);
    return node->workers ? NULL : status_no_memory();
}

void cpu_node_finish(cpu_node_t *node)
{
    for (uint32_t i = 0; node->workers && i < node->worker_count; i++) {
        mem_free_aligned(node->workers[i].local);
        mem_free(node->workers[i].detached.calls);
    }
    mem_free_aligned(node->workers);
}

static void node_wake(cpu_node_t *node, int count)
{
    atomic_fetch_add(&node->epoch, 1);
    futex_wake(&node->epoch, count);
}

void cpu_node_rouse(cpu_node_t *node)
{
    if (atomic_load(&node->spinning)) return;
    if (atomic_load(&node->joining))
        atomic_fetch_add(&node->epoch, 1);
    else if (atomic_load(&node->sleeping))
        node_wake(node, 1);
}

void cpu_node_call(cpu_node_t *node)
{
    if (atomic_load(&node->joining))
        atomic_fetch_add(&node->epoch, 1);
    else
        cpu_node_rouse(node);
}

static void level_append(cpu_node_t *node, cpu_queue_t *queue)
{
    queue->next = NULL;
    *node->levels[queue->level].last = queue;
    node->levels[queue->level].last = &queue->next;
}

// Under the lock.
static void queue_append(cpu_queue_t *queue, cpu_run_t *run, bool first)
{
    if (!queue->ready) {
        queue->ready_last = &queue->ready;
        level_append(queue->node, queue);
    }
    if (first) {
        run->next = queue->ready;
        queue->ready = run;
        if (!run->next) queue->ready_last = &run->next;
    } else {
        run->next = NULL;
        *queue->ready_last = run;
        queue->ready_last = &run->next;
    }
}

static void node_list(cpu_node_t *node, cpu_run_t *run, bool first)
{
    cpu_queue_t *queue = (cpu_queue_t *)(void *)run->base.queue;
    lock_enter(&node->lock);
    queue_append(queue, run, first);
    uint32_t mask = atomic_load_explicit(&node->ready_mask,
                                         memory_order_relaxed); // changed under the lock only
    atomic_store(&node->ready_mask, mask | 1u << queue->level); // see the top
    lock_leave(&node->lock);
}

// Gives a run to the worker that polls, if there is one and nothing else is ready: no lock is
// taken, by either of them. A worker that stops polling looks here once more before it sleeps.
static bool node_hand_over(cpu_node_t *node, cpu_run_t *run)
{
    cpu_run_t *none = NULL;
    return atomic_load_explicit(&node->spinning, memory_order_relaxed) &&
           !atomic_load_explicit(&node->ready_mask, memory_order_relaxed) &&
           !node->device->shuffle && atomic_compare_exchange_strong(&node->handed, &none, run);
}

void cpu_node_push(cpu_node_t *node, cpu_run_t *run, bool first)
{
    keel_queue_t *queue = run->base.queue;
    // Once others can see the run, it may be over, and its device closed, before we have roused
    // anybody. A worker of the node is waited for, and who submits keeps the queue.
    bool kept = cpu_submitting == queue || (cpu_this_worker && cpu_this_worker->node == node);
    if (!kept) keel_queue_retain(queue);
    if (first || !node_hand_over(node, run)) node_list(node, run, first);
    cpu_node_rouse(node);
    if (!kept) keel_queue_release(queue);
}

static uint64_t random_next(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state >> 33;
}

// Under the lock: takes a run of a queue out of its list. Shuffling, any of them.
static cpu_run_t *queue_pop(cpu_queue_t *queue, cpu_worker_t *worker)
{
    cpu_run_t **at = &queue->ready;
    if (worker->node->device->shuffle)
        for (uint64_t skip = random_next(&worker->random) % 4; skip && (*at)->next; skip--)
            at = &(*at)->next;
    cpu_run_t *run = *at;
    *at = run->next;
    if (!*at) queue->ready_last = at;
    return run;
}

// Under the lock: queues of a level take turns.
static cpu_run_t *level_pop(cpu_node_t *node, uint32_t level, cpu_worker_t *worker)
{
    cpu_queue_t *queue = node->levels[level].first;
    cpu_run_t *run = queue_pop(queue, worker);
    node->levels[level].first = queue->next;
    if (!queue->next) node->levels[level].last = &node->levels[level].first;
    if (queue->ready) level_append(node, queue);
    if (!node->levels[level].first) {
        uint32_t mask = atomic_load_explicit(&node->ready_mask, memory_order_relaxed);
        atomic_store_explicit(&node->ready_mask, mask & ~(1u << level), memory_order_relaxed);
    }
    return run;
}

// Under the run's lock: whether there is work for more than those who are on it.
static bool run_wants_workers(const cpu_run_t *run)
{
    uint64_t units = run->units ? run->units - run->unit : cpu_walk_has_more(run);
    return run->workers < units + cpu_deal_left(run) + run->in_flight;
}

// Under the lock: joins the most urgent open run above `level`. *more: another one could join too.
static cpu_run_t *open_join(cpu_node_t *node, int level, bool *more)
{
    cpu_run_t *best = NULL;
    for (cpu_run_t *run = node->open_runs; run; run = run->open_link.next) {
        if ((int)cpu_run_level(run) <= level || !cpu_run_is_open(run)) continue;
        best = run;
        level = (int)cpu_run_level(run);
    }
    if (!best) return NULL;
    lock_enter(&best->lock);
    bool open = cpu_run_is_open(best);
    if (open) best->workers++;
    *more = open && run_wants_workers(best);
    lock_leave(&best->lock);
    return open ? best : NULL;
}

// One worker more, on a run that it is going to have for itself.
static void run_come(cpu_run_t *run)
{
    if (!run->listed_once) {
        run->workers = 1; // there was none
        return;
    }
    lock_enter(&run->lock);
    run->workers++;
    lock_leave(&run->lock);
}

static bool node_has_work(const cpu_node_t *node)
{
    return atomic_load(&node->ready_mask) || atomic_load(&node->open_count);
}

cpu_run_t *cpu_node_take(cpu_node_t *node, cpu_worker_t *worker, bool *alone)
{
    cpu_run_t *handed = atomic_load_explicit(&node->handed, memory_order_relaxed);
    if (handed && (handed = atomic_exchange(&node->handed, NULL))) {
        run_come(handed);
        *alone = true;
        // A thread that listed something while we polled left it to us.
        if (node_has_work(node)) cpu_node_rouse(node);
        return handed;
    }
    if (!node_has_work(node)) return NULL;
    lock_enter(&node->lock);
    uint32_t mask = atomic_load_explicit(&node->ready_mask, memory_order_relaxed);
    int level = mask ? 31 - __builtin_clz(mask) : -1;
    bool more = false;
    cpu_run_t *run = open_join(node, level, &more);
    *alone = false;
    if (!run && mask) {
        run = level_pop(node, (uint32_t)level, worker);
        run_come(run);
        *alone = true;
    }
    lock_leave(&node->lock);
    if (more)
        cpu_node_call(node);
    else if (atomic_load(&node->ready_mask))
        cpu_node_rouse(node);
    return run;
}

static void open_list(cpu_node_t *node, cpu_run_t *run)
{
    run->listed = run->listed_once = true;
    run->open_link.previous = NULL;
    run->open_link.next = node->open_runs;
    if (node->open_runs) node->open_runs->open_link.previous = run;
    node->open_runs = run;
    atomic_fetch_add(&node->open_count, 1);
}

void cpu_node_open(cpu_node_t *node, cpu_run_t *run)
{
    // Both locks at once, if it is to be listed: those who still poll a run that was open before
    // may otherwise end it, and take it off the list, before it is put there.
    bool list = !run->listed; // only who has the run alone, or ends it, changes that
    if (list) lock_enter(&node->lock);
    lock_enter(&run->lock);
    cpu_walk_deal(run);
    bool more = cpu_walk_has_more(run), open = more || cpu_deal_left(run);
    bool wants = open && run_wants_workers(run);
    if (open && list) open_list(node, run);
    atomic_store(&run->open, more); // see the top
    lock_leave(&run->lock);
    if (list) lock_leave(&node->lock);
    if (wants) cpu_node_call(node);
}

// Under the lock.
static void open_unlist(cpu_node_t *node, cpu_run_t *run)
{
    if (run->open_link.previous)
        run->open_link.previous->open_link.next = run->open_link.next;
    else
        node->open_runs = run->open_link.next;
    if (run->open_link.next) run->open_link.next->open_link.previous = run->open_link.previous;
    run->listed = false;
    atomic_fetch_sub(&node->open_count, 1);
}

void cpu_node_close(cpu_node_t *node, cpu_run_t *run)
{
    lock_enter(&node->lock);
    open_unlist(node, run);
    lock_leave(&node->lock);
}

bool cpu_node_leave(cpu_node_t *node, cpu_run_t *run)
{
    lock_enter(&node->lock);
    lock_enter(&run->lock);
    // Others may have ended the deal since, and with it the run, or put it back already.
    bool only = run->workers == 1 && cpu_deal_left(run);
    if (only) {
        open_unlist(node, run);
        run->workers = 0;
        run->held = true;
        run->in_flight++;
    }
    lock_leave(&run->lock);
    lock_leave(&node->lock);
    return only;
}

// Whether there is a ready run, or an open one with something to claim.
static bool node_is_worth_taking(cpu_node_t *node)
{
    if (atomic_load(&node->ready_mask) || atomic_load(&node->handed)) return true;
    if (!atomic_load(&node->open_count)) return false;
    bool found = false;
    lock_enter(&node->lock);
    for (cpu_run_t *run = node->open_runs; run && !found; run = run->open_link.next)
        found = cpu_run_is_open(run);
    lock_leave(&node->lock);
    return found;
}

// Another worker polls for whatever comes: waits for a call to join a run. Work in parts often
// comes again soon, and waking a thread takes longer than most parts do.
static void node_join(cpu_node_t *node)
{
    atomic_fetch_add(&node->joining, 1);
    uint32_t epoch = atomic_load(&node->epoch);
    uint64_t start = clock_ticks();
    if (!node_is_worth_taking(node))
        while (atomic_load_explicit(&node->epoch, memory_order_relaxed) == epoch &&
               !atomic_load_explicit(&node->stopping, memory_order_relaxed) &&
               clock_ticks() - start < node->device->spin_ticks)
            for (int i = 0; i < 4; i++) cpu_relax();
    atomic_fetch_sub(&node->joining, 1);
}

static void node_spin(cpu_node_t *node)
{
    uint32_t none = 0;
    if (!atomic_compare_exchange_strong(&node->spinning, &none, 1)) {
        node_join(node);
        return;
    }
    uint64_t start = clock_ticks();
    while (!node_is_worth_taking(node) && !atomic_load(&node->stopping) &&
           clock_ticks() - start < node->device->spin_ticks)
        for (int i = 0; i < 4; i++) cpu_relax();
    atomic_store(&node->spinning, 0);
}

void cpu_node_sleep(cpu_node_t *node)
{
    node_spin(node);
    atomic_fetch_add(&node->sleeping, 1);
    uint32_t epoch = atomic_load(&node->epoch);
    if (!node_is_worth_taking(node) && !atomic_load(&node->stopping))
        futex_wait(&node->epoch, epoch, KEEL_FOREVER);
    atomic_fetch_sub(&node->sleeping, 1);
}

void cpu_node_stop(cpu_node_t *node)
{
    atomic_store(&node->stopping, 1);
    node_wake(node, INT32_MAX);
}
