// SPDX-License-Identifier: Apache-2.0
// What every vendor's device does, whatever features it has.
#include <stdlib.h>
#include <unistd.h>

#include "drivers/stream/fixture.h"

static void dispatch_runs_all_groups(void **state)
{
    (void)state;
    uint32_t k = 3;
    keel_buffer_t *x = numbers(1, 0, 0);
    keel_ref_t ref = keel_whole(x);
    keel_op_t op = op_add(&ref, &k, 5);
    for (int i = 0; i < 4; i++) ok(submit(queue, KEEL_NO_WAITS, &op, 1));
    assert_int_equal(words_of(x)[0], 1 + 4 * 15);
    keel_buffer_release(x);
}

static void fill_of_any_alignment(void **state)
{
    (void)state;
    unsigned char expected[64];
    keel_buffer_t *x = numbers(0, 0, 0);
    keel_op_t ops[] = {
        keel_op_fill(keel_span(x, 0, 64), 0x11, 1),        keel_op_barrier(),
        keel_op_fill(keel_span(x, 16, 16), 0x44332211, 4), keel_op_barrier(),
        keel_op_fill(keel_span(x, 33, 6), 0xbbaa, 2),      keel_op_barrier(),
        keel_op_fill(keel_span(x, 41, 2), 0x22, 1), // within a word of the vendor's
    };
    ok(submit(queue, KEEL_NO_WAITS, ops, COUNT(ops)));
    memset(expected, 0x11, sizeof expected);
    memset(expected + 41, 0x22, 2);
    for (int i = 0; i < 4; i++) memcpy(expected + 16 + 4 * i, (uint32_t[]){0x44332211}, 4);
    for (int i = 0; i < 3; i++) memcpy(expected + 33 + 2 * i, (uint16_t[]){0xbbaa}, 2);
    assert_memory_equal(words_of(x), expected, sizeof expected);
    keel_buffer_release(x);
}

static void update_and_copy(void **state)
{
    (void)state;
    uint32_t data[3] = {7, 8, 9};
    keel_buffer_t *x = numbers(0, 0, 0), *y = numbers(0, 0, 0);
    keel_op_t ops[] = {
        keel_op_update(keel_span(x, 4, sizeof data), data),
        keel_op_barrier(),
        keel_op_copy(keel_span(x, 8, 8), keel_span(y, 0, 8)),
    };
    ok(submit(queue, KEEL_NO_WAITS, ops, COUNT(ops)));
    assert_int_equal(words_of(y)[0], 8);
    assert_int_equal(words_of(y)[1], 9);
    keel_buffer_release(x);
    keel_buffer_release(y);
}

static void timestamps_grow(void **state)
{
    (void)state;
    keel_buffer_t *x = numbers(0, 0, 0);
    keel_clock_pair_t pair;
    keel_op_t ops[] = {keel_op_timestamp(keel_span(x, 0, 8)), keel_op_barrier(),
                       keel_op_timestamp(keel_span(x, 8, 8))};
    uint64_t before = keel_now_ns(), a_microsecond = 1000; // the vendor reads the host's clock
    ok(submit(queue, KEEL_NO_WAITS, ops, COUNT(ops)));
    const uint64_t *times = (const uint64_t *)(const void *)words_of(x);
    assert_true(times[0] + a_microsecond >= before && times[0] <= times[1]);
    assert_true(times[1] <= keel_now_ns());
    ok_status(keel_device_clock(device, &pair));
    assert_true(pair.device_ns >= times[1]);
    keel_buffer_release(x);
}

// What the recording does, in which nothing but events and barriers orders the adds: of nodes that
// are not ordered, the vendor runs the last first.
static void recording_keeps_its_order(void **state)
{
    (void)state;
    keel_buffer_t *x = numbers(0, 0, 0), *y = numbers(0, 0, 0);
    keel_op_t ops[] = {
        keel_op_fill(keel_slot(0, 0, 4), 5, 4),
        keel_op_event_set(0),
        keel_op_fill(keel_slot(1, 4, 4), 6, 4),
        keel_op_event_wait(0),
        keel_op_copy(keel_slot(0, 0, 4), keel_slot(1, 0, 4)),
        keel_op_barrier(),
        keel_op_fill(keel_slot(0, 0, 4), 1, 4),
    };
    keel_recording_t *recording = record(ops, COUNT(ops), 2);
    for (int i = 0; i < 3; i++) {
        keel_buffer_t *first = i % 2 ? y : x, *second = i % 2 ? x : y;
        ok(execute(queue, recording, KEEL_BIND(first, second)));
        assert_int_equal(words_of(first)[0], 1);
        assert_int_equal(words_of(second)[0], 5);
        assert_int_equal(words_of(second)[1], 6);
    }
    keel_recording_release(recording);
    keel_buffer_release(x);
    keel_buffer_release(y);
}

// More than may lie side by side, and a wait for what was set before that.
static void wide_recordings_keep_their_order(void **state)
{
    (void)state;
    enum { MANY = 12 };
    keel_buffer_t *x = numbers(0, 0, 0);
    keel_op_t ops[MANY + 5] = {keel_op_fill(keel_span(x, 0, 4), 5, 4), keel_op_event_set(0)};
    for (uint32_t i = 0; i < MANY; i++)
        ops[2 + i] = keel_op_fill(keel_span(x, 4 + 4 * i, 4), 6 + i, 4);
    ops[4] = keel_op_event_wait(0); // two lie beside the first
    ops[5] = keel_op_copy(keel_span(x, 0, 4), keel_span(x, 8, 4));
    ops[MANY + 2] = keel_op_barrier();
    ops[MANY + 3] = keel_op_copy(keel_span(x, 4 * MANY, 4), keel_span(x, 12, 4));
    ops[MANY + 4] = keel_op_fill(keel_span(x, 60, 4), 1, 4);
    keel_recording_t *recording = record(ops, COUNT(ops), 0);
    for (int i = 0; i < 3; i++) {
        uint32_t *words = words_of(x);
        memset(words, 0, 64);
        ok(execute(queue, recording, KEEL_NO_BINDINGS));
        assert_int_equal(words[2], 5);
        assert_int_equal(words[3], 5 + MANY);
        assert_int_equal(words[MANY], 5 + MANY);
        assert_int_equal(words[15], 1);
    }
    keel_recording_release(recording);
    keel_buffer_release(x);
}

// A span of no bytes in turns with one of some: what is recorded is the same.
static void slots_may_be_empty(void **state)
{
    (void)state;
    keel_buffer_t *x = numbers(0, 0, 0), *y = numbers(0, 0, 0);
    keel_op_t ops[] = {
        keel_op_fill(keel_slot(0, 0, KEEL_WHOLE), 5, 4),
        keel_op_barrier(),
        keel_op_copy(keel_slot(0, 0, KEEL_WHOLE), keel_slot(1, 0, KEEL_WHOLE)),
    };
    keel_recording_t *recording = record(ops, COUNT(ops), 2);
    for (uint32_t i = 0; i < 6; i++) {
        uint64_t length = i % 2 ? 4 : 0;
        keel_ref_t table[] = {keel_span(x, i * 8, length), keel_span(y, i * 8, length)};
        ok(execute(queue, recording, keel_refs(table, 2)));
        assert_int_equal(words_of(x)[i * 2], length ? 5 : 0);
        assert_int_equal(words_of(y)[i * 2], length ? 5 : 0);
    }
    keel_recording_release(recording);
    keel_buffer_release(x);
    keel_buffer_release(y);
}

static keel_status_t host_add(void *user, keel_host_call_t *call)
{
    (void)call;
    *(uint32_t *)user += 1;
    return NULL;
}

static void host_calls_have_their_place(void **state)
{
    (void)state;
    uint32_t k = 10;
    keel_buffer_t *x = numbers(0, 0, 0);
    keel_ref_t ref = keel_whole(x);
    keel_op_t ops[] = {
        op_add(&ref, &k, 1), keel_op_barrier(),   keel_op_host_call(host_add, words_of(x)),
        keel_op_barrier(),   op_add(&ref, &k, 1),
    };
    ok(submit(queue, KEEL_NO_WAITS, ops, COUNT(ops)));
    assert_int_equal(words_of(x)[0], 21);
    keel_buffer_release(x);
}

static void files_are_read_and_written(void **state)
{
    (void)state;
    char path[] = "/tmp/keel-test-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    keel_file_t *file = NULL;
    ok_status(keel_file_open(device, path, KEEL_FILE_READ | KEEL_FILE_WRITE, &file));
    keel_buffer_t *x = numbers(1, 2, 3), *y = numbers(0, 0, 0);
    keel_op_t ops[] = {
        keel_op_write(keel_span(x, 0, 12), file, 4),
        keel_op_barrier(),
        keel_op_read(file, 8, keel_span(y, 0, 8)),
    };
    ok(submit(queue, KEEL_NO_WAITS, ops, COUNT(ops)));
    assert_int_equal(words_of(y)[0], 2);
    assert_int_equal(words_of(y)[1], 3);
    keel_file_release(file);
    keel_buffer_release(x);
    keel_buffer_release(y);
    close(fd);
    unlink(path);
}

// Memory that was given back on a queue serves what comes later; and a full pool makes an alloca
// wait for it, not the thread.
static void allocas_wait_for_deallocas(void **state)
{
    (void)state;
    enum { SIZE = 1 << 20 };
    keel_pool_t *pool = NULL;
    keel_pool_options_t options = {.limit = SIZE};
    ok_status(keel_pool_create(device, &options, &pool));
    keel_buffer_t *x, *y;
    keel_semaphore_t *gate = NULL;
    keel_point_t first, freed, second;
    ok_status(keel_semaphore_create(device, NULL, &gate));
    ok_status(keel_queue_alloca(queue, pool, SIZE, &x, &first));
    ok(first);
    ok_status(keel_queue_dealloca(queue, KEEL_AFTER(keel_point(gate, 1)), x, &freed));
    ok_status(keel_queue_alloca(queue, pool, SIZE, &y, &second));
    assert_false(is_reached(second));
    ok_status(keel_semaphore_signal(gate, 1));
    ok(second);
    keel_op_t op = keel_op_fill(keel_whole(y), 7, 4);
    ok(submit(queue, KEEL_NO_WAITS, &op, 1));
    assert_int_equal(words_of(y)[SIZE / 4 - 1], 7);
    keel_buffer_release(x);
    keel_buffer_release(y);
    keel_pool_release(pool);
    keel_semaphore_release(gate);
}

static void memory_of_the_application(void **state)
{
    (void)state;
    static _Alignas(4096) uint32_t mine[1024] = {5};
    keel_external_buffer_t external = {
        .kind = KEEL_EXTERNAL_HOST, .handle.host = mine, .size = sizeof mine};
    keel_buffer_options_t options = {0};
    keel_buffer_t *x = NULL, *y = numbers(0, 0, 0);
    ok_status(keel_buffer_import(device, &external, &options, &x));
    keel_op_t op = keel_op_copy(keel_span(x, 0, 4), keel_span(y, 0, 4));
    ok(submit(queue, KEEL_NO_WAITS, &op, 1));
    assert_int_equal(words_of(y)[0], 5);
    keel_buffer_release(x);
    keel_buffer_release(y);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(dispatch_runs_all_groups),
        TEST(fill_of_any_alignment),
        TEST(update_and_copy),
        TEST(timestamps_grow),
        TEST(recording_keeps_its_order),
        TEST(wide_recordings_keep_their_order),
        TEST(slots_may_be_empty),
        TEST(host_calls_have_their_place),
        TEST(files_are_read_and_written),
        TEST(allocas_wait_for_deallocas),
        TEST(memory_of_the_application),
    };
    static const vendor_kind_t narrow = {
        .name = "few branches", .features = STREAM_GRAPHS, .quirks = {.graph_branches = 2}};
    int failed = run_on_all(tests, COUNT(tests));
    kind = &narrow;
    return failed + unit_run(kind->name, tests, COUNT(tests), NULL, NULL);
}
