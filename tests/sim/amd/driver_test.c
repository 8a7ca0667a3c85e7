// SPDX-License-Identifier: Apache-2.0
// driver_test: what programs find that look for the kernel driver: its files, also after a fork,
// and memory that processes share. The driver is preloaded.
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sim/amd/kfd/uapi.h"

#define NODES "/sys/devices/virtual/kfd/kfd/topology/nodes"

static void check(bool good, const char *what, int line)
{
    if (good) return;
    fprintf(stderr, "line %d: not true: %s (%s)\n", line, what, strerror(errno));
    exit(1);
}
#define CHECK(condition) check((condition), #condition, __LINE__)

#define ASK(file, name, arguments)                                                                 \
    ioctl((file), _IOC(_IOC_READ | _IOC_WRITE, 'K', KFD_##name, sizeof *(arguments)), (arguments))

static uint64_t number(const void *pointer)
{
    return (uint64_t)(uintptr_t)pointer;
}

static int kfd_open(void)
{
    int file = open("/dev/kfd", O_RDWR | O_CLOEXEC);
    CHECK(file >= 0);
    return file;
}

// A number of a file below /sys, by its name, as a reader of streams sees it.
static unsigned long property(const char *path, const char *name)
{
    char line[128];
    unsigned long value = 0;
    size_t length = strlen(name);
    FILE *stream = fopen(path, "r");
    CHECK(stream != NULL);
    while (fgets(line, sizeof line, stream)) {
        if (!strncmp(line, name, length) && line[length] == ' ')
            value = strtoul(line + length, 0, 10);
    }
    fclose(stream);
    return value;
}

static uint32_t first_gpu(void)
{
    uint32_t id = 0;
    FILE *stream = fopen(NODES "/1/gpu_id", "r");
    CHECK(stream && fscanf(stream, "%u", &id) == 1 && id);
    fclose(stream);
    return id;
}

static void test_files(void)
{
    char text[16] = "";
    unsigned found = 0;
    DIR *folder = opendir(NODES);
    CHECK(folder != NULL);
    for (const struct dirent *entry; (entry = readdir(folder));) found |= 1u << atoi(entry->d_name);
    CHECK(closedir(folder) == 0 && found == 7);
    CHECK(property(NODES "/0/properties", "cpu_cores_count") > 0);
    CHECK(property(NODES "/1/properties", "gfx_target_version") == 90006);
    CHECK(property(NODES "/2/properties", "gfx_target_version") == 90402);
    CHECK(property(NODES "/1/properties", "num_xcc") == 1);
    CHECK(property(NODES "/1/properties", "simd_count") == 4 * 4);
    // Eight dies of two compute units: of SIMDs and arrays the driver tells the sum.
    CHECK(property(NODES "/2/properties", "num_xcc") == 8);
    CHECK(property(NODES "/2/properties", "simd_count") == 8 * 2 * 4);
    CHECK(property(NODES "/2/properties", "array_count") == 8);
    CHECK(property(NODES "/2/properties", "cu_per_simd_array") == 2);
    CHECK(property(NODES "/2/io_links/1/properties", "node_to") == 1);
    CHECK(property(NODES "/1/mem_banks/0/properties", "size_in_bytes") == 4ul << 30);
    CHECK(!fopen(NODES "/3/properties", "r") && errno == ENOENT);
    CHECK(!fopen(NODES "/1/caches/2/properties", "r") && errno == ENOENT);
    CHECK(open(NODES "/1/properties", O_RDWR) == -1 && errno == EACCES);
    int file = open("/sys/module/amdgpu/initstate", O_RDONLY);
    CHECK(read(file, text, sizeof text) == 5 && !memcmp(text, "live\n", 5));
    close(file);
    // Other files are what they were.
    CHECK((folder = opendir("/proc/self/fd")) && readdir(folder) && !closedir(folder));
    CHECK((file = open("/dev/null", O_RDWR)) >= 0 && ioctl(file, FIONREAD, &found) == -1);
    CHECK(ASK(file, GET_VERSION, &(kfd_version_t){0}) == -1 && errno == ENOTTY);
    close(file);
}

// A descriptor is known by what it is, not by its number.
static void test_descriptors(void)
{
    kfd_version_t version = {0};
    int file = kfd_open(), copy = dup(file);
    close(file);
    CHECK(open("/dev/null", O_RDWR) == file);
    CHECK(ASK(file, GET_VERSION, &version) == -1);
    CHECK(ASK(copy, GET_VERSION, &version) == 0 && version.major_version == 1);
    close(file);
    close(copy);
}

// Ends a child that ran well.
static void leave(void)
{
    _exit(0);
}

static void wait_for_child(pid_t child)
{
    int status = 0;
    CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0);
}

// A child may not use the driver that its parent opened, only one that it opens itself.
static void test_fork(void)
{
    int file = kfd_open();
    kfd_create_event_t event = {.event_type = KFD_EVENT_SIGNAL};
    CHECK(ASK(file, CREATE_EVENT, &event) == 0);
    pid_t child = fork();
    if (child == 0) {
        kfd_event_t set = {event.event_id, 0};
        CHECK(ASK(file, SET_EVENT, &set) == -1 && errno == EBADF);
        int own = kfd_open();
        CHECK(ASK(file, SET_EVENT, &set) == -1 && errno == EBADF);
        CHECK(ASK(own, SET_EVENT, &set) == -1 && errno == EINVAL); // it is the parent's
        CHECK(ASK(own, CREATE_EVENT, &event) == 0);
        leave();
    }
    wait_for_child(child);
    kfd_event_data_t data = {.event_id = event.event_id};
    kfd_wait_events_t waited = {number(&data), 1, 0, 0, 0};
    CHECK(ASK(file, WAIT_EVENTS, &waited) == 0 && waited.wait_result == KFD_WAIT_TIMEOUT);
    close(file);
}

enum { SIZE = 1 << 20 };

static kfd_alloc_memory_t memory_alloc(int file)
{
    kfd_alloc_memory_t memory = {.size = SIZE, .gpu_id = first_gpu(), .flags = KFD_MEM_VRAM};
    CHECK(ASK(file, ALLOC_MEMORY_OF_GPU, &memory) == 0);
    return memory;
}

static uint8_t *memory_see(uint64_t offset)
{
    int render = open("/dev/dri/renderD128", O_RDWR | O_CLOEXEC);
    CHECK(render >= 0);
    void *bytes = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, render, (off_t)offset);
    CHECK(bytes != MAP_FAILED);
    close(render);
    return bytes;
}

// Another process opens memory by a handle, and sees what this one writes.
static void test_ipc(void)
{
    int file = kfd_open(), ready[2], go[2];
    char byte = 0;
    kfd_alloc_memory_t memory = memory_alloc(file);
    kfd_ipc_export_t exported = {.handle = memory.handle, .gpu_id = memory.gpu_id};
    CHECK(ASK(file, IPC_EXPORT_HANDLE, &exported) == 0);
    uint8_t *bytes = memory_see(memory.mmap_offset);
    CHECK(bytes[0] == 0xdb);
    memset(bytes, 1, SIZE);
    CHECK(pipe(ready) == 0 && pipe(go) == 0);
    pid_t child = fork();
    if (child == 0) {
        int own = kfd_open();
        kfd_ipc_import_t import = {.gpu_id = memory.gpu_id};
        memcpy(import.share_handle, exported.share_handle, sizeof import.share_handle);
        CHECK(ASK(own, IPC_IMPORT_HANDLE, &import) == 0 && import.mmap_offset);
        uint8_t *seen = memory_see(import.mmap_offset);
        CHECK(seen[0] == 1 && seen[SIZE - 1] == 1);
        seen[SIZE - 1] = 2;
        CHECK(write(ready[1], &byte, 1) == 1 && read(go[0], &byte, 1) == 1);
        CHECK(seen[0] == 1); // the other has let go of it
        CHECK(ASK(own, FREE_MEMORY_OF_GPU, &(kfd_free_memory_t){import.handle}) == 0);
        import.handle = 0;
        CHECK(ASK(own, IPC_IMPORT_HANDLE, &import) == -1 && errno == EINVAL); // it is gone
        leave();
    }
    CHECK(read(ready[0], &byte, 1) == 1);
    CHECK(bytes[SIZE - 1] == 2);
    CHECK(ASK(file, FREE_MEMORY_OF_GPU, &(kfd_free_memory_t){memory.handle}) == 0);
    CHECK(write(go[1], &byte, 1) == 1);
    wait_for_child(child);
    munmap(bytes, SIZE);
    close(file);
}

// As libdrm's functions have it, by a descriptor.
static void test_dmabuf(void)
{
    int file = kfd_open(), render = open("/dev/dri/renderD128", O_RDWR);
    uint32_t major, minor, handle;
    device_t *device;
    drm_import_t import;
    drm_gpu_info_t info;
    kfd_alloc_memory_t memory = memory_alloc(file);
    kfd_export_dmabuf_t exported = {.handle = memory.handle};
    CHECK(ASK(file, EXPORT_DMABUF, &exported) == 0);
    CHECK(amdgpu_device_initialize(file, &major, &minor, &device) == -EINVAL);
    CHECK(amdgpu_device_initialize(render, &major, &minor, &device) == 0);
    CHECK(amdgpu_query_gpu_info(device, &info) == 0 && info.asic_id == 0x66a1);
    CHECK(strstr(amdgpu_get_marketing_name(device), "Vega 20"));
    CHECK(amdgpu_bo_import(device, DRM_HANDLE_DMABUF, (uint32_t)render, &import) == -EINVAL);
    CHECK(amdgpu_bo_import(device, DRM_HANDLE_DMABUF, exported.dmabuf_fd, &import) == 0);
    CHECK(import.size == SIZE);
    CHECK(amdgpu_bo_export(import.buffer, DRM_HANDLE_KMS, &handle) == 0);
    drm_gem_mmap_t place = {.handle = handle};
    CHECK(drmCommandWriteRead(amdgpu_device_get_fd(device), DRM_GEM_MMAP, &place, sizeof place) ==
          0);
    uint8_t *one = memory_see(memory.mmap_offset), *other = memory_see(place.offset);
    one[5] = 7;
    CHECK(other[5] == 7);
    CHECK(amdgpu_bo_va_op(import.buffer, 0, SIZE, number(one), 0, DRM_VA_MAP) == 0);
    CHECK(amdgpu_bo_va_op(import.buffer, 0, SIZE, number(one), 0, DRM_VA_UNMAP) == 0);
    CHECK(amdgpu_bo_free(import.buffer) == 0);
    CHECK(amdgpu_device_deinitialize(device) == 0);
    CHECK(ASK(file, FREE_MEMORY_OF_GPU, &(kfd_free_memory_t){memory.handle}) == 0);
    close((int)exported.dmabuf_fd);
    close(render);
    close(file);
}

// The position of an exported buffer, which says what it is, does not move.
static void test_seek(void)
{
    int file = kfd_open(), render = open("/dev/dri/renderD128", O_RDWR);
    kfd_alloc_memory_t memory = memory_alloc(file);
    kfd_export_dmabuf_t exported = {.handle = memory.handle};
    CHECK(ASK(file, EXPORT_DMABUF, &exported) == 0);
    int shared = (int)exported.dmabuf_fd;
    CHECK(lseek(shared, 0, SEEK_END) == SIZE);
    CHECK(lseek64(shared, 0, SEEK_SET) == 0);
    CHECK(lseek(shared, 1, SEEK_SET) == -1 && errno == EINVAL);
    CHECK(lseek(shared, 0, SEEK_CUR) == -1 && errno == EINVAL);
    kfd_dmabuf_info_t info = {.dmabuf_fd = exported.dmabuf_fd};
    CHECK(ASK(file, GET_DMABUF_INFO, &info) == 0 && info.size == SIZE);
    uint32_t major, minor;
    device_t *device;
    CHECK(lseek(render, 100, SEEK_SET) == 0);
    CHECK(amdgpu_device_initialize(render, &major, &minor, &device) == 0);
    CHECK(amdgpu_device_deinitialize(device) == 0);
    CHECK(ASK(file, FREE_MEMORY_OF_GPU, &(kfd_free_memory_t){memory.handle}) == 0);
    CHECK(lseek(shared, 0, SEEK_END) == -1 && errno == EINVAL); // there is none any more
    close(shared);
    close(render);
    close(file);
    FILE *plain = tmpfile();
    CHECK(plain && write(fileno(plain), "text", 4) == 4);
    CHECK(lseek(fileno(plain), -1, SEEK_CUR) == 3 && lseek(fileno(plain), 0, SEEK_END) == 4);
    fclose(plain);
}

int main(void)
{
    alarm(60);
    test_files();
    test_descriptors();
    test_fork();
    test_ipc();
    test_dmabuf();
    test_seek();
    printf("done\n");
    return 0;
}
