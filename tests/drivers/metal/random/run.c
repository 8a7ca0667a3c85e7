// SPDX-License-Identifier: Apache-2.0
// run CONTAINER DEVICE...: runs the kernel `mix` of a container on each of these devices, with the
// same words, and says where the results of a later one differ from those of the first.
#include <keel/keel.h>

#include <stdio.h>

enum { GROUP = 32, GROUPS = 4, COUNT = GROUP * GROUPS, OUT = 4 };

typedef struct result_t {
    uint64_t words[COUNT * OUT];
} result_t;

// Numbers at the edge are more likely than elsewhere.
static uint32_t input_of(uint32_t i)
{
    static const uint32_t edges[] = {0,          1,          0xffffffff, 0x80000000, 0x7fffffff,
                                     0x3f800000, 0x80000001, 0x7f800000, 0x7fc00000, 0x00000001,
                                     0xff7fffff, 0x4b800000, 0xcf000000, 0x00008000, 0x000000ff};
    enum { EDGES = sizeof edges / sizeof *edges };
    uint32_t x = i * 2654435761u + 12345;
    x = (x ^ x >> 15) * 2246822519u;
    x ^= x >> 13;
    return x % 4 == 0 ? edges[x / 4 % EDGES] : x;
}

typedef struct app_t {
    keel_device_t *device;
    keel_executable_t *kernels;
    keel_buffer_t *in, *out;
} app_t;

static keel_status_t app_run(app_t *app, const char *uri, const char *path, result_t *result)
{
    uint32_t input[COUNT * 2];
    keel_executable_options_t image = {.path = path};
    keel_buffer_options_t in = {.size = sizeof input, .memory = KEEL_MEMORY_HOST_VISIBLE};
    keel_buffer_options_t out = {.size = sizeof *result, .memory = KEEL_MEMORY_HOST_VISIBLE};
    keel_entry_t mix;
    keel_point_t done;
    for (uint32_t i = 0; i < COUNT * 2; i++) input[i] = input_of(i);
    KEEL_TRY(keel_device_open(uri, NULL, &app->device));
    KEEL_TRY(keel_executable_load(app->device, &image, &app->kernels));
    KEEL_TRY(keel_executable_entry(app->kernels, "mix", &mix));
    KEEL_TRY(keel_buffer_create(app->device, &in, &app->in));
    KEEL_TRY(keel_buffer_create(app->device, &out, &app->out));
    KEEL_TRY(keel_buffer_write(app->in, 0, input, sizeof input));
    KEEL_TRY(keel_queue_run(
        keel_device_queue(app->device, 0), KEEL_NO_WAITS,
        keel_op_dispatch(mix, keel_groups(GROUPS, 1, 1), NULL, 0, KEEL_BIND(app->in, app->out)),
        &done));
    KEEL_TRY(keel_wait(KEEL_POINTS(done), KEEL_ALL, KEEL_FOREVER));
    return keel_buffer_read(app->out, 0, result, sizeof *result);
}

static bool run_on(const char *uri, const char *path, result_t *result)
{
    app_t app = {0};
    keel_status_t status = app_run(&app, uri, path, result);
    if (status) fprintf(stderr, "%s: %s\n", uri, keel_status_message(status));
    bool good = !status;
    keel_status_release(status);
    keel_buffer_release(app.in);
    keel_buffer_release(app.out);
    keel_executable_release(app.kernels);
    keel_device_release(app.device);
    return good;
}

// How many words differ; the first of them is told.
static unsigned compare(const result_t *first, const result_t *other, const char *uri)
{
    unsigned wrong = 0;
    for (int i = 0; i < COUNT * OUT; i++) {
        if (first->words[i] == other->words[i]) continue;
        if (!wrong++)
            printf("%s: item %d, word %d: %#llx, not %#llx\n", uri, i / OUT, i % OUT,
                   (unsigned long long)other->words[i], (unsigned long long)first->words[i]);
    }
    return wrong;
}

int main(int argc, char **argv)
{
    static result_t first, other;
    unsigned wrong = 0;
    if (argc < 4) {
        fprintf(stderr, "usage: %s CONTAINER DEVICE DEVICE...\n", argv[0]);
        return 2;
    }
    if (!run_on(argv[2], argv[1], &first)) return 3;
    for (int i = 3; i < argc; i++) {
        if (!run_on(argv[i], argv[1], &other)) return 3;
        wrong += compare(&first, &other, argv[i]);
    }
    return wrong != 0;
}
