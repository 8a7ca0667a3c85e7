// SPDX-License-Identifier: Apache-2.0
// Tensors in and out, by DLPack: memory that Keel shares with other frameworks. Nothing is copied.
// The device needs KEEL_CAP_DLPACK; keel_caps_t.dlpack says which tensors it can use.
//
// The structs below are the ABI of DLPack 1.x (versioned) and of the releases before it (legacy).
// They are declared here because the headers that systems ship are old. To use the types of the
// real dlpack.h, include it before this header.
//
// Passing a tensor orders nothing. Before a tensor crosses the border, in either direction, wait on
// the host until the side it comes from no longer uses the memory.
//
// Any thread may call the functions, and the deleters. None of them waits.
#ifndef KEEL_DLPACK_H_
#define KEEL_DLPACK_H_

#include <keel/buffer.h>

#ifndef DLPACK_DLPACK_H_

// Where the data of a tensor lies.
typedef struct {
    int32_t device_type; // 1: CPU, 2: CUDA, 3: CUDA host, 7: Vulkan, 8: Metal, 10: ROCm, 11: ROCm
                         // host, 13: CUDA managed
    int32_t device_id;   // which device of that type; 0 for host memory and managed memory
} DLDevice;

// The type of one element.
typedef struct {
    uint8_t code;   // 0: int, 1: uint, 2: float, 4: bfloat, 5: complex, 6: bool
    uint8_t bits;   // of one lane
    uint16_t lanes; // 1, or more for vectors
} DLDataType;

// A view of memory. The struct owns nothing.
typedef struct {
    void *data;           // the address, on `device`, from which byte_offset counts
    DLDevice device;      // where `data` lies
    int32_t ndim;         // number of dimensions
    DLDataType dtype;     // the type of the elements
    int64_t *shape;       // ndim sizes
    int64_t *strides;     // ndim, in elements; NULL: compact, row-major
    uint64_t byte_offset; // where the first element begins
} DLTensor;

// A legacy tensor that its holder deletes.
typedef struct DLManagedTensor {
    DLTensor dl_tensor;
    void *manager_ctx;                             // for the side that made it
    void (*deleter)(struct DLManagedTensor *self); // call it once; may be NULL
} DLManagedTensor;

#endif

#if !defined(DLPACK_DLPACK_H_) || !defined(DLPACK_MAJOR_VERSION)

// The version of the ABI. Within one major version the layout does not change.
typedef struct {
    uint32_t major; // 1
    uint32_t minor;
} DLPackVersion;

// A tensor of DLPack 1.x that its holder deletes.
typedef struct DLManagedTensorVersioned {
    DLPackVersion version;                                  // look at it before the rest
    void *manager_ctx;                                      // for the side that made it
    void (*deleter)(struct DLManagedTensorVersioned *self); // call it once; may be NULL
    uint64_t flags;                                         // 1: read only, 2: a copy
    DLTensor dl_tensor;
} DLManagedTensorVersioned;

#else

// The dlpack.h of DLPack 1.0 declares the struct alone.
typedef struct DLManagedTensorVersioned DLManagedTensorVersioned;

#endif

// The most dimensions of a tensor that Keel takes or makes.
#define KEEL_DLPACK_MAX_DIMS 16

// The shape of a tensor over a buffer. For this and for imported tensors: an element has whole
// bytes (bits times lanes is a multiple of 8), and strides are not negative. Sizes of 0 and strides
// of 0 are fine.
typedef struct keel_tensor_t {
    DLDataType type;        // of the elements
    int32_t rank;           // dimensions, up to KEEL_DLPACK_MAX_DIMS; 0: a single element
    const int64_t *shape;   // rank sizes
    const int64_t *strides; // in elements; NULL: compact, row-major
    uint64_t offset;        // bytes into the buffer
} keel_tensor_t;

KEEL_EXTERN_C_BEGIN

// Makes a tensor of version 1.1 over the buffer, with the shape that `tensor` gives. The shape is
// copied. The tensor retains the buffer until its deleter is called. A buffer without
// KEEL_ACCESS_WRITE becomes a read only tensor.
//
// KEEL_OUT_OF_RANGE if the shape does not fit into the buffer. KEEL_INVALID_ARGUMENT for a bad
// shape. KEEL_FAILED_PRECONDITION while the buffer has no memory. KEEL_PERMISSION_DENIED without
// KEEL_ACCESS_READ. KEEL_UNSUPPORTED without KEEL_CAP_DLPACK, or if DLPack has no name for the
// buffer's memory.
KEEL_API keel_status_t keel_buffer_to_dlpack(keel_buffer_t *buffer, const keel_tensor_t *tensor,
                                             DLManagedTensorVersioned **managed) KEEL_MUST_USE;

// The same as a legacy tensor. It cannot be marked read only: KEEL_PERMISSION_DENIED for a buffer
// without KEEL_ACCESS_WRITE.
KEEL_API keel_status_t keel_buffer_to_dlpack0(keel_buffer_t *buffer, const keel_tensor_t *tensor,
                                              DLManagedTensor **managed) KEEL_MUST_USE;

// Makes a buffer over the memory of a tensor, from its first element to the end of its last. On
// success the buffer owns the tensor and calls its deleter when it no longer uses the memory
// (keel_external_buffer_t.release). On failure the tensor stays the caller's. A read only tensor
// becomes a buffer without KEEL_ACCESS_WRITE.
//
// KEEL_UNSUPPORTED for another major version than 1, or without KEEL_CAP_DLPACK.
// KEEL_INVALID_ARGUMENT for a tensor of a device that keel_caps_t.dlpack does not list, or a bad
// shape. KEEL_OUT_OF_RANGE for a shape that reaches beyond the address space. Else as
// keel_buffer_import.
KEEL_API keel_status_t keel_buffer_from_dlpack(keel_device_t *device,
                                               DLManagedTensorVersioned *managed,
                                               keel_buffer_t **buffer) KEEL_MUST_USE;

// The same for a legacy tensor. It cannot say that it is read only, so the buffer has full access.
KEEL_API keel_status_t keel_buffer_from_dlpack0(keel_device_t *device, DLManagedTensor *managed,
                                                keel_buffer_t **buffer) KEEL_MUST_USE;

KEEL_EXTERN_C_END

#endif
