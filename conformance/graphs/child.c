// SPDX-License-Identifier: Apache-2.0
#include "graphs/child.h"
#include "graphs/check.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

page_t *page_create(void)
{
    page_t *page =
        mmap(NULL, sizeof *page, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED) abort();
    return page;
}

void page_destroy(page_t *page)
{
    munmap(page, sizeof *page);
}

static void page_complain(page_t *page, int state, const char *text)
{
    judgement_t *judgement = &page->judgement;
    memset(judgement, 0, sizeof *judgement);
    judgement->kinds = COMPLAINT_RUN;
    snprintf(judgement->complaints, sizeof judgement->complaints, "%s\n", text);
    atomic_store(&page->state, state);
}

// Leaves without cleaning up after threads that may hang.
static void child_leave(page_t *page, int state)
{
    atomic_store(&page->state, state);
    _exit(state == CHILD_DONE ? 0 : 1);
}

static void graph_once(env_t *env, const job_t *job, page_t *page)
{
    bool usable = run_graph(env, &page->graph, &job->run, &page->outcome);
    if (!graph_judge(&page->graph, &page->outcome, &page->judgement) || !usable)
        child_leave(page, CHILD_FAILED);
    atomic_fetch_add(&page->passed, 1);
}

static void graph_check_once(page_t *page)
{
    check_t check;
    char text[sizeof check.problem + 40];
    if (graph_check(&page->graph, &check)) return;
    snprintf(text, sizeof text, "this graph makes no sense: %s", check.problem);
    page_complain(page, CHILD_FAILED, text);
    _exit(1);
}

static void child_main(page_t *page, const job_t *job)
{
    env_t env;
    device_traits_t traits[MAX_DEVICES];
    generate_options_t options = job->generate;
    keel_status_t status = env_open(&env, job->uris, job->uri_count);
    if (status) {
        char text[500];
        keel_status_format(status, text, sizeof text);
        page_complain(page, CHILD_BROKEN, text);
        _exit(1);
    }
    env_traits(&env, traits);
    options.devices = traits;
    options.device_count = env.count;
    for (uint64_t i = 0; i < job->count; i++) {
        if (!job->repeat) graph_generate(&options, job->first_seed + i, &page->graph);
        if (!job->repeat || !i) graph_check_once(page);
        graph_once(&env, job, page);
    }
    env_close(&env);
    keel_live_t live;
    keel_live_objects(&live);
    if (live.devices || live.queues || live.semaphores || live.statuses) {
        page_complain(page, CHILD_FAILED, "objects are left after the devices were closed");
        _exit(1);
    }
    // Leaks are looked for, where a sanitizer does, once in a batch and not at each try.
    if (job->repeat) child_leave(page, CHILD_DONE);
    atomic_store(&page->state, CHILD_DONE);
    exit(0);
}

void child_end(pid_t child)
{
    int how;
    kill(child, SIGKILL);
    waitpid(child, &how, 0);
}

void child_watch(page_t *page, pid_t child, const job_t *job)
{
    struct timespec pause = {0, 2000000};
    uint64_t passed = 0, idle_ms = 0;
    int how;
    while (waitpid(child, &how, WNOHANG) == 0) {
        uint64_t now = atomic_load(&page->passed);
        idle_ms = now == passed ? idle_ms + 2 : 0;
        passed = now;
        nanosleep(&pause, NULL);
        if ((double)idle_ms < job->run.limit_s * 1000 + 10000) continue;
        child_end(child);
        page_complain(page, CHILD_FAILED, "hangs before or after the graph, or while closing");
        return;
    }
    int state = atomic_load(&page->state);
    bool told = state == CHILD_FAILED || state == CHILD_BROKEN;
    if (told || (WIFEXITED(how) && WEXITSTATUS(how) == 0)) return;
    char text[80];
    if (WIFSIGNALED(how))
        snprintf(text, sizeof text, "the process was killed: %s", strsignal(WTERMSIG(how)));
    else
        snprintf(text, sizeof text, "the process ended with status %d", WEXITSTATUS(how));
    page_complain(page, CHILD_FAILED, text);
}

pid_t child_fork(page_t *page, const job_t *job)
{
    atomic_store(&page->passed, 0);
    atomic_store(&page->state, CHILD_RUNNING);
    fflush(NULL);
    pid_t child = fork();
    if (child < 0) abort();
    if (child == 0) child_main(page, job);
    return child;
}

void child_run(page_t *page, const job_t *job)
{
    child_watch(page, child_fork(page, job), job);
}
