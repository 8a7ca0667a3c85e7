// SPDX-License-Identifier: Apache-2.0
#include "capture/hsa/kernels.h"

#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "capture/names.h"
#include "trace/name.h"

static names_t names;

static const void *object_address(uint64_t object)
{
    return (const void *)(uintptr_t)object;
}

// The symbol of a kernel is that of its descriptor, NAME.kd.
static void suffix_cut(char *name)
{
    size_t length = strlen(name);
    if (length > 3 && strcmp(name + length - 3, ".kd") == 0) name[length - 3] = 0;
}

static hsa_status_t symbol_seen(hsa_executable_t executable, hsa_symbol_t symbol, void *data)
{
    uint32_t type = 0, length = 0;
    uint64_t object = 0;
    if (hsa.executable_symbol_get_info(symbol, HSA_SYMBOL_TYPE, &type) != 0 ||
        type != HSA_SYMBOL_IS_KERNEL ||
        hsa.executable_symbol_get_info(symbol, HSA_SYMBOL_NAME_LENGTH, &length) != 0 ||
        hsa.executable_symbol_get_info(symbol, HSA_SYMBOL_KERNEL_OBJECT, &object) != 0)
        return 0;
    char *name = mem_zalloc((size_t)length + 1);
    if (!name) return 0;
    if (hsa.executable_symbol_get_info(symbol, HSA_SYMBOL_NAME, name) == 0) {
        suffix_cut(name);
        names_put(&names, object_address(object), NULL, trace_name(name));
    }
    mem_free(name);
    return 0;
}

hsa_status_t kernels_freeze(hsa_executable_t executable, const char *options)
{
    hsa_status_t status = hsa.executable_freeze(executable, options);
    if (status == 0) hsa.executable_iterate_symbols(executable, symbol_seen, NULL);
    return status;
}

// A kernel that no code object told of is named by its address.
__attribute__((noinline)) static uint32_t name_make(uint64_t object)
{
    char text[32];
    snprintf(text, sizeof text, "kernel 0x%llx", (unsigned long long)object);
    return trace_name(text);
}

uint32_t kernels_name(uint64_t object)
{
    uint32_t number = names_get(&names, object_address(object));
    return number ? number : name_make(object);
}
