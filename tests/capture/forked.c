// SPDX-License-Identifier: Apache-2.0
// forked LIBRARY: a fork while a thread of the library's holds its lock leaves the child no lock
// that is never given back. The runtime is played: it forks when it is asked, under that lock, for
// the value of a signal.
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "capture/hsa/abi.h"

enum { SLOTS = 128, DESTROY = 38, LOAD = 40, COPY = 15, PATIENCE_S = 20 };

typedef struct made_t {
    hsa_version_t version;
    hsa_fn slots[SLOTS];
} made_t;
static made_t core, amd;
static _Thread_local bool forks; // at the next question
static int status = -1;          // of the child

static uint32_t nothing(void)
{
    return 0;
}

// The child does what destructors of HIP do.
static int64_t load(hsa_signal_t signal)
{
    pid_t pid = forks ? fork() : -1;
    forks = false;
    if (pid == 0) {
        alarm(PATIENCE_S);
        _exit(((hsa_status_t(*)(hsa_signal_t))core.slots[DESTROY])(signal) != 0);
    }
    if (pid > 0) waitpid(pid, &status, 0);
    return 1; // it is never complete
}

static hsa_status_t copy(hsa_signal_t signal)
{
    char from = 0, to = 0;
    return ((hsa_status_t(*) HSA_COPY)amd.slots[COPY])(&to, 1, &from, 2, 1, 0, NULL, signal);
}

int main(int argc, char **argv)
{
    char folder[] = "/tmp/capture-XXXXXX", line[256];
    if (argc != 2 || !mkdtemp(folder) || setenv("KEEL_TRACE", folder, 1) != 0) return 2;
    void *library = dlopen(argv[1], RTLD_NOW);
    bool (*on_load)(void *, uint64_t, uint64_t, const char *const *) =
        library
            ? (bool (*)(void *, uint64_t, uint64_t, const char *const *))dlsym(library, "OnLoad")
            : NULL;
    if (!on_load) {
        fprintf(stderr, "%s\n", dlerror());
        return 1;
    }
    hsa_tables_t all = {{3, sizeof all, 0, 0}, (hsa_table_t *)&core, (hsa_table_t *)&amd};
    core.version = (hsa_version_t){2, 16 + 8 * 125, 0, 0};
    amd.version = (hsa_version_t){2, 16 + 8 * 72, 0, 0};
    for (int i = 0; i < SLOTS; i++) core.slots[i] = amd.slots[i] = (hsa_fn)nothing;
    core.slots[LOAD] = (hsa_fn)load;
    if (!on_load(&all, 1, 0, NULL)) return 1;
    bool bad = copy(11) != 0;
    forks = true;
    bad |= copy(12) != 0 || forks;
    if (status != 0) fprintf(stderr, "the child ended with status %x\n", (unsigned)status);
    snprintf(line, sizeof line, "rm -r %s", folder);
    bad |= system(line) != 0;
    fflush(NULL);
    _exit(status != 0 || bad); // the signals are never complete
}
