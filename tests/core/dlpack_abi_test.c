// SPDX-License-Identifier: Apache-2.0
// That <keel/dlpack.h> declares DLPack's structs as DLPack does, and can follow its header. For
// this it is included twice: under other names, and behind the system's dlpack.h, if there is one.
#include <keel/buffer.h>

#define DLDevice                 OwnDLDevice
#define DLDataType               OwnDLDataType
#define DLTensor                 OwnDLTensor
#define DLManagedTensor          OwnDLManagedTensor
#define DLPackVersion            OwnDLPackVersion
#define DLManagedTensorVersioned OwnDLManagedTensorVersioned
#define keel_tensor_t            own_tensor_t
#define keel_buffer_to_dlpack    own_to_dlpack
#define keel_buffer_to_dlpack0   own_to_dlpack0
#define keel_buffer_from_dlpack  own_from_dlpack
#define keel_buffer_from_dlpack0 own_from_dlpack0
#include <keel/dlpack.h>
#undef DLDevice
#undef DLDataType
#undef DLTensor
#undef DLManagedTensor
#undef DLPackVersion
#undef DLManagedTensorVersioned
#undef keel_tensor_t
#undef keel_buffer_to_dlpack
#undef keel_buffer_to_dlpack0
#undef keel_buffer_from_dlpack
#undef keel_buffer_from_dlpack0
#undef KEEL_DLPACK_H_

#if __has_include(<dlpack/dlpack.h>)
#include <dlpack/dlpack.h>
#endif
#include <keel/dlpack.h>

#include "unit.h"

// Where a field lies and how large it is, as one number.
#define PLACE(type, field) (offsetof(type, field) << 16 | sizeof(((type *)NULL)->field))

#define EXPECT_FIELD(type, field, offset, size)                                                    \
    do {                                                                                           \
        assert_int_equal(PLACE(Own##type, field), (offset) << 16 | (size));                        \
        assert_int_equal(PLACE(type, field), (offset) << 16 | (size));                             \
    } while (0)

#define EXPECT_SIZE(type, size)                                                                    \
    do {                                                                                           \
        assert_int_equal(sizeof(Own##type), (size));                                               \
        assert_int_equal(sizeof(type), (size));                                                    \
    } while (0)

static void test_legacy(void **state)
{
#ifndef DLPACK_DLPACK_H_
    print_message("there is no dlpack/dlpack.h (libdlpack-dev) to compare with\n");
    skip();
#endif
    EXPECT_SIZE(DLDevice, 8);
    EXPECT_FIELD(DLDevice, device_type, 0, 4);
    EXPECT_FIELD(DLDevice, device_id, 4, 4);
    EXPECT_SIZE(DLDataType, 4);
    EXPECT_FIELD(DLDataType, code, 0, 1);
    EXPECT_FIELD(DLDataType, bits, 1, 1);
    EXPECT_FIELD(DLDataType, lanes, 2, 2);
    EXPECT_SIZE(DLTensor, 48);
    EXPECT_FIELD(DLTensor, data, 0, 8);
    EXPECT_FIELD(DLTensor, device, 8, 8);
    EXPECT_FIELD(DLTensor, ndim, 16, 4);
    EXPECT_FIELD(DLTensor, dtype, 20, 4);
    EXPECT_FIELD(DLTensor, shape, 24, 8);
    EXPECT_FIELD(DLTensor, strides, 32, 8);
    EXPECT_FIELD(DLTensor, byte_offset, 40, 8);
    EXPECT_SIZE(DLManagedTensor, 64);
    EXPECT_FIELD(DLManagedTensor, dl_tensor, 0, 48);
    EXPECT_FIELD(DLManagedTensor, manager_ctx, 48, 8);
    EXPECT_FIELD(DLManagedTensor, deleter, 56, 8);
}

// Compared with the system's if that is new enough to have it, else with the specification alone.
static void test_versioned(void **state)
{
    EXPECT_SIZE(DLPackVersion, 8);
    EXPECT_FIELD(DLPackVersion, major, 0, 4);
    EXPECT_FIELD(DLPackVersion, minor, 4, 4);
    EXPECT_SIZE(DLManagedTensorVersioned, 80);
    EXPECT_FIELD(DLManagedTensorVersioned, version, 0, 8);
    EXPECT_FIELD(DLManagedTensorVersioned, manager_ctx, 8, 8);
    EXPECT_FIELD(DLManagedTensorVersioned, deleter, 16, 8);
    EXPECT_FIELD(DLManagedTensorVersioned, flags, 24, 8);
    EXPECT_FIELD(DLManagedTensorVersioned, dl_tensor, 32, 48);
}

// A tensor goes out and in through the system's types.
static void test_coexistence(void **state)
{
    int64_t shape[] = {6};
    keel_device_t *device;
    keel_buffer_t *buffer, *again;
    DLManagedTensor *managed;
    keel_buffer_options_t options = {.size = 24};
    keel_tensor_t tensor = {.type = {2, 32, 1}, .rank = 1, .shape = shape};
    assert_null(keel_device_open("cpu://inline", NULL, &device));
    assert_null(keel_buffer_create(device, &options, &buffer));
    assert_null(keel_buffer_to_dlpack0(buffer, &tensor, &managed));
    assert_int_equal(managed->dl_tensor.device.device_type, 1);
    assert_int_equal(managed->dl_tensor.ndim, 1);
    assert_int_equal(managed->dl_tensor.shape[0], 6);
    assert_null(keel_buffer_from_dlpack0(device, managed, &again));
    assert_int_equal(keel_buffer_size(again), 24);
    keel_buffer_release(again);
    keel_buffer_release(buffer);
    keel_device_release(device);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_legacy),
        cmocka_unit_test(test_versioned),
        cmocka_unit_test(test_coexistence),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
