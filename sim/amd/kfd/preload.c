// SPDX-License-Identifier: Apache-2.0
// The functions of the C library through which a program reaches the kernel driver, in front of the
// library's own. Everything that is not about the driver's files goes on to that one.
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "amd/kfd/file.h"
#include "amd/kfd/kfd.h"
#include "amd/usage.h"

// For a program that opened this library by its path: runs the program anew, with the same
// arguments, so that the library is in front of the C library. Returns 0 in that second run, at
// once, or an error number.
int keel_sim_enter(char **argv);

// The function that this one stands in front of. Relaxed: threads that look at once find the same.
#define NEXT(name)                                                                                 \
    static __typeof__(&name) found;                                                                \
    __typeof__(&name) next = __atomic_load_n(&found, __ATOMIC_RELAXED);                            \
    if (!next) {                                                                                   \
        void *symbol = dlsym(RTLD_NEXT, #name);                                                    \
        memcpy(&next, &symbol, sizeof next);                                                       \
        __atomic_store_n(&found, next, __ATOMIC_RELAXED);                                          \
    }

// The descriptor of a file of the driver; FILE_FOREIGN for any other.
static int own_open(const char *path, int flags)
{
    uint64_t begin = usage_begin();
    int file = file_open(path, flags);
    usage_end(begin);
    return file;
}

#define OPEN(name)                                                                                 \
    EXPORT int name(const char *path, int flags, ...)                                              \
    {                                                                                              \
        NEXT(name)                                                                                 \
        va_list arguments;                                                                         \
        va_start(arguments, flags);                                                                \
        bool makes = flags & O_CREAT || (flags & O_TMPFILE) == O_TMPFILE;                          \
        mode_t mode = makes ? va_arg(arguments, mode_t) : 0;                                       \
        va_end(arguments);                                                                         \
        int file = own_open(path, flags);                                                          \
        return file == FILE_FOREIGN ? next(path, flags, mode) : file;                              \
    }
OPEN(open)
OPEN(open64)

// What programs call that were compiled with checks of the C library.
int __open_2(const char *path, int flags);
int __open64_2(const char *path, int flags);
#define OPEN_CHECKED(name)                                                                         \
    EXPORT int name(const char *path, int flags)                                                   \
    {                                                                                              \
        NEXT(name)                                                                                 \
        int file = own_open(path, flags);                                                          \
        return file == FILE_FOREIGN ? next(path, flags) : file;                                    \
    }
OPEN_CHECKED(__open_2)
OPEN_CHECKED(__open64_2)

static FILE *stream_of(int file, const char *mode)
{
    FILE *stream = file < 0 ? NULL : fdopen(file, mode);
    if (!stream && file >= 0) close(file);
    return stream;
}

#define FOPEN(name)                                                                                \
    EXPORT FILE *name(const char *path, const char *mode)                                          \
    {                                                                                              \
        NEXT(name)                                                                                 \
        int file = own_open(path, *mode == 'r' && !strchr(mode, '+') ? O_RDONLY : O_RDWR);         \
        return file == FILE_FOREIGN ? next(path, mode) : stream_of(file, mode);                    \
    }
FOPEN(fopen)
FOPEN(fopen64)

// A folder that is only a list of names. Programs have it as a DIR.
typedef struct listing {
    struct listing *next;
    char *names; // owned
    const char *at;
    struct dirent entry;
} listing_t;

static listing_t *_Atomic listings;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

// NULL when it is a DIR of the C library.
static listing_t *listing_of(const void *folder)
{
    if (!atomic_load(&listings)) return NULL;
    pthread_mutex_lock(&lock);
    listing_t *listing = listings;
    while (listing && listing != folder) listing = listing->next;
    pthread_mutex_unlock(&lock);
    return listing;
}

EXPORT DIR *opendir(const char *path)
{
    NEXT(opendir)
    char *names = path[0] == '/' ? topology_list(path) : NULL;
    if (!names) return next(path);
    listing_t *listing = calloc(1, sizeof *listing);
    if (!listing) {
        free(names);
        return NULL;
    }
    listing->names = names;
    listing->at = names;
    pthread_mutex_lock(&lock);
    listing->next = listings;
    atomic_store(&listings, listing);
    pthread_mutex_unlock(&lock);
    return (DIR *)listing;
}

static struct dirent *listing_read(listing_t *listing)
{
    if (!*listing->at) return NULL;
    struct dirent *entry = &listing->entry;
    entry->d_ino = (ino_t)(listing->at - listing->names + 1);
    entry->d_type = DT_DIR;
    entry->d_reclen = sizeof *entry;
    snprintf(entry->d_name, sizeof entry->d_name, "%s", listing->at);
    listing->at += strlen(listing->at) + 1;
    return entry;
}

EXPORT struct dirent *readdir(DIR *folder)
{
    NEXT(readdir)
    listing_t *listing = listing_of(folder);
    return listing ? listing_read(listing) : next(folder);
}

// The same struct, where off_t has 64 bits.
EXPORT struct dirent64 *readdir64(DIR *folder)
{
    NEXT(readdir64)
    listing_t *listing = listing_of(folder);
    return listing ? (struct dirent64 *)listing_read(listing) : next(folder);
}

EXPORT int closedir(DIR *folder)
{
    NEXT(closedir)
    listing_t *listing = listing_of(folder);
    if (!listing) return next(folder);
    pthread_mutex_lock(&lock);
    if (listings == listing) {
        atomic_store(&listings, listing->next);
    } else {
        listing_t *before = listings;
        while (before->next != listing) before = before->next;
        before->next = listing->next;
    }
    pthread_mutex_unlock(&lock);
    free(listing->names);
    free(listing);
    return 0;
}

EXPORT int ioctl(int file, unsigned long request, ...)
{
    NEXT(ioctl)
    va_list list;
    va_start(list, request);
    void *arguments = va_arg(list, void *);
    va_end(list);
    if (_IOC_TYPE(request) != 'K') return next(file, request, arguments);
    switch (file_kind(file)) {
    case FILE_OTHER: return next(file, request, arguments);
    case FILE_INHERITED: return errno = EBADF, -1;
    case FILE_KFD: break;
    }
    uint64_t begin = usage_begin();
    int result = kfd_request(_IOC_NR(request), arguments, _IOC_SIZE(request));
    usage_end(begin);
    if (result < 0) errno = -result;
    return result < 0 ? -1 : 0;
}

// Buffers of other processes are not in the file that a render node is. The C library's own
// function does no more than the system call, and may be needed before others can be found.
static void *map_file(void *address, size_t size, int rights, int flags, int file, off_t offset)
{
    uint64_t place;
    int other;
    if (file >= 0 && memory_elsewhere((uint64_t)offset, &other, &place)) {
        file = other;
        offset = (off_t)place;
    }
    void *mapped = (void *)syscall(SYS_mmap, address, size, rights, flags, file, offset);
    if (mapped != MAP_FAILED) svm_drop(mapped, size); // what was there before
    return mapped;
}

EXPORT void *mmap(void *address, size_t size, int rights, int flags, int file, off_t offset)
{
    return map_file(address, size, rights, flags, file, offset);
}

EXPORT void *mmap64(void *address, size_t size, int rights, int flags, int file, off64_t offset)
{
    return map_file(address, size, rights, flags, file, offset);
}

EXPORT int munmap(void *address, size_t size)
{
    svm_drop(address, size);
    return (int)syscall(SYS_munmap, address, size);
}

// As with mmap, the C library's own is the system call.
static off64_t seek(int file, off64_t offset, int whence)
{
    int64_t place = file_seek(file, offset, whence);
    return place == FILE_FOREIGN ? syscall(SYS_lseek, file, offset, whence) : place;
}

EXPORT off_t lseek(int file, off_t offset, int whence)
{
    return seek(file, offset, whence);
}

EXPORT off64_t lseek64(int file, off64_t offset, int whence)
{
    return seek(file, offset, whence);
}

__attribute__((destructor)) static void tell(void)
{
    usage_tell();
}

// Where the library that holds an address was loaded from; NULL when none does.
static const char *loaded_from(const void *address, const void **out_base)
{
    Dl_info info;
    if (!address || !dladdr(address, &info)) return NULL;
    *out_base = info.dli_fbase;
    return info.dli_fname;
}

EXPORT int keel_sim_enter(char **argv)
{
    const void *here, *first = NULL;
    const char *path = loaded_from(loaded_from, &here), *old = getenv("LD_PRELOAD");
    loaded_from(dlsym(RTLD_DEFAULT, "ioctl"), &first);
    if (!path) return ENOENT;
    if (first == here) return 0;
    char all[8192];
    int length = snprintf(all, sizeof all, "%s%s%s", path, old ? ":" : "", old ? old : "");
    if (length < 0 || (size_t)length >= sizeof all) return ENAMETOOLONG;
    if (setenv("LD_PRELOAD", all, 1)) return errno;
    execv("/proc/self/exe", argv);
    return errno;
}
