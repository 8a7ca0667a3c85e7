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
    TICKS_LATE,   // a tick says at its end that it has begun
    LOOKS_EARLY,  // the host takes the list before it says that it has heard
    PUSHES_BLIND, // a record is put on a list without looking whether another was
    LOOKS_LATE,   // a tick looks at a cell before it takes it from the list
    KEEPS_ROOM,   // a record that has ended keeps its packets
    RINGS_NOT,    // a queue is not told of the packets behind a segment
    MUTANTS
} mutant_t;

static mutant_t mutant;

#define PROTOCOL_AT(type, address)  ((type *)(uintptr_t)(address))
#define PROTOCOL_LOAD(p, order)     (model_step(), *(p))
#define PROTOCOL_STORE(p, v, order) (model_step(), is_missed((p)) ? (void)0 : (void)(*(p) = (v)))
#define PROTOCOL_SWAP(p, v, order)  (model_step(), model_swap((p), (v), sizeof *(p)))
#define PROTOCOL_ADD(p, v, order)   (model_step(), model_add_to((p), (uint64_t)(v), sizeof *(p)))
#define PROTOCOL_CAS(p, old, v)     (model_step(), model_cas((p), (old), (v)))
#define PROTOCOL_FENCE()            ((void)0)
#define PROTOCOL_RELEASE()          ((void)0)

static bool is_late(const void *p, uint64_t value);
static bool is_missed(const void *p);
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
enum { RECORDS = 2, ROUNDS = 1, ROOM = 2, MASK = 15 };
enum { WORK = 2, TICK, TELL, ADVANCE }; // kinds of packets; 1 is an invalid one

// The queues are played: packets run one at a time, in order. Each record runs a segment of one
// command ROUNDS times: that counts `rounds` down.
static scheduler_t s;
static ring_queue_t queue;
static packet_t control_ring[MASK + 1], ring[MASK + 1];
static advance_args_t advances[MASK + 1];
static uint64_t control_write, control_read, control_bell, write_index, read_index, bell;
static record_t records[RECORDS];
static program_command_t commands[RECORDS];
static segment_t segments[RECORDS][3];
static program_t programs[RECORDS];
static step_t steps[RECORDS];
static uint32_t rounds[RECORDS], work;
static cell_t cell;
static wait_t waits[RECORDS];
static cell_point_t points[RECORDS];
static int ended, failed;
static uint64_t causes[RECORDS];
static bool told, fails;

static bool is_late(const void *p, uint64_t value)
{
    if (mutant == LOOKS_LATE && p == &cell.changed && !value) return true;
    return mutant == TICKS_LATE && p == &s.ticking && !value;
}

static bool is_missed(const void *p)
{
    return mutant == RINGS_NOT && p == &bell;
}

static bool is_kept(const void *p, uint64_t value)
{
    return mutant == KEEPS_ROOM && p == &queue.used && value > MASK;
}

static void queues_reset(void)
{
    memset(&s, 0, sizeof s);
    memset(control_ring, 0, sizeof control_ring);
    memset(ring, 0, sizeof ring);
    control_write = control_read = write_index = read_index = 0;
    control_bell = bell = UINT64_MAX;
    queue = (ring_queue_t){
        .packets = (uintptr_t)ring,
        .mask = MASK,
        .write = (uintptr_t)&write_index,
        .doorbell = (uintptr_t)&bell,
        .advances = (uintptr_t)advances,
        .room = ROOM,
    };
    s.control = (ring_queue_t){
        .packets = (uintptr_t)control_ring,
        .mask = MASK,
        .write = (uintptr_t)&control_write,
        .doorbell = (uintptr_t)&control_bell,
        .room = MASK,
    };
    s.tick.words[0] = TICK;
    s.tell.words[0] = TELL;
    s.advance.words[0] = ADVANCE;
    cell = (cell_t){.awaited = 1}; // so both records tell
    ended = failed = 0;
    work = 0;
    told = fails = false;
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

// Record i waits for i + 1, and signals i + 2; the host signals 1.
static void record_reset(int i)
{
    waits[i] = (wait_t){.cell = (uintptr_t)&cell,
                        .value = (uint64_t)i + 1,
                        .self = (uintptr_t)&waits[i],
                        .record = (uintptr_t)&records[i]};
    points[i] = (cell_point_t){(uintptr_t)&cell, (uint64_t)i + 2};
    program_reset(i);
    records[i] = (record_t){.scheduler = (uintptr_t)&s,
                            .self = (uintptr_t)&records[i],
                            .queue = (uintptr_t)&queue,
                            .steps = (uintptr_t)&steps[i],
                            .step_count = 1,
                            .room = ROOM,
                            .waits = (uintptr_t)&waits[i],
                            .signals = (uintptr_t)&points[i],
                            .wait_count = 1,
                            .signal_count = 1};
}

static void submit(int i)
{
    PROTOCOL_ADD(&s.live, 1, __ATOMIC_RELAXED);
    record_push(&s.inbox, &records[i]);
    tick_ask(&s);
}

static void host_first(void)
{
    submit(0);
    if (fails) return;
    cell_signal(&cell, 1);
    cell_touch(&s, &cell);
    tick_ask(&s);
}

static void host_second(void)
{
    submit(1);
}

static bool is_told(void)
{
    return told;
}

// The memory of a record that has ended is used for other things at once.
static uint64_t record_heard(record_t *record)
{
    uint64_t next = record->next;
    ended++;
    failed += record->cause != 0;
    causes[record - records] = record->cause;
    if (mutant == NONE) memset(record, 0xee, sizeof *record); // they go wrong elsewhere
    return next;
}

// What the host does when it is told, as amdgpu_scheduler_work.
static void host_listener(void)
{
    for (;;) {
        model_wait(is_told);
        told = false;
        if (mutant != LOOKS_EARLY) PROTOCOL_SWAP(&s.telling, 0, __ATOMIC_ACQ_REL);
        uint64_t at = records_take(&s.done);
        while (at) at = record_heard(PROTOCOL_AT(record_t, at));
        if (mutant == LOOKS_EARLY) PROTOCOL_SWAP(&s.telling, 0, __ATOMIC_ACQ_REL);
    }
}

static bool control_has(void)
{
    return control_ring[control_read & MASK].words[0];
}

static void control_processor(void)
{
    for (;;) {
        model_wait(control_has);
        packet_t *packet = &control_ring[control_read & MASK];
        uint32_t kind = packet->words[0];
        packet->words[0] = 0;
        control_read++;
        if (kind == TICK)
            scheduler_tick(&s);
        else
            told = true;
        if (kind == TICK && mutant == TICKS_LATE) s.ticking = 0;
    }
}

// It has been told of the packet, and the header is valid.
static bool queue_has(void)
{
    return bell != UINT64_MAX && bell >= read_index &&
           ring[read_index & MASK].words[0] > PACKET_INVALID;
}

static void queue_processor(void)
{
    for (;;) {
        model_wait(queue_has);
        packet_t packet = ring[read_index & MASK];
        ring[read_index & MASK].words[0] = PACKET_INVALID;
        read_index++;
        if (packet.words[0] == WORK) {
            work++;
            rounds[packet.words[1]]--;
            continue;
        }
        const advance_args_t *a = PROTOCOL_AT(const advance_args_t, packet_arguments(&packet));
        scheduler_advance(&s, PROTOCOL_AT(record_t, a->record));
    }
}

static void begin(void)
{
    queues_reset();
    for (int i = 0; i < RECORDS; i++) record_reset(i);
    model_add(host_second); // so that the first order has it wait
    model_add(host_first);
    model_add(control_processor);
    model_add(queue_processor);
    model_add(host_listener);
}

static bool all_end(void)
{
    return ended == RECORDS && !failed && cell.value == RECORDS + 1 && !s.live &&
           !s.waiting.first && !s.starved.first && !cell.waiters && !cell.last && !queue.used &&
           control_write <= MASK && work == RECORDS * ROUNDS;
}

static void test_no_order_loses_anything(void **state)
{
    (void)state;
    mutant = NONE;
    assert_true(model_try(begin, all_end, SWITCHES));
    assert_true(model.runs > 1000);
    print_message("%llu orders\n", (unsigned long long)model.runs);
}

// What the first record waits for fails, and so does the second.
static void host_fails(void)
{
    cell_fail(&cell, 7);
    cell_touch(&s, &cell);
    tick_ask(&s);
}

static void begin_failing(void)
{
    begin();
    fails = true; // nothing is signalled
    model_add(host_fails);
}

static bool all_fail(void)
{
    return ended == RECORDS && failed == RECORDS && cell.value == PROTOCOL_FAILED &&
           causes[0] == 7 && causes[1] == 7 && !s.issued;
}

static void test_a_failure_reaches_all(void **state)
{
    (void)state;
    mutant = NONE;
    assert_true(model_try(begin_failing, all_fail, SWITCHES));
}

static void test_mutants_are_found(void **state)
{
    (void)state;
    for (mutant = TICKS_LATE; mutant < MUTANTS; mutant++) {
        if (model_try(begin, all_end, SWITCHES)) fail_msg("mutant %d is not found", mutant);
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
        cmocka_unit_test(test_a_failure_reaches_all),
        cmocka_unit_test(test_mutants_are_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
