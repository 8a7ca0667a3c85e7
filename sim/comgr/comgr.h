// SPDX-License-Identifier: Apache-2.0
// What the cache uses of libamd_comgr, AMD's compiler as a library. A handle is a struct of 64
// bits; functions take it as they take a number of 64 bits.
#ifndef SIM_COMGR_COMGR_H_
#define SIM_COMGR_COMGR_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    COMGR_COMPILE = 2, // source to bitcode
    COMGR_LINK_BITCODE = 4,
    COMGR_GENERATE = 6,          // bitcode to an object
    COMGR_LINK = 9,              // objects to a code object
    COMGR_COMPILE_AND_LINK = 15, // source and device libraries to bitcode
    COMGR_KINDS = 0x20,          // of data: more than there are
};

// The machine's own library.
typedef struct {
    void (*get_version)(size_t *major, size_t *minor);
    int (*do_action)(int kind, uint64_t info, uint64_t input, uint64_t result);
    int (*get_isa_name)(uint64_t info, size_t *size, char *name);
    int (*get_language)(uint64_t info, int *language);
    int (*get_logging)(uint64_t info, bool *logging);
    int (*get_option_count)(uint64_t info, size_t *count);
    int (*get_option)(uint64_t info, size_t index, size_t *size, char *option);
    int (*count)(uint64_t set, int kind, size_t *count);
    int (*at)(uint64_t set, int kind, size_t index, uint64_t *data);
    int (*get_data)(uint64_t data, size_t *size, char *bytes);
    int (*get_name)(uint64_t data, size_t *size, char *name);
    int (*create)(int kind, uint64_t *data);
    int (*set_data)(uint64_t data, size_t size, const char *bytes);
    int (*set_name)(uint64_t data, const char *name);
    int (*add)(uint64_t set, uint64_t data);
    int (*release)(uint64_t data);
    int (*set_directory)(uint64_t info, const char *path);
} comgr_t;

// Does the action, or finds what it gave when it was last done. Any thread.
int cache_action(const comgr_t *comgr, int kind, uint64_t info, uint64_t input, uint64_t result);

#endif
