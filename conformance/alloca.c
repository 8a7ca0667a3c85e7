// SPDX-License-Identifier: Apache-2.0
// Queue-ordered memory: alloca and dealloca among other work.
#include "suite/suite.h"

#define POOLS .needs = KEEL_CAP_QUEUE_ALLOCA
#define RUNS  .needs = KEEL_CAP_QUEUE_ALLOCA | KEEL_CAP_EXECUTES

static bool is_resident(keel_buffer_t *buffer)
{
    keel_buffer_info_t info;
    keel_buffer_info(buffer, &info);
    return info.resident;
}

static uint64_t waiting_in(keel_pool_t *pool)
{
    keel_pool_stats_t stats;
    keel_pool_stats(pool, &stats);
    return stats.waiting;
}

// How many wait, once they are as many as that: a device may take its time to get there.
static uint64_t waiting_until(keel_pool_t *pool, uint64_t count)
{
    uint64_t start = keel_now_ns();
    while (waiting_in(pool) != count && keel_now_ns() - start < patience()) sleep_ms(1);
    return waiting_in(pool);
}

TEST(alloca, basic, RUNS)
{
    keel_buffer_t *x = NULL;
    keel_point_t ready, done;
    TRY(keel_queue_alloca(the_queue(), NULL, 1000, &x, &ready));
    OWN(x);
    CHECK_EQ(keel_buffer_size(x), 1000);
    keel_point_t filled = submit_after(KEEL_AFTER(ready), keel_op_fill(keel_whole(x), 5, 1));
    reach(filled);
    check_filled(x, 0, 1000, 5);
    TRY(keel_queue_dealloca(the_queue(), KEEL_AFTER(filled), x, &done));
    reach(done);
    CHECK(!is_resident(x));
}

TEST(alloca, metadata, POOLS)
{
    keel_buffer_t *x = new_reserved(new_pool(0, 0), 100);
    keel_buffer_info_t info;
    uint64_t address;
    keel_buffer_info(x, &info);
    CHECK(info.queue_ordered);
    CHECK(!info.resident);
    CHECK_EQ(info.access, KEEL_ACCESS_ALL);
    CHECK_EQ(info.size, 100);
    CHECK(info.root == x);
    FAILS(KEEL_FAILED_PRECONDITION, keel_buffer_address(x, &address));
    reach(submit(keel_op_alloca(x)));
    CHECK(is_resident(x));
    TRY(keel_buffer_address(x, &address));
    CHECK(address);
    reach(submit(keel_op_dealloca(x)));
    CHECK(!is_resident(x));
    FAILS(KEEL_FAILED_PRECONDITION, keel_buffer_address(x, &address));
}

// Nothing happens, and no thread is held up, before the waits are satisfied.
TEST(alloca, waits_for_points, POOLS)
{
    keel_semaphore_t *gate = new_semaphore(0);
    keel_buffer_t *x = new_reserved(new_pool(0, 0), 64);
    keel_point_t ready = submit_after(KEEL_AFTER(keel_point(gate, 1)), keel_op_alloca(x));
    CHECK(!is_resident(x));
    TRY(keel_semaphore_signal(gate, 1));
    reach(ready);
    CHECK(is_resident(x));
}

TEST(alloca, access_of_reserved_buffers, POOLS)
{
    keel_buffer_options_t options = {.size = 64, .access = KEEL_ACCESS_READ, .name = "shown only"};
    keel_buffer_t *x = NULL;
    keel_buffer_info_t info;
    TRY(keel_buffer_reserve(new_pool(0, 0), &options, &x));
    OWN(x);
    keel_buffer_info(x, &info);
    CHECK_EQ(info.access, KEEL_ACCESS_READ);
    FAILS_SAYING(KEEL_PERMISSION_DENIED, "shown only",
                 keel_queue_fill(the_queue(), KEEL_NO_WAITS, keel_whole(x), 0, 1, NULL));
}

TEST(alloca, size_zero, POOLS)
{
    keel_buffer_t *x = new_reserved(new_pool(0, 0), 0);
    reach(submit(keel_op_alloca(x)));
    reach(submit(keel_op_dealloca(x)));
}

TEST(alloca, cycle, RUNS)
{
    keel_pool_t *pool = new_pool(4096, 0);
    for (uint8_t i = 1; i < 30; i++) {
        row("round %u", i);
        keel_buffer_t *x = new_reserved(pool, 4096);
        keel_point_t a = submit(keel_op_alloca(x));
        keel_point_t b = submit_after(KEEL_AFTER(a), keel_op_fill(keel_whole(x), i, 1));
        reach(b);
        check_filled(x, 0, 4096, i);
        reach(submit_after(KEEL_AFTER(b), keel_op_dealloca(x)));
        drop(x);
    }
}

TEST(alloca, same_buffer_again, RUNS)
{
    keel_buffer_t *x = new_reserved(new_pool(4096, 0), 4096);
    for (uint8_t i = 1; i < 10; i++) {
        row("round %u", i);
        reach(submit(keel_op_alloca(x)));
        reach(submit(keel_op_fill(keel_whole(x), i, 1)));
        check_filled(x, 0, 4096, i);
        reach(submit(keel_op_dealloca(x)));
    }
}

// All of it in one submission, ordered by barriers.
TEST(alloca, in_one_submission, RUNS)
{
    keel_buffer_t *x = new_reserved(new_pool(0, 0), 256), *y = new_buffer(256);
    reach(SUBMIT(KEEL_NO_WAITS, keel_op_alloca(x), keel_op_barrier(),
                 keel_op_fill(keel_whole(x), 7, 1), keel_op_barrier(),
                 keel_op_copy(keel_whole(x), keel_whole(y)), keel_op_barrier(),
                 keel_op_dealloca(x)));
    check_filled(y, 0, 256, 7);
    CHECK(!is_resident(x));
}

// A chain on one small pool: each alloca depends on the dealloca before, all submitted at once.
TEST(alloca, chained, RUNS)
{
    enum { N = 50 };
    keel_pool_t *pool = new_pool(4096, 0);
    keel_semaphore_t *gate = new_semaphore(0);
    keel_buffer_t *out = new_buffer(N);
    keel_point_t last = keel_point(gate, 1);
    for (uint32_t i = 0; i < N; i++) {
        keel_buffer_t *x = new_reserved(pool, 4096);
        last = submit_after(KEEL_AFTER(last), keel_op_alloca(x));
        last = submit_after(KEEL_AFTER(last), keel_op_fill(keel_whole(x), i + 1, 1));
        last = submit_after(KEEL_AFTER(last),
                            keel_op_copy(keel_span(x, 4095, 1), keel_span(out, i, 1)));
        last = submit_after(KEEL_AFTER(last), keel_op_dealloca(x));
        drop(x);
    }
    TRY(keel_semaphore_signal(gate, 1));
    reach(last);
    uint8_t expected[N];
    for (uint32_t i = 0; i < N; i++) expected[i] = (uint8_t)(i + 1);
    check_bytes(out, 0, expected, N);
}

// Full, but a dealloca is on its way: the alloca waits for it and for nothing else.
TEST(alloca, waits_for_a_dealloca, POOLS)
{
    keel_pool_t *pool = new_pool(4096, 0);
    keel_semaphore_t *gate = new_semaphore(0);
    keel_buffer_t *x = new_reserved(pool, 4096), *y = new_reserved(pool, 4096);
    reach(submit(keel_op_alloca(x)));
    keel_point_t freed = submit_after(KEEL_AFTER(keel_point(gate, 1)), keel_op_dealloca(x));
    keel_point_t ready = submit(keel_op_alloca(y));
    if (!faulted()) CHECK_EQ(waiting_until(pool, 1), 1);
    CHECK(pending(ready));
    TRY(keel_semaphore_signal(gate, 1));
    reach(ready);
    reach(freed);
    CHECK(is_resident(y));
    CHECK_EQ(waiting_in(pool), 0);
}

TEST(alloca, waits_for_a_dealloca_of_another_queue, POOLS)
{
    keel_pool_t *pool = new_pool(8192, 4096);
    keel_queue_t *other = new_queue(0);
    keel_semaphore_t *gate = new_semaphore(0);
    keel_buffer_t *a = new_reserved(pool, 4096), *b = new_reserved(pool, 4096);
    keel_buffer_t *c = new_reserved(pool, 4096);
    reach(SUBMIT(KEEL_NO_WAITS, keel_op_alloca(a), keel_op_alloca(b)));
    TRY(keel_queue_dealloca(other, KEEL_AFTER(keel_point(gate, 1)), b, NULL));
    keel_point_t ready = submit(keel_op_alloca(c));
    CHECK(pending(ready));
    TRY(keel_semaphore_signal(gate, 1));
    reach(ready);
}

TEST(alloca, several_wait_for_several, POOLS)
{
    enum { N = 6 };
    keel_pool_t *pool = new_pool(N * 1024, 1024);
    keel_semaphore_t *gate = new_semaphore(0);
    keel_buffer_t *old[N], *fresh[N];
    keel_point_t ready[N];
    for (int i = 0; i < N; i++) {
        old[i] = new_reserved(pool, 1024);
        reach(submit(keel_op_alloca(old[i])));
    }
    for (uint64_t i = 0; i < N; i++) {
        submit_after(KEEL_AFTER(keel_point(gate, i + 1)), keel_op_dealloca(old[i]));
    }
    for (int i = 0; i < N; i++) {
        fresh[i] = new_reserved(pool, 1024);
        ready[i] = submit(keel_op_alloca(fresh[i]));
    }
    if (!faulted()) CHECK_EQ(waiting_until(pool, N), N);
    for (uint64_t i = 0; i < N; i++) {
        TRY(keel_semaphore_signal(gate, i + 1));
        if (!starved()) CHECK_EQ(waiting_until(pool, N - 1 - i), N - 1 - i);
    }
    TRY(keel_wait(keel_points(ready, N), KEEL_ALL, patience()));
}

// A dealloca that waits for a kernel has not run, and its bytes are in use.
TEST(alloca, waits_for_a_dealloca_to_run, RUNS)
{
    enum { N = 4 };
    keel_pool_t *pool = new_pool(4096, 0);
    keel_queue_t *other = new_queue(0);
    keel_buffer_t *words = new_buffer(16), *x = new_reserved(pool, 4096);
    reach(submit(keel_op_alloca(x)));
    keel_point_t held = queue_hold(other, words, 300), freed, ready[N];
    TRY(keel_queue_dealloca(other, KEEL_AFTER(held), x, &freed));
    for (int i = 0; i < N; i++) {
        keel_buffer_t *y = new_reserved(pool, 4096);
        ready[i] = submit(keel_op_alloca(y));
        submit_after(KEEL_AFTER(ready[i]), keel_op_dealloca(y));
    }
    while (waiting_in(pool) != N && !ended(held)) sleep_ms(1);
    bool early = ended(ready[0]);
    if (!ended(held)) CHECK(!early);
    reach(submit(keel_op_fill(keel_span(words, 8, 4), 1, 1)));
    reach(freed);
    TRY(keel_wait(keel_points(ready, N), KEEL_ALL, patience()));
    keel_pool_stats_t stats;
    keel_pool_stats(pool, &stats);
    CHECK_LE(stats.peak, 4096);
}

// An alloca may need what a dealloca before it, in the same submission, gives back.
static void alloca_behind_dealloca(uint32_t memory)
{
    keel_pool_options_t options = {.memory = memory, .limit = 4096};
    keel_pool_t *pool = NULL;
    TRY(keel_pool_create(the_device(), &options, &pool));
    OWN(pool);
    keel_buffer_t *x = new_reserved(pool, 4096), *y = new_reserved(pool, 4096);
    keel_op_t barrier = keel_op_barrier();
    reach(SUBMIT(KEEL_NO_WAITS, keel_op_alloca(x), barrier, keel_op_fill(keel_whole(x), 1, 1),
                 barrier, keel_op_dealloca(x), barrier, keel_op_alloca(y), barrier,
                 keel_op_fill(keel_whole(y), 2, 1)));
    CHECK(!is_resident(x));
    check_filled(y, 0, 4096, 2);
}

TEST(alloca, behind_a_dealloca_in_one_submission, RUNS)
{
    alloca_behind_dealloca(0);
}

TEST(alloca, behind_a_dealloca_of_host_memory, RUNS)
{
    alloca_behind_dealloca(KEEL_MEMORY_HOST_VISIBLE);
}

// There is no room, and no word of a dealloca yet: the alloca waits all the same, and other work
// goes on.
TEST(alloca, waits_for_room, POOLS)
{
    keel_pool_t *pool = new_pool(4096, 0);
    keel_buffer_t *x = new_reserved(pool, 4096), *y = new_reserved(pool, 4096);
    reach(submit(keel_op_alloca(x)));
    keel_point_t ready = submit(keel_op_alloca(y));
    if (!faulted()) CHECK_EQ(waiting_until(pool, 1), 1);
    reach(submit(keel_op_fill(keel_whole(x), 1, 1)));
    CHECK(pending(ready));
    reach(submit(keel_op_dealloca(x)));
    reach(ready);
    CHECK(is_resident(y));
    CHECK_EQ(waiting_in(pool), 0);
}

// A buffer that is released without a dealloca makes room, too.
TEST(alloca, waits_for_a_release, POOLS)
{
    keel_pool_t *pool = new_pool(4096, 0);
    keel_buffer_t *x = new_reserved(pool, 4096), *y = new_reserved(pool, 4096);
    reach(submit(keel_op_alloca(x)));
    keel_point_t ready = submit(keel_op_alloca(y));
    if (!faulted()) CHECK_EQ(waiting_until(pool, 1), 1);
    drop(x);
    reach(ready);
}

TEST(alloca, room_goes_to_the_oldest, POOLS)
{
    enum { N = 4 };
    keel_pool_t *pool = new_pool(4096, 4096);
    keel_buffer_t *x[N + 1];
    keel_point_t ready[N + 1];
    for (int i = 0; i <= N; i++) {
        x[i] = new_reserved(pool, 4096);
        ready[i] = submit(keel_op_alloca(x[i]));
        if (i == 0) reach(ready[0]);
        if (!faulted()) CHECK_EQ(waiting_until(pool, (uint64_t)i), i);
    }
    for (int i = 0; i < N; i++) {
        row("round %d", i);
        reach(ready[i]);
        CHECK(pending(ready[i + 1]));
        reach(submit(keel_op_dealloca(x[i])));
    }
    reach(ready[N]);
}

// What fits passes what does not, which may wait for just that.
TEST(alloca, small_passes_large, POOLS)
{
    keel_pool_t *pool = new_pool(8192, 0);
    keel_buffer_t *held = new_reserved(pool, 4096), *all = new_reserved(pool, 8192);
    keel_buffer_t *small = new_reserved(pool, 4096);
    reach(submit(keel_op_alloca(held)));
    keel_point_t large = submit(keel_op_alloca(all));
    if (!faulted()) CHECK_EQ(waiting_until(pool, 1), 1);
    reach(submit(keel_op_alloca(small)));
    reach(submit(keel_op_dealloca(small)));
    CHECK(pending(large));
    reach(submit(keel_op_dealloca(held)));
    reach(large);
}

// Deallocas of the same stage do not wait for the alloca, on either side of it.
TEST(alloca, beside_a_dealloca, POOLS)
{
    keel_pool_t *pool = new_pool(4096, 0);
    keel_buffer_t *x = new_reserved(pool, 4096), *y = new_reserved(pool, 4096);
    reach(submit(keel_op_alloca(x)));
    reach(SUBMIT(KEEL_NO_WAITS, keel_op_alloca(y), keel_op_dealloca(x)));
    CHECK(is_resident(y) && !is_resident(x));
    reach(SUBMIT(KEEL_NO_WAITS, keel_op_dealloca(y), keel_op_alloca(x)));
    CHECK(is_resident(x) && !is_resident(y));
}

// Each of two submissions has what the other one needs, in pools of their own.
TEST(alloca, beside_a_dealloca_of_another_pool, POOLS)
{
    keel_pool_t *first = new_pool(4096, 0), *second = new_pool(4096, 0);
    keel_buffer_t *a = new_reserved(first, 4096), *b = new_reserved(second, 4096);
    keel_buffer_t *c = new_reserved(first, 4096), *d = new_reserved(second, 4096);
    reach(SUBMIT(KEEL_NO_WAITS, keel_op_alloca(a), keel_op_alloca(b)));
    keel_point_t here = SUBMIT(KEEL_NO_WAITS, keel_op_alloca(c), keel_op_dealloca(b));
    reach(SUBMIT(KEEL_NO_WAITS, keel_op_alloca(d), keel_op_dealloca(a)));
    reach(here);
}

// Memory that the submission itself gives back, but only later, is not waited for.
TEST(alloca, waits_for_its_own_dealloca, POOLS)
{
    keel_pool_t *pools[] = {new_pool(4096, 0), new_failing_pool(4096, 0)};
    for (size_t i = 0; i < COUNT(pools); i++) {
        row("pool %zu", i);
        keel_buffer_t *x = new_reserved(pools[i], 4096), *y = new_reserved(pools[i], 4096);
        reach(submit(keel_op_alloca(x)));
        keel_point_t failed =
            SUBMIT(KEEL_NO_WAITS, keel_op_alloca(y), keel_op_barrier(), keel_op_dealloca(x));
        reach_failure_saying(failed, KEEL_RESOURCE_EXHAUSTED, "of the same submission");
        CHECK(is_resident(x) && !is_resident(y));
        CHECK_EQ(waiting_in(pools[i]), 0);
    }
}

// Nor is what it got before, also if it waited for that itself.
TEST(alloca, waits_for_its_own_memory, POOLS)
{
    keel_pool_t *pool = new_pool(4096, 0);
    keel_buffer_t *x = new_reserved(pool, 4096), *y = new_reserved(pool, 4096);
    keel_buffer_t *z = new_reserved(pool, 4096);
    reach_failure_saying(SUBMIT(KEEL_NO_WAITS, keel_op_alloca(x), keel_op_alloca(y)),
                         KEEL_RESOURCE_EXHAUSTED, "of the same submission");
    drop(x);
    drop(y);
    reach(submit(keel_op_alloca(z)));
    x = new_reserved(pool, 4096);
    y = new_reserved(pool, 4096);
    keel_point_t both = SUBMIT(KEEL_NO_WAITS, keel_op_alloca(x), keel_op_alloca(y));
    while (!waiting_in(pool) && !ended(both)) sleep_ms(1);
    reach(submit(keel_op_dealloca(z)));
    reach_failure_saying(both, KEEL_RESOURCE_EXHAUSTED, "of the same submission");
}

// What it gave back before its barrier is to be had.
TEST(alloca, waits_for_others_beside_its_own, POOLS)
{
    keel_pool_t *pool = new_pool(8192, 4096);
    keel_buffer_t *own = new_reserved(pool, 4096), *other = new_reserved(pool, 4096);
    keel_buffer_t *x = new_reserved(pool, 4096);
    reach(SUBMIT(KEEL_NO_WAITS, keel_op_alloca(own), keel_op_alloca(other)));
    keel_point_t done =
        SUBMIT(KEEL_NO_WAITS, keel_op_alloca(x), keel_op_barrier(), keel_op_dealloca(own));
    if (!faulted()) CHECK_EQ(waiting_until(pool, 1), 1);
    reach(submit(keel_op_dealloca(other)));
    reach(done);
    CHECK(is_resident(x) && !is_resident(own));
}

enum { CROWD = 8 };

static void crowd_work(void *user)
{
    keel_pool_t *pool = user;
    keel_queue_t *queue = new_queue(0);
    size_t rounds = few(200);
    for (size_t i = 0; i < rounds; i++) {
        keel_buffer_t *x = NULL;
        keel_point_t ready, filled, freed;
        TRY(keel_queue_alloca(queue, pool, 1 + (i * 7 + 1) % 4096, &x, &ready));
        OWN(x);
        TRY(keel_queue_fill(queue, KEEL_AFTER(ready), keel_whole(x), 1, 1, &filled));
        reach(filled); // and only then is there a dealloca
        TRY(keel_queue_dealloca(queue, KEEL_AFTER(filled), x, &freed));
        drop(x);
        if (i + 1 == rounds) reach(freed);
    }
}

// Many threads on a pool that has room for two of them: none is refused.
TEST(alloca, crowd, .needs = KEEL_CAP_QUEUE_ALLOCA, .seconds = 60)
{
    keel_pool_t *pool = new_pool(8192, 0);
    thread_t *threads[CROWD];
    for (int i = 0; i < CROWD; i++) threads[i] = thread_start(crowd_work, pool);
    for (int i = 0; i < CROWD; i++) thread_join(threads[i]);
    keel_pool_stats_t stats;
    keel_pool_stats(pool, &stats);
    CHECK_EQ(stats.used, 0);
    CHECK_EQ(stats.waiting, 0);
    CHECK_LE(stats.peak, 8192);
}

// The dealloca comes, but does not help: the alloca fails rather than waits for ever.
TEST(alloca, dealloca_that_does_not_help, POOLS)
{
    keel_pool_t *pool = new_failing_pool(8192, 0);
    keel_semaphore_t *gate = new_semaphore(0);
    keel_buffer_t *a = new_reserved(pool, 4096), *b = new_reserved(pool, 4096);
    keel_buffer_t *large = new_reserved(pool, 8192);
    reach(SUBMIT(KEEL_NO_WAITS, keel_op_alloca(a), keel_op_alloca(b)));
    keel_point_t freed = submit_after(KEEL_AFTER(keel_point(gate, 1)), keel_op_dealloca(a));
    keel_point_t ready = submit(keel_op_alloca(large));
    CHECK(pending(ready));
    TRY(keel_semaphore_signal(gate, 1));
    reach(freed);
    reach_failure_saying(ready, KEEL_RESOURCE_EXHAUSTED, "8192");
}

// Nor does the buffer's own, or that of another that has no memory either: both come after.
TEST(alloca, dealloca_of_the_memoryless_does_not_help, POOLS)
{
    keel_pool_t *pool = new_failing_pool(4096, 0);
    keel_semaphore_t *gate = new_semaphore(0);
    keel_buffer_t *x = new_reserved(pool, 4096), *y = new_reserved(pool, 4096);
    keel_buffer_t *z = new_reserved(pool, 4096);
    reach(submit(keel_op_alloca(x)));
    keel_point_t y_ready = submit_after(KEEL_AFTER(keel_point(gate, 1)), keel_op_alloca(y));
    keel_point_t y_freed = submit_after(KEEL_AFTER(y_ready), keel_op_dealloca(y));
    keel_point_t z_ready = submit_after(KEEL_AFTER(keel_point(gate, 1)), keel_op_alloca(z));
    keel_point_t z_freed = submit_after(KEEL_AFTER(z_ready), keel_op_dealloca(z));
    TRY(keel_semaphore_signal(gate, 1));
    reach_failure_saying(y_ready, KEEL_RESOURCE_EXHAUSTED, "4096");
    reach_failure(y_freed, KEEL_RESOURCE_EXHAUSTED);
    reach_failure(z_ready, KEEL_RESOURCE_EXHAUSTED);
    reach_failure(z_freed, KEEL_RESOURCE_EXHAUSTED);
    CHECK(is_resident(x));
}

// Nor do those that wait for the alloca themselves, by its point or that of other work behind it.
TEST(alloca, deallocas_behind_it_do_not_help, POOLS)
{
    for (int works = 0; works < 2; works++) {
        row("work between them: %d", works);
        keel_pool_t *pool = new_failing_pool(4096, 0);
        keel_semaphore_t *gate = new_semaphore(0);
        keel_buffer_t *x = new_reserved(pool, 4096), *y = new_reserved(pool, 4096);
        reach(submit(keel_op_alloca(x)));
        keel_point_t ready = submit_after(KEEL_AFTER(keel_point(gate, 1)), keel_op_alloca(y));
        keel_point_t last = ready;
        if (works) last = submit_after(KEEL_AFTER(ready), keel_op_fill(keel_whole(x), 1, 1));
        keel_point_t freed = submit_after(KEEL_AFTER(last), keel_op_dealloca(x));
        TRY(keel_semaphore_signal(gate, 1));
        reach_failure_saying(ready, KEEL_RESOURCE_EXHAUSTED, "4096");
        reach_failure(freed, KEEL_RESOURCE_EXHAUSTED);
        CHECK(is_resident(x));
        CHECK_EQ(waiting_in(pool), 0);
    }
}

// Two pieces of work that each hold half of a pool and ask for the other half.
TEST(alloca, deallocas_behind_each_other_do_not_help, POOLS)
{
    keel_pool_t *pool = new_failing_pool(8192, 4096);
    keel_semaphore_t *gate = new_semaphore(0);
    keel_point_t more[2], freed[2];
    for (int i = 0; i < 2; i++) {
        keel_buffer_t *x = new_reserved(pool, 4096);
        reach(submit(keel_op_alloca(x)));
        more[i] =
            submit_after(KEEL_AFTER(keel_point(gate, 1)), keel_op_alloca(new_reserved(pool, 4096)));
        freed[i] = submit_after(KEEL_AFTER(more[i]), keel_op_dealloca(x));
    }
    TRY(keel_semaphore_signal(gate, 1));
    for (int i = 0; i < 2; i++) {
        reach_failure_saying(more[i], KEEL_RESOURCE_EXHAUSTED, "4096");
        reach_failure(freed[i], KEEL_RESOURCE_EXHAUSTED);
    }
}

// Nor do those behind a semaphore that only work behind the alloca will signal, which comes last.
TEST(alloca, deallocas_behind_later_work_do_not_help, POOLS)
{
    for (int works = 0; works < 2; works++) {
        row("work that signals: %d", works);
        keel_pool_t *pool = new_failing_pool(4096, 0);
        keel_semaphore_t *last = new_semaphore(0);
        keel_buffer_t *x = new_reserved(pool, 4096), *y = new_reserved(pool, 4096);
        keel_op_t fill = keel_op_fill(keel_whole(x), 1, 1);
        reach(submit(keel_op_alloca(x)));
        keel_point_t freed = submit_after(KEEL_AFTER(keel_point(last, 1)), keel_op_dealloca(x));
        keel_point_t ready = submit(keel_op_alloca(y)), between;
        if (!faulted()) CHECK_EQ(waiting_until(pool, 1), 1);
        CHECK(pending(ready));
        TRY(keel_queue_submit(the_queue(), KEEL_AFTER(ready), &fill, (size_t)works,
                              KEEL_POINTS(keel_point(last, 1)), &between));
        reach_failure_saying(ready, KEEL_RESOURCE_EXHAUSTED, "4096");
        reach_failure(between, KEEL_RESOURCE_EXHAUSTED);
        reach_failure(freed, KEEL_RESOURCE_EXHAUSTED);
        CHECK(is_resident(x));
        CHECK_EQ(waiting_in(pool), 0);
    }
}

// A pool does not wait for another one.
TEST(alloca, deallocas_of_other_pools_do_not_help, POOLS)
{
    keel_pool_t *full = new_failing_pool(4096, 0), *other = new_failing_pool(4096, 0);
    keel_semaphore_t *gate = new_semaphore(0);
    keel_buffer_t *x = new_reserved(full, 4096), *y = new_reserved(other, 4096);
    reach(SUBMIT(KEEL_NO_WAITS, keel_op_alloca(x), keel_op_alloca(y)));
    keel_point_t freed = submit_after(KEEL_AFTER(keel_point(gate, 1)), keel_op_dealloca(y));
    reach_failure_saying(submit(keel_op_alloca(new_reserved(full, 4096))), KEEL_RESOURCE_EXHAUSTED,
                         "4096");
    TRY(keel_semaphore_signal(gate, 1));
    reach(freed);
}

// A dealloca that fails frees nothing, and those that waited for it are told.
TEST(alloca, failed_dealloca_does_not_free, POOLS)
{
    keel_pool_t *pool = new_failing_pool(4096, 0);
    keel_semaphore_t *gate = new_semaphore(0);
    keel_buffer_t *x = new_reserved(pool, 4096), *y = new_reserved(pool, 4096);
    reach(submit(keel_op_alloca(x)));
    buffer_put(x, 0, "here", 4);
    keel_point_t freed = submit_after(KEEL_AFTER(keel_point(gate, 1)), keel_op_dealloca(x));
    keel_point_t ready = submit(keel_op_alloca(y));
    TRY(keel_semaphore_fail(gate, KEEL_ERROR(KEEL_ABORTED, "not today")));
    reach_failure(freed, KEEL_ABORTED);
    reach_failure(ready, KEEL_RESOURCE_EXHAUSTED);
    CHECK(is_resident(x));
    check_bytes(x, 0, "here", 4);
}

static keel_status_t call_that_fails(void *called, keel_host_call_t *call)
{
    (void)call;
    gate_open(called);
    return KEEL_ERROR(KEEL_ABORTED, "not with me");
}

// An alloca that is served when its submission has failed leaves nothing behind, either.
TEST(alloca, served_after_a_failure, .needs = KEEL_CAP_QUEUE_ALLOCA | KEEL_CAP_HOST_CALLS)
{
    gate_t *called = new_gate();
    keel_pool_t *pool = new_failing_pool(4096, 0);
    keel_semaphore_t *gate = new_semaphore(0);
    keel_buffer_t *x = new_reserved(pool, 4096), *y = new_reserved(pool, 4096);
    reach(submit(keel_op_alloca(x)));
    submit_after(KEEL_AFTER(keel_point(gate, 1)), keel_op_dealloca(x));
    keel_point_t failed =
        SUBMIT(KEEL_NO_WAITS, keel_op_host_call(call_that_fails, called), keel_op_alloca(y));
    while (!gate_wait_ms(called, 2) && !ended(failed)) continue;
    TRY(keel_semaphore_signal(gate, 1));
    reach_failure(failed, KEEL_ABORTED);
    TRY(keel_device_wait_idle(the_device(), patience()));
    // It has memory, or it can get some.
    keel_point_t again = submit(keel_op_alloca(y));
    keel_status_t refused = keel_wait(KEEL_POINTS(again), KEEL_ALL, patience());
    OWN(refused);
    if (refused) reach(submit(keel_op_fill(keel_whole(y), 1, 1)));
    drop(y);
    reach(submit(keel_op_alloca(x)));
}

// Deallocas of the past are no reason to wait, however they ended.
TEST(alloca, ended_deallocas_do_not_help, POOLS)
{
    keel_pool_t *pool = new_failing_pool(4096, 0);
    keel_semaphore_t *bad = new_semaphore(0);
    keel_buffer_t *x = new_reserved(pool, 4096);
    for (int i = 0; i < 3; i++) {
        reach(submit(keel_op_alloca(x)));
        reach(submit(keel_op_dealloca(x)));
        reach_failure(submit(keel_op_dealloca(x)), KEEL_FAILED_PRECONDITION);
    }
    reach(submit(keel_op_alloca(x)));
    TRY(keel_semaphore_fail(bad, KEEL_ERROR(KEEL_ABORTED, "never run")));
    reach_failure(submit_after(KEEL_AFTER(keel_point(bad, 1)), keel_op_dealloca(x)), KEEL_ABORTED);
    TRY(keel_device_wait_idle(the_device(), patience()));
    reach_failure(submit(keel_op_alloca(new_reserved(pool, 4096))), KEEL_RESOURCE_EXHAUSTED);
    CHECK_EQ(waiting_in(pool), 0);
}

// Work that waits for an alloca that fails, fails with its cause.
TEST(alloca, failure_reaches_users, POOLS)
{
    keel_pool_t *pool = new_failing_pool(4096, 0);
    keel_buffer_t *x = new_reserved(pool, 4096), *y = new_reserved(pool, 4096);
    reach(submit(keel_op_alloca(x)));
    keel_point_t ready = submit(keel_op_alloca(y));
    keel_point_t filled = submit_after(KEEL_AFTER(ready), keel_op_fill(keel_whole(y), 1, 1));
    reach_failure_saying(filled, KEEL_RESOURCE_EXHAUSTED, "4096");
}

TEST(alloca, use_before_alloca_fails, POOLS)
{
    keel_buffer_t *x = new_reserved(new_pool(0, 0), 64);
    reach_failure(submit(keel_op_fill(keel_whole(x), 1, 1)), KEEL_FAILED_PRECONDITION);
}

TEST(alloca, use_after_dealloca_fails, POOLS)
{
    keel_buffer_t *x = new_reserved(new_pool(0, 0), 64), *y = new_buffer(64);
    reach(submit(keel_op_alloca(x)));
    reach(submit(keel_op_dealloca(x)));
    reach_failure(submit(keel_op_fill(keel_whole(x), 1, 1)), KEEL_FAILED_PRECONDITION);
    reach_failure(submit(keel_op_copy(keel_whole(x), keel_whole(y))), KEEL_FAILED_PRECONDITION);
    reach_failure(submit(keel_op_copy(keel_whole(y), keel_whole(x))), KEEL_FAILED_PRECONDITION);
    reach_failure(submit(keel_op_update(keel_span(x, 0, 1), "x")), KEEL_FAILED_PRECONDITION);
}

TEST(alloca, dispatch_without_memory_fails, RUNS)
{
    keel_buffer_t *x = new_reserved(new_pool(0, 0), 64);
    reach_failure(
        submit(keel_op_dispatch(kernel("tally"), keel_groups(1, 1, 1), NULL, 0, KEEL_BIND(x))),
        KEEL_FAILED_PRECONDITION);
}

TEST(alloca, twice_fails, POOLS)
{
    keel_buffer_t *x = new_reserved(new_pool(0, 0), 64);
    reach(submit(keel_op_alloca(x)));
    reach_failure(submit(keel_op_alloca(x)), KEEL_FAILED_PRECONDITION);
    CHECK(is_resident(x));
    reach(submit(keel_op_dealloca(x)));
    reach_failure(submit(keel_op_dealloca(x)), KEEL_FAILED_PRECONDITION);
}

TEST(alloca, bad_arguments, POOLS)
{
    keel_buffer_t *plain = new_buffer(64), *reserved = new_reserved(new_pool(0, 0), 64);
    keel_buffer_t *part = new_subspan(reserved, 0, 32);
    keel_queue_t *q = the_queue();
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "buffer",
                 keel_queue_run(q, KEEL_NO_WAITS, keel_op_alloca(NULL), NULL));
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "buffer",
                 keel_queue_run(q, KEEL_NO_WAITS, keel_op_dealloca(NULL), NULL));
    FAILS_SAYING(KEEL_FAILED_PRECONDITION, "reserve",
                 keel_queue_run(q, KEEL_NO_WAITS, keel_op_alloca(plain), NULL));
    FAILS_SAYING(KEEL_FAILED_PRECONDITION, "reserve",
                 keel_queue_run(q, KEEL_NO_WAITS, keel_op_dealloca(plain), NULL));
    FAILS(KEEL_INVALID_ARGUMENT, keel_queue_run(q, KEEL_NO_WAITS, keel_op_alloca(part), NULL));
}

// Subspans of a reserved buffer come alive with it.
TEST(alloca, subspans_before_memory, RUNS)
{
    keel_buffer_t *x = new_reserved(new_pool(0, 0), 64), *part = new_subspan(x, 16, 16);
    CHECK(!is_resident(part));
    keel_point_t ready = submit(keel_op_alloca(x));
    reach(submit_after(KEEL_AFTER(ready), keel_op_fill(keel_whole(part), 3, 1)));
    CHECK(is_resident(part));
    check_filled(x, 16, 16, 3);
    uint64_t whole, sub;
    TRY(keel_buffer_address(x, &whole));
    TRY(keel_buffer_address(part, &sub));
    CHECK_EQ(sub, whole + 16);
}

// A recording may name a buffer directly before it has memory, and be bound to one that has none.
TEST(alloca, recorded_before_memory, RUNS)
{
    keel_buffer_t *x = new_reserved(new_pool(0, 0), 64);
    keel_recording_t *recording = RECORD(0, keel_op_fill(keel_whole(x), 9, 1));
    keel_point_t ready = submit(keel_op_alloca(x));
    reach(submit_after(KEEL_AFTER(ready), keel_op_execute(recording, KEEL_NO_BINDINGS)));
    check_filled(x, 0, 64, 9);
}

// Where its memory was, another buffer has its own the next time.
TEST(alloca, recorded_follows_its_memory, RUNS)
{
    enum { SIZE = 4096, ROUNDS = 4 };
    keel_pool_t *pool = new_pool(0, 0);
    keel_buffer_t *x = new_reserved(pool, SIZE), *others[ROUNDS];
    keel_recording_t *recording = RECORD(0, keel_op_fill(keel_whole(x), 9, 1));
    for (uint32_t i = 0; i < ROUNDS; i++) {
        reach(SUBMIT(KEEL_NO_WAITS, keel_op_alloca(x), keel_op_barrier(),
                     keel_op_fill(keel_whole(x), 1, 1)));
        reach(submit(keel_op_execute(recording, KEEL_NO_BINDINGS)));
        check_filled(x, 0, SIZE, 9);
        reach(submit(keel_op_dealloca(x)));
        others[i] = new_reserved(pool, SIZE);
        reach(SUBMIT(KEEL_NO_WAITS, keel_op_alloca(others[i]), keel_op_barrier(),
                     keel_op_fill(keel_whole(others[i]), 1, 1)));
    }
    for (uint32_t i = 0; i < ROUNDS; i++) check_filled(others[i], 0, SIZE, 1);
}

TEST(alloca, bound_before_memory, RUNS)
{
    keel_semaphore_t *gate = new_semaphore(0);
    keel_buffer_t *x = new_reserved(new_pool(0, 0), 64);
    keel_recording_t *recording = RECORD(1, keel_op_fill(keel_slot(0, 0, KEEL_WHOLE), 8, 1));
    keel_point_t ready = submit_after(KEEL_AFTER(keel_point(gate, 1)), keel_op_alloca(x));
    keel_point_t done = submit_after(KEEL_AFTER(ready), keel_op_execute(recording, KEEL_BIND(x)));
    CHECK(pending(done));
    TRY(keel_semaphore_signal(gate, 1));
    reach(done);
    check_filled(x, 0, 64, 8);
}

TEST(alloca, recorded_without_memory_fails, RUNS)
{
    keel_buffer_t *x = new_reserved(new_pool(0, 0), 64);
    keel_recording_t *recording = RECORD(0, keel_op_fill(keel_whole(x), 9, 1));
    reach_failure(submit(keel_op_execute(recording, KEEL_NO_BINDINGS)), KEEL_FAILED_PRECONDITION);
    reach(submit(keel_op_alloca(x)));
    reach(submit(keel_op_execute(recording, KEEL_NO_BINDINGS)));
}

// Released by the application at once; the queue keeps it while it needs it.
TEST(alloca, released_while_pending, RUNS)
{
    keel_pool_t *pool = new_pool(4096, 0);
    keel_semaphore_t *gate = new_semaphore(0);
    keel_buffer_t *x = new_reserved(pool, 4096), *out = new_buffer(4096);
    keel_point_t a = submit_after(KEEL_AFTER(keel_point(gate, 1)), keel_op_alloca(x));
    keel_point_t b = submit_after(KEEL_AFTER(a), keel_op_fill(keel_whole(x), 6, 1));
    keel_point_t c = submit_after(KEEL_AFTER(b), keel_op_copy(keel_whole(x), keel_whole(out)));
    keel_point_t d = submit_after(KEEL_AFTER(c), keel_op_dealloca(x));
    drop(x);
    TRY(keel_semaphore_signal(gate, 1));
    reach(d);
    check_filled(out, 0, 4096, 6);
    TRY(keel_device_wait_idle(the_device(), patience()));
    keel_pool_stats_t stats;
    keel_pool_stats(pool, &stats);
    CHECK_EQ(stats.used, 0);
}

TEST(alloca, pipelined, RUNS)
{
    enum { N = 20, DEPTH = 3 };
    keel_pool_t *pool = new_pool(DEPTH * 4096, 4096);
    keel_buffer_t *out = new_buffer(N);
    keel_recording_t *recording = RECORD(2, keel_op_copy(keel_slot(0, 0, 1), keel_slot(1, 0, 1)));
    keel_point_t freed[N];
    for (uint32_t i = 0; i < N; i++) {
        keel_buffer_t *x = new_reserved(pool, 4096);
        keel_point_t a = submit(keel_op_alloca(x));
        keel_point_t b = submit_after(KEEL_AFTER(a), keel_op_fill(keel_whole(x), 100 + i, 1));
        keel_point_t c = submit_after(
            KEEL_AFTER(b), keel_op_execute(recording, KEEL_BIND(x, keel_span(out, i, 1))));
        freed[i] = submit_after(KEEL_AFTER(c), keel_op_dealloca(x));
        drop(x);
    }
    TRY(keel_wait(keel_points(freed, N), KEEL_ALL, patience()));
    for (uint32_t i = 0; i < N; i++) check_filled(out, i, 1, (uint8_t)(100 + i));
}
