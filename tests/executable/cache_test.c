// SPDX-License-Identifier: Apache-2.0
#include "executable/cache.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "unit.h"

#define HEAD ".version 8.0\n.target sm_70\n.address_size 64\n"

static const char code[] = HEAD ".visible .entry a() { ret; }\n";
static const char other[] = HEAD ".visible .entry b() { ret; }\n";
static const char variable[] = HEAD ".visible .global .u32 n;\n";

typedef struct loaded_t {
    cache_item_t item;
    bool open;
} loaded_t;

static _Atomic int loads, unloads, failures; // failures: of the loads to come

static keel_status_t load(cache_item_t *item, const keel_image_t *image)
{
    assert_non_null(image->data);
    atomic_fetch_add(&loads, 1);
    usleep(2000); // lets others come meanwhile
    if (atomic_load(&failures) > 0 && atomic_fetch_sub(&failures, 1) > 0)
        return KEEL_ERROR(KEEL_ABORTED, "as told");
    ((loaded_t *)item)->open = true;
    return NULL;
}

static void unload(cache_item_t *item)
{
    if (((loaded_t *)item)->open) atomic_fetch_add(&unloads, 1);
}

static const cache_class_t class = {sizeof(loaded_t), load, unload, false};
static cache_t cache = {.class = &class};

static int begin(void **state)
{
    (void)state;
    atomic_store(&loads, 0);
    atomic_store(&unloads, 0);
    atomic_store(&failures, 0);
    return 0;
}

static int end(void **state)
{
    (void)state;
    return cache.first ? -1 : 0;
}

static cache_item_t *loaded(const char *text)
{
    keel_image_t image = {.target = "", .data = text, .size = strlen(text)};
    cache_item_t *item = NULL;
    assert_null(cache_load(&cache, &image, &item));
    return item;
}

static void test_shared_while_in_use(void **state)
{
    (void)state;
    cache_item_t *a = loaded(code), *b = loaded(code), *c = loaded(other);
    assert_ptr_equal(a, b);
    assert_ptr_not_equal(a, c);
    assert_int_equal(loads, 2);
    cache_unload(a);
    assert_int_equal(unloads, 0);
    cache_unload(b);
    assert_int_equal(unloads, 1);
    a = loaded(code);
    assert_int_equal(loads, 3);
    cache_unload(c);
    cache_unload(a);
    cache_unload(NULL);
    assert_int_equal(unloads, 3);
}

static void test_variables_are_not_shared(void **state)
{
    (void)state;
    cache_item_t *a = loaded(variable), *b = loaded(variable);
    assert_ptr_not_equal(a, b);
    cache_unload(a);
    cache_unload(b);
    assert_int_equal(unloads, 2);
}

// A container says the hash, and it is taken: the bytes are not looked at again.
static void test_hash_is_given(void **state)
{
    (void)state;
    hash_t hash = hash_of(code, strlen(code));
    keel_image_t image = {.data = code, .size = strlen(code), .hash = &hash};
    cache_item_t *a = loaded(code), *b = NULL;
    assert_null(cache_load(&cache, &image, &b));
    assert_ptr_equal(a, b);
    cache_unload(a);
    cache_unload(b);
}

static void test_failure(void **state)
{
    (void)state;
    keel_image_t image = {.data = code, .size = strlen(code)};
    cache_item_t *item = &(cache_item_t){0};
    atomic_store(&failures, 1);
    keel_status_t status = cache_load(&cache, &image, &item);
    assert_int_equal(keel_status_code(status), KEEL_ABORTED);
    keel_status_release(status);
    assert_null(item);
    cache_unload(loaded(code)); // it is tried again
    assert_int_equal(loads, 2);
    assert_int_equal(unloads, 1);
}

enum { CROWD = 8 };

static void *crowd_load(void *unused)
{
    (void)unused;
    keel_image_t image = {.data = code, .size = strlen(code)};
    cache_item_t *item = NULL;
    keel_status_t status = cache_load(&cache, &image, &item);
    keel_status_release(status);
    return item;
}

static unsigned crowd_run(cache_item_t *items[CROWD])
{
    pthread_t threads[CROWD];
    unsigned good = 0;
    for (int i = 0; i < CROWD; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, crowd_load, NULL), 0);
    for (int i = 0; i < CROWD; i++) {
        void *item;
        pthread_join(threads[i], &item);
        items[i] = item;
        good += item != NULL;
    }
    return good;
}

static void test_many_threads_load_once(void **state)
{
    (void)state;
    cache_item_t *items[CROWD];
    assert_int_equal(crowd_run(items), CROWD);
    assert_int_equal(loads, 1);
    for (int i = 0; i < CROWD; i++) {
        assert_ptr_equal(items[i], items[0]);
        assert_int_equal(unloads, 0);
        if (i) cache_unload(items[i]);
    }
    cache_unload(items[0]);
    assert_int_equal(unloads, 1);
}

// Who waited for a load that fails tries for himself.
static void test_many_threads_fail(void **state)
{
    (void)state;
    cache_item_t *items[CROWD];
    atomic_store(&failures, 3);
    assert_int_equal(crowd_run(items), CROWD - 3);
    assert_int_equal(loads, 4);
    for (int i = 0; i < CROWD; i++) cache_unload(items[i]);
    assert_int_equal(unloads, 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_shared_while_in_use),    TEST(test_variables_are_not_shared),
        TEST(test_hash_is_given),          TEST(test_failure),
        TEST(test_many_threads_load_once), TEST(test_many_threads_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
