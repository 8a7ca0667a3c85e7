// SPDX-License-Identifier: Apache-2.0
// What there is: a device, how it and the host's processors reach each other's memory, and what an
// image of kernels holds for it.
//     survey cuda://0 kernels.fatbin
// Without a file it looks at the kernels of these examples.
#include <keel/keel.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels.h"

static void device_print(const keel_device_info_t *info)
{
    printf("%s: %s\n", info->name, info->hardware);
    if (info->pci[0]) printf("  at %s on PCI\n", info->pci);
    if (info->has_uuid) {
        printf("  UUID ");
        for (int i = 0; i < 16; i++) printf("%02x", info->uuid[i]);
        printf("\n");
    }
    if (info->has_numa_node) printf("  nearest to memory node %u\n", info->numa_node);
    if (info->api[0])
        printf("  by %s%s%s\n", info->api, info->driver[0] ? ", driver " : "", info->driver);
}

static keel_status_t reach_print(keel_device_t *from, keel_device_t *to)
{
    static const char *const ways[] = {
        [KEEL_REACH_NONE] = "not at all",
        [KEEL_REACH_STAGED] = "in pieces, through memory of the host",
        [KEEL_REACH_HOST] = "directly, since one of them is memory of the host",
        [KEEL_REACH_PEER] = "directly",
    };
    keel_reach_t reach;
    KEEL_TRY(keel_device_reach(from, to, &reach));
    printf("  copies to and from memory of %s: %s", keel_device_info(to)->name, ways[reach.how]);
    if (reach.bandwidth) printf(", at most %.1f GB/s", (double)reach.bandwidth / 1e9);
    printf("\n");
    return NULL;
}

static void image_print(const keel_image_info_t *image, const char *wanted, int depth)
{
    // Up to the colon a target names the family: all of it may load, the loader knows.
    bool fits = strncmp(image->target, wanted, strcspn(wanted, ":")) == 0;
    printf("%*s%s%s%s, %llu bytes, %u entry points%s\n", 2 * depth, "", image->kind_name,
           image->target[0] ? " for " : "", image->target, (unsigned long long)image->size,
           image->entry_count, image->target[0] && fits ? " (of the device's family)" : "");
    if (image->failure)
        printf("%*scannot be read: %s\n", 2 * depth + 2, "", keel_status_message(image->failure));
    for (uint32_t i = 0; i < image->member_count; i++)
        image_print(&image->members[i], wanted, depth + 1);
}

// The whole file; NULL if it cannot be read.
static void *file_read(const char *path, size_t *size)
{
    FILE *file = fopen(path, "rb");
    char *bytes = NULL;
    *size = 0;
    for (size_t room = 1 << 16, got = 1; file && got; room *= 2) {
        char *more = realloc(bytes, room);
        if (!more) break;
        bytes = more;
        got = fread(bytes + *size, 1, room - *size, file);
        *size += got;
    }
    if (file) fclose(file);
    return bytes;
}

static keel_status_t image_survey(const void *bytes, size_t size, const char *wanted)
{
    keel_image_info_t *image = NULL;
    KEEL_TRY(keel_image_info(bytes, size, &image));
    image_print(image, wanted, 0);
    keel_image_info_release(image);
    return NULL;
}

static keel_status_t survey(keel_device_t *device, keel_device_t *host, const char *path)
{
    const char *wanted = keel_device_info(device)->target;
    device_print(keel_device_info(device));
    KEEL_TRY(reach_print(device, host));
    if (!path)
        return image_survey(keel_embed_example_kernels, keel_embed_example_kernels_size, wanted);
    size_t size;
    void *bytes = file_read(path, &size);
    keel_status_t status =
        bytes ? image_survey(bytes, size, wanted) : KEEL_ERROR(KEEL_IO, "%s cannot be read", path);
    free(bytes);
    return status;
}

int main(int argc, char **argv)
{
    keel_device_t *device = NULL, *host = NULL;
    keel_status_t status = keel_device_open(argc > 1 ? argv[1] : "cpu://", NULL, &device);
    if (!status) status = keel_device_open("cpu://inline", NULL, &host);
    if (!status) status = survey(device, host, argc > 2 ? argv[2] : NULL);
    keel_device_release(host);
    keel_device_release(device);
    if (status) keel_status_print(status, stderr);
    keel_status_release(status);
    return status ? 1 : 0;
}
