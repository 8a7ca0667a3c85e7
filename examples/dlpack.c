// SPDX-License-Identifier: Apache-2.0
// A tensor of another framework comes in, a kernel works on it where it lies, and a tensor of
// Keel's goes out. Nothing is copied either way.
#include <keel/keel.h>
#include <stdio.h>
#include <stdlib.h>

#include "kernels.h"

enum { ROWS = 16, COLUMNS = 64 };

typedef struct app_t {
    keel_device_t *device;
    keel_executable_t *kernels;
    keel_buffer_t *x, *y;
    DLManagedTensorVersioned *out;
} app_t;

// The other framework: memory, shape and deleter are its own.
typedef struct foreign_t {
    DLManagedTensorVersioned managed;
    int64_t shape[2];
    float data[ROWS * COLUMNS];
} foreign_t;

static int foreign_alive;

static void foreign_delete(DLManagedTensorVersioned *self)
{
    foreign_alive--;
    free(self->manager_ctx);
}

static foreign_t *foreign_create(void)
{
    foreign_t *f = calloc(1, sizeof *f);
    if (!f) abort();
    foreign_alive++;
    for (int i = 0; i < ROWS * COLUMNS; i++) f->data[i] = (float)i;
    f->shape[0] = ROWS, f->shape[1] = COLUMNS;
    f->managed = (DLManagedTensorVersioned){{1, 0}, f, foreign_delete, 0, {0}};
    f->managed.dl_tensor = (DLTensor){
        .data = f->data, .device = {1, 0}, .ndim = 2, .dtype = {2, 32, 1}, .shape = f->shape};
    return f;
}

static keel_status_t app_run(app_t *app, const char *uri)
{
    foreign_t *foreign = foreign_create();
    keel_status_t status = keel_device_open(uri, NULL, &app->device);
    if (!status) status = keel_buffer_from_dlpack(app->device, &foreign->managed, &app->x);
    if (status) foreign_delete(&foreign->managed); // it was not taken over
    KEEL_TRY(status);
    keel_buffer_options_t options = {
        .size = sizeof foreign->data,
        .memory = KEEL_MEMORY_HOST_VISIBLE, // so that main can look at the tensor that goes out
    };
    KEEL_TRY(keel_buffer_create(app->device, &options, &app->y));

    keel_entry_t saxpy;
    KEEL_TRY(kernels_load(app->device, &app->kernels));
    KEEL_TRY(keel_executable_entry(app->kernels, "saxpy", &saxpy));
    float a = 10;
    keel_op_t op = keel_op_dispatch(saxpy, keel_groups(ROWS * COLUMNS / 64, 1, 1), &a, sizeof a,
                                    KEEL_BIND(app->x, app->y));
    keel_queue_t *queue = keel_device_queue(app->device, 0);
    keel_point_t filled, done;
    KEEL_TRY(keel_queue_fill(queue, KEEL_NO_WAITS, keel_whole(app->y), 0, 1, &filled));
    KEEL_TRY(keel_queue_run(queue, KEEL_AFTER(filled), op, &done));
    KEEL_TRY(keel_wait(KEEL_POINTS(done), KEEL_ALL, KEEL_FOREVER));

    // Every second row of y, as strides say.
    int64_t shape[2] = {ROWS / 2, COLUMNS}, strides[2] = {2 * COLUMNS, 1};
    keel_tensor_t tensor = {.type = {2, 32, 1}, .rank = 2, .shape = shape, .strides = strides};
    return keel_buffer_to_dlpack(app->y, &tensor, &app->out);
}

int main(int argc, char **argv)
{
    app_t app = {0};
    keel_status_t status = app_run(&app, argc > 1 ? argv[1] : "cpu://");
    keel_buffer_release(app.x); // the last one: the other framework's deleter is called, if later
    keel_buffer_release(app.y); // lives on in app.out
    keel_executable_release(app.kernels);
    bool right = !status;
    if (app.out) {
        const DLTensor *t = &app.out->dl_tensor;
        const float *last = (const float *)t->data + (t->shape[0] - 1) * t->strides[0];
        right &= last[1] == 10 * ((ROWS - 2) * COLUMNS + 1);
        printf("%lld x %lld elements, the last row begins with %g, %g, ...\n",
               (long long)t->shape[0], (long long)t->shape[1], (double)last[0], (double)last[1]);
        app.out->deleter(app.out);
    }
    keel_device_release(app.device);
    right &= foreign_alive == 0; // by now for sure
    if (status) keel_status_print(status, stderr);
    keel_status_release(status);
    return right ? 0 : 1;
}
