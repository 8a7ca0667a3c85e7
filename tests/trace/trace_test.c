// SPDX-License-Identifier: Apache-2.0
// Each test records in a child of a fork, which ends in its own way; what is in its file then is
// read here.
#include "trace/event.h"

#include <fcntl.h>
#include <keel/trace.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tracer/control.h"
#include "tracer/load.h"
#include "unit.h"

static char folder[] = "/tmp/keel-trace-XXXXXX";

// Runs `fn` in a child; returns how that ended. *path: the file that it is to write.
static int child_run(void (*fn)(void), char path[64])
{
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        fn();
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    snprintf(path, 64, "%s/%ld-0.trace", folder, (long)pid);
    return status;
}

// Opens what a child has written.
static void child_read(void (*fn)(void), reader_t *reader)
{
    char path[64];
    assert_int_equal(child_run(fn, path), 0);
    assert_null(reader_open(reader, path));
}

// A record with a number to know it by.
static void emit(uint64_t number)
{
    trace_submit(trace_now(), (trace_work_t){1, number}, (trace_counts_t){number, 2, 3});
}

enum { SEEN = 200000 };
typedef struct seen_t {
    uint64_t count, last, last_ns;
    bool in_order;
    unsigned char times[SEEN]; // each number was read
} seen_t;

static void see(void *user, const reader_record_t *record)
{
    seen_t *seen = user;
    uint64_t number = record->raw->submission;
    seen->in_order &= number > seen->last && record->start_ns >= seen->last_ns;
    seen->last = number;
    seen->last_ns = record->start_ns;
    seen->count++;
    assert_int_equal(record->raw->kind, TRACE_SUBMIT);
    assert_int_equal(record->raw->a[0], number);
    assert_int_equal(record->raw->a[2], 3);
    assert_true(record->end_ns >= record->start_ns);
    assert_true(record->thread != 0);
    if (number < SEEN) seen->times[number]++;
}

static void see_all(const reader_t *reader, seen_t *seen)
{
    memset(seen, 0, sizeof *seen);
    seen->in_order = true;
    reader_each(reader, ~((1u << TRACE_SUBMIT) - 1), see, seen);
}

static seen_t seen;

static void emit_many(void)
{
    for (uint64_t i = 1; i <= 10000; i++) emit(i);
}

static void test_exit(void **state)
{
    (void)state;
    reader_t reader;
    child_read(emit_many, &reader);
    see_all(&reader, &seen);
    assert_int_equal(seen.count, 10000);
    assert_true(seen.in_order);
    assert_int_equal(reader.header->ended, 0); // by _exit
    assert_int_equal(reader.header->lost, 0);
    assert_int_equal(reader.header->parent, getpid());
    assert_int_equal(reader.unknown, 0);
    reader_close(&reader);
}

static void emit_and_die(void)
{
    emit_many();
    kill(getpid(), SIGKILL);
}

static void test_kill(void **state)
{
    (void)state;
    reader_t reader;
    char path[64];
    int status = child_run(emit_and_die, path);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    assert_null(reader_open(&reader, path));
    see_all(&reader, &seen);
    assert_int_equal(seen.count, 10000);
    assert_true(seen.in_order);
    reader_close(&reader);
}

static void emit_and_finish(void)
{
    emit(1);
    trace_finish();
}

static void test_finish(void **state)
{
    (void)state;
    reader_t reader;
    child_read(emit_and_finish, &reader);
    assert_int_equal(reader.header->ended, 1);
    reader_close(&reader);
}

enum { THREADS = 64, EACH = 3000, MILLION = 1000000 };

static void *emit_some(void *argument)
{
    uint64_t first = (uint64_t)(uintptr_t)argument;
    for (uint64_t i = 0; i < EACH; i++) emit(first + i);
    return NULL;
}

static void emit_on_threads(void)
{
    pthread_t threads[THREADS];
    for (uintptr_t i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, emit_some, (void *)(1 + i * EACH))) _exit(1);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
}

static void test_threads(void **state)
{
    (void)state;
    reader_t reader;
    child_read(emit_on_threads, &reader);
    see_all(&reader, &seen);
    assert_int_equal(seen.count, THREADS * EACH);
    for (int i = 1; i <= THREADS * EACH; i++) assert_int_equal(seen.times[i], 1);
    reader_close(&reader);
}

static void *emit_one(void *argument)
{
    emit((uint64_t)(uintptr_t)argument);
    return NULL;
}

static void emit_in_turn(void)
{
    for (uintptr_t i = 1; i <= 200; i++) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, emit_one, (void *)i)) _exit(1);
        pthread_join(thread, NULL);
    }
}

// Threads that end leave the rest of their chunk to the next.
static void test_threads_in_turn(void **state)
{
    (void)state;
    reader_t reader;
    child_read(emit_in_turn, &reader);
    see_all(&reader, &seen);
    assert_int_equal(seen.count, 200);
    assert_int_equal(reader.header->chunks, 1);
    reader_close(&reader);
}

static void emit_a_million(void)
{
    for (uint64_t i = 1; i <= MILLION; i++) emit(i % 1000 + 1);
#ifndef SANITIZED // so many a second can be recorded
    struct timespec used;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    if (used.tv_sec >= 1) _exit(3);
#endif
}

static void million_see(void *count, const reader_record_t *record)
{
    (void)record;
    ++*(uint64_t *)count;
}

// At a million events a second none is lost.
static void test_million(void **state)
{
    (void)state;
    reader_t reader;
    uint64_t count = 0;
    child_read(emit_a_million, &reader);
    reader_each(&reader, 1u << TRACE_SUBMIT, million_see, &count);
    assert_int_equal(count, MILLION);
    assert_int_equal(reader.header->lost, 0);
    reader_close(&reader);
}

static char long_name[1001];
static const int lengths[] = {1, 55, 56, 57, 112, 1000};
enum { NAMES = sizeof lengths / sizeof *lengths };
static uint32_t numbers[NAMES]; // given before any fork

static void emit_names(void)
{
    trace_name("child");
    for (int i = 0; i < NAMES; i++)
        if (trace_name(long_name + 1000 - lengths[i]) != numbers[i]) _exit(1);
}

static void test_names(void **state)
{
    (void)state;
    reader_t parent, child;
    char path[64], text[1100];
    for (int i = 0; i < 1000; i++) long_name[i] = (char)('a' + i % 26);
    for (int i = 0; i < NAMES; i++) numbers[i] = trace_name(long_name + 1000 - lengths[i]);
    child_read(emit_names, &child);
    snprintf(path, sizeof path, "%s/%ld-0.trace", folder, (long)getpid());
    assert_null(reader_open(&parent, path));
    assert_int_equal(child.header->names_pid, getpid());
    assert_int_equal(child.header->names_number, 0);
    snprintf(text, sizeof text, "name %u", numbers[0]);
    char unknown[64];
    assert_string_equal(reader_name(&child, numbers[0], unknown, sizeof unknown), text);
    child.names_of = &parent;
    for (int i = 0; i < NAMES; i++)
        assert_string_equal(reader_name(&child, numbers[i], text, sizeof text),
                            long_name + 1000 - lengths[i]);
    assert_string_equal(reader_name(&child, trace_name("child"), text, sizeof text), "child");
    assert_string_equal(reader_name(&child, 0, text, sizeof text), "");
    reader_close(&child);
    reader_close(&parent);
}

static double seconds_used(void)
{
    struct timespec used;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    return (double)used.tv_sec + (double)used.tv_nsec / 1e9;
}

// So many texts that there is no room for all; then quickly.
static void emit_texts(void)
{
    char text[32];
    uint32_t given = 0;
    for (int i = 0; i < TRACE_NAMES; i++) {
        snprintf(text, sizeof text, "text %d", i);
        given += trace_text(text) != 0;
    }
    if (given < TRACE_NAMES / 2 || given > TRACE_NAMES / 10 * 9) _exit(1);
    double before = seconds_used();
    for (int i = 0; i < 10000; i++) {
        snprintf(text, sizeof text, "other %d", i);
        if (trace_text(text)) _exit(2);
    }
    if (seconds_used() - before > 0.3) _exit(3);
    emit(trace_name("a kernel") ? 1 : 2);
    emit(trace_text("text 1") ? 3 : 4);
}

// Texts of the application's leave room for other names, and what has none is counted.
static void test_many_texts(void **state)
{
    (void)state;
    reader_t reader;
    child_read(emit_texts, &reader);
    see_all(&reader, &seen);
    assert_int_equal(seen.times[1], 1);
    assert_int_equal(seen.times[3], 1);
    assert_true(reader.header->lost >= 10000 + TRACE_NAMES / 10);
    reader_close(&reader);
}

static _Atomic uint32_t kept;

static void emit_name_twice(void)
{
    trace_record_t *record = trace_take();
    if (!record) _exit(1);
    trace_name_at(&kept, long_name); // while a record is written: there is no room
    if (kept) _exit(2);
    trace_put(record, TRACE_NONE);
    if (!trace_name_at(&kept, long_name) || !kept) _exit(3);
}

// A name that could not be written is written by its next use.
static void test_name_again(void **state)
{
    (void)state;
    reader_t reader;
    char text[1100];
    for (int i = 0; i < 1000; i++) long_name[i] = (char)('a' + i % 25);
    child_read(emit_name_twice, &reader);
    uint32_t number = reader.names.parts[0]->name;
    assert_string_equal(reader_name(&reader, number, text, sizeof text), long_name);
    reader_close(&reader);
}

static void on_signal(int number)
{
    (void)number;
    emit(2);
}

static void emit_under_signal(void)
{
    signal(SIGUSR1, on_signal);
    trace_record_t *record = trace_take();
    if (!record) _exit(1);
    raise(SIGUSR1); // while a record is written: that of the handler is lost
    record->submission = record->a[0] = 1;
    record->a[2] = 3;
    trace_put(record, TRACE_SUBMIT);
    raise(SIGUSR1);
}

static void test_signal(void **state)
{
    (void)state;
    reader_t reader;
    child_read(emit_under_signal, &reader);
    see_all(&reader, &seen);
    assert_int_equal(seen.count, 2);
    assert_int_equal(seen.times[1], 1);
    assert_int_equal(seen.times[2], 1);
    assert_int_equal(reader.header->lost, 1);
    reader_close(&reader);
}

static void emit_without_room(void)
{
    struct rlimit limit = {TRACE_HEADER_SIZE + 2 * TRACE_CHUNK, RLIM_INFINITY};
    if (setrlimit(RLIMIT_FSIZE, &limit)) _exit(1);
    emit_many();
}

// A disk, or a limit, that has room for two chunks: they are filled, the rest is counted.
static void test_full(void **state)
{
    (void)state;
    enum { FIT = 2 * (TRACE_SLOTS - 2) }; // a chunk begins with two of the recorder's own
    reader_t reader;
    child_read(emit_without_room, &reader);
    see_all(&reader, &seen);
    assert_int_equal(seen.count, FIT);
    assert_int_equal(seen.last, FIT);
    assert_int_equal(reader.header->lost, 10000 - FIT);
    reader_close(&reader);
}

enum { GIB = 1 << 30 };

static void emit_in_little_space(void)
{
    uint64_t size = (uint64_t)8 * GIB;
    struct rlimit limit = {size, RLIM_INFINITY};
    if (setrlimit(RLIMIT_AS, &limit)) _exit(1);
    emit(1);
    if (mmap(NULL, size / 2, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED) _exit(2);
    emit(2);
}

// A limit on the address space leaves most of it to the program. First of all: the file of this
// process is mapped in children as well.
static void test_space(void **state)
{
    (void)state;
    reader_t reader;
    unsigned long pages = 0;
    FILE *file = fopen("/proc/self/statm", "re");
    bool told = file && fscanf(file, "%lu", &pages) == 1;
    if (file) fclose(file);
    if (!told || pages > (unsigned long)GIB / 4096) skip(); // as those of sanitizers
    child_read(emit_in_little_space, &reader);
    see_all(&reader, &seen);
    assert_int_equal(seen.count, 2);
    reader_close(&reader);
}

// Closes what it does not know, as daemons do, and has files of its own in its place.
static void emit_and_close(void)
{
    enum { LAST = 64 };
    char path[64];
    struct stat about;
    emit(1);
    snprintf(path, sizeof path, "%s/own", folder);
    for (int fd = 3; fd < LAST; fd++) close(fd);
    for (int fd = 3; fd < LAST; fd++)
        if (open(path, O_RDWR | O_CREAT, 0600) != fd) _exit(1);
    for (uint64_t i = 2; i <= 10000; i++) emit(i);
    if (stat(path, &about) || about.st_size) _exit(2);
}

static void test_closed(void **state)
{
    (void)state;
    reader_t reader;
    child_read(emit_and_close, &reader);
    see_all(&reader, &seen);
    assert_int_equal(seen.count, 10000);
    assert_int_equal(reader.header->lost, 0);
    reader_close(&reader);
}

static void fork_and_emit(void)
{
    emit(1);
    char path[64];
    int status = child_run(emit_many, path);
    reader_t reader;
    keel_status_t opened = status ? NULL : reader_open(&reader, path);
    if (status || opened) _exit(1);
    see_all(&reader, &seen);
    if (seen.count != 10000 || reader.header->names_pid != (uint32_t)getpid()) _exit(2);
    emit(2);
}

// A child of a child, after which the first one goes on in its own file.
static void test_fork(void **state)
{
    (void)state;
    reader_t reader;
    child_read(fork_and_emit, &reader);
    see_all(&reader, &seen);
    assert_int_equal(seen.count, 2);
    assert_int_equal(reader.header->chunks, 1);
    reader_close(&reader);
}

static void emit_own(void)
{
    uint64_t start = keel_trace_begin();
    keel_trace_mark("here");
    keel_trace_count("tokens", 2.5);
    keel_trace_end(start, "decode");
    keel_trace_end(0, "never begun");
}

// The application's own records: a span that encloses a mark and a counter's value.
static void test_own(void **state)
{
    (void)state;
    reader_t reader;
    model_t model = {0};
    child_read(emit_own, &reader);
    assert_null(load_set(&model, &(set_t){.readers = &reader, .count = 1}));
    assert_int_equal(model.event_count, 3);
    static const struct {
        event_kind_t kind;
        const char *name;
    } expected[] = {{EVENT_MARK, "here"}, {EVENT_COUNT, "tokens"}, {EVENT_SPAN, "decode"}};
    const event_t *events = model.events;
    for (int i = 0; i < 3; i++) {
        assert_int_equal(events[i].kind, expected[i].kind);
        assert_string_equal(model_name(&model, &events[i]), expected[i].name);
        assert_true(events[i].start_ns >= events[2].start_ns);
        assert_true(events[i].end_ns <= events[2].end_ns);
    }
    double value;
    memcpy(&value, &events[1].value, sizeof value);
    assert_true(value == 2.5);
    model_finish(&model);
    reader_close(&reader);
}

static void emit_with_break(void)
{
    trace_control_t *control;
    if (control_open(folder, &control)) _exit(1);
    emit(1);
    control_set(control, false);
    if (keel_trace_is_on()) _exit(2);
    emit(2);
    trace_name("while it was stopped");
    control_set(control, true);
    if (!keel_trace_is_on()) _exit(3);
    emit(3);
}

// What is recorded while the recording is stopped is left out, and not lost; but names are kept.
static void test_stop(void **state)
{
    (void)state;
    reader_t reader;
    child_read(emit_with_break, &reader);
    see_all(&reader, &seen);
    assert_int_equal(seen.count, 2);
    assert_int_equal(seen.times[2], 0);
    assert_int_equal(reader.header->lost, 0);
    assert_int_equal(reader.names.count, 1);
    reader_close(&reader);
}

static int setup(void **state)
{
    (void)state;
    if (!mkdtemp(folder)) return 1;
    trace_enable(folder);
    return !trace_is_on();
}

static int teardown(void **state)
{
    (void)state;
    char command[64];
    snprintf(command, sizeof command, "rm -r %s", folder);
    return system(command);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_space),      cmocka_unit_test(test_exit),
        cmocka_unit_test(test_kill),       cmocka_unit_test(test_finish),
        cmocka_unit_test(test_threads),    cmocka_unit_test(test_threads_in_turn),
        cmocka_unit_test(test_million),    cmocka_unit_test(test_names),
        cmocka_unit_test(test_many_texts), cmocka_unit_test(test_name_again),
        cmocka_unit_test(test_signal),     cmocka_unit_test(test_full),
        cmocka_unit_test(test_closed),     cmocka_unit_test(test_fork),
        cmocka_unit_test(test_own),        cmocka_unit_test(test_stop),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
