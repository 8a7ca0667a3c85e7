// SPDX-License-Identifier: Apache-2.0
// The requests of /dev/kfd. What is not served is refused as the kernel refuses it, and named once.
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "amd/kfd/kfd.h"

static int get_version(kfd_version_t *a)
{
    *a = (kfd_version_t){KFD_MAJOR, KFD_MINOR};
    return 0;
}

static int get_clock_counters(kfd_clock_counters_t *a)
{
    uint64_t now = clock_ns();
    unsigned node = gpu_node(a->gpu_id);
    if (a->gpu_id && !node) return -EINVAL;
    a->gpu_clock_counter = node ? gfx_ticks(gpu_gfx(node), now) : 0;
    a->cpu_clock_counter = a->system_clock_counter = now;
    a->system_clock_freq = 1000000000;
    return 0;
}

// How images lie in memory, which the runtime asks for on x86-64: as on a Vega.
static int get_tile_config(kfd_tile_config_t *a)
{
    if (!gpu_node(a->gpu_id)) return -EINVAL;
    a->num_tile_configs = a->num_macro_tile_configs = 0;
    a->gb_addr_config = GB_ADDR_CONFIG;
    return 0;
}

// Below it ROCm's runtime reserves addresses. On aarch64 AddressSanitizer takes those from 64 GiB
// on, and the runtime would try one place after the other there, for minutes.
#ifdef __has_feature
#define SANITIZED __has_feature(address_sanitizer)
#elif defined __SANITIZE_ADDRESS__
#define SANITIZED 1
#else
#define SANITIZED 0
#endif
#if SANITIZED && defined __aarch64__
#define GPUVM_LIMIT ((1ull << 36) - 1)
#else
#define GPUVM_LIMIT ((1ull << 47) - 1)
#endif

static int get_process_apertures(kfd_process_apertures_t *a)
{
    kfd_apertures_t *out = (kfd_apertures_t *)(uintptr_t)a->apertures_ptr;
    unsigned count = gpu_count();
    if (!a->num_of_nodes) { // it asks how many there are
        a->num_of_nodes = count;
        return 0;
    }
    if (count > a->num_of_nodes) count = a->num_of_nodes;
    for (unsigned k = 0; k < count; k++) {
        out[k] = (kfd_apertures_t){
            .lds_base = (uint64_t)APERTURE_LDS << 32,
            .lds_limit = (uint64_t)APERTURE_LDS << 32 | UINT32_MAX,
            .scratch_base = (uint64_t)APERTURE_SCRATCH << 32,
            .scratch_limit = (uint64_t)APERTURE_SCRATCH << 32 | UINT32_MAX,
            .gpuvm_base = 0x200000,
            .gpuvm_limit = GPUVM_LIMIT,
            .gpu_id = GPU_ID + NODE_FIRST_GPU + k,
        };
    }
    a->num_of_nodes = count;
    return 0;
}

// There is nothing to do for this GPU.
static int accept(uint32_t gpu_id)
{
    return gpu_node(gpu_id) ? 0 : -EINVAL;
}

static int set_xnack_mode(kfd_xnack_mode_t *a)
{
    if (a->xnack_enabled > 0) return -EPERM;
    a->xnack_enabled = 0;
    return 0;
}

// Memory of a queue, which its GPU must have.
static void *queue_memory(const kfd_create_queue_t *a, const char *what, uint64_t address,
                          uint64_t size)
{
    void *bytes = map_bytes(address, size, gpu_node(a->gpu_id));
    if (!bytes) {
        log_line(LOG_ERROR, "CREATE_QUEUE: the %s at 0x%llx, %llu bytes, is not memory of the GPU",
                 what, (unsigned long long)address, (unsigned long long)size);
    }
    return bytes;
}

static int create_queue(kfd_create_queue_t *a)
{
    bool copies = a->queue_type == KFD_QUEUE_SDMA || a->queue_type == KFD_QUEUE_XGMI ||
                  a->queue_type == KFD_QUEUE_SDMA_ENGINE;
    if (!gpu_node(a->gpu_id) || (!copies && a->queue_type != KFD_QUEUE_AQL)) return -EINVAL;
    if (a->queue_percentage > KFD_PERCENTAGE_MAX || a->queue_priority > KFD_PRIORITY_MAX) {
        return -EINVAL;
    }
    if (!a->ring_size || a->ring_size & (a->ring_size - 1)) return -EINVAL;
    const queue_want_t want = {
        .node = gpu_node(a->gpu_id),
        .kind = copies ? QUEUE_COPY : QUEUE_COMPUTE,
        .priority = (int)a->queue_priority,
        .ring = queue_memory(a, "ring", a->ring_base_address, a->ring_size),
        .size = a->ring_size,
        .read_index = queue_memory(a, "read pointer", a->read_pointer_address, 8),
        .write_index = queue_memory(a, "write pointer", a->write_pointer_address, 8),
    };
    if (!want.ring || !want.read_index || !want.write_index) return -EINVAL;
    a->queue_id = queue_begin(&want);
    a->doorbell_offset = 8ull * a->queue_id;
    return a->queue_id ? 0 : -ENOMEM;
}

static int destroy_queue(const kfd_destroy_queue_t *a)
{
    return queue_end(a->queue_id) ? 0 : -EINVAL;
}

// Of all that may be changed, the priority means something here.
static int update_queue(const kfd_update_queue_t *a)
{
    if (a->queue_percentage > KFD_PERCENTAGE_MAX || a->queue_priority > KFD_PRIORITY_MAX) {
        return -EINVAL;
    }
    return queue_priority(a->queue_id, (int)a->queue_priority) ? 0 : -EFAULT;
}

static int set_cu_mask(const kfd_cu_mask_t *a)
{
    const uint32_t *words = (const uint32_t *)(uintptr_t)a->cu_mask_ptr;
    if (!a->num_cu_mask || a->num_cu_mask % 32) return -EINVAL;
    uint64_t mask = words[0] | (a->num_cu_mask > 32 ? (uint64_t)words[1] << 32 : 0);
    return queue_mask(a->queue_id, mask);
}

static int alloc_queue_gws(kfd_gws_t *a)
{
    if (!a->num_gws || a->num_gws > GWS_COUNT) return -EINVAL;
    a->first_gws = 0;
    return queue_gws(a->queue_id);
}

// The page of mailboxes is the caller's affair: packets name the mailbox that they write to.
static int create_event(kfd_create_event_t *a)
{
    static const uint64_t page_offset = 1ull << 62; // of the kernel's own page, were it mapped
    event_kind_t kind = a->event_type == KFD_EVENT_SIGNAL   ? EVENT_SIGNAL
                        : a->event_type == KFD_EVENT_MEMORY ? EVENT_MEMORY
                                                            : EVENT_OTHER;
    if (a->event_type > KFD_EVENT_MEMORY) return -EINVAL;
    a->event_id = event_create(kind, !a->auto_reset);
    if (!a->event_id) return -ENOSPC;
    a->event_trigger_data = a->event_slot_index = a->event_id;
    if (!a->event_page_offset) a->event_page_offset = page_offset;
    return 0;
}

static int destroy_event(const kfd_event_t *a)
{
    return event_destroy(a->event_id) ? 0 : -EINVAL;
}

static int set_event(const kfd_event_t *a)
{
    return event_set(a->event_id) ? 0 : -EINVAL;
}

static int reset_event(const kfd_event_t *a)
{
    return event_reset(a->event_id) ? 0 : -EINVAL;
}

// An age is only what a signal has; other events have their report in that place.
static void report_event(const event_wait_t *event, kfd_event_data_t *out)
{
    if (event->fault) {
        memset(&out->memory, 0, sizeof out->memory);
        out->memory.not_present = 1;
        out->memory.address = event->address;
        out->memory.gpu_id = GPU_ID + event->node;
    } else if (event->kind == EVENT_SIGNAL && out->signal.last_age) {
        out->signal.last_age = event->age;
    }
}

static int wait_events(kfd_wait_events_t *a)
{
    enum { FEW = 16 };
    kfd_event_data_t *data = (kfd_event_data_t *)(uintptr_t)a->events_ptr;
    event_wait_t few[FEW], *events = few;
    if (a->num_events > EVENT_MAX) return -EINVAL;
    if (a->num_events > FEW) events = malloc(a->num_events * sizeof *events);
    if (!events) return -ENOMEM;
    for (unsigned k = 0; k < a->num_events; k++) {
        events[k] = (event_wait_t){.id = data[k].event_id, .age = data[k].signal.last_age};
    }
    wait_result_t result = event_wait(events, a->num_events, a->wait_for_all, a->timeout);
    for (unsigned k = 0; k < a->num_events && result == WAIT_DONE; k++) {
        if (events[k].activated) report_event(&events[k], &data[k]);
    }
    if (events != few) free(events);
    a->wait_result = result == WAIT_DONE      ? KFD_WAIT_COMPLETE
                     : result == WAIT_TIMEOUT ? KFD_WAIT_TIMEOUT
                                              : KFD_WAIT_FAIL;
    return result == WAIT_UNKNOWN ? -EINVAL : result == WAIT_FAILED ? -EIO : 0;
}

static const char *name_of(unsigned number)
{
    switch (number) {
#define NAME(name, code, direction, type)                                                          \
    case code: return #name;
        KFD_REQUESTS(NAME)
#undef NAME
    case KFD_GET_PROCESS_APERTURES: return "GET_PROCESS_APERTURES";
    case KFD_GET_QUEUE_WAVE_STATE: return "GET_QUEUE_WAVE_STATE";
    case KFD_SMI_EVENTS: return "SMI_EVENTS";
    case KFD_CRIU_OP: return "CRIU_OP";
    case KFD_RUNTIME_ENABLE: return "RUNTIME_ENABLE";
    case KFD_DBG_TRAP: return "DBG_TRAP";
    case KFD_DBG_TRAP_OLD: return "DBG_TRAP";
    case KFD_CROSS_MEMORY_COPY: return "CROSS_MEMORY_COPY";
    case KFD_RLC_SPM: return "RLC_SPM";
    case KFD_PC_SAMPLE: return "PC_SAMPLE";
    default: return "of no known name";
    }
}

// The error of a kernel or a GPU that cannot do this.
static int refuse(unsigned number)
{
    enum { MAINLINE_END = 0x80 };
    static atomic_bool named[256];
    int error = number == KFD_CRIU_OP ? -EPERM : -EINVAL;
    if (!atomic_exchange(&named[number & 0xff], true)) {
        // What only AMD's own kernel modules have, runtimes try, and do without.
        log_line(number < MAINLINE_END ? LOG_ERROR : LOG_CALLS,
                 "request %#x of /dev/kfd, %s, is not modelled: %s", number, name_of(number),
                 strerror(-error));
    }
    return error;
}

// size is that of the caller's arguments, as far as they were copied.
static int serve(unsigned number, void *a, unsigned size)
{
    switch (number) {
    case KFD_GET_VERSION: return get_version(a);
    case KFD_CREATE_QUEUE: return create_queue(a);
    case KFD_DESTROY_QUEUE: return destroy_queue(a);
    case KFD_GET_CLOCK_COUNTERS: return get_clock_counters(a);
    case KFD_UPDATE_QUEUE: return update_queue(a);
    case KFD_CREATE_EVENT: return create_event(a);
    case KFD_DESTROY_EVENT: return destroy_event(a);
    case KFD_SET_EVENT: return set_event(a);
    case KFD_RESET_EVENT: return reset_event(a);
    case KFD_WAIT_EVENTS: return wait_events(a);
    case KFD_GET_TILE_CONFIG: return get_tile_config(a);
    case KFD_GET_PROCESS_APERTURES_NEW: return get_process_apertures(a);
    case KFD_ALLOC_MEMORY_OF_GPU: return memory_alloc(a);
    case KFD_FREE_MEMORY_OF_GPU: return memory_free(a);
    case KFD_MAP_MEMORY_TO_GPU: return memory_map(a, true);
    case KFD_UNMAP_MEMORY_FROM_GPU: return memory_map(a, false);
    case KFD_SET_CU_MASK: return set_cu_mask(a);
    case KFD_ALLOC_QUEUE_GWS: return alloc_queue_gws(a);
    case KFD_GET_DMABUF_INFO: return memory_info(a);
    case KFD_IMPORT_DMABUF: return memory_import(a);
    case KFD_SVM: return svm_request(a, size);
    case KFD_SET_XNACK_MODE: return set_xnack_mode(a);
    case KFD_AVAILABLE_MEMORY: return memory_available(a);
    case KFD_EXPORT_DMABUF: return memory_export(a);
    case KFD_IPC_IMPORT_HANDLE: return memory_ipc_import(a);
    case KFD_IPC_EXPORT_HANDLE: return memory_ipc_export(a);
    // Caches are not modelled, scratch needs no place, traps end a dispatch without a handler, and
    // all GPUs of a process have the same addresses.
    case KFD_SET_MEMORY_POLICY: return accept(((kfd_memory_policy_t *)a)->gpu_id);
    case KFD_SET_SCRATCH_BACKING_VA: return accept(((kfd_scratch_t *)a)->gpu_id);
    case KFD_SET_TRAP_HANDLER: return accept(((kfd_trap_handler_t *)a)->gpu_id);
    case KFD_ACQUIRE_VM: return accept(((kfd_acquire_vm_t *)a)->gpu_id);
    default: return refuse(number);
    }
}

int kfd_request(unsigned number, void *arguments, unsigned size)
{
    uint64_t room[64] = {0}; // enough for attributes of all GPUs
    unsigned copied = size < sizeof room ? size : (unsigned)sizeof room;
    if (copied) memcpy(room, arguments, copied);
    int result = serve(number, room, copied);
    if (copied) memcpy(arguments, room, copied);
    if (number != KFD_WAIT_EVENTS) {
        log_line(LOG_CALLS, "%s: %s", name_of(number), result ? strerror(-result) : "done");
    }
    return result;
}
