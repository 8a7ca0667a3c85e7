// SPDX-License-Identifier: Apache-2.0
// What is released while the device is busy: no thread waits for the device, and all of it goes
// back.
#include "suite/suite.h"

#define GPU .needs = KEEL_CAP_EXECUTES, .driver = "cuda hip"

enum { LONG_US = 5000000 }; // what waits that long has waited in vain

// A kernel that runs until it is told to end.
typedef struct busy_t {
    keel_queue_t *transfer;
    keel_buffer_t *words, *one;
    keel_point_t done;
} busy_t;

// Releases nothing on its way: what is just being given back waits for the kernel, and what comes
// after waits for that.
static busy_t busy_begin(void)
{
    keel_queue_options_t options = {.family = KEEL_QUEUE_TRANSFER, .name = "transfer"};
    busy_t busy = {.words = new_buffer_on(the_device(), 16), .one = new_host_buffer(4)};
    uint32_t k[] = {0, 2, LONG_US};
    TRY(keel_queue_create(the_device(), &options, &busy.transfer));
    OWN(busy.transfer);
    TRY(keel_buffer_write(busy.one, 0, "\1\0\0\0", 4));
    reach(submit(keel_op_fill(keel_whole(busy.words), 0, 4)));
    TRY(keel_queue_run(new_queue(0), KEEL_NO_WAITS,
                       op_kernel("await", 1, k, sizeof k, KEEL_BIND(busy.words)), &busy.done));
    return busy;
}

static void busy_tell(const busy_t *busy)
{
    keel_op_t op = keel_op_copy(keel_whole(busy->one), keel_span(busy->words, 8, 4));
    keel_point_t done;
    TRY(keel_queue_run(busy->transfer, KEEL_NO_WAITS, op, &done));
    reach(done);
}

// Ends it, which must not have happened before.
static void busy_end(const busy_t *busy)
{
    bool still = !ended(busy->done);
    busy_tell(busy);
    reach(busy->done);
    if (starved()) return; // without memory to note it, a thing is given back at once
    CHECK(still);
    CHECK_EQ(buffer_u32(busy->words, 1), 1);
}

static keel_buffer_t *buffer_of(uint64_t size, uint32_t memory, uint32_t usage)
{
    keel_buffer_options_t options = {.size = size, .memory = memory, .usage = usage};
    keel_buffer_t *buffer = NULL;
    TRY(keel_buffer_create(the_device(), &options, &buffer));
    OWN(buffer);
    return buffer;
}

static void on_release(void *user)
{
    gate_open(user);
}

static keel_external_buffer_t memory_of(void (*release)(void *user), void *user)
{
    return (keel_external_buffer_t){.kind = KEEL_EXTERNAL_HOST,
                                    .handle.host = scratch(4096),
                                    .size = 4096,
                                    .release = release,
                                    .user = user};
}

static keel_buffer_t *import_of(void (*release)(void *user), void *user)
{
    keel_external_buffer_t external = memory_of(release, user);
    keel_buffer_t *buffer = NULL;
    TRY(keel_buffer_import(the_device(), &external, NULL, &buffer));
    OWN(buffer);
    return buffer;
}

static void gate_pass(gate_t *gate)
{
    CHECK(gate_wait_ms(gate, (unsigned)(patience() / 1000000)));
}

TEST(release, buffers_do_not_wait, GPU, .also = NEED_OVERLAP)
{
    keel_buffer_t *local = new_buffer(1 << 20), *host = new_host_buffer(1 << 16), *shared = NULL;
    if (the_caps()->bits & KEEL_CAP_EXPORT_FD)
        shared = buffer_of(1 << 16, 0, KEEL_USAGE_TRANSFER | KEEL_USAGE_EXPORT);
    busy_t busy = busy_begin();
    drop(local);
    drop(host);
    if (shared) drop(shared);
    busy_end(&busy);
}

// The callback says when the memory may go.
TEST(release, imported_memory_does_not_wait, GPU, .also = NEED_OVERLAP)
{
    gate_t *released = new_gate();
    keel_buffer_t *imported = import_of(on_release, released);
    busy_t busy = busy_begin();
    drop(imported);
    if (!starved()) CHECK(!gate_is_open(released));
    busy_end(&busy);
    gate_pass(released);
}

TEST(release, recordings_do_not_wait, GPU, .also = NEED_OVERLAP)
{
    keel_buffer_t *x = new_buffer(64);
    keel_recording_t *recording = RECORD(0, keel_op_fill(keel_whole(x), 1, 4));
    reach(submit(keel_op_execute(recording, KEEL_NO_BINDINGS)));
    busy_t busy = busy_begin();
    drop(recording);
    busy_end(&busy);
}

TEST(release, executables_do_not_wait, GPU, .also = NEED_OVERLAP)
{
    keel_executable_options_t options = {0};
    kernels_image(&options.data, &options.size); // which has variables, so it is no other's too
    keel_executable_t *executable = kernels_load(the_device(), &options);
    busy_t busy = busy_begin();
    drop(executable);
    busy_end(&busy);
}

// Drops a buffer while two queues keep the device from coming to rest, each 16 ms ahead,
// and goes on with that until the gate is open.
static void drop_without_rest(keel_buffer_t *buffer, gate_t *until)
{
    enum { AHEAD = 16 };
    keel_queue_t *queues[2] = {new_queue(0), new_queue(0)};
    keel_buffer_t *words = new_buffer(16);
    uint32_t k[] = {0, 2, 2000};
    keel_op_t op = op_kernel("await", 1, k, sizeof k, KEEL_BIND(words));
    keel_point_t points[AHEAD];
    reach(submit(keel_op_fill(keel_whole(words), 0, 4)));
    uint64_t deadline = keel_now_ns() + patience();
    for (unsigned i = 0; !gate_is_open(until) && keel_now_ns() < deadline; i++) {
        if (i >= AHEAD) reach(points[i % AHEAD]);
        if (i == AHEAD) drop(buffer);
        TRY(keel_queue_run(queues[i % 2], KEEL_NO_WAITS, op, &points[i % AHEAD]));
    }
}

// A device that always has something to do lets go all the same: of what the vendor has no part in
// at once, of the rest soon.
TEST(release, imported_memory_goes_beside_work, GPU, .also = NEED_OVERLAP)
{
    gate_t *released = new_gate();
    drop_without_rest(import_of(on_release, released), released);
    CHECK(gate_is_open(released));
}

TEST(release, lent_device_memory_goes_beside_a_kernel, GPU, .also = NEED_OVERLAP)
{
    gate_t *released = new_gate();
    keel_buffer_t *lender = new_buffer_on(the_device(), 4096), *imported = NULL;
    keel_external_buffer_t external = {
        .kind = KEEL_EXTERNAL_DEVICE, .size = 4096, .release = on_release, .user = released};
    TRY(keel_buffer_address(lender, &external.handle.device));
    TRY(keel_buffer_import(the_device(), &external, NULL, &imported));
    OWN(imported);
    busy_t busy = busy_begin();
    drop(imported);
    gate_pass(released);
    busy_end(&busy);
}

static void tell_late(void *user)
{
    test_asleep(); // while it makes a buffer
    busy_tell(user);
}

// There is not enough memory for another one, until what was released has been given back.
TEST(release, new_memory_waits_for_old, GPU, .also = NEED_OVERLAP, .alone = true)
{
    uint64_t size = the_caps()->max_buffer_size / 8 * 5;
    keel_buffer_t *old = buffer_of(size, 0, 0);
    busy_t *busy = scratch(sizeof *busy);
    *busy = busy_begin();
    drop(old);
    thread_t *teller = thread_start(tell_late, busy);
    buffer_of(size, 0, 0);
    thread_join(teller);
    reach(busy->done);
}

// The same in a queue's order: only the alloca waits.
TEST(release, allocas_wait_for_old_memory, .needs = KEEL_CAP_EXECUTES | KEEL_CAP_QUEUE_ALLOCA,
     .driver = "cuda hip", .also = NEED_OVERLAP, .alone = true)
{
    uint64_t size = the_caps()->max_buffer_size / 8 * 5;
    keel_pool_t *pool = new_pool(0, 0);
    keel_buffer_t *old = buffer_of(size, 0, 0), *reserved = new_reserved(pool, size);
    busy_t busy = busy_begin();
    drop(old);
    keel_point_t done = submit(keel_op_alloca(reserved));
    busy_end(&busy);
    reach(done);
    reach(submit(keel_op_dealloca(reserved)));
}

// Nor does what it has on the stream, or waits for there, keep the memory from coming back.
static void check_alloca_behind(bool waits)
{
    uint64_t size = the_caps()->max_buffer_size / 8 * 5;
    keel_pool_t *pool = new_pool(0, 0);
    keel_buffer_t *old = buffer_of(size, 0, 0), *reserved = new_reserved(pool, size);
    keel_queue_t *queue = new_queue(0); // on which nothing else comes
    keel_op_t ops[] = {keel_op_fill(keel_whole(new_buffer(64)), 1, 4), keel_op_barrier(),
                       keel_op_alloca(reserved)};
    busy_t busy = busy_begin();
    keel_points_t after = {&busy.done, waits};
    keel_point_t done;
    drop(old);
    TRY(keel_queue_submit(queue, after, waits ? ops + 2 : ops, waits ? 1 : 3, KEEL_NO_SIGNALS,
                          &done));
    busy_end(&busy);
    reach(done);
    reach(submit(keel_op_dealloca(reserved)));
}

TEST(release, allocas_behind_work_wait_for_old_memory,
     .needs = KEEL_CAP_EXECUTES | KEEL_CAP_QUEUE_ALLOCA, .driver = "cuda hip", .also = NEED_OVERLAP,
     .alone = true)
{
    check_alloca_behind(false);
}

TEST(release, allocas_behind_waits_wait_for_old_memory,
     .needs = KEEL_CAP_EXECUTES | KEEL_CAP_QUEUE_ALLOCA, .driver = "cuda hip", .also = NEED_OVERLAP,
     .alone = true)
{
    check_alloca_behind(true);
}

static keel_status_t take_memory(void *user, keel_host_call_t *call)
{
    (void)call;
    keel_buffer_options_t options = {.size = *(const uint64_t *)user};
    keel_buffer_t *buffer = NULL;
    keel_status_t status = keel_buffer_create(the_device(), &options, &buffer);
    keel_buffer_release(buffer);
    return status;
}

// Nor does what is on the stream beside a call, which needs the memory.
TEST(release, calls_beside_work_wait_for_old_memory,
     .needs = KEEL_CAP_EXECUTES | KEEL_CAP_HOST_CALLS, .driver = "cuda hip", .also = NEED_OVERLAP,
     .alone = true)
{
    uint64_t *size = scratch(sizeof *size);
    *size = the_caps()->max_buffer_size / 8 * 5;
    keel_buffer_t *old = buffer_of(*size, 0, 0);
    keel_queue_t *queue = new_queue(0);
    keel_op_t ops[] = {keel_op_host_call(take_memory, size),
                       keel_op_fill(keel_whole(new_buffer(64)), 1, 4)};
    busy_t busy = busy_begin();
    keel_point_t done;
    drop(old);
    TRY(keel_queue_submit(queue, KEEL_NO_WAITS, ops, 2, KEEL_NO_SIGNALS, &done));
    busy_tell(&busy);
    reach(busy.done);
    reach(done);
}

typedef struct later_t {
    keel_point_t point;
    keel_code_t code;
    gate_t *ready, *over;
} later_t;

static void on_release_wait(void *user)
{
    later_t *later = user;
    gate_wait(later->ready);
    keel_status_t status = keel_wait(KEEL_POINTS(later->point), KEEL_ALL, patience());
    later->code = keel_status_code(status);
    keel_status_release(status);
    gate_open(later->over);
}

// The callback may wait for work of the very queue whose work held the memory last.
TEST(release, callback_waits_for_its_queue, GPU)
{
    later_t *later = scratch(sizeof *later);
    *later = (later_t){.ready = new_gate(), .over = new_gate()};
    keel_semaphore_t *gate = new_semaphore(0);
    keel_buffer_t *imported = import_of(on_release_wait, later), *x = new_buffer(64);
    keel_point_t last =
        submit_after(KEEL_AFTER(keel_point(gate, 1)), keel_op_fill(keel_whole(imported), 1, 4));
    drop(imported);
    TRY(keel_semaphore_signal(gate, 1));
    reach(last);
    later->point = submit(keel_op_fill(keel_whole(x), 2, 4));
    gate_open(later->ready);
    gate_pass(later->over);
    if (!starved() && !faulted()) CHECK_EQ(later->code, KEEL_OK);
}

typedef struct closing_t {
    keel_device_t *device;
    gate_t *over;
} closing_t;

static void on_release_close(void *user)
{
    closing_t *closing = user;
    keel_device_release(closing->device);
    gate_open(closing->over);
}

// Nor does it have to wait for itself when it closes the device.
TEST(release, callback_closes_the_device, GPU)
{
    closing_t *closing = scratch(sizeof *closing);
    closing->over = new_gate();
    keel_external_buffer_t external = memory_of(on_release_close, closing);
    keel_buffer_t *imported = NULL;
    TRY(keel_device_open(the_uri(), NULL, &closing->device));
    keel_status_t status = keel_buffer_import(closing->device, &external, NULL, &imported);
    if (status) keel_device_release(closing->device);
    TRY(status);
    keel_buffer_release(imported);
    gate_pass(closing->over);
}
