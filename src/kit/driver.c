// SPDX-License-Identifier: Apache-2.0
// The kit by the names that drivers outside of the tree call it. Drivers in the tree call what is
// behind them, without the jump through the table of a shared library.
#include <keel/driver/driver.h>

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/aio.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/status.h"
#include "kit/bind.h"
#include "kit/call.h"
#include "kit/device.h"
#include "kit/option.h"
#include "kit/pool.h"
#include "kit/submission.h"

void *keel_mem_zalloc(size_t size)
{
    return mem_zalloc(size);
}

void *keel_mem_resize(void *old, size_t size)
{
    return mem_resize(old, size);
}

void keel_mem_free(void *memory)
{
    mem_free(memory);
}

void *keel_mem_zalloc_aligned(size_t size, size_t align)
{
    return mem_zalloc_aligned(size, align);
}

void keel_mem_free_aligned(void *memory)
{
    mem_free_aligned(memory);
}

keel_status_t keel_status_no_memory(void)
{
    return status_no_memory();
}

void keel_log_say(keel_log_level_t level, const char *format, ...)
{
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    log_say(level, "%s", text);
}

void keel_submission_wait(keel_submission_t *submission, void (*start)(keel_submission_t *))
{
    submission_wait(submission, start);
}

void keel_submission_end(keel_submission_t *submission, keel_status_t status)
{
    submission_end(submission, status);
}

keel_status_t keel_submission_blame(const keel_submission_t *submission,
                                    const keel_cmd_execute_t *execute,
                                    const keel_command_t *command, keel_status_t status)
{
    return submission_blame(submission, execute, command, status);
}

bool keel_call_run(const keel_submission_t *submission, keel_cmd_call_t *command,
                   void (*done)(keel_call_state_t *state, keel_status_t status), void *context,
                   keel_status_t *status)
{
    if (command->call.detached) {
        *status = call_post_detached(submission->queue, command);
        return true;
    }
    command->state = (keel_call_state_t){.done = done, .context = context};
    return call_make(submission->queue->device, command, status);
}

keel_status_t keel_file_transfer(const keel_cmd_transfer_t *command, void *data)
{
    aio_request_t request = {
        .fd = command->file->fd,
        .write = command->head.kind == KEEL_CMD_WRITE,
        .data = data,
        .size = command->ref.length,
        .offset = command->file_offset,
    };
    return command_transfer_status(command, aio_perform(&request));
}

keel_status_t keel_slabs_create(keel_device_t *device, const keel_pool_options_t *options,
                                keel_pool_t **pool)
{
    return pool_create(device, options, pool);
}

void keel_slabs_destroy(keel_pool_t *pool)
{
    pool_destroy(pool);
}

void keel_slabs_stats(keel_pool_t *pool, keel_pool_stats_t *stats)
{
    pool_stats(pool, stats);
}

keel_status_t keel_slabs_trim(keel_pool_t *pool, uint64_t keep)
{
    return pool_trim(pool, keep);
}

bool keel_slabs_alloca(keel_cmd_alloca_t *command,
                       void (*done)(keel_pool_request_t *request, keel_status_t status),
                       void *context, keel_status_t *status)
{
    if (command->memory.buffer) {
        *status = pool_lend(command);
        return true;
    }
    for (keel_cmd_alloca_t *d; (d = pool_dealloca_beside(command));) {
        *status = keel_slabs_dealloca(d);
        if (*status) return true;
    }
    command->request.done = done;
    command->request.context = context;
    return pool_alloca(command->buffer, &command->request, status) == POOL_DONE;
}

keel_status_t keel_slabs_dealloca(keel_cmd_alloca_t *command)
{
    if (command->settled) return NULL; // an alloca of its stage had it go first
    keel_status_t status;
    return pool_dealloca_starts(command, &status) ? pool_dealloca(command->buffer) : status;
}

keel_status_t keel_options_read(const keel_uri_t *uri, const keel_option_t *table, size_t count,
                                void *options)
{
    return options_read(uri, table, count, options);
}

static const keel_ref_t *table_of(const keel_cmd_execute_t *execute)
{
    return execute ? execute->bindings : NULL;
}

// With what the host sees of it.
static keel_bound_t bound_with_data(const keel_ref_t *ref, const keel_cmd_execute_t *execute,
                                    bound_t bound)
{
    const keel_buffer_t *buffer = ref->buffer ? ref->buffer : execute->bindings[ref->slot].buffer;
    // relaxed: as in bind_find.
    char *data = atomic_load_explicit(&buffer->root->data, memory_order_relaxed);
    uint64_t base = atomic_load_explicit(&buffer->root->address, memory_order_relaxed);
    return (keel_bound_t){bound.address, data ? data + (bound.address - base) : NULL, bound.length};
}

keel_status_t keel_bind_ref(const keel_ref_t *ref, const keel_cmd_execute_t *execute,
                            keel_bound_t *bound)
{
    bound_t found;
    if (keel_ref_is_parameter(ref)) {
        const unsigned char *data = keel_execute_parameters(execute) + ref->offset;
        *bound = (keel_bound_t){0, (void *)(uintptr_t)data, ref->length};
        return NULL;
    }
    KEEL_TRY(bind_now(table_of(execute), ref, &found));
    *bound = bound_with_data(ref, execute, found);
    return NULL;
}

keel_status_t keel_bind_copy(const keel_cmd_copy_t *command, const keel_cmd_execute_t *execute,
                             keel_bound_t *source, keel_bound_t *target)
{
    bound_t from, to;
    KEEL_TRY(bind_now(table_of(execute), &command->source, &from));
    KEEL_TRY(bind_now(table_of(execute), &command->target, &to));
    KEEL_TRY(bind_copy_check(from, to));
    *source = bound_with_data(&command->source, execute, from);
    *target = bound_with_data(&command->target, execute, to);
    return NULL;
}

keel_status_t keel_bind_fill(const keel_cmd_fill_t *command, const keel_cmd_execute_t *execute,
                             keel_bound_t *target, uint32_t *pattern)
{
    bound_t to;
    KEEL_TRY(bind_now(table_of(execute), &command->target, &to));
    KEEL_TRY(bind_fill_check(to, command->pattern_size));
    *target = bound_with_data(&command->target, execute, to);
    *pattern = command->given ? command_pattern(command, keel_execute_parameters(execute))
                              : command->pattern;
    return NULL;
}

// Reads what a command needs now.
static keel_status_t words_read(const keel_ref_t *ref, const keel_cmd_execute_t *execute,
                                uint32_t *words, size_t count)
{
    keel_bound_t bound;
    KEEL_TRY(keel_bind_ref(ref, execute, &bound));
    if (!bound.data)
        return KEEL_ERROR(KEEL_UNSUPPORTED,
                          "the host reads the words at device address %#llx, "
                          "and does not see that memory",
                          (unsigned long long)bound.address);
    memcpy(words, bound.data, count * sizeof *words);
    return NULL;
}

keel_status_t keel_bind_counts(const keel_cmd_dispatch_t *command,
                               const keel_cmd_execute_t *execute, uint32_t counts[3])
{
    memcpy(counts, command->groups, sizeof command->groups);
    if (command->counts_kind == KEEL_COUNTS_DIRECT) return NULL;
    KEEL_TRY(words_read(&command->counts, execute, counts, 3));
    return bind_counts_check(command, counts);
}

keel_status_t keel_bind_constants(const keel_cmd_dispatch_t *command,
                                  const keel_cmd_execute_t *execute, void *block)
{
    binder_t binder = binder_of(execute);
    return bind_constants(&binder, command, block);
}

keel_status_t keel_command_step(const keel_commands_t *commands, const keel_cmd_execute_t *execute,
                                uint32_t *loops, const keel_command_t **at)
{
    const keel_cmd_block_t *block = (const keel_cmd_block_t *)(const void *)*at;
    uint32_t value = 0;
    if (command_has_value((*at)->kind)) KEEL_TRY(words_read(&block->value, execute, &value, 1));
    return command_jump(commands, value, loops, at);
}

void keel_device_lose(keel_device_t *device, keel_status_t cause,
                      void (*settle)(keel_device_t *device))
{
    device_end(device, cause, settle);
}

bool keel_object_is_ours(const keel_object_t *object)
{
    return object_is_ours(object);
}
