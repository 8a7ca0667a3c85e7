// SPDX-License-Identifier: Apache-2.0
#include "kit/pages.h"

#include <keel/base.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/status.h"
#include "unit.h"

#define COUNT(list) (sizeof(list) / sizeof *(list))

enum { PAGES = 1 << 15 };
static const uintptr_t PAGE = 0x10000; // of any system's size
static uintptr_t FIRST;

// Vendors' devices, which lock pages once for all of them.
static int locks[PAGES], closed[2];
static bool constant[PAGES]; // the process cannot write it
static keel_code_t refuses;  // devices that do not read what they could not write; KEEL_OK: they do

static keel_status_t fake_lock(const pages_user_t *user, void *data, uint64_t size, bool written,
                               uint64_t *address, bool *already)
{
    (void)user;
    uintptr_t first = ((uintptr_t)data - FIRST) / PAGE, count = size / PAGE;
    if (!written && refuses) return KEEL_ERROR(refuses, "they do not");
    for (uintptr_t i = first; written && i < first + count; i++)
        if (constant[i]) return KEEL_ERROR(KEEL_INVALID_ARGUMENT, "it is constant");
    for (uintptr_t i = first; i < first + count; i++) *already |= locks[i];
    for (uintptr_t i = first; !*already && i < first + count; i++) locks[i] = (int)count;
    *address = (uintptr_t)data + 7 * PAGE;
    return NULL;
}

static keel_status_t fake_address(const pages_user_t *user, void *data, uint64_t *address)
{
    (void)user;
    if (!locks[((uintptr_t)data - FIRST) / PAGE])
        return KEEL_ERROR(KEEL_INVALID_ARGUMENT, "it is not locked");
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

static int setup(void **state)
{
    (void)state;
    uint64_t size = (PAGES + 1) * PAGE; // not touched
    char *all = mmap(NULL, size, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    FIRST = ((uintptr_t)all + PAGE - 1) & ~(PAGE - 1);
    return all == MAP_FAILED;
}

static const pages_ops_t fake_ops = {fake_lock, fake_address, fake_unlock, fake_close};
static struct keel_status *_Atomic lost;

static pages_user_t user_make(int which)
{
    return (pages_user_t){.ops = &fake_ops, .vendor = &closed[which], .lost = &lost};
}

static keel_status_t attempt(pages_user_t *user, uintptr_t page, uint64_t count, bool written)
{
    uint64_t address = 0;
    keel_status_t status =
        pages_lock(user, (void *)(FIRST + page * PAGE), count * PAGE, written, &address);
    if (!status) assert_int_equal(address, FIRST + (page + 7) * PAGE);
    return status;
}

static void lock(pages_user_t *user, uintptr_t page, uint64_t count)
{
    assert_null(attempt(user, page, count, true));
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

static _Thread_local int allocations_left = -1; // before they fail; -1: none does

static void *resize(void *user, void *old, size_t size)
{
    (void)user;
    if (!allocations_left) return NULL;
    if (allocations_left > 0) allocations_left--;
    return realloc(old, size);
}

static void release(void *user, void *memory)
{
    (void)user;
    free(memory);
}

static _Atomic bool stop;

// Finds no memory for the first of its pieces, or for the second.
static void *starve(void *user)
{
    for (int i = 0; !atomic_load(&stop); i++) {
        uint64_t address = 0;
        allocations_left = i % 2;
        keel_status_t status = pages_lock(user, (void *)FIRST, 6 * PAGE, true, &address);
        if (keel_status_code(status) != KEEL_OUT_OF_MEMORY) abort();
        keel_status_release(status);
    }
    return NULL;
}

// An import that fails unlocks nothing that others import meanwhile.
static void test_failing_beside_others(void **state)
{
    (void)state;
    pages_user_t user = user_make(0);
    pthread_t thread;
    keel_allocator_set(&(keel_allocator_t){resize, release, NULL});
    lock(&user, 2, 1); // so that there are two pieces to add
    assert_int_equal(pthread_create(&thread, NULL, starve, &user), 0);
    uint64_t end = keel_now_ns() + UINT64_C(500000000);
    bool kept = true;
    while (kept && keel_now_ns() < end) {
        lock(&user, 4, 1);
        for (int i = 0; i < 100; i++) kept &= locks[4] != 0;
        unlock(&user, 4, 1);
    }
    atomic_store(&stop, true);
    pthread_join(thread, NULL);
    assert_true(kept);
    unlock(&user, 2, 1);
    assert_int_equal(locked(), 0);
    pages_close(&user);
    keel_allocator_set(NULL);
}

static void refused(keel_status_t status, keel_code_t code)
{
    assert_int_equal(keel_status_code(status), code);
    keel_status_release(status);
}

// What cannot be written is locked for reading only, and no import for writing joins it.
static void test_constant(void **state)
{
    (void)state;
    pages_user_t one = user_make(0), two = user_make(1);
    for (int i = 4; i < 8; i++) constant[i] = true;
    refused(attempt(&one, 4, 4, true), KEEL_INVALID_ARGUMENT);
    refused(attempt(&one, 0, 8, true), KEEL_INVALID_ARGUMENT);
    assert_int_equal(locked(), 0);
    assert_null(attempt(&one, 4, 4, false));
    assert_int_equal(locked(), 4);
    refused(attempt(&one, 5, 1, true), KEEL_INVALID_ARGUMENT);
    refused(attempt(&two, 5, 1, true), KEEL_INVALID_ARGUMENT);
    refused(attempt(&two, 2, 4, true), KEEL_INVALID_ARGUMENT);
    assert_null(attempt(&two, 5, 1, false));
    unlock(&one, 4, 4);
    assert_int_equal(locked(), 4); // for the other
    unlock(&two, 5, 1);
    assert_int_equal(locked(), 0);
    for (int i = 4; i < 8; i++) constant[i] = false;
    lock(&one, 4, 4); // it can be now
    unlock(&one, 4, 4);
    pages_close(&one);
    pages_close(&two);
}

// That one importer only reads says nothing of the next.
static void test_read_before_written(void **state)
{
    (void)state;
    pages_user_t user = user_make(0);
    assert_null(attempt(&user, 0, 2, false));
    lock(&user, 1, 2);
    unlock(&user, 0, 2);
    unlock(&user, 1, 2);
    assert_int_equal(locked(), 0);
    pages_close(&user);
}

static void test_constant_unsupported(void **state)
{
    (void)state;
    pages_user_t user = user_make(0);
    constant[3] = true;
    for (int i = 0; i < 2; i++) { // not every vendor says why
        refuses = i ? KEEL_INVALID_ARGUMENT : KEEL_UNSUPPORTED;
        refused(attempt(&user, 2, 2, false), KEEL_UNSUPPORTED);
        assert_int_equal(locked(), 0);
    }
    assert_null(attempt(&user, 1, 2, false));
    unlock(&user, 1, 2);
    refuses = KEEL_OK;
    constant[3] = false;
    pages_close(&user);
}

static void says(keel_status_t status, keel_code_t code, uintptr_t page, const char *words)
{
    char text[1024], where[64];
    snprintf(where, sizeof where, "%p", (void *)(FIRST + page * PAGE));
    keel_status_format(status, text, sizeof text);
    if (!strstr(text, words) || !strstr(text, where)) fail_msg("not '%s': %s", words, text);
    refused(status, code);
}

// It is never locked for reading, whatever else is imported with it; but for writing.
static void test_private_file(void **state)
{
    (void)state;
    pages_user_t user = user_make(0);
    char path[] = "/tmp/keel-pages-XXXXXX";
    int fd = mkstemp(path);
    void *start = (void *)(FIRST + 6 * PAGE);
    assert_true(fd >= 0 && unlink(path) == 0 && ftruncate(fd, 2 * (off_t)PAGE) == 0);
    assert_ptr_equal(mmap(start, 2 * PAGE, PROT_READ, MAP_PRIVATE | MAP_FIXED, fd, 0), start);
    for (int i = 4; i < 8; i++) constant[i] = true;
    says(attempt(&user, 6, 2, false), KEEL_UNSUPPORTED, 6, "map the file with MAP_SHARED");
    says(attempt(&user, 4, 3, false), KEEL_UNSUPPORTED, 4, "of the 196608 bytes");
    assert_int_equal(locked(), 0);
    assert_null(attempt(&user, 4, 2, false));
    says(attempt(&user, 5, 2, false), KEEL_UNSUPPORTED, 5, "private mapping");
    assert_int_equal(locked(), 2);
    unlock(&user, 4, 2);
    assert_ptr_equal(mmap(start, 2 * PAGE, PROT_READ, MAP_SHARED | MAP_FIXED, fd, 0), start);
    assert_null(attempt(&user, 4, 4, false));
    unlock(&user, 4, 4);
    assert_int_equal(munmap(start, 2 * PAGE), 0);
    says(attempt(&user, 4, 4, false), KEEL_INVALID_ARGUMENT, 4, "it is constant");
    assert_ptr_equal(mmap(start, 2 * PAGE, PROT_READ, MAP_PRIVATE | MAP_FIXED, fd, 0), start);
    for (int i = 4; i < 8; i++) constant[i] = false;
    assert_null(attempt(&user, 4, 4, false)); // it can be written now
    unlock(&user, 4, 4);
    assert_int_equal(locked(), 0);
    close(fd);
    pages_close(&user);
}

static void test_unknown(void **state)
{
    (void)state;
    pages_user_t user = user_make(0);
    struct rlimit before, none;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    none = (struct rlimit){0, before.rlim_max};
    constant[3] = true;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    keel_status_t status = attempt(&user, 3, 1, false);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    says(status, KEEL_IO, 3, "/proc/self/maps");
    assert_int_equal(locked(), 0);
    constant[3] = false;
    pages_close(&user);
}

// A library that gives each piece that it locks an address of its own.
static struct {
    uintptr_t start, end;
    uint64_t offset;
} ranges[8];
static uint64_t offsets; // given so far

static int range_at(uintptr_t byte)
{
    int i = (int)COUNT(ranges) - 1;
    while (i >= 0 && !(byte >= ranges[i].start && byte < ranges[i].end)) i--;
    return i;
}

static int ranges_locked(void)
{
    int count = 0;
    for (size_t i = 0; i < COUNT(ranges); i++) count += ranges[i].end != 0;
    return count;
}

static keel_status_t apart_lock(const pages_user_t *user, void *data, uint64_t size, bool written,
                                uint64_t *address, bool *already)
{
    (void)user, (void)written;
    uintptr_t start = (uintptr_t)data;
    *already = range_at(start) >= 0 || range_at(start + size - 1) >= 0;
    if (*already) return NULL;
    size_t i = 0;
    while (ranges[i].end) i++;
    assert_in_range(i, 0, COUNT(ranges) - 1);
    ranges[i].start = start;
    ranges[i].end = start + size;
    ranges[i].offset = ++offsets * PAGES * PAGE;
    *address = start + ranges[i].offset;
    return NULL;
}

static keel_status_t apart_address(const pages_user_t *user, void *data, uint64_t *address)
{
    (void)user;
    int i = range_at((uintptr_t)data);
    if (i < 0) return KEEL_ERROR(KEEL_INVALID_ARGUMENT, "it is not locked");
    *address = (uintptr_t)data + ranges[i].offset;
    return NULL;
}

static void apart_unlock(const pages_user_t *user, void *data)
{
    (void)user;
    int i = range_at((uintptr_t)data);
    assert_true(i >= 0 && ranges[i].start == (uintptr_t)data);
    ranges[i].end = 0;
}

static const pages_ops_t apart_ops = {apart_lock, apart_address, apart_unlock, fake_close};

static pages_user_t apart_make(int which)
{
    return (pages_user_t){
        .ops = &apart_ops, .vendor = &closed[which], .lost = &lost, .bytewise = true};
}

static keel_status_t apart(pages_user_t *user, uintptr_t byte, uint64_t size, uint64_t *address)
{
    return pages_lock(user, (void *)(FIRST + byte), size, true, address);
}

static void apart_end(pages_user_t *user, uintptr_t byte, uint64_t size)
{
    pages_unlock(user, (void *)(FIRST + byte), size);
}

// Neighbours in one page do not mind each other.
static void test_neighbours(void **state)
{
    (void)state;
    pages_user_t one = apart_make(0), two = apart_make(1);
    uint64_t first, second, third, again;
    assert_null(apart(&one, 100, 100, &first));
    assert_null(apart(&one, 200, 2 * PAGE, &second));
    assert_null(apart(&two, 200 + 2 * PAGE, 8, &third));
    assert_int_equal(ranges_locked(), 3);
    assert_int_not_equal(second - first, 100);
    assert_null(apart(&two, 100, 100, &again)); // the same, for another device
    assert_int_equal(again, first);
    assert_int_equal(ranges_locked(), 3);
    apart_end(&one, 100, 100);
    assert_int_equal(ranges_locked(), 3);
    apart_end(&two, 100, 100);
    apart_end(&one, 200, 2 * PAGE);
    apart_end(&two, 200 + 2 * PAGE, 8);
    assert_int_equal(ranges_locked(), 0);
    pages_close(&one);
    pages_close(&two);
}

// A part of what is imported can be imported, but not what is only imported in part.
static void test_parts(void **state)
{
    (void)state;
    pages_user_t one = apart_make(0), two = apart_make(1);
    uint64_t whole, part;
    assert_null(apart(&one, 1000, 1000, &whole));
    assert_null(apart(&one, 1100, 100, &part));
    assert_int_equal(part, whole + 100);
    apart_end(&one, 1100, 100);
    assert_null(apart(&two, 1100, 100, &part));
    assert_int_equal(part, whole + 100);
    apart_end(&two, 1100, 100);
    refused(apart(&one, 900, 200, &part), KEEL_UNSUPPORTED);
    refused(apart(&two, 1900, 200, &part), KEEL_UNSUPPORTED);
    refused(apart(&two, 900, 2000, &part), KEEL_UNSUPPORTED);
    assert_int_equal(ranges_locked(), 1);
    apart_end(&one, 1000, 1000);
    assert_null(apart(&two, 900, 2000, &part));
    apart_end(&two, 900, 2000);
    assert_int_equal(ranges_locked(), 0);
    pages_close(&one);
    pages_close(&two);
}

// A vendor that locks memory as often as it is asked, and says nothing of what is locked.
static int silent_locks;

static keel_status_t silent_lock(const pages_user_t *user, void *data, uint64_t size, bool written,
                                 uint64_t *address, bool *already)
{
    (void)user, (void)size, (void)written;
    *address = (uintptr_t)data;
    *already = false;
    silent_locks++;
    return NULL;
}

static keel_status_t silent_address(const pages_user_t *user, void *data, uint64_t *address)
{
    (void)user, (void)data, (void)address;
    return KEEL_ERROR(KEEL_INVALID_ARGUMENT, "nothing is known of it");
}

static void silent_unlock(const pages_user_t *user, void *data)
{
    (void)user, (void)data;
    silent_locks--;
}

static const pages_ops_t silent_ops = {silent_lock, silent_address, silent_unlock, fake_close};

static void test_locked_by_each(void **state)
{
    (void)state;
    pages_user_t one = {.ops = &silent_ops, .vendor = &closed[0], .lost = &lost, .bytewise = true};
    pages_user_t two = {.ops = &silent_ops, .vendor = &closed[1], .lost = &lost, .bytewise = true};
    uint64_t address;
    assert_null(apart(&one, 1000, 1000, &address));
    assert_null(apart(&two, 900, 2000, &address));
    assert_int_equal(address, FIRST + 900);
    assert_null(apart(&one, 1500, 100, &address)); // has it already
    apart_end(&one, 1500, 100);
    apart_end(&one, 1000, 1000);
    assert_in_range(silent_locks, 1, 3); // what the second device has
    apart_end(&two, 900, 2000);
    assert_int_equal(silent_locks, 0);
    pages_close(&one);
    pages_close(&two);
}

// What others have locked in two parts is imported in two parts: each lies at a place of its own.
static void test_parts_of_others(void **state)
{
    (void)state;
    pages_user_t user = apart_make(0);
    uint64_t address, second;
    bool already;
    assert_null(apart_lock(&user, (void *)(FIRST + 1000), 500, true, &address, &already));
    assert_null(apart_lock(&user, (void *)(FIRST + 1500), 500, true, &address, &already));
    assert_null(apart_address(&user, (void *)(FIRST + 1500), &second));
    refused(apart(&user, 1000, 1000, &address), KEEL_FAILED_PRECONDITION);
    refused(apart(&user, 1900, 200, &address), KEEL_FAILED_PRECONDITION);
    assert_null(apart(&user, 1500, 500, &address));
    assert_int_equal(address, second);
    apart_end(&user, 1500, 500);
    assert_int_equal(ranges_locked(), 2);
    apart_unlock(&user, (void *)(FIRST + 1000));
    apart_unlock(&user, (void *)(FIRST + 1500));
    pages_close(&user);
}

// The child of a fork has locked nothing: what its parent has locked does not cut its imports.
static void test_fork(void **state)
{
    (void)state;
    pages_user_t user = apart_make(0);
    uint64_t address;
    assert_null(apart(&user, 100, 100, &address));
    pid_t child = fork();
    if (!child) {
        pages_user_t fresh = apart_make(1);
        memset(ranges, 0, sizeof ranges);
        _exit(apart(&fresh, 150, 100, &address) || ranges_locked() != 1);
    }
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    apart_end(&user, 100, 100);
    assert_int_equal(ranges_locked(), 0);
    pages_close(&user);
}

// What another library has locked neither cuts an import nor keeps it.
static void test_libraries(void **state)
{
    (void)state;
    pages_user_t plain = user_make(0), other = apart_make(1);
    uint64_t address;
    lock(&plain, 10, 4);
    assert_null(apart(&other, 8 * PAGE, 8 * PAGE, &address));
    assert_int_equal(ranges_locked(), 1);
    unlock(&plain, 10, 4);
    assert_int_equal(locked(), 0);
    lock(&plain, 0, 12);
    apart_end(&other, 8 * PAGE, 8 * PAGE);
    assert_int_equal(ranges_locked(), 0);
    unlock(&plain, 0, 12);
    pages_close(&plain);
    pages_close(&other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_devices_share_pages),
        cmocka_unit_test(test_one_among_many),
        cmocka_unit_test(test_failing_beside_others),
        cmocka_unit_test(test_constant),
        cmocka_unit_test(test_read_before_written),
        cmocka_unit_test(test_constant_unsupported),
        cmocka_unit_test(test_private_file),
        cmocka_unit_test(test_unknown),
        cmocka_unit_test(test_neighbours),
        cmocka_unit_test(test_parts),
        cmocka_unit_test(test_locked_by_each),
        cmocka_unit_test(test_parts_of_others),
        cmocka_unit_test(test_libraries),
        cmocka_unit_test(test_fork),
    };
    return cmocka_run_group_tests(tests, setup, NULL);
}
