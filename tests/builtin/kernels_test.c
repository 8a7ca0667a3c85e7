// SPDX-License-Identifier: Apache-2.0
// The built-in kernels as `keel cc` compiles them for this host, on cpu://. On the software AMD GPU
// tests/sim/amd/builtin_test.c runs them; on the software CUDA all of conformance does.
#include <keel/keel.h>
#include <stdlib.h>

#include "builtin/judge.h"
#include "ok.h"
#include "unit.h"

extern const unsigned char keel_embed_builtin_kernels[];
extern const uint64_t keel_embed_builtin_kernels_size;

static void *memory_alloc(size_t size)
{
    void *memory = aligned_alloc(64, size);
    assert_non_null(memory);
    return memory;
}

typedef struct host_t {
    keel_device_t *device;
    keel_executable_t *kernels;
} host_t;

// Addresses of this device are pointers.
static bool launch(void *user, const char *kernel, uint32_t groups, uint32_t group_size,
                   const void *arguments, size_t size)
{
    const host_t *host = user;
    keel_op_t op = {.kind = KEEL_OP_DISPATCH};
    keel_point_t done;
    op.as.dispatch = (keel_dispatch_t){
        .groups = keel_groups(groups, 1, 1),
        .group_size = keel_groups(group_size, 1, 1),
        .raw = true,
        .constants = arguments,
        .constant_size = size,
    };
    OK(keel_executable_entry(host->kernels, kernel, &op.as.dispatch.entry));
    OK(keel_queue_run(keel_device_queue(host->device, 0), KEEL_NO_WAITS, op, &done));
    OK(keel_wait(KEEL_POINTS(done), KEEL_ALL, KEEL_FOREVER));
    return true;
}

static void kernels_run_on_the_host(void **state)
{
    (void)state;
    keel_executable_options_t options = {.data = keel_embed_builtin_kernels,
                                         .size = keel_embed_builtin_kernels_size};
    host_t host;
    OK(keel_device_open("cpu://", NULL, &host.device));
    OK(keel_executable_load(host.device, &options, &host.kernels));
    assert_int_equal(judge_run(&(judge_device_t){memory_alloc, free, launch, &host}), 0);
    keel_executable_release(host.kernels);
    keel_device_release(host.device);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(kernels_run_on_the_host)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
