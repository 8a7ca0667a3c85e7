// SPDX-License-Identifier: Apache-2.0
// Buffers: making them, what they say about themselves, subspans, addresses.
#include "suite/suite.h"

static keel_buffer_t *make(keel_buffer_options_t options)
{
    keel_buffer_t *buffer = NULL;
    TRY(keel_buffer_create(the_device(), &options, &buffer));
    OWN(buffer);
    return buffer;
}

static keel_status_t attempt(keel_buffer_options_t options)
{
    keel_buffer_t *buffer = NULL;
    keel_status_t status = keel_buffer_create(the_device(), &options, &buffer);
    keel_buffer_release(buffer);
    return status;
}

static keel_buffer_info_t info_of(keel_buffer_t *buffer)
{
    keel_buffer_info_t info;
    memset(&info, 0xee, sizeof info);
    keel_buffer_info(buffer, &info);
    return info;
}

TEST(buffer, sizes)
{
    static const uint64_t sizes[] = {0, 1, 2, 3, 63, 64, 65, 4095, 4096, 4097, 1 << 20};
    for (size_t i = 0; i < COUNT(sizes); i++) {
        row("%llu bytes", (unsigned long long)sizes[i]);
        keel_buffer_t *buffer = make((keel_buffer_options_t){.size = sizes[i]});
        CHECK_EQ(keel_buffer_size(buffer), sizes[i]);
        CHECK_EQ(info_of(buffer).size, sizes[i]);
    }
}

TEST(buffer, defaults)
{
    keel_buffer_info_t info = info_of(make((keel_buffer_options_t){.size = 100}));
    CHECK(info.memory & KEEL_MEMORY_DEVICE_VISIBLE);
    CHECK_EQ(info.access, KEEL_ACCESS_ALL);
    const uint32_t usage =
        KEEL_USAGE_TRANSFER | KEEL_USAGE_DISPATCH | KEEL_USAGE_COUNTS | KEEL_USAGE_MAP;
    CHECK_EQ(info.usage & usage, usage);
    CHECK_EQ(info.node, 0);
    CHECK_EQ(info.queue_ordered, false);
    CHECK_EQ(info.resident, true);
    CHECK_EQ(info.offset, 0);
}

TEST(buffer, root_is_itself)
{
    keel_buffer_t *buffer = make((keel_buffer_options_t){.size = 100});
    CHECK(info_of(buffer).root == buffer);
}

// What it gets may be more than what was asked for, never less.
TEST(buffer, gets_what_was_asked)
{
    const keel_caps_t *caps = the_caps();
    static const uint32_t usages[] = {KEEL_USAGE_TRANSFER, KEEL_USAGE_DISPATCH,
                                      KEEL_USAGE_TRANSFER | KEEL_USAGE_COUNTS};
    for (size_t t = 0; t < COUNT(caps->memory_types) && caps->memory_types[t]; t++) {
        for (size_t u = 0; u < COUNT(usages); u++) {
            row("memory 0x%x usage 0x%x", caps->memory_types[t], usages[u]);
            keel_buffer_info_t info = info_of(make((keel_buffer_options_t){
                .size = 256, .memory = caps->memory_types[t], .usage = usages[u]}));
            CHECK_EQ(info.memory & caps->memory_types[t], caps->memory_types[t]);
            CHECK_EQ(info.usage & usages[u], usages[u]);
        }
    }
}

TEST(buffer, memory_that_is_not_there)
{
    uint32_t all = KEEL_MEMORY_DEVICE_LOCAL | KEEL_MEMORY_DEVICE_VISIBLE |
                   KEEL_MEMORY_HOST_VISIBLE | KEEL_MEMORY_HOST_COHERENT | KEEL_MEMORY_HOST_CACHED;
    const keel_caps_t *caps = the_caps();
    bool there = false;
    for (size_t t = 0; t < COUNT(caps->memory_types) && caps->memory_types[t]; t++) {
        there |= caps->memory_types[t] == all;
    }
    keel_status_t status = attempt((keel_buffer_options_t){.size = 16, .memory = all});
    if (there) {
        TRY(status);
    } else {
        FAILS_SAYING(KEEL_UNSUPPORTED, "memory", status);
    }
}

TEST(buffer, access_is_kept)
{
    CHECK_EQ(info_of(make((keel_buffer_options_t){.size = 4, .access = KEEL_ACCESS_READ})).access,
             KEEL_ACCESS_READ);
    CHECK_EQ(info_of(make((keel_buffer_options_t){.size = 4, .access = KEEL_ACCESS_WRITE})).access,
             KEEL_ACCESS_WRITE);
}

TEST(buffer, create_bad_arguments)
{
    keel_buffer_t *buffer = NULL;
    keel_buffer_options_t options = {.size = 64};
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "device", keel_buffer_create(NULL, &options, &buffer));
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "options", keel_buffer_create(the_device(), NULL, &buffer));
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "buffer", keel_buffer_create(the_device(), &options, NULL));
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "memory",
                 attempt((keel_buffer_options_t){.size = 64, .memory = 1u << 20}));
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "usage",
                 attempt((keel_buffer_options_t){.size = 64, .usage = 1u << 20}));
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "access",
                 attempt((keel_buffer_options_t){.size = 64, .access = 4}));
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "alignment",
                 attempt((keel_buffer_options_t){.size = 64, .alignment = 48}));
    FAILS_SAYING(KEEL_OUT_OF_RANGE, "node",
                 attempt((keel_buffer_options_t){.size = 64, .node = the_caps()->nodes}));
    CHECK(buffer == NULL);
}

TEST(buffer, too_large)
{
    FAILS_SAYING(KEEL_OUT_OF_RANGE, "size", attempt((keel_buffer_options_t){.size = UINT64_MAX}));
    if (the_caps()->max_buffer_size < UINT64_MAX) {
        FAILS(KEEL_OUT_OF_RANGE,
              attempt((keel_buffer_options_t){.size = the_caps()->max_buffer_size + 1}));
    }
}

TEST(buffer, alignment)
{
    static const uint64_t alignments[] = {1, 16, 64, 256, 4096, 65536, 1 << 21};
    for (size_t i = 0; i < COUNT(alignments); i++) {
        row("alignment %llu", (unsigned long long)alignments[i]);
        uint64_t address = 1;
        TRY(keel_buffer_address(
            make((keel_buffer_options_t){.size = 100, .alignment = alignments[i]}), &address));
        CHECK_EQ(address % alignments[i], 0);
        CHECK_EQ(address % the_caps()->buffer_alignment, 0);
    }
}

TEST(buffer, addresses_differ)
{
    uint64_t addresses[8];
    for (size_t i = 0; i < COUNT(addresses); i++) {
        TRY(keel_buffer_address(make((keel_buffer_options_t){.size = 100}), &addresses[i]));
        CHECK(addresses[i] != 0);
        for (size_t j = 0; j < i; j++) {
            CHECK(addresses[i] >= addresses[j] + 100 || addresses[j] >= addresses[i] + 100);
        }
    }
}

TEST(buffer, name_is_copied)
{
    char name[] = "activations";
    keel_buffer_t *buffer =
        make((keel_buffer_options_t){.size = 16, .access = KEEL_ACCESS_READ, .name = name});
    memset(name, 'x', sizeof name - 1);
    FAILS_SAYING(KEEL_PERMISSION_DENIED, "activations",
                 keel_queue_fill(the_queue(), KEEL_NO_WAITS, keel_whole(buffer), 0, 1, NULL));
}

TEST(buffer, subspan)
{
    keel_buffer_t *buffer = make((keel_buffer_options_t){.size = 100});
    keel_buffer_t *part = new_subspan(buffer, 20, 50), *inner = new_subspan(part, 5, KEEL_WHOLE);
    CHECK_EQ(keel_buffer_size(part), 50);
    CHECK_EQ(info_of(part).offset, 20);
    CHECK(info_of(part).root == buffer);
    CHECK_EQ(keel_buffer_size(inner), 45);
    CHECK_EQ(info_of(inner).offset, 25);
    CHECK(info_of(inner).root == buffer);
    CHECK_EQ(info_of(inner).resident, true);
    CHECK_EQ(info_of(inner).memory, info_of(buffer).memory);
    uint64_t whole, sub;
    TRY(keel_buffer_address(buffer, &whole));
    TRY(keel_buffer_address(inner, &sub));
    CHECK_EQ(sub, whole + 25);
}

TEST(buffer, subspan_of_nothing)
{
    keel_buffer_t *buffer = make((keel_buffer_options_t){.size = 100});
    CHECK_EQ(keel_buffer_size(new_subspan(buffer, 100, 0)), 0);
    CHECK_EQ(keel_buffer_size(new_subspan(buffer, 100, KEEL_WHOLE)), 0);
    CHECK_EQ(keel_buffer_size(new_subspan(buffer, 0, KEEL_WHOLE)), 100);
}

TEST(buffer, subspan_out_of_range)
{
    static const uint64_t rows[][2] = {{0, 101},          {101, 0},
                                       {101, KEEL_WHOLE}, {60, 41},
                                       {UINT64_MAX, 1},   {50, UINT64_MAX - 10},
                                       {100, 1},          {UINT64_MAX, KEEL_WHOLE}};
    keel_buffer_t *buffer = make((keel_buffer_options_t){.size = 100}), *part = NULL;
    for (size_t i = 0; i < COUNT(rows); i++) {
        row("offset %llu length %llu", (unsigned long long)rows[i][0],
            (unsigned long long)rows[i][1]);
        FAILS(KEEL_OUT_OF_RANGE, keel_buffer_subspan(buffer, rows[i][0], rows[i][1], &part));
        CHECK(part == NULL);
    }
    keel_buffer_t *inner = new_subspan(buffer, 90, 10);
    FAILS(KEEL_OUT_OF_RANGE, keel_buffer_subspan(inner, 0, 11, &part));
}

// An error of a range says which buffer it is about.
TEST(buffer, range_errors_name_the_buffer)
{
    keel_buffer_t *named = make((keel_buffer_options_t){.size = 100, .name = "weights"});
    keel_buffer_t *nameless = make((keel_buffer_options_t){.size = 100}), *part = NULL;
    keel_queue_t *q = the_queue();
    const char *name = "'weights' of 100 bytes", *size = "unnamed buffer of 100 bytes";
    FAILS_SAYING(KEEL_OUT_OF_RANGE, name, keel_buffer_subspan(named, 101, 0, &part));
    FAILS_SAYING(KEEL_OUT_OF_RANGE, name, keel_buffer_subspan(named, 60, 41, &part));
    FAILS_SAYING(KEEL_OUT_OF_RANGE, size, keel_buffer_subspan(nameless, 60, 41, &part));
    FAILS_SAYING(KEEL_OUT_OF_RANGE, name,
                 keel_queue_fill(q, KEEL_NO_WAITS, keel_span(named, 99, 4), 0, 1, NULL));
    FAILS_SAYING(KEEL_OUT_OF_RANGE, size,
                 keel_queue_fill(q, KEEL_NO_WAITS, keel_span(nameless, 104, 0), 0, 1, NULL));
}

TEST(buffer, subspan_bad_arguments)
{
    keel_buffer_t *part = NULL;
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "buffer", keel_buffer_subspan(NULL, 0, 1, &part));
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "subspan", keel_buffer_subspan(new_buffer(16), 0, 1, NULL));
}

TEST(buffer, subspan_keeps_the_memory)
{
    keel_buffer_t *buffer = new_buffer_of("0123456789", 10);
    keel_buffer_t *inner = new_subspan(new_subspan(buffer, 2, 8), 1, 4);
    drop(buffer);
    check_bytes(inner, 0, "3456", 4);
}

TEST(buffer, address_bad_arguments)
{
    uint64_t address;
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "buffer", keel_buffer_address(NULL, &address));
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "address", keel_buffer_address(new_buffer(4), NULL));
}

TEST(buffer, retain_and_release)
{
    keel_buffer_t *buffer = new_buffer_of("abcd", 4);
    CHECK(keel_buffer_retain(buffer) == buffer);
    keel_buffer_release(buffer);
    check_bytes(buffer, 0, "abcd", 4);
    keel_buffer_release(NULL);
}

TEST(buffer, many)
{
    enum { N = 1000 };
    keel_buffer_t *buffers[N];
    for (uint32_t i = 0; i < few(N); i++) {
        buffers[i] = make((keel_buffer_options_t){.size = 1 + i});
        buffer_put(buffers[i], i, &(uint8_t){(uint8_t)i}, 1);
    }
    for (uint32_t i = 0; i < few(N); i++) {
        uint8_t byte;
        buffer_get(buffers[i], i, &byte, 1);
        CHECK_EQ(byte, (uint8_t)i);
    }
}

static void make_and_release(void *user)
{
    for (size_t i = 0; i < few(1600); i++) {
        keel_buffer_options_t options = {.size = 1 + random_below(10000)};
        keel_buffer_t *buffer = NULL;
        TRY(keel_buffer_create(the_device(), &options, &buffer));
        keel_buffer_release(buffer);
    }
}

TEST(buffer, made_by_many_threads)
{
    keel_memory_stats_t before, after;
    TRY(keel_device_memory(the_device(), &before));
    thread_t *threads[4];
    for (int i = 0; i < 4; i++) threads[i] = thread_start(make_and_release, NULL);
    for (int i = 0; i < 4; i++) thread_join(threads[i]);
    TRY(keel_device_memory(the_device(), &after));
    CHECK_EQ(after.used, before.used);
    CHECK_EQ(after.buffers, before.buffers);
}
