// SPDX-License-Identifier: Apache-2.0
#include "core/choice.h"

#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "core/check.h"

// Says what was there and what was wanted.
static keel_status_t none_fits(const keel_device_t *device, const container_t *container)
{
    char targets[512] = "nothing";
    size_t length = 0;
    for (uint32_t i = 0; i < container->image_count && length < sizeof targets; i++)
        length += (size_t)snprintf(targets + length, sizeof targets - length, "%s%s", i ? ", " : "",
                                   container->images[i].target);
    return KEEL_ERROR(KEEL_UNSUPPORTED, "it has images for %s%s; the device needs one for %s",
                      targets, length < sizeof targets ? "" : "...", device->info.target);
}

static keel_status_t best_find(keel_device_t *device, const container_t *container, uint32_t *best)
{
    uint32_t highest = 0;
    for (uint32_t i = 0; i < container->image_count; i++) {
        const container_image_t *image = &container->images[i];
        uint32_t rank = device->ops->executable_rank(device, image->kind, image->target);
        if (rank <= highest) continue;
        highest = rank;
        *best = i;
    }
    return highest ? NULL : none_fits(device, container);
}

// The bytes in place if they may be used there, else a copy.
static keel_status_t contained_read(choice_t *choice, uint32_t index)
{
    const container_image_t *image = &choice->container.images[index];
    const void *view = NULL;
    KEEL_TRY(container_image_view(&choice->container, &choice->source, index, &view));
    if (!view) {
        view = choice->bytes = mem_alloc(image->size);
        if (!view) return status_no_memory();
        KEEL_TRY(container_image_read(&choice->container, &choice->source, index, choice->bytes));
    }
    choice->image = (keel_image_t){
        .kind = image->kind,
        .target = image->target,
        .data = view,
        .size = image->size,
        .hash = &image->hash,
        .entries = image->entries,
        .entry_count = image->entry_count,
    };
    return NULL;
}

static keel_status_t contained_choose(choice_t *choice, keel_device_t *device)
{
    uint32_t best = 0;
    KEEL_TRY(container_read(&choice->source, &choice->container));
    KEEL_TRY(best_find(device, &choice->container, &best));
    return contained_read(choice, best);
}

static keel_status_t alone_read(choice_t *choice)
{
    const source_t *source = &choice->source;
    CHECK(source->size <= CONTAINER_MAX_IMAGE, KEEL_UNSUPPORTED,
          "it has %llu bytes; images of up to %d are loaded", (unsigned long long)source->size,
          CONTAINER_MAX_IMAGE);
    choice->image = (keel_image_t){.target = "", .data = source->data, .size = source->size};
    if (source->data) return NULL;
    choice->image.data = choice->bytes = mem_alloc(source->size);
    return choice->bytes ? source_read(source, choice->bytes, source->size, 0) : status_no_memory();
}

keel_status_t choice_init(choice_t *choice, keel_device_t *device,
                          const keel_executable_options_t *options)
{
    *choice = (choice_t){.source = source_of_memory(options->data, options->size)};
    if (options->path) KEEL_TRY(source_open(options->path, &choice->source));
    char start[8] = {0};
    uint64_t size = choice->source.size < sizeof start ? choice->source.size : sizeof start;
    KEEL_TRY(source_read(&choice->source, start, size, 0));
    return container_is(start, size) ? contained_choose(choice, device) : alone_read(choice);
}

void choice_finish(choice_t *choice)
{
    mem_free(choice->bytes);
    container_finish(&choice->container);
    source_finish(&choice->source);
}
