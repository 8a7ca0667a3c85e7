// SPDX-License-Identifier: Apache-2.0
#include "rig.h"

#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

metal_t metal;
static unsigned passed, failed;
static int said_fd, real_stderr;
static const char *library;
static atomic_int blocks;
static char cache[] = "/tmp/rig-metal-XXXXXX"; // what was compiled, for all tests of the program

static void catch_stderr(void)
{
    said_fd = memfd_create("stderr", MFD_CLOEXEC);
    real_stderr = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 10);
    if (said_fd < 0 || real_stderr < 0 || dup2(said_fd, STDERR_FILENO) < 0) _exit(3);
}

bool rig_said(const char *text)
{
    static char all[65536];
    ssize_t count = pread(said_fd, all, sizeof all - 1, 0);
    all[count < 0 ? 0 : count] = '\0';
    return strstr(all, text) != NULL;
}

void rig_check(bool good, const char *what, const char *file, int line)
{
    if (good) return;
    static char all[65536];
    ssize_t count = pread(said_fd, all, sizeof all - 1, 0);
    dprintf(real_stderr, "%s:%d: %s\n%.*s", file, line, what, (int)(count < 0 ? 0 : count), all);
    _exit(9);
}

// Opened in the child: its settings are read once.
static void open_library(void)
{
    void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    if (!handle) {
        dprintf(real_stderr, "%s\n", dlerror());
        _exit(3);
    }
#define GET(symbol) *(void **)&metal.symbol = dlsym(handle, #symbol)
    GET(objc_msgSend);
    GET(objc_msgSend_stret);
    GET(sel_registerName);
    GET(objc_getClass);
    GET(objc_autoreleasePoolPush);
    GET(objc_autoreleasePoolPop);
    GET(MTLCreateSystemDefaultDevice);
    GET(MTLCopyAllDevices);
    GET(dispatch_queue_create);
    GET(dispatch_release);
    GET(simMetalMessages);
    GET(simMetalObjects);
#undef GET
    metal.stack_block = dlsym(handle, "_NSConcreteStackBlock");
    metal.global_block = dlsym(handle, "_NSConcreteGlobalBlock");
}

// Threads of the library drop their references a little after what they signal.
static void wait_for_objects(void)
{
    while (metal.simMetalObjects(NULL) || rig_blocks()) sched_yield();
}

static int run(const char *settings, rig_test_fn test)
{
    fflush(NULL);
    pid_t child = fork();
    if (child < 0) return -1;
    if (child == 0) {
        alarm(60);
        char all[256];
        snprintf(all, sizeof all, "%s cache=%s", settings, cache);
        setenv("KEEL_SIM_METAL", all, 1);
        catch_stderr();
        open_library();
        void *pool = metal.objc_autoreleasePoolPush();
        id device = metal.MTLCreateSystemDefaultDevice();
        test(device);
        m_release(device);
        metal.objc_autoreleasePoolPop(pool);
        wait_for_objects();
        fflush(NULL);
        _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    return status;
}

static void count(const char *name, bool good, int status)
{
    passed += good;
    failed += !good;
    if (!good) fprintf(stderr, "FAILED %s, status %#x\n", name, status);
}

void rig_run(const char *name, const char *settings, rig_test_fn test)
{
    int status = run(settings, test);
    count(name, WIFEXITED(status) && WEXITSTATUS(status) == 0, status);
}

static rig_test_fn dying;
static const char *last_words;

static void on_abort(int number)
{
    _exit(rig_said(last_words) ? 42 : 43);
}

static void die(id device)
{
    signal(SIGABRT, on_abort);
    dying(device);
    _exit(44);
}

void rig_run_dying(const char *name, const char *settings, rig_test_fn test, const char *words)
{
    dying = test;
    last_words = words;
    int status = run(settings, die);
    count(name, WIFEXITED(status) && WEXITSTATUS(status) == 42, status);
}

static void remove_cache(void)
{
    DIR *folder = opendir(cache);
    for (struct dirent *entry; folder && (entry = readdir(folder)) != NULL;)
        if (entry->d_name[0] != '.') unlinkat(dirfd(folder), entry->d_name, 0);
    if (folder) closedir(folder);
    rmdir(cache);
}

unsigned rig_cached(void)
{
    unsigned count = 0;
    DIR *folder = opendir(cache);
    for (struct dirent *entry; folder && (entry = readdir(folder)) != NULL;)
        count += entry->d_name[0] != '.';
    if (folder) closedir(folder);
    return count;
}

int rig_main(int argc, char **argv, void (*all)(void))
{
    if (argc != 2) {
        fprintf(stderr, "usage: %s LIBRARY\n", argv[0]);
        return 2;
    }
    library = argv[1];
    if (!mkdtemp(cache)) return 2;
    all();
    remove_cache();
    printf("%u passed, %u failed\n", passed, failed);
    return failed || !passed;
}

extent_t rig_max_threads(id device, bool right)
{
    void (*send)(void) = metal.objc_msgSend;
    if (right && metal.objc_msgSend_stret) send = metal.objc_msgSend_stret;
    return ((extent_t(*)(id, id))send)(device, metal.sel_registerName("maxThreadsPerThreadgroup"));
}

static void block_copied(void *to, const void *from)
{
    blocks++;
}

static void block_disposed(const void *block)
{
    blocks--;
}

int rig_blocks(void)
{
    return blocks;
}

block_t rig_block(void (*invoke)(void), void *user, const char *signature)
{
    static const void *shapes[8][5];
    static unsigned next;
    const void **shape = shapes[next++ % 8];
    shape[1] = (void *)sizeof(block_t);
    shape[2] = (void *)block_copied;
    shape[3] = (void *)block_disposed;
    shape[4] = signature;
    return (block_t){metal.stack_block, SIGNATURE | HELPERS, 0, invoke, shape, user};
}

struct rig_count_t {
    pthread_mutex_t lock;
    pthread_cond_t raised;
    unsigned value;
};

rig_count_t *rig_count_new(void)
{
    rig_count_t *made = calloc(1, sizeof *made);
    if (!made) abort();
    pthread_mutex_init(&made->lock, NULL);
    pthread_cond_init(&made->raised, NULL);
    return made;
}

void rig_count_raise(rig_count_t *c)
{
    pthread_mutex_lock(&c->lock);
    c->value++;
    pthread_cond_broadcast(&c->raised);
    pthread_mutex_unlock(&c->lock);
}

void rig_count_wait(rig_count_t *c, unsigned value)
{
    pthread_mutex_lock(&c->lock);
    while (c->value < value) pthread_cond_wait(&c->raised, &c->lock);
    pthread_mutex_unlock(&c->lock);
}

void rig_count_free(rig_count_t *c)
{
    pthread_cond_destroy(&c->raised);
    pthread_mutex_destroy(&c->lock);
    free(c);
}
