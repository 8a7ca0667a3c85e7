// SPDX-License-Identifier: Apache-2.0
#include "tracer/reader.h"

#include <dlfcn.h>

#include "tracer/demangle.h"
#include "tracer/load.h"
#include "tracer/made.h"
#include "tracer/summary.h"
#include "unit.h"

static made_t made;
static reader_t reader;

static void made_open(void)
{
    assert_int_equal(made_write(&made), 0);
    assert_null(reader_open(&reader, made.path));
}

static void made_close(void)
{
    reader_close(&reader);
    assert_int_equal(unlink(made.path), 0);
}

static void check_times(void *user, const reader_record_t *record)
{
    uint64_t *left = user;
    assert_int_equal(record->start_ns, record->raw->a[1]);
    assert_int_equal(record->end_ns, record->raw->a[2]);
    assert_int_equal(record->thread, 77);
    --*left;
}

static void wait_at(uint64_t start, uint64_t end, uint64_t start_ns, uint64_t end_ns)
{
    trace_record_t *record = made_add(&made, TRACE_WAIT, start, end);
    record->a[1] = start_ns;
    record->a[2] = end_ns;
}

// Between two readings of the clocks their rate counts, behind them that of the whole.
static void test_clocks(void **state)
{
    (void)state;
    enum { SECOND = 500000000 }; // in ticks
    uint64_t left = 5;
    made_begin(&made);
    made_clocks(&made, SECOND, 5000 + 1000000000);                // as told
    made_clocks(&made, 2 * (uint64_t)SECOND, 5000 + 2100000000u); // the clock was set right
    wait_at(0, 10, 5000, 5020);
    wait_at(SECOND, SECOND + 100, 1000005000, 1000005220);
    wait_at(10, 5, 5020, 5020); // the end is never before the start
    wait_at(SECOND / 2, SECOND / 2, 500005000, 500005000);
    wait_at(3 * (uint64_t)SECOND, 3 * (uint64_t)SECOND, 3150005000u, 3150005000u);
    made_open();
    reader_each(&reader, 1u << TRACE_WAIT, check_times, &left);
    assert_int_equal(left, 0);
    made_close();
}

static void pair_at(uint64_t clock, uint64_t device_ns, uint64_t host_ns)
{
    trace_record_t *record = made_add(&made, TRACE_PAIR, device_ns, 0);
    record->id = clock;
    record->a[0] = host_ns;
}

static void op_at(uint32_t clock, uint64_t start, uint64_t start_ns)
{
    trace_record_t *record = made_add(&made, TRACE_OP, start, start + 100);
    record->flags = trace_flags(TRACE_OP_DISPATCH, clock ? TRACE_DEVICE_NS + clock : TRACE_HOST);
    record->a[1] = start_ns;
    record->a[2] = start_ns + (clock == 1 ? 110 : clock ? 100 : 200);
}

// A device's clock that loses a tenth, and one that was read once.
static void test_devices(void **state)
{
    (void)state;
    uint64_t left = 5;
    made_begin(&made);
    pair_at(1, 1000001000, 1105000000);
    pair_at(2, 70, 9000);
    pair_at(1, 1000, 5000000);
    op_at(1, 1000, 5000000);
    op_at(1, 500001000, 555000000);
    op_at(1, 0, 4998900);
    op_at(2, 1070, 10000);
    op_at(0, 0, 5000);
    made_open();
    reader_each(&reader, 1u << TRACE_OP, check_times, &left);
    assert_int_equal(left, 0);
    made_close();
}

static void test_refused(void **state)
{
    (void)state;
    made_begin(&made);
    made.header->version = 99;
    assert_int_equal(made_write(&made), 0);
    keel_status_t status = reader_open(&reader, made.path);
    assert_int_equal(keel_status_code(status), KEEL_INVALID_ARGUMENT);
    assert_non_null(
        strstr(keel_status_message(status), "version 99; this program reads version 2"));
    keel_status_release(status);
    made_close();
    status = reader_open(&reader, "/tmp");
    assert_int_equal(keel_status_code(status), KEEL_INVALID_ARGUMENT);
    keel_status_release(status);
    reader_close(&reader);
}

static void made_work(void)
{
    made_begin(&made);
    made_name(&made, 3, "queue 0");
    made_name(&made, 4, "cpu");
    made_name(&made, 5, "kernel");
    trace_record_t *queue = made_add(&made, TRACE_QUEUE, 0, 0);
    queue->id = 1;
    queue->name = 3;
    queue->a[0] = 4;
    static const struct {
        trace_kind_t kind;
        uint64_t start, end, first;
    } events[] = {
        {TRACE_SUBMIT, 0, 100, 0},  {TRACE_READY, 150, 150, 0}, {TRACE_OP, 200, 600, 0},
        {TRACE_THREAD, 0, 0, 0},    {TRACE_OP, 300, 500, 8},    {TRACE_OP, 500, 550, 9},
        {TRACE_END, 1000, 1000, 0},
    };
    for (size_t i = 0; i < sizeof events / sizeof *events; i++) {
        trace_record_t *record = made_add(&made, events[i].kind, events[i].start, events[i].end);
        record->id = record->submission = 1;
        record->name = events[i].kind == TRACE_OP ? 5 : 0;
        record->a[1] = events[i].first;
    }
}

static char *summary_text(void)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    assert_non_null(out);
    model_t model = {0};
    assert_null(load_set(&model, &(set_t){.readers = &reader, .count = 1}));
    assert_null(summary_print(&model, 20, out));
    model_finish(&model);
    fclose(out);
    return text;
}

static void has(const char *text, const char *part)
{
    if (strstr(text, part)) return;
    fprintf(stderr, "%s\nhas no: %s\n", text, part);
    fail();
}

// Parts of one call overlap, on two threads: they count as one call, and the time in which both run
// once. Two that a thread ran one after the other are one.
static void test_summary(void **state)
{
    (void)state;
    made_work();
    made_open();
    char *text = summary_text();
    has(text, "        1    1300 ns     650 ns     650 ns     500 ns     800 ns     150 ns  100.0 %"
              "  kernel\n");
    has(text, "        1     300 ns     300 ns     300 ns     300 ns     300 ns       0 ns");
    has(text, "  submitted, until its waits were over\n");
    has(text, "  begun, until it had ended\n");
    has(text, "     800 ns   40.0 %  process 7, cpu\n");
    assert_null(strstr(text, "INCOMPLETE"));
    free(text);
    made_close();
}

static trace_record_t *made_of(trace_kind_t kind, uint64_t at, uint64_t queue, uint64_t submission)
{
    trace_record_t *record = made_add(&made, kind, at, at + 100);
    record->id = queue;
    record->submission = submission;
    return record;
}

static void need(uint64_t semaphore, uint32_t name)
{
    trace_record_t *record = made_of(TRACE_NEED, 30, 1, 2);
    record->name = name;
    record->a[0] = semaphore;
    record->a[1] = 1;
}

// A gap of 5800 ticks, before which a submission waited for another queue, which ends in it, and
// for a semaphore. Of the other queue's address there was another one before.
static void made_waits(bool ends)
{
    static const char *const names[] = {"cpu", "gone", "main", "other", "kernel", "gate"};
    made_begin(&made);
    for (uint32_t i = 0; i < 6; i++) made_name(&made, i + 1, names[i]);
    for (uint32_t i = 0; i < 3; i++) {
        trace_record_t *queue = made_of(TRACE_QUEUE, i, i == 1 ? 1 : i + 2, 0);
        queue->name = i + 2;
        queue->a[0] = 1;
        queue->a[1] = i == 1 ? 0x100 : 0x200;
    }
    made_of(TRACE_SUBMIT, 10, 4, 1);
    made_of(TRACE_SUBMIT, 15, 1, 1);
    made_of(TRACE_SUBMIT, 20, 1, 2);
    need(0x200, 0);
    need(0x300, 6);
    made_of(TRACE_OP, 100, 1, 1)->name = 5;
    made_of(TRACE_OP, 6000, 1, 2)->name = 5;
    if (ends) made_of(TRACE_END, 5000, 4, 1);
}

static void test_waits(void **state)
{
    (void)state;
    for (int ends = 0; ends < 2; ends++) {
        made_waits(ends);
        made_open();
        char *text = summary_text();
        has(text, "     11.6 us  dependency          0          0          1 ");
        has(text, ends ? "       11.6 us  of dependency: for queue 'other' of cpu\n"
                       : "       11.6 us  of dependency: for semaphore 'gate'\n");
        free(text);
        made_close();
    }
}

// What a process leaves that was killed: no end.
static void test_incomplete(void **state)
{
    (void)state;
    made_work();
    made.next[-1].kind = TRACE_NONE;
    made.header->ended = 0;
    made.header->lost = 12;
    made_open();
    char *text = summary_text();
    has(text, "INCOMPLETE: the process runs still, was killed, or ended by _exit\n");
    has(text, "INCOMPLETE: 12 records are lost");
    has(text, "1 submissions had not ended\n");
    free(text);
    made_close();
}

// Bytes changed anywhere: nothing is read outside of the file, and nothing hangs.
static void test_damage(void **state)
{
    (void)state;
    for (unsigned seed = 1; seed <= 300; seed++) {
        made_work();
        srand(seed);
        size_t used = (size_t)((unsigned char *)(void *)made.next - made.bytes);
        for (int i = 0; i < 20; i++) {
            size_t in_header = (size_t)rand() % 64, in_chunk = TRACE_HEADER_SIZE;
            in_chunk += (size_t)rand() % (used - TRACE_HEADER_SIZE);
            made.bytes[i % 5 ? in_chunk : 24 + in_header] = (unsigned char)rand();
        }
        assert_int_equal(made_write(&made), 0);
        keel_status_t status = reader_open(&reader, made.path);
        if (!status) free(summary_text());
        keel_status_release(status);
        made_close();
    }
}

// Names of C++, where its library is installed; others stay.
static void test_demangle(void **state)
{
    (void)state;
    static const struct {
        const char *name, *readable;
    } names[] = {{"_Z3addPfi", "add(float*, int)"},
                 {"_ZN2at6native3sinIfEEvT_", "void at::native::sin<float>(float)"},
                 {"_Znot_a_name", "_Znot_a_name"},
                 {"add", "add"}};
    bool there = dlopen("libstdc++.so.6", RTLD_LAZY) != NULL;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char *text = demangle(names[i].name);
        bool changed = there && strcmp(names[i].name, names[i].readable) != 0;
        if (changed)
            assert_string_equal(text, names[i].readable);
        else
            assert_null(text);
        free(text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_clocks),  cmocka_unit_test(test_devices),
        cmocka_unit_test(test_refused), cmocka_unit_test(test_summary),
        cmocka_unit_test(test_waits),   cmocka_unit_test(test_incomplete),
        cmocka_unit_test(test_damage),  cmocka_unit_test(test_demangle),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
