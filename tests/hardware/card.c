// SPDX-License-Identifier: Apache-2.0
// card LIBCUDA [FOLDER]: what a program sees that uses Keel beside CUDA itself: contexts, streams
// and memory that are shared with it, and kernels that nvcc made (card.ptx, card.cubin and
// card.fatbin in FOLDER). Ends with how many checks passed, and status 0 if all did.
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <keel/keel.h>

// Handles are pointers, results int, addresses of devices uint64_t: no header of CUDA's is needed.
#define FUNCTIONS(F)                                                                               \
    F(cuInit, (unsigned))                                                                          \
    F(cuDeviceGetUuid_v2, (char *, int))                                                           \
    F(cuDeviceGetPCIBusId, (char *, int, int))                                                     \
    F(cuDeviceGetAttribute, (int *, int, int))                                                     \
    F(cuDevicePrimaryCtxGetState, (int, unsigned *, int *))                                        \
    F(cuDevicePrimaryCtxRetain, (void **, int))                                                    \
    F(cuDevicePrimaryCtxRelease_v2, (int))                                                         \
    F(cuCtxGetCurrent, (void **))                                                                  \
    F(cuCtxSetCurrent, (void *))                                                                   \
    F(cuStreamCreate, (void **, unsigned))                                                         \
    F(cuStreamSynchronize, (void *))                                                               \
    F(cuStreamDestroy_v2, (void *))                                                                \
    F(cuStreamBeginCapture_v2, (void *, int))                                                      \
    F(cuStreamEndCapture, (void *, void **))                                                       \
    F(cuGraphDestroy, (void *))                                                                    \
    F(cuMemAlloc_v2, (uint64_t *, size_t))                                                         \
    F(cuMemFree_v2, (uint64_t))                                                                    \
    F(cuMemAllocManaged, (uint64_t *, size_t, unsigned))                                           \
    F(cuMemHostAlloc, (void **, size_t, unsigned))                                                 \
    F(cuMemFreeHost, (void *))                                                                     \
    F(cuMemsetD32Async, (uint64_t, unsigned, size_t, void *))                                      \
    F(cuMemcpyDtoHAsync_v2, (void *, uint64_t, size_t, void *))

#define MEMBER(name, parameters) int(*name) parameters;
static struct cuda_t {
    FUNCTIONS(MEMBER)
} cuda;

static const char *library, *folder;

// Leave a check as failed, saying why.
#define REQUIRE(condition)                                                                         \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            printf("  line %d: %s does not hold\n", __LINE__, #condition);                         \
            return false;                                                                          \
        }                                                                                          \
    } while (0)
#define TRY(call)                                                                                  \
    do {                                                                                           \
        keel_status_t status_ = (call);                                                            \
        if (status_) {                                                                             \
            printf("  line %d: %s: ", __LINE__, #call);                                            \
            fflush(stdout);                                                                        \
            keel_status_print(status_, stdout);                                                    \
            keel_status_release(status_);                                                          \
            return false;                                                                          \
        }                                                                                          \
    } while (0)

static bool cuda_open(void)
{
    void *handle = dlopen(library, RTLD_NOW);
    if (!handle) printf("  %s\n", dlerror());
    REQUIRE(handle);
#define FIND(name, parameters)                                                                     \
    *(void **)&cuda.name = dlsym(handle, #name);                                                   \
    REQUIRE(cuda.name);
    FUNCTIONS(FIND)
    REQUIRE(cuda.cuInit(0) == 0);
    return true;
}

static keel_status_t device_open(const char *which, const char *options, keel_device_t **device)
{
    char uri[512];
    snprintf(uri, sizeof uri, "cuda://%s?lib=%s%s", which, library, options);
    return keel_device_open(uri, NULL, device);
}

static keel_status_t finish(keel_queue_t *queue, keel_op_t op)
{
    keel_point_t done;
    KEEL_TRY(keel_queue_run(queue, KEEL_NO_WAITS, op, &done));
    return keel_wait(KEEL_POINTS(done), KEEL_ALL, 20000000000u);
}

static keel_status_t buffer_new(keel_device_t *device, uint64_t size, uint32_t memory,
                                keel_buffer_t **buffer)
{
    keel_buffer_options_t options = {.size = size, .memory = memory};
    return keel_buffer_create(device, &options, buffer);
}

// One of everything that calls into CUDA; `at` counts the calls that returned.
static bool use(keel_device_t *device, void *expected, int *at)
{
    keel_buffer_t *x = NULL, *y = NULL;
    keel_queue_t *queue = NULL;
    keel_recording_t *recording = NULL;
    keel_buffer_t *late = NULL;
    keel_clock_pair_t clock;
    keel_memory_stats_t memory;
    keel_point_t done;
    keel_op_t fill;
#define POLITE(call)                                                                               \
    do {                                                                                           \
        void *current_ = NULL;                                                                     \
        TRY(call);                                                                                 \
        REQUIRE(cuda.cuCtxGetCurrent(&current_) == 0 && current_ == expected);                     \
        ++*at;                                                                                     \
    } while (0)
    POLITE(buffer_new(device, 4096, KEEL_MEMORY_DEVICE_LOCAL, &x));
    POLITE(buffer_new(device, 4096, KEEL_MEMORY_HOST_VISIBLE, &y));
    POLITE(keel_queue_create(device, &(keel_queue_options_t){.name = "polite"}, &queue));
    fill = keel_op_fill(keel_whole(x), 5, 1);
    POLITE(keel_recording_create(device, &(keel_recording_options_t){0}, &recording));
    POLITE(keel_recording_add(recording, &fill, 1));
    POLITE(keel_recording_end(recording));
    POLITE(keel_recording_prepare(recording, queue));
    POLITE(finish(queue, keel_op_execute(recording, KEEL_NO_BINDINGS)));
    POLITE(finish(queue, keel_op_copy(keel_whole(x), keel_whole(y))));
    POLITE(keel_queue_alloca(queue, NULL, 1 << 20, &late, &done));
    POLITE(keel_queue_dealloca(queue, KEEL_AFTER(done), late, &done));
    POLITE(keel_wait(KEEL_POINTS(done), KEEL_ALL, KEEL_FOREVER));
    POLITE(keel_pool_trim(keel_device_pool(device, 0), 0));
    POLITE(keel_device_clock(device, &clock));
    POLITE(keel_device_memory(device, &memory));
    POLITE(keel_device_wait_idle(device, KEEL_FOREVER));
    char byte = 0;
    POLITE(keel_buffer_read(y, 4095, &byte, 1));
    REQUIRE(byte == 5);
    keel_recording_release(recording);
    keel_buffer_release(late);
    keel_buffer_release(x);
    keel_buffer_release(y);
    keel_queue_release(queue);
    POLITE(NULL);
    return true;
}

static bool is_active(void)
{
    unsigned flags;
    int active = 0;
    return cuda.cuDevicePrimaryCtxGetState(0, &flags, &active) == 0 && active;
}

// The thread's current context is what it was after every call, and the primary one is let go.
static bool contexts(void)
{
    int calls = 0;
    keel_device_t *device = NULL, *second = NULL;
    REQUIRE(!is_active());
    TRY(device_open("0", "", &device));
    REQUIRE(is_active());
    if (!use(device, NULL, &calls)) return false;
    TRY(device_open("0", "", &second));
    keel_device_release(device);
    REQUIRE(is_active());
    void *mine = NULL;
    REQUIRE(cuda.cuDevicePrimaryCtxRetain(&mine, 0) == 0 && cuda.cuCtxSetCurrent(mine) == 0);
    if (!use(second, mine, &calls)) return false;
    keel_device_release(second);
    REQUIRE(is_active());
    void *current = NULL;
    REQUIRE(cuda.cuCtxGetCurrent(&current) == 0 && current == mine);
    REQUIRE(cuda.cuCtxSetCurrent(NULL) == 0 && cuda.cuDevicePrimaryCtxRelease_v2(0) == 0);
    REQUIRE(!is_active());
    printf("  %d calls\n", calls);
    return true;
}

// A stream of the caller's is captured, in the mode that forbids other calls most: none of Keel's
// fails, and none spoils the capture.
static bool captures(void)
{
    int calls = 0;
    void *mine = NULL, *stream = NULL, *graph = NULL;
    keel_device_t *device = NULL;
    TRY(device_open("0", "", &device));
    REQUIRE(cuda.cuDevicePrimaryCtxRetain(&mine, 0) == 0 && cuda.cuCtxSetCurrent(mine) == 0);
    REQUIRE(cuda.cuStreamCreate(&stream, 1) == 0);
    REQUIRE(cuda.cuStreamBeginCapture_v2(stream, 0) == 0);
    bool used = use(device, mine, &calls);
    usleep(50000); // for threads of Keel's
    REQUIRE(cuda.cuStreamEndCapture(stream, &graph) == 0 && cuda.cuGraphDestroy(graph) == 0);
    REQUIRE(used);
    keel_device_release(device);
    REQUIRE(cuda.cuStreamDestroy_v2(stream) == 0);
    REQUIRE(cuda.cuCtxSetCurrent(NULL) == 0 && cuda.cuDevicePrimaryCtxRelease_v2(0) == 0);
    return true;
}

// The first queue is the caller's stream: what he enqueues himself before and behind is in order.
static bool adopted(void)
{
    void *context = NULL, *stream = NULL;
    char options[128];
    keel_device_t *device = NULL;
    REQUIRE(cuda.cuDevicePrimaryCtxRetain(&context, 0) == 0);
    REQUIRE(cuda.cuCtxSetCurrent(context) == 0 && cuda.cuStreamCreate(&stream, 1) == 0);
    snprintf(options, sizeof options, "&context=%p&stream=%p", context, stream);
    TRY(device_open("0", options, &device));
    enum { WORDS = 1 << 20 };
    keel_buffer_t *x = NULL, *y = NULL;
    uint64_t from, to;
    keel_point_t done;
    unsigned *words = calloc(WORDS, 4);
    TRY(buffer_new(device, WORDS * 4, KEEL_MEMORY_DEVICE_LOCAL, &x));
    TRY(buffer_new(device, WORDS * 4, KEEL_MEMORY_DEVICE_LOCAL, &y));
    TRY(keel_buffer_address(x, &from));
    TRY(keel_buffer_address(y, &to));
    REQUIRE(cuda.cuMemsetD32Async(from, 7, WORDS, stream) == 0);
    TRY(keel_queue_copy(keel_device_queue(device, 0), KEEL_NO_WAITS, keel_whole(x), keel_whole(y),
                        &done));
    REQUIRE(cuda.cuMemcpyDtoHAsync_v2(words, to, WORDS * 4, stream) == 0);
    REQUIRE(cuda.cuStreamSynchronize(stream) == 0);
    for (int i = 0; i < WORDS; i++) REQUIRE(words[i] == 7);
    TRY(keel_wait(KEEL_POINTS(done), KEEL_ALL, KEEL_FOREVER));
    free(words);
    keel_buffer_release(x);
    keel_buffer_release(y);
    keel_device_release(device);
    REQUIRE(cuda.cuStreamSynchronize(stream) == 0); // it is still there, and so is the context
    REQUIRE(cuda.cuStreamDestroy_v2(stream) == 0);
    REQUIRE(cuda.cuCtxSetCurrent(NULL) == 0 && cuda.cuDevicePrimaryCtxRelease_v2(0) == 0);
    REQUIRE(!is_active());
    return true;
}

static bool opened_by(const char *which)
{
    keel_device_t *device = NULL;
    TRY(device_open(which, "", &device));
    printf("  cuda://%s\n", which);
    keel_device_release(device);
    return true;
}

static bool names(void)
{
    char uuid[16], name[64] = "GPU-", address[64];
    REQUIRE(cuda.cuDeviceGetUuid_v2(uuid, 0) == 0);
    REQUIRE(cuda.cuDeviceGetPCIBusId(address, sizeof address, 0) == 0);
    for (int i = 0; i < 16; i++)
        snprintf(name + strlen(name), sizeof name - strlen(name), "%s%02x",
                 i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", (unsigned char)uuid[i]);
    return opened_by("") && opened_by("0") && opened_by(name) && opened_by(address);
}

static bool import_refused(keel_device_t *device, uint64_t address, uint64_t size, keel_code_t code)
{
    keel_buffer_t *x = NULL;
    keel_external_buffer_t external = {
        .kind = KEEL_EXTERNAL_DEVICE, .handle.device = address, .size = size};
    keel_status_t status = keel_buffer_import(device, &external, NULL, &x);
    printf("  %s\n", keel_status_message(status));
    REQUIRE(keel_status_code(status) == code);
    keel_status_release(status);
    return true;
}

// A device pointer of the caller's; what is none, or more than its allocation, is refused.
static bool pointers(void)
{
    void *context = NULL;
    uint64_t memory = 0;
    keel_device_t *device = NULL;
    keel_buffer_t *x = NULL;
    unsigned words[64] = {0};
    REQUIRE(cuda.cuDevicePrimaryCtxRetain(&context, 0) == 0);
    REQUIRE(cuda.cuCtxSetCurrent(context) == 0 && cuda.cuMemAlloc_v2(&memory, 4096) == 0);
    TRY(device_open("0", "", &device));
    keel_external_buffer_t external = {
        .kind = KEEL_EXTERNAL_DEVICE, .handle.device = memory + 256, .size = 256};
    TRY(keel_buffer_import(device, &external, NULL, &x));
    TRY(finish(keel_device_queue(device, 0), keel_op_fill(keel_whole(x), 0x01020304, 4)));
    REQUIRE(cuda.cuMemcpyDtoHAsync_v2(words, memory + 256, 256, NULL) == 0);
    REQUIRE(cuda.cuStreamSynchronize(NULL) == 0);
    for (int i = 0; i < 64; i++) REQUIRE(words[i] == 0x01020304);
    keel_buffer_release(x);
    REQUIRE(import_refused(device, memory + 256, 4096 - 255, KEEL_OUT_OF_RANGE));
    REQUIRE(import_refused(device, (uintptr_t)words, sizeof words, KEEL_INVALID_ARGUMENT));
    REQUIRE(cuda.cuMemFree_v2(memory) == 0);
    REQUIRE(import_refused(device, memory, 256, KEEL_INVALID_ARGUMENT));
    keel_device_release(device);
    REQUIRE(cuda.cuCtxSetCurrent(NULL) == 0 && cuda.cuDevicePrimaryCtxRelease_v2(0) == 0);
    return true;
}

// Fills page-locked memory through an import of it.
static bool locked_fill(keel_device_t *device, char *memory, uint64_t size, char value)
{
    keel_buffer_t *x = NULL;
    keel_external_buffer_t external = {
        .kind = KEEL_EXTERNAL_HOST, .handle.host = memory, .size = size};
    TRY(keel_buffer_import(device, &external, NULL, &x));
    TRY(finish(keel_device_queue(device, 0), keel_op_fill(keel_whole(x), (unsigned)value, 1)));
    for (uint64_t i = 0; i < size; i++) REQUIRE(memory[i] == value);
    keel_buffer_release(x);
    return true;
}

// Memory that is page-locked before it is imported, by the caller or by Keel, and is no whole page.
static bool locked(void)
{
    void *context = NULL, *memory[2] = {0}, *mapped = NULL;
    keel_device_t *device = NULL;
    keel_buffer_t *mine = NULL;
    REQUIRE(cuda.cuDevicePrimaryCtxRetain(&context, 0) == 0 && cuda.cuCtxSetCurrent(context) == 0);
    TRY(device_open("0", "", &device));
    for (int i = 0; i < 2; i++) REQUIRE(cuda.cuMemHostAlloc(&memory[i], 64, 3) == 0);
    for (int i = 0; i < 2; i++) {
        REQUIRE(locked_fill(device, memory[i], 64, 1));
        REQUIRE(locked_fill(device, (char *)memory[i] + 7, 9, 2));
    }
    for (uint64_t size = 64; size <= 1 << 20; size *= 16) {
        TRY(buffer_new(device, size, KEEL_MEMORY_HOST_VISIBLE, &mine));
        TRY(keel_buffer_map(mine, 0, KEEL_WHOLE, KEEL_ACCESS_ALL, &mapped));
        REQUIRE(locked_fill(device, mapped, size, 3));
        REQUIRE(locked_fill(device, (char *)mapped + 1, size - 2, 4));
        keel_buffer_unmap(mine);
        keel_buffer_release(mine);
    }
    for (int i = 0; i < 2; i++) REQUIRE(cuda.cuMemFreeHost(memory[i]) == 0);
    keel_device_release(device);
    REQUIRE(cuda.cuCtxSetCurrent(NULL) == 0 && cuda.cuDevicePrimaryCtxRelease_v2(0) == 0);
    return true;
}

// Imports a mapping that the process cannot write, and copies all of it, which is 5s.
static bool constant_copy(keel_device_t *device, void *memory, uint64_t size)
{
    int supported = 0;
    keel_buffer_t *x = NULL, *y = NULL;
    const char *bytes = NULL;
    keel_external_buffer_t external = {
        .kind = KEEL_EXTERNAL_HOST, .handle.host = memory, .size = size};
    keel_buffer_options_t options = {.access = KEEL_ACCESS_READ};
    REQUIRE(cuda.cuDeviceGetAttribute(&supported, 113, 0) == 0); // READ_ONLY_HOST_REGISTER
    keel_status_t status = keel_buffer_import(device, &external, NULL, &x);
    printf("  %s\n", keel_status_message(status));
    REQUIRE(status);
    keel_status_release(status);
    status = keel_buffer_import(device, &external, &options, &x);
    if (!supported) {
        REQUIRE(keel_status_code(status) == KEEL_UNSUPPORTED);
        keel_status_release(status);
        return true;
    }
    TRY(status);
    TRY(buffer_new(device, size, KEEL_MEMORY_HOST_VISIBLE, &y));
    TRY(finish(keel_device_queue(device, 0), keel_op_copy(keel_whole(x), keel_whole(y))));
    TRY(keel_buffer_map(y, 0, KEEL_WHOLE, KEEL_ACCESS_READ, (void **)&bytes));
    for (uint64_t i = 0; i < size; i++) REQUIRE(bytes[i] == 5);
    keel_buffer_unmap(y);
    keel_buffer_release(y);
    keel_buffer_release(x);
    return true;
}

// A private mapping of a file that cannot be written is refused; CUDA would not return.
static bool constant_refused(keel_device_t *device, void *memory, uint64_t size)
{
    keel_buffer_t *x = NULL;
    keel_external_buffer_t external = {
        .kind = KEEL_EXTERNAL_HOST, .handle.host = memory, .size = size};
    keel_buffer_options_t options = {.access = KEEL_ACCESS_READ};
    keel_status_t status = keel_buffer_import(device, &external, &options, &x);
    REQUIRE(keel_status_code(status) == KEEL_UNSUPPORTED);
    printf("  %s\n", keel_status_message(status));
    REQUIRE(strstr(keel_status_message(status), "MAP_SHARED"));
    keel_status_release(status);
    return true;
}

// A file that is mapped for reading, as weights are.
static bool constant(void)
{
    enum { SIZE = 3 << 20 };
    static char fives[SIZE];
    char path[] = "/tmp/keel-card-XXXXXX";
    keel_device_t *device = NULL;
    int written = mkstemp(path), fd = open(path, O_RDONLY | O_CLOEXEC);
    memset(fives, 5, sizeof fives);
    REQUIRE(fd >= 0 && unlink(path) == 0 && write(written, fives, SIZE) == SIZE);
    REQUIRE(close(written) == 0);
    TRY(device_open("0", "", &device));
    void *memory = mmap(NULL, SIZE, PROT_READ, MAP_PRIVATE, fd, 0);
    REQUIRE(memory != MAP_FAILED);
    REQUIRE(constant_refused(device, memory, SIZE));
    REQUIRE(constant_refused(device, memory, 65536));
    REQUIRE(mmap(memory, SIZE, PROT_READ, MAP_SHARED | MAP_FIXED, fd, 0) == memory);
    REQUIRE(constant_copy(device, memory, SIZE));
    REQUIRE(constant_copy(device, (char *)memory + 1234, SIZE / 2));
    REQUIRE(munmap(memory, SIZE) == 0);
    REQUIRE(close(fd) == 0);
    keel_device_release(device);
    return true;
}

// Memory that both sides touch at once, as a tensor of the caller's and as one of Keel's.
static bool managed(void)
{
    enum { CUDA_MANAGED = 13, WORDS = 64 };
    const keel_memory_bit_t memory = KEEL_MEMORY_DEVICE_LOCAL | KEEL_MEMORY_HOST_VISIBLE;
    void *context = NULL;
    uint64_t address = 0;
    int64_t shape[] = {WORDS};
    keel_device_t *device = NULL;
    keel_buffer_t *x = NULL;
    REQUIRE(cuda.cuDevicePrimaryCtxRetain(&context, 0) == 0 && cuda.cuCtxSetCurrent(context) == 0);
    TRY(device_open("0", "", &device));
    REQUIRE(cuda.cuMemAllocManaged(&address, 4 * WORDS, 1) == 0);
    volatile uint32_t *words = (volatile uint32_t *)(uintptr_t)address;
    DLManagedTensor theirs = {.dl_tensor = {.data = (void *)(uintptr_t)address,
                                            .device = {CUDA_MANAGED, 0},
                                            .ndim = 1,
                                            .dtype = {1, 32, 1},
                                            .shape = shape}};
    for (int i = 0; i < WORDS; i++) words[i] = 1;
    TRY(keel_buffer_from_dlpack0(device, &theirs, &x));
    TRY(finish(keel_device_queue(device, 0), keel_op_fill(keel_span(x, 4, 4), 2, 4)));
    REQUIRE(words[0] == 1 && words[1] == 2 && words[2] == 1);
    uint32_t seen[2];
    TRY(keel_buffer_read(x, 0, seen, sizeof seen));
    REQUIRE(seen[0] == 1 && seen[1] == 2);
    keel_buffer_release(x);
    REQUIRE(cuda.cuMemFree_v2(address) == 0);

    keel_tensor_t how = {.type = {1, 32, 1}, .rank = 1, .shape = shape};
    DLManagedTensor *ours = NULL;
    TRY(buffer_new(device, 4 * WORDS, memory, &x));
    TRY(keel_buffer_to_dlpack0(x, &how, &ours));
    REQUIRE(ours->dl_tensor.device.device_type == CUDA_MANAGED);
    words = ours->dl_tensor.data;
    REQUIRE(cuda.cuMemsetD32Async((uintptr_t)words, 3, WORDS, NULL) == 0);
    REQUIRE(cuda.cuStreamSynchronize(NULL) == 0 && words[WORDS - 1] == 3);
    ours->deleter(ours);
    keel_buffer_release(x);
    keel_device_release(device);
    REQUIRE(cuda.cuCtxSetCurrent(NULL) == 0 && cuda.cuDevicePrimaryCtxRelease_v2(0) == 0);
    return true;
}

enum { SHARED = 4 << 20 };

// Another process, forked before CUDA is used, which works in one of the two alone otherwise. It is
// sent a descriptor.
static pid_t other;
static int channel;

typedef union control_t {
    struct cmsghdr header;
    char bytes[CMSG_SPACE(sizeof(int))];
} control_t;

static bool descriptor_send(int fd)
{
    control_t control = {.header = {CMSG_LEN(sizeof fd), SOL_SOCKET, SCM_RIGHTS}};
    char byte = 0;
    struct iovec one = {&byte, 1};
    struct msghdr message = {.msg_iov = &one,
                             .msg_iovlen = 1,
                             .msg_control = &control,
                             .msg_controllen = sizeof control.bytes};
    memcpy(CMSG_DATA(&control.header), &fd, sizeof fd);
    return sendmsg(channel, &message, 0) == 1;
}

// -1: there is none to come.
static int descriptor_receive(int from)
{
    control_t control;
    char byte;
    int fd = -1;
    struct iovec one = {&byte, 1};
    struct msghdr message = {.msg_iov = &one,
                             .msg_iovlen = 1,
                             .msg_control = &control,
                             .msg_controllen = sizeof control.bytes};
    if (recvmsg(from, &message, 0) == 1) memcpy(&fd, CMSG_DATA(&control.header), sizeof fd);
    return fd;
}

// The other process: finds 1s, leaves 2s.
static bool shared_child(int fd)
{
    keel_device_t *device = NULL;
    keel_buffer_t *x = NULL, *y = NULL;
    char byte = 0;
    TRY(device_open("0", "", &device));
    keel_queue_t *queue = keel_device_queue(device, 0);
    keel_external_buffer_t external = {.kind = KEEL_EXTERNAL_FD, .handle.fd = fd, .size = SHARED};
    TRY(keel_buffer_import(device, &external, NULL, &x));
    TRY(buffer_new(device, SHARED, KEEL_MEMORY_HOST_VISIBLE, &y));
    TRY(finish(queue, keel_op_copy(keel_whole(x), keel_whole(y))));
    TRY(keel_buffer_read(y, SHARED - 1, &byte, 1));
    REQUIRE(byte == 1);
    TRY(finish(queue, keel_op_fill(keel_whole(x), 2, 1)));
    keel_buffer_release(x);
    keel_buffer_release(y);
    keel_device_release(device);
    return true;
}

static bool other_start(void)
{
    int ends[2];
    REQUIRE(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
    other = fork();
    if (!other) {
        close(ends[0]);
        int fd = descriptor_receive(ends[1]);
        _exit(fd >= 0 && !shared_child(fd));
    }
    close(ends[1]);
    channel = ends[0];
    return true;
}

// Memory of the GPU that two processes have.
static bool shared(void)
{
    keel_device_t *device = NULL;
    keel_buffer_t *x = NULL, *y = NULL;
    keel_buffer_options_t options = {
        .size = SHARED, .memory = KEEL_MEMORY_DEVICE_LOCAL, .usage = 0x1f};
    keel_external_buffer_t external = {.kind = KEEL_EXTERNAL_FD};
    char byte = 0;
    int status = -1;
    TRY(device_open("0", "", &device));
    keel_queue_t *queue = keel_device_queue(device, 0);
    TRY(keel_buffer_create(device, &options, &x));
    TRY(buffer_new(device, SHARED, KEEL_MEMORY_HOST_VISIBLE, &y));
    TRY(finish(queue, keel_op_fill(keel_whole(x), 1, 1)));
    TRY(keel_buffer_export(x, &external));
    REQUIRE(descriptor_send(external.handle.fd));
    REQUIRE(waitpid(other, &status, 0) == other && status == 0);
    TRY(finish(queue, keel_op_copy(keel_whole(x), keel_whole(y))));
    TRY(keel_buffer_read(y, SHARED - 1, &byte, 1));
    REQUIRE(byte == 2);
    close(external.handle.fd);
    keel_buffer_release(x);
    keel_buffer_release(y);
    keel_device_release(device);
    return true;
}

// What there is to see of semaphores of other APIs where no such API is: the capability is what
// CUDA says, a descriptor of something else is refused, and the device is none the worse for it.
static bool semaphores(void)
{
    keel_device_t *device = NULL;
    keel_semaphore_t *semaphore = NULL;
    keel_buffer_t *x = NULL;
    int interop = 0, pipes[2];
    REQUIRE(cuda.cuDeviceGetAttribute(&interop, 114, 0) ==
            0); // TIMELINE_SEMAPHORE_INTEROP_SUPPORTED
    TRY(device_open("0", "", &device));
    bool has = keel_device_caps(device)->bits & KEEL_CAP_IMPORT_SEMAPHORE;
    REQUIRE(has == (interop != 0));
    REQUIRE(pipe(pipes) == 0);
    for (int i = 0; i < 2; i++) {
        keel_external_semaphore_t external = {.handle.fd = pipes[i]};
        keel_status_t status = keel_semaphore_import(device, &external, NULL, &semaphore);
        printf("  %s\n", keel_status_message(status));
        REQUIRE(keel_status_code(status) == (has ? KEEL_INVALID_ARGUMENT : KEEL_UNSUPPORTED));
        keel_status_release(status);
        REQUIRE(close(pipes[i]) == 0); // still ours
    }
    TRY(buffer_new(device, 4096, 0, &x));
    TRY(finish(keel_device_queue(device, 0), keel_op_fill(keel_whole(x), 1, 1)));
    keel_buffer_release(x);
    keel_device_release(device);
    return true;
}

// What nvcc made, in one of its forms.
typedef struct kernels_t {
    keel_device_t *device;
    keel_queue_t *queue;
    keel_executable_t *executable;
} kernels_t;

static bool kernels_open(const char *name, kernels_t *kernels)
{
    char path[1024];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    TRY(device_open("0", "", &kernels->device));
    kernels->queue = keel_device_queue(kernels->device, 0);
    keel_executable_options_t options = {.path = path};
    TRY(keel_executable_load(kernels->device, &options, &kernels->executable));
    return true;
}

static void kernels_close(kernels_t *kernels)
{
    keel_executable_release(kernels->executable);
    keel_device_release(kernels->device);
}

// Runs an entry point on a raw block of arguments.
static keel_status_t kernels_run(const kernels_t *kernels, const char *name, keel_dispatch_t d)
{
    keel_op_t op = {.kind = KEEL_OP_DISPATCH};
    KEEL_TRY(keel_executable_entry(kernels->executable, name, &d.entry));
    d.raw = true;
    op.as.dispatch = d;
    return finish(kernels->queue, op);
}

enum { COUNT = 5000 };

static bool floats_check(keel_buffer_t *y, float factor, float summand)
{
    float *values = NULL;
    TRY(keel_buffer_map(y, 0, KEEL_WHOLE, KEEL_ACCESS_ALL, (void **)&values));
    for (int i = 0; i < COUNT; i++) REQUIRE(values[i] == factor * (float)i + summand);
    keel_buffer_unmap(y);
    return true;
}

static bool floats_new(keel_device_t *device, float factor, float summand, keel_buffer_t **x)
{
    float *values = NULL;
    TRY(buffer_new(device, COUNT * sizeof *values, KEEL_MEMORY_HOST_VISIBLE, x));
    TRY(keel_buffer_map(*x, 0, KEEL_WHOLE, KEEL_ACCESS_ALL, (void **)&values));
    for (int i = 0; i < COUNT; i++) values[i] = factor * (float)i + summand;
    keel_buffer_unmap(*x);
    return true;
}

static bool axpy(const kernels_t *k, keel_buffer_t *x, keel_buffer_t *y)
{
    struct {
        float a;
        uint64_t x, y;
        int n;
    } block = {.a = 3, .n = COUNT};
    keel_patch_t patches[] = {{8, keel_whole(x)}, {16, keel_whole(y)}};
    TRY(kernels_run(k, "axpy",
                    (keel_dispatch_t){.groups = {(COUNT + 127) / 128, 1, 1},
                                      .group_size = {128, 1, 1},
                                      .constants = &block,
                                      .constant_size = 28,
                                      .patches = patches,
                                      .patch_count = 2}));
    return floats_check(y, 3 + 2, 1);
}

static bool add_blocks(const kernels_t *k, keel_buffer_t *x, keel_buffer_t *out)
{
    struct {
        uint64_t x, y, out;
        int n;
        uint64_t scratch, profile;
    } block = {.n = COUNT};
    keel_patch_t patches[] = {{0, keel_whole(x)}, {8, keel_whole(x)}, {16, keel_whole(out)}};
    TRY(kernels_run(k, "add_blocks",
                    (keel_dispatch_t){.groups = {(COUNT + 1023) / 1024, 1, 1},
                                      .group_size = {128, 1, 1},
                                      .constants = &block,
                                      .constant_size = sizeof block,
                                      .patches = patches,
                                      .patch_count = 3}));
    return floats_check(out, 2, 0);
}

// Workgroup memory beyond what a launch gets without asking, up to all there is.
static bool turn(const kernels_t *k, uint32_t bytes)
{
    keel_buffer_t *x = NULL;
    uint32_t *words = NULL, count = bytes / 4;
    TRY(buffer_new(k->device, bytes, KEEL_MEMORY_HOST_VISIBLE, &x));
    TRY(keel_buffer_map(x, 0, KEEL_WHOLE, KEEL_ACCESS_ALL, (void **)&words));
    for (uint32_t i = 0; i < count; i++) words[i] = i;
    struct {
        uint64_t words;
        uint32_t count;
    } block = {.count = count};
    keel_patch_t patch = {0, keel_whole(x)};
    TRY(kernels_run(k, "turn",
                    (keel_dispatch_t){.groups = {1, 1, 1},
                                      .group_size = {256, 1, 1},
                                      .local_memory = bytes,
                                      .constants = &block,
                                      .constant_size = 12,
                                      .patches = &patch,
                                      .patch_count = 1}));
    for (uint32_t i = 0; i < count; i++) REQUIRE(words[i] == count - 1 - i);
    keel_buffer_unmap(x);
    keel_buffer_release(x);
    return true;
}

static bool image(const char *name)
{
    kernels_t k;
    keel_buffer_t *x = NULL, *y = NULL;
    if (!kernels_open(name, &k)) return false;
    const keel_caps_t *caps = keel_device_caps(k.device);
    if (!floats_new(k.device, 1, 0, &x) || !floats_new(k.device, 2, 1, &y)) return false;
    if (!axpy(&k, x, y) || !add_blocks(&k, x, y)) return false;
    if (!turn(&k, 4096) || !turn(&k, 100 << 10) || !turn(&k, caps->max_local_memory)) return false;
    printf("  up to %u bytes of workgroup memory\n", caps->max_local_memory);
    keel_buffer_release(x);
    keel_buffer_release(y);
    kernels_close(&k);
    return true;
}

static bool ptx(void)
{
    return image("card.ptx");
}

static bool cubin(void)
{
    return image("card.cubin");
}

static bool fatbin(void)
{
    return image("card.fatbin");
}

// The compiler's own words are in the error.
static bool compiler_errors(void)
{
    static const char text[] = ".version 7.0\n.target sm_70\n.address_size 64\n"
                               ".visible .entry wrong()\n{\n    frobnicate.u32 1;\n    ret;\n}\n";
    keel_device_t *device = NULL;
    keel_executable_t *executable = NULL;
    keel_executable_options_t options = {.data = text, .size = sizeof text - 1, .name = "wrong"};
    char said[4096];
    TRY(device_open("0", "", &device));
    keel_status_t status = keel_executable_load(device, &options, &executable);
    REQUIRE(status);
    keel_status_format(status, said, sizeof said);
    printf("  %s\n", said);
    REQUIRE(strstr(said, "ptxas") && strstr(said, "frobnicate") && strstr(said, "line 6"));
    keel_status_release(status);
    keel_device_release(device);
    return true;
}

// Variables of an image, in memory of each kind, are imported as what they are.
static bool variables(void)
{
    static const char text[] = ".version 7.0\n.target sm_70\n.address_size 64\n"
                               ".visible .global .align 4 .u32 one[2] = {1, 2};\n"
                               ".visible .const .align 4 .u32 other[2] = {3, 4};\n"
                               ".visible .entry nothing()\n{\n    ret;\n}\n";
    static const char *const called[] = {"one", "other"};
    keel_device_t *device = NULL;
    keel_executable_t *executable = NULL;
    keel_buffer_t *x = NULL, *y = NULL;
    keel_executable_options_t options = {.data = text, .size = sizeof text - 1, .name = "some"};
    TRY(device_open("0", "", &device));
    TRY(keel_executable_load(device, &options, &executable));
    TRY(buffer_new(device, 8, KEEL_MEMORY_HOST_VISIBLE, &y));
    for (uint32_t i = 0; i < 2; i++) {
        uint32_t words[2];
        TRY(keel_executable_global(executable, called[i], &x));
        REQUIRE(keel_buffer_size(x) == 8);
        TRY(finish(keel_device_queue(device, 0), keel_op_copy(keel_whole(x), keel_whole(y))));
        TRY(keel_buffer_read(y, 0, words, sizeof words));
        REQUIRE(words[0] == 2 * i + 1 && words[1] == 2 * i + 2);
        keel_buffer_release(x);
    }
    keel_buffer_release(y);
    keel_executable_release(executable);
    keel_device_release(device);
    return true;
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        bool (*run)(void);
        bool needs_nvcc;
    } checks[] = {
        {"contexts", contexts, false},
        {"captures", captures, false},
        {"adopted", adopted, false},
        {"names", names, false},
        {"pointers", pointers, false},
        {"locked", locked, false},
        {"constant", constant, false},
        {"managed", managed, false},
        {"shared", shared, false},
        {"semaphores", semaphores, false},
        {"ptx", ptx, true},
        {"cubin", cubin, true},
        {"fatbin", fatbin, true},
        {"compiler_errors", compiler_errors, true},
        {"variables", variables, true},
    };
    int count[3] = {0};
    if (argc < 2) {
        fprintf(stderr, "usage: card LIBCUDA [FOLDER]\n");
        return 2;
    }
    library = argv[1];
    folder = argc > 2 ? argv[2] : NULL;
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (!other_start() || !cuda_open()) return 1;
    for (size_t i = 0; i < sizeof checks / sizeof checks[0]; i++) {
        int result = checks[i].needs_nvcc && !folder ? 2 : !checks[i].run();
        printf("%s %s\n", (const char *[]){"passed ", "FAILED ", "skipped"}[result],
               checks[i].name);
        count[result]++;
    }
    printf("%d passed, %d failed, %d skipped\n", count[0], count[1], count[2]);
    return count[1] != 0;
}
