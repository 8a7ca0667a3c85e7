// SPDX-License-Identifier: Apache-2.0
// The compilers of this machine, and running them.
#ifndef TOOLS_CC_COMPILER_H_
#define TOOLS_CC_COMPILER_H_

#include "tools/cc/target.h"

typedef struct compilers_t {
    char clang[256]; // for GPUs and hosts; "": there is none
    char host[256];  // for this host; "": clang does it
    bool host_is_clang;
} compilers_t;

// Finds what the targets need: a clang of version 18 or later, or, for this host alone, cc. `clang`
// and `host` are what the user wants, or NULL. Prints what is missing and returns false.
bool compilers_find(const char *clang, const char *host, const target_list_t *targets,
                    compilers_t *compilers);

enum { MADE_FOLDER = 512, MADE_PATH = MADE_FOLDER + 32 }; // of names of temporary files

// Arguments of a program, which borrow their texts.
enum { ARGUMENTS_MAX = 512 };

typedef struct arguments_t {
    const char *items[ARGUMENTS_MAX + 1]; // ends with NULL
    int count;
} arguments_t;

void arguments_add(arguments_t *arguments, const char *text);

// One compilation. Those given to jobs_run together run at the same time; one without arguments has
// been done before.
typedef struct job_t {
    arguments_t arguments;
    char log[MADE_PATH]; // a file that takes what the program prints
    int pid;             // 0: not started, or ended
    int result;          // exit status; 127: it could not be run
} job_t;

// Returns when all have ended; an interrupt stops them.
void jobs_run(job_t *jobs, int count);

#endif
