// SPDX-License-Identifier: Apache-2.0
#include "graphs/objects.h"
#include "graphs/stage.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { PAGE = 4096 };

static keel_status_t shared_make(run_t *run, size_t index, const uint8_t *bytes)
{
    const space_t *space = &run->graph->spaces[index];
    keel_buffer_options_t options = {.name = "shared memory of a graph"};
    run->shared[index] = aligned_alloc(PAGE, PAGE);
    if (!run->shared[index]) abort();
    memcpy(run->shared[index], bytes, space->size);
    for (size_t d = 0; d < run->env->count; d++) {
        keel_external_buffer_t external = {.kind = KEEL_EXTERNAL_HOST, .size = space->size};
        external.handle.host = run->shared[index];
        if (keel_device_caps(run->env->devices[d].device)->bits & KEEL_CAP_IMPORT_HOST)
            KEEL_TRY(keel_buffer_import(run->env->devices[d].device, &external, &options,
                                        &run->buffers[index][d]));
    }
    return NULL;
}

// A file that has no name.
static keel_status_t file_make(run_t *run, size_t index, const uint8_t *bytes)
{
    const space_t *space = &run->graph->spaces[index];
    char path[] = "/tmp/keel-graph-XXXXXX";
    run->fds[index] = mkstemp(path);
    if (run->fds[index] < 0 || unlink(path) ||
        pwrite(run->fds[index], bytes, space->size, 0) != space->size)
        return KEEL_ERROR(KEEL_IO, "cannot make a file in /tmp");
    for (size_t d = 0; d < run->env->count; d++)
        if (keel_device_caps(run->env->devices[d].device)->bits & KEEL_CAP_FILES)
            KEEL_TRY(keel_file_import(run->env->devices[d].device, run->fds[index],
                                      &run->files[index][d]));
    return NULL;
}

static keel_status_t space_make(run_t *run, size_t index)
{
    const space_t *space = &run->graph->spaces[index];
    env_device_t *device = &run->env->devices[space->device];
    keel_buffer_t **buffer = &run->buffers[index][space->device];
    keel_buffer_options_t options = {.memory = stage_memory(device, index),
                                     .size = space->size,
                                     .node = space->node,
                                     .name = "buffer of a graph"};
    uint8_t bytes[SPACE_SIZE];
    for (uint32_t i = 0; i < SPACE_SIZE; i++) bytes[i] = data_byte((uint32_t)index, i);
    switch (space->kind) {
    case SPACE_BUFFER:
        KEEL_TRY(keel_buffer_create(device->device, &options, buffer));
        return stage_write(device, *buffer, 0, bytes, space->size);
    case SPACE_POOL: return keel_buffer_reserve(device->pools[space->pool], &options, buffer);
    case SPACE_SHARED: return shared_make(run, index, bytes);
    default: return file_make(run, index, bytes);
    }
}

// A timeline keeps the causes of points that failed on it, so a graph with failures has queues of
// its own: then everything must be gone with them.
static keel_status_t queues_make(run_t *run)
{
    for (size_t d = 0; d < run->env->count; d++) {
        const env_device_t *device = &run->env->devices[d];
        for (size_t q = 0; !run->graph->failures && q < MAX_QUEUES; q++)
            run->queues[d][q] = keel_queue_retain(device->queues[q]);
        KEEL_TRY(env_queues(device, run->queues[d]));
    }
    return NULL;
}

static keel_status_t parts_make(run_t *run, size_t index)
{
    for (size_t d = 0; d < run->env->count; d++) {
        keel_buffer_t *whole = run->buffers[index][d];
        if (whole && keel_buffer_size(whole) > PART_OFFSET)
            KEEL_TRY(keel_buffer_subspan(whole, PART_OFFSET, KEEL_WHOLE, &run->parts[index][d]));
    }
    return NULL;
}

bool objects_make(run_t *run)
{
    const graph_t *graph = run->graph;
    bool good = run_good(run, queues_make(run), "making a queue");
    for (size_t i = 0; i < MAX_SPACES; i++) run->fds[i] = -1;
    for (size_t i = 0; good && i < graph->space_count; i++)
        good = run_good(run, space_make(run, i), "making a buffer") &&
               run_good(run, parts_make(run, i), "making a subspan");
    for (size_t i = 0; good && i < graph->semaphore_count; i++) {
        keel_semaphore_options_t options = {.initial = graph->semaphores[i].initial,
                                            .name = "semaphore of a graph"};
        keel_device_t *device = run->env->devices[graph->semaphores[i].device].device;
        good = run_good(run, keel_semaphore_create(device, &options, &run->semaphores[i]),
                        "making a semaphore");
    }
    for (size_t i = 0; good && i < graph->recording_count; i++)
        if (graph->recordings[i].used && !graph->recordings[i].one_shot)
            good = run_good(run, recording_build(run, i, 0, &run->recordings[i]), "recording");
    return good;
}

void objects_read(run_t *run)
{
    outcome_t *outcome = run->outcome;
    for (size_t i = 0; i < run->graph->space_count; i++) {
        const space_t *space = &run->graph->spaces[i];
        if (space->kind == SPACE_FILE) {
            outcome->readable[i] =
                pread(run->fds[i], outcome->memory[i], space->size, 0) == space->size;
            continue;
        }
        keel_status_t status =
            stage_read(&run->env->devices[space->device], run->buffers[i][space->device], 0,
                       outcome->memory[i], space->size);
        outcome->readable[i] = !status;
        keel_status_release(status);
    }
}

void objects_release(run_t *run)
{
    for (size_t d = 0; d < MAX_DEVICES; d++)
        for (size_t q = 0; q < MAX_QUEUES; q++) keel_queue_release(run->queues[d][q]);
    for (size_t i = 0; i < MAX_RECORDINGS; i++) keel_recording_release(run->recordings[i]);
    for (size_t i = 0; i < MAX_SEMAPHORES; i++) keel_semaphore_release(run->semaphores[i]);
    for (size_t i = 0; i < MAX_SPACES; i++) {
        for (size_t d = 0; d < MAX_DEVICES; d++) {
            keel_buffer_release(run->parts[i][d]);
            keel_buffer_release(run->buffers[i][d]);
            keel_file_release(run->files[i][d]);
        }
        if (run->fds[i] >= 0) close(run->fds[i]);
    }
}

static size_t live_format(const keel_live_t *before, const keel_live_t *now, char *text,
                          size_t size)
{
    const struct {
        const char *name;
        int64_t more;
    } kinds[] = {
        {"devices", now->devices - before->devices},
        {"queues", now->queues - before->queues},
        {"semaphores", now->semaphores - before->semaphores},
        {"buffers", now->buffers - before->buffers},
        {"pools", now->pools - before->pools},
        {"executables", now->executables - before->executables},
        {"recordings", now->recordings - before->recordings},
        {"files", now->files - before->files},
        {"completions", now->completions - before->completions},
        {"submissions", now->submissions - before->submissions},
        {"statuses", now->statuses - before->statuses},
    };
    size_t length = 0;
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0] && length < size; i++)
        if (kinds[i].more)
            length += (size_t)snprintf(text + length, size - length, " %s %+" PRId64, kinds[i].name,
                                       kinds[i].more);
    return length;
}

// A failure where there should be none stays on the timeline of a queue that other graphs use too.
static bool timelines_clean(const run_t *run)
{
    for (size_t i = 0; !run->graph->failures && i < run->graph->action_count; i++)
        if (run->outcome->actions[i].state == SEEN_FAILED) return false;
    return true;
}

void live_check(run_t *run)
{
    struct timespec pause = {0, 1000000};
    keel_live_t now;
    char *left = run->outcome->left;
    // What was in flight is let go right after its points are reached, by other threads.
    for (size_t tries = 0; tries < 2000 && timelines_clean(run); tries++) {
        left[0] = 0;
        keel_live_objects(&now);
        if (!live_format(&run->live, &now, left, sizeof run->outcome->left)) break;
        nanosleep(&pause, NULL);
    }
    // Imported memory may be freed only once no buffer can touch it any more.
    for (size_t i = 0; i < MAX_SPACES; i++) free(run->shared[i]);
}
