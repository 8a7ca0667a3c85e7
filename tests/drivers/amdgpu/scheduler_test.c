// SPDX-License-Identifier: Apache-2.0
// The scheduler's own code, on the host: the orders of host, tick and retire are gone through, and
// in each all records end and the host hears of it. The last tests take a step out of the protocol:
// then there must be an order in which something is lost.
// The coroutines of the model jump between stacks, which glibc takes for a mistake where programs
// are fortified (Ubuntu's compilers do that unasked).
#undef _FORTIFY_SOURCE
#include <string.h>

#include "drivers/amdgpu/model.h"
#include "unit.h"

typedef enum mutant_t {
    NONE,
    TICKS_LATE,    // a tick says at its end that it has begun
    LOOKS_EARLY,   // the host takes the list before it says that it has heard
    PUSHES_BLIND,  // a record is put on a list without looking whether another was
    LOOKS_LATE,    // a tick looks at a cell before it takes it from the list
    KEEPS_ROOM,    // a record that has ended keeps its packets
    RINGS_NOT,     // a queue is not told of the packets behind a segment
    WAITS_BLIND,   // a tick does not look at a value again when others can see that it is wanted
    STARVES_BLIND, // nor at the room, when others can see that a record starves
    WAKES_ONE,     // who signals wakes its own GPU alone
    WRITES_LATE,   // the host signals before it has written where the memory of a pool is
    LACKS_BLIND,  // a tick does not look at the blocks again when others can see that one is wanted
    KEEPS_BLOCK,  // a record that has ended keeps its block
    GIVES_ONE,    // who gives a block back wakes its own GPU alone
    TELLS_NOT,    // nor the host, which waits for one
    WANTS_BLIND,  // the host does not look again when others can see that it waits
    ANSWERS_MUTE, // the host does what a record asks for, signals, and wakes no tick
    ASKS_EARLY,   // a record asks the host before its waits are over
    ASKS_MUTE,    // a record asks for signals, and the host is not told
    SERVES_FAILED, // the host does the work of a record that has failed
    MUTANTS
} mutant_t;

static mutant_t mutant;

#define PROTOCOL_AT(type, address)  ((type *)(uintptr_t)(address))
#define PROTOCOL_LOAD(p, order)     (model_step(), (__typeof__(*(p)))model_load((p), *(p)))
#define PROTOCOL_STORE(p, v, order) (model_step(), is_missed((p)) ? (void)0 : (void)(*(p) = (v)))
#define PROTOCOL_SWAP(p, v, order)  (model_step(), model_swap((p), (v), sizeof *(p)))
#define PROTOCOL_ADD(p, v, order)                                                                  \
    (is_counted((p)) ? (void)0 : model_step(), model_add_to((p), (uint64_t)(v), sizeof *(p)))
#define PROTOCOL_CAS(p, old, v) (model_step(), model_cas((p), (old), (v)))
#define PROTOCOL_MOST(p, v)     ((void)(*(p) = *(p) > (v) ? *(p) : (v)))
#define PROTOCOL_FENCE()        ((void)(fenced = model.running))
#define PROTOCOL_SENT()         ((void)0)

static int fenced; // the thread that had the last fence
static uint64_t model_load(const void *p, uint64_t value);
static bool is_late(const void *p, uint64_t value);
static bool is_missed(const void *p);
static bool is_counted(const void *p);
static bool is_kept(const void *p, uint64_t value);

static uint64_t model_swap(void *p, uint64_t value, size_t size)
{
    uint64_t old = 0;
    memcpy(&old, p, size);
    if (!is_late(p, value)) memcpy(p, &value, size);
    return old;
}

static uint64_t model_add_to(void *p, uint64_t value, size_t size)
{
    uint64_t old = 0, sum;
    memcpy(&old, p, size);
    sum = is_kept(p, value) ? old : old + value;
    memcpy(p, &sum, size);
    return old;
}

static bool model_cas(uint64_t *p, uint64_t *old, uint64_t value)
{
    if (*p != *old && mutant != PUSHES_BLIND) {
        *old = *p;
        return false;
    }
    *p = value;
    return true;
}

#include "drivers/amdgpu/device/scheduler.h"

enum { SWITCHES = 2 };
enum { RECORDS = 2, GPUS = 2, ROUNDS = 1, ROOM = 2, MASK = 15 };
enum { WORK = 2, TICK, TELL, ADVANCE }; // kinds of packets; 1 is an invalid one
enum { PLACE = 4096 };                  // of memory of a pool

// The queues are played: packets run one at a time, in order.
typedef struct gpu_t {
    scheduler_t s;
    ring_queue_t queue;
    packet_t control_ring[MASK + 1], ring[MASK + 1];
    advance_args_t advances[MASK + 1];
    uint64_t control_write, control_read, control_bell, write, read, bell;
    bool told;
} gpu_t;

// Each record runs a segment of one command ROUNDS times: that counts `rounds` down.
static gpu_t gpus[GPUS];
static int gpu_count;
static record_t records[RECORDS];
static program_command_t commands[RECORDS];
static segment_t segments[RECORDS][3];
static program_t programs[RECORDS];
static step_t steps[RECORDS];
static uint32_t rounds[RECORDS], work;
static cell_t cells[RECORDS];
static cell_side_t sides[RECORDS][GPUS];
static wait_t waits[RECORDS];
static cell_point_t points[RECORDS];
// Each record refers to a buffer of a pool, whose memory is there when the host has signalled.
static uint64_t word;
static late_t lates[RECORDS];
static table_entry_t table[RECORDS];
// Each may need the one block of a pool, for its time. The host has it first, or wants it, too.
static shelf_t shelf;
static shelf_bin_t bin;
static shelf_row_t row; // of one block
static shelf_need_t need = {.bin = 1, .count = 1};
static shelf_side_t shelf_sides[GPUS];
static handle_t handles[RECORDS];
static uint64_t handle_lists[RECORDS];
static bool shelved, host_wants, host_got;
// Those that ask the host for their work, by bits.
static unsigned asking;
static int ended, failed;
static uint64_t causes[RECORDS];
static bool fails;
static int control_threads[GPUS];

static bool is_tick(int thread)
{
    for (int i = 0; i < gpu_count; i++)
        if (thread == control_threads[i]) return true;
    return false;
}

// What a tick sees that does not look again behind a fence.
static uint64_t model_load(const void *p, uint64_t value)
{
    bool again = fenced >= 0 && fenced == model.running && is_tick(fenced);
    if (mutant == TELLS_NOT && p == &shelf.host) return 0;
    if (!again) return value;
    if (mutant == WAITS_BLIND && p == &cells[0].value) return 0;
    if (mutant == LACKS_BLIND && p == &bin.free) return 0;
    for (int i = 0; i < gpu_count; i++)
        if (mutant == STARVES_BLIND && p == &gpus[i].queue.used) return ROOM;
    return value;
}

static bool is_late(const void *p, uint64_t value)
{
    for (int i = 0; i < gpu_count; i++) {
        if (mutant == LOOKS_LATE && p == &sides[0][i].changed && !value) return true;
        if (mutant == TICKS_LATE && p == &gpus[i].s.ticking && !value) return true;
    }
    return false;
}

static bool is_missed(const void *p)
{
    return mutant == RINGS_NOT && p == &gpus[0].bell;
}

// Of a number that no step depends on.
static bool is_counted(const void *p)
{
    return p == &shelf.used;
}

static bool is_kept(const void *p, uint64_t value)
{
    if (mutant == KEEPS_BLOCK && p == &bin.free) return true;
    return mutant == KEEPS_ROOM && p == &gpus[0].queue.used && value > MASK;
}

static void gpu_reset(gpu_t *gpu)
{
    memset(gpu, 0, sizeof *gpu);
    gpu->control_bell = gpu->bell = UINT64_MAX;
    gpu->queue = (ring_queue_t){
        .packets = (uintptr_t)gpu->ring,
        .mask = MASK,
        .write = (uintptr_t)&gpu->write,
        .doorbell = (uintptr_t)&gpu->bell,
        .advances = (uintptr_t)gpu->advances,
        .room = ROOM,
    };
    gpu->s.control = (ring_queue_t){
        .packets = (uintptr_t)gpu->control_ring,
        .mask = MASK,
        .write = (uintptr_t)&gpu->control_write,
        .doorbell = (uintptr_t)&gpu->control_bell,
        .room = MASK,
    };
    gpu->s.tick.words[0] = TICK;
    gpu->s.tell.words[0] = TELL;
    gpu->s.advance.words[0] = ADVANCE;
}

static void cell_reset(int i)
{
    uint32_t count = mutant == WAKES_ONE ? 1 : (uint32_t)gpu_count;
    cells[i] = (cell_t){.awaited = 1, // so both records tell
                        .sides = (uintptr_t)sides[i],
                        .side_count = count};
    for (int g = 0; g < gpu_count; g++)
        sides[i][g] = (cell_side_t){.cell = (uintptr_t)&cells[i],
                                    .scheduler = (uintptr_t)&gpus[g].s,
                                    .wanted = PROTOCOL_NOBODY};
}

static void all_reset(void)
{
    for (int i = 0; i < gpu_count; i++) gpu_reset(&gpus[i]);
    for (int i = 0; i < RECORDS; i++) cell_reset(i);
    ended = failed = 0;
    work = 0;
    word = 0;
    fails = shelved = host_wants = host_got = false;
    fenced = -1;
}

// while rounds { command }
static void program_reset(int i)
{
    commands[i] = (program_command_t){.packet.words = {WORK, (uint32_t)i}};
    segments[i][0] = (segment_t){.end = END_WHILE,
                                 .target = 1,
                                 .other = 2,
                                 .value = {(uintptr_t)&rounds[i], 4, PLACE_KNOWN, 0}};
    segments[i][1] = (segment_t){.commands = (uintptr_t)&commands[i],
                                 .count = 1,
                                 .packets = 1,
                                 .end = END_GOTO,
                                 .target = 0};
    segments[i][2] = (segment_t){.end = END_RETURN};
    programs[i] = (program_t){.segments = (uintptr_t)segments[i], .segment_count = 3};
    steps[i] = (step_t){.program = (uintptr_t)&programs[i]};
    rounds[i] = ROUNDS;
}

// Record i, of GPU i where there are two, waits for `value` of the first cell, and signals
// `signal` of a cell.
static void record_reset(int i, uint64_t value, int cell, uint64_t signal)
{
    int g = i % gpu_count;
    waits[i] = (wait_t){.side = (uintptr_t)&sides[0][g],
                        .value = value,
                        .self = (uintptr_t)&waits[i],
                        .record = (uintptr_t)&records[i]};
    points[i] = (cell_point_t){(uintptr_t)&cells[cell], signal};
    lates[i] = (late_t){.word = (uintptr_t)&word, .entry = (uintptr_t)&table[i]};
    table[i] = (table_entry_t){.address = (uint64_t)i};
    program_reset(i);
    records[i] = (record_t){.scheduler = (uintptr_t)&gpus[g].s,
                            .self = (uintptr_t)&records[i],
                            .queue = (uintptr_t)&gpus[g].queue,
                            .steps = (uintptr_t)&steps[i],
                            .step_count = 1,
                            .room = ROOM,
                            .waits = (uintptr_t)&waits[i],
                            .signals = (uintptr_t)&points[i],
                            .lates = (uintptr_t)&lates[i],
                            .late_count = 1,
                            .wait_count = 1,
                            .signal_count = 1};
}

// The work of the record is the host's.
static void record_ask(int i)
{
    records[i].request = REQUEST_WORK;
    records[i].step_count = records[i].late_count = records[i].room = 0;
    if (mutant == ASKS_EARLY) records[i].wait_count = 0;
}

// The block is free, or the host's.
static void shelf_reset(bool gives)
{
    uint32_t count = mutant == GIVES_ONE ? 1 : (uint32_t)gpu_count;
    row = (shelf_row_t){.free = !gives, .base = PLACE};
    bin = (shelf_bin_t){.free = !gives,
                        .rows = (uintptr_t)&row,
                        .row_count = 1,
                        .block_size = 1,
                        .rule = SHELF_RULE_WAITS};
    shelf = (shelf_t){.used = gives,
                      .bins = (uintptr_t)&bin,
                      .bin_count = 1,
                      .sides = (uintptr_t)shelf_sides,
                      .side_count = count};
    for (int g = 0; g < gpu_count; g++)
        shelf_sides[g] = (shelf_side_t){.scheduler = (uintptr_t)&gpus[g].s};
    for (int i = 0; i < RECORDS; i++) {
        handles[i] = (handle_t){.bin = 1};
        handle_lists[i] = (uintptr_t)&handles[i];
        records[i].shelf = (uintptr_t)&shelf;
        records[i].side = (uintptr_t)&shelf_sides[i % gpu_count];
        records[i].grants = records[i].returns = (uintptr_t)&handle_lists[i];
        records[i].grant_count = records[i].return_count = 1;
        records[i].needs = (uintptr_t)&need;
        records[i].need_count = 1;
    }
    shelved = true;
}

static void submit(int i)
{
    scheduler_t *s = &gpus[i % gpu_count].s;
    PROTOCOL_ADD(&s->live, 1, __ATOMIC_RELAXED);
    record_push(&s->inbox, &records[i]);
    tick_ask(s);
}

static void host_first(void)
{
    submit(0);
    if (fails) return;
    if (mutant != WRITES_LATE) PROTOCOL_STORE(&word, PLACE, __ATOMIC_RELAXED);
    cell_signal(&cells[0], 1);
    cell_wake(&cells[0]);
    if (mutant == WRITES_LATE) PROTOCOL_STORE(&word, PLACE, __ATOMIC_RELAXED);
}

// As the host puts a block back.
static void host_giver(void)
{
    shelf_put(&shelf, &bin, 1);
    shelf_wake(&shelf);
}

// Under the pool's lock, so in one step.
static void host_take(void)
{
    if (!host_wants || host_got || !bin.free) return;
    bin.free--;
    shelf.used++;
    row.free = 0;
    host_got = true;
}

static bool is_got(void)
{
    return host_got && cells[0].value;
}

// The host's alloca has had the block for a while. The second record waits for that.
static void host_returner(void)
{
    model_wait(is_got);
    host_giver();
    cell_signal(&cells[0], 2);
    cell_wake(&cells[0]);
}

static void host_taker(void)
{
    model_step();
    host_wants = true;
    host_take();
    PROTOCOL_STORE(&shelf.host, 1, __ATOMIC_RELAXED);
    PROTOCOL_FENCE();
    model_step();
    if (mutant != WANTS_BLIND) host_take();
}

static void host_second(void)
{
    submit(1);
}

static bool is_told(void)
{
    return gpus[0].told || (gpu_count > 1 && gpus[1].told);
}

static void host_signal(cell_t *cell, uint64_t value)
{
    cell_signal(cell, value);
    if (mutant != ANSWERS_MUTE) cell_wake(cell);
}

// What a record has asked for. Who waits for a semaphore that is not the device's signals one that
// is.
static void request_serve(int i, uint32_t request)
{
    if (request == REQUEST_SIGNALS) host_signal(&cells[0], 2);
    if (request != REQUEST_WORK) return;
    work += ROUNDS;
    table[i].address += PROTOCOL_LOAD(&word, __ATOMIC_RELAXED);
    host_signal(PROTOCOL_AT(cell_t, points[i].cell), points[i].value);
}

// The memory of a record that has ended is used for other things at once.
static uint64_t record_heard(record_t *record)
{
    uint64_t next = record->next;
    uint32_t request = record->cause && mutant != SERVES_FAILED ? REQUEST_NONE : record->request;
    ended++;
    failed += record->cause != 0;
    causes[record - records] = record->cause;
    if (mutant == NONE) memset(record, 0xee, sizeof *record); // they go wrong elsewhere
    request_serve((int)(record - records), request);
    return next;
}

// What the host does when it is told, as amdgpu_ends_work.
static void host_listener(void)
{
    for (;;) {
        model_wait(is_told);
        gpu_t *gpu = gpus[0].told ? &gpus[0] : &gpus[1];
        gpu->told = false;
        if (mutant != LOOKS_EARLY) PROTOCOL_SWAP(&gpu->s.telling, 0, __ATOMIC_ACQ_REL);
        uint64_t at = records_take(&gpu->s.done);
        while (at) at = record_heard(PROTOCOL_AT(record_t, at));
        host_take();
        if (mutant == LOOKS_EARLY) PROTOCOL_SWAP(&gpu->s.telling, 0, __ATOMIC_ACQ_REL);
    }
}

static bool control_has(const gpu_t *gpu)
{
    return gpu->control_ring[gpu->control_read & MASK].words[0];
}

static void control_step(gpu_t *gpu)
{
    packet_t *packet = &gpu->control_ring[gpu->control_read & MASK];
    uint32_t kind = packet->words[0];
    packet->words[0] = 0;
    gpu->control_read++;
    if (kind == TICK)
        scheduler_tick(&gpu->s);
    else
        gpu->told = true;
    if (kind == TICK && mutant == TICKS_LATE) gpu->s.ticking = 0;
}

// It has been told of the packet, and the header is valid.
static bool queue_has(const gpu_t *gpu)
{
    return gpu->bell != UINT64_MAX && gpu->bell >= gpu->read &&
           gpu->ring[gpu->read & MASK].words[0] > PACKET_INVALID;
}

static void queue_step(gpu_t *gpu)
{
    packet_t packet = gpu->ring[gpu->read & MASK];
    gpu->ring[gpu->read & MASK].words[0] = PACKET_INVALID;
    gpu->read++;
    if (packet.words[0] == WORK) {
        work++;
        rounds[packet.words[1]]--;
        return;
    }
    const advance_args_t *a = PROTOCOL_AT(const advance_args_t, packet_arguments(&packet));
    scheduler_advance(&gpu->s, PROTOCOL_AT(record_t, a->record), false);
}

#define PROCESSORS(g)                                                                              \
    static bool control_has_##g(void)                                                              \
    {                                                                                              \
        return control_has(&gpus[g]);                                                              \
    }                                                                                              \
    static void control_##g(void)                                                                  \
    {                                                                                              \
        for (;;) {                                                                                 \
            model_wait(control_has_##g);                                                           \
            control_step(&gpus[g]);                                                                \
        }                                                                                          \
    }                                                                                              \
    static bool queue_has_##g(void)                                                                \
    {                                                                                              \
        return queue_has(&gpus[g]);                                                                \
    }                                                                                              \
    static void queue_##g(void)                                                                    \
    {                                                                                              \
        for (;;) {                                                                                 \
            model_wait(queue_has_##g);                                                             \
            queue_step(&gpus[g]);                                                                  \
        }                                                                                          \
    }
PROCESSORS(0)
PROCESSORS(1)

static void threads_add(void)
{
    model_add(host_second); // so that the first order has it wait
    model_add(host_first);
    control_threads[0] = model.count;
    model_add(control_0);
    model_add(queue_0);
    control_threads[1] = model.count;
    if (gpu_count > 1) model_add(control_1);
    if (gpu_count > 1) model_add(queue_1);
    model_add(host_listener);
}

// The second record waits for the first, which waits for the host.
static void chain_begin(void)
{
    all_reset();
    record_reset(0, 1, 0, 2);
    record_reset(1, 2, 0, 3);
    for (int i = 0; i < RECORDS; i++)
        if (asking >> i & 1) record_ask(i);
    threads_add();
}

static void begin(void)
{
    gpu_count = 1;
    chain_begin();
}

// On two GPUs, one of which wakes the other.
static void begin_apart(void)
{
    gpu_count = 2;
    chain_begin();
}

// The host waits for no point of the chain: what tells it is the requests, and the last end.
static void begin_asking(void)
{
    chain_begin();
    cells[0].awaited = PROTOCOL_NOBODY;
}

// The first record asks for a signal behind its end, which lets the second one go.
static void begin_signalling(void)
{
    gpu_count = 1;
    chain_begin();
    points[0] = (cell_point_t){(uintptr_t)&cells[1], 1};
    records[0].request = mutant == ASKS_MUTE ? REQUEST_NONE : REQUEST_SIGNALS;
    cells[0].awaited = cells[1].awaited = PROTOCOL_NOBODY;
}

// Both records wait for the host, and the queue has room for one.
static void begin_starving(void)
{
    gpu_count = 1;
    all_reset();
    record_reset(0, 1, 1, 1);
    record_reset(1, 1, 0, 2);
    threads_add();
}

// Both records wait for the host, and for the block.
static void lacking_begin(bool gives)
{
    all_reset();
    record_reset(0, 1, 1, 1);
    record_reset(1, 1, 0, 2);
    shelf_reset(gives);
    for (int g = 0; g < gpu_count; g++) gpus[g].queue.room = RECORDS * ROOM;
    threads_add();
    if (gives) model_add(host_giver);
}

static void begin_lacking(void)
{
    gpu_count = 1;
    lacking_begin(true);
}

static void begin_lacking_apart(void)
{
    gpu_count = 2;
    lacking_begin(false);
}

// The host has an alloca that waits for it, too, and is told of nothing else but the last end.
static void begin_wanting(void)
{
    gpu_count = 1;
    lacking_begin(false);
    waits[1].value = 2;
    points[1].value = 3;
    cells[0].awaited = cells[1].awaited = PROTOCOL_NOBODY;
    model_add(host_taker);
    model_add(host_returner);
}

// The block is back, and the host has had it, if it wants it.
static bool shelf_rests(void)
{
    bool rest = bin.free == 1 && !shelf.used && row.free == 1 && host_got == host_wants;
    for (int g = 0; g < gpu_count; g++) rest &= !shelf_sides[g].waiting;
    for (int i = 0; i < RECORDS; i++) rest &= !handles[i].block && !handles[i].address;
    return rest;
}

static bool gpu_rests(const gpu_t *gpu)
{
    return !gpu->s.live && !gpu->s.waiting.first && !gpu->s.lacking.first && !gpu->s.full &&
           !gpu->queue.used && gpu->control_write <= MASK;
}

static bool side_rests(const cell_side_t *side)
{
    return !side->waiters && !side->last && side->wanted == PROTOCOL_NOBODY;
}

static bool all_end(void)
{
    bool rest = true;
    for (int i = 0; i < RECORDS; i++) rest &= table[i].address == (uint64_t)(PLACE + i);
    for (int g = 0; g < gpu_count; g++) rest &= gpu_rests(&gpus[g]) && side_rests(&sides[0][g]);
    if (shelved) rest &= shelf_rests();
    return rest && ended == RECORDS && !failed && work == RECORDS * ROUNDS;
}

// Ticks of the whole chain, of both GPUs: at most one for each record that comes or goes on, and
// one for the host's signal.
static bool ticks_suffice(void)
{
    uint64_t ticks = 0;
    for (int i = 0; i < gpu_count; i++) ticks += gpus[i].s.ticks;
    return ticks <= 2 * RECORDS + 1;
}

static bool all_end_apart(void)
{
    return all_end() && cells[0].value == RECORDS + 1 && ticks_suffice();
}

static bool all_end_asking(void)
{
    return all_end() && ticks_suffice();
}

// Whether all goes well in each order where the host does the first record, the second, or both,
// which are of two GPUs then.
static bool requests_end(void)
{
    bool good = true;
    for (asking = 1; good && asking < 1u << RECORDS; asking++) {
        gpu_count = asking == 3 ? GPUS : 1;
        good = model_try(begin_asking, all_end_asking, SWITCHES);
    }
    asking = 0;
    return good && model_try(begin_signalling, all_end, SWITCHES);
}

static void test_no_order_loses_a_request(void **state)
{
    (void)state;
    mutant = NONE;
    assert_true(requests_end());
}

static void test_no_order_loses_anything(void **state)
{
    (void)state;
    void (*const begins[])(void) = {begin, begin_starving, begin_lacking, begin_lacking_apart,
                                    begin_wanting};
    mutant = NONE;
    for (int i = 0; i < 5; i++) {
        assert_true(model_try(begins[i], all_end, SWITCHES));
        assert_true(model.runs > 1000);
        print_message("%llu orders\n", (unsigned long long)model.runs);
    }
    assert_true(model_try(begin_apart, all_end_apart, SWITCHES));
    print_message("%llu orders\n", (unsigned long long)model.runs);
}

// What the first record waits for fails, and so does the second.
static void host_fails(void)
{
    cell_fail(&cells[0], 7);
    cell_wake(&cells[0]);
}

static void begin_failing(void)
{
    chain_begin();
    fails = true; // nothing is signalled
    model_add(host_fails);
}

static bool all_fail(void)
{
    uint64_t issued = gpus[0].s.issued + (gpu_count > 1 ? gpus[1].s.issued : 0);
    return ended == RECORDS && failed == RECORDS && cells[0].value == PROTOCOL_FAILED &&
           causes[0] == 7 && causes[1] == 7 && !issued && !work;
}

// The host would do both records: it is not asked.
static bool requests_fail(void)
{
    gpu_count = 1;
    asking = (1u << RECORDS) - 1;
    bool good = model_try(begin_failing, all_fail, SWITCHES);
    asking = 0;
    return good;
}

static void test_a_failure_reaches_all(void **state)
{
    (void)state;
    mutant = NONE;
    for (gpu_count = 1; gpu_count <= GPUS; gpu_count++)
        assert_true(model_try(begin_failing, all_fail, SWITCHES));
    assert_true(requests_fail());
}

// Whether one of the runs goes wrong.
static bool is_found(void)
{
    if (mutant >= ANSWERS_MUTE) return !requests_end() || !requests_fail();
    if (mutant >= LACKS_BLIND)
        return !model_try(begin_lacking, all_end, SWITCHES) ||
               !model_try(begin_lacking_apart, all_end, SWITCHES) ||
               !model_try(begin_wanting, all_end, SWITCHES);
    return !model_try(begin, all_end, SWITCHES) || !model_try(begin_starving, all_end, SWITCHES) ||
           !model_try(begin_apart, all_end, SWITCHES);
}

static void test_mutants_are_found(void **state)
{
    (void)state;
    for (mutant = TICKS_LATE; mutant < MUTANTS; mutant++) {
        if (!is_found()) fail_msg("mutant %d is not found", mutant);
    }
}

#if defined(__has_feature)
#define HAS_FEATURE(name) __has_feature(name)
#else
#define HAS_FEATURE(name) 0
#endif

// Sanitizers do not know such threads.
int main(void)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) ||                               \
    HAS_FEATURE(address_sanitizer) || HAS_FEATURE(thread_sanitizer)
    return 77;
#endif
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_order_loses_anything),
        cmocka_unit_test(test_no_order_loses_a_request),
        cmocka_unit_test(test_a_failure_reaches_all),
        cmocka_unit_test(test_mutants_are_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
