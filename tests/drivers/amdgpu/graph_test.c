// SPDX-License-Identifier: Apache-2.0
// The scheduler's own code on the host, with threads for its queues: graphs of submissions, made at
// random, each of which runs a program behind those that it waits for, or asks the host for the
// work. Some take blocks of a pool for their time, as a thread of the host does; in some graphs one
// is cancelled, and those behind it fail. Sanitizers watch.
#include <pthread.h>
#include <sched.h>
#include <string.h>

#include "drivers/amdgpu/device/scheduler.h"
#include "unit.h"

enum {
    RECORDS = 120,
    CELLS = 7,
    GPUS = 2,
    QUEUES = 3, // they take turns among the GPUs
    WAITS = 3,
    COMMANDS = 12, // of a segment at most: some are issued wide
    ROOM = 40,     // of a queue
    RING = 128,    // packets
    BLOCKS = 3,    // of a bin, in ROWS rows
    ROWS = 2,
    BINS = 2,
    TAKES = 3,   // blocks of a record, at most
    TURNS = 100, // that the host takes one
    SEEDS = 12,
};
enum { CAUSE = 7 };                            // of who is cancelled
enum { WORK = 2, TICK, TELL, ADVANCE, ISSUE }; // kinds of packets; 1 is an invalid one

typedef struct queue_t {
    ring_queue_t shared;
    packet_t ring[RING];
    advance_args_t advances[RING];
    uint64_t write, bell;
} queue_t;

// while rounds { commands }; the first one counts the rounds down.
typedef struct job_t {
    record_t record;
    wait_t waits[WAITS + 1];
    cell_point_t signal;
    step_t step;
    program_t program;
    segment_t segments[3];
    program_command_t commands[COMMANDS];
    uint32_t rounds, work, expected; // work: the queue's, or the listener's
    handle_t handles[TAKES];
    uint64_t handle_list[TAKES];
    shelf_need_t needs[BINS];
    table_entry_t table[TAKES];
    late_t lates[TAKES];
    uint32_t ended, failed; // the listener's, and what it has asked for
    bool asked;
} job_t;

static scheduler_t schedulers[GPUS];
static queue_t controls[GPUS], queues[QUEUES];
static cell_t cells[CELLS];
static cell_side_t sides[CELLS][GPUS];
static uint64_t values[CELLS]; // that will be signalled
static job_t jobs[RECORDS];
static shelf_t shelf;
static shelf_bin_t bins[BINS];
static shelf_row_t rows[BINS][ROWS];
static shelf_side_t shelf_sides[GPUS];
static uint32_t memory[BINS * ROWS * SHELF_ROW]; // a word of each block: whose it is
static uint32_t strange;                         // blocks that were another's, too
static bool cancelling;
static uint32_t early; // commands and requests that came before what their record waits for
static uint32_t over, heard, tells[GPUS];
static uint64_t state;

static uint32_t random_below(uint32_t limit)
{
    state = state * UINT64_C(6364136223846793005) + 1442695040888963407;
    return (uint32_t)(state >> 33) % limit;
}

static void queue_reset(queue_t *queue)
{
    memset(queue, 0, sizeof *queue);
    for (int i = 0; i < RING; i++) queue->ring[i].words[0] = PACKET_INVALID;
    queue->bell = UINT64_MAX;
    queue->shared = (ring_queue_t){
        .packets = (uintptr_t)queue->ring,
        .mask = RING - 1,
        .write = (uintptr_t)&queue->write,
        .doorbell = (uintptr_t)&queue->bell,
        .advances = (uintptr_t)queue->advances,
        .room = ROOM,
    };
}

static void program_make(job_t *job, uint32_t number)
{
    uint32_t count = 1 + random_below(COMMANDS);
    job->rounds = random_below(3);
    job->expected = job->rounds * count;
    for (uint32_t i = 0; i < count; i++)
        job->commands[i] = (program_command_t){.packet.words = {WORK, number, i}, .packet_at = i};
    job->segments[0] = (segment_t){.end = END_WHILE,
                                   .target = 1,
                                   .other = 2,
                                   .value = {(uintptr_t)&job->rounds, 4, PLACE_KNOWN, 0}};
    job->segments[1] = (segment_t){
        .commands = (uintptr_t)job->commands, .count = count, .packets = count, .end = END_GOTO};
    job->segments[2] = (segment_t){.end = END_RETURN};
    job->program = (program_t){.segments = (uintptr_t)job->segments, .segment_count = 3};
    job->step = (step_t){.program = (uintptr_t)&job->program};
    job->record.room = count + 2;
}

static scheduler_t *scheduler_of(const job_t *job)
{
    return PROTOCOL_AT(scheduler_t, job->record.scheduler);
}

// Blocks for its time, which its commands refer to.
static void blocks_make(job_t *job)
{
    record_t *record = &job->record;
    uint32_t count = 1 + random_below(TAKES);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t bin = random_below(BINS);
        job->handles[i].user = record->user;
        job->handles[i].bin = bin + 1;
        job->needs[bin].count++;
        job->handle_list[i] = (uintptr_t)&job->handles[i];
        job->lates[i] = (late_t){.word = (uintptr_t)&job->handles[i].address,
                                 .entry = (uintptr_t)&job->table[i]};
    }
    for (uint32_t i = 0; i < BINS; i++) {
        job->needs[i].bin = i + 1;
        if (job->needs[i].count) job->needs[record->need_count++] = job->needs[i];
    }
    record->needs = (uintptr_t)job->needs;
    record->shelf = (uintptr_t)&shelf;
    record->side = (uintptr_t)&shelf_sides[scheduler_of(job) - schedulers];
    record->grants = record->returns = (uintptr_t)job->handle_list;
    record->grant_count = record->return_count = record->late_count = count;
    record->lates = (uintptr_t)job->lates;
}

// The host does it.
static void request_make(job_t *job)
{
    job->expected = 1;
    job->record.request = REQUEST_WORK;
    job->record.step_count = job->record.room = 0;
}

static void wait_make(job_t *job, uint32_t cell, uint64_t value)
{
    wait_t *wait = &job->waits[job->record.wait_count++];
    *wait = (wait_t){.side = (uintptr_t)&sides[cell][scheduler_of(job) - schedulers],
                     .value = value,
                     .self = (uintptr_t)wait,
                     .record = (uintptr_t)&job->record};
}

// Waits for what others before it signal, and for the value before its own.
static void job_make(uint32_t number)
{
    job_t *job = &jobs[number];
    uint32_t own = random_below(CELLS), waits = random_below(WAITS + 1);
    uint32_t queue = random_below(QUEUES);
    bool victim = cancelling && number == RECORDS / 3;
    memset(job, 0, sizeof *job);
    job->record = (record_t){.scheduler = (uintptr_t)&schedulers[queue % GPUS],
                             .self = (uintptr_t)&job->record,
                             .queue = (uintptr_t)&queues[queue].shared,
                             .waits = (uintptr_t)job->waits,
                             .signals = (uintptr_t)&job->signal,
                             .steps = (uintptr_t)&job->step,
                             .step_count = 1,
                             .signal_count = 1,
                             .user = number};
    program_make(job, number);
    if (random_below(3) == 0 || victim)
        blocks_make(job);
    else if (random_below(4) == 0)
        request_make(job);
    if (victim) job->record.cancel = CAUSE;
    wait_make(job, own, values[own]);
    for (uint32_t i = 0; i < waits; i++) {
        uint32_t cell = random_below(CELLS);
        if (values[cell]) wait_make(job, cell, 1 + random_below((uint32_t)values[cell]));
    }
    job->signal = (cell_point_t){(uintptr_t)&cells[own], ++values[own]};
}

static void submit(job_t *job)
{
    scheduler_t *s = scheduler_of(job);
    PROTOCOL_ADD(&s->live, 1, __ATOMIC_RELAXED);
    record_push(&s->inbox, &job->record);
    tick_ask(s);
}

// Half of them each, the last one first.
static void *host_main(void *half)
{
    for (int i = RECORDS - 1 - (half != NULL); i >= 0; i -= 2) submit(&jobs[i]);
    return NULL;
}

static void waits_check(const job_t *job)
{
    for (uint32_t i = 0; i < job->record.wait_count; i++) {
        const cell_side_t *side = PROTOCOL_AT(const cell_side_t, job->waits[i].side);
        cell_t *cell = PROTOCOL_AT(cell_t, side->cell);
        uint64_t value = PROTOCOL_LOAD(&cell->value, __ATOMIC_ACQUIRE) & ~PROTOCOL_FAILED;
        if (value < job->waits[i].value) __atomic_fetch_add(&early, 1, __ATOMIC_RELAXED);
    }
}

// What a record asks for.
static void request_serve(job_t *job)
{
    cell_t *cell = PROTOCOL_AT(cell_t, job->signal.cell);
    job->work++;
    cell_signal(cell, job->signal.value);
    cell_wake(cell);
}

// The buffers of a record that has failed keep what they got, until they go.
static void blocks_reclaim(job_t *job)
{
    for (int i = 0; i < TAKES; i++)
        if (handle_return(&shelf, &job->handles[i])) shelf_wake(&shelf);
}

// As shelf_changed of the driver.
static void handles_hear(void)
{
    uint64_t at = PROTOCOL_SWAP(&shelf.changed, 0, __ATOMIC_ACQUIRE);
    while (at) {
        handle_t *handle = PROTOCOL_AT(handle_t, at);
        at = PROTOCOL_LOAD(&handle->next, __ATOMIC_RELAXED);
        PROTOCOL_SWAP(&handle->changed, 0, __ATOMIC_ACQ_REL);
    }
}

static void records_hear(scheduler_t *s)
{
    PROTOCOL_SWAP(&s->telling, 0, __ATOMIC_ACQ_REL);
    uint64_t at = records_take(&s->done);
    while (at) {
        record_t *record = PROTOCOL_AT(record_t, at);
        job_t *job = &jobs[record->user];
        job->asked = record->request == REQUEST_WORK && !record->cause;
        job->failed = record->cause == CAUSE;
        at = record->next;
        job->ended++;
        heard++;
        if (job->asked) waits_check(job);
        memset(record, 0xee, sizeof *record); // it is used for other things at once
        if (job->asked) request_serve(job);
        if (job->failed) blocks_reclaim(job);
    }
}

// What the host does when it is told, as amdgpu_ends_work.
static void *listener_main(void *unused)
{
    while (heard < RECORDS) {
        sched_yield();
        handles_hear();
        for (int i = 0; i < GPUS; i++)
            if (__atomic_exchange_n(&tells[i], 0, __ATOMIC_ACQ_REL)) records_hear(&schedulers[i]);
    }
    __atomic_store_n(&over, 1, __ATOMIC_RELEASE);
    return unused;
}

// Takes the blocks of a record for its own, or finds that they are.
static void blocks_use(const job_t *job, uint32_t number, bool first)
{
    for (uint32_t i = 0; i < job->record.grant_count; i++) {
        uint64_t block = job->handles[i].block - 1;
        const shelf_bin_t *bin = shelf_bin(&shelf, job->handles[i].bin);
        bool placed = job->table[i].address == bin_address(bin, block + 1);
        if (!placed || (!first && memory[block] != number))
            __atomic_fetch_add(&strange, 1, __ATOMIC_RELAXED);
        memory[block] = number;
    }
}

// One block at a time, which no record has meanwhile.
static void *taker_main(void *unused)
{
    for (int i = 0; i < TURNS; i++) {
        shelf_bin_t *bin = &bins[i % BINS];
        while (!bin_count_off(bin, 1)) sched_yield();
        shelf_use(&shelf, bin->block_size);
        uint64_t block = bin_pick(bin);
        memory[block - 1] = UINT32_MAX;
        sched_yield();
        if (memory[block - 1] != UINT32_MAX) __atomic_fetch_add(&strange, 1, __ATOMIC_RELAXED);
        shelf_put(&shelf, bin, block);
        shelf_wake(&shelf);
    }
    return unused;
}

static void work_do(const packet_t *packet)
{
    job_t *job = &jobs[packet->words[1]];
    waits_check(job);
    blocks_use(job, packet->words[1], !job->work);
    job->work++;
    if (!packet->words[2]) __atomic_fetch_sub(&job->rounds, 1, __ATOMIC_RELAXED);
}

static void advance_run(record_t *record)
{
    scheduler_advance(PROTOCOL_AT(scheduler_t, record->scheduler), record, false);
}

static void packet_run(const packet_t *packet)
{
    const advance_args_t *advance = PROTOCOL_AT(advance_args_t, packet_arguments(packet));
    const issue_args_t *issue = PROTOCOL_AT(issue_args_t, packet_arguments(packet));
    switch (packet->words[0] & PACKET_TYPE) {
    case WORK: work_do(packet); break;
    case TICK: scheduler_tick(&schedulers[packet->words[1]]); break;
    case TELL: __atomic_store_n(&tells[packet->words[1]], 1, __ATOMIC_RELEASE); break;
    case ADVANCE: advance_run(PROTOCOL_AT(record_t, advance->record)); break;
    default:
        for (uint32_t i = PROGRAM_WIDE; i > 0; i--) issue_run(issue, i - 1);
    }
}

// A packet processor: one packet after the other, when it was rung for and its header is valid.
static void *queue_main(void *argument)
{
    queue_t *queue = argument;
    uint64_t read = 0;
    while (!__atomic_load_n(&over, __ATOMIC_ACQUIRE)) {
        packet_t *at = &queue->ring[read & (RING - 1)], packet;
        uint64_t bell = __atomic_load_n(&queue->bell, __ATOMIC_ACQUIRE);
        uint32_t header = __atomic_load_n(&at->words[0], __ATOMIC_ACQUIRE);
        if (bell == UINT64_MAX || header == PACKET_INVALID) {
            sched_yield();
            continue;
        }
        packet = *at;
        packet.words[0] = header;
        __atomic_store_n(&at->words[0], PACKET_INVALID, __ATOMIC_RELEASE);
        read++;
        packet_run(&packet);
    }
    return NULL;
}

static void scheduler_reset(uint32_t i)
{
    scheduler_t *s = &schedulers[i];
    memset(s, 0, sizeof *s);
    queue_reset(&controls[i]);
    s->control = controls[i].shared;
    s->tick.words[0] = TICK;
    s->tell.words[0] = TELL;
    s->tick.words[1] = s->tell.words[1] = i;
    s->advance.words[0] = ADVANCE;
    s->issue.words[0] = ISSUE;
    tells[i] = 0;
}

static void cell_reset(int i)
{
    cells[i] =
        (cell_t){.awaited = PROTOCOL_NOBODY, .sides = (uintptr_t)sides[i], .side_count = GPUS};
    for (int g = 0; g < GPUS; g++)
        sides[i][g] = (cell_side_t){.cell = (uintptr_t)&cells[i],
                                    .scheduler = (uintptr_t)&schedulers[g],
                                    .wanted = PROTOCOL_NOBODY};
}

// Each of two slabs, the first of which has one block more.
static void bin_reset(uint32_t number, uint32_t rule)
{
    bins[number] = (shelf_bin_t){.free = BLOCKS,
                                 .rows = (uintptr_t)rows[number],
                                 .row_count = ROWS,
                                 .first = number * ROWS * SHELF_ROW,
                                 .block_size = (uint64_t)4096 << number,
                                 .rule = rule};
    for (uint32_t i = 0; i < ROWS; i++)
        rows[number][i] =
            (shelf_row_t){.free = i ? 1 : 3, .base = (uint64_t)(number * ROWS + i + 1) << 20};
}

static void shelf_reset(uint32_t rule)
{
    memset(memory, 0, sizeof memory);
    shelf = (shelf_t){.bins = (uintptr_t)bins,
                      .bin_count = BINS,
                      .sides = (uintptr_t)shelf_sides,
                      .side_count = GPUS};
    for (uint32_t i = 0; i < BINS; i++) bin_reset(i, rule);
    for (int i = 0; i < GPUS; i++)
        shelf_sides[i] = (shelf_side_t){.scheduler = (uintptr_t)&schedulers[i]};
}

static void all_reset(uint64_t seed)
{
    state = seed;
    bool waits = seed % 3;
    cancelling = waits && seed % 4 == 0;
    strange = 0;
    shelf_reset(waits ? SHELF_RULE_WAITS : SHELF_RULE_ASKS);
    memset(values, 0, sizeof values);
    for (uint32_t i = 0; i < GPUS; i++) scheduler_reset(i);
    for (int i = 0; i < QUEUES; i++) queue_reset(&queues[i]);
    over = heard = early = 0;
    for (int i = 0; i < CELLS; i++) cell_reset(i);
    for (uint32_t i = 0; i < RECORDS; i++) job_make(i);
}

static void graph_run(uint64_t seed)
{
    pthread_t threads[QUEUES + GPUS + 4];
    int count = 0;
    all_reset(seed);
    for (int i = 0; i < GPUS; i++)
        assert_int_equal(pthread_create(&threads[count++], NULL, queue_main, &controls[i]), 0);
    for (int i = 0; i < QUEUES; i++)
        assert_int_equal(pthread_create(&threads[count++], NULL, queue_main, &queues[i]), 0);
    assert_int_equal(pthread_create(&threads[count++], NULL, listener_main, NULL), 0);
    assert_int_equal(pthread_create(&threads[count++], NULL, host_main, NULL), 0);
    assert_int_equal(pthread_create(&threads[count++], NULL, host_main, jobs), 0);
    assert_int_equal(pthread_create(&threads[count++], NULL, taker_main, NULL), 0);
    for (int i = 0; i < count; i++) pthread_join(threads[i], NULL);
}

// Those that have not failed did what they were to do.
static void jobs_check(void)
{
    uint32_t failed = 0;
    for (int i = 0; i < RECORDS; i++) {
        uint32_t expected = jobs[i].asked ? 1 : jobs[i].failed ? 0 : jobs[i].expected;
        assert_int_equal(jobs[i].ended, 1);
        assert_int_equal(jobs[i].work, expected);
        for (int k = 0; k < TAKES; k++) assert_int_equal(jobs[i].handles[k].block, 0);
        failed += jobs[i].failed;
    }
    if (cancelling)
        assert_in_range(failed, 2, RECORDS - 1);
    else
        assert_int_equal(failed, 0);
}

static void shelf_check(void)
{
    assert_int_equal(strange, 0);
    assert_int_equal(shelf.used, 0);
    assert_in_range(shelf.most, 1, BLOCKS * (4096 + 8192));
    for (uint32_t k = 0; k < BINS; k++) {
        assert_int_equal(bins[k].free, BLOCKS);
        for (uint32_t i = 0; i < ROWS; i++) assert_int_equal(rows[k][i].free, i ? 1 : 3);
    }
    for (int i = 0; i < GPUS; i++) assert_int_equal(shelf_sides[i].waiting, 0);
}

static void test_graphs_of_records(void **unused)
{
    (void)unused;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        graph_run(seed);
        assert_int_equal(early, 0);
        for (int i = 0; i < GPUS; i++) assert_int_equal(schedulers[i].live, 0);
        jobs_check();
        shelf_check();
        for (int i = 0; i < CELLS; i++) {
            if (!cancelling) assert_int_equal(cells[i].value, values[i]);
            for (int g = 0; g < GPUS; g++) assert_int_equal(sides[i][g].waiters, 0);
        }
        for (int i = 0; i < QUEUES; i++) assert_int_equal(queues[i].shared.used, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_graphs_of_records)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
