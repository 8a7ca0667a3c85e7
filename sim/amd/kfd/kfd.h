// SPDX-License-Identifier: Apache-2.0
// What the parts of the kernel driver share. Functions that return an int return 0, or an error
// number below 0 as the kernel does, if nothing else is said. Any thread may call any of them.
#ifndef SIM_AMD_KFD_KFD_H_
#define SIM_AMD_KFD_KFD_H_

#include "amd/engine/engine.h"
#include "amd/kfd/uapi.h"

#define EXPORT __attribute__((visibility("default")))

// GPUs have numbers that are not those of their nodes; a program that confuses them is noticed.
enum { GPU_ID = 0x4b00, RENDER_MINOR = 127, VRAM_SIZE_GIB = 4, GB_ADDR_CONFIG = 0x2a114042 };

// The node of a GPU; 0 when there is no such.
static inline unsigned gpu_node(uint32_t gpu_id)
{
    return gpu_is(gpu_id - GPU_ID) ? gpu_id - GPU_ID : 0;
}

// The properties of a GPU that people and libdrm ask for.
const char *gpu_text(unsigned node);
uint16_t gpu_device(unsigned node);

// The text of a file below /sys, to be freed; NULL when there is none of this name.
char *topology_text(const char *path);

// The names in a folder below /sys, each ended by a zero, the last by two; to be freed. NULL when
// there is no such folder.
char *topology_list(const char *path);

// A request on /dev/kfd. size is that of the caller's arguments, which need not be as long as here.
int kfd_request(unsigned number, void *arguments, unsigned size);

// Buffers.
int memory_alloc(kfd_alloc_memory_t *arguments);
int memory_free(const kfd_free_memory_t *arguments);
int memory_map(kfd_map_memory_t *arguments, bool map);
int memory_available(kfd_available_memory_t *arguments);
int memory_export(kfd_export_dmabuf_t *arguments);
int memory_import(kfd_import_dmabuf_t *arguments);
int memory_info(kfd_dmabuf_info_t *arguments);
int memory_ipc_export(kfd_ipc_export_t *arguments);
int memory_ipc_import(kfd_ipc_import_t *arguments);

// A handle for a buffer that was exported as a descriptor; it has no address. memory_free ends it.
int memory_open(int descriptor, unsigned node, uint64_t *out_handle, uint64_t *out_size);

// Memory of the host that GPUs use where it is (svm.c). size is that of the caller's arguments.
int svm_request(kfd_svm_t *arguments, unsigned size);

// Whether GPUs use memory of the host somewhere in there, or may have.
bool svm_has(uint64_t address, uint64_t size);

// The host's memory there is gone, or is about to go.
void svm_drop(const void *address, uint64_t size);

// Around a fork, and in the child.
void svm_hold(void);
void svm_release(bool in_child);
void svm_forget(void);

// The place of a buffer in the file that render nodes are, for mmap.
int memory_offset(uint64_t handle, uint64_t *out_offset);

// Where the host sees the bytes; NULL when there is no such buffer.
void *memory_bytes(uint64_t handle);

// Maps a part of a buffer for its GPU, or unmaps what is at an address.
int memory_place(uint64_t handle, uint64_t offset, uint64_t size, uint64_t address);
int memory_unplace(uint64_t handle, uint64_t address);

// The file that render nodes are; -1 when memory is short.
int memory_file(void);

// Of an offset that mmap was given for a render node: the file that has those bytes, and where.
// False when the offset is that already.
bool memory_elsewhere(uint64_t offset, int *out_file, uint64_t *out_offset);

// Around a fork: no thread is at work on buffers or the map between the two.
void memory_hold(void);
void memory_release(bool in_child);

// Forgets everything, in a process that was forked off another.
void memory_forget(void);

#endif
