// SPDX-License-Identifier: Apache-2.0
#include "cuda/variant.h"

#include "cuda/base.h"

#include <string.h>

// What goes with a feature: functions by their names, or by how these begin (with a star), and one
// attribute; 0: none.
static const struct {
    const char *word;
    CUdevice_attribute attribute;
    const char *functions[8];
} features[] = {
    {"graphs", 0, {"cuGraph*"}},
    {"conditional", 0, {"cuGraphAddNode", "cuGraphConditionalHandleCreate"}},
    {"updatable", 0, {"cuGraphKernelNodeSetAttribute"}},
    {"upload", 0, {"cuGraphUpload"}},
    {"pools",
     CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED,
     {"cuMemPool*", "cuMemAllocFromPoolAsync", "cuMemAllocAsync", "cuMemFreeAsync"}},
    {"managed", CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS, {"cuMemAllocManaged"}},
    {"shared",
     CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED,
     {"cuMemCreate", "cuMemExportToShareableHandle", "cuMemImportFromShareableHandle"}},
    {"outside",
     CU_DEVICE_ATTRIBUTE_TIMELINE_SEMAPHORE_INTEROP_SUPPORTED,
     {"cuImportExternalSemaphore", "cuSignalExternalSemaphoresAsync",
      "cuWaitExternalSemaphoresAsync", "cuDestroyExternalSemaphore"}},
    {"arguments", 0, {"cuFuncGetParamInfo"}},
    {"peers", 0, {"cuMemcpyPeerAsync", "cuCtxEnablePeerAccess"}},
};
enum { FEATURES = sizeof features / sizeof *features };

static const char *const quirks[] = {"roomy", "prompt", "rigid", "early"};

static bool word_read(const char *word, unsigned *bits)
{
    for (unsigned i = 0; i < FEATURES; i++) {
        if (strcmp(features[i].word, word) != 0) continue;
        *bits |= 1u << i;
        return true;
    }
    return false;
}

bool without_read(char *words, unsigned *bits)
{
    char *rest = NULL, *word = strtok_r(words, "+", &rest);
    if (!word) return false;
    for (; word; word = strtok_r(NULL, "+", &rest))
        if (!word_read(word, bits)) return false;
    return true;
}

bool quirk_read(char *words, unsigned *bits)
{
    char *rest = NULL, *word = strtok_r(words, "+", &rest);
    if (!word) return false;
    for (; word; word = strtok_r(NULL, "+", &rest)) {
        unsigned i = 0, count = sizeof quirks / sizeof *quirks;
        while (i < count && strcmp(quirks[i], word) != 0) i++;
        if (i == count) return false;
        *bits |= 1u << i;
    }
    return true;
}

static bool names(const char *pattern, const char *name)
{
    size_t length = strlen(pattern);
    return pattern[length - 1] == '*' ? strncmp(pattern, name, length - 1) == 0
                                      : strcmp(pattern, name) == 0;
}

bool symbol_is_missing(const char *name)
{
    for (unsigned i = 0; i < FEATURES; i++) {
        if (!(settings()->without >> i & 1)) continue;
        for (const char *const *f = features[i].functions; *f; f++)
            if (names(*f, name)) return true;
    }
    return false;
}

bool attribute_is_missing(CUdevice_attribute attribute)
{
    for (unsigned i = 0; i < FEATURES; i++)
        if (settings()->without >> i & 1 && features[i].attribute == attribute) return true;
    return false;
}

bool has_quirk(quirk_t quirk)
{
    return settings()->quirks & quirk;
}
