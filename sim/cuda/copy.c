// SPDX-License-Identifier: Apache-2.0
// Copies and fills: from their descriptions to works, the checks of their operands, and the doing.
#include "cuda/copy.h"
#include "cuda/arena.h"
#include "cuda/call.h"
#include "cuda/engine.h"

#include <stdlib.h>
#include <string.h>

bool side_is_pageable(const side_t *side)
{
    return side->type != CU_MEMORYTYPE_DEVICE && !arena_find(side->address) &&
           !arena_owns(side->address);
}

static uint64_t side_extent(const side_t *side, const copy_work_t *copy)
{
    if (!copy->width || !copy->height || !copy->depth) return 0;
    return (copy->depth - 1) * side->slice + (copy->height - 1) * side->pitch + copy->width;
}

static bool side_check(const side_t *side, const copy_work_t *copy, moment_t moment,
                       const char *maker)
{
    if (side_is_pageable(side)) return true;
    if (!arena_check(side->address, side_extent(side, copy), moment, maker)) return false;
    const range_t *range = arena_find(side->address);
    if (side->type != CU_MEMORYTYPE_HOST || !range) return true;
    if (range->kind != RANGE_DEVICE && range->kind != RANGE_POOL && range->kind != RANGE_VIRTUAL) {
        return true;
    }
    complain("%s: %#llx was given as host memory, but is device memory (allocation %llu, %s)",
             maker, (unsigned long long)side->address, (unsigned long long)range->id, range->maker);
    return false;
}

static CUresult side_read(side_t *out, CUmemorytype type, uint64_t host, uint64_t device)
{
    if (type != CU_MEMORYTYPE_HOST && type != CU_MEMORYTYPE_DEVICE &&
        type != CU_MEMORYTYPE_UNIFIED) {
        return type == CU_MEMORYTYPE_ARRAY ? CUDA_ERROR_NOT_SUPPORTED : CUDA_ERROR_INVALID_VALUE;
    }
    out->type = type;
    out->address = type == CU_MEMORYTYPE_HOST ? host : device;
    return CUDA_SUCCESS;
}

static bool side_place(side_t *side, const size_t at[3], size_t height, const copy_work_t *copy)
{
    if (!side->pitch) side->pitch = at[0] + copy->width;
    if (side->pitch < at[0] + copy->width && (copy->height > 1 || copy->depth > 1)) return false;
    if (copy->depth > 1 && height < at[1] + copy->height) return false;
    side->slice = side->pitch * (height ? height : copy->height);
    side->address += at[0] + at[1] * side->pitch + at[2] * side->slice;
    return true;
}

CUresult copy_work(work_t *out, const CUDA_MEMCPY3D *c)
{
    if (!c) return CUDA_ERROR_INVALID_VALUE;
    *out = (work_t){.kind = WORK_COPY, .maker = call_name()};
    copy_work_t *copy = &out->copy;
    copy->width = c->WidthInBytes;
    copy->height = c->Height;
    copy->depth = c->Depth;
    CUresult error = side_read(&copy->from, c->srcMemoryType, (uintptr_t)c->srcHost, c->srcDevice);
    if (!error) error = side_read(&copy->to, c->dstMemoryType, (uintptr_t)c->dstHost, c->dstDevice);
    if (error) return error;
    copy->from.pitch = c->srcPitch;
    copy->to.pitch = c->dstPitch;
    const size_t from[] = {c->srcXInBytes, c->srcY, c->srcZ};
    const size_t to[] = {c->dstXInBytes, c->dstY, c->dstZ};
    if (c->srcLOD || c->dstLOD || c->reserved0 || c->reserved1) return CUDA_ERROR_INVALID_VALUE;
    if (!side_place(&copy->from, from, c->srcHeight, copy) ||
        !side_place(&copy->to, to, c->dstHeight, copy)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    return CUDA_SUCCESS;
}

CUresult fill_work(work_t *out, const CUDA_MEMSET_NODE_PARAMS *f)
{
    if (!f || (f->elementSize != 1 && f->elementSize != 2 && f->elementSize != 4)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (f->dst % f->elementSize || (f->height > 1 && f->pitch % f->elementSize)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (f->width > SIZE_MAX / f->elementSize ||
        (f->height > 1 && f->pitch < f->width * f->elementSize)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *out = (work_t){.kind = WORK_FILL,
                    .maker = call_name(),
                    .fill = {f->dst, f->pitch, f->width, f->height, f->value, f->elementSize}};
    return CUDA_SUCCESS;
}

bool copy_is_apart(const copy_work_t *copy, const char *maker)
{
    uint64_t from = copy->from.address, to = copy->to.address;
    if (copy->height != 1 || copy->depth != 1) return true; // rows may lie between rows
    if (to - from >= copy->width && from - to >= copy->width) return true;
    complain("%s: the %zu bytes at %#llx overlap those at %#llx that they are copied to", maker,
             copy->width, (unsigned long long)from, (unsigned long long)to);
    return false;
}

bool copy_check(const copy_work_t *copy, moment_t moment, const char *maker)
{
    return (copy->staged || side_check(&copy->from, copy, moment, maker)) &&
           side_check(&copy->to, copy, moment, maker) &&
           (moment != WHEN_RUN || copy_is_apart(copy, maker));
}

bool fill_check(const fill_work_t *fill, moment_t moment, const char *maker)
{
    if (fill->width == 0 || fill->height == 0) return true;
    uint64_t extent = (fill->height - 1) * fill->pitch + fill->width * fill->element;
    return arena_check(fill->address, extent, moment, maker);
}

// Keeps what pageable memory holds now, for the caller may change it once the call has returned.
bool copy_stage(copy_work_t *copy)
{
    size_t size = copy->width * copy->height * copy->depth;
    uint8_t *bytes = copy->staged = malloc(size ? size : 1);
    if (!bytes) return false;
    for (size_t z = 0; z < copy->depth; z++) {
        for (size_t y = 0; y < copy->height; y++, bytes += copy->width) {
            uint64_t row = copy->from.address + z * copy->from.slice + y * copy->from.pitch;
            memcpy(bytes, (const void *)(uintptr_t)row, copy->width);
        }
    }
    return true;
}

void copy_run(const copy_work_t *copy)
{
    const uint8_t *staged = copy->staged;
    if (settings()->slow_us) sleep_us(settings()->slow_us);
    for (size_t z = 0; z < copy->depth; z++) {
        for (size_t y = 0; y < copy->height; y++) {
            uint64_t from = copy->from.address + z * copy->from.slice + y * copy->from.pitch;
            uint64_t to = copy->to.address + z * copy->to.slice + y * copy->to.pitch;
            memmove(arena_bytes(to), staged ? staged : arena_bytes(from), copy->width);
            if (staged) staged += copy->width;
        }
    }
}

void fill_run(const fill_work_t *fill)
{
    for (size_t y = 0; y < fill->height; y++) {
        uint8_t *row = arena_bytes(fill->address + y * fill->pitch);
        if (fill->element == 1) memset(row, (int)(fill->value & 0xff), fill->width);
        for (size_t x = 0; x < fill->width && fill->element > 1; x++) {
            memcpy(row + x * fill->element, &fill->value, fill->element);
        }
    }
}
