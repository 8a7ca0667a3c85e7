// SPDX-License-Identifier: Apache-2.0
// forked LIBRARY: a fork while a thread of the library's holds its lock leaves the child no lock
// that is never given back. The runtime is played: it forks when it is asked, under that lock, for
// the value of a signal.
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "played.h"

enum { PATIENCE_S = 20 };

static _Thread_local bool forks; // at the next question
static int status = -1;          // of the child

// The child does what destructors of HIP do.
static int64_t load(hsa_signal_t signal)
{
    pid_t pid = forks ? fork() : -1;
    forks = false;
    if (pid == 0) {
        alarm(PATIENCE_S);
        hsa_fn destroy = played_core.slots[PLAYED_SIGNAL_DESTROY];
        _exit(((hsa_status_t(*)(hsa_signal_t))destroy)(signal) != 0);
    }
    if (pid > 0) waitpid(pid, &status, 0);
    return 1; // it is never complete
}

static hsa_status_t copy(hsa_signal_t signal)
{
    char from = 0, to = 0;
    return ((hsa_status_t(*) HSA_COPY)played_amd.slots[PLAYED_COPY])(&to, 1, &from, 2, 1, 0, NULL,
                                                                     signal);
}

int main(int argc, char **argv)
{
    played_begin();
    played_core.slots[PLAYED_SIGNAL_LOAD] = (hsa_fn)load;
    if (argc != 2 || !played_open(argv[1])) return 1;
    bool good = copy(11) == 0;
    forks = true;
    good &= copy(12) == 0 && !forks;
    if (status != 0) fprintf(stderr, "the child ended with status %x\n", (unsigned)status);
    played_exit(good && status == 0); // the signals are never complete
}
