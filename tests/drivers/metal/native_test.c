// SPDX-License-Identifier: Apache-2.0
// A program that calls Metal itself, beside Keel: its objects and Keel's.
#include <sys/mman.h>

#include "drivers/metal/program.h"

enum { SIZE = 1 << 12, LARGE = 64 << 20, SHARED = 0 << 4, MANAGED = 1 << 4, PRIVATE = 2 << 4 };

// The program's own queue, and how often it was made to wait.
typedef struct own_t {
    object_t queue, last; // the last command buffer, retained
    int waits;
} own_t;

static keel_status_t wait_on(void *user, uint64_t handle)
{
    own_t *own = user;
    const keel_metal_event_t *event = (const void *)(uintptr_t)handle;
    void *pool = pool_push();
    object_t command = send_for(own->queue, "commandBuffer", 0, 0);
    send(command, "encodeWaitForEvent:value:", (uintptr_t)event->event, event->value);
    send(command, "commit", 0, 0);
    send(own->last, "release", 0, 0);
    own->last = send_for(command, "retain", 0, 0);
    pool_pop(pool);
    own->waits++;
    return NULL;
}

// Work of the program's waits for work of Keel's, on the GPU.
static void event(void)
{
    keel_device_t *device = device_open();
    keel_buffer_t *x = buffer_create(device, LARGE);
    own_t own = {.queue = send_for(gpu_of(device), "newCommandQueue", 0, 0)};
    for (int i = 0; i < 1000 && !own.waits; i++) {
        keel_point_t point = submit(device, KEEL_NO_WAITS, keel_op_fill(keel_whole(x), 7, 1));
        assert_null(keel_point_native(point, KEEL_NATIVE_METAL_EVENT, wait_on, &own));
        if (own.waits) send(own.last, "waitUntilCompleted", 0, 0);
        ok(point);
    }
    assert_int_equal(own.waits, 1);
    assert_int_equal(send(own.last, "status", 0, 0), 4); // MTLCommandBufferStatusCompleted
    send(own.last, "release", 0, 0);
    send(own.queue, "release", 0, 0);
    keel_buffer_release(x);
    device_close(device);
}

static keel_status_t never(void *user, uint64_t handle)
{
    (void)user, (void)handle;
    fail_msg("called");
    return NULL;
}

// Who asks for no handles pays for no events, and is told so.
static void no_event(void)
{
    keel_device_t *device = device_open();
    keel_buffer_t *x = buffer_create(device, LARGE);
    keel_point_t point = submit(device, KEEL_NO_WAITS, keel_op_fill(keel_whole(x), 7, 1));
    keel_status_t status = keel_point_native(point, KEEL_NATIVE_METAL_EVENT, never, NULL);
    keel_code_t code = keel_status_code(status);
    keel_status_release(status);
    assert_true(code == KEEL_FAILED_PRECONDITION || code == KEEL_OK);
    ok(point);
    assert_int_equal(sim_sent("newSharedEvent"), 0);
    keel_buffer_release(x);
    device_close(device);
}

static keel_buffer_t *import(keel_device_t *device, object_t object, uint64_t offset)
{
    keel_external_buffer_t external = {
        .kind = KEEL_EXTERNAL_NATIVE, .handle.object = object, .offset = offset, .size = 256};
    keel_buffer_t *buffer = NULL;
    assert_null(keel_buffer_import(device, &external, NULL, &buffer));
    return buffer;
}

// A buffer that the program has made, which the host does not see.
static void object(void)
{
    keel_device_t *device = device_open();
    object_t hidden = send_for(gpu_of(device), "newBufferWithLength:options:", SIZE, PRIVATE);
    keel_buffer_t *x = import(device, hidden, 256), *seen = buffer_create(device, 256);
    keel_buffer_info_t info;
    keel_buffer_info(x, &info);
    assert_int_equal(info.memory, KEEL_MEMORY_DEVICE_LOCAL | KEEL_MEMORY_DEVICE_VISIBLE);
    ok(submit(device, KEEL_NO_WAITS, keel_op_fill(keel_whole(x), 9, 1)));
    ok(submit(device, KEEL_NO_WAITS, keel_op_copy(keel_whole(x), keel_whole(seen))));
    uint8_t bytes[256];
    assert_null(keel_buffer_read(seen, 0, bytes, sizeof bytes));
    for (int i = 0; i < 256; i++) assert_int_equal(bytes[i], 9);
    send(hidden, "release", 0, 0); // Keel has its own reference
    ok(submit(device, KEEL_NO_WAITS, keel_op_timestamp(keel_span(x, 0, 8))));
    ok(submit(device, KEEL_NO_WAITS, keel_op_copy(keel_whole(x), keel_whole(seen))));
    uint64_t time = 0;
    assert_null(keel_buffer_read(seen, 0, &time, sizeof time));
    assert_true(time && time != 0x0909090909090909u);
    keel_buffer_release(x);
    keel_buffer_release(seen);
    device_close(device);
}

static void refused(keel_device_t *device, object_t object, keel_code_t code, const char *words)
{
    keel_external_buffer_t external = {
        .kind = KEEL_EXTERNAL_NATIVE, .handle.object = object, .size = 256};
    keel_buffer_t *buffer = NULL;
    keel_status_t status = keel_buffer_import(device, &external, NULL, &buffer);
    assert_int_equal(keel_status_code(status), code);
    assert_non_null(strstr(keel_status_message(status), words));
    keel_status_release(status);
}

static void refusals(void)
{
    keel_device_t *device = device_open(), *other = NULL;
    assert_null(device_try_open("1", &other));
    object_t theirs = send_for(gpu_of(other), "newBufferWithLength:options:", SIZE, SHARED);
    object_t small = send_for(gpu_of(device), "newBufferWithLength:options:", 128, SHARED);
    object_t managed = send_for(gpu_of(device), "newBufferWithLength:options:", SIZE, MANAGED);
    refused(device, theirs, KEEL_INVALID_ARGUMENT, "another device");
    refused(device, small, KEEL_OUT_OF_RANGE, "has 128");
    refused(device, managed, KEEL_UNSUPPORTED, "managed");
    send(theirs, "release", 0, 0);
    send(small, "release", 0, 0);
    send(managed, "release", 0, 0);
    keel_device_release(other);
    device_close(device);
}

// A descriptor's pages are Metal's memory as they are: no copy is made.
static void descriptor(void)
{
    keel_device_t *device = device_open();
    keel_buffer_options_t options = {.size = 100, .usage = KEEL_USAGE_TRANSFER | KEEL_USAGE_EXPORT};
    keel_buffer_t *x = NULL, *y = NULL;
    assert_null(keel_buffer_create(device, &options, &x));
    keel_external_buffer_t external = {.kind = KEEL_EXTERNAL_FD};
    assert_null(keel_buffer_export(x, &external));
    assert_null(keel_buffer_import(device, &external, NULL, &y));
    close(external.handle.fd);
    ok(submit(device, KEEL_NO_WAITS, keel_op_fill(keel_whole(x), 5, 1)));
    assert_int_equal(sim_sent("newBufferWithBytesNoCopy:length:options:deallocator:"), 2);
    uint8_t bytes[100];
    assert_null(keel_buffer_read(y, 0, bytes, sizeof bytes));
    for (int i = 0; i < 100; i++) assert_int_equal(bytes[i], 5);
    keel_buffer_release(x);
    keel_buffer_release(y);
    device_close(device);
}

static bool is_mapped(void *page)
{
    return !msync(page, 1, MS_ASYNC);
}

// Who keeps the object keeps its pages, which go with it.
static void descriptor_kept(void)
{
    keel_device_t *device = device_open();
    keel_buffer_options_t options = {.size = 100, .usage = KEEL_USAGE_TRANSFER | KEEL_USAGE_EXPORT};
    keel_buffer_t *x = NULL;
    assert_null(keel_buffer_create(device, &options, &x));
    keel_external_buffer_t external = {.kind = KEEL_EXTERNAL_NATIVE};
    assert_null(keel_buffer_export(x, &external));
    object_t kept = send_for(external.handle.object, "retain", 0, 0);
    uint8_t *bytes = send_for(kept, "contents", 0, 0);
    keel_buffer_release(x);
    assert_true(is_mapped(bytes));
    bytes[99] = 5;
    send(kept, "release", 0, 0);
    assert_false(is_mapped(bytes));
    device_close(device);
}

// The lowest descriptor that is not in use.
static int fd_free(void)
{
    int fd = dup(STDOUT_FILENO);
    close(fd);
    return fd;
}

// Metal takes the second pages only.
static void descriptor_refused(void)
{
    keel_device_t *device = device_open();
    keel_buffer_options_t options = {.size = 100, .usage = KEEL_USAGE_EXPORT};
    keel_buffer_t *x = NULL;
    int free_fd = fd_free();
    keel_status_t status = keel_buffer_create(device, &options, &x);
    assert_int_equal(keel_status_code(status), KEEL_RESOURCE_EXHAUSTED);
    keel_status_release(status);
    assert_int_equal(fd_free(), free_fd); // the file is closed
    assert_null(keel_buffer_create(device, &options, &x));
    keel_buffer_release(x);
    assert_int_equal(fd_free(), free_fd);
    device_close(device);
}

static void no_descriptor(void)
{
    keel_device_t *device = device_open();
    keel_buffer_options_t options = {.size = 100, .usage = KEEL_USAGE_EXPORT};
    keel_buffer_t *x = NULL;
    keel_status_t status = keel_buffer_create(device, &options, &x);
    assert_int_equal(keel_status_code(status), KEEL_UNSUPPORTED);
    keel_status_release(status);
    device_close(device);
}

static void test_event(void **state)
{
    (void)state;
    run_with("", event);
}

static void test_no_event(void **state)
{
    (void)state;
    run_with("", no_event);
}

static void test_object(void **state)
{
    (void)state;
    run_with("", object);
    run_with("samples=0", object);
}

static void test_refusals(void **state)
{
    (void)state;
    run_with("devices=2", refusals);
}

static void test_descriptor(void **state)
{
    (void)state;
    run_with("", descriptor);
    run_with("", descriptor_kept);
    run_with("fail=newBufferWithBytesNoCopy:length:options:deallocator:/1", descriptor_refused);
    run_with("discrete=1", no_descriptor);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_event),      cmocka_unit_test(test_no_event),
        cmocka_unit_test(test_object),     cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_descriptor),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
