// SPDX-License-Identifier: Apache-2.0
// weak_test ROUNDS FILE...: the kernels of litmus.c on weak memory. Right ones give the right
// result in every round; of each wrong one the mistake is seen in some round. Everything runs on
// one thread, so that the same rounds happen each time.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/amd/bench/device.h"
#include "sim/amd/map.h"

// Words of the shared memory, as litmus.c has them.
enum { X = 0, OUT = 192, TURNS = 20, BYTES = 16384, OTHER_NODE = DEVICE_NODE + 1 };

static uint32_t *shared;

static bool message_good(void)
{
    return shared[OUT] == 42;
}

static bool stores_good(void)
{
    return (shared[OUT] | shared[OUT + 64]) == (1u << TURNS) - 1;
}

static bool loads_good(void)
{
    return !(shared[OUT] & shared[OUT + 64]);
}

static bool queue_good(void)
{
    return shared[OUT] == 0;
}

static bool lock_good(void)
{
    return shared[X] == 2 * TURNS;
}

typedef struct {
    const char *name;
    bool (*good)(void);
    bool paired; // a release on one side and an acquire on the other, not one fence
    gfx_t since; // the first GPU that has it
} kind_t;

static const kind_t kinds[] = {
    {"message", message_good, true, GFX900}, {"copied", message_good, true, GFX942},
    {"queue", queue_good, true, GFX900},     {"lock", lock_good, true, GFX900},
    {"stores", stores_good, false, GFX900},  {"loads", loads_good, false, GFX900},
};

// How a kernel is run: its two sides in one workgroup or in two; whether that is right.
typedef struct {
    const char *name;
    unsigned groups;
    bool paired, single; // exists in kinds of the one sort, of the other
    bool right;
} variant_t;

static const variant_t variants[] = {
    {"workgroup", 1, true, true, true},
    {"agent", 2, true, true, true},
    {"system", 2, true, true, true},
    {"workgroup", 2, true, true, false},
    {"unreleased", 2, true, false, false},
    {"unacquired", 2, true, false, false},
    {"unreleased_system", 2, true, false, false},
    {"unacquired_system", 2, true, false, false},
    {"unfenced", 2, false, true, false},
    {"unfenced_system", 2, false, true, false},
};

// A host that has the waves stopped now and then; they go on in whatever unit there is.
static bool ask(void *user)
{
    unsigned *asked = user;
    return ++*asked % 8 == 0;
}

static void pass(void *user) {}

static unsigned asked;
static const isa_host_t restless = {.enter = pass, .leave = pass, .asked = ask, .user = &asked};

static isa_t *isa_make(gfx_t gfx, unsigned node, uint64_t seed, const isa_host_t *host)
{
    isa_t *isa = isa_create(gfx, node, host);
    isa_shuffle(isa, seed);
    if (isa_weak(isa, seed)) return isa;
    fprintf(stderr, "memory is short\n");
    exit(1);
}

// A dispatch by itself: its packet acquires and releases all there is.
static void run_alone(isa_t *isa, uint64_t kernel, unsigned groups)
{
    node_acquire(DEVICE_NODE, SCOPE_SYSTEM);
    if (!device_run(isa, kernel, groups, 128 / groups, &shared, sizeof shared)) {
        fprintf(stderr, "%s\n", isa_fault(isa)->text);
        exit(1);
    }
    node_release(DEVICE_NODE, SCOPE_SYSTEM);
}

// The first round that went wrong, from 1 on; 0: none. Ends the interpreter.
static unsigned first_wrong(isa_t *isa, uint64_t kernel, const kind_t *kind, unsigned groups,
                            unsigned rounds)
{
    unsigned wrong = 0;
    for (unsigned round = 1; round <= rounds && !wrong; round++) {
        memset(shared, 0, BYTES);
        run_alone(isa, kernel, groups);
        if (!kind->good()) wrong = round;
    }
    isa_destroy(isa);
    return wrong;
}

static unsigned litmus(gfx_t gfx, const module_t *module, const kind_t *kind,
                       const variant_t *variant, unsigned rounds)
{
    char name[64];
    if (gfx < kind->since || !(kind->paired ? variant->paired : variant->single)) return 0;
    snprintf(name, sizeof name, "%s_%s.kd", kind->name, variant->name);
    uint64_t kernel = module_symbol(module, name);
    unsigned wrong =
        first_wrong(isa_make(gfx, DEVICE_NODE, 1, NULL), kernel, kind, variant->groups, rounds);
    bool good = variant->right == !wrong;
    printf("%s %s, %u workgroups: %s%u%s\n", gfx_name(gfx), name, variant->groups,
           wrong ? "the mistake is seen in round " : "right in ", wrong ? wrong : rounds,
           good ? "" : " FAILED");
    if (!variant->right) return !good;
    wrong = first_wrong(isa_make(gfx, DEVICE_NODE, 1, &restless), kernel, kind, variant->groups,
                        rounds);
    if (wrong) printf("%s %s, switched out: round %u FAILED\n", gfx_name(gfx), name, wrong);
    return !good + (wrong != 0);
}

typedef struct {
    isa_t *from, *to;
} pair_t;

// One GPU has read a word that another then writes; what it reads afterwards, with the fences of
// these kernels and no packet's.
static uint32_t across(const pair_t *pair, const module_t *module, const char *scope)
{
    char put[32], get[32];
    snprintf(put, sizeof put, "put_%s.kd", scope);
    snprintf(get, sizeof get, "get_%s.kd", scope);
    memset(shared, 0, BYTES);
    node_acquire(DEVICE_NODE, SCOPE_SYSTEM);
    node_acquire(OTHER_NODE, SCOPE_SYSTEM);
    const struct {
        isa_t *isa;
        const char *name;
    } steps[] = {{pair->to, get}, {pair->from, put}, {pair->to, get}};
    for (unsigned k = 0; k < 3; k++) {
        uint64_t kernel = module_symbol(module, steps[k].name);
        if (!device_run(steps[k].isa, kernel, 1, 64, &shared, sizeof shared)) exit(1);
    }
    node_release(OTHER_NODE, SCOPE_SYSTEM);
    return shared[OUT + 64];
}

// Coarse-grained memory of the host: fences at agent scope leave it in the L2 of each GPU.
static unsigned between_gpus(gfx_t gfx, const module_t *module)
{
    uint32_t *fine = shared;
    shared = device_alloc(BYTES);
    map_coarse((uint64_t)(uintptr_t)shared, 0);
    const pair_t pair = {isa_make(gfx, DEVICE_NODE, 1, NULL), isa_make(gfx, OTHER_NODE, 2, NULL)};
    uint32_t right = across(&pair, module, "system"), wrong = across(&pair, module, "agent");
    isa_destroy(pair.from);
    isa_destroy(pair.to);
    device_free(shared);
    shared = fine;
    printf("between GPUs: %u with fences at system scope, %u at agent scope\n", right, wrong);
    return right != 42 || wrong == 42;
}

static unsigned file_run(const char *path, unsigned rounds)
{
    const char *file = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
    gfx_t gfx = gfx_parse(file, strcspn(file, "-"));
    unsigned bad = 0;
    if (gfx == GFX_COUNT) return 1;
    module_t module = module_load(path);
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        for (size_t n = 0; n < sizeof variants / sizeof *variants; n++) {
            bad += litmus(gfx, &module, &kinds[k], &variants[n], rounds);
        }
    }
    if (gfx >= GFX90A) bad += between_gpus(gfx, &module); // before, only packets reach so far
    module_unload(&module);
    return bad;
}

int main(int argc, char **argv)
{
    unsigned bad = 0, rounds = argc > 2 ? (unsigned)atoi(argv[1]) : 0;
    if (!rounds) return 2;
    shared = device_alloc(BYTES);
    for (int k = 2; k < argc; k++) bad += file_run(argv[k], rounds);
    device_free(shared);
    printf("%u wrong\n", bad);
    return bad != 0;
}
