// SPDX-License-Identifier: Apache-2.0
// What a queue keeps of a dealloca for an alloca right behind it, on the CUDA driver in software:
// when CUDA learns of the one and of the other.
#include <stdlib.h>
#include <string.h>

#include "drivers/cuda/device.h"

enum { SIZE = 1 << 20, LARGE = (4 << 20) + 1 };

static cuda_symbols_t *symbols;
static cuda_symbols_t real;
static char calls[64];          // that CUDA got: Alloc, Free, Work
static _Atomic uint32_t count;  // of these
static _Atomic bool refused;    // frees are, as CUDA says
static void (*meanwhile)(void); // NULL: nothing happens during a free

static void note(char call)
{
    uint32_t at = atomic_fetch_add(&count, 1);
    if (at < sizeof calls - 1) calls[at] = call;
}

static CUresult pool_alloc(CUdeviceptr *address, size_t size, CUmemoryPool pool, CUstream stream)
{
    note('A');
    return real.cuMemAllocFromPoolAsync(address, size, pool, stream);
}

static CUresult pool_free(CUdeviceptr address, CUstream stream)
{
    note('F');
    if (meanwhile) meanwhile();
    CUresult result = real.cuMemFreeAsync(address, stream);
    return atomic_load(&refused) ? CUDA_ERROR_OUT_OF_MEMORY : result;
}

static CUresult fill(CUdeviceptr target, unsigned int value, size_t words, CUstream stream)
{
    note('W');
    return real.cuMemsetD32Async(target, value, words, stream);
}

// What CUDA was asked for since the last time.
static const char *called(void)
{
    static char since[sizeof calls];
    memcpy(since, calls, sizeof calls);
    memset(calls, 0, sizeof calls);
    atomic_store(&count, 0);
    return since;
}

typedef struct place_t {
    keel_device_t *device;
    keel_queue_t *queue;
    keel_pool_t *pool; // NULL: the device's own
} place_t;

static void place_open(place_t *place, const char *options)
{
    atomic_store(&refused, false);
    *place = (place_t){.device = device_open(options)};
    place->queue = keel_device_queue(place->device, 0);
    called();
}

static void place_close(place_t *place)
{
    keel_pool_release(place->pool);
    keel_device_release(place->device);
}

static keel_buffer_t *take(const place_t *place, uint64_t size)
{
    keel_buffer_t *buffer = NULL;
    assert_null(keel_queue_alloca(place->queue, place->pool, size, &buffer, NULL));
    return buffer;
}

static void give(const place_t *place, keel_buffer_t *buffer)
{
    assert_null(keel_queue_dealloca(place->queue, KEEL_NO_WAITS, buffer, NULL));
    keel_buffer_release(buffer);
}

// An alloca and a dealloca of so much; where it was.
static uint64_t pair(const place_t *place, uint64_t size)
{
    keel_buffer_t *buffer = take(place, size);
    uint64_t address = 0;
    assert_null(keel_buffer_address(buffer, &address));
    give(place, buffer);
    return address;
}

static uint64_t reserved(const place_t *place)
{
    keel_pool_stats_t stats;
    keel_pool_stats(place->pool ? place->pool : keel_device_pool(place->device, 0), &stats);
    return stats.reserved;
}

static void test_pairs(void **state)
{
    (void)state;
    place_t place;
    place_open(&place, "");
    uint64_t address = pair(&place, SIZE);
    for (int i = 0; i < 10; i++) assert_int_equal(pair(&place, SIZE), address);
    assert_string_equal(called(), "A");
    pair(&place, 2 * SIZE); // another size
    assert_string_equal(called(), "FA");
    keel_buffer_t *a = take(&place, 2 * SIZE), *b = take(&place, 2 * SIZE);
    assert_string_equal(called(), "A"); // for one of them
    give(&place, a);
    give(&place, b); // of which one is kept
    assert_string_equal(called(), "F");
    place_close(&place);
    assert_string_equal(called(), "F");
}

// Work finds all freed that was before it.
static void test_work_comes_behind(void **state)
{
    (void)state;
    place_t place;
    place_open(&place, "");
    keel_buffer_t *words = buffer_create(place.device, FILLED, 0);
    keel_op_t work = keel_op_fill(keel_whole(words), 1, 4);
    pair(&place, SIZE);
    assert_null(keel_queue_run(place.queue, KEEL_NO_WAITS, work, NULL));
    assert_string_equal(called(), "AFW");
    keel_buffer_t *buffer = take(&place, SIZE); // work behind it in the same submission
    keel_op_t ops[] = {keel_op_dealloca(buffer), work};
    assert_null(keel_queue_submit(place.queue, KEEL_NO_WAITS, ops, 2, KEEL_NO_SIGNALS, NULL));
    assert_string_equal(called(), "AFW");
    keel_buffer_release(buffer);
    assert_null(keel_queue_wait_idle(place.queue, KEEL_FOREVER));
    keel_queue_t *other = NULL; // a wait for something that another queue does
    keel_point_t done;
    assert_null(keel_queue_create(place.device, NULL, &other));
    pair(&place, SIZE);
    assert_string_equal(called(), "A");
    assert_null(keel_queue_run(other, KEEL_NO_WAITS, work, &done));
    assert_null(keel_queue_run(place.queue, KEEL_AFTER(done), work, NULL));
    assert_string_equal(called(), "WFW");
    assert_null(keel_device_wait_idle(place.device, KEEL_FOREVER));
    keel_queue_release(other);
    keel_buffer_release(words);
    place_close(&place);
}

// Not what others would miss, what counts for a limit, or if each call is to be seen.
static void test_what_is_not_kept(void **state)
{
    (void)state;
    place_t place;
    place_open(&place, "");
    pair(&place, LARGE);
    assert_string_equal(called(), "AF");
    assert_null(
        keel_pool_create(place.device, &(keel_pool_options_t){.limit = 2 * SIZE}, &place.pool));
    pair(&place, SIZE);
    assert_string_equal(called(), "AF");
    place_close(&place);
    place_open(&place, "&serial=1");
    pair(&place, SIZE);
    assert_string_equal(called(), "AF");
    place_close(&place);
}

static void test_pools_have_their_own(void **state)
{
    (void)state;
    place_t place;
    place_open(&place, "");
    pair(&place, SIZE);
    assert_null(keel_pool_create(place.device, NULL, &place.pool));
    pair(&place, SIZE);
    assert_string_equal(called(), "AFA");
    keel_pool_release(place.pool); // and leave nothing behind
    assert_string_equal(called(), "F");
    assert_null(keel_pool_create(place.device, NULL, &place.pool)); // perhaps where the last was
    pair(&place, SIZE);
    assert_string_equal(called(), "A");
    keel_semaphore_t *given = NULL; // the dealloca itself may be the last that has the pool
    assert_null(keel_semaphore_create(place.device, 0, &given));
    keel_buffer_t *buffer = take(&place, SIZE);
    keel_op_t op = keel_op_dealloca(buffer);
    assert_null(keel_queue_run(place.queue, KEEL_AFTER(keel_point(given, 1)), op, NULL));
    keel_buffer_release(buffer);
    keel_pool_release(place.pool);
    place.pool = NULL;
    assert_string_equal(called(), "");
    assert_null(keel_semaphore_signal(given, 1));
    assert_string_equal(called(), "F");
    keel_semaphore_release(given);
    place_close(&place);
}

static void test_it_is_given_back(void **state)
{
    (void)state;
    place_t place;
    place_open(&place, "");
    pair(&place, SIZE);
    assert_null(keel_queue_wait_idle(place.queue, KEEL_FOREVER));
    assert_true(reserved(&place) >= SIZE);
    assert_null(keel_pool_trim(keel_device_pool(place.device, 0), 0));
    assert_int_equal(reserved(&place), 0);
    keel_queue_t *mine = place.queue; // a queue that goes
    assert_null(keel_queue_create(place.device, NULL, &place.queue));
    pair(&place, SIZE);
    called();
    keel_queue_release(place.queue);
    await(atomic_load(&count)); // a thread of its own may have had it last
    assert_string_equal(called(), "F");
    place.queue = mine;
    place_close(&place);
    place_open(&place, ""); // a threshold
    assert_null(
        keel_pool_create(place.device, &(keel_pool_options_t){.threshold = 1}, &place.pool));
    pair(&place, SIZE);
    await(!reserved(&place));
    place_close(&place);
}

// A thread that finds no memory has it, be it on another queue.
static void test_need(void **state)
{
    (void)state;
    place_t place;
    place_open(&place, "");
    keel_queue_t *other = NULL;
    keel_buffer_t *rest = NULL;
    keel_point_t ready;
    assert_null(keel_queue_create(place.device, NULL, &other));
    keel_memory_stats_t memory;
    assert_null(keel_device_memory(place.device, &memory));
    pair(&place, 4 * SIZE);
    assert_null(keel_queue_alloca(other, NULL, memory.budget - SIZE, &rest, &ready));
    ok(ready);
    assert_null(keel_queue_dealloca(other, KEEL_NO_WAITS, rest, NULL));
    keel_buffer_release(rest);
    pair(&place, 4 * SIZE);
    rest = buffer_create(place.device, memory.budget - SIZE, 0);
    keel_buffer_release(rest);
    keel_queue_release(other);
    place_close(&place);
}

static keel_status_t nothing(void *user, keel_host_call_t *call)
{
    (void)user;
    (void)call;
    return NULL;
}

// Who waits for the dealloca may be issued while that ends, by the same thread.
static void test_need_at_once(void **state)
{
    (void)state;
    place_t place;
    place_open(&place, "");
    keel_queue_t *other = NULL;
    keel_semaphore_t *given = NULL;
    keel_memory_stats_t memory;
    assert_null(keel_queue_create(place.device, NULL, &other));
    assert_null(keel_semaphore_create(place.device, 0, &given));
    assert_null(keel_device_memory(place.device, &memory));
    keel_buffer_t *buffer = take(&place, 4 * SIZE), *rest = NULL;
    keel_buffer_options_t options = {.size = memory.budget - SIZE};
    keel_point_t point = keel_point(given, 1), ready;
    assert_null(keel_buffer_reserve(keel_device_pool(place.device, 0), &options, &rest));
    assert_null(keel_queue_run(other, KEEL_AFTER(point), keel_op_alloca(rest), &ready));
    keel_op_t op = keel_op_dealloca(buffer);
    keel_points_t signals = {&point, 1};
    assert_null(keel_queue_submit(place.queue, KEEL_NO_WAITS, &op, 1, signals, NULL));
    ok(ready);
    keel_buffer_release(buffer);
    keel_buffer_release(rest);
    keel_semaphore_release(given);
    keel_queue_release(other);
    place_close(&place);
}

// What a queue keeps that is just going is had in a moment, if others leave the processor to it.
static void test_need_of_the_dead(void **state)
{
    (void)state;
    enum { ROUNDS = 40 };
    place_t place;
    place_open(&place, "");
    keel_memory_stats_t memory;
    assert_null(keel_device_memory(place.device, &memory));
    keel_buffer_options_t rest = {.size = memory.budget - SIZE};
    int failed = 0;
    for (int i = 0; i < ROUNDS; i++) {
        keel_queue_t *queue = NULL;
        keel_buffer_t *buffer = NULL;
        keel_point_t ready, gone; // known by a thread of the queue's, which has it last, perhaps
        assert_null(keel_queue_create(place.device, NULL, &queue));
        assert_null(keel_queue_alloca(queue, NULL, 4 * SIZE, &buffer, &ready));
        keel_op_t ops[] = {keel_op_host_call(nothing, NULL), keel_op_barrier(),
                           keel_op_dealloca(buffer)};
        assert_null(keel_queue_submit(queue, KEEL_AFTER(ready), ops, 3, KEEL_NO_SIGNALS, &gone));
        keel_semaphore_retain(gone.semaphore);
        keel_buffer_release(buffer);
        keel_queue_release(queue);
        ok(gone);
        keel_semaphore_release(gone.semaphore);
        keel_status_t status = keel_buffer_create(place.device, &rest, &buffer);
        if (status)
            failed++;
        else
            keel_buffer_release(buffer);
        keel_status_release(status);
    }
    assert_true(failed < ROUNDS / 2); // 29 to 35 without waiting for them
    place_close(&place);
}

// What CUDA refuses to free may be free all the same: no thread gets it, and it is not freed again.
static void test_refusals(void **state)
{
    (void)state;
    place_t place;
    place_open(&place, "");
    pair(&place, SIZE);
    atomic_store(&refused, true);
    keel_buffer_t *a = take(&place, 2 * SIZE);
    assert_string_equal(called(), "AFA");
    pair(&place, SIZE);
    assert_string_equal(called(), "A");
    atomic_store(&refused, false);
    give(&place, a);
    assert_string_equal(called(), "F");
    place_close(&place);
    assert_string_equal(called(), "F");
}

static struct {
    keel_queue_t *queue;
    keel_buffer_t *words;
    keel_point_t done;
} late;

static void submit_meanwhile(void)
{
    meanwhile = NULL;
    assert_null(
        keel_queue_fill(late.queue, KEEL_NO_WAITS, keel_whole(late.words), 1, 4, &late.done));
    assert_string_equal(called(), "AF"); // it is not issued here
}

// What comes while another thread has it freed is not left behind.
static void test_what_comes_meanwhile(void **state)
{
    (void)state;
    place_t place;
    place_open(&place, "");
    late.queue = place.queue;
    late.words = buffer_create(place.device, FILLED, 0);
    pair(&place, SIZE);
    meanwhile = submit_meanwhile;
    assert_null(keel_pool_trim(keel_device_pool(place.device, 0), 0));
    ok(late.done);
    assert_string_equal(called(), "W");
    keel_buffer_release(late.words);
    place_close(&place);
}

static int setup(void **state)
{
    (void)state;
    setenv("KEEL_SIM_CUDA", "memory=16777216,leaks=2", 1);
    symbols = symbols_open(&real);
    if (!symbols) return 1;
    symbols->cuMemAllocFromPoolAsync = pool_alloc;
    symbols->cuMemFreeAsync = pool_free;
    symbols->cuMemsetD32Async = fill;
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pairs),
        cmocka_unit_test(test_work_comes_behind),
        cmocka_unit_test(test_what_is_not_kept),
        cmocka_unit_test(test_pools_have_their_own),
        cmocka_unit_test(test_it_is_given_back),
        cmocka_unit_test(test_need),
        cmocka_unit_test(test_need_at_once),
        cmocka_unit_test(test_need_of_the_dead),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_what_comes_meanwhile),
    };
    return cmocka_run_group_tests(tests, setup, NULL);
}
