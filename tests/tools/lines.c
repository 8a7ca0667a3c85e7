// SPDX-License-Identifier: Apache-2.0
// For each line that it reads: submits a fill, waits for it, and answers with "done".
#include <keel/keel.h>
#include <stdio.h>
#include <string.h>

static keel_status_t line_work(keel_queue_t *queue, keel_buffer_t *buffer)
{
    keel_point_t done;
    keel_op_t fill = keel_op_fill(keel_whole(buffer), 0, 4);
    KEEL_TRY(keel_queue_submit(queue, KEEL_NO_WAITS, &fill, 1, KEEL_NO_SIGNALS, &done));
    return keel_wait(KEEL_POINTS(done), KEEL_ALL, KEEL_FOREVER);
}

int main(void)
{
    keel_device_t *device = NULL;
    keel_buffer_t *buffer = NULL;
    keel_buffer_options_t options = {.size = 4096};
    char line[64];
    keel_status_t status = keel_device_open("cpu://", NULL, &device);
    if (!status) status = keel_buffer_create(device, &options, &buffer);
    while (!status && fgets(line, sizeof line, stdin)) {
        status = line_work(keel_device_queue(device, 0), buffer);
        if (!status) printf("done\n");
        fflush(stdout);
    }
    keel_buffer_release(buffer);
    keel_device_release(device);
    if (!status) return 0;
    keel_status_print(status, stderr);
    keel_status_release(status);
    return 1;
}
