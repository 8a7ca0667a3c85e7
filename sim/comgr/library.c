// SPDX-License-Identifier: Apache-2.0
// A libamd_comgr that forwards to the machine's own, and keeps what that has compiled.
// comgr/names.def is made with the build: NAME(function) of that library's (CMakeLists.txt).
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "comgr/comgr.h"

#define EXPORT __attribute__((visibility("default")))

// Any function: all parameters are words, six of them at most.
typedef uintptr_t any_fn(uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t);

enum {
#define NAME(name) NUMBER_##name,
#include <comgr/names.def>
#undef NAME
    COUNT,
};

static any_fn *reals[COUNT];
static comgr_t own;

// By its path: by its name the loader finds this library.
static void *library_open(void)
{
    void *library = dlopen(COMGR_PATH, RTLD_NOW | RTLD_LOCAL);
    if (library) return library;
    fprintf(stderr, "keel sim: --cache: %s\n", dlerror());
    abort();
}

static void reals_find(void)
{
    void *library = library_open();
    const char *const names[] = {
#define NAME(name) #name,
#include <comgr/names.def>
#undef NAME
    };
    const struct {
        const char *name;
        void *place;
    } used[] = {
        {"amd_comgr_get_version", &own.get_version},
        {"amd_comgr_do_action", &own.do_action},
        {"amd_comgr_action_info_get_isa_name", &own.get_isa_name},
        {"amd_comgr_action_info_get_language", &own.get_language},
        {"amd_comgr_action_info_get_logging", &own.get_logging},
        {"amd_comgr_action_info_get_option_list_count", &own.get_option_count},
        {"amd_comgr_action_info_get_option_list_item", &own.get_option},
        {"amd_comgr_action_data_count", &own.count},
        {"amd_comgr_action_data_get_data", &own.at},
        {"amd_comgr_get_data", &own.get_data},
        {"amd_comgr_get_data_name", &own.get_name},
        {"amd_comgr_create_data", &own.create},
        {"amd_comgr_set_data", &own.set_data},
        {"amd_comgr_set_data_name", &own.set_name},
        {"amd_comgr_data_set_add", &own.add},
        {"amd_comgr_release_data", &own.release},
        {"amd_comgr_action_info_set_working_directory_path", &own.set_directory},
    };
    for (size_t i = 0; i < COUNT; i++) {
        void *found = dlsym(library, names[i]);
        memcpy(&reals[i], &found, sizeof found);
    }
    for (size_t i = 0; i < sizeof used / sizeof *used; i++) {
        void *found = dlsym(library, used[i].name);
        if (!found) abort();
        memcpy(used[i].place, &found, sizeof found);
    }
}

static void reals_need(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, reals_find);
}

static any_fn *real_of(int number)
{
    reals_need();
    return reals[number];
}

// One that the machine's library lacks fails with AMD_COMGR_STATUS_ERROR.
#define NAME(name)                                                                                 \
    EXPORT any_fn name;                                                                            \
    uintptr_t name(uintptr_t a, uintptr_t b, uintptr_t c, uintptr_t d, uintptr_t e, uintptr_t f)   \
    {                                                                                              \
        any_fn *real = real_of(NUMBER_##name);                                                     \
        return real ? real(a, b, c, d, e, f) : 1;                                                  \
    }
#include <comgr/names.def>
#undef NAME

// A program that names folders to compile in may have files there, of which the cache knows
// nothing, and the library cannot be asked which folder an action has: it ends if there is none.
static atomic_bool has_folders;

EXPORT int amd_comgr_action_info_set_working_directory_path(uint64_t info, const char *path);
int amd_comgr_action_info_set_working_directory_path(uint64_t info, const char *path)
{
    reals_need();
    if (path && *path) atomic_store(&has_folders, true);
    return own.set_directory(info, path);
}

EXPORT int amd_comgr_do_action(int kind, uint64_t info, uint64_t input, uint64_t result);
int amd_comgr_do_action(int kind, uint64_t info, uint64_t input, uint64_t result)
{
    reals_need();
    if (atomic_load(&has_folders)) return own.do_action(kind, info, input, result);
    return cache_action(&own, kind, info, input, result);
}
