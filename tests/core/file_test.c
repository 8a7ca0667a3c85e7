// SPDX-License-Identifier: Apache-2.0
// Opening, importing and measuring. What queues do with files is the conformance suite's.
#include <keel/keel.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "keel/driver/object.h"
#include "unit.h"

static keel_device_t *device;
static char folder[] = "/tmp/keel-file-XXXXXX";

static const char *path_of(const char *name)
{
    static char path[128];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static int64_t live_files(void)
{
    keel_live_t live;
    keel_live_objects(&live);
    return live.files;
}

// That a call failed with this code and these words, and left nothing behind.
static void expect(keel_status_t status, keel_code_t code, const char *words, keel_file_t *file)
{
    if (keel_status_code(status) != code || !strstr(keel_status_message(status), words)) {
        print_message("have: %s: %s\n", keel_code_name(keel_status_code(status)),
                      keel_status_message(status));
        print_message("want: %s: ... %s\n", keel_code_name(code), words);
        fail();
    }
    assert_null(file);
    assert_int_equal(live_files(), 0);
    keel_status_release(status);
}

static void expect_open(const char *path, uint32_t flags, keel_code_t code, const char *words)
{
    keel_file_t *file = (keel_file_t *)(uintptr_t)8;
    keel_status_t status = keel_file_open(device, path, flags, &file);
    expect(status, code, words, file);
}

static void expect_import(int fd, keel_code_t code, const char *words)
{
    keel_file_t *file = (keel_file_t *)(uintptr_t)8;
    keel_status_t status = keel_file_import(device, fd, &file);
    expect(status, code, words, file);
}

static uint64_t size_of(keel_file_t *file)
{
    uint64_t size = UINT64_MAX;
    assert_null(keel_file_size(file, &size));
    return size;
}

static void test_arguments(void **state)
{
    keel_file_t *file = NULL;
    uint64_t size;
    expect(keel_file_open(device, "/dev/null", KEEL_FILE_READ, NULL), KEEL_INVALID_ARGUMENT,
           "file is NULL", NULL);
    expect(keel_file_open(NULL, "/dev/null", KEEL_FILE_READ, &file), KEEL_INVALID_ARGUMENT,
           "device is NULL", file);
    expect_open(NULL, KEEL_FILE_READ, KEEL_INVALID_ARGUMENT, "path is NULL");
    expect_open("x", 0, KEEL_INVALID_ARGUMENT, "neither KEEL_FILE_READ nor KEEL_FILE_WRITE");
    expect_open("x", KEEL_FILE_CREATE, KEEL_INVALID_ARGUMENT, "neither KEEL_FILE_READ");
    expect_open("x", KEEL_FILE_CREATE | KEEL_FILE_READ, KEEL_INVALID_ARGUMENT,
                "KEEL_FILE_CREATE without KEEL_FILE_WRITE");
    expect_open("x", KEEL_FILE_READ | 0x40, KEEL_INVALID_ARGUMENT, "0x40");
    expect(keel_file_import(NULL, 0, &file), KEEL_INVALID_ARGUMENT, "device is NULL", file);
    expect(keel_file_import(device, 0, NULL), KEEL_INVALID_ARGUMENT, "file is NULL", NULL);
    expect_import(-1, KEEL_INVALID_ARGUMENT, "fd is -1");
    expect_import(99999, KEEL_INVALID_ARGUMENT, "descriptor 99999");
    expect(keel_file_size(NULL, &size), KEEL_INVALID_ARGUMENT, "file is NULL", NULL);
    keel_file_release(NULL);
    assert_null(keel_file_retain(NULL));
}

static void test_no_files(void **state)
{
    keel_device_t *null;
    keel_file_t *file = NULL;
    assert_null(keel_device_open("null://", NULL, &null));
    expect(keel_file_open(null, "/", KEEL_FILE_READ, &file), KEEL_UNSUPPORTED, "KEEL_CAP_FILES",
           file);
    keel_device_release(null);
}

static void test_create(void **state)
{
    const char *path = path_of("new");
    struct stat info;
    keel_file_t *file, *again;
    expect_open(path, KEEL_FILE_READ, KEEL_NOT_FOUND, path);
    expect_open(path, KEEL_FILE_WRITE, KEEL_NOT_FOUND, "No such file or directory (errno 2)");
    mode_t before = umask(0);
    keel_status_t status =
        keel_file_open(device, path, KEEL_FILE_READ | KEEL_FILE_WRITE | KEEL_FILE_CREATE, &file);
    umask(before);
    assert_null(status);
    assert_int_equal(stat(path, &info), 0);
    assert_int_equal(info.st_mode & 07777, 0600);
    assert_int_equal(size_of(file), 0);
    assert_int_equal(fcntl(file->fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
    assert_int_equal(fcntl(file->fd, F_GETFL) & O_NONBLOCK, 0);
    assert_int_equal(pwrite(file->fd, "12345", 5, 0), 5);
    assert_int_equal(size_of(file), 5);
    // One that is there already keeps what it has.
    assert_null(keel_file_open(device, path, KEEL_FILE_WRITE | KEEL_FILE_CREATE, &again));
    assert_int_equal(size_of(again), 5);
    assert_int_equal(live_files(), 2);
    keel_file_release(again);
    assert_ptr_equal(keel_file_retain(file), file);
    keel_file_release(file);
    assert_int_equal(size_of(file), 5);
    int fd = file->fd;
    keel_file_release(file);
    assert_int_equal(live_files(), 0);
    assert_int_equal(fcntl(fd, F_GETFD), -1);
    unlink(path);
}

static void test_links(void **state)
{
    char link[128];
    snprintf(link, sizeof link, "%s", path_of("link"));
    keel_file_t *file;
    const char *target = path_of("target");
    assert_int_equal(symlink(target, link), 0);
    expect_open(link, KEEL_FILE_WRITE | KEEL_FILE_CREATE, KEEL_PERMISSION_DENIED, "symbolic link");
    assert_int_equal(access(target, F_OK), -1);
    close(open(target, O_CREAT | O_WRONLY, 0600));
    expect_open(link, KEEL_FILE_WRITE | KEEL_FILE_CREATE, KEEL_PERMISSION_DENIED, link);
    assert_null(keel_file_open(device, link, KEEL_FILE_READ, &file));
    keel_file_release(file);
    unlink(link);
    unlink(target);
}

static void test_kinds(void **state)
{
    char pipe_path[128];
    snprintf(pipe_path, sizeof pipe_path, "%s", path_of("pipe"));
    int pipes[2], sockets[2];
    assert_int_equal(mkfifo(pipe_path, 0600), 0);
    assert_int_equal(pipe(pipes), 0);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets), 0);
    alarm(20); // nothing may wait for the other end
    expect_open(pipe_path, KEEL_FILE_READ, KEEL_INVALID_ARGUMENT, "a pipe");
    expect_open(pipe_path, KEEL_FILE_WRITE, KEEL_IO, pipe_path);
    alarm(0);
    expect_open(folder, KEEL_FILE_READ, KEEL_INVALID_ARGUMENT, "a directory");
    expect_open(folder, KEEL_FILE_WRITE, KEEL_INVALID_ARGUMENT, "(errno ");
    expect_open("/dev/null", KEEL_FILE_READ, KEEL_INVALID_ARGUMENT, "a character device");
    expect_open(path_of("none/file"), KEEL_FILE_WRITE | KEEL_FILE_CREATE, KEEL_NOT_FOUND, "none");
    expect_open("", KEEL_FILE_READ, KEEL_NOT_FOUND, "''");
    expect_import(pipes[0], KEEL_INVALID_ARGUMENT, "a pipe");
    expect_import(sockets[0], KEEL_INVALID_ARGUMENT, "a socket");
    for (int i = 0; i < 2; i++) close(pipes[i]), close(sockets[i]);
    unlink(pipe_path);
}

static void test_long_path(void **state)
{
    static char path[10000];
    memset(path, 'a', sizeof path - 1);
    expect_open(path, KEEL_FILE_READ, KEEL_INVALID_ARGUMENT, "aaaa");
}

static void test_import(void **state)
{
    static const struct {
        int mode;
        uint32_t flags;
    } modes[] = {{O_RDONLY, KEEL_FILE_READ},
                 {O_RDONLY | O_APPEND, KEEL_FILE_READ},
                 {O_WRONLY, KEEL_FILE_WRITE},
                 {O_RDWR, KEEL_FILE_READ | KEEL_FILE_WRITE}};
    const char *path = path_of("import");
    int made = open(path, O_CREAT | O_WRONLY, 0600);
    assert_int_equal(write(made, "123", 3), 3);
    close(made);
    for (unsigned i = 0; i < sizeof modes / sizeof *modes; i++) {
        keel_file_t *file;
        int fd = open(path, modes[i].mode);
        assert_int_equal(lseek(fd, 1, SEEK_SET), 1);
        assert_null(keel_file_import(device, fd, &file));
        assert_int_equal(file->flags, modes[i].flags);
        assert_int_not_equal(file->fd, fd);
        assert_int_equal(fcntl(file->fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
        assert_int_equal(size_of(file), 3);
        assert_int_equal(lseek(fd, 0, SEEK_CUR), 1);
        close(fd);
        assert_int_equal(size_of(file), 3);
        keel_file_release(file);
    }
    int fd = open(path, O_WRONLY | O_APPEND);
    expect_import(fd, KEEL_INVALID_ARGUMENT, "O_APPEND");
    assert_int_equal(fcntl(fd, F_GETFD), 0);
    close(fd);
#ifdef O_PATH
    fd = open(path, O_PATH);
    expect_import(fd, KEEL_INVALID_ARGUMENT, "(errno ");
    close(fd);
#endif
    unlink(path);
}

// A block device that is not a disk in use, if there is one and it can be opened.
static void test_block_device(void **state)
{
    static const char *const names[] = {"ram0", "loop0", "loop1"};
    for (unsigned i = 0; i < sizeof names / sizeof *names; i++) {
        char path[64];
        unsigned long long sectors = 0;
        snprintf(path, sizeof path, "/sys/block/%s/size", names[i]);
        FILE *size = fopen(path, "r");
        if (!size) continue;
        assert_int_equal(fscanf(size, "%llu", &sectors), 1);
        fclose(size);
        snprintf(path, sizeof path, "/dev/%s", names[i]);
        int fd = open(path, O_RDONLY);
        if (fd < 0) continue;
        close(fd);
        keel_file_t *file;
        assert_null(keel_file_open(device, path, KEEL_FILE_READ, &file));
#if KEEL_PORTABLE
        uint64_t bytes;
        keel_status_t status = keel_file_size(file, &bytes);
        assert_int_equal(keel_status_code(status), KEEL_UNSUPPORTED);
        keel_status_release(status);
#else
        assert_int_equal(size_of(file), sectors * 512);
#endif
        keel_file_release(file);
        return;
    }
    print_message("there is no block device that can be opened here\n");
    skip();
}

static int64_t allocations_left;

static void *scarce_resize(void *user, void *old, size_t size)
{
    return allocations_left-- > 0 ? realloc(old, size) : NULL;
}

static void scarce_free(void *user, void *memory)
{
    free(memory);
}

// Without memory nothing is made, neither here nor in the file system.
static void test_no_memory(void **state)
{
    const char *path = path_of("scarce");
    keel_file_t *file = NULL;
    keel_status_t status = NULL;
    int64_t count = 0;
    do {
        keel_file_release(file);
        keel_status_release(status);
        allocations_left = count++;
        keel_allocator_set(&(keel_allocator_t){scarce_resize, scarce_free, NULL});
        status = keel_file_open(device, path, KEEL_FILE_WRITE | KEEL_FILE_CREATE, &file);
        keel_allocator_set(NULL);
        if (status) assert_int_equal(keel_status_code(status), KEEL_OUT_OF_MEMORY);
        assert_int_equal(access(path, F_OK), status ? -1 : 0);
    } while (status);
    assert_true(count > 2);
    keel_file_release(file);
    unlink(path);
}

static void test_fork(void **state)
{
    const char *path = path_of("fork");
    keel_file_t *file;
    assert_null(keel_file_open(device, path, KEEL_FILE_WRITE | KEEL_FILE_CREATE, &file));
    pid_t child = fork();
    if (child == 0) {
        uint64_t size;
        keel_status_t status = keel_file_size(file, &size);
        keel_code_t code = keel_status_code(status);
        keel_status_release(status);
        keel_file_release(file);
        _exit(code == KEEL_DEVICE_LOST && live_files() == 0 ? 0 : 1);
    }
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(size_of(file), 0);
    keel_file_release(file);
    unlink(path);
}

static void test_outlives_device(void **state)
{
    keel_device_t *other;
    keel_file_t *file;
    assert_null(keel_device_open("cpu://inline", NULL, &other));
    assert_null(keel_file_open(other, path_of("late"), KEEL_FILE_WRITE | KEEL_FILE_CREATE, &file));
    keel_device_release(other);
    assert_int_equal(size_of(file), 0);
    keel_file_release(file);
    unlink(path_of("late"));
}

static int set_up(void **state)
{
    assert_non_null(mkdtemp(folder));
    assert_null(keel_device_open("cpu://inline", NULL, &device));
    return 0;
}

static int tear_down(void **state)
{
    keel_live_t live;
    keel_device_release(device);
    keel_live_objects(&live);
    assert_int_equal(live.devices, 0);
    assert_int_equal(live.statuses, 0);
    assert_int_equal(rmdir(folder), 0);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_arguments),       cmocka_unit_test(test_no_files),
        cmocka_unit_test(test_create),          cmocka_unit_test(test_links),
        cmocka_unit_test(test_kinds),           cmocka_unit_test(test_long_path),
        cmocka_unit_test(test_import),          cmocka_unit_test(test_block_device),
        cmocka_unit_test(test_no_memory),       cmocka_unit_test(test_fork),
        cmocka_unit_test(test_outlives_device),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
