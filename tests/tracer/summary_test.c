// SPDX-License-Identifier: Apache-2.0
// Records with known times, and the figures that a summary makes of them.
#include "tracer/summary.h"

#include "ok.h"
#include "tracer/load.h"
#include "tracer/made.h"

static made_t made;

typedef struct op_t {
    trace_op_t kind;
    uint64_t start, end; // ns
    uint64_t called;     // when its call begins; 0: there is none in the trace
} op_t;

static const trace_op_t KERNEL = TRACE_OP_DISPATCH, COPY = TRACE_OP_COPY;

static void gpu_begin(void)
{
    made_begin(&made);
    made.header->clock = TRACE_CLOCK_MONOTONIC;
    made_name(&made, 1, "gpu 0");
    made_name(&made, 2, "kernel");
    trace_record_t *queue = made_add(&made, TRACE_QUEUE, 0, 0);
    queue->id = 1;
    queue->a[0] = 1;
}

static void op_add(op_t op)
{
    static uint64_t calls;
    trace_record_t *record = made_add(&made, TRACE_GPU, op.start, op.end);
    record->flags = trace_flags(op.kind, TRACE_HOST);
    record->id = 1;
    record->name = op.kind == COPY ? 0 : 2;
    if (!op.called) return;
    record->submission = ++calls;
    made_add(&made, TRACE_CALL, op.called, op.called + 1)->id = calls;
}

static void summary_write(char *text, size_t size)
{
    model_t model = {0};
    FILE *out = fmemopen(text, size, "w");
    assert_non_null(out);
    assert_int_equal(made_write(&made), 0);
    OK(load_path(&model, made.path));
    OK(summary_print(&model, 20, out));
    model_finish(&model);
    assert_int_equal(fclose(out), 0);
    assert_int_equal(unlink(made.path), 0);
}

// The lines of the summary from the one that has `begin`, up to an empty one or the end.
static void lines_are(const char *begin, const char *lines)
{
    static char text[10000];
    summary_write(text, sizeof text);
    char *at = strstr(text, begin);
    if (!at) fail_msg("%s\nhas no: %s", text, begin);
    char *end = strstr(at, "\n\n");
    if (end) end[1] = 0;
    assert_string_equal(at, lines);
}

static const char gaps_head[] =
    "    total  cause          < 1 us    < 10 us   < 100 us     < 1 ms    < 10 ms       more\n";

// The operations end with one that is all 0.
static void gaps_are(const op_t *ops, const char *lines)
{
    char expected[2000];
    gpu_begin();
    for (; ops->end; ops++) op_add(*ops);
    snprintf(expected, sizeof expected, "%s%s", gaps_head, lines);
    lines_are(gaps_head, expected);
}

// A gap of each cause, of 3, 20, 200 and 2000 us. Two copies that overlap count once.
static void test_causes(void **state)
{
    gaps_are((const op_t[]){{KERNEL, 10000, 11000, 9000},  //
                            {KERNEL, 14000, 15000, 11000}, // called as the gap begins
                            {KERNEL, 35000, 36000, 14999}, // called before
                            {COPY, 36000, 96000, 10000},
                            {COPY, 86000, 136000, 10000},
                            {KERNEL, 236000, 237000, 10000},
                            {KERNEL, 2237000, 2238000, 0},
                            {0}},
             "   105.0 us    4.7 %  process 7, gpu 0\n"
             "      3000 ns  host late           0          1          0          0          0"
             "          0\n"
             "      20.0 us  dependency          0          0          1          0          0"
             "          0\n"
             "     200.0 us  copy                0          0          0          1          0"
             "          0\n"
             "    2000.0 us  not known           0          0          0          0          1"
             "          0\n");
}

// Of each size the smallest and the largest. What lies within another operation makes no gap, nor
// does what begins as another one ends.
static void test_sizes(void **state)
{
    static const uint64_t gaps[] = {0,     1,      999,    1000,    9999,    10000,
                                    99999, 100000, 999999, 1000000, 9999999, 10000000};
    uint64_t at = 10000;
    gpu_begin();
    op_add((op_t){KERNEL, at, at + 100, 5000});
    op_add((op_t){KERNEL, at + 50, at + 60, 5000});
    at += 100;
    for (size_t i = 0; i < sizeof gaps / sizeof *gaps; i++) {
        at += gaps[i];
        op_add((op_t){KERNEL, at, at + 100, at});
        at += 100;
    }
    lines_are("  22.2 ms  host late", "  22.2 ms  host late           2          2          2      "
                                      "    2          2          1\n");
}

// Copies have to run for half of a gap, not beside the operations around it.
static void test_copies(void **state)
{
    gaps_are((const op_t[]){{KERNEL, 10000, 11000, 9000}, //
                            {COPY, 11000, 11250, 9000},
                            {COPY, 11500, 11750, 9000},   // half of it, in two
                            {KERNEL, 12000, 12050, 9000}, //
                            {COPY, 12030, 12549, 9000},   // a ns less
                            {KERNEL, 13050, 13100, 9000}, //
                            {COPY, 13060, 14000, 9000},   // from before it
                            {KERNEL, 14100, 15000, 9000}, //
                            {COPY, 15900, 18000, 9000},   // beyond it
                            {KERNEL, 16000, 16050, 9000}, // and through the next gap
                            {KERNEL, 17050, 17100, 9000},
                            {0}},
             "    5999 ns   66.7 %  process 7, gpu 0\n"
             "      2000 ns  dependency          0          2          0          0          0"
             "          0\n"
             "      3000 ns  copy                0          3          0          0          0"
             "          0\n");
}

// The first of a row and the last; a kernel that a clock has begin before its call; one without a
// call, which is left out.
static void test_latency(void **state)
{
    static const uint64_t latencies[] = {0, 999, 1000, 1999, 2000, 3999, 4000, 16383999};
    gpu_begin();
    for (size_t i = 0; i < sizeof latencies / sizeof *latencies; i++)
        op_add((op_t){KERNEL, 10000 + latencies[i], 20000000, 10000});
    op_add((op_t){KERNEL, 9000, 20000000, 10000});
    op_add((op_t){KERNEL, 9000, 20000000, 0});
    lines_are("launch latency",
              "launch latency: from the start of the call to the start of the operation\n"
              "  <   1000 ns          3  "
              "##################################################\n"
              "  <   2000 ns          2  ##################################\n"
              "  <   4000 ns          2  ##################################\n"
              "  <   8000 ns          1  #################\n"
              "  <   16.0 us          0  \n"
              "  <   32.0 us          0  \n"
              "  <   64.0 us          0  \n"
              "  <  128.0 us          0  \n"
              "  <  256.0 us          0  \n"
              "  <  512.0 us          0  \n"
              "  < 1024.0 us          0  \n"
              "  < 2048.0 us          0  \n"
              "  < 4096.0 us          0  \n"
              "  < 8192.0 us          0  \n"
              "  <   16.4 ms          1  #################\n");
}

// However long it was: here an hour.
static void test_latency_long(void **state)
{
    gpu_begin();
    op_add((op_t){KERNEL, 3600000010000, 3600000020000, 10000});
    lines_are("  < 4295.0 s",
              "  < 4295.0 s           1  ##################################################\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_causes),       cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_copies),       cmocka_unit_test(test_latency),
        cmocka_unit_test(test_latency_long),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
