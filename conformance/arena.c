// SPDX-License-Identifier: Apache-2.0
// Reserved buffers that lie where the program says: in ranges of other buffers.
#include "suite/suite.h"

#define POOLS .needs = KEEL_CAP_QUEUE_ALLOCA
#define RUNS  .needs = KEEL_CAP_QUEUE_ALLOCA | KEEL_CAP_EXECUTES

enum { PAGE = 4096, PAGES = 4 }; // a place is a multiple of what any device asks for

static keel_buffer_t *new_arena(void)
{
    keel_buffer_t *arena = new_buffer(PAGES * PAGE);
    reach(submit(keel_op_fill(keel_whole(arena), 1, 1)));
    return arena;
}

static bool is_resident(keel_buffer_t *buffer)
{
    keel_buffer_info_t info;
    keel_buffer_info(buffer, &info);
    return info.resident;
}

static uint64_t address_of(keel_buffer_t *buffer)
{
    uint64_t address = 0;
    TRY(keel_buffer_address(buffer, &address));
    return address;
}

static keel_op_t place(keel_buffer_t *buffer, keel_buffer_t *arena, uint64_t page)
{
    return keel_op_alloca_at(buffer, keel_span(arena, page * PAGE, PAGE));
}

TEST(arena, basic, RUNS)
{
    keel_pool_t *pool = new_pool(0, 0);
    keel_buffer_t *arena = new_arena(), *x = new_reserved(pool, 100);
    reach(submit(place(x, arena, 2)));
    CHECK(is_resident(x));
    CHECK_EQ(address_of(x), address_of(arena) + 2 * PAGE);
    reach(submit(keel_op_fill(keel_whole(x), 7, 1)));
    reach(submit(keel_op_dealloca(x)));
    CHECK(!is_resident(x));
    check_filled(arena, 0, 2 * PAGE, 1);
    check_filled(arena, 2 * PAGE, 100, 7);
    check_filled(arena, 2 * PAGE + 100, PAGE - 100, 1);
    keel_pool_stats_t stats;
    keel_pool_stats(pool, &stats);
    CHECK_EQ(stats.peak, 0); // none of it was the pool's
}

TEST(arena, contents_stay, RUNS)
{
    keel_pool_t *pool = new_pool(0, 0);
    keel_buffer_t *arena = new_arena(), *x = new_reserved(pool, PAGE), *out = new_buffer(PAGE);
    reach(SUBMIT(KEEL_NO_WAITS, place(x, arena, 1), keel_op_barrier(),
                 keel_op_copy(keel_whole(x), keel_whole(out)), keel_op_barrier(),
                 keel_op_dealloca(x)));
    check_filled(out, 0, PAGE, 1);
}

// In the queue's order, as every alloca.
TEST(arena, waits_for_points, POOLS)
{
    keel_semaphore_t *gate = new_semaphore(0);
    keel_buffer_t *arena = new_buffer(PAGE), *x = new_reserved(new_pool(0, 0), PAGE);
    keel_point_t ready = submit_after(KEEL_AFTER(keel_point(gate, 1)), place(x, arena, 0));
    CHECK(!is_resident(x));
    TRY(keel_semaphore_signal(gate, 1));
    reach(ready);
    CHECK(is_resident(x));
}

// Buffers that are not used at the same time share memory: what an arena is for.
TEST(arena, shared_range, RUNS)
{
    keel_pool_t *pool = new_pool(0, 0);
    keel_buffer_t *arena = new_arena(), *out = new_buffer(2 * PAGE);
    keel_buffer_t *x = new_reserved(pool, PAGE), *y = new_reserved(pool, PAGE / 2);
    keel_op_t barrier = keel_op_barrier();
    reach(SUBMIT(KEEL_NO_WAITS, place(x, arena, 3), place(y, arena, 3), barrier,
                 keel_op_fill(keel_whole(x), 5, 1), barrier,
                 keel_op_copy(keel_whole(x), keel_span(out, 0, PAGE)), barrier,
                 keel_op_fill(keel_whole(y), 6, 1), barrier,
                 keel_op_copy(keel_whole(x), keel_span(out, PAGE, PAGE)), barrier,
                 keel_op_dealloca(x), keel_op_dealloca(y)));
    check_filled(out, 0, PAGE, 5);
    check_filled(out, PAGE, PAGE / 2, 6);
    check_filled(out, PAGE + PAGE / 2, PAGE / 2, 5);
}

// A recording that names a buffer finds it where it lies this time.
TEST(arena, recorded, RUNS)
{
    keel_buffer_t *arena = new_arena(), *x = new_reserved(new_pool(0, 0), PAGE);
    keel_recording_t *recording = RECORD(0, keel_op_fill(keel_whole(x), 9, 1));
    for (uint64_t page = 0; page < PAGES; page += 2) {
        row("page %llu", (unsigned long long)page);
        reach(SUBMIT(KEEL_NO_WAITS, place(x, arena, page), keel_op_barrier(),
                     keel_op_execute(recording, KEEL_NO_BINDINGS), keel_op_barrier(),
                     keel_op_dealloca(x)));
        check_filled(arena, page * PAGE, PAGE, 9);
        check_filled(arena, (page + 1) * PAGE, PAGE, 1);
    }
}

TEST(arena, bound_to_slots, RUNS)
{
    keel_buffer_t *arena = new_arena(), *x = new_reserved(new_pool(0, 0), PAGE);
    keel_recording_t *recording =
        RECORD(1, keel_op_dispatch(kernel("tally"), keel_groups(3, 1, 1), NULL, 0,
                                   KEEL_BIND(keel_slot(0, 0, KEEL_WHOLE))));
    for (uint64_t page = 0; page < PAGES; page++) {
        row("page %llu", (unsigned long long)page);
        reach(SUBMIT(KEEL_NO_WAITS, place(x, arena, page), keel_op_barrier(),
                     keel_op_fill(keel_whole(x), 0, 1), keel_op_barrier(),
                     keel_op_execute(recording, KEEL_BIND(x)), keel_op_barrier(),
                     keel_op_dealloca(x)));
        check_bytes(arena, page * PAGE, "\3\0\0\0", 4);
    }
}

// The same buffer, with memory of its pool and of others in turn.
TEST(arena, in_turn_with_the_pool, RUNS)
{
    keel_pool_t *pool = new_pool(PAGE, 0);
    keel_buffer_t *arena = new_arena(), *x = new_reserved(pool, PAGE);
    for (uint8_t i = 2; i < 5; i++) {
        row("round %u", i);
        reach(submit(keel_op_alloca(x)));
        reach_failure(submit(place(x, arena, 1)), KEEL_FAILED_PRECONDITION);
        reach(submit(keel_op_fill(keel_whole(x), 0, 1)));
        reach(submit(keel_op_dealloca(x)));
        reach(submit(place(x, arena, 1)));
        reach_failure(submit(keel_op_alloca(x)), KEEL_FAILED_PRECONDITION);
        reach_failure(submit(place(x, arena, 1)), KEEL_FAILED_PRECONDITION);
        reach(submit(keel_op_fill(keel_whole(x), i, 1)));
        reach(submit(keel_op_dealloca(x)));
        reach_failure(submit(keel_op_dealloca(x)), KEEL_FAILED_PRECONDITION);
        check_filled(arena, PAGE, PAGE, i);
    }
}

// The memory stays while a buffer lies in it.
TEST(arena, released_before_its_buffers, RUNS)
{
    keel_buffer_t *arena = new_arena(), *x = new_reserved(new_pool(0, 0), PAGE);
    reach(submit(place(x, arena, 1)));
    drop(arena);
    reach(submit(keel_op_fill(keel_whole(x), 8, 1)));
    check_filled(x, 0, PAGE, 8);
    reach(submit(keel_op_dealloca(x)));
}

TEST(arena, released_without_dealloca, RUNS)
{
    keel_pool_t *pool = new_pool(0, 0);
    keel_buffer_t *arena = new_arena(), *x = new_reserved(pool, PAGE),
                  *y = new_reserved(pool, PAGE);
    reach(submit(place(x, arena, 1)));
    drop(x);
    reach(submit(place(y, arena, 1)));
    drop(arena);
    drop(y);
}

TEST(arena, subspans, RUNS)
{
    keel_buffer_t *arena = new_arena(), *half = new_subspan(arena, 2 * PAGE, 2 * PAGE);
    keel_buffer_t *x = new_reserved(new_pool(0, 0), PAGE), *part = new_subspan(x, 16, 16);
    reach(submit(place(x, half, 1)));
    reach(submit(keel_op_fill(keel_whole(part), 4, 1)));
    check_filled(arena, 3 * PAGE, 16, 1);
    check_filled(arena, 3 * PAGE + 16, 16, 4);
    reach(submit(keel_op_dealloca(x)));
}

// An arena may itself have its memory from a pool. It gives it back when no buffer lies in it.
TEST(arena, of_a_pool, RUNS)
{
    keel_pool_t *pool = new_pool(0, 0);
    keel_buffer_t *arena = new_reserved(pool, PAGES * PAGE), *x = new_reserved(pool, PAGE);
    reach_failure(submit(place(x, arena, 0)), KEEL_FAILED_PRECONDITION);
    for (int i = 0; i < 2; i++) {
        reach(SUBMIT(KEEL_NO_WAITS, keel_op_alloca(arena), keel_op_barrier(), place(x, arena, 1),
                     keel_op_barrier(), keel_op_fill(keel_whole(x), 3, 1)));
        reach_failure_saying(submit(keel_op_dealloca(arena)), KEEL_FAILED_PRECONDITION, "lent");
        check_filled(arena, PAGE, PAGE, 3);
        reach(
            SUBMIT(KEEL_NO_WAITS, keel_op_dealloca(x), keel_op_barrier(), keel_op_dealloca(arena)));
        CHECK(!is_resident(arena) && !is_resident(x));
    }
    keel_pool_stats_t stats;
    keel_pool_stats(pool, &stats);
    CHECK_EQ(stats.used, 0);
}

static keel_status_t attempt(keel_buffer_t *buffer, keel_ref_t memory)
{
    return keel_queue_run(the_queue(), KEEL_NO_WAITS, keel_op_alloca_at(buffer, memory), NULL);
}

TEST(arena, bad_arguments, POOLS)
{
    keel_pool_t *pool = new_pool(0, 0);
    keel_buffer_t *arena = new_buffer(2 * PAGE), *x = new_reserved(pool, PAGE);
    keel_buffer_t *part = new_subspan(x, 0, 64);
    FAILS_SAYING(KEEL_OUT_OF_RANGE, "memory", attempt(x, keel_span(arena, 0, PAGE - 1)));
    FAILS_SAYING(KEEL_OUT_OF_RANGE, "memory", attempt(x, keel_span(arena, 2 * PAGE, PAGE)));
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "itself", attempt(x, keel_whole(x)));
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "alignment", attempt(x, keel_span(arena, 1, PAGE)));
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "subspan", attempt(part, keel_whole(arena)));
    FAILS_SAYING(KEEL_FAILED_PRECONDITION, "reserve", attempt(arena, keel_whole(x)));
    keel_op_t dealloca = keel_op_dealloca(x);
    dealloca.as.alloca_.memory = keel_whole(arena);
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "memory",
                 keel_queue_run(the_queue(), KEEL_NO_WAITS, dealloca, NULL));
    CHECK(!is_resident(x));
}

TEST(arena, lacks_what_the_buffer_has, POOLS)
{
    keel_pool_options_t visible = {.memory = KEEL_MEMORY_HOST_VISIBLE};
    keel_pool_t *pool = NULL;
    TRY(keel_pool_create(the_device(), &visible, &pool));
    OWN(pool);
    keel_buffer_options_t options = {.size = PAGE, .access = KEEL_ACCESS_READ};
    keel_buffer_t *fixed = NULL, *arena = new_buffer(PAGE);
    TRY(keel_buffer_create(the_device(), &options, &fixed));
    OWN(fixed);
    FAILS_SAYING(KEEL_PERMISSION_DENIED, "KEEL_ACCESS_WRITE",
                 attempt(new_reserved(new_pool(0, 0), PAGE), keel_whole(fixed)));
    keel_buffer_info_t info;
    keel_buffer_info(arena, &info);
    if (!(info.memory & KEEL_MEMORY_HOST_VISIBLE))
        FAILS_SAYING(KEEL_PERMISSION_DENIED, "memory",
                     attempt(new_reserved(pool, PAGE), keel_whole(arena)));
}

// What is known only when it runs.
TEST(arena, misaligned_in_a_pool, POOLS)
{
    keel_pool_t *pool = new_pool(0, 0);
    keel_buffer_t *arena = new_reserved(pool, 2 * PAGE), *x = new_reserved(pool, PAGE);
    reach(submit(keel_op_alloca(arena)));
    reach_failure_saying(submit(keel_op_alloca_at(x, keel_span(arena, 1, PAGE))),
                         KEEL_INVALID_ARGUMENT, "alignment");
    reach(submit(keel_op_dealloca(arena)));
}
