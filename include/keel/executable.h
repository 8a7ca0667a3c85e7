// SPDX-License-Identifier: Apache-2.0
// Executables: kernels loaded for a device.
//
// An image is the code itself, as a compiler made it, or a container of images for different
// targets (docs/container.md), of which the one that suits the device best is loaded: for its very
// architecture, else for a lesser one of the family, else portable code. Of a container in a file,
// only the table of contents and that image are read.
//
// On cpu:// an image is a shared object of the host that exports the table of host_kernel.h.
// Loading runs the object's constructors: load only what you would run. All functions may be called
// from any thread.
#ifndef KEEL_EXECUTABLE_H_
#define KEEL_EXECUTABLE_H_

#include <keel/buffer.h>

typedef struct keel_executable_t keel_executable_t;

// An entry point, as dispatches name it. Plain data, borrows the executable.
typedef struct keel_entry_t {
    keel_executable_t *executable;
    uint32_t index;
} keel_entry_t;

// A value for a constant of the image: KEEL_EXECUTABLE_CONSTANT of <keel/kernel.h>, a __constant__
// or __device__ variable of nvcc and hipcc, an entry of keel_host_library_t.globals. All of the
// executable's kernels read this value, from the first one on. Borrowed for the call.
typedef struct keel_executable_constant_t {
    const char *name; // as the image calls it
    const void *data;
    size_t size; // bytes, as many as it has in the image
} keel_executable_constant_t;

typedef struct keel_executable_options_t {
    const void *data; // the image, borrowed for the call ...
    size_t size;
    const char *path;                            // ... or the file that holds it
    const char *name;                            // in messages; NULL: the path, or "executable"
    const keel_executable_constant_t *constants; // those not named keep what the image says
    size_t constant_count;
} keel_executable_options_t;

typedef struct keel_entry_info_t {
    const char *name; // lives as long as the executable
    uint32_t group_size[3];
    uint32_t constants;    // bytes; with `raw` of the block, 0 if that is not known
    uint32_t bindings;     // how many
    uint32_t local_memory; // bytes of workgroup memory
    bool fixed_size;       // group_size is compiled in: dispatches give no other
    bool raw;              // takes a block of arguments as it is: keel_dispatch_t.raw
} keel_entry_info_t;

typedef struct keel_binding_info_t {
    const char *name; // "" if the image does not say
    uint32_t access;  // keel_access_bit_t
} keel_binding_info_t;

KEEL_EXTERN_C_BEGIN

// KEEL_CORRUPT for a damaged image, KEEL_UNSUPPORTED for one made for something else, or a
// container of such; the message says for what. An image may have up to 1 GiB. KEEL_NOT_FOUND and
// KEEL_INVALID_ARGUMENT name a constant that the image has not, or not with that size; a device
// without KEEL_CAP_EXECUTES has none, and takes any. On a GPU it may wait for all that the device
// runs: the vendor does (CUDA).
KEEL_API keel_status_t keel_executable_load(keel_device_t *device,
                                            const keel_executable_options_t *options,
                                            keel_executable_t **executable) KEEL_MUST_USE;
KEEL_API keel_executable_t *keel_executable_retain(keel_executable_t *executable);
// Never waits for the device: where the vendor does, a thread of the library's unloads the code.
KEEL_API void keel_executable_release(keel_executable_t *executable);

KEEL_API size_t keel_executable_count(const keel_executable_t *executable);

// KEEL_NOT_FOUND names the entry points there are.
KEEL_API keel_status_t keel_executable_entry(keel_executable_t *executable, const char *name,
                                             keel_entry_t *entry) KEEL_MUST_USE;

KEEL_API keel_status_t keel_executable_info(const keel_executable_t *executable, uint32_t index,
                                            keel_entry_info_t *info) KEEL_MUST_USE;

// Writes up to `capacity` of the entry's bindings.
KEEL_API keel_status_t keel_executable_bindings(const keel_executable_t *executable, uint32_t index,
                                                size_t capacity,
                                                keel_binding_info_t *bindings) KEEL_MUST_USE;

// A global variable of the image as a buffer, which retains the executable.
KEEL_API keel_status_t keel_executable_global(keel_executable_t *executable, const char *name,
                                              keel_buffer_t **buffer) KEEL_MUST_USE;

KEEL_EXTERN_C_END

#endif
