// SPDX-License-Identifier: Apache-2.0
// MSL and libraries of Metal's that came without a container: kernels are found by their names, and
// take blocks of their own, in groups whose size the dispatch chooses.
#include "drivers/metal/device.h"
#include "drivers/metal/metal.h"

enum { COUNT = 640, GROUP = 64 };

// The last one has a block of more than an encoder takes, and groups of 32 at most.
static const char source[] =
    "#include <metal_stdlib>\n"
    "using namespace metal;\n"
    "struct block { device const float *x; device float *y; float by; uint count; };\n"
    "kernel void scale(constant block &b [[buffer(0)]], uint i [[thread_position_in_grid]])\n"
    "{\n"
    "    if (i < b.count) b.y[i] = b.by * b.x[i];\n"
    "}\n"
    "struct many { device uint *y; uint words[1200]; };\n"
    "[[max_total_threads_per_threadgroup(32)]]\n"
    "kernel void unpack(constant many &b [[buffer(0)]], uint i [[thread_position_in_grid]])\n"
    "{\n"
    "    b.y[i] = b.words[i];\n"
    "}\n";

static keel_executable_t *load(keel_device_t *device, const void *data, size_t size)
{
    keel_executable_options_t options = {.data = data, .size = size};
    keel_executable_t *executable = NULL;
    keel_status_t status = keel_executable_load(device, &options, &executable);
    if (status) fail_msg("%s", keel_status_message(status));
    return executable;
}

static keel_op_t raw_op(keel_entry_t entry, uint32_t group, const void *block, size_t size)
{
    keel_op_t op =
        keel_op_dispatch(entry, keel_groups(COUNT / group, 1, 1), block, size, KEEL_NO_BINDINGS);
    op.as.dispatch.raw = true;
    op.as.dispatch.group_size = keel_groups(group, 1, 1);
    return op;
}

static void scale_run(keel_device_t *device, keel_executable_t *executable)
{
    keel_buffer_t *x = buffer_create(device, COUNT * 4), *y = buffer_create(device, COUNT * 4);
    float values[COUNT];
    for (int i = 0; i < COUNT; i++) values[i] = (float)i;
    assert_null(keel_buffer_write(x, 0, values, sizeof values));
    struct {
        uint64_t x, y;
        float by;
        uint32_t count;
    } block = {0, 0, 3, COUNT};
    const keel_patch_t patches[] = {{0, keel_whole(x)}, {8, keel_whole(y)}};
    keel_op_t op = raw_op(find(executable, "scale"), GROUP, &block, sizeof block);
    ok(submit(device, KEEL_NO_WAITS, keel_op_patched(op, patches, 2)));
    assert_null(keel_buffer_read(y, 0, values, sizeof values));
    for (int i = 0; i < COUNT; i++) assert_true(values[i] == 3 * (float)i);
    keel_buffer_release(x);
    keel_buffer_release(y);
}

static void text(void)
{
    keel_device_t *device = device_open();
    keel_executable_t *executable = load(device, source, sizeof source - 1);
    assert_int_equal(keel_executable_entry_count(executable), 2);
    keel_entry_info_t info;
    assert_null(keel_entry_info(find(executable, "scale"), &info));
    assert_true(info.raw && !info.fixed_size);
    scale_run(device, executable);
    keel_executable_release(executable);
    device_close(device);
}

// Of the software Metal a library is the text behind Metal's mark.
static uint64_t tries; // that a library takes

static void compiled(void)
{
    keel_device_t *device = device_open();
    char library[sizeof source + 4];
    int size = snprintf(library, sizeof library, "MTLB%s", source);
    keel_executable_t *executable = load(device, library, (size_t)size);
    scale_run(device, executable);
    assert_int_equal(sim_sent("newLibraryWithData:error:"), tries);
    keel_executable_release(executable);
    device_close(device);
}

typedef struct many_t {
    uint64_t y;
    uint32_t words[1200];
} many_t;

// Twenty blocks of 4.8 KB each, which lie in memory: none may take the place of another.
static void large(void)
{
    enum { ROUNDS = 20 };
    keel_device_t *device = device_open();
    keel_executable_t *executable = load(device, source, sizeof source - 1);
    keel_buffer_t *y = buffer_create(device, ROUNDS * COUNT * 4);
    keel_recording_t *recording = NULL;
    assert_null(keel_recording_create(device, NULL, &recording));
    static many_t block;
    static uint32_t words[ROUNDS * COUNT];
    for (uint32_t round = 0; round < ROUNDS; round++) {
        for (uint32_t i = 0; i < 1200; i++) block.words[i] = round * COUNT + i;
        keel_patch_t patch = {0, keel_span(y, round * COUNT * 4, COUNT * 4)};
        keel_op_t op = raw_op(find(executable, "unpack"), 32, &block, sizeof block);
        op = keel_op_patched(op, &patch, 1);
        assert_null(keel_recording_add(recording, &op, 1));
    }
    assert_null(keel_recording_end(recording));
    ok(submit(device, KEEL_NO_WAITS, keel_op_execute(recording, KEEL_NO_BINDINGS)));
    assert_null(keel_buffer_read(y, 0, words, sizeof words));
    for (uint32_t i = 0; i < ROUNDS * COUNT; i++) assert_int_equal(words[i], i);
    assert_int_equal(sim_sent("setBytes:length:atIndex:"), 0);
    keel_recording_release(recording);
    keel_buffer_release(y);
    keel_executable_release(executable);
    device_close(device);
}

// Metal would run none of it.
static void crowded(void)
{
    keel_device_t *device = device_open();
    keel_executable_t *executable = load(device, source, sizeof source - 1);
    static many_t block;
    keel_buffer_t *y = buffer_create(device, COUNT * 4);
    keel_patch_t patch = {0, keel_whole(y)};
    keel_op_t op = raw_op(find(executable, "unpack"), 64, &block, sizeof block);
    keel_status_t status = wait_for(submit(device, KEEL_NO_WAITS, keel_op_patched(op, &patch, 1)));
    char message[1024];
    keel_status_format(status, message, sizeof message);
    assert_int_equal(keel_status_code(status), KEEL_OUT_OF_RANGE);
    if (!strstr(message, "Metal runs 'unpack' with 32 at most")) fail_msg("%s", message);
    keel_status_release(status);
    keel_buffer_release(y);
    keel_executable_release(executable);
    device_close(device);
}

// Threadgroup memory: `turn` takes what the dispatch gives, `full` has all there is.
static const char locals[] =
    "#include <metal_stdlib>\n"
    "using namespace metal;\n"
    "kernel void turn(constant ulong &y [[buffer(0)]], threadgroup uint *t [[threadgroup(0)]],\n"
    "                 uint i [[thread_position_in_threadgroup]],\n"
    "                 uint n [[threads_per_threadgroup]], uint at [[thread_position_in_grid]])\n"
    "{\n"
    "    t[i] = at;\n"
    "    threadgroup_barrier(mem_flags::mem_threadgroup);\n"
    "    ((device uint *)y)[at] = t[n - 1 - i];\n"
    "}\n"
    "kernel void full(constant ulong &y [[buffer(0)]], uint at [[thread_position_in_grid]])\n"
    "{\n"
    "    threadgroup uint t[8192];\n"
    "    t[at % 8192] = at;\n"
    "    threadgroup_barrier(mem_flags::mem_threadgroup);\n"
    "    ((device uint *)y)[at] = t[(at ^ 1) % 8192];\n"
    "}\n";

static keel_op_t local_op(keel_executable_t *executable, const char *name, uint32_t local,
                          const keel_patch_t *patch)
{
    static const uint64_t block;
    keel_op_t op = raw_op(find(executable, name), GROUP, &block, sizeof block);
    op.as.dispatch.local_memory = local;
    return keel_op_patched(op, patch, 1);
}

// Kernels of the driver's own and others come between, and have none of it.
static void local(void)
{
    keel_device_t *device = device_open();
    keel_executable_t *executable = load(device, locals, sizeof locals - 1);
    keel_buffer_t *y = buffer_create(device, COUNT * 4), *z = buffer_create(device, 8);
    keel_patch_t patch = {0, keel_whole(y)};
    keel_op_t turn = local_op(executable, "turn", GROUP * 4, &patch);
    keel_op_t ops[] = {turn,
                       keel_op_barrier(),
                       local_op(executable, "full", 0, &patch),
                       keel_op_fill(keel_span(z, 1, 3), 7, 1),
                       keel_op_barrier(),
                       turn,
                       keel_op_barrier(),
                       local_op(executable, "turn", 32768, &patch)};
    keel_point_t done;
    uint32_t words[COUNT];
    assert_null(keel_queue_submit(keel_device_queue(device, 0), KEEL_NO_WAITS, ops,
                                  sizeof ops / sizeof *ops, KEEL_NO_SIGNALS, &done));
    ok(done);
    assert_null(keel_buffer_read(y, 0, words, sizeof words));
    for (uint32_t i = 0; i < COUNT; i++)
        assert_int_equal(words[i], i / GROUP * GROUP + GROUP - 1 - i % GROUP);
    keel_status_t status =
        wait_for(submit(device, KEEL_NO_WAITS, local_op(executable, "full", 4, &patch)));
    assert_int_equal(keel_status_code(status), KEEL_OUT_OF_RANGE);
    keel_status_release(status);
    keel_buffer_release(y);
    keel_buffer_release(z);
    keel_executable_release(executable);
    device_close(device);
}

static void lost_once(void)
{
    keel_device_t *device = device_open();
    keel_executable_t *executable = load(device, source, sizeof source - 1);
    scale_run(device, executable);
    keel_executable_release(executable);
    device_close(device);
}

// Apple's compiler goes once: with each of the two texts, and with a pipeline of each kernel, of
// the driver's own and others. The program does not see it.
static void test_lost_once(void **state)
{
    (void)state;
    for (unsigned number = 1; number <= 12; number++) {
        char settings[16];
        snprintf(settings, sizeof settings, "xpc=%u", number);
        run_with(settings, lost_once);
    }
}

// The same with a library that is compiled: it comes behind the driver's own text and its kernels.
static void test_lost_with_library(void **state)
{
    (void)state;
    char settings[16];
    snprintf(settings, sizeof settings, "xpc=%d", METAL_BUILTINS + 2);
    tries = 2;
    run_with(settings, compiled);
}

static void lost_for_good(void)
{
    keel_device_t *device = NULL;
    keel_status_t status = device_try_open("0", &device);
    assert_non_null(status);
    if (!strstr(keel_status_message(status), "XPC_ERROR_CONNECTION_INTERRUPTED"))
        fail_msg("%s", keel_status_message(status));
    keel_status_release(status);
    while (sim_objects(NULL)) sched_yield();
}

static void refused(void)
{
    static const struct {
        const char *data, *words;
        keel_code_t code;
    } all[] = {
        {"\nkernel void k() { wrong; }", "program_source:2", KEEL_CORRUPT},
        {"MTLB kernel void k() { wrong; }", "Metal does not take the library", KEEL_CORRUPT},
        {"// no kernel", "the library has no kernel", KEEL_CORRUPT},
        {"none of these", "no text with a kernel", KEEL_CORRUPT},
        {"#include <metal_stdlib>\nkernel void k(device uint *x [[buffer(0)]])\n"
         "{ threadgroup uint t[8193]; t[*x] = 1; *x = t[*x + 1]; }",
         "pipeline of 'k': Threadgroup memory size (32772) exceeds", KEEL_CORRUPT},
        {"BC\xc0\xde", "it is bitcode; the device needs msl, metallib or spirv", KEEL_UNSUPPORTED},
    };
    keel_device_t *device = device_open();
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        keel_executable_options_t options = {.data = all[i].data, .size = strlen(all[i].data)};
        keel_executable_t *executable = NULL;
        keel_status_t status = keel_executable_load(device, &options, &executable);
        char message[4096];
        keel_status_format(status, message, sizeof message);
        if (keel_status_code(status) != all[i].code || !strstr(message, all[i].words))
            fail_msg("%s", message);
        keel_status_release(status);
    }
    device_close(device);
}

static void test_text(void **state)
{
    (void)state;
    run_with("residency=1", text);
}

static void test_compiled(void **state)
{
    (void)state;
    tries = 1;
    run_with("", compiled);
}

static void test_large(void **state)
{
    (void)state;
    run_with("residency=1 seed=9", large);
}

static void test_crowded(void **state)
{
    (void)state;
    run_with("", crowded);
}

static void test_local(void **state)
{
    (void)state;
    run_with("seed=4", local);
}

static void test_lost_for_good(void **state)
{
    (void)state;
    run_with("xpc=1+", lost_for_good);
}

static void test_refused(void **state)
{
    (void)state;
    run_with("", refused);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_text),          cmocka_unit_test(test_compiled),
        cmocka_unit_test(test_large),         cmocka_unit_test(test_crowded),
        cmocka_unit_test(test_refused),       cmocka_unit_test(test_local),
        cmocka_unit_test(test_lost_once),     cmocka_unit_test(test_lost_with_library),
        cmocka_unit_test(test_lost_for_good),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
