// SPDX-License-Identifier: Apache-2.0
#include "memory/tlsf.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "memory/aborts.h"

// The model: one flag per granule. Every result of the allocator is compared with it.

enum { MODEL_GRANULES = 4096 };

typedef struct live_t {
    tlsf_record_t *record;
    uint64_t start, count; // granules
} live_t;

typedef struct model_t {
    tlsf_t tlsf;
    uint64_t granule, granules;
    bool busy[MODEL_GRANULES];
    live_t live[MODEL_GRANULES];
    unsigned live_count;
    uint64_t failures;
} model_t;

static void model_init(model_t *m, uint64_t granules, uint64_t granule)
{
    assert_true(granules <= MODEL_GRANULES);
    *m = (model_t){.granule = granule, .granules = granules};
    tlsf_options_t options = {.capacity = granules * granule, .granule = granule};
    assert_int_equal(tlsf_init(&m->tlsf, &options), TLSF_OK);
}

// Finds the next run of free granules from *start on; returns its length, zero at the end.
static uint64_t model_run(const model_t *m, uint64_t *start)
{
    while (*start < m->granules && m->busy[*start]) ++*start;
    uint64_t end = *start;
    while (end < m->granules && !m->busy[end]) end++;
    return end - *start;
}

static bool model_has_room(const model_t *m, uint64_t count, uint64_t align)
{
    uint64_t step = align > m->granule ? align / m->granule : 1, length;
    for (uint64_t start = 0; (length = model_run(m, &start)); start += length) {
        uint64_t pad = (step - start % step) % step;
        if (pad + count <= length) return true;
    }
    return false;
}

static bool model_alloc(model_t *m, uint64_t size, uint64_t align)
{
    uint64_t count = size ? (size + m->granule - 1) / m->granule : 1;
    tlsf_block_t block;
    tlsf_result_t result = tlsf_alloc(&m->tlsf, size, align, &block);
    if (result == TLSF_NO_SPACE) {
        assert_null(block.record);
        assert_false(model_has_room(m, count, align));
        m->failures++;
        return false;
    }
    assert_int_equal(result, TLSF_OK);
    assert_int_equal(block.offset % align, 0);
    assert_int_equal(block.offset % m->granule, 0);
    uint64_t start = block.offset / m->granule;
    assert_true(start + count <= m->granules);
    for (uint64_t i = start; i < start + count; i++) {
        if (m->busy[i]) fail_msg("granule %u given twice", (unsigned)i);
        m->busy[i] = true;
    }
    m->live[m->live_count++] = (live_t){block.record, start, count};
    return true;
}

static void model_free(model_t *m, unsigned index)
{
    live_t block = m->live[index];
    m->live[index] = m->live[--m->live_count];
    memset(&m->busy[block.start], 0, block.count);
    tlsf_free(&m->tlsf, block.record);
}

static void model_verify(const model_t *m)
{
    assert_true(tlsf_check(&m->tlsf));
    uint64_t free_count = 0, largest = 0, start = 0, length;
    tlsf_range_t range = {0};
    for (; (length = model_run(m, &start)); start += length) {
        assert_true(tlsf_next_free(&m->tlsf, &range));
        assert_int_equal(range.offset, start * m->granule);
        assert_int_equal(range.size, length * m->granule);
        free_count += length;
        if (length > largest) largest = length;
    }
    assert_false(tlsf_next_free(&m->tlsf, &range));
    assert_int_equal(tlsf_free_size(&m->tlsf), free_count * m->granule);
    assert_int_equal(tlsf_used_size(&m->tlsf), (m->granules - free_count) * m->granule);
    assert_int_equal(tlsf_largest(&m->tlsf), largest * m->granule);
}

static uint64_t random_next(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static void empties_to_one_block(model_t *m, uint64_t *random)
{
    while (m->live_count) model_free(m, (unsigned)(random_next(random) % m->live_count));
    model_verify(m);
    assert_int_equal(tlsf_largest(&m->tlsf), tlsf_capacity(&m->tlsf));
}

// Every sequence of up to five of these steps on eight granules.
static void exhaustive_step(model_t *m, unsigned step)
{
    switch (step) {
    case 0: model_alloc(m, 1, 1); break;
    case 1: model_alloc(m, 2, 1); break;
    case 2: model_alloc(m, 3, 1); break;
    case 3: model_alloc(m, 5, 1); break;
    case 4: model_alloc(m, 1, 2); break;
    case 5: model_alloc(m, 2, 4); break;
    case 6:
        if (m->live_count) model_free(m, 0);
        break;
    case 7:
        if (m->live_count) model_free(m, m->live_count - 1);
        break;
    case 8:
        if (m->live_count) model_free(m, m->live_count / 2);
        break;
    }
}

static void test_exhaustive(void **state)
{
    (void)state;
    enum { STEPS = 9, LENGTH = 5 };
    static model_t m;
    unsigned sequences = 1;
    for (unsigned length = 1; length <= LENGTH; length++) {
        sequences *= STEPS;
        for (unsigned sequence = 0; sequence < sequences; sequence++) {
            model_init(&m, 8, 1);
            unsigned rest = sequence;
            for (unsigned i = 0; i < length; i++, rest /= STEPS) exhaustive_step(&m, rest % STEPS);
            model_verify(&m);
            tlsf_finish(&m.tlsf);
        }
    }
}

// Phases of filling and draining, so that both the full and the nearly empty allocator are seen.
static void run_random(uint64_t seed, uint64_t granule, unsigned steps)
{
    static model_t m;
    uint64_t random = seed;
    model_init(&m, MODEL_GRANULES, granule);
    for (unsigned i = 0; i < steps; i++) {
        unsigned alloc_percent = i / 10000 % 2 ? 40 : 60;
        if (random_next(&random) % 100 < alloc_percent && m.live_count < MODEL_GRANULES) {
            uint64_t limit = granule << (random_next(&random) % 8);
            uint64_t align = UINT64_C(1) << (random_next(&random) % 20);
            if (random_next(&random) % 4) align = 1;
            model_alloc(&m, random_next(&random) % limit, align);
        } else if (m.live_count) {
            model_free(&m, (unsigned)(random_next(&random) % m.live_count));
        }
        if (i % 1000 == 0) model_verify(&m);
    }
    assert_true(m.failures > 100);
    empties_to_one_block(&m, &random);
    tlsf_finish(&m.tlsf);
}

static void test_random(void **state)
{
    (void)state;
    run_random(0x9e3779b97f4a7c15, 64, 1000000);
    run_random(0xd1b54a32d192ed03, 1, 200000);
    run_random(0x8cb92ba72f3d8dd7, 4096, 200000);
}

// The class search rounds up; a request for exactly what is there must be served all the same.
static void test_whole_capacity(void **state)
{
    (void)state;
    static const uint64_t large[] = {
        UINT64_C(0x123456789), (UINT64_C(1) << 40) - 1, (UINT64_C(1) << 40) + 1,
        UINT64_MAX >> 6,       UINT64_MAX >> 7,
    };
    for (uint64_t i = 1; i < 3000 + sizeof large / sizeof *large; i++) {
        uint64_t capacity = (i < 3000 ? i : large[i - 3000]) * 64;
        tlsf_t tlsf;
        tlsf_block_t block, none;
        assert_int_equal(tlsf_init(&tlsf, &(tlsf_options_t){.capacity = capacity}), TLSF_OK);
        assert_int_equal(tlsf_alloc(&tlsf, capacity + 1, 1, &block), TLSF_NO_SPACE);
        assert_int_equal(tlsf_alloc(&tlsf, capacity, 4096, &block), TLSF_OK);
        assert_int_equal(block.offset, 0);
        assert_int_equal(tlsf_free_size(&tlsf), 0);
        assert_int_equal(tlsf_largest(&tlsf), 0);
        assert_int_equal(tlsf_alloc(&tlsf, 1, 1, &none), TLSF_NO_SPACE);
        assert_true(tlsf_check(&tlsf));
        tlsf_free(&tlsf, block.record);
        assert_int_equal(tlsf_largest(&tlsf), capacity);
        tlsf_finish(&tlsf);
    }
}

static void test_alignment(void **state)
{
    (void)state;
    static const uint64_t granules[] = {1, 16, 64, 256, 4096};
    for (unsigned g = 0; g < sizeof granules / sizeof *granules; g++) {
        for (unsigned log2 = 0; log2 < 32; log2++) {
            uint64_t align = UINT64_C(1) << log2, granule = granules[g];
            uint64_t sizes[] = {1, granule, granule + 1, align, align + 1, 3 * align};
            for (unsigned s = 0; s < sizeof sizes / sizeof *sizes; s++) {
                tlsf_t tlsf;
                tlsf_block_t first, second;
                tlsf_options_t options = {.capacity = UINT64_C(1) << 40, .granule = granule};
                assert_int_equal(tlsf_init(&tlsf, &options), TLSF_OK);
                assert_int_equal(tlsf_alloc(&tlsf, 1, 1, &first), TLSF_OK);
                assert_int_equal(tlsf_alloc(&tlsf, sizes[s], align, &second), TLSF_OK);
                assert_int_equal(second.offset, align > granule ? align : granule);
                assert_true(tlsf_check(&tlsf));
                tlsf_free(&tlsf, first.record);
                tlsf_free(&tlsf, second.record);
                assert_int_equal(tlsf_largest(&tlsf), options.capacity);
                tlsf_finish(&tlsf);
            }
        }
    }
}

// An aligned request is served from a block that has just the place, and from no other.
static void test_alignment_tight(void **state)
{
    (void)state;
    static model_t m;
    model_init(&m, 64, 64);
    for (unsigned i = 0; i < 64; i++) assert_true(model_alloc(&m, 64, 1));
    model_free(&m, 17);
    assert_false(model_alloc(&m, 64, 1024));
    model_free(&m, 32);
    assert_true(model_alloc(&m, 64, 1024));
    assert_int_equal(m.live[m.live_count - 1].start, 32);
    model_verify(&m);
    tlsf_finish(&m.tlsf);
}

static void test_zero_size(void **state)
{
    (void)state;
    static model_t m;
    model_init(&m, 2, 64);
    assert_true(model_alloc(&m, 0, 1));
    assert_true(model_alloc(&m, 0, 1));
    assert_false(model_alloc(&m, 0, 1));
    model_verify(&m);
    tlsf_finish(&m.tlsf);
}

static void test_exhaustion(void **state)
{
    (void)state;
    static model_t m;
    uint64_t random = 7;
    model_init(&m, MODEL_GRANULES, 64);
    for (unsigned i = 0; i < MODEL_GRANULES; i++) assert_true(model_alloc(&m, 64, 64));
    assert_false(model_alloc(&m, 1, 1));
    model_verify(&m);
    for (unsigned i = 0; i < MODEL_GRANULES / 2; i++) {
        model_free(&m, (unsigned)(random_next(&random) % m.live_count));
    }
    model_verify(&m);
    empties_to_one_block(&m, &random);
    tlsf_finish(&m.tlsf);
}

// A size between two class bounds: the hole a block leaves is taken again, not a larger block.
static void test_reuse(void **state)
{
    (void)state;
    static model_t m;
    model_init(&m, MODEL_GRANULES, 64);
    assert_true(model_alloc(&m, 1001 * 64, 1));
    assert_true(model_alloc(&m, 64, 1));
    model_free(&m, 0);
    for (unsigned i = 0; i < 100; i++) {
        assert_true(model_alloc(&m, 1001 * 64, 1));
        assert_int_equal(m.live[m.live_count - 1].start, 0);
        model_free(&m, m.live_count - 1);
    }
    model_verify(&m);
    tlsf_finish(&m.tlsf);
}

static void test_grow(void **state)
{
    (void)state;
    static model_t m;
    model_init(&m, 0, 64);
    model_verify(&m);
    assert_false(model_alloc(&m, 1, 1));

    assert_int_equal(tlsf_grow(&m.tlsf, 0), TLSF_OK);
    assert_int_equal(tlsf_grow(&m.tlsf, 10 * 64), TLSF_OK);
    m.granules = 10;
    model_verify(&m);
    assert_true(model_alloc(&m, 6 * 64, 1));
    assert_false(model_alloc(&m, 5 * 64, 1));

    // The last block is free: the new space joins it.
    assert_int_equal(tlsf_grow(&m.tlsf, 64), TLSF_OK);
    m.granules = 11;
    model_verify(&m);
    assert_true(model_alloc(&m, 5 * 64, 1));

    // The last block is taken: the new space stands alone until that block is freed.
    assert_int_equal(tlsf_grow(&m.tlsf, 3 * 64), TLSF_OK);
    m.granules = 14;
    model_verify(&m);
    assert_false(model_alloc(&m, 4 * 64, 1));
    model_free(&m, 1);
    model_verify(&m);
    assert_int_equal(tlsf_largest(&m.tlsf), 8 * 64);
    assert_int_equal(tlsf_capacity(&m.tlsf), 14 * 64);
    tlsf_finish(&m.tlsf);
}

static void test_limits(void **state)
{
    (void)state;
    const uint64_t half = UINT64_C(1) << 63;
    tlsf_t tlsf;
    tlsf_block_t a, b, c;
    tlsf_options_t options = {.capacity = UINT64_MAX, .granule = 1};
    assert_int_equal(tlsf_init(&tlsf, &options), TLSF_OK);
    assert_int_equal(tlsf_grow(&tlsf, 1), TLSF_NO_SPACE);
    assert_int_equal(tlsf_alloc(&tlsf, UINT64_MAX, half, &a), TLSF_OK);
    assert_int_equal(a.offset, 0);
    assert_int_equal(tlsf_used_size(&tlsf), UINT64_MAX);
    tlsf_free(&tlsf, a.record);

    assert_int_equal(tlsf_alloc(&tlsf, 1, half, &a), TLSF_OK);
    assert_int_equal(tlsf_alloc(&tlsf, half, half, &b), TLSF_NO_SPACE);
    assert_int_equal(tlsf_alloc(&tlsf, half + 1, half, &b), TLSF_NO_SPACE); // padded: 2^64
    assert_int_equal(tlsf_alloc(&tlsf, half - 1, half, &b), TLSF_OK);
    assert_int_equal(b.offset, half);
    assert_int_equal(tlsf_alloc(&tlsf, 1, half, &c), TLSF_NO_SPACE);
    assert_int_equal(tlsf_alloc(&tlsf, UINT64_MAX, 1, &c), TLSF_NO_SPACE);
    assert_true(tlsf_check(&tlsf));
    tlsf_finish(&tlsf);

    options = (tlsf_options_t){.capacity = UINT64_MAX & ~UINT64_C(4095), .granule = 4096};
    assert_int_equal(tlsf_init(&tlsf, &options), TLSF_OK);
    assert_int_equal(tlsf_grow(&tlsf, 4096), TLSF_NO_SPACE);
    assert_int_equal(tlsf_grow(&tlsf, options.capacity), TLSF_NO_SPACE);
    assert_int_equal(tlsf_alloc(&tlsf, UINT64_MAX, 1, &a), TLSF_NO_SPACE);
    assert_int_equal(tlsf_alloc(&tlsf, UINT64_MAX, half, &a), TLSF_NO_SPACE);
    assert_int_equal(tlsf_alloc(&tlsf, options.capacity, half, &a), TLSF_OK);
    assert_true(tlsf_check(&tlsf));
    tlsf_finish(&tlsf);
}

static void call_free(void *argument)
{
    const model_t *m = argument;
    tlsf_t tlsf = m->tlsf;
    tlsf_free(&tlsf, m->live[0].record);
}

static void test_double_free(void **state)
{
    (void)state;
#ifdef NDEBUG
    skip();
#endif
    static model_t m;
    model_init(&m, 8, 64);
    assert_true(model_alloc(&m, 64, 1));
    assert_false(aborts(call_free, &m));
    tlsf_free(&m.tlsf, m.live[0].record);
    assert_true(aborts(call_free, &m));
    tlsf_finish(&m.tlsf);
}

// Host memory that runs out after `left` allocations.
typedef struct scarce_t {
    unsigned left, held;
} scarce_t;

static void *scarce_resize(void *user, void *old, size_t size)
{
    scarce_t *scarce = user;
    assert_null(old);
    if (!scarce->left) return NULL;
    scarce->left--;
    scarce->held++;
    return malloc(size);
}

static void scarce_free(void *user, void *memory)
{
    scarce_t *scarce = user;
    if (memory) scarce->held--;
    free(memory);
}

static scarce_t scarce;

static int setup_scarce(void **state)
{
    (void)state;
    scarce = (scarce_t){0};
    keel_allocator_set(
        &(keel_allocator_t){.resize = scarce_resize, .free = scarce_free, .user = &scarce});
    return 0;
}

static int restore_allocator(void **state)
{
    (void)state;
    keel_allocator_set(NULL);
    return scarce.held != 0;
}

static void test_no_record_init(void **state)
{
    (void)state;
    tlsf_t tlsf;
    assert_int_equal(tlsf_init(&tlsf, &(tlsf_options_t){.capacity = 64}), TLSF_NO_RECORD);
    tlsf_finish(&tlsf);

    assert_int_equal(tlsf_init(&tlsf, &(tlsf_options_t){0}), TLSF_OK);
    assert_int_equal(tlsf_grow(&tlsf, 64), TLSF_NO_RECORD);
    assert_int_equal(tlsf_capacity(&tlsf), 0);
    assert_true(tlsf_check(&tlsf));
    scarce.left = 1;
    assert_int_equal(tlsf_grow(&tlsf, 64), TLSF_OK);
    assert_int_equal(tlsf_largest(&tlsf), 64);
    tlsf_finish(&tlsf);
}

// Must fail for want of a record and change nothing.
static void refuses(model_t *m, uint64_t size, uint64_t align)
{
    static tlsf_t before;
    tlsf_block_t block;
    before = m->tlsf;
    assert_int_equal(tlsf_alloc(&m->tlsf, size, align, &block), TLSF_NO_RECORD);
    assert_null(block.record);
    assert_memory_equal(&before, &m->tlsf, sizeof before);
    model_verify(m);
}

static void test_no_record(void **state)
{
    (void)state;
    static model_t m;
    scarce.left = 1;
    model_init(&m, MODEL_GRANULES, 64);
    while (m.tlsf.spare_count > 1) assert_true(model_alloc(&m, 64, 1));

    // One record left; a block cut out of the middle of the free one needs two.
    uint64_t start = tlsf_used_size(&m.tlsf), align = 128;
    while (start % align == 0) align *= 2;
    refuses(&m, 64, align);

    assert_true(model_alloc(&m, 64, 1));
    assert_int_equal(m.tlsf.spare_count, 0);
    refuses(&m, 64, 1);

    // What needs no record still works: exactly a hole, freeing, growing a free end.
    model_free(&m, 0);
    assert_true(model_alloc(&m, 64, 1));
    assert_int_equal(m.live[m.live_count - 1].start, 0);
    uint64_t rest = tlsf_free_size(&m.tlsf);
    assert_true(model_alloc(&m, rest, 1));
    assert_int_equal(tlsf_grow(&m.tlsf, 64), TLSF_NO_RECORD);
    assert_int_equal(tlsf_capacity(&m.tlsf), MODEL_GRANULES * 64);
    model_verify(&m);

    model_free(&m, m.live_count - 1);
    scarce.left = 1;
    for (unsigned i = 0; i < 40; i++) assert_true(model_alloc(&m, 64, 1));
    uint64_t random = 11;
    empties_to_one_block(&m, &random);
    tlsf_finish(&m.tlsf);
}

// tlsf_check itself must be able to say no.
static void test_check_detects(void **state)
{
    (void)state;
    static model_t m;
    model_init(&m, 64, 64);
    assert_true(model_alloc(&m, 64, 1));
    tlsf_t *tlsf = &m.tlsf;
    const tlsf_t good = *tlsf;
    unsigned class = 63; // the free block: 63 granules

    tlsf->used_granules++;
    assert_false(tlsf_check(tlsf));
    *tlsf = good;
    tlsf->capacity_granules++;
    assert_false(tlsf_check(tlsf));
    *tlsf = good;
    tlsf->rows ^= 1;
    assert_false(tlsf_check(tlsf));
    *tlsf = good;
    tlsf->columns[class / TLSF_COLUMNS] = 0;
    assert_false(tlsf_check(tlsf));
    *tlsf = good;
    tlsf->heads[class - 1] = tlsf->heads[class];
    assert_false(tlsf_check(tlsf));
    *tlsf = good;
    tlsf->last = tlsf->first;
    assert_false(tlsf_check(tlsf));
    *tlsf = good;
    tlsf->spare_count--;
    assert_false(tlsf_check(tlsf));
    *tlsf = good;
    model_verify(&m);
    tlsf_finish(tlsf);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_exhaustive),
        cmocka_unit_test(test_random),
        cmocka_unit_test(test_whole_capacity),
        cmocka_unit_test(test_alignment),
        cmocka_unit_test(test_alignment_tight),
        cmocka_unit_test(test_zero_size),
        cmocka_unit_test(test_exhaustion),
        cmocka_unit_test(test_reuse),
        cmocka_unit_test(test_grow),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_check_detects),
        cmocka_unit_test(test_double_free),
        cmocka_unit_test_setup_teardown(test_no_record_init, setup_scarce, restore_allocator),
        cmocka_unit_test_setup_teardown(test_no_record, setup_scarce, restore_allocator),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
