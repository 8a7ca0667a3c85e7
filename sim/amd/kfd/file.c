// SPDX-License-Identifier: Apache-2.0
#include "amd/kfd/file.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "amd/kfd/kfd.h"
#include "amd/kfd/store.h"
#include "amd/usage.h"

// The position in a descriptor of a render node says which one it is. Those of exported buffers are
// smaller.
#define RENDER_POSITION (INT64_C(1) << 40)

typedef struct {
    dev_t device;
    ino_t inode;
} identity_t;

static identity_t kfd, inherited; // zero: none

static identity_t identity_of(int file)
{
    struct stat facts;
    if (file < 0 || fstat(file, &facts)) return (identity_t){0};
    return (identity_t){facts.st_dev, facts.st_ino};
}

static bool same(identity_t a, identity_t b)
{
    return a.inode && a.device == b.device && a.inode == b.inode;
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool is_child; // that still remembers what its parent had

// A child has nothing of what its parent had in the driver, nor the threads behind that. It keeps
// the memory of it until it opens the driver itself, for what the guard says of strayed accesses.
static void forked(void)
{
    memory_release(true);
    if (kfd.inode) inherited = kfd;
    kfd = (identity_t){0};
    is_child = true;
    pthread_mutex_unlock(&lock);
}

static void before_fork(void)
{
    pthread_mutex_lock(&lock);
    memory_hold();
}

static void after_fork(void)
{
    memory_release(false);
    pthread_mutex_unlock(&lock);
}

static void forget(void)
{
    queue_forget();
    event_forget();
    watchdog_forget();
    usage_forget();
    svm_forget();
    map_forget();
    memory_forget();
}

static void start(void)
{
    pthread_atfork(before_fork, after_fork, forked);
    guard_start();
    log_line(LOG_CALLS, "the driver is opened: %u GPUs", gpu_count());
}

// The driver as it is for this process.
static void enter(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, start);
    pthread_mutex_lock(&lock);
    if (is_child) forget();
    is_child = false;
    if (!kfd.inode) kfd = identity_of(doorbell_file());
    pthread_mutex_unlock(&lock);
}

static int duplicate(int file, int flags)
{
    return fcntl(file, flags & O_CLOEXEC ? F_DUPFD_CLOEXEC : F_DUPFD, 0);
}

static int open_kfd(int flags)
{
    enter();
    int file = doorbell_file();
    return file < 0 ? errno = ENOMEM, -1 : duplicate(file, flags);
}

static int open_render(unsigned minor, int flags)
{
    char path[64];
    if (minor <= RENDER_MINOR || !gpu_is(minor - RENDER_MINOR)) return FILE_FOREIGN;
    enter();
    int file = memory_file();
    if (file < 0) return errno = ENOMEM, -1;
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    int opened = open(path, O_RDWR | (flags & O_CLOEXEC));
    if (opened >= 0) store_seek(opened, RENDER_POSITION + (minor - RENDER_MINOR), SEEK_SET);
    return opened;
}

// The text of a file, in one that can be read, mapped and measured.
static int open_text(char *text, int flags)
{
    int file = memfd_create("sysfs", flags & O_CLOEXEC ? MFD_CLOEXEC : 0);
    size_t size = strlen(text);
    bool good = file >= 0 && write(file, text, size) == (ssize_t)size;
    free(text);
    if (good) lseek(file, 0, SEEK_SET);
    if (!good && file >= 0) close(file);
    return good ? file : -1;
}

static bool begins(const char *path, const char *begin)
{
    return !strncmp(path, begin, strlen(begin));
}

int file_open(const char *path, int flags)
{
    unsigned minor;
    char end;
    if (!path || path[0] != '/') return FILE_FOREIGN;
    if (!strcmp(path, "/dev/kfd")) return open_kfd(flags);
    if (begins(path, "/dev/dri/")) {
        bool render = sscanf(path, "/dev/dri/renderD%u%c", &minor, &end) == 1;
        return render ? open_render(minor, flags) : FILE_FOREIGN;
    }
    if (!begins(path, "/sys/devices/virtual/kfd") && !begins(path, "/sys/module/amdgpu")) {
        return FILE_FOREIGN;
    }
    char *text = topology_text(path);
    if (!text) return errno = ENOENT, -1;
    if ((flags & O_ACCMODE) == O_RDONLY) return open_text(text, flags);
    free(text);
    return errno = EACCES, -1;
}

file_kind_t file_kind(int descriptor)
{
    identity_t identity = identity_of(descriptor);
    pthread_mutex_lock(&lock);
    file_kind_t kind = same(kfd, identity)         ? FILE_KFD
                       : same(inherited, identity) ? FILE_INHERITED
                                                   : FILE_OTHER;
    pthread_mutex_unlock(&lock);
    return kind;
}

unsigned file_render_node(int descriptor)
{
    if (!same(identity_of(memory_file()), identity_of(descriptor))) return 0;
    int64_t node = store_seek(descriptor, 0, SEEK_CUR) - RENDER_POSITION;
    return node > 0 && gpu_is((unsigned)node) ? (unsigned)node : 0;
}

int64_t file_seek(int descriptor, int64_t offset, int whence)
{
    if (!store_is(descriptor)) return FILE_FOREIGN;
    if (file_render_node(descriptor)) return 0;
    kfd_dmabuf_info_t info = {.dmabuf_fd = (uint32_t)descriptor};
    bool known = whence == SEEK_SET || whence == SEEK_END;
    if (offset || !known || memory_info(&info)) return errno = EINVAL, -1;
    return whence == SEEK_END ? (int64_t)info.size : 0;
}
