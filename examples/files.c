// SPDX-License-Identifier: Apache-2.0
// A file written and read back in queue order: no thread of the application waits for the disk.
#include <keel/keel.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { SIZE = 1 << 20 };

typedef struct app_t {
    keel_device_t *device;
    keel_file_t *file;
    keel_buffer_t *out, *in;
} app_t;

// A file without a name, which goes away with its last descriptor.
static keel_status_t file_make(app_t *app)
{
    char path[] = "/tmp/keel-example-XXXXXX";
    int fd = mkstemp(path);
    if (fd < 0) return KEEL_ERROR(KEEL_IO, "mkstemp failed");
    unlink(path);
    keel_status_t status = keel_file_import(app->device, fd, &app->file);
    close(fd); // Keel has a duplicate
    return status;
}

static keel_status_t app_run(app_t *app, const char *uri)
{
    KEEL_TRY(keel_device_open(uri, NULL, &app->device));
    keel_queue_t *queue = keel_device_queue(app->device, 0);
    KEEL_TRY(file_make(app));
    keel_buffer_options_t options = {.size = SIZE};
    KEEL_TRY(keel_buffer_create(app->device, &options, &app->out));
    options.memory = KEEL_MEMORY_HOST_VISIBLE; // only to look at: files go to any memory
    KEEL_TRY(keel_buffer_create(app->device, &options, &app->in));

    // Two halves, written at the same time; then both are read, in one piece.
    keel_op_t write[] = {
        keel_op_fill(keel_span(app->out, 0, SIZE / 2), 'k', 1),
        keel_op_fill(keel_span(app->out, SIZE / 2, SIZE / 2), 'l', 1),
        keel_op_barrier(),
        keel_op_write(keel_span(app->out, SIZE / 2, SIZE / 2), app->file, SIZE / 2),
        keel_op_write(keel_span(app->out, 0, SIZE / 2), app->file, 0),
    };
    keel_op_t read = keel_op_read(app->file, 0, keel_whole(app->in));
    keel_point_t written, done;
    KEEL_TRY(keel_queue_submit(queue, KEEL_NO_WAITS, write, 5, KEEL_NO_SIGNALS, &written));
    KEEL_TRY(keel_queue_run(queue, KEEL_AFTER(written), read, &done));
    KEEL_TRY(keel_wait(KEEL_POINTS(done), KEEL_ALL, KEEL_FOREVER));

    // Reading beyond the end fails the read's point, not the call that submits it.
    keel_op_t beyond = keel_op_read(app->file, SIZE - 1, keel_whole(app->out));
    KEEL_TRY(keel_queue_run(queue, KEEL_NO_WAITS, beyond, &done));
    keel_status_t refused = keel_wait(KEEL_POINTS(done), KEEL_ALL, KEEL_FOREVER);
    bool right = keel_status_code(refused) == KEEL_OUT_OF_RANGE;
    printf("beyond the end: %s\n", keel_status_message(refused));
    keel_status_release(refused);
    return right ? NULL : KEEL_ERROR(KEEL_INTERNAL, "OUT_OF_RANGE was to be expected");
}

static keel_status_t app_check(app_t *app)
{
    uint64_t size;
    KEEL_TRY(keel_file_size(app->file, &size));
    const char *text;
    KEEL_TRY(keel_buffer_map(app->in, 0, SIZE / 2 + 1, KEEL_ACCESS_READ, (void **)&text));
    bool right =
        size == SIZE && text[0] == 'k' && text[SIZE / 2 - 1] == 'k' && text[SIZE / 2] == 'l';
    keel_buffer_unmap(app->in);
    if (!right) return KEEL_ERROR(KEEL_INTERNAL, "the file holds something else");
    printf("%d KiB written in two pieces and read in one\n", SIZE / 1024);
    return NULL;
}

int main(int argc, char **argv)
{
    app_t app = {0};
    keel_status_t status = app_run(&app, argc > 1 ? argv[1] : "cpu://");
    if (!status) status = app_check(&app);
    keel_buffer_release(app.out);
    keel_buffer_release(app.in);
    keel_file_release(app.file);
    keel_device_release(app.device);
    if (status) keel_status_print(status, stderr);
    keel_status_release(status);
    return status ? 1 : 0;
}
