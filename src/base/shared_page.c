// SPDX-License-Identifier: Apache-2.0
#include "base/shared_page.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/status.h"

#if defined(__linux__) && !KEEL_PORTABLE

bool shared_page_is_supported(void)
{
    return true;
}

// On the first byte of the file; nothing else is locked.
static struct flock lock_of(short type)
{
    return (struct flock){.l_type = type, .l_whence = SEEK_SET, .l_start = 0, .l_len = 1};
}

// Says that this description is there.
static keel_status_t description_lock(int fd)
{
    struct flock lock = lock_of(F_RDLCK);
    if (fcntl(fd, F_OFD_SETLK, &lock) == 0) return NULL;
    if (errno == EAGAIN || errno == EACCES)
        return KEEL_ERROR(KEEL_FAILED_PRECONDITION,
                          "another process has locked the memory of the semaphore");
    return status_from_errno(KEEL_RESOURCE_EXHAUSTED, errno, "cannot lock shared memory");
}

// A new description of the same file, locked. A duplicate would have the old one's.
static keel_status_t description_open(int fd, int *opened)
{
    char path[32];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    *opened = open(path, O_RDWR | O_CLOEXEC);
    if (*opened < 0 && errno == ENOENT)
        return KEEL_ERROR(KEEL_UNSUPPORTED,
                          "/proc is not mounted: semaphores are shared with its help");
    if (*opened < 0)
        return status_from_errno(errno == EACCES || errno == EPERM ? KEEL_PERMISSION_DENIED
                                                                   : KEEL_RESOURCE_EXHAUSTED,
                                 errno, "cannot open shared memory");
    keel_status_t status = description_lock(*opened);
    if (!status) return NULL;
    close(*opened);
    *opened = -1;
    return status;
}

static keel_status_t page_map(shared_page_t *page)
{
    page->memory = mmap(NULL, page->size, PROT_READ | PROT_WRITE, MAP_SHARED, page->fd, 0);
    // A child of a fork that had it mapped would have the description open.
    if (page->memory != MAP_FAILED && madvise(page->memory, page->size, MADV_DONTFORK) == 0)
        return NULL;
    keel_status_t status =
        status_from_errno(KEEL_RESOURCE_EXHAUSTED, errno, "cannot map shared memory");
    if (page->memory == MAP_FAILED) page->memory = NULL;
    return status;
}

static keel_status_t page_size(const shared_page_t *page)
{
    if (ftruncate(page->fd, (off_t)page->size) == 0 &&
        fcntl(page->fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0)
        return NULL;
    return status_from_errno(KEEL_RESOURCE_EXHAUSTED, errno, "cannot size shared memory");
}

keel_status_t shared_page_create(size_t size, shared_page_t *page)
{
    *page = (shared_page_t){.size = size};
    page->fd = memfd_create("keel-semaphore", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (page->fd < 0)
        return status_from_errno(KEEL_RESOURCE_EXHAUSTED, errno, "cannot make shared memory");
    keel_status_t status = page_size(page);
    if (!status) status = description_lock(page->fd);
    if (!status) status = page_map(page);
    if (status) shared_page_close(page);
    return status;
}

// That it is memory of which so much will be there for ever. The seals first: without them the size
// says nothing.
static keel_status_t descriptor_check(int fd, size_t size)
{
    struct stat file;
    if (fcntl(fd, F_GETFD) < 0)
        return KEEL_ERROR(KEEL_INVALID_ARGUMENT, "external->handle.fd is %d, which is not open",
                          fd);
    int seals = fcntl(fd, F_GET_SEALS);
    if (seals >= 0 && seals & F_SEAL_SHRINK && fstat(fd, &file) == 0 && file.st_size >= 0 &&
        (uint64_t)file.st_size >= size)
        return NULL;
    return KEEL_ERROR(KEEL_INVALID_ARGUMENT,
                      "external->handle.fd is %d, which is no semaphore that Keel shares: it is no "
                      "memory of %zu bytes sealed against shrinking",
                      fd, size);
}

keel_status_t shared_page_open(int fd, size_t size, shared_page_t *page)
{
    *page = (shared_page_t){.size = size, .fd = -1};
    KEEL_TRY(descriptor_check(fd, size));
    KEEL_TRY(description_open(fd, &page->fd));
    keel_status_t status = page_map(page);
    if (status) shared_page_close(page);
    return status;
}

keel_status_t shared_page_export(const shared_page_t *page, int *fd)
{
    return description_open(page->fd, fd);
}

bool shared_page_is_alone(const shared_page_t *page)
{
    struct flock lock = lock_of(F_WRLCK); // which a lock of another description would not let pass
    return fcntl(page->fd, F_OFD_GETLK, &lock) == 0 && lock.l_type == F_UNLCK;
}

#else

bool shared_page_is_supported(void)
{
    return false;
}

static keel_status_t refusal(void)
{
    return KEEL_ERROR(KEEL_UNSUPPORTED, "this system cannot share semaphores between processes");
}

keel_status_t shared_page_create(size_t size, shared_page_t *page)
{
    *page = (shared_page_t){.size = size, .fd = -1};
    return refusal();
}

keel_status_t shared_page_open(int fd, size_t size, shared_page_t *page)
{
    *page = (shared_page_t){.size = size, .fd = -1};
    (void)fd;
    return refusal();
}

keel_status_t shared_page_export(const shared_page_t *page, int *fd)
{
    (void)page, (void)fd;
    return refusal();
}

bool shared_page_is_alone(const shared_page_t *page)
{
    (void)page;
    return false;
}

#endif

void shared_page_leave(shared_page_t *page)
{
    if (page->fd >= 0) close(page->fd);
    page->fd = -1;
    page->memory = NULL;
}

void shared_page_close(shared_page_t *page)
{
    if (page->memory) munmap(page->memory, page->size);
    shared_page_leave(page);
}
