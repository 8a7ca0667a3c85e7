// SPDX-License-Identifier: Apache-2.0
// What a traced device records of what the GPU schedules. Run on the software GPU (keel sim).
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "drivers/amdgpu/device/ring.h"
#include "drivers/amdgpu/gate.h"
#include "drivers/amdgpu/host/scheduler/scheduler.h"
#include "drivers/amdgpu/setup.h"
#include "trace/event.h"
#include "tracer/reader.h"

static char folder[] = "/tmp/keel-trace-XXXXXX";

static void traced_open(setup_t *s, const char *uri)
{
    setup_open(s, uri, 0);
    assert_true(amdgpu_device(s->device)->traced);
    assert_non_null(amdgpu_device(s->device)->scheduler);
}

// Runs the recording, until it has ended.
static void run(setup_t *s)
{
    const keel_point_t wait = keel_point(s->semaphore, s->value);
    const keel_point_t signal = keel_point(s->semaphore, ++s->value);
    const keel_op_t op = keel_op_execute(s->recording, (keel_refs_t){0});
    OK(keel_queue_submit(s->queue, KEEL_POINTS(wait), &op, 1, KEEL_POINTS(signal), NULL));
    OK(keel_wait(KEEL_POINTS(signal), KEEL_ALL, KEEL_FOREVER));
    OK(keel_queue_wait_idle(s->queue, KEEL_FOREVER)); // it has ended on the host, too
}

// How often there is an operation of a name, and whether the queue and the times make sense.
typedef struct seen_t {
    const reader_t *reader;
    const char *name;
    uint32_t count, wrong;
    uint64_t submissions; // the largest
} seen_t;

static void see(void *user, const reader_record_t *record)
{
    seen_t *seen = user;
    const trace_record_t *raw = record->raw;
    char text[256];
    if (strcmp(reader_name(seen->reader, raw->name, text, sizeof text), seen->name) != 0) return;
    seen->count++;
    seen->wrong += raw->flags >> 8 != TRACE_BOOT_NS || !raw->start || raw->start > raw->end ||
                   !reader_queue(seen->reader, raw->id) || !raw->submission;
    if (raw->submission > seen->submissions) seen->submissions = raw->submission;
}

static seen_t records(trace_kind_t kind, const char *name, uint64_t *lost)
{
    char path[64];
    reader_t reader;
    snprintf(path, sizeof path, "%s/%ld-0.trace", folder, (long)getpid());
    assert_null(reader_open(&reader, path));
    seen_t seen = {.reader = &reader, .name = name};
    reader_each(&reader, 1u << kind, see, &seen);
    if (lost) *lost = reader.header->lost;
    reader_close(&reader);
    return seen;
}

static seen_t operations(const char *name, uint64_t *lost)
{
    return records(TRACE_OP, name, lost);
}

// Each round of a loop is an operation of its own.
static void test_commands_that_ran_are_operations(void **state)
{
    enum { ROUNDS = 12, RUNS = 3 };
    (void)state;
    setup_t s;
    traced_open(&s, "amdgpu://0");
    uint32_t fills = operations("fill", NULL).count;
    add(&s, keel_op_fill(word(&s, 0), ROUNDS, 4));
    add(&s, keel_op_while(word(&s, 0)));
    add(&s, kernel(&s, "count_down", KEEL_BIND(s.buffer)));
    add(&s, keel_op_if(word(&s, 0)));
    add(&s, keel_op_fill(word(&s, 2), 5, 4));
    add(&s, keel_op_end());
    add(&s, keel_op_end());
    OK(keel_recording_end(s.recording));
    for (int i = 0; i < RUNS; i++) run(&s);
    seen_t seen = operations("count_down", NULL);
    assert_int_equal(seen.count, RUNS * ROUNDS);
    assert_int_equal(seen.wrong, 0);
    assert_int_equal(seen.submissions, RUNS);
    assert_int_equal(operations("fill", NULL).count - fills, RUNS * ROUNDS); // one is before
    setup_close(&s);
}

// A dispatch of no groups is none; its slots come back, so that the ring does not fill up.
static void test_commands_that_did_not_run_are_none(void **state)
{
    enum { RUNS = 80 };
    (void)state;
    setup_t s;
    traced_open(&s, "amdgpu://0?trace_slots=64");
    const keel_ref_t counts = keel_span(s.buffer, 16, 12);
    add(&s,
        keel_op_indirect(kernel(&s, "tally", KEEL_BIND(s.buffer)), KEEL_COUNTS_DYNAMIC, counts));
    add(&s, keel_op_indirect(kernel(&s, "tally", KEEL_BIND(s.buffer)), KEEL_COUNTS_STATIC, counts));
    add(&s, kernel(&s, "count_down", KEEL_BIND(s.buffer)));
    OK(keel_recording_end(s.recording));
    uint32_t before = operations("count_down", NULL).count;
    for (int i = 0; i < RUNS; i++) run(&s);
    assert_int_equal(operations("tally", NULL).count, 0);
    assert_int_equal(operations("count_down", NULL).count - before, RUNS);
    assert_int_equal(amdgpu_device(s.device)->scheduler->controls[0].dropped, 0);
    setup_close(&s);
}

// More commands at a time than the ring has slots: the work is done all the same.
static void test_what_is_dropped_is_counted(void **state)
{
    enum { FILLS = 200 };
    (void)state;
    setup_t s;
    uint64_t before, after;
    traced_open(&s, "amdgpu://0?trace_slots=64");
    uint32_t fills = operations("fill", &before).count;
    for (uint32_t i = 0; i < FILLS; i++) add(&s, keel_op_fill(word(&s, i), i + 1, 4));
    OK(keel_recording_end(s.recording));
    run(&s);
    assert_int_equal(operations("fill", &after).count, fills);
    assert_int_equal(amdgpu_device(s.device)->scheduler->controls[0].dropped, FILLS);
    assert_int_equal(after - before, FILLS);
    const uint32_t *words = map(&s);
    for (uint32_t i = 0; i < FILLS; i++) assert_int_equal(words[i], i + 1);
    keel_buffer_unmap(s.buffer);
    setup_close(&s);
}

// A slot, as the GPU fills it in.
static ring_slot_t *slot_take(const setup_t *s, ring_slot_t is)
{
    amdgpu_control_t *control = &amdgpu_device(s->device)->scheduler->controls[0];
    uint64_t number = slots_take(control->shared, 1);
    assert_int_not_equal(number, RING_NONE);
    ring_slot_t *slot = ring_slot(control->shared, number);
    slot->start = is.start;
    slot->end = is.end;
    slot->user = is.user;
    slot->step = is.step;
    slot->kind = is.kind;
    return slot;
}

static void slot_close(ring_slot_t *slot)
{
    PROTOCOL_STORE(&slot->open, 0, __ATOMIC_RELEASE);
}

// Nor is the run looked at, which is gone.
static void test_what_closes_behind_the_end_of_its_run_is_lost(void **state)
{
    (void)state;
    setup_t s;
    keel_semaphore_t *gate;
    uint64_t before, after;
    traced_open(&s, "amdgpu://0");
    add(&s, kernel(&s, "count_down", KEEL_BIND(s.buffer)));
    OK(keel_recording_end(s.recording));
    OK(keel_semaphore_create(s.device, NULL, &gate));
    uint32_t count = operations("count_down", &before).count;
    const keel_point_t wait = keel_point(gate, 1), signal = keel_point(s.semaphore, ++s.value);
    const keel_op_t op = keel_op_execute(s.recording, (keel_refs_t){0});
    OK(keel_queue_submit(s.queue, KEEL_POINTS(wait), &op, 1, KEEL_POINTS(signal), NULL));
    const amdgpu_run_t *of = amdgpu_device(s.device)->scheduler->runs;
    assert_non_null(of);
    ring_slot_t *late = slot_take(&s, (ring_slot_t){.user = (uintptr_t)of, .kind = RING_OPERATION});
    OK(keel_semaphore_signal(gate, 1));
    OK(keel_wait(KEEL_POINTS(signal), KEEL_ALL, KEEL_FOREVER));
    OK(keel_queue_wait_idle(s.queue, KEEL_FOREVER));
    assert_int_equal(late->user, 0);
    slot_close(late);
    run(&s);
    assert_int_equal(operations("count_down", &after).count - count, 2);
    assert_int_equal(after - before, 1);
    keel_semaphore_release(gate);
    setup_close(&s);
}

// So the ring does not fill up with what is not recorded.
static void test_while_paused_no_slots_are_taken(void **state)
{
    (void)state;
    setup_t s;
    trace_control_t *tool = trace_control_open(folder);
    assert_non_null(tool);
    atomic_store(&tool->paused, 1);
    traced_open(&s, "amdgpu://0");
    const trace_ring_t *ring = amdgpu_device(s.device)->scheduler->controls[0].ring;
    add(&s, kernel(&s, "count_down", KEEL_BIND(s.buffer)));
    OK(keel_recording_end(s.recording));
    uint32_t before = operations("count_down", NULL).count;
    run(&s);
    assert_int_equal(PROTOCOL_LOAD(&ring->write, __ATOMIC_RELAXED), 0);
    atomic_store(&tool->paused, 0);
    run(&s);
    assert_true(PROTOCOL_LOAD(&ring->write, __ATOMIC_RELAXED) > 0);
    assert_int_equal(operations("count_down", NULL).count - before, 1);
    setup_close(&s);
    munmap(tool, TRACE_CONTROL_SIZE);
}

// Of two runs, the first one ends with a slot that is open, and so is one of the second, which goes
// on: the first slot is lost, the second one is the second run's.
static void slots_check(setup_t *s)
{
    enum { RUNS = 2 };
    ring_slot_t *late[RUNS];
    keel_point_t waits[RUNS], signals[RUNS];
    uint64_t before, after, users[RUNS];
    uint32_t count = operations("count_down", &before).count;
    const keel_op_t op = keel_op_execute(s->recording, (keel_refs_t){0});
    for (uint32_t i = 0; i < RUNS; i++) {
        waits[i] = keel_point(s->semaphore, ++s->value);
        signals[i] = keel_point(s->semaphore, ++s->value);
        OK(keel_queue_submit(s->queue, KEEL_POINTS(waits[i]), &op, 1, KEEL_POINTS(signals[i]),
                             NULL));
        users[i] = (uintptr_t)amdgpu_device(s->device)->scheduler->runs; // the newest
        late[i] = slot_take(s, (ring_slot_t){.user = users[i], .kind = RING_OPERATION});
    }
    OK(keel_semaphore_signal(s->semaphore, waits[0].value));
    OK(keel_wait(KEEL_POINTS(signals[0]), KEEL_ALL, KEEL_FOREVER));
    while (__atomic_load_n(&late[0]->user, __ATOMIC_RELAXED)) sched_yield(); // the host is later
    assert_int_equal(late[1]->user, users[1]);
    slot_close(late[1]);
    OK(keel_semaphore_signal(s->semaphore, waits[1].value));
    OK(keel_wait(KEEL_POINTS(signals[1]), KEEL_ALL, KEEL_FOREVER));
    OK(keel_queue_wait_idle(s->queue, KEEL_FOREVER));
    assert_int_equal(operations("count_down", &after).count - count, RUNS + 1);
    assert_int_equal(after - before, 1);
    slot_close(late[0]);
}

// The runs of the second time have the memory of those of the first.
static void test_slots_of_what_goes_on_are_kept(void **state)
{
    (void)state;
    setup_t s;
    traced_open(&s, "amdgpu://0");
    add(&s, kernel(&s, "count_down", KEEL_BIND(s.buffer)));
    OK(keel_recording_end(s.recording));
    slots_check(&s);
    slots_check(&s);
    setup_close(&s);
}

static bool block_has(const block_t *block, const void *memory)
{
    uintptr_t data = (uintptr_t)block->data, at = (uintptr_t)memory;
    return at >= data && at - data < block->size;
}

// One whose memory the GPU may still write to is not used again while the device is there. The GPU
// counts a signal down by one, so a stamp that begins with 2 stays open.
static void test_the_memory_of_a_late_stamp_is_kept(void **state)
{
    (void)state;
    setup_t s;
    block_t *next;
    keel_point_t done;
    uint64_t before, after;
    setup_open(&s, "amdgpu://0?scheduler=host", 0);
    amdgpu_device_t *device = amdgpu_device(s.device);
    operations("fill", &before);
    hsa_signal_t gate = gate_put(device->hsa, amdgpu_queue(s.queue)->queue);
    const keel_op_t op = keel_op_fill(word(&s, 0), 1, 4);
    OK(keel_queue_submit(s.queue, KEEL_NO_WAITS, &op, 1, KEEL_NO_SIGNALS, &done));
    ring_slot_t *stamp = (ring_slot_t *)(void *)device->flights->stamps.newest;
    assert_non_null(stamp);
    uint64_t size = device->flights->blocks->size;
    assert_int_equal(stamp->open, 1);
    stamp->open = 2;
    device->hsa->hsa_signal_store_screlease(gate, 0);
    OK(keel_wait(KEEL_POINTS(done), KEEL_ALL, KEEL_FOREVER));
    OK(keel_queue_wait_idle(s.queue, KEEL_FOREVER));
    operations("fill", &after);
    assert_int_equal(after - before, 1);
    OK(blocks_acquire(&device->blocks, size, &next));
    assert_false(block_has(next, stamp));
    stamp->open = 0; // as the GPU does it
    blocks_return(&device->blocks, next, true);
    device->hsa->hsa_signal_destroy(gate);
    setup_close(&s);
}

// Of three slots, the one in the middle comes last: the third is no text of its own.
static void test_a_text_is_recorded_when_it_is_whole(void **state)
{
    enum { PARTS = 3 };
    (void)state;
    setup_t s;
    ring_slot_t *slots[PARTS];
    char name[128];
    traced_open(&s, "amdgpu://0");
    add(&s, kernel(&s, "count_down", KEEL_BIND(s.buffer)));
    OK(keel_recording_end(s.recording));
    for (uint32_t i = 0; i < PARTS; i++) {
        ring_kind_t kind = i + 1 < PARTS ? RING_TEXT : RING_TEXT_END;
        slots[i] = slot_take(&s, (ring_slot_t){.start = 1, .step = i, .kind = kind});
        char *text = ((ring_text_t *)(void *)slots[i])->text;
        memset(text, 'a' + (int)i, RING_TEXT_SIZE);
        if (kind == RING_TEXT_END) text[1] = 0;
    }
    slot_close(slots[0]);
    slot_close(slots[2]);
    run(&s);
    snprintf(name, sizeof name, "%s: scheduler 0: c", amdgpu_device(s.device)->base.name);
    assert_int_equal(records(TRACE_MARK, name, NULL).count, 0);
    slot_close(slots[1]);
    run(&s);
    snprintf(name, sizeof name, "%s: scheduler 0: %.20s%.20sc", amdgpu_device(s.device)->base.name,
             "aaaaaaaaaaaaaaaaaaaa", "bbbbbbbbbbbbbbbbbbbb");
    assert_int_equal(records(TRACE_MARK, name, NULL).count, 1);
    setup_close(&s);
}

int main(void)
{
    if (!getenv("KEEL_SIM_GPUS")) return 77; // to be run by keel sim
    if (!mkdtemp(folder)) return 1;
    trace_enable(folder);
    trace_mark_boot(trace_name("begin"), 1); // so that there is a file
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_commands_that_ran_are_operations),
        cmocka_unit_test(test_commands_that_did_not_run_are_none),
        cmocka_unit_test(test_what_is_dropped_is_counted),
        cmocka_unit_test(test_what_closes_behind_the_end_of_its_run_is_lost),
        cmocka_unit_test(test_while_paused_no_slots_are_taken),
        cmocka_unit_test(test_slots_of_what_goes_on_are_kept),
        cmocka_unit_test(test_the_memory_of_a_late_stamp_is_kept),
        cmocka_unit_test(test_a_text_is_recorded_when_it_is_whole),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    char command[64];
    snprintf(command, sizeof command, "rm -r %s", folder);
    return system(command) || failed;
}
