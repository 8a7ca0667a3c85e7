// SPDX-License-Identifier: Apache-2.0
// Tensors in and out, by DLPack: memory shared with other frameworks, nothing copied. A device that
// can has KEEL_CAP_DLPACK, and keel_caps_t.dlpack says which tensors are its own.
//
// The structs below are the ABI of DLPack 1.x (versioned) and of the releases before it (legacy),
// declared here because the headers that systems ship are old. Include the real dlpack.h before
// this one to use its types.
//
// Handing over a tensor orders nothing: the memory must not be in use on the side it comes from.
// All functions may be called from any thread, and so may the deleters.
#ifndef KEEL_DLPACK_H_
#define KEEL_DLPACK_H_

#include <keel/buffer.h>

#ifndef DLPACK_DLPACK_H_

typedef struct {
    int32_t device_type; // 1: CPU, 2: CUDA, 3: CUDA host, 7: Vulkan, 8: Metal, 10: ROCm, 11: ROCm
                         // host, 13: CUDA managed
    int32_t device_id;   // 0 for memory of the host's, and managed memory
} DLDevice;

typedef struct {
    uint8_t code; // 0: int, 1: uint, 2: float, 4: bfloat, 5: complex, 6: bool
    uint8_t bits;
    uint16_t lanes;
} DLDataType;

typedef struct {
    void *data;
    DLDevice device;
    int32_t ndim;
    DLDataType dtype;
    int64_t *shape;
    int64_t *strides; // in elements; NULL: compact, row-major
    uint64_t byte_offset;
} DLTensor;

typedef struct DLManagedTensor {
    DLTensor dl_tensor;
    void *manager_ctx;
    void (*deleter)(struct DLManagedTensor *self);
} DLManagedTensor;

#endif

#if !defined(DLPACK_DLPACK_H_) || !defined(DLPACK_MAJOR_VERSION)

typedef struct {
    uint32_t major;
    uint32_t minor;
} DLPackVersion;

typedef struct DLManagedTensorVersioned {
    DLPackVersion version;
    void *manager_ctx;
    void (*deleter)(struct DLManagedTensorVersioned *self);
    uint64_t flags; // 1: read only, 2: a copy
    DLTensor dl_tensor;
} DLManagedTensorVersioned;

#endif

#define KEEL_DLPACK_MAX_DIMS 16

// The shape to show a buffer by. Here and in tensors from elsewhere, elements are whole bytes (bits
// times lanes is a multiple of 8) and strides are not negative. Dimensions of size 0 and strides of
// 0 are fine.
typedef struct keel_tensor_t {
    DLDataType type;
    int32_t rank; // up to KEEL_DLPACK_MAX_DIMS; 0: a single element
    const int64_t *shape;
    const int64_t *strides; // in elements; NULL: compact, row-major
    uint64_t offset;        // bytes into the buffer
} keel_tensor_t;

KEEL_EXTERN_C_BEGIN

// The buffer as a tensor (of version 1.1), which retains it until its deleter is called.
// KEEL_OUT_OF_RANGE if the shape does not fit into the buffer, KEEL_FAILED_PRECONDITION while that
// has no memory. A buffer without write access becomes a read only tensor (versioned), or fails
// (legacy, which cannot say so).
KEEL_API keel_status_t keel_buffer_to_dlpack(keel_buffer_t *buffer, const keel_tensor_t *tensor,
                                             DLManagedTensorVersioned **managed) KEEL_MUST_USE;
KEEL_API keel_status_t keel_buffer_to_dlpack0(keel_buffer_t *buffer, const keel_tensor_t *tensor,
                                              DLManagedTensor **managed) KEEL_MUST_USE;

// A buffer over a tensor's memory, from its first element to the end of its last. On success the
// tensor is owned by the buffer, which calls its deleter; on failure it stays the caller's. A read
// only tensor becomes a buffer without write access. The tensor must lie in a place of the device
// (keel_caps_t.dlpack).
KEEL_API keel_status_t keel_buffer_from_dlpack(keel_device_t *device,
                                               DLManagedTensorVersioned *managed,
                                               keel_buffer_t **buffer) KEEL_MUST_USE;
KEEL_API keel_status_t keel_buffer_from_dlpack0(keel_device_t *device, DLManagedTensor *managed,
                                                keel_buffer_t **buffer) KEEL_MUST_USE;

KEEL_EXTERN_C_END

#endif
