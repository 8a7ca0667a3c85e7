// SPDX-License-Identifier: Apache-2.0
// Each test runs twice: with io_uring, where this machine has it, and with pread and pwrite.
#include "base/aio.h"

#include <errno.h>
#include <fcntl.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#if KEEL_HAVE_URING
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#endif

#include "base/aio_service.h"
#include "base/futex.h"
#include "unit.h"

enum { PENDING = -1000 };

// A request and how it ended.
typedef struct transfer_t {
    aio_request_t request;
    _Atomic int error;
    pthread_t thread;
} transfer_t;

static bool ring_forbidden;
static _Atomic uint32_t ended;

static void transfer_done(aio_request_t *request, int error)
{
    transfer_t *transfer = request->context;
    transfer->thread = pthread_self();
    assert_int_equal(atomic_exchange(&transfer->error, error), PENDING);
    atomic_fetch_add(&ended, 1);
    futex_wake(&ended, 1);
}

static void wait_ended(uint32_t count)
{
    for (uint32_t now; (now = atomic_load(&ended)) < count;) futex_wait(&ended, now, KEEL_FOREVER);
    assert_int_equal(atomic_load(&ended), count);
}

static transfer_t transfer_of(int fd, bool write, void *data, uint64_t size, uint64_t offset)
{
    return (transfer_t){.request = {.fd = fd,
                                    .write = write,
                                    .data = data,
                                    .size = size,
                                    .offset = offset,
                                    .done = transfer_done},
                        .error = PENDING};
}

static void transfer_submit(aio_t *aio, transfer_t *transfer)
{
    transfer->request.context = transfer;
    aio_submit(aio, &transfer->request);
}

static int transfer(aio_t *aio, int fd, bool write, void *data, uint64_t size, uint64_t offset)
{
    transfer_t one = transfer_of(fd, write, data, size, offset);
    uint32_t before = atomic_load(&ended);
    transfer_submit(aio, &one);
    wait_ended(before + 1);
    assert_false(pthread_equal(one.thread, pthread_self()));
    return one.error;
}

static aio_t *open_aio(void)
{
    aio_t *aio;
    assert_null(aio_create(&aio));
    aio->ring_forbidden = ring_forbidden;
    atomic_store(&ended, 0);
    return aio;
}

static int open_scratch(void)
{
    char path[] = "/tmp/keel-aio-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(unlink(path), 0);
    return fd;
}

static void fill(unsigned char *data, size_t size, uint32_t seed)
{
    for (size_t i = 0; i < size; i++) data[i] = (unsigned char)((i * 2654435761u + seed) >> 13);
}

static void test_idle(void **state)
{
    aio_t *aio = open_aio();
    assert_ptr_equal(atomic_load(&aio->inbox), &aio->absent);
    aio_destroy(aio);
    aio_destroy(NULL);
}

// Sizes around those of pages and turns, at odd places.
static void test_sizes(void **state)
{
    static const size_t sizes[] = {0,
                                   1,
                                   2,
                                   511,
                                   4095,
                                   4097,
                                   65536 + 3,
                                   AIO_CHUNK - 1,
                                   AIO_CHUNK,
                                   AIO_CHUNK + 1,
                                   2 * AIO_CHUNK + 12345};
    const size_t most = 2 * AIO_CHUNK + 12345;
    unsigned char *out = malloc(most), *in = malloc(most + 1);
    int fd = open_scratch();
    aio_t *aio = open_aio();
    for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        uint64_t offset = i * 4099;
        fill(out, sizes[i], i);
        memset(in, 0xa5, sizes[i] + 1);
        assert_int_equal(transfer(aio, fd, true, out, sizes[i], offset), 0);
        assert_int_equal(transfer(aio, fd, false, in, sizes[i], offset), 0);
        assert_true(memcmp(out, in, sizes[i]) == 0);
        assert_int_equal(in[sizes[i]], 0xa5);
    }
    aio_destroy(aio);
    close(fd);
    free(out);
    free(in);
}

typedef struct submitter_t {
    aio_t *aio;
    transfer_t *transfers;
    unsigned count;
} submitter_t;

static void *submitter_run(void *argument)
{
    submitter_t *submitter = argument;
    for (unsigned i = 0; i < submitter->count; i++)
        transfer_submit(submitter->aio, &submitter->transfers[i]);
    return NULL;
}

// Far more requests at once than a ring holds, from several threads, the first one included.
static void test_many(void **state)
{
    enum { THREADS = 4, EACH = 1000, COUNT = THREADS * EACH, SIZE = 777 };
    static unsigned char out[COUNT][SIZE], in[COUNT][SIZE];
    static transfer_t transfers[COUNT];
    int fd = open_scratch();
    fill(out[0], sizeof out, 7);
    memset(in, 0, sizeof in);
    aio_t *aio = open_aio();
    for (int pass = 0; pass < 2; pass++) {
        pthread_t threads[THREADS];
        submitter_t submitters[THREADS];
        for (unsigned i = 0; i < COUNT; i++)
            transfers[i] = transfer_of(fd, pass == 0, pass ? in[i] : out[i], SIZE, i * SIZE);
        for (unsigned t = 0; t < THREADS; t++) {
            submitters[t] = (submitter_t){aio, transfers + t * EACH, EACH};
            assert_int_equal(pthread_create(&threads[t], NULL, submitter_run, &submitters[t]), 0);
        }
        for (unsigned t = 0; t < THREADS; t++) pthread_join(threads[t], NULL);
        wait_ended((uint32_t)(pass + 1) * COUNT);
        for (unsigned i = 0; i < COUNT; i++) assert_int_equal(transfers[i].error, 0);
    }
    assert_memory_equal(in, out, sizeof out);
    aio_destroy(aio);
    close(fd);
}

// The service falls asleep between requests, or almost: no call may be lost.
static void test_calls(void **state)
{
    unsigned char byte = 42, back = 0;
    int fd = open_scratch();
    aio_t *aio = open_aio();
    assert_int_equal(transfer(aio, fd, true, &byte, 1, 0), 0);
    for (unsigned i = 0; i < 2000; i++) {
        back = 0;
        assert_int_equal(transfer(aio, fd, false, &back, 1, 0), 0);
        assert_int_equal(back, 42);
        for (unsigned spin = 0; spin < i; spin++) cpu_relax();
    }
    aio_destroy(aio);
    close(fd);
}

static void test_end_of_file(void **state)
{
    unsigned char data[1000], in[2000];
    int fd = open_scratch();
    fill(data, sizeof data, 3);
    aio_t *aio = open_aio();
    assert_int_equal(transfer(aio, fd, false, in, 1, 0), AIO_END_OF_FILE);
    assert_int_equal(transfer(aio, fd, true, data, sizeof data, 0), 0);
    assert_int_equal(transfer(aio, fd, false, in, 1001, 0), AIO_END_OF_FILE);
    assert_memory_equal(in, data, sizeof data);
    assert_int_equal(transfer(aio, fd, false, in, 1000, 0), 0);
    assert_int_equal(transfer(aio, fd, false, in, 1, 999), 0);
    assert_int_equal(transfer(aio, fd, false, in, 2, 999), AIO_END_OF_FILE);
    assert_int_equal(transfer(aio, fd, false, in, 1, 1000), AIO_END_OF_FILE);
    assert_int_equal(transfer(aio, fd, false, in, 1, INT64_MAX - 1), AIO_END_OF_FILE);
    assert_int_equal(transfer(aio, fd, false, in, 0, 5000), 0);
    aio_destroy(aio);
    close(fd);
}

static void test_errors(void **state)
{
    unsigned char data[16] = {0};
    int fd = open_scratch(), folder = open("/", O_RDONLY), empty = open("/dev/null", O_RDONLY);
    aio_t *aio = open_aio();
    assert_int_equal(transfer(aio, -1, false, data, 16, 0), EBADF);
    assert_int_equal(transfer(aio, 1000000, true, data, 16, 0), EBADF);
    assert_int_equal(transfer(aio, empty, true, data, 16, 0), EBADF);
    assert_int_equal(transfer(aio, folder, false, data, 16, 0), EISDIR);
    assert_int_equal(transfer(aio, fd, true, data, 16, UINT64_MAX), EINVAL);
    assert_int_equal(transfer(aio, fd, false, data, 16, (uint64_t)INT64_MAX + 1), EINVAL);
    assert_int_equal(transfer(aio, fd, true, (void *)8, 16, 0), EFAULT);
    assert_int_equal(lseek(fd, 0, SEEK_END), 0);
    // An error is one request's.
    assert_int_equal(transfer(aio, fd, true, data, 16, 0), 0);
    aio_destroy(aio);
    close(fd);
    close(folder);
    close(empty);
}

// Files of /proc give a page at a time, however much is asked for.
static void test_short_reads(void **state)
{
    enum { MOST = 1 << 20 };
    int fd = open("/proc/kallsyms", O_RDONLY);
    unsigned char *want = malloc(MOST), *have = malloc(MOST);
    size_t size = 0, first = 0;
    for (ssize_t n = 1; fd >= 0 && size < MOST && n > 0; size += (size_t)n) {
        n = read(fd, want + size, MOST - size);
        assert_true(n >= 0);
        if (!size) first = (size_t)n;
    }
    if (first == size) {
        free(want), free(have);
        print_message("no file here is read in pieces\n");
        skip();
    }
    aio_t *aio = open_aio();
    assert_int_equal(transfer(aio, fd, false, have, size, 0), 0);
    assert_memory_equal(have, want, size);
    aio_destroy(aio);
    close(fd);
    free(want);
    free(have);
}

// Sizes that 31 and 32 bits do not hold. The memory is one piece that appears again and again.
static void test_large(void **state)
{
    const uint64_t size = (UINT64_C(4) << 30) + 4097;
    const size_t piece = 64 << 20, span = 65 * piece;
    char *memory = mmap(NULL, span, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    assert_ptr_not_equal(memory, MAP_FAILED);
    int shared = open_scratch(), sink = open("/dev/null", O_WRONLY), zero = open("/dev/zero", 0);
    assert_int_equal(ftruncate(shared, (off_t)piece), 0);
    for (size_t at = 0; at < span; at += piece)
        assert_ptr_not_equal(
            mmap(memory + at, piece, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, shared, 0),
            MAP_FAILED);
    memory[size % piece] = 1;
    aio_t *aio = open_aio();
    transfer_t large = transfer_of(sink, true, memory, size, 0);
    transfer_submit(aio, &large);
    wait_ended(1);
    assert_int_equal(large.error, 0);
    assert_int_equal(large.request.moved, size);
    const uint64_t half = (UINT64_C(2) << 30) + 1;
    memset(memory, 1, 4096);
    assert_int_equal(transfer(aio, zero, false, memory, half, 0), 0);
    for (int i = 0; i < 4096; i++) assert_int_equal(memory[i], 0);
    aio_destroy(aio);
    munmap(memory, span);
    close(shared), close(sink), close(zero);
}

// A request that submits itself again, up to the end of the file, by a descriptor with O_NONBLOCK.
typedef struct chain_t {
    aio_request_t request;
    aio_t *aio;
    unsigned char *data;
    unsigned links;
    _Atomic uint32_t over;
} chain_t;

static void chain_done(aio_request_t *request, int error)
{
    chain_t *chain = request->context;
    if (error == 0) {
        chain->links++;
        request->data += request->size;
        request->offset += request->size;
        aio_submit(chain->aio, request);
        return;
    }
    assert_int_equal(error, AIO_END_OF_FILE);
    atomic_store(&chain->over, 1);
    futex_wake(&chain->over, 1);
}

static void test_chain(void **state)
{
    enum { LINKS = 300, SIZE = 1000 };
    static unsigned char out[LINKS * SIZE], in[LINKS * SIZE + SIZE];
    int fd = open_scratch();
    assert_int_equal(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
    fill(out, sizeof out, 9);
    aio_t *aio = open_aio();
    assert_int_equal(transfer(aio, fd, true, out, sizeof out, 0), 0);
    chain_t chain = {.aio = aio};
    chain.request =
        (aio_request_t){.fd = fd, .data = in, .size = SIZE, .done = chain_done, .context = &chain};
    aio_submit(aio, &chain.request);
    while (!atomic_load(&chain.over)) futex_wait(&chain.over, 0, KEEL_FOREVER);
    assert_int_equal(chain.links, LINKS);
    assert_memory_equal(in, out, sizeof out);
    aio_destroy(aio);
    close(fd);
}

static void destroy_done(aio_request_t *request, int error)
{
    assert_int_equal(error, 0);
    aio_destroy(request->context);
    atomic_fetch_add(&ended, 1);
    futex_wake(&ended, 1);
}

static int count_descriptors(void)
{
    int count = 0;
    for (int fd = 0; fd < 1024; fd++) count += fcntl(fd, F_GETFD) >= 0;
    return count;
}

// The service thread may be the one that destroys.
static void test_destroy_by_service(void **state)
{
    unsigned char byte = 1;
    int fd = open("/dev/null", O_WRONLY), before = count_descriptors();
    aio_t *aio = open_aio();
    aio_request_t request = {
        .fd = fd, .write = true, .data = &byte, .size = 1, .done = destroy_done, .context = aio};
    aio_submit(aio, &request);
    wait_ended(1);
    for (int i = 0; i < 1000 && count_descriptors() != before; i++) usleep(1000);
    assert_int_equal(count_descriptors(), before);
    close(fd);
}

// Runs `body` in a process of its own, which ends well if it returns 0.
static void in_child(int (*body)(void))
{
    pid_t child = fork();
    if (child == 0) {
        alarm(20);
        _exit(body());
    }
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static aio_t *inherited;
static int descriptors; // there should be without it

static int destroy_inherited(void)
{
    aio_destroy(inherited);
    return count_descriptors() != descriptors;
}

// The child of a fork has no service thread to wait for, and the parent keeps its own.
static void test_fork(void **state)
{
    unsigned char byte = 1;
    int fd = open_scratch(), before = count_descriptors();
    aio_t *aio = open_aio();
    assert_int_equal(transfer(aio, fd, true, &byte, 1, 0), 0);
    inherited = aio;
    descriptors = before;
    in_child(destroy_inherited);
    byte = 0;
    assert_int_equal(transfer(aio, fd, false, &byte, 1, 0), 0);
    assert_int_equal(byte, 1);
    aio_destroy(aio);
    assert_int_equal(count_descriptors(), before);
    close(fd);
}

#if defined(__GLIBC__) && !KEEL_PORTABLE && !defined(__SANITIZE_THREAD__)
static int without_thread(void)
{
    unsigned char byte = 1;
    int sink = open("/dev/null", O_WRONLY);
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, (size_t)1 << 62);
    pthread_setattr_default_np(&attributes);
    aio_t *aio = open_aio();
    transfer_t one = transfer_of(sink, true, &byte, 1, 0);
    transfer_submit(aio, &one);
    if (one.error != EAGAIN || !pthread_equal(one.thread, pthread_self())) return 1;
    pthread_attr_setstacksize(&attributes, 1 << 20);
    pthread_setattr_default_np(&attributes);
    if (transfer(aio, sink, true, &byte, 1, 0) != 0) return 2;
    aio_destroy(aio);
    return 0;
}

// No thread can be started; later one can.
static void test_no_thread(void **state)
{
    in_child(without_thread);
}
#else
static void test_no_thread(void **state)
{
    skip();
}
#endif

#if KEEL_HAVE_URING
static int in_sandbox(void)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_io_uring_enter, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) return 0;
    unsigned char byte = 1;
    int fd = open_scratch(), before = count_descriptors();
    aio_t *aio = open_aio();
    if (transfer(aio, fd, true, &byte, 1, 0) != 0) return 1;
    if (transfer(aio, fd, false, &byte, 1, 1) != AIO_END_OF_FILE) return 2;
    if (aio->ring_fd >= 0 || count_descriptors() != before) return 3;
    aio_destroy(aio);
    return 0;
}

// A ring can be made, but not used.
static void test_sandbox(void **state)
{
    in_child(in_sandbox);
}
#else
static void test_sandbox(void **state)
{
    skip();
}
#endif

static int with_ring(void **state)
{
    unsigned char byte = 0;
    int fd = open("/dev/null", O_WRONLY);
    ring_forbidden = false;
    aio_t *aio = open_aio();
    assert_int_equal(transfer(aio, fd, true, &byte, 1, 0), 0);
    if (aio->ring_fd < 0) print_message("no io_uring here: pread and pwrite take its place\n");
    aio_destroy(aio);
    close(fd);
    return 0;
}

static int with_thread(void **state)
{
    ring_forbidden = true;
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_idle),        cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_many),        cmocka_unit_test(test_calls),
        cmocka_unit_test(test_end_of_file), cmocka_unit_test(test_errors),
        cmocka_unit_test(test_short_reads), cmocka_unit_test(test_large),
        cmocka_unit_test(test_chain),       cmocka_unit_test(test_destroy_by_service),
        cmocka_unit_test(test_fork),        cmocka_unit_test(test_no_thread),
        cmocka_unit_test(test_sandbox),
    };
    int failed = cmocka_run_group_tests_name("aio with io_uring", tests, with_ring, NULL);
    return failed + cmocka_run_group_tests_name("aio with a thread", tests, with_thread, NULL);
}
