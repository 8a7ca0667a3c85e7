// SPDX-License-Identifier: Apache-2.0
#include "tools/cc/compiler.h"

#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tools/cc/interrupt.h"

extern char **environ;

enum { CLANG_OLDEST = 18, CLANG_NEWEST = 29 };

// Whether PATH, or a folder named in `name`, has the program.
static bool program_exists(const char *name)
{
    if (strchr(name, '/')) return access(name, X_OK) == 0;
    const char *path = getenv("PATH");
    while (path && *path) {
        char file[512];
        size_t length = strcspn(path, ":");
        snprintf(file, sizeof file, "%.*s/%s", (int)length, path, name);
        if (length && access(file, X_OK) == 0) return true;
        path += length + (path[length] == ':');
    }
    return false;
}

// Whether a program says that it is a clang, and one that is new enough.
static bool clang_suits(const char *program)
{
    char command[512], line[256] = "";
    if (strchr(program, '\'')) return false;
    snprintf(command, sizeof command, "'%s' --version 2>/dev/null", program);
    FILE *pipe = popen(command, "r");
    if (!pipe) return false;
    if (!fgets(line, sizeof line, pipe)) line[0] = 0;
    pclose(pipe);
    const char *version = strstr(line, "clang version ");
    return version && atoi(version + strlen("clang version ")) >= CLANG_OLDEST;
}

static bool clang_take(const char *wanted, char *found, size_t size)
{
    snprintf(found, size, "%s", wanted);
    if (!program_exists(wanted))
        fprintf(stderr, "keel cc: there is no program %s\n", wanted);
    else if (!clang_suits(wanted))
        fprintf(stderr, "keel cc: %s is no clang of version %d or later\n", wanted, CLANG_OLDEST);
    else
        return true;
    return false;
}

static bool clang_find(char *found, size_t size)
{
    for (int version = CLANG_NEWEST; version >= CLANG_OLDEST; version--) {
        snprintf(found, size, "clang-%d", version);
        if (program_exists(found)) return true;
    }
    snprintf(found, size, "clang");
    if (program_exists(found) && clang_suits(found)) return true;
    found[0] = 0;
    return false;
}

bool compilers_find(const char *clang, const char *host, const target_list_t *targets,
                    compilers_t *compilers)
{
    *compilers = (compilers_t){0};
    if (clang && !clang_take(clang, compilers->clang, sizeof compilers->clang)) return false;
    bool found = clang || clang_find(compilers->clang, sizeof compilers->clang);
    const char *cc = host ? host : "cc";
    if ((host || !found) && program_exists(cc))
        snprintf(compilers->host, sizeof compilers->host, "%s", cc);
    if (host && !compilers->host[0]) {
        fprintf(stderr, "keel cc: there is no program %s\n", host);
        return false;
    }
    const char *slash = strrchr(compilers->host, '/');
    compilers->host_is_clang = strstr(slash ? slash : compilers->host, "clang");
    for (int i = 0; i < targets->count; i++) {
        const target_t *target = &targets->items[i];
        bool at_home = target->family == TARGET_HOST && !target->foreign;
        if (found || target->family == TARGET_GIVEN || (at_home && compilers->host[0])) continue;
        fprintf(stderr,
                "keel cc: the target %s needs clang %d or later, with lld for gfx targets%s, and "
                "none is on PATH: install clang-19 and lld-19, or name one by --clang=PROGRAM\n",
                target->text, CLANG_OLDEST, at_home ? ", or another C compiler" : "");
        return false;
    }
    return true;
}

void arguments_add(arguments_t *arguments, const char *text)
{
    if (arguments->count < ARGUMENTS_MAX) arguments->items[arguments->count++] = text;
}

static int program_start(const job_t *job, const posix_spawn_file_actions_t *actions,
                         const sigset_t *mask, pid_t *pid)
{
    posix_spawnattr_t attributes;
    int error = posix_spawnattr_init(&attributes);
    if (error) return error;
    posix_spawnattr_setsigmask(&attributes, mask);
    error = posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
    if (!error) // posix_spawnp takes texts that it does not change as char *
        error = posix_spawnp(pid, job->arguments.items[0], actions, &attributes,
                             (char *const *)(uintptr_t)job->arguments.items, environ);
    posix_spawnattr_destroy(&attributes);
    return error;
}

static void job_start(job_t *job, const sigset_t *mask)
{
    posix_spawn_file_actions_t actions;
    job->result = 127;
    if (posix_spawn_file_actions_init(&actions)) return;
    pid_t pid;
    int error =
        posix_spawn_file_actions_addopen(&actions, 2, job->log, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (!error) error = posix_spawn_file_actions_adddup2(&actions, 2, 1);
    if (!error) error = program_start(job, &actions, mask, &pid);
    posix_spawn_file_actions_destroy(&actions);
    if (error)
        fprintf(stderr, "keel cc: cannot run %s: %s\n", job->arguments.items[0], strerror(error));
    else
        job->pid = (int)pid;
}

static void jobs_stop(const job_t *jobs, int count)
{
    for (int i = 0; i < count; i++)
        if (jobs[i].pid) kill(jobs[i].pid, SIGTERM);
}

// Until one has ended.
static void job_wait(job_t *jobs, int count, const sigset_t *mask)
{
    int status;
    pid_t pid;
    while ((pid = waitpid(-1, &status, WNOHANG)) == 0) {
        interrupt_wait(mask);
        if (interrupt_came()) jobs_stop(jobs, count);
    }
    for (int i = 0; i < count; i++) {
        if (jobs[i].pid != pid || pid <= 0) continue;
        jobs[i].pid = 0;
        jobs[i].result = WIFEXITED(status) ? WEXITSTATUS(status) : 1;
    }
}

void jobs_run(job_t *jobs, int count)
{
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    int at_once = processors < 1 ? 1 : (int)processors, running = 0, next = 0;
    sigset_t mask;
    interrupt_hold(&mask);
    while ((next < count && !interrupt_came()) || running) {
        if (next < count && running < at_once && !interrupt_came()) {
            if (jobs[next].arguments.count) job_start(&jobs[next], &mask);
            if (jobs[next++].pid) running++;
            continue;
        }
        job_wait(jobs, count, &mask);
        running--;
    }
    sigprocmask(SIG_SETMASK, &mask, NULL);
}
