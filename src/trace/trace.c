// SPDX-License-Identifier: Apache-2.0
#include "trace/trace.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "base/system.h"

_Atomic bool trace_on_;
trace_clock_t trace_clock_;
THREAD_LOCAL trace_thread_t trace_thread_;
static const trace_control_t always; // where there is no folder to have one
_Atomic(const trace_control_t *) trace_control_ = &always;

// The file of this process. The first thread that records makes it.
typedef enum state_t { ABSENT, MAKING, PRESENT, REFUSED } state_t;
static _Atomic uint32_t state;
static trace_file_t file;
static char folder[3072];
static bool makes_folder; // it is made with the file
static char rank[sizeof((trace_header_t *)0)->rank];
static pthread_key_t key; // whose destructor takes back the chunk of a thread that ends
static struct {
    uint32_t pid, number;
} names; // of the file that this process's parent wrote before the fork; 0: none

// Takes back the rest of the thread's chunk.
static void thread_end(void *argument)
{
    trace_thread_t *thread = argument;
    thread->busy = true;
    atomic_signal_fence(memory_order_seq_cst);
    trace_file_return(&file, thread->room);
    thread->room = (trace_room_t){0};
    atomic_signal_fence(memory_order_seq_cst);
    thread->busy = false;
}

static void control_find(void)
{
    trace_control_t *control = trace_control_open(folder);
    // relaxed: a thread that does not see it yet records on.
    if (control) atomic_store_explicit(&trace_control_, control, memory_order_relaxed);
}

static bool file_make(void)
{
    enum { TRIES = 100 }; // a tool may remove the folder of other processes just then
    int error = ENOENT;
    for (int i = 0; i < TRIES && error == ENOENT; i++) {
        bool made = (makes_folder || i) && (mkdir(folder, 0777) == 0 || errno == EEXIST);
        if (made) control_find();
        error = trace_file_create(&file, folder, trace_clock_);
    }
    if (error) {
        atomic_store(&trace_on_, false);
        log_say(KEEL_LOG_WARNING, "no trace is written: %s: %s", folder, strerror(error));
        return false;
    }
    memcpy(file.header->rank, rank, sizeof rank);
    file.header->names_pid = names.pid;
    file.header->names_number = names.number;
    trace_file_publish(&file);
    return true;
}

// True once there is a file. Threads that come while another one makes it wait for that.
static bool file_ready(void)
{
    uint32_t now = ABSENT;
    // acq_rel: pairs with the release below, for the file.
    if (atomic_compare_exchange_strong(&state, &now, MAKING)) {
        now = file_make() ? PRESENT : REFUSED;
        atomic_store_explicit(&state, now, memory_order_release);
    }
    while (now == MAKING) {
        sched_yield();
        now = atomic_load_explicit(&state, memory_order_acquire);
    }
    return now == PRESENT;
}

static uint64_t clock_real(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

// Reads the clocks together: of some tries that which took least.
static void clocks_fill(trace_record_t *record)
{
    enum { TRIES = 4 };
    bool ticks = trace_clock_ == TRACE_CLOCK_TICKS;
    record->id = ticks ? clock_ticks_of_ns(1000000000) : 1000000000;
    for (int i = 0; i < TRIES; i++) {
        uint64_t before = trace_now(), now = keel_now_ns(), boot = system_boot_ns();
        uint64_t real = clock_real(), took = trace_now() - before;
        if (i && took >= record->end) continue;
        record->start = before + took / 2;
        record->end = took;
        record->a[0] = now;
        record->a[1] = boot;
        record->a[2] = real;
    }
}

// The first records of a thread in a chunk.
static void room_begin(trace_thread_t *thread)
{
    trace_record_t *record = thread->room.next++;
    record->id = thread_number();
    thread_own_name(record->text);
    atomic_store_explicit(&record->kind, TRACE_THREAD, memory_order_release);
    record = thread->room.next++;
    clocks_fill(record);
    atomic_store_explicit(&record->kind, TRACE_CLOCKS, memory_order_release);
}

static bool room_find(trace_thread_t *thread)
{
    enum { LEAST = 3 }; // the first two, and one of the caller's
    if (!file_ready()) return false;
    do
        if (!trace_file_take(&file, &thread->room)) return false;
    while (thread->room.end - thread->room.next < LEAST); // too little is left to be of use
    pthread_setspecific(key, thread);
    room_begin(thread);
    return true;
}

trace_record_t *trace_lose(void)
{
    if (trace_has_file()) atomic_fetch_add_explicit(&file.header->lost, 1, memory_order_relaxed);
    return NULL;
}

void trace_lose_many(uint64_t count)
{
    if (trace_is_on() && file_ready())
        atomic_fetch_add_explicit(&file.header->lost, count, memory_order_relaxed);
}

trace_record_t *trace_take_more(void)
{
    trace_thread_t *thread = &trace_thread_;
    if (room_find(thread)) return thread->room.next++;
    thread->room = (trace_room_t){0};
    thread->busy = false;
    return trace_lose();
}

// The child of a fork writes a file of its own. The parent's stays mapped here: a handler may have
// forked while the thread wrote a record.
static void trace_child(void)
{
    if (atomic_load(&state) == PRESENT) {
        names.pid = file.header->pid;
        names.number = file.header->number;
        trace_file_leave(&file);
    }
    trace_thread_ = (trace_thread_t){0};
    file = (trace_file_t){.fd = -1};
    atomic_store(&state, ABSENT);
}

static void enable(const char *path, bool later)
{
    size_t length = strlen(path);
    if (length >= sizeof folder) {
        log_say(KEEL_LOG_WARNING, "no trace is written: the name of the folder has %zu bytes",
                length);
        return;
    }
    if (pthread_key_create(&key, thread_end)) return;
    memcpy(folder, path, length + 1);
    makes_folder = later;
    if (!later) control_find();
    trace_clock_ = system_ticks_are_steady() ? TRACE_CLOCK_TICKS : TRACE_CLOCK_MONOTONIC;
    pthread_atfork(NULL, NULL, trace_child);
    atomic_store(&trace_on_, true);
}

void trace_enable(const char *path)
{
    enable(path, false);
}

void trace_enable_later(const char *path)
{
    enable(path, true);
}

bool trace_has_file(void)
{
    // acquire: pairs with file_ready.
    return atomic_load_explicit(&state, memory_order_acquire) == PRESENT;
}

void trace_finish(void)
{
    if (!trace_has_file()) return;
    trace_record_t *record = trace_take_always();
    if (record) {
        clocks_fill(record);
        trace_put(record, TRACE_CLOCKS);
    }
    atomic_store_explicit(&file.header->ended, 1, memory_order_relaxed);
}

__attribute__((constructor)) static void trace_load(void)
{
    const char *path = system_variable("KEEL_TRACE");
    const char *variable = system_variable("KEEL_TRACE_RANK");
    const char *value = variable ? getenv(variable) : NULL;
    if (value) snprintf(rank, sizeof rank, "%s", value);
    if (path && *path) trace_enable(path);
}

__attribute__((destructor)) static void trace_unload(void)
{
    trace_finish();
}
