// SPDX-License-Identifier: Apache-2.0
#include "kit/mapping.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "unit.h"

enum { PAGES = 8 };
static size_t page;
static char *memory; // so many pages, which each test maps as it likes
static int file;     // whose name is long, and of two lines

static int setup(void **state)
{
    (void)state;
    char folder[] = "/tmp/keel-mapping-XXXXXX", name[256], inner[512], path[1024];
    page = (size_t)sysconf(_SC_PAGESIZE);
    memset(name, ' ', sizeof name - 1);
    name[0] = '\n';
    name[255] = 0;
    if (!mkdtemp(folder)) return 1;
    snprintf(inner, sizeof inner, "%s/%s", folder, name);
    snprintf(path, sizeof path, "%s/%s", inner, name);
    if (mkdir(inner, 0700) != 0) return 1;
    file = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    memory = mmap(NULL, PAGES * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    // The name stays in the list of mappings.
    bool gone = unlink(path) == 0 && rmdir(inner) == 0 && rmdir(folder) == 0;
    return file < 0 || memory == MAP_FAILED || ftruncate(file, (off_t)(PAGES * page)) != 0 || !gone;
}

static int teardown(void **state)
{
    (void)state;
    return munmap(memory, PAGES * page) != 0 || close(file) != 0;
}

static void map(size_t first, size_t count, int rights, int flags)
{
    int fd = flags & MAP_ANONYMOUS ? -1 : file;
    void *start = memory + first * page;
    assert_ptr_equal(mmap(start, count * page, rights, flags | MAP_FIXED, fd, 0), start);
}

static mapping_t of(size_t start, size_t size)
{
    mapping_t mapping = MAPPING_PLAIN;
    assert_null(mapping_of(memory + start, size, &mapping));
    return mapping;
}

static void test_kinds(void **state)
{
    (void)state;
    static const struct {
        int rights, flags;
        mapping_t mapping;
    } rows[] = {
        {PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, MAPPING_PLAIN},
        {PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, MAPPING_PLAIN},
        {PROT_READ, MAP_SHARED | MAP_ANONYMOUS, MAPPING_PLAIN},
        {PROT_READ, MAP_SHARED, MAPPING_PLAIN},
        {PROT_READ | PROT_WRITE, MAP_SHARED, MAPPING_PLAIN},
        {PROT_READ, MAP_PRIVATE, MAPPING_PRIVATE_FILE},
        {PROT_READ | PROT_WRITE, MAP_PRIVATE, MAPPING_PRIVATE_FILE},
        {PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, MAPPING_NONE},
        {PROT_NONE, MAP_SHARED, MAPPING_NONE},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        map(0, PAGES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS);
        map(1, 2, rows[i].rights, rows[i].flags);
        assert_int_equal(of(page, 2 * page), rows[i].mapping);
        assert_int_equal(of(page + 1, 2 * page - 2), rows[i].mapping);
        assert_int_equal(of(2 * page, 1), rows[i].mapping);
        assert_int_equal(of(3 * page - 1, 1), rows[i].mapping);
    }
}

// What lies side by side counts to the byte.
static void test_spans(void **state)
{
    (void)state;
    map(0, 2, PROT_READ, MAP_SHARED);
    map(2, 2, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS);
    map(4, 2, PROT_READ, MAP_PRIVATE);
    map(6, 2, PROT_READ, MAP_SHARED);
    assert_int_equal(of(0, 4 * page), MAPPING_PLAIN);
    assert_int_equal(of(page, 3 * page), MAPPING_PLAIN);
    assert_int_equal(of(page, 3 * page + 1), MAPPING_PRIVATE_FILE);
    assert_int_equal(of(0, PAGES * page), MAPPING_PRIVATE_FILE);
    assert_int_equal(of(6 * page - 1, page), MAPPING_PRIVATE_FILE);
    assert_int_equal(of(6 * page, 2 * page), MAPPING_PLAIN);
    assert_int_equal(of(4 * page, 0), MAPPING_PLAIN);
}

static void test_holes(void **state)
{
    (void)state;
    map(0, PAGES, PROT_READ, MAP_SHARED);
    assert_int_equal(munmap(memory + 3 * page, 2 * page), 0);
    assert_int_equal(of(0, 3 * page), MAPPING_PLAIN);
    assert_int_equal(of(0, 3 * page + 1), MAPPING_NONE);
    assert_int_equal(of(0, PAGES * page), MAPPING_NONE);
    assert_int_equal(of(3 * page, 2 * page), MAPPING_NONE);
    assert_int_equal(of(5 * page - 1, page), MAPPING_NONE);
    assert_int_equal(of(5 * page, 3 * page), MAPPING_PLAIN);
    mapping_t mapping = MAPPING_PLAIN; // behind all memory
    assert_null(mapping_of((void *)(UINTPTR_MAX - page), page, &mapping));
    assert_int_equal(mapping, MAPPING_NONE);
    map(3, 2, PROT_READ, MAP_SHARED);
}

static void test_writable(void **state)
{
    (void)state;
    map(0, PAGES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS);
    map(4, 1, PROT_READ, MAP_SHARED);
    map(5, 1, PROT_READ | PROT_WRITE, MAP_SHARED);
    assert_true(mapping_is_writable(memory, 4 * page));
    assert_false(mapping_is_writable(memory + 1, 4 * page));
    assert_false(mapping_is_writable(memory + 4 * page, 1));
    assert_true(mapping_is_writable(memory + 5 * page, 3 * page));
    assert_int_equal(munmap(memory + page, page), 0);
    assert_false(mapping_is_writable(memory, 2 * page));
    assert_false(mapping_is_writable(memory + page, 1));
    map(1, 1, PROT_READ, MAP_SHARED);
}

static void test_unreadable(void **state)
{
    (void)state;
    struct rlimit before, none;
    mapping_t mapping;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    none = (struct rlimit){0, before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    keel_status_t status = mapping_of(memory, 1, &mapping);
    bool writable = mapping_is_writable(memory, 1);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_true(writable); // as far as is known
    assert_int_equal(keel_status_code(status), KEEL_IO);
    assert_non_null(strstr(keel_status_message(status), "/proc/self/maps"));
    keel_status_release(status);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kinds),      cmocka_unit_test(test_spans),
        cmocka_unit_test(test_holes),      cmocka_unit_test(test_writable),
        cmocka_unit_test(test_unreadable),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
