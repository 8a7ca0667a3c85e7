// SPDX-License-Identifier: Apache-2.0
// Memory of the host that GPUs use where it is: requests as ROCm makes them, against a model that
// knows each page by itself.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "sim/amd/kfd/kfd.h"
#include "sim/amd/map.h"

enum { NODE = NODE_FIRST_GPU, GPU = GPU_ID + NODE, PAGE = 4096, PAGES = 48, ROUNDS = 4000 };

static void check(bool good, const char *what, int line)
{
    if (good) return;
    fprintf(stderr, "line %d: not true: %s\n", line, what);
    exit(1);
}
#define CHECK(condition) check((condition), #condition, __LINE__)

static uint8_t *pages; // PAGES of them

static uint64_t address_of(unsigned page)
{
    return (uint64_t)(uintptr_t)pages + (uint64_t)page * PAGE;
}

// A request (kfd_svm_t) with room for four attributes.
typedef struct {
    uint64_t start_addr, size;
    uint32_t op, nattr;
    kfd_svm_attribute_t attributes[4];
} request_t;

static int ask(request_t *request)
{
    return kfd_request(KFD_SVM, request, sizeof *request);
}

// The error of setting one attribute.
static int set(unsigned page, unsigned count, uint32_t type, uint32_t value)
{
    request_t r = {address_of(page), (uint64_t)count * PAGE, KFD_SVM_SET, 1, {{type, value}}};
    return ask(&r);
}

// An attribute as it is told.
static kfd_svm_attribute_t get(unsigned page, unsigned count, uint32_t type, uint32_t value)
{
    request_t r = {address_of(page), (uint64_t)count * PAGE, KFD_SVM_GET, 1, {{type, value}}};
    CHECK(!ask(&r));
    return r.attributes[0];
}

static bool is_seen(unsigned page, unsigned count)
{
    void *bytes = map_bytes(address_of(page), (uint64_t)count * PAGE, NODE);
    CHECK(!bytes || bytes == pages + (size_t)page * PAGE);
    return bytes;
}

static void refusals(void)
{
    request_t r = {address_of(0) + 1, PAGE, KFD_SVM_SET, 1, {{KFD_SVM_ACCESS, GPU}}};
    CHECK(ask(&r) == -EINVAL);
    r.start_addr = address_of(0);
    r.size = 0;
    CHECK(ask(&r) == -EINVAL);
    r.size = PAGE;
    r.op = 2;
    CHECK(ask(&r) == -EINVAL);
    r.op = KFD_SVM_SET;
    r.nattr = 5; // more than the request has
    CHECK(ask(&r) == -EINVAL);
    CHECK(kfd_request(KFD_SVM, &r, 8) == -EINVAL);
    CHECK(set(0, 1, KFD_SVM_ACCESS, GPU + 1) == -EINVAL); // no such GPU
    CHECK(set(0, 1, KFD_SVM_PREFERRED, GPU + 1) == -EINVAL);
    CHECK(set(0, 1, KFD_SVM_PREFETCH, KFD_SVM_ANYWHERE) == -EINVAL);
    CHECK(set(0, 1, KFD_SVM_GRANULARITY + 1, 0) == -EINVAL);
    CHECK(!is_seen(0, 1));
    CHECK(!munmap(pages + 5 * PAGE, PAGE)); // a hole
    CHECK(set(4, 2, KFD_SVM_ACCESS, GPU) == -EFAULT);
    CHECK(mmap(pages + 5 * PAGE, PAGE, PROT_READ | PROT_WRITE,
               MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != MAP_FAILED);
}

// A buffer of the driver and a range of this kind do not share addresses.
static void in_the_way(void)
{
    kfd_alloc_memory_t alloc = {address_of(8), PAGE, 0, address_of(8), GPU, KFD_MEM_USERPTR};
    kfd_free_memory_t freed;
    CHECK(!kfd_request(KFD_ALLOC_MEMORY_OF_GPU, &alloc, sizeof alloc));
    CHECK(set(7, 3, KFD_SVM_ACCESS, GPU) == -EADDRINUSE);
    CHECK(!is_seen(7, 1));
    freed.handle = alloc.handle;
    CHECK(!kfd_request(KFD_FREE_MEMORY_OF_GPU, &freed, sizeof freed));
    CHECK(!set(7, 3, KFD_SVM_ACCESS, GPU) && is_seen(7, 3));
    CHECK(kfd_request(KFD_ALLOC_MEMORY_OF_GPU, &alloc, sizeof alloc) == -EADDRINUSE);
    alloc.va_addr = address_of(20); // the memory itself is in the way then
    CHECK(kfd_request(KFD_ALLOC_MEMORY_OF_GPU, &alloc, sizeof alloc) == -EADDRINUSE);
    svm_drop(pages, PAGES * PAGE);
    CHECK(!is_seen(8, 1));
}

static void common_attributes(void)
{
    CHECK(get(0, 4, KFD_SVM_PREFERRED, 0).value == KFD_SVM_ANYWHERE);
    CHECK(get(0, 4, KFD_SVM_SET_FLAGS, 0).value == (KFD_SVM_HOST_ACCESS | KFD_SVM_COHERENT));
    CHECK(get(0, 4, KFD_SVM_ACCESS, GPU).type == KFD_SVM_NO_ACCESS);
    CHECK(!set(0, 4, KFD_SVM_PREFERRED, GPU) && !set(2, 1, KFD_SVM_PREFERRED, KFD_SVM_HOST));
    CHECK(get(0, 2, KFD_SVM_PREFERRED, 0).value == GPU);
    CHECK(get(1, 3, KFD_SVM_PREFERRED, 0).value == KFD_SVM_ANYWHERE);
    CHECK(!set(3, 1, KFD_SVM_CLEAR_FLAGS, KFD_SVM_COHERENT));
    CHECK(get(2, 2, KFD_SVM_SET_FLAGS, 0).value == KFD_SVM_HOST_ACCESS); // that all have
    CHECK(get(2, 2, KFD_SVM_CLEAR_FLAGS, 0).value == ~3u);               // that none has
    CHECK(!set(1, 1, KFD_SVM_GRANULARITY, 5) && get(0, 4, KFD_SVM_GRANULARITY, 0).value == 5);
    CHECK(!set(0, 1, KFD_SVM_ACCESS, GPU) && !set(1, 1, KFD_SVM_IN_PLACE, GPU));
    CHECK(get(0, 1, KFD_SVM_NO_ACCESS, GPU).type == KFD_SVM_ACCESS);
    CHECK(get(1, 1, KFD_SVM_NO_ACCESS, GPU).type == KFD_SVM_IN_PLACE);
    CHECK(get(0, 3, KFD_SVM_ACCESS, GPU).type == KFD_SVM_NO_ACCESS);
    svm_drop(pages, PAGES * PAGE);
}

// What a GPU sees, page by page: 0 nothing, 1 fine-grained memory, 2 coarse-grained.
static unsigned seen_at(unsigned page)
{
    span_t span;
    if (!is_seen(page, 1)) return 0;
    CHECK(map_find(address_of(page), 0, &span));
    return span.coarse ? 2 : 1;
}

// Random requests and unmappings of random pages.
static void against_the_model(void)
{
    struct {
        bool access, coarse;
    } model[PAGES] = {0};
    uint64_t random = 88172645463325252;
    for (unsigned round = 0; round < ROUNDS; round++) {
        unsigned first = (unsigned)random_below(&random, PAGES);
        unsigned count = 1 + (unsigned)random_below(&random, PAGES - first);
        unsigned what = (unsigned)random_below(&random, 5);
        static const uint32_t types[] = {KFD_SVM_ACCESS, KFD_SVM_NO_ACCESS, KFD_SVM_SET_FLAGS,
                                         KFD_SVM_CLEAR_FLAGS};
        if (what == 4) {
            svm_drop(pages + (size_t)first * PAGE, (uint64_t)count * PAGE);
        } else {
            CHECK(!set(first, count, types[what], what < 2 ? (uint32_t)GPU : KFD_SVM_COHERENT));
        }
        for (unsigned k = first; k < first + count; k++) {
            if (what == 0) model[k].access = true;
            if (what == 1 || what == 4) model[k].access = false;
            if (what == 2 || what == 4) model[k].coarse = false;
            if (what == 3) model[k].coarse = true;
        }
        for (unsigned k = 0; k < PAGES; k++) {
            CHECK(seen_at(k) == (!model[k].access ? 0u : model[k].coarse ? 2u : 1u));
        }
    }
    CHECK(!set(0, PAGES, KFD_SVM_SET_FLAGS, KFD_SVM_COHERENT));
    CHECK(!set(0, PAGES, KFD_SVM_ACCESS, GPU));
    CHECK(is_seen(0, PAGES)); // as one
}

int main(void)
{
    pages = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(pages != MAP_FAILED && gpu_count() == 1 && sim_settings()->svm);
    refusals();
    in_the_way();
    common_attributes();
    against_the_model();
    printf("done\n");
    return 0;
}
