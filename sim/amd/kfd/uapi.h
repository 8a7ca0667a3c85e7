// SPDX-License-Identifier: Apache-2.0
// The interface of the kernel driver that is served here: the requests of /dev/kfd with their
// arguments, and the few structs of libdrm's functions. Declared anew, because the headers of a
// machine may be missing or old; tests/sim/amd/uapi_test.c compares them with those that are there.
#ifndef SIM_AMD_KFD_UAPI_H_
#define SIM_AMD_KFD_UAPI_H_

#include <stdint.h>

// What is reported: event ages (1.14), virtual memory (1.15), copy engines by number (1.17).
enum { KFD_MAJOR = 1, KFD_MINOR = 17 };

typedef struct {
    uint32_t major_version, minor_version;
} kfd_version_t;

enum { KFD_QUEUE_COMPUTE, KFD_QUEUE_SDMA, KFD_QUEUE_AQL, KFD_QUEUE_XGMI, KFD_QUEUE_SDMA_ENGINE };
enum { KFD_PERCENTAGE_MAX = 100, KFD_PRIORITY_MAX = 15 };

typedef struct {
    uint64_t ring_base_address, write_pointer_address, read_pointer_address;
    uint64_t doorbell_offset; // out
    uint32_t ring_size, gpu_id, queue_type, queue_percentage, queue_priority;
    uint32_t queue_id; // out
    uint64_t eop_buffer_address, eop_buffer_size, ctx_save_restore_address;
    uint32_t ctx_save_restore_size, ctl_stack_size;
    uint32_t sdma_engine_id, pad; // since 1.17
} kfd_create_queue_t;

typedef struct {
    uint32_t queue_id, pad;
} kfd_destroy_queue_t;

typedef struct {
    uint64_t alternate_aperture_base, alternate_aperture_size;
    uint32_t gpu_id, default_policy, alternate_policy, pad;
} kfd_memory_policy_t;

typedef struct {
    uint64_t gpu_clock_counter, cpu_clock_counter, system_clock_counter, system_clock_freq; // out
    uint32_t gpu_id, pad;
} kfd_clock_counters_t;

typedef struct {
    uint64_t ring_base_address;
    uint32_t queue_id, ring_size, queue_percentage, queue_priority;
} kfd_update_queue_t;

enum { KFD_EVENT_SIGNAL = 0, KFD_EVENT_MEMORY = 8 };

typedef struct {
    uint64_t event_page_offset;  // in: the handle of a buffer for mailboxes, once; out: not 0
    uint32_t event_trigger_data; // out
    uint32_t event_type, auto_reset, node_id;
    uint32_t event_id, event_slot_index; // out
} kfd_create_event_t;

typedef struct {
    uint32_t event_id, pad;
} kfd_event_t;

typedef struct {
    union {
        struct {
            uint32_t not_present, read_only, no_execute, imprecise;
            uint64_t address;
            uint32_t gpu_id, error_type;
        } memory; // out
        struct {
            uint64_t last_age; // in and out; 0: the caller knows no ages
        } signal;
    };
    uint64_t extension;
    uint32_t event_id, pad;
} kfd_event_data_t;

enum { KFD_WAIT_COMPLETE, KFD_WAIT_TIMEOUT, KFD_WAIT_FAIL };

typedef struct {
    uint64_t events_ptr; // kfd_event_data_t[]
    uint32_t num_events, wait_for_all, timeout;
    uint32_t wait_result; // out
} kfd_wait_events_t;

typedef struct {
    uint64_t va_addr;
    uint32_t gpu_id, pad;
} kfd_scratch_t;

typedef struct {
    uint64_t tile_config_ptr, macro_tile_config_ptr;
    uint32_t num_tile_configs, num_macro_tile_configs; // in and out
    uint32_t gpu_id;
    uint32_t gb_addr_config, num_banks, num_ranks; // out
} kfd_tile_config_t;

typedef struct {
    uint64_t tba_addr, tma_addr;
    uint32_t gpu_id, pad;
} kfd_trap_handler_t;

typedef struct {
    uint64_t lds_base, lds_limit, scratch_base, scratch_limit, gpuvm_base, gpuvm_limit;
    uint32_t gpu_id, pad;
} kfd_apertures_t;

typedef struct {
    uint64_t apertures_ptr; // kfd_apertures_t[]
    uint32_t num_of_nodes;  // in: how many there is room for; out: how many were filled in
    uint32_t pad;
} kfd_process_apertures_t;

typedef struct {
    uint32_t drm_fd, gpu_id;
} kfd_acquire_vm_t;

enum {
    KFD_MEM_VRAM = 1 << 0,
    KFD_MEM_GTT = 1 << 1,
    KFD_MEM_USERPTR = 1 << 2,
    KFD_MEM_DOORBELL = 1 << 3,
    KFD_MEM_MMIO_REMAP = 1 << 4,
    KFD_MEM_UNCACHED = 1 << 25,
    KFD_MEM_COHERENT = 1 << 26,
    KFD_MEM_PUBLIC = 1 << 29,
    KFD_MEM_EXECUTABLE = 1 << 30,
};

typedef struct {
    uint64_t va_addr, size;
    uint64_t handle;      // out
    uint64_t mmap_offset; // in: the address of host memory; out: where the render node has it
    uint32_t gpu_id, flags;
} kfd_alloc_memory_t;

typedef struct {
    uint64_t handle;
} kfd_free_memory_t;

typedef struct {
    uint64_t handle, device_ids_array_ptr;
    uint32_t n_devices, n_success; // n_success in and out
} kfd_map_memory_t;

typedef struct {
    uint32_t queue_id, num_cu_mask;
    uint64_t cu_mask_ptr;
} kfd_cu_mask_t;

typedef struct {
    uint32_t queue_id, num_gws;
    uint32_t first_gws; // out
    uint32_t pad;
} kfd_gws_t;

typedef struct {
    uint64_t size; // out
    uint64_t metadata_ptr;
    uint32_t metadata_size; // in and out
    uint32_t gpu_id, flags; // out
    uint32_t dmabuf_fd;
} kfd_dmabuf_info_t;

typedef struct {
    uint64_t va_addr;
    uint64_t handle; // out
    uint32_t gpu_id, dmabuf_fd;
} kfd_import_dmabuf_t;

typedef struct {
    int32_t xnack_enabled;
} kfd_xnack_mode_t;

enum { KFD_SVM_SET, KFD_SVM_GET };

// GPUs by their numbers; of the host, and of no wish.
enum { KFD_SVM_HOST = 0 };
#define KFD_SVM_ANYWHERE UINT32_MAX

enum {
    KFD_SVM_PREFERRED,
    KFD_SVM_PREFETCH,
    KFD_SVM_ACCESS,
    KFD_SVM_IN_PLACE,
    KFD_SVM_NO_ACCESS,
    KFD_SVM_SET_FLAGS,
    KFD_SVM_CLEAR_FLAGS,
    KFD_SVM_GRANULARITY,
};

enum { KFD_SVM_HOST_ACCESS = 1 << 0, KFD_SVM_COHERENT = 1 << 1 };

typedef struct {
    uint32_t type, value; // out, when attributes are asked for
} kfd_svm_attribute_t;

typedef struct {
    uint64_t start_addr, size;
    uint32_t op, nattr;
    kfd_svm_attribute_t attrs[];
} kfd_svm_t;

typedef struct {
    uint64_t available; // out
    uint32_t gpu_id, pad;
} kfd_available_memory_t;

typedef struct {
    uint64_t handle;
    uint32_t flags;
    uint32_t dmabuf_fd; // out
} kfd_export_dmabuf_t;

// Between processes. Only AMD's own kernel modules have these two.
typedef struct {
    uint64_t handle; // out
    uint64_t va_addr;
    uint64_t mmap_offset; // out
    uint32_t share_handle[4];
    uint32_t gpu_id;
    uint32_t flags; // out
} kfd_ipc_import_t;

typedef struct {
    uint64_t handle;
    uint32_t share_handle[4]; // out
    uint32_t gpu_id, flags;
} kfd_ipc_export_t;

// X(name, number, direction, arguments): those that are served.
#define KFD_REQUESTS(X)                                                                            \
    X(GET_VERSION, 0x01, R, kfd_version_t)                                                         \
    X(CREATE_QUEUE, 0x02, WR, kfd_create_queue_t)                                                  \
    X(DESTROY_QUEUE, 0x03, WR, kfd_destroy_queue_t)                                                \
    X(SET_MEMORY_POLICY, 0x04, W, kfd_memory_policy_t)                                             \
    X(GET_CLOCK_COUNTERS, 0x05, WR, kfd_clock_counters_t)                                          \
    X(UPDATE_QUEUE, 0x07, W, kfd_update_queue_t)                                                   \
    X(CREATE_EVENT, 0x08, WR, kfd_create_event_t)                                                  \
    X(DESTROY_EVENT, 0x09, W, kfd_event_t)                                                         \
    X(SET_EVENT, 0x0a, W, kfd_event_t)                                                             \
    X(RESET_EVENT, 0x0b, W, kfd_event_t)                                                           \
    X(WAIT_EVENTS, 0x0c, WR, kfd_wait_events_t)                                                    \
    X(SET_SCRATCH_BACKING_VA, 0x11, WR, kfd_scratch_t)                                             \
    X(GET_TILE_CONFIG, 0x12, WR, kfd_tile_config_t)                                                \
    X(SET_TRAP_HANDLER, 0x13, W, kfd_trap_handler_t)                                               \
    X(GET_PROCESS_APERTURES_NEW, 0x14, WR, kfd_process_apertures_t)                                \
    X(ACQUIRE_VM, 0x15, W, kfd_acquire_vm_t)                                                       \
    X(ALLOC_MEMORY_OF_GPU, 0x16, WR, kfd_alloc_memory_t)                                           \
    X(FREE_MEMORY_OF_GPU, 0x17, W, kfd_free_memory_t)                                              \
    X(MAP_MEMORY_TO_GPU, 0x18, WR, kfd_map_memory_t)                                               \
    X(UNMAP_MEMORY_FROM_GPU, 0x19, WR, kfd_map_memory_t)                                           \
    X(SET_CU_MASK, 0x1a, W, kfd_cu_mask_t)                                                         \
    X(GET_DMABUF_INFO, 0x1c, WR, kfd_dmabuf_info_t)                                                \
    X(IMPORT_DMABUF, 0x1d, WR, kfd_import_dmabuf_t)                                                \
    X(ALLOC_QUEUE_GWS, 0x1e, WR, kfd_gws_t)                                                        \
    X(SVM, 0x20, WR, kfd_svm_t)                                                                    \
    X(SET_XNACK_MODE, 0x21, WR, kfd_xnack_mode_t)                                                  \
    X(AVAILABLE_MEMORY, 0x23, WR, kfd_available_memory_t)                                          \
    X(EXPORT_DMABUF, 0x24, WR, kfd_export_dmabuf_t)                                                \
    X(IPC_IMPORT_HANDLE, 0x80, WR, kfd_ipc_import_t)                                               \
    X(IPC_EXPORT_HANDLE, 0x81, WR, kfd_ipc_export_t)

#define KFD_NUMBER(name, number, direction, type) KFD_##name = (number),
enum { KFD_REQUESTS(KFD_NUMBER) };
#undef KFD_NUMBER

// Those that are only named, when they are refused.
enum {
    KFD_GET_PROCESS_APERTURES = 0x06,
    KFD_GET_QUEUE_WAVE_STATE = 0x1b,
    KFD_SMI_EVENTS = 0x1f,
    KFD_CRIU_OP = 0x22,
    KFD_RUNTIME_ENABLE = 0x25,
    KFD_DBG_TRAP = 0x26,
    KFD_DBG_TRAP_OLD = 0x82,
    KFD_CROSS_MEMORY_COPY = 0x83,
    KFD_RLC_SPM = 0x84,
    KFD_PC_SAMPLE = 0x85,
};

// libdrm.
typedef struct device device_t; // amdgpu_device
typedef struct object object_t; // amdgpu_bo

typedef struct {
    uint32_t asic_id, chip_rev, chip_external_rev, family_id;
    uint64_t ids_flags, max_engine_clk, max_memory_clk;
    uint32_t num_shader_engines, num_shader_arrays_per_engine;
    uint32_t avail_quad_shader_pipes, max_quad_shader_pipes, cache_entries_per_quad_pipe;
    uint32_t num_hw_gfx_contexts, rb_pipes, enabled_rb_pipes_mask, gpu_counter_freq;
    uint32_t backend_disable[4];
    uint32_t mc_arb_ramcfg, gb_addr_cfg, gb_tile_mode[32], gb_macro_tile_mode[16];
    uint32_t pa_sc_raster_cfg[4], pa_sc_raster_cfg1[4];
    uint32_t cu_active_number, cu_ao_mask, cu_bitmap[4][4];
    uint32_t vram_type, vram_bit_width, ce_ram_size, vce_harvest_config, pci_rev_id;
} drm_gpu_info_t;

typedef struct {
    object_t *buffer;
    uint64_t size;
} drm_import_t;

enum { DRM_HANDLE_KMS = 1, DRM_HANDLE_DMABUF = 2 };
enum { DRM_VA_MAP = 1, DRM_VA_UNMAP = 2 };
enum { DRM_GEM_MMAP = 1 };

// In: a handle; out: where the render node has the buffer.
typedef union {
    uint32_t handle;
    uint64_t offset;
} drm_gem_mmap_t;

int amdgpu_device_initialize(int file, uint32_t *major, uint32_t *minor, device_t **out);
int amdgpu_device_deinitialize(device_t *device);
int amdgpu_device_get_fd(device_t *device);
const char *amdgpu_get_marketing_name(device_t *device);
int amdgpu_query_gpu_info(device_t *device, drm_gpu_info_t *out);
int amdgpu_bo_import(device_t *device, int type, uint32_t shared, drm_import_t *out);
int amdgpu_bo_export(object_t *object, int type, uint32_t *out);
int amdgpu_bo_free(object_t *object);
int amdgpu_bo_cpu_map(object_t *object, void **out);
int amdgpu_bo_va_op(object_t *object, uint64_t offset, uint64_t size, uint64_t address,
                    uint64_t flags, uint32_t operation);
int drmCommandWriteRead(int file, unsigned long command, void *data, unsigned long size);

#endif
