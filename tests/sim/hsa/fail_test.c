// SPDX-License-Identifier: Apache-2.0
// fail_test LIBRARY REAL [leave]: the library that lets HSA fail has every function that the driver
// uses, forwards to the real one, counts, and lets the calls fail that it was told. Run on the
// software GPU (keel sim). With `leave` it ends with a signal, which the library should tell of.
#include <dlfcn.h>
#include <sched.h>
#include <stdatomic.h>

#include "drivers/amdgpu/host/base/symbols.h"
#include "sim/forward/fail.h"

static hsa_symbols_t hsa;
static const char *real;
static hsa_agent_t gpu;

static void symbols_find(void *library)
{
    void *found;
#define SYMBOL(type, name, parameters)                                                             \
    found = dlsym(library, #name);                                                                 \
    CHECK(found);                                                                                  \
    memcpy(&hsa.name, &found, sizeof found);
#define OPTIONAL SYMBOL
#include "drivers/amdgpu/host/base/symbols.def"
#undef OPTIONAL
#undef SYMBOL
}

static hsa_status_t agent_look(hsa_agent_t agent, void *data)
{
    hsa_device_type_t type = HSA_DEVICE_TYPE_CPU;
    (void)data;
    CHECK(!hsa.hsa_agent_get_info(agent, HSA_AGENT_INFO_DEVICE, &type));
    if (type == HSA_DEVICE_TYPE_GPU) gpu = agent;
    return HSA_STATUS_SUCCESS;
}

// Gives the library new rules, which it reads when it is asked for agents. What it has counted.
static counters_t counters_of(const char *rules)
{
    counters_t counters = rules_set("KEEL_SIM_HSA", real, rules);
    gpu.handle = 0;
    CHECK(!hsa.hsa_iterate_agents(agent_look, NULL));
    CHECK(gpu.handle);
    return counters;
}

static int signal_make(hsa_signal_t *signal)
{
    return (int)hsa.hsa_signal_create(1, 0, NULL, signal);
}

static void calls_fail(void)
{
    hsa_signal_t signals[3] = {{0}};
    CHECK(signal_make(&signals[0]) == 0);
    CHECK(signal_make(&signals[1]) == HSA_STATUS_ERROR_OUT_OF_RESOURCES);
    CHECK(signal_make(&signals[2]) == 0);
    CHECK(hsa.hsa_signal_load_scacquire(signals[2]) == 1); // not counted
    CHECK(!hsa.hsa_signal_destroy(signals[0]));
    CHECK(!hsa.hsa_signal_destroy(signals[2]));
}

static size_t (*left)(char *text, size_t size);

static void left_is(const char *wanted)
{
    char text[200];
    CHECK((left(text, sizeof text) == 0) == !*wanted);
    CHECK(!strcmp(text, wanted));
}

// What was made is told until it is given back, also by a call that fails.
static void things_are_counted(void)
{
    hsa_signal_t signals[3] = {{0}};
    void *address;
    char memory[64];
    left_is("");
    for (int i = 0; i < 3; i++) CHECK((signal_make(&signals[i]) != 0) == (i == 1));
    CHECK(!hsa.hsa_amd_memory_lock(memory, sizeof memory, NULL, 0, &address));
    left_is("signals 2 (since hsa_signal_create:1), locked ranges 1 (since hsa_amd_memory_lock:1)");
    CHECK(!hsa.hsa_signal_destroy(signals[0]));
    CHECK(!hsa.hsa_amd_memory_unlock(memory));
    left_is("signals 1 (since hsa_signal_create:3)");
    (void)counters_of(",fail=hsa_signal_destroy:1");
    CHECK(hsa.hsa_signal_destroy(signals[2]) == HSA_STATUS_ERROR);
    left_is("");
}

static void note(hsa_status_t status, hsa_queue_t *queue, void *data)
{
    (void)queue;
    atomic_store((_Atomic int *)data, (int)status);
}

static hsa_queue_t *queue_make(_Atomic int *told)
{
    hsa_queue_t *queue = NULL;
    CHECK(!hsa.hsa_queue_create(gpu, 64, HSA_QUEUE_TYPE_MULTI, note, told, UINT32_MAX, UINT32_MAX,
                                &queue));
    return queue;
}

// Who has a queue is told; one that is gone is not.
static void device_is_lost(void)
{
    _Atomic int told = 0, before = 0;
    hsa_signal_t signal;
    hsa_queue_t *queue = queue_make(&told), *gone = queue_make(&before);
    CHECK(!hsa.hsa_queue_destroy(gone));
    CHECK(signal_make(&signal) == HSA_STATUS_ERROR);
    while (!atomic_load(&told)) sched_yield();
    CHECK(atomic_load(&told) == HSA_STATUS_ERROR);
    CHECK(signal_make(&signal) == HSA_STATUS_ERROR);
    CHECK(hsa.hsa_queue_destroy(queue) == HSA_STATUS_ERROR); // and it is gone
    CHECK(!atomic_load(&before));
}

int main(int count, char **words)
{
    hsa_signal_t signal;
    if (count < 3) return 2;
    real = words[2];
    counters_open();
    rules_set("KEEL_SIM_HSA", real, "");
    void *library = dlopen(words[1], RTLD_NOW);
    if (!library) return 2;
    symbols_find(library);
    void *found = dlsym(library, "keel_sim_left");
    memcpy(&left, &found, sizeof left);
    if (failures || !left || hsa.hsa_init()) return 2;
    if (count > 3) return signal_make(&signal);
    (void)counters_of(",fail=hsa_signal_create:2");
    things_are_counted();
    (void)counters_of(",fail=hsa_signal_create:2:4104");
    calls_fail();
    counters_t seen = counters_of(",lose=hsa_signal_create:1");
    CHECK(seen.hit == 1);
    CHECK(counted(&seen, "hsa_signal_create") == 3);
    CHECK(counted(&seen, "hsa_signal_destroy") == 2);
    CHECK(counted(&seen, "hsa_signal_load_scacquire") == 0);
    device_is_lost();
    (void)counters_of(",fail=hsa_signal_create:2"); // with other rules it is there again
    CHECK(signal_make(&signal) == 0);
    CHECK(!hsa.hsa_signal_destroy(signal));
    return failures != 0;
}
