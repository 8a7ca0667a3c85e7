// SPDX-License-Identifier: Apache-2.0
// Memory of the GPUs, and memory of the host that they are shown.
//
// A buffer has an address for the devices, which the caller chose, and its bytes: in a file for
// memory of the driver, which the caller maps where it wants to see them, or the host's own. The
// address of a GPU's own memory is one that the host has reserved and may not touch.
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "amd/kfd/kfd.h"
#include "amd/kfd/store.h"

typedef struct {
    bool used;
    unsigned node;
    uint32_t flags;
    uint64_t address; // 0: it has none; parts of it are placed
    uint64_t size;
    uint64_t nodes; // that may touch it at its address
    uint8_t *bytes;
    place_t place; // whose bytes are mapped; none: they are borrowed
} buffer_t;

enum { BUFFER_MAX = 1 << 20, PAGE = 4096 };

// What fresh memory is filled with: no number, no address, no character.
enum { POISON = 0xdb, POISON_MAX = 256 << 20, POISON_PIECE = 256 << 10 };

// In an offset for mmap: the bytes are in the file of another process.
#define ELSEWHERE   (1ull << 61)
#define INDEX_SHIFT 40

static buffer_t *buffers;        // by index; 0 is none
static uint32_t free_hint = 1;   // no free one is below
static uint32_t buffers_end = 1; // none above was ever used
static uint64_t vram_used[NODE_FIRST_GPU + GPU_MAX];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
_Atomic uint64_t code_generation;

// The lock is held.
static buffer_t *buffer_of(uint64_t handle)
{
    uint32_t index = (uint32_t)handle;
    if (!buffers || index >= BUFFER_MAX || !buffers[index].used) return NULL;
    return buffers[index].node == gpu_node((uint32_t)(handle >> 32)) ? &buffers[index] : NULL;
}

static bool is_vram(const buffer_t *buffer)
{
    return buffer->flags & KFD_MEM_VRAM;
}

static uint64_t vram_left(unsigned node)
{
    return ((uint64_t)VRAM_SIZE_GIB << 30) - vram_used[node];
}

// Shows nodes a part of a buffer. What is not coherent, its GPU may keep to itself for a while.
static bool span_add(const buffer_t *buffer, uint64_t address, uint8_t *bytes, uint64_t size,
                     uint64_t nodes)
{
    enum { FINE = KFD_MEM_COHERENT | KFD_MEM_UNCACHED | KFD_MEM_DOORBELL | KFD_MEM_MMIO_REMAP };
    return map_add(&(span_t){.base = address,
                             .size = size,
                             .host = bytes,
                             .nodes = nodes,
                             .home = is_vram(buffer) ? buffer->node : NODE_CPU,
                             .coarse = !(buffer->flags & FINE)});
}

// Gives a buffer its handle; the lock is held.
static int buffer_insert(const buffer_t *made, uint64_t *out_handle)
{
    if (!buffers) buffers = calloc(BUFFER_MAX, sizeof *buffers);
    if (!buffers) return -ENOMEM;
    uint32_t index = free_hint;
    while (index < BUFFER_MAX && buffers[index].used) index++;
    free_hint = index;
    if (index == BUFFER_MAX) return -ENOMEM;
    if (made->address && !span_add(made, made->address, made->bytes, made->size, 0)) {
        log_line(LOG_ERROR, "a buffer of %llu bytes at 0x%llx is in the way of another",
                 (unsigned long long)made->size, (unsigned long long)made->address);
        return -EINVAL;
    }
    buffers[index] = *made;
    if (index >= buffers_end) buffers_end = index + 1;
    if (is_vram(made)) vram_used[made->node] += made->size;
    *out_handle = (uint64_t)(GPU_ID + made->node) << 32 | index;
    return 0;
}

// Maps the bytes of a place.
static uint8_t *place_bytes(place_t place, uint64_t size)
{
    uint64_t offset;
    int file = store_file(place, &offset);
    void *bytes = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, (off_t)offset);
    return bytes == MAP_FAILED ? NULL : bytes;
}

// Takes a place, and gives it back when it fails; the lock is held.
static int buffer_take(place_t place, const buffer_t *wanted, uint64_t *out_handle)
{
    buffer_t made = *wanted;
    if (!place.store) return -ENOMEM;
    made.place = place;
    made.bytes = place_bytes(place, made.size);
    int error = made.bytes ? buffer_insert(&made, out_handle) : -ENOMEM;
    if (error && made.bytes) munmap(made.bytes, made.size);
    if (error) store_drop(place);
    return error;
}

static int alloc_stored(const buffer_t *wanted, uint64_t *out_handle, uint64_t *out_offset)
{
    const content_t content = {wanted->size, wanted->flags, GPU_ID + wanted->node};
    if (is_vram(wanted) && wanted->size > vram_left(wanted->node)) return -ENOMEM;
    place_t place = store_add(&content);
    int error = buffer_take(place, wanted, out_handle);
    if (!error) store_file(place, out_offset);
    return error;
}

// Whether the host has memory there, touched or not.
static bool is_mapped(const buffer_t *buffer)
{
    return !msync(buffer->bytes, buffer->size, MS_ASYNC);
}

// Whether the kernel pins memory of the application for GPUs, which may write it: not if the host
// may not. The first page and the last one are looked at; kernels before 5.14 do not tell.
static bool is_writable(const buffer_t *buffer)
{
    uint8_t *ends[] = {buffer->bytes, buffer->bytes + buffer->size - PAGE};
    if (buffer->address == (uint64_t)(uintptr_t)buffer->bytes) return true; // the runtime's own
    for (unsigned k = 0; k < 2; k++) {
        bool refused = madvise(ends[k], PAGE, MADV_POPULATE_WRITE);
        if (refused && !madvise(ends[k], PAGE, MADV_POPULATE_READ)) return false;
    }
    return true;
}

// Registers and doorbells are in the file of the driver itself, mapped from there.
static int alloc_borrowed(buffer_t *wanted, kfd_alloc_memory_t *a)
{
    if (a->flags & KFD_MEM_USERPTR) {
        if (!a->mmap_offset || a->mmap_offset % PAGE) return -EINVAL;
        wanted->bytes = (uint8_t *)(uintptr_t)a->mmap_offset;
        if (!is_mapped(wanted)) return -EFAULT;
        if (!is_writable(wanted)) return -EPERM;
    } else {
        bool doorbells = a->flags & KFD_MEM_DOORBELL;
        uint64_t begin = doorbells ? 0 : DOORBELL_BYTES, limit = doorbells ? DOORBELL_BYTES : PAGE;
        if (wanted->size > limit) return -EINVAL;
        wanted->bytes = doorbell_bytes();
        if (!wanted->bytes) return -ENOMEM;
        wanted->bytes += begin;
        a->mmap_offset = begin;
    }
    return buffer_insert(wanted, &a->handle);
}

// Host memory that the runtime has just made for its own address is fresh too: no page of it has
// been touched.
static bool is_fresh(const buffer_t *buffer)
{
    enum { PAGES = 4096 };
    unsigned char there[PAGES];
    if (buffer->address != (uint64_t)(uintptr_t)buffer->bytes) return false;
    for (uint64_t at = 0; at < buffer->size; at += (uint64_t)PAGES * PAGE) {
        uint64_t left = buffer->size - at, part = (uint64_t)PAGES * PAGE;
        if (part > left) part = left;
        if (mincore(buffer->bytes + at, part, there)) return false;
        if (memchr(there, 1, part / PAGE)) return false;
    }
    return true;
}

// Large memory that only GPUs touch is filled where and when they do: programs have much of it that
// they never use.
static bool is_late(const buffer_t *buffer)
{
    enum { LARGE = 1 << 20 };
    return is_vram(buffer) && !(buffer->flags & KFD_MEM_PUBLIC) && buffer->address &&
           buffer->size >= LARGE;
}

// A file of poison, of POISON_PIECE bytes; -1 if there is none.
static int poison_file = -1;
static pthread_once_t poison_once = PTHREAD_ONCE_INIT;

static void poison_make(void)
{
    int file = memfd_create("poison", MFD_CLOEXEC);
    if (file < 0) return;
    void *bytes = MAP_FAILED;
    if (!ftruncate(file, POISON_PIECE))
        bytes = mmap(NULL, POISON_PIECE, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (bytes == MAP_FAILED) {
        close(file);
        return;
    }
    memset(bytes, POISON, POISON_PIECE);
    munmap(bytes, POISON_PIECE);
    poison_file = file;
}

// Puts private views of the file of poison in the place of fresh host memory: a page costs nothing
// until it is written. Much of such memory ROCm makes so that the kernel can save each queue in it,
// which this driver does not. No child of a fork gets it, as ROCm has asked for what was there.
static bool poison_views(const buffer_t *buffer)
{
    pthread_once(&poison_once, poison_make);
    if (poison_file < 0) return false;
    for (uint64_t at = 0; at < buffer->size; at += POISON_PIECE) {
        uint64_t left = buffer->size - at, size = left < POISON_PIECE ? left : POISON_PIECE;
        if (mmap(buffer->bytes + at, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED,
                 poison_file, 0) == MAP_FAILED)
            return false;
    }
    madvise(buffer->bytes, buffer->size, MADV_DONTFORK);
    return true;
}

static void buffer_fill(const buffer_t *buffer)
{
    enum { VIEWS_MIN = 1 << 20, VIEWS_MAX = 16 << 20 }; // each view takes room in the kernel
    bool borrowed = buffer->flags & KFD_MEM_USERPTR;
    if (buffer->flags & (KFD_MEM_DOORBELL | KFD_MEM_MMIO_REMAP)) return;
    if (borrowed && !is_fresh(buffer)) return;
    size_t size = buffer->size < POISON_MAX ? buffer->size : POISON_MAX;
    if (is_late(buffer) && map_fresh(buffer->address, POISON)) return;
    if (borrowed && size >= VIEWS_MIN && size <= VIEWS_MAX && poison_views(buffer)) return;
    // All pages at once cost less than one by one; older kernels cannot do it, and need not.
    madvise(buffer->bytes, size, MADV_POPULATE_WRITE);
    memset(buffer->bytes, POISON, size);
}

int memory_alloc(kfd_alloc_memory_t *a)
{
    enum { STORED = KFD_MEM_VRAM | KFD_MEM_GTT };
    enum { BORROWED = KFD_MEM_USERPTR | KFD_MEM_DOORBELL | KFD_MEM_MMIO_REMAP };
    unsigned node = gpu_node(a->gpu_id);
    if (!node || !a->size || a->va_addr % PAGE || a->size > UINT64_MAX / 2) return -EINVAL;
    if (!(a->flags & (STORED | BORROWED))) return -EINVAL;
    if (svm_has(a->va_addr, a->size)) return -EADDRINUSE;
    if (a->flags & KFD_MEM_USERPTR && svm_has(a->mmap_offset, a->size)) return -EADDRINUSE;
    buffer_t made = {.used = true,
                     .node = node,
                     .flags = a->flags,
                     .address = a->va_addr,
                     .size = (a->size + PAGE - 1) & ~(uint64_t)(PAGE - 1)};
    pthread_mutex_lock(&lock);
    int error = a->flags & STORED ? alloc_stored(&made, &a->handle, &a->mmap_offset)
                                  : alloc_borrowed(&made, a);
    if (!error) made = *buffer_of(a->handle);
    pthread_mutex_unlock(&lock);
    if (!error) buffer_fill(&made);
    return error;
}

int memory_free(const kfd_free_memory_t *a)
{
    pthread_mutex_lock(&lock);
    buffer_t *buffer = buffer_of(a->handle);
    int error = !buffer ? -EINVAL : buffer->nodes ? -EBUSY : 0;
    if (!error) {
        uint32_t index = (uint32_t)a->handle;
        if (buffer->address) map_remove(buffer->address);
        if (is_vram(buffer)) vram_used[buffer->node] -= buffer->size;
        if (buffer->flags & KFD_MEM_EXECUTABLE) atomic_fetch_add(&code_generation, 1);
        if (buffer->place.store) {
            map_drop(buffer->bytes, buffer->size);
            munmap(buffer->bytes, buffer->size);
            store_drop(buffer->place);
        }
        *buffer = (buffer_t){0};
        if (index < free_hint) free_hint = index;
    }
    pthread_mutex_unlock(&lock);
    return error;
}

// Whether the kernel can map it for a GPU. Doorbells of another GPU not every one can, and another
// one's memory only if the two reach each other.
static bool is_mappable(const buffer_t *buffer, unsigned node)
{
    if (buffer->node == node) return true;
    if (buffer->flags & KFD_MEM_DOORBELL) return sim_settings()->doorbells;
    return sim_settings()->links || !is_vram(buffer);
}

int memory_map(kfd_map_memory_t *a, bool map)
{
    const uint32_t *ids = (const uint32_t *)(uintptr_t)a->device_ids_array_ptr;
    int error = 0;
    if (!a->n_devices || a->n_success > a->n_devices) return -EINVAL;
    pthread_mutex_lock(&lock);
    buffer_t *buffer = buffer_of(a->handle);
    if (!buffer || !buffer->address) error = -EINVAL;
    while (!error && a->n_success < a->n_devices) {
        unsigned node = gpu_node(ids[a->n_success]);
        if (!node || !is_mappable(buffer, node)) {
            error = -EINVAL;
            break;
        }
        buffer->nodes = (buffer->nodes & ~(1ull << node)) | (uint64_t)map << node;
        a->n_success++;
    }
    if (buffer && buffer->address) map_allow(buffer->address, buffer->nodes);
    pthread_mutex_unlock(&lock);
    return error;
}

int memory_available(kfd_available_memory_t *a)
{
    unsigned node = gpu_node(a->gpu_id);
    if (!node) return -EINVAL;
    pthread_mutex_lock(&lock);
    a->available = vram_left(node);
    pthread_mutex_unlock(&lock);
    return 0;
}

// Of a buffer with bytes in a file, which others than GPUs will see from now on, or at another
// address; the lock is held.
static buffer_t *stored_of(uint64_t handle)
{
    buffer_t *buffer = buffer_of(handle);
    if (!buffer || !buffer->place.store) return NULL;
    if (buffer->address) map_fill(buffer->address);
    return buffer;
}

int memory_export(kfd_export_dmabuf_t *a)
{
    pthread_mutex_lock(&lock);
    const buffer_t *buffer = stored_of(a->handle);
    int descriptor = buffer ? store_export(buffer->place) : -1;
    pthread_mutex_unlock(&lock);
    a->dmabuf_fd = (uint32_t)descriptor;
    return !buffer ? -EINVAL : descriptor < 0 ? -EMFILE : 0;
}

// A buffer for a place that was opened. The GPU that has its bytes has counted them.
static int buffer_open(place_t place, unsigned node, uint64_t address, uint64_t *out_handle)
{
    if (!place.store) return -EINVAL;
    content_t content = store_content(place);
    const buffer_t made = {.used = true,
                           .node = node,
                           .flags = content.flags & ~(uint32_t)KFD_MEM_VRAM,
                           .address = address,
                           .size = content.size};
    return buffer_take(place, &made, out_handle);
}

int memory_open(int descriptor, unsigned node, uint64_t *out_handle, uint64_t *out_size)
{
    pthread_mutex_lock(&lock);
    int error = buffer_open(store_import(descriptor), node, 0, out_handle);
    if (!error) *out_size = buffer_of(*out_handle)->size;
    pthread_mutex_unlock(&lock);
    return error;
}

int memory_import(kfd_import_dmabuf_t *a)
{
    unsigned node = gpu_node(a->gpu_id);
    if (!node) return -EINVAL;
    pthread_mutex_lock(&lock);
    int error = buffer_open(store_import((int)a->dmabuf_fd), node, a->va_addr, &a->handle);
    pthread_mutex_unlock(&lock);
    return error;
}

int memory_info(kfd_dmabuf_info_t *a)
{
    pthread_mutex_lock(&lock);
    place_t place = store_import((int)a->dmabuf_fd);
    if (place.store) {
        content_t content = store_content(place);
        a->size = content.size;
        a->flags = content.flags;
        a->gpu_id = content.gpu_id;
        a->metadata_size = 0;
        store_drop(place);
    }
    pthread_mutex_unlock(&lock);
    return place.store ? 0 : -EINVAL;
}

int memory_ipc_export(kfd_ipc_export_t *a)
{
    pthread_mutex_lock(&lock);
    const buffer_t *buffer = stored_of(a->handle);
    if (buffer) store_handle(buffer->place, a->share_handle);
    pthread_mutex_unlock(&lock);
    return buffer ? 0 : -EINVAL;
}

// The lock is held.
static uint64_t offset_of(const buffer_t *buffer)
{
    uint64_t offset;
    if (store_file(buffer->place, &offset) == store_own()) return offset;
    return ELSEWHERE | (uint64_t)(buffer - buffers) << INDEX_SHIFT;
}

int memory_ipc_import(kfd_ipc_import_t *a)
{
    unsigned node = gpu_node(a->gpu_id);
    if (!node) return -EINVAL;
    pthread_mutex_lock(&lock);
    place_t place = store_open(a->share_handle);
    if (place.store) a->flags = store_content(place).flags;
    int error = buffer_open(place, node, a->va_addr, &a->handle);
    if (!error) a->mmap_offset = offset_of(buffer_of(a->handle));
    pthread_mutex_unlock(&lock);
    return error;
}

int memory_offset(uint64_t handle, uint64_t *out_offset)
{
    pthread_mutex_lock(&lock);
    const buffer_t *buffer = stored_of(handle);
    if (buffer) *out_offset = offset_of(buffer);
    pthread_mutex_unlock(&lock);
    return buffer ? 0 : -ENOENT;
}

bool memory_elsewhere(uint64_t offset, int *out_file, uint64_t *out_offset)
{
    if (!(offset & ELSEWHERE)) return false;
    uint64_t index = (offset & ~ELSEWHERE) >> INDEX_SHIFT;
    uint64_t within = offset & ((1ull << INDEX_SHIFT) - 1);
    pthread_mutex_lock(&lock);
    bool found = buffers && index < BUFFER_MAX && buffers[index].place.store;
    if (found) *out_file = store_file(buffers[index].place, out_offset);
    pthread_mutex_unlock(&lock);
    *out_offset += within;
    return found;
}

void *memory_bytes(uint64_t handle)
{
    pthread_mutex_lock(&lock);
    const buffer_t *buffer = stored_of(handle);
    void *bytes = buffer ? buffer->bytes : NULL;
    pthread_mutex_unlock(&lock);
    return bytes;
}

int memory_place(uint64_t handle, uint64_t offset, uint64_t size, uint64_t address)
{
    span_t span;
    pthread_mutex_lock(&lock);
    const buffer_t *buffer = stored_of(handle);
    bool done = buffer && size && offset <= buffer->size && size <= buffer->size - offset;
    if (done) {
        uint64_t bit = 1ull << buffer->node;
        bool there = map_find(address, 0, &span) && span.base == address && span.size == size;
        done = there ? map_allow(address, span.nodes | bit)
                     : span_add(buffer, address, buffer->bytes + offset, size, bit);
    }
    pthread_mutex_unlock(&lock);
    return done ? 0 : -EINVAL;
}

int memory_unplace(uint64_t handle, uint64_t address)
{
    span_t span;
    pthread_mutex_lock(&lock);
    const buffer_t *buffer = buffer_of(handle);
    bool done = buffer && map_find(address, 0, &span) && span.base == address;
    if (done) {
        uint64_t left = span.nodes & ~(1ull << buffer->node);
        done = left ? map_allow(address, left) : map_remove(address);
    }
    pthread_mutex_unlock(&lock);
    return done ? 0 : -EINVAL;
}

int memory_file(void)
{
    pthread_mutex_lock(&lock);
    int file = store_own();
    pthread_mutex_unlock(&lock);
    return file;
}

// The program is about to end: who holds the lock lets go of it.
bool memory_is_hidden(uint64_t address, unsigned *out_node)
{
    span_t span;
    bool hidden = false;
    if (!map_find(address, 0, &span)) return false;
    pthread_mutex_lock(&lock);
    for (uint32_t k = 1; k < buffers_end && !hidden; k++) {
        const buffer_t *buffer = &buffers[k];
        uint64_t offset = (uint64_t)(uintptr_t)span.host - (uint64_t)(uintptr_t)buffer->bytes;
        hidden = buffer->used && is_vram(buffer) && offset < buffer->size;
        if (hidden) *out_node = buffer->node;
    }
    pthread_mutex_unlock(&lock);
    return hidden;
}

void memory_hold(void)
{
    pthread_mutex_lock(&lock);
    svm_hold();
    map_hold();
}

void memory_release(bool in_child)
{
    map_release(in_child);
    svm_release(in_child);
    pthread_mutex_unlock(&lock);
}

void memory_forget(void)
{
    buffers = NULL; // and what is in them, as the parent had it
    free_hint = buffers_end = 1;
    memset(vram_used, 0, sizeof vram_used);
    store_forget();
}
