// SPDX-License-Identifier: Apache-2.0
#include "tools/commands.h"

#include <ctype.h>
#include <inttypes.h>
#include <keel/keel.h>
#include <stdlib.h>
#include <string.h>

static const char *const cap_names[] = {
    "queue alloca",
    "dynamic counts",
    "branches",
    "events",
    "timestamps",
    "raw arguments",
    "files",
    "host calls",
    "host import",
    "fd export",
    "dlpack",
    "group size",
    "executes",
    "kernel status",
    "semaphore import",
    "native handles",
    "shared semaphores",
    "copy across",
};

// Why a driver's devices lack a capability, where they do. The first row that fits is taken.
static const struct {
    const char *drivers; // " cpu null ": those; NULL: all
    uint32_t bits;       // of keel_cap_t
    const char *reason;
} reasons[] = {
    {" null ", KEEL_CAP_QUEUE_ALLOCA, "there is no memory to order"},
    {" null ", KEEL_CAP_RAW_ARGUMENTS, "kernels take nothing"},
    {" null ", KEEL_CAP_FILES, "nothing is read or written"},
    {" null ", KEEL_CAP_HOST_CALLS, "it makes no host calls"},
    {" null ", KEEL_CAP_IMPORT_HOST, "memory of the application is not looked at"},
    {" null ", KEEL_CAP_DLPACK, "a tensor of nothing is no use"},
    {" null ", KEEL_CAP_GROUP_SIZE, "kernels have no work-items"},
    {" null ", KEEL_CAP_EXECUTES | KEEL_CAP_KERNEL_STATUS, "no kernel runs"},
    {" null ", KEEL_CAP_COPY_ACROSS, "nothing is copied"},
    {" amdgpu cuda hip metal ", KEEL_CAP_KERNEL_STATUS, "kernels of a GPU return nothing"},
    {" cpu null ", KEEL_CAP_IMPORT_SEMAPHORE, "no other API shares semaphores with the host"},
    {" cuda ", KEEL_CAP_IMPORT_SEMAPHORE, "the library of NVIDIA's driver imports none here"},
    {" hip ", KEEL_CAP_IMPORT_SEMAPHORE, "HIP imports no timeline semaphores on Linux"},
    {" amdgpu ", KEEL_CAP_IMPORT_SEMAPHORE, "no other API shares semaphores with HSA here"},
    {" cpu null ", KEEL_CAP_EXPORT_FD, "its buffers are plain memory of the process"},
    {" cuda ", KEEL_CAP_EXPORT_FD, "the library of NVIDIA's driver exports no memory here"},
    {" hip ", KEEL_CAP_EXPORT_FD, "it takes HIP 6 or later, and a GPU before gfx12"},
    {" amdgpu ", KEEL_CAP_EXPORT_FD, "ROCm before 5.6 gives out no descriptors of memory"},
    {" metal ", KEEL_CAP_EXPORT_FD, "memory of a GPU's own has no descriptor"},
    {" cpu null ", KEEL_CAP_NATIVE, "no vendor is behind it"},
    {NULL, KEEL_CAP_SHARED_SEMAPHORE, "semaphores are shared by means of Linux"},
};

static const char *const memory_names[] = {
    "device local", "device visible", "host visible", "host coherent", "host cached",
};

static int report(keel_status_t status)
{
    if (!status) return 0;
    keel_status_print(status, stderr);
    keel_status_release(status);
    return 1;
}

static void print_bits(uint32_t bits, const char *const *names, size_t count)
{
    const char *separator = "";
    for (size_t i = 0; i < count; i++) {
        if (!(bits >> i & 1)) continue;
        printf("%s%s", separator, names[i]);
        separator = ", ";
    }
    printf("\n");
}

// NULL: it is not known.
static const char *reason_of(const char *uri, uint32_t bit)
{
    char driver[64];
    snprintf(driver, sizeof driver, " %.*s ", (int)strcspn(uri, ":"), uri);
    for (size_t i = 0; i < sizeof reasons / sizeof reasons[0]; i++) {
        if (!(reasons[i].bits & bit)) continue;
        if (!reasons[i].drivers || strstr(reasons[i].drivers, driver)) return reasons[i].reason;
    }
    return NULL;
}

// A line for each.
static void print_lacking(const char *uri, uint32_t lacking)
{
    const char *title = "lacking";
    for (size_t i = 0; i < sizeof cap_names / sizeof cap_names[0]; i++) {
        if (!(lacking >> i & 1)) continue;
        const char *reason = reason_of(uri, UINT32_C(1) << i);
        printf("    %-13s %s%s%s\n", title, cap_names[i], reason ? ": " : "", reason ? reason : "");
        title = "";
    }
}

static void print_caps(const char *uri, const keel_caps_t *caps)
{
    const size_t cap_count = sizeof cap_names / sizeof cap_names[0];
    printf("    native        ");
    print_bits(caps->bits & caps->native, cap_names, cap_count);
    if (caps->bits & ~caps->native) {
        printf("    emulated      ");
        print_bits(caps->bits & ~caps->native, cap_names, cap_count);
    }
    print_lacking(uri, ~caps->bits);
    for (int i = 0; i < 8 && caps->memory_types[i]; i++) {
        printf("    memory type   ");
        print_bits(caps->memory_types[i], memory_names,
                   sizeof memory_names / sizeof memory_names[0]);
    }
    printf("    queues        %s%spriorities %d to %d\n",
           caps->queue_families >> KEEL_QUEUE_COMPUTE & 1 ? "compute, " : "",
           caps->queue_families >> KEEL_QUEUE_TRANSFER & 1 ? "transfer, " : "", caps->min_priority,
           caps->max_priority);
    printf("    nodes         %u, %u workers\n", caps->nodes, caps->workers);
    printf("    dispatch      %u bindings, %u bytes of constants, %u of raw arguments, %" PRIu64
           " groups (at most %u x %u x %u of kernels made elsewhere)\n",
           caps->max_bindings, caps->max_constants, caps->max_arguments, caps->max_groups,
           caps->max_group_counts[0], caps->max_group_counts[1], caps->max_group_counts[2]);
    printf("    workgroup     %u work-items (at most %u x %u x %u), sub-groups of %u, %u bytes of "
           "local memory\n",
           caps->max_group_size, caps->max_group_sizes[0], caps->max_group_sizes[1],
           caps->max_group_sizes[2], caps->subgroup_size, caps->max_local_memory);
    printf("    recording     %u commands, %u blocks deep, %u slots\n", caps->max_commands,
           caps->max_depth, caps->max_slots);
    printf("    buffer        %" PRIu64 " bytes at most, aligned to %" PRIu64 "\n",
           caps->max_buffer_size, caps->buffer_alignment);
}

static void print_text(const char *what, const char *text)
{
    if (*text) printf("    %-13s %s\n", what, text);
}

// As URIs name a GPU. AMD's sixteen bytes are the characters of digits.
static void print_uuid(const uint8_t uuid[16])
{
    bool digits = true;
    for (int i = 0; i < 16; i++) digits = digits && isxdigit(uuid[i]);
    printf("    uuid          GPU-");
    for (int i = 0; i < 16; i++) {
        bool dash = i == 4 || i == 6 || i == 8 || i == 10;
        if (digits)
            putchar(uuid[i]);
        else
            printf("%s%02x", dash ? "-" : "", uuid[i]);
    }
    printf("\n");
}

static void print_info(const keel_device_info_t *info)
{
    print_text("vendor", info->vendor);
    print_text("driver", info->driver);
    print_text("interface", info->api);
    if (info->has_uuid) print_uuid(info->uuid);
    print_text("pci", info->pci);
    if (info->link) printf("    link          %.1f GB/s each way\n", (double)info->link / 1e9);
    if (info->has_numa_node) printf("    numa node     %u\n", info->numa_node);
    print_text("target", *info->target ? info->target : "any");
}

static void print_details(keel_device_t *device, const keel_memory_stats_t *memory)
{
    print_info(keel_device_info(device));
    print_caps(keel_device_info(device)->uri, keel_device_caps(device));
    printf("    memory        %" PRIu64 " MiB, %" PRIu64 " MiB free to use\n", memory->total >> 20,
           memory->budget >> 20);
}

// A device by URI, which need not be one that is listed; `name` may be NULL.
static int print_device(const char *uri, const char *name, bool verbose)
{
    keel_device_t *device = NULL;
    keel_memory_stats_t memory;
    keel_status_t status = NULL;
    if (verbose || !name) status = keel_device_open(uri, NULL, &device);
    if (device) status = keel_device_memory(device, &memory);
    if (!status || name)
        printf("%-20s  %s\n", uri, name ? name : keel_device_info(device)->hardware);
    if (!status && verbose) print_details(device, &memory);
    keel_device_release(device);
    return report(status);
}

static void print_log(void *user, keel_log_level_t level, const char *text)
{
    (void)user, (void)level;
    printf("%s\n", text);
}

static int print_devices(const char *driver, bool verbose)
{
    size_t count = 0, listed = 0;
    keel_device_listing_t *devices = NULL;
    if (verbose || driver) keel_log_set(print_log, NULL, KEEL_LOG_INFO); // why there are none
    keel_status_t status = keel_device_list(driver, NULL, 0, &count);
    keel_log_set(NULL, NULL, KEEL_LOG_INFO);
    if (!status) {
        devices = calloc(count + 1, sizeof *devices);
        if (!devices) status = KEEL_ERROR(KEEL_OUT_OF_MEMORY, "%zu devices", count);
    }
    if (!status) status = keel_device_list(driver, devices, count, &listed);
    int result = report(status);
    for (size_t i = 0; !result && i < listed && i < count; i++)
        result = print_device(devices[i].uri, devices[i].name, verbose);
    free(devices);
    return result;
}

int command_devices(int argc, char **argv)
{
    bool verbose = false;
    const char *which = NULL;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "-v") == 0) {
            verbose = true;
        } else if (argv[i][0] != '-' && !which) {
            which = argv[i];
        } else {
            fprintf(stderr, "usage: keel devices [-v] [DRIVER|URI]\n");
            return 2;
        }
    }
    return which && strstr(which, "://") ? print_device(which, NULL, verbose)
                                         : print_devices(which, verbose);
}
