// SPDX-License-Identifier: Apache-2.0
// What tensors.py calls by ctypes: Keel's side of tensors that PyTorch has too, and kernels that
// Triton made. Each function returns NULL or 0 after it has printed an error.
#include <stdio.h>
#include <string.h>

#include <keel/keel.h>

static keel_device_t *device;

static bool tell(keel_status_t status)
{
    if (status) keel_status_print(status, stderr);
    keel_status_release(status);
    return !status;
}

static keel_status_t finish(keel_op_t op)
{
    keel_point_t done;
    KEEL_TRY(keel_queue_run(keel_device_queue(device, 0), KEEL_NO_WAITS, op, &done));
    return keel_wait(KEEL_POINTS(done), KEEL_ALL, 20000000000u);
}

int bridge_open(const char *uri)
{
    return tell(keel_device_open(uri, NULL, &device));
}

void bridge_close(void)
{
    keel_device_release(device);
    keel_live_t live;
    keel_live_objects(&live);
    if (live.buffers || live.devices)
        fprintf(stderr, "left: %lld buffers\n", (long long)live.buffers);
}

static keel_status_t give(const int64_t *shape, float value, keel_buffer_t **buffer,
                          DLManagedTensor **tensor)
{
    uint32_t bits;
    uint64_t size = (uint64_t)(shape[0] * shape[1]) * sizeof value;
    keel_tensor_t how = {.type = {2, 32, 1}, .rank = 2, .shape = shape};
    memcpy(&bits, &value, sizeof bits);
    KEEL_TRY(keel_buffer_create(
        device, &(keel_buffer_options_t){.size = size, .memory = KEEL_MEMORY_DEVICE_LOCAL},
        buffer));
    KEEL_TRY(finish(keel_op_fill(keel_whole(*buffer), bits, 4)));
    return keel_buffer_to_dlpack0(*buffer, &how, tensor);
}

// A matrix of the device's own memory, all of one value.
DLManagedTensor *bridge_give(int64_t rows, int64_t columns, float value)
{
    keel_buffer_t *buffer = NULL;
    DLManagedTensor *tensor = NULL;
    bool good = tell(give((int64_t[]){rows, columns}, value, &buffer, &tensor));
    keel_buffer_release(buffer); // the tensor keeps it
    return good ? tensor : NULL;
}

// Takes a tensor over, fills it, and lets it go.
int bridge_take(DLManagedTensor *tensor, float value)
{
    keel_buffer_t *buffer = NULL;
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    if (!tell(keel_buffer_from_dlpack0(device, tensor, &buffer))) return 0;
    bool good = tell(finish(keel_op_fill(keel_whole(buffer), bits, 4)));
    keel_buffer_release(buffer);
    return good;
}

// Runs an entry point of an image on a block of arguments.
int bridge_run(const void *image, size_t size, const char *name, const uint32_t *shape,
               const void *block, uint32_t block_size)
{
    keel_executable_t *executable = NULL;
    keel_executable_options_t options = {.data = image, .size = size, .name = name};
    keel_op_t op = {.kind = KEEL_OP_DISPATCH};
    keel_dispatch_t *d = &op.as.dispatch;
    *d = (keel_dispatch_t){.raw = true, .constants = block, .constant_size = block_size};
    d->groups = keel_groups(shape[0], 1, 1);
    d->group_size = keel_groups(shape[1], 1, 1);
    d->local_memory = shape[2];
    bool good = tell(keel_executable_load(device, &options, &executable)) &&
                tell(keel_executable_entry(executable, name, &d->entry)) && tell(finish(op));
    keel_executable_release(executable);
    return good;
}
