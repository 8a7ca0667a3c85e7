// SPDX-License-Identifier: Apache-2.0
// Tensors in and out.
#include "suite/suite.h"

#define TENSORS .needs = KEEL_CAP_DLPACK

static const DLDataType f32 = {2, 32, 1};

static DLManagedTensorVersioned *to_tensor(keel_buffer_t *buffer, const keel_tensor_t *tensor)
{
    DLManagedTensorVersioned *managed = NULL;
    TRY(keel_buffer_to_dlpack(buffer, tensor, &managed));
    CHECK(managed);
    return managed;
}

enum { METAL = 8 }; // of DLDevice: the data is an object

// That a tensor begins `offset` bytes behind the begin of a buffer.
static void check_begins(const DLTensor *tensor, keel_buffer_t *buffer, uint64_t offset)
{
    bool object = tensor->device.device_type == METAL;
    keel_external_buffer_t external = {.kind =
                                           object ? KEEL_EXTERNAL_NATIVE : KEEL_EXTERNAL_DEVICE};
    TRY(keel_buffer_export(buffer, &external));
    if (object) {
        CHECK(tensor->data == external.handle.object);
        CHECK_EQ(tensor->byte_offset, external.offset + offset);
    } else {
        CHECK_EQ((uintptr_t)tensor->data + tensor->byte_offset, external.handle.device + offset);
    }
}

TEST(dlpack, out, TENSORS)
{
    keel_buffer_t *x = new_buffer(4 * 6);
    const int64_t shape[] = {2, 3};
    keel_tensor_t tensor = {.type = f32, .rank = 2, .shape = shape};
    DLManagedTensorVersioned *m = to_tensor(x, &tensor);
    DLTensor t = m->dl_tensor;
    int64_t dims[] = {t.shape[0], t.shape[1]};
    uint32_t major = m->version.major;
    uint64_t flags = m->flags;
    m->deleter(m);
    check_begins(&t, x, 0);
    CHECK_EQ(t.ndim, 2);
    CHECK_EQ(dims[0], 2);
    CHECK_EQ(dims[1], 3);
    CHECK_EQ(t.dtype.code, 2);
    CHECK_EQ(t.dtype.bits, 32);
    CHECK_EQ(t.dtype.lanes, 1);
    CHECK_EQ(major, 1);
    CHECK_EQ(flags & 1, 0);
}

static int type_of(uint32_t memory)
{
    const int64_t shape[] = {16};
    keel_tensor_t tensor = {.type = f32, .rank = 1, .shape = shape};
    keel_buffer_options_t options = {.size = 64, .memory = memory};
    keel_buffer_t *x = NULL;
    TRY(keel_buffer_create(the_device(), &options, &x));
    OWN(x);
    DLManagedTensorVersioned *m = to_tensor(x, &tensor);
    int type = (int)m->dl_tensor.device.device_type;
    m->deleter(m);
    return type;
}

// Frameworks know the device by DLPack's numbers: kDLCPU, kDLCUDA, kDLMetal, kDLROCM, and those of
// memory of the host that the vendor's library knows.
TEST(dlpack, types, TENSORS)
{
    static const struct {
        const char *driver;
        int local, host;
    } types[] = {
        {"cpu", 1, 1}, {"cuda", 2, 3}, {"metal", 8, 8}, {"hip", 10, 11}, {"amdgpu", 10, 11}};
    for (size_t i = 0; i < COUNT(types); i++) {
        if (strcmp(the_driver(), types[i].driver) != 0) continue;
        CHECK_EQ(type_of(KEEL_MEMORY_DEVICE_LOCAL), types[i].local);
        CHECK_EQ(type_of(KEEL_MEMORY_HOST_VISIBLE), types[i].host);
    }
}

TEST(dlpack, out_legacy, TENSORS)
{
    keel_buffer_t *x = new_buffer(64);
    const int64_t shape[] = {16};
    keel_tensor_t tensor = {.type = f32, .rank = 1, .shape = shape};
    DLManagedTensor *m = NULL;
    TRY(keel_buffer_to_dlpack0(x, &tensor, &m));
    DLTensor t = m->dl_tensor;
    int64_t dim = t.shape[0];
    m->deleter(m);
    check_begins(&t, x, 0);
    CHECK_EQ(t.ndim, 1);
    CHECK_EQ(dim, 16);
}

// The tensor keeps the buffer, and its shape is a copy.
TEST(dlpack, out_retains, TENSORS)
{
    keel_buffer_t *x = new_host_buffer(8);
    int64_t shape[] = {8};
    TRY(keel_buffer_write(x, 0, "abcdefgh", 8));
    keel_tensor_t tensor = {.type = {1, 8, 1}, .rank = 1, .shape = shape};
    DLManagedTensorVersioned *m = to_tensor(x, &tensor);
    keel_live_t live;
    keel_live_objects(&live);
    int64_t buffers = live.buffers;
    drop(x);
    shape[0] = 0;
    keel_live_objects(&live);
    bool kept = live.buffers == buffers && m->dl_tensor.shape[0] == 8;
    bool same = m->dl_tensor.device.device_type == METAL ||
                memcmp((char *)m->dl_tensor.data + m->dl_tensor.byte_offset, "abcdefgh", 8) == 0;
    m->deleter(m);
    keel_live_objects(&live);
    CHECK(kept);
    CHECK(same);
    CHECK_EQ(live.buffers, buffers - 1);
}

TEST(dlpack, out_with_strides_and_offset, TENSORS)
{
    keel_buffer_t *x = new_buffer(256);
    const int64_t shape[] = {4, 3}, strides[] = {8, 2};
    keel_tensor_t tensor = {
        .type = f32, .rank = 2, .shape = shape, .strides = strides, .offset = 16};
    DLManagedTensorVersioned *m = to_tensor(x, &tensor);
    DLTensor t = m->dl_tensor;
    bool strided = t.strides && t.strides[0] == 8 && t.strides[1] == 2;
    m->deleter(m);
    CHECK(strided);
    check_begins(&t, x, 16);
}

TEST(dlpack, out_of_a_subspan, TENSORS)
{
    keel_buffer_t *part = new_subspan(new_buffer(256), 64, 64);
    const int64_t shape[] = {16};
    keel_tensor_t tensor = {.type = f32, .rank = 1, .shape = shape};
    DLManagedTensorVersioned *m = to_tensor(part, &tensor);
    DLTensor t = m->dl_tensor;
    m->deleter(m);
    check_begins(&t, part, 0);
    const int64_t more[] = {17};
    tensor.shape = more;
    FAILS(KEEL_OUT_OF_RANGE, keel_buffer_to_dlpack(part, &tensor, &m));
}

TEST(dlpack, out_scalar_and_empty, TENSORS)
{
    keel_buffer_t *x = new_buffer(4);
    keel_tensor_t scalar = {.type = f32, .rank = 0};
    DLManagedTensorVersioned *m = to_tensor(x, &scalar);
    int rank = m->dl_tensor.ndim;
    m->deleter(m);
    CHECK_EQ(rank, 0);
    const int64_t shape[] = {5, 0, 7};
    keel_tensor_t empty = {.type = f32, .rank = 3, .shape = shape};
    m = to_tensor(x, &empty);
    rank = m->dl_tensor.ndim;
    m->deleter(m);
    CHECK_EQ(rank, 3);
}

TEST(dlpack, out_that_does_not_fit, TENSORS)
{
    keel_buffer_t *x = new_buffer(64);
    const struct {
        DLDataType type;
        int64_t shape[2], strides[2];
        uint64_t offset;
        bool strided;
    } rows[] = {
        {{2, 32, 1}, {4, 5}, {0, 0}, 0, false},
        {{2, 64, 1}, {3, 3}, {0, 0}, 0, false},
        {{2, 32, 4}, {5, 1}, {0, 0}, 0, false},
        {{2, 32, 1}, {4, 4}, {0, 0}, 4, false},
        {{2, 32, 1}, {2, 2}, {15, 1}, 0, true},
        {{1, 8, 1}, {INT64_MAX, 2}, {0, 0}, 0, false},
        {{1, 8, 1}, {INT64_C(1) << 40, INT64_C(1) << 40}, {0, 0}, 0, false},
        {{1, 8, 1}, {2, 2}, {INT64_MAX, INT64_MAX}, 0, true},
        {{1, 8, 1}, {1, 1}, {0, 0}, 65, false},
        {{1, 8, 1}, {1, 1}, {0, 0}, UINT64_MAX, false},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        row("row %zu", i);
        keel_tensor_t tensor = {.type = rows[i].type,
                                .rank = 2,
                                .shape = rows[i].shape,
                                .strides = rows[i].strided ? rows[i].strides : NULL,
                                .offset = rows[i].offset};
        DLManagedTensorVersioned *m = NULL;
        DLManagedTensor *m0 = NULL;
        FAILS(KEEL_OUT_OF_RANGE, keel_buffer_to_dlpack(x, &tensor, &m));
        FAILS(KEEL_OUT_OF_RANGE, keel_buffer_to_dlpack0(x, &tensor, &m0));
        CHECK(m == NULL && m0 == NULL);
    }
}

TEST(dlpack, out_bad_arguments, TENSORS)
{
    keel_buffer_t *x = new_buffer(64);
    const int64_t shape[] = {2}, negative[] = {-1};
    keel_tensor_t good = {.type = f32, .rank = 1, .shape = shape}, bad = good;
    DLManagedTensorVersioned *m = NULL;
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "buffer", keel_buffer_to_dlpack(NULL, &good, &m));
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "tensor", keel_buffer_to_dlpack(x, NULL, &m));
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "managed", keel_buffer_to_dlpack(x, &good, NULL));
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "managed", keel_buffer_to_dlpack0(x, &good, NULL));
    bad.rank = KEEL_DLPACK_MAX_DIMS + 1;
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "rank", keel_buffer_to_dlpack(x, &bad, &m));
    bad.rank = -1;
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "rank", keel_buffer_to_dlpack(x, &bad, &m));
    bad = good;
    bad.shape = NULL;
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "shape", keel_buffer_to_dlpack(x, &bad, &m));
    bad.shape = negative;
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "shape", keel_buffer_to_dlpack(x, &bad, &m));
    bad = good;
    bad.strides = negative;
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "strides", keel_buffer_to_dlpack(x, &bad, &m));
    bad = good;
    bad.type.bits = 0;
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "type", keel_buffer_to_dlpack(x, &bad, &m));
    bad = good;
    bad.type.lanes = 0;
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "type", keel_buffer_to_dlpack(x, &bad, &m));
}

TEST(dlpack, out_read_only, TENSORS)
{
    keel_buffer_options_t options = {.size = 64, .access = KEEL_ACCESS_READ};
    keel_buffer_t *x = NULL;
    TRY(keel_buffer_create(the_device(), &options, &x));
    OWN(x);
    const int64_t shape[] = {16};
    keel_tensor_t tensor = {.type = f32, .rank = 1, .shape = shape};
    DLManagedTensorVersioned *m = to_tensor(x, &tensor);
    uint64_t flags = m->flags;
    m->deleter(m);
    CHECK_EQ(flags & 1, 1);
    DLManagedTensor *m0 = NULL;
    FAILS(KEEL_PERMISSION_DENIED, keel_buffer_to_dlpack0(x, &tensor, &m0));
}

TEST(dlpack, out_without_memory, .needs = KEEL_CAP_DLPACK | KEEL_CAP_QUEUE_ALLOCA)
{
    keel_buffer_t *x = new_reserved(new_pool(0, 0), 64);
    const int64_t shape[] = {16};
    keel_tensor_t tensor = {.type = f32, .rank = 1, .shape = shape};
    DLManagedTensorVersioned *m = NULL;
    FAILS(KEEL_FAILED_PRECONDITION, keel_buffer_to_dlpack(x, &tensor, &m));
}

// A tensor of another library.
typedef struct foreign_t {
    DLManagedTensorVersioned tensor;
    DLManagedTensor legacy;
    int64_t shape[KEEL_DLPACK_MAX_DIMS], strides[KEEL_DLPACK_MAX_DIMS];
    atomic_int deleted;
    float data[64];
} foreign_t;

static void foreign_delete(DLManagedTensorVersioned *self)
{
    atomic_fetch_add(&((foreign_t *)self->manager_ctx)->deleted, 1);
}

static void foreign_delete_legacy(DLManagedTensor *self)
{
    atomic_fetch_add(&((foreign_t *)self->manager_ctx)->deleted, 1);
}

// Where the memory of a foreign tensor is an object, another library made that.
static void object_make(foreign_t *foreign)
{
    DLTensor *tensor = &foreign->tensor.dl_tensor;
    keel_external_buffer_t memory = {
        .kind = KEEL_EXTERNAL_HOST, .handle.host = foreign->data, .size = sizeof foreign->data};
    keel_buffer_t *buffer = NULL;
    TRY(keel_buffer_import(the_device(), &memory, NULL, &buffer));
    OWN(buffer);
    memory = (keel_external_buffer_t){.kind = KEEL_EXTERNAL_NATIVE};
    TRY(keel_buffer_export(buffer, &memory));
    tensor->data = memory.handle.object;
    tensor->byte_offset = memory.offset;
}

// On the device under test, as far as DLPack knows it: taken from a tensor the device gave out.
static foreign_t *new_foreign(int64_t rows, int64_t columns)
{
    const int64_t one[] = {1};
    keel_tensor_t probe = {.type = {1, 8, 1}, .rank = 1, .shape = one};
    DLManagedTensorVersioned *m = to_tensor(new_host_buffer(4), &probe);
    DLDevice device = m->dl_tensor.device;
    m->deleter(m);
    foreign_t *foreign = scratch(sizeof *foreign);
    foreign->shape[0] = rows;
    foreign->shape[1] = columns;
    foreign->strides[0] = columns;
    foreign->strides[1] = 1;
    foreign->tensor = (DLManagedTensorVersioned){
        .version = {1, 0},
        .manager_ctx = foreign,
        .deleter = foreign_delete,
        .dl_tensor = {.data = foreign->data,
                      .device = device,
                      .ndim = 2,
                      .dtype = f32,
                      .shape = foreign->shape},
    };
    if (device.device_type == METAL) object_make(foreign);
    foreign->legacy = (DLManagedTensor){
        .dl_tensor = foreign->tensor.dl_tensor,
        .manager_ctx = foreign,
        .deleter = foreign_delete_legacy,
    };
    for (int i = 0; i < 64; i++) foreign->data[i] = (float)i;
    return foreign;
}

static keel_buffer_t *from_tensor(foreign_t *foreign)
{
    keel_buffer_t *buffer = NULL;
    TRY(keel_buffer_from_dlpack(the_device(), &foreign->tensor, &buffer));
    OWN(buffer);
    return buffer;
}

TEST(dlpack, in, .needs = KEEL_CAP_DLPACK | KEEL_CAP_EXECUTES)
{
    foreign_t *foreign = new_foreign(4, 8);
    keel_buffer_t *x = from_tensor(foreign), *y = new_buffer(128);
    CHECK_EQ(keel_buffer_size(x), 128);
    reach(submit(keel_op_copy(keel_whole(x), keel_whole(y))));
    check_bytes(y, 0, foreign->data, 128);
    reach(submit(keel_op_fill(keel_span(x, 4, 4), 0, 4)));
    CHECK(foreign->data[1] == 0.0f);
    drop(y);
    CHECK_EQ(atomic_load(&foreign->deleted), 0);
    drop(x);
    come_to(&foreign->deleted, 1);
}

// Host memory that the device does not know yet is imported as it is.
TEST(dlpack, in_from_the_host, .needs = KEEL_CAP_DLPACK | KEEL_CAP_IMPORT_HOST)
{
    foreign_t *foreign = new_foreign(4, 8);
    foreign->tensor.dl_tensor.device = (DLDevice){1, 0};
    foreign->tensor.dl_tensor.data = foreign->data;
    foreign->tensor.dl_tensor.byte_offset = 0;
    keel_buffer_t *x = from_tensor(foreign);
    check_bytes(x, 0, foreign->data, 128);
    drop(x);
    come_to(&foreign->deleted, 1);
}

TEST(dlpack, in_legacy, TENSORS)
{
    foreign_t *foreign = new_foreign(2, 2);
    keel_buffer_t *x = NULL;
    TRY(keel_buffer_from_dlpack0(the_device(), &foreign->legacy, &x));
    OWN(x);
    CHECK_EQ(keel_buffer_size(x), 16);
    drop(x);
    come_to(&foreign->deleted, 1);
}

TEST(dlpack, in_without_deleter, TENSORS)
{
    foreign_t *foreign = new_foreign(2, 2);
    foreign->tensor.deleter = NULL;
    drop(from_tensor(foreign));
}

TEST(dlpack, in_with_strides, TENSORS)
{
    foreign_t *foreign = new_foreign(3, 2);
    foreign->strides[0] = 10;
    foreign->strides[1] = 2;
    foreign->tensor.dl_tensor.strides = foreign->strides;
    foreign->tensor.dl_tensor.byte_offset += 8;
    keel_buffer_t *x = from_tensor(foreign);
    CHECK_EQ(keel_buffer_size(x), (2 * 10 + 1 * 2 + 1) * 4);
    check_bytes(x, 0, foreign->data + 2, 4);
}

TEST(dlpack, in_empty, TENSORS)
{
    foreign_t *foreign = new_foreign(0, 8);
    CHECK_EQ(keel_buffer_size(from_tensor(foreign)), 0);
}

TEST(dlpack, in_read_only, TENSORS)
{
    foreign_t *foreign = new_foreign(2, 2);
    foreign->tensor.flags = 1;
    keel_buffer_info_t info;
    keel_buffer_t *x = from_tensor(foreign);
    keel_buffer_info(x, &info);
    CHECK_EQ(info.access, KEEL_ACCESS_READ);
    FAILS(KEEL_PERMISSION_DENIED,
          keel_queue_fill(the_queue(), KEEL_NO_WAITS, keel_whole(x), 0, 1, NULL));
}

static void refuse(keel_code_t code, const char *part, foreign_t *foreign)
{
    keel_buffer_t *x = NULL;
    FAILS_SAYING(code, part, keel_buffer_from_dlpack(the_device(), &foreign->tensor, &x));
    CHECK(x == NULL);
    CHECK_EQ(atomic_load(&foreign->deleted), 0); // it stays the caller's
}

TEST(dlpack, in_refused, TENSORS)
{
    foreign_t *foreign = new_foreign(2, 2);
    foreign->strides[0] = -2;
    foreign->tensor.dl_tensor.strides = foreign->strides;
    refuse(KEEL_INVALID_ARGUMENT, "stride", foreign);
    foreign = new_foreign(2, 2);
    foreign->tensor.version.major = 2;
    refuse(KEEL_UNSUPPORTED, "version", foreign);
    foreign = new_foreign(2, 2);
    foreign->tensor.dl_tensor.device.device_type = 99;
    refuse(KEEL_INVALID_ARGUMENT, "device", foreign);
    foreign = new_foreign(2, 2);
    foreign->shape[0] = -2;
    refuse(KEEL_INVALID_ARGUMENT, "shape", foreign);
    foreign = new_foreign(2, 2);
    foreign->tensor.dl_tensor.data = NULL;
    refuse(KEEL_INVALID_ARGUMENT, "data", foreign);
    foreign = new_foreign(INT64_MAX, INT64_MAX);
    refuse(KEEL_OUT_OF_RANGE, "", foreign);
}

TEST(dlpack, in_bad_arguments, TENSORS)
{
    foreign_t *foreign = new_foreign(2, 2);
    keel_buffer_t *x = NULL;
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "device",
                 keel_buffer_from_dlpack(NULL, &foreign->tensor, &x));
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "managed", keel_buffer_from_dlpack(the_device(), NULL, &x));
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "buffer",
                 keel_buffer_from_dlpack(the_device(), &foreign->tensor, NULL));
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "managed",
                 keel_buffer_from_dlpack0(the_device(), NULL, &x));
    CHECK_EQ(atomic_load(&foreign->deleted), 0);
}

// Out of one device and into another of the same kind.
TEST(dlpack, round_trip, TENSORS)
{
    keel_buffer_t *x = new_buffer_of("0123456789abcdef", 16);
    const int64_t shape[] = {4, 4};
    keel_tensor_t tensor = {.type = {1, 8, 1}, .rank = 2, .shape = shape};
    keel_device_t *other = open_device(the_uri());
    DLManagedTensorVersioned *m = to_tensor(x, &tensor);
    keel_buffer_t *y = NULL;
    keel_status_t status = keel_buffer_from_dlpack(other, m, &y);
    if (status) m->deleter(m);
    TRY(status);
    OWN(y);
    drop(x);
    char bytes[16];
    buffer_get_on(other, y, bytes, 16);
    CHECK_MEM(bytes, "0123456789abcdef", 16);
}
