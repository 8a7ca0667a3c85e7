// SPDX-License-Identifier: Apache-2.0
#include "fuzz/fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef struct block_t {
    size_t size;
    _Alignas(16) char bytes[];
} block_t;

enum { SECONDS_MAX = 2 };

static size_t used, most;
static double began;

// Of this process, so that a busy machine makes nothing look slow.
static double seconds(void)
{
    struct timespec time;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static void *counted_resize(void *user, void *old, size_t size)
{
    (void)user;
    block_t *block = old ? (block_t *)(void *)((char *)old - offsetof(block_t, bytes)) : NULL;
    size_t before = block ? block->size : 0;
    FUZZ_CHECK(size <= most && used - before <= most - size);
    block = realloc(block, sizeof *block + size);
    if (!block) return NULL;
    block->size = size;
    used += size - before;
    return block->bytes;
}

static void counted_free(void *user, void *memory)
{
    (void)user;
    block_t *block = (block_t *)(void *)((char *)memory - offsetof(block_t, bytes));
    used -= block->size;
    free(block);
}

void fuzz_fail(const char *file, int line, const char *condition)
{
    fprintf(stderr, "%s:%d: not so: %s\n", file, line, condition);
    abort();
}

void fuzz_begin(size_t limit)
{
    static const keel_allocator_t allocator = {counted_resize, counted_free, NULL};
    keel_allocator_set(&allocator);
    most = limit;
    began = seconds();
}

void fuzz_end(void)
{
    keel_live_t live;
    keel_live_objects(&live);
    FUZZ_CHECK(live.statuses == 0);
    FUZZ_CHECK(used == 0);
    FUZZ_CHECK(seconds() - began < SECONDS_MAX);
}

static size_t text_look(const char *text)
{
    FUZZ_CHECK(text);
    return strlen(text);
}

void fuzz_look_entry(const keel_image_entry_info_t *entry)
{
    text_look(entry->name);
    uint64_t end = 0;
    for (uint32_t i = 0; i < entry->param_count; i++) {
        const keel_image_param_t *param = &entry->params[i];
        text_look(param->name);
        text_look(param->type);
        FUZZ_CHECK(param->kind < KEEL_PARAM_KINDS);
        FUZZ_CHECK(param->offset >= end);
        end = (uint64_t)param->offset + param->size;
        FUZZ_CHECK(end <= entry->param_size);
    }
    for (uint32_t i = 0; i < entry->binding_count; i++) {
        text_look(entry->bindings[i].name);
        text_look(entry->bindings[i].type);
    }
}

void fuzz_look(const image_info_t *info)
{
    FUZZ_CHECK(info->kind < KEEL_IMAGE_KINDS);
    text_look(info->target);
    text_look(info->version);
    for (uint32_t i = 0; i < info->entry_count; i++) fuzz_look_entry(&info->entries[i]);
    for (uint32_t i = 0; i < info->member_count; i++) {
        const image_member_t *member = &info->members[i];
        text_look(member->name);
        text_look(member->target);
        FUZZ_CHECK(member->kind < KEEL_IMAGE_KINDS && member->packing < IMAGE_PACKINGS);
        FUZZ_CHECK(member->packing != IMAGE_PLAIN || member->unpacked == member->size);
    }
}

int fuzz_reader(const uint8_t *data, size_t size, fuzz_read_fn read)
{
    image_info_t info;
    fuzz_begin((1 << 17) + size * 65);
    keel_status_t status = read(data, size, &info);
    if (status) {
        FUZZ_CHECK(keel_status_code(status) == KEEL_CORRUPT ||
                   keel_status_code(status) == KEEL_UNSUPPORTED);
        FUZZ_CHECK(text_look(keel_status_message(status)) > 0);
        FUZZ_CHECK(!info.memory && !info.entry_count && !info.member_count);
        keel_status_release(status);
    } else {
        fuzz_look(&info);
    }
    image_info_finish(&info);
    fuzz_end();
    return 0;
}
