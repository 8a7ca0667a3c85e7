// SPDX-License-Identifier: Apache-2.0
#include "cuda/module.h"

#include "cuda/arena.h"
#include "cuda/call.h"
#include "cuda/engine.h"
#include "cuda/limits.h"

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#if defined(__aarch64__)
enum { HOST_MACHINE = EM_AARCH64 };
#elif defined(__x86_64__)
enum { HOST_MACHINE = EM_X86_64 };
#else
#error "which processor is this?"
#endif

static CUmodule modules;

// What a load has to say, for those who asked for a log.
typedef struct report_t {
    char text[512];
} report_t;

__attribute__((format(printf, 2, 3))) static void report(report_t *out, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(out->text, sizeof out->text, format, arguments);
    va_end(arguments);
}

// The size of an object of which only the beginning is known; 0 with a report when it is none.
static size_t image_size(const void *image, report_t *out)
{
    const Elf64_Ehdr *header = image;
    if (memcmp(header->e_ident, ELFMAG, SELFMAG) != 0) {
        report(out, "the image is neither an ELF file nor PTX; this device (compute capability "
                    "0.0) runs shared objects for the processor of its host");
        return 0;
    }
    if (header->e_ident[EI_CLASS] != ELFCLASS64 || header->e_machine != HOST_MACHINE) {
        report(out, "the image is for ELF machine %u, and this device runs code for machine %d",
               header->e_machine, HOST_MACHINE);
        return 0;
    }
    size_t size = header->e_shoff + (size_t)header->e_shnum * header->e_shentsize;
    const Elf64_Phdr *segments = (const void *)((const char *)image + header->e_phoff);
    for (unsigned i = 0; i < header->e_phnum; i++) {
        size_t end = segments[i].p_offset + segments[i].p_filesz;
        if (end > size) size = end;
    }
    return size;
}

// A path of a descriptor that was never used: the loader knows by its path what it has loaded.
// Between the parts of a path, one slash is worth as much as two.
static void path_make(char *out, int fd)
{
    uint64_t serial = ++state.serial;
    out += sprintf(out, "/proc/self/fd");
    for (; serial; serial >>= 1) out += sprintf(out, serial & 1 ? "/." : "/");
    sprintf(out, "/%d", fd);
}

// A file of its own for each load, so that each module has variables of its own.
static void *image_open(const void *image, size_t size, report_t *out)
{
    char path[256];
    int fd = memfd_create("module", MFD_CLOEXEC);
    if (fd < 0) return NULL;
    void *library = NULL;
    if (write(fd, image, size) == (ssize_t)size) {
        path_make(path, fd);
        library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
        if (!library) report(out, "%s", dlerror());
    }
    close(fd);
    return library;
}

// Code for the processor of the host, which says itself what is in it.
static CUresult object_open(CUmodule module, const void *bytes, report_t *out)
{
    size_t size = image_size(bytes, out);
    if (size == 0) return CUDA_ERROR_NO_BINARY_FOR_GPU;
    module->library = image_open(bytes, size, out);
    if (!module->library) return CUDA_ERROR_INVALID_IMAGE;
    const cuda_host_image_t *image = module->image = dlsym(module->library, CUDA_HOST_IMAGE);
    if (!image || image->abi != CUDA_HOST_ABI) {
        report(out,
               image ? "the image has ABI %u, and %d is known"
                     : "the image lacks the symbol " CUDA_HOST_IMAGE,
               image ? image->abi : 0, CUDA_HOST_ABI);
        return CUDA_ERROR_INVALID_IMAGE;
    }
    const cuda_host_services_t **slot = dlsym(module->library, CUDA_HOST_SERVICES);
    if (slot) *slot = &services;
    return CUDA_SUCCESS;
}

static CUresult text_open(CUmodule module, const char *text, report_t *out)
{
    module->ptx = ptx_load(text, out->text, sizeof out->text);
    if (!module->ptx) return CUDA_ERROR_INVALID_PTX;
    module->image = &module->ptx->image;
    return CUDA_SUCCESS;
}

static CUresult module_fill(CUmodule module)
{
    const cuda_host_image_t *image = module->image;
    module->functions = calloc(image->entry_count + 1, sizeof *module->functions);
    if (!module->functions) return CUDA_ERROR_OUT_OF_MEMORY;
    for (uint32_t i = 0; i < image->entry_count; i++) {
        const cuda_host_entry_t *entry = &image->entries[i];
        uint32_t fixed = entry->shared_size;
        module->functions[i] = (struct CUfunc_st){
            MAGIC_FUNCTION, module, entry, fixed < LIMIT_SHARED ? LIMIT_SHARED - fixed : 0, -1};
    }
    for (uint32_t i = 0; i < image->global_count; i++) {
        const cuda_host_global_t *global = &image->globals[i];
        if (!arena_adopt(RANGE_GLOBAL, (uintptr_t)global->address, global->size, module->context)) {
            return CUDA_ERROR_OUT_OF_MEMORY;
        }
    }
    return CUDA_SUCCESS;
}

static void module_close(CUmodule module)
{
    for (uint32_t i = 0; module->image && i < module->image->global_count; i++) {
        range_t *range = arena_find_base((uintptr_t)module->image->globals[i].address);
        if (range) arena_free(range);
    }
    for (uint32_t i = 0; module->functions && i < module->image->entry_count; i++) {
        module->functions[i].magic = 0;
    }
    if (module->library) dlclose(module->library);
    ptx_unload(module->ptx);
    module->library = NULL;
    module->ptx = NULL;
    module->image = NULL;
    module->magic = 0;
}

static CUresult module_load(CUcontext context, CUmodule *out, const void *image, report_t *log)
{
    if (!out || !image) return CUDA_ERROR_INVALID_VALUE;
    context_settle(context);
    CUmodule module = calloc(1, sizeof *module);
    if (!module) return CUDA_ERROR_OUT_OF_MEMORY;
    module->magic = MAGIC_MODULE;
    module->context = context;
    module->next = modules;
    modules = module;
    CUresult error =
        ptx_is(image) ? text_open(module, image, log) : object_open(module, image, log);
    if (!error) error = module_fill(module);
    if (error) {
        module_close(module);
        return error;
    }
    context->modules++;
    *out = module;
    return CUDA_SUCCESS;
}

void modules_forget(CUcontext context)
{
    for (CUmodule module = modules; module; module = module->next) {
        if (module->magic == MAGIC_MODULE && module->context == context) module_close(module);
    }
}

typedef struct log_buffer_t {
    char *text;
    size_t size;
    void **size_slot; // where the number of bytes written goes
} log_buffer_t;

static CUresult options_read(unsigned count, CUjit_option *options, void **values,
                             log_buffer_t *out)
{
    if (count && (!options || !values)) return CUDA_ERROR_INVALID_VALUE;
    for (unsigned i = 0; i < count; i++) {
        if (options[i] < 0 || options[i] >= CU_JIT_NUM_OPTIONS) return CUDA_ERROR_INVALID_VALUE;
        if (options[i] == CU_JIT_ERROR_LOG_BUFFER) out->text = values[i];
        if (options[i] == CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES) values[i] = NULL;
        if (options[i] != CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES) continue;
        out->size = (unsigned)(uintptr_t)values[i];
        out->size_slot = &values[i];
    }
    return CUDA_SUCCESS;
}

static void log_write(const log_buffer_t *buffer, const char *text)
{
    size_t length = 0;
    if (buffer->text && buffer->size) {
        snprintf(buffer->text, buffer->size, "%s", text);
        length = strlen(buffer->text);
    }
    if (buffer->size_slot) *buffer->size_slot = (void *)(uintptr_t)length;
}

CUresult cuModuleLoadDataEx(CUmodule *out, const void *image, unsigned int count,
                            CUjit_option *options, void **values)
{
    CALL(CALL_CONTEXT | CALL_UNSAFE);
    log_buffer_t buffer = {0};
    report_t log = {""};
    CUresult error = options_read(count, options, values, &buffer);
    if (error) return error;
    error = module_load(call.context, out, image, &log);
    log_write(&buffer, log.text);
    return error;
}

CUresult cuModuleLoadData(CUmodule *out, const void *image)
{
    CALL(CALL_CONTEXT);
    report_t log = {""};
    return module_load(call.context, out, image, &log);
}

CUresult cuModuleLoadFatBinary(CUmodule *out, const void *image)
{
    CALL(CALL_CONTEXT);
    report_t log = {""};
    return module_load(call.context, out, image, &log);
}

// The bytes of a file and a 0; NULL if it cannot be read, or is too short to be an image.
static char *file_read(int fd)
{
    struct stat info;
    if (fstat(fd, &info) != 0 || info.st_size < (off_t)sizeof(Elf64_Ehdr)) return NULL;
    size_t size = (size_t)info.st_size, have = 0;
    char *bytes = calloc(1, size + 1);
    while (bytes && have < size) {
        ssize_t count = read(fd, bytes + have, size - have);
        if (count <= 0) break;
        have += (size_t)count;
    }
    if (have == size) return bytes;
    free(bytes);
    return NULL;
}

CUresult cuModuleLoad(CUmodule *out, const char *path)
{
    CALL(CALL_CONTEXT);
    report_t log = {""};
    if (!path) return CUDA_ERROR_INVALID_VALUE;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return CUDA_ERROR_FILE_NOT_FOUND;
    char *bytes = file_read(fd);
    close(fd);
    if (!bytes) return CUDA_ERROR_INVALID_IMAGE;
    CUresult error = module_load(call.context, out, bytes, &log);
    free(bytes);
    return error;
}

static bool work_is_of(const work_t *work, const void *module)
{
    return work->kind == WORK_KERNEL && work->kernel.function->module == module;
}

static CUresult module_unload(CUmodule module)
{
    if (!IS(module, MAGIC_MODULE)) return CUDA_ERROR_INVALID_HANDLE;
    const char *maker = work_find(work_is_of, module);
    if (maker) {
        complain("%s: a kernel of the module is still to run, by what %s has enqueued", call_name(),
                 maker);
        return CUDA_ERROR_INVALID_VALUE;
    }
    context_settle(module->context);
    while (module->running) state_wait(); // when the context has failed
    if (!IS(module, MAGIC_MODULE)) return CUDA_ERROR_INVALID_HANDLE;
    if (module->context->modules) module->context->modules--;
    module_close(module);
    return CUDA_SUCCESS;
}

CUresult cuModuleUnload(CUmodule module)
{
    CALL(CALL_RELEASE);
    CUresult error = module_unload(module);
    return error ? error : call.late;
}

CUresult cuModuleGetLoadingMode(CUmoduleLoadingMode *out)
{
    CALL(CALL_PLAIN);
    if (!out) return CUDA_ERROR_INVALID_VALUE;
    *out = CU_MODULE_EAGER_LOADING;
    return CUDA_SUCCESS;
}

static CUresult function_find(CUmodule module, const char *name, CUfunction *out)
{
    if (!IS(module, MAGIC_MODULE)) return CUDA_ERROR_INVALID_HANDLE;
    if (!out || !name) return CUDA_ERROR_INVALID_VALUE;
    for (uint32_t i = 0; i < module->image->entry_count; i++) {
        if (strcmp(module->image->entries[i].name, name) != 0) continue;
        *out = &module->functions[i];
        return CUDA_SUCCESS;
    }
    return CUDA_ERROR_NOT_FOUND;
}

CUresult cuModuleGetFunction(CUfunction *out, CUmodule module, const char *name)
{
    CALL(CALL_CONTEXT);
    return function_find(module, name, out);
}

CUresult cuModuleGetFunctionCount(unsigned int *out, CUmodule module)
{
    CALL(CALL_CONTEXT);
    if (!IS(module, MAGIC_MODULE)) return CUDA_ERROR_INVALID_HANDLE;
    if (!out) return CUDA_ERROR_INVALID_VALUE;
    *out = module->image->entry_count;
    return CUDA_SUCCESS;
}

CUresult cuModuleEnumerateFunctions(CUfunction *out, unsigned int count, CUmodule module)
{
    CALL(CALL_CONTEXT);
    if (!IS(module, MAGIC_MODULE)) return CUDA_ERROR_INVALID_HANDLE;
    if (!out || count == 0) return CUDA_ERROR_INVALID_VALUE;
    for (uint32_t i = 0; i < count && i < module->image->entry_count; i++) {
        out[i] = &module->functions[i];
    }
    return CUDA_SUCCESS;
}

static CUresult global_find(CUmodule module, const char *name, CUdeviceptr *out, size_t *out_size)
{
    if (!IS(module, MAGIC_MODULE)) return CUDA_ERROR_INVALID_HANDLE;
    if (!name || (!out && !out_size)) return CUDA_ERROR_INVALID_VALUE;
    for (uint32_t i = 0; i < module->image->global_count; i++) {
        const cuda_host_global_t *global = &module->image->globals[i];
        if (strcmp(global->name, name) != 0) continue;
        if (out) *out = (uintptr_t)global->address;
        if (out_size) *out_size = global->size;
        return CUDA_SUCCESS;
    }
    return CUDA_ERROR_NOT_FOUND;
}

CUresult cuModuleGetGlobal_v2(CUdeviceptr *out, size_t *out_size, CUmodule module, const char *name)
{
    CALL(CALL_CONTEXT);
    return global_find(module, name, out, out_size);
}

// A library is its module in the context it was loaded in, a kernel its function.

CUresult cuLibraryLoadData(CUlibrary *out, const void *image, CUjit_option *options, void **values,
                           unsigned int count, CUlibraryOption *library_options,
                           void **library_values, unsigned int library_count)
{
    CALL(CALL_CONTEXT);
    log_buffer_t buffer = {0};
    report_t log = {""};
    CUresult error = options_read(count, options, values, &buffer);
    if (error) return error;
    error = module_load(call.context, (CUmodule *)out, image, &log);
    log_write(&buffer, log.text);
    return error;
}

CUresult cuLibraryUnload(CUlibrary library)
{
    CALL(CALL_RELEASE);
    CUresult error = module_unload((CUmodule)library);
    return error ? error : call.late;
}

CUresult cuLibraryGetKernel(CUkernel *out, CUlibrary library, const char *name)
{
    CALL(CALL_PLAIN);
    return function_find((CUmodule)library, name, (CUfunction *)out);
}

CUresult cuLibraryGetModule(CUmodule *out, CUlibrary library)
{
    CALL(CALL_CONTEXT);
    if (!IS((CUmodule)library, MAGIC_MODULE)) return CUDA_ERROR_INVALID_HANDLE;
    if (!out) return CUDA_ERROR_INVALID_VALUE;
    *out = (CUmodule)library;
    return CUDA_SUCCESS;
}

CUresult cuLibraryGetGlobal(CUdeviceptr *out, size_t *out_size, CUlibrary library, const char *name)
{
    CALL(CALL_CONTEXT);
    return global_find((CUmodule)library, name, out, out_size);
}

CUresult cuKernelGetFunction(CUfunction *out, CUkernel kernel)
{
    CALL(CALL_CONTEXT);
    if (!IS((CUfunction)kernel, MAGIC_FUNCTION)) return CUDA_ERROR_INVALID_HANDLE;
    if (!out) return CUDA_ERROR_INVALID_VALUE;
    *out = (CUfunction)kernel;
    return CUDA_SUCCESS;
}

CUresult cuKernelGetName(const char **out, CUkernel kernel)
{
    CALL(CALL_PLAIN);
    if (!IS((CUfunction)kernel, MAGIC_FUNCTION)) return CUDA_ERROR_INVALID_HANDLE;
    if (!out) return CUDA_ERROR_INVALID_VALUE;
    *out = ((CUfunction)kernel)->entry->name;
    return CUDA_SUCCESS;
}
