// SPDX-License-Identifier: Apache-2.0
// The host's way into buffers: mapping, reading, writing, flushing.
#include "suite/suite.h"

static keel_buffer_t *host_buffer(uint64_t size, uint8_t byte)
{
    keel_buffer_options_t options = {
        .size = size, .memory = KEEL_MEMORY_HOST_VISIBLE | KEEL_MEMORY_DEVICE_VISIBLE};
    keel_buffer_t *buffer = NULL;
    TRY(keel_buffer_create(the_device(), &options, &buffer));
    OWN(buffer);
    void *pointer = NULL;
    TRY(keel_buffer_map(buffer, 0, KEEL_WHOLE, KEEL_ACCESS_WRITE, &pointer));
    memset(pointer, byte, size);
    TRY(keel_buffer_flush(buffer, 0, KEEL_WHOLE));
    keel_buffer_unmap(buffer);
    return buffer;
}

static uint8_t *map(keel_buffer_t *buffer, uint64_t offset, uint64_t length, uint32_t access)
{
    void *pointer = NULL;
    TRY(keel_buffer_map(buffer, offset, length, access, &pointer));
    CHECK(pointer);
    return pointer;
}

static void unmap(void *user)
{
    keel_buffer_unmap(user);
}

// Mapped until the test is over.
static uint8_t *map_whole(keel_buffer_t *buffer, uint32_t access)
{
    uint8_t *pointer = map(buffer, 0, KEEL_WHOLE, access);
    own_cleanup(unmap, buffer);
    return pointer;
}

// How much the caller's memory holds only the caller knows.
TEST(map, reads_and_writes_take_bytes)
{
    unsigned char bytes[16] = {0};
    keel_buffer_t *x = new_host_buffer(sizeof bytes);
    FAILS_SAYING(KEEL_OUT_OF_RANGE, "KEEL_WHOLE", keel_buffer_read(x, 0, bytes, KEEL_WHOLE));
    FAILS_SAYING(KEEL_OUT_OF_RANGE, "KEEL_WHOLE", keel_buffer_write(x, 0, bytes, KEEL_WHOLE));
    TRY(keel_buffer_write(x, 0, bytes, sizeof bytes));
}

TEST(map, write_and_read)
{
    keel_buffer_t *x = host_buffer(64, 0);
    uint8_t *p = map(x, 0, KEEL_WHOLE, KEEL_ACCESS_WRITE);
    for (int i = 0; i < 64; i++) p[i] = (uint8_t)i;
    TRY(keel_buffer_flush(x, 0, KEEL_WHOLE));
    keel_buffer_unmap(x);
    p = map(x, 0, 64, KEEL_ACCESS_READ);
    TRY(keel_buffer_invalidate(x, 0, 64));
    for (int i = 0; i < 64; i++) CHECK_EQ(p[i], i);
    keel_buffer_unmap(x);
}

TEST(map, range)
{
    keel_buffer_t *x = host_buffer(64, 1);
    uint8_t *p = map(x, 20, 10, KEEL_ACCESS_WRITE);
    memset(p, 2, 10);
    TRY(keel_buffer_flush(x, 20, 10));
    keel_buffer_unmap(x);
    check_filled(x, 0, 20, 1);
    check_filled(x, 20, 10, 2);
    check_filled(x, 30, 34, 1);
}

TEST(map, subspan_offsets_add_up)
{
    keel_buffer_t *x = host_buffer(64, 1), *part = new_subspan(x, 16, 32);
    uint8_t *p = map(part, 4, 8, KEEL_ACCESS_ALL);
    memset(p, 2, 8);
    TRY(keel_buffer_flush(part, 4, 8));
    keel_buffer_unmap(part);
    check_filled(x, 0, 20, 1);
    check_filled(x, 20, 8, 2);
    check_filled(x, 28, 36, 1);
}

TEST(map, several_times)
{
    keel_buffer_t *x = host_buffer(64, 0);
    uint8_t *a = map(x, 0, KEEL_WHOLE, KEEL_ACCESS_ALL), *b = map(x, 8, 8, KEEL_ACCESS_ALL);
    CHECK(b == a + 8);
    keel_buffer_unmap(x);
    a[8] = 7;
    CHECK_EQ(b[0], 7);
    keel_buffer_unmap(x);
}

TEST(map, device_sees_host_writes, .needs = KEEL_CAP_EXECUTES)
{
    keel_buffer_t *x = host_buffer(4096, 0), *y = new_buffer(4096);
    uint8_t *p = map_whole(x, KEEL_ACCESS_WRITE);
    for (uint8_t round = 1; round < 20; round++) {
        row("round %u", round);
        memset(p, round, 4096);
        TRY(keel_buffer_flush(x, 0, KEEL_WHOLE));
        reach(submit(keel_op_copy(keel_whole(x), keel_whole(y))));
        check_filled(y, 0, 4096, round);
    }
}

TEST(map, host_sees_device_writes, .needs = KEEL_CAP_EXECUTES)
{
    keel_buffer_t *x = host_buffer(4096, 0);
    uint8_t *p = map_whole(x, KEEL_ACCESS_READ);
    for (uint8_t round = 1; round < 20; round++) {
        row("round %u", round);
        reach(submit(keel_op_fill(keel_whole(x), round, 1)));
        TRY(keel_buffer_invalidate(x, 0, KEEL_WHOLE));
        for (int i = 0; i < 4096; i++) CHECK_EQ(p[i], round);
    }
}

TEST(map, nothing)
{
    keel_buffer_t *x = host_buffer(16, 1), *none = host_buffer(0, 0);
    void *p = NULL;
    TRY(keel_buffer_map(x, 16, 0, KEEL_ACCESS_READ, &p));
    keel_buffer_unmap(x);
    TRY(keel_buffer_map(none, 0, KEEL_WHOLE, KEEL_ACCESS_ALL, &p));
    keel_buffer_unmap(none);
    TRY(keel_buffer_flush(none, 0, 0));
    TRY(keel_buffer_read(none, 0, NULL, 0));
    TRY(keel_buffer_write(none, 0, NULL, 0));
}

TEST(map, bad_ranges)
{
    static const uint64_t rows[][2] = {{0, 65},         {65, 0}, {65, KEEL_WHOLE},   {40, 25},
                                       {UINT64_MAX, 2}, {64, 1}, {2, UINT64_MAX - 1}};
    keel_buffer_t *x = host_buffer(64, 0);
    char data[80];
    for (size_t i = 0; i < COUNT(rows); i++) {
        void *p = NULL;
        uint64_t offset = rows[i][0], length = rows[i][1];
        row("offset %llu length %llu", (unsigned long long)offset, (unsigned long long)length);
        FAILS(KEEL_OUT_OF_RANGE, keel_buffer_map(x, offset, length, KEEL_ACCESS_READ, &p));
        CHECK(p == NULL);
        FAILS(KEEL_OUT_OF_RANGE, keel_buffer_flush(x, offset, length));
        FAILS(KEEL_OUT_OF_RANGE, keel_buffer_invalidate(x, offset, length));
        FAILS(KEEL_OUT_OF_RANGE, keel_buffer_read(x, offset, data, length));
        FAILS(KEEL_OUT_OF_RANGE, keel_buffer_write(x, offset, data, length));
    }
}

TEST(map, bad_arguments)
{
    keel_buffer_t *x = host_buffer(64, 0);
    void *p = NULL;
    char data[8];
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "buffer",
                 keel_buffer_map(NULL, 0, 1, KEEL_ACCESS_READ, &p));
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "pointer",
                 keel_buffer_map(x, 0, 1, KEEL_ACCESS_READ, NULL));
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "access", keel_buffer_map(x, 0, 1, 8, &p));
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "KEEL_ACCESS_READ", keel_buffer_map(x, 0, 1, 0, &p));
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "buffer", keel_buffer_flush(NULL, 0, 1));
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "buffer", keel_buffer_invalidate(NULL, 0, 1));
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "buffer", keel_buffer_read(NULL, 0, data, 1));
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "target", keel_buffer_read(x, 0, NULL, 1));
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "buffer", keel_buffer_write(NULL, 0, data, 1));
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "source", keel_buffer_write(x, 0, NULL, 1));
}

TEST(map, access_is_respected)
{
    keel_buffer_options_t options = {.size = 16,
                                     .memory =
                                         KEEL_MEMORY_HOST_VISIBLE | KEEL_MEMORY_DEVICE_VISIBLE,
                                     .access = KEEL_ACCESS_READ};
    keel_buffer_t *r = NULL, *w = NULL;
    void *p = NULL;
    char byte = 0;
    TRY(keel_buffer_create(the_device(), &options, &r));
    OWN(r);
    options.access = KEEL_ACCESS_WRITE;
    TRY(keel_buffer_create(the_device(), &options, &w));
    OWN(w);
    FAILS(KEEL_PERMISSION_DENIED, keel_buffer_map(r, 0, 16, KEEL_ACCESS_WRITE, &p));
    FAILS(KEEL_PERMISSION_DENIED, keel_buffer_map(r, 0, 16, KEEL_ACCESS_ALL, &p));
    FAILS(KEEL_PERMISSION_DENIED, keel_buffer_map(w, 0, 16, KEEL_ACCESS_READ, &p));
    FAILS(KEEL_PERMISSION_DENIED, keel_buffer_write(r, 0, &byte, 1));
    FAILS(KEEL_PERMISSION_DENIED, keel_buffer_read(w, 0, &byte, 1));
    TRY(keel_buffer_map(r, 0, 16, KEEL_ACCESS_READ, &p));
    keel_buffer_unmap(r);
    TRY(keel_buffer_write(w, 0, &byte, 1));
}

TEST(map, needs_the_usage, .also = NEED_EXACT_USAGE)
{
    keel_buffer_options_t options = {
        .size = 16, .memory = KEEL_MEMORY_HOST_VISIBLE, .usage = KEEL_USAGE_TRANSFER};
    keel_buffer_t *x = NULL;
    void *p = NULL;
    char byte = 0;
    TRY(keel_buffer_create(the_device(), &options, &x));
    OWN(x);
    need_no_usage(x, KEEL_USAGE_MAP);
    FAILS_SAYING(KEEL_PERMISSION_DENIED, "MAP", keel_buffer_map(x, 0, 16, KEEL_ACCESS_READ, &p));
    FAILS(KEEL_PERMISSION_DENIED, keel_buffer_read(x, 0, &byte, 1));
}

TEST(map, read_and_write_ranges)
{
    static const uint64_t rows[][2] = {{0, 1}, {0, 64}, {63, 1}, {7, 33}, {32, 32}, {64, 0}};
    for (size_t i = 0; i < COUNT(rows); i++) {
        uint64_t offset = rows[i][0], length = rows[i][1];
        row("offset %llu length %llu", (unsigned long long)offset, (unsigned long long)length);
        keel_buffer_t *x = host_buffer(64, 0xee);
        uint8_t data[64], expected[64], back[66];
        for (int b = 0; b < 64; b++) data[b] = (uint8_t)(b + 1);
        memset(expected, 0xee, 64);
        memcpy(expected + offset, data, length);
        TRY(keel_buffer_write(x, offset, data, length));
        check_bytes(x, 0, expected, 64);
        memset(back, 0x77, sizeof back);
        TRY(keel_buffer_read(x, offset, back + 1, length));
        CHECK_MEM(back + 1, data, length);
        CHECK_EQ(back[0], 0x77);
        CHECK_EQ(back[1 + length], 0x77);
    }
}

TEST(map, read_and_write_through_subspans)
{
    keel_buffer_t *x = host_buffer(32, 0), *part = new_subspan(new_subspan(x, 8, 16), 4, 8);
    char back[4];
    TRY(keel_buffer_write(part, 2, "abcd", 4));
    TRY(keel_buffer_read(x, 14, back, 4));
    CHECK_MEM(back, "abcd", 4);
    FAILS(KEEL_OUT_OF_RANGE, keel_buffer_write(part, 5, "abcd", 4));
}

TEST(map, without_memory, .needs = KEEL_CAP_QUEUE_ALLOCA)
{
    keel_pool_options_t options = {.memory = KEEL_MEMORY_HOST_VISIBLE | KEEL_MEMORY_DEVICE_VISIBLE};
    keel_pool_t *pool = NULL;
    TRY(keel_pool_create(the_device(), &options, &pool));
    OWN(pool);
    keel_buffer_t *x = new_reserved(pool, 64);
    void *p = NULL;
    char byte = 0;
    FAILS(KEEL_FAILED_PRECONDITION, keel_buffer_map(x, 0, 64, KEEL_ACCESS_READ, &p));
    FAILS(KEEL_FAILED_PRECONDITION, keel_buffer_write(x, 0, &byte, 1));
    FAILS(KEEL_FAILED_PRECONDITION, keel_buffer_read(x, 0, &byte, 1));
}

TEST(map, needs_memory_of_the_host)
{
    const keel_caps_t *caps = keel_device_caps(the_device());
    for (int i = 0; i < 8 && caps->memory_types[i]; i++) {
        row("memory 0x%x", caps->memory_types[i]);
        keel_buffer_options_t options = {.size = 16, .memory = caps->memory_types[i]};
        keel_buffer_t *x = NULL;
        char byte = 0;
        TRY(keel_buffer_create(the_device(), &options, &x));
        OWN(x);
        if (caps->memory_types[i] & KEEL_MEMORY_HOST_VISIBLE) {
            TRY(keel_buffer_write(x, 0, &byte, 1));
            continue;
        }
        const char *way = "make it with KEEL_MEMORY_HOST_VISIBLE, or let a queue copy it";
        FAILS_SAYING(KEEL_PERMISSION_DENIED, way, keel_buffer_read(x, 0, &byte, 1));
        FAILS_SAYING(KEEL_PERMISSION_DENIED, way, keel_buffer_write(x, 0, &byte, 1));
    }
}
