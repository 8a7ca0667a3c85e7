// SPDX-License-Identifier: Apache-2.0
#include <stdlib.h>
#include <string.h>

#include "tools/inspect/inspect.h"

const char *param_kind_word(keel_param_kind_t kind)
{
    static const char *const words[KEEL_PARAM_KINDS] = {
        [KEEL_PARAM_UNSAID] = "",         [KEEL_PARAM_VALUE] = "value",
        [KEEL_PARAM_POINTER] = "pointer", [KEEL_PARAM_LOCAL] = "local",
        [KEEL_PARAM_OPAQUE] = "opaque",   [KEEL_PARAM_HIDDEN] = "hidden",
    };
    return words[kind];
}

// The number in "nvptx:sm_90a"; 0 if there is none.
static unsigned compute_of(const char *target)
{
    return strncmp(target, "nvptx:sm_", 9) ? 0 : (unsigned)strtoul(target + 9, NULL, 10);
}

// Compute capabilities: translated code runs on that GPU and later ones, machine code on that one
// and later ones of its generation; "a" binds either to that very one, "f" to its family.
static void cuda_devices(const char *target, bool translated, char *text, size_t size)
{
    unsigned number = compute_of(target), major = number / 10, minor = number % 10;
    char letter = target[0] ? target[strlen(target) - 1] : 0;
    if (!number)
        snprintf(text, size, "CUDA in software");
    else if (letter == 'a')
        snprintf(text, size, "NVIDIA %u.%u only", major, minor);
    else if (translated && letter != 'f')
        snprintf(text, size, "NVIDIA %u.%u and later", major, minor);
    else
        snprintf(text, size, "NVIDIA %u.%u to %u.x", major, minor, major);
}

// Of "aarch64-linux:sve".
static void host_devices(const char *target, char *text, size_t size)
{
    const char *level = strchr(target, ':');
    snprintf(text, size, "%.*s processors%s%s", (int)strcspn(target, "-"), target,
             level ? " with " : "", level ? level + 1 : "");
}

void image_devices(const keel_image_info_t *image, char *text, size_t size)
{
    const char *target = image->target;
    text[0] = 0;
    switch (image->kind) {
    case KEEL_IMAGE_HOST:
        if (!strncmp(target, "nvptx:", 6))
            cuda_devices(target, true, text, size);
        else
            host_devices(target, text, size);
        break;
    case KEEL_IMAGE_PTX: cuda_devices(target, true, text, size); break;
    case KEEL_IMAGE_CUBIN: cuda_devices(target, false, text, size); break;
    case KEEL_IMAGE_HSACO: snprintf(text, size, "AMD %s", target); break;
    case KEEL_IMAGE_SPIRV: // kernels of OpenCL take parameters, and no device of Keel's takes those
        if (!image->entry_count || !image->entries[0].param_count)
            snprintf(text, size, "Vulkan devices");
        break;
    case KEEL_IMAGE_MSL:
    case KEEL_IMAGE_METALLIB: snprintf(text, size, "Metal devices"); break;
    default: break;
    }
}
