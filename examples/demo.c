// SPDX-License-Identifier: Apache-2.0
// What `make demo` shows: work on several queues ordered by points, signals in every direction, a
// recording executed with other bindings, memory that queues hand around, and a failure with its
// cause. Each act checks its results.
#include <keel/keel.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels.h"

enum { QUEUES = 3, COUNT = 4096, MAX_BUFFERS = 24, MAX_SEMAPHORES = 8 };

typedef struct demo_t {
    keel_device_t *device;
    keel_executable_t *kernels;
    keel_entry_t affine, work;
    keel_queue_t *queues[QUEUES];
    keel_recording_t *recording;
    keel_pool_t *pool;
    keel_buffer_t *buffers[MAX_BUFFERS];
    keel_semaphore_t *semaphores[MAX_SEMAPHORES];
    int buffer_count, semaphore_count, acts, wrong;
} demo_t;

static void act_begin(demo_t *demo, const char *title)
{
    printf("\n%d. %s\n\n", ++demo->acts, title);
}

// Shows a claim and whether it is true.
static void claim(demo_t *demo, bool holds, const char *text)
{
    printf("   [%s] %s\n", holds ? "right" : "WRONG", text);
    if (!holds) demo->wrong++;
}

// In memory that the host can read, for the demo looks at all of it.
static keel_status_t buffer_make(demo_t *demo, uint64_t size, keel_buffer_t **buffer)
{
    keel_buffer_options_t options = {.size = size, .memory = KEEL_MEMORY_HOST_VISIBLE};
    KEEL_TRY(keel_buffer_create(demo->device, &options, buffer));
    demo->buffers[demo->buffer_count++] = *buffer;
    return NULL;
}

static keel_status_t semaphore_make(demo_t *demo, keel_semaphore_t **semaphore)
{
    KEEL_TRY(keel_semaphore_create(demo->device, NULL, semaphore));
    demo->semaphores[demo->semaphore_count++] = *semaphore;
    return NULL;
}

// x = x * k[0] + k[1]; both are borrowed until the operation is submitted.
static keel_op_t op_affine(const demo_t *demo, const uint32_t k[2], const keel_ref_t *x)
{
    return keel_op_dispatch(demo->affine, keel_groups(COUNT / 64, 1, 1), k, 8, keel_refs(x, 1));
}

static keel_status_t is_filled(keel_buffer_t *buffer, uint32_t value, bool *yes)
{
    uint32_t values[COUNT];
    KEEL_TRY(keel_buffer_read(buffer, 0, values, sizeof values));
    *yes = true;
    for (int i = 0; i < COUNT; i++) *yes &= values[i] == value;
    return NULL;
}

// The jobs of the first act, and who must come before whom.
enum { JOBS = 5, COLUMNS = 64 };

typedef struct job_t {
    char letter;
    uint32_t queue, groups, rounds;
    int after[2]; // jobs, -1: none
    keel_semaphore_t *done;
    keel_buffer_t *x, *stamps;
    uint64_t begin, end; // on the device's clock
} job_t;

static keel_status_t job_submit(demo_t *demo, job_t *jobs, int which)
{
    job_t *job = &jobs[which];
    keel_point_t waits[2], done = keel_point(job->done, 1);
    size_t count = 0;
    for (int i = 0; i < 2; i++)
        if (job->after[i] >= 0) waits[count++] = keel_point(jobs[job->after[i]].done, 1);
    keel_op_t ops[] = {
        keel_op_timestamp(keel_span(job->stamps, 0, 8)),
        keel_op_barrier(),
        keel_op_dispatch(demo->work, keel_groups(job->groups, 1, 1), &job->rounds, 4,
                         KEEL_BIND(job->x)),
        keel_op_barrier(),
        keel_op_timestamp(keel_span(job->stamps, 8, 8)),
    };
    return keel_queue_submit(demo->queues[job->queue], keel_points(waits, count), ops, 5,
                             keel_points(&done, 1), NULL);
}

static keel_status_t job_read(job_t *job)
{
    uint64_t stamps[2];
    KEEL_TRY(keel_buffer_read(job->stamps, 0, stamps, sizeof stamps));
    job->begin = stamps[0];
    job->end = stamps[1];
    return NULL;
}

static void timeline_draw(const job_t *jobs)
{
    char rows[QUEUES][COLUMNS];
    uint64_t first = UINT64_MAX, last = 0;
    memset(rows, '.', sizeof rows);
    for (int j = 0; j < JOBS; j++) {
        if (jobs[j].begin < first) first = jobs[j].begin;
        if (jobs[j].end > last) last = jobs[j].end;
    }
    for (int j = 0; j < JOBS; j++) {
        uint64_t from = (jobs[j].begin - first) * COLUMNS / (last - first + 1);
        uint64_t to = (jobs[j].end - first) * COLUMNS / (last - first + 1);
        memset(rows[jobs[j].queue] + from, jobs[j].letter, to - from + 1);
    }
    for (int row = 0; row < QUEUES; row++) printf("   queue %d |%.*s|\n", row, COLUMNS, rows[row]);
    printf("            0 ms %*.2f ms\n\n", COLUMNS - 8, (double)(last - first) / 1e6);
}

static keel_status_t act_order(demo_t *demo)
{
    act_begin(demo, "Points order work, nothing else does");
    uint32_t workers = keel_device_caps(demo->device)->workers;
    uint32_t many = workers > 1 ? workers * 2 : 2;
    job_t jobs[JOBS] = {
        {.letter = 'A', .queue = 0, .groups = many, .rounds = 20000, .after = {-1, -1}},
        {.letter = 'B', .queue = 1, .groups = 1, .rounds = 80000, .after = {0, -1}},
        {.letter = 'C', .queue = 0, .groups = many, .rounds = 20000, .after = {0, -1}},
        {.letter = 'D', .queue = 1, .groups = many, .rounds = 20000, .after = {1, 2}},
        {.letter = 'e', .queue = 2, .groups = many, .rounds = 40000, .after = {-1, -1}},
    };
    printf("   Three queues; the last has a low priority. Submitted in the order e D C B A:\n\n"
           "       queue 0   A ---> C        D waits for B and C,\n"
           "                   \\      \\      B and C wait for A,\n"
           "       queue 1       B ---> D    e waits for nothing.\n"
           "       queue 2   e\n\n");
    keel_point_t all[JOBS];
    for (int j = 0; j < JOBS; j++) {
        KEEL_TRY(semaphore_make(demo, &jobs[j].done));
        KEEL_TRY(buffer_make(demo, UINT64_C(256) * jobs[j].groups, &jobs[j].x));
        KEEL_TRY(buffer_make(demo, 16, &jobs[j].stamps));
        all[j] = keel_point(jobs[j].done, 1);
    }
    for (int j = JOBS - 1; j >= 0; j--) KEEL_TRY(job_submit(demo, jobs, j));
    KEEL_TRY(keel_wait(keel_points(all, JOBS), KEEL_ALL, KEEL_FOREVER));
    for (int j = 0; j < JOBS; j++) KEEL_TRY(job_read(&jobs[j]));
    timeline_draw(jobs);
    for (int j = 0; j < JOBS; j++) {
        for (int i = 0; i < 2 && jobs[j].after[i] >= 0; i++) {
            const job_t *before = &jobs[jobs[j].after[i]];
            char text[80];
            snprintf(text, sizeof text, "%c began when %c had ended, %.1f us later", jobs[j].letter,
                     before->letter, ((double)jobs[j].begin - (double)before->end) / 1e3);
            claim(demo, jobs[j].begin >= before->end, text);
        }
    }
    return NULL;
}

typedef struct runner_t {
    keel_semaphore_t *baton;
    keel_status_t status;
} runner_t;

static void *runner_main(void *user)
{
    runner_t *runner = user;
    keel_point_t mine = keel_point(runner->baton, 3);
    runner->status = keel_wait(KEEL_POINTS(mine), KEEL_ALL, KEEL_FOREVER);
    if (!runner->status) runner->status = keel_semaphore_signal(runner->baton, 4);
    return NULL;
}

// From the start of the relay to its end, the other thread being there.
static keel_status_t relay_run(demo_t *demo, keel_semaphore_t *baton, keel_buffer_t *x)
{
    const uint32_t first[2] = {0, 4}, second[2] = {10, 2};
    keel_ref_t whole = keel_whole(x);
    keel_op_t legs[2] = {op_affine(demo, first, &whole), op_affine(demo, second, &whole)};
    for (uint64_t leg = 2; leg > 0; leg--)
        KEEL_TRY(keel_queue_submit(demo->queues[leg - 1], KEEL_AFTER(keel_point(baton, leg)),
                                   &legs[leg - 1], 1, KEEL_SIGNAL(keel_point(baton, leg + 1)),
                                   NULL));
    KEEL_TRY(keel_semaphore_signal(baton, 1));
    keel_point_t home = keel_point(baton, 4);
    return keel_wait(KEEL_POINTS(home), KEEL_ALL, KEEL_FOREVER);
}

static keel_status_t act_relay(demo_t *demo)
{
    act_begin(demo, "Host and queues signal each other, waits come before signals");
    printf("   A relay over the values of one semaphore:\n\n"
           "       main --1--> queue 0 --2--> queue 1 --3--> another thread --4--> main\n\n");
    runner_t runner = {NULL, NULL};
    keel_buffer_t *x;
    KEEL_TRY(semaphore_make(demo, &runner.baton));
    KEEL_TRY(buffer_make(demo, COUNT * 4, &x));
    pthread_t thread;
    if (pthread_create(&thread, NULL, runner_main, &runner) != 0)
        return KEEL_ERROR(KEEL_RESOURCE_EXHAUSTED, "a thread could not be started");
    keel_status_t status = relay_run(demo, runner.baton, x);
    if (status) keel_status_release(keel_semaphore_fail(runner.baton, keel_status_retain(status)));
    pthread_join(thread, NULL);
    if (!status) status = keel_status_retain(runner.status);
    keel_status_release(runner.status);
    KEEL_TRY(status);
    bool yes;
    KEEL_TRY(is_filled(x, 42, &yes));
    claim(demo, yes, "queue 0 did x = 4, then queue 1 did x * 10 + 2: all elements are 42");
    return NULL;
}

static keel_status_t act_recording(demo_t *demo)
{
    enum { STEPS = 4 };
    act_begin(demo, "A recording is made once and executed with other bindings");
    printf("   Recorded: slot 1 = slot 0, then slot 1 = slot 1 * 3 + 1.\n\n");
    const uint32_t k[2] = {3, 1};
    keel_ref_t in = keel_slot(0, 0, COUNT * 4), out = keel_slot(1, 0, COUNT * 4);
    keel_op_t ops[] = {keel_op_copy(in, out), keel_op_barrier(), op_affine(demo, k, &out)};
    keel_recording_options_t options = {.slots = 2, .name = "3x + 1"};
    KEEL_TRY(keel_recording_create(demo->device, &options, &demo->recording));
    KEEL_TRY(keel_recording_add(demo->recording, ops, 3));
    KEEL_TRY(keel_recording_end(demo->recording));

    keel_buffer_t *b[STEPS + 1];
    keel_point_t at;
    for (int i = 0; i <= STEPS; i++) KEEL_TRY(buffer_make(demo, COUNT * 4, &b[i]));
    KEEL_TRY(keel_queue_fill(demo->queues[0], KEEL_NO_WAITS, keel_whole(b[0]), 1, 4, &at));
    for (int i = 0; i < STEPS; i++)
        KEEL_TRY(keel_queue_execute(demo->queues[i % QUEUES], KEEL_AFTER(at), demo->recording,
                                    KEEL_BIND(b[i], b[i + 1]), &at));
    KEEL_TRY(keel_wait(KEEL_POINTS(at), KEEL_ALL, KEEL_FOREVER));
    uint32_t value = 1;
    for (int i = 0; i < STEPS; i++) {
        bool yes;
        char text[80];
        KEEL_TRY(is_filled(b[i + 1], value * 3 + 1, &yes));
        snprintf(text, sizeof text, "execution %d on queue %d: from %2u to %3u", i + 1, i % QUEUES,
                 value, value * 3 + 1);
        claim(demo, yes, text);
        value = value * 3 + 1;
    }
    return NULL;
}

// One tile in memory of the pool: an alloca, work, a dealloca, each after the one before.
static keel_status_t tile_submit(demo_t *demo, uint32_t tile, keel_buffer_t *result,
                                 keel_point_t *done)
{
    const uint32_t k[2] = {100, 1};
    keel_buffer_t *scratch;
    keel_point_t ready, used;
    keel_queue_t *queue = demo->queues[tile % 2];
    KEEL_TRY(keel_queue_alloca(queue, demo->pool, COUNT * 4, &scratch, &ready));
    keel_ref_t whole = keel_whole(scratch);
    keel_op_t ops[] = {
        keel_op_fill(whole, tile, 4),
        keel_op_barrier(),
        op_affine(demo, k, &whole),
        keel_op_barrier(),
        keel_op_copy(keel_span(scratch, 0, 4), keel_span(result, tile * 4, 4)),
    };
    keel_status_t status =
        keel_queue_submit(queue, KEEL_AFTER(ready), ops, 5, KEEL_NO_SIGNALS, &used);
    if (!status) status = keel_queue_dealloca(queue, KEEL_AFTER(used), scratch, done);
    keel_buffer_release(scratch);
    return status;
}

static keel_status_t act_memory(demo_t *demo)
{
    enum { TILES = 100 };
    act_begin(demo, "Queues hand memory around, and no thread waits for it");
    keel_pool_options_t options = {.limit = COUNT * 4 * 2, .name = "small"};
    keel_buffer_t *result;
    keel_point_t done[TILES];
    KEEL_TRY(keel_pool_create(demo->device, &options, &demo->pool));
    KEEL_TRY(buffer_make(demo, TILES * 4, &result));
    uint64_t start = keel_now_ns();
    for (uint32_t i = 0; i < TILES; i++) KEEL_TRY(tile_submit(demo, i, result, &done[i]));
    uint64_t submitted = keel_now_ns();
    KEEL_TRY(keel_wait(keel_points(done, TILES), KEEL_ALL, KEEL_FOREVER));
    printf("   %d tiles of %d KiB in a pool of %d KiB: submitted after %.1f ms, done after %.1f "
           "ms.\n\n",
           TILES, COUNT * 4 / 1024, COUNT * 8 / 1024, (double)(submitted - start) / 1e6,
           (double)(keel_now_ns() - start) / 1e6);

    uint32_t values[TILES];
    bool yes = true;
    KEEL_TRY(keel_buffer_read(result, 0, values, sizeof values));
    for (uint32_t i = 0; i < TILES; i++) yes &= values[i] == i * 100 + 1;
    claim(demo, yes, "every tile holds what it should");
    keel_pool_stats_t stats;
    keel_pool_stats(demo->pool, &stats);
    claim(demo, stats.peak <= stats.limit && !stats.used, "never more than two tiles had memory");
    return NULL;
}

static keel_status_t act_failure(demo_t *demo)
{
    act_begin(demo, "A failure reaches what depends on it, cause and all, and nothing else");
    keel_buffer_t *x, *empty;
    keel_semaphore_t *passed;
    KEEL_TRY(buffer_make(demo, COUNT * 4, &x));
    KEEL_TRY(semaphore_make(demo, &passed));
    keel_buffer_options_t options = {.size = 64, .name = "empty"};
    KEEL_TRY(keel_buffer_reserve(demo->pool, &options, &empty)); // and no alloca follows
    demo->buffers[demo->buffer_count++] = empty;
    keel_op_t ops[] = {
        keel_op_group_begin("inspection"),
        keel_op_fill(keel_whole(empty), 0, 1),
        keel_op_group_end(),
    };
    keel_point_t failing, chain = keel_point(passed, 1), beside;
    KEEL_TRY(
        keel_queue_submit(demo->queues[0], KEEL_NO_WAITS, ops, 3, KEEL_SIGNAL(chain), &failing));
    for (int i = 0; i < 10; i++) // each waits for the one before
        KEEL_TRY(keel_queue_fill(demo->queues[i % QUEUES], KEEL_AFTER(chain), keel_whole(x), 7, 4,
                                 &chain));
    KEEL_TRY(keel_queue_fill(demo->queues[1], KEEL_NO_WAITS, keel_whole(x), 8, 4, &beside));

    keel_status_t cause = keel_wait(KEEL_POINTS(chain), KEEL_ALL, KEEL_FOREVER);
    printf("   The last of ten submissions behind one that fails says:\n\n       %s\n"
           "       %s\n       at %s\n\n",
           keel_code_name(keel_status_code(cause)), keel_status_message(cause),
           keel_status_path(cause));
    claim(demo, keel_status_code(cause) == KEEL_FAILED_PRECONDITION,
          "the code is that of a buffer without memory");
    claim(demo, strstr(keel_status_path(cause), "group 'inspection'") != NULL,
          "the path leads to the command that failed");
    keel_status_release(cause);
    KEEL_TRY(keel_wait(KEEL_POINTS(beside), KEEL_ALL, KEEL_FOREVER));
    bool yes;
    KEEL_TRY(is_filled(x, 8, &yes));
    claim(demo, yes, "none of the ten ran, and a submission beside them did");
    return NULL;
}

static keel_status_t demo_open(demo_t *demo, const char *uri)
{
    KEEL_TRY(keel_device_open(uri, NULL, &demo->device));
    const keel_caps_t *caps = keel_device_caps(demo->device);
    printf("Keel %s on %s (%s): %u worker%s\n", keel_version(), uri,
           keel_device_info(demo->device)->hardware, caps->workers, caps->workers == 1 ? "" : "s");
    KEEL_TRY(kernels_load(demo->device, &demo->kernels));
    KEEL_TRY(keel_executable_entry(demo->kernels, "affine", &demo->affine));
    KEEL_TRY(keel_executable_entry(demo->kernels, "work", &demo->work));
    for (int i = 0; i < QUEUES; i++) {
        char name[8];
        snprintf(name, sizeof name, "%d", i);
        keel_queue_options_t options = {.priority = i == 2 ? caps->min_priority : 0, .name = name};
        KEEL_TRY(keel_queue_create(demo->device, &options, &demo->queues[i]));
    }
    return NULL;
}

static void demo_finish(demo_t *demo)
{
    for (int i = 0; i < demo->buffer_count; i++) keel_buffer_release(demo->buffers[i]);
    for (int i = 0; i < demo->semaphore_count; i++) keel_semaphore_release(demo->semaphores[i]);
    for (int i = 0; i < QUEUES; i++) keel_queue_release(demo->queues[i]);
    keel_recording_release(demo->recording);
    keel_pool_release(demo->pool);
    keel_executable_release(demo->kernels);
    keel_device_release(demo->device);
}

int main(int argc, char **argv)
{
    static keel_status_t (*const acts[])(demo_t *) = {
        act_order, act_relay, act_recording, act_memory, act_failure,
    };
    demo_t demo = {0};
    keel_status_t status = demo_open(&demo, argc > 1 ? argv[1] : "cpu://");
    for (size_t i = 0; !status && i < sizeof acts / sizeof acts[0]; i++) status = acts[i](&demo);
    demo_finish(&demo);
    if (status) keel_status_print(status, stderr);
    int failed = status ? 1 : demo.wrong;
    keel_status_release(status);

    keel_live_t live;
    static const keel_live_t none;
    keel_live_objects(&live);
    if (memcmp(&live, &none, sizeof live) != 0) failed = 1;
    printf("\n%s\n", failed ? "Something is wrong: see above."
                            : "All results are right, and every object was released.");
    return failed ? 1 : 0;
}
