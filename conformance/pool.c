// SPDX-License-Identifier: Apache-2.0
// Pools: limits, statistics, trimming, blocks.
#include "suite/suite.h"

#define POOLS .needs = KEEL_CAP_QUEUE_ALLOCA

static keel_pool_stats_t stats_of(keel_pool_t *pool)
{
    keel_pool_stats_t stats;
    memset(&stats, 0xee, sizeof stats);
    keel_pool_stats(pool, &stats);
    return stats;
}

// What the pool has got from the system; a lost device has nothing and is believed what it should.
static uint64_t reserved_by(keel_pool_t *pool, uint64_t expected)
{
    uint64_t reserved = stats_of(pool).reserved;
    return faulted() ? expected : reserved;
}

static keel_buffer_t *allocate(keel_pool_t *pool, uint64_t size)
{
    keel_buffer_t *buffer = new_reserved(pool, size);
    reach(submit(keel_op_alloca(buffer)));
    return buffer;
}

static void deallocate(keel_buffer_t *buffer)
{
    reach(submit(keel_op_dealloca(buffer)));
}

static keel_status_t attempt(keel_pool_options_t options)
{
    keel_pool_t *pool = NULL;
    keel_status_t status = keel_pool_create(the_device(), &options, &pool);
    keel_pool_release(pool);
    return status;
}

TEST(pool, create_bad_arguments, POOLS)
{
    keel_pool_t *pool = NULL;
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "device", keel_pool_create(NULL, NULL, &pool));
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "pool", keel_pool_create(the_device(), NULL, NULL));
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "memory",
                 attempt((keel_pool_options_t){.memory = 1u << 20}));
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "usage", attempt((keel_pool_options_t){.usage = 1u << 20}));
    FAILS_SAYING(KEEL_OUT_OF_RANGE, "node",
                 attempt((keel_pool_options_t){.node = the_caps()->nodes}));
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "full",
                 attempt((keel_pool_options_t){.full = (keel_pool_full_t)2}));
    CHECK(pool == NULL);
}

TEST(pool, starts_empty, POOLS)
{
    keel_pool_stats_t stats = stats_of(new_pool(1 << 20, 0));
    CHECK_EQ(stats.limit, 1 << 20);
    CHECK_EQ(stats.used, 0);
    CHECK_EQ(stats.peak, 0);
    CHECK_EQ(stats.buffers, 0);
    CHECK_EQ(stats.waiting, 0);
}

TEST(pool, default_limit_is_the_device, POOLS)
{
    keel_pool_t *pool = NULL;
    TRY(keel_pool_create(the_device(), NULL, &pool));
    OWN(pool);
    CHECK_GE(stats_of(pool).limit, 1 << 20);
    CHECK_GE(stats_of(keel_device_pool(the_device(), 0)).limit, 1 << 20);
}

TEST(pool, stats_follow, POOLS)
{
    keel_pool_t *pool = new_pool(1 << 20, 0);
    keel_buffer_t *a = allocate(pool, 1000), *b = allocate(pool, 5000);
    keel_pool_stats_t with = stats_of(pool);
    CHECK_EQ(with.buffers, 2);
    CHECK_GE(with.used, 6000);
    CHECK_LE(with.used, 16384);
    CHECK_GE(with.peak, with.used);
    CHECK_GE(with.reserved, with.used);
    deallocate(a);
    keel_pool_stats_t less = stats_of(pool);
    CHECK_EQ(less.buffers, 1);
    CHECK_LE(less.used, with.used - 1000);
    CHECK_EQ(less.peak, with.peak);
    deallocate(b);
    CHECK_EQ(stats_of(pool).used, 0);
    CHECK_EQ(stats_of(pool).buffers, 0);
    CHECK_EQ(stats_of(pool).peak, with.peak);
}

TEST(pool, reservation_takes_nothing, POOLS)
{
    keel_pool_t *pool = new_pool(1 << 20, 0);
    new_reserved(pool, 1000);
    CHECK_EQ(stats_of(pool).used, 0);
    CHECK_EQ(stats_of(pool).buffers, 0);
}

TEST(pool, limit_names_the_numbers, POOLS)
{
    keel_pool_t *pool = new_failing_pool(65536, 0);
    allocate(pool, 40960);
    keel_buffer_t *much = new_reserved(pool, 32768);
    keel_point_t failed = submit(keel_op_alloca(much));
    reach_failure_saying(failed, KEEL_RESOURCE_EXHAUSTED, "32768");
    reach_failure_saying(failed, KEEL_RESOURCE_EXHAUSTED, "40960");
    reach_failure_saying(failed, KEEL_RESOURCE_EXHAUSTED, "65536");
    keel_buffer_info_t info;
    keel_buffer_info(much, &info);
    CHECK_EQ(info.resident, false);
    allocate(pool, 16384); // what fits still fits
}

TEST(pool, limit_can_be_used_up, POOLS)
{
    keel_pool_t *pool = new_failing_pool(65536, 0);
    keel_buffer_t *all = allocate(pool, 65536);
    CHECK_EQ(stats_of(pool).used, 65536);
    reach_failure(submit(keel_op_alloca(new_reserved(pool, 1))), KEEL_RESOURCE_EXHAUSTED);
    deallocate(all);
    allocate(pool, 65536);
}

// The largest number stands for as much as there is, and the smallest for one granule.
TEST(pool, limit_extremes, POOLS)
{
    static const uint64_t limits[] = {1, 63, 64, UINT64_MAX - 64, UINT64_MAX - 63, UINT64_MAX};
    for (size_t i = 0; i < COUNT(limits); i++) {
        row("limit %llu", (unsigned long long)limits[i]);
        keel_pool_t *pool = new_pool(limits[i], 0);
        deallocate(allocate(pool, limits[i] <= 64 ? limits[i] : 100));
        CHECK_EQ(stats_of(pool).used, 0);
        CHECK_EQ(stats_of(pool).limit, limits[i]);
    }
}

TEST(pool, larger_than_the_limit, POOLS)
{
    keel_pool_options_t options = {.limit = 4096, .name = "narrow"};
    keel_pool_t *pool = NULL;
    keel_buffer_t *buffer = NULL;
    TRY(keel_pool_create(the_device(), &options, &pool));
    OWN(pool);
    keel_buffer_options_t size = {.size = 4097};
    FAILS_SAYING(KEEL_OUT_OF_RANGE, "4097", keel_buffer_reserve(pool, &size, &buffer));
    FAILS_SAYING(KEEL_OUT_OF_RANGE, "narrow", keel_buffer_reserve(pool, &size, &buffer));
    CHECK(buffer == NULL);
    deallocate(allocate(pool, 4096));
}

TEST(pool, memory_is_reused, POOLS)
{
    keel_pool_t *pool = new_pool(0, 0);
    uint64_t reserved = 0;
    for (int i = 0; i < 50; i++) {
        deallocate(allocate(pool, 10000));
        if (i == 0) reserved = stats_of(pool).reserved;
    }
    CHECK_EQ(reserved_by(pool, reserved), reserved);
}

// All of a pool can be had at once, whatever pieces it came in before.
TEST(pool, large_after_small, POOLS)
{
    enum { PART = 20 << 20 };
    keel_pool_t *pool = new_failing_pool(3 * PART, 0);
    keel_buffer_t *parts[3];
    for (int i = 0; i < 3; i++) parts[i] = allocate(pool, PART);
    for (int i = 0; i < 3; i++) deallocate(parts[i]);
    deallocate(allocate(pool, 3 * PART));
}

TEST(pool, memory_is_reused_across_sizes, POOLS)
{
    keel_pool_t *pool = new_pool(1 << 20, 0);
    for (uint64_t size = 64; size <= 1 << 20; size *= 2) {
        row("size %llu", (unsigned long long)size);
        deallocate(allocate(pool, size));
    }
    for (uint64_t size = 1 << 20; size >= 64; size /= 2) {
        row("size %llu, on the way down", (unsigned long long)size);
        deallocate(allocate(pool, size));
    }
}

TEST(pool, trim, POOLS)
{
    keel_pool_t *pool = new_pool(0, 0);
    keel_buffer_t *kept = allocate(pool, 4096), *gone = allocate(pool, 1 << 22);
    buffer_put(kept, 0, "keep", 4);
    deallocate(gone);
    uint64_t before = stats_of(pool).reserved;
    CHECK_GE(before, stats_of(pool).used);
    TRY(keel_pool_trim(pool, 0));
    CHECK_LE(stats_of(pool).reserved, before);
    CHECK_GE(stats_of(pool).reserved, stats_of(pool).used);
    check_bytes(kept, 0, "keep", 4);
    deallocate(kept);
    TRY(keel_pool_trim(pool, 0));
    CHECK_EQ(stats_of(pool).reserved, 0);
    allocate(pool, 4096);
}

TEST(pool, trim_keeps_what_it_is_told, POOLS)
{
    keel_pool_t *pool = new_pool(0, 0);
    deallocate(allocate(pool, 1 << 20));
    uint64_t before = stats_of(pool).reserved;
    TRY(keel_pool_trim(pool, UINT64_MAX));
    CHECK_EQ(reserved_by(pool, before), before);
    TRY(keel_pool_trim(pool, 1));
    CHECK_GE(reserved_by(pool, 1), 1);
}

TEST(pool, trim_gives_memory_back, POOLS)
{
    keel_memory_stats_t before, with, after;
    TRY(keel_device_memory(the_device(), &before));
    keel_pool_t *pool = new_pool(0, 0);
    deallocate(allocate(pool, 1 << 20));
    TRY(keel_device_memory(the_device(), &with));
    if (!faulted()) CHECK_GE(with.used, before.used + (1 << 20));
    TRY(keel_pool_trim(pool, 0));
    TRY(keel_device_memory(the_device(), &after));
    CHECK_EQ(after.used, before.used);
}

// What pools had counts for the peak of the device, also when it is asked only afterwards, and
// together with the buffers of that time.
TEST(pool, peak_of_the_device, POOLS)
{
    enum { SIZE = 8 << 20 };
    keel_memory_stats_t before, after;
    TRY(keel_device_memory(the_device(), &before));
    keel_pool_t *trimmed = new_pool(0, 0), *dropped = new_pool(0, 0);
    keel_buffer_t *plain = new_buffer(SIZE);
    deallocate(allocate(trimmed, SIZE));
    deallocate(allocate(dropped, SIZE));
    drop(plain);
    TRY(keel_pool_trim(trimmed, 0));
    drop(dropped);
    TRY(keel_device_memory(the_device(), &after));
    if (!faulted()) CHECK_GE(after.peak, before.used + 3 * (uint64_t)SIZE);
}

enum { LARGE = 40 << 20, PIECE = 32 << 20 }; // memory comes and goes in pieces of up to that

static keel_pool_t *new_threshold_pool(uint64_t threshold)
{
    keel_pool_options_t options = {.threshold = threshold};
    keel_pool_t *pool = NULL;
    TRY(keel_pool_create(the_device(), &options, &pool));
    OWN(pool);
    return pool;
}

// A pool with a threshold, after two large buffers came and went.
static keel_pool_t *new_used_pool(uint64_t threshold)
{
    keel_pool_t *pool = new_threshold_pool(threshold);
    keel_buffer_t *a = allocate(pool, LARGE), *b = allocate(pool, LARGE);
    CHECK_GE(reserved_by(pool, 2 * LARGE), 2 * LARGE);
    deallocate(a);
    deallocate(b);
    return pool;
}

static void check_returned(keel_pool_t *pool, uint64_t threshold)
{
    uint64_t start = keel_now_ns(), most = threshold + PIECE;
    // One that could not be asked is left as it is.
    while (stats_of(pool).reserved > most && !faulted() && keel_now_ns() - start < patience())
        sleep_ms(10);
    if (!faulted()) CHECK_LE(stats_of(pool).reserved, most);
}

TEST(pool, threshold_gives_memory_back, POOLS)
{
    keel_pool_t *pool = new_used_pool(1);
    check_returned(pool, 1);
    if (!starved()) sleep_ms(1500); // long after the last work, too
    keel_buffer_t *buffer = allocate(pool, 2 * LARGE);
    CHECK_GE(reserved_by(pool, 2 * LARGE), 2 * LARGE);
    deallocate(buffer);
    check_returned(pool, 1);
}

// Nor does the memory of a buffer that is released with it stay beyond the threshold.
TEST(pool, threshold_holds_without_deallocas, POOLS)
{
    keel_pool_t *pool = new_threshold_pool(1);
    drop(allocate(pool, LARGE));
    check_returned(pool, 1);
}

// Also while the device is at something else.
TEST(pool, threshold_holds_beside_work, .needs = KEEL_CAP_QUEUE_ALLOCA | KEEL_CAP_EXECUTES)
{
    keel_pool_t *pool = new_threshold_pool(1);
    keel_buffer_t *buffer = allocate(pool, LARGE), *words = new_buffer(16);
    uint64_t start = keel_now_ns();
    keel_point_t held = queue_hold(new_queue(0), words, 2000);
    deallocate(buffer);
    // A device that waits after every operation (`serial`) has nothing beside the kernel.
    bool overlaps = keel_now_ns() - start < UINT64_C(1000000000);
    while (stats_of(pool).reserved > PIECE && !ended(held)) sleep_ms(10);
    bool beside = !ended(held);
    if (overlaps && !faulted()) CHECK(beside);
    reach(submit(keel_op_fill(keel_span(words, 8, 4), 1, 1)));
    reach(held);
}

TEST(pool, threshold_keeps_what_is_below, POOLS)
{
    keel_pool_t *most = new_used_pool(UINT64_C(1) << 40), *some = new_used_pool(LARGE);
    check_returned(some, LARGE);
    CHECK_GE(reserved_by(most, 2 * LARGE), 2 * LARGE);
}

TEST(pool, trim_bad_arguments, POOLS)
{
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "pool", keel_pool_trim(NULL, 0));
}

TEST(pool, blocks, POOLS)
{
    keel_pool_t *pool = new_failing_pool(8 * 4096, 4096);
    keel_buffer_t *buffers[8];
    uint64_t addresses[8];
    for (size_t i = 0; i < 8; i++) {
        buffers[i] = allocate(pool, 1 + i * 500);
        TRY(keel_buffer_address(buffers[i], &addresses[i]));
        for (size_t j = 0; j < i; j++) {
            CHECK(addresses[i] >= addresses[j] + 4096 || addresses[j] >= addresses[i] + 4096);
        }
    }
    CHECK_EQ(stats_of(pool).used, 8 * 4096);
    reach_failure(submit(keel_op_alloca(new_reserved(pool, 1))), KEEL_RESOURCE_EXHAUSTED);
    // Blocks never fragment: any freed one serves any request.
    deallocate(buffers[3]);
    deallocate(buffers[6]);
    allocate(pool, 4096);
    allocate(pool, 4096);
}

TEST(pool, larger_than_a_block, POOLS)
{
    keel_pool_t *pool = new_pool(1 << 20, 4096);
    keel_buffer_options_t options = {.size = 4097};
    keel_buffer_t *buffer = NULL;
    FAILS_SAYING(KEEL_OUT_OF_RANGE, "block", keel_buffer_reserve(pool, &options, &buffer));
}

TEST(pool, memory_type_and_usage, POOLS)
{
    keel_pool_options_t options = {.usage = KEEL_USAGE_TRANSFER | KEEL_USAGE_MAP,
                                   .memory = KEEL_MEMORY_HOST_VISIBLE | KEEL_MEMORY_DEVICE_VISIBLE};
    keel_pool_t *pool = NULL;
    TRY(keel_pool_create(the_device(), &options, &pool));
    OWN(pool);
    keel_buffer_info_t info;
    keel_buffer_info(allocate(pool, 100), &info);
    CHECK_EQ(info.memory & options.memory, options.memory);
    CHECK_EQ(info.usage & options.usage, options.usage);
}

TEST(pool, reserve_bad_arguments, POOLS)
{
    keel_pool_t *pool = new_pool(0, 0);
    keel_buffer_options_t options = {.size = 16};
    keel_buffer_t *buffer = NULL;
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "pool", keel_buffer_reserve(NULL, &options, &buffer));
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "options", keel_buffer_reserve(pool, NULL, &buffer));
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "buffer", keel_buffer_reserve(pool, &options, NULL));
    options.alignment = 24;
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "alignment", keel_buffer_reserve(pool, &options, &buffer));
    options.alignment = 0;
    options.access = 8;
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "access", keel_buffer_reserve(pool, &options, &buffer));
}

TEST(pool, alignment_of_reserved_buffers, POOLS)
{
    static const uint64_t alignments[] = {1, 64, 256, 4096, 65536, 1 << 20};
    keel_pool_t *pool = new_pool(0, 0);
    for (size_t i = 0; i < COUNT(alignments); i++) {
        row("alignment %llu", (unsigned long long)alignments[i]);
        allocate(pool, 40); // so that the next one would not be aligned by chance
        keel_buffer_options_t options = {.size = 100, .alignment = alignments[i]};
        keel_buffer_t *buffer = NULL;
        uint64_t address;
        TRY(keel_buffer_reserve(pool, &options, &buffer));
        OWN(buffer);
        reach(submit(keel_op_alloca(buffer)));
        TRY(keel_buffer_address(buffer, &address));
        CHECK_EQ(address % alignments[i], 0);
    }
}

// The pool's memory goes back when the last buffer of it does.
TEST(pool, released_before_its_buffers, POOLS)
{
    keel_pool_t *pool = new_pool(0, 0);
    keel_buffer_t *buffer = allocate(pool, 100);
    drop(pool);
    buffer_put(buffer, 0, "still", 5);
    check_bytes(buffer, 0, "still", 5);
}

// A buffer that was never given back gives itself back.
TEST(pool, released_without_dealloca, POOLS)
{
    keel_pool_t *pool = new_pool(8192, 0);
    drop(allocate(pool, 8192));
    CHECK_EQ(stats_of(pool).used, 0);
    allocate(pool, 8192);
}

TEST(pool, retain_and_release, POOLS)
{
    keel_pool_t *pool = new_pool(0, 0);
    CHECK(keel_pool_retain(pool) == pool);
    keel_pool_release(pool);
    keel_pool_release(NULL);
    allocate(pool, 16);
}
