// SPDX-License-Identifier: Apache-2.0
// Files of several pieces, which go through staging that has room for two, on the CUDA driver in
// software.
#include "drivers/cuda/device.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PIECE = 16 << 20 };

static void reach(keel_point_t done)
{
    keel_status_t status = keel_wait(KEEL_POINTS(done), KEEL_ALL, 60ull * SECOND_NS);
    if (status) fail_msg("%s", keel_status_message(status));
}

static void number(uint32_t *words, size_t bytes, uint32_t seed)
{
    for (size_t i = 0; i < bytes / 4; i++) words[i] = (uint32_t)i * 2654435761u + seed;
}

// Writes a buffer of the device's into a file, and reads another from it.
static void round_trip(keel_device_t *device, keel_file_t *file, size_t size)
{
    keel_queue_t *queue = keel_device_queue(device, 0);
    keel_buffer_t *host = buffer_create(device, size, KEEL_MEMORY_HOST_VISIBLE);
    keel_buffer_t *from = buffer_create(device, size, 0), *to = buffer_create(device, size, 0);
    uint32_t *words = malloc(size), *back = malloc(size);
    keel_point_t done;
    number(words, size, (uint32_t)size);
    assert_null(keel_buffer_write(host, 0, words, size));
    keel_op_t ops[] = {
        keel_op_copy(keel_whole(host), keel_whole(from)),
        keel_op_fill(keel_whole(to), 0, 4),
        keel_op_barrier(),
        keel_op_write(keel_whole(from), file, 4096),
        keel_op_barrier(),
        keel_op_read(file, 4096, keel_whole(to)),
        keel_op_barrier(),
        keel_op_copy(keel_whole(to), keel_whole(host)),
    };
    assert_null(keel_queue_submit(queue, KEEL_NO_WAITS, ops, sizeof ops / sizeof *ops,
                                  KEEL_NO_SIGNALS, &done));
    reach(done);
    assert_null(keel_buffer_read(host, 0, back, size));
    assert_int_equal(memcmp(words, back, size), 0);
    free(words);
    free(back);
    keel_buffer_release(host);
    keel_buffer_release(from);
    keel_buffer_release(to);
}

static void test_pieces(void **state)
{
    (void)state;
    char path[] = "/tmp/keel-pieces-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    keel_device_t *device = device_open("");
    keel_file_t *file = NULL;
    assert_null(keel_file_open(device, path, KEEL_FILE_READ | KEEL_FILE_WRITE, &file));
    static const size_t sizes[] = {PIECE - 4, PIECE + 4, 2 * PIECE, 2 * PIECE + 4,
                                   4 * PIECE + 4096};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) round_trip(device, file, sizes[i]);
    keel_file_release(file);
    keel_device_release(device);
    unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pieces),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
