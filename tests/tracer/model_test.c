// SPDX-License-Identifier: Apache-2.0
// What becomes of processes, names and threads as traces are read.
#include "tracer/model.h"

#include <time.h>

#include "tracer/export.h"
#include "tracer/load.h"
#include "tracer/made.h"
#include "unit.h"

static made_t made;

// Adds what was made to a model.
static void made_load(model_t *model)
{
    assert_int_equal(made_write(&made), 0);
    assert_null(load_path(model, made.path));
    assert_int_equal(unlink(made.path), 0);
}

// How many events a process has.
static int events_of(const model_t *model, uint32_t process)
{
    int count = 0;
    for (uint32_t i = 0; i < model->event_count; i++)
        count += model->tracks[model->events[i].track].process == process;
    return count;
}

// Two containers of one machine: processes and threads of both have the same numbers, and stay
// apart, also in the database.
static void test_same_number(void **state)
{
    (void)state;
    char path[] = "/tmp/keel-model-XXXXXX";
    model_t model = {0}, again = {0};
    made_begin(&made);
    strcpy(made.header->boot, "boot");
    made_add(&made, TRACE_WAIT, 10, 20);
    made_load(&model);
    made_add(&made, TRACE_WAIT, 30, 40);
    made_load(&model);
    assert_int_equal(model.process_count, 2);
    assert_int_not_equal(export_pid(&model.processes[0]), export_pid(&model.processes[1]));
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    keel_status_t status = rocpd_write(&model, path);
    model_finish(&model);
    if (keel_status_code(status) == KEEL_UNSUPPORTED) {
        keel_status_release(status);
        unlink(path);
        skip(); // SQLite is not installed
    }
    assert_null(status);
    assert_null(rocpd_read(&again, path));
    assert_int_equal(unlink(path), 0);
    assert_int_equal(again.process_count, 2);
    for (uint32_t i = 0; i < 2; i++) {
        assert_int_equal(again.processes[i].pid, 7);
        assert_int_equal(events_of(&again, i), i + 1);
    }
    model_finish(&again);
}

enum { LONG = 100 * TRACE_PART };

static void long_name(uint32_t name, char last)
{
    for (uint16_t i = 0; i <= LONG / TRACE_PART; i++) {
        trace_record_t *record = made_add(&made, TRACE_NAME, 0, 0);
        trace_name_part_t *part = (trace_name_part_t *)(void *)record;
        part->name = name;
        part->part = i;
        memset(part->text, 'a', i < LONG / TRACE_PART ? TRACE_PART : 1);
        if (i == LONG / TRACE_PART) part->text[0] = last;
    }
    made_add(&made, TRACE_SPAN, 10, 20)->name = name;
}

// Names of kernels may be longer than what some formats hold, and differ at the end only.
static void test_long_names(void **state)
{
    (void)state;
    model_t model = {0};
    made_begin(&made);
    long_name(3, 'x');
    long_name(4, 'y');
    made_load(&model);
    assert_int_equal(model.event_count, 2);
    const char *first = model_name(&model, &model.events[0]);
    const char *second = model_name(&model, &model.events[1]);
    assert_string_not_equal(first, second);
    assert_memory_equal(first, second, 4000);
    assert_true(strlen(first) < 4096);
    model_finish(&model);
}

// Reads two files of one process, the first of which was not ended.
static bool ended_with(const char *second)
{
    char paths[2][sizeof made.path];
    reader_t readers[2];
    model_t model = {0};
    for (uint32_t i = 0; i < 2; i++) {
        made_begin(&made);
        made.header->number = i;
        made.header->ended = i;
        strcpy(made.header->command, i ? second : "first");
        assert_int_equal(made_write(&made), 0);
        strcpy(paths[i], made.path);
        assert_null(reader_open(&readers[i], paths[i]));
    }
    assert_null(load_set(&model, &(set_t){.readers = readers, .count = 2}));
    assert_int_equal(model.process_count, 1);
    assert_string_equal(model_string(&model, model.processes[0].command), second);
    bool ended = model.processes[0].ended;
    for (int i = 0; i < 2; i++) {
        reader_close(&readers[i]);
        assert_int_equal(unlink(paths[i]), 0);
    }
    model_finish(&model);
    return ended;
}

// A process that becomes another program by exec is whole if that one came to its end. Two
// libraries of one program both have to.
static void test_exec(void **state)
{
    (void)state;
    assert_true(ended_with("second"));
    assert_false(ended_with("first"));
}

// Threads that start and end all the time are found quickly, and each once.
static void test_many_threads(void **state)
{
    (void)state;
    enum { THREADS = 200000 };
    model_t model = {0};
    struct timespec used;
    for (uint32_t i = 0; i < 2 * THREADS; i++) {
        uint32_t index;
        assert_null(model_track(&model, (track_t){.number = i % THREADS}, &index));
        assert_int_equal(index, i % THREADS);
    }
    assert_int_equal(model.track_count, THREADS);
    model_finish(&model);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    assert_true(used.tv_sec < 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_number),
        cmocka_unit_test(test_long_names),
        cmocka_unit_test(test_exec),
        cmocka_unit_test(test_many_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
