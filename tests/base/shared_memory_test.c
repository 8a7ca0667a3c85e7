// SPDX-License-Identifier: Apache-2.0
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/shared_memory.h"
#include "unit.h"

static void test_created(void **state)
{
    (void)state;
    struct stat file;
    int fd = -1;
    assert_null(shared_memory_create(12345, &fd));
    assert_int_equal(fstat(fd, &file), 0);
    assert_int_equal(file.st_size, 12345);
    close(fd);
}

#if !defined(__linux__) || KEEL_PORTABLE

// It lies where the program may write, and leaves nothing behind.
static void test_folder(void **state)
{
    (void)state;
    char folder[] = "keel-memory-XXXXXX";
    int fd = -1;
    assert_non_null(mkdtemp(folder));
    setenv("TMPDIR", folder, 1);
    assert_null(shared_memory_create(4096, &fd));
    assert_int_equal(rmdir(folder), 0); // which is empty
    close(fd);
    keel_status_t status = shared_memory_create(4096, &fd);
    assert_int_equal(keel_status_code(status), KEEL_RESOURCE_EXHAUSTED);
    keel_status_release(status);
    assert_int_equal(fd, -1);
}

#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_created),
#if !defined(__linux__) || KEEL_PORTABLE
        cmocka_unit_test(test_folder),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
