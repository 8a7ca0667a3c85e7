// SPDX-License-Identifier: Apache-2.0
// What exports make of traces that a test makes by hand.
#include "tracer/export.h"

#include <math.h>

#include "tracer/compare.h"
#include "tracer/load.h"
#include "tracer/made.h"
#include "tracer/summary.h"
#include "unit.h"

static made_t made;

typedef keel_status_t (*export_fn)(const model_t *model, FILE *out);

// What an export writes of a trace; to be freed.
static char *export_text(export_fn write)
{
    char *text = NULL;
    size_t size = 0;
    model_t model = {0};
    FILE *out = open_memstream(&text, &size);
    assert_non_null(out);
    assert_int_equal(made_write(&made), 0);
    assert_null(load_path(&model, made.path));
    assert_null(write(&model, out));
    model_finish(&model);
    assert_int_equal(fclose(out), 0);
    assert_int_equal(unlink(made.path), 0);
    return text;
}

// One line of a text that has a part, and no other.
static void line_is(const char *text, const char *part, const char *end)
{
    const char *at = strstr(text, part), *line = at;
    if (!at) fail_msg("%s\nhas no: %s", text, part);
    size_t length = strcspn(line, "\n"), of_end = strlen(end);
    if (length && line[length - 1] == ',') length--;
    assert_true(length >= of_end);
    if (strncmp(line + length - of_end, end, of_end) != 0)
        fail_msg("%.*s\ndoes not end in: %s", (int)length, line, end);
    assert_null(strstr(at + 1, part));
}

static trace_record_t *gpu_add(trace_op_t op, uint32_t name, uint64_t node)
{
    trace_record_t *from = made_add(&made, TRACE_NODE, 0, 0);
    from->submission = 5;
    from->id = node;
    trace_record_t *record = made_add(&made, TRACE_GPU, 100, 200);
    record->flags = trace_flags(op, TRACE_HOST);
    record->id = 1;
    record->name = name;
    return record;
}

// Operations of a graph have a shape, or bytes, and an argument.
static void test_chrome_args(void **state)
{
    (void)state;
    made_begin(&made);
    made_name(&made, 3, "kernel");
    made_name(&made, 4, "moved");
    gpu_add(TRACE_OP_DISPATCH, 3, 6)->shape =
        (trace_shape_t){.grid = {8, 1, 1}, .group_x = 2, .group_y = 1, .group_z = 1};
    gpu_add(TRACE_OP_COPY, 4, 7)->a[0] = 4096;
    char *text = export_text(export_chrome);
    line_is(text, "\"name\":\"kernel\"",
            "\"args\":{\"grid\":[8,1,1],\"workgroup\":[2,1,1],\"arguments\":\"graph 5 node 6\"}}");
    line_is(text, "\"name\":\"moved\"",
            "\"args\":{\"bytes\":4096,\"arguments\":\"graph 5 node 7\"}}");
    free(text);
}

// A page of calls of 500 ns, one after the other on two threads, a few of which are longer.
static char *long_page(uint32_t calls, uint32_t longer)
{
    char *text = NULL;
    size_t size = 0;
    model_t model = {0};
    uint32_t index;
    FILE *out = open_memstream(&text, &size);
    assert_non_null(out);
    assert_null(model_process(&model, (process_t){.pid = 7, .ended = true}, &index));
    for (uint64_t i = 0; i < 2; i++)
        assert_null(model_track(&model, (track_t){.number = i + 7}, &index));
    for (uint32_t i = 0; i < calls; i++) {
        uint64_t start = 1000 + i * 2000ull, ns = i % (calls / longer) ? 500 : 1000 + i;
        event_t event = {.start_ns = start, .end_ns = start + ns, .track = i % 2};
        assert_null(model_event(&model, event, &index));
    }
    assert_null(export_report(&model, out));
    model_finish(&model);
    assert_int_equal(fclose(out), 0);
    return text;
}

// Where the numbers of an array end that has so many, of the track that is named so.
static const char *array_end(const char *text, const char *track, const char *array, int count)
{
    const char *at = strstr(text, track);
    if (at) at = strstr(at, array);
    assert_non_null(at);
    const char *end = strchr(at, ']');
    assert_non_null(end);
    for (; at < end; at++) count -= *at == ',';
    assert_int_equal(count, 1);
    return end;
}

// Of too many events the page has the longest ones; of those that are equally long, some from the
// beginning to the end.
static void test_page_most(void **state)
{
    (void)state;
    char *text = long_page(1000000, 10);
    assert_non_null(strstr(text, "\"events\":400000,"));
    assert_non_null(strstr(text, "\"600000 of 1000000 events are not in the timeline, the shortest:"
                                 " none takes more than 500 ns.\""));
    for (int i = 0; i < 10; i++) {
        char longer[32];
        snprintf(longer, sizeof longer, ",%d,", 1000 + i * 100000);
        if (i) assert_non_null(strstr(text, longer));
    }
    const char *last = array_end(text, "thread 7 of 7", "\"start\"", 200000);
    assert_memory_equal(last - 10, "1999988000", 10);
    last = array_end(text, "thread 8 of 7", "\"start\"", 200000);
    assert_memory_equal(last - 10, "1999998000", 10);
    free(text);
}

// JSON has no number for what is none.
static void test_chrome_counters(void **state)
{
    (void)state;
    static const double values[] = {NAN, 2.5, INFINITY};
    made_begin(&made);
    made_name(&made, 3, "loss");
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        trace_record_t *record = made_add(&made, TRACE_COUNT, 100 + i, 100 + i);
        record->name = 3;
        memcpy(record->a, &values[i], sizeof values[i]);
    }
    char *text = export_text(export_chrome);
    line_is(text, "\"name\":\"loss\"", "\"args\":{\"value\":2.5}}");
    free(text);
}

static keel_status_t summary_export(const model_t *model, FILE *out)
{
    return summary_print(model, 20, out);
}

static keel_status_t compare_export(const model_t *model, FILE *out)
{
    static const model_t none;
    return compare_print(&none, model, 20, out);
}

// Launches that were counted, in two records, are one row of the summary, which has most of them
// first. On a timeline each record is a mark, where the first of its launches was.
static void test_launches(void **state)
{
    (void)state;
    made_begin(&made);
    made_name(&made, 3, "seldom");
    made_name(&made, 4, "often");
    for (uint32_t i = 0; i < 3; i++) {
        trace_record_t *record = made_add(&made, TRACE_LAUNCHES, 100 + i, 100 + i);
        record->name = i ? 4 : 3;
        record->a[0] = i ? 30 * i : 10;
    }
    char *text = export_text(summary_export);
    assert_non_null(strstr(text, "\n         90   90.0 %  often\n         10   10.0 %  seldom\n"));
    free(text);
    text = export_text(export_csv);
    line_is(text, "launches,\"seldom\"", ",10,,,");
    free(text);
    text = export_text(export_chrome);
    line_is(text, "\"ph\":\"i\",\"cat\":\"launches\",\"name\":\"seldom\"",
            ",\"ts\":0.000,\"s\":\"t\",\"args\":{\"launches\":10}}");
    free(text);
    text = export_text(compare_export);
    assert_string_equal(text, "launches of kernels, counted\n"
                              "     before      after     change  name\n"
                              "          0         90        new  often\n"
                              "          0         10        new  seldom\n\n");
    free(text);
}

// Memory that calls take and give back: their arguments, and a counter.
static void test_memory(void **state)
{
    (void)state;
    static const struct {
        trace_memory_t what;
        uint64_t start, address, bytes;
    } calls[] = {{TRACE_MEMORY_TAKEN, 100, 0x1000, 0x40},
                 {TRACE_MEMORY_TAKEN, 200, 0x2000, 0x100},
                 {TRACE_MEMORY_GIVEN_BACK, 300, 0x1000, 0},
                 {TRACE_MEMORY_GIVEN_BACK, 400, 0x9000, 0}, // taken before recording began
                 {TRACE_MEMORY_TAKEN, 500, 0, 0x7000},      // failed
                 {TRACE_MEMORY_TAKEN, 600, 0x1000, 0x8}};
    made_begin(&made);
    made_name(&made, 3, "hipMalloc");
    made_name(&made, 4, "hipFree");
    made_name(&made, 5, "hip");
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        trace_record_t *record = made_add(&made, TRACE_CALL, calls[i].start, calls[i].start + 10);
        record->name = calls[i].what == TRACE_MEMORY_TAKEN ? 3 : 4;
        record->flags = (uint16_t)calls[i].what;
        record->a[0] = 5ull << 32 | (calls[i].address ? 0 : 2);
        record->a[1] = calls[i].address;
        record->a[2] = calls[i].bytes;
    }
    char *text = export_text(export_chrome);
    line_is(text, ",\"ts\":0.000,", "\"args\":{\"arguments\":\"ptr(0x1000) size(0x40)\"}}");
    line_is(text, ",\"ts\":0.600,", "\"args\":{\"arguments\":\"ptr(0x9000)\"}}");
    line_is(text, ",\"ts\":0.800,",
            "\"args\":{\"arguments\":\"ptr(0x0) size(0x7000) returned 2\"}}");
    static const char *const values[] = {
        ",\"ts\":0.020,\"args\":{\"value\":64}}", ",\"ts\":0.220,\"args\":{\"value\":320}}",
        ",\"ts\":0.400,\"args\":{\"value\":256}}", ",\"ts\":1.020,\"args\":{\"value\":264}}"};
    const char *at = text;
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        at = strstr(at, "\"cat\":\"counter\",\"name\":\"hip: memory\"");
        assert_non_null(at);
        assert_non_null(strstr(at, values[i]));
        assert_true(strstr(at, values[i]) < at + 120);
        at = strstr(at, values[i]);
    }
    assert_null(strstr(at, "hip: memory"));
    free(text);
}

// Two streams of HIP on one queue have a track each, and so has the queue, for the default stream.
static void test_streams(void **state)
{
    (void)state;
    static const uint64_t handles[] = {0x5000, 0, 0x4000, 0x5000};
    made_begin(&made);
    made_name(&made, 3, "queue 7");
    made_name(&made, 4, "add_one");
    trace_record_t *queue = made_add(&made, TRACE_QUEUE, 0, 0);
    queue->id = 1;
    queue->name = 3;
    for (uint32_t i = 0; i < 4; i++) {
        trace_record_t *call = made_add(&made, TRACE_CALL, 10 * i, 10 * i + 5);
        call->id = i + 1;
        call->submission = handles[i];
        call->a[1] = 4;
        call->a[0] = i == 3; // it failed
        trace_record_t *kernel = made_add(&made, TRACE_GPU, 10 * i + 50, 10 * i + 55);
        kernel->flags = trace_flags(TRACE_OP_DISPATCH, TRACE_HOST);
        kernel->id = 1;
        kernel->submission = i + 1;
    }
    char *text = export_text(export_csv);
    line_is(text, "1,call", ",\"add_one stream 1\"");
    line_is(text, "2,call", ",\"add_one\"");
    line_is(text, "3,call", ",\"add_one stream 2\"");
    line_is(text, "4,call", ",\"add_one stream 1 returned 1\"");
    line_is(text, "5,operation", "\"queue 7, stream 1\",,,,1");
    line_is(text, "6,operation", "\"queue 7\",,,,2");
    line_is(text, "7,operation", "\"queue 7, stream 2\",,,,3");
    line_is(text, "8,operation", "\"queue 7, stream 1\",,,,4");
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_chrome_args), cmocka_unit_test(test_chrome_counters),
        cmocka_unit_test(test_page_most),   cmocka_unit_test(test_launches),
        cmocka_unit_test(test_memory),      cmocka_unit_test(test_streams),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
