// SPDX-License-Identifier: Apache-2.0
// Waiting until a thread of this process sleeps.
#ifndef TESTS_ASLEEP_H_
#define TESTS_ASLEEP_H_

#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

// The system's number of the calling thread; that of a process's first is getpid().
static inline int thread_number(void)
{
    return (int)syscall(SYS_gettid);
}

// Returns when the thread sleeps or has ended, or after 20 s.
static inline void asleep(int number)
{
    char path[64], text[256], now = 'R';
    snprintf(path, sizeof path, "/proc/self/task/%d/stat", number);
    for (int i = 0; i < 20000 && now == 'R'; i++) {
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
        FILE *file = fopen(path, "r");
        if (!file) return;
        text[fread(text, 1, sizeof text - 1, file)] = 0;
        fclose(file);
        const char *rest = strrchr(text, ')'); // behind its name
        now = rest ? rest[2] : 'S';
    }
}

#endif
