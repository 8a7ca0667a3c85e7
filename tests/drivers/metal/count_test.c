// SPDX-License-Identifier: Apache-2.0
// How many messages work takes, and that no thread is blocked by command buffers in flight.
#include <pthread.h>

#include "drivers/metal/device.h"

enum { SIZE = 4096, MANY = 2000 };

static const char *const commit = "commit";

// Fills and copies of one submission are one command buffer, and encoders change only when needed.
static void one_command_buffer(void)
{
    keel_device_t *device = device_open();
    keel_buffer_t *x = buffer_create(device, SIZE);
    keel_queue_t *queue = keel_device_queue(device, 0);
    keel_point_t done;
    keel_op_t ops[] = {
        keel_op_fill(keel_span(x, 0, 256), 1, 1), // a blit
        keel_op_barrier(),
        keel_op_fill(keel_span(x, 1, 7), 2, 1),   // a kernel
        keel_op_fill(keel_span(x, 16, 16), 3, 1), // an encoder is open, so a kernel too
        keel_op_barrier(),
        keel_op_copy(keel_span(x, 0, 16), keel_span(x, 512, 16)),
    };
    assert_null(keel_queue_submit(queue, KEEL_NO_WAITS, ops, 6, KEEL_NO_SIGNALS, &done));
    ok(done);
    assert_int_equal(sim_sent(commit), 1);
    assert_int_equal(sim_sent("blitCommandEncoder"), 1);
    assert_int_equal(sim_sent("computeCommandEncoderWithDispatchType:"), 1);
    assert_int_equal(sim_sent("newFence"), 1);
    assert_int_equal(sim_sent("memoryBarrierWithScope:"), 1);
    assert_int_equal(sim_sent("newSharedEvent"), 0);
    uint8_t bytes[16];
    assert_null(keel_buffer_read(x, 512, bytes, sizeof bytes));
    for (int i = 0; i < 16; i++) assert_int_equal(bytes[i], i >= 1 && i < 8 ? 2 : 1);
    keel_buffer_release(x);
    device_close(device);
}

// What the GPU has nothing to do with needs no command buffer.
static void no_command_buffer(void)
{
    keel_device_t *device = device_open();
    ok(submit(device, KEEL_NO_WAITS, keel_op_barrier()));
    assert_int_equal(sim_sent(commit), 0);
    device_close(device);
}

// Waits that are met, on this queue and on another one, and a host that polls: a command buffer for
// each submission, and neither events nor listeners.
static void no_events(void)
{
    keel_device_t *device = device_open();
    keel_buffer_t *x = buffer_create(device, SIZE);
    keel_queue_t *other = NULL;
    assert_null(keel_queue_create(device, NULL, &other));
    keel_point_t first = submit(device, KEEL_NO_WAITS, keel_op_fill(keel_whole(x), 1, 1)), last;
    ok(first);
    keel_point_t second = submit(device, KEEL_AFTER(first), keel_op_fill(keel_whole(x), 2, 1));
    assert_null(
        keel_queue_run(other, KEEL_AFTER(second), keel_op_fill(keel_whole(x), 3, 1), &last));
    keel_status_t status = NULL;
    do {
        keel_status_release(status);
        status = keel_wait(KEEL_POINTS(last), KEEL_ALL, 0);
    } while (keel_status_code(status) == KEEL_DEADLINE_EXCEEDED);
    assert_null(status);
    assert_int_equal(sim_sent(commit), 3);
    assert_int_equal(sim_sent("commandBufferWithUnretainedReferences"), 3);
    assert_int_equal(sim_sent("addCompletedHandler:"), 3);
    assert_int_equal(sim_sent("newSharedEvent") + sim_sent("newEvent"), 0);
    assert_int_equal(sim_sent("notifyListener:atValue:block:"), 0);
    assert_int_equal(sim_sent("newCaptureScopeWithCommandQueue:"), 0);
    keel_queue_release(other);
    keel_buffer_release(x);
    device_close(device); // and no object is alive
}

// Scopes begin and end around each command buffer, also where several are made at a time and one is
// given up; without the option there are none.
static void captured(void)
{
    keel_device_t *device = NULL;
    assert_null(device_try_open("0?capture=1", &device));
    keel_buffer_t *x = buffer_create(device, SIZE);
    ok(submit(device, KEEL_NO_WAITS, keel_op_fill(keel_whole(x), 1, 1)));
    assert_int_equal(sim_sent("beginScope"), 1);
    for (int i = 0; i < 20; i++) {
        keel_status_t status =
            wait_for(submit(device, KEEL_NO_WAITS, keel_op_fill(keel_whole(x), 1, 1)));
        assert_int_equal(status != NULL, i == 4); // the sixth encoder
        keel_status_release(status);
    }
    assert_int_equal(sim_sent("beginScope"), 21);
    assert_int_equal(sim_sent("endScope"), 21);
    keel_buffer_release(x);
    device_close(device);
}

static void test_captured(void **state)
{
    (void)state;
    run_with("fail=blitCommandEncoder/6", captured);
}

// Messages of a submission.
static uint64_t submit_counted(keel_device_t *device, const keel_op_t *ops, size_t count)
{
    uint64_t before = sim_messages();
    keel_point_t done;
    assert_null(keel_queue_submit(keel_device_queue(device, 0), KEEL_NO_WAITS, ops, count,
                                  KEEL_NO_SIGNALS, &done));
    ok(done);
    return sim_messages() - before;
}

// Memory in the order of a queue is a part of a slab: once that is there, giving it and taking it
// back sends no message.
static void allocas(void)
{
    enum { MANY_BUFFERS = 20 };
    keel_device_t *device = device_open();
    keel_buffer_t *x = buffer_create(device, SIZE), *y[MANY_BUFFERS];
    keel_pool_t *pool = NULL;
    assert_null(keel_pool_create(device, NULL, &pool));
    keel_op_t given[3 * MANY_BUFFERS + 2], plain[MANY_BUFFERS];
    size_t count = 0;
    for (int i = 0; i < MANY_BUFFERS; i++) {
        assert_null(keel_buffer_reserve(pool, &(keel_buffer_options_t){.size = SIZE}, &y[i]));
        given[count++] = keel_op_alloca(y[i]);
    }
    given[count++] = keel_op_barrier();
    for (int i = 0; i < MANY_BUFFERS; i++) {
        given[count++] = keel_op_fill(keel_whole(y[i]), 1, 1);
        plain[i] = keel_op_fill(keel_whole(x), 1, 1);
    }
    given[count++] = keel_op_barrier();
    for (int i = 0; i < MANY_BUFFERS; i++) given[count++] = keel_op_dealloca(y[i]);
    submit_counted(device, given, count); // makes the slab
    uint64_t made = sim_sent("newBufferWithLength:options:");
    uint64_t with = submit_counted(device, given, count);
    assert_int_equal(with, submit_counted(device, plain, MANY_BUFFERS));
    assert_int_equal(sim_sent("newBufferWithLength:options:"), made);
    for (int i = 0; i < MANY_BUFFERS; i++) keel_buffer_release(y[i]);
    keel_pool_release(pool);
    keel_buffer_release(x);
    device_close(device);
}

static void test_allocas(void **state)
{
    (void)state;
    run_with("", allocas);
}

// Many bytes are one copy, and not a dispatch for each 4 KiB.
static void large_update(void)
{
    enum { LARGE = 1 << 20 };
    keel_device_t *device = device_open();
    keel_buffer_t *x = buffer_create(device, LARGE);
    char *bytes = malloc(LARGE), *seen = malloc(LARGE);
    assert_true(bytes && seen);
    for (int i = 0; i < LARGE; i++) bytes[i] = (char)(i * 7);
    ok(submit(device, KEEL_NO_WAITS, keel_op_update(keel_whole(x), bytes)));
    assert_null(keel_buffer_read(x, 0, seen, LARGE));
    assert_memory_equal(bytes, seen, LARGE);
    assert_int_equal(sim_sent("copyFromBuffer:sourceOffset:toBuffer:destinationOffset:size:"), 1);
    assert_int_equal(sim_sent("setBytes:length:atIndex:"), 0);
    free(bytes);
    free(seen);
    keel_buffer_release(x);
    device_close(device);
}

static bool blocked(FILE *log)
{
    char line[512];
    bool said = false;
    rewind(log);
    while (fgets(line, sizeof line, log)) said |= strstr(line, "blocks") != NULL;
    return said;
}

// More are submitted than a queue has command buffers: the software Metal would say who it blocks.
static void never_blocked(void)
{
    FILE *log = tmpfile();
    assert_non_null(log);
    assert_true(dup2(fileno(log), STDERR_FILENO) >= 0);
    keel_device_t *device = device_open();
    keel_buffer_t *x = buffer_create(device, SIZE);
    keel_semaphore_t *gate = NULL;
    assert_null(keel_semaphore_create(device, NULL, &gate));
    for (int i = 0; i < MANY; i++)
        submit(device, KEEL_AFTER(keel_point(gate, 1)), keel_op_fill(keel_whole(x), 1, 1));
    assert_null(keel_semaphore_signal(gate, 1));
    assert_null(keel_queue_wait_idle(keel_device_queue(device, 0), KEEL_FOREVER));
    assert_int_equal(sim_sent(commit), MANY);
    keel_semaphore_release(gate);
    keel_buffer_release(x);
    device_close(device);
    assert_false(blocked(log));
    fclose(log);
}

enum { CROWD = 4, ROUNDS = 8 };

typedef struct member_t {
    keel_queue_t *queue;
    keel_buffer_t *x;
    pthread_t thread;
} member_t;

static void *submit_on_thread(void *user)
{
    const member_t *member = user;
    keel_buffer_t *x = member->x;
    keel_op_t ops[] = {
        keel_op_fill(keel_span(x, 0, 256), 1, 1),                  // a blit
        keel_op_barrier(), keel_op_fill(keel_span(x, 1, 7), 2, 1), // a kernel
    };
    for (int i = 0; i < ROUNDS; i++) {
        keel_point_t done;
        assert_null(
            keel_queue_submit(member->queue, KEEL_NO_WAITS, ops, 3, KEEL_NO_SIGNALS, &done));
        ok(done);
        assert_null(keel_buffer_invalidate(x, 0, KEEL_WHOLE)); // a blit, on some GPUs
    }
    return NULL;
}

// Threads submit to one queue and fetch memory at the same time. Metal sees one of them at a time.
static void crowded(void)
{
    keel_device_t *device = device_open();
    keel_buffer_options_t options = {.size = SIZE,
                                     .memory = KEEL_MEMORY_DEVICE_LOCAL | KEEL_MEMORY_HOST_VISIBLE};
    member_t crowd[CROWD];
    for (int i = 0; i < CROWD; i++) {
        crowd[i].queue = keel_device_queue(device, 0);
        assert_null(keel_buffer_create(device, &options, &crowd[i].x));
        assert_int_equal(pthread_create(&crowd[i].thread, NULL, submit_on_thread, &crowd[i]), 0);
    }
    for (int i = 0; i < CROWD; i++) assert_int_equal(pthread_join(crowd[i].thread, NULL), 0);
    for (int i = 0; i < CROWD; i++) keel_buffer_release(crowd[i].x);
    device_close(device);
}

static void test_crowded(void **state)
{
    (void)state;
    run_with("crowd=200", crowded);
    run_with("crowd=200 discrete=1", crowded);
}

static void test_one_command_buffer(void **state)
{
    (void)state;
    run_with("", one_command_buffer);
}

static void test_no_command_buffer(void **state)
{
    (void)state;
    run_with("", no_command_buffer);
}

static void test_no_events(void **state)
{
    (void)state;
    run_with("", no_events);
}

static void test_large_update(void **state)
{
    (void)state;
    run_with("", large_update);
}

static void test_never_blocked(void **state)
{
    (void)state;
    run_with("", never_blocked);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_command_buffer),
        cmocka_unit_test(test_no_command_buffer),
        cmocka_unit_test(test_no_events),
        cmocka_unit_test(test_large_update),
        cmocka_unit_test(test_never_blocked),
        cmocka_unit_test(test_captured),
        cmocka_unit_test(test_crowded),
        cmocka_unit_test(test_allocas),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
