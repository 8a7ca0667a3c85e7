// SPDX-License-Identifier: Apache-2.0
// Executables: kernels loaded for a device.
//
// An image is machine code or intermediate code, as a compiler made it, or a container of images
// for different targets (docs/container.md). From a container Keel loads the image that suits the
// device best: one for exactly its architecture, else for a lesser one of the family, else portable
// code. Of a container in a file, only the table of contents and that image are read.
//
// On cpu:// an image is a shared object of the host that exports the table of host_kernel.h.
// Loading it runs its constructors in the process, so load only code that you would run.
//
// Unless its comment says otherwise, a function may be called from any thread and does not wait.
#ifndef KEEL_EXECUTABLE_H_
#define KEEL_EXECUTABLE_H_

#include <keel/buffer.h>

typedef struct keel_executable_t keel_executable_t;

// An entry point: a kernel that can be dispatched. Plain data that borrows the executable.
typedef struct keel_entry_t {
    keel_executable_t *executable;
    uint32_t index; // below keel_executable_entry_count
} keel_entry_t;

// A value for a constant of the image: a KEEL_EXECUTABLE_CONSTANT of <keel/kernel.h>, a
// __constant__ or __device__ variable of nvcc and hipcc, or an entry of
// keel_host_library_t.globals. All kernels of the executable read this value. Borrowed for the
// call.
typedef struct keel_executable_constant_t {
    const char *name; // as the image names it
    const void *data; // the value
    size_t size;      // bytes; the size that the constant has in the image
} keel_executable_constant_t;

// What to load. Either `data` or `path` is given.
typedef struct keel_executable_options_t {
    const void *data; // the image in memory, borrowed for the call
    size_t size;      // bytes at `data`
    const char *path; // the file that holds the image
    const char *name; // used in messages; NULL: the path, or "executable"
    const keel_executable_constant_t *constants; // the others keep the image's values
    size_t constant_count;
} keel_executable_options_t;

// What keel_executable_info tells about an executable.
typedef struct keel_executable_info_t {
    keel_device_t *device; // whose it is
    const char *name;      // as asked for; else its path, or "executable"
} keel_executable_info_t;

// What keel_entry_info tells about an entry point. What compilers for AMD's GPUs hide behind a
// kernel's own arguments is not counted in its argument block: the driver fills it in.
typedef struct keel_entry_info_t {
    const char *name;        // lives as long as the executable
    uint32_t group_size[3];  // work-items in a workgroup
    uint32_t constants;      // bytes; for `raw` the size of the argument block, 0 if unknown
    uint32_t bindings;       // how many it takes
    uint32_t local_memory;   // bytes of workgroup memory
    uint32_t max_group_size; // work-items together that it is compiled for; 0: as the device
    bool fixed_size;         // group_size is compiled in: a dispatch cannot change it
    bool raw;                // takes its arguments as one block: keel_dispatch_t.raw
} keel_entry_info_t;

// One binding of an entry point.
typedef struct keel_binding_info_t {
    const char *name; // "" if the image does not say
    uint32_t access;  // keel_access_bit_t: what the kernel does with it
} keel_binding_info_t;

KEEL_EXTERN_C_BEGIN

// Loads an image for `device`. `options` must not be NULL. Each load is an executable with global
// variables of its own; code without variables is shared.
//
// Takes as long as the vendor's compiler or loader does. CUDA may wait for everything that the
// device runs, and then this call waits, too.
//
// KEEL_CORRUPT for a damaged image. KEEL_UNSUPPORTED for an image made for another target, a
// container without a fitting image, more than 1 GiB, or an entry point that needs more than the
// device has; the message says what. KEEL_NOT_FOUND if the file does not exist, or the image has no
// such constant; KEEL_INVALID_ARGUMENT if the constant has another size. A device without
// KEEL_CAP_EXECUTES ignores constants.
KEEL_API keel_status_t keel_executable_load(keel_device_t *device,
                                            const keel_executable_options_t *options,
                                            keel_executable_t **executable) KEEL_MUST_USE;
// Adds a reference and returns `executable`. NULL is fine.
KEEL_API keel_executable_t *keel_executable_retain(keel_executable_t *executable);

// Gives up a reference. The last one unloads the code; work in flight, recordings and buffers of
// its globals hold references of their own. NULL is fine. Does not wait: where the vendor would, a
// thread of the library unloads the code.
KEEL_API void keel_executable_release(keel_executable_t *executable);

// Returns what the executable is. This never changes, and is borrowed from the executable. Never
// fails.
KEEL_API const keel_executable_info_t *keel_executable_info(const keel_executable_t *executable);

// Returns the number of entry points.
KEEL_API size_t keel_executable_entry_count(const keel_executable_t *executable);

// Finds the entry point called `name` and writes it to `entry`. The entry borrows the executable.
//
// KEEL_NOT_FOUND if there is none; the message lists those that exist.
KEEL_API keel_status_t keel_executable_entry(keel_executable_t *executable, const char *name,
                                             keel_entry_t *entry) KEEL_MUST_USE;

// Writes what `entry` needs to `info`. The name is borrowed from the executable. To go through all
// entry points, make the entries yourself: {executable, i} for each i below
// keel_executable_entry_count.
//
// KEEL_OUT_OF_RANGE if entry.index is not below keel_executable_entry_count.
KEEL_API keel_status_t keel_entry_info(keel_entry_t entry, keel_entry_info_t *info) KEEL_MUST_USE;

// Writes the bindings of `entry`, at most `capacity` of them. keel_entry_info_t.bindings says how
// many there are. The names are borrowed from the executable.
//
// KEEL_OUT_OF_RANGE if entry.index is not below keel_executable_entry_count.
KEEL_API keel_status_t keel_entry_bindings(keel_entry_t entry, size_t capacity,
                                           keel_binding_info_t *bindings) KEEL_MUST_USE;

// Makes a buffer over the global variable `name` of the image. The buffer retains the executable.
//
// KEEL_NOT_FOUND if the image has no such variable. KEEL_UNSUPPORTED if the device cannot look up
// variables.
KEEL_API keel_status_t keel_executable_global(keel_executable_t *executable, const char *name,
                                              keel_buffer_t **buffer) KEEL_MUST_USE;

KEEL_EXTERN_C_END

#endif
