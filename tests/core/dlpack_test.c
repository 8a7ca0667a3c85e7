// SPDX-License-Identifier: Apache-2.0
#include <keel/dlpack.h>

#include <keel/keel.h>
#include <stdio.h>
#include <string.h>

#include "unit.h"

static keel_device_t *device;
static keel_buffer_t *buffer; // of 1000 bytes

static const DLDataType f32 = {2, 32, 1}, u8 = {1, 8, 1}, f32x4 = {2, 32, 4};

typedef enum { DATA_NONE, DATA_SOME } data_t;

static unsigned char memory[4096];
static int deleted;

static void count_versioned(DLManagedTensorVersioned *self)
{
    assert_non_null(self);
    deleted++;
}

static void count_legacy(DLManagedTensor *self)
{
    assert_non_null(self);
    deleted++;
}

static int64_t live_buffers(void)
{
    keel_live_t live;
    keel_live_objects(&live);
    return live.buffers;
}

static void expect(keel_status_t status, keel_code_t code, const char *words)
{
    if (keel_status_code(status) != code || !strstr(keel_status_message(status), words)) {
        print_message("have: %s: %s\n", keel_code_name(keel_status_code(status)),
                      keel_status_message(status));
        print_message("want: %s: ... %s\n", keel_code_name(code), words);
        fail();
    }
    keel_status_release(status);
}

// The parts of a tensor that differ between tests.
typedef struct shape_t {
    DLDataType type;
    int32_t rank;
    int64_t shape[17];
    int64_t strides[17];
    bool strided;
} shape_t;

static void expect_to(const shape_t *shape, uint64_t offset, keel_code_t code, const char *words)
{
    keel_tensor_t tensor = {shape->type, shape->rank, shape->shape,
                            shape->strided ? shape->strides : NULL, offset};
    DLManagedTensorVersioned *managed = (void *)memory;
    DLManagedTensor *legacy = (void *)memory;
    expect(keel_buffer_to_dlpack(buffer, &tensor, &managed), code, words);
    expect(keel_buffer_to_dlpack0(buffer, &tensor, &legacy), code, words);
    assert_null(managed);
    assert_null(legacy);
    assert_int_equal(live_buffers(), 1);
}

static DLTensor tensor_of(shape_t *shape, data_t data, uint64_t byte_offset)
{
    return (DLTensor){
        .data = data == DATA_SOME ? memory : NULL,
        .device = {1, 0},
        .ndim = shape->rank,
        .dtype = shape->type,
        .shape = shape->shape,
        .strides = shape->strided ? shape->strides : NULL,
        .byte_offset = byte_offset,
    };
}

static void expect_from_tensor(DLTensor tensor, keel_code_t code, const char *words)
{
    DLManagedTensorVersioned versioned = {{1, 0}, NULL, count_versioned, 0, tensor};
    DLManagedTensor legacy = {tensor, NULL, count_legacy};
    keel_buffer_t *made = (void *)memory;
    deleted = 0;
    expect(keel_buffer_from_dlpack(device, &versioned, &made), code, words);
    assert_null(made);
    made = (void *)memory;
    expect(keel_buffer_from_dlpack0(device, &legacy, &made), code, words);
    assert_null(made);
    assert_int_equal(deleted, 0);
    assert_int_equal(live_buffers(), 1);
}

static void expect_from(const shape_t *shape, keel_code_t code, const char *words)
{
    shape_t copy = *shape;
    expect_from_tensor(tensor_of(&copy, DATA_SOME, 0), code, words);
}

// Both directions say the same about a bad shape.
static void test_bad_shapes(void **state)
{
    static const struct {
        shape_t shape;
        keel_code_t code;
        const char *words;
    } bad[] = {
        {{{2, 32, 1}, -1, {0}, {0}, false}, KEEL_INVALID_ARGUMENT, "is -1; it must be"},
        {{{2, 32, 1}, 17, {0}, {0}, false}, KEEL_INVALID_ARGUMENT, "is 17; it must be 0 to 16"},
        {{{2, 32, 1}, INT32_MIN, {0}, {0}, false}, KEEL_INVALID_ARGUMENT, "-2147483648"},
        {{{2, 32, 1}, 2, {3, -2}, {0}, false}, KEEL_INVALID_ARGUMENT, "shape[1] is -2"},
        {{{2, 32, 1}, 2, {2, 3}, {-3, 1}, true}, KEEL_INVALID_ARGUMENT, "strides[0] is -3"},
        {{{2, 32, 1}, 3, {0, 0, 2}, {0, 0, -9}, true}, KEEL_INVALID_ARGUMENT, "strides[2] is -9"},
        {{{2, 4, 1}, 1, {2}, {0}, false}, KEEL_INVALID_ARGUMENT, "4 bits in 1 lanes"},
        {{{2, 4, 3}, 1, {2}, {0}, false}, KEEL_INVALID_ARGUMENT, "4 bits in 3 lanes"},
        {{{6, 1, 1}, 1, {8}, {0}, false}, KEEL_INVALID_ARGUMENT, "1 bits"},
        {{{2, 0, 1}, 1, {2}, {0}, false}, KEEL_INVALID_ARGUMENT, "0 bits"},
        {{{2, 32, 0}, 1, {2}, {0}, false}, KEEL_INVALID_ARGUMENT, "0 lanes"},
        {{{1, 8, 1}, 2, {INT64_MAX, 2}, {0}, false}, KEEL_OUT_OF_RANGE, "shape[0]"},
        {{{1, 8, 1}, 4, {1, INT64_C(1) << 40, 1, INT64_C(1) << 40}, {0}, false},
         KEEL_OUT_OF_RANGE,
         "shape[1]"},
        {{{2, 64, 2}, 1, {INT64_MAX}, {0}, false}, KEEL_OUT_OF_RANGE, "shape[0]"},
        {{{1, 8, 1}, 2, {2, 3}, {1, INT64_MAX}, true}, KEEL_OUT_OF_RANGE, "bytes"},
        {{{1, 16, 1}, 2, {3, 2}, {INT64_MAX, 1}, true}, KEEL_OUT_OF_RANGE, "shape[0] is 3"},
        {{{1, 8, 1}, 3, {2, 2, 3}, {INT64_MAX, INT64_MAX, 1}, true}, KEEL_OUT_OF_RANGE, "bytes"},
    };
    for (unsigned i = 0; i < sizeof bad / sizeof *bad; i++) {
        expect_to(&bad[i].shape, 0, bad[i].code, bad[i].words);
        expect_from(&bad[i].shape, bad[i].code, bad[i].words);
    }
}

static void test_no_shape(void **state)
{
    keel_tensor_t tensor = {.type = f32, .rank = 1};
    DLManagedTensorVersioned *managed;
    expect(keel_buffer_to_dlpack(buffer, &tensor, &managed), KEEL_INVALID_ARGUMENT,
           "shape is NULL");
    expect_from_tensor((DLTensor){.data = memory, .device = {1, 0}, .ndim = 1, .dtype = f32},
                       KEEL_INVALID_ARGUMENT, "shape is NULL");
}

static void test_arguments(void **state)
{
    keel_tensor_t tensor = {.type = f32};
    DLManagedTensorVersioned *managed = NULL, from = {.version = {1, 0}};
    DLManagedTensor *legacy = NULL;
    keel_buffer_t *made = NULL;
    expect(keel_buffer_to_dlpack(NULL, &tensor, &managed), KEEL_INVALID_ARGUMENT, "buffer");
    expect(keel_buffer_to_dlpack(buffer, NULL, &managed), KEEL_INVALID_ARGUMENT, "tensor");
    expect(keel_buffer_to_dlpack(buffer, &tensor, NULL), KEEL_INVALID_ARGUMENT, "managed");
    expect(keel_buffer_to_dlpack0(NULL, &tensor, &legacy), KEEL_INVALID_ARGUMENT, "buffer");
    expect(keel_buffer_to_dlpack0(buffer, &tensor, NULL), KEEL_INVALID_ARGUMENT, "managed");
    expect(keel_buffer_from_dlpack(NULL, &from, &made), KEEL_INVALID_ARGUMENT, "device");
    expect(keel_buffer_from_dlpack(device, NULL, &made), KEEL_INVALID_ARGUMENT, "managed");
    expect(keel_buffer_from_dlpack(device, &from, NULL), KEEL_INVALID_ARGUMENT, "buffer");
    expect(keel_buffer_from_dlpack0(device, NULL, &made), KEEL_INVALID_ARGUMENT, "managed");
    for (uint32_t major = 0; major <= 3; major += major ? 1 : 2) {
        from.version = (DLPackVersion){major, 7};
        char words[32];
        snprintf(words, sizeof words, "version is %u.7", major);
        expect(keel_buffer_from_dlpack(device, &from, &made), KEEL_UNSUPPORTED, words);
    }
}

static void test_places(void **state)
{
    shape_t shape = {u8, 1, {4}, {0}, false};
    DLTensor tensor = tensor_of(&shape, DATA_SOME, 0);
    tensor.device = (DLDevice){2, 0};
    expect_from_tensor(tensor, KEEL_INVALID_ARGUMENT, "(2, 0)");
    tensor.device = (DLDevice){1, 3};
    expect_from_tensor(tensor, KEEL_INVALID_ARGUMENT,
                       "(1, 3) in DLPack's terms; device 'tensors' has (1, 0)");
    assert_int_equal(keel_device_caps(device)->dlpack[0].type, 1);

    keel_device_t *null;
    keel_buffer_t *made = NULL;
    assert_null(keel_device_open("null://", NULL, &null));
    DLManagedTensor legacy = {tensor, NULL, count_legacy};
    expect(keel_buffer_from_dlpack0(null, &legacy, &made), KEEL_UNSUPPORTED, "KEEL_CAP_DLPACK");
    keel_device_release(null);
}

static void test_too_large(void **state)
{
    expect_to(&(shape_t){u8, 1, {1001}, {0}, false}, 0, KEEL_OUT_OF_RANGE, "1001 bytes");
    expect_to(&(shape_t){u8, 1, {1000}, {0}, false}, 1, KEEL_OUT_OF_RANGE,
              "at offset 1, which reach beyond");
    expect_to(&(shape_t){f32, 2, {2, 2}, {249, 1}, true}, 0, KEEL_OUT_OF_RANGE, "1004 bytes");
    expect_to(&(shape_t){u8, 1, {0}, {0}, false}, 1001, KEEL_OUT_OF_RANGE, "1001");
    expect_to(&(shape_t){u8, 1, {1}, {0}, false}, UINT64_MAX, KEEL_OUT_OF_RANGE, "offset");
    shape_t shape = {u8, 1, {4}, {0}, false};
    expect_from_tensor(tensor_of(&shape, DATA_SOME, UINT64_MAX), KEEL_OUT_OF_RANGE, "byte_offset");
    expect_from_tensor(tensor_of(&shape, DATA_SOME, UINT64_MAX - (uintptr_t)memory - 2),
                       KEEL_OUT_OF_RANGE, "end of memory");
    expect_from_tensor(tensor_of(&shape, DATA_NONE, 0), KEEL_INVALID_ARGUMENT, "data is NULL");
}

static void test_to(void **state)
{
    int64_t shape[] = {2, 3, 5}, strides[] = {0, 7, 1}, compact[] = {15, 5, 1};
    unsigned char *data;
    assert_null(keel_buffer_map(buffer, 0, 1000, KEEL_ACCESS_READ, (void **)&data));
    for (int strided = 0; strided < 2; strided++) {
        keel_tensor_t tensor = {f32x4, 3, shape, strided ? strides : NULL, 12};
        DLManagedTensorVersioned *managed;
        DLManagedTensor *legacy;
        assert_null(keel_buffer_to_dlpack(buffer, &tensor, &managed));
        assert_null(keel_buffer_to_dlpack0(buffer, &tensor, &legacy));
        assert_int_equal(managed->version.major, 1);
        assert_int_equal(managed->flags, 0);
        const DLTensor *tensors[] = {&managed->dl_tensor, &legacy->dl_tensor};
        for (int i = 0; i < 2; i++) {
            assert_ptr_equal((unsigned char *)tensors[i]->data + tensors[i]->byte_offset,
                             data + 12);
            assert_int_equal(tensors[i]->device.device_type, 1);
            assert_int_equal(tensors[i]->device.device_id, 0);
            assert_int_equal(tensors[i]->ndim, 3);
            assert_memory_equal(&tensors[i]->dtype, &f32x4, sizeof f32x4);
            assert_memory_equal(tensors[i]->shape, shape, sizeof shape);
            assert_memory_equal(tensors[i]->strides, strided ? strides : compact, sizeof shape);
        }
        managed->deleter(managed);
        legacy->deleter(legacy);
    }
    keel_buffer_unmap(buffer);
}

// Shapes that just fit.
static void test_to_fits(void **state)
{
    static const shape_t good[] = {
        {{1, 8, 1}, 1, {1000}, {0}, false},
        {{2, 32, 1}, 0, {0}, {0}, false},
        {{1, 8, 1}, 1, {0}, {0}, false},
        {{1, 8, 1}, 3, {0, 1 << 20, 1 << 20}, {0}, false},
        {{1, 8, 1}, 2, {3, 0}, {INT64_MAX, INT64_MAX}, false},
        {{2, 64, 1}, 2, {1 << 30, 125}, {0, 1}, true},
        {{2, 64, 1}, 2, {1, 125}, {-1, 1}, true},
        {{2, 4, 2}, 1, {1000}, {0}, false},
        {{1, 8, 1}, 16, {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1000}, {0}, false},
    };
    for (unsigned i = 0; i < sizeof good / sizeof *good; i++) {
        keel_tensor_t tensor = {good[i].type, good[i].rank, good[i].shape,
                                good[i].strided ? good[i].strides : NULL, 0};
        DLManagedTensorVersioned *managed;
        assert_null(keel_buffer_to_dlpack(buffer, &tensor, &managed));
        managed->deleter(managed);
    }
}

static void test_access(void **state)
{
    static const int64_t shape[] = {4};
    keel_tensor_t tensor = {.type = u8, .rank = 1, .shape = shape};
    DLManagedTensorVersioned *managed;
    DLManagedTensor *legacy;
    keel_buffer_t *made;
    keel_buffer_options_t options = {.size = 8, .access = KEEL_ACCESS_READ};
    assert_null(keel_buffer_create(device, &options, &made));
    assert_null(keel_buffer_to_dlpack(made, &tensor, &managed));
    assert_int_equal(managed->flags, 1);
    expect(keel_buffer_to_dlpack0(made, &tensor, &legacy), KEEL_PERMISSION_DENIED,
           "KEEL_ACCESS_WRITE");
    keel_buffer_release(made);

    // Back in, it is still read only.
    assert_null(keel_buffer_from_dlpack(device, managed, &made));
    keel_buffer_info_t info;
    keel_buffer_info(made, &info);
    assert_int_equal(info.access, KEEL_ACCESS_READ);
    expect(keel_buffer_write(made, 0, "x", 1), KEEL_PERMISSION_DENIED, "");
    keel_buffer_release(made);

    options.access = KEEL_ACCESS_WRITE;
    assert_null(keel_buffer_create(device, &options, &made));
    expect(keel_buffer_to_dlpack(made, &tensor, &managed), KEEL_PERMISSION_DENIED,
           "KEEL_ACCESS_READ");
    keel_buffer_release(made);
}

static void test_not_resident(void **state)
{
    keel_buffer_t *made;
    keel_tensor_t tensor = {.type = u8};
    DLManagedTensorVersioned *managed;
    keel_buffer_options_t options = {.size = 8};
    assert_null(keel_buffer_reserve(keel_device_pool(device, 0), &options, &made));
    expect(keel_buffer_to_dlpack(made, &tensor, &managed), KEEL_FAILED_PRECONDITION, "no memory");
    keel_buffer_release(made);
}

static void test_from(void **state)
{
    shape_t shape = {f32, 2, {3, 4}, {10, 2}, true};
    DLManagedTensorVersioned versioned = {
        {1, 9}, NULL, count_versioned, 0, tensor_of(&shape, DATA_SOME, 20)};
    DLManagedTensor legacy = {versioned.dl_tensor, NULL, count_legacy};
    for (int i = 0; i < 2; i++) {
        keel_buffer_t *made, *part;
        unsigned char back[8];
        deleted = 0;
        assert_null(i ? keel_buffer_from_dlpack0(device, &legacy, &made)
                      : keel_buffer_from_dlpack(device, &versioned, &made));
        assert_int_equal(keel_buffer_size(made), (2 * 10 + 3 * 2 + 1) * 4);
        memset(memory + 20, 7 + i, 200);
        assert_null(keel_buffer_read(made, 100, back, 8));
        assert_int_equal(back[7], 7 + i);
        assert_null(keel_buffer_write(made, 0, "here", 4));
        assert_memory_equal(memory + 20, "here", 4);
        assert_null(keel_buffer_subspan(made, 4, 8, &part));
        keel_buffer_release(made);
        assert_int_equal(deleted, 0);
        keel_buffer_release(part);
        assert_int_equal(deleted, 1);
    }
}

static void test_from_empty(void **state)
{
    shape_t shape = {f32, 3, {4, 0, 2}, {0}, false};
    for (int i = 0; i < 2; i++) {
        DLManagedTensor legacy = {tensor_of(&shape, i ? DATA_SOME : DATA_NONE, 8), NULL,
                                  i ? count_legacy : NULL};
        keel_buffer_t *made;
        deleted = 0;
        assert_null(keel_buffer_from_dlpack0(device, &legacy, &made));
        assert_int_equal(keel_buffer_size(made), 0);
        keel_buffer_release(made);
        assert_int_equal(deleted, i);
    }
}

// Out and in again: the same memory, which lives until the last of all has let go.
static void test_round_trip(void **state)
{
    static const int64_t shape[] = {10, 10};
    keel_tensor_t tensor = {.type = u8, .rank = 2, .shape = shape, .offset = 100};
    keel_buffer_t *origin, *part, *copy;
    DLManagedTensorVersioned *managed;
    unsigned char byte = 0;
    keel_buffer_options_t options = {.size = 1000};
    assert_null(keel_buffer_create(device, &options, &origin));
    assert_null(keel_buffer_write(origin, 350, "\x55", 1));
    assert_null(keel_buffer_subspan(origin, 200, 300, &part));
    assert_null(keel_buffer_to_dlpack(part, &tensor, &managed));
    assert_null(keel_buffer_from_dlpack(device, managed, &copy));
    keel_buffer_release(part);
    keel_buffer_release(origin);
    assert_int_equal(keel_buffer_size(copy), 100);
    assert_null(keel_buffer_read(copy, 50, &byte, 1));
    assert_int_equal(byte, 0x55);
    keel_buffer_release(copy);
}

static int set_up(void **state)
{
    keel_device_options_t named = {.name = "tensors"};
    keel_buffer_options_t options = {.size = 1000};
    assert_null(keel_device_open("cpu://inline", &named, &device));
    assert_null(keel_buffer_create(device, &options, &buffer));
    return 0;
}

static int tear_down(void **state)
{
    keel_live_t live;
    keel_buffer_release(buffer);
    keel_device_release(device);
    keel_live_objects(&live);
    assert_int_equal(live.buffers, 0);
    assert_int_equal(live.devices, 0);
    assert_int_equal(live.statuses, 0);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bad_shapes),   cmocka_unit_test(test_no_shape),
        cmocka_unit_test(test_arguments),    cmocka_unit_test(test_places),
        cmocka_unit_test(test_too_large),    cmocka_unit_test(test_to),
        cmocka_unit_test(test_to_fits),      cmocka_unit_test(test_access),
        cmocka_unit_test(test_not_resident), cmocka_unit_test(test_from),
        cmocka_unit_test(test_from_empty),   cmocka_unit_test(test_round_trip),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
