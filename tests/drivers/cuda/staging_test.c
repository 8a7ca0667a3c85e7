// SPDX-License-Identifier: Apache-2.0
// Bytes on their way to a CUDA device, on the CUDA driver in software: they are the ones that were
// given, however many are under way at a time.
#include <stdlib.h>
#include <string.h>

#include "drivers/cuda/device.h"

enum { PIECE = 100 << 10, PIECES = 40 }; // together more than a queue keeps at hand

static cuda_symbols_t *symbols;
static cuda_symbols_t real;
static _Atomic bool held;

// Page-locked memory there is, and copies that read behind its end.
enum { BLOCKS = 64 };
static _Atomic uintptr_t starts[BLOCKS], ends[BLOCKS];
static _Atomic uint32_t block_count, beyond;
static _Atomic uint64_t locked; // bytes so far

static CUresult host_alloc(void **data, size_t size, unsigned int flags)
{
    CUresult result = real.cuMemHostAlloc(data, size, flags);
    uint32_t i = atomic_fetch_add(&block_count, 1) % BLOCKS;
    atomic_fetch_add(&locked, size);
    atomic_store(&starts[i], (uintptr_t)*data);
    atomic_store(&ends[i], (uintptr_t)*data + size);
    return result;
}

static void source_check(uintptr_t source, size_t size)
{
    for (int i = 0; i < BLOCKS; i++)
        if (source >= atomic_load(&starts[i]) && source < atomic_load(&ends[i]) &&
            source + size > atomic_load(&ends[i]))
            atomic_fetch_add(&beyond, 1);
}

// The device is busy with something else before the first of them.
static CUresult copy_later(CUdeviceptr target, CUdeviceptr source, size_t size, CUstream stream)
{
    static _Atomic bool begun;
    source_check((uintptr_t)source, size);
    if (!atomic_exchange(&begun, true)) real.cuLaunchHostFunc(stream, held_call, &held);
    return real.cuMemcpyAsync(target, source, size, stream);
}

static int setup(void **state)
{
    (void)state;
    symbols = symbols_open(&real);
    if (!symbols) return 1;
    symbols->cuMemcpyAsync = copy_later;
    symbols->cuMemHostAlloc = host_alloc;
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    *symbols = real;
    return 0;
}

// What is in memory of the device. (To that CUDA copies; to memory of the host kernels do.)
static void fetch(keel_device_t *device, keel_buffer_t *buffer, void *bytes, uint64_t size)
{
    keel_buffer_t *seen = buffer_create(device, size, KEEL_MEMORY_HOST_VISIBLE);
    keel_point_t done;
    assert_null(keel_queue_copy(keel_device_queue(device, 0), KEEL_NO_WAITS, keel_whole(buffer),
                                keel_whole(seen), &done));
    ok(done);
    assert_null(keel_buffer_read(seen, 0, bytes, size));
    keel_buffer_release(seen);
}

static void test_updates_keep_their_bytes(void **state)
{
    (void)state;
    keel_device_t *device = device_open("");
    keel_queue_t *queue = keel_device_queue(device, 0);
    keel_buffer_t *buffer = buffer_create(device, PIECE * PIECES, KEEL_MEMORY_DEVICE_LOCAL);
    unsigned char *bytes = malloc(PIECE * PIECES);
    keel_point_t done[PIECES];
    assert_non_null(bytes);
    atomic_store(&held, true);
    for (int i = 0; i < PIECES; i++) {
        memset(bytes, i + 1, PIECE);
        keel_op_t op = keel_op_update(keel_span(buffer, (uint64_t)i * PIECE, PIECE), bytes);
        assert_null(keel_queue_run(queue, KEEL_NO_WAITS, op, &done[i]));
    }
    atomic_store(&held, false);
    for (int i = 0; i < PIECES; i++) ok(done[i]);
    fetch(device, buffer, bytes, PIECE * PIECES);
    for (int i = 0; i < PIECE * PIECES; i++) assert_int_equal(bytes[i], i / PIECE + 1);
    free(bytes);
    keel_buffer_release(buffer);
    keel_device_release(device);
}

// One after the other they go round and round in what the queue keeps at hand, and never over its
// end.
static void test_updates_one_by_one(void **state)
{
    (void)state;
    keel_device_t *device = device_open("");
    keel_queue_t *queue = keel_device_queue(device, 0);
    keel_buffer_t *buffer = buffer_create(device, PIECE, KEEL_MEMORY_DEVICE_LOCAL);
    unsigned char *bytes = malloc(PIECE);
    assert_non_null(bytes);
    atomic_store(&beyond, 0);
    for (int i = 0; i < PIECES; i++) {
        keel_point_t done;
        memset(bytes, i + 1, PIECE);
        keel_op_t op = keel_op_update(keel_span(buffer, 0, PIECE), bytes);
        assert_null(keel_queue_run(queue, KEEL_NO_WAITS, op, &done));
        ok(done);
        fetch(device, buffer, bytes, PIECE);
        for (int b = 0; b < PIECE; b++) assert_int_equal(bytes[b], i + 1);
    }
    assert_int_equal(atomic_load(&beyond), 0);
    free(bytes);
    keel_buffer_release(buffer);
    keel_device_release(device);
}

static keel_status_t call_nothing(void *user, keel_host_call_t *call)
{
    (void)user;
    (void)call;
    return NULL;
}

// Updates each number of an array in one submission, together with whatever else: what is
// page-locked for them grows with their bytes.
static void check_small_updates(uint32_t count, keel_op_t last, uint64_t most)
{
    keel_device_t *device = device_open("");
    keel_queue_t *queue = keel_device_queue(device, 0);
    keel_buffer_t *buffer = buffer_create(device, count * 4ull, KEEL_MEMORY_HOST_VISIBLE);
    keel_op_t *ops = malloc((count + 1) * sizeof *ops);
    uint32_t *values = malloc(count * sizeof *values), seen;
    keel_point_t done;
    assert_non_null(ops);
    assert_non_null(values);
    for (uint32_t i = 0; i < count; i++) {
        values[i] = i ^ 0x5a5a5a5a;
        ops[i] = keel_op_update(keel_span(buffer, i * 4ull, 4), &values[i]);
    }
    ops[count] = last;
    uint64_t before = atomic_load(&locked);
    assert_null(keel_queue_submit(queue, KEEL_NO_WAITS, ops, count + 1, KEEL_NO_SIGNALS, &done));
    ok(done);
    assert_in_range(atomic_load(&locked) - before, 1, most);
    for (uint32_t i = 0; i < count; i++) {
        assert_null(keel_buffer_read(buffer, i * 4ull, &seen, 4));
        assert_int_equal(seen, values[i]);
    }
    free(ops);
    free(values);
    keel_buffer_release(buffer);
    keel_device_release(device);
}

// Such a run takes nothing from what the queue keeps at hand.
static void test_small_updates_beside_a_call(void **state)
{
    (void)state;
    check_small_updates(2000, keel_op_host_call(call_nothing, NULL), 1 << 20);
}

static void test_more_small_updates_than_at_hand(void **state)
{
    (void)state;
    check_small_updates(20000, keel_op_barrier(), 4 << 20);
}

// One update in a long recording.
static void test_recorded_update(void **state)
{
    (void)state;
    enum { FILLS = 20000, BESIDE = 100 }; // at a time
    keel_device_t *device = device_open("&commands=graph");
    keel_queue_t *queue = keel_device_queue(device, 0);
    keel_buffer_t *buffer = buffer_create(device, 16 + BESIDE * 4, KEEL_MEMORY_HOST_VISIBLE);
    keel_recording_t *recording = NULL;
    uint32_t words[3] = {1, 2, 3}, seen[3] = {0};
    keel_op_t barrier = keel_op_barrier();
    keel_op_t updates[2] = {keel_op_update(keel_span(buffer, 0, 4), &words[0]),
                            keel_op_update(keel_span(buffer, 4, 8), &words[1])};
    assert_null(keel_recording_create(device, NULL, &recording));
    assert_null(keel_recording_add(recording, &updates[0], 1));
    for (int i = 0; i < FILLS; i++) {
        if (i % BESIDE == 0) assert_null(keel_recording_add(recording, &barrier, 1));
        keel_op_t fill = keel_op_fill(keel_span(buffer, 16 + i % BESIDE * 4ull, 4), 7, 4);
        assert_null(keel_recording_add(recording, &fill, 1));
    }
    assert_null(keel_recording_add(recording, &updates[1], 1));
    assert_null(keel_recording_end(recording));
    uint64_t before = atomic_load(&locked);
    keel_point_t done;
    assert_null(keel_queue_run(queue, KEEL_NO_WAITS, keel_op_execute(recording, keel_refs(NULL, 0)),
                               &done));
    ok(done);
    assert_in_range(atomic_load(&locked) - before, 1, 64 << 10);
    assert_null(keel_buffer_read(buffer, 0, seen, sizeof seen));
    assert_memory_equal(seen, words, sizeof seen);
    keel_recording_release(recording);
    keel_buffer_release(buffer);
    keel_device_release(device);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_updates_keep_their_bytes),
        cmocka_unit_test(test_updates_one_by_one),
        cmocka_unit_test(test_small_updates_beside_a_call),
        cmocka_unit_test(test_more_small_updates_than_at_hand),
        cmocka_unit_test(test_recorded_update),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
