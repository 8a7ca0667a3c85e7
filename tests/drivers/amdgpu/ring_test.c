// SPDX-License-Identifier: Apache-2.0
// The trace ring's own code, on the host, with all that can be compiled in.
#define RING_FEATURES 31
#define RING_NOW()    clock_step()
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <string.h>

static uint64_t clock_step(void);
static void load_step(const void *address);

// Others may do something before each look.
#include "drivers/amdgpu/device/protocol.h"
#undef PROTOCOL_LOAD
#define PROTOCOL_LOAD(p, order) (load_step(p), __atomic_load_n((p), (order)))

#include "drivers/amdgpu/device/scheduler.h"
#include "unit.h"

enum { SLOTS = 8, CONTROL = 64 };

static uint64_t now;
static uint64_t clock_step(void)
{
    return __atomic_add_fetch(&now, 1, __ATOMIC_RELAXED);
}

// Before the first look at `read` others take slots, which the host sets back: so many.
static trace_ring_t *passed_ring;
static uint64_t passed_slots;
static void load_step(const void *address)
{
    if (!passed_ring || address != &passed_ring->read) return;
    passed_ring->write += passed_slots;
    passed_ring->read += passed_slots;
    passed_ring = NULL;
}

typedef struct setup_t {
    scheduler_t scheduler;
    trace_ring_t ring;
    ring_slot_t slots[SLOTS];
    packet_t control[CONTROL];
    uint64_t write, bell;
} setup_t;

static void slot_reset(ring_slot_t *slot)
{
    *slot = (ring_slot_t){.signal = RING_SIGNAL, .open = 1};
}

static void setup_make(setup_t *s)
{
    memset(s, 0, sizeof *s);
    for (int i = 0; i < SLOTS; i++) slot_reset(&s->slots[i]);
    s->ring.slots = (uintptr_t)s->slots;
    s->ring.mask = SLOTS - 1;
    s->scheduler.trace = (uintptr_t)&s->ring;
    s->scheduler.control = (ring_queue_t){.packets = (uintptr_t)s->control,
                                          .mask = CONTROL - 1,
                                          .write = (uintptr_t)&s->write,
                                          .doorbell = (uintptr_t)&s->bell};
}

// Who finds no room drops it and goes on; the host is asked to come, once.
static void test_a_full_ring_drops(void **state)
{
    (void)state;
    setup_t s;
    setup_make(&s);
    for (uint64_t i = 0; i < SLOTS; i++) {
        value_note(&s.scheduler, VALUE_LIVE, i);
        assert_int_equal(s.write, i + 1 > SLOTS / 2); // told as soon as half of it is full
    }
    message_note(&s.scheduler, MESSAGE_FAULT, 1);
    assert_int_equal(slots_take(&s.scheduler, 3), RING_NONE);
    assert_int_equal(s.ring.dropped, 4);
    assert_int_equal(s.ring.write, SLOTS);
    assert_int_equal(s.write, 1);
    for (uint64_t i = 0; i < SLOTS; i++) {
        assert_int_equal(s.slots[i].kind, RING_VALUE);
        assert_int_equal(s.slots[i].end, i);
        assert_int_equal(s.slots[i].open, 0);
    }
    // With room again it goes on, over the end.
    slot_reset(&s.slots[0]);
    slot_reset(&s.slots[1]);
    s.ring.read = 2;
    assert_int_equal(slots_take(&s.scheduler, 2), SLOTS);
    assert_ptr_equal(ring_slot(&s.scheduler, SLOTS + 1), &s.slots[1]);
    assert_int_equal(slots_take(&s.scheduler, 1), RING_NONE);
}

// A ring that was emptied while one looks at it has room.
static void test_who_is_overtaken_drops_nothing(void **state)
{
    (void)state;
    setup_t s;
    for (uint64_t slots = 1; slots <= 3 * SLOTS; slots++) {
        setup_make(&s);
        passed_ring = &s.ring;
        passed_slots = slots;
        assert_int_equal(slots_take(&s.scheduler, 2), slots);
        assert_int_equal(s.ring.dropped, 0);
        assert_int_equal(s.write, 0); // nor is the host asked
    }
}

// However many ticks it waits for.
static void test_that_a_record_starves_is_noted_once(void **state)
{
    (void)state;
    setup_t s;
    ring_queue_t queue = {.used = 1, .room = 4};
    record_t record = {.queue = (uintptr_t)&queue, .room = 4};
    setup_make(&s);
    record.self = (uintptr_t)&record;
    record_place(&s.scheduler, &record, RECORD_READY);
    for (int i = 0; i < 3; i++) records_look(&s.scheduler, 0);
    assert_int_equal(queue.starved.first, record.self);
    assert_int_equal(s.ring.write, 1);
    assert_int_equal(s.slots[0].kind, RING_MESSAGE);
    assert_int_equal(s.slots[0].end, 4);
}

// A tick costs the same however many starve: it asks the first whether there is room for it. Nor
// does a small one that comes later go before a large one.
static void test_the_first_that_starves_stands_for_all(void **state)
{
    (void)state;
    setup_t s;
    ring_queue_t queue = {.used = 1, .room = 4};
    record_t records[3];
    setup_make(&s);
    for (int i = 0; i < 3; i++) {
        records[i] = (record_t){.self = (uintptr_t)&records[i], .queue = (uintptr_t)&queue};
        records[i].room = i ? 1 : 4;
        record_place(&s.scheduler, &records[i], RECORD_READY);
    }
    records[1].queue = records[1].room = 0; // who looks at it goes wrong
    for (int i = 0; i < 3; i++) records_look(&s.scheduler, 0);
    assert_int_equal(queue.starved.first, records[0].self);
    assert_int_equal(queue.starved.last, records[2].self);
    assert_int_equal(s.scheduler.full, (uintptr_t)&queue);
    assert_int_equal(queue.next, 0); // it is listed once
    assert_int_equal(queue.used, 1);
    assert_int_equal(s.scheduler.starving, 1);
}

static void test_without_a_ring_nothing_is_noted(void **state)
{
    (void)state;
    setup_t s;
    setup_make(&s);
    s.scheduler.trace = 0;
    value_note(&s.scheduler, VALUE_LIVE, 1);
    RING_DEBUG(&s.scheduler, "%u", 1);
    assert_int_equal(s.ring.write, 0);
    assert_int_equal(s.ring.dropped, 0);
}

// Nor is it counted as dropped.
static void test_while_paused_nothing_is_noted(void **state)
{
    (void)state;
    setup_t s;
    setup_make(&s);
    s.ring.paused = 1;
    value_note(&s.scheduler, VALUE_LIVE, 1);
    assert_int_equal(slots_take(&s.scheduler, SLOTS + 1), RING_NONE);
    assert_int_equal(s.ring.write, 0);
    assert_int_equal(s.ring.dropped, 0);
    assert_int_equal(s.write, 0); // the host is not asked
    s.ring.paused = 0;
    value_note(&s.scheduler, VALUE_LIVE, 1);
    assert_int_equal(s.ring.write, 1);
}

static void test_a_zone_has_two_times(void **state)
{
    (void)state;
    setup_t s;
    setup_make(&s);
    uint64_t start = zone_begin();
    zone_end(&s.scheduler, ZONE_ADVANCE, start);
    assert_int_equal(s.slots[0].kind, RING_ZONE);
    assert_int_equal(s.slots[0].number, ZONE_ADVANCE);
    assert_int_equal(s.slots[0].start, start);
    assert_true(s.slots[0].end > start);
}

// The text of the slots from one on.
static void text_read(const setup_t *s, uint32_t at, char text[RING_PRINT])
{
    for (uint32_t i = at;; i++) {
        const ring_text_t *part = (const ring_text_t *)(const void *)&s->slots[i];
        memcpy(text + (i - at) * RING_TEXT_SIZE, part->text, RING_TEXT_SIZE);
        assert_int_equal(s->slots[i].open, 0);
        assert_int_equal(s->slots[i].step, i - at);
        if (part->kind == RING_TEXT_END) return;
        assert_int_equal(part->kind, RING_TEXT);
    }
}

static void test_printf(void **state)
{
    (void)state;
    setup_t s;
    char text[RING_PRINT];
    setup_make(&s);
    RING_DEBUG(&s.scheduler, "%u%% of %x, %d", 100, 0xbeef, (uint64_t)-7);
    text_read(&s, 0, text);
    assert_string_equal(text, "100% of beef, -7");
    assert_int_equal(s.ring.write, 1);
    setup_make(&s);
    RING_DEBUG(&s.scheduler, "%u %u %u %u, and more that is too long by a few", UINT64_MAX,
               UINT64_MAX, UINT64_MAX, 0);
    text_read(&s, 0, text);
    assert_int_equal(s.ring.write, RING_TEXTS);
    assert_int_equal(strlen(text), RING_PRINT - 1);
    assert_memory_equal(text, "18446744073709551615 18446744073709551615 ", 42);
    setup_make(&s);
    RING_DEBUG(&s.scheduler, "ends in %", 0);
    text_read(&s, 0, text);
    assert_string_equal(text, "ends in ");
}

// A command's slot is its packet's signal; that of one which does not run is closed.
static void test_commands_have_slots(void **state)
{
    (void)state;
    setup_t s;
    packet_t packets[4] = {0};
    ring_queue_t queue = {.packets = (uintptr_t)packets, .mask = 3};
    const step_t steps[3] = {0};
    record_t record = {
        .queue = (uintptr_t)&queue, .user = 77, .steps = (uintptr_t)steps, .step = 2};
    const program_fill_t none = {.target = {.slot = PLACE_KNOWN}, .pattern_size = 1};
    builtin_fill_t arguments;
    const program_command_t commands[2] = {
        {.packet = {{2}}, .kind = COMMAND_READY, .offset = 5},
        {.packet = {{2}},
         .kind = COMMAND_FILL,
         .offset = 9,
         .packet_at = 1,
         .more = (uintptr_t)&none},
    };
    const segment_t segment = {.commands = (uintptr_t)commands, .count = 2};
    setup_make(&s);
    record.arguments = (uintptr_t)&arguments;
    issue_t i = issue_of(&s.scheduler, &record, &segment, 0);
    command_issue(&i, &commands[0]);
    assert_int_equal(packet_signal(&packets[0]), 0); // no slots, no signal
    i.slots = slots_take(&s.scheduler, 2);
    for (int k = 0; k < 2; k++) command_issue(&i, &commands[k]);
    assert_int_equal(packet_signal(&packets[0]), (uintptr_t)&s.slots[0]);
    assert_int_equal(s.slots[0].open, 1);
    assert_int_equal(s.slots[0].kind, RING_OPERATION);
    assert_int_equal(s.slots[0].number, 5);
    assert_int_equal(s.slots[0].user, 77);
    assert_int_equal(s.slots[0].step, 2);
    assert_int_equal(packet_signal(&packets[1]), 0); // nothing is to be filled
    assert_int_equal(s.slots[1].open, 0);
    assert_int_equal(s.slots[1].kind, RING_VOID);
}

// Threads as the GPU's queues, and the host that empties the ring.
enum { WRITERS = 3, NOTES = 20000 };
static setup_t shared;

static void *writer_main(void *argument)
{
    for (uint64_t i = 0; i < NOTES; i++)
        ring_put(&shared.scheduler, RING_VALUE, (uint32_t)(uintptr_t)argument, i, i);
    return NULL;
}

static void *host_main(void *argument)
{
    uint64_t read = 0, last[WRITERS] = {0}, *seen = argument;
    trace_ring_t *ring = &shared.ring;
    while (*seen + PROTOCOL_LOAD(&ring->dropped, __ATOMIC_RELAXED) < WRITERS * NOTES) {
        uint64_t write = PROTOCOL_LOAD(&ring->write, __ATOMIC_ACQUIRE);
        for (; read != write; read++) {
            ring_slot_t *slot = ring_slot(&shared.scheduler, read);
            while (PROTOCOL_LOAD(&slot->open, __ATOMIC_ACQUIRE)) sched_yield();
            assert_true(slot->end >= last[slot->number]); // each in its order
            last[slot->number] = slot->end + 1;
            ++*seen;
            slot_reset(slot);
            PROTOCOL_STORE(&ring->read, read + 1, __ATOMIC_RELEASE);
        }
        sched_yield();
    }
    return NULL;
}

static void test_all_are_noted_or_counted(void **state)
{
    (void)state;
    pthread_t threads[WRITERS + 1];
    uint64_t seen = 0;
    setup_make(&shared);
    shared.ring.asking = 1; // the host of the test is not told
    assert_int_equal(pthread_create(&threads[WRITERS], NULL, host_main, &seen), 0);
    for (uintptr_t i = 0; i < WRITERS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, writer_main, (void *)i), 0);
    for (int i = 0; i <= WRITERS; i++) pthread_join(threads[i], NULL);
    assert_int_equal(seen + shared.ring.dropped, WRITERS * NOTES);
    assert_int_equal(seen, shared.ring.write);
    assert_true(seen > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_full_ring_drops),
        cmocka_unit_test(test_who_is_overtaken_drops_nothing),
        cmocka_unit_test(test_that_a_record_starves_is_noted_once),
        cmocka_unit_test(test_the_first_that_starves_stands_for_all),
        cmocka_unit_test(test_without_a_ring_nothing_is_noted),
        cmocka_unit_test(test_while_paused_nothing_is_noted),
        cmocka_unit_test(test_a_zone_has_two_times),
        cmocka_unit_test(test_printf),
        cmocka_unit_test(test_commands_have_slots),
        cmocka_unit_test(test_all_are_noted_or_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
