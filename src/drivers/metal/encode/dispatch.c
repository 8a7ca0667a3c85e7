// SPDX-License-Identifier: Apache-2.0
// Dispatches. A kernel takes one block of arguments at index 0: the grid, addresses and lengths of
// what is bound, constants; or an argument buffer and constants (arguments.c). Metal does not see
// addresses, so each buffer behind one is made resident, once for each encoder.
#include <string.h>

#include "base/status.h"
#include "drivers/metal/encode/encode.h"
#include "drivers/metal/executable/module.h"
#include "drivers/metal/memory/memory.h"
#include "kit/bind.h"
#include "kit/submission.h"

static keel_status_t bindings_use(metal_run_t *run, const keel_cmd_dispatch_t *c,
                                  const keel_cmd_execute_t *execute)
{
    for (uint16_t i = 0; i < c->binding_count; i++) {
        metal_place_t place;
        KEEL_TRY(metal_place(&c->bindings[i], execute, &place));
        metal_used_add(run, place.buffer);
    }
    return NULL;
}

// Buffers whose addresses are put into a block of the kernel's own making. Other addresses in it
// are not seen: their buffers must have been bound otherwise.
static keel_status_t patches_use(metal_run_t *run, const keel_cmd_dispatch_t *c,
                                 const keel_cmd_execute_t *execute)
{
    const keel_patch_t *patches = command_patches(c);
    for (uint16_t i = 0; i < c->patch_count; i++) {
        metal_place_t place;
        if (keel_ref_is_parameter(&patches[i].ref)) continue;
        KEEL_TRY(metal_place(&patches[i].ref, execute, &place));
        metal_used_add(run, place.buffer);
    }
    return NULL;
}

keel_status_t metal_block_make(const keel_cmd_dispatch_t *c, const keel_cmd_execute_t *execute,
                               const uint32_t groups[3], unsigned char *block, uint32_t *size)
{
    const binder_t binder = binder_of(execute);
    if (c->raw) {
        *size = c->constant_size;
        return bind_constants(&binder, c, block);
    }
    KEEL_TRY(bind_block(&binder, c, block, size));
    memcpy(block, groups, 3 * sizeof *groups);
    return NULL;
}

static void variables_set(metal_run_t *run, id variables)
{
    if (!variables || run->variables == variables) return;
    run->variables = variables;
    mtl_set_buffer(metal_run_device(run)->api, run->encoder, variables, 0, METAL_AT_VARIABLES);
}

static unsigned long size_of(const uint32_t size[3])
{
    return (unsigned long)size[0] * size[1] * size[2];
}

static bool is_dynamic(const keel_cmd_dispatch_t *c)
{
    return c->counts_kind == KEEL_COUNTS_DYNAMIC && !keel_ref_is_parameter(&c->counts);
}

static bool is_launched(const keel_cmd_dispatch_t *c)
{
    return c->raw || ((const metal_kernel_t *)c->kernel)->launched;
}

// The kernel must not look for the grid in its block, where the host would have to put it. Counts
// that are there before the submission begins are read by the host, if it sees them.
bool metal_dispatch_counts(const keel_cmd_dispatch_t *c, const keel_cmd_execute_t *execute)
{
    metal_place_t place;
    if (c->counts_kind == KEEL_COUNTS_DIRECT || keel_ref_is_parameter(&c->counts)) return false;
    if (!is_launched(c)) return false;
    if (is_dynamic(c)) return true;
    keel_status_t status = metal_place(&c->counts, execute, &place);
    bool hidden = !status && !place.data;
    keel_status_release(status);
    return hidden;
}

bool metal_dispatch_reads(const keel_cmd_dispatch_t *c)
{
    return is_dynamic(c) && !is_launched(c);
}

static keel_status_t groups_find(const metal_run_t *run, const keel_cmd_dispatch_t *c,
                                 const keel_cmd_execute_t *execute, uint32_t groups[3])
{
    if (!run->base.words) return keel_bind_counts(c, execute, groups);
    memcpy(groups, run->base.words, 3 * sizeof *groups);
    return bind_counts_check(c, groups);
}

// Where the GPU puts the counts of a dispatch.
static keel_status_t counter_take(metal_run_t *run, const keel_cmd_dispatch_t *c,
                                  const keel_cmd_execute_t *execute, metal_place_t *place)
{
    enum { SIZE = 4 * sizeof(uint32_t) };
    KEEL_TRY(metal_words_take(run));
    *place = (metal_place_t){metal_memory_buffer(run->words), run->counted * SIZE, SIZE, NULL};
    char *words = mtl_contents(metal_run_device(run)->api, place->buffer);
    memset(words + place->offset, 0, SIZE); // a guard may keep the GPU from writing them
    run->counters[run->counted].command = &c->head;
    run->counters[run->counted++].execute = execute;
    return NULL;
}

static keel_status_t counts_read(metal_run_t *run, const keel_cmd_dispatch_t *c,
                                 const keel_cmd_execute_t *execute, metal_place_t *counts)
{
    metal_place_t source;
    KEEL_TRY(metal_place(&c->counts, execute, &source));
    KEEL_TRY(counter_take(run, c, execute, counts));
    return metal_transfer_counts(run, &source, counts);
}

void metal_counts_settle(metal_run_t *run)
{
    const uint32_t *words = NULL;
    for (uint32_t i = 0; i < run->counted; i++) {
        if (!words)
            words = mtl_contents(metal_run_device(run)->api, metal_memory_buffer(run->words));
        if (!words[4 * i + 3]) continue;
        keel_status_t status = KEEL_ERROR(
            KEEL_OUT_OF_RANGE, "the counts read are too large; at most %llu groups are run",
            (unsigned long long)metal_run_device(run)->base.caps.max_groups);
        run_fail(&run->base, submission_blame(&run->base.submission, run->counters[i].execute,
                                              run->counters[i].command, status));
        return;
    }
}

static void launch(metal_run_t *run, const keel_cmd_dispatch_t *c, const uint32_t groups[3],
                   const metal_place_t *counts)
{
    const metal_api_t *api = metal_run_device(run)->api;
    metal_size_t threads = {c->group_size[0], c->group_size[1], c->group_size[2]};
    if (counts->buffer)
        mtl_dispatch_indirect(api, run->encoder, counts->buffer, counts->offset, threads);
    else
        metal_launch(run, (metal_size_t){groups[0], groups[1], groups[2]}, threads);
}

bool metal_threads_fit(const keel_cmd_dispatch_t *c, unsigned long most)
{
    return size_of(c->group_size) <= most;
}

// Metal would leave it out, and not say so.
static keel_status_t threads_check(const keel_cmd_dispatch_t *c)
{
    unsigned long most = ((const metal_kernel_t *)c->kernel)->code->threads;
    if (metal_threads_fit(c, most)) return NULL;
    return KEEL_ERROR(
        KEEL_OUT_OF_RANGE,
        "groups of %u x %u x %u items; on this device Metal runs '%s' with %lu at most",
        c->group_size[0], c->group_size[1], c->group_size[2], c->executable->entries[c->entry].name,
        most);
}

// Other kernels than those written by hand have no name for it.
unsigned long metal_local_of(const keel_cmd_dispatch_t *c)
{
    enum { UNIT = 16 };
    uint32_t extra = c->local_memory - c->executable->entries[c->entry].local_memory;
    bool named = !((const metal_kernel_t *)c->kernel)->launched;
    return named ? (unsigned long)metal_round_up(extra, UNIT) : 0;
}

static keel_status_t local_check(const metal_run_t *run, const keel_cmd_dispatch_t *c)
{
    const metal_kernel_t *kernel = c->kernel;
    unsigned long most = metal_run_device(run)->base.caps.max_local_memory;
    unsigned long extra = metal_local_of(c), own = kernel->code->local;
    if (!extra || (own <= most && extra <= most - own)) return NULL;
    return KEEL_ERROR(KEEL_OUT_OF_RANGE,
                      "local_memory: %lu bytes and %lu that '%s' declares; the device has %lu",
                      extra, own, c->executable->entries[c->entry].name, most);
}

static keel_status_t arguments_set(metal_run_t *run, const keel_cmd_dispatch_t *c,
                                   const keel_cmd_execute_t *execute, const unsigned char *block,
                                   uint32_t size)
{
    const metal_kernel_t *kernel = c->kernel;
    if (kernel->bound && !c->raw) return metal_arguments_set(run, c, execute, block);
    run->bound.size = 0;
    KEEL_TRY(metal_bytes_set(run, block, size, METAL_AT_BLOCK));
    variables_set(run, kernel->variables);
    return NULL;
}

keel_status_t metal_dispatch(metal_run_t *run, const keel_cmd_dispatch_t *c,
                             const keel_cmd_execute_t *execute)
{
    const metal_kernel_t *kernel = c->kernel;
    _Alignas(16) unsigned char block[METAL_BLOCK];
    uint32_t groups[3] = {0}, size = 0;
    metal_place_t counts = {0};
    KEEL_TRY(threads_check(c));
    KEEL_TRY(local_check(run, c));
    if (metal_dispatch_counts(c, execute)) {
        KEEL_TRY(counts_read(run, c, execute, &counts));
    } else {
        KEEL_TRY(groups_find(run, c, execute, groups));
        if (!size_of(groups)) return NULL;
    }
    KEEL_TRY(metal_block_make(c, execute, groups, block, &size));
    KEEL_TRY(metal_encoder_need(run, METAL_COMPUTE));
    KEEL_TRY(bindings_use(run, c, execute));
    if (c->raw) KEEL_TRY(patches_use(run, c, execute));
    metal_pipeline_set(run, kernel->code->state);
    metal_local_set(run, metal_local_of(c));
    KEEL_TRY(arguments_set(run, c, execute, block, size));
    launch(run, c, groups, &counts);
    return NULL;
}
