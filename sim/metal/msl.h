// SPDX-License-Identifier: Apache-2.0
// A text of MSL, compiled for the host's processor.
#ifndef SIM_METAL_MSL_H_
#define SIM_METAL_MSL_H_

#include "metal/thread.h"

#include <pthread.h>

typedef struct entry_t {
    char name[128];
    kernel_fn run;
    uint32_t buffers, groups;   // bits of the indices that it takes
    uint8_t arguments[BUFFERS]; // pointers of an argument buffer at that index; 0: it is none
    uint8_t aligned[BUFFERS];   // what an offset must be a multiple of; 0: it is not known
    uint32_t constants;         // bits of the indices in `constant` memory
    unsigned threads;           // that a group may have
    unsigned long group_bytes;  // of threadgroup variables
    struct entry_t *next;
} entry_t;

typedef struct code_t {
    void *handle; // of the shared object
    entry_t *entries;
    pthread_mutex_t lock; // held while a grid runs: threadgroup variables exist once
} code_t;

// NULL if it does not compile. `*log` is what the compiler said, or NULL; the caller frees it.
code_t *msl_compile(const char *source, bool fast, char **log);
void msl_free(code_t *code); // NULL is fine

#endif
