// SPDX-License-Identifier: Apache-2.0
// Libraries of runtimes in the process, and dlsym as the program had it: this library has its own.
#ifndef KEEL_SRC_CAPTURE_LIBRARY_H_
#define KEEL_SRC_CAPTURE_LIBRARY_H_

#include <stdbool.h>
#include <stdint.h>

extern void *(*dlsym_real)(void *handle, const char *name); // NULL before the first dlsym_find
void dlsym_find(void);

// What ours gives out for a function that must seem not to be there: NULL.
#define DLSYM_MISSING ((void *)(intptr_t)-1)

// The first library whose file's name begins so, which stays loaded from then on. False: there is
// none now. Any thread.
typedef struct library_t {
    void *handle;
    char path[4096];
} library_t;
bool library_find(const char *name, library_t *library);

// The library that a function is in, which stays loaded from then on; NULL: none. Any thread.
void *library_keep(void (*function)(void));

#endif
