// SPDX-License-Identifier: Apache-2.0
// RTL_OUTPUT, by which scripts for rocm-trace-lite name the database of a process: %p in it is the
// number of the process. What is recorded goes into a folder beside it, and `keel trace finish`
// makes the database of that when the process ends.
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "base/memory.h"
#include "base/system.h"
#include "trace/trace.h"

extern char **environ;

static char file[3000];
static pid_t owner; // the process that makes the database; children of a fork leave it alone

// Puts the process's number for each %p. False: there is no room.
static bool path_expand(const char *from, char *into, size_t size)
{
    size_t at = 0;
    for (; *from && at + 16 < size; from++) {
        bool number = from[0] == '%' && from[1] == 'p';
        if (number)
            at += (size_t)snprintf(into + at, size - at, "%ld", (long)getpid());
        else
            into[at++] = *from;
        from += number;
    }
    into[at] = 0;
    return !*from;
}

// The program may go to another folder before it records.
static bool path_complete(const char *path)
{
    char folder[PATH_MAX] = "";
    if (path[0] != '/' && !getcwd(folder, sizeof folder)) return false;
    return (size_t)snprintf(file, sizeof file, "%s%s%s", folder, *folder ? "/" : "", path) <
           sizeof file;
}

__attribute__((constructor)) static void output_load(void)
{
    char path[2048], parts[sizeof file + 8];
    const char *wanted = system_variable("RTL_OUTPUT"), *own = system_variable("KEEL_TRACE");
    if ((own && *own) || !wanted || !*wanted) return;
    if (!path_expand(wanted, path, sizeof path) || !path_complete(path)) {
        log_say(KEEL_LOG_WARNING, "no trace is written: RTL_OUTPUT is too long");
        return;
    }
    owner = getpid();
    snprintf(parts, sizeof parts, "%s.parts", file);
    trace_enable_later(parts);
}

// Finds the tool, as seen from this library where it was built or installed.
static bool tool_find(char *path, size_t size)
{
    static const char *const places[] = {"keel", KEEL_FROM_LIBDIR "/keel"};
    Dl_info about;
    if (!dladdr(file, &about) || !about.dli_fname) return false;
    const char *slash = strrchr(about.dli_fname, '/');
    int length = slash ? (int)(slash - about.dli_fname) : 0;
    for (size_t i = 0; slash && i < sizeof places / sizeof *places; i++) {
        snprintf(path, size, "%.*s/%s", length, about.dli_fname, places[i]);
        if (access(path, X_OK) == 0) return true;
    }
    return false;
}

// The environment without what would have the tool traced as well; NULL: there is no memory.
static char **environment_make(void)
{
    static const char *const without[] = {"LD_PRELOAD=", "HSA_TOOLS_LIB=", "RTL_OUTPUT="};
    size_t count = 0, at = 0;
    while (environ[count]) count++;
    char **made = mem_zalloc((count + 1) * sizeof *made);
    for (size_t i = 0; made && i < count; i++) {
        bool kept = true;
        for (size_t k = 0; k < sizeof without / sizeof *without; k++)
            kept = kept && strncmp(environ[i], without[k], strlen(without[k])) != 0;
        if (kept) made[at++] = environ[i];
    }
    return made;
}

static int tool_run(void)
{
    char tool[PATH_MAX], first[] = "trace", second[] = "finish";
    char *words[] = {tool, first, second, file, NULL};
    if (!tool_find(tool, sizeof tool)) return ENOENT;
    char **environment = environment_make();
    if (!environment) return ENOMEM;
    pid_t pid;
    int status = 0, error = posix_spawn(&pid, tool, NULL, NULL, words, environment);
    mem_free(environment);
    if (error) return error;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) continue;
    return 0;
}

__attribute__((destructor)) static void output_unload(void)
{
    if (!owner || owner != getpid() || !trace_has_file()) return;
    trace_finish();
    int error = tool_run();
    if (error)
        log_say(KEEL_LOG_WARNING, "the trace stays in %s.parts: the command keel: %s", file,
                strerror(error));
}
