// SPDX-License-Identifier: Apache-2.0
// HIP's own table of functions. A HIP that was built with rocprofiler-register hands it over when
// it is used for the first time, by the functions here, if the program can see them. All calls go
// through that table, whichever way the program has found HIP's functions.
#include <dlfcn.h>
#include <stdbool.h>
#include <string.h>

#include "base/log.h"
#include "capture/hip/real.h"
#include "capture/library.h"
#include "capture/mode.h"
#include "trace/trace.h"

#define EXPORT __attribute__((visibility("default")))

typedef struct table_t {
    size_t size; // bytes, itself included
    hip_fn slots[];
} table_t;

typedef struct slot_t {
    uint16_t place, index; // hip_index_t
} slot_t;

static const slot_t slots[] = {
#define SLOT(place, name) {place, HIP_##name},
#include "capture/hip/slots.def"
#include "capture/hip/slots7.def"
#undef SLOT
};
static const slot_t compiler_slots[] = {{3, HIP___hipRegisterFunction}};

typedef int (*set_table_fn)(const char *name, uint64_t version, uint64_t instance, void **tables,
                            uint64_t count);

// rocprofiler-register calls the second one only if the first one is there. rocprofiler itself, if
// it is in the process, asks the first one what it is to do: nothing.
EXPORT void *rocprofiler_configure(uint32_t version, const char *text, uint32_t priority, void *id);
EXPORT int rocprofiler_set_api_table(const char *name, uint64_t version, uint64_t instance,
                                     void **tables, uint64_t count);

void *rocprofiler_configure(uint32_t version, const char *text, uint32_t priority, void *id)
{
    (void)version, (void)text, (void)priority, (void)id;
    return NULL;
}

// Ours calls the table's function from now on: that which HIP exports would call ours again.
static void slots_replace(table_t *table, const slot_t *list, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (sizeof *table + (list[i].place + 1) * sizeof(hip_fn) > table->size) continue;
        hip_fn *slot = &table->slots[list[i].place];
        if (!*slot) continue;
        atomic_store(&hip_reals[list[i].index], *slot);
        *slot = hip_ours[list[i].index];
    }
}

// One HIP of a process: our functions know one real function each.
static _Atomic bool has_table, has_compiler_table;

bool hip_has_table(void)
{
    return atomic_load(&has_table);
}

static bool table_take(const char *name, uint64_t version, table_t *table)
{
    enum { OLDEST = 60000, TOO_NEW = 80000 }; // 10000 times the major version
    bool compiler = strcmp(name, "hip_compiler") == 0;
    if ((!compiler && strcmp(name, "hip") != 0) || !trace_is_on() || !capture_mode()->calls)
        return false;
    if (version < OLDEST || version >= TOO_NEW) {
        log_say(KEEL_LOG_WARNING,
                "the table of HIP %u is left as it is: known are those of 6 and 7",
                (unsigned)version);
        return false;
    }
    if (atomic_exchange(compiler ? &has_compiler_table : &has_table, true)) {
        log_say(KEEL_LOG_WARNING, "there is a second HIP in the process, which is not traced");
        return false;
    }
    if (compiler)
        slots_replace(table, compiler_slots, sizeof compiler_slots / sizeof *compiler_slots);
    else
        slots_replace(table, slots, sizeof slots / sizeof *slots);
    return true;
}

// Tables go on to rocprofiler, if that is there. It fails for those that neither takes: ROCR loads
// no tools if this succeeds for its own tables.
int rocprofiler_set_api_table(const char *name, uint64_t version, uint64_t instance, void **tables,
                              uint64_t count)
{
    int result = -1;
    dlsym_find();
    set_table_fn next =
        dlsym_real ? (set_table_fn)dlsym_real(RTLD_NEXT, "rocprofiler_set_api_table") : NULL;
    if (next) result = next(name, version, instance, tables, count);
    if (count && table_take(name, version, tables[0])) result = 0;
    return result;
}
