// SPDX-License-Identifier: Apache-2.0
// Memory of the host that GPUs use where it is, at the host's addresses (SVM). The kernel keeps
// attributes for ranges of pages, from the first request until the pages are unmapped, and nothing
// gives them back before. ROCm locks memory of the host so, where the kernel can, and HIP has its
// managed memory from it.
//
// GPUs here do not repeat what they have faulted on (XNACK): they use only what they were given
// access to. The pages never move to a GPU: where they are to be is stored, and told when asked.
//
// What the C library unmaps by itself (free) is not noticed before others have the addresses.
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "amd/kfd/kfd.h"
#include "amd/map.h"

typedef struct {
    uint64_t begin, end;
    uint64_t access, in_place; // bit n: node n may use it; it is not to be moved for that
    uint32_t flags, preferred, prefetch, granularity;
} range_t;

enum { RANGE_MAX = 1 << 16, PAGE = 4096, GRANULARITY_MAX = 63 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; // outside of the map's
static range_t ranges[RANGE_MAX];                        // sorted, disjoint; under the lock
static _Atomic size_t range_count; // written under the lock; read without, to see whether it is 0

// As the kernel begins them.
static const range_t usual = {.flags = KFD_SVM_HOST_ACCESS | KFD_SVM_COHERENT,
                              .preferred = KFD_SVM_ANYWHERE,
                              .prefetch = KFD_SVM_ANYWHERE,
                              .granularity = 9};

// The index of the first range that ends after the address.
static size_t range_index(uint64_t address)
{
    size_t low = 0, high = range_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (ranges[middle].end <= address) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static void range_insert(size_t index, range_t range)
{
    memmove(ranges + index + 1, ranges + index, (range_count - index) * sizeof *ranges);
    ranges[index] = range;
    range_count++;
}

static void ranges_remove(size_t first, size_t end)
{
    memmove(ranges + first, ranges + end, (range_count - end) * sizeof *ranges);
    range_count -= end - first;
}

// Lets a range begin at an address, if one is around it.
static void range_split(uint64_t address)
{
    size_t index = range_index(address);
    if (index == range_count || ranges[index].begin >= address) return;
    range_insert(index, ranges[index]);
    ranges[index].end = ranges[index + 1].begin = address;
}

// Makes ranges where there are none.
static void gaps_fill(uint64_t begin, uint64_t end)
{
    for (size_t k = range_index(begin); begin < end; k++) {
        uint64_t gap_end = k < range_count && ranges[k].begin < end ? ranges[k].begin : end;
        if (begin < gap_end) {
            range_insert(k, usual);
            ranges[k].begin = begin;
            ranges[k].end = gap_end;
        }
        begin = ranges[k].end;
    }
}

static bool is_alike(const range_t *a, const range_t *b)
{
    return a->access == b->access && a->in_place == b->in_place && a->flags == b->flags &&
           a->preferred == b->preferred && a->prefetch == b->prefetch &&
           a->granularity == b->granularity;
}

// Widens an area to the ends of the ranges that reach beyond it.
static void area_widen(uint64_t *begin, uint64_t *end)
{
    size_t first = range_index(*begin), last = range_index(*end);
    if (first < range_count && ranges[first].begin < *begin) *begin = ranges[first].begin;
    if (last < range_count && ranges[last].begin < *end) *end = ranges[last].end;
}

// Makes one range of neighbours that are alike, in an area and around it.
static void neighbours_merge(uint64_t begin, uint64_t end)
{
    size_t k = range_index(begin);
    if (k) k--;
    while (k + 1 < range_count && ranges[k].begin <= end) {
        if (ranges[k].end == ranges[k + 1].begin && is_alike(&ranges[k], &ranges[k + 1])) {
            ranges[k].end = ranges[k + 1].end;
            ranges_remove(k + 1, k + 2);
        } else {
            k++;
        }
    }
}

// Shows the GPUs what they may use of an area, beyond which no range reaches, nor did before.
static bool area_show(uint64_t begin, uint64_t end)
{
    size_t first = range_index(begin), last = range_index(end), count = 0;
    span_t *spans = malloc((last - first + 1) * sizeof *spans);
    if (!spans) return false;
    for (const range_t *range = &ranges[first]; range < &ranges[last]; range++) {
        uint64_t nodes = range->access | range->in_place;
        if (!nodes) continue;
        spans[count++] = (span_t){.base = range->begin,
                                  .size = range->end - range->begin,
                                  .host = (uint8_t *)(uintptr_t)range->begin,
                                  .nodes = nodes,
                                  .home = NODE_CPU,
                                  .shared = true,
                                  .coarse = !(range->flags & KFD_SVM_COHERENT)};
    }
    bool shown = map_share(begin, end - begin, spans, count);
    free(spans);
    return shown;
}

static void range_set(range_t *range, const kfd_svm_attribute_t *a)
{
    uint64_t bit = 1ull << gpu_node(a->value); // of attributes that name a GPU
    switch (a->type) {
    case KFD_SVM_PREFERRED: range->preferred = a->value; break;
    case KFD_SVM_PREFETCH: range->prefetch = a->value; break;
    case KFD_SVM_ACCESS:
        range->access |= bit;
        range->in_place &= ~bit;
        break;
    case KFD_SVM_IN_PLACE:
        range->access &= ~bit;
        range->in_place |= bit;
        break;
    case KFD_SVM_NO_ACCESS:
        range->access &= ~bit;
        range->in_place &= ~bit;
        break;
    case KFD_SVM_SET_FLAGS: range->flags |= a->value; break;
    case KFD_SVM_CLEAR_FLAGS: range->flags &= ~a->value; break;
    default: range->granularity = a->value < GRANULARITY_MAX ? a->value : GRANULARITY_MAX; break;
    }
}

static bool attribute_is_valid(const kfd_svm_attribute_t *a, unsigned op)
{
    bool names_gpu =
        a->type == KFD_SVM_ACCESS || a->type == KFD_SVM_IN_PLACE || a->type == KFD_SVM_NO_ACCESS;
    if (names_gpu) return gpu_node(a->value);
    if (op == KFD_SVM_GET) return a->type <= KFD_SVM_GRANULARITY;
    switch (a->type) {
    case KFD_SVM_PREFERRED:
        return a->value == KFD_SVM_HOST || a->value == KFD_SVM_ANYWHERE || gpu_node(a->value);
    case KFD_SVM_PREFETCH: return a->value == KFD_SVM_HOST || gpu_node(a->value);
    default: return a->type <= KFD_SVM_GRANULARITY;
    }
}

// The lock is held.
static int attributes_set(const kfd_svm_t *a)
{
    uint64_t begin = a->start_addr, end = begin + a->size;
    if (!map_shareable(begin, a->size)) return -EADDRINUSE;
    // Two are cut at most, and before each and behind the last there may be a gap.
    if (2 * range_count + 5 > RANGE_MAX) return -ENOMEM;
    area_widen(&begin, &end);
    range_split(a->start_addr);
    range_split(a->start_addr + a->size);
    gaps_fill(a->start_addr, a->start_addr + a->size);
    for (size_t k = range_index(a->start_addr);
         k < range_count && ranges[k].begin < a->start_addr + a->size; k++) {
        for (uint32_t i = 0; i < a->nattr; i++) range_set(&ranges[k], &a->attrs[i]);
    }
    neighbours_merge(begin, end);
    area_widen(&begin, &end);
    return area_show(begin, end) ? 0 : -ENOMEM;
}

// What all ranges of an area have in common.
typedef struct {
    uint64_t access, in_place;
    uint32_t flags_all, flags_any, preferred, prefetch, granularity;
} common_t;

static common_t common_of(uint64_t begin, uint64_t end)
{
    size_t first = range_index(begin), last = range_index(end);
    if (last < range_count && ranges[last].begin < end) last++;
    const range_t *one = first < last ? &ranges[first] : &usual;
    common_t c = {one->access,    one->in_place, one->flags,      one->flags,
                  one->preferred, one->prefetch, one->granularity};
    for (const range_t *range = &ranges[first]; range < &ranges[last]; range++) {
        c.access &= range->access;
        c.in_place &= range->in_place;
        c.flags_all &= range->flags;
        c.flags_any |= range->flags;
        if (c.preferred != range->preferred) c.preferred = KFD_SVM_ANYWHERE;
        if (c.prefetch != range->prefetch) c.prefetch = KFD_SVM_ANYWHERE;
        if (c.granularity > range->granularity) c.granularity = range->granularity;
    }
    return c;
}

static void attribute_get(const common_t *c, kfd_svm_attribute_t *a)
{
    switch (a->type) {
    case KFD_SVM_PREFERRED: a->value = c->preferred; break;
    case KFD_SVM_PREFETCH: a->value = c->prefetch; break;
    case KFD_SVM_SET_FLAGS: a->value = c->flags_all; break;
    case KFD_SVM_CLEAR_FLAGS: a->value = ~c->flags_any; break;
    case KFD_SVM_GRANULARITY: a->value = c->granularity; break;
    default:
        a->type = c->in_place >> gpu_node(a->value) & 1 ? KFD_SVM_IN_PLACE
                  : c->access >> gpu_node(a->value) & 1 ? KFD_SVM_ACCESS
                                                        : KFD_SVM_NO_ACCESS;
        break;
    }
}

int svm_request(kfd_svm_t *a, unsigned size)
{
    if (!sim_settings()->svm) return -EPERM;
    if (size < sizeof *a || a->nattr > (size - sizeof *a) / sizeof *a->attrs) return -EINVAL;
    if (!a->start_addr || !a->size || (a->start_addr | a->size) % PAGE) return -EINVAL;
    if (a->op > KFD_SVM_GET || a->start_addr + a->size < a->start_addr) return -EINVAL;
    for (uint32_t k = 0; k < a->nattr; k++) {
        if (!attribute_is_valid(&a->attrs[k], a->op)) return -EINVAL;
    }
    if (msync((void *)(uintptr_t)a->start_addr, a->size, MS_ASYNC)) return -EFAULT;
    pthread_mutex_lock(&lock);
    int error = a->op == KFD_SVM_SET ? attributes_set(a) : 0;
    common_t common = common_of(a->start_addr, a->start_addr + a->size);
    pthread_mutex_unlock(&lock);
    if (a->op == KFD_SVM_SET) return error;
    for (uint32_t k = 0; k < a->nattr; k++) attribute_get(&common, &a->attrs[k]);
    return 0;
}

bool svm_has(uint64_t address, uint64_t size)
{
    pthread_mutex_lock(&lock);
    size_t index = range_index(address);
    bool has = index < range_count && ranges[index].begin < address + size;
    pthread_mutex_unlock(&lock);
    return has;
}

void svm_drop(const void *address, uint64_t size)
{
    uint64_t begin = (uintptr_t)address, end = begin + ((size + PAGE - 1) & ~(uint64_t)(PAGE - 1));
    // Relaxed: who unmaps memory knows of the requests for it. The system refuses odd addresses.
    if (!atomic_load_explicit(&range_count, memory_order_relaxed) || begin % PAGE) return;
    pthread_mutex_lock(&lock);
    size_t first = range_index(begin);
    if (first < range_count && ranges[first].begin < end && range_count < RANGE_MAX) {
        uint64_t from = begin, to = end;
        area_widen(&from, &to);
        range_split(begin);
        range_split(end);
        ranges_remove(range_index(begin), range_index(end));
        if (!area_show(from, to)) log_line(LOG_ERROR, "no memory to take memory from the GPUs");
    }
    pthread_mutex_unlock(&lock);
}

void svm_hold(void)
{
    pthread_mutex_lock(&lock);
}

void svm_release(bool in_child)
{
    if (in_child) {
        pthread_mutex_init(&lock, NULL);
    } else {
        pthread_mutex_unlock(&lock);
    }
}

void svm_forget(void)
{
    range_count = 0;
}
