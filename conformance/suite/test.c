// SPDX-License-Identifier: Apache-2.0
#include "suite/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static test_t *registered;
static size_t registered_count;

void test_register(test_t *test)
{
    test->next = registered;
    registered = test;
    registered_count++;
}

static int compare(const void *a, const void *b)
{
    const test_t *x = *(test_t *const *)a, *y = *(test_t *const *)b;
    int order = strcmp(x->file, y->file);
    return order ? order : (x->line > y->line) - (x->line < y->line);
}

test_t **test_all(size_t *count)
{
    static test_t **all;
    if (!all) {
        all = calloc(registered_count + 1, sizeof *all);
        if (!all) abort();
        size_t i = 0;
        for (test_t *test = registered; test; test = test->next) all[i++] = test;
        qsort(all, registered_count, sizeof *all, compare);
    }
    *count = registered_count;
    return all;
}

bool uri_has(const char *uri, const char *option)
{
    size_t length = strlen(option);
    bool any = length && option[length - 1] == '=';
    for (const char *at = strchr(uri, '?'); at; at = strchr(at, '&')) {
        at++;
        if (strncmp(at, option, length) != 0) continue;
        if (any || !at[length] || at[length] == '&') return true;
    }
    return false;
}

bool uri_library(const char *uri, char *path, size_t size)
{
    const char *option = strstr(uri, "lib=");
    if (!option) return false;
    option += strlen("lib=");
    size_t length = strcspn(option, "&");
    return (size_t)snprintf(path, size, "%.*s", (int)length, option) < size;
}

const char *test_name(const test_t *test, char *text, size_t size)
{
    snprintf(text, size, "%s.%s", test->area, test->name);
    return text;
}

const char *need_name(uint32_t caps, uint32_t also)
{
    static const char *const names[] = {
        "QUEUE_ALLOCA", "DYNAMIC_COUNTS",   "BRANCHES",
        "EVENTS",       "TIMESTAMPS",       "RAW_ARGUMENTS",
        "FILES",        "HOST_CALLS",       "IMPORT_HOST",
        "EXPORT_FD",    "DLPACK",           "GROUP_SIZE",
        "EXECUTES",     "KERNEL_STATUS",    "IMPORT_SEMAPHORE",
        "NATIVE",       "SHARED_SEMAPHORE", "COPY_ACROSS",
    };
    static const char *const others[] = {
        "NODES",
        "WORKERS",
        "FORK",
        "LISTED",
        "MAPPABLE_FD",
        "TRANSFER_QUEUES",
        "MANAGED",
        "BOUNDED_RECORDINGS",
        "EXACT_USAGE",
        "OVERLAP",
        "PARALLEL_RECORDINGS",
        "OTHER_SIDE",
        "PROCESS",
        "KERNELS",
        "LOSS",
        "POINT_OBJECTS",
        "DESCRIPTORS",
        "READ_ONLY_HOST",
    };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (caps >> i & 1) return names[i];
    }
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        if (also >> i & 1) return others[i];
    }
    return "";
}
