// SPDX-License-Identifier: Apache-2.0
// Threads, children and gates.
#include "suite/own.h"
#include "suite/run.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#if defined(__linux__)
#include <sys/prctl.h>
#endif
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

struct thread_t {
    pthread_t id;
    atomic_int number; // the system's; 0: it has not begun
    bool joined;
    void (*fn)(void *user);
    void *user;
};

static void *thread_main(void *argument)
{
    thread_t *thread = argument;
    jmp_buf point;
    run_exit = &point;
    atomic_store(&thread->number, (int)syscall(SYS_gettid));
    if (!setjmp(point)) thread->fn(thread->user);
    run_exit = NULL;
    return NULL;
}

thread_t *thread_start(void (*fn)(void *user), void *user)
{
    thread_t *thread = scratch(sizeof *thread);
    thread->fn = fn;
    thread->user = user;
    CHECK(pthread_create(&thread->id, NULL, thread_main, thread) == 0);
    own(OWNED_THREAD, thread);
    return thread;
}

void thread_finish(thread_t *thread)
{
    if (!thread->joined) pthread_join(thread->id, NULL);
    thread->joined = true;
}

void thread_join(thread_t *thread)
{
    thread_finish(thread);
    if (run_outcome_now() != OUTCOME_PASSED) run_leave();
}

static bool is_asleep(int number)
{
    char path[64], text[256] = "";
    if (access("/proc/self/stat", R_OK) != 0) return true;
    snprintf(path, sizeof path, "/proc/self/task/%d/stat", number);
    FILE *file = fopen(path, "r");
    if (!file) return number; // it has ended
    size_t size = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    text[size] = 0;
    const char *rest = strrchr(text, ')'); // behind its name
    return !rest || strchr("SZX", rest[2]);
}

static void await_sleep(const atomic_int *number)
{
    uint64_t start = keel_now_ns();
    while (!is_asleep(atomic_load(number))) {
        if (keel_now_ns() - start > patience()) check_failed(HERE, "the thread does not sleep");
        sleep_ms(1);
    }
}

void thread_asleep(thread_t *thread)
{
    await_sleep(&thread->number);
}

void test_asleep(void)
{
    atomic_int first = getpid(); // a process's first thread has its number
    await_sleep(&first);
}

// Has the system kill the calling process when the other one ends.
static void die_with(pid_t parent)
{
#if defined(__linux__)
    prctl(PR_SET_PDEATHSIG, SIGKILL);
#endif
    if (getppid() != parent) _exit(0); // it has
}

void in_child(void (*fn)(void *user), void *user)
{
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        jmp_buf point;
        run_exit = &point;
        if (!setjmp(point)) fn(user);
        _exit(0); // how it ended lies in memory shared with the parent
    }
    int status = -1;
    CHECK(waitpid(pid, &status, 0) == pid);
    if (run_outcome_now() != OUTCOME_PASSED) run_leave();
    CHECK_EQ(status, 0);
}

struct child_t {
    pid_t pid; // 0: it has ended
};

child_t *child_start(void (*fn)(void *user), void *user)
{
    child_t *child = scratch(sizeof *child);
    pid_t parent = getpid();
    child->pid = fork();
    CHECK(child->pid >= 0);
    if (child->pid) {
        own(OWNED_CHILD, child);
        return child;
    }
    jmp_buf point;
    run_exit = &point;
    starve_stop();
    die_with(parent);
    if (!setjmp(point)) fn(user);
    _exit(0); // how it ended lies in memory shared with the parent
}

void child_finish(child_t *child)
{
    if (!child->pid) return;
    kill(child->pid, SIGKILL);
    waitpid(child->pid, NULL, 0);
    child->pid = 0;
}

void child_join(child_t *child)
{
    int status = -1;
    CHECK(waitpid(child->pid, &status, 0) == child->pid);
    child->pid = 0;
    if (run_outcome_now() != OUTCOME_PASSED) run_leave();
    CHECK_EQ(status, 0);
}

void child_kill(child_t *child)
{
    child_finish(child);
    if (run_outcome_now() != OUTCOME_PASSED) run_leave();
}

struct gate_t {
    pthread_mutex_t lock;
    pthread_cond_t opened;
    bool open;
};

gate_t *new_gate(void)
{
    gate_t *gate = scratch(sizeof *gate);
    pthread_mutex_init(&gate->lock, NULL);
    pthread_cond_init(&gate->opened, NULL);
    own(OWNED_GATE, gate);
    return gate;
}

void gate_open(gate_t *gate)
{
    pthread_mutex_lock(&gate->lock);
    gate->open = true;
    pthread_cond_broadcast(&gate->opened);
    pthread_mutex_unlock(&gate->lock);
}

bool gate_is_open(gate_t *gate)
{
    pthread_mutex_lock(&gate->lock);
    bool open = gate->open;
    pthread_mutex_unlock(&gate->lock);
    return open;
}

void gate_wait(gate_t *gate)
{
    pthread_mutex_lock(&gate->lock);
    while (!gate->open) pthread_cond_wait(&gate->opened, &gate->lock);
    pthread_mutex_unlock(&gate->lock);
}

bool gate_wait_ms(gate_t *gate, unsigned ms)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += ms / 1000;
    until.tv_nsec += (long)(ms % 1000) * 1000000;
    if (until.tv_nsec >= 1000000000) {
        until.tv_sec++;
        until.tv_nsec -= 1000000000;
    }
    pthread_mutex_lock(&gate->lock);
    while (!gate->open && pthread_cond_timedwait(&gate->opened, &gate->lock, &until) == 0) {
    }
    bool open = gate->open;
    pthread_mutex_unlock(&gate->lock);
    return open;
}

void gate_finish(gate_t *gate)
{
    pthread_cond_destroy(&gate->opened);
    pthread_mutex_destroy(&gate->lock);
}

static keel_status_t hold_call(void *user, keel_host_call_t *call)
{
    hold_t *hold = user;
    gate_open(hold->entered);
    gate_wait(hold->gate);
    return NULL;
}

hold_t *new_hold(void)
{
    hold_t *hold = scratch(sizeof *hold);
    hold->entered = new_gate();
    hold->gate = new_gate();
    return hold;
}

keel_op_t op_hold(hold_t *hold)
{
    return keel_op_host_call(hold_call, hold);
}

// What is waited for will not come: time is up, or another thread has left the test.
static bool is_hopeless(uint64_t start)
{
    return keel_now_ns() - start > patience() || run_outcome_now() != OUTCOME_PASSED;
}

void hold_entered(hold_t *hold, keel_point_t done)
{
    uint64_t start = keel_now_ns();
    while (!gate_wait_ms(hold->entered, 2)) {
        if (ended(done) && !gate_is_open(hold->entered)) {
            reach(done);
            check_failed(HERE, "the submission ended without its host call");
        }
        if (is_hopeless(start)) check_failed(HERE, "the host call never came");
    }
}

void come_to_(const char *file, int line, atomic_int *counter, int value)
{
    uint64_t start = keel_now_ns();
    while (atomic_load(counter) != value && !is_hopeless(start)) sleep_ms(1);
    if (atomic_load(counter) != value)
        check_failed(file, line, "counted %d, and not %d", atomic_load(counter), value);
}

void sleep_ms(unsigned ms)
{
    struct timespec time = {ms / 1000, (long)(ms % 1000) * 1000000};
    nanosleep(&time, NULL);
}
