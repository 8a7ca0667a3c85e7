// SPDX-License-Identifier: Apache-2.0
// Version, clock, allocator, leak counters, log.
#include "suite/suite.h"

#include <fcntl.h>
#include <unistd.h>

TEST(base, version)
{
    char text[40];
    snprintf(text, sizeof text, "%d.%d.%d", KEEL_VERSION_MAJOR, KEEL_VERSION_MINOR,
             KEEL_VERSION_PATCH);
    CHECK_STR(keel_version(), text);
}

TEST(base, clock_advances)
{
    uint64_t before = keel_now_ns();
    sleep_ms(20);
    uint64_t after = keel_now_ns();
    CHECK_GE(after - before, 19000000);
    CHECK_LE(after - before, 5000000000);
    for (int i = 0; i < 1000; i++) {
        uint64_t now = keel_now_ns();
        CHECK_GE(now, after);
        after = now;
    }
}

// The counts once no thread of Keel's own is looking at a queue that has been released.
static keel_live_t live_in_the_end(const keel_live_t *expected)
{
    keel_live_t live;
    uint64_t deadline = keel_now_ns() + patience();
    do keel_live_objects(&live);
    while (live.queues != expected->queues && keel_now_ns() < deadline);
    return live;
}

// The counters follow each kind of object.
TEST(base, live_objects, .needs = KEEL_CAP_EXECUTES | KEEL_CAP_QUEUE_ALLOCA)
{
    keel_live_t before, with, after;
    the_device();
    keel_live_objects(&before);
    keel_queue_t *queue = new_queue(0);
    keel_semaphore_t *semaphore = new_semaphore(0);
    keel_buffer_t *buffer = new_buffer(16);
    keel_pool_t *pool = new_pool(0, 0);
    keel_executable_t *executable = kernels();
    keel_recording_t *recording = RECORD(0, keel_op_barrier());
    keel_completion_t *completion = NULL;
    TRY(keel_completion_create(&completion));
    keel_live_objects(&with);
    keel_completion_release(completion);
    CHECK_EQ(with.queues, before.queues + 1);
    CHECK_GE(with.semaphores, before.semaphores + 1);
    CHECK_EQ(with.buffers, before.buffers + 1);
    CHECK_EQ(with.pools, before.pools + 1);
    CHECK_EQ(with.executables, before.executables + 1);
    CHECK_EQ(with.recordings, before.recordings + 1);
    CHECK_EQ(with.completions, before.completions + 1);
    CHECK_GE(with.devices, 1);
    CHECK_EQ(with.devices, before.devices);
    drop(recording), drop(executable), drop(pool), drop(buffer), drop(semaphore), drop(queue);
    after = live_in_the_end(&before);
    if (faulted()) return; // a lost device keeps the cause
    CHECK_MEM(&after, &before, sizeof after);
}

TEST(base, live_submissions)
{
    keel_semaphore_t *gate = new_semaphore(0);
    keel_live_t live;
    keel_point_t point = SUBMIT(KEEL_AFTER(keel_point(gate, 1)), keel_op_barrier());
    keel_live_objects(&live);
    CHECK_GE(live.submissions, 1);
    TRY(keel_semaphore_signal(gate, 1));
    reach(point);
    TRY(keel_device_wait_idle(the_device(), patience()));
    drop(the_device());
    keel_live_objects(&live);
    CHECK_EQ(live.submissions, 0);
}

static atomic_int given;
static atomic_int taken;

static void *counting_resize(void *user, void *old, size_t size)
{
    void *memory = realloc(old, size ? size : 1);
    if (!old && memory) atomic_fetch_add(&given, 1);
    return memory;
}

static void counting_free(void *user, void *memory)
{
    if (memory) atomic_fetch_add(&taken, 1);
    free(memory);
}

static void restore_allocator(void *user)
{
    keel_allocator_set(NULL);
}

// All of the library's own memory comes from the allocator and goes back to it.
TEST(base, allocator)
{
    static const keel_allocator_t allocator = {counting_resize, counting_free, NULL};
    own_cleanup(restore_allocator, NULL);
    keel_allocator_set(&allocator);
    keel_device_t *device = open_device(the_uri());
    keel_buffer_t *buffer = new_buffer_on(device, 100);
    CHECK_GE(atomic_load(&given), 3);
    drop(buffer);
    drop(device);
    CHECK_EQ(atomic_load(&given), atomic_load(&taken));
}

// Nothing is written to the streams of the application, whatever goes wrong.
TEST(base, silent)
{
    FILE *file = tmpfile();
    CHECK(file);
    fflush(NULL);
    int out = dup(STDOUT_FILENO), err = dup(STDERR_FILENO);
    keel_log_set(NULL, NULL, KEEL_LOG_DEBUG);
    dup2(fileno(file), STDOUT_FILENO);
    dup2(fileno(file), STDERR_FILENO);
    keel_device_t *device = NULL;
    keel_status_t bad = keel_device_open("nothing://", NULL, &device);
    keel_status_t good = keel_device_open(the_uri(), NULL, &device);
    keel_device_release(device);
    fflush(NULL);
    dup2(out, STDOUT_FILENO);
    dup2(err, STDERR_FILENO);
    close(out);
    close(err);
    long written = lseek(fileno(file), 0, SEEK_END);
    fclose(file);
    CHECK(bad);
    keel_status_release(bad);
    TRY(good);
    CHECK_EQ(written, 0);
}

static atomic_int lines;

static void count_line(void *user, keel_log_level_t level, const char *text)
{
    EXPECT(user == &lines);
    EXPECT(level <= KEEL_LOG_DEBUG);
    EXPECT(strchr(text, '\n') == NULL);
    atomic_fetch_add(&lines, 1);
}

// What was chosen is told at the level of information.
TEST(base, log_tells_of_devices, .needs = KEEL_CAP_EXECUTES)
{
    atomic_store(&lines, 0);
    keel_log_set(count_line, &lines, KEEL_LOG_INFO);
    drop(open_device(the_uri()));
    keel_log_set(NULL, NULL, KEEL_LOG_ERROR);
    int told = atomic_load(&lines);
    if (!starved()) CHECK_GE(told, 1);
    drop(open_device(the_uri()));
    CHECK_EQ(atomic_load(&lines), told);
}

TEST(base, log_level_filters)
{
    atomic_store(&lines, 0);
    keel_log_set(count_line, &lines, KEEL_LOG_ERROR);
    drop(open_device(the_uri()));
    keel_log_set(NULL, NULL, KEEL_LOG_ERROR);
    if (!faulted()) CHECK_EQ(atomic_load(&lines), 0);
}
