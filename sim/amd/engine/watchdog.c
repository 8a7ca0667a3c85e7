// SPDX-License-Identifier: Apache-2.0
// Looks at all queues every now and then, and names packets that do not end, each once.
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "amd/engine/packet.h"
#include "amd/usage.h"

static uint64_t limit_ns;

static void report(const queue_t *queue, uint64_t id, uint64_t since, const char *why)
{
    char text[320];
    if (queue->reported == id) return;
    ((queue_t *)queue)->reported = id; // the lock of queues is held
    const uint8_t *packet = queue->ring + id % (queue->size / PACKET_SIZE) * PACKET_SIZE;
    uint16_t header = __atomic_load_n((const uint16_t *)packet, __ATOMIC_ACQUIRE);
    packet_text(queue, packet, header, text, sizeof text);
    log_line(LOG_ERROR,
             "watchdog: queue %llu of node %u, packet %llu has not completed for %llu s: %s%s%s",
             (unsigned long long)queue->id, queue->node, (unsigned long long)id,
             (unsigned long long)((clock_ns() - since) / 1000000000), text, why ? "; " : "",
             why ? why : "");
}

// Copies end by themselves; packets that poll may not.
static void report_copy(queue_t *queue, uint64_t before)
{
    uint64_t since = atomic_load(&queue->waiting_since), at = atomic_load(&queue->waiting);
    uint32_t word;
    if (!since || since >= before || queue->reported == at) return;
    queue->reported = at;
    memcpy(&word, queue->ring + (at & (queue->size - 1)), sizeof word);
    log_line(LOG_ERROR,
             "watchdog: copy queue %llu of node %u, packet at byte %llu has not completed for "
             "%llu s: its first word is %08x",
             (unsigned long long)queue->id, queue->node, (unsigned long long)at,
             (unsigned long long)((clock_ns() - since) / 1000000000), word);
}

static void visit(queue_t *queue)
{
    uint64_t before = clock_ns() - limit_ns;
    if (atomic_load(&queue->failed)) return;
    if (queue->processor) {
        aql_watch(queue, before, report);
    } else {
        report_copy(queue, before);
    }
}

static void *watchdog_main(void *unused)
{
    for (;;) {
        usleep((useconds_t)(limit_ns / 4000 < 500000 ? limit_ns / 4000 : 500000));
        queue_each(visit);
        if (sim_settings()->strict) event_watch(clock_ns() - limit_ns);
    }
    return NULL;
}

static atomic_bool running;

void watchdog_start(void)
{
    pthread_t thread;
    uint64_t limit = sim_settings()->watchdog_s * 1000000000;
    if (!limit || atomic_exchange(&running, true)) return;
    limit_ns = limit;
    if (!usage_thread(&thread, watchdog_main, NULL)) pthread_detach(thread);
}

void watchdog_forget(void)
{
    atomic_store(&running, false);
}
