// SPDX-License-Identifier: Apache-2.0
// Reading and writing files in queue order.
#include "suite/suite.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILES .needs = KEEL_CAP_FILES
#define RUNS  .needs = KEEL_CAP_FILES | KEEL_CAP_EXECUTES

// A folder for the files of one test.
typedef struct folder_t {
    char path[64];
    char name[96];
} folder_t;

static const char *in_folder(folder_t *folder, const char *name)
{
    snprintf(folder->name, sizeof folder->name, "%s/%s", folder->path, name);
    return folder->name;
}

static void remove_folder(void *user)
{
    folder_t *folder = user;
    static const char *const names[] = {"data", "new", "link", "target"};
    for (size_t i = 0; i < COUNT(names); i++) unlink(in_folder(folder, names[i]));
    rmdir(folder->path);
}

static folder_t *new_folder(void)
{
    folder_t *folder = scratch(sizeof *folder);
    strcpy(folder->path, "/tmp/keel-conformance-XXXXXX");
    CHECK(mkdtemp(folder->path));
    own_cleanup(remove_folder, folder);
    return folder;
}

static const char *write_file(folder_t *folder, const void *data, size_t size)
{
    const char *path = in_folder(folder, "data");
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    CHECK(fd >= 0);
    ssize_t written = write(fd, data, size);
    close(fd);
    CHECK(written == (ssize_t)size);
    return path;
}

static void check_file(const char *path, const void *expected, size_t size)
{
    unsigned char *actual = scratch(size + 1);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    CHECK(fd >= 0);
    ssize_t got = read(fd, actual, size + 1);
    close(fd);
    CHECK_EQ(got, (ssize_t)size);
    CHECK_MEM(actual, expected, size);
}

static keel_file_t *open_file(const char *path, uint32_t flags)
{
    keel_file_t *file = NULL;
    TRY(keel_file_open(the_device(), path, flags, &file));
    OWN(file);
    return file;
}

TEST(file, read_whole, RUNS)
{
    folder_t *folder = new_folder();
    uint8_t *data = numbered(5000);
    keel_file_t *file = open_file(write_file(folder, data, 5000), KEEL_FILE_READ);
    uint64_t size = 0;
    TRY(keel_file_size(file, &size));
    CHECK_EQ(size, 5000);
    keel_buffer_t *x = new_buffer(5000);
    reach(submit(keel_op_read(file, 0, keel_whole(x))));
    check_bytes(x, 0, data, 5000);
}

TEST(file, read_ranges, RUNS)
{
    folder_t *folder = new_folder();
    uint8_t *data = numbered(10000);
    keel_file_t *file = open_file(write_file(folder, data, 10000), KEEL_FILE_READ);
    static const uint64_t rows[][3] = {{0, 0, 1},       {1, 3, 7},     {4095, 0, 2},
                                       {100, 50, 4096}, {9999, 63, 1}, {5000, 1, 4999},
                                       {17, 0, 0}};
    for (size_t i = 0; i < COUNT(rows); i++) {
        uint64_t from = rows[i][0], to = rows[i][1], length = rows[i][2];
        row("file offset %llu, buffer offset %llu, length %llu", (unsigned long long)from,
            (unsigned long long)to, (unsigned long long)length);
        keel_buffer_t *x = new_buffer_filled(6000, 0xee);
        uint8_t *expected = scratch(6000);
        memset(expected, 0xee, 6000);
        memcpy(expected + to, data + from, length);
        reach(submit(keel_op_read(file, from, keel_span(x, to, length))));
        check_bytes(x, 0, expected, 6000);
    }
}

TEST(file, write_ranges, RUNS)
{
    static const uint64_t rows[][3] = {
        {0, 0, 1}, {3, 1, 7}, {0, 4095, 2}, {50, 100, 4096}, {63, 5999, 1}};
    folder_t *folder = new_folder();
    uint8_t *data = numbered(6000), *expected = scratch(6000);
    keel_buffer_t *x = new_buffer_of(data, 6000);
    for (size_t i = 0; i < COUNT(rows); i++) {
        uint64_t from = rows[i][0], to = rows[i][1], length = rows[i][2];
        row("buffer offset %llu, file offset %llu, length %llu", (unsigned long long)from,
            (unsigned long long)to, (unsigned long long)length);
        memset(expected, 0x55, 6000);
        const char *path = write_file(folder, expected, 6000);
        keel_file_t *file = open_file(path, KEEL_FILE_READ | KEEL_FILE_WRITE);
        reach(submit(keel_op_write(keel_span(x, from, length), file, to)));
        memcpy(expected + to, data + from, length);
        check_file(in_folder(folder, "data"), expected, 6000);
    }
}

TEST(file, write_extends, RUNS)
{
    folder_t *folder = new_folder();
    keel_file_t *file = open_file(in_folder(folder, "new"), KEEL_FILE_WRITE | KEEL_FILE_CREATE);
    keel_buffer_t *x = new_buffer_filled(100, 7);
    uint64_t size = 1;
    TRY(keel_file_size(file, &size));
    CHECK_EQ(size, 0);
    reach(submit(keel_op_write(keel_whole(x), file, 50)));
    TRY(keel_file_size(file, &size));
    CHECK_EQ(size, 150);
    uint8_t expected[150] = {0};
    memset(expected + 50, 7, 100);
    check_file(in_folder(folder, "new"), expected, 150);
    struct stat info;
    CHECK(stat(in_folder(folder, "new"), &info) == 0);
    CHECK_EQ(info.st_mode & 0777, 0600);
}

// In order with other work: written after the fill, read after the write.
TEST(file, chained, RUNS)
{
    folder_t *folder = new_folder();
    keel_semaphore_t *gate = new_semaphore(0);
    keel_file_t *file =
        open_file(in_folder(folder, "new"), KEEL_FILE_READ | KEEL_FILE_WRITE | KEEL_FILE_CREATE);
    keel_buffer_t *x = new_buffer(4096), *y = new_buffer(4096);
    keel_point_t filled =
        submit_after(KEEL_AFTER(keel_point(gate, 1)), keel_op_fill(keel_whole(x), 0x44332211, 4));
    keel_point_t written = submit_after(KEEL_AFTER(filled), keel_op_write(keel_whole(x), file, 0));
    keel_point_t back = submit_after(KEEL_AFTER(written), keel_op_read(file, 0, keel_whole(y)));
    CHECK(pending(back));
    TRY(keel_semaphore_signal(gate, 1));
    reach(back);
    CHECK_EQ(buffer_u32(y, 1023), 0x44332211);
}

TEST(file, chained_by_barriers, RUNS)
{
    folder_t *folder = new_folder();
    keel_file_t *file =
        open_file(in_folder(folder, "new"), KEEL_FILE_READ | KEEL_FILE_WRITE | KEEL_FILE_CREATE);
    keel_buffer_t *x = new_buffer(4096), *y = new_buffer(4096);
    for (uint8_t i = 1; i < 20; i++) {
        row("round %u", i);
        reach(SUBMIT(KEEL_NO_WAITS, keel_op_fill(keel_whole(x), i, 1), keel_op_barrier(),
                     keel_op_write(keel_whole(x), file, i), keel_op_barrier(),
                     keel_op_read(file, i, keel_whole(y)), keel_op_barrier(),
                     keel_op_fill(keel_whole(x), 0, 1)));
        check_filled(y, 0, 4096, i);
    }
}

TEST(file, large, RUNS)
{
    const size_t size = (careful() ? 1 << 20 : 1 << 24) + 31;
    folder_t *folder = new_folder();
    uint8_t *data = numbered(size);
    keel_file_t *file =
        open_file(in_folder(folder, "new"), KEEL_FILE_READ | KEEL_FILE_WRITE | KEEL_FILE_CREATE);
    keel_buffer_t *x = new_buffer_of(data, size), *y = new_buffer(size);
    keel_point_t written = submit(keel_op_write(keel_whole(x), file, 3));
    reach(submit_after(KEEL_AFTER(written), keel_op_read(file, 3, keel_whole(y))));
    check_bytes(y, 0, data, size);
}

TEST(file, many_at_once, RUNS)
{
    enum { N = 200, SIZE = 1000 };
    folder_t *folder = new_folder();
    uint8_t *data = numbered(N * SIZE);
    keel_file_t *file = open_file(write_file(folder, data, N * SIZE), KEEL_FILE_READ);
    keel_buffer_t *x = new_buffer(N * SIZE);
    keel_point_t done[N];
    for (uint64_t i = 0; i < N; i++) {
        done[i] = submit(keel_op_read(file, i * SIZE, keel_span(x, i * SIZE, SIZE)));
    }
    TRY(keel_wait(keel_points(done, N), KEEL_ALL, patience()));
    check_bytes(x, 0, data, N * SIZE);
}

TEST(file, read_into_a_pool, .needs = KEEL_CAP_FILES | KEEL_CAP_EXECUTES | KEEL_CAP_QUEUE_ALLOCA)
{
    folder_t *folder = new_folder();
    keel_file_t *file = open_file(write_file(folder, "pool data", 9), KEEL_FILE_READ);
    keel_buffer_t *x = new_reserved(new_pool(0, 0), 9);
    keel_point_t ready = submit(keel_op_alloca(x));
    reach(submit_after(KEEL_AFTER(ready), keel_op_read(file, 0, keel_whole(x))));
    check_bytes(x, 0, "pool data", 9);
}

TEST(file, read_beyond_the_end_fails, RUNS)
{
    folder_t *folder = new_folder();
    const char *path = write_file(folder, "short", 5);
    keel_file_t *file = open_file(path, KEEL_FILE_READ);
    keel_buffer_t *x = new_buffer(64);
    static const uint64_t rows[][2] = {{0, 6}, {5, 1}, {4, 2}, {1000, 1}};
    for (size_t i = 0; i < COUNT(rows); i++) {
        row("offset %llu length %llu", (unsigned long long)rows[i][0],
            (unsigned long long)rows[i][1]);
        keel_point_t point = submit(keel_op_read(file, rows[i][0], keel_span(x, 0, rows[i][1])));
        reach_failure_saying(point, KEEL_OUT_OF_RANGE, folder->path);
    }
}

// A submission that fails ends when the file is no longer read into its memory, not before.
TEST(file, failure_waits_for_what_is_under_way,
     .needs = KEEL_CAP_FILES | KEEL_CAP_EXECUTES | KEEL_CAP_QUEUE_ALLOCA, .heavy = true)
{
    enum { SIZE = 30 << 20 };
    folder_t *folder = new_folder();
    const char *path = write_file(folder, "", 0);
    CHECK(truncate(path, SIZE) == 0);
    keel_file_t *in = open_file(path, KEEL_FILE_READ);
    keel_file_t *out = open_file(in_folder(folder, "new"), KEEL_FILE_WRITE | KEEL_FILE_CREATE);
    keel_buffer_t *x = new_buffer(SIZE), *y = new_buffer(4096);
    keel_buffer_t *nowhere = new_reserved(keel_device_pool(the_device(), 0), 64);
    for (int i = 0; i < 10; i++) {
        keel_point_t done =
            SUBMIT(KEEL_NO_WAITS, keel_op_read(in, 0, keel_whole(x)),
                   keel_op_write(keel_whole(y), out, 0), keel_op_fill(keel_whole(nowhere), 1, 4));
        reach_failure(done, KEEL_FAILED_PRECONDITION);
    }
    reach(submit(keel_op_fill(keel_whole(x), 0xee, 1)));
    reach(submit(keel_op_read(in, 0, keel_whole(x))));
    check_filled(x, 0, SIZE, 0);
}

static void set_file_limit(rlim_t bytes)
{
    struct rlimit limit;
    CHECK(getrlimit(RLIMIT_FSIZE, &limit) == 0);
    limit.rlim_cur = bytes < limit.rlim_max ? bytes : limit.rlim_max;
    CHECK(setrlimit(RLIMIT_FSIZE, &limit) == 0);
}

static void lift_file_limit(void *user)
{
    set_file_limit(RLIM_INFINITY);
}

// As with a full disk: the code says that it is no fault of the file's.
TEST(file, write_beyond_a_limit, RUNS)
{
    enum { LIMIT = 1 << 16 };
    folder_t *folder = new_folder();
    keel_file_t *file =
        open_file(in_folder(folder, "new"), KEEL_FILE_WRITE | KEEL_FILE_CREATE | KEEL_FILE_READ);
    keel_buffer_t *source = new_buffer(LIMIT + 4096);
    signal(SIGXFSZ, SIG_IGN);
    own_cleanup(lift_file_limit, NULL);
    set_file_limit(LIMIT);
    reach(submit(keel_op_write(keel_span(source, 0, LIMIT), file, 0)));
    reach_failure_saying(submit(keel_op_write(keel_whole(source), file, 0)),
                         KEEL_RESOURCE_EXHAUSTED, in_folder(folder, "new"));
}

TEST(file, modes_are_respected, FILES)
{
    folder_t *folder = new_folder();
    const char *path = write_file(folder, "0123456789", 10);
    keel_file_t *r = open_file(path, KEEL_FILE_READ), *w = open_file(path, KEEL_FILE_WRITE);
    keel_buffer_t *x = new_buffer(10);
    FAILS(KEEL_PERMISSION_DENIED,
          keel_queue_run(the_queue(), KEEL_NO_WAITS, keel_op_write(keel_whole(x), r, 0), NULL));
    FAILS(KEEL_PERMISSION_DENIED,
          keel_queue_run(the_queue(), KEEL_NO_WAITS, keel_op_read(w, 0, keel_whole(x)), NULL));
}

TEST(file, buffers_are_checked, FILES)
{
    folder_t *folder = new_folder();
    keel_file_t *file =
        open_file(write_file(folder, "0123456789", 10), KEEL_FILE_READ | KEEL_FILE_WRITE);
    keel_buffer_options_t options = {.size = 10, .access = KEEL_ACCESS_READ};
    keel_buffer_t *x = new_buffer(10), *r = NULL;
    TRY(keel_buffer_create(the_device(), &options, &r));
    OWN(r);
    keel_queue_t *q = the_queue();
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "file",
                 keel_queue_run(q, KEEL_NO_WAITS, keel_op_read(NULL, 0, keel_whole(x)), NULL));
    FAILS(KEEL_INVALID_ARGUMENT,
          keel_queue_run(q, KEEL_NO_WAITS, keel_op_read(file, 0, keel_span(NULL, 0, 4)), NULL));
    FAILS(KEEL_OUT_OF_RANGE,
          keel_queue_run(q, KEEL_NO_WAITS, keel_op_read(file, 0, keel_span(x, 5, 6)), NULL));
    FAILS(
        KEEL_OUT_OF_RANGE,
        keel_queue_run(q, KEEL_NO_WAITS, keel_op_read(file, UINT64_MAX - 2, keel_whole(x)), NULL));
    FAILS(KEEL_PERMISSION_DENIED,
          keel_queue_run(q, KEEL_NO_WAITS, keel_op_read(file, 0, keel_whole(r)), NULL));
}

TEST(file, open_bad_arguments, FILES)
{
    folder_t *folder = new_folder();
    const char *path = write_file(folder, "x", 1);
    keel_file_t *file = NULL;
    uint64_t size;
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "device",
                 keel_file_open(NULL, path, KEEL_FILE_READ, &file));
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "path",
                 keel_file_open(the_device(), NULL, KEEL_FILE_READ, &file));
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "file",
                 keel_file_open(the_device(), path, KEEL_FILE_READ, NULL));
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "flags", keel_file_open(the_device(), path, 0, &file));
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "flags", keel_file_open(the_device(), path, 64, &file));
    FAILS(KEEL_INVALID_ARGUMENT, keel_file_open(the_device(), path, KEEL_FILE_CREATE, &file));
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "file", keel_file_size(NULL, &size));
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "size",
                 keel_file_size(open_file(path, KEEL_FILE_READ), NULL));
    CHECK(file == NULL);
}

TEST(file, open_what_is_not_there, FILES)
{
    folder_t *folder = new_folder();
    keel_file_t *file = NULL;
    FAILS_SAYING(KEEL_NOT_FOUND, "/nowhere",
                 keel_file_open(the_device(), in_folder(folder, "nowhere"), KEEL_FILE_READ, &file));
    FAILS(KEEL_NOT_FOUND,
          keel_file_open(the_device(), in_folder(folder, "nowhere"), KEEL_FILE_WRITE, &file));
    FAILS(KEEL_INVALID_ARGUMENT, keel_file_open(the_device(), folder->path, KEEL_FILE_READ, &file));
}

// The maker of a link decides where it leads.
TEST(file, create_does_not_follow_links, FILES)
{
    folder_t *folder = new_folder();
    char link[96];
    snprintf(link, sizeof link, "%s", in_folder(folder, "link"));
    CHECK(symlink(in_folder(folder, "target"), link) == 0);
    keel_file_t *file = NULL;
    FAILS(KEEL_PERMISSION_DENIED,
          keel_file_open(the_device(), link, KEEL_FILE_WRITE | KEEL_FILE_CREATE, &file));
    CHECK(access(in_folder(folder, "target"), F_OK) != 0);
}

TEST(file, create_keeps_what_is_there, RUNS)
{
    folder_t *folder = new_folder();
    const char *path = write_file(folder, "0123456789", 10);
    keel_file_t *file = open_file(path, KEEL_FILE_WRITE | KEEL_FILE_CREATE);
    keel_buffer_t *x = new_buffer_filled(3, '-');
    reach(submit(keel_op_write(keel_whole(x), file, 2)));
    check_file(in_folder(folder, "data"), "01---56789", 10);
}

TEST(file, import, RUNS)
{
    folder_t *folder = new_folder();
    const char *path = write_file(folder, "imported", 8);
    keel_device_t *device = the_device();
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    CHECK(fd >= 0);
    keel_file_t *file = NULL;
    keel_status_t status = keel_file_import(device, fd, &file);
    close(fd); // it was duplicated
    TRY(status);
    OWN(file);
    keel_buffer_t *x = new_buffer(8);
    reach(submit(keel_op_read(file, 0, keel_whole(x))));
    check_bytes(x, 0, "imported", 8);
    FAILS(KEEL_PERMISSION_DENIED,
          keel_queue_run(the_queue(), KEEL_NO_WAITS, keel_op_write(keel_whole(x), file, 0), NULL));
}

TEST(file, import_bad_arguments, FILES)
{
    keel_file_t *file = NULL;
    int pipes[2];
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "fd", keel_file_import(the_device(), -1, &file));
    FAILS(KEEL_INVALID_ARGUMENT, keel_file_import(the_device(), 99999, &file));
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "device", keel_file_import(NULL, 0, &file));
    CHECK(pipe(pipes) == 0);
    keel_status_t status = keel_file_import(the_device(), pipes[0], &file);
    close(pipes[0]);
    close(pipes[1]);
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "pipe", status);
}

TEST(file, position_of_the_descriptor_stays, RUNS)
{
    folder_t *folder = new_folder();
    int fd = open(write_file(folder, "0123456789", 10), O_RDONLY | O_CLOEXEC);
    CHECK(fd >= 0);
    own_descriptor(fd);
    keel_file_t *file = NULL;
    TRY(keel_file_import(the_device(), fd, &file));
    OWN(file);
    keel_buffer_t *x = new_buffer(4);
    reach(submit(keel_op_read(file, 4, keel_whole(x))));
    CHECK_EQ(lseek(fd, 0, SEEK_CUR), 0);
}

TEST(file, released_in_flight, RUNS)
{
    folder_t *folder = new_folder();
    keel_semaphore_t *gate = new_semaphore(0);
    keel_file_t *file = open_file(write_file(folder, "in flight", 9), KEEL_FILE_READ);
    keel_buffer_t *x = new_buffer(9);
    keel_point_t done =
        submit_after(KEEL_AFTER(keel_point(gate, 1)), keel_op_read(file, 0, keel_whole(x)));
    drop(file);
    keel_file_release(NULL);
    TRY(keel_semaphore_signal(gate, 1));
    reach(done);
    check_bytes(x, 0, "in flight", 9);
}

TEST(file, device_closed_in_flight, RUNS)
{
    folder_t *folder = new_folder();
    uint8_t *data = numbered(1 << 20);
    keel_file_t *file = open_file(write_file(folder, data, 1 << 20), KEEL_FILE_READ);
    keel_buffer_t *x = new_buffer(1 << 20);
    keel_semaphore_t *timeline = keel_semaphore_retain(keel_queue_timeline(the_queue()));
    OWN(timeline);
    keel_point_t done[20];
    for (int i = 0; i < 20; i++) done[i] = submit(keel_op_read(file, 0, keel_whole(x)));
    drop(the_device());
    for (int i = 0; i < 20; i++) {
        keel_status_t status =
            keel_wait(KEEL_POINTS(done[i]), KEEL_ALL, 0); // nothing is left to wait for
        if (keel_status_code(status) != KEEL_CANCELLED) TRY(status);
        keel_status_release(status);
    }
}

static bool thread_exists(const char *name)
{
    DIR *folder = opendir("/proc/self/task");
    bool found = false;
    for (const struct dirent *entry; folder && !found && (entry = readdir(folder));) {
        char path[300], text[32] = "";
        snprintf(path, sizeof path, "/proc/self/task/%s/comm", entry->d_name);
        FILE *file = fopen(path, "r");
        if (!file) continue;
        found = fgets(text, sizeof text, file) && strncmp(text, name, strlen(name)) == 0;
        fclose(file);
    }
    if (folder) closedir(folder);
    return found;
}

// A closed device has no thread, although a buffer keeps it in memory.
TEST(file, close_ends_the_thread_for_files, RUNS, .also = NEED_WORKERS)
{
    keel_buffer_t *buffer = new_buffer_filled(64, 3);
    keel_file_t *file =
        open_file(in_folder(new_folder(), "data"), KEEL_FILE_WRITE | KEEL_FILE_CREATE);
    reach(submit(keel_op_write(keel_whole(buffer), file, 0)));
    drop(the_device());
    CHECK(!thread_exists("keel-files"));
}
