// SPDX-License-Identifier: Apache-2.0
// A user whose build compiles kernels and puts them into the program.
#include <keel/keel.h>
#include <stdio.h>

extern const unsigned char keel_embed_my_kernels[];
extern const uint64_t keel_embed_my_kernels_size;

static keel_status_t run(uint32_t words[40])
{
    keel_device_t *device;
    keel_executable_t *kernels;
    keel_entry_t twice;
    keel_buffer_t *x;
    keel_point_t done;
    KEEL_TRY(keel_device_open("cpu://inline", NULL, &device));
    KEEL_TRY(keel_executable_load(device,
                                  &(keel_executable_options_t){.data = keel_embed_my_kernels,
                                                               .size = keel_embed_my_kernels_size},
                                  &kernels));
    KEEL_TRY(keel_executable_entry(kernels, "twice", &twice));
    KEEL_TRY(keel_buffer_create(device, &(keel_buffer_options_t){.size = 160}, &x));
    KEEL_TRY(keel_buffer_write(x, 0, words, 160));
    KEEL_TRY(keel_queue_run(keel_device_queue(device, 0), KEEL_NO_WAITS,
                            keel_op_dispatch(twice, keel_groups(2, 1, 1), NULL, 0, KEEL_BIND(x)),
                            &done));
    KEEL_TRY(keel_wait(KEEL_POINTS(done), KEEL_ALL, KEEL_FOREVER));
    KEEL_TRY(keel_buffer_read(x, 0, words, 160));
    keel_buffer_release(x);
    keel_executable_release(kernels);
    keel_device_release(device);
    return NULL;
}

int main(void)
{
    uint32_t words[40];
    for (uint32_t i = 0; i < 40; i++) words[i] = i;
    keel_status_t status = run(words);
    if (status) keel_status_print(status, stderr);
    int wrong = status != NULL;
    keel_status_release(status);
    for (uint32_t i = 0; i < 40; i++) wrong |= words[i] != 2 * i;
    return wrong;
}
