// SPDX-License-Identifier: Apache-2.0
#include "capture/hsa/table.h"

#include "base/log.h"

hsa_functions_t hsa;

// AMD's own table, by what it says of itself. Versions 1 between ROCm 5.2 and 6 had functions put
// into the middle with the number unchanged, so that the size must be one that is known.
typedef struct layout_t {
    uint32_t major, least, most; // bytes
} layout_t;
static const layout_t layouts[] = {{1, 400, 400}, {2, 16 + 8 * 41, UINT32_MAX}};
enum { LAYOUTS = sizeof layouts / sizeof *layouts };

static int layout_find(const hsa_tables_t *tables)
{
    hsa_version_t core = tables->core->version, amd = tables->amd->version;
    enum { CORE_SIZE = 16 + 8 * 125 };
    for (int i = 0; i < LAYOUTS; i++) {
        const layout_t *layout = &layouts[i];
        if (core.major == layout->major && core.size >= CORE_SIZE && amd.major == layout->major &&
            amd.size >= layout->least && amd.size <= layout->most)
            return i;
    }
    log_say(KEEL_LOG_WARNING,
            "GPUs are not traced: the tables of this ROCm runtime have the versions %u (%u bytes) "
            "and %u (%u bytes); known are 1 (1016) and 1 (400), and 2 and 2",
            core.major, core.size, amd.major, amd.size);
    return -1;
}

bool table_read(const hsa_tables_t *tables)
{
    int layout = layout_find(tables);
    if (layout < 0) return false;
#define CORE(slot, result, name, parameters)                                                       \
    hsa.name = (result(*) parameters)tables->core->slots[slot];
#define AMD(first, second, result, name, parameters)                                               \
    {                                                                                              \
        int slot = layout == 0 ? (first) : (second);                                               \
        hsa.name = slot < 0 ? NULL : (result(*) parameters)tables->amd->slots[slot];               \
    }
#include "capture/hsa/functions.def"
#undef CORE
#undef AMD
    return true;
}

void table_replace(hsa_tables_t *tables, const hsa_functions_t *ours)
{
    int layout = layout_find(tables);
    if (layout < 0) return;
#define CORE(slot, result, name, parameters)                                                       \
    if (ours->name) tables->core->slots[slot] = (hsa_fn)ours->name;
#define AMD(first, second, result, name, parameters)                                               \
    {                                                                                              \
        int slot = layout == 0 ? (first) : (second);                                               \
        if (ours->name && slot >= 0) tables->amd->slots[slot] = (hsa_fn)ours->name;                \
    }
#include "capture/hsa/functions.def"
#undef CORE
#undef AMD
}
