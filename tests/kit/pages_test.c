// SPDX-License-Identifier: Apache-2.0
#include "kit/pages.h"

#include <keel/base.h>
#include <stdbool.h>

#include "unit.h"

enum { PAGES = 1 << 15 };
static const uintptr_t FIRST = 0x10000000, PAGE = 0x10000; // of any system's size

// Vendors' devices, which lock pages once for all of them.
static int locks[PAGES], closed[2];

static keel_status_t fake_lock(const pages_user_t *user, void *data, uint64_t size, bool *already)
{
    (void)user;
    uintptr_t first = ((uintptr_t)data - FIRST) / PAGE, count = size / PAGE;
    for (uintptr_t i = first; i < first + count; i++) *already |= locks[i];
    for (uintptr_t i = first; !*already && i < first + count; i++) locks[i] = (int)count;
    return NULL;
}

static keel_status_t fake_address(const pages_user_t *user, void *data, uint64_t *address)
{
    (void)user;
    assert_true(locks[((uintptr_t)data - FIRST) / PAGE]);
    *address = (uintptr_t)data + 7 * PAGE;
    return NULL;
}

static void fake_unlock(const pages_user_t *user, void *data)
{
    (void)user;
    uintptr_t first = ((uintptr_t)data - FIRST) / PAGE;
    for (int count = locks[first]; count; count--) {
        assert_true(locks[first]);
        locks[first++] = 0;
    }
}

static void fake_close(const pages_user_t *user)
{
    closed[(int *)user->vendor - closed]++;
}

static const pages_ops_t fake_ops = {fake_lock, fake_address, fake_unlock, fake_close};
static struct keel_status *_Atomic lost;

static pages_user_t user_make(int which)
{
    return (pages_user_t){.ops = &fake_ops, .vendor = &closed[which], .lost = &lost};
}

static void lock(pages_user_t *user, uintptr_t page, uint64_t count)
{
    uint64_t address = 0;
    assert_null(pages_lock(user, (void *)(FIRST + page * PAGE), count * PAGE, &address));
    assert_int_equal(address, FIRST + (page + 7) * PAGE);
}

static void unlock(pages_user_t *user, uintptr_t page, uint64_t count)
{
    pages_unlock(user, (void *)(FIRST + page * PAGE), count * PAGE);
}

static int locked(void)
{
    int count = 0;
    for (int i = 0; i < PAGES; i++) count += locks[i] != 0;
    return count;
}

// What others build on stays until they are gone, wherever that begins and ends.
static void test_devices_share_pages(void **state)
{
    (void)state;
    pages_user_t one = user_make(0), two = user_make(1);
    lock(&one, 10, 4);
    lock(&one, 12, 6); // 14 to 17 are new
    assert_int_equal(locked(), 8);
    lock(&two, 0, 100); // in five pieces
    assert_int_equal(locked(), 100);
    unlock(&one, 10, 4);
    unlock(&one, 12, 6);
    assert_int_equal(locked(), 100);
    unlock(&two, 0, 100);
    assert_int_equal(locked(), 0);
    lock(&one, 0, 2);
    lock(&two, 1, 2);
    unlock(&one, 0, 2);
    assert_int_equal(locked(), 3);
    pages_close(&one); // not before the other has let go of its page
    assert_int_equal(closed[0], 0);
    unlock(&two, 1, 2);
    assert_int_equal(closed[0], 1);
    assert_int_equal(locked(), 0);
    pages_close(&two);
    assert_int_equal(closed[1], 1);
}

// How long it takes to lock and unlock one page among others that are locked.
static uint64_t turn_ns(pages_user_t *user, uintptr_t others)
{
    uint64_t best = UINT64_MAX;
    for (uintptr_t i = 0; i < others; i++) lock(user, 2 * i, 1);
    for (int try = 0; try < 20; try++) {
        uint64_t start = keel_now_ns();
        for (int i = 0; i < 50; i++) {
            lock(user, others | 1, 1);
            unlock(user, others | 1, 1);
        }
        uint64_t took = keel_now_ns() - start;
        if (took < best) best = took;
    }
    for (uintptr_t i = 0; i < others; i++) unlock(user, 2 * i, 1);
    return best;
}

static void test_one_among_many(void **state)
{
    (void)state;
    enum { FEW = 4, MANY = PAGES / 2 - 1 };
    pages_user_t user = user_make(0);
    uint64_t few = turn_ns(&user, FEW), many = turn_ns(&user, MANY);
    assert_in_range(many, 0, few * 50); // it was a thousand times as long
    assert_int_equal(locked(), 0);
    pages_close(&user);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_devices_share_pages),
        cmocka_unit_test(test_one_among_many),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
