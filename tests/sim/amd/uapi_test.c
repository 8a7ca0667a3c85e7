// SPDX-License-Identifier: Apache-2.0
// The numbers, sizes and offsets of sim/amd/kfd/uapi.h are those of this machine's headers. Headers
// that are older lack the last members of some structs, and some requests.
#include <linux/kfd_ioctl.h>
#include <stddef.h>
#include <stdio.h>
#if __has_include(<libdrm/amdgpu.h>)
#include <libdrm/amdgpu.h>
#define HAVE_AMDGPU 1
#else
#define HAVE_AMDGPU 0
#endif

#include "sim/amd/kfd/uapi.h"

static int wrong;

static void same(unsigned long ours, unsigned long theirs, const char *what)
{
    if (ours == theirs) return;
    printf("%s: %lu here, %lu there\n", what, ours, theirs);
    wrong++;
}

// Numbers and directions are the same, and the arguments are no shorter.
static void request(unsigned long ours, unsigned long theirs, const char *what)
{
    same(_IOC_NR(ours), _IOC_NR(theirs), what);
    same(_IOC_TYPE(ours), _IOC_TYPE(theirs), what);
    same(_IOC_DIR(ours), _IOC_DIR(theirs), what);
    if (_IOC_SIZE(ours) >= _IOC_SIZE(theirs)) return;
    printf("%s: %lu bytes here, %lu there\n", what, (unsigned long)_IOC_SIZE(ours),
           (unsigned long)_IOC_SIZE(theirs));
    wrong++;
}

#define NUMBER(ours, theirs) same((unsigned long)(ours), (unsigned long)(theirs), #ours)
#define MEMBER(type, ours, struct_type, theirs)                                                    \
    same(offsetof(type, ours), offsetof(struct struct_type, theirs), #type "." #ours);             \
    same(sizeof((type *)0)->ours, sizeof((struct struct_type *)0)->theirs, #type "." #ours)

// X(type of ours, struct of theirs, member that both have): the last of each struct, and more where
// members are not all of one size.
#define MEMBERS(X)                                                                                 \
    X(kfd_version_t, kfd_ioctl_get_version_args, minor_version)                                    \
    X(kfd_create_queue_t, kfd_ioctl_create_queue_args, doorbell_offset)                            \
    X(kfd_create_queue_t, kfd_ioctl_create_queue_args, ring_size)                                  \
    X(kfd_create_queue_t, kfd_ioctl_create_queue_args, queue_id)                                   \
    X(kfd_create_queue_t, kfd_ioctl_create_queue_args, ctl_stack_size)                             \
    X(kfd_destroy_queue_t, kfd_ioctl_destroy_queue_args, queue_id)                                 \
    X(kfd_memory_policy_t, kfd_ioctl_set_memory_policy_args, gpu_id)                               \
    X(kfd_clock_counters_t, kfd_ioctl_get_clock_counters_args, system_clock_freq)                  \
    X(kfd_clock_counters_t, kfd_ioctl_get_clock_counters_args, gpu_id)                             \
    X(kfd_update_queue_t, kfd_ioctl_update_queue_args, queue_id)                                   \
    X(kfd_update_queue_t, kfd_ioctl_update_queue_args, queue_priority)                             \
    X(kfd_create_event_t, kfd_ioctl_create_event_args, event_trigger_data)                         \
    X(kfd_create_event_t, kfd_ioctl_create_event_args, auto_reset)                                 \
    X(kfd_create_event_t, kfd_ioctl_create_event_args, event_slot_index)                           \
    X(kfd_event_t, kfd_ioctl_set_event_args, event_id)                                             \
    X(kfd_event_data_t, kfd_event_data, event_id)                                                  \
    X(kfd_wait_events_t, kfd_ioctl_wait_events_args, num_events)                                   \
    X(kfd_wait_events_t, kfd_ioctl_wait_events_args, wait_result)                                  \
    X(kfd_scratch_t, kfd_ioctl_set_scratch_backing_va_args, gpu_id)                                \
    X(kfd_tile_config_t, kfd_ioctl_get_tile_config_args, gpu_id)                                   \
    X(kfd_tile_config_t, kfd_ioctl_get_tile_config_args, num_ranks)                                \
    X(kfd_trap_handler_t, kfd_ioctl_set_trap_handler_args, gpu_id)                                 \
    X(kfd_apertures_t, kfd_process_device_apertures, gpuvm_limit)                                  \
    X(kfd_apertures_t, kfd_process_device_apertures, gpu_id)                                       \
    X(kfd_process_apertures_t, kfd_ioctl_get_process_apertures_new_args, num_of_nodes)             \
    X(kfd_acquire_vm_t, kfd_ioctl_acquire_vm_args, gpu_id)                                         \
    X(kfd_alloc_memory_t, kfd_ioctl_alloc_memory_of_gpu_args, handle)                              \
    X(kfd_alloc_memory_t, kfd_ioctl_alloc_memory_of_gpu_args, mmap_offset)                         \
    X(kfd_alloc_memory_t, kfd_ioctl_alloc_memory_of_gpu_args, flags)                               \
    X(kfd_free_memory_t, kfd_ioctl_free_memory_of_gpu_args, handle)                                \
    X(kfd_map_memory_t, kfd_ioctl_map_memory_to_gpu_args, device_ids_array_ptr)                    \
    X(kfd_map_memory_t, kfd_ioctl_map_memory_to_gpu_args, n_success)                               \
    X(kfd_cu_mask_t, kfd_ioctl_set_cu_mask_args, cu_mask_ptr)                                      \
    X(kfd_gws_t, kfd_ioctl_alloc_queue_gws_args, first_gws)                                        \
    X(kfd_dmabuf_info_t, kfd_ioctl_get_dmabuf_info_args, metadata_size)                            \
    X(kfd_dmabuf_info_t, kfd_ioctl_get_dmabuf_info_args, dmabuf_fd)                                \
    X(kfd_import_dmabuf_t, kfd_ioctl_import_dmabuf_args, dmabuf_fd)                                \
    X(kfd_svm_t, kfd_ioctl_svm_args, op)                                                           \
    X(kfd_svm_t, kfd_ioctl_svm_args, nattr)                                                        \
    X(kfd_svm_attribute_t, kfd_ioctl_svm_attribute, value)                                         \
    X(kfd_xnack_mode_t, kfd_ioctl_set_xnack_mode_args, xnack_enabled)                              \
    X(kfd_available_memory_t, kfd_ioctl_get_available_memory_args, gpu_id)

static void kfd(void)
{
#define SAME_MEMBER(type, struct_type, member) MEMBER(type, member, struct_type, member);
    MEMBERS(SAME_MEMBER)
    MEMBER(kfd_event_data_t, memory.not_present, kfd_event_data,
           memory_exception_data.failure.NotPresent);
    MEMBER(kfd_event_data_t, memory.address, kfd_event_data, memory_exception_data.va);
    MEMBER(kfd_event_data_t, memory.gpu_id, kfd_event_data, memory_exception_data.gpu_id);
    NUMBER(sizeof(kfd_event_data_t), sizeof(struct kfd_event_data));
    NUMBER(sizeof(kfd_apertures_t), sizeof(struct kfd_process_device_apertures));
    NUMBER(KFD_QUEUE_AQL, KFD_IOC_QUEUE_TYPE_COMPUTE_AQL);
    NUMBER(KFD_QUEUE_XGMI, KFD_IOC_QUEUE_TYPE_SDMA_XGMI);
    NUMBER(KFD_EVENT_MEMORY, KFD_IOC_EVENT_MEMORY);
    NUMBER(KFD_WAIT_FAIL, KFD_IOC_WAIT_RESULT_FAIL);
    NUMBER(KFD_MEM_USERPTR, KFD_IOC_ALLOC_MEM_FLAGS_USERPTR);
    NUMBER(KFD_MEM_MMIO_REMAP, KFD_IOC_ALLOC_MEM_FLAGS_MMIO_REMAP);
    NUMBER(KFD_MEM_UNCACHED, KFD_IOC_ALLOC_MEM_FLAGS_UNCACHED);
    NUMBER(KFD_MEM_COHERENT, KFD_IOC_ALLOC_MEM_FLAGS_COHERENT);
    NUMBER(KFD_MEM_PUBLIC, KFD_IOC_ALLOC_MEM_FLAGS_PUBLIC);
    NUMBER(KFD_MEM_EXECUTABLE, KFD_IOC_ALLOC_MEM_FLAGS_EXECUTABLE);
    NUMBER(offsetof(kfd_svm_t, attrs), offsetof(struct kfd_ioctl_svm_args, attrs));
    NUMBER(KFD_SVM_GET, KFD_IOCTL_SVM_OP_GET_ATTR);
    NUMBER(KFD_SVM_ANYWHERE, KFD_IOCTL_SVM_LOCATION_UNDEFINED);
    NUMBER(KFD_SVM_PREFETCH, KFD_IOCTL_SVM_ATTR_PREFETCH_LOC);
    NUMBER(KFD_SVM_NO_ACCESS, KFD_IOCTL_SVM_ATTR_NO_ACCESS);
    NUMBER(KFD_SVM_GRANULARITY, KFD_IOCTL_SVM_ATTR_GRANULARITY);
    NUMBER(KFD_SVM_HOST_ACCESS, KFD_IOCTL_SVM_FLAG_HOST_ACCESS);
    NUMBER(KFD_SVM_COHERENT, KFD_IOCTL_SVM_FLAG_COHERENT);
    NUMBER(KFD_PRIORITY_MAX, KFD_MAX_QUEUE_PRIORITY);
}

// AMDKFD_IOC_name is a macro, which only the preprocessor can ask for.
static void requests(void)
{
#define REQUEST(name, number, direction, type)                                                     \
    request(_IO##direction('K', number, type), AMDKFD_IOC_##name, #name);
#ifndef AMDKFD_IOC_EXPORT_DMABUF
#define AMDKFD_IOC_EXPORT_DMABUF _IOWR('K', 0x24, kfd_export_dmabuf_t)
#endif
// Of AMD's own kernel modules.
#ifndef AMDKFD_IOC_IPC_IMPORT_HANDLE
#define AMDKFD_IOC_IPC_IMPORT_HANDLE _IOWR('K', 0x80, kfd_ipc_import_t)
#define AMDKFD_IOC_IPC_EXPORT_HANDLE _IOWR('K', 0x81, kfd_ipc_export_t)
#endif
    KFD_REQUESTS(REQUEST)
}

static void drm(void)
{
#if HAVE_AMDGPU
    NUMBER(sizeof(drm_gpu_info_t), sizeof(struct amdgpu_gpu_info));
    MEMBER(drm_gpu_info_t, gpu_counter_freq, amdgpu_gpu_info, gpu_counter_freq);
    MEMBER(drm_gpu_info_t, cu_bitmap, amdgpu_gpu_info, cu_bitmap);
    NUMBER(sizeof(drm_import_t), sizeof(struct amdgpu_bo_import_result));
    NUMBER(DRM_HANDLE_DMABUF, amdgpu_bo_handle_type_dma_buf_fd);
#endif
}

int main(void)
{
    kfd();
    requests();
    drm();
    return wrong != 0;
}
