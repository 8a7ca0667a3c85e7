// SPDX-License-Identifier: Apache-2.0
#include "suite/process.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

typedef struct slot_t {
    pid_t pid; // 0: free
    job_t job;
    uint64_t start_ns, deadline_ns;
    bool killed;
    result_t *result; // shared with the process
    FILE *output;
} slot_t;

typedef struct pool_t {
    const settings_t *settings;
    const job_source_t *source;
    slot_t *slots;
    unsigned count, busy;
    bool exhausted;
} pool_t;

static int wake[2]; // written to by the signal handler
static volatile sig_atomic_t stopping;

static void on_signal(int number)
{
    int saved = errno;
    if (number != SIGCHLD) stopping = number;
    (void)!write(wake[1], "", 1);
    errno = saved;
}

static void catch_signals(void)
{
    if (pipe(wake)) abort();
    for (int i = 0; i < 2; i++) {
        fcntl(wake[i], F_SETFL, O_NONBLOCK);
        fcntl(wake[i], F_SETFD, FD_CLOEXEC);
    }
    struct sigaction action = {.sa_handler = on_signal};
    sigaction(SIGCHLD, &action, NULL);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

static void release_signals(void)
{
    struct sigaction action = {.sa_handler = SIG_DFL};
    sigaction(SIGCHLD, &action, NULL);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    close(wake[0]);
    close(wake[1]);
}

static void child_main(const pool_t *pool, slot_t *slot)
{
    setpgid(0, 0);
    release_signals();
    dup2(fileno(slot->output), STDOUT_FILENO);
    dup2(fileno(slot->output), STDERR_FILENO);
    setvbuf(stdout, NULL, _IOLBF, 0);
    run_job(pool->settings, &slot->job, slot->result);
    // Not exit: what was left is known, and a sanitizer would look for it again, for seconds.
    fflush(NULL);
    _exit(slot->result->outcome == OUTCOME_FAILED);
}

static void slot_start(pool_t *pool, slot_t *slot)
{
    *slot->result = (result_t){0};
    slot->killed = false;
    rewind(slot->output);
    if (ftruncate(fileno(slot->output), 0)) abort();
    limits_adapt();
    slot->start_ns = keel_now_ns();
    slot->deadline_ns = slot->start_ns + (uint64_t)(limit_of(pool->settings, slot->job.test) * 1e9);
    fflush(NULL);
    slot->pid = fork();
    if (slot->pid == 0) child_main(pool, slot);
    if (slot->pid < 0) {
        fprintf(stderr, "keel conformance: fork: %s\n", strerror(errno));
        exit(2);
    }
    setpgid(slot->pid, slot->pid); // the child does the same; the first of the two counts
    pool->busy++;
}

// What the process could not say itself, because it was killed or ended in the middle.
static void slot_judge(slot_t *slot, int status)
{
    result_t *result = slot->result;
    if (slot->killed) {
        result->outcome = OUTCOME_TIMED_OUT;
        snprintf(result->reason, sizeof result->reason, "timed out");
    } else if (WIFSIGNALED(status)) {
        result->outcome = OUTCOME_CRASHED;
        snprintf(result->reason, sizeof result->reason, "killed by signal %d (%s)",
                 WTERMSIG(status), strsignal(WTERMSIG(status)));
    } else if (!result->finished || (WEXITSTATUS(status) && result->outcome != OUTCOME_FAILED)) {
        result->outcome = OUTCOME_CRASHED;
        snprintf(result->reason, sizeof result->reason, "the process ended with status %d",
                 WEXITSTATUS(status));
    }
}

static void slot_end(pool_t *pool, slot_t *slot, int status)
{
    kill(-slot->pid, SIGKILL); // what it may have left behind
    slot->pid = 0;
    pool->busy--;
    slot_judge(slot, status);
    if (!slot->result->seconds) {
        slot->result->seconds = (double)(keel_now_ns() - slot->start_ns) / 1e9;
    }
    rewind(slot->output);
    pool->source->done(pool->source->user, &slot->job, slot->result, slot->output);
}

static void reap(pool_t *pool)
{
    for (unsigned i = 0; i < pool->count; i++) {
        slot_t *slot = &pool->slots[i];
        int status;
        if (!slot->pid) continue;
        if (waitpid(slot->pid, &status, WNOHANG) == slot->pid) {
            slot_end(pool, slot, status);
        } else if (keel_now_ns() >= slot->deadline_ns && !slot->killed) {
            slot->killed = true;
            kill(-slot->pid, SIGKILL);
        }
    }
}

// Until a process ends or the next deadline comes.
static void sleep_until_event(const pool_t *pool)
{
    uint64_t now = keel_now_ns(), next = now + 1000000000u;
    for (unsigned i = 0; i < pool->count; i++) {
        const slot_t *slot = &pool->slots[i];
        if (slot->pid && !slot->killed && slot->deadline_ns < next) next = slot->deadline_ns;
    }
    struct pollfd fd = {.fd = wake[0], .events = POLLIN};
    poll(&fd, 1, next > now ? (int)((next - now) / 1000000) + 1 : 0);
    char bytes[64];
    while (read(wake[0], bytes, sizeof bytes) > 0) {
    }
}

static slot_t *free_slot(pool_t *pool)
{
    for (unsigned i = 0; i < pool->count; i++) {
        if (!pool->slots[i].pid) return &pool->slots[i];
    }
    return NULL;
}

// A test that wants to be alone is started when all others have ended, and nothing beside it.
static void start_jobs(pool_t *pool, job_t *held, bool *holding)
{
    static const slot_t *lonely;
    if (lonely && lonely->pid) return;
    lonely = NULL;
    for (slot_t *slot; !pool->exhausted && (slot = free_slot(pool));) {
        if (!*holding) {
            pool->exhausted = !pool->source->next(pool->source->user, held);
            *holding = !pool->exhausted;
        }
        if (!*holding) return;
        bool alone = held->test && held->test->alone;
        if (alone && pool->busy) return;
        slot->job = *held;
        *holding = false;
        slot_start(pool, slot);
        if (alone) {
            lonely = slot;
            return;
        }
    }
}

static void pool_init(pool_t *pool)
{
    pool->slots = calloc(pool->count, sizeof *pool->slots);
    if (!pool->slots) abort();
    for (unsigned i = 0; i < pool->count; i++) {
        slot_t *slot = &pool->slots[i];
        slot->result = mmap(NULL, sizeof *slot->result, PROT_READ | PROT_WRITE,
                            MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        slot->output = tmpfile();
        if (slot->result == MAP_FAILED || !slot->output) abort();
        fcntl(fileno(slot->output), F_SETFD, FD_CLOEXEC);
    }
}

static void pool_finish(pool_t *pool)
{
    for (unsigned i = 0; i < pool->count; i++) {
        slot_t *slot = &pool->slots[i];
        if (slot->pid) {
            kill(-slot->pid, SIGKILL);
            waitpid(slot->pid, NULL, 0);
        }
        munmap(slot->result, sizeof *slot->result);
        fclose(slot->output);
    }
    free(pool->slots);
}

// All jobs in this process: a tool takes seconds to begin with one. So does a vendor with a device,
// of which one is kept. A test that crashes, or does not end, is the end of all; its name has been
// said.
static bool run_together(const settings_t *settings, const job_source_t *source)
{
    pool_t pool = {.count = 1};
    keel_device_t *kept = NULL;
    char name[128];
    pool_init(&pool);
    slot_t *slot = pool.slots; // its output stays empty: what tests print is told at once
    starve_install(0);
    keel_status_release(keel_device_open(settings->uri, NULL, &kept)); // the test will say it again
    while (source->next(source->user, &slot->job)) {
        const test_t *test = slot->job.test;
        if (test) fprintf(stderr, "%s\n", test_name(test, name, sizeof name));
        *slot->result = (result_t){0};
        limits_adapt();
        alarm((unsigned)limit_of(settings, test) + 1);
        run_job(settings, &slot->job, slot->result);
        alarm(0);
        source->done(source->user, &slot->job, slot->result, slot->output);
    }
    keel_device_release(kept);
    pool_finish(&pool);
    return true;
}

bool process_run(const settings_t *settings, const job_source_t *source)
{
    if (settings->under_tool) return run_together(settings, source);
    pool_t pool = {.settings = settings, .source = source, .count = settings->parallel};
    job_t held;
    bool holding = false;
    pool_init(&pool);
    catch_signals();
    for (;;) {
        start_jobs(&pool, &held, &holding);
        if (stopping || (!pool.busy && !holding)) break;
        sleep_until_event(&pool);
        reap(&pool);
    }
    pool_finish(&pool);
    release_signals();
    return !stopping;
}
