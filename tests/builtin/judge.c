// SPDX-License-Identifier: Apache-2.0
#include "builtin/judge.h"

#include <stdio.h>
#include <string.h>

#include "builtin/arguments.h"

enum { ROOM = 1 << 17, MARGIN = 64 };

typedef struct judge_t {
    const judge_device_t *device;
    unsigned char *target, *source;
    unsigned wrong;
} judge_t;

static void check(judge_t *j, bool good, const char *kernel, uint64_t length, uint64_t offset)
{
    if (good) return;
    j->wrong++;
    printf("%s: wrong for %llu bytes at %llu\n", kernel, (unsigned long long)length,
           (unsigned long long)offset);
}

static void launch(judge_t *j, const char *kernel, uint32_t groups, uint32_t size,
                   const void *arguments, size_t bytes)
{
    if (j->device->launch(j->device->user, kernel, groups, size, arguments, bytes)) return;
    printf("%s: did not run\n", kernel);
    j->wrong++;
}

// Whether nothing but `length` bytes at `at` was written to.
static bool around_is(const judge_t *j, uint64_t at, uint64_t length, unsigned char what)
{
    for (uint64_t i = 0; i < MARGIN; i++)
        if (j->target[at - 1 - i] != what || j->target[at + length + i] != what) return false;
    return true;
}

static void fill_try(judge_t *j, uint64_t length, uint64_t offset, uint32_t groups)
{
    uint64_t at = MARGIN + offset;
    builtin_fill_t a = {
        .target = (uintptr_t)(j->target + at),
        .length = length,
        .pattern = 0x44332211,
        .threads = groups * BUILTIN_GROUP,
        .unit = builtin_unit(length | offset),
    };
    memset(j->target, 0xee, ROOM);
    launch(j, "keel_fill", groups, BUILTIN_GROUP, &a, sizeof a);
    bool good = around_is(j, at, length, 0xee);
    for (uint64_t i = 0; i < length; i++) good &= j->target[at + i] == 0x11 * (1 + i % 4);
    check(j, good, "keel_fill", length, offset);
}

static void copy_try(judge_t *j, uint64_t length, uint64_t offset, uint32_t groups)
{
    uint64_t at = MARGIN + offset;
    builtin_copy_t a = {
        .target = (uintptr_t)(j->target + at),
        .source = (uintptr_t)j->source,
        .length = length,
        .threads = groups * BUILTIN_GROUP,
        .unit = builtin_unit(length | offset),
    };
    memset(j->target, 0xee, ROOM);
    for (uint64_t i = 0; i < ROOM; i++) j->source[i] = (unsigned char)(i * 7 + i / 251);
    launch(j, "keel_copy", groups, BUILTIN_GROUP, &a, sizeof a);
    bool good = around_is(j, at, length, 0xee) && !memcmp(j->target + at, j->source, length);
    check(j, good, "keel_copy", length, offset);
}

static void counts_try(judge_t *j)
{
    static const struct {
        uint32_t counts[3], before, after;
    } rows[] = {
        {{1, 1, 1}, 0, 0},
        {{0, 5, 5}, 0, 0},
        {{5, 0, 5}, 0, 0},
        {{100, 50, 20}, 0, 0},
        {{101, 1, 1}, 0, 9},
        {{1, 51, 1}, 0, 9},
        {{1, 1, 21}, 0, 9},
        {{100, 50, 2}, 0, 0},
        {{100, 50, 20}, 7, 7},
        {{101, 1, 1}, 7, 7},
        {{0, UINT32_MAX, 1}, 0, 0},
        {{UINT32_MAX, 1, 1}, 0, 9},
        {{100, UINT32_MAX, 1}, 0, 9},
    };
    uint32_t *words = (uint32_t *)(void *)j->target, *failed = words + 4;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        builtin_counts_t a = {(uintptr_t)words, (uintptr_t)failed, 100000, 9, 100, 50, 20};
        memcpy(words, rows[i].counts, sizeof rows[i].counts);
        memset(failed, 0, 16);
        failed[0] = rows[i].before;
        launch(j, "keel_counts", 1, 1, &a, sizeof a);
        bool told = rows[i].before != rows[i].after;
        bool good = failed[0] == rows[i].after;
        for (int k = 0; k < 3; k++) good &= failed[1 + k] == (told ? rows[i].counts[k] : 0);
        check(j, good, "keel_counts", rows[i].counts[0], i);
    }
    // In all too many, though not in any dimension; and more than 64 bits count.
    builtin_counts_t all = {(uintptr_t)words, (uintptr_t)failed, 99, 9, 100, 50, 20};
    memcpy(words, (uint32_t[3]){10, 10, 1}, 12);
    memset(failed, 0, 16);
    launch(j, "keel_counts", 1, 1, &all, sizeof all);
    check(j, failed[0] == 9, "keel_counts", 100, 99);
    builtin_counts_t wide = {(uintptr_t)words, (uintptr_t)failed, UINT64_MAX, 9,
                             UINT32_MAX,       UINT32_MAX,        UINT32_MAX};
    memcpy(words, (uint32_t[3]){1u << 31, 1u << 31, 8}, 12);
    memset(failed, 0, 16);
    launch(j, "keel_counts", 1, 1, &wide, sizeof wide);
    check(j, failed[0] == 9 && failed[3] == 8, "keel_counts", 8, 65);
}

static void timestamp_try(judge_t *j)
{
    uint64_t *times = (uint64_t *)(void *)j->target;
    memset(times, 0, 24);
    for (int i = 0; i < 2; i++) {
        builtin_timestamp_t a = {.target = (uintptr_t)&times[2 * i]};
        launch(j, "keel_timestamp", 1, 1, &a, sizeof a);
        builtin_timestamp_t scaled = {(uintptr_t)&times[1], 5, 2};
        if (i == 0) launch(j, "keel_timestamp", 1, 1, &scaled, sizeof scaled);
    }
    check(j, times[0] && times[2] > times[0], "keel_timestamp", 8, 0);
    bool between = times[1] >= times[0] / 2 * 5 && times[1] <= (times[2] / 2 + 1) * 5;
    check(j, between, "keel_timestamp", 8, 5);
}

unsigned judge_run(const judge_device_t *device)
{
    static const uint64_t lengths[] = {0,    1,    2,    3,    8,     15,        16,        17,
                                       4096, 4100, 8192, 8191, 65536, 65536 - 1, 65536 + 16};
    static const uint64_t offsets[] = {0, 1, 2, 4, 8, 16};
    judge_t j = {device, device->alloc(ROOM), device->alloc(ROOM), 0};
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++)
        for (size_t k = 0; k < sizeof offsets / sizeof offsets[0]; k++) {
            fill_try(&j, lengths[i], offsets[k], k % 2 ? 1 : 3);
            copy_try(&j, lengths[i], offsets[k], k % 2 ? 1 : 3);
        }
    counts_try(&j);
    timestamp_try(&j);
    device->free(j.target);
    device->free(j.source);
    return j.wrong;
}
