// SPDX-License-Identifier: Apache-2.0
#include "kit/command.h"

#include <keel/keel.h>

#include <string.h>

#include "kit/object.h"
#include "unit.h"

static keel_device_t *device;
static keel_buffer_t *plain, *late; // the latter of a pool

static int setup(void **state)
{
    (void)state;
    keel_pool_t *pool = NULL;
    keel_buffer_options_t options = {.size = 64};
    assert_null(keel_device_open("cpu://inline", NULL, &device));
    assert_null(keel_pool_create(device, NULL, &pool));
    assert_null(keel_buffer_create(device, &options, &plain));
    assert_null(keel_buffer_reserve(pool, &options, &late));
    keel_pool_release(pool);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    keel_buffer_release(late);
    keel_buffer_release(plain);
    keel_device_release(device);
    return 0;
}

static keel_recording_t *record(const keel_op_t *ops, size_t count)
{
    keel_recording_options_t options = {.slots = 2};
    keel_recording_t *recording = NULL;
    assert_null(keel_recording_create(device, &options, &recording));
    assert_null(keel_recording_add(recording, ops, count));
    assert_null(keel_recording_end(recording));
    return recording;
}

static void test_reach(void **state)
{
    (void)state;
    const struct {
        keel_op_t op;
        bool moves;
        uint64_t length;
    } rows[] = {
        {keel_op_fill(keel_whole(plain), 0, 1), false, 64},
        {keel_op_fill(keel_whole(late), 0, 1), true, 64},
        {keel_op_fill(keel_slot(0, 0, 12), 0, 1), true, 12},
        {keel_op_fill(keel_slot(0, 8, KEEL_WHOLE), 0, 1), true, KEEL_WHOLE},
        {keel_op_copy(keel_slot(0, 0, KEEL_WHOLE), keel_slot(1, 0, KEEL_WHOLE)), true, KEEL_WHOLE},
        {keel_op_copy(keel_slot(0, 0, KEEL_WHOLE), keel_span(plain, 8, 4)), true, 4},
        {keel_op_copy(keel_span(plain, 0, 8), keel_span(plain, 8, 8)), false, 8},
        {keel_op_update(keel_span(plain, 0, 4), "four"), false, 4},
        {keel_op_fill_with(keel_whole(plain), keel_parameter(0, 4)), true, 64},
        {keel_op_copy(keel_parameter(0, 4), keel_span(plain, 8, 4)), false, 4},
        {keel_op_copy(keel_parameter(0, 4), keel_slot(0, 0, KEEL_WHOLE)), true, 4},
        {keel_op_barrier(), false, KEEL_WHOLE},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        keel_recording_t *recording = record(&rows[i].op, 1);
        KEEL_EACH_COMMAND (c, recording->commands) {
            command_reach_t reach = command_reach(c);
            assert_int_equal(reach.moves, rows[i].moves);
            assert_int_equal(reach.length, rows[i].length);
        }
        keel_recording_release(recording);
    }
}

static void test_late(void **state)
{
    (void)state;
    keel_op_t ops[] = {keel_op_fill(keel_whole(plain), 0, 1),
                       keel_op_copy(keel_span(late, 0, 8), keel_span(late, 8, 8)),
                       keel_op_fill(keel_slot(0, 0, 4), 0, 1)};
    keel_recording_t *recording = record(ops, 3);
    keel_buffer_t *found[2] = {0};
    assert_int_equal(commands_late(recording->commands, NULL), 2);
    assert_int_equal(commands_late(recording->commands, found), 2);
    assert_ptr_equal(found[0], late);
    assert_ptr_equal(found[1], late);
    keel_recording_release(recording);
}

static void test_updates(void **state)
{
    (void)state;
    keel_op_t ops[] = {keel_op_update(keel_span(plain, 0, 5), "first"),
                       keel_op_copy(keel_parameter(0, 64), keel_whole(plain)),
                       keel_op_update(keel_span(plain, 8, 6), "second")};
    keel_recording_t *recording = record(ops, 3);
    unsigned char data[64]; // what comes with executions has no place there
    assert_in_range(recording->commands->updates, 11, sizeof data);
    memset(data, 0, sizeof data);
    commands_updates(recording->commands, data);
    KEEL_EACH_COMMAND (c, recording->commands) {
        const keel_cmd_update_t *update = (const keel_cmd_update_t *)(const void *)c;
        if (c->kind == KEEL_CMD_UPDATE && !update->given)
            assert_memory_equal(data + update->place, update->data, update->target.length);
    }
    keel_recording_release(recording);
}

// Walks as a driver does that takes one command after the other, with these values where they are
// looked at. Notes the index of each command it comes by, and -1 for a failure.
static void walk(const keel_recording_t *recording, const uint32_t *values, int32_t *path)
{
    const keel_commands_t *commands = recording->commands;
    const keel_command_t *at = keel_commands_first(commands);
    uint32_t loops[16] = {0}, count = 0;
    while (at != keel_commands_end(commands)) {
        uint32_t value = command_has_value(at->kind) ? *values++ : 0;
        int32_t index = 0;
        for (const keel_command_t *c = keel_commands_first(commands); c != at; index++)
            c = keel_command_next(c);
        assert_true(count < 32);
        path[count++] = index;
        keel_status_t status = command_jump(commands, value, loops, &at);
        if (!status) continue;
        assert_int_equal(keel_status_code(status), KEEL_RESOURCE_EXHAUSTED);
        keel_status_release(status);
        path[count++] = -1;
        break;
    }
}

static void test_jump(void **state)
{
    (void)state;
    keel_ref_t value = keel_span(plain, 0, 4);
    keel_op_t work = keel_op_fill(keel_span(plain, 8, 4), 0, 1);
    keel_op_t thrice = keel_op_while(value);
    thrice.as.branch.max_iterations = 3;
    const struct {
        size_t count;
        keel_op_t ops[12];
        uint32_t values[8];
        int32_t path[32];
    } rows[] = {
        // an if, taken or not, also one with nothing in it
        {3, {keel_op_if(value), work, keel_op_end()}, {7}, {0, 1, 2}},
        {3, {keel_op_if(value), work, keel_op_end()}, {0}, {0}},
        {3, {keel_op_if(value), keel_op_end(), work}, {0}, {0, 2}},
        {3, {keel_op_if(value), keel_op_end(), work}, {1}, {0, 1, 2}},
        // and one with an else
        {6,
         {keel_op_if(value), work, keel_op_else(), work, keel_op_end(), work},
         {1},
         {0, 1, 2, 5}},
        {6,
         {keel_op_if(value), work, keel_op_else(), work, keel_op_end(), work},
         {0},
         {0, 3, 4, 5}},
        {4, {keel_op_if(value), keel_op_else(), keel_op_end(), work}, {1}, {0, 1, 3}},
        // loops
        {4, {keel_op_while(value), work, keel_op_end(), work}, {0}, {0, 3}},
        {4, {keel_op_while(value), work, keel_op_end(), work}, {5, 5, 0}, {0, 1, 2, 0, 1, 2, 0, 3}},
        {3, {thrice, work, keel_op_end()}, {1, 1, 1, 1}, {0, 1, 2, 0, 1, 2, 0, 1, 2, 0, -1}},
        // the rounds of a loop inside another begin anew
        {4,
         {keel_op_while(value), thrice, keel_op_end(), keel_op_end()},
         {1, 1, 1, 0, 1, 1, 0, 0},
         {0, 1, 2, 1, 2, 1, 3, 0, 1, 2, 1, 3, 0}},
        // a switch
        {2, {keel_op_switch(value), keel_op_end()}, {0}, {0}},
        {6,
         {keel_op_switch(value), keel_op_case(3), work, keel_op_case(0), work, keel_op_end()},
         {3},
         {0, 2, 3}},
        {6,
         {keel_op_switch(value), keel_op_case(3), work, keel_op_case(0), work, keel_op_end()},
         {0},
         {0, 4, 5}},
        {6,
         {keel_op_switch(value), keel_op_case(3), work, keel_op_case(0), work, keel_op_end()},
         {9},
         {0}},
        // the end of a block inside a way, and then of the way
        {7,
         {keel_op_if(value), keel_op_if(value), work, keel_op_end(), keel_op_else(), work,
          keel_op_end()},
         {1, 1},
         {0, 1, 2, 3, 4}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        keel_recording_t *recording = record(rows[i].ops, rows[i].count);
        int32_t path[32] = {0};
        walk(recording, rows[i].values, path);
        for (int k = 0; k < 32; k++) assert_int_equal(path[k], rows[i].path[k]);
        keel_recording_release(recording);
    }
}

static uint32_t references(keel_buffer_t *buffer)
{
    return atomic_load(&buffer->object.refs);
}

// Copies between the same two buffers one after the other count as one reference to each.
static void test_copies_keep(void **state)
{
    (void)state;
    uint32_t before = references(plain), before_late = references(late);
    keel_op_t there = keel_op_copy(keel_whole(plain), keel_whole(late));
    keel_op_t back = keel_op_copy(keel_whole(late), keel_whole(plain));
    keel_op_t slots = keel_op_copy(keel_slot(0, 0, 64), keel_slot(1, 0, 64));
    keel_op_t into = keel_op_copy(keel_slot(0, 0, 64), keel_whole(plain));
    const keel_op_t ops[] = {slots, there, keel_op_barrier(), there, there, back, into,
                             into,  there};
    keel_recording_t *recording = record(ops, sizeof ops / sizeof *ops);
    assert_int_equal(references(plain), before + 4); // there, back, into, there
    assert_int_equal(references(late), before_late + 3);
    keel_recording_release(recording);
    assert_int_equal(references(plain), before);
    assert_int_equal(references(late), before_late);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reach),       cmocka_unit_test(test_late),
        cmocka_unit_test(test_updates),     cmocka_unit_test(test_jump),
        cmocka_unit_test(test_copies_keep),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
