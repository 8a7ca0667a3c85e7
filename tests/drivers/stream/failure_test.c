// SPDX-License-Identifier: Apache-2.0
// Each call of the vendor fails in turn, once for want of memory, or the device is lost by it.
// Every wait ends, what fails names the cause, and nothing is left.
#include "drivers/stream/fixture.h"

enum { FEW = 6 }; // calls of a slot that fail: so many first ones, and so many last

// All that the work made, some of which may be missing.
typedef struct scene_t {
    keel_device_t *device;
    keel_queue_t *queue, *other;
    keel_executable_t *kernels;
    keel_entry_t add, raw_add;
    keel_buffer_t *x, *y, *host, *scratch, *kept;
    keel_pool_t *pool;
    keel_recording_t *plain, *block, *grid;
    keel_semaphore_t *semaphore;
} scene_t;

static void status_check(keel_status_t status)
{
    char text[4096];
    keel_status_format(status, text, sizeof text);
    if (!vendor_failed() || !strstr(text, "fails as it was told to"))
        fail_msg("%sthe cause is not named: %s", where, text);
    keel_status_release(status);
}

// Whether it went well; if not, it is the failure that was asked for.
static bool is_ok(keel_status_t status)
{
    if (status) status_check(status);
    return !status;
}

static void ends(keel_point_t point)
{
    (void)is_ok(keel_wait(KEEL_POINTS(point), KEEL_ALL, KEEL_FOREVER));
}

static void submit_and_wait(keel_queue_t *on, const keel_op_t *ops, size_t count)
{
    keel_point_t done;
    if (is_ok(keel_queue_submit(on, KEEL_NO_WAITS, ops, count, KEEL_NO_SIGNALS, &done))) ends(done);
}

static bool scene_open(scene_t *s)
{
    keel_buffer_options_t local = {.size = 8192};
    keel_buffer_options_t visible = {.size = 8192, .memory = KEEL_MEMORY_HOST_VISIBLE};
    if (!is_ok(keel_device_open("fake://", NULL, &s->device))) return false;
    s->queue = keel_device_queue(s->device, 0);
    return is_ok(keel_queue_create(s->device, NULL, &s->other)) &&
           is_ok(kernels_load(s->device, &s->kernels)) &&
           is_ok(keel_executable_entry(s->kernels, "add", &s->add)) &&
           is_ok(keel_executable_entry(s->kernels, "raw_add", &s->raw_add)) &&
           is_ok(keel_buffer_create(s->device, &local, &s->x)) &&
           is_ok(keel_buffer_create(s->device, &local, &s->y)) &&
           is_ok(keel_buffer_create(s->device, &visible, &s->host)) &&
           is_ok(keel_pool_create(s->device, NULL, &s->pool)) &&
           is_ok(keel_semaphore_create(s->device, NULL, &s->semaphore));
}

static keel_status_t nothing(void *user, keel_host_call_t *call)
{
    (void)user, (void)call;
    return NULL;
}

static void run_commands(const scene_t *s)
{
    static const uint32_t k = 1, data[4] = {0};
    keel_op_t ops[] = {
        keel_op_update(keel_span(s->x, 0, sizeof data), data),
        keel_op_fill(keel_span(s->y, 0, 4099), 0, 1),
        keel_op_barrier(),
        keel_op_copy(keel_span(s->x, 0, 64), keel_span(s->y, 64, 64)),
        keel_op_copy(keel_span(s->x, 0, 64), keel_span(s->host, 64, 64)),
        keel_op_timestamp(keel_span(s->y, 8, 8)),
        keel_op_dispatch(s->add, keel_groups(1, 1, 1), &k, 4, KEEL_BIND(s->x)),
        keel_op_barrier(),
        keel_op_host_call(nothing, NULL),
        keel_op_barrier(),
        keel_op_dispatch(s->add, keel_groups(1, 1, 1), &k, 4, KEEL_BIND(s->y)),
    };
    submit_and_wait(s->queue, ops, COUNT(ops));
    submit_and_wait(s->queue, ops, COUNT(ops));
}

// A queue that waits for another, and signals a semaphore.
static void run_across(const scene_t *s)
{
    keel_point_t first, second;
    keel_op_t op = keel_op_fill(keel_whole(s->x), 0, 4);
    if (!is_ok(keel_queue_run(s->queue, KEEL_NO_WAITS, op, &first))) return;
    static uint64_t value;
    keel_semaphore_t *semaphore = s->semaphore;
    value = 1;
    if (is_ok(keel_queue_submit(s->other, KEEL_AFTER(first), &op, 1,
                                KEEL_SIGNAL(keel_point(semaphore, value)), &second))) {
        ends(keel_point(semaphore, value));
        ends(second);
    }
    ends(first);
}

static void run_scratch(scene_t *s)
{
    keel_buffer_options_t options = {.size = 4096};
    if (!is_ok(keel_buffer_reserve(s->pool, &options, &s->scratch)) ||
        !is_ok(keel_buffer_reserve(s->pool, &options, &s->kept)))
        return;
    keel_op_t ops[] = {
        keel_op_alloca(s->scratch),
        keel_op_barrier(),
        keel_op_fill(keel_whole(s->scratch), 1, 4),
        keel_op_barrier(),
        keel_op_dealloca(s->scratch),
    };
    submit_and_wait(s->queue, ops, COUNT(ops));
    ops[0] = keel_op_alloca(s->kept); // and back when it is released
    submit_and_wait(s->queue, ops, 1);
    (void)is_ok(keel_pool_trim(s->pool, 0));
}

static bool recorded(const scene_t *s, const keel_op_t *ops, size_t count, keel_recording_t **made)
{
    keel_recording_options_t options = {.slots = 2};
    return is_ok(keel_recording_create(s->device, &options, made)) &&
           is_ok(keel_recording_add(*made, ops, count)) && is_ok(keel_recording_end(*made));
}

// On both queues, with other bindings each time, and prepared on one of them.
static void run_recording(const scene_t *s, keel_recording_t *recording)
{
    keel_op_t op = keel_op_execute(recording, KEEL_BIND(s->x, s->y));
    keel_op_t back = keel_op_execute(recording, KEEL_BIND(s->y, s->x));
    submit_and_wait(s->queue, &op, 1);
    (void)is_ok(keel_recording_prepare(recording, s->other));
    submit_and_wait(s->other, &op, 1);
    submit_and_wait(s->other, &back, 1);
    submit_and_wait(s->queue, &back, 1);
}

static void run_plain(scene_t *s)
{
    static const uint32_t k = 0, data[4] = {1, 1, 1, 1};
    keel_ref_t target = keel_slot(0, 0, 4);
    keel_op_t ops[9];
    for (int i = 0; i < 5; i++)
        ops[i] = keel_op_dispatch(s->add, keel_groups(1, 1, 1), &k, 4, keel_refs(&target, 1));
    ops[5] = keel_op_barrier();
    ops[6] = keel_op_fill(keel_slot(1, 0, 64), 1, 4);
    ops[7] = keel_op_copy(keel_slot(0, 64, 64), keel_slot(1, 64, 64));
    ops[8] = keel_op_update(keel_span(s->x, 128, sizeof data), data);
    if (recorded(s, ops, COUNT(ops), &s->plain)) run_recording(s, s->plain);
}

static void run_block(scene_t *s)
{
    static const uint32_t k = 0, minus = UINT32_MAX;
    keel_op_t ops[] = {
        keel_op_fill(keel_slot(0, 0, 8), 1, 4),
        keel_op_while(keel_slot(0, 0, 4)),
        keel_op_dispatch(s->add, keel_groups(1, 1, 1), &minus, 4, KEEL_BIND(keel_slot(0, 0, 4))),
        keel_op_if(keel_slot(0, 4, 4)),
        keel_op_dispatch(s->add, keel_groups(1, 1, 1), &k, 4, KEEL_BIND(keel_slot(1, 0, 4))),
        keel_op_end(),
        keel_op_end(),
    };
    ops[1].as.branch.max_iterations = 10;
    if (recorded(s, ops, COUNT(ops), &s->block)) run_recording(s, s->block);
}

static void run_grid(scene_t *s)
{
    raw_t raw[2];
    keel_entry_t fixture = raw_add;
    raw_add = s->raw_add;
    keel_op_t ops[] = {
        keel_op_fill(keel_slot(0, 0, 12), 1, 4),
        keel_op_barrier(),
        op_raw_add(&raw[0], keel_slot(1, 0, 4), 0, keel_slot(0, 0, 12)),
    };
    keel_op_t submitted = op_raw_add(&raw[1], keel_span(s->y, 0, 4), 0, keel_span(s->x, 0, 12));
    raw_add = fixture;
    if (recorded(s, ops, COUNT(ops), &s->grid)) run_recording(s, s->grid);
    keel_op_t once[] = {keel_op_fill(keel_span(s->x, 0, 12), 1, 4), keel_op_barrier(), submitted};
    submit_and_wait(s->queue, once, COUNT(once));
}

static void scene_close(const scene_t *s)
{
    keel_recording_release(s->plain);
    keel_recording_release(s->block);
    keel_recording_release(s->grid);
    keel_semaphore_release(s->semaphore);
    keel_buffer_release(s->x);
    keel_buffer_release(s->y);
    keel_buffer_release(s->host);
    keel_buffer_release(s->scratch);
    keel_buffer_release(s->kept);
    keel_pool_release(s->pool);
    keel_executable_release(s->kernels);
    keel_queue_release(s->other);
    keel_device_release(s->device);
}

static void scene_play(void)
{
    scene_t s = {0};
    if (scene_open(&s)) {
        run_commands(&s);
        run_across(&s);
        run_scratch(&s);
        run_plain(&s);
        run_block(&s);
        run_grid(&s);
    }
    scene_close(&s);
}

// How the failure comes.
typedef enum manner_t {
    HUNGRY, // no memory, once
    LOST,   // the device is lost, and the vendor says so once
    DEAD,   // and every time from then on
} manner_t;

static void each_call_fails(manner_t manner)
{
    uint64_t calls[SLOTS];
    bool can[SLOTS];
    const char *names[SLOTS];
    where[0] = 0;
    vendor_begin(kind);
    scene_play();
    for (int i = 0; i < SLOTS; i++) {
        calls[i] = vendor_calls(i);
        can[i] = vendor_slot_fails(i);
        names[i] = vendor_slot_name(i);
    }
    all_is_gone(false);
    for (int slot = 0; slot < SLOTS; slot++) {
        for (uint64_t n = 1; can[slot] && n <= calls[slot]; n++) {
            if (n > FEW && n + FEW < calls[slot]) n = calls[slot] - FEW;
            snprintf(where, sizeof where, "%s, call %d of %d: ", names[slot], (int)n,
                     (int)calls[slot]);
            vendor_begin(kind);
            if (manner == DEAD)
                vendor_die(slot, n);
            else
                vendor_fail(slot, n, manner == LOST ? KEEL_DEVICE_LOST : KEEL_RESOURCE_EXHAUSTED);
            scene_play();
            // A free that is refused is not tried again: the vendor may have done it all the same.
            all_is_gone((manner != HUNGRY || slot == SLOT(pool_free)) && vendor_failed());
        }
    }
}

static void out_of_memory_at_each_call(void **state)
{
    (void)state;
    each_call_fails(HUNGRY);
}

static void lost_by_each_call(void **state)
{
    (void)state;
    each_call_fails(LOST);
}

static void dead_from_each_call_on(void **state)
{
    (void)state;
    each_call_fails(DEAD);
}

// A run that has work on the stream ends there without another call.
static void nothing_is_recorded_after_the_loss(void **state)
{
    (void)state;
    enum { SIZE = 8192 }; // the vendor itself fills so much
    keel_buffer_t *buffer = buffer_create(SIZE);
    keel_op_t fill = keel_op_fill(keel_whole(buffer), 1, 4);
    keel_op_t ops[] = {fill, keel_op_barrier(), fill};
    vendor_hold();
    keel_point_t before = submit(queue, KEEL_NO_WAITS, &fill, 1);
    uint64_t records = vendor_calls(SLOT(event_record)), made = vendor_calls(SLOT(event_create));
    vendor_fail(SLOT(fill), 2, KEEL_DEVICE_LOST);
    lost = true;
    keel_point_t point = submit(queue, KEEL_NO_WAITS, ops, COUNT(ops));
    fails(point, KEEL_DEVICE_LOST, "fails as it was told to");
    fails(before, KEEL_DEVICE_LOST, "fails as it was told to");
    assert_int_equal(vendor_calls(SLOT(event_record)), records);
    assert_int_equal(vendor_calls(SLOT(event_create)), made);
    keel_buffer_release(buffer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(nothing_is_recorded_after_the_loss),
        cmocka_unit_test(out_of_memory_at_each_call),
        cmocka_unit_test(lost_by_each_call),
        cmocka_unit_test(dead_from_each_call_on),
    };
    return run_on_all(tests, COUNT(tests));
}
